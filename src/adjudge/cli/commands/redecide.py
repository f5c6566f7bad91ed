"""``adjudge redecide``: compute the results that a run would have had under another policy; no model is asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE, UNDECIDED
from adjudge.cli.option_sets import Only
from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing, show_progress, write_json
from adjudge.config.file import read_config
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge.runs.redecision.redecision import Redecision


MOST_ROWS = 100
"""Changes that the terminal shows; --json has up to 2,000, and --out all."""


def redecide_run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    criteria: Annotated[option.CriteriaOptions, Only("rubric", "threshold")],
    judging: Annotated[option.JudgeOptions, Only("strategy", "quorum", "escalate_below")],
    all_cases: Annotated[
        bool, typer.Option("--all-cases", help="Also for cases that brought criteria or thresholds of their own.")
    ] = False,
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

    $ adjudge redecide runs/monday --threshold 0.8

    RUN is a folder of `adjudge run`. Options you leave out stay as in the run. If the policy needs a reply that the run
    does not have, the case is undecided. A case with criteria, a rubric or a threshold of its own keeps them, unless
    you give --all-cases.

    Exit status: 0 redecided, 2 wrong usage or unreadable input, 3 no case could be redecided.
    """
    from adjudge.runs.redecision.redecision import redecide

    rubric = read_config(config).find_rubric(criteria.rubric) if criteria.rubric is not None else None
    policy: dict[str, Any] = {
        "rubric": rubric,
        "threshold": criteria.threshold,
        "strategy": judging.strategy,
        "quorum": judging.quorum,
        "escalate_below": judging.escalate_below,
        "fail_open": fail_open,
        "judges": judges or None,
    }
    with show_progress("redeciding"):
        redecision = redecide(folder, out=out, command=["adjudge", *sys.argv[1:]], all_cases=all_cases, **policy)
    if not redecision.items:
        # Exit status 0 for nothing redecided would look like a pass.
        raise UsageError(f"the run {folder} holds no result yet, so there is nothing to redecide")
    if as_json:
        write_json(redecision.to_dict())
    else:
        draw_redecision(redecision)
    if out is None and all(value is None for value in policy.values()):
        note("no policy was given, so this is the run's own; name another with --rubric, --threshold, --strategy, ...")
    return UNDECIDED if redecision.unknown == redecision.items else DONE


def draw_redecision(redecision: Redecision) -> None:
    """Print how many judgements change their outcome, as tables, and notes on those that could not be redecided."""
    print_line(f"{redecision.changed:,} of {redecision.items:,} judgements change")
    table = make_table("", ("", "before", "after", "difference"))
    for outcome, before in redecision.before.items():
        after = redecision.after[outcome]
        add_row(table, outcome, f"{before:,}", f"{after:,}", f"{after - before:+,}" if after != before else "")
    show_drawing(table)
    if redecision.changes:
        _draw_changes(redecision)
    for reason, number in redecision.unknown_because.items():
        note(f"not known for {number:,}: {reason}")
    if redecision.kept_own:
        note(f"{redecision.kept_own:,} are of cases that keep criteria or thresholds of their own; see --all-cases")
    if redecision.folder is not None:
        note(f"kept in {redecision.folder}")


def _draw_changes(redecision: Redecision) -> None:
    """Print the first ``MOST_ROWS`` judgements that change, as a table."""
    from adjudge.report.diff_words import format_moved

    table = make_table("", ("case", "sample", "before", "after", "score", "why"))
    for change in redecision.changes[:MOST_ROWS]:
        scores = format_moved(change.score_before, change.score_after)
        case = change.case if len(change.case) <= 100 else f"{change.case[:97]}..."
        add_row(
            table, case, str(change.sample), change.before, change.after, scores, " ".join(change.detail.split())[:200]
        )
    print_line()
    show_drawing(table)
    if redecision.changed > MOST_ROWS:
        note(f"{MOST_ROWS} of {redecision.changed:,} changes are shown; --json has up to 2,000, and --out RUN2 all")
