"""The short form: judge some content by the configured default judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Unpack

from adjudge.errors import UsageError
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, NoOther, RubricSource
from adjudge.judges.judge import Judge, ModelSource
from adjudge.models.defaults import EXAMPLE
from adjudge.result import JudgeResult
from adjudge.rules.ruleset import AnyRule


def open_chain(source: Any) -> JudgeChain:
    """Whatever a guard is given as its judge, as a chain: every seat's own answer is then in the result.

    A chain stays as it is; a judge, an object with ``ask``, or whatever ``Judge`` takes as its model becomes the one
    seat of a chain that adds no time limit of its own. Raises ``UsageError`` for anything else.
    """
    if isinstance(source, JudgeChain):
        return source
    seat = source if hasattr(source, "ask") else Judge(source)
    return JudgeChain([seat], timeout=None, name=str(seat.name))


async def judge(
    content: object,
    *,
    rubric: RubricSource | None = None,
    judge: JudgeLike | ModelSource | None = None,
    criteria: str | Sequence[str] | Mapping[str, str] | None = None,
    threshold: float | None = None,
    reference: object = None,
    task: object = None,
    context: object = None,
    model: str | None = None,
    rules: Sequence[AnyRule] = (),
    instructions: str | None = None,
    result_format: type[Any] | None = None,
    passes: Callable[[Any], bool] | None = None,
    throw_on_fail: bool = False,
    metadata: Mapping[str, Any] | None = None,
    **unknown: Unpack[NoOther],
) -> JudgeResult:
    """Judge some content and return the result.

    Without ``judge``, the environment variable ``ADJUDGE_JUDGE`` names a model, read at the call; ``UsageError`` when
    neither says who judges. The other arguments are those of ``Judge.evaluate``.

    Args:
        content: What is judged: text, any JSON value, a dataclass, pydantic model or Struct, chat messages, an
            object with ``.output``.
        rubric: What good means: a ``Rubric``, the path of one, or a shipped name; without one, the judge's own.
        judge: A judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as its model.
        criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
        threshold: The passing threshold for ``criteria``, or over the rubric's own, in 0 to 1.
        reference: A known good answer to compare with; data, fenced.
        task: What the content was meant to do; data, fenced.
        context: What the content may rely on (passages, policies); data, fenced.
        model: The model to ask, over the rubric's and the judge's own; a ``UsageError`` on a chain.
        rules: Deterministic checks that go first; a failed ``error`` rule decides before a model is asked.
        instructions: More instructions for the judge, from you and trusted; never put content here.
        result_format: A pydantic model, dataclass or msgspec Struct for the reply; the instance is
            ``result.value``.
        passes: Whether an instance of ``result_format`` passes; without it, its boolean ``passed`` says.
        throw_on_fail: Raise ``JudgmentFailed`` when the content failed or the judge could not decide.
        metadata: Copied to the result, never sent to a model; ``case`` and ``order`` also select recorded
            replies.
    """
    return await find_judge(judge).evaluate(
        content,
        rubric,
        criteria=criteria,
        threshold=threshold,
        reference=reference,
        task=task,
        context=context,
        model=model,
        rules=rules,
        instructions=instructions,
        result_format=result_format,
        passes=passes,
        throw_on_fail=throw_on_fail,
        metadata=metadata,
        **unknown,
    )


def judge_sync(
    content: object,
    *,
    rubric: RubricSource | None = None,
    judge: JudgeLike | ModelSource | None = None,
    criteria: str | Sequence[str] | Mapping[str, str] | None = None,
    threshold: float | None = None,
    reference: object = None,
    task: object = None,
    context: object = None,
    model: str | None = None,
    rules: Sequence[AnyRule] = (),
    instructions: str | None = None,
    result_format: type[Any] | None = None,
    passes: Callable[[Any], bool] | None = None,
    throw_on_fail: bool = False,
    metadata: Mapping[str, Any] | None = None,
    **unknown: Unpack[NoOther],
) -> JudgeResult:
    """``judge`` for callers without an event loop; works inside a running loop too, and blocks it.

    Args:
        content: What is judged: text, any JSON value, a dataclass, pydantic model or Struct, chat messages, an
            object with ``.output``.
        rubric: What good means: a ``Rubric``, the path of one, or a shipped name; without one, the judge's own.
        judge: A judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as its model.
        criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
        threshold: The passing threshold for ``criteria``, or over the rubric's own, in 0 to 1.
        reference: A known good answer to compare with; data, fenced.
        task: What the content was meant to do; data, fenced.
        context: What the content may rely on (passages, policies); data, fenced.
        model: The model to ask, over the rubric's and the judge's own; a ``UsageError`` on a chain.
        rules: Deterministic checks that go first; a failed ``error`` rule decides before a model is asked.
        instructions: More instructions for the judge, from you and trusted; never put content here.
        result_format: A pydantic model, dataclass or msgspec Struct for the reply; the instance is
            ``result.value``.
        passes: Whether an instance of ``result_format`` passes; without it, its boolean ``passed`` says.
        throw_on_fail: Raise ``JudgmentFailed`` when the content failed or the judge could not decide.
        metadata: Copied to the result, never sent to a model; ``case`` and ``order`` also select recorded
            replies.
    """
    return find_judge(judge).evaluate_sync(
        content,
        rubric,
        criteria=criteria,
        threshold=threshold,
        reference=reference,
        task=task,
        context=context,
        model=model,
        rules=rules,
        instructions=instructions,
        result_format=result_format,
        passes=passes,
        throw_on_fail=throw_on_fail,
        metadata=metadata,
        **unknown,
    )


def find_judge(source: JudgeLike | ModelSource | None) -> Judge | JudgeChain:
    """Whatever a call was given as its judge, as a judge or a chain; ``None`` is what ``ADJUDGE_JUDGE`` names."""
    if isinstance(source, Judge | JudgeChain):
        return source
    if hasattr(source, "ask"):
        return JudgeChain([source], timeout=None)
    if source is not None and not isinstance(source, str):
        return Judge(source)
    spec = source or os.environ.get("ADJUDGE_JUDGE", "")
    if not spec:
        raise UsageError(f"no judge was given and ADJUDGE_JUDGE is not set; set it to a model like {EXAMPLE}")
    return _open_judge(spec)


@lru_cache(maxsize=64)
def _open_judge(spec: str) -> Judge:
    # One judge per spec, so that calls share its connections; a judge holds configuration only.
    return Judge(spec)
