"""From a reply that was read to an outcome: the arithmetic, and whether quotations stand in the content.

Code decides, and no model computes. Where scores were asked for, a flag in the reply that is more generous than the
scores is ignored, and one that is stricter makes the result undecided: the judge contradicts itself, and neither half
is to be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.errors import ReplyError
from adjudge.formats.numbers import TOLERANCE
from adjudge.question.question import Answer, Question
from adjudge.question.reply_object import (
    ANY,
    SCORES,
    YES_NO,
    check_finite,
    read_choice,
    read_criteria,
    read_flag,
    read_number,
    read_other_flags,
    read_text,
    read_texts,
)
from adjudge.result import CriterionResult, Outcome
from adjudge.rubric.rubric import Criterion, Rubric

RUBRIC_FORM: Mapping[str, Any] = dict.fromkeys(("token", "criteria", "reasoning", "suggestions"), ANY)

ENTRY_FORM: Mapping[str, Any] = dict.fromkeys(("name", "reasoning", "score", "quote"), ANY)
"""The members of a criterion's entry."""

_PREFERENCE_FORM: Mapping[str, Any] = dict.fromkeys(("token", "preferred", "reasoning"), ANY)


OTHER_CHOICE_NAMES = ("winner", "choice", "better")
"""Members in which models like to say again what they prefer."""


SHOWN_MARK = 0.5
"""At this score a criterion without a threshold of its own is shown as passed; it does not gate."""


def reaches(score: float, threshold: float) -> bool:
    """Return whether a score is at or above a threshold, within the tolerance."""
    return score >= threshold - TOLERANCE


def weigh(rubric: Rubric, scores: Sequence[float]) -> float:
    """Return the weighted mean of scores, which are in the order of the rubric's criteria."""
    weighted = [score * criterion.weight for score, criterion in zip(scores, rubric.criteria, strict=True)]
    return math.fsum(weighted) / rubric.total_weight


_NOISE_ULPS = 8
"""Units in the last place by which the sums of a rubric can be off."""


def remove_rounding_noise(score: float) -> float:
    """Return a computed score without the noise of binary fractions: ``0.58`` for ``0.5800000000000001``.

    A number of at most twelve digits replaces a score that is only a few roundings away from it; a third stays a third.
    """
    rounded = float(f"{score:.12g}")
    return rounded if abs(rounded - score) <= _NOISE_ULPS * math.ulp(score) else score


def grade_criterion(
    criterion: Criterion, score: float, reasoning: str = "", *, rule: str | None = None, evidence: tuple[str, ...] = ()
) -> CriterionResult:
    """Make the result of one criterion.

    Below the criterion's own threshold it is not passed. Without a threshold it is shown as not passed below 0.5, which
    fails nothing.
    """
    needed = SHOWN_MARK if criterion.threshold is None else criterion.threshold
    return CriterionResult(
        name=criterion.name,
        score=score,
        passed=reaches(score, needed),
        reasoning=reasoning,
        weight=criterion.weight,
        threshold=criterion.threshold,
        rule=rule,
        evidence=evidence,
    )


def decide(rubric: Rubric, criteria: tuple[CriterionResult, ...]) -> tuple[Outcome, float]:
    """Decide the outcome and score of a rubric: the mean reaches its threshold and every explicit threshold is met."""
    score = weigh(rubric, [criterion.score or 0.0 for criterion in criteria])
    for criterion in criteria:
        if criterion.threshold is not None and not criterion.passed:
            return "failed", remove_rounding_noise(score)
    # The outcome is decided by the score as computed, and not by the one without noise, which is for display.
    return ("passed" if reaches(score, rubric.passing_threshold) else "failed"), remove_rounding_noise(score)


def answer_rubric(reply: Mapping[str, Any], question: Question) -> Answer:
    """Read and score a rubric's reply: ``{"criteria": [{"name", "reasoning", "score"}], "reasoning", ...}``."""
    rubric, not_asked = _require_rubric(question), _list_results_not_asked(question)
    asked = [criterion for criterion in rubric.criteria if criterion.name not in not_asked]
    entries = read_criteria(reply, [criterion.name for criterion in asked])
    results = []
    for criterion in rubric.criteria:
        if criterion.name in entries:
            results.append(_grade_entry(criterion, entries[criterion.name], rubric, question))
        else:
            results.append(not_asked[criterion.name])
    criteria = tuple(results)
    outcome, score = decide(rubric, criteria)
    check_flags(reply, outcome, RUBRIC_FORM)
    for name in SCORES:
        if name in reply:
            check_finite(reply[name])
    return Answer(
        outcome=outcome,
        score=score,
        threshold=rubric.passing_threshold,
        criteria=criteria,
        reasoning=read_text(reply, "reasoning"),
        suggestions=read_texts(reply, "suggestions"),
    )


def answer_yes_no(reply: Mapping[str, Any], question: Question) -> Answer:
    """Read a yes/no reply: ``safe``, ``passed``, ``allowed``; each that is there is a boolean, and they agree."""
    del question
    is_yes = read_flag(reply)
    check_finite(reply)
    outcome: Outcome = "passed" if is_yes else "failed"
    check_flags(reply, outcome, YES_NO)
    return Answer(outcome=outcome, score=1.0 if is_yes else 0.0, reasoning=read_text(reply, "reasoning"))


def answer_score(value: float, question: Question) -> Answer:
    """Make the answer for one score on the judge's scale, as a ``Reader`` of the kind ``score`` reads it.

    It is the score of the one criterion of the rubric that rules have not decided.
    """
    rubric = _require_rubric(question)
    (criterion,) = question.open_criteria
    # Before the score is converted to 0 to 1, because levels are on the judge's scale.
    _check_level(criterion, value)
    result = grade_criterion(criterion, to_unit(value, rubric))
    results = {**_list_results_not_asked(question), criterion.name: result}
    criteria = tuple(results[rubric_criterion.name] for rubric_criterion in rubric.criteria)
    outcome, score = decide(rubric, criteria)
    return Answer(outcome=outcome, score=score, threshold=rubric.passing_threshold, criteria=criteria, value=value)


def answer_preference(reply: Mapping[str, Any], question: Question) -> Answer:
    """Read which of two is preferred: ``{"reasoning", "preferred"}``."""
    preferred = read_choice(reply, "preferred", offered=question.choices, also=OTHER_CHOICE_NAMES)
    check_flags(reply, "passed", _PREFERENCE_FORM)
    return answer_choice(preferred, question, reasoning=read_text(reply, "reasoning"))


def answer_choice(preferred: str, question: Question, *, reasoning: str = "") -> Answer:
    """Make the answer that names one of the preferences on offer. Raises ``ReplyError`` for any other.

    It has passed whichever preference it names. Chains ask only whether a seat has answered; if one of the preferences
    counted as a failure, the order of the two contents would decide between them.
    """
    if preferred not in question.choices:
        raise ReplyError("off_scale", f"the reply says {preferred}, and on offer were {', '.join(question.choices)}")
    subject = "neither" if preferred == "tie" else f"the one shown {preferred}"
    return Answer(outcome="passed", value=preferred, reasoning=reasoning, detail=f"{subject} is better")


def answer_by_rules(question: Question) -> Answer:
    """Make the answer for a rubric whose criteria rules have all decided; no model is needed."""
    rubric = _require_rubric(question)
    criteria = tuple(question.decided_by_rules[criterion.name] for criterion in rubric.criteria)
    outcome, score = decide(rubric, criteria)
    return Answer(
        outcome=outcome, score=score, threshold=rubric.passing_threshold, criteria=criteria, decided_by="rule"
    )


def _list_results_not_asked(question: Question) -> Mapping[str, CriterionResult]:
    """Return the results of the criteria that this question does not ask about, by name.

    Rules decided some of them. Criteria of another question count as met here, so that they fail nothing: whoever asked
    all questions adds up the scores, and does not use the outcome of one question.
    """
    if not question.elsewhere:
        return question.decided_by_rules
    criteria = {criterion.name: criterion for criterion in _require_rubric(question).criteria}
    others = {name: grade_criterion(criteria[name], 1.0, rule="another question") for name in question.elsewhere}
    return {**question.decided_by_rules, **others}


def to_unit(value: float, rubric: Rubric) -> float:
    """Convert a score on the rubric's scale to one in 0 to 1."""
    low, high = rubric.scale
    return float(value) if (low, high) == (0, 1) else remove_rounding_noise((value - low) / (high - low))


def _require_rubric(question: Question) -> Rubric:
    """Return the question's rubric. Raises ``ReplyError`` without one."""
    if question.rubric is None:
        raise ReplyError("error", "the question has no rubric to score by")
    return question.rubric


def _grade_entry(criterion: Criterion, entry: Mapping[str, Any], rubric: Rubric, question: Question) -> CriterionResult:
    """Grade a criterion by its entry in the reply, with the score converted to 0 to 1. Raises ``ReplyError``."""
    low, high = rubric.scale
    if "score" not in entry:
        raise ReplyError("missing_criterion", f"criterion {criterion.name!r} has no score in the reply")
    value = read_number(entry["score"], of=criterion.name, low=low, high=high)
    if criterion.levels:
        _check_level(criterion, value)
    evidence = _check_quotes(entry, criterion, question) if criterion.quote else ()
    graded = grade_criterion(criterion, to_unit(value, rubric), read_text(entry, "reasoning"), evidence=evidence)
    check_flags(entry, "passed" if graded.passed else "failed", ENTRY_FORM)
    return graded


def _check_level(criterion: Criterion, value: float) -> None:
    """Raise ``ReplyError`` for a score that is none of the criterion's levels, if it has any."""
    if criterion.levels and all(abs(value - level) > TOLERANCE for level, _ in criterion.levels):
        allowed = ", ".join(f"{level:g}" for level, _ in criterion.levels)
        raise ReplyError("off_scale", f"the score of {criterion.name!r} must be one of {allowed}, got {value:g}")


def _check_quotes(entry: Mapping[str, Any], criterion: Criterion, question: Question) -> tuple[str, ...]:
    """Return the quotation that a criterion asks for, or none if it is empty.

    Raises ``ReplyError`` if it is missing, or is not in the content: then the judge made it up.
    """
    if "quote" not in entry:
        raise ReplyError("unparseable", f"criterion {criterion.name!r} asks for a quote and the reply has none")
    quote = read_text(entry, "quote")
    if not quote.strip():
        return ()
    if " ".join(quote.split()) not in " ".join(question.content.split()):
        raise ReplyError("contradiction", f"the quote given for {criterion.name!r} does not stand in the content")
    return (quote,)


def check_flags(members: Mapping[str, Any], outcome: Outcome, form: Mapping[str, Any]) -> None:
    """Raise ``ReplyError`` where members that the form does not have say no beside a pass, or cannot be read.

    A flag that says yes beside a failure changes nothing.
    """
    if form.keys() >= members.keys() and (form is RUBRIC_FORM or form is ENTRY_FORM):
        return  # nearly every reply, and these forms have no members inside their members
    if read_other_flags(members, form) is False and outcome == "passed":
        raise ReplyError("contradiction", "the reply passes, and a flag in it that was not asked for says no")
