"""The verdict of a chain: what its seats add up to, without a clock, a model or a loop.

Every function here looks at the results that are known and says what they decide. A verdict of ``None`` means that
more seats have to answer; an undecided one means that no answer still to come could decide. Whether ``fail_open`` may
turn that into a pass is decided here too (``may_open``, ``has_stopped_seat``); ``chain.py`` applies it
(``make_result``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from adjudge.errors import Argument, Reason, UsageError
from adjudge.formats.arguments import check_choice, check_share, check_timeout, check_whole_number
from adjudge.result import JudgeChainResult, JudgeResult, Outcome, find_gravest

Strategy = Literal["fallback", "consensus", "majority", "quorum", "hedged", "cascade"]

COUNTING: tuple[Strategy, ...] = ("consensus", "majority", "quorum")


ENDING: tuple[Reason, ...] = ("tampering", "contradiction")
"""A seat that is undecided for these reasons ends a sequence: asking the next would let an attacker shop for a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision of the seats together."""

    outcome: Outcome
    because: Reason | None = None
    seat: JudgeResult | None = None
    """The seat whose score, criteria and reasoning the chain shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatRelease:
    """The score from which a seat of a cascade may pass content alone, as a release policy has it for this judge."""

    threshold: float
    """The least score of a pass, in 0 to 1."""
    policy: str
    """SHA-256 of the release policy."""
    rubric: str | None
    """SHA-256 of the rubric that the policy was calibrated with; ``None`` where each case had its own."""

    def releases(self, result: JudgeResult) -> bool:
        """Return whether the seat decides; a failure is no release, since no policy promises anything about those.

        Args:
            result: The seat's result.
        """
        return is_released(result, self.threshold)


class LimitsSeat(Protocol):
    """An object that names the score from which on a seat decides alone: a ``ReleasePolicy``."""

    def limit_seat(self, judge: Any, /) -> SeatRelease:
        """Return the score for this judge. Raises ``UsageError`` where it is for another.

        Args:
            judge: The judge of the seat.
        """
        ...


Escalation = float | LimitsSeat | SeatRelease
"""The condition on which a seat of a cascade decides: a confidence, or a score by a release policy."""


def find_release_score(result: object) -> float | None:
    """Find the score by which a result may be released; ``None`` if no threshold releases it.

    It is the score of a result that passed. Of a chain that counts votes it is the share of its seats that passed,
    because its score is that of one seat.

    Args:
        result: A result of a judge or a chain.
    """
    if not isinstance(result, JudgeResult) or not result.passed or result.decided_by == "policy":
        return None
    if isinstance(result, JudgeChainResult) and result.strategy in COUNTING:
        return result.confidence
    return result.score


def is_released(result: JudgeResult, threshold: float) -> bool:
    """Return whether a result passed with at least a threshold's score."""
    score = find_release_score(result)
    return score is not None and score >= threshold


def find_needed_votes(strategy: Strategy, seats: int, quorum: int | None) -> tuple[int, int]:
    """Return how many seats must pass for a pass, and fail for a failure; together more than there are seats.

    Because of that sum both numbers can never be reached at once, so no order of answers changes the outcome.
    """
    if strategy == "consensus":
        return seats, 1
    if strategy == "majority":
        return seats // 2 + 1, seats // 2 + 1
    to_pass = quorum if quorum is not None else seats
    return to_pass, seats - to_pass + 1


def count_votes(
    results: Sequence[JudgeResult], seats: int, to_pass: int, to_fail: int, *, wait: bool
) -> Verdict | None:
    """Decide by counting votes; ``None`` means that more of the ``seats`` have to answer.

    A seat that could not answer counts as a seat: the needed votes, ``to_pass`` and ``to_fail``, are of all seats.

    Args:
        results: The results in the order in which the seats answered.
        seats: The number of all seats.
        to_pass: The votes that are needed to pass.
        to_fail: The votes that are needed to fail.
        wait: Wait for every seat even if neither number can be reached any more.
    """
    passed = [result for result in results if result.outcome == "passed"]
    failed = [result for result in results if result.outcome == "failed"]
    if len(passed) >= to_pass:
        # If all seats are needed, the lowest score is shown; otherwise that of the seat whose vote decided.
        shown = min(passed, key=_get_score) if to_pass == seats else passed[to_pass - 1]
        return Verdict(outcome="passed", seat=shown)
    if len(failed) >= to_fail:
        return Verdict(outcome="failed", seat=failed[to_fail - 1])
    open_seats = seats - len(results)
    cannot_decide = len(passed) + open_seats < to_pass and len(failed) + open_seats < to_fail
    if open_seats == 0 or (cannot_decide and not wait):
        return Verdict(outcome="undecided", because=find_reason(results) or "split")
    return None


def count_choices(
    results: Sequence[JudgeResult], seats: int, to_win: int, choices: Sequence[str], *, wait: bool
) -> Verdict | None:
    """Decide a comparison by counting votes: the preference wins that at least ``to_win`` seats chose.

    It wins only when no other preference can reach that number any more. With a quorum of at most half the seats, two
    can reach it, and then neither wins, because it would be chance which of them was counted first. ``None`` means that
    more of the ``seats`` have to answer; with ``wait`` that is so until all have.
    """
    votes = [result for result in results if result.outcome == "passed"]
    open_seats = seats - len(results)
    counts = {choice: sum(vote.value == choice for vote in votes) for choice in choices}
    winners = [choice for choice in choices if counts[choice] >= to_win]
    able_to_win = [choice for choice in choices if counts[choice] + open_seats >= to_win]
    if len(winners) == 1 and able_to_win == winners:
        return Verdict(outcome="passed", seat=[vote for vote in votes if vote.value == winners[0]][to_win - 1])
    nobody_can_win = not able_to_win or len(winners) > 1
    if open_seats == 0 or (nobody_can_win and not wait):
        return Verdict(outcome="undecided", because=find_reason(results) or "split")
    return None


def decide_fallback(result: JudgeResult, earlier: Sequence[JudgeResult]) -> Verdict | None:
    """Decide by one answer in a fallback; ``None`` means: ask the next."""
    if result.outcome != "undecided":
        return Verdict(outcome=result.outcome, seat=result)
    if result.undecided_because in ENDING:
        return Verdict(outcome="undecided", because=find_reason([*earlier, result]))
    return None


def decide_hedged(answers: Sequence[JudgeResult]) -> Verdict | None:
    """Decide by the answers that came at the same moment; ``None`` if none of them decides.

    A failure comes first, then tampering or a contradiction, then a pass; among equal ones, the first in seat order.
    """
    for result in answers:
        if result.outcome == "failed":
            return Verdict(outcome="failed", seat=result)
    for result in answers:
        if result.undecided_because in ENDING:
            return Verdict(outcome="undecided", because=find_reason(answers))
    for result in answers:
        if result.outcome == "passed":
            return Verdict(outcome="passed", seat=result)
    return None


def decide_cascade(
    result: JudgeResult,
    earlier: Sequence[JudgeResult],
    *,
    sure_at: float | SeatRelease | None,
    abstain_below: float | None,
) -> Verdict | None:
    """Decide by one answer in a cascade; ``None`` means: ask the next seat.

    ``sure_at`` is the confidence, or the release policy's score, from which the seat decides; ``None`` for the last
    seat. ``abstain_below`` is the confidence below which the last seat is undecided.
    """
    if result.undecided_because in ENDING or (result.outcome == "undecided" and sure_at is None):
        return _end_cascade([*earlier, result])
    if result.outcome == "undecided":
        return None
    if sure_at is not None:
        decides = sure_at.releases(result) if isinstance(sure_at, SeatRelease) else is_sure(result.confidence, sure_at)
        return Verdict(outcome=result.outcome, seat=result) if decides else None
    if abstain_below is not None and not is_sure(result.confidence, abstain_below):
        return Verdict(outcome="undecided", because="unsure")
    return Verdict(outcome=result.outcome, seat=result)


def is_sure(confidence: float | None, least: float) -> bool:
    """Return whether a confidence is known, a probability, and at least ``least``.

    The comparison is false for NaN, which is neither below nor above anything. "Not below ``least``" would be true for
    it.
    """
    return confidence is not None and least <= confidence <= 1 + 1e-9


def _end_cascade(results: Sequence[JudgeResult]) -> Verdict:
    """Decide a cascade in which no seat decided: if a seat failed, even if it was not sure, the cascade fails."""
    failed = [result for result in results if result.outcome == "failed"]
    if failed:
        return Verdict(outcome="failed", seat=failed[-1])
    # Without any reason, there were only unsure answers when the deadline was over.
    return Verdict(outcome="undecided", because=find_reason(results) or "timeout")


def decide_unanswered(results: Sequence[JudgeResult], *, cascade: bool = False) -> Verdict:
    """Decide when no seat is left to ask, or the deadline is over; ``cascade`` says that the chain is one."""
    return _end_cascade(results) if cascade else Verdict(outcome="undecided", because=find_reason(results) or "timeout")


def find_reason(results: Sequence[JudgeResult]) -> Reason | None:
    """Return the gravest reason among some results."""
    return find_gravest([result.undecided_because for result in results if result.undecided_because is not None])


def may_open(results: Sequence[JudgeResult]) -> bool:
    """Return whether a policy may let undecided content pass: no seat failed, contradicted itself or was tampered with.

    Seats of inner chains count, at any depth. ``fail_open`` lets content pass if this and ``has_stopped_seat`` allow
    it; which seats such a chain waits for is in the note in ``chain.py``.
    """
    return not any(
        result.outcome == "failed" or result.undecided_because in ENDING for result in _walk_results(results)
    )


def has_stopped_seat(results: Sequence[JudgeResult], *, hedged: bool = False) -> bool:
    """Return whether a chain stopped a seat, at any depth, that might have objected; no policy may open over that.

    Seats that a time limit stopped are not counted: they are ``undecided: timeout``, which a policy may let pass. Nor
    are seats that a hedged chain stopped because another was quicker, which is what hedging is for. ``hedged`` says
    that ``results`` are those of a hedged chain.
    """
    for result in results:
        if result.undecided_because == "cancelled" and not hedged:
            return True
        if isinstance(result, JudgeChainResult) and has_stopped_seat(
            result.results, hedged=result.cut_short or result.strategy == "hedged"
        ):
            return True
    return False


def share_votes(results: Sequence[JudgeResult], outcome: Outcome, seats: int) -> float | None:
    """Return the share of all seats that voted for the outcome; ``None`` when nothing was decided.

    A seat that could not answer, or was cut short, counts as a seat. Otherwise an attacker could raise the confidence
    by slowing down the seat that would object.
    """
    return None if outcome == "undecided" else sum(result.outcome == outcome for result in results) / seats


def share_choices(results: Sequence[JudgeResult], chosen: JudgeResult | None, seats: int) -> float | None:
    """Return the share of all seats with the same preference as the chosen result; ``None`` if none was chosen."""
    if chosen is None:
        return None
    return sum(result.outcome == "passed" and result.value == chosen.value for result in results) / seats


def _walk_results(results: Sequence[JudgeResult]) -> Iterator[JudgeResult]:
    """Yield each result, and after that of a chain the results of its seats, at any depth."""
    for result in results:
        yield result
        if isinstance(result, JudgeChainResult):
            yield from _walk_results(result.results)


def _get_score(result: JudgeResult) -> float:
    """Return the score of a result; one without a score counts as the highest."""
    return result.score if result.score is not None else 1.0


def sort_by_seat(results: Mapping[int, JudgeResult]) -> tuple[JudgeResult, ...]:
    """Return results by seat, in the order of the seats."""
    return tuple(results[seat] for seat in sorted(results))


_PARAMETER_STRATEGIES = {
    "quorum": "quorum",
    "hedge_after": "hedged",
    "escalate_below": "cascade",
    "abstain_below": "cascade",
}
"""The strategy that each of these parameters belongs to."""


def check_options(
    strategy: str,
    seats: Sequence[object],
    *,
    quorum: int | None,
    hedge_after: float | None,
    escalate_below: Escalation | Sequence[Escalation] | None,
    abstain_below: float | None,
) -> tuple[float | SeatRelease, ...] | None:
    """Return ``escalate_below`` as one value per seat except the last; ``None`` if it is not given.

    Raises ``UsageError`` for an unknown strategy, a parameter of another strategy, and a value that is not valid.
    """
    check_choice("strategy", strategy, get_args(Strategy))
    parameters = {
        "quorum": quorum,
        "hedge_after": hedge_after,
        "escalate_below": escalate_below,
        "abstain_below": abstain_below,
    }
    for parameter, value in parameters.items():
        needed_strategy = _PARAMETER_STRATEGIES[parameter]
        if value is not None and strategy != needed_strategy:
            raise UsageError(
                f"{parameter} belongs to the strategy {needed_strategy!r}, and this chain is {strategy!r}",
                argument=parameter,
            )
        if value is None and strategy == needed_strategy and parameter != "abstain_below":
            raise UsageError(f"the strategy {strategy!r} needs ", Argument(parameter), argument=parameter)
    if quorum is not None:
        check_whole_number("quorum", quorum, least=1, most=len(seats), note="the number of judges")
    check_timeout("hedge_after", hedge_after)
    if abstain_below is not None:
        check_share("abstain_below", abstain_below)
    return None if escalate_below is None else _read_escalation(escalate_below, seats)


def _read_escalation(value: Any, seats: Sequence[object]) -> tuple[float | SeatRelease, ...]:
    """Read ``escalate_below`` as one bound for each seat except the last; a single value holds for all of them.

    Raises ``UsageError`` for another number of bounds, and for a value that is not a valid bound.
    """
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    bounds = list(value) if is_list else [value] * (len(seats) - 1)
    if len(bounds) != len(seats) - 1:
        raise UsageError(
            f"escalate_below has {len(bounds)} numbers; give one, or one per judge but the last ({len(seats) - 1})",
            argument="escalate_below",
        )
    if not is_list and not bounds:
        # A single seat is the last one, which needs no bound; the value is checked all the same.
        _read_bound(value, None)
    return tuple(_read_bound(bound, seat) for bound, seat in zip(bounds, seats, strict=False))


def _read_bound(bound: Any, seat: object) -> float | SeatRelease:
    """Read the bound of a seat: a confidence, or the score from which a release policy lets the seat decide.

    Raises ``UsageError`` for anything else.
    """
    if isinstance(bound, SeatRelease):
        return bound
    if hasattr(bound, "limit_seat"):
        return bound.limit_seat(seat)
    return check_share("escalate_below", bound)
