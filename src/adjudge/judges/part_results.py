"""The judgement of an agent's run by its parts: each is asked about, and of each criterion the lowest score counts.

If one of the questions is undecided, so is the judgement, because the part that was not judged could be the bad one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from adjudge.concurrency import map_concurrently
from adjudge.judges.evaluate import add_usage
from adjudge.question.question import Question
from adjudge.question.score import decide
from adjudge.result import CriterionResult, JudgeResult, PartResult, find_gravest

AT_ONCE = 4
"""Questions about one run that are asked at the same time."""


async def answer_parts(ask: Callable[[Question], Awaitable[JudgeResult]], question: Question) -> JudgeResult:
    """Ask the questions about the parts of a run, some at a time, and combine their results into one."""
    posed = question.posed
    results = await map_concurrently(posed, ask, AT_ONCE, give_up=_make_cancelled_result)
    return _combine_results(question, posed, results)


def _make_cancelled_result(question: Question) -> JudgeResult:
    """Make the undecided result of a question whose judge cancelled itself."""
    return JudgeResult(
        outcome="undecided",
        undecided_because="error",
        judge="",
        detail="the judge cancelled itself",
        threshold=question.threshold,
    )


def _combine_results(question: Question, posed: Sequence[Question], results: Sequence[JudgeResult]) -> JudgeResult:
    """Combine the results of the questions about parts into one result of the whole question.

    If any of them is undecided, so is the whole, for the gravest reason.
    """
    graded: list[tuple[Question, CriterionResult]] = []
    for part_question, result in zip(posed, results, strict=True):
        asked_names = {criterion.name for criterion in part_question.open_criteria}
        graded += [(part_question, criterion) for criterion in result.criteria if criterion.name in asked_names]
    # The model's name is taken from one result: from the first that another model answered than was asked, if any did.
    shown = next((result for result in results if result.model_differs), results[-1])
    replies = [reply for result in results for reply in (*result.earlier_responses, result.raw_response or "")]
    total = replace(
        shown,
        earlier_responses=tuple(replies[:-1]),
        raw_response=replies[-1],
        text_after=sum(result.text_after for result in results),
        attempts=sum(result.attempts for result in results),
        usage=add_usage(results),
        parts=tuple(
            [_make_part(part_question, criterion) for part_question, criterion in graded if part_question.part]
        ),
        value=None,
        question=question.digest,
        subject=question.subject,
        metadata=question.metadata,
        rule_results=question.rule_results,
        suggestions=tuple(dict.fromkeys(text for result in results for text in result.suggestions)),
    )
    reason = find_gravest([result.undecided_because for result in results if result.undecided_because is not None])
    if reason is None:
        return _decide_by_lowest(question, total, graded, results)
    reasons = [result.undecided_because for result in results]
    first = reasons.index(reason)
    prefix = f"{posed[first].part_label}: " if posed[first].part else ""
    return replace(
        total,
        outcome="undecided",
        undecided_because=reason,
        detail=f"{prefix}{results[first].detail}"[:500],
        score=None,
        confidence=None,
        criteria=(),
        reasoning="",
    )


def _decide_by_lowest(
    question: Question,
    total: JudgeResult,
    graded: Sequence[tuple[Question, CriterionResult]],
    results: Sequence[JudgeResult],
) -> JudgeResult:
    """Decide by the lowest score of each criterion among the parts and what rules have decided."""
    rubric = question.rubric
    assert rubric is not None  # noqa: S101 - for the type checker; only a rubric has criteria about parts
    lowest = dict(question.decided_by_rules)
    for part_question, criterion in graded:
        lowest_so_far = lowest.get(criterion.name)
        if lowest_so_far is None or (criterion.score or 0.0) < (lowest_so_far.score or 0.0):
            lowest[criterion.name] = _name_part(part_question, criterion)
    criteria = tuple(lowest[criterion.name] for criterion in rubric.criteria)
    outcome, score = decide(rubric, criteria)
    confidences = [result.confidence for result in results]
    # If the run as a whole was asked about too, its question is the first.
    reasoning_on_whole = results[0].reasoning if question.open_criteria else ""
    return replace(
        total,
        outcome=outcome,
        score=score,
        threshold=rubric.passing_threshold,
        confidence=None if None in confidences else min(share for share in confidences if share is not None),
        criteria=criteria,
        reasoning=reasoning_on_whole or min(criteria, key=lambda criterion: criterion.score or 0.0).reasoning,
        detail="",
    )


def _make_part(question: Question, criterion: CriterionResult) -> PartResult:
    """Make the result of a part of the run on one criterion."""
    return PartResult(
        part=question.part,
        criterion=criterion.name,
        score=criterion.score,
        passed=criterion.passed,
        reasoning=criterion.reasoning,
        evidence=criterion.evidence,
    )


def _name_part(question: Question, criterion: CriterionResult) -> CriterionResult:
    """Put the name of the judged part in front of a criterion's reasoning, which every report shows."""
    if not question.part:
        return criterion
    reasoning = f"{question.part_label}: {criterion.reasoning}" if criterion.reasoning else question.part_label
    return replace(criterion, reasoning=reasoning)
