"""``adjudge diff``: what changed between two runs, and whether that is to stop anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.output import add_row, make_table, note, say, show_drawing, show_progress, write_json
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share

if TYPE_CHECKING:
    from adjudge.report.run_diff import Diff


MOST_ROWS = 100
"""Cases that a person is shown; --json has up to 2,000."""


def diff_runs(
    before: Annotated[Path, typer.Argument(metavar="RUN1", hidden=True)],
    after: Annotated[Path, typer.Argument(metavar="RUN2", hidden=True)],
    as_json: option.AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown, for a pull request.")] = False,
    fail_under: Annotated[
        float | None, typer.Option("--fail-under", metavar="SHARE", help="Fail if fewer of RUN2 passed, from 0 to 1.")
    ] = None,
    new_contents: Annotated[
        bool, typer.Option("--new-contents", help="Compare cases whose content changed too: new answers, same task.")
    ] = False,
    no_regressions: Annotated[
        bool, typer.Option("--no-regressions", help="Fail if a case passed in RUN1 and does not in RUN2.")
    ] = False,
) -> int:
    """Show what changed from RUN1 to RUN2, by case and criterion.

    RUN1 and RUN2 are folders of `adjudge run`. Cases are paired by their ids; undecided is not passed.

    Exit status: 0 done, 1 fewer than --fail-under passed or a case regressed, 2 wrong usage or no case in both,
    3 too much is undecided, gone, changed or unfinished to say so.
    """
    from adjudge.report.run_diff import diff

    if as_json and markdown:
        raise UsageError("give --json or --markdown, not both")
    if fail_under is not None:
        check_share("--fail-under", fail_under)
    with show_progress("comparing"):
        found = diff(before, after, new_contents=new_contents)
    if not found.cases:
        # Two runs of different data have no regressions, and that must not look like a pass.
        remedy = "compare runs of the same data"
        if found.content_changed and not new_contents:
            remedy += ", or new answers to the same tasks with --new-contents"
        raise UsageError(f"{before} and {after} have no case in common that is the same; {remedy}")
    if as_json:
        write_json(found.to_dict())
    elif markdown:
        from adjudge.report.markdown import render_diff_markdown

        say(render_diff_markdown(found).rstrip("\n"))
    else:
        draw_diff(found)
    return find_status(found, fail_under, no_regressions=no_regressions)


def find_status(found: Diff, fail_under: float | None, *, no_regressions: bool) -> int:
    """The exit status: a miss beats what cannot be said."""
    from adjudge.cli.commands.run import find_status as find_share

    asked = fail_under is not None or no_regressions
    statuses = {find_share(found.after.counts, fail_under)} if fail_under is not None else set()
    if no_regressions and found.regressions:
        statuses.add(1)
    if no_regressions and found.unmatched_passes:
        remedy = "; --new-contents compares new answers too" if found.content_changed and not found.new_contents else ""
        note(f"{found.unmatched_passes:,} cases that passed in RUN1 are gone or changed, so nobody can say{remedy}")
        statuses.add(3)
    # Of the earlier run too: what it had not come to could not have passed in it.
    needed = ([found.before] if no_regressions else []) + ([found.after] if asked else [])
    for side in needed:
        if side.status != "finished":
            note(f"{side.folder} is {side.status}: finish it with `adjudge run ... --resume`")
            statuses.add(3)
    return 1 if 1 in statuses else 3 if 3 in statuses else 0


def draw_diff(found: Diff) -> None:
    """Tables for a person."""
    from adjudge.report.markdown import list_facts, say_cases, say_p, show_delta, show_score, write_p

    say(f"{found.regressions:,} regressed, {found.improvements:,} improved, of {say_cases(found.cases)} in both runs")
    table = make_table("", ("before", "after", "cases"))
    for (old, new), number in found.transitions.items():
        add_row(table, old, new, f"{number:,}")
    show_drawing(table)
    say(f"passed against not passed: {say_p(found.p_value)} (McNemar, exact)")
    means = make_table("", ("mean", "before", "after", "difference", "cases", "p", "by"))
    for name, item in {"score": found.score, **found.criteria}.items():
        numbers = (show_score(item.before), show_score(item.after), show_delta(item.delta))
        add_row(means, name, *numbers, f"{item.cases:,}", write_p(item.p_value), item.method)
    say()
    show_drawing(means)
    for said, number in list_facts(found):
        note(f"{say_cases(number)} {said}")
    _draw_cases(found)


def _draw_cases(found: Diff) -> None:
    from adjudge.report.markdown import drop_empty, list_criteria, show_change

    if not found.listed:
        return
    rows: list[tuple[str, ...]] = [("case", "before", "after", "score", "criteria", "why")]
    for item in found.listed[:MOST_ROWS]:
        scores = show_change(item.score_before, item.score_after)
        rows.append((_cut(item.case), item.before, item.after, scores, list_criteria(item), _cut(item.detail)))
    head, *others = drop_empty(rows)
    table = make_table("", head)
    for row in others:
        add_row(table, *row)
    say()
    show_drawing(table)
    if found.changed > MOST_ROWS:
        note(
            f"{min(MOST_ROWS, len(found.listed))} of {found.changed:,} changed cases are shown; --json has up to 2,000"
        )


def _cut(text: str, most: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 3]}..."
