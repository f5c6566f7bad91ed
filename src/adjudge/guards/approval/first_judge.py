"""The judge that may answer a request before people do: what it is asked, and when its pass counts as an approval."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from adjudge.concurrency import Timeout
from adjudge.errors import AdjudgeError, Reason, ReplyError
from adjudge.formats.numbers import format_apart, format_score
from adjudge.guards.approval.approval import Approval
from adjudge.hooks import call_within, logger
from adjudge.judges.chain_outcome import has_stopped_seat, is_sure
from adjudge.judges.evaluate import EvaluateArguments, decide_by_rules, make_result, measure_ms, prepare
from adjudge.judges.open import as_judge
from adjudge.result import JudgeChainResult, JudgeResult, read_result

LEAST_CONFIDENCE = 0.7
"""The confidence below which a judge's pass is not taken for an approval."""

MOST_SECONDS = 60.0
"""Seconds that the judge has; people wait for it."""

APPROVE = {
    "approval": "Whoever is responsible for this content would approve it without asking anybody, knowing what the "
    "context says about it."
}

_GONE: tuple[Reason, ...] = ("error", "timeout", "budget", "cancelled")
"""Reasons that mean the judge could not be asked, in contrast to having been asked and being unclear."""

_WARNINGS: tuple[Reason, ...] = ("tampering", "contradiction")


def open_first(source: Any) -> Any:
    """Make a judge of the argument ``first``; raise ``UsageError`` where it is none."""
    if hasattr(source, "ask") and isinstance(getattr(source, "name", None), str):
        return source  # as it is: nothing of a chain around it would be in what the people are shown
    return as_judge(source, shared=True)


def saw_attack(result: JudgeResult) -> bool:
    """Return whether somebody at any depth saw an attack: then no further judge is asked in people's place.

    Nor where a chain stopped a seat that may have seen one: who was quicker must not decide whether people look.
    """
    return has_stopped_seat([result]) or _has_warning(result)


def _has_warning(result: JudgeResult) -> bool:
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    return result.undecided_because in _WARNINGS or any(_has_warning(seat) for seat in seats)


async def ask_first(judge: Any, approval: Approval, *, seconds: float | None) -> JudgeResult:
    """Ask the judge about the content, by its own rubric where it has one; return a result, never an exception."""
    limit = Timeout(min(seconds, MOST_SECONDS) if seconds is not None else MOST_SECONDS)
    result, error = await call_within(limit, _ask, judge, approval)
    if limit.late:
        return _make_undecided(judge, approval, "timeout", f"no answer within {limit.seconds:g} s")
    if error is not None:
        logger.debug("the judge that was to answer approval %s first raised", approval.id, exc_info=error)
        detail = str(error) if isinstance(error, AdjudgeError) else f"{type(error).__name__} was raised"
        return _make_undecided(judge, approval, "error", detail)
    return result


def explain_first(result: JudgeResult) -> tuple[bool, str]:
    """Return whether this result approves, and why or why not, in words that quote nothing."""
    name = f"judge {result.judge!r}"
    if result.undecided_because in _GONE:
        return False, f"judge unavailable: {result.undecided_because} of {name}"
    if not result.passed:
        because = f" ({result.undecided_because})" if result.undecided_because else ""
        return False, f"{name} did not pass it: {result.outcome}{because}"
    if result.decided_by != "judge":
        return False, f"{name} passed it by {result.decided_by}, which is no judgement"
    if result.confidence is None:
        return False, f"{name} passed it with unknown confidence; {LEAST_CONFIDENCE} is needed"
    if not is_sure(result.confidence, LEAST_CONFIDENCE):
        shown_confidence, _ = format_apart(result.confidence, LEAST_CONFIDENCE)
        return False, f"{name} passed it with confidence {shown_confidence}; {LEAST_CONFIDENCE} is needed"
    return True, f"{name} passed it with confidence {format_score(result.confidence)}"


async def _ask(judge: Any, approval: Approval) -> JudgeResult:
    """Ask a judge whether to approve a request, by its own rubric if it has one; rules alone may decide.

    Raises ``ReplyError`` for an answer that is no result.
    """
    started = time.perf_counter()
    rubric = getattr(judge, "rubric", None)
    request = {"request": approval.message, "outcome": approval.outcome, "score": approval.score}
    context = request | {"reason": approval.reason, "judge": approval.judge}
    arguments: EvaluateArguments = {"context": context}
    if rubric is None:
        arguments["criteria"] = APPROVE
    # The content may be redacted or left out here, and what is kept of the answer is about the one that was judged.
    question = await prepare(approval.content, rubric, None, arguments, subject=approval.subject)
    answer = decide_by_rules(question)
    if answer is not None:
        return make_result(question, answer, judge=judge.name, attempts=0, duration_ms=measure_ms(started))
    # Judges then report a confidence where they can: without one nothing is approved.
    result = await judge.ask(replace(question, wants_confidence=True))
    if not isinstance(result, JudgeResult):
        raise ReplyError("error", f"it answered with {type(result).__name__}, not a result")
    # Somebody else's judge may hold numbers that no result can have; kept, they could never be read again.
    return read_result(result.to_dict())


def _make_undecided(judge: Any, approval: Approval, because: Reason, detail: str) -> JudgeResult:
    """Make the result where the judge gave none: it was late, or it failed."""
    return JudgeResult(
        outcome="undecided",
        undecided_because=because,
        judge=judge.name,
        detail=detail,
        attempts=0,
        subject=approval.subject,
    )
