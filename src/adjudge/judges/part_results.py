"""The questions about the parts of a run asked, and their results added up: of each criterion the lowest score counts.

If one of the questions is undecided, so is the judgement: a call that nobody judged could be the bad one.
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
    """Ask the questions that belong to a question, and add up their results."""
    posed = question.posed
    return _add_up(question, posed, await map_concurrently(posed, ask, AT_ONCE, give_up=_give_up))


def _give_up(question: Question) -> JudgeResult:
    """Return the result of a question whose judge cancelled itself."""
    return JudgeResult(
        outcome="undecided",
        undecided_because="error",
        judge="",
        detail="the judge cancelled itself",
        threshold=question.threshold,
    )


def _add_up(question: Question, posed: Sequence[Question], results: Sequence[JudgeResult]) -> JudgeResult:
    """Add the results of the questions about parts up to one; undecided, for the gravest reason, if any of them is."""
    graded = [
        (one, criterion)
        for one, result in zip(posed, results, strict=True)
        for criterion in result.criteria
        if criterion.name in {asked.name for asked in one.open_criteria}
    ]
    shown = next((result for result in results if result.model_differs), results[-1])
    replies = [reply for result in results for reply in (*result.earlier_responses, result.raw_response or "")]
    total = replace(
        shown,
        earlier_responses=tuple(replies[:-1]),
        raw_response=replies[-1],
        text_after=sum(result.text_after for result in results),
        attempts=sum(result.attempts for result in results),
        usage=add_usage(results),
        parts=tuple([_make_part(one, criterion) for one, criterion in graded if one.part]),
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
    at = next(place for place, result in enumerate(results) if result.undecided_because == reason)
    where = f"{posed[at].part_label}: " if posed[at].part else ""
    return replace(
        total,
        outcome="undecided",
        undecided_because=reason,
        detail=f"{where}{results[at].detail}"[:500],
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
    """Decide by the lowest score of each criterion among the parts."""
    rubric = question.rubric
    assert rubric is not None  # noqa: S101 - for the type checker; only a rubric has criteria about parts
    lowest = dict(question.decided_by_rules)
    for one, criterion in graded:
        before = lowest.get(criterion.name)
        if before is None or (criterion.score or 0.0) < (before.score or 0.0):
            lowest[criterion.name] = _name_part(one, criterion)
    criteria = tuple(lowest[criterion.name] for criterion in rubric.criteria)
    outcome, score = decide(rubric, criteria)
    shares = [result.confidence for result in results]
    whole = results[0].reasoning if question.open_criteria else ""
    return replace(
        total,
        outcome=outcome,
        score=score,
        threshold=rubric.passing_threshold,
        confidence=None if None in shares else min(share for share in shares if share is not None),
        criteria=criteria,
        reasoning=whole or min(criteria, key=lambda criterion: criterion.score or 0.0).reasoning,
        detail="",
    )


def _make_part(question: Question, criterion: CriterionResult) -> PartResult:
    return PartResult(
        part=question.part,
        criterion=criterion.name,
        score=criterion.score,
        passed=criterion.passed,
        reasoning=criterion.reasoning,
        evidence=criterion.evidence,
    )


def _name_part(question: Question, criterion: CriterionResult) -> CriterionResult:
    """Say in the reasoning, which every report shows, for what part of the run a criterion was judged."""
    if not question.part:
        return criterion
    reasoning = f"{question.part_label}: {criterion.reasoning}" if criterion.reasoning else question.part_label
    return replace(criterion, reasoning=reasoning)
