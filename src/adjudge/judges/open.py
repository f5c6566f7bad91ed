"""Make a judge from a model, a function or another object; ``judge`` judges some content by the default judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Unpack

from adjudge.errors import Argument, UsageError
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, NoOther, RubricSource
from adjudge.judges.judge import Judge, ModelSource, as_seat
from adjudge.models.defaults import EXAMPLE
from adjudge.result import JudgeResult
from adjudge.rules.ruleset import AnyRule
from adjudge.sync import make_sync


def as_judge(source: JudgeLike | ModelSource, *, shared: bool = False, keep_name: bool = False) -> Judge | JudgeChain:
    """Make a judge or a chain from whatever the user passed as a judge.

    Judges and chains stay as they are. Another object with ``ask`` becomes the one seat of a chain without a time
    limit, so that its exceptions become results; with ``keep_name`` the chain has its name. Anything else is the model
    of a new ``Judge``. With ``shared``, the same text always gives the same judge, so that calls share its connections;
    use it where the judge is never closed. Raises ``UsageError`` for anything that ``Judge`` does not take.
    """
    seat = _open_shared(source) if shared and isinstance(source, str) else as_seat(source)
    if isinstance(seat, Judge | JudgeChain):
        return seat
    return JudgeChain([seat], timeout=None, name=str(seat.name) if keep_name else "")


def as_chain(source: JudgeLike | ModelSource) -> JudgeChain:
    """Make a chain from whatever a guard is given as its judge, so that its result has the answer of every seat.

    This is ``as_judge``, and a single judge becomes the one seat of a chain without a time limit.
    """
    judge = as_judge(source, keep_name=True)
    return judge if isinstance(judge, JudgeChain) else JudgeChain([judge], timeout=None, name=judge.name)


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

    Without ``judge``, the environment variable ``ADJUDGE_JUDGE`` names the model. Raises ``UsageError`` if both are
    missing. The other arguments are those of ``Judge.evaluate``.

    Args:
        content: What to judge: text, any JSON value, a dataclass, pydantic model or Struct, chat messages, an
            object with ``.output``.
        rubric: A ``Rubric``, the path of one, or a shipped name; by default the judge's own.
        judge: A judge, a chain, an object with ``name`` and ``ask``, or anything that ``Judge`` takes as its model.
        criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
        threshold: The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1.
        reference: A known good answer to compare with; shown to the judge as data.
        task: What the content was asked to do; shown to the judge as data.
        context: What the content may rely on (passages, policies); shown to the judge as data.
        model: The model to ask, in place of the rubric's and the judge's own; a ``UsageError`` with a chain.
        rules: Checks in code that run first; a failed ``error`` rule decides before a model is asked.
        instructions: More instructions, which the judge obeys; never put content here.
        result_format: A pydantic model, dataclass or msgspec Struct for the reply; the instance is
            ``result.value``.
        passes: A function that says whether an instance of ``result_format`` passes; by default its boolean ``passed``.
        throw_on_fail: Raise ``JudgmentFailed`` unless the content passed; also if it is undecided.
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


judge_sync = make_sync(judge)


def find_judge(source: JudgeLike | ModelSource | None) -> Judge | JudgeChain:
    """Return the judge or chain of a call; without one, the model that ``ADJUDGE_JUDGE`` names.

    Raises ``UsageError``.
    """
    judge_source = os.environ.get("ADJUDGE_JUDGE", "") if source is None or source == "" else source
    if judge_source == "":
        raise UsageError(
            f"no judge was given and ADJUDGE_JUDGE is not set; set it to a model like {EXAMPLE}, or give ",
            Argument("judge", "'rules'"),
            " where rules alone decide",
            argument="judge",
        )
    return as_judge(judge_source, shared=True)


@lru_cache(maxsize=64)
def _open_shared(spec: str) -> Judge:
    """Make the judge for the name of a model, or return the one that was made before.

    A judge holds configuration only, so it can answer any number of calls at once.
    """
    return Judge(spec)
