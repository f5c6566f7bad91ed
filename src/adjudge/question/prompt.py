"""The prompt: the system part of a rubric, of a result format and of a named reader, and the reply form.

The rule that content is data, and the user part with its fences, are in ``question.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from adjudge.models.model import Form
from adjudge.question.question import Question, Wording
from adjudge.question.reply_style import ADJUDGE_FORM, ReplyStyle
from adjudge.rubric.rubric import Criterion, Rubric


def choose_wording(
    rubric: Rubric | None,
    decided: frozenset[str],
    instructions: str,
    value_type: type[Any] | None,
    properties: Mapping[str, Any] | None,
) -> Wording:
    """Make the wording of a question about a rubric, a result format, or both; without the criteria in ``decided``."""
    if rubric is None or value_type is not None:
        return _make_value_wording(rubric, decided, instructions, value_type, _HashableProperties(properties or {}))
    return _make_rubric_wording(rubric, decided, instructions)


_PART_DESCRIPTIONS = {
    "call": "one call of a tool, with its result",
    "turn": "one turn of the agent: what it said, and the calls that it made at once, with their results",
}


def instruct_part(kind: str) -> str:
    """Return the instruction for a content that is one part of an agent's run: ``kind`` is ``call`` or ``turn``."""
    part = _PART_DESCRIPTIONS[kind]
    return (
        f"The content is a part of an agent's run. Score only its member `judged`, which is {part}. `before` "
        "is what had happened until then, shortened where it is long: it is evidence, and is not scored."
    )


class _HashableProperties(dict[str, Any]):
    """Members of a JSON Schema that can be a part of a cache key, beside the type that they are made from."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash that equal members have; it may be weak, because the type in the key has a good one."""
        return len(self)


@lru_cache(maxsize=256)
def _make_rubric_wording(rubric: Rubric, decided: frozenset[str], instructions: str) -> Wording:
    """Make the wording of a question about a rubric, without the criteria that are ``decided`` by rules."""
    criteria = [criterion for criterion in rubric.criteria if criterion.name not in decided]
    low, high = rubric.scale
    entry_members = ['"reasoning": "<the evidence you found, before you score>"']
    if any(criterion.quote for criterion in criteria):
        entry_members.append('"quote": "<words copied exactly from the content, or empty>"')
    entry_members.append(f'"score": <a number from {low:g} to {high:g}>')
    closing_members = ('"reasoning": "<the verdict as a whole>"', '"suggestions": ["<what would improve the content>"]')
    list_form = '"criteria": [{"name": "<the criterion\'s name, as written>", ' + ", ".join(entry_members) + "}, ...]"
    keyed_form = '"criteria": {"<the criterion\'s name, as written>": {' + ", ".join(entry_members) + "}, ...}"
    return Wording(
        role=_render_role(rubric, criteria, instructions),
        shape=(list_form, *closing_members),
        strict_shape=(keyed_form, *closing_members),
        notes="Score every criterion exactly once and invent none. Write the reasoning before each score.",
        properties={
            "criteria": _make_keyed_schema(rubric, criteria),
            "reasoning": {"type": "string"},
            "suggestions": {"type": "array", "items": {"type": "string"}},
        },
    )


@lru_cache(maxsize=256)
def _make_value_wording(
    rubric: Rubric | None,
    decided: frozenset[str],
    instructions: str,
    value_type: type[Any],
    properties: _HashableProperties,
) -> Wording:
    """Make the wording of a question for a value of a type, and for a rubric's criteria beside it if there is one."""
    members = tuple(f'"{name}": {_describe_member(schema)}' for name, schema in properties.items())
    if rubric is None:
        role = _add_instructions("You are a judge. Judge the content and report in the form below.", instructions)
        return Wording(role=role, shape=members, properties=dict(properties), name=_form_name(value_type))
    base = _make_rubric_wording(rubric, decided, instructions)
    return Wording(
        role=base.role,
        shape=(base.shape[0], *members),
        strict_shape=(base.strict_shape[0], *members),
        notes=base.notes,
        properties={"criteria": base.properties["criteria"], **properties},
        name=_form_name(value_type),
    )


def _describe_member(schema: Mapping[str, Any]) -> str:
    """Describe a member in angle brackets, by the description in its schema, else by the schema itself."""
    import msgspec

    return f"<{schema['description']}>" if "description" in schema else f"<{msgspec.json.encode(schema).decode()}>"


def _form_name(kind: type[Any]) -> str:
    """Return the name of a type as the name of a form: at most 64 letters, digits and underscores."""
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in kind.__name__)[:64] or "verdict"


def _render_role(rubric: Rubric, criteria: Sequence[Criterion], instructions: str) -> str:
    """Render the rubric: its scale, and of each criterion what it asks, its levels and its examples."""
    low, high = rubric.scale
    introduction = (
        "You are a judge. Score the content on each criterion of the rubric below, on evidence that stands in the "
        f"content, from {low:g} (not met at all) to {high:g} (fully met)."
    )
    lines = [introduction, f"\nRubric: {rubric.name}"]
    for number, criterion in enumerate(criteria, 1):
        lines.append(f"\n{number}. {criterion.name}: {criterion.description}")
        lines += [f"   score {score:g}: {meaning}" for score, meaning in criterion.levels]
        if criterion.levels:
            lines.append("   Give one of these scores and no other.")
        for example in criterion.examples:
            reason = f" ({example.why})" if example.why else ""
            lines.append(f"   Example, score {example.score:g}{reason}: {example.content}")
        if criterion.quote:
            lines.append("   Copy into quote the words of the content that your score rests on.")
    return _add_instructions("\n".join(lines), instructions)


def _add_instructions(text: str, instructions: str) -> str:
    """Put the caller's instructions after a text, if there are any."""
    return f"{text}\n\n{instructions}" if instructions else text


def _render_level(level: float) -> int | float:
    """Return a level without the ``.0`` of a whole number.

    It is then one token for most models, so that the alternatives to it have probabilities.
    """
    return int(level) if level.is_integer() else level


def _make_keyed_schema(rubric: Rubric, criteria: Sequence[Criterion]) -> dict[str, Any]:
    """Make the JSON Schema of a reply's criteria: an object with an entry for each criterion, by its name."""
    # Not a list: a model that is held to this schema can neither skip nor repeat a criterion.
    low, high = rubric.scale
    properties: dict[str, Any] = {}
    for criterion in criteria:
        score: dict[str, Any] = {"type": "number", "minimum": low, "maximum": high}
        if criterion.levels:
            score = {"type": "number", "enum": [_render_level(level) for level, _ in criterion.levels]}
        quote = {"quote": {"type": "string"}} if criterion.quote else {}
        members = {"reasoning": {"type": "string"}, **quote, "score": score}
        properties[criterion.name] = {
            "type": "object",
            "properties": members,
            "required": list(members),
            "additionalProperties": False,
        }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_STYLE_REQUESTS = {
    "score": "Give one score from {low:g} to {high:g}, and end the reply in this style: {name}",
    "label": "End the reply in this style: {name}",
}


_PREFERENCE_REQUESTS = {
    "[[A]]": "Give your reasons, then end the reply with [[A]] when `first` is better or [[B]] when `second` is",
    "[[A>B]]": "Give your reasons, then end the reply with [[A>>B]] or [[A>B]] when `first` is much or slightly "
    "better, or with [[B>>A]] or [[B>A]] when `second` is",
    "Output (a)": "Reply with Output (a) when `first` is better or with Output (b) when `second` is, and nothing else",
    "Output (a) is better": 'Give your reasons, then end the reply with "Therefore, Output (a) is better." when '
    '`first` is better or with "Therefore, Output (b) is better." when `second` is',
    "A:": "Begin the reply with the letter A when `first` is better or with B when `second` is, then a colon, and give "
    "your reasons after it",
    "name": "Reply with the one word first when `first` is better or second when `second` is, and nothing else",
    "ordered_models": "Reply with one JSON object of this shape, in which the better of the two has rank 1: "
    '{"ordered_models": [{"model": "first", "rank": 2}, {"model": "second", "rank": 1}]}',
    "json winner": 'Reply with {"winner": "A"} when `first` is better or {"winner": "B"} when `second` is',
}
"""The request for each reader of a preference."""


_TIE_REQUESTS = {
    "[[A]]": ", or with [[C]] for a tie",
    "A:": "; begin it with C for a tie",
    "[[A>B]]": ", or with [[A=B]] for a tie",
    "json winner": ', or {"winner": "tie"} for a tie',
}
"""The addition where a tie is on offer; the other readers have no form for one."""


_NAMED_PREFERENCE_REQUESTS = {
    "name": "Reply with the one word {first} when `first` is better or {second} when `second` is, and nothing else",
    "ordered_models": "Reply with one JSON object whose member ordered_models lists {first}, which is `first`, and "
    "{second}, which is `second`, each as an object with model and rank; the better has rank 1",
    "json winner": "Reply with one JSON object whose member winner is {first} when `first` is better or {second} when "
    "`second` is",
}
"""The same as in ``_PREFERENCE_REQUESTS`` where the caller gave the names."""


_LABEL_REQUESTS = {
    "label": "Reply with one of these labels and nothing else: {labels}",
    "GRADE: C": "End the reply with GRADE: and one of these labels: {labels}",
}


def render_system(question: Question, *, structured: bool, token: bool, style: ReplyStyle) -> tuple[str, Form | None]:
    """Render the system part of a prompt and, for structured output, the form of the reply.

    A ready-made prompt has neither. A reply in another style than adjudge's own form is asked for in words, without a
    form.
    """
    wording = question.wording
    if wording is None:
        return "", None
    if style.reader == ADJUDGE_FORM:
        return wording.system(structured=structured, token=token), wording.form(token=token) if structured else None
    from adjudge.question.readers import find_reader

    named_reader = find_reader(style.reader)
    if question.choices:
        tie = _TIE_REQUESTS.get(named_reader.name, "") if "tie" in question.choices else ""
        request = _PREFERENCE_REQUESTS[named_reader.name]
        if style.labels:
            first, second = (json.dumps(name, ensure_ascii=False) for name in style.labels)
            request = _NAMED_PREFERENCE_REQUESTS[named_reader.name].format(first=first, second=second)
        return f"{wording.frame()}\n\n{request}{tie}.", None
    if style.labels and named_reader.name in _LABEL_REQUESTS:
        labels = ", ".join(style.labels)
        return f"{wording.frame()}\n\n{_LABEL_REQUESTS[named_reader.name].format(labels=labels)}.", None
    low, high = question.rubric.scale if question.rubric else (0.0, 1.0)
    request = _STYLE_REQUESTS[named_reader.kind].format(name=named_reader.name, low=low, high=high)
    return f"{wording.frame()}\n\n{request}", None
