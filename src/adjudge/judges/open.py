"""From whatever was handed in to a judge, and the short form: judge some content by the configured default judge."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Unpack

from adjudge.errors import UsageError
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import Asking, JudgeLike, RubricSource
from adjudge.judges.judge import Judge, ModelSource, as_seat
from adjudge.models.defaults import EXAMPLE
from adjudge.result import JudgeResult


def as_judge(source: JudgeLike | ModelSource, *, shared: bool = False, keep_name: bool = False) -> Judge | JudgeChain:
    """A judge or a chain from whatever was handed in as one.

    Judges and chains stay as they are. Another object with ``ask`` becomes the one seat of a chain that adds no time
    limit of its own: what it raises, or returns, is then a result like any other; with ``keep_name`` the chain has its
    name. Anything else is what ``Judge`` takes as its model. ``shared`` gives the same judge for the same text, so that
    calls share its connections: for whoever never closes it. Raises ``UsageError`` for anything else.
    """
    seat = _open_shared(source) if shared and isinstance(source, str) else as_seat(source)
    if isinstance(seat, Judge | JudgeChain):
        return seat
    return JudgeChain([seat], timeout=None, name=str(seat.name) if keep_name else "")


def as_chain(source: JudgeLike | ModelSource) -> JudgeChain:
    """Whatever a guard is given as its judge, as a chain: every seat's own answer is then in the result.

    As ``as_judge``, but that a single judge becomes the one seat of such a chain as well.
    """
    made = as_judge(source, keep_name=True)
    return made if isinstance(made, JudgeChain) else JudgeChain([made], timeout=None, name=made.name)


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
    chosen = os.environ.get("ADJUDGE_JUDGE", "") if source is None or source == "" else source
    if chosen == "":
        raise UsageError(f"no judge was given and ADJUDGE_JUDGE is not set; set it to a model like {EXAMPLE}")
    return as_judge(chosen, shared=True)


@lru_cache(maxsize=64)
def _open_shared(spec: str) -> Judge:
    # A judge holds configuration only, so one answers any number of calls.
    return Judge(spec)
