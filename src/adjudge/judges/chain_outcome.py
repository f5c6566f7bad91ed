"""When a chain has passed, failed or is undecided: what its seats add up to, without a clock, a model or a loop.

Every function here looks at the results that are known and says what they decide. A verdict of ``None`` means that
more seats have to answer; an undecided one means that no answer still to come could decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from adjudge.errors import Reason, UsageError
from adjudge.formats.arguments import check_share, check_timeout, check_whole_number
from adjudge.result import JudgeChainResult, JudgeResult, Outcome, find_gravest

Strategy = Literal["fallback", "consensus", "majority", "quorum", "hedged", "cascade"]

COUNTING: tuple[Strategy, ...] = ("consensus", "majority", "quorum")


ENDING: tuple[Reason, ...] = ("tampering", "contradiction")
"""A seat that is undecided for these reasons ends a sequence: asking the next would let an attacker shop for a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the seats decide together."""

    outcome: Outcome
    because: Reason | None = None
    seat: JudgeResult | None = None
    """The seat whose score, criteria and reasoning the chain shows."""


def needed(strategy: Strategy, seats: int, quorum: int | None) -> tuple[int, int]:
    """How many seats must pass for a pass, and fail for a failure; together always more than there are seats.

    Because of that sum both numbers can never be reached at once, so no order of answers changes the outcome.
    """
    if strategy == "consensus":
        return seats, 1
    if strategy == "majority":
        return seats // 2 + 1, seats // 2 + 1
    to_pass = quorum if quorum is not None else seats
    return to_pass, seats - to_pass + 1


def count(known: Sequence[JudgeResult], seats: int, to_pass: int, to_fail: int, *, wait: bool) -> Verdict | None:
    """What counted seats decide; ``known`` in the order they answered, ``wait`` keeps hopeless chains open.

    A seat that could not answer stays in the denominator: nothing is ever divided by the seats that did.
    """
    passed = [item for item in known if item.outcome == "passed"]
    failed = [item for item in known if item.outcome == "failed"]
    if len(passed) >= to_pass:
        shown = min(passed, key=_score_of) if to_pass == seats else passed[to_pass - 1]
        return Verdict(outcome="passed", seat=shown)
    if len(failed) >= to_fail:
        return Verdict(outcome="failed", seat=failed[to_fail - 1])
    open_seats = seats - len(known)
    hopeless = len(passed) + open_seats < to_pass and len(failed) + open_seats < to_fail
    if open_seats == 0 or (hopeless and not wait):
        return Verdict(outcome="undecided", because=find_reason(known) or "split")
    return None


def count_choices(
    known: Sequence[JudgeResult], seats: int, to_win: int, choices: Sequence[str], *, wait: bool
) -> Verdict | None:
    """What counted seats prefer: the one preference that as many seats chose as ``to_win`` says.

    It has won when no other can reach that number any more. With a quorum of at most half the seats two can reach
    it, and then neither has won: which of them was counted first would be an accident.
    """
    chosen = [item for item in known if item.outcome == "passed"]
    open_seats = seats - len(known)
    votes = {choice: sum(item.value == choice for item in chosen) for choice in choices}
    reached = [choice for choice in choices if votes[choice] >= to_win]
    able = [choice for choice in choices if votes[choice] + open_seats >= to_win]
    if len(reached) == 1 and able == reached:
        return Verdict(outcome="passed", seat=[item for item in chosen if item.value == reached[0]][to_win - 1])
    if open_seats == 0 or (not wait and (not able or len(reached) > 1)):
        return Verdict(outcome="undecided", because=find_reason(known) or "split")
    return None


def follow(result: JudgeResult, earlier: Sequence[JudgeResult]) -> Verdict | None:
    """What one answer in a fallback decides; ``None`` means: ask the next."""
    if result.outcome != "undecided":
        return Verdict(outcome=result.outcome, seat=result)
    if result.undecided_because in ENDING:
        return Verdict(outcome="undecided", because=find_reason([*earlier, result]))
    return None


def hedge(done: Sequence[JudgeResult]) -> Verdict | None:
    """What the answers seen at one look decide: failed before tampering before passed, then seat order."""
    for result in done:
        if result.outcome == "failed":
            return Verdict(outcome="failed", seat=result)
    for result in done:
        if result.undecided_because in ENDING:
            return Verdict(outcome="undecided", because=find_reason(done))
    for result in done:
        if result.outcome == "passed":
            return Verdict(outcome="passed", seat=result)
    return None


def descend(
    result: JudgeResult, earlier: Sequence[JudgeResult], *, sure_at: float | None, abstain_below: float | None
) -> Verdict | None:
    """What one answer in a cascade decides; ``sure_at`` is ``None`` for the last seat."""
    if result.undecided_because in ENDING or (result.outcome == "undecided" and sure_at is None):
        return _after_silence([*earlier, result])
    if result.outcome == "undecided":
        return None
    if sure_at is not None:
        return Verdict(outcome=result.outcome, seat=result) if is_sure(result.confidence, sure_at) else None
    if abstain_below is not None and not is_sure(result.confidence, abstain_below):
        return Verdict(outcome="undecided", because="unsure")
    return Verdict(outcome=result.outcome, seat=result)


def is_sure(confidence: float | None, needed: float) -> bool:
    """Whether a confidence is known, a probability, and as high as is needed.

    Written so that NaN is not: it is neither below nor above anything, and "not below" would take it for sure.
    """
    return confidence is not None and needed <= confidence <= 1 + 1e-9


def _after_silence(known: Sequence[JudgeResult]) -> Verdict:
    """The end of a cascade without an answer: an earlier seat that failed, unsure as it was, still has failed."""
    failed = [item for item in known if item.outcome == "failed"]
    if failed:
        return Verdict(outcome="failed", seat=failed[-1])
    # Without any reason there were only unsure answers when the time was over.
    return Verdict(outcome="undecided", because=find_reason(known) or "timeout")


def exhaust(known: Sequence[JudgeResult], *, cascade: bool = False) -> Verdict:
    """The verdict when nobody is left to ask, or no time."""
    return _after_silence(known) if cascade else Verdict(outcome="undecided", because=find_reason(known) or "timeout")


def find_reason(known: Sequence[JudgeResult]) -> Reason | None:
    """The gravest reason among some results."""
    return find_gravest([item.undecided_because for item in known if item.undecided_because is not None])


def may_open(known: Sequence[JudgeResult]) -> bool:
    """Whether ``fail_open`` may let an undecided chain pass: nobody failed or was tampered with, at any depth."""
    return not any(item.outcome == "failed" or item.undecided_because in ENDING for item in _at_any_depth(known))


def was_cut(known: Sequence[JudgeResult], *, hedged: bool = False) -> bool:
    """Whether a chain stopped somebody, at any depth, who might have objected; no policy may open over that.

    Not those that a limit stopped: what is late is undecided: timeout, and may be opened. Nor those that a ``hedged``
    chain stopped because another was quicker (``hedged`` says that ``known`` are the seats of one): it is for that.
    """
    for item in known:
        if item.undecided_because == "cancelled" and not hedged:
            return True
        if isinstance(item, JudgeChainResult) and was_cut(
            item.results, hedged=item.cut_short or item.strategy == "hedged"
        ):
            return True
    return False


def share_votes(known: Sequence[JudgeResult], outcome: Outcome, seats: int) -> float | None:
    """The share of all seats that voted for the outcome; ``None`` when nothing was decided.

    A seat that could not answer, or was cut short, stays in the denominator: whoever makes the judge that says no
    slow must not buy certainty with it.
    """
    return None if outcome == "undecided" else sum(item.outcome == outcome for item in known) / seats


def share_choices(known: Sequence[JudgeResult], chosen: JudgeResult | None, seats: int) -> float | None:
    """The share of all seats that prefer what the chosen one does; ``None`` when none was."""
    if chosen is None:
        return None
    return sum(item.outcome == "passed" and item.value == chosen.value for item in known) / seats


def _at_any_depth(known: Sequence[JudgeResult]) -> Iterator[JudgeResult]:
    for item in known:
        yield item
        if isinstance(item, JudgeChainResult):
            yield from _at_any_depth(item.results)


def _score_of(item: JudgeResult) -> float:
    return item.score if item.score is not None else 1.0


def in_seat_order(results: Mapping[int, JudgeResult]) -> tuple[JudgeResult, ...]:
    """Results by seat, in the order of the seats."""
    return tuple(results[seat] for seat in sorted(results))


_OWNERS = {"quorum": "quorum", "hedge_after": "hedged", "escalate_below": "cascade", "abstain_below": "cascade"}
"""The strategy that each of these parameters belongs to."""


def check_options(
    strategy: str,
    seats: int,
    *,
    quorum: int | None,
    hedge_after: float | None,
    escalate_below: float | Sequence[float] | None,
    abstain_below: float | None,
) -> tuple[float, ...] | None:
    """Raise ``UsageError`` for what does not fit; return ``escalate_below`` as one number per seat but the last."""
    if strategy not in get_args(Strategy):
        raise UsageError(f"unknown strategy {strategy!r}; use one of {', '.join(get_args(Strategy))}")
    given = {
        "quorum": quorum,
        "hedge_after": hedge_after,
        "escalate_below": escalate_below,
        "abstain_below": abstain_below,
    }
    for parameter, value in given.items():
        owner = _OWNERS[parameter]
        if value is not None and strategy != owner:
            raise UsageError(f"{parameter} belongs to the strategy {owner!r}, and this chain is {strategy!r}")
        if value is None and strategy == owner and parameter != "abstain_below":
            raise UsageError(f"the strategy {strategy!r} needs {parameter}")
    if quorum is not None:
        check_whole_number("quorum", quorum, least=1, most=seats, note="the number of judges")
    check_timeout("hedge_after", hedge_after)
    if abstain_below is not None:
        check_share("abstain_below", abstain_below)
    return None if escalate_below is None else _read_escalation(escalate_below, seats)


def _read_escalation(value: Any, seats: int) -> tuple[float, ...]:
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value] * (seats - 1)
    if len(numbers) != seats - 1:
        raise UsageError(
            f"escalate_below has {len(numbers)} numbers; give one, or one per judge but the last ({seats - 1})"
        )
    if not isinstance(value, Sequence):
        check_share("escalate_below", value)
    return tuple(check_share("escalate_below", item) for item in numbers)
