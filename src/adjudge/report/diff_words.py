"""Sentences about a diff, the same on a terminal, on a page and in a comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from adjudge.formats.numbers import format_change, format_decimal
from adjudge.formats.text import flatten
from adjudge.report.run_diff import CaseDiff, Diff
from adjudge.templates.figures import format_count

_LONGEST_NAME = 60
"""Characters of the name of a judge or a folder."""

Kind = Literal["regressed", "improved", "lost", "gained", "outcome", "score", "same"]
"""The change of a case: only changed answers under one judge regress or improve; otherwise a pass is lost or gained."""


def has_regressions(diff: Diff) -> bool:
    """Return whether answers changed and one judge judged both runs: only then can something regress, or improve."""
    return diff.regressions is not None


def count_cases(diff: Diff) -> str:
    """Count the cases, or pairs, that are compared: ``of 3 cases in both runs``."""
    return f"of {format_count(diff.cases, _name_unit(diff))} in both runs"


def describe_change(diff: Diff) -> str:
    """Describe the change in the words that fit what was compared."""
    if diff.pairs:
        return _describe_pairs(diff)
    if has_regressions(diff):
        return f"{diff.lost:,} regressed, {diff.gained:,} improved"
    if diff.compared == "judges":
        return f"{_describe_lone_passes(diff, is_first=True)}; {_describe_lone_passes(diff, is_first=False)}"
    only_one_passed = f"{diff.lost:,} passed in the earlier run only, {diff.gained:,} in the later run only"
    if diff.is_repeat and diff.lost + diff.gained:
        return f"The judge differs from itself: {only_one_passed}"
    return only_one_passed


def name_cells(diff: Diff) -> tuple[str, str, str, str]:
    """Name the cells of the two by two table of runs A and B: both passed, A alone, B alone, neither. Not for pairs."""
    if has_regressions(diff):
        return "both passed", "regressed", "improved", "neither passed"
    if diff.compared == "judges":
        return "both passed", "A passes, B fails", "B passes, A fails", "both failed"
    return "both passed", "passed in A only", "passed in B only", "neither passed"


def describe_undecided(diff: Diff) -> str:
    """Describe how many cases are undecided, and where the two by two table has them."""
    before, after = _count_outcomes(diff)
    both = diff.transitions.get(("undecided", "undecided"), 0)
    if diff.compared == "judges":
        cases = before["undecided"] + after["undecided"] - both
        if not cases:
            return "Both judges decided every case."
        return (
            f"{name_cases(cases)} more {'was' if cases == 1 else 'were'} left undecided: "
            f"{before['undecided'] - both:,} by A, {after['undecided'] - both:,} by B, {both:,} by both. Undecided is "
            "not passed, and no difference of opinion."
        )
    return (
        f"“Did not” is failed and undecided: {before['failed']:,} and {before['undecided']:,} in A, "
        f"{after['failed']:,} and {after['undecided']:,} in B."
    )


def _count_outcomes(diff: Diff) -> tuple[Counter[str], Counter[str]]:
    """Count the compared cases by their outcome in the earlier run, and by that in the later."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for (old, new), number in diff.transitions.items():
        before[old] += number
        after[new] += number
    return before, after


def describe_compared(diff: Diff) -> str:
    """Describe what changed between the runs, the answers or the judges, and so what can explain the differences."""
    noun = "pairs" if diff.pairs else "answers"
    total, changed = format_count(diff.cases), format_count(diff.content_changed)
    if diff.compared == "both":
        return (
            f"The judge and the {noun} both changed ({changed} of {total} {noun}), so the two cannot be told apart. "
            f"Judge the earlier {noun} again as the later ones were judged, and compare that run."
        )
    if diff.compared == "judges":
        return f"Compared: judges, on the same {noun}. None of the {noun} changed."
    if not diff.content_changed:
        return f"Compared: the same {noun}, judged twice by one judge. Each difference is the judge's own."
    sentences = f"Compared: {noun}, by one judge. {changed} of {total} changed."
    if diff.flips:
        case = format_count(diff.flips, _name_unit(diff))
        sentences += f" {case} came out differently with the same content: there the judge differs from itself."
    return sentences


def describe_test(diff: Diff) -> str:
    """Describe the test that the p-value is of."""
    return "the first preferred against not" if diff.pairs else "passed against not passed"


def name_sides(diff: Diff) -> tuple[str, str]:
    """Name the two runs by their judges, or by their folders where one judge judged both."""
    sides = (diff.before, diff.after)
    if diff.before.judge == diff.after.judge or not all(side.judge for side in sides):
        return name_folders(diff)
    return _shorten(diff.before.judge), _shorten(diff.after.judge)


def name_folders(diff: Diff) -> tuple[str, str]:
    """Name the two runs by their folders."""
    before, after = [_shorten(side.folder) for side in (diff.before, diff.after)]
    return (before, after) if before != after else ("the earlier run", "the later run")


def find_kind(diff: Diff, change: CaseDiff | None) -> Kind:
    """Find the kind of a case's change; ``None`` is a case that came out as before."""
    if change is None:
        return "same"
    if change.before == change.after:
        return "score"
    if diff.pairs:
        moves: dict[tuple[str, str], Kind] = {("first", "second"): "lost", ("second", "first"): "gained"}
        return moves.get((change.before, change.after), "outcome")
    can_regress = has_regressions(diff)
    if change.lost:
        return "regressed" if can_regress else "lost"
    if change.gained:
        return "improved" if can_regress else "gained"
    return "outcome"


def list_kinds(diff: Diff) -> Iterator[tuple[Kind, str]]:
    """Yield every kind of change that this diff can have, and its name for people."""
    if diff.pairs:
        yield from (("lost", "first to second"), ("gained", "second to first"), ("outcome", "another preference"))
    elif has_regressions(diff):
        yield from (("regressed", "regressed"), ("improved", "improved"), ("outcome", "another outcome"))
    else:
        yield from (("lost", "passed before only"), ("gained", "passes after only"), ("outcome", "another outcome"))
    yield from (("score", "another score"), ("same", "as before"))


def _describe_pairs(diff: Diff) -> str:
    """Describe how many preferences in pairs changed, and from which to which."""
    changes = {(old, new): number for (old, new), number in diff.transitions.items() if old != new}
    to_second, to_first = changes.pop(("first", "second"), 0), changes.pop(("second", "first"), 0)
    sentence = f"{to_second:,} changed from first to second, {to_first:,} from second to first"
    others = sum(changes.values())
    return sentence + (f", {others:,} otherwise" if others else "")


def _describe_lone_passes(diff: Diff, *, is_first: bool) -> str:
    """Describe how many cases one judge passes and the other does not: ``A passes 278 that B fails``."""
    first_judge, second_judge = name_sides(diff)
    judge, other = (first_judge, second_judge) if is_first else (second_judge, first_judge)
    failed = diff.transitions.get(("passed", "failed") if is_first else ("failed", "passed"), 0)
    undecided = diff.transitions.get(("passed", "undecided") if is_first else ("undecided", "passed"), 0)
    sentence = f"{judge} passes {failed:,} that {other} fails"
    return sentence + (f" and {undecided:,} that it leaves undecided" if undecided else "")


def _name_unit(diff: Diff) -> str:
    return "pair" if diff.pairs else "case"


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def format_p(value: float | None) -> str:
    """Format a p-value for a table; ``-`` where there is none."""
    if value is None:
        return "-"
    return "< 0.0001" if value < 0.0001 else format_decimal(value, 4)


def describe_p(value: float | None) -> str:
    """Describe a p-value for a sentence, such as ``p = 0.0123``; ``None`` is a test of no case at all."""
    if value is None:
        return "no case went either way"
    return "p < 0.0001" if value < 0.0001 else f"p = {format_decimal(value, 4)}"


def list_exclusions(diff: Diff) -> Iterator[tuple[str, int]]:
    """Yield the reasons why cases were not compared, each with the number of cases."""
    reasons = (
        ("only in the earlier run", diff.only_before),
        ("only in the later run", diff.only_after),
        ("with another reference, task or context, not compared", diff.inputs_changed),
        ("with other criteria, rules or another threshold of their own, not compared", diff.criteria_changed),
    )
    yield from ((reason, number) for reason, number in reasons if number)


def format_moved(before: float | None, after: float | None) -> str:
    """Format a score before and after with an arrow between; a score that is the same once, without an arrow."""
    old, new, _ = format_change(before, after)
    return old if old == new else f"{old} → {new}"


def name_cases(number: int) -> str:
    """Write a number of cases: ``1 case`` or ``3 cases``."""
    return f"{number:,} case{'' if number == 1 else 's'}"


def list_moved_criteria(change: CaseDiff) -> str:
    """List the first three criteria whose score changed, each with its score before and after, and count the others."""
    changes = [f"{flatten(name, 30)} {format_moved(old, new)}" for name, old, new in change.criteria[:3]]
    return ", ".join(changes) + (f" and {len(change.criteria) - 3} more" if len(change.criteria) > 3 else "")
