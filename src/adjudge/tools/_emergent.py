"""The judge of forged tools: when they are made, each time they are used, and before they rise a tier."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adjudge._evaluate import since
from adjudge._foreign import notify
from adjudge._guard import GuardEvent, GuardKind, make_question, open_chain
from adjudge.chain import JudgeChain
from adjudge.errors import UsageError
from adjudge.question import Part, Question
from adjudge.result import JudgeChainResult
from adjudge.tools._asked import (
    CORRECTNESS,
    CREATION,
    SAFETY,
    CreationReview,
    PromotionReview,
    answer_creation,
    answer_promotion,
    list_parts,
    list_tool_parts,
)
from adjudge.tools._examine import MOST_CHARACTERS, find_fault
from adjudge.tools._history import ToolHistory
from adjudge.tools._reuse import validate_reuse
from adjudge.tools._types import EmergentTool, ToolCandidate, tool_digest
from adjudge.tools._verdicts import CreationVerdict, PromotionVerdict, ReuseVerdict, ReviewVerdict

_REVIEWERS = ("safety", "correctness")


class EmergentJudge:
    """Reviews tools that a program makes for itself; nothing of a tool is ever run.

    ``judge_model`` reviews new candidates, ``promotion_model`` tools that are to rise a tier: each a model, a judge or
    a chain, whatever ``JudgeChain`` takes as a seat. ``promotion_model`` may be two, ``{"safety": ..., "correctness":
    ...}`` or a pair in that order (a name and a function are one model, as everywhere); without it ``judge_model``
    does both. ``on_event`` is called with a ``GuardEvent`` for each review that asked somebody. Raises ``UsageError``
    for anything else.

    Nobody approves by default: a chain's ``fail_open`` opens nothing here, since a policy has reviewed no tool.
    """

    def __init__(
        self, judge_model: Any, promotion_model: Any = None, *, on_event: Callable[[GuardEvent], Any] | None = None
    ) -> None:
        self._creation = open_chain(judge_model)
        self._promotion = _open_reviewers(judge_model if promotion_model is None else promotion_model)
        self._on_event = on_event

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Whether a candidate may become a tool.

        Rejected without a call: no source or steps, no test, a failed test, an output that is not what was expected
        or does not fit the output schema, a schema that is none, or more than 400,000 characters. Else one question is
        put to the judge. Approved only if safety, correctness, determinism and boundedness pass and the reply's own
        ``approved`` is not false; what cannot be read rejects, with confidence and all dimensions 0.
        Raises ``UsageError`` for a judge that cannot be asked, and for what is no ``ToolCandidate``.
        """
        if not isinstance(candidate, ToolCandidate):
            raise UsageError(f"a creation is reviewed of a ToolCandidate, got {type(candidate).__name__}")
        started, digest = time.perf_counter(), tool_digest(candidate)
        fault = find_fault(candidate)
        if fault is not None:
            return _reject(f"rejected without asking: {fault}", digest)
        question = make_question(CREATION, list_parts(candidate), answer_creation, subject=digest)
        fault = _check_ready(self._creation, question)
        if fault is not None:
            return _reject(f"rejected without asking: {fault}", digest)
        result = await self._creation.ask(question)
        verdict = _conclude_creation(result, digest)
        await self._report("creation", candidate, verdict, [result], started)
        return verdict

    def validate_reuse(
        self,
        tool_id: str,
        output: Any,
        schema: Any,
        *,
        history: ToolHistory | None = None,
        strict_properties: bool = False,
    ) -> ReuseVerdict:
        """Whether what a tool put out fits its schema; the same as ``adjudge.tools.validate_reuse``."""
        return validate_reuse(tool_id, output, schema, history=history, strict_properties=strict_properties)

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Whether a tool may rise one tier: a safety auditor and a correctness reviewer are asked at the same time.

        Both have to approve, each with a confidence above 0; the lower confidence is the verdict's. Rejected without a
        call: a tool that was not used yet, and one without a creation verdict on what it is now, or whose latest such
        verdict does not approve. Raises ``UsageError`` for a judge that cannot be asked.
        """
        if not isinstance(tool, EmergentTool):
            raise UsageError(f"a promotion is reviewed of an EmergentTool, got {type(tool).__name__}")
        started, digest = time.perf_counter(), tool.digest
        fault = _find_standing_fault(tool)
        if fault is not None:
            return _refuse(fault, digest)
        parts = list_tool_parts(tool)
        asked = {
            name: (self._promotion[name], make_question(wording, parts, answer_promotion, subject=digest))
            for name, wording in zip(_REVIEWERS, (SAFETY, CORRECTNESS), strict=True)
        }
        for chain, question in asked.values():
            fault = _check_ready(chain, question)
            if fault is not None:
                return _refuse(fault, digest)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(chain.ask(question)) for chain, question in asked.values()]
        results = [task.result() for task in tasks]
        safety, correctness = (_conclude_review(result) for result in results)
        verdict = _join(safety, correctness, digest)
        await self._report("promotion", tool.candidate, verdict, results, started)
        return verdict

    async def aclose(self) -> None:
        """Close the connections of every judge."""
        for chain in {id(item): item for item in (self._creation, *self._promotion.values())}.values():
            await chain.aclose()

    async def _report(
        self,
        kind: GuardKind,
        candidate: ToolCandidate,
        verdict: CreationVerdict | PromotionVerdict,
        results: list[JudgeChainResult],
        started: float,
    ) -> None:
        decided = verdict.approved or any(item.outcome == "failed" for item in results)
        event = GuardEvent(
            kind=kind,
            guard=candidate.name,
            subject=verdict.tool_digest,
            passed=verdict.approved,
            allowed_count=int(verdict.approved),
            rejected_count=int(not verdict.approved),
            decided_by="judge" if decided else "policy",
            duration_ms=since(started),
        )
        await notify(self._on_event, event, what="on_event")


def _open_reviewers(source: Any) -> dict[str, JudgeChain]:
    if isinstance(source, Mapping):
        if set(source) != set(_REVIEWERS):
            raise UsageError(f"promotion_model as a mapping has the keys safety and correctness, got {list(source)!r}")
        return {name: open_chain(source[name]) for name in _REVIEWERS}
    named = isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], str) and callable(source[1])
    if isinstance(source, tuple | list) and not named:
        if len(source) != len(_REVIEWERS):
            raise UsageError(f"promotion_model is one judge, or a pair of two; got {len(source)}")
        return {name: open_chain(item) for name, item in zip(_REVIEWERS, source, strict=True)}
    return dict.fromkeys(_REVIEWERS, open_chain(source))


def _check_ready(chain: JudgeChain, question: Question) -> str | None:
    """Why a candidate cannot be put to a chain, or ``None``; raises ``UsageError`` when nothing can be.

    A judge without a key is the caller's to mend. A candidate longer than the model takes is at fault itself: were
    that an error too, a caller that catches errors and goes on would have a tool that nobody reviewed.
    """
    size = sum(len(part.text) for part in question.parts)
    if size > MOST_CHARACTERS:
        return f"everything about the tool is {size:,} characters long, and at most {MOST_CHARACTERS:,} are reviewed"
    chain.check(replace(question, parts=(Part(label="name", text=""),)))
    try:
        chain.check(question)
    except UsageError as error:
        return str(error)
    return None


def _conclude_creation(result: JudgeChainResult, digest: str) -> CreationVerdict:
    review = result.value
    if result.decided_by != "judge" or not isinstance(review, CreationReview):
        return replace(_reject(_say_undecided(result), digest), chain_result=result)
    return CreationVerdict(
        approved=result.passed,
        confidence=review.confidence,
        safety=review.safety,
        correctness=review.correctness,
        determinism=review.determinism,
        bounded=review.bounded,
        reasoning=result.reasoning,
        tool_digest=digest,
        chain_result=result,
    )


def _conclude_review(result: JudgeChainResult) -> ReviewVerdict:
    review = result.value
    if result.decided_by != "judge" or not isinstance(review, PromotionReview):
        return replace(_reject_review(_say_undecided(result)), chain_result=result)
    return ReviewVerdict(
        approved=result.passed, confidence=review.confidence, reasoning=result.reasoning, chain_result=result
    )


def _say_undecided(result: JudgeChainResult) -> str:
    said = [item.detail for item in result.results if item.undecided_because is not None and item.detail]
    why = result.undecided_because or "nobody reviewed it"
    return f"rejected, since no review could be read ({why})" + (f": {'; '.join(said)}" if said else "")


def _reject(reasoning: str, digest: str) -> CreationVerdict:
    return CreationVerdict(
        approved=False,
        confidence=0.0,
        safety=0.0,
        correctness=0.0,
        determinism=0.0,
        bounded=0.0,
        reasoning=reasoning,
        tool_digest=digest,
    )


def _reject_review(reasoning: str) -> ReviewVerdict:
    return ReviewVerdict(approved=False, confidence=0.0, reasoning=reasoning)


def _join(safety: ReviewVerdict, correctness: ReviewVerdict, digest: str) -> PromotionVerdict:
    return PromotionVerdict(
        approved=safety.approved and correctness.approved,
        confidence=min(safety.confidence, correctness.confidence),
        safety=safety,
        correctness=correctness,
        tool_digest=digest,
    )


def _refuse(fault: str, digest: str) -> PromotionVerdict:
    said = _reject_review(f"rejected without asking: {fault}")
    return _join(said, said, digest)


def _find_standing_fault(tool: EmergentTool) -> str | None:
    if tool.usage is None or tool.usage.uses == 0:
        return "there are no usage statistics"
    made = [item for item in tool.own_verdicts if isinstance(item, CreationVerdict)]
    if not made:
        return "there is no earlier verdict on what the tool is now"
    return None if made[-1].approved else "the latest review of what the tool is now did not approve it"
