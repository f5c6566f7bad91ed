"""The judge that may answer before the people do: it can approve, and nothing else."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

from adjudge._asking import prepare
from adjudge._evaluate import decide_by_rules, make_result, since
from adjudge._foreign import call_within, logger
from adjudge._judge import Judge
from adjudge._strategies import is_sure, was_cut
from adjudge._tasks import Limit
from adjudge.approval._values import Approval
from adjudge.errors import AdjudgeError, ReplyError
from adjudge.result import JudgeChainResult, JudgeResult, Reason, read_result

SURE = 0.7
"""The confidence below which a judge's pass is not taken for an approval."""
LONGEST = 60.0
"""Seconds that the judge has; people wait for it."""
APPROVE = {
    "approval": "Whoever is responsible for this content would approve it without asking anybody, knowing what the "
    "context says about it."
}
_GONE: tuple[Reason, ...] = ("error", "timeout", "budget", "cancelled")
"""Reasons that mean the judge could not be asked, in contrast to having been asked and being unclear."""
_WARNINGS: tuple[Reason, ...] = ("tampering", "contradiction")


def open_first(source: Any) -> Any:
    """A judge from whatever ``first=`` may be; raises ``UsageError`` for anything else."""
    if hasattr(source, "ask") and isinstance(getattr(source, "name", None), str):
        return source
    return _open_spec(source) if isinstance(source, str) else Judge(source)


@lru_cache(maxsize=64)
def _open_spec(spec: str) -> Judge:
    # One judge per spec, so that requests share its connections; a judge holds configuration only.
    return Judge(spec)


def warns(result: JudgeResult) -> bool:
    """Whether somebody at any depth saw an attack: then no further judge is asked in people's place.

    Nor where a chain stopped a seat that may have seen one: who was quicker must not decide whether people look.
    """
    return was_cut([result]) or _saw_attack(result)


def _saw_attack(result: JudgeResult) -> bool:
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    return result.undecided_because in _WARNINGS or any(_saw_attack(seat) for seat in seats)


async def ask_first(judge: Any, approval: Approval, *, seconds: float | None) -> JudgeResult:
    """What the judge says of the content, by its own rubric where it has one; never an exception."""
    limit = Limit(min(seconds, LONGEST) if seconds is not None else LONGEST)
    said, error = await call_within(limit, _ask, judge, approval)
    if limit.late:
        return _give_up(judge, approval, "timeout", f"no answer within {limit.seconds:g} s")
    if error is not None:
        logger.debug("the judge that was to answer approval %s first raised", approval.id, exc_info=error)
        detail = str(error) if isinstance(error, AdjudgeError) else f"{type(error).__name__} was raised"
        return _give_up(judge, approval, "error", detail)
    return said


def explain_first(result: JudgeResult) -> tuple[bool, str]:
    """Whether this result approves, and why or why not, in words that quote nothing."""
    name = f"judge {result.judge!r}"
    if result.undecided_because in _GONE:
        return False, f"judge unavailable: {result.undecided_because} of {name}"
    if not result.passed:
        because = f" ({result.undecided_because})" if result.undecided_because else ""
        return False, f"{name} did not pass it: {result.outcome}{because}"
    if result.decided_by != "judge":
        return False, f"{name} passed it by {result.decided_by}, which is no judgement"
    if result.confidence is None:
        return False, f"{name} passed it with unknown confidence; {SURE} is needed"
    if not is_sure(result.confidence, SURE):
        return False, f"{name} passed it with confidence {result.confidence:.2f}; {SURE} is needed"
    return True, f"{name} passed it with confidence {result.confidence:.2f}"


async def _ask(judge: Any, approval: Approval) -> JudgeResult:
    started = time.perf_counter()
    rubric = getattr(judge, "rubric", None)
    about = {"request": approval.message, "outcome": approval.outcome, "score": approval.score}
    context = about | {"reason": approval.reason, "judge": approval.judge}
    if rubric is None:
        question = await prepare(approval.content, None, None, {"criteria": APPROVE, "context": context})
    else:
        question = await prepare(approval.content, rubric, None, {"context": context})
    answer = decide_by_rules(question)
    if answer is not None:
        return make_result(question, answer, judge=judge.name, attempts=0, duration_ms=since(started))
    # Judges then report a confidence where they can: without one nothing is approved.
    said = await judge.ask(replace(question, wants_confidence=True))
    if not isinstance(said, JudgeResult):
        raise ReplyError("error", f"it answered with {type(said).__name__}, not a result")
    # Somebody else's judge may hold numbers that no result can have; kept, they could never be read again.
    return read_result(said.to_dict())


def _give_up(judge: Any, approval: Approval, because: Reason, detail: str) -> JudgeResult:
    return JudgeResult(
        outcome="undecided",
        undecided_because=because,
        judge=judge.name,
        detail=detail,
        attempts=0,
        subject=approval.subject,
    )
