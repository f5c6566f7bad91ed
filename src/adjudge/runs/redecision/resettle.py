"""What recorded judges come to under a policy: the outcome algebra again, over answers that are known or are not.

A seat that was never asked, or was cut short, has no answer, and that is not the same as a silent one: silence is an
answer of its own, which a policy may act on. So where such a seat could still turn the outcome, nothing is concluded,
and where ``fail_open`` would open over it, nothing opens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.errors import Reason
from adjudge.judges.chain import JudgeChain
from adjudge.judges.judge import Judge
from adjudge.judges.strategies import COUNTING, Verdict, count, descend, exhaust, follow, hedge, needed
from adjudge.models.model import Reply
from adjudge.question.question import Question
from adjudge.result import JudgeChainResult, JudgeResult, find_gravest, make_id
from adjudge.runs.redecision.reread import Reading

FindReply = Callable[[str, int, int], Reply | None]
"""The kept reply of a model, as the seat of that number, at an attempt."""


_STANDS: tuple[Reason, ...] = ("timeout", "budget", "tampering")
"""Reasons that no reply gave, so that no rubric takes them away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a judge says under a policy, or why nobody can know."""

    result: Any
    """``None`` for a seat that was never asked, else a ``JudgeResult``."""
    unknown: str = ""
    """Why its answer cannot be known, in a few words; empty when it is."""
    because: Reason = "error"
    """The reason of an unknown one."""
    hidden: bool = False
    """Whether the answer of some seat in it is unknown, though its own is not."""
    late: bool = False
    """Whether its turn never came because the chain's deadline was over; the policy says what that means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """One item's recorded judges, to be heard again."""

    reading: Reading
    question: Question
    token: str
    find: FindReply
    settled: bool = False
    """Whether the chains are under the policy that they had."""
    named: bool = False
    """Whether the run named the model, so that a result is called by it."""

    def hear(self, judge: Any, result: JudgeResult | None, name: str) -> Heard:
        """What a judge says, given what it said then; ``None`` when it was not asked."""
        if result is None:
            return Heard(result=None, unknown=f"{name} was not asked then")
        if isinstance(judge, JudgeChain):
            return self._hear_chain(judge, result, name)
        return self._hear_one(judge, result, name)

    def _hear_one(self, judge: Any, result: JudgeResult, name: str) -> Heard:
        if result.undecided_because == "cancelled":
            return Heard(result=result, unknown=f"{name} was cut short then")
        if result.undecided_because in _STANDS:
            return self._keep(result)
        if result.decided_by == "rule" and not result.attempts:
            return self._leave(result, f"{name} was not asked then")
        if self.reading.unasked:
            return self._leave(result, self.reading.unasked, because="missing_criterion")
        return self._read(judge, result, name)

    def _read(self, judge: Any, result: JudgeResult, name: str) -> Heard:
        reply = None
        if isinstance(judge, Judge):
            own: Any = judge.own_model
            model = result.judge if self.named else own.name
            # The last one: each before it could not be read then, and was followed by another for that.
            reply = self.find(model, own.seat, result.attempts)
        if isinstance(judge, Judge) and reply is not None:
            return Heard(result=renew(self.reading.read(judge, result, reply, self.token, self.question), result))
        if result.undecided_because == "error" or self.reading.same:
            return self._keep(result)
        return self._leave(result, f"the reply of {name} was not kept")

    def _hear_chain(self, chain: JudgeChain, result: JudgeResult, name: str) -> Heard:
        seats = {item.judge: item for item in result.results} if isinstance(result, JudgeChainResult) else {}
        reasons = {item.undecided_because for item in seats.values()}
        if result.undecided_because in (*_STANDS, "error") and result.undecided_because not in reasons:
            return self._keep(result)  # cut off from outside, or broken: it is none of its seats' doing
        if not isinstance(result, JudgeChainResult):  # one judge then, a chain now: not from any command of ours
            return self._leave(result, f"{name} was not asked then")
        late = chain.deadline is not None and result.strategy == chain.strategy and "timeout" in reasons
        heard = [
            Heard(result=None, late=True)
            if late and called not in seats
            else self.hear(seat, seats.get(called), called)
            for called, seat in chain.seats
        ]
        recorded = (item for item in heard if item.result is not None)
        if self.reading.same and self.settled and all(seats[item.result.judge] is item.result for item in recorded):
            # The same answers under the same policy: whatever came together then, and first, has had its say.
            return Heard(result=result, hidden=any(item.unknown or item.hidden for item in heard))
        settled = settle_seats(chain, self.question, heard)
        return replace(settled, result=renew(settled.result, result))

    def _keep(self, result: JudgeResult) -> Heard:
        threshold = self.question.threshold if result.undecided_because is not None else result.threshold
        return Heard(result=result if threshold == result.threshold else replace(result, threshold=threshold))

    def _leave(self, result: JudgeResult, why: str, because: Reason = "error") -> Heard:
        left = renew(leave_open(result, self.question, why, because), result)
        return Heard(result=left, unknown=why, because=because)


def leave_open(result: JudgeResult, question: Question, why: str, because: Reason) -> JudgeResult:
    """A result about which nothing is known any more but the reply it came with."""
    return replace(
        result,
        outcome="undecided",
        undecided_because=because,
        detail=why,
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


def renew(result: JudgeResult, before: JudgeResult) -> JudgeResult:
    """A decision as one of its own, unless it is the one that was made before; the call behind it stays the same."""
    if result.id != before.id:
        result = replace(result, **{name: getattr(before, name) for name in ("id", "created_at", "duration_ms")})
    # A value that was read from a file is plain data, and says the same.
    again = result if result.value is before.value else replace(result, value=before.value)
    return before if again == before else replace(result, id=make_id())


def settle_seats(chain: JudgeChain, question: Question, heard: Sequence[Heard]) -> Heard:
    """What a chain makes of its seats' answers, in the order in which they came then."""
    order = sorted((seat for seat in range(len(heard)) if _is_known(heard[seat])), key=_by_time(heard))
    run = chain._begin(question)  # noqa: SLF001 - its conclusion is to be the chain's own, to the letter
    hidden = any(item.unknown or item.hidden for item in heard)
    if chain.strategy in COUNTING:
        verdict = _count(chain, run.known, heard, order)
    elif chain.strategy == "hedged":
        verdict = _hedge(run.known, heard, order)
    else:
        verdict = _walk(chain, run.known, heard)
    if verdict is not None and verdict.outcome == "undecided" and chain.fail_open and hidden:
        verdict = None  # one of those that nobody heard may have said no
    shown = verdict is None or chain.strategy in COUNTING or not chain.stop_early
    more = {seat: item.result for seat, item in enumerate(heard) if shown and item.result is not None}
    run.known |= {seat: result for seat, result in more.items() if seat not in run.known}
    if verdict is not None:
        return Heard(result=run.conclude(verdict, 0.0), hidden=hidden)
    missing = [item for item in heard if item.unknown]
    why = "; ".join(dict.fromkeys(item.unknown for item in missing)) or "a seat inside was not asked then"
    because = find_gravest([item.because for item in missing]) or "error"
    concluded = run.conclude(Verdict(outcome="undecided", because=because), 0.0)
    return Heard(result=leave_open(concluded, run.question, why, because), unknown=why, because=because, hidden=True)


Known = dict[int, JudgeResult]


def _count(chain: JudgeChain, known: Known, heard: Sequence[Heard], order: Sequence[int]) -> Verdict | None:
    known |= {seat: heard[seat].result for seat in order}
    to_pass, to_fail = needed(chain.strategy, len(heard), chain.quorum)
    # Seats that are not known are open ones: nothing is said before either number is reached, or cannot be any more.
    return count(list(known.values()), len(heard), to_pass, to_fail, wait=False)


def _hedge(known: Known, heard: Sequence[Heard], order: Sequence[int]) -> Verdict | None:
    for seat in order:
        known[seat] = heard[seat].result
        verdict = hedge([known[seat]])
        if verdict is not None:
            return verdict
    return None if any(item.unknown for item in heard) else exhaust(list(known.values()))


def _walk(chain: JudgeChain, known: Known, heard: Sequence[Heard]) -> Verdict | None:
    for seat, item in enumerate(heard):
        if item.unknown:
            return None
        if item.late:
            break
        earlier, result = list(known.values()), item.result
        known[seat] = result
        if chain.strategy == "fallback":
            verdict = follow(result, earlier)
        else:
            sure_at = chain._sure_at[seat] if seat < len(heard) - 1 else None  # noqa: SLF001 - a chain of our own
            verdict = descend(result, earlier, sure_at=sure_at, abstain_below=chain.abstain_below)
        if verdict is not None:
            return verdict
    return exhaust(list(known.values()), cascade=chain.strategy == "cascade")


def _is_known(heard: Heard) -> bool:
    return not heard.unknown and not heard.late


def _by_time(heard: Sequence[Heard]) -> Callable[[int], Any]:
    return lambda seat: (heard[seat].result.created_at, seat)
