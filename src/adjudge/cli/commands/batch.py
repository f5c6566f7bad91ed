"""``adjudge batch``: the batches of a run at their providers: list, collect, cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.output import add_row, make_table, note, show_drawing, show_status, write_json
from adjudge.formats.arguments import check_above_zero

if TYPE_CHECKING:
    # Imported where it is used, because other commands import this module, and most of them use no batches.
    from adjudge.runs.batch.store import KeptBatch

Folder = Annotated[Path, typer.Argument(metavar="RUN", hidden=True)]

Numbers = Annotated[
    list[int] | None, typer.Option("--number", "-n", metavar="N", help="Only this batch.  [default: all of them]")
]


def list_all(folder: Folder, as_json: option.AsJson = False) -> None:
    """List the batches of a run, as they were when they were last looked at. No provider is asked.

    $ adjudge batch list runs/monday
    """
    from adjudge.runs.batch.folder import list_batches

    show(folder, list_batches(folder), as_json=as_json)


def collect(
    folder: Folder,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every batch has ended.")] = False,
    poll: Annotated[
        float, typer.Option("--batch-poll", metavar="SEC", help="With --wait: seconds until they are looked at again.")
    ] = 30.0,
    as_json: option.AsJson = False,
) -> None:
    """Fetch what has come back, also where the run's process has ended, and look for doubtful batches.

    $ adjudge batch collect runs/monday

    Providers delete results after two to 30 days. Nothing is judged: adjudge run --resume does that. Models are opened
    by their names, with the keys in the environment.
    """
    from adjudge.runs.batch.folder import collect_batches
    from adjudge.runs.batch.store import OPEN

    check_above_zero("poll", poll)
    polls: list[Sequence[KeptBatch]] = [()]  # the batches as each look at the providers found them

    def describe() -> str:
        open_batches = [batch for batch in polls[-1] if batch.state in OPEN]
        return f"waiting for {len(open_batches):,} of {len(polls[-1]):,} batches"

    with show_status(describe):
        batches = asyncio.run(collect_batches(folder, wait=wait, poll=poll, on_poll=polls.append))
    show(folder, batches, as_json=as_json)


def cancel(folder: Folder, numbers: Numbers = None, as_json: option.AsJson = False) -> None:
    """Ask the providers to end the batches of a run; what is answered by then is paid for, and can be collected.

    $ adjudge batch cancel runs/monday

    A case whose request was cancelled is undecided when the run is resumed. To judge it after all, resume once more
    with --retry error.
    """
    from adjudge.runs.batch.folder import cancel_batches

    show(folder, asyncio.run(cancel_batches(folder, numbers or ())), as_json=as_json)


def show(folder: Path, batches: Sequence[KeptBatch], *, as_json: bool) -> None:
    """Print the batches of the run in a folder, as a table or as JSON."""
    if as_json:
        write_json(
            {
                "schema": "adjudge/batch-list/1",
                "folder": str(folder),
                "batches": [_to_dict(batch) for batch in batches],
            }
        )
        return
    if not batches:
        note(f"no batch of {folder} is under way")
        return
    table = make_table(
        "", ("batch", "state", "requests", "answered", "model", "sent", "provider's id", "provider says")
    )
    for batch in batches:
        cells = (str(batch.number), batch.state, f"{batch.requests:,}", f"{batch.done:,}", batch.model)
        add_row(table, *cells, _format_time(batch.created_at), batch.job, batch.word)
    show_drawing(table)
    for batch in batches:
        if batch.message:
            note(f"batch {batch.number}: {batch.message}")
    if any(batch.state == "doubtful" for batch in batches):
        note(
            "a doubtful batch may be at its provider, or has ended without an answer to each request; adjudge batch "
            "collect looks again, and nothing sends it again but adjudge run --resume --pay-again"
        )


def _to_dict(batch: KeptBatch) -> dict[str, Any]:
    """Return a batch as plain data for ``--json``."""
    return {
        "number": batch.number,
        "state": batch.state,
        "model": batch.model,
        "requests": batch.requests,
        "answered": batch.done,
        "answered_twice": batch.differing,
        "provider_id": batch.job,
        "provider_state": batch.word,
        "label": batch.label,
        "created_at": _format_time(batch.created_at),
        "overdue_at": None if batch.deadline is None else _format_time(batch.deadline),
        "message": batch.message,
    }


def _format_time(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds")


batch_app = make_group(
    "batch",
    "List, collect and cancel the batches of a run.",
    {"list": list_all, "collect": collect, "cancel": cancel},
)
