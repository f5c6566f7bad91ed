"""The short form: judge some content by the configured default judge."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Unpack

from adjudge.errors import UsageError
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import Asking, JudgeLike, RubricSource
from adjudge.judges.judge import Judge, ModelSource
from adjudge.models.defaults import EXAMPLE
from adjudge.result import JudgeResult


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
    **how: Unpack[Asking],
) -> JudgeResult:
    """Judge some content and return the result.

    ``judge`` is a judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as its model.
    Without it, the environment variable
    ``ADJUDGE_JUDGE`` names a model, read at the call; ``UsageError`` when neither says who judges. The other
    arguments are those of ``Judge.evaluate``.
    """
    return await find_judge(judge).evaluate(content, rubric, **how)


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
