"""Every judge of a chain, at any depth: who objects, who cannot be trusted, and who would pass what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adjudge._strategies import COUNTING, ENDING, needed
from adjudge.chain import JudgeChain
from adjudge.firewall._reading import RulesReply, shorten
from adjudge.result import JudgeChainResult, JudgeResult


def walk_seats(result: JudgeResult) -> Iterator[JudgeResult]:
    """A result and all it rests on, at any depth, in seat order; a chain after its seats."""
    for seat in result.results if isinstance(result, JudgeChainResult) else ():
        yield from walk_seats(seat)
    yield result


def find_spoiled(result: JudgeResult) -> str:
    """Why no judge of this result is to be believed, or nothing.

    A judge that contradicts itself, or saw tampering, has no opinion that others could outvote: it is a sign that the
    judging is under attack, whatever a counting strategy makes of the rest. So is one that rejects what is not there.
    """
    for seat in walk_seats(result):
        if seat.undecided_because in ENDING or (isinstance(seat.value, RulesReply) and not seat.value.usable):
            return shorten(f"judge {seat.judge!r} is not to be relied on: {seat.detail or seat.undecided_because}")
    return ""


def would_pass(judge: Any, result: JudgeResult) -> bool:
    """Whether a chain would have passed what none of its judges named, by its own strategy.

    A judge that rejected some rules by name has looked at the others and let them be. One that could not answer, or
    was cut short, has not.
    """
    if not isinstance(result, JudgeChainResult):
        return result.passed or names_rules(result)
    if not isinstance(judge, JudgeChain):
        return result.passed
    # Seats are asked in order, under every strategy, so results stand beside the first of them.
    kept = [would_pass(seat, said) for (_, seat), said in zip(judge.judges, result.results, strict=False)]
    if judge.strategy in COUNTING:
        return sum(kept) >= needed(judge.strategy, len(judge.judges), judge.quorum)[0]
    if judge.strategy == "cascade":  # an earlier seat was not sure
        return bool(kept) and kept[-1]
    return any(kept)


def names_rules(seat: JudgeResult) -> bool:
    """Whether a judge rejected rules by number."""
    return isinstance(seat.value, RulesReply) and seat.value.usable and bool(seat.value.rejected)
