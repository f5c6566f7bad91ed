"""Several judges as one: who is asked when, under which clock, and what happens to those who lose.

What the seats' results add up to is decided in ``chain_outcome.py`` (``count_votes``), and so is when a cascade goes
to the next seat (``decide_cascade``) and when ``fail_open`` may open (``may_open``). Here is the concurrency around it:
when a seat is asked, the second of a hedged chain too, and for which seats a chain still waits. Losing and late calls
are cancelled and awaited, never abandoned, and status travels beside the text: nothing a reply says can change who is
asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Self, TypeGuard

from adjudge.concurrency import Timeout, describe_error, stop_tasks
from adjudge.errors import Argument, FunctionError, Reason, UsageError
from adjudge.formats.arguments import ReadOnly, check_flag, check_functions, check_timeout, read_options
from adjudge.formats.plain_data import digest_description
from adjudge.hooks import logger, notify
from adjudge.judges.chain_outcome import (
    COUNTING,
    ENDING,
    Escalation,
    SeatRelease,
    Strategy,
    Verdict,
    check_options,
    count_choices,
    count_votes,
    decide_cascade,
    decide_fallback,
    decide_hedged,
    decide_unanswered,
    find_needed_votes,
    has_stopped_seat,
    may_open,
    share_choices,
    share_votes,
    sort_by_seat,
)
from adjudge.judges.evaluate import Evaluates, JudgeLike, add_usage, log_result, measure_ms
from adjudge.judges.judge import Judge, ModelSource, as_seat, asks_as, convert_question
from adjudge.models.model import Model
from adjudge.question.question import Answer, Question
from adjudge.result import JudgeChainResult, JudgeResult
from adjudge.rubric.rubric import Rubric


class JudgeChain(ReadOnly, Evaluates[JudgeChainResult]):
    """Several judges that answer as one.

    ``strategy`` says in which order the seats are asked and how their answers add up. If they do not add up to an
    outcome, the chain is undecided and does not pass, unless ``fail_open`` says otherwise. A chain is not changed once
    it is made; ``replace`` makes another.

    Raises ``UsageError`` for an empty chain, an unknown strategy, a parameter of another strategy, and limits that are
    not finite numbers above 0.

    Args:
        judges: Model names, functions, ``(name, function)`` pairs, judges and chains. Each is one *seat*, also an inner
            chain. Equal names become ``a``, ``a#2``.
        strategy: ``fallback``, ``consensus``, ``majority``, ``quorum``, ``hedged`` or ``cascade``.
        name: The chain's name in results; by default the strategy and the names of the seats.
        timeout: Seconds for one seat, including its retries; ``None`` means no limit.
        deadline: Seconds for the whole chain; seats that have not finished by then are ``undecided: timeout``.
        fail_open: Let an undecided chain pass, by policy, if no seat at any depth failed, was ``tampering`` or
            ``contradiction``, or was stopped by a counting chain.
        quorum: How many seats must pass with ``quorum``.
        hedge_after: Seconds after which ``hedged`` starts the next seat.
        escalate_below: The confidence, in 0 to 1, from which a seat of a ``cascade`` is sure: one number, or one per
            seat except the last. A ``ReleasePolicy`` in place of a number lets a seat decide what the policy releases;
            of everything else the next seat is asked.
        abstain_below: The confidence, in 0 to 1, below which the last seat of a ``cascade`` gives
            ``undecided: unsure``.
        stop_early: Cancel the remaining seats when the outcome is settled; ``False`` asks every seat.
        on_result: Called with every result of the chain, after the hooks of its seats; sync or async, and awaited. What
            it raises is logged and not raised.
    """

    def __init__(
        self,
        judges: Sequence[JudgeLike | ModelSource],
        *,
        strategy: Strategy = "fallback",
        name: str = "",
        timeout: float | None = 5.0,
        deadline: float | None = None,
        fail_open: bool = False,
        quorum: int | None = None,
        hedge_after: float | None = None,
        escalate_below: Escalation | Sequence[Escalation] | None = None,
        abstain_below: float | None = None,
        stop_early: bool = True,
        on_result: Callable[[JudgeChainResult], Any] | None = None,
    ) -> None:
        # Judges that are made here get no timeout of their own, which could be shorter than the chain's.
        seats = [as_seat(source, limited=False) for source in _list_seats(judges)]
        self.seats: tuple[tuple[str, JudgeLike], ...] = tuple(_name_seats(seats))
        """The judges with their names, in order."""
        self.strategy: Strategy = strategy
        self.timeout = timeout
        self.deadline = deadline
        self.fail_open = fail_open
        self.quorum = quorum
        self.hedge_after = hedge_after
        self.escalate_below = check_options(
            strategy,
            seats,
            quorum=quorum,
            hedge_after=hedge_after,
            escalate_below=escalate_below,
            abstain_below=abstain_below,
        )
        """One number, or one ``SeatRelease``, per seat except the last."""
        self.abstain_below = abstain_below
        self.stop_early = stop_early
        self.on_result = on_result
        check_timeout("timeout", timeout)
        check_timeout("deadline", deadline)
        check_flag("fail_open", fail_open)
        check_flag("stop_early", stop_early)
        check_functions("a chain", on_result=on_result)
        for _, seat in self.seats:
            if isinstance(seat, JudgeChain) and seat.fail_open:
                raise UsageError(
                    f"fail_open belongs to the outermost chain; take it off the inner chain {seat.name!r}",
                    argument="fail_open",
                )
        self.name = name or f"{strategy}({', '.join(self.names)})"
        self._has_hooks = on_result is not None or any(_has_hook(seat) for _, seat in self.seats)
        """True if a result is handed to a hook: this chain's, or one of a seat."""
        self._is_made = True

    def replace(self, **changes: Any) -> Self:
        """Return a chain like this one with other arguments.

        Args:
            changes: Arguments of ``JudgeChain``; those that are left out stay as they are.
        """
        return type(self)(**(read_options(self, JudgeChain) | {"judges": [seat for _, seat in self.seats]} | changes))

    @property
    def judges(self) -> tuple[tuple[str, JudgeLike], ...]:
        """The judges with their names, in order, as ``seats``."""
        return self.seats

    @property
    def names(self) -> tuple[str, ...]:
        """The seats' names, in order."""
        return tuple(name for name, _ in self.seats)

    async def ask(self, question: Question | str, /) -> JudgeChainResult:
        """Ask the seats as the strategy says. If a seat raises, that seat is undecided.

        Args:
            question: What is asked; for ``ask`` also a complete yes/no prompt as a text.
        """
        question = convert_question(question)
        self.check(question)
        run = self._start_run(question)
        result = await run.finish()
        if self._has_hooks:
            await run.notify_hooks(result)
        return result

    def check(self, question: Question) -> None:
        """Raise ``UsageError`` for mistakes that can be found before any seat is asked.

        Args:
            question: What is to be asked.
        """
        if question.model is not None:
            raise UsageError(
                f"model {question.model!r} was given to the chain {self.name!r}, whose seats have models of their own; "
                "ask a single Judge, or leave the model out",
                argument="model",
            )
        if self.fail_open and question.choices:
            raise UsageError(
                f"the chain {self.name!r} has ",
                Argument("fail_open", "True"),
                ", which lets content pass when nobody decided; a comparison has nothing to let pass, so ask a chain "
                "without it",
                argument="fail_open",
            )
        for bound in self.escalate_below or ():
            if isinstance(bound, SeatRelease):
                _check_release(self, bound, question)
        for _, seat in self.seats:
            _check_seat(seat, question)

    def map_models(self, change: Callable[[Model], Model]) -> JudgeChain:
        """Return a chain like this one, with the same names, in which every model, at any depth, is ``change(model)``.

        Judges of another kind, and subclasses that override ``ask``, are left unchanged.

        Args:
            change: A function from a model to the one in its place.
        """
        if not asks_as(self, JudgeChain):
            return self
        return self.replace(judges=[seat.map_models(change) if is_ours(seat) else seat for _, seat in self.seats])

    async def aclose(self) -> None:
        """Close the connections of every seat."""
        for _, seat in self.seats:
            close = getattr(seat, "aclose", None)
            if close is not None:
                await close()

    def __repr__(self) -> str:
        return f"JudgeChain({self.name!r}, strategy={self.strategy!r})"

    def _start_run(self, question: Question, position: _Position | None = None) -> _ChainRun:
        """Make a run of this chain; its question also asks for objections and confidence where the chain needs them."""
        if self.fail_open or (self.strategy == "cascade" and not question.wants_confidence):
            question = replace(
                question,
                wants_objections=question.wants_objections or self.fail_open,
                wants_confidence=question.wants_confidence or self.strategy == "cascade",
            )
        return _ChainRun(self, question, position or _OUTERMOST)

    def _get_default_rubric(self) -> Rubric | None:
        """Return the rubric that all seats have; ``None`` where they differ, so that a call has to name one."""
        rubrics = [
            seat._get_default_rubric() if isinstance(seat, Evaluates) else None  # noqa: SLF001
            for _, seat in self.seats
        ]
        first = rubrics[0]
        if first is not None and all(rubric == first for rubric in rubrics):
            return first
        return None

    def _make_result_of_rules(self, question: Question, answer: Answer, duration_ms: float) -> JudgeChainResult:
        """Make the result when rules decided and no seat was asked."""
        return _make_chain_result(self, question, answer, judge="rules", duration_ms=duration_ms)


# ``fail_open`` in nested chains
#
# ``fail_open`` belongs to the outermost chain. An inner chain that has it is refused when the chain is made. Behind a
# judge of somebody's own it cannot be seen; there a pass by policy is refused as a result (``_find_problem``), and that
# seat is itself undecided, an ``error``: it passes nothing and objects to nothing, so the outermost chain's own
# ``fail_open`` may open over it as over any seat that failed to answer.
#
# ``fail_open`` turns an undecided verdict of the outermost chain into a pass by policy, unless a seat at any depth
# failed, or saw tampering or a contradiction (``may_open``), or a counting chain stopped a seat that might have
# (``has_stopped_seat``). A gate whose policy may let undecided content through asks with ``wants_objections`` as well,
# and makes the same two checks.
#
# Who answers first must not decide whether an objection is known. So ``fail_open`` sets ``wants_objections`` on the
# question, which goes to the seats at every depth, and then:
#
# 1. A counting chain stops no seat because its verdict is certain: it waits for all of them, to know who objects.
# 2. An inner chain that has passed or failed hands this verdict to the chain around it at once, as its early result,
#    and waits for its other seats meanwhile (``_wait_for_objections``): also after a pass, since the chain around it
#    may still end undecided. A chain behind a judge of somebody's own can hand over nothing early, so it waits for
#    every seat before it passes (``wants_everybody``), unless its pass is that of the outermost chain, and fails at
#    once (``wants_failure_at_once``), since a limit around that judge takes all that the chain knows.
# 3. While a chain waits for objections its verdict is final: a limit ends the waiting, and takes nothing back.
# 4. When the outermost chain has passed no policy is needed. It stops what still runs, at any depth.
#
# The strategies that ask one seat after another, and ``hedged``, ask and stop the same seats as ever; a seat that was
# never asked, or was slower than the one that decided a hedged chain, is no objection, unless it is a chain that had
# heard one by then. Neither is what a judge of somebody's own keeps to itself: nobody can see it.


_EarlyResult = asyncio.Future[JudgeChainResult]
"""The result of an inner chain that has decided and waits for objections; see rule 2 above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Position:
    """The position of a chain in the chains around it."""

    early_result: _EarlyResult | None
    """The future for its early result; ``None`` for the outermost chain, and where nobody waits for objections."""
    pass_decides: bool
    """True if its pass is a pass of the outermost chain."""
    may_end_sequence: bool
    """True if tampering in it ends a sequence around it, so that no further seat is asked."""


_OUTERMOST = _Position(early_result=None, pass_decides=True, may_end_sequence=False)


class _ChainRun:
    """One question put to a chain. It lives as long as the call, and leaves no task behind."""

    def __init__(self, chain: JudgeChain, question: Question, position: _Position) -> None:
        self.chain, self.question, self.position = chain, question, position
        self.started_at = time.perf_counter()
        self.running: dict[asyncio.Task[JudgeResult], int] = {}
        self.early_results: dict[_EarlyResult, int] = {}
        """The early results of seats that are chains, which may come long before their tasks end."""
        self.results: dict[int, JudgeResult] = {}
        """Results by seat; insertion order is the order of the answers."""
        self.seat_started_at: dict[int, float] = {}
        self.inner_runs: dict[int, _ChainRun] = {}
        """The runs of seats that are chains themselves."""
        self.verdict: Verdict | None = None
        """The verdict, perhaps while other seats still run; the chain's deadline does not take it back."""
        self.final_verdict: Verdict | None = None
        """The verdict once the chain only waits for objections; no limit around this chain takes it back either.

        ``verdict`` is not enough for that: a chain that is to ask every seat, as for a guard, has its verdict before it
        has heard everybody, and must not pass when a limit ends it.
        """

    async def finish(self) -> JudgeChainResult:
        """Ask the seats and return the chain's result."""
        result = self.make_result(await self.decide())
        log_result(result)
        return result

    async def notify_hooks(self, result: JudgeResult) -> None:
        """Hand every seat's result to the seat's own hook, and the chain's result to the hook of the chain.

        This is done once the outcome is settled. A slow hook that is called within a seat's time limit would make the
        seat late, and could change the outcome.
        """
        for seat, seat_result in sorted(self.results.items()):
            inner_run = self.inner_runs.get(seat)
            _, judge = self.chain.seats[seat]
            if inner_run is not None:
                await inner_run.notify_hooks(seat_result)
            elif is_ours(judge):
                await notify(judge.on_result, seat_result, name="on_result")
        await notify(self.chain.on_result, result, name="on_result")

    async def decide(self) -> Verdict:
        """Ask until the outcome is settled or the deadline is over; whatever still runs is cancelled and awaited."""
        limit = Timeout(self.chain.deadline)
        try:
            with limit:
                verdict = await self._ask_seats()
                await self._wait_for_objections(verdict)
        except TimeoutError:
            if not limit.late:
                raise
            await self._stop_seats("timeout", f"not finished within the chain's {self.chain.deadline:g} s")
            verdict = self._decide_late()
        finally:
            # Also on the way out of a cancellation: a caller that goes away leaves no call running and paid for.
            await self._stop_seats("cancelled", "the chain was settled without it")
        return verdict

    async def _wait_for_objections(self, verdict: Verdict) -> None:
        """Wait for every seat that may object, unless the outermost chain has passed.

        A policy may let undecided content pass only if no seat objected. Without this wait, it would depend on the
        order in which seats answer whether an objection is known. The chain around this one is handed the verdict at
        once, and does not wait; when the outermost chain passes, it stops the seats that still run in here.
        """
        self.verdict, early_result = verdict, self.position.early_result
        # A failed chain waits as well: what a gate does with it may depend on tampering that a slower seat saw.
        needs_no_objections = verdict.outcome == "passed" and early_result is None
        if not self.question.wants_objections or needs_no_objections or self._fails_at_once(verdict):
            return
        self.final_verdict = verdict
        if early_result is not None and not early_result.done() and verdict.outcome != "undecided" and self.running:
            early_result.set_result(self.make_result(verdict))
        # A hedged chain stops its slower seats all the same. It waits only for seats whose result is known already:
        # inner chains that have handed over an early result, and still wait for their other seats.
        waits_for_all = self.chain.strategy != "hedged"
        while any(waits_for_all or seat in self.results for seat in self.running.values()):
            await self._wait_for_answers(None)

    def _decide_late(self) -> Verdict:
        """Return the verdict when the deadline is over: that of the seats that answered in time, or undecided."""
        if self.verdict is not None:
            return self.verdict
        results = list(self.results.values())
        if self.chain.strategy in COUNTING:
            return self._count_votes(wait=False) or decide_unanswered(results)
        return decide_unanswered(results, cascade=self.chain.strategy == "cascade")

    async def _ask_seats(self) -> Verdict:
        """Ask the seats in the way of the chain's strategy, and return the verdict."""
        if self.chain.strategy in COUNTING:
            return await self._ask_at_once()
        if self.chain.strategy == "hedged":
            return await self._ask_hedged()
        return await self._ask_in_order()

    async def _ask_at_once(self) -> Verdict:
        """Ask all seats at the same time and count their answers: consensus, majority and quorum."""
        chain = self.chain
        for seat in range(len(chain.seats)):
            self._start_seat(seat)
        # A cascade around this chain asks for its confidence, which is the share of votes and is known once every seat
        # has voted. And a guard has to know every seat that would have failed the content.
        stop_early = chain.stop_early and not self.question.wants_confidence and not self.question.wants_everybody
        wait_for_reasons = self.question.wants_reasons and self.position.may_end_sequence
        wait = self.question.wants_objections or wait_for_reasons or not stop_early
        while self.running:
            may_stop = self.verdict is not None and (stop_early or self._fails_at_once(self.verdict))
            if may_stop:
                break
            await self._wait_for_answers(None)
            self.verdict = self.verdict or self._count_votes(wait=wait)
        return self.verdict or decide_unanswered(list(self.results.values()))

    def _fails_at_once(self, verdict: Verdict) -> bool:
        """Return whether a verdict is a failure that is returned at once, before a limit around the chain ends it."""
        return verdict.outcome == "failed" and self.question.wants_failure_at_once

    def _count_votes(self, *, wait: bool) -> Verdict | None:
        """Count the votes that are known; return ``None`` if more seats have to answer.

        With ``wait`` that is also so if the missing votes cannot decide any more, because they may be objections.
        """
        results, seats, choices = list(self.results.values()), len(self.chain.seats), self.question.choices
        to_pass, to_fail = find_needed_votes(self.chain.strategy, seats, self.chain.quorum)
        if choices:
            return count_choices(results, seats, to_pass, choices, wait=wait)
        return count_votes(results, seats, to_pass, to_fail, wait=wait)

    async def _ask_in_order(self) -> Verdict:
        """Ask one seat after the other: fallback and cascade."""
        chain = self.chain
        for seat in range(len(chain.seats)):
            self._start_seat(seat)
            while seat not in self.results:  # the answer may be the end of an earlier seat that gave an early result
                await self._wait_for_answers(None)
            result = self.results[seat]
            self.verdict = self.verdict or self._decide_by_answer(seat, result)
            # Tampering and contradiction end the sequence even where every seat is to be asked.
            if self.verdict is not None and (chain.stop_early or result.undecided_because in ENDING):
                return self.verdict
        return self.verdict or decide_unanswered(list(self.results.values()), cascade=chain.strategy == "cascade")

    def _decide_by_answer(self, seat: int, result: JudgeResult) -> Verdict | None:
        """Decide by the answer of a seat in a fallback or cascade; ``None`` means that the next seat is asked."""
        earlier = [self.results[earlier_seat] for earlier_seat in range(seat)]
        if self.chain.strategy == "fallback":
            return decide_fallback(result, earlier)
        is_last = seat == len(self.chain.seats) - 1
        sure_at = None if is_last else (self.chain.escalate_below or ())[seat]
        return decide_cascade(result, earlier, sure_at=sure_at, abstain_below=self.chain.abstain_below)

    async def _ask_hedged(self) -> Verdict:
        """Start the next seat when the last one is late or could not decide; the first to decide wins."""
        chain, seat_count = self.chain, len(self.chain.seats)
        clock = asyncio.get_running_loop().time
        late_at = 0.0  # the time from which the seat that was started last counts as late
        has_ending_answer = False
        while self.verdict is None or not (chain.stop_early or has_ending_answer):
            next_seat = len(self.seat_started_at)
            is_due = next_seat == 0 or next_seat - 1 in self.results or clock() >= late_at
            if next_seat < seat_count and is_due:
                self._start_seat(next_seat)
                late_at = clock() + (chain.hedge_after or 0.0)
            if not self.running:
                break
            wait = max(late_at - clock(), 0.0) if len(self.seat_started_at) < seat_count else None
            answers = await self._wait_for_answers(wait)
            self.verdict = self.verdict or decide_hedged(answers)
            has_ending_answer = any(result.undecided_because in ENDING for result in answers)
        return self.verdict or decide_unanswered(list(self.results.values()))

    async def _wait_for_answers(self, wait: float | None) -> list[JudgeResult]:
        """Wait for the next answers, and return those that came at the same moment, in seat order.

        Returns none if ``wait`` seconds pass without any.
        """
        awaited = {**self.early_results, **self.running}
        done, _ = await asyncio.wait(awaited, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        # Sorted by seat, because a set has no order, and the result of the chain must not depend on one. The final
        # result of a seat comes after its early result.
        ordered = sorted(done, key=lambda future: (awaited[future], future not in self.early_results))
        seats = [self._store_result(future) for future in ordered]
        return [self.results[seat] for seat in dict.fromkeys(seats)]

    def _store_result(self, future: asyncio.Future[Any]) -> int:
        """Store the early or final result of a seat, and return the seat."""
        if not isinstance(future, asyncio.Task):
            seat = self.early_results.pop(future)
            self.results[seat] = replace(future.result(), judge=self.chain.names[seat])
            return seat
        seat = self.running.pop(future)
        self.early_results = {early: other for early, other in self.early_results.items() if other != seat}
        # The chain does not cancel a task that it waits for, so this one cancelled itself, which is an error.
        if future.cancelled():
            self.results[seat] = self._make_undecided(seat, "error", "the judge cancelled itself")
        else:
            self.results[seat] = future.result()
        return seat

    def _start_seat(self, seat: int) -> None:
        """Start to ask a seat; a chain gets a future for an early result if the question waits for objections."""
        self.seat_started_at[seat] = time.perf_counter()
        early_result: _EarlyResult | None = None
        _, judge = self.chain.seats[seat]
        if self.question.wants_objections and isinstance(judge, JudgeChain):
            early_result = asyncio.get_running_loop().create_future()
            self.early_results[early_result] = seat
        # A bare task: the chain waits for the first seat to answer, and then for those it cancelled.
        self.running[asyncio.ensure_future(self._ask_seat(seat, early_result))] = seat

    async def _ask_seat(self, seat: int, early_result: _EarlyResult | None) -> JudgeResult:
        """Return one seat's result under its own limit; an ``Exception`` becomes an undecided result."""
        name, judge = self.chain.seats[seat]
        limit, result = Timeout(self.chain.timeout), None
        try:
            result = await self._ask_judge(seat, judge, limit, early_result)
            problem = _find_problem(result, self.question)
        except FunctionError:  # a mistake in the program: as an undecided result, a policy could let it pass
            raise
        except Exception as error:  # noqa: BLE001 - a seat that raises is undecided, and still counts as a seat
            problem = describe_error(error)
        if limit.late:
            detail = f"no answer within {self.chain.timeout:g} s, the limit of each judge in the chain"
            return self._end_seat(seat, "timeout", f"{detail}; raise the timeout of the chain")
        if problem or result is None:
            return self._make_undecided(seat, "error", problem)
        return result if result.judge == name else replace(result, judge=name)

    async def _ask_judge(
        self, seat: int, judge: JudgeLike, limit: Timeout, early_result: _EarlyResult | None
    ) -> JudgeResult:
        """Ask the judge of a seat: a ``Judge``, a chain, or a judge of the user's own class."""
        if not is_ours(judge):
            question = self.question
            # A chain behind such a judge cannot hand over an early result. So it is asked to fail as soon as it can. If
            # it waited for more objections, a limit out here could cut it off and lose this one, and a policy would let
            # the content pass. It may stop at its first pass only if that is a pass of the outermost chain.
            if question.wants_objections and not question.wants_everybody:
                needs_everybody = not self._passes_with_one_seat()
                question = replace(question, wants_failure_at_once=True, wants_everybody=needs_everybody)
            return await limit.run(judge.ask(question), name=f"judge {self.chain.names[seat]!r}")
        with limit:
            if isinstance(judge, Judge):
                return await judge._answer(self.question)  # noqa: SLF001 - its hook is called when all is settled
            # The run is kept, so that a chain that is cut short still shows which of its seats had failed: then no
            # policy may let the content pass.
            position = self._make_position(seat, early_result)
            inner_run = self.inner_runs[seat] = judge._start_run(self.question, position)  # noqa: SLF001 - a chain of our own
            return await inner_run.finish()

    def _passes_with_one_seat(self) -> bool:
        """Return whether a pass of any one seat is a pass of the outermost chain."""
        one_pass_is_enough = self.chain.strategy in ("fallback", "hedged") or len(self.chain.seats) == 1
        return self.position.pass_decides and one_pass_is_enough

    def _make_position(self, seat: int, early_result: _EarlyResult | None) -> _Position:
        """Make the position of an inner chain that is a seat of this one."""
        is_followed = self.chain.strategy not in COUNTING and seat < len(self.chain.seats) - 1
        return _Position(
            early_result=early_result,
            pass_decides=self._passes_with_one_seat(),
            may_end_sequence=self.position.may_end_sequence or is_followed,
        )

    def _end_seat(self, seat: int, because: Reason, detail: str) -> JudgeResult:
        """Return the result of a seat that a limit or this chain cut short.

        It is undecided, unless the seat is a chain that already has a final verdict.
        """
        inner_run = self.inner_runs.get(seat)
        if inner_run is not None and inner_run.final_verdict is not None:
            result = inner_run.make_result(inner_run.final_verdict)
            return replace(result, judge=self.chain.names[seat], cut_short=True)
        return self._make_undecided(seat, because, detail)

    def _make_undecided(self, seat: int, because: Reason, detail: str) -> JudgeResult:
        """Make the undecided result of a seat; if that is a chain, with the results that its own seats have by now."""
        inner_run = self.inner_runs.get(seat)
        members: dict[str, Any] = {
            "outcome": "undecided",
            "undecided_because": because,
            "judge": self.chain.names[seat],
            "detail": " ".join(detail.split())[:500],
            "threshold": self.question.threshold,
            "duration_ms": measure_ms(self.seat_started_at[seat]),
            "question": self.question.digest,
            "subject": self.question.subject,
        }
        if inner_run is None:
            return JudgeResult(**members)
        results = sort_by_seat(inner_run.results)
        return JudgeChainResult(
            **members,
            decided_by="policy",
            strategy=inner_run.chain.strategy,
            results=results,
            cut_short=True,
            attempts=sum(result.attempts for result in results),
            text_after=sum(result.text_after for result in results),
            usage=add_usage(results),
        )

    async def _stop_seats(self, because: Reason, detail: str) -> None:
        """Cancel the seats that still run, wait until they have ended, and store their results."""
        running, self.running = self.running, {}
        # An answer that is there by now counts. One that comes only after the cancellation is late.
        answered = {task for task in running if task.done() and not task.cancelled()}
        try:
            await stop_tasks(running)
        finally:
            for task, seat in sorted(running.items(), key=lambda pair: pair[1]):
                self.results[seat] = task.result() if task in answered else self._end_seat(seat, because, detail)

    def make_result(self, verdict: Verdict) -> JudgeChainResult:
        """Make the chain's result from the verdict and every seat; an undecided verdict may pass by ``fail_open``."""
        chain, results = self.chain, sort_by_seat(self.results)
        passes_by_policy = (
            verdict.outcome == "undecided"
            and chain.fail_open
            and may_open(results)
            and not has_stopped_seat(results, hedged=chain.strategy == "hedged")
        )
        return _make_chain_result(
            chain,
            self.question,
            self._make_answer(verdict, results, passes_by_policy=passes_by_policy),
            judge=chain.name,
            shown=verdict.seat,
            results=results,
            duration_ms=measure_ms(self.started_at),
        )

    def _make_answer(self, verdict: Verdict, results: Sequence[JudgeResult], *, passes_by_policy: bool) -> Answer:
        """Make the chain's answer from a verdict, with score, criteria and reasoning of the seat that decided."""
        detail = _explain_verdict(self.chain, verdict, results, passes_by_policy=passes_by_policy)
        shown = verdict.seat
        confidence = self._find_confidence(verdict, results)
        if shown is None:
            return Answer(
                outcome="passed" if passes_by_policy else "undecided",
                because=None if passes_by_policy else verdict.because,
                decided_by="policy",
                threshold=self.question.threshold,
                confidence=confidence,
                detail=detail,
            )
        return Answer(
            outcome=verdict.outcome,
            decided_by=shown.decided_by,
            score=shown.score,
            threshold=shown.threshold,
            confidence=confidence,
            criteria=shown.criteria,
            reasoning=shown.reasoning,
            suggestions=shown.suggestions,
            value=shown.value,
            detail=detail,
        )

    def _find_confidence(self, verdict: Verdict, results: Sequence[JudgeResult]) -> float | None:
        """Return the confidence of a verdict: that of the seat that decided, or the share of votes for the outcome."""
        seats = len(self.chain.seats)
        if self.chain.strategy not in COUNTING:
            return verdict.seat.confidence if verdict.seat is not None else None
        if self.question.choices:
            return share_choices(results, verdict.seat, seats)
        return share_votes(results, verdict.outcome, seats)


def is_ours(judge: object) -> TypeGuard[Judge | JudgeChain]:
    """Return whether a judge is a ``Judge`` or ``JudgeChain`` whose ``ask`` is not overridden.

    The chain asks these by their private methods and calls their hooks itself. Any other judge does so in its ``ask``.
    """
    return asks_as(judge, Judge) or asks_as(judge, JudgeChain)


def has_release_policy(judge: object) -> bool:
    """Return whether a seat of a chain, at any depth, may decide alone by a release policy."""
    if not asks_as(judge, JudgeChain):
        return False
    by_policy = any(isinstance(bound, SeatRelease) for bound in judge.escalate_below or ())
    return by_policy or any(has_release_policy(seat) for _, seat in judge.seats)


def list_leaves(judge: object) -> Iterator[object]:
    """Yield every single judge in a judge or chain, at any depth, also those of the user's own class."""
    if asks_as(judge, JudgeChain):
        for _, seat in judge.seats:
            yield from list_leaves(seat)
    else:
        yield judge


def list_judges(judge: object) -> list[Judge]:
    """Return every ``Judge`` in a judge or chain, at any depth. Of other classes the models are not known."""
    return [leaf for leaf in list_leaves(judge) if asks_as(leaf, Judge)]


def _check_release(chain: JudgeChain, release: SeatRelease, question: Question) -> None:
    """Raise ``UsageError`` where a seat's release policy was calibrated with another rubric than the question's."""
    described = None if question.rubric is None else question.rubric.to_dict()
    if release.rubric is None or digest_description(described) != release.rubric:
        raise UsageError(
            f"a seat of the chain {chain.name!r} may decide alone by a release policy of another rubric; ask by the "
            "rubric that it was calibrated with, or calibrate again",
            argument="escalate_below",
        )


def _check_seat(seat: JudgeLike, question: Question) -> None:
    """Call the ``check`` of a seat, if it has one. Raises ``UsageError`` for a question that the seat refuses.

    Any other exception of it is only logged.
    """
    try:
        check = getattr(seat, "check", None)
        if check is not None:
            check(question)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001
        # A judge of the user's own class may mean something else by ``check``. It is asked all the same.
        logger.debug("the check of judge %r raised %s", seat.name, type(error).__name__)


def _has_hook(seat: JudgeLike) -> bool:
    """Return whether a chain has to call a hook for a seat: ``on_result`` of a judge, or any hook of an inner chain."""
    return is_ours(seat) and (seat._has_hooks if isinstance(seat, JudgeChain) else seat.on_result is not None)  # noqa: SLF001


def _find_problem(result: object, question: Question) -> str:
    """Find the reason why a seat's result cannot be used; an empty text if it can."""
    if not isinstance(result, JudgeResult):
        return f"the judge returned {type(result).__name__}, not a JudgeResult"
    if result.passed and result.decided_by == "policy":
        return "a policy inside the seat let it pass; fail_open belongs to the outermost chain"
    names_choice = isinstance(result.value, str) and result.value in question.choices
    answers_comparison = result.undecided_because or (result.passed and names_choice)
    if question.choices and not answers_comparison:
        return f"a comparison is answered by passed with {', '.join(question.choices)} as the value, or by undecided"
    if result.question is not None and result.question != question.digest:
        return "the judge returned its answer to another question"
    return ""


_NO_REPLY = JudgeResult(judge="", outcome="undecided", undecided_because="error")
"""The result in place of a seat's, for a chain's result that shows the reply of no seat: it has no reply."""


def _make_chain_result(
    chain: JudgeChain,
    question: Question,
    answer: Answer,
    *,
    judge: str,
    duration_ms: float,
    shown: JudgeResult | None = None,
    results: tuple[JudgeResult, ...] = (),
) -> JudgeChainResult:
    """Make a chain's result from its answer, every seat's result, and the seat whose reply is ``shown``, if any is."""
    replied = shown if shown is not None else _NO_REPLY
    return JudgeChainResult(
        strategy=chain.strategy,
        outcome=answer.outcome,
        undecided_because=answer.because,
        judge=judge,
        score=answer.score,
        threshold=answer.threshold,
        confidence=answer.confidence,
        criteria=answer.criteria,
        parts=replied.parts,
        reasoning=answer.reasoning,
        suggestions=answer.suggestions,
        value=answer.value,
        decided_by=answer.decided_by,
        detail=answer.detail,
        results=results,
        model=replied.model,
        model_requested=replied.model_requested,
        model_expected=replied.model_expected,
        raw_response=replied.raw_response,
        finish_reason=replied.finish_reason,
        request_id=replied.request_id,
        attempts=sum(result.attempts for result in results),
        text_after=sum(result.text_after for result in results),
        usage=add_usage(results),
        duration_ms=duration_ms,
        rule_results=question.rule_results,
        question=question.digest,
        subject=question.subject,
        metadata=question.metadata,
    )


_SEQUENTIAL = ("fallback", "hedged", "cascade")
"""Strategies in which a seat may decide because an earlier one did not."""


def _describe_earlier(seat: JudgeResult, results: Sequence[JudgeResult]) -> str:
    """Describe which seats were asked before the one that decided, and why they did not decide; empty if none was."""
    earlier = list(takewhile(lambda result: result.id != seat.id, results))
    earlier = [result for result in earlier if result.undecided_because != "cancelled"]
    reasons = ", ".join(f"{result.judge} ({result.undecided_because or 'unsure'})" for result in earlier)
    return f"{seat.judge} decided after {reasons}" if reasons else ""


def _explain_verdict(
    chain: JudgeChain, verdict: Verdict, results: Sequence[JudgeResult], *, passes_by_policy: bool
) -> str:
    """Explain in a sentence which seat decided, or why none did."""
    if verdict.seat is not None:
        earlier = _describe_earlier(verdict.seat, results) if chain.strategy in _SEQUENTIAL else ""
        return "; ".join([sentence for sentence in (earlier, verdict.seat.detail) if sentence])
    reasons = "; ".join(f"{result.judge}: {result.undecided_because or result.outcome}" for result in results)
    return f"nobody decided and fail_open let it pass ({reasons})" if passes_by_policy else reasons


def _list_seats(judges: Any) -> Sequence[Any]:
    """Return the judges of a chain as they are. Raises ``UsageError`` if they are no list, or an empty one."""
    if isinstance(judges, str) or not isinstance(judges, Sequence):
        raise UsageError(f"judges must be a list of judges, got {type(judges).__name__}", argument="judges")
    if not judges:
        raise UsageError("a chain needs at least one judge; the list is empty", argument="judges")
    return judges


def _name_seats(seats: list[JudgeLike]) -> list[tuple[str, JudgeLike]]:
    """Return the seats with their names; equal names become ``a``, ``a#2``."""
    names: set[str] = set()
    named_seats = []
    for seat in seats:
        name, number = seat.name, 2
        while name in names:
            name, number = f"{seat.name}#{number}", number + 1
        names.add(name)
        named_seats.append((name, seat))
    return named_seats
