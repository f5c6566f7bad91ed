"""``adjudge report``: what a run came to, in the terminal and as files for people and machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import _options as option
from adjudge.cli._output import Progress, complain, note, say, show_progress, write_json
from adjudge.cli._report_text import print_report
from adjudge.cli._run_session import DONE, MISSED, UNKNOWN, find_status
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge._run import Run, RunItem
    from adjudge.report import Report

_LISTED, _COMMENTED = 10, 20
"""Cases in the terminal and in a comment, where nobody says how many."""


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file, to read.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, for CI.")] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE|-", help="Write a comment for a pull request.")
    ] = None,
    as_json: option.AsJson = False,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="How many cases to list; at most 2,000, failures first.")
    ] = None,
    fail_under: option.FailUnder = None,
) -> int:
    """Say what a run came to.

    RUN is a folder that `adjudge run` wrote. Without --top, the terminal lists 10 cases, a comment 20, and HTML and
    JSON up to 2,000.

    Exit status: 0 reported, 1 fewer than --fail-under passed, 2 wrong usage or no run, 3 the run is not finished, or
    too much is undecided to say whether --fail-under was reached.
    """
    if fail_under is not None and not 0 <= fail_under <= 1:
        hint = f"; for {fail_under:g} % write {fail_under / 100:g}" if 1 < fail_under <= 100 else ""
        raise UsageError(f"--fail-under must be between 0 and 1, got {fail_under:g}{hint}")
    if as_json and markdown == "-":
        raise UsageError("--json and --markdown - both write to standard output; name a file for the comment")
    if Path("-") in (html, junit):
        raise UsageError("--html and --junit write a file, and - is standard output for --markdown alone; name a file")
    from adjudge._run import open_run

    with open_run(run) as opened:
        found = _summarise(opened, top, whole=html is not None or as_json)
        if html is not None:
            from adjudge.report._html import write_html

            _write_file(html, [write_html(found)])
        if junit is not None:
            from adjudge.report._junit import write_junit

            _write_file(junit, write_junit(found, _read(opened)))
        _write_comment(found, markdown, top, fail_under)
        if as_json:
            write_json(found.to_dict())
        elif markdown != "-":
            print_report(found, _LISTED if top is None else top)
        return _find_status(found, fail_under)


def _summarise(run: Run, top: int | None, *, whole: bool) -> Report:
    from adjudge.report._shown import MOST_CASES
    from adjudge.report._summary import read_status, summarise

    most = MOST_CASES if whole and top is None else top if top is not None else max(_LISTED, _COMMENTED)
    with show_progress("read") as progress:
        return summarise(_read(run, progress), run.manifest, status=read_status(run), most_cases=most)


def _read(run: Run, progress: Progress | None = None) -> Iterator[RunItem]:
    for item in run.items():
        yield item
        if progress is not None:
            progress.step()


def _write_comment(found: Report, path: str | None, top: int | None, needed: float | None) -> None:
    if path is None:
        return
    from adjudge.report._markdown import write_markdown

    text = write_markdown(found, most_cases=_COMMENTED if top is None else top, needed=needed)
    if path == "-":
        say(text.rstrip("\n"))
    else:
        _write_file(Path(path), [text])


def _find_status(found: Report, fail_under: float | None) -> int:
    if fail_under is None:
        return DONE
    if not found.judgements:
        # No case that failed would otherwise look like all of them passed.
        complain("nothing was judged, so --fail-under is missed")
        return MISSED
    if found.about.status != "finished":
        # The cases that are missing may be those that fail.
        complain(
            f"the run is {found.about.status}, so whether {fail_under:g} of all cases pass is "
            "open; finish it with adjudge run --resume"
        )
        return UNKNOWN
    status = find_status(found.outcomes, fail_under)
    if status != DONE:
        rate = found.outcomes["passed"] / found.judgements
        rest = "" if status == MISSED else f", and {found.outcomes['undecided']:,} are undecided"
        complain(f"{rate:.4f} of {found.judgements:,} judgements passed{rest}; --fail-under asks for {fail_under:g}")
    return status


def _write_file(path: Path, parts: Iterable[str]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; name another file") from None
    note(f"wrote {path}")
