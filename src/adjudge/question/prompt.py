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
    """Word a question about a rubric, a result format, or both."""
    if rubric is None or value_type is not None:
        return _word_value(rubric, decided, instructions, value_type, _Properties(properties or {}))
    return _word_rubric(rubric, decided, instructions)


_PARTS = {
    "call": "one call of a tool, with its result",
    "turn": "one turn of the agent: what it said, and the calls that it made at once, with their results",
}


def instruct_part(kind: str) -> str:
    """Word what is to be scored of a content that is one part of an agent's run, ``call`` or ``turn``."""
    return (
        f"The content is a part of an agent's run. Score only its member `judged`, which is {_PARTS[kind]}. `before` "
        "is what had happened until then, shortened where it is long: it is evidence, and is not scored."
    )


class _Properties(dict[str, Any]):
    """Schema members as a cache key: equal types have equal schemas, so identity of the type is enough."""

    def __hash__(self) -> int:  # type: ignore[override]
        return len(self)


@lru_cache(maxsize=256)
def _word_rubric(rubric: Rubric, decided: frozenset[str], instructions: str) -> Wording:
    """Word the question by a rubric, without the criteria that rules have ``decided``."""
    criteria = [criterion for criterion in rubric.criteria if criterion.name not in decided]
    low, high = rubric.scale
    entry = ['"reasoning": "<the evidence you found, before you score>"']
    if any(criterion.quote for criterion in criteria):
        entry.append('"quote": "<words copied exactly from the content, or empty>"')
    entry.append(f'"score": <a number from {low:g} to {high:g}>')
    tail = ('"reasoning": "<the verdict as a whole>"', '"suggestions": ["<what would improve the content>"]')
    list_form = '"criteria": [{"name": "<the criterion\'s name, as written>", ' + ", ".join(entry) + "}, ...]"
    keyed_form = '"criteria": {"<the criterion\'s name, as written>": {' + ", ".join(entry) + "}, ...}"
    return Wording(
        role=_render_role(rubric, criteria, instructions),
        shape=(list_form, *tail),
        strict_shape=(keyed_form, *tail),
        notes="Score every criterion exactly once and invent none. Write the reasoning before each score.",
        properties={
            "criteria": _make_keyed_schema(rubric, criteria),
            "reasoning": {"type": "string"},
            "suggestions": {"type": "array", "items": {"type": "string"}},
        },
    )


@lru_cache(maxsize=256)
def _word_value(
    rubric: Rubric | None, decided: frozenset[str], instructions: str, value_type: type[Any], properties: _Properties
) -> Wording:
    """Word the question for a value of a type, and for a rubric's criteria beside it if there is one."""
    members = tuple(f'"{name}": {_describe(schema)}' for name, schema in properties.items())
    if rubric is None:
        role = _join("You are a judge. Judge the content and report in the form below.", instructions)
        return Wording(role=role, shape=members, properties=dict(properties), name=_form_name(value_type))
    base = _word_rubric(rubric, decided, instructions)
    return Wording(
        role=base.role,
        shape=(base.shape[0], *members),
        strict_shape=(base.strict_shape[0], *members),
        notes=base.notes,
        properties={"criteria": base.properties["criteria"], **properties},
        name=_form_name(value_type),
    )


def _describe(schema: Mapping[str, Any]) -> str:
    import msgspec

    return f"<{schema['description']}>" if "description" in schema else f"<{msgspec.json.encode(schema).decode()}>"


def _form_name(kind: type[Any]) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in kind.__name__)[:64] or "verdict"


def _render_role(rubric: Rubric, criteria: Sequence[Criterion], instructions: str) -> str:
    """Render the rubric: its scale, and of each criterion what it asks, its levels and its examples."""
    low, high = rubric.scale
    introduction = (
        "You are a judge. Score the content on each criterion of the rubric below, on evidence that stands in the "
        f"content, from {low:g} (not met at all) to {high:g} (fully met)."
    )
    lines = [introduction, f"\nRubric: {rubric.name}"]
    for place, criterion in enumerate(criteria, 1):
        lines.append(f"\n{place}. {criterion.name}: {criterion.description}")
        lines += [f"   score {score:g}: {meaning}" for score, meaning in criterion.levels]
        if criterion.levels:
            lines.append("   Give one of these scores and no other.")
        for example in criterion.examples:
            reason = f" ({example.why})" if example.why else ""
            lines.append(f"   Example, score {example.score:g}{reason}: {example.content}")
        if criterion.quote:
            lines.append("   Copy into quote the words of the content that your score rests on.")
    return _join("\n".join(lines), instructions)


def _join(text: str, instructions: str) -> str:
    return f"{text}\n\n{instructions}" if instructions else text


def _render_level(level: float) -> int | float:
    """Drop the ``.0`` of a whole level: one token for most models, so that its alternatives have probabilities."""
    return int(level) if level.is_integer() else level


def _make_keyed_schema(rubric: Rubric, criteria: Sequence[Criterion]) -> dict[str, Any]:
    """Make the schema of the criteria."""
    # Keyed by name and not a list: a provider that enforces the schema can then neither skip nor repeat a criterion.
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


_ASKS = {
    "score": "Give one score from {low:g} to {high:g}, and end the reply in this style: {name}",
    "label": "End the reply in this style: {name}",
}


_CHOICES = {
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


_TIES = {
    "[[A]]": ", or with [[C]] for a tie",
    "A:": "; begin it with C for a tie",
    "[[A>B]]": ", or with [[A=B]] for a tie",
    "json winner": ', or {"winner": "tie"} for a tie',
}
"""The addition where a tie is on offer; the other readers have no form for one."""


_NAMED = {
    "name": "Reply with the one word {first} when `first` is better or {second} when `second` is, and nothing else",
    "ordered_models": "Reply with one JSON object whose member ordered_models lists {first}, which is `first`, and "
    "{second}, which is `second`, each as an object with model and rank; the better has rank 1",
    "json winner": "Reply with one JSON object whose member winner is {first} when `first` is better or {second} when "
    "`second` is",
}
"""The same as in ``_CHOICES`` where the caller gave the names."""


_LABELLED = {
    "label": "Reply with one of these labels and nothing else: {labels}",
    "GRADE: C": "End the reply with GRADE: and one of these labels: {labels}",
}


def render_system(question: Question, *, structured: bool, token: bool, style: ReplyStyle) -> tuple[str, Form | None]:
    """Render the system part and, for structured output, the form; a ready-made prompt has neither."""
    wording = question.wording
    if wording is None:
        return "", None
    if style.reader == ADJUDGE_FORM:
        return wording.system(structured=structured, token=token), wording.form(token=token) if structured else None
    from adjudge.question.readers import find_reader

    form = find_reader(style.reader)
    if question.choices:
        tie = _TIES.get(form.name, "") if "tie" in question.choices else ""
        request = _CHOICES[form.name]
        if style.labels:
            first, second = (json.dumps(name, ensure_ascii=False) for name in style.labels)
            request = _NAMED[form.name].format(first=first, second=second)
        return f"{wording.frame()}\n\n{request}{tie}.", None
    if style.labels and form.name in _LABELLED:
        labels = ", ".join(style.labels)
        return f"{wording.frame()}\n\n{_LABELLED[form.name].format(labels=labels)}.", None
    low, high = question.rubric.scale if question.rubric else (0.0, 1.0)
    return f"{wording.frame()}\n\n{_ASKS[form.kind].format(name=form.name, low=low, high=high)}", None
