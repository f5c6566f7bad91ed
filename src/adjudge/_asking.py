"""From the arguments of a call to a question: wording, data, rules.

``prepare`` is what every ``evaluate`` does before a judge is asked. It raises ``UsageError`` for everything that is
wrong with the call, so nothing has been asked when it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypedDict

from adjudge._unchanged import copy_plain
from adjudge._value import answer_rubric_and_value, answer_value, check_format
from adjudge.content import content_text, digest_text
from adjudge.errors import UsageError
from adjudge.question import Part, Question, Wording, digest_question
from adjudge.result import CriterionResult, RuleResult
from adjudge.rubric import Criterion, Rubric, check_threshold, make_rubric
from adjudge.rubric_file import load_rubric
from adjudge.rules import Rule, as_rule
from adjudge.score import answer_rubric, answer_yes_no, grade_criterion

RubricSource = Rubric | Mapping[str, Any] | str | os.PathLike[str]


class Asking(TypedDict, total=False):
    """The keyword arguments every ``evaluate`` takes."""

    criteria: str | Sequence[str] | Mapping[str, str] | None
    """Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences."""
    threshold: float | None
    """The passing threshold for ``criteria``, or over the rubric's own, in 0 to 1."""
    reference: object
    """A known good answer to compare with; data, fenced."""
    task: object
    """What the content was meant to do; data, fenced."""
    context: object
    """What the content may rely on (passages, policies); data, fenced."""
    model: str | None
    """The model to ask, over the rubric's and the judge's own; a ``UsageError`` on a chain."""
    rules: Sequence[Rule | Mapping[str, Any] | Callable[..., Any] | str]
    """Deterministic checks that go first; a failed ``error`` rule decides before a model is asked."""
    instructions: str | None
    """More instructions for the judge, from you and trusted; never put content here."""
    result_format: type[Any] | None
    """A pydantic model, dataclass or msgspec Struct for the reply; the instance is ``result.value``."""
    passes: Callable[[Any], bool] | None
    """Whether an instance of ``result_format`` passes; without it, its boolean ``passed`` says."""
    throw_on_fail: bool
    """Raise ``JudgmentFailed`` when the content failed or the judge could not decide."""
    metadata: Mapping[str, Any] | None
    """Copied to the result, never sent to a model; ``case`` and ``order`` also select recorded replies."""


_KNOWN = frozenset(Asking.__annotations__)
_TYPES: Mapping[str, tuple[Any, str]] = {
    "instructions": (str, "a text"),
    "model": (str, "the name of a model"),
    "metadata": (Mapping, "a mapping"),
    "rules": (Sequence, "a list of rules"),
    "passes": (Callable, "a function"),
}
"""What would fail later, and less clearly, than at the call."""


async def prepare(content: object, rubric: RubricSource | None, own: Rubric | None, how: Asking) -> Question:
    """The question a call asks, its rules evaluated; ``own`` is the judge's rubric, used when the call brings none."""
    _check_names(how)
    chosen = _choose_rubric(rubric, own, how)
    kind, passes = how.get("result_format"), how.get("passes")
    properties = check_format(kind, passes) if kind is not None else None
    metadata = dict(how["metadata"] or {}) if "metadata" in how else {}
    content = copy_plain(content)  # the judge is shown one thing and the rules look at it, whatever its owner does
    parts = _make_parts(content, how)
    rules = how.get("rules")
    ran = [await rule.check(content, how.get("reference")) for rule in map(as_rule, rules)] if rules else []
    parts = _add_warnings(parts, ran) if ran else parts
    settled = await _settle(chosen, content, how.get("reference")) if chosen and chosen.has_rules else {}
    wording = _choose_wording(chosen, frozenset(settled), how.get("instructions") or "", kind, properties)
    return Question(
        wording=wording,
        parts=parts,
        answer=_choose_answer(chosen, kind),
        digest=digest_question(wording, parts),
        subject=digest_text(parts[-1].text),
        rubric=chosen,
        settled=settled,
        rule_results=(*ran, *[_as_rule_result(item, chosen) for item in settled.values()]) if ran or settled else (),
        value_type=kind,
        passes=passes,
        model=how.get("model") or (chosen.model if chosen else None),
        threshold=chosen.passing_threshold if chosen else None,
        case=_text_of(metadata.get("case")),
        order=_text_of(metadata.get("order")),
        metadata=metadata,
    )


def make_prompt(prompt: str) -> Question:
    """A ready-made yes/no prompt as a question: sent as it is, answered by ``safe``, ``passed`` or ``allowed``."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError(f"a ready-made prompt must be a text that is not empty, got {type(prompt).__name__}")
    parts = (Part(label="prompt", text=content_text(prompt, what="prompt")),)
    digest = digest_question(None, parts)
    return Question(wording=None, parts=parts, answer=answer_yes_no, digest=digest, subject=digest_text(prompt))


def _check_names(how: Mapping[str, Any]) -> None:
    for name, value in how.items():
        if name not in _KNOWN:
            from difflib import get_close_matches

            near = get_close_matches(name, _KNOWN, 1)
            raise UsageError(f"evaluate has no argument {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        if value is not None and name in _TYPES and not isinstance(value, _TYPES[name][0]):
            raise UsageError(f"{name} must be {_TYPES[name][1]}, got {type(value).__name__}")


def _choose_rubric(rubric: RubricSource | None, own: Rubric | None, how: Asking) -> Rubric | None:
    criteria, threshold = how.get("criteria"), how.get("threshold")
    if rubric is not None and criteria is not None:
        raise UsageError("give a rubric or criteria, not both")
    if criteria is not None:
        return make_rubric(criteria, threshold)
    chosen = load_rubric(rubric) if rubric is not None else own
    if chosen is None and threshold is not None:
        raise UsageError(f"threshold={threshold!r} needs criteria or a rubric to apply to")
    if chosen is None and how.get("result_format") is None:
        raise UsageError(
            "nothing says what good means: give a rubric, criteria='...' or result_format=...; "
            "a ready-made prompt goes to ask()"
        )
    if chosen is None or threshold is None:
        return chosen
    return replace(chosen, passing_threshold=check_threshold("threshold", threshold))


def _make_parts(content: object, how: Asking) -> tuple[Part, ...]:
    given = [
        Part(label=label, text=content_text(how[label], what=label))
        for label in ("task", "context", "reference")
        if how.get(label) is not None
    ]
    return (*given, Part(label="content", text=content_text(content)))


def _add_warnings(parts: tuple[Part, ...], ran: Sequence[RuleResult]) -> tuple[Part, ...]:
    """Failed warnings reach the judge as evidence, fenced, since their messages may quote the content."""
    said = [f"{item.name}: {item.message}" for item in ran if not item.passed and item.severity == "warning"]
    if not said:
        return parts
    return (*parts[:-1], Part(label="findings", text="\n".join(said)), parts[-1])


async def _settle(rubric: Rubric, content: object, reference: object) -> dict[str, CriterionResult]:
    settled: dict[str, CriterionResult] = {}
    for item in rubric.criteria:
        if item.rule is not None:
            said = await item.rule.check(content, reference)
            score = 1.0 if said.passed else 0.0
            settled[item.name] = grade_criterion(item, score, said.message, rule=item.rule.kind)
    return settled


def _as_rule_result(item: CriterionResult, rubric: Rubric | None) -> RuleResult:
    rule = next((each.rule for each in rubric.criteria if each.name == item.name), None) if rubric else None
    severity = rule.severity if rule else "error"
    return RuleResult(
        name=item.name, passed=item.score == 1.0, severity=severity, message=item.reasoning, score=item.score
    )


def _choose_answer(rubric: Rubric | None, kind: type[Any] | None) -> Callable[[Mapping[str, Any], Question], Any]:
    if kind is None:
        return answer_rubric
    return answer_value if rubric is None else answer_rubric_and_value


def _text_of(value: object) -> str | None:
    return None if value is None else str(value)


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
        role=_write_role(rubric, asked, instructions),
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


def _write_role(rubric: Rubric, asked: Sequence[Criterion], instructions: str) -> str:
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


def _write_level(level: float) -> int | float:
    """A whole level without its ``.0``: one token for most models, so that its alternatives have probabilities."""
    return int(level) if level.is_integer() else level


def _keyed_schema(rubric: Rubric, asked: Sequence[Criterion]) -> dict[str, Any]:
    # Keyed by name and not a list: a provider that enforces the schema can then neither skip nor repeat a criterion.
    low, high = rubric.scale
    properties: dict[str, Any] = {}
    for item in asked:
        score: dict[str, Any] = {"type": "number", "minimum": low, "maximum": high}
        if item.levels:
            score = {"type": "number", "enum": [_write_level(level) for level, _ in item.levels]}
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
