"""``adjudge forget``: delete everything that is kept about one content or customer, and say what was not deleted.

What is found and deleted is decided in ``erasure/forget.py`` (``forget``).
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.commands.ledger import KeyFile, LedgerUrl, find_user, name_option, use_ledger
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.output import print_line, write_json
from adjudge.config.file import Config, read_config
from adjudge.config.forget import list_absent, list_configured, list_links
from adjudge.config.gates import list_webhook_hosts
from adjudge.config.ledger import open_ledger
from adjudge.erasure.choice import Choice, read_choice
from adjudge.erasure.forget import Places, check_erasure, forget
from adjudge.erasure.ledger import Order
from adjudge.erasure.report import ForgetReport
from adjudge.errors import UsageError
from adjudge.formats.invisible import explain_doubtful_name
from adjudge.formats.text import flatten, show
from adjudge.runs.folder import MANIFEST_FILE
from adjudge.server.database import ANSWERS, find_table

_COLUMNS = 80

_MOST_SHOWN = 10
"""Texts for a person to review that are listed; ``--json`` lists all."""


def _make_path_option(name: str, noun: str) -> object:
    """Make an option for paths; ``noun`` is what they lead to, for the help text."""
    return typer.Option(f"--{name}", metavar="PATH", help=f"{noun}, beside those of adjudge.toml; several times.")


def forget_all(
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="SHA256", help="The content with this digest.")
    ] = None,
    metadata: Annotated[
        str | None,
        typer.Option("--metadata", metavar="N=V", help="What has this value in its metadata, like customer=C-20931."),
    ] = None,
    reason: Annotated[str | None, name_option("reason", "Why; it explains the gap later.")] = None,
    by: Annotated[str | None, name_option("by", "Who asks for it.  [default: this system's user]")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")] = False,
    shown: Annotated[
        int | None, typer.Option("--show", metavar="SEQ", help="Say whether that entry records this erasure.")
    ] = None,
    ledger: LedgerUrl = None,
    runs: Annotated[list[Path] | None, _make_path_option("run", "Run, or a folder of runs")] = None,
    caches: Annotated[list[Path] | None, _make_path_option("cache", "Cache of replies")] = None,
    recordings: Annotated[list[Path] | None, _make_path_option("recording", "Recording")] = None,
    labels: Annotated[list[Path] | None, _make_path_option("labels", "File of labels")] = None,
    key: KeyFile = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Delete the texts that are kept about one content, or about whom metadata name, and list what is left for you.

    $ adjudge forget --metadata customer=C-20931 --dry-run

    Entries of the ledger lose their payloads and stay, so the ledger still verifies, and says that they were erased.
    This cannot be undone. Stop what writes to the runs before; run it again if it was interrupted.

    Exit status: 0 done, 1 the ledger was changed by somebody, 2 wrong usage, 3 something is left: run it again.
    """
    choice = read_choice(subject, metadata)
    configuration = read_config(config)
    if shown is not None:
        return _compare_with_entry(shown, choice, ledger, config, as_json=as_json)
    order = Order(choice=choice, reason=_check_reason(reason, dry_run=dry_run), by=_check_by(by))
    command_line_places = Places(
        caches=tuple(caches or ()),
        recordings=tuple(recordings or ()),
        labels=tuple(labels or ()),
        runs=tuple(runs or ()),
    )
    report = asyncio.run(_forget(order, configuration, ledger, key, command_line_places, dry_run=dry_run))
    if as_json:
        write_json(report.to_dict())
    else:
        for line in _describe(report):
            print_line(line)
    return UNDECIDED if report.unfinished else FAILED if report.verified is False else DONE


async def _forget(
    order: Order, config: Config, url: str | None, key: str | None, command_line_places: Places, *, dry_run: bool
) -> ForgetReport:
    """Carry out an order to delete, in all places that the configuration and the command line name.

    ``url`` and ``key`` are the ledger and its signing key, if the command line names them. Raises ``UsageError`` where
    no place is named.
    """
    configured = list_configured(config)
    folders = _merge_paths(command_line_places.runs, configured["runs"])
    runs_and_links = [_list_runs(folder) for folder in folders]
    places = replace(
        command_line_places,
        caches=_merge_paths(command_line_places.caches, configured["caches"]),
        recordings=_merge_paths(command_line_places.recordings, configured["recordings"]),
        labels=_merge_paths(command_line_places.labels, configured["labels"]),
        runs=tuple(run for runs, _ in runs_and_links for run in runs),
        links=(*list_links(config), *(link for _, links in runs_and_links for link in links)),
        webhooks=tuple(list_webhook_hosts(config)),
        absent=list_absent(config),
    )
    if url is None and not config.ledger:
        if not any((places.caches, places.recordings, places.labels, places.runs)):
            raise UsageError("no place is named: write [ledger] in adjudge.toml, or give --ledger, --run or the like")
        return await forget(order, places, dry_run=dry_run)
    async with open_ledger(config, url, key=key, for_writing=not dry_run) as ledger:
        await ledger.head()  # raises where there is no ledger; writing would make one
        return await forget(order, replace(places, ledger=ledger, answers=find_table(ANSWERS)), dry_run=dry_run)


def _merge_paths(named: Iterable[Path], configured: Iterable[Path]) -> tuple[Path, ...]:
    """Merge the paths of the command line and of the configuration; one that occurs twice is kept as it was named."""
    return tuple({path.resolve(): path for path in (*configured, *named)}.values())


def _list_runs(path: Path) -> tuple[list[Path], list[Path]]:
    """List the runs at a path: the run itself, or the runs in a folder and, in a second list, the links to runs in it.

    Links are not followed, because one could lead out of the folder. Raises ``UsageError`` where there is no folder.
    """
    if _may_be_run(path):
        return [path], []
    if not path.is_dir():
        raise UsageError(f"there is no run {show(str(path))}; name a folder of `adjudge run`, or one with such folders")
    runs = sorted(folder for folder in path.iterdir() if _may_be_run(folder))
    return [run for run in runs if not run.is_symlink()], [run for run in runs if run.is_symlink()]


def _may_be_run(folder: Path) -> bool:
    """Return whether a folder is a run, or cannot be read and so may be one."""
    try:
        return (folder / MANIFEST_FILE).is_file()
    except PermissionError:
        # If it were skipped, it would look as if it held nothing to delete. As a run, it is listed as not finished.
        return folder.is_dir()


def _check_reason(reason: str | None, *, dry_run: bool) -> str:
    """Return the reason of an erasure; raises ``UsageError`` for an empty one, unless nothing is deleted."""
    if dry_run:
        return reason or ""
    if not (reason or "").strip():
        raise UsageError("an erasure needs --reason: it is what explains the gap later", argument="reason")
    return str(reason)


def _check_by(by: str | None) -> str:
    """Return the name of the person who asks for the erasure, by default the system's user.

    Raises ``UsageError`` for a name that could be mistaken for another one, for example by an invisible character.
    """
    name = by if by is not None else find_user()
    doubt = explain_doubtful_name(name)
    if doubt is not None:
        raise UsageError(f"--by {name[:80]!a} names nobody for certain: {doubt}", argument="by")
    return name


def _compare_with_entry(seq: int, choice: Choice, ledger: str | None, config: Path | None, *, as_json: bool) -> int:
    """Print whether an entry of the ledger records the erasure of this choice, and return the exit status."""
    is_same = use_ledger(ledger, config, lambda opened: check_erasure(opened, seq, choice))
    if as_json:
        write_json({"schema": "adjudge/erasure-check/1", "seq": seq, "same": bool(is_same)})
    else:
        print_line(f"entry {seq} records the erasure of {'this' if is_same else 'something else'}: {choice.describe()}")
    return DONE if is_same else FAILED


# ---------------------------------------------------------------- the report as text


def _describe(report: ForgetReport) -> Iterator[str]:
    """Yield the lines of a report: deleted texts, those to review, places out of reach, and the state of the ledger."""
    yield from _describe_deleted(report)
    yield from _describe_texts_to_review(report)
    yield ""
    yield "Out of reach"
    for place in report.out_of_reach:
        yield from _align_columns(place.place, place.what, width=22)
    for problem in report.unfinished:
        yield from _wrap(f"Not finished: {problem}. Run this again.")
    yield ""
    if report.entries is not None:
        yield from _wrap(_describe_ledger(report))
    if report.seq is not None:
        yield from _wrap(f"Recorded as entry {report.seq}. It keeps a keyed digest of the value, not the value.")


def _describe_deleted(report: ForgetReport) -> Iterator[str]:
    """Yield lines on the texts that were deleted, or with ``--dry-run`` would be, by the place that kept them."""
    if not report.total:
        yield f"Nothing is kept about {flatten(report.chosen, 200)}."
        return
    texts = f"{report.total:,} {'text' if report.total == 1 else 'texts'}"
    yield f"Would be deleted, {texts}" if report.dry_run else f"Deleted, {texts}"
    for deleted in report.deleted:
        if deleted.count:
            yield from _align_columns(f"{deleted.place:<16}{deleted.count:>7,}", deleted.what, width=24)


def _describe_texts_to_review(report: ForgetReport) -> Iterator[str]:
    """Yield lines on the texts that a person has to look at, and the commands that delete them."""
    if not report.look:
        return
    count = len(report.look)
    yield ""
    yield f"Look at {'this' if count == 1 else 'these'} yourself, {count:,} {'text' if count == 1 else 'texts'}"
    for text in report.look[:_MOST_SHOWN]:
        position = text.where[-12:] if text.place == "approvals" else text.where  # the end of an id can be typed
        name = _POSITION_NAMES.get(text.place, "{}").format(position)
        yield from _wrap(f"{name}: {text.what}", indent="  ")
    if count > _MOST_SHOWN:
        yield f"  and {count - _MOST_SHOWN:,} more; --json lists all"
    if any(text.place == "ledger" for text in report.look):
        yield '  delete an entry: adjudge ledger erase SEQ --reason "..."'
    if any(text.place == "approvals" for text in report.look):
        yield "  delete the texts of a request: adjudge approvals forget ID"


_POSITION_NAMES = {"ledger": "entry {}", "approvals": "approval {}"}
"""The names of positions in the ledger and among the approvals; a position elsewhere is named by itself."""


def _describe_ledger(report: ForgetReport) -> str:
    """Describe in a sentence whether the ledger verifies after the deletion."""
    if not report.verified:
        return f"The ledger does not verify: {report.problem}; `adjudge ledger verify` says more."
    return f"The ledger verifies: {report.entries:,} entries, {report.erased:,} without their text."


def _align_columns(name: str, text: str, *, width: int) -> Iterator[str]:
    """Yield lines with a name in a first column of ``width``, and a text that is wrapped in a second column."""
    lines = textwrap.wrap(flatten(text, 1_000), _COLUMNS - width - 3) or [""]
    yield f"  {name:<{width}} {lines[0]}".rstrip()
    for line in lines[1:]:
        yield f"{'':<{width + 3}}{line}"


def _wrap(text: str, *, indent: str = "") -> list[str]:
    """Wrap a text into lines; if it is indented, the lines after its first are indented two columns more."""
    later_indent = indent + "  " if indent else ""
    return textwrap.wrap(flatten(text, 2_000), _COLUMNS, initial_indent=indent, subsequent_indent=later_indent)
