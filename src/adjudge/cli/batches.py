"""Providers' batches in commands: their options, prices and progress, and what to do after an interrupt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from adjudge.cli.options import BatchingOptions
from adjudge.cli.output import note
from adjudge.errors import UsageError
from adjudge.formats.numbers import format_points
from adjudge.judges.chain import list_judges
from adjudge.models.price import find_batch_share
from adjudge.models.providers.base import HttpModel
from adjudge.models.wrapper import find_innermost
from adjudge.runs.batch.options import BatchOptions, read_recorded
from adjudge.runs.folder import MANIFEST_FILE, read_manifest
from adjudge.runs.options import Progress

if TYPE_CHECKING:
    from adjudge.runs.batch.session import BatchProgress


def read_batch(folders: Sequence[Path | None], options: BatchingOptions, *, resume: bool) -> BatchOptions | None:
    """Read the options of batches; raises ``UsageError`` for those that do not fit together.

    ``folders`` are those of the runs that are begun or resumed. If one that is resumed was begun by batches, all of
    them use batches. Returns ``None`` where no batches are used.
    """
    all_recorded = (_read_batch_of_run(folder) for folder in folders if resume)
    resumed = next((recorded for recorded in all_recorded if recorded is not None), None)
    fields: dict[str, Any] = {
        "check": options.batch_check,
        "then": options.batch_then,
        "size": options.batch_size,
        "tokens": options.batch_tokens,
        "poll": options.batch_poll,
    }
    changes = {name: value for name, value in fields.items() if value is not None}
    if not options.batch and resumed is None:
        if changes or options.pay_again:
            first_option = f"--batch-{next(iter(changes))}" if changes else "--pay-again"
            raise UsageError(f"{first_option} belongs to --batch")
        return None
    if options.pay_again and not resume:
        raise UsageError("--pay-again belongs to --resume: it sends again what an earlier process may have sent")
    return replace(resumed or BatchOptions(), **changes, pay_again=options.pay_again)


def _read_batch_of_run(folder: Path | None) -> BatchOptions | None:
    """Read the batch options of the run in a folder; ``None`` where there is no run, or it uses no batches."""
    if folder is None or not (folder / MANIFEST_FILE).exists():
        return None
    return read_recorded(read_manifest(folder)["options"].get("batch"), folder)


def list_batch_prices(judge: Any, prices: Any) -> Iterator[str]:
    """Yield a sentence for each model of a judge whose batches are not known to cost half of its live calls.

    ``prices`` are those of the configuration, by the names of models.
    """
    priced_models = set(prices or ())
    seen_models: set[str] = set()
    for leaf in list_judges(judge):
        model = find_innermost(leaf.model)
        if not isinstance(model, HttpModel) or model.name in seen_models:
            continue
        seen_models.add(model.name)
        if priced_models & {model.name, model.model}:
            yield f"{model.name}: your own price is used, and not halved; give the price of its batches"
            continue
        share = find_batch_share(model)
        if share is None:
            yield f"{model.name}: it is not known what its batches save"
        elif share > 0.995:  # 100 % when rounded
            yield f"{model.name}: a batch costs as much as asking live"
        elif share > 0.505:  # more than 50 % when rounded
            yield f"{model.name}: a batch costs {format_points(share, digits=0)} % of asking live, and not half"


def describe_batches(progress: BatchProgress) -> str:
    """Describe how far the requests of a run by batches are: to send, at the provider, doubtful, collected."""
    from adjudge.runs.batch.store import OPEN

    if progress.checking:
        return "; the first cases are judged live"
    under_way = sum(number for state, number in progress.requests.items() if state in OPEN)
    parts = [f"{progress.unsent:,} to send"] if progress.unsent else []
    if progress.batches:
        noun = "batch" if progress.batches == 1 else "batches"
        answered = f", {progress.done:,} answered" if progress.done else ""
        parts.append(f"{under_way:,} in {progress.batches:,} {noun}{answered}")
    if doubtful := progress.requests.get("doubtful"):
        parts.append(f"{doubtful:,} doubtful")
    # The outcomes that a collected request can have: a reply, to be sent again, or not to be answered at all.
    collected = sum(progress.requests.get(state, 0) for state in ("reply", "again", "never"))
    parts += [f"{collected:,} collected"] if collected else []
    return f"; by batch: {', '.join(parts) or 'nothing yet'}"


def note_batches_left(progress: Progress | None, folder: Path) -> None:
    """Tell the user which batches an interrupted run leaves at its providers, and how to collect or cancel them."""
    if progress is None or progress.batch is None or not progress.batch.batches:
        return
    number = progress.batch.batches
    state = "batch goes on at its provider" if number == 1 else "batches go on at their providers"
    note(f"{number:,} {state}, and what they answer is paid for")
    note(f"  adjudge batch collect {quote(str(folder))}    keeps what has come back")
    note(f"  adjudge batch cancel {quote(str(folder))}     ends what has not been answered")
