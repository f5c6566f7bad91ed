"""Advice on rubrics that are valid and could judge better.

The advice: short names in kebab-case, descriptions under 200 characters that can be measured, three to
seven criteria, no umbrella words, an attainable threshold, and a threshold of its own for what must hold. None of it
is an error: a rubric works without following it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from adjudge.formats.text import quote
from adjudge.rubric.rubric import Criterion, Rubric

Code = Literal[
    "name-not-kebab-case",
    "description-too-long",
    "too-few-criteria",
    "too-many-criteria",
    "vague-criterion",
    "threshold-too-strict",
    "threshold-too-lenient",
    "must-without-threshold",
]


MAX_DESCRIPTION = 200

FEWEST, MOST = 3, 7

STRICT, LENIENT = 0.95, 0.5


_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_MUST_WORDS = re.compile(r"\b(critical|must|mandatory|non-negotiable)\b", re.IGNORECASE)

_UMBRELLA_WORDS = frozenset({
    "accuracy", "code", "code-quality", "content", "correctness", "criteria", "design", "documentation", "general",
    "good", "overall", "performance", "quality", "response", "security", "style", "testing", "tests",
})  # fmt: skip

_SHORT_DESCRIPTION, _SHORT_DESCRIPTION_OF_UMBRELLA = 4, 8
"""A description of at most this many words, and without a number, says too little to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing a rubric could do better."""

    code: Code
    """The kind of advice; stable, for filters."""
    where: str
    """The path in the rubric, like ``criteria[1].description``."""
    message: str
    """One sentence: what was found and what to do."""


def lint_rubric(rubric: Rubric) -> tuple[Advice, ...]:
    """Return advice on a rubric, in the order in which the rubric is written; empty if there is none."""
    advice = [*_lint_threshold(rubric), *_lint_number(rubric)]
    for index, criterion in enumerate(rubric.criteria):
        advice += _lint_criterion(criterion, f"criteria[{index}]")
    return tuple(advice)


def _lint_threshold(rubric: Rubric) -> Iterator[Advice]:
    """Yield advice on a passing threshold that is too high or too low."""
    value, where = rubric.passing_threshold, "passing_threshold"
    if value >= STRICT:
        message = f"{value:g} leaves no room for a judge's noise; use about 0.7 and put a threshold on what must hold"
        yield Advice(code="threshold-too-strict", where=where, message=message)
    if value <= LENIENT:
        message = f"{value:g} passes content that fails half of what is asked; use about 0.7"
        yield Advice(code="threshold-too-lenient", where=where, message=message)


def _lint_number(rubric: Rubric) -> Iterator[Advice]:
    """Yield advice on the number of criteria."""
    count = len(rubric.criteria)
    if count < FEWEST:
        advised = f"there are {count}, and {FEWEST} to {MOST} are advised"
        message = f"{advised}; split what is asked into things that can be scored alone"
        yield Advice(code="too-few-criteria", where="criteria", message=message)
    if count > MOST:
        message = f"{count} criteria, more than {MOST}; a judge scores fewer more reliably, so split the rubric"
        yield Advice(code="too-many-criteria", where="criteria", message=message)


def _lint_criterion(criterion: Criterion, where: str) -> Iterator[Advice]:
    """Yield advice on a criterion: its name, its length, what cannot be measured, and a must without a threshold."""
    name, description = quote(criterion.name, 60), criterion.description
    if not _KEBAB.fullmatch(criterion.name):
        message = f"{name} is not in kebab-case; use lower-case words and hyphens, like {_to_kebab(criterion.name)}"
        yield Advice(code="name-not-kebab-case", where=f"{where}.name", message=message)
    if len(description) >= MAX_DESCRIPTION:
        size = len(description)
        message = f"{size} characters; keep it under {MAX_DESCRIPTION}, or move the detail into levels or examples"
        yield Advice(code="description-too-long", where=f"{where}.description", message=message)
    if _is_vague(criterion):
        message = f"{quote(description, 60)} for {name} cannot be measured; say what to look for, with an example"
        yield Advice(code="vague-criterion", where=f"{where}.description", message=message)
    must_word = _MUST_WORDS.search(f"{criterion.name} {description}")
    if must_word and criterion.threshold is None:
        message = f"{name} says {quote(must_word.group())} but a low score cannot fail the rubric; give it a threshold"
        yield Advice(code="must-without-threshold", where=f"{where}.threshold", message=message)


def _is_vague(criterion: Criterion) -> bool:
    """Return whether a criterion is described in few words and without a number, so that nothing can be measured."""
    # A rule measures by itself, and levels say what each score means.
    if criterion.rule is not None or criterion.levels or any(letter.isdigit() for letter in criterion.description):
        return False
    limit = _SHORT_DESCRIPTION_OF_UMBRELLA if criterion.name.lower() in _UMBRELLA_WORDS else _SHORT_DESCRIPTION
    return len(criterion.description.split()) <= limit


def _to_kebab(name: str) -> str:
    """Return a name in kebab-case, as an example for a message."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return quote(re.sub(r"[^a-z0-9]+", "-", spaced.lower()).strip("-") or "error-handling", 60)
