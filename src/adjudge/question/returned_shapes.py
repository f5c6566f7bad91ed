"""The shapes of what a judge in code returns, brought into the form of a reply.

People write what their library taught them: a bool, a number, ``(score, reason)``, ``{"score", "reason"}``, scores by
criterion, what a scorer of autoevals, pydantic-evals or openevals returns. Each is read as the reply that says the
same, and goes through the reading of every reply. What has none of the shapes is a ``ShapeError``, which names them.
Other libraries are never imported: their values are known by their attributes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from adjudge.errors import ReplyError, ShapeError
from adjudge.formats.text import list_names, show, suggest
from adjudge.question.question import Question
from adjudge.question.reply_object import FLAGS
from adjudge.question.score import ENTRY_FORM, OTHER_CHOICE_NAMES
from adjudge.rubric.rubric import Rubric

_REASON_NAMES = ("reasoning", "reason", "comment", "explanation", "rationale")

_VERDICT_NAMES = ("score", "passed")
"""A verdict has one of these members or both. They are no criteria, unless the rubric has one of that name."""

_MEMBERS_OF_VERDICT = frozenset((*_VERDICT_NAMES, *_REASON_NAMES, "key", "name", "metadata", "source_run_id"))
"""The members that a verdict may have: those of adjudge and of the libraries that have such a result."""

_ENTRY_MEMBERS = frozenset((*ENTRY_FORM, *FLAGS))
"""The members of a criterion's entry."""

_TYPE_NAMES = {bool: "bool", int: "number", float: "number", str: "text"}


def convert_foreign_result(value: Any) -> Any:
    """Write the result object of another library as a mapping; anything else stays as it is.

    ``Score`` of autoevals has ``name`` and ``score``, ``EvaluationResult`` of LangSmith ``key`` and ``score``,
    ``EvaluationReason`` and ``EvaluationResult`` of pydantic-evals ``value`` and ``reason``.
    """
    if isinstance(value, Mapping):
        return _drop_empty_members(value) if "key" in value and "score" in value else value
    if hasattr(value, "score") and (hasattr(value, "name") or hasattr(value, "key")):
        metadata = getattr(value, "metadata", None)
        rationale = metadata.get("rationale") if isinstance(metadata, Mapping) else None
        reason = getattr(value, "comment", None) or getattr(value, "error", None) or rationale
        name = getattr(value, "key", None) or getattr(value, "name", None)
        flag = {"passed": value.passed} if isinstance(getattr(value, "passed", None), bool) else {}
        return {"key": name, "score": value.score, "reason": "" if reason is None else str(reason), **flag}
    if hasattr(value, "value") and hasattr(value, "reason"):
        return {"score": value.value, "reason": value.reason or ""}
    return value


def _drop_empty_members(value: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a result of openevals without empty members, and with empty ``metadata``, which may hold anything."""
    return {name: member for name, member in value.items() if member is not None or name == "score"} | {
        "metadata": None
    }


def bring_into_form(returned: Any, question: Question) -> Mapping[str, Any]:
    """Convert a function's return value, which is plain JSON, to the form of a reply.

    Raises ``ShapeError`` for a value of no known shape, and other ``ReplyError`` for one that does not answer this
    question.
    """
    if question.choices:
        if isinstance(returned, str):
            return {"preferred": returned}
        if isinstance(returned, dict):
            return _check_members(returned, question)
    elif question.value_type is not None:
        if isinstance(returned, dict):
            return _check_members(returned, question)
    elif question.rubric is None:
        return _bring_into_yes_no(returned, question)
    else:
        return _bring_into_scores(returned, question, question.rubric)
    raise _make_shape_error(returned, question)


def _bring_into_yes_no(returned: Any, question: Question) -> Mapping[str, Any]:
    """Convert a return value to the form of a reply to a yes/no question.

    Raises ``ShapeError`` for a shape that is not known, a number included, and ``ReplyError`` for a yes beside a no.
    """
    if isinstance(returned, dict) and not ("score" in returned or _is_verdict(returned)):
        return _check_members(returned, question)
    verdict = _read_verdict(returned, question)
    answer = verdict.get("passed", verdict.get("score"))
    if not isinstance(answer, bool):  # a number is no yes
        raise _make_shape_error(returned, question)
    if isinstance(verdict.get("score"), bool) and verdict["score"] != answer:
        raise ReplyError("contradiction", "the function returned 'passed' and 'score' that say yes and no")
    return {"safe": answer, "reasoning": verdict["reasoning"]}


def _bring_into_scores(returned: Any, question: Question, rubric: Rubric) -> Mapping[str, Any]:
    """Convert a return value to the form of a reply to a question with a rubric.

    It may be the reply form itself, a dictionary of scores by criterion, a list of results with a ``key``, or one
    verdict.
    """
    criteria = [criterion.name for criterion in rubric.criteria]
    if isinstance(returned, dict):
        if isinstance(returned.get("criteria"), list | dict):
            return _check_members(returned, question)
        if any(name in returned for name in _VERDICT_NAMES):
            _refuse_ambiguous(returned, criteria, question)
        elif any(name in criteria for name in returned):
            _check_names([*returned], question)
            return {"criteria": [_make_entry(name, value, question, rubric) for name, value in returned.items()]}
    elif isinstance(returned, list) and returned and all(isinstance(item, dict) and "key" in item for item in returned):
        _check_names([item["key"] for item in returned], question)
        return {"criteria": [_make_entry(item["key"], item, question, rubric) for item in returned]}
    verdict = _read_verdict(returned, question)
    entry = _make_entry(_find_criterion(question), returned, question, rubric)
    flag = {"passed": verdict["passed"]} if "passed" in verdict and "score" in verdict else {}
    return {"criteria": [entry], "reasoning": verdict["reasoning"], **flag}


def _check_names(returned_names: list[Any], question: Question) -> None:
    """Raise ``ShapeError`` unless the returned names are those of the criteria that the question asks about.

    An unknown name in a reply form is a fault of that reply alone, since a function may have it from a model. Here the
    function's author wrote the names, and a slip in one would leave every case undecided.
    """
    criteria_names = [criterion.name for criterion in question.open_criteria]
    unknown = [name for name in returned_names if name not in criteria_names]
    if unknown:
        remedy = suggest(unknown[0], criteria_names) or f"; {describe_expected(question)}"
        raise ShapeError(
            f"the function returned {show(unknown[0])}, and the criteria that it is asked about are "
            f"{list_names(criteria_names)}{remedy}"
        )
    missing = [name for name in criteria_names if name not in returned_names]
    if missing:
        raise ShapeError(f"the function returned no score for {list_names(missing)}; {describe_expected(question)}")


def _make_entry(name: object, value: Any, question: Question, rubric: Rubric) -> dict[str, Any]:
    """Make a criterion's entry in a reply; yes and no are the ends of the scale as a score.

    Raises ``ReplyError`` for a score that is missing or not finite.
    """
    verdict = _read_verdict(value, question)
    score = verdict.get("score", verdict.get("passed"))
    if score is None:
        reason = f" ({verdict['reasoning']})" if verdict["reasoning"] else ""
        remedy = "return a number where the content should count, 0 where it fails"
        raise ReplyError(
            "unparseable", f"the function returned a score of None{reason}, so it judged nothing; {remedy}"
        )
    low, high = rubric.scale
    if isinstance(score, bool):
        score = high if score else low
    if not math.isfinite(score):  # JSON does not have such a number, so a kept reply could not be read again
        raise ReplyError("off_scale", f"the function returned a score of {score}; {describe_expected(question)}")
    # Kept, so that a "no" beside a score that passes is found to be a contradiction.
    flag = {"passed": verdict["passed"]} if "passed" in verdict and "score" in verdict else {}
    return {"name": name, "score": score, "reasoning": verdict["reasoning"], **flag}


def _read_verdict(value: Any, question: Question) -> dict[str, Any]:
    """Read one verdict as ``score``, ``passed`` or both, and always ``reasoning``.

    It is a number or boolean, a pair of that and a reason, or a dictionary. Raises ``ShapeError`` for anything else.
    """
    if type(value) in (bool, int, float):
        return {"score": value, "reasoning": ""}
    if isinstance(value, list) and len(value) == 2 and type(value[0]) in (bool, int, float):
        if value[1] is None or isinstance(value[1], str):
            return {"score": value[0], "reasoning": value[1] or ""}
    elif isinstance(value, dict) and _is_verdict(value):
        reasons = [value[name] for name in _REASON_NAMES if value.get(name)]
        if all(isinstance(reason, str) for reason in reasons):
            members = {name: value[name] for name in _VERDICT_NAMES if name in value}
            return members | {"reasoning": "\n".join(reasons)}
    raise _make_shape_error(value, question)


def _is_verdict(members: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a verdict: no other members, and ``score`` and ``passed`` of the right types."""
    is_known = members.keys() <= _MEMBERS_OF_VERDICT and not members.keys().isdisjoint(_VERDICT_NAMES)
    is_number = members.get("score") is None or type(members["score"]) in (bool, int, float)
    return is_known and is_number and isinstance(members.get("passed", True), bool)


def _refuse_ambiguous(members: Mapping[str, Any], criteria: list[str], question: Question) -> None:
    """Raise ``ShapeError`` for a ``score`` or ``passed`` that may be a verdict or the criterion of that name."""
    for name in _VERDICT_NAMES:
        if name in members and name in criteria:
            raise ShapeError(
                f"the function returned {name!r}, which is a verdict and the name of a criterion of the rubric; "
                f"return the reply form: {_write_reply_form(question)}"
            )


def _check_members(returned: Mapping[str, Any], question: Question) -> Mapping[str, Any]:
    """Return a value that has the reply form already; raise ``ShapeError`` for a member that is not read.

    A model invents members, and its reply is read without them. A function has an author, and a member that nobody
    reads is a mistake: ``{"passd": False}`` beside scores that pass would let through what was to be stopped.
    """
    if question.value_type is None:  # else the type says whether there may be others
        _refuse_unknown(returned, _list_reply_members(question), question)
    criteria = returned.get("criteria") if question.rubric is not None else None
    for entry in criteria.values() if isinstance(criteria, dict) else criteria if isinstance(criteria, list) else ():
        if isinstance(entry, dict):
            _refuse_unknown(entry, _ENTRY_MEMBERS, question)
    return returned


def _list_reply_members(question: Question) -> frozenset[str]:
    """List the members of a reply to the question that are read, with those that can only contradict it."""
    form_members = question.wording.properties if question.wording is not None else ()
    return frozenset((*form_members, *FLAGS, *(OTHER_CHOICE_NAMES if question.choices else ()), "reasoning", "token"))


def _refuse_unknown(members: Mapping[str, Any], known: frozenset[str], question: Question) -> None:
    """Raise ``ShapeError`` for members that are not known."""
    unknown = [name for name in members if name not in known]
    if unknown:
        raise _make_members_error(unknown, question)


def _make_members_error(unknown: list[str], question: Question) -> ShapeError:
    """Make the error for a returned dictionary with unknown members."""
    description = f"the unknown member{'s' if len(unknown) > 1 else ''} {', '.join(map(show, unknown[:3]))}"
    return ShapeError(f"the function returned {description}; {describe_expected(question)}")


def _make_shape_error(returned: Any, question: Question) -> ShapeError:
    """Make the error for a returned value that has no known shape."""
    if isinstance(returned, dict):
        unknown = [name for name in returned if name not in _MEMBERS_OF_VERDICT]
        if unknown:
            return _make_members_error(unknown, question)
        wrong_names = [name for name in (*_VERDICT_NAMES, *_REASON_NAMES) if _has_wrong_type(name, returned)]
        wrong = wrong_names[0] if wrong_names else ""
        description = f"{wrong!r}: {show(returned[wrong])}" if wrong else "a dict without a score"
    elif returned is None:
        description = "None"
    elif isinstance(returned, str):
        description = f"a text (str), {show(returned[:40])}"
    elif isinstance(returned, list):  # a tuple, mostly
        type_names = [_TYPE_NAMES.get(type(value), type(value).__name__) for value in returned[:4]]
        description = f"a tuple or list ({', '.join(type_names)}{', ...' if len(returned) > len(type_names) else ''})"
    else:
        description = f"a {_TYPE_NAMES[type(returned)]}"
    return ShapeError(f"the function returned {description}; {describe_expected(question)}")


def _has_wrong_type(name: str, members: Mapping[str, Any]) -> bool:
    """Return whether a verdict has this member with a value of a type that it may not have."""
    allowed = {"score": (bool, int, float, type(None)), "passed": (bool,)}.get(name, (str, type(None)))
    return name in members and not isinstance(members[name], allowed)


def describe_scale_remedy(returned: Mapping[str, Any], rubric: Rubric) -> str:
    """Return the end of a message that says what to do about a score that is off the rubric's scale."""
    listed = returned.get("criteria")
    entries = listed if isinstance(listed, list) else []
    scores = [
        entry["score"] for entry in entries if isinstance(entry, dict) and type(entry.get("score")) in (int, float)
    ]
    low, high = rubric.scale
    for most in (10, 100):  # a common scale, on which all scores are
        if rubric.scale != (0, most) and scores and high < max(scores) <= most and min(scores) >= 0:
            share = f"score / {most}" if (low, high) == (0, 1) else f"a score from {low:g} to {high:g}"
            return f"; return {share}, or give the rubric your scale: Rubric(..., scale=(0, {most}))"
    return "; return a score on that scale, or give the rubric yours: Rubric(..., scale=(lowest, highest))"


def _find_criterion(question: Question) -> str:
    """Return the name of the only criterion, which a single boolean or number is about. Raises ``ShapeError``."""
    criteria = question.open_criteria
    if len(criteria) != 1:
        names = list_names(criterion.name for criterion in criteria)
        raise ShapeError(
            f"the function returned one value for {len(criteria)} criteria ({names}); {describe_expected(question)}"
        )
    return criteria[0].name


def describe_expected(question: Question) -> str:
    """Describe in one clause, for an error message, what a function may return to this question."""
    if question.choices:
        return f"expected is {', '.join(repr(name) for name in question.choices)}, or a dict with 'preferred'"
    if question.value_type is not None:
        addition = " with 'criteria' beside its members" if question.rubric is not None else ""
        form = f"a dict{addition}" if question.rubric is not None else f"a {question.value_type.__name__}, a dict"
        return f"expected is {form} in the shape of the reply form, or a JudgeResult"
    if question.rubric is None:
        return (
            'expected is a bool, (bool, "reason"), {"passed": true, "reasoning": "..."}, a dict in the shape of the '
            "reply form, or a JudgeResult"
        )
    (low, high), criteria = question.rubric.scale, question.open_criteria
    scores = ", ".join(f"{json.dumps(criterion.name)}: {high:g}" for criterion in criteria[:3])
    ellipsis = ", ..." if len(criteria) > 3 else ""
    several = f'{{{scores}{ellipsis}}}, the same with {{"score": {high:g}, "reasoning": "..."}} for each'
    rest = f"{several}, the reply form {_write_reply_form(question)}, or a JudgeResult"
    if len(criteria) > 1:
        return f"expected is {rest}"
    return (
        f'expected is a bool, a number from {low:g} to {high:g}, (score, "reason"), {{"score": {high:g}, "reason": '
        f'"..."}}, {{"passed": true, "reasoning": "..."}}, {rest}'
    )


def _write_reply_form(question: Question) -> str:
    """Write an example of the reply form, for an error message."""
    rubric, criteria = question.rubric, question.open_criteria
    name = json.dumps(criteria[0].name if criteria else "name")
    return f'{{"criteria": [{{"name": {name}, "score": {rubric.scale[1] if rubric else 1:g}}}, ...]}}'
