"""What a diff says in sentences, the same on a terminal, on a page and in a comment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from adjudge.report.run_diff import CaseDiff, Diff
from adjudge.templates.figures import format_count

_LONGEST = 60

Kind = Literal["regressed", "improved", "lost", "gained", "outcome", "score", "same"]
"""What happened to a case: only answers under one judge regress or improve; otherwise a pass is lost or gained."""


def count_cases(found: Diff) -> str:
    """How many cases, or pairs, are compared: ``of 3 cases in both runs``."""
    return f"of {format_count(found.cases, _name_unit(found))} in both runs"


def describe_change(found: Diff) -> str:
    """What changed, in the words that fit what was compared."""
    if found.pairs:
        return _describe_pairs(found)
    if found.compared == "answers":
        return f"{found.lost:,} regressed, {found.gained:,} improved"
    if found.compared == "judges":
        one, other = name_sides(found)
        return f"{_describe_judge(found, one, other)}; {_describe_judge(found, other, one)}"
    return f"{found.lost:,} passed in the earlier run only, {found.gained:,} in the later run only"


def describe_compared(found: Diff) -> str:
    """What was compared, and so what can explain the differences."""
    what, total = ("pairs" if found.pairs else "answers"), format_count(found.cases)
    changed = format_count(found.content_changed)
    if found.compared == "both":
        return (
            f"The judge and the {what} both changed ({changed} of {total} {what}), so the two cannot be told apart. "
            f"Judge the earlier {what} again as the later ones were judged, and compare that run."
        )
    if found.compared == "judges":
        return f"Compared: judges, on the same {what}. None of the {what} changed."
    if not found.content_changed:
        return f"Compared: the same {what}, judged twice by one judge. Each difference is the judge's own."
    said = f"Compared: {what}, by one judge. {changed} of {total} changed."
    if found.flips:
        case = format_count(found.flips, _name_unit(found))
        said += f" {case} came out differently with the same content: there the judge differs from itself."
    return said


def describe_test(found: Diff) -> str:
    """What the p-value is about."""
    return "the first preferred against not" if found.pairs else "passed against not passed"


def name_sides(found: Diff) -> tuple[str, str]:
    """The two runs by the names of their judges, or by their folders where one judge judged both."""
    sides = (found.before, found.after)
    judges = found.before.judge != found.after.judge and all(side.judge for side in sides)
    one, other = [_shorten(side.judge if judges else side.folder) for side in sides]
    return (one, other) if one != other else ("the earlier run", "the later run")


def find_kind(found: Diff, change: CaseDiff | None) -> Kind:
    """What happened to a case; ``None`` is one that came out as before."""
    if change is None:
        return "same"
    if change.before == change.after:
        return "score"
    if found.pairs:
        moves: dict[tuple[str, str], Kind] = {("first", "second"): "lost", ("second", "first"): "gained"}
        return moves.get((change.before, change.after), "outcome")
    is_answer = found.compared == "answers"
    if change.lost:
        return "regressed" if is_answer else "lost"
    if change.gained:
        return "improved" if is_answer else "gained"
    return "outcome"


def list_kinds(found: Diff) -> Iterator[tuple[Kind, str]]:
    """Every kind of change that this diff can have, and its name for people."""
    if found.pairs:
        yield from (("lost", "first to second"), ("gained", "second to first"), ("outcome", "another preference"))
    elif found.compared == "answers":
        yield from (("regressed", "regressed"), ("improved", "improved"), ("outcome", "another outcome"))
    else:
        yield from (("lost", "passed before only"), ("gained", "passes after only"), ("outcome", "another outcome"))
    yield from (("score", "another score"), ("same", "as before"))


def _describe_pairs(found: Diff) -> str:
    moved = {move: number for move, number in found.transitions.items() if move[0] != move[1]}
    there, back = moved.pop(("first", "second"), 0), moved.pop(("second", "first"), 0)
    said = f"{there:,} changed from first to second, {back:,} from second to first"
    rest = sum(moved.values())
    return said + (f", {rest:,} otherwise" if rest else "")


def _describe_judge(found: Diff, one: str, other: str) -> str:
    """What one run passes and the other does not: ``A passes 278 that B fails``."""
    is_first = one == name_sides(found)[0]
    counts = {
        outcome: found.transitions.get(("passed", outcome) if is_first else (outcome, "passed"), 0)
        for outcome in ("failed", "undecided")
    }
    said = f"{one} passes {counts['failed']:,} that {other} fails"
    return said + (f" and {counts['undecided']:,} that it leaves undecided" if counts["undecided"] else "")


def _name_unit(found: Diff) -> str:
    return "pair" if found.pairs else "case"


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
