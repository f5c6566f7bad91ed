"""What the prompt says: the system part of a rubric, of a result format and of a named reader, and the reply form.

The rule that content is data, and the user part with the fences around it, are in ``question.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from adjudge.models.model import Form
from adjudge.question.question import Question, Wording
from adjudge.question.readers import find_reader
from adjudge.question.reply_style import OWN, ReplyStyle
from adjudge.rubric.rubric import Criterion, Rubric


def _choose_wording(
    rubric: Rubric | None,
    settled: frozenset[str],
    instructions: str,
    kind: type[Any] | None,
    properties: Mapping[str, Any] | None,
) -> Wording:
    if rubric is None or kind is not None:
        return _word_value(rubric, settled, instructions, kind, _Properties(properties or {}))
    return _word_rubric(rubric, settled, instructions)


class _Properties(dict[str, Any]):
    """Schema members as a cache key: equal types have equal schemas, so identity of the type is enough."""

    def __hash__(self) -> int:  # type: ignore[override]
        return len(self)


@lru_cache(maxsize=256)
def _word_rubric(rubric: Rubric, settled: frozenset[str], instructions: str) -> Wording:
    asked = [item for item in rubric.criteria if item.name not in settled]
    low, high = rubric.scale
    entry = ['"reasoning": "<the evidence you found, before you score>"']
    entry += ['"quote": "<words copied exactly from the content, or empty>"'] if any(i.quote for i in asked) else []
    entry.append(f'"score": <a number from {low:g} to {high:g}>')
    tail = ('"reasoning": "<the verdict as a whole>"', '"suggestions": ["<what would improve the content>"]')
    listed = '"criteria": [{"name": "<the criterion\'s name, as written>", ' + ", ".join(entry) + "}, ...]"
    keyed = '"criteria": {"<the criterion\'s name, as written>": {' + ", ".join(entry) + "}, ...}"
    return Wording(
        role=_render_role(rubric, asked, instructions),
        shape=(listed, *tail),
        strict_shape=(keyed, *tail),
        notes="Score every criterion exactly once and invent none. Write the reasoning before each score.",
        properties={
            "criteria": _keyed_schema(rubric, asked),
            "reasoning": {"type": "string"},
            "suggestions": {"type": "array", "items": {"type": "string"}},
        },
    )


@lru_cache(maxsize=256)
def _word_value(
    rubric: Rubric | None, settled: frozenset[str], instructions: str, kind: type[Any], properties: _Properties
) -> Wording:
    members = tuple(f'"{name}": {_describe(schema)}' for name, schema in properties.items())
    if rubric is None:
        role = _join("You are a judge. Judge the content and report in the form below.", instructions)
        return Wording(role=role, shape=members, properties=dict(properties), name=_form_name(kind))
    base = _word_rubric(rubric, settled, instructions)
    return Wording(
        role=base.role,
        shape=(base.shape[0], *members),
        strict_shape=(base.strict_shape[0], *members),
        notes=base.notes,
        properties={"criteria": base.properties["criteria"], **properties},
        name=_form_name(kind),
    )


def _describe(schema: Mapping[str, Any]) -> str:
    import msgspec

    return f"<{schema['description']}>" if "description" in schema else f"<{msgspec.json.encode(schema).decode()}>"


def _form_name(kind: type[Any]) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in kind.__name__)[:64] or "verdict"


def _render_role(rubric: Rubric, asked: Sequence[Criterion], instructions: str) -> str:
    low, high = rubric.scale
    duty = (
        "You are a judge. Score the content on each criterion of the rubric below, on evidence that stands in the "
        f"content, from {low:g} (not met at all) to {high:g} (fully met)."
    )
    lines = [duty, f"\nRubric: {rubric.name}"]
    for place, item in enumerate(asked, 1):
        lines.append(f"\n{place}. {item.name}: {item.description}")
        lines += [f"   score {score:g}: {meaning}" for score, meaning in item.levels]
        lines += ["   Give one of these scores and no other."] if item.levels else []
        lines += [f"   Example, score {e.score:g}{f' ({e.why})' if e.why else ''}: {e.content}" for e in item.examples]
        lines += ["   Copy into quote the words of the content that your score rests on."] if item.quote else []
    return _join("\n".join(lines), instructions)


def _join(text: str, instructions: str) -> str:
    return f"{text}\n\n{instructions}" if instructions else text


def _render_level(level: float) -> int | float:
    """A whole level without its ``.0``: one token for most models, so that its alternatives have probabilities."""
    return int(level) if level.is_integer() else level


def _keyed_schema(rubric: Rubric, asked: Sequence[Criterion]) -> dict[str, Any]:
    # Keyed by name and not a list: a provider that enforces the schema can then neither skip nor repeat a criterion.
    low, high = rubric.scale
    properties: dict[str, Any] = {}
    for item in asked:
        score: dict[str, Any] = {"type": "number", "minimum": low, "maximum": high}
        if item.levels:
            score = {"type": "number", "enum": [_render_level(level) for level, _ in item.levels]}
        quote = {"quote": {"type": "string"}} if item.quote else {}
        members = {"reasoning": {"type": "string"}, **quote, "score": score}
        properties[item.name] = {
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
"""What to say of each reader of a preference."""


_TIES = {
    "[[A]]": ", or with [[C]] for a tie",
    "A:": "; begin it with C for a tie",
    "[[A>B]]": ", or with [[A=B]] for a tie",
    "json winner": ', or {"winner": "tie"} for a tie',
}
"""What to say more where a tie is on offer; the other readers have no form for one."""


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
    """The system part and, for structured output, the form; a ready-made prompt has neither."""
    wording = question.wording
    if wording is None:
        return "", None
    if style.reader == OWN:
        return wording.system(structured=structured, token=token), wording.form(token=token) if structured else None
    form = find_reader(style.reader)
    if question.choices:
        tie = _TIES.get(form.name, "") if "tie" in question.choices else ""
        said = _CHOICES[form.name]
        if style.labels:
            first, second = (json.dumps(name, ensure_ascii=False) for name in style.labels)
            said = _NAMED[form.name].format(first=first, second=second)
        return f"{wording.frame()}\n\n{said}{tie}.", None
    if style.labels and form.name in _LABELLED:
        shown = ", ".join(style.labels)
        return f"{wording.frame()}\n\n{_LABELLED[form.name].format(labels=shown)}.", None
    low, high = question.rubric.scale if question.rubric else (0.0, 1.0)
    return f"{wording.frame()}\n\n{_ASKS[form.kind].format(name=form.name, low=low, high=high)}", None
