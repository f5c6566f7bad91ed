"""Recorded judges asked again: the real judge over the reply that was kept, the real chain over its seats' answers.

A seat that was never asked, or was cut short, has no answer, and that is not the same as a silent one: silence is an
answer of its own, which a policy may act on. So where such a seat could still turn the outcome, nothing is concluded,
and where ``fail_open`` would open over it, nothing opens.
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
"""The kept reply of a model, as the seat of that number, at an attempt."""


_STANDS: tuple[Reason, ...] = ("timeout", "budget", "tampering")
"""Reasons that no reply gave, so that no rubric takes them away."""

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
        """The reply, with the token of this request where it had its own."""
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
    hidden: bool = False
    """True if the answer of some seat in it is unknown, though its own is not."""
    late: bool = False
    """True if its turn never came because the chain's deadline was over; the policy says what that means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayer:
    """One item's recorded judges, to be heard again."""

    reading: Reading
    question: Question
    find: FindRow
    keeps_judges: bool = False
    """True if the chains are under the policy that they had."""
    named: bool = False
    """True if the run named the model, so that a result is called by it."""

    async def replay(self, judge: Any, result: JudgeResult | None, name: str) -> ReplayedResult:
        """Replay a judge with its earlier result; ``None`` when it was not asked."""
        if result is None:
            return ReplayedResult(result=None, unknown=f"{name} was not asked then")
        if isinstance(judge, JudgeChain):
            return await self._replay_chain(judge, result, name)
        return await self._replay_one(judge, result, name)

    async def _replay_one(self, judge: Any, result: JudgeResult, name: str) -> ReplayedResult:
        """Replay a single judge from its kept reply; a result that no reply gave stays, or is unknown."""
        if result.undecided_because == "cancelled":
            return ReplayedResult(result=result, unknown=f"{name} was cut short then")
        if result.undecided_because in _STANDS:
            return self._keep_result(result)
        if result.decided_by == "rule" and not result.attempts:
            return self._give_up(result, f"{name} was not asked then")
        if self.reading.unasked:
            return self._give_up(result, self.reading.unasked, because="missing_criterion")
        return await self._read_reply(judge, result, name)

    async def _read_reply(self, judge: Any, result: JudgeResult, name: str) -> ReplayedResult:
        """Read the kept reply again; without one, a result stays if it is an error, or if the rubric is the same."""
        row = None
        absent = judge.model if isinstance(judge, Judge) else None
        if isinstance(absent, AbsentModel):
            model = result.judge if self.named else absent.name
            # The last one: each before it could not be read then, and was followed by another for that.
            row = self.find(model, absent.seat, result.attempts)
        if isinstance(judge, Judge) and row is not None:
            return ReplayedResult(result=renew_result(await self._ask_again(judge, result, row), result))
        if result.undecided_because == "error" or self.reading.same:
            return self._keep_result(result)
        return self._give_up(result, f"the reply of {name} was not kept")

    async def _ask_again(self, judge: Judge, result: JudgeResult, row: Row) -> JudgeResult:
        """Ask the judge again where only this reply is there; everything about the call itself stays as it is."""
        # No second try: the replies before this one are not to be read in its place, and none came after it.
        # A rubric that named a model was answered by that, and not by a function of the judge's own.
        function = None if self.named else find_function(judge.model)
        replaying_judge = judge.replace(model=KeptReply(judge.model.name, row, function), reask=0, timeout=None)
        new_result = await replaying_judge.ask(self.reading.widen(self.question))
        rubric = self.question.rubric
        names = {criterion.name for criterion in rubric.criteria} if rubric is not None else set()
        criteria = tuple(kept_criterion for kept_criterion in new_result.criteria if kept_criterion.name in names)
        return _take_decision(result, new_result, criteria)

    async def _replay_chain(self, chain: JudgeChain, result: JudgeResult, name: str) -> ReplayedResult:
        """Replay each seat of a chain, and the chain over their results; a seat that was never asked has none."""
        seats = (
            {seat_result.judge: seat_result for seat_result in result.results}
            if isinstance(result, JudgeChainResult)
            else {}
        )
        reasons = {seat_result.undecided_because for seat_result in seats.values()}
        if result.undecided_because in (*_STANDS, "error") and result.undecided_because not in reasons:
            return self._keep_result(result)  # cut off from outside, or broken: it is none of its seats' doing
        if not isinstance(result, JudgeChainResult):  # one judge then, a chain now: not from any command of ours
            return self._give_up(result, f"{name} was not asked then")
        late = chain.deadline is not None and result.strategy == chain.strategy and "timeout" in reasons
        replayed = [
            ReplayedResult(result=None, late=True)
            if late and called not in seats
            else await self.replay(seat, seats.get(called), called)
            for called, seat in chain.seats
        ]
        recorded = (seat_result for seat_result in replayed if seat_result.result is not None)
        if (
            self.reading.same
            and self.keeps_judges
            and all(seats[seat_result.result.judge] is seat_result.result for seat_result in recorded)
        ):
            # The same answers under the same policy: whatever came together then, and first, has had its say.
            return ReplayedResult(
                result=result, hidden=any(seat_result.unknown or seat_result.hidden for seat_result in replayed)
            )
        chain_result = await replay_chain(chain, self.question, replayed)
        return replace(chain_result, result=renew_result(chain_result.result, result))

    def _keep_result(self, result: JudgeResult) -> ReplayedResult:
        threshold = self.question.threshold if result.undecided_because is not None else result.threshold
        return ReplayedResult(result=result if threshold == result.threshold else replace(result, threshold=threshold))

    def _give_up(self, result: JudgeResult, reason: str, because: Reason = "error") -> ReplayedResult:
        open_result = renew_result(make_unknown(result, self.question, reason, because), result)
        return ReplayedResult(result=open_result, unknown=reason, because=because)


def make_unknown(result: JudgeResult, question: Question, detail: str, because: Reason) -> JudgeResult:
    """Make a result undecided, of which nothing is known any more but the reply that it came with."""
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
    """Put a new decision in place of the one of a result; how it was asked stays."""
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
    """Give a redecided result an id of its own, or return the earlier result where nothing else has changed.

    Time and duration stay those of the earlier one, because no call was made.
    """
    if result.id != earlier.id:
        result = replace(result, id=earlier.id, created_at=earlier.created_at, duration_ms=earlier.duration_ms)
    # A value that was read from a file is plain data, and says the same.
    renewed = result if result.value is earlier.value else replace(result, value=earlier.value)
    return earlier if renewed == earlier else replace(result, id=make_id())


class RecordedSeat:
    """A seat of a chain that says what it said then, and not before those that had answered before it."""

    def __init__(self, name: str, replayed: ReplayedResult, assumed: Outcome) -> None:
        self.name = name
        self.after: int | None = None
        """The seat that had answered before this one; ``None`` where nobody had, or the chain asks one at a time."""
        self.known: Mapping[int, JudgeResult] = {}
        """The results that the chain knows, by seat."""
        self.result = _make_seat_result(name, replayed, assumed)

    async def ask(self, _question: Question | str, /) -> JudgeResult:
        """Return the answer, once the chain has taken note of the one before."""
        while self.after is not None and self.after not in self.known:  # noqa: ASYNC110 - a chain tells nobody
            await asyncio.sleep(0)
        return self.result


def _make_seat_result(name: str, replayed: ReplayedResult, assumed: Outcome) -> JudgeResult:
    """Return what a seat says in the replay: its result, a timeout if it was late, or ``assumed`` if it is unknown."""
    if not (replayed.unknown or replayed.late):
        return replayed.result
    if replayed.late:
        return JudgeResult(outcome="undecided", undecided_because="timeout", judge=name)
    # The least of all reasons, so that it hides none; and as sure as can be, so that a cascade goes no further.
    because: Reason | None = "cancelled" if assumed == "undecided" else None
    return JudgeResult(outcome=assumed, undecided_because=because, judge=name, confidence=1.0)


_Asked = tuple[Any, Verdict]
"""The call to a chain, which knows the seats that answered before it was settled, and what it came to."""


async def replay_chain(chain: JudgeChain, question: Question, replayed: Sequence[ReplayedResult]) -> ReplayedResult:
    """Replay a chain with its seats' answers, in the order in which they came then."""
    hidden = any(seat_answer.unknown or seat_answer.hidden for seat_answer in replayed)
    unknown = [seat_answer for seat_answer in replayed if seat_answer.unknown]
    verdict: Verdict | None
    run, verdict = await _ask_chain(chain, question, replayed, "undecided")
    if unknown:
        outcomes: set[Outcome] = set()
        for assumed in _DECISIONS:
            _, assumed_verdict = await _ask_chain(chain, question, replayed, assumed)
            outcomes.add(assumed_verdict.outcome)
        if len(outcomes) > 1:
            verdict = None  # it depends on what nobody heard
    if verdict is not None and verdict.outcome == "undecided" and chain.fail_open and hidden:
        verdict = None  # one of those that nobody heard may have said no
    everybody = verdict is None or chain.strategy in COUNTING or not chain.stop_early
    run.results = {
        seat: seat_answer.result if seat_answer.unknown or seat not in run.results else run.results[seat]
        for seat, seat_answer in enumerate(replayed)
        if seat_answer.result is not None and (everybody or seat in run.results)
    }
    if verdict is not None:
        return ReplayedResult(result=replace(run.make_result(verdict), duration_ms=0.0), hidden=hidden)
    reason = (
        "; ".join(dict.fromkeys(seat_answer.unknown for seat_answer in unknown)) or "a seat inside was not asked then"
    )
    because = find_gravest([seat_answer.because for seat_answer in unknown]) or "error"
    concluded = replace(run.make_result(Verdict(outcome="undecided", because=because)), duration_ms=0.0)
    return ReplayedResult(
        result=make_unknown(concluded, run.question, reason, because), unknown=reason, because=because, hidden=True
    )


async def _ask_chain(
    chain: JudgeChain, question: Question, replayed: Sequence[ReplayedResult], assumed: Outcome
) -> _Asked:
    """Ask the chain itself; whose answer nobody knows says what is assumed of it."""
    seats = [RecordedSeat(name, seat_answer, assumed) for name, seat_answer in zip(chain.names, replayed, strict=True)]
    replaying_chain = chain.replace(
        judges=seats,
        timeout=None,
        deadline=None,
        # Who was asked when is over: whoever answered has been asked, and no clock is to hold it back.
        hedge_after=None if chain.hedge_after is None else sys.float_info.min,
        fail_open=chain.fail_open and not any(seat_answer.unknown or seat_answer.hidden for seat_answer in replayed),
        # Every recorded vote counts. A sequence ends where it ends: whoever comes after that had not been asked.
        stop_early=chain.stop_early and chain.strategy not in COUNTING,
    )
    run = replaying_chain._start_run(question)  # noqa: SLF001 - the chain's own, so that what is shown of it can be what was recorded
    if chain.strategy in COUNTING or chain.strategy == "hedged":
        order = sorted(range(len(replayed)), key=_make_time_order(replayed))
        for seat_before, seat in pairwise(order):
            seats[seat].after = seat_before
    for seat in seats:
        seat.known = run.results
    verdict = await run.decide()
    for number, seat in enumerate(seats):
        stopped = number in run.results and run.results[number].undecided_because == "cancelled"
        if stopped and run.results[number].id != seat.result.id:
            del run.results[number]  # by this replay: what was recorded of it is another matter
    return run, verdict


def _make_time_order(replayed: Sequence[ReplayedResult]) -> Callable[[int], Any]:
    """Make the order in which seats answered; whoever is not known to have answered comes last."""
    absent = [bool(seat_answer.unknown or seat_answer.late) for seat_answer in replayed]
    return lambda seat: (True, seat) if absent[seat] else (False, replayed[seat].result.created_at, seat)
