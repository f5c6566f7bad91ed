"""``adjudge redecide``: what a run would have come to under another policy; nobody is asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing, show_progress, write_json
from adjudge.config.file import read_config
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share

if TYPE_CHECKING:
    from adjudge.runs.redecision.redecision import Redecision


MOST_ROWS = 100
"""Cases that a person is shown; --json has up to 2,000, and --out all."""


def redecide_run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    rubric: option.RubricName = None,
    threshold: option.Threshold = None,
    all_cases: Annotated[
        bool, typer.Option("--all-cases", help="Also for cases that brought criteria or thresholds of their own.")
    ] = False,
    strategy: option.StrategyName = None,
    quorum: option.Quorum = None,
    escalate_below: option.EscalateBelow = None,
    fail_open: Annotated[
        bool | None, typer.Option("--fail-open/--fail-closed", help="Whether an undecided chain passes.")
    ] = None,
    judges: Annotated[
        list[str] | None, typer.Option("--judge", metavar="NAME", help="Use this seat of the run; give several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN2", help="Write it as a new run in this folder.")
    ] = None,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Compute the results of a run under another policy, from its stored replies. No model is asked.

    RUN is a folder of `adjudge run`. Options you leave out stay as in the run. If the policy needs a reply that the run
    does not have, the case is undecided. A case with criteria, a rubric or a threshold of its own keeps them, unless
    you give --all-cases.

    Exit status: 0 redecided, 2 wrong usage or unreadable input, 3 no case could be redecided.
    """
    from adjudge.runs.redecision.redecision import redecide

    chosen = read_config(config).find_rubric(rubric) if rubric is not None else None
    _check(threshold, strategy)
    given: dict[str, Any] = {"rubric": chosen, "threshold": threshold, "strategy": strategy, "quorum": quorum}
    given |= {"escalate_below": escalate_below, "fail_open": fail_open, "judges": judges or None}
    with show_progress("redeciding"):
        found = redecide(folder, out=out, command=["adjudge", *sys.argv[1:]], all_cases=all_cases, **given)
    if not found.items:
        # Exit status 0 for nothing redecided would look like a pass.
        raise UsageError(f"the run {folder} holds no result yet, so there is nothing to redecide")
    if as_json:
        write_json(found.to_dict())
    else:
        draw_redecision(found)
    if out is None and all(value is None for value in given.values()):
        note("no policy was given, so this is the run's own; name another with --rubric, --threshold, --strategy, ...")
    return 3 if found.unknown == found.items else 0


def _check(threshold: float | None, strategy: str | None) -> None:
    """Raise ``UsageError`` in the words of the command line."""
    from typing import get_args

    from adjudge.judges.strategies import Strategy

    if threshold is not None:
        check_share("--threshold", threshold)
    if strategy is not None and strategy not in get_args(Strategy):
        raise UsageError(f"--strategy: unknown strategy {strategy!r}; use one of {', '.join(get_args(Strategy))}")


def draw_redecision(found: Redecision) -> None:
    """Tables for a person."""
    print_line(f"{found.changed:,} of {found.items:,} judgements change")
    table = make_table("", ("", "before", "after", "difference"))
    for outcome, number in found.before.items():
        now = found.after[outcome]
        add_row(table, outcome, f"{number:,}", f"{now:,}", f"{now - number:+,}" if now != number else "")
    show_drawing(table)
    if found.changes:
        _draw_changes(found)
    for why, number in found.unknown_because.items():
        note(f"not known for {number:,}: {why}")
    if found.kept_own:
        note(f"{found.kept_own:,} are of cases that keep criteria or thresholds of their own; see --all-cases")
    if found.folder is not None:
        note(f"kept in {found.folder}")


def _draw_changes(found: Redecision) -> None:
    from adjudge.report.markdown import render_change

    table = make_table("", ("case", "sample", "before", "after", "score", "why"))
    for item in found.changes[:MOST_ROWS]:
        scores = render_change(item.score_before, item.score_after)
        case = item.case if len(item.case) <= 100 else f"{item.case[:97]}..."
        add_row(table, case, str(item.sample), item.before, item.after, scores, " ".join(item.detail.split())[:200])
    print_line()
    show_drawing(table)
    if found.changed > MOST_ROWS:
        note(f"{MOST_ROWS} of {found.changed:,} changes are shown; --json has up to 2,000, and --out RUN2 all")
