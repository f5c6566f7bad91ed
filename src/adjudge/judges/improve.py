"""Judge, rewrite, judge again, until it is good or the rounds are over."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from adjudge.content import content_text, copy_plain, digest_text, has_changed
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, RubricSource
from adjudge.judges.judge import Judge, ModelSource
from adjudge.judges.open import as_judge
from adjudge.result import JudgeResult, Outcome
from adjudge.sync import make_sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round: the content that was judged, and its result."""

    content: Any
    result: JudgeResult


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
        """Whether the last round passed."""
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
    **how: Unpack[EvaluateArguments],
) -> Improvement:
    """Judge some content, pass the result to ``rewrite(content, result)``, and judge what it returns.

    It ends at the first pass, after ``rounds`` rounds, or at an undecided round, because an undecided result says
    nothing about how to improve. ``rewrite`` may be sync (it runs in a thread) or async; what it raises is raised. The
    other arguments are those of ``Judge.evaluate``; ``rubric`` may be ``None`` with ``criteria=`` or a judge that has
    its own. This is the evaluator-optimizer pattern.
    """
    check_whole_number("rounds", rounds, least=1)
    if how.pop("throw_on_fail", False):
        raise UsageError("improve returns every round, so it has no throw_on_fail; look at the outcome")
    asked = as_judge(judge)
    done: list[Round] = []
    while True:
        content = copy_plain(content)  # what is handed back is what was judged, whatever becomes of the caller's list
        result = await _evaluate(asked, content, rubric, how)
        done.append(Round(content=content, result=result))
        if result.outcome != "failed" or len(done) == rounds:
            return Improvement(rounds=tuple(done))
        content = await _rewrite(rewrite, content, result)


improve_sync = make_sync(improve)


async def _evaluate(
    judge: Judge | JudgeChain, content: object, rubric: RubricSource | None, how: EvaluateArguments
) -> JudgeResult:
    """What is said of some content; undecided where an object, which cannot be copied, is not the same any more."""
    write, before = partial(content_text, content), None
    with suppress(UsageError):  # which the judge raises as well
        before = digest_text(write())
    result = await judge.evaluate(copy_plain(content), rubric, **how)
    if not result.passed or not has_changed(before, write):
        return result
    said = "the content was changed while it was judged"
    return JudgeResult(
        outcome="undecided", undecided_because="error", judge=result.judge, detail=said, metadata=result.metadata
    )


async def _rewrite(rewrite: Callable[[Any, JudgeResult], Any], content: object, result: JudgeResult) -> Any:
    if inspect.iscoroutinefunction(rewrite):
        return await rewrite(content, result)
    said = await asyncio.to_thread(rewrite, content, result)
    return await said if inspect.isawaitable(said) else said
