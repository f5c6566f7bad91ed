"""Several judges as one: who is asked when, under which clock, and what happens to those who lose.

What the seats' results add up to is in ``chain_outcome.py``; here is the concurrency around it. Losing and late calls
are cancelled and awaited, never abandoned, and status travels beside the text: nothing a reply says can change who is
asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeGuard

from adjudge.concurrency import Timeout, describe_error, is_for_us, stop_tasks
from adjudge.errors import Reason, UsageError
from adjudge.formats.arguments import check_flag, check_functions, check_timeout
from adjudge.hooks import logger, notify
from adjudge.judges.chain_outcome import (
    COUNTING,
    ENDING,
    Strategy,
    Verdict,
    check_options,
    count,
    count_choices,
    descend,
    exhaust,
    follow,
    hedge,
    in_seat_order,
    may_open,
    needed,
    share_choices,
    share_votes,
    was_cut,
)
from adjudge.judges.evaluate import Evaluates, JudgeLike, add_usage, log_result, since
from adjudge.judges.judge import Judge, ModelSource, as_seat, asks_as, make_question
from adjudge.models.model import Model
from adjudge.question.question import Answer, Question
from adjudge.result import JudgeChainResult, JudgeResult, UnfitResultError, copy_result, is_countable
from adjudge.rubric.rubric import Rubric


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class JudgeChain(Evaluates[JudgeChainResult]):
    """Several judges that answer as one.

    ``judges`` are model names, functions, ``(name, function)`` pairs, judges and chains. Each is one *seat*, also an
    inner chain. Equal names become ``a``, ``a#2``. ``strategy`` says in which order the seats are asked and how their
    answers add up: ``fallback``, ``consensus``, ``majority``, ``quorum``, ``hedged`` or ``cascade``. If they do not
    add up to an outcome, the chain is undecided and does not pass, unless ``fail_open`` says otherwise.

    Raises ``UsageError`` for an empty chain, an unknown strategy, a parameter of another strategy, and limits that are
    not finite numbers above 0.
    """

    judges: Sequence[JudgeLike | ModelSource] = field(kw_only=False)
    strategy: Strategy = "fallback"
    name: str = ""
    """The chain's name in results; by default the strategy and the names of the seats."""
    timeout: float | None = 5.0
    """Seconds for one seat, including its retries; ``None`` means no limit."""
    deadline: float | None = None
    """Seconds for the whole chain; seats that have not finished by then are ``undecided: timeout``."""
    fail_open: bool = False
    """Let an undecided chain pass, by policy, if no seat at any depth failed, was ``tampering`` or ``contradiction``,
    or was stopped by a counting chain."""
    quorum: int | None = None
    """How many seats must pass with ``quorum``."""
    hedge_after: float | None = None
    """Seconds after which ``hedged`` starts the next seat."""
    escalate_below: float | Sequence[float] | None = None
    """The confidence, in 0 to 1, from which a seat of a ``cascade`` is sure: one number, or one per seat except the
    last."""
    abstain_below: float | None = None
    """The confidence, in 0 to 1, below which the last seat of a ``cascade`` gives ``undecided: unsure``."""
    stop_early: bool = True
    """Cancel the remaining seats when the outcome is settled; ``False`` asks every seat."""
    on_result: Callable[[JudgeChainResult], Any] | None = None
    """Called with every result of the chain, after the hooks of its seats; sync or async, and awaited. What it raises
    is logged and not raised."""
    _seats: tuple[tuple[str, JudgeLike], ...] = field(default=(), init=False)
    """``judges`` once more, with the type that they have when the chain is made."""
    _sure_at: tuple[float, ...] = field(default=(), init=False, repr=False, compare=False)
    """``escalate_below`` as one number per seat but the last."""
    _hooked: bool = field(default=False, init=False)
    """Whether anybody is to be told of a result: this chain's hook, or one of a seat."""

    def __post_init__(self) -> None:
        # A seat's own limit is the chain's: a judge made here must not cut the chain's timeout short.
        seats = tuple(_name_apart([as_seat(item, timeout=None) for item in _list_seats(self.judges)]))
        object.__setattr__(self, "judges", seats)
        object.__setattr__(self, "_seats", seats)
        sure_at = check_options(
            self.strategy,
            len(seats),
            quorum=self.quorum,
            hedge_after=self.hedge_after,
            escalate_below=self.escalate_below,
            abstain_below=self.abstain_below,
        )
        object.__setattr__(self, "_sure_at", sure_at or ())
        if sure_at is not None:
            object.__setattr__(self, "escalate_below", sure_at)
        check_timeout("timeout", self.timeout)
        check_timeout("deadline", self.deadline)
        check_flag("fail_open", self.fail_open)
        check_flag("stop_early", self.stop_early)
        check_functions("a chain", on_result=self.on_result)
        hooked = self.on_result is not None or any(_listens(seat) for _, seat in seats)
        object.__setattr__(self, "_hooked", hooked)
        for _, seat in seats:
            if isinstance(seat, JudgeChain) and seat.fail_open:
                raise UsageError(f"fail_open belongs to the outermost chain; take it off the inner chain {seat.name!r}")
        if not self.name:
            object.__setattr__(self, "name", f"{self.strategy}({', '.join(name for name, _ in seats)})")

    @property
    def names(self) -> tuple[str, ...]:
        """The seats' names, in order."""
        return tuple(name for name, _ in self._seats)

    @property
    def seats(self) -> tuple[tuple[str, JudgeLike], ...]:
        """The judges with their names, in order."""
        return self._seats

    async def ask(self, question: Question | str, /) -> JudgeChainResult:
        """Ask the seats as the strategy says. If a seat raises, that seat is undecided."""
        posed = make_question(question)
        self.check(posed)
        run = self._begin(posed)
        result = await run.finish()
        if self._hooked:
            await run.tell(result)
        return result

    def check(self, question: Question) -> None:
        """Raise ``UsageError`` for mistakes that can be found before any seat is asked."""
        if question.model is not None:
            raise UsageError(
                f"model {question.model!r} was given to the chain {self.name!r}, whose seats have models of their own; "
                "ask a single Judge, or leave the model out"
            )
        if self.fail_open and question.choices:
            raise UsageError(
                f"the chain {self.name!r} has fail_open=True, which lets content pass when nobody decided; "
                "a comparison has nothing to let pass, so ask a chain without it"
            )
        for _, seat in self._seats:
            _check_seat(seat, question)

    def map_models(self, change: Callable[[Model], Model]) -> JudgeChain:
        """Return a chain like this one, with the same names, in which every model, at any depth, is ``change(model)``.

        Judges of another kind, and subclasses that override ``ask``, are left unchanged.
        """
        if not asks_as(self, JudgeChain):
            return self
        seats = [seat.map_models(change) if is_ours(seat) else seat for _, seat in self.seats]
        return replace(self, judges=seats, name=self.name)

    async def aclose(self) -> None:
        """Close the connections of every seat."""
        for _, seat in self._seats:
            close = getattr(seat, "aclose", None)
            if close is not None:
                await close()

    def __repr__(self) -> str:
        return f"JudgeChain({self.name!r}, strategy={self.strategy!r})"

    def _begin(self, question: Question, outer: _Outer | None = None) -> _Run:
        if self.fail_open or (self.strategy == "cascade" and not question.wants_confidence):
            question = replace(
                question,
                wants_objections=question.wants_objections or self.fail_open,
                wants_confidence=question.wants_confidence or self.strategy == "cascade",
            )
        return _Run(self, question, outer)

    def _own_rubric(self) -> Rubric | None:
        """The rubric all seats have as their own; where they differ, a call has to say which it means."""
        owned = [seat._own_rubric() if isinstance(seat, Evaluates) else None for _, seat in self._seats]  # noqa: SLF001
        first = owned[0]
        if first is not None and all(item == first for item in owned):
            return first
        return None

    def _settle(self, question: Question, answer: Answer, duration_ms: float) -> JudgeChainResult:
        return _make_chain_result(self, question, answer, judge="rules", attempts=0, duration_ms=duration_ms)


_Said = asyncio.Future[JudgeChainResult]
"""What a chain has decided, for the chain around it, while it hears the rest of its seats for a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outer:
    """What a chain inside another has to know of that one."""

    early: _Said | None
    decides: bool
    """Whether a pass of this seat is a pass of the outermost chain."""
    minds: bool
    """Whether why this seat is undecided decides what is asked next: tampering in it ends a sequence."""


class _Run:
    """One question put to a chain. It lives as long as the call, and leaves no task behind."""

    def __init__(self, chain: JudgeChain, question: Question, outer: _Outer | None) -> None:
        self.chain, self.question = chain, question
        self.outer = outer if outer is not None else _Outer(early=None, decides=True, minds=False)
        self.begun = time.perf_counter()
        self.running: dict[asyncio.Task[JudgeResult], int] = {}
        self.soon: dict[_Said, int] = {}
        """What inner chains will have decided, perhaps long before they have heard everybody."""
        self.known: dict[int, JudgeResult] = {}
        """Results by seat; insertion order is the order of the answers."""
        self.started: dict[int, float] = {}
        self.inner: dict[int, _Run] = {}
        """The runs of seats that are chains themselves."""
        self.settled: Verdict | None = None
        """What was decided while others are still waited for; no deadline takes it back."""
        self.hearing = False
        """Whether they are waited for on a policy's behalf alone; no limit around this chain takes it back either."""

    async def finish(self) -> JudgeChainResult:
        """The result, once the chain is settled."""
        verdict = await self.until_settled()
        result = self.conclude(verdict, since(self.begun))
        log_result(result)
        return result

    async def tell(self, result: JudgeResult) -> None:
        """Hand every seat's result to the seat's own hook, and this one to the chain's.

        Only now that all is settled: a hook called while a seat's limit runs would make a slow hook a seat that is
        late, and could turn one outcome into another.
        """
        for seat, said in sorted(self.known.items()):
            inner, judge = self.inner.get(seat), self.chain.seats[seat][1]
            if inner is not None:
                await inner.tell(said)
            elif is_ours(judge):
                await notify(judge.on_result, said, what="on_result")
        await notify(self.chain.on_result, result, what="on_result")

    async def until_settled(self) -> Verdict:
        """Ask until the outcome is settled or the deadline is over; whatever still runs is cancelled and awaited."""
        limit = Timeout(self.chain.deadline)
        try:
            with limit:
                verdict = await self._pursue()
                await self._wait_for_rest(verdict)
        except TimeoutError:
            if not limit.late:
                raise
            await self._stop("timeout", f"not finished within the chain's {self.chain.deadline:g} s")
            verdict = self._settle_late()
        finally:
            # Also on the way out of a cancellation: a caller that goes away leaves no call running and paid for.
            await self._stop("cancelled", "the chain was settled without it")
        return verdict

    async def _wait_for_rest(self, verdict: Verdict) -> None:
        """Wait for everybody that a policy has to know of, unless the outermost chain has passed.

        Only what is heard can keep a policy from opening: without this, finishing order alone would turn a block into
        a pass. The chain around this one is told at once what is decided here, and goes on; when the outermost passes,
        it stops whatever still waits in here.
        """
        self.settled, early = verdict, self.outer.early
        if not self.question.wants_objections or (verdict.outcome == "passed" and early is None):
            return
        self.hearing = True
        if early is not None and not early.done() and verdict.outcome != "undecided" and self.running:
            early.set_result(self.conclude(verdict, since(self.begun)))
        # A hedged chain cuts its slower seats all the same; those it knows of still hear the rest of theirs.
        while any(self.chain.strategy != "hedged" or seat in self.known for seat in self.running.values()):
            await self._next_answers(None)

    def _settle_late(self) -> Verdict:
        if self.settled is not None:
            return self.settled
        known = list(self.known.values())
        if self.chain.strategy in COUNTING:
            return self._tally(wait=False) or exhaust(known)
        return exhaust(known, cascade=self.chain.strategy == "cascade")

    async def _pursue(self) -> Verdict:
        if self.chain.strategy in COUNTING:
            return await self._count()
        if self.chain.strategy == "hedged":
            return await self._hedge()
        return await self._walk()

    async def _count(self) -> Verdict:
        chain = self.chain
        for seat in range(len(chain.seats)):
            self._start(seat)
        # A cascade asks how sure we are, which is the share of votes: it is known when everybody has voted. And a guard
        # has to know of every seat that would have said no.
        stop_early = chain.stop_early and not self.question.wants_confidence and not self.question.wants_everybody
        waits = self.question.wants_objections or (self.question.wants_reasons and self.outer.minds)
        while self.running and (self.settled is None or not stop_early):
            await self._next_answers(None)
            self.settled = self.settled or self._tally(wait=waits or not stop_early)
        return self.settled or exhaust(list(self.known.values()))

    def _tally(self, *, wait: bool) -> Verdict | None:
        known, seats, choices = list(self.known.values()), len(self.chain.seats), self.question.choices
        to_pass, to_fail = needed(self.chain.strategy, seats, self.chain.quorum)
        if choices:
            return count_choices(known, seats, to_pass, choices, wait=wait)
        return count(known, seats, to_pass, to_fail, wait=wait)

    async def _walk(self) -> Verdict:
        """One seat after the other: fallback and cascade."""
        chain = self.chain
        for seat in range(len(chain.seats)):
            self._start(seat)
            while seat not in self.known:  # an earlier one that has decided may still hear the rest of its own seats
                await self._next_answers(None)
            result = self.known[seat]
            self.settled = self.settled or self._weigh(seat, result)
            # Tampering and contradiction end the sequence even where everybody is to be asked.
            if self.settled is not None and (chain.stop_early or result.undecided_because in ENDING):
                return self.settled
        return self.settled or exhaust(list(self.known.values()), cascade=chain.strategy == "cascade")

    def _weigh(self, seat: int, result: JudgeResult) -> Verdict | None:
        earlier = [self.known[before] for before in range(seat)]
        if self.chain.strategy == "fallback":
            return follow(result, earlier)
        last = seat == len(self.chain.seats) - 1
        sure_at = None if last else self.chain._sure_at[seat]  # noqa: SLF001 - of the same module
        return descend(result, earlier, sure_at=sure_at, abstain_below=self.chain.abstain_below)

    async def _hedge(self) -> Verdict:
        """The next seat starts when the last one is late or could not decide; the first to decide wins."""
        chain, seats = self.chain, len(self.chain.seats)
        clock, late_at = asyncio.get_running_loop().time, 0.0
        ended = False
        while self.settled is None or not (chain.stop_early or ended):
            following = len(self.started)
            if following < seats and (following == 0 or following - 1 in self.known or clock() >= late_at):
                self._start(following)
                late_at = clock() + (chain.hedge_after or 0.0)
            if not self.running:
                break
            wait = max(late_at - clock(), 0.0) if len(self.started) < seats else None
            looked = await self._next_answers(wait)
            self.settled = self.settled or hedge(looked)
            ended = any(result.undecided_because in ENDING for result in looked)
        return self.settled or exhaust(list(self.known.values()))

    async def _next_answers(self, wait: float | None) -> list[JudgeResult]:
        """The answers of one look, in seat order; empty when ``wait`` seconds went by without any."""
        waited = {**self.soon, **self.running}
        done, _ = await asyncio.wait(waited, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        # In seat order: a set has none, and which seat's score is shown must not depend on it. What a seat says in the
        # end comes after what it said early.
        seats = [self._keep(task) for task in sorted(done, key=lambda task: (waited[task], task not in self.soon))]
        return [self.known[seat] for seat in dict.fromkeys(seats)]

    def _keep(self, task: asyncio.Future[Any]) -> int:
        if not isinstance(task, asyncio.Task):
            seat = self.soon.pop(task)
            self.known[seat] = replace(task.result(), judge=self.chain.names[seat])
            return seat
        seat = self.running.pop(task)
        self.soon = {said: place for said, place in self.soon.items() if place != seat}
        # Nobody here cancels a task that is waited for, so a cancelled one cancelled itself: that is a failure.
        ended = "the judge cancelled itself"
        self.known[seat] = self._silent(seat, "error", ended) if task.cancelled() else task.result()
        return seat

    def _start(self, seat: int) -> None:
        self.started[seat] = time.perf_counter()
        early: _Said | None = None
        if self.question.wants_objections and isinstance(self.chain.seats[seat][1], JudgeChain):
            early = asyncio.get_running_loop().create_future()
            self.soon[early] = seat
        # A bare task: the chain waits for the first seat to answer, and then for those it cancelled.
        self.running[asyncio.ensure_future(self._ask_seat(seat, early))] = seat

    async def _ask_seat(self, seat: int, early: _Said | None) -> JudgeResult:
        """One seat's result under its own limit; only a cancellation gets past this."""
        name, judge = self.chain.seats[seat]
        limit, result = Timeout(self.chain.timeout), None
        try:
            result = await self._ask_judge(seat, judge, limit, early)
            result = result if is_ours(judge) else copy_result(result, judge=name)
            trouble = _find_trouble(result, self.question)
        except asyncio.CancelledError:
            raise  # a seat's own as well: its task then is a cancelled one that nobody had cancelled
        except BaseException as error:
            if is_for_us(error):
                raise
            # Whatever else a seat raises, or returns in place of a result, the seat is undecided.
            trouble = str(error) if isinstance(error, UnfitResultError) else describe_error(error)
        if limit.late:
            limit_of = f"no answer within {self.chain.timeout:g} s, the limit of each judge in the chain"
            return self._silent(seat, "timeout", f"{limit_of}; raise the timeout of the chain")
        if trouble or result is None:
            return self._silent(seat, "error", trouble)
        return result if result.judge == name else replace(result, judge=name)

    async def _ask_judge(self, seat: int, judge: JudgeLike, limit: Timeout, early: _Said | None) -> JudgeResult:
        if not is_ours(judge):
            # A chain in there cannot tell us early: only where its pass passes everything may it stop at one.
            all_of_it = self.question.wants_objections and not self._place(seat, None).decides
            posed = replace(self.question, wants_everybody=True) if all_of_it else self.question
            return await limit.run(judge.ask(posed), what=f"judge {self.chain.names[seat]!r}")
        with limit:
            if isinstance(judge, Judge):
                return await judge._answer(self.question)  # noqa: SLF001 - its hook is called when all is settled
            # Kept, so that a chain cut short still shows which of its seats had failed: no policy may open over them.
            inner = self.inner[seat] = judge._begin(self.question, self._place(seat, early))  # noqa: SLF001 - a chain of our own
            return await inner.finish()

    def _place(self, seat: int, early: _Said | None) -> _Outer:
        """What a seat has to know of where it stands."""
        last, counts = len(self.chain.seats) - 1, self.chain.strategy in COUNTING
        decides = self.outer.decides and (self.chain.strategy in ("fallback", "hedged") or last == 0)
        return _Outer(early=early, decides=decides, minds=self.outer.minds or not (counts or seat == last))

    def _silent(self, seat: int, because: Reason, detail: str) -> JudgeResult:
        name, inner = self.chain.names[seat], self.inner.get(seat)
        if inner is not None and inner.hearing and inner.settled is not None and because != "error":
            concluded = inner.conclude(inner.settled, since(inner.begun))
            return replace(concluded, judge=name, cut_short=True)
        known: dict[str, Any] = {
            "outcome": "undecided",
            "undecided_because": because,
            "judge": name,
            "detail": " ".join(detail.split())[:500],
            "threshold": self.question.threshold,
            "duration_ms": since(self.started[seat]),
            "question": self.question.digest,
            "subject": self.question.subject,
        }
        if inner is None:
            return JudgeResult(**known)
        seats = in_seat_order(inner.known)
        asked = {
            "attempts": sum(item.attempts for item in seats),
            "text_after": sum(item.text_after for item in seats),
            "usage": add_usage(seats),
        }
        known |= {"decided_by": "policy", "strategy": inner.chain.strategy, "results": seats, "cut_short": True}
        return JudgeChainResult(**known, **asked)

    async def _stop(self, because: Reason, detail: str) -> None:
        """Cancel what still runs and wait until it is gone: its connection closed, its thread let go."""
        running, self.running = self.running, {}
        # What had answered by now counts; what answers only because it was told to stop is late.
        answered = {task for task in running if task.done() and not task.cancelled()}
        try:
            await stop_tasks(running)
        finally:
            for task, seat in sorted(running.items(), key=lambda item: item[1]):
                self.known[seat] = task.result() if task in answered else self._silent(seat, because, detail)

    def conclude(self, verdict: Verdict, duration_ms: float) -> JudgeChainResult:
        """The chain's result: the verdict, the policy when nobody decided, and every seat."""
        chain, results = self.chain, in_seat_order(self.known)
        shown = verdict.seat
        may = may_open(results) and not was_cut(results, hedged=chain.strategy == "hedged")
        opened = verdict.outcome == "undecided" and chain.fail_open and may
        by_policy = verdict.outcome == "undecided"
        confidence = shown.confidence if shown is not None else None
        if chain.strategy in COUNTING:
            confidence = share_votes(results, verdict.outcome, len(chain.seats))
            if self.question.choices:
                confidence = share_choices(results, shown, len(chain.seats))
        answer = Answer(
            outcome="passed" if opened else verdict.outcome,
            decided_by="policy" if by_policy else (shown.decided_by if shown is not None else "judge"),
            score=shown.score if shown is not None else None,
            threshold=shown.threshold if shown is not None else self.question.threshold,
            confidence=confidence,
            criteria=shown.criteria if shown is not None else (),
            reasoning=shown.reasoning if shown is not None else "",
            suggestions=shown.suggestions if shown is not None else (),
            value=shown.value if shown is not None else None,
            detail=_explain(chain, verdict, results, opened=opened),
        )
        return _make_chain_result(
            chain,
            self.question,
            answer,
            judge=chain.name,
            undecided_because=None if opened else verdict.because,
            results=results,
            model=shown.model if shown is not None else None,
            model_requested=shown.model_requested if shown is not None else None,
            model_expected=shown.model_expected if shown is not None else None,
            raw_response=shown.raw_response if shown is not None else None,
            finish_reason=shown.finish_reason if shown is not None else None,
            request_id=shown.request_id if shown is not None else None,
            attempts=sum(item.attempts for item in results),
            text_after=sum(item.text_after for item in results),
            usage=add_usage(results),
            duration_ms=duration_ms,
        )


def is_ours(judge: object) -> TypeGuard[Judge | JudgeChain]:
    """Whether a judge is asked by us; a class that asks in its own way calls its hooks itself."""
    return asks_as(judge, Judge) or asks_as(judge, JudgeChain)


def list_leaves(judge: object) -> Iterator[object]:
    """Everybody who is asked in a judge or chain, at any depth: judges of ours, and whatever else there is."""
    if asks_as(judge, JudgeChain):
        for _, seat in judge.seats:
            yield from list_leaves(seat)
    else:
        yield judge


def list_judges(judge: object) -> list[Judge]:
    """The judges of ours in a judge or chain, at any depth: those whose models are known."""
    return [leaf for leaf in list_leaves(judge) if asks_as(leaf, Judge)]


def _check_seat(seat: JudgeLike, question: Question) -> None:
    try:
        ready = getattr(seat, "check", None)
        if ready is not None:
            ready(question)
    except UsageError:
        raise
    except BaseException as error:
        if is_for_us(error):
            raise
        # One of somebody's own that means something else by it is asked all the same, and then says what is wrong.
        logger.debug("the check of judge %r raised %s", seat.name, type(error).__name__)


def _listens(seat: JudgeLike) -> bool:
    return is_ours(seat) and (seat._hooked if isinstance(seat, JudgeChain) else seat.on_result is not None)  # noqa: SLF001


def _find_trouble(result: JudgeResult, question: Question) -> str:
    """What keeps a seat's result from counting, or nothing."""
    if not is_countable(result.usage):  # as a model reports it, so of a judge of ours too
        return "the judge returned a result whose usage cannot be added to that of the others"
    if result.passed and result.decided_by == "policy":
        return "a policy inside the seat let it pass; fail_open belongs to the outermost chain"
    chosen = isinstance(result.value, str) and result.value in question.choices
    if question.choices and not (result.undecided_because or (result.passed and chosen)):
        return f"a comparison is answered by passed with {', '.join(question.choices)} as the value, or by undecided"
    if result.question is not None and result.question != question.digest:
        return "the judge returned its answer to another question"
    return ""


def _make_chain_result(chain: JudgeChain, question: Question, answer: Answer, **more: Any) -> JudgeChainResult:
    return JudgeChainResult(
        strategy=chain.strategy,
        outcome=answer.outcome,
        score=answer.score,
        threshold=answer.threshold,
        confidence=answer.confidence,
        criteria=answer.criteria,
        reasoning=answer.reasoning,
        suggestions=answer.suggestions,
        value=answer.value,
        decided_by=answer.decided_by,
        detail=answer.detail,
        rule_results=question.rule_results,
        question=question.digest,
        subject=question.subject,
        metadata=question.metadata,
        **more,
    )


_SEQUENTIAL = ("fallback", "hedged", "cascade")
"""Strategies in which a seat may decide because an earlier one did not."""


def _describe_earlier(seat: JudgeResult, results: Sequence[JudgeResult]) -> str:
    """Who was asked before the seat that decided, and why that did not settle it; empty where it was the first."""
    earlier = list(takewhile(lambda item: item.id != seat.id, results))
    earlier = [item for item in earlier if item.undecided_because != "cancelled"]
    said = ", ".join(f"{item.judge} ({item.undecided_because or 'unsure'})" for item in earlier)
    return f"{seat.judge} decided after {said}" if said else ""


def _explain(chain: JudgeChain, verdict: Verdict, results: Sequence[JudgeResult], *, opened: bool) -> str:
    if verdict.seat is not None:
        before = _describe_earlier(verdict.seat, results) if chain.strategy in _SEQUENTIAL else ""
        return "; ".join([said for said in (before, verdict.seat.detail) if said])
    said = "; ".join(f"{item.judge}: {item.undecided_because or item.outcome}" for item in results)
    return f"nobody decided and fail_open let it pass ({said})" if opened else said


def _list_seats(judges: Any) -> Sequence[Any]:
    if isinstance(judges, str) or not isinstance(judges, Sequence):
        raise UsageError(f"judges must be a list of judges, got {type(judges).__name__}")
    if not judges:
        raise UsageError("a chain needs at least one judge; the list is empty")
    return judges


def _name_apart(seats: list[JudgeLike]) -> list[tuple[str, JudgeLike]]:
    taken: set[str] = set()
    named = []
    for seat in seats:
        name, number = seat.name, 2
        while name in taken:
            name, number = f"{seat.name}#{number}", number + 1
        taken.add(name)
        named.append((name, seat))
    return named
