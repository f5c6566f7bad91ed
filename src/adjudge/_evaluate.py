"""What judges and chains share: building a question from a call, and asking it.

``evaluate``, its sync door and ``evaluate_many`` are written once, over ``ask``.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypeVar, Unpack, runtime_checkable

from adjudge._asking import Asking, RubricSource, prepare
from adjudge._foreign import log_result, notify
from adjudge._sync import run_sync
from adjudge._tasks import count_cancellations, stop_tasks
from adjudge.dataset._case import Case
from adjudge.errors import UsageError
from adjudge.models._types import Reply
from adjudge.question import Answer, Question
from adjudge.result import JudgeResult, RuleResult, Usage
from adjudge.rubric import Rubric
from adjudge.score import settle_rubric

R = TypeVar("R", bound=JudgeResult)
T = TypeVar("T")

AHEAD = 16
"""Rounds of ``concurrency`` items that are begun while an earlier one takes its time, and wait for it when finished."""


@runtime_checkable
class JudgeLike(Protocol):
    """Anything that answers questions: a judge, a chain, or an object of yours with these two members."""

    @property
    def name(self) -> str:
        """How results call this judge."""
        ...

    def ask(self, question: Question | str, /) -> Coroutine[Any, Any, JudgeResult]:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is."""
        ...


class Evaluates(Generic[R]):
    """``evaluate``, ``evaluate_sync`` and ``evaluate_many`` for whatever can ``ask``."""

    __slots__ = ()

    @property
    def on_result(self) -> Callable[[R], Any] | None:
        """What is called with every result."""
        raise NotImplementedError

    async def evaluate(self, content: object, rubric: RubricSource | None = None, **how: Unpack[Asking]) -> R:
        """Judge some content by a rubric (or ``criteria=``, or ``result_format=``) and return the result.

        ``rubric`` is a ``Rubric``, a path, or the name of a shipped one; without it, the judge's own. The keyword
        arguments are those of ``Asking``. A judgement that failed or could not be made is a result; ``UsageError``
        is raised for what was wrong before anything was asked, ``JudgmentFailed`` only with ``throw_on_fail=True``.
        """
        result = await self._evaluate(content, rubric, how)
        return result.raise_if_failed() if how.get("throw_on_fail") else result

    async def _evaluate(
        self,
        content: object,
        rubric: RubricSource | None,
        how: Asking,
        *,
        wants_objections: bool = False,
        wants_reasons: bool = False,
    ) -> R:
        """``evaluate`` without an exception for what failed; what it wants is that of the question."""
        started = time.perf_counter()
        question = await prepare(content, rubric, self._own_rubric(), how)
        if wants_objections or wants_reasons:
            question = replace(question, wants_objections=wants_objections, wants_reasons=wants_reasons)
        answer = decide_by_rules(question)
        if answer is not None:
            result = self._settle(question, answer, since(started))
            log_result(result)
            await notify(self.on_result, result, what="on_result")
        else:
            result = await self.ask(question)
        return result

    def evaluate_sync(self, content: object, rubric: RubricSource | None = None, **how: Unpack[Asking]) -> R:
        """The same for callers without an event loop; works inside a running loop too, and blocks it."""
        return run_sync(self.evaluate(content, rubric, **how))

    def ask_sync(self, question: Question | str, /) -> R:
        """``ask`` for callers without an event loop."""
        return run_sync(self.ask(question))

    async def evaluate_many(
        self,
        contents: Iterable[object] | AsyncIterable[object],
        rubric: RubricSource | None = None,
        *,
        concurrency: int = 16,
        **how: Unpack[Asking],
    ) -> AsyncGenerator[R, None]:
        """Judge many contents, at most ``concurrency`` at once, and yield the results in the order of the contents.

        A ``Case`` brings its own reference, task, context and metadata, and its id as ``metadata["case"]``. Contents
        are taken as they are needed. What goes wrong with one is its result; a ``UsageError`` ends the iteration.
        Leaving the loop early cancels what still runs.
        """
        judging = work_through(contents, lambda content: self._evaluate_case(content, rubric, how), concurrency)
        async with aclosing(judging) as results:
            async for result in results:
                yield result

    async def ask(self, question: Question | str, /) -> R:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close the connections of every model that may be asked."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _own_rubric(self) -> Rubric | None:
        return None

    def _settle(self, question: Question, answer: Answer, duration_ms: float) -> R:
        """The result when rules decided and nobody was asked."""
        raise NotImplementedError

    async def _evaluate_case(self, content: object, rubric: RubricSource | None, how: Asking) -> R:
        if not isinstance(content, Case):
            return await self.evaluate(content, rubric, **how)
        own = {name: getattr(content, name) for name in ("reference", "task", "context")}
        merged: Asking = {**how, **{name: value for name, value in own.items() if value is not None}}  # type: ignore[typeddict-item]
        # The id last: a case that names another's would be given that one's recorded reply.
        merged["metadata"] = {**content.metadata, **(how.get("metadata") or {}), "case": content.id}
        return await self.evaluate(content.content, rubric, **merged)


def decide_by_rules(question: Question) -> Answer | None:
    """The answer when rules settle the matter before any model is asked, else ``None``."""
    if question.rubric is not None and not question.rule_results:
        return None
    ran = question.rule_results[: len(question.rule_results) - len(question.settled)]
    broken = [f"rule {item.name!r} failed: {item.message}" for item in ran if _decides(item)]
    if broken:
        return Answer(outcome="failed", decided_by="rule", threshold=question.threshold, detail="; ".join(broken))
    if question.rubric is None:
        return None
    if question.value_type is None and len(question.settled) == len(question.rubric.criteria):
        return settle_rubric(question)
    vetoes = [item.name for item in question.settled.values() if item.threshold is not None and not item.passed]
    if not vetoes:
        return None
    named = f"below the threshold of {', '.join(vetoes)}, which a rule decided; no model was asked about the rest"
    known = tuple(question.settled.values())
    return Answer(outcome="failed", decided_by="rule", threshold=question.threshold, criteria=known, detail=named)


def _decides(item: RuleResult) -> bool:
    return not item.passed and item.severity == "error"


def make_result(
    question: Question,
    answer: Answer,
    *,
    judge: str,
    attempts: int,
    duration_ms: float,
    replies: Sequence[Reply] = (),
) -> JudgeResult:
    """A result from an answer, the replies it was read from, and what belongs to the question."""
    last = replies[-1] if replies else _NO_REPLY
    return JudgeResult(
        outcome=answer.outcome,
        judge=judge,
        attempts=attempts,
        duration_ms=duration_ms,
        undecided_because=answer.because,
        model=last.model,
        model_requested=last.model_requested,
        model_expected=last.model_expected,
        raw_response=last.text,
        earlier_responses=tuple([item.text or "" for item in replies[:-1]]) if len(replies) > 1 else (),
        finish_reason=last.finish_reason if replies else None,
        usage=last.usage if len(replies) < 2 else add_usage(replies),
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
    )


_NO_REPLY = Reply()


def add_usage(answered: Sequence[Reply | JudgeResult]) -> Usage | None:
    """What some replies or results used together; ``None`` where nothing is known of any."""
    total: Usage | None = None
    for item in answered:
        if item.usage is not None:
            total = item.usage if total is None else total + item.usage
    return total


def since(started: float) -> float:
    """Milliseconds since a ``time.perf_counter()`` reading."""
    return (time.perf_counter() - started) * 1000.0


async def work_through(
    source: Iterable[object] | AsyncIterable[object],
    work: Callable[[Any], Coroutine[Any, Any, T]],
    concurrency: int,
) -> AsyncGenerator[T, None]:
    """What ``work`` makes of each item, in the order of the items, at most ``concurrency`` at once.

    Items are taken as they are needed. One that takes long holds up what comes after it, but not the work on it, for
    ``AHEAD`` rounds. What ``work`` raises ends the iteration, and leaving it early cancels what still runs.
    """
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise UsageError(f"concurrency must be a whole number of at least 1, got {concurrency!r}")
    async with _Ahead[T](concurrency) as ahead, aclosing(_iterate(source)) as items:
        async for item in items:
            ahead.begin(work(item))
            while not ahead.has_room() or ahead.has_next():
                if not ahead.has_next():
                    await ahead.news()
                    continue
                yield await ahead.begun.popleft()
                if ahead.has_room():  # whoever takes them may take his time: the places are not empty meanwhile
                    break
        while ahead.begun:
            yield await ahead.begun.popleft()


class _Ahead(Generic[T]):
    """Work in the order in which it was begun, of which what is finished early waits for what came before it."""

    def __init__(self, concurrency: int) -> None:
        self.begun: deque[asyncio.Task[T]] = deque()
        self._running: set[asyncio.Task[T]] = set()
        self._concurrency = concurrency
        self._news = asyncio.Event()

    def begin(self, work: Coroutine[Any, Any, T]) -> None:
        """Begin one more."""
        task = asyncio.ensure_future(work)
        self.begun.append(task)
        self._running.add(task)
        task.add_done_callback(self._settle)

    def has_room(self) -> bool:
        """Whether one more may be begun."""
        return len(self._running) < self._concurrency and len(self.begun) < AHEAD * self._concurrency

    def has_next(self) -> bool:
        """Whether one is to be handed out now; not before as many were begun as may run, so that all of them do."""
        return len(self.begun) >= self._concurrency and self.begun[0].done()

    async def news(self) -> None:
        """Wait until one is finished."""
        self._news.clear()
        await self._news.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Cancel what still runs, and wait until it is gone."""
        await stop_tasks(self.begun)

    def _settle(self, task: asyncio.Task[T]) -> None:
        self._running.discard(task)
        self._news.set()


async def _iterate(contents: Iterable[object] | AsyncIterable[object]) -> AsyncGenerator[object, None]:
    if isinstance(contents, AsyncIterable):
        before = count_cancellations()
        async for content in contents:
            if count_cancellations() > before:  # the source has swallowed that we are to stop
                raise asyncio.CancelledError
            yield content
            before = count_cancellations()
    else:
        for content in contents:
            yield content
