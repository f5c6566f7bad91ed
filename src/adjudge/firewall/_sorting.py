"""From what the judges said to which rules are kept: no input or output, and the only place that decides it.

What any judge names is rejected; nobody is outvoted. The strategy says who is asked and how many have to pass. A rule
is kept only if the chain passed, or, where ``drop_flagged`` was asked for, would have passed without the rules named.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adjudge._unseen import drop_unseen, is_unseen
from adjudge.chain import JudgeChain
from adjudge.firewall._reading import RulesReply, shorten
from adjudge.firewall._seats import find_spoiled, names_rules, walk_seats, would_pass
from adjudge.firewall._verdicts import RejectedRule
from adjudge.result import DecidedBy, JudgeChainResult, JudgeResult

_POSES = (
    re.compile(r"^\W*(?:(?:rule|item|entry)\W*)?(\d{1,9})\s*[.):\]>|=-]"),  # a line that begins like a numbered entry
    re.compile(r"\b(?:rule|item|entry|index)\b\W{0,9}(\d{1,9})(?!\w)"),
)
_FENCE = re.compile(r"<<|>>")


class Sorted(NamedTuple):
    """Rules, each allowed or rejected, and who decided."""

    allowed: tuple[str, ...]
    rejected: tuple[RejectedRule, ...]
    decided_by: DecidedBy


def sort_rules(rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, *, keep_rest: bool) -> Sorted:
    """Which rules are kept; whenever that cannot be known, none."""
    spoiled = find_spoiled(result)
    named = _collect_named(result, len(rules))
    whole = spoiled or _find_objection(rules, chain, result, named, keep_rest=keep_rest)
    decided_by: DecidedBy = "policy" if spoiled else result.decided_by
    if not whole:
        named = _add_copies(rules, named)
    rejected = [
        RejectedRule(index=index, rule=rule, reason=named.get(index) or whole)
        for index, rule in enumerate(rules, 1)
        if whole or index in named
    ]
    gone = {item.index for item in rejected}
    allowed = tuple(rule for index, rule in enumerate(rules, 1) if index not in gone)
    return Sorted(allowed, tuple(rejected), decided_by)


def reject_all(rules: Sequence[str], reason: str) -> tuple[RejectedRule, ...]:
    """Every rule, rejected for one reason."""
    return tuple(RejectedRule(index=index, rule=rule, reason=reason) for index, rule in enumerate(rules, 1))


def _collect_named(result: JudgeResult, count: int) -> dict[int, str]:
    """The rules that any judge rejected, with every judge's reason."""
    reasons: dict[int, list[str]] = {}
    for seat in walk_seats(result):
        for index, reason in seat.value.rejected if isinstance(seat.value, RulesReply) else ():
            said = reason or "the judge gave no reason"
            # A chain shows what one of its seats said once more.
            if 1 <= index <= count and said not in reasons.setdefault(index, []):
                reasons[index].append(said)
    return {index: "; ".join(said) for index, said in reasons.items()}


def _find_objection(
    rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, named: Mapping[int, str], *, keep_rest: bool
) -> str:
    """Why nothing is kept, or nothing."""
    if result.outcome == "undecided":
        return shorten(f"the judges could not decide: {result.undecided_because}; {result.detail}")
    whole = _find_bare(result) or ("" if named or result.passed else "the judges found the rules unsafe")
    if whole or not named:
        return whole
    if not keep_rest:
        return "another rule that came with it was rejected"
    if not would_pass(chain, result):
        return "another rule was rejected, and not enough judges answered to clear this one"
    posing = _find_posing(rules)
    if posing:
        return f"a rule was rejected, and rule {posing} poses as another, so which one was meant is not known"
    return ""


def _find_bare(result: JudgeChainResult) -> str:
    """Who found the rules unsafe and named none, so that it may mean any, or nothing."""
    for seat in walk_seats(result):
        leaf = not (isinstance(seat, JudgeChainResult) and seat.results)
        if leaf and seat.outcome == "failed" and not names_rules(seat):
            return shorten(f"judge {seat.judge!r} found the rules unsafe and named none of them")
    return ""


def _find_posing(rules: Sequence[str]) -> int:
    """The first rule that imitates the number of another, or the lines around rules; 0 when there is none.

    Asked only when something was rejected: a judge that took the bait then named an innocent rule, and the one that
    laid it out would be kept. Crude on purpose, since a false alarm costs no more than the rest of a rejected batch.
    """
    for index, rule in enumerate(rules, 1):
        # What nobody sees may stand inside a number's word, and may be what ends a line: both are looked at.
        for text in {unicodedata.normalize("NFKC", said).casefold() for said in (rule, drop_unseen(rule))}:
            if _FENCE.search(text) or any(_names_another(line, index) for line in text.splitlines()):
                return index
    return 0


def _names_another(line: str, index: int) -> bool:
    found = [int(number) for pattern in _POSES for number in pattern.findall(line)]
    return any(number != index for number in found)


def _add_copies(rules: Sequence[str], named: dict[int, str]) -> dict[int, str]:
    """The rejected rules and whatever reads the same as one of them: what is refused once is not kept as a copy."""
    if not named:
        return named
    shapes = [_shape(rule) for rule in rules]
    first = {shapes[index - 1]: index for index in sorted(named, reverse=True)}
    copies = {
        index: f"it reads the same as rule {first[shape]}, which was rejected"
        for index, shape in enumerate(shapes, 1)
        if shape in first and index not in named
    }
    return named | copies


def _shape(rule: str) -> str:
    """A rule without what a reader does not see: case, width, spacing, invisible characters."""
    text = unicodedata.normalize("NFKC", drop_unseen(rule)).casefold()
    return "".join(char for char in text if char.isprintable() and not char.isspace() and not is_unseen(char))
