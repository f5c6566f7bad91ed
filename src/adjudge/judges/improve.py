"""Judge, rewrite, judge again, until it is good or the rounds are over."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack

from adjudge.content import copy_plain
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, RubricSource
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_judge
from adjudge.result import JudgeResult, Outcome
from adjudge.sync import make_sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round: the content that was judged, and its result."""

    content: Any
    """The content of this round."""
    result: JudgeResult
    """The result on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """The result of ``improve``. It is true only if the last round passed."""

    rounds: tuple[Round, ...]
    """Every round, in order; there is at least one."""

    @property
    def content(self) -> Any:
        """The content of the last round: the one that passed, or the last that did not."""
        return self.rounds[-1].content

    @property
    def result(self) -> JudgeResult:
        """The result of the last round."""
        return self.rounds[-1].result

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last round."""
        return self.result.outcome

    @property
    def passed(self) -> bool:
        """True if the last round passed."""
        return self.result.passed

    def __bool__(self) -> bool:
        return self.passed


async def improve(
    content: object,
    judge: JudgeLike | ModelSource,
    rubric: RubricSource | None,
    rewrite: Callable[[Any, JudgeResult], Any],
    *,
    rounds: int = 5,
    **arguments: Unpack[EvaluateArguments],
) -> Improvement:
    """Judge some content, pass the result to ``rewrite(content, result)``, and judge what it returns.

    It ends at the first pass, at the last round, or at an undecided round, because an undecided result says nothing
    about how to improve. This is the evaluator-optimizer pattern.

    Args:
        content: What is judged: a text, a JSON value, messages.
        judge: Who judges: a model, a judge or a chain.
        rubric: What good means, as for ``Judge.evaluate``; ``None`` with ``criteria=``, or for a judge that has its
            own.
        rewrite: A function that is given a content and its result, and returns the next content. It may be sync (it
            runs in a thread) or async; what it raises is raised.
        rounds: How many rounds are judged at most, from 1 on.
        arguments: Further arguments of ``Judge.evaluate``, but for ``throw_on_fail``.
    """
    check_whole_number("rounds", rounds, least=1)
    if arguments.pop("throw_on_fail", False):
        raise UsageError(
            "improve returns every round, so it has no throw_on_fail; look at the outcome", argument="throw_on_fail"
        )
    judge_to_ask = as_judge(judge)
    past_rounds: list[Round] = []
    while True:
        content = copy_plain(content)  # what is handed back is what was judged, whatever becomes of the caller's list
        result = await judge_to_ask.evaluate(content, rubric, **arguments)
        past_rounds.append(Round(content=content, result=result))
        if result.outcome != "failed" or len(past_rounds) == rounds:
            return Improvement(rounds=tuple(past_rounds))
        content = await _call_rewrite(rewrite, content, result)


improve_sync = make_sync(improve)


async def _call_rewrite(rewrite: Callable[[Any, JudgeResult], Any], content: object, result: JudgeResult) -> Any:
    if inspect.iscoroutinefunction(rewrite):
        return await rewrite(content, result)
    rewritten = await asyncio.to_thread(rewrite, content, result)
    return await rewritten if inspect.isawaitable(rewritten) else rewritten
