"""``adjudge diff``: what changed between two runs, and whether that is to stop anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.measurement import MeasureRequest, make_request, read_limits
from adjudge.cli.output import (
    add_row,
    make_table,
    note,
    print_line,
    show_drawing,
    show_progress,
    write_file,
    write_json,
)
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share

if TYPE_CHECKING:
    from adjudge.report.run_diff import Diff


_MOST = 2_000
"""Cases that a diff lists at most."""

LISTED = 20
"""Cases that a person is shown, where nobody says how many."""


def diff_runs(
    before: Annotated[Path, typer.Argument(metavar="RUN1", hidden=True)],
    after: Annotated[Path, typer.Argument(metavar="RUN2", hidden=True)],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file: both runs side by side.")
    ] = None,
    as_json: option.AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown, for a pull request.")] = False,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="How many cases to list; at most 2,000, changed first.")
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option("--fail-under", metavar="SHARE", help="Fail if fewer of RUN2 passed, from 0 to 1.")
    ] = None,
    no_regressions: Annotated[
        bool, typer.Option("--no-regressions", help="Fail if a case passed in RUN1 and does not in RUN2.")
    ] = False,
    labels: option.RunLabels = None,
    labels_are: option.LabelsAre = None,
    limits: option.RateLimits = None,
) -> int:
    """Show what changed from RUN1 to RUN2, by case and criterion.

    RUN1 and RUN2 are folders of `adjudge run`. Cases are paired by their ids; undecided is not passed. The first lines
    say what was compared: answers by one judge, judges on the same answers, or both, which cannot be told apart; of
    pairs, how the preference changed. Without --top, the terminal lists 20 cases, a comment 50, and HTML and JSON up to
    2,000.

    With --labels it also says what people would pass of each run (this needs pip install 'adjudge[trust]'). The labels
    are of the contents, so both runs must have judged the same ones. No interval is given for the difference.

    Exit status: 0 done, 1 fewer than --fail-under passed or a case regressed, 2 wrong usage or no case in both,
    3 unknown, because cases are undecided, gone or changed, a run is unfinished, or the judge and the answers both
    changed.
    """
    from adjudge.report.run_diff import diff

    if as_json and markdown:
        raise UsageError("give --json or --markdown, not both")
    _check(html, top, fail_under)
    request = _make_request(labels, labels_are, limits)
    with show_progress("comparing"):
        found = diff(before, after)
    if not found.cases:
        # Two runs of different data have no regressions, and that must not look like a pass.
        remedy = "compare runs of the same data"
        if found.inputs_changed:
            remedy += ", with the same reference, task and context"
        if found.criteria_changed:
            remedy += ", judged by the same criteria of their own (--case-criteria)"
        raise UsageError(f"{before} and {after} have no case in common that is the same; {remedy}")
    if request is not None:
        found = _measure(found, request)
    if html is not None:
        _write_html(html, found, _MOST if top is None else top)
    found = found if top is None else replace(found, listed=found.listed[:top])
    if as_json:
        write_json(found.to_dict())
    elif markdown:
        from adjudge.report.markdown import render_diff_markdown

        print_line(render_diff_markdown(found).rstrip("\n"))
    else:
        draw_diff(found, LISTED if top is None else top)
    return find_status(found, fail_under, no_regressions=no_regressions)


def _check(html: Path | None, top: int | None, fail_under: float | None) -> None:
    """Raise ``UsageError`` in the words of the command line."""
    if fail_under is not None:
        check_share("--fail-under", fail_under)
    if html == Path("-"):
        raise UsageError("--html writes a file, and - is standard output; name a file")
    if top is not None and not 0 <= top <= _MOST:
        raise UsageError(f"--top is 0 to 2,000 cases, and {top:,} were asked for; --json without it lists 2,000")


def _make_request(labels: list[str] | None, labels_are: str | None, limits: str | None) -> MeasureRequest | None:
    """What both runs are measured with; ``None`` where nobody asked."""
    if labels is None:
        if labels_are is not None:
            raise UsageError("--labels-are is about the labels of --labels; name a file, or leave it out")
        if limits is not None:
            raise UsageError("--limits are those of the rate that --labels give; name a file, or leave it out")
        return None
    return make_request(labels, labels_are=labels_are, limits=read_limits(limits), by="diff")


def _measure(found: Diff, request: MeasureRequest) -> Diff:
    """The diff with what people would pass of each run."""
    from adjudge.runs.folder import open_run

    if found.content_changed:
        raise UsageError(
            f"{found.content_changed:,} cases have another content in RUN2, and --labels are of one of the two; "
            "measure each run with adjudge agree"
        )
    measured = []
    for side in (found.before, found.after):
        with open_run(side.folder) as run:
            measured.append(request.measure(run))
            request.find_status(measured[-1], run)
    before, after = measured
    return replace(found, measured=None if before is None or after is None else (before, after))


def _write_html(path: Path, found: Diff, most: int) -> None:
    from adjudge.report.html_diff import pair_cases, render_diff_html
    from adjudge.runs.folder import open_run

    with open_run(found.before.folder) as before, open_run(found.after.folder) as after:
        text = render_diff_html(found, pair_cases(found, before, after, most=most))
    write_file(path, [text])


def find_status(found: Diff, fail_under: float | None, *, no_regressions: bool) -> int:
    """The exit status: a miss beats what cannot be said."""
    from adjudge.cli.commands.run import find_status as find_share

    asked = fail_under is not None or no_regressions
    if asked and found.compared == "both":
        note("the judge and the answers both changed, so nothing can be required of this comparison")
        return 3
    statuses = {find_share(found.after.counts, fail_under)} if fail_under is not None else set()
    if no_regressions and found.lost:
        statuses.add(1)
    if no_regressions and found.unmatched_passes:
        note(f"{found.unmatched_passes:,} cases that passed in RUN1 are gone or changed, so nobody can say")
        statuses.add(3)
    # Of the earlier run too: what it had not come to could not have passed in it.
    needed = ([found.before] if no_regressions else []) + ([found.after] if asked else [])
    for side in needed:
        if side.status != "finished":
            note(f"{side.folder} is {side.status}: finish it with `adjudge run ... --resume`")
            statuses.add(3)
    return 1 if 1 in statuses else 3 if 3 in statuses else 0


def draw_diff(found: Diff, most: int) -> None:
    """Tables for a person, the last of at most so many cases."""
    from adjudge.report.diff_words import count_cases, describe_change, describe_compared, describe_test
    from adjudge.report.markdown import describe_p, list_facts, render_case_names

    print_line(f"{describe_change(found)}, {count_cases(found)}")
    for change in found.setup_changes:
        print_line(change)
    print_line(describe_compared(found))
    table = make_table("", ("before", "after", "cases"))
    for (old, new), number in found.transitions.items():
        add_row(table, old, new, f"{number:,}")
    show_drawing(table)
    print_line(f"{describe_test(found)}: {describe_p(found.p_value)} (McNemar, exact)")
    _draw_measured(found)
    if not found.pairs:
        _draw_means(found)
    for said, number in list_facts(found):
        note(f"{render_case_names(number)} {said}")
    _draw_cases(found, most)


def _draw_means(found: Diff) -> None:
    from adjudge.formats.numbers import format_change
    from adjudge.report.markdown import format_p

    means = make_table("", ("mean", "before", "after", "difference", "cases", "p", "by"))
    for name, item in {"score": found.score, **found.criteria}.items():
        change = format_change(item.before, item.after)
        add_row(means, name, *change, f"{item.cases:,}", format_p(item.p_value), item.method)
    print_line()
    show_drawing(means)


def _draw_measured(found: Diff) -> None:
    """What people would pass of each run, one beneath the other."""
    from adjudge.report.measurement_words import describe_difference, describe_measurement

    if found.measured is None:
        return
    for name, side in zip(("before", "after"), found.measured, strict=True):
        print_line(f"{name}: {' '.join(describe_measurement(side).split())}")
    print_line(describe_difference())


def _draw_cases(found: Diff, most: int) -> None:
    from adjudge.report.markdown import drop_empty, list_criteria, render_change

    if not found.listed[:most]:
        return
    rows: list[tuple[str, ...]] = [("case", "before", "after", "score", "criteria", "why")]
    for item in found.listed[:most]:
        scores = render_change(item.score_before, item.score_after)
        rows.append((_cut(item.case), item.before, item.after, scores, list_criteria(item), _cut(item.detail)))
    head, *others = drop_empty(rows)
    table = make_table("", head)
    for row in others:
        add_row(table, *row)
    print_line()
    show_drawing(table)
    shown = min(most, len(found.listed))
    if found.changed > shown:
        note(f"{shown:,} of the {found.changed:,} that changed; --top shows more, --html FILE the first 2,000")


def _cut(text: str, most: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 3]}..."
