"""The judge that may answer a request before people do: what it is asked, and when its pass counts as an approval."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from adjudge.concurrency import Timeout
from adjudge.errors import AdjudgeError, Reason, ReplyError
from adjudge.formats.numbers import format_distinct, format_score
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

APPROVAL_CRITERION = {
    "approval": "Whoever is responsible for this content would approve it without asking anybody, knowing what the "
    "context says about it."
}

_NOT_ASKED: tuple[Reason, ...] = ("error", "timeout", "budget", "cancelled")
"""Reasons that mean the judge could not be asked, in contrast to having been asked and being unclear."""

_ATTACK_REASONS: tuple[Reason, ...] = ("tampering", "contradiction")


def open_first(source: Any) -> Any:
    """Return the argument ``first`` as a judge; raise ``UsageError`` if it cannot be one."""
    if hasattr(source, "ask") and isinstance(getattr(source, "name", None), str):
        return source  # without a chain around it, which would hide its own result from the people
    return as_judge(source, shared=True)


def has_attack_warning(result: JudgeResult) -> bool:
    """Return whether a result, or that of a seat at any depth, warns of an attack: then people are asked, and no judge.

    The same holds if a chain stopped a seat before it answered: that seat might have warned, and whether people are
    asked must not depend on which seat is quicker.
    """
    return has_stopped_seat([result]) or _has_attack_reason(result)


def _has_attack_reason(result: JudgeResult) -> bool:
    """Return whether a result, or that of a seat at any depth, is undecided because of tampering or a contradiction."""
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    return result.undecided_because in _ATTACK_REASONS or any(_has_attack_reason(seat) for seat in seats)


async def ask_first(judge: Any, approval: Approval, *, seconds: float | None) -> JudgeResult:
    """Ask the judge whether to approve a request, within ``seconds`` and a minute at most.

    A judge that fails or is late gives an undecided result, never an exception.
    """
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
    """Return whether the first judge's result approves the request, and the reason in words that quote no content."""
    name = f"judge {result.judge!r}"
    if result.undecided_because in _NOT_ASKED:
        return False, f"judge unavailable: {result.undecided_because} of {name}"
    if not result.passed:
        because = f" ({result.undecided_because})" if result.undecided_because else ""
        return False, f"{name} did not pass it: {result.outcome}{because}"
    if result.decided_by != "judge":
        return False, f"{name} passed it by {result.decided_by}, which is no judgement"
    if result.confidence is None:
        return False, f"{name} passed it with unknown confidence; {LEAST_CONFIDENCE} is needed"
    if not is_sure(result.confidence, LEAST_CONFIDENCE):
        shown_confidence, _ = format_distinct(result.confidence, LEAST_CONFIDENCE)
        return False, f"{name} passed it with confidence {shown_confidence}; {LEAST_CONFIDENCE} is needed"
    return True, f"{name} passed it with confidence {format_score(result.confidence)}"


async def _ask(judge: Any, approval: Approval) -> JudgeResult:
    """Ask a judge whether to approve a request, by its own rubric if it has one; the rubric's rules alone may decide.

    Raises ``ReplyError`` for an answer that is no result.
    """
    started = time.perf_counter()
    rubric = getattr(judge, "rubric", None)
    request = {"request": approval.message, "outcome": approval.outcome, "score": approval.score}
    context = request | {"reason": approval.reason, "judge": approval.judge}
    arguments: EvaluateArguments = {"context": context}
    if rubric is None:
        arguments["criteria"] = APPROVAL_CRITERION
    # The request may have the content redacted, so the subject is set to the digest of the content that was judged.
    question = await prepare(approval.content, rubric, None, arguments, subject=approval.subject)
    answer_of_rules = decide_by_rules(question)
    if answer_of_rules is not None:
        return make_result(question, answer_of_rules, judge=judge.name, attempts=0, duration_ms=measure_ms(started))
    # The judge is to report a confidence if it can, because a pass without one approves nothing.
    result = await judge.ask(replace(question, wants_confidence=True))
    if not isinstance(result, JudgeResult):
        raise ReplyError("error", f"it answered with {type(result).__name__}, not a result")
    # A program's own judge may return numbers that no result can have. Once stored, they could not be read again.
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
