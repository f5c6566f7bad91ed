"""Judges in code: what a function is given of a question, and how what it returns is read.

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

from adjudge.errors import ReplyError
from adjudge.formats.extent import MOST_WRITTEN, find_excess
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.text import show
from adjudge.models.model import FunctionIdentity, Given, Reply
from adjudge.question.question import Answer, Part, Question
from adjudge.question.reply_object import FLAGS, read_value
from adjudge.question.score import ENTRY_FORM, OTHER_WORDS
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Criterion, Rubric

_BESIDE = ("task", "reference", "context")
"""The data that has a parameter of its own."""

_NOT_JUDGED = (*_BESIDE, "findings")


def make_given(question: Question) -> Given:
    """What a judge in code is given of a question."""
    return Given(
        arguments=lambda: list_arguments(question),
        write=lambda value: write_returned(value, question),
        key=_make_key(question),
    )


def list_arguments(question: Question) -> dict[str, Any]:
    """What a judge in code may ask for, each made anew from the text that is judged.

    Text is given as it is, and any other content as the JSON value that it is judged as. Where no part is called
    content (two contents to compare, what a guard asks about), all that is judged is given by its labels.
    """
    values: dict[str, Any] = {"content": _read_content(question)}
    values |= {part.label: _read_part(part) for part in question.parts if part.label in _BESIDE}
    return values | ({"rubric": question.rubric} if question.rubric is not None else {})


def _read_content(question: Question) -> Any:
    if question.wording is None:
        return question.parts[0].text
    judged = {part.label: part for part in question.parts if part.label not in _NOT_JUDGED}
    if "content" in judged:
        return _read_part(judged["content"])
    return {label: _read_part(part) for label, part in judged.items()}


def _read_part(part: Part) -> Any:
    if not part.is_json:
        return part.text
    try:
        return json.loads(part.text)
    except (ValueError, RecursionError):
        # What was redacted is what is judged. To hand over the value from before would show what had to be hidden.
        raise ReplyError("error", f"the {part.label} is no JSON value any more after the redaction") from None


def _make_key(question: Question) -> str:
    """What the prompt leaves out: which texts are JSON values, and of the rubric what no model is told."""
    values = [part.label for part in question.parts if part.is_json]
    rubric = question.rubric.digest if question.rubric is not None else ""
    return hashlib.sha256(json.dumps([values, rubric]).encode()).hexdigest()


def write_returned(value: object, question: Question) -> str:
    """What a function returned, as canonical JSON (RFC 8785); raises ``ReplyError`` for what is no answer at all.

    NaN, infinity and integers above 2^53, which that form does not have, are written as Python does: reading then says
    what is wrong with them.
    """
    opened = value
    try:
        if isinstance(value, JudgeResult):
            opened = _open_result(value, question)
        elif question.value_type is not None and isinstance(value, question.value_type):
            opened = _open_value(value)
        if find_excess(opened) == "long":  # one object held many times is written each time
            raise ReplyError("unparseable", f"the function returned more than {MOST_WRITTEN:,} characters of JSON")
        return _write(_to_plain(opened))
    except (TypeError, ValueError, RecursionError):
        held = " that holds what JSON does not have" if isinstance(opened, dict | list | tuple) else ""
        said = f"{type(value).__name__}{held}"
        raise ReplyError("unparseable", f"the function returned {said}; {_say_expected(question)}") from None


def read_returned(reply: Reply, question: Question, function: FunctionIdentity) -> Answer:
    """The answer that a function's kept or fresh reply holds; raises ``ReplyError`` for one that is not its own."""
    if reply.function != function:
        who = "a model" if reply.function is None else f"the function {reply.function}"
        raise ReplyError(
            "unparseable", f"the reply is that of {who}, and the judge is {function} as its code is now; ask it again"
        )
    return question.answer(_bring_into_form(read_value(reply.text), question), question)


def _bring_into_form(said: Any, question: Question) -> Mapping[str, Any]:
    """What was returned in the form of a reply to the question."""
    if isinstance(said, dict):
        if question.value_type is None and question.rubric is not None and "criteria" not in said:
            _refuse_unknown(said, _list_members(question), question)
            raise ReplyError("missing_criterion", f"the function returned no 'criteria'; {_say_expected(question)}")
        _check_members(said, question)
        return said
    if question.choices:
        if isinstance(said, str):
            return {"preferred": said}
    elif question.value_type is None and question.rubric is not None:
        if type(said) in (bool, int, float):
            return {"criteria": [{"name": _find_criterion(question), "score": _to_scale(said, question.rubric)}]}
    elif question.value_type is None and isinstance(said, bool):
        return {"safe": said}
    shown = "None" if said is None else f"a {_KINDS.get(type(said), 'list')}"
    raise ReplyError("unparseable", f"the function returned {shown}; {_say_expected(question)}")


def _check_members(said: Mapping[str, Any], question: Question) -> None:
    """Raise ``ReplyError`` for a member that is not read.

    A model invents members, and its reply is read without them. A function has an author: what they wrote and nobody
    reads is a mistake, and ``{"passd": False}`` beside scores that pass would let through what was to be stopped.
    """
    if question.value_type is None:  # else the type says whether there may be others
        _refuse_unknown(said, _list_members(question), question)
    criteria = said.get("criteria") if question.rubric is not None else None
    for entry in criteria.values() if isinstance(criteria, dict) else criteria if isinstance(criteria, list) else ():
        if isinstance(entry, dict):
            _refuse_unknown(entry, _ENTRY, question)


def _list_members(question: Question) -> frozenset[str]:
    """The members of a reply to the question that are read, those that can only contradict it included."""
    own = question.wording.properties if question.wording is not None else ()
    return frozenset((*own, *FLAGS, *(OTHER_WORDS if question.choices else ()), "reasoning", "token"))


_ENTRY = frozenset((*ENTRY_FORM, *FLAGS))
"""The members of a criterion's entry."""


def _refuse_unknown(said: Mapping[str, Any], known: frozenset[str], question: Question) -> None:
    unknown = [name for name in said if name not in known]
    if unknown:
        named = f"the unknown member{'s' if len(unknown) > 1 else ''} {', '.join(map(show, unknown[:3]))}"
        raise ReplyError("unparseable", f"the function returned {named}; {_say_expected(question)}")


_KINDS = {bool: "bool", int: "number", float: "number", str: "text"}


def _find_criterion(question: Question) -> str:
    """The name of the one criterion that a mere boolean or number is about."""
    asked = question.asked
    if len(asked) != 1:
        named = ", ".join(repr(item.name) for item in asked)
        raise ReplyError(
            "missing_criterion",
            f"the function returned one value for {len(asked)} criteria ({named}); {_say_expected(question)}",
        )
    return asked[0].name


def _to_scale(said: Any, rubric: Rubric) -> float:
    low, high = rubric.scale
    return (high if said else low) if isinstance(said, bool) else said


def _say_expected(question: Question) -> str:
    """What a function may return to this question, in one sentence."""
    if question.choices:
        return f"expected is {', '.join(repr(name) for name in question.choices)}, or a dict with 'preferred'"
    if question.value_type is not None:
        more = " with 'criteria' beside its members" if question.rubric is not None else ""
        form = f"a dict{more}" if question.rubric is not None else f"a {question.value_type.__name__}, a dict"
        return f"expected is {form} in the shape of the reply form, or a JudgeResult"
    if question.rubric is None:
        return "expected is a bool, a dict in the shape of the reply form, or a JudgeResult"
    asked, (low, high) = question.asked, question.rubric.scale
    name = json.dumps(asked[0].name if asked else "name")
    form = f'a dict like {{"criteria": [{{"name": {name}, "score": {high:g}}}, ...]}}, or a JudgeResult'
    return f"expected is {form}" if len(asked) > 1 else f"expected is a bool, a number from {low:g} to {high:g}, {form}"


# ------------------------------------------------------------------ results and instances in the form of a reply


def _open_result(result: JudgeResult, question: Question) -> dict[str, Any]:
    """A result in the form of a reply, for code to decide anew; raises ``ReplyError`` for one that answers nothing."""
    for said, own, what in (
        (result.question, question.digest, "question"),
        (result.subject, question.subject, "content"),
    ):
        if said is not None and said != own:
            raise ReplyError("error", f"the function returned a JudgeResult about another {what}")
    if result.passed and result.decided_by == "policy":
        # A policy that opens is for whoever asks; a seat that passes by one would hide it from everybody.
        raise ReplyError("error", "the function returned a JudgeResult that a policy let pass; nobody judged it good")
    if result.undecided_because is not None:
        raise ReplyError(result.undecided_because, result.detail or "the function returned a result that is undecided")
    found: dict[str, Any] = {"reasoning": result.reasoning}
    if question.choices:
        # Its outcome says that it chose, and not which is better.
        return found | ({"preferred": result.value} if result.passed else {})
    if question.rubric is None and question.value_type is None:
        return found | {"safe": result.passed}
    if question.rubric is not None:
        found |= {"criteria": _list_scores(result, question), "suggestions": list(result.suggestions)}
    if question.value_type is not None:
        # Without a rubric nothing beside its members, which a type may forbid.
        members = _open_value(result.value) if isinstance(result.value, question.value_type) else {}
        found = members if question.rubric is None else found | members
    if not result.passed and question.answer(found, question).outcome == "passed":
        # Its outcome cannot stand in for the scores, and must not be overlooked beside them. It is not kept with them:
        # by another threshold it would have been another.
        raise ReplyError("contradiction", "the function returned a JudgeResult that failed, with scores that pass")
    return found


def _list_scores(result: JudgeResult, question: Question) -> list[dict[str, Any]]:
    """What a result says of each criterion, as entries of a reply on the rubric's own scale."""
    rubric = question.rubric
    if rubric is None:
        return []
    asked = {item.name: item for item in question.asked}
    if not result.criteria and len(asked) == 1 and not question.settled:
        share = float(result.passed) if result.score is None else result.score
        return [_write_entry(next(iter(asked)), share, rubric)]
    entries = []
    for item in result.criteria:
        if item.name not in question.settled:
            criterion, quote = asked.get(item.name), (item.evidence or ("",))[0]
            entries.append(
                _write_entry(item.name, item.score, rubric, criterion)
                | {"reasoning": item.reasoning}
                | ({"quote": quote} if criterion is not None and criterion.quote else {})
            )
    return entries


def _write_entry(name: str, share: float | None, rubric: Rubric, criterion: Criterion | None = None) -> dict[str, Any]:
    low, high = rubric.scale
    if share is None:
        return {"name": name, "score": None}
    score = min(max(low + float(share) * (high - low), low), high)  # but for rounding it is in between
    levels = [level for level, _ in criterion.levels] if criterion is not None else []
    # Of a level that was scaled down and up again the last digit may be another.
    return {"name": name, "score": next((level for level in levels if abs(level - score) < 1e-9), score)}


def _open_value(value: Any) -> dict[str, Any]:
    """An instance of the result format by the members that its schema has; it is read as strictly as any reply."""
    if hasattr(value, "model_dump"):
        return dict(value.model_dump(mode="json", by_alias=True))
    import msgspec

    return dict(msgspec.to_builtins(value))


# ------------------------------------------------------------------ plain data


def _to_plain(value: Any, depth: int = 0) -> Any:
    """JSON's types; raises ``TypeError`` for what is none of them."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if depth > MOST_DEPTH:
        raise RecursionError
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError
        return {str.__str__(name): _to_plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item, depth + 1) for item in value]
    return _open_scalar(value)


def _open_scalar(value: Any) -> Any:
    """A number or text of another type: of an enumeration, or of numpy."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, str):
        return str.__str__(value)
    if numpy is not None and isinstance(value, numpy.floating):  # one that Python has no number for
        return float(value)
    raise TypeError


def _write(plain: Any) -> str:
    import rfc8785

    try:
        return rfc8785.dumps(plain).decode()
    except rfc8785.CanonicalizationError:
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))
