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
from adjudge.question.score import ENTRY_FORM, OTHER_WORDS
from adjudge.rubric.rubric import Rubric

_REASONS = ("reasoning", "reason", "comment", "explanation", "rationale")

_VERDICT = ("score", "passed")
"""The members of which a verdict has one at least. They are no criteria, unless the rubric has one of that name."""

_BESIDE_VERDICT = frozenset((*_VERDICT, *_REASONS, "key", "name", "metadata", "source_run_id"))
"""The members that a verdict may have: those of adjudge and of the libraries that have such a result."""

_ENTRY = frozenset((*ENTRY_FORM, *FLAGS))
"""The members of a criterion's entry."""

_KINDS = {bool: "bool", int: "number", float: "number", str: "text"}


def open_foreign(value: Any) -> Any:
    """Write the result object of another library as a mapping; anything else stays as it is.

    ``Score`` of autoevals has ``name`` and ``score``, ``EvaluationResult`` of LangSmith ``key`` and ``score``,
    ``EvaluationReason`` and ``EvaluationResult`` of pydantic-evals ``value`` and ``reason``.
    """
    if isinstance(value, Mapping):
        return _drop_empty(value) if "key" in value and "score" in value else value
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


def _drop_empty(value: Mapping[Any, Any]) -> dict[Any, Any]:
    """A result of openevals without what it leaves empty, and without metadata, which may be anything."""
    return {name: member for name, member in value.items() if member is not None or name == "score"} | {
        "metadata": None
    }


def bring_into_form(returned: Any, question: Question) -> Mapping[str, Any]:
    """Bring what was returned into the form of a reply; raise ``ShapeError`` where it has no shape that is known.

    ``returned`` is plain JSON. Raises other ``ReplyError`` for a shape that does not answer this question.
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
    raise _make_unknown_shape(returned, question)


def _bring_into_yes_no(returned: Any, question: Question) -> Mapping[str, Any]:
    """Bring what a function returned into the form of a reply to a question of yes or no.

    Raises ``ShapeError`` for a shape that is not known, a number included, and ``ReplyError`` for a yes beside a no.
    """
    if isinstance(returned, dict) and not ("score" in returned or _is_verdict(returned)):
        return _check_members(returned, question)
    verdict = _read_verdict(returned, question)
    answer = verdict.get("passed", verdict.get("score"))
    if not isinstance(answer, bool):  # a number is no yes
        raise _make_unknown_shape(returned, question)
    if isinstance(verdict.get("score"), bool) and verdict["score"] != answer:
        raise ReplyError("contradiction", "the function returned 'passed' and 'score' that say yes and no")
    return {"safe": answer, "reasoning": verdict["reasoning"]}


def _bring_into_scores(returned: Any, question: Question, rubric: Rubric) -> Mapping[str, Any]:
    """Bring what a function returned into the form of a reply by a rubric."""
    criteria = [criterion.name for criterion in rubric.criteria]
    if isinstance(returned, dict):
        if isinstance(returned.get("criteria"), list | dict):
            return _check_members(returned, question)
        if any(name in returned for name in _VERDICT):
            _refuse_ambiguous(returned, criteria, question)
        elif any(name in criteria for name in returned):
            _check_names([*returned], question)
            return {"criteria": [_make_entry(name, value, question, rubric) for name, value in returned.items()]}
    elif isinstance(returned, list) and returned and all(isinstance(it, dict) and "key" in it for it in returned):
        _check_names([item["key"] for item in returned], question)
        return {"criteria": [_make_entry(item["key"], item, question, rubric) for item in returned]}
    verdict = _read_verdict(returned, question)
    entry = _make_entry(_find_criterion(question), returned, question, rubric)
    flag = {"passed": verdict["passed"]} if "passed" in verdict and "score" in verdict else {}
    return {"criteria": [entry], "reasoning": verdict["reasoning"], **flag}


def _check_names(returned: list[Any], question: Question) -> None:
    """Raise ``ShapeError`` unless every criterion that the question asks about, and no other, is among these names.

    In the reply form, which a function may have from a model, another name is a fault of the reply, as a model's is.
    Here the names are of the function's author, and a slip in one would leave every case undecided.
    """
    asked = [criterion.name for criterion in question.open_criteria]
    unknown = [name for name in returned if name not in asked]
    if unknown:
        remedy = suggest(unknown[0], asked) or f"; {describe_expected(question)}"
        raise ShapeError(
            f"the function returned {show(unknown[0])}, and the criteria that it is asked about are "
            f"{list_names(asked)}{remedy}"
        )
    missing = [name for name in asked if name not in returned]
    if missing:
        raise ShapeError(f"the function returned no score for {list_names(missing)}; {describe_expected(question)}")


def _make_entry(name: object, value: Any, question: Question, rubric: Rubric) -> dict[str, Any]:
    """Make a criterion's entry; the end of the scale is the score of a mere yes or no. Raises ``ReplyError``."""
    verdict = _read_verdict(value, question)
    score = verdict.get("score", verdict.get("passed"))
    if score is None:
        why = f" ({verdict['reasoning']})" if verdict["reasoning"] else ""
        remedy = "return a number where the content should count, 0 where it fails"
        raise ReplyError("unparseable", f"the function returned a score of None{why}, so it judged nothing; {remedy}")
    low, high = rubric.scale
    if isinstance(score, bool):
        score = high if score else low
    if not math.isfinite(score):  # which JSON does not have, so nobody could read it later
        raise ReplyError("off_scale", f"the function returned a score of {score}; {describe_expected(question)}")
    # Dropped, a "no" beside a score that passes would be a pass; kept, it is a contradiction.
    flag = {"passed": verdict["passed"]} if "passed" in verdict and "score" in verdict else {}
    return {"name": name, "score": score, "reasoning": verdict["reasoning"], **flag}


def _read_verdict(value: Any, question: Question) -> dict[str, Any]:
    """Read one verdict: ``score``, ``passed`` or both, and always ``reasoning``."""
    if type(value) in (bool, int, float):
        return {"score": value, "reasoning": ""}
    if isinstance(value, list) and len(value) == 2 and type(value[0]) in (bool, int, float):
        if value[1] is None or isinstance(value[1], str):
            return {"score": value[0], "reasoning": value[1] or ""}
    elif isinstance(value, dict) and _is_verdict(value):
        reasons = [value[name] for name in _REASONS if value.get(name)]
        if all(isinstance(reason, str) for reason in reasons):
            known = {name: value[name] for name in _VERDICT if name in value}
            return known | {"reasoning": "\n".join(reasons)}
    raise _make_unknown_shape(value, question)


def _is_verdict(members: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a verdict: with nothing else in it, a score that is a number, a flag a bool."""
    is_known = members.keys() <= _BESIDE_VERDICT and not members.keys().isdisjoint(_VERDICT)
    is_number = members.get("score") is None or type(members["score"]) in (bool, int, float)
    return is_known and is_number and isinstance(members.get("passed", True), bool)


def _refuse_ambiguous(members: Mapping[str, Any], criteria: list[str], question: Question) -> None:
    for name in _VERDICT:
        if name in members and name in criteria:
            raise ShapeError(
                f"the function returned {name!r}, which is a verdict and the name of a criterion of the rubric; "
                f"return the reply form: {_write_reply_form(question)}"
            )


def _check_members(returned: Mapping[str, Any], question: Question) -> Mapping[str, Any]:
    """Return what is in the reply form already; raise ``ShapeError`` for a member that is not read.

    A model invents members, and its reply is read without them. A function has an author: what they wrote and nobody
    reads is a mistake, and ``{"passd": False}`` beside scores that pass would let through what was to be stopped.
    """
    if question.value_type is None:  # else the type says whether there may be others
        _refuse_unknown(returned, _list_members(question), question)
    criteria = returned.get("criteria") if question.rubric is not None else None
    for entry in criteria.values() if isinstance(criteria, dict) else criteria if isinstance(criteria, list) else ():
        if isinstance(entry, dict):
            _refuse_unknown(entry, _ENTRY, question)
    return returned


def _list_members(question: Question) -> frozenset[str]:
    """List the members of a reply to the question that are read, those that can only contradict it included."""
    form_members = question.wording.properties if question.wording is not None else ()
    return frozenset((*form_members, *FLAGS, *(OTHER_WORDS if question.choices else ()), "reasoning", "token"))


def _refuse_unknown(members: Mapping[str, Any], known: frozenset[str], question: Question) -> None:
    unknown = [name for name in members if name not in known]
    if unknown:
        raise _make_unknown_members(unknown, question)


def _make_unknown_members(unknown: list[str], question: Question) -> ShapeError:
    description = f"the unknown member{'s' if len(unknown) > 1 else ''} {', '.join(map(show, unknown[:3]))}"
    return ShapeError(f"the function returned {description}; {describe_expected(question)}")


def _make_unknown_shape(returned: Any, question: Question) -> ShapeError:
    """Make the error for what a function returned and no known shape fits."""
    if isinstance(returned, dict):
        unknown = [name for name in returned if name not in _BESIDE_VERDICT]
        if unknown:
            return _make_unknown_members(unknown, question)
        wrong = next((name for name in (*_VERDICT, *_REASONS) if _is_wrong(name, returned)), "")
        description = f"{wrong!r}: {show(returned[wrong])}" if wrong else "a dict without a score"
    elif returned is None:
        description = "None"
    elif isinstance(returned, str):
        description = f"a text (str), {show(returned[:40])}"
    elif isinstance(returned, list):  # a tuple, mostly
        kinds = [_KINDS.get(type(value), type(value).__name__) for value in returned[:4]]
        description = f"a tuple or list ({', '.join(kinds)}{', ...' if len(returned) > len(kinds) else ''})"
    else:
        description = f"a {_KINDS[type(returned)]}"
    return ShapeError(f"the function returned {description}; {describe_expected(question)}")


def _is_wrong(name: str, members: Mapping[str, Any]) -> bool:
    """Return whether a verdict's member is there and is not what it may be."""
    allowed = {"score": (bool, int, float, type(None)), "passed": (bool,)}.get(name, (str, type(None)))
    return name in members and not isinstance(members[name], allowed)


def describe_scale_remedy(returned: Mapping[str, Any], rubric: Rubric) -> str:
    """Describe what to do about a score that is not on the rubric's scale, where a common other one has it."""
    listed = returned.get("criteria")
    entries = listed if isinstance(listed, list) else []
    scores = [
        entry["score"] for entry in entries if isinstance(entry, dict) and type(entry.get("score")) in (int, float)
    ]
    low, high = rubric.scale
    for most in (10, 100):
        if rubric.scale != (0, most) and scores and high < max(scores) <= most and min(scores) >= 0:
            share = f"score / {most}" if (low, high) == (0, 1) else f"a score from {low:g} to {high:g}"
            return f"; return {share}, or give the rubric your scale: Rubric(..., scale=(0, {most}))"
    return "; return a score on that scale, or give the rubric yours: Rubric(..., scale=(lowest, highest))"


def _find_criterion(question: Question) -> str:
    """Return the name of the one criterion that a mere boolean or number is about. Raises ``ShapeError``."""
    criteria = question.open_criteria
    if len(criteria) != 1:
        names = list_names(criterion.name for criterion in criteria)
        raise ShapeError(
            f"the function returned one value for {len(criteria)} criteria ({names}); {describe_expected(question)}"
        )
    return criteria[0].name


def describe_expected(question: Question) -> str:
    """Describe in one sentence what a function may return to this question."""
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
    rubric, criteria = question.rubric, question.open_criteria
    name = json.dumps(criteria[0].name if criteria else "name")
    return f'{{"criteria": [{{"name": {name}, "score": {rubric.scale[1] if rubric else 1:g}}}, ...]}}'
