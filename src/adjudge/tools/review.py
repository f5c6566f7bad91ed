"""The judge of forged tools: when they are made, each time they are used, and before they rise a tier.

What rules a candidate out without asking is decided in ``candidate_check.py`` (``find_fault``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.errors import UsageError
from adjudge.guards.event import GuardEvent, GuardKind, make_guard_question
from adjudge.hooks import notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, measure_ms
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.question.question import Part, Question
from adjudge.result import JudgeChainResult
from adjudge.tools.candidate_check import find_fault
from adjudge.tools.reuse import ToolHistory, validate_reuse
from adjudge.tools.review_question import (
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
from adjudge.tools.tool import EmergentTool, ToolCandidate, tool_digest
from adjudge.tools.verdict import CreationVerdict, PromotionVerdict, ReuseVerdict, ReviewVerdict, reject_creation

MOST_CHARACTERS = 400_000
"""The most characters that everything about a candidate may have together; a longer candidate is rejected."""


_REVIEWERS = ("safety", "correctness")


class EmergentJudge:
    """Reviews tools that a program makes for itself; nothing of a tool is ever run.

    A chain's ``fail_open`` has no effect here, because a policy is not a review. Raises ``UsageError`` for a reviewer
    that is none.

    Args:
        judge_model: Reviews new candidates: anything that ``JudgeChain`` takes as a seat, a model, a judge or a chain.
        promotion_model: Reviews promotions. It may be two reviewers, ``{"safety": ..., "correctness": ...}`` or a pair
            in that order (a name and a function are one model, as everywhere). Without it, ``judge_model`` reviews
            both.
        on_event: Called with a ``GuardEvent`` for each review that asked a reviewer.
    """

    def __init__(
        self,
        judge_model: JudgeLike | ModelSource,
        promotion_model: JudgeLike
        | ModelSource
        | Sequence[JudgeLike | ModelSource]
        | Mapping[str, JudgeLike | ModelSource]
        | None = None,
        *,
        on_event: Callable[[GuardEvent], Any] | None = None,
    ) -> None:
        self._creation = as_chain(judge_model)
        self._promotion = _open_reviewers(judge_model if promotion_model is None else promotion_model)
        self._on_event = on_event

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Decide whether a candidate may become a tool.

        Rejects without asking: no source or steps, no test, a failed test, an output that differs from the expected one
        or does not fit the output schema, an invalid schema, or more than 400,000 characters. Otherwise the judge is
        asked once. Approves only if safety, correctness, determinism and boundedness pass and the reply's own
        ``approved`` is not false. A reply that cannot be read rejects, with confidence and all dimensions 0. Raises
        ``UsageError`` for a judge that cannot be asked, and for anything but a ``ToolCandidate``.

        Args:
            candidate: The candidate: its source or steps, its schemas and its tests.
        """
        if not isinstance(candidate, ToolCandidate):
            raise UsageError(
                f"a creation is reviewed of a ToolCandidate, got {type(candidate).__name__}", argument="candidate"
            )
        started, digest = time.perf_counter(), tool_digest(candidate)
        fault = find_fault(candidate)
        if fault is not None:
            return reject_creation(f"rejected without asking: {fault}", digest)
        question = make_guard_question(CREATION, list_parts(candidate), answer_creation, subject=digest)
        fault = _find_question_fault(self._creation, question)
        if fault is not None:
            return reject_creation(f"rejected without asking: {fault}", digest)
        result = await self._creation.ask(question)
        verdict = _conclude_creation(result, digest)
        await self._report("creation", candidate, verdict, [result], started)
        return verdict

    def validate_reuse(
        self,
        tool_id: str,
        output: object,
        schema: object,
        *,
        history: ToolHistory | None = None,
        strict_properties: bool = False,
    ) -> ReuseVerdict:
        """Check whether an output of a tool fits its schema; the same as ``adjudge.tools.validate_reuse``.

        Args:
            tool_id: The id of the tool.
            output: What the tool returned.
            schema: The JSON Schema of its output.
            history: Its outputs so far, to say whether this one is unusual; ``None`` compares with none.
            strict_properties: Refuse members that the schema does not name.
        """
        return validate_reuse(tool_id, output, schema, history=history, strict_properties=strict_properties)

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Review a promotion by one tier. A safety auditor and a correctness reviewer are asked at the same time.

        Both have to approve, each with a confidence above 0; the verdict has the lower confidence. Rejects without
        asking: a tool that was never used, one whose current digest has no creation verdict, and one whose latest
        verdict does not approve. Raises ``UsageError`` for a judge that cannot be asked.

        Args:
            tool: The tool, with its uses so far.
        """
        if not isinstance(tool, EmergentTool):
            raise UsageError(f"a promotion is reviewed of an EmergentTool, got {type(tool).__name__}", argument="tool")
        started, digest = time.perf_counter(), tool.digest
        fault = _find_standing_fault(tool)
        if fault is not None:
            return _reject_promotion(fault, digest)
        parts = list_tool_parts(tool)
        questions = {
            name: (self._promotion[name], make_guard_question(wording, parts, answer_promotion, subject=digest))
            for name, wording in zip(_REVIEWERS, (SAFETY, CORRECTNESS), strict=True)
        }
        for chain, question in questions.values():
            fault = _find_question_fault(chain, question)
            if fault is not None:
                return _reject_promotion(fault, digest)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(chain.ask(question)) for chain, question in questions.values()]
        results = [task.result() for task in tasks]
        safety, correctness = (_conclude_review(result) for result in results)
        verdict = _join_reviews(safety, correctness, digest)
        await self._report("promotion", tool.candidate, verdict, results, started)
        return verdict

    async def aclose(self) -> None:
        """Close the connections of every judge."""
        for chain in {id(chain): chain for chain in (self._creation, *self._promotion.values())}.values():
            await chain.aclose()

    async def _report(
        self,
        kind: GuardKind,
        candidate: ToolCandidate,
        verdict: CreationVerdict | PromotionVerdict,
        results: list[JudgeChainResult],
        started: float,
    ) -> None:
        """Report a review as one event to ``on_event``."""
        was_decided_by_judge = verdict.approved or any(result.outcome == "failed" for result in results)
        event = GuardEvent(
            kind=kind,
            guard=candidate.name,
            subject=verdict.tool_digest,
            passed=verdict.approved,
            allowed_count=int(verdict.approved),
            rejected_count=int(not verdict.approved),
            decided_by="judge" if was_decided_by_judge else "policy",
            duration_ms=measure_ms(started),
        )
        await notify(self._on_event, event, name="on_event")


def _open_reviewers(source: Any) -> dict[str, JudgeChain]:
    """Open the two reviewers of a promotion, from one judge for both, a pair, or a mapping with one for each.

    Raises ``UsageError`` for any other number of them.
    """
    if isinstance(source, Mapping):
        if set(source) != set(_REVIEWERS):
            raise UsageError(
                f"promotion_model as a mapping has the keys safety and correctness, got {list(source)!r}",
                argument="promotion_model",
            )
        return {name: as_chain(source[name]) for name in _REVIEWERS}
    # A tuple of a name and a function is one model, and no pair of reviewers.
    is_named_model = (
        isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], str) and callable(source[1])
    )
    if isinstance(source, tuple | list) and not is_named_model:
        if len(source) != len(_REVIEWERS):
            raise UsageError(
                f"promotion_model is one judge, or a pair of two; got {len(source)}", argument="promotion_model"
            )
        return {name: as_chain(reviewer) for name, reviewer in zip(_REVIEWERS, source, strict=True)}
    return dict.fromkeys(_REVIEWERS, as_chain(source))


def _find_question_fault(chain: JudgeChain, question: Question) -> str | None:
    """Find the reason why a chain cannot be asked this question; ``None`` without one.

    A candidate that is too long for the model is at fault itself, and is rejected: if it raised, a caller that catches
    errors and continues would have a tool that nobody reviewed. A judge that can be asked nothing, as without a key, is
    the caller's to mend, and raises ``UsageError``.
    """
    size = sum(len(part.text) for part in question.parts)
    if size > MOST_CHARACTERS:
        return f"everything about the tool is {size:,} characters long, and at most {MOST_CHARACTERS:,} are reviewed"
    chain.check(replace(question, parts=(Part(label="name", text=""),)))  # raises if even this cannot be asked
    try:
        chain.check(question)
    except UsageError as error:
        return str(error)
    return None


def _conclude_creation(result: JudgeChainResult, digest: str) -> CreationVerdict:
    """Make the verdict on a candidate from the result of its judge; if no judge decided, it is a rejection."""
    review = result.value
    if result.decided_by != "judge" or not isinstance(review, CreationReview):
        return replace(reject_creation(_describe_undecided(result), digest), chain_result=result)
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
    """Make the verdict of one reviewer of a promotion from its result; if no judge decided, it is a rejection."""
    review = result.value
    if result.decided_by != "judge" or not isinstance(review, PromotionReview):
        return replace(_reject_review(_describe_undecided(result)), chain_result=result)
    return ReviewVerdict(
        approved=result.passed, confidence=review.confidence, reasoning=result.reasoning, chain_result=result
    )


def _describe_undecided(result: JudgeChainResult) -> str:
    """Explain that a tool is rejected because no judge could decide, with the details of each seat."""
    details = [seat.detail for seat in result.results if seat.undecided_because is not None and seat.detail]
    reason = result.undecided_because or "nobody reviewed it"
    return f"rejected, since no review could be read ({reason})" + (f": {'; '.join(details)}" if details else "")


def _reject_review(reasoning: str) -> ReviewVerdict:
    """Make the verdict of a reviewer that rejects, with a confidence of 0."""
    return ReviewVerdict(approved=False, confidence=0.0, reasoning=reasoning)


def _join_reviews(safety: ReviewVerdict, correctness: ReviewVerdict, digest: str) -> PromotionVerdict:
    """Join two reviews into one verdict: both have to approve, and the lower confidence counts."""
    return PromotionVerdict(
        approved=safety.approved and correctness.approved,
        confidence=min(safety.confidence, correctness.confidence),
        safety=safety,
        correctness=correctness,
        tool_digest=digest,
    )


def _reject_promotion(fault: str, digest: str) -> PromotionVerdict:
    """Make the verdict that rejects a promotion for a fault, without asking the reviewers."""
    review = _reject_review(f"rejected without asking: {fault}")
    return _join_reviews(review, review, digest)


def _find_standing_fault(tool: EmergentTool) -> str | None:
    """Find the reason why the promotion of a tool is rejected without asking the reviewers; ``None`` without one."""
    if tool.usage is None or tool.usage.uses == 0:
        return "there are no usage statistics"
    reviews = [verdict for verdict in tool.current_verdicts if isinstance(verdict, CreationVerdict)]
    if not reviews:
        return "there is no earlier verdict on what the tool is now"
    return None if reviews[-1].approved else "the latest review of what the tool is now did not approve it"
