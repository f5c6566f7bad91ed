"""Judges in code: the arguments that a function is given of a question, and the reading of what it returns.

There is no prompt, so there is no token: what comes back is what the function returned, and nothing that was quoted to
it. Everything else is as with a model. What is returned is brought into the form of a reply and read by the question's
own reading, so rules, levels, quotations, thresholds and contradictions hold for it alike, and code decides.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from adjudge.errors import ReplyError, ShapeError
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.json_size import MOST_WRITTEN, measure_excess
from adjudge.formats.text import show
from adjudge.models.model import FunctionIdentity, FunctionInput, Reply
from adjudge.question.question import Answer, Part, Question
from adjudge.question.reply_object import read_value
from adjudge.question.returned_shapes import (
    bring_into_form,
    convert_foreign_result,
    describe_expected,
    describe_scale_remedy,
)
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Criterion, Rubric

_CONTEXT_LABELS = ("task", "reference", "context")
"""The labels of data that a judge in code gets by a parameter of that name, and not as content."""

_LABELS_NOT_JUDGED = (*_CONTEXT_LABELS, "findings")


def make_function_input(question: Question) -> FunctionInput:
    """Make the input of a judge in code from a question."""
    return FunctionInput(
        arguments=lambda: list_arguments(question),
        write=lambda value: write_returned(value, question),
        key=_digest_hidden_input(question),
    )


def list_arguments(question: Question) -> dict[str, Any]:
    """Return the values that a judge in code may ask for, by the names of parameters; made anew at each call.

    Text is given as it is, and any other content as the JSON value that it is judged as. Where no part is called
    content (two contents to compare, what a guard asks about), the content is a mapping of all that is judged, by its
    labels.
    """
    arguments: dict[str, Any] = {"content": _read_content(question)}
    arguments |= {part.label: _read_part(part) for part in question.parts if part.label in _CONTEXT_LABELS}
    return arguments | ({"rubric": question.rubric} if question.rubric is not None else {})


def _read_content(question: Question) -> Any:
    """Return the content that is judged: a text, a JSON value, or several of these by their labels."""
    if question.wording is None:
        return question.parts[0].text
    judged = {part.label: part for part in question.parts if part.label not in _LABELS_NOT_JUDGED}
    if "content" in judged:
        return _read_part(judged["content"])
    return {label: _read_part(part) for label, part in judged.items()}


def _read_part(part: Part) -> Any:
    """Return the JSON value of a part, or its text. Raises ``ReplyError`` if a redaction has broken the JSON."""
    if not part.is_json:
        return part.text
    try:
        return json.loads(part.text)
    except (ValueError, RecursionError):
        # The redacted text is judged. The value from before the redaction would show what had to be hidden.
        raise ReplyError("error", f"the {part.label} is no JSON value any more after the redaction") from None


def _digest_hidden_input(question: Question) -> str:
    """Digest the part of the input that a prompt does not show: which texts are JSON values, and the whole rubric."""
    json_labels = [part.label for part in question.parts if part.is_json]
    rubric = question.rubric.digest if question.rubric is not None else ""
    return hashlib.sha256(json.dumps([json_labels, rubric]).encode()).hexdigest()


def write_returned(value: object, question: Question) -> str:
    """Write a function's return value as canonical JSON (RFC 8785); raise ``ReplyError`` for a value that is no answer.

    It is a ``ShapeError`` for a value of none of the shapes that a judge in code may return.

    NaN, infinity and integers above 2^53, which canonical JSON does not have, are written as Python does: reading then
    says what is wrong with them.
    """
    plain_value = value
    try:
        if isinstance(value, JudgeResult):
            plain_value = _write_result(value, question)
        elif question.value_type is not None and isinstance(value, question.value_type):
            plain_value = _write_instance(value)
        if measure_excess(plain_value) == "long":  # one object held many times is written each time
            raise ReplyError("unparseable", f"the function returned more than {MOST_WRITTEN:,} characters of JSON")
        plain_value = _to_plain(plain_value)
        text = _write_json(plain_value)
    except (TypeError, ValueError, RecursionError):
        detail = " that holds what JSON does not have" if isinstance(plain_value, dict | list | tuple) else ""
        description = f"{type(value).__name__}{detail}"
        raise ShapeError(f"the function returned {description}; {describe_expected(question)}") from None
    _check_shape(plain_value, question)
    return text


def _check_shape(returned: Any, question: Question) -> None:
    """Raise ``ShapeError`` for a returned value that has no known shape, and ``ReplyError`` for one off the scale.

    Also raises ``ReplyError`` for the content itself, which would be its own verdict.
    """
    if isinstance(returned, dict | list) and returned == _read_content(question):
        raise ReplyError(
            "unparseable",
            "the function returned the content itself, which would be its own verdict; return what you compute from it",
        )
    try:
        bring_into_form(returned, question)
    except ShapeError:
        raise
    except ReplyError as error:
        if error.because == "off_scale":
            raise
        # Its shape is known. What else is wrong with it is raised when the reply is read.


def read_returned(reply: Reply, question: Question, function: FunctionIdentity) -> Answer:
    """Read the answer in a function's kept or fresh reply; raise ``ReplyError`` for a reply of anybody else."""
    if reply.function != function:
        author = "a model" if reply.function is None else f"the function {reply.function}"
        raise ReplyError(
            "unparseable",
            f"the reply is that of {author}, and the judge is {function} as its code is now; ask it again",
        )
    members = bring_into_form(read_value(reply.text), question)
    try:
        return question.answer(members, question)
    except ReplyError as error:
        if error.because not in ("off_scale", "missing_criterion") or question.rubric is None:
            raise
        # Unlike a model, which is told them, the author of a function may not know the scale and the criteria.
        if error.because == "off_scale":
            remedy = describe_scale_remedy(members, question.rubric)
        else:
            names = ", ".join(show(criterion.name) for criterion in question.open_criteria)
            remedy = f"; return one score for each criterion, by its name: {names}"
        raise ReplyError(error.because, f"{error.detail}{remedy}") from None


# ------------------------------------------------------------------ results and instances in the form of a reply


def _write_result(result: JudgeResult, question: Question) -> dict[str, Any]:
    """Write a ``JudgeResult`` in the form of a reply, which is then judged anew by code.

    Raises ``ReplyError`` for a result that cannot be the answer to this question.
    """
    for digest, expected, subject in (
        (result.question, question.digest, "question"),
        (result.subject, question.subject, "content"),
    ):
        if digest is not None and digest != expected:
            raise ReplyError("error", f"the function returned a JudgeResult about another {subject}")
    if result.passed and result.decided_by == "policy":
        # Only the caller's own policy may let content pass. Inside a judge it would look like a judge's pass.
        raise ReplyError("error", "the function returned a JudgeResult that a policy let pass; nobody judged it good")
    if result.undecided_because is not None:
        raise ReplyError(result.undecided_because, result.detail or "the function returned a result that is undecided")
    members: dict[str, Any] = {"reasoning": result.reasoning}
    if question.choices:
        # Here ``passed`` says only that the judge chose; the choice is the value.
        return members | ({"preferred": result.value} if result.passed else {})
    if question.rubric is None and question.value_type is None:
        return members | {"safe": result.passed}
    if question.rubric is not None:
        members |= {"criteria": _list_scores(result, question), "suggestions": list(result.suggestions)}
    if question.value_type is not None:
        # Without a rubric, the reply has the members of the type alone, because the type may forbid others.
        value_members = _write_instance(result.value) if isinstance(result.value, question.value_type) else {}
        members = value_members if question.rubric is None else members | value_members
    if not result.passed and question.answer(members, question).outcome == "passed":
        # Its scores are judged anew, but a failure must not become a pass by that. The outcome itself is not written,
        # because it depends on the threshold that was in force.
        raise ReplyError("contradiction", "the function returned a JudgeResult that failed, with scores that pass")
    return members


def _list_scores(result: JudgeResult, question: Question) -> list[dict[str, Any]]:
    """Write a result's criteria as entries of a reply, on the rubric's own scale; without those that rules decide."""
    rubric = question.rubric
    if rubric is None:
        return []
    criteria = {criterion.name: criterion for criterion in question.open_criteria}
    if not result.criteria and len(criteria) == 1 and not question.decided_by_rules:  # its score is the criterion's
        share = float(result.passed) if result.score is None else result.score
        return [_write_entry(next(iter(criteria)), share, rubric)]
    entries = []
    for criterion_result in result.criteria:
        if criterion_result.name not in question.decided_by_rules:
            criterion = criteria.get(criterion_result.name)
            quote = (criterion_result.evidence or ("",))[0]
            entries.append(
                _write_entry(criterion_result.name, criterion_result.score, rubric, criterion)
                | {"reasoning": criterion_result.reasoning}
                | ({"quote": quote} if criterion is not None and criterion.quote else {})
            )
    return entries


def _write_entry(name: str, share: float | None, rubric: Rubric, criterion: Criterion | None = None) -> dict[str, Any]:
    """Write a criterion's entry of a reply, with a score in 0 to 1 converted to the rubric's scale.

    A score that differs from a level by rounding alone becomes that level. ``None`` stays ``None``.
    """
    low, high = rubric.scale
    if share is None:
        return {"name": name, "score": None}
    score = min(max(low + float(share) * (high - low), low), high)  # rounding must not carry it off the scale
    levels = [level for level, _ in criterion.levels] if criterion is not None else []
    for level in levels:
        if abs(level - score) < 1e-9:
            return {"name": name, "score": level}
    return {"name": name, "score": score}


def _write_instance(value: Any) -> dict[str, Any]:
    """Write an instance of the result format as the members that its schema has."""
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(mode="json", by_alias=True))
    import msgspec

    return dict(msgspec.to_builtins(value))


# ------------------------------------------------------------------ plain data


def _to_plain(value: Any, depth: int = 0) -> Any:
    """Convert a value to the types of JSON; raise ``TypeError`` for a value that is none of them."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if depth > MOST_DEPTH:
        raise RecursionError
    value = convert_foreign_result(value)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError
        return {str.__str__(name): _to_plain(member, depth + 1) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(member, depth + 1) for member in value]
    return _convert_scalar(value)


def _convert_scalar(value: Any) -> Any:
    """Convert a number or text of another type: a member of an enumeration, or a scalar of numpy."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and (
        isinstance(value, numpy.generic) or (isinstance(value, numpy.ndarray) and value.ndim == 0)
    ):
        value = value.item()
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, str):
        return str.__str__(value)
    if numpy is not None and isinstance(value, numpy.floating):  # longdouble, which ``item`` leaves as it is
        return float(value)
    raise TypeError


def _write_json(plain: Any) -> str:
    """Write a value as canonical JSON; as Python's JSON, with sorted keys, where it has no canonical form."""
    import rfc8785

    try:
        return rfc8785.dumps(plain).decode()
    except rfc8785.CanonicalizationError:
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))
