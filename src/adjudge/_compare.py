"""A against B: which of two contents is better, asked in both orders."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, get_args

from adjudge._asking import RubricSource
from adjudge._evaluate import JudgeLike, add_usage, since
from adjudge._judge import Judge, ModelSource, check_flag
from adjudge._pair import OnConflict, Order, PairOrder, PairResult, settle_orders
from adjudge._pairing import About, choose_rubric, prepare_pair
from adjudge._short import find_judge
from adjudge._sync import run_sync
from adjudge.chain import JudgeChain
from adjudge.content import content_text, digest_text
from adjudge.dataset._case import Case
from adjudge.errors import UsageError
from adjudge.question import Question
from adjudge.result import JudgeResult

Source = JudgeLike | ModelSource | None
Criteria = str | Sequence[str] | Mapping[str, str] | None


class Comparing(About, total=False):
    """The options of ``compare``."""

    criteria: Criteria
    both_orders: bool
    on_conflict: OnConflict
    ties: bool
    sample: int


async def compare(
    a: object,
    b: object,
    *,
    judge: Source,
    rubric: RubricSource | None = None,
    criteria: Criteria = None,
    both_orders: bool = True,
    on_conflict: OnConflict = "tie",
    ties: bool = True,
    sample: int = 0,
    **about: Unpack[About],
) -> PairResult:
    """Which of two contents is better, by a rubric (or ``criteria``), as a judge or a chain sees it.

    Both orders are asked at once, since judges favour a place. Where they disagree nobody is preferred: it is a tie
    by policy, or undecided (``split``) with ``on_conflict="undecided"``. Where one order could not be decided, the
    pair is not. ``both_orders=False`` asks with ``a`` shown first alone. With ``ties=False`` a judge may not call a
    tie; two orders that disagree can still be one.

    ``judge`` is a judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as its model. In a
    counting chain a preference wins when as many seats chose it as the strategy needs to pass. ``sample`` tells
    repeated comparisons of the same two apart, for caches. The other arguments are those of ``About``. Raises
    ``UsageError`` for what was wrong before anything was asked; what fails afterwards is a result.
    """
    asked = find_judge(judge)
    _check_options(both_orders, on_conflict, ties, sample)
    chosen = choose_rubric(rubric, criteria, asked._own_rubric())  # noqa: SLF001 - as evaluate does
    orders = get_args(Order) if both_orders else get_args(Order)[:1]
    questions = prepare_pair(a, b, chosen, orders, ties=ties, sample=sample, about=about)
    for question in questions:
        asked.check(question)
    started = time.perf_counter()
    said = await _ask_all(asked, questions)
    settled = settle_orders(said, on_conflict)
    return PairResult(
        preferred=settled.preferred,
        judge=said[0].result.judge,
        orders=said,
        undecided_because=settled.because,
        detail=settled.detail,
        decided_by=settled.decided_by,
        confidence=settled.confidence,
        duration_ms=since(started),
        usage=add_usage([item.result for item in said]),
        subject=questions[0].subject,
        subjects=(digest_text(content_text(a)), digest_text(content_text(b))),
        metadata=questions[0].metadata,
    )


def compare_sync(
    a: object,
    b: object,
    *,
    judge: Source,
    rubric: RubricSource | None = None,
    **how: Unpack[Comparing],
) -> PairResult:
    """``compare`` for callers without an event loop; works inside a running loop too, and blocks it."""
    return run_sync(compare(a, b, judge=judge, rubric=rubric, **how))


async def compare_case(
    case: Case, judge: Source, rubric: RubricSource | None = None, **how: Unpack[Comparing]
) -> PairResult:
    """Compare the two contents of a case, ``{"a": ..., "b": ...}``, with what belongs to it; ``how`` as in ``compare``.

    Raises ``UsageError`` when the case is not a pair.
    """
    content = case.content
    if not isinstance(content, Mapping) or set(content) != {"a", "b"}:
        raise UsageError(f'the case {case.id[:80]!r} is not a pair; its content must be {{"a": ..., "b": ...}}')
    own = {name: getattr(case, name) for name in ("reference", "task", "context")}
    merged: dict[str, Any] = {**how, **{name: value for name, value in own.items() if value is not None}}
    # The id last: a case that names another in its metadata would be given that one's recorded reply.
    metadata = {**case.metadata, **(how.get("metadata") or {}), "case": case.id}
    merged |= {"judge": judge, "rubric": rubric, "metadata": metadata}
    return await compare(content["a"], content["b"], **merged)


def _check_options(both_orders: Any, on_conflict: Any, ties: Any, sample: Any) -> None:
    check_flag("both_orders", both_orders)
    check_flag("ties", ties)
    if on_conflict not in get_args(OnConflict):
        raise UsageError(f"on_conflict must be one of {', '.join(get_args(OnConflict))}; got {on_conflict!r}")
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
        raise UsageError(f"sample must be a whole number of at least 0, got {sample!r}")


async def _ask_all(judge: Judge | JudgeChain, questions: Sequence[Question]) -> tuple[PairOrder, ...]:
    # A group, so that a caller who goes away leaves no order being asked and paid for.
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge.ask(question)) for question in questions]
    except ExceptionGroup as several:  # a judge answers with results; what it raises all the same is one exception
        raise several.exceptions[0] from None
    said = [task.result() for task in tasks]
    return tuple(_make_order(question, result) for question, result in zip(questions, said, strict=True))


def _make_order(question: Question, result: JudgeResult) -> PairOrder:
    return PairOrder(order="ab" if question.order == "ab" else "ba", result=result)
