"""The replay of recorded judges under another policy: each judge reads its kept reply, each chain the seats' answers.

A seat that was never asked, or was cut short, has no answer in the run. That is not the same as an undecided answer, on
which a policy may act. So if the answer of such a seat could change the outcome, the result is unknown, and
``fail_open`` never lets content pass over it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from adjudge.errors import Reason
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import COUNTING, Verdict
from adjudge.judges.judge import Judge
from adjudge.models.model import FunctionIdentity, Reply, Request, find_function
from adjudge.models.replies.row import Row, make_reply
from adjudge.question.question import Question
from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult, Outcome, find_gravest, make_id
from adjudge.runs.redecision.policy import AbsentModel
from adjudge.runs.redecision.question import Reading

FindRow = Callable[[str, int, int], Row | None]
"""Finds the kept reply by the model's name, the number of the seat, and the attempt."""


_UNCHANGED_REASONS: tuple[Reason, ...] = ("timeout", "budget", "tampering")
"""Reasons that do not come from a reply, so that they stay under any rubric."""

_DECISIONS: tuple[Outcome, ...] = ("passed", "failed")


class KeptReply:
    """A stand-in for a model: it gives the model's earlier reply, and there is nothing that it could ask."""

    structured = False
    max_input_characters = sys.maxsize
    """The limit of its input: whatever it was asked then was short enough."""

    def __init__(self, name: str, row: Row, function: FunctionIdentity | None = None) -> None:
        self.name = name
        self.function_identity = function
        """The judge in code that answered, as the manifest has it; what the row says of itself is held against this."""
        self._row = row

    async def complete(self, request: Request, /) -> Reply:
        """Return the kept reply, with this request's token in place of its own."""
        return make_reply(self._row, request.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedResult:
    """The result of a judge under a policy, or why nobody can know it."""

    result: Any
    """``None`` for a seat that was never asked, else a ``JudgeResult``."""
    unknown: str = ""
    """The reason why its answer cannot be known, in a few words; empty when it is."""
    because: Reason = "error"
    """The reason of an unknown one."""
    has_unknown_seat: bool = False
    """True if the answer of some seat in it is unknown, though its own is not."""
    was_late: bool = False
    """True if its turn never came because the chain's deadline was over; the policy says what that means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayer:
    """One item's recorded judges, to be heard again."""

    reading: Reading
    question: Question
    find: FindRow
    keeps_judges: bool = False
    """True if the chains are under the policy that they had."""
    names_model: bool = False
    """True if the run named a model, so that a result has that model's name in place of the judge's."""

    async def replay(self, judge: Any, result: JudgeResult | None, name: str) -> ReplayedResult:
        """Replay a judge or chain with its result in the run, which is ``None`` if it was not asked there."""
        if result is None:
            return ReplayedResult(result=None, unknown=f"{name} was not asked then")
        if isinstance(judge, JudgeChain):
            return await self._replay_chain(judge, result, name)
        return await self._replay_single(judge, result, name)

    async def _replay_single(self, judge: Any, result: JudgeResult, name: str) -> ReplayedResult:
        """Replay a single judge from its kept reply. A result that did not come from a reply stays, or is unknown."""
        if result.undecided_because == "cancelled":
            return ReplayedResult(result=result, unknown=f"{name} was cut short then")
        if result.undecided_because in _UNCHANGED_REASONS:
            return self._keep_result(result)
        if result.decided_by == "rule" and not result.attempts:
            return self._give_up(result, f"{name} was not asked then")
        if self.reading.unasked:
            return self._give_up(result, self.reading.unasked, because="missing_criterion")
        return await self._read_reply(judge, result, name)

    async def _read_reply(self, judge: Any, result: JudgeResult, name: str) -> ReplayedResult:
        """Read the kept reply by the new rubric.

        Without a reply, the result stays if it is an error or if the rubric is the same; else it is unknown.
        """
        row = None
        absent_model = judge.model if isinstance(judge, Judge) else None
        if isinstance(absent_model, AbsentModel):
            model_name = result.judge if self.names_model else absent_model.name
            # The reply to the last attempt: each reply before it could not be read, so the model was asked again.
            row = self.find(model_name, absent_model.seat, result.attempts)
        if isinstance(judge, Judge) and row is not None:
            return ReplayedResult(result=renew_result(await self._ask_again(judge, result, row), result))
        if result.undecided_because == "error" or self.reading.same:
            return self._keep_result(result)
        return self._give_up(result, f"the reply of {name} was not kept")

    async def _ask_again(self, judge: Judge, result: JudgeResult, row: Row) -> JudgeResult:
        """Have the judge read the kept reply; everything about the call itself stays as it was."""
        # If the rubric named a model, that one answered, and not a function of the judge.
        function = None if self.names_model else find_function(judge.model)
        # Not asked again, because this is the last reply.
        replaying_judge = judge.replace(model=KeptReply(judge.model.name, row, function), reask=0, timeout=None)
        new_result = await replaying_judge.ask(self.reading.add_dropped_criteria(self.question))
        rubric = self.question.rubric
        names = {criterion.name for criterion in rubric.criteria} if rubric is not None else set()
        criteria = tuple(kept_criterion for kept_criterion in new_result.criteria if kept_criterion.name in names)
        return _take_decision(result, new_result, criteria)

    async def _replay_chain(self, chain: JudgeChain, result: JudgeResult, name: str) -> ReplayedResult:
        """Replay each seat of a chain, and then the chain with the results of its seats."""
        seats = (
            {seat_result.judge: seat_result for seat_result in result.results}
            if isinstance(result, JudgeChainResult)
            else {}
        )
        reasons = {seat_result.undecided_because for seat_result in seats.values()}
        if result.undecided_because in (*_UNCHANGED_REASONS, "error") and result.undecided_because not in reasons:
            return self._keep_result(result)  # the reason is not that of a seat: the chain itself was cut off or failed
        if not isinstance(result, JudgeChainResult):  # a single judge in the run; adjudge itself makes no such policy
            return self._give_up(result, f"{name} was not asked then")
        was_late = chain.deadline is not None and result.strategy == chain.strategy and "timeout" in reasons
        replayed = [
            ReplayedResult(result=None, was_late=True)
            if was_late and seat_name not in seats
            else await self.replay(seat, seats.get(seat_name), seat_name)
            for seat_name, seat in chain.seats
        ]
        recorded = (seat_result for seat_result in replayed if seat_result.result is not None)
        if (
            self.reading.same
            and self.keeps_judges
            and all(seats[seat_result.result.judge] is seat_result.result for seat_result in recorded)
        ):
            # The same answers under the same policy: the result stays, as it may depend on which answers came first.
            return ReplayedResult(
                result=result,
                has_unknown_seat=any(seat_result.unknown or seat_result.has_unknown_seat for seat_result in replayed),
            )
        chain_result = await replay_chain(chain, self.question, replayed)
        return replace(chain_result, result=renew_result(chain_result.result, result))

    def _keep_result(self, result: JudgeResult) -> ReplayedResult:
        """Return a result of the run as it is; an undecided one with the new threshold."""
        threshold = self.question.threshold if result.undecided_because is not None else result.threshold
        return ReplayedResult(result=result if threshold == result.threshold else replace(result, threshold=threshold))

    def _give_up(self, result: JudgeResult, reason: str, because: Reason = "error") -> ReplayedResult:
        """Return an undecided result, because its outcome under the policy cannot be known."""
        unknown_result = renew_result(make_unknown(result, self.question, reason, because), result)
        return ReplayedResult(result=unknown_result, unknown=reason, because=because)


def make_unknown(result: JudgeResult, question: Question, detail: str, because: Reason) -> JudgeResult:
    """Return a result as undecided: only what is known of the call and the reply is kept."""
    return replace(
        result,
        outcome="undecided",
        undecided_because=because,
        detail=detail,
        decided_by="policy" if isinstance(result, JudgeChainResult) else "judge",
        score=None,
        threshold=question.threshold,
        confidence=None,
        criteria=(),
        reasoning="",
        suggestions=(),
        value=None,
        rule_results=question.rule_results,
    )


def _take_decision(result: JudgeResult, new_result: JudgeResult, criteria: tuple[CriterionResult, ...]) -> JudgeResult:
    """Return a result with the decision of ``new_result``; everything about the call stays."""
    return replace(
        result,
        outcome=new_result.outcome,
        undecided_because=new_result.undecided_because,
        detail=new_result.detail,
        decided_by=new_result.decided_by,
        score=new_result.score,
        threshold=new_result.threshold,
        confidence=new_result.confidence,
        reasoning=new_result.reasoning,
        suggestions=new_result.suggestions,
        value=new_result.value,
        rule_results=new_result.rule_results,
        criteria=criteria,
        parts=(),
    )


def renew_result(result: JudgeResult, earlier: JudgeResult) -> JudgeResult:
    """Give a redecided result a new id; if it does not differ from the earlier result, return that.

    Time and duration are those of the earlier result, because no call was made.
    """
    if result.id != earlier.id:
        result = replace(result, id=earlier.id, created_at=earlier.created_at, duration_ms=earlier.duration_ms)
    # A value that was read from a file is plain data, and an equal value may have another type.
    renewed = result if result.value is earlier.value else replace(result, value=earlier.value)
    return earlier if renewed == earlier else replace(result, id=make_id())


class RecordedSeat:
    """A seat of a chain that gives its answer from the run, after the seats that had answered before it."""

    def __init__(self, name: str, replayed: ReplayedResult, assumed: Outcome) -> None:
        self.name = name
        self.earlier_seat: int | None = None
        """The seat that had answered before this one; ``None`` where nobody had, or the chain asks one at a time."""
        self.known_results: Mapping[int, JudgeResult] = {}
        """The results that the chain knows, by seat."""
        self.result = _make_seat_result(name, replayed, assumed)

    async def ask(self, _question: Question | str, /) -> JudgeResult:
        """Return the answer once the chain knows the answer of the seat before."""
        while self.earlier_seat is not None and self.earlier_seat not in self.known_results:  # noqa: ASYNC110 - a chain has no event for this
            await asyncio.sleep(0)
        return self.result


def _make_seat_result(name: str, replayed: ReplayedResult, assumed: Outcome) -> JudgeResult:
    """Return the answer of a seat in the replay: its result, a timeout if it was late, or ``assumed`` if unknown."""
    if not (replayed.unknown or replayed.was_late):
        return replayed.result
    if replayed.was_late:
        return JudgeResult(outcome="undecided", undecided_because="timeout", judge=name)
    # The least grave of all reasons, so that another seat's reason is shown; and fully sure, so that a cascade ends
    # here.
    because: Reason | None = "cancelled" if assumed == "undecided" else None
    return JudgeResult(outcome=assumed, undecided_because=because, judge=name, confidence=1.0)


_ChainRunAndVerdict = tuple[Any, Verdict]
"""The run of a chain, which has the results of its seats, and the chain's verdict."""


async def replay_chain(chain: JudgeChain, question: Question, replayed: Sequence[ReplayedResult]) -> ReplayedResult:
    """Replay a chain with its seats' answers, in the order in which they came in the run.

    If a seat's answer is unknown, the chain is asked with each possible answer of it. If its outcome depends on that,
    the result is unknown.
    """
    has_unknown_seat = any(seat_answer.unknown or seat_answer.has_unknown_seat for seat_answer in replayed)
    unknown = [seat_answer for seat_answer in replayed if seat_answer.unknown]
    verdict: Verdict | None
    run, verdict = await _ask_chain(chain, question, replayed, "undecided")
    if unknown:
        outcomes: set[Outcome] = set()
        for assumed in _DECISIONS:
            _, assumed_verdict = await _ask_chain(chain, question, replayed, assumed)
            outcomes.add(assumed_verdict.outcome)
        if len(outcomes) > 1:
            verdict = None  # the outcome depends on answers that are unknown
    if verdict is not None and verdict.outcome == "undecided" and chain.fail_open and has_unknown_seat:
        verdict = None  # a seat whose answer is unknown may have failed the content
    shows_every_seat = verdict is None or chain.strategy in COUNTING or not chain.stop_early
    run.results = {
        seat: seat_answer.result if seat_answer.unknown or seat not in run.results else run.results[seat]
        for seat, seat_answer in enumerate(replayed)
        if seat_answer.result is not None and (shows_every_seat or seat in run.results)
    }
    if verdict is not None:
        return ReplayedResult(
            result=replace(run.make_result(verdict), duration_ms=0.0), has_unknown_seat=has_unknown_seat
        )
    reason = (
        "; ".join(dict.fromkeys(seat_answer.unknown for seat_answer in unknown)) or "a seat inside was not asked then"
    )
    because = find_gravest([seat_answer.because for seat_answer in unknown]) or "error"
    concluded = replace(run.make_result(Verdict(outcome="undecided", because=because)), duration_ms=0.0)
    return ReplayedResult(
        result=make_unknown(concluded, run.question, reason, because),
        unknown=reason,
        because=because,
        has_unknown_seat=True,
    )


async def _ask_chain(
    chain: JudgeChain, question: Question, replayed: Sequence[ReplayedResult], assumed: Outcome
) -> _ChainRunAndVerdict:
    """Ask the chain, with seats that give their replayed results; an unknown one gives the ``assumed`` outcome."""
    seats = [RecordedSeat(name, seat_answer, assumed) for name, seat_answer in zip(chain.names, replayed, strict=True)]
    replaying_chain = chain.replace(
        judges=seats,
        timeout=None,
        deadline=None,
        # No waiting: a seat that answered in the run was asked, whenever that was.
        hedge_after=None if chain.hedge_after is None else sys.float_info.min,
        fail_open=chain.fail_open
        and not any(seat_answer.unknown or seat_answer.has_unknown_seat for seat_answer in replayed),
        # Every recorded vote counts. A sequence ends at the seat that decides, because no later one was asked.
        stop_early=chain.stop_early and chain.strategy not in COUNTING,
    )
    run = replaying_chain._start_run(question)  # noqa: SLF001 - the chain's own, so that what is shown of it can be what was recorded
    if chain.strategy in COUNTING or chain.strategy == "hedged":
        order = sorted(range(len(replayed)), key=_make_time_order(replayed))
        for seat_before, seat in pairwise(order):
            seats[seat].earlier_seat = seat_before
    for seat in seats:
        seat.known_results = run.results
    verdict = await run.decide()
    for number, seat in enumerate(seats):
        was_stopped = number in run.results and run.results[number].undecided_because == "cancelled"
        if was_stopped and run.results[number].id != seat.result.id:
            del run.results[number]  # it was stopped by this replay, which says nothing about the run
    return run, verdict


def _make_time_order(replayed: Sequence[ReplayedResult]) -> Callable[[int], Any]:
    """Make the sort key for the order in which seats answered in the run; seats without an answer come last."""
    absent = [bool(seat_answer.unknown or seat_answer.was_late) for seat_answer in replayed]
    return lambda seat: (True, seat) if absent[seat] else (False, replayed[seat].result.created_at, seat)
