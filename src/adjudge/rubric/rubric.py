"""Rubrics, which say what "good" means: criteria with weights and thresholds, and a threshold for the whole.

A ``Rubric`` that exists is valid: unique names, finite weights of at least 0 with a sum above 0, thresholds in 0 to
1. It says nothing about who judges. Files are read by ``adjudge.rubric.file``; the arithmetic lives in ``score``.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_share, is_finite
from adjudge.formats.record import Layout, list_members
from adjudge.formats.text import show
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import as_rule

DEFAULT_THRESHOLD = 0.7

_PER_VALUES = ("run", "turn", "call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A worked example for a criterion: some content, the score it deserves, and why.

    Args:
        content: The content of the example.
        score: On the rubric's own scale.
        why: The reason why it deserves this score.
    """

    _layout: ClassVar[Layout] = Layout(omitted=("why",))

    content: str
    """The content of the example."""
    score: float
    """On the rubric's own scale."""
    why: str = ""
    """The reason why it deserves this score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One thing to score. ``threshold`` fails the whole rubric only when it is given.

    Args:
        name: The name of the criterion in prompts and results, unique in its rubric.
        description: The requirement, in a sentence or more; the judge reads it as it is.
        weight: Any finite number of at least 0; shares are normalised. 0 with a threshold is a pure veto.
        threshold: In 0 to 1. If the score is below it, the content fails, even with a high total. ``None``: no veto.
        levels: (score, meaning) pairs on the rubric's scale, given as a mapping or pairs; only these scores are then
            valid.
        examples: Contents with the score that each deserves, for the judge to go by.
        quote: Ask for a quotation as evidence; one that is not in the content makes the result undecided.
        rule: A rule that decides instead of a model (1.0 or 0.0); given as a ``Rule`` or as ``{"regex": "..."}``.
        per: ``call`` or ``turn``: the content is an agent's run, each of its calls or turns is judged, and the lowest
            score counts.
    """

    _layout: ClassVar[Layout] = Layout(
        omitted=("weight", "threshold", "levels", "examples", "quote", "rule", "per"),
        computed={
            # Text, because JSON and canonical JSON have no other keys.
            "levels": lambda criterion: {_format_number(score): text for score, text in criterion.levels},
            "examples": lambda criterion: [list_members(example) for example in criterion.examples],
            "rule": lambda criterion: dict(criterion.rule.spec) if criterion.rule is not None else None,
        },
    )

    name: str
    """The name of the criterion in prompts and results, unique in its rubric."""
    description: str
    """The requirement, in a sentence or more; the judge reads it as it is."""
    weight: float = 1.0
    """Any finite number of at least 0; shares are normalised. 0 with a threshold is a pure veto."""
    threshold: float | None = None
    """In 0 to 1. If the score is below it, the content fails, even with a high total. ``None``: no veto."""
    levels: tuple[tuple[float, str], ...] = ()
    """(score, meaning) pairs on the rubric's scale, given as a mapping or pairs; only these scores are then valid."""
    examples: tuple[Example, ...] = ()
    """Contents with the score that each deserves, for the judge to go by."""
    quote: bool = False
    """Ask for a quotation as evidence; one that is not in the content makes the result undecided."""
    rule: Rule | None = None
    """A rule that decides instead of a model (1.0 or 0.0); given as a ``Rule`` or as ``{"regex": "..."}``."""
    per: Literal["run", "turn", "call"] = "run"
    """``call`` or ``turn``: the content is an agent's run, each of its calls or turns is judged, and the lowest score
    counts."""

    if TYPE_CHECKING:  # more types may be handed in than the fields have afterwards

        def __init__(
            self,
            *,
            name: str,
            description: str,
            weight: float = 1.0,
            threshold: float | None = None,
            levels: Mapping[float, str] | Mapping[str, str] | Sequence[tuple[float, str]] = (),
            examples: Sequence[Example | Mapping[str, Any]] = (),
            quote: bool = False,
            rule: Rule | Mapping[str, Any] | Callable[..., Any] | str | None = None,
            per: Literal["run", "turn", "call"] = "run",
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_text("a criterion's name", self.name)
        _check_text(f"criterion {self.name!r}: the description", self.description)
        _set_field(self, "weight", _check_weight(self.name, self.weight))
        if self.threshold is not None:
            _set_field(self, "threshold", check_share("threshold", self.threshold, where=f"criterion {self.name!r}"))
        _set_field(self, "levels", _read_levels(self.name, self.levels))
        examples = _check_list(self.examples, f"criterion {self.name!r}: examples")
        _set_field(self, "examples", tuple(_read_example(self.name, example) for example in examples))
        check_flag("quote", self.quote, where=f"criterion {self.name!r}")
        if self.rule is not None:
            _set_field(self, "rule", _read_rule(self.name, self.rule))
        check_choice("per", self.per, _PER_VALUES, where=f"criterion {self.name!r}")
        if self.per != "run" and self.rule is not None:
            raise UsageError(
                f"criterion {self.name!r} has a rule and per: {self.per}; a rule reads the whole run, so leave per out",
                argument="per",
            )

    def to_dict(self) -> dict[str, Any]:
        """Write the criterion as the rubric file does, defaults left out."""
        return list_members(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """A named set of criteria and the score at which the whole passes.

    Args:
        name: The name of the rubric in results and the ledger.
        criteria: The criteria that are scored: ``Criterion`` values, or mappings with their fields.
        passing_threshold: In 0 to 1; the weighted mean must reach it (within 1e-9).
        scale: The scores that the judge is asked for; code converts to 0..1 and calls anything outside ``off_scale``.
        model: The model to ask, over the judge's own; a model given to the call wins.
    """

    schema: ClassVar[str] = "adjudge/rubric/1"
    _layout: ClassVar[Layout] = Layout(
        members=("name", "passing_threshold", "scale", "model", "criteria"),
        omitted=("scale", "model"),
        computed={
            "scale": lambda rubric: list(rubric.scale),
            "criteria": lambda rubric: [criterion.to_dict() for criterion in rubric.criteria],
        },
    )

    name: str
    """The name of the rubric in results and the ledger."""
    criteria: tuple[Criterion, ...]
    """The criteria that are scored: ``Criterion`` values, or mappings with their fields."""
    passing_threshold: float = DEFAULT_THRESHOLD
    """In 0 to 1; the weighted mean must reach it (within 1e-9)."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The scores that the judge is asked for; code converts to 0..1 and calls anything outside ``off_scale``."""
    model: str | None = None
    """The model to ask, over the judge's own; a model given to the call wins."""
    digest: str = field(init=False, repr=False)
    """SHA-256 of the rubric's content."""
    total_weight: float = field(init=False, repr=False, compare=False)
    """The sum of the criteria's weights."""
    has_rules: bool = field(init=False, repr=False, compare=False)
    """True if a rule decides at least one of the criteria."""
    has_parts: bool = field(init=False, repr=False, compare=False)
    """True if at least one of the criteria is judged for each call or turn of a run."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            criteria: Sequence[Criterion | Mapping[str, Any]],
            passing_threshold: float = DEFAULT_THRESHOLD,
            scale: Sequence[float] = (0.0, 1.0),
            model: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_text("a rubric's name", self.name)
        rows = _check_list(self.criteria, f"rubric {self.name!r}: criteria")
        criteria = tuple(_read_criterion(row) for row in rows)
        _set_field(self, "criteria", criteria)
        _check_names(self.name, [criterion.name for criterion in criteria])
        _check_total_weight(self.name, [criterion.weight for criterion in criteria])
        _set_field(self, "has_rules", any(criterion.rule is not None for criterion in criteria))
        _set_field(self, "has_parts", any(criterion.per != "run" for criterion in criteria))
        _set_field(self, "total_weight", math.fsum(criterion.weight for criterion in criteria))
        threshold = check_share("passing_threshold", self.passing_threshold, where=f"rubric {self.name!r}")
        _set_field(self, "passing_threshold", threshold)
        _set_field(self, "scale", _check_scale(self.name, self.scale))
        if self.model is not None:
            _check_text(f"rubric {self.name!r}: model", self.model)
            _check_model(self.name, self.model)
        _check_on_scale(self)
        _set_field(self, "digest", hashlib.sha256(_encode_canonical(self.name, self.to_dict())).hexdigest())

    def __hash__(self) -> int:
        # Every judgement looks its rubric up; hashing all criteria each time would cost more than reading the reply.
        return hash(self.digest)

    @property
    def shares(self) -> dict[str, float]:
        """Each criterion's normalised weight; they sum to 1."""
        return {criterion.name: criterion.weight / self.total_weight for criterion in self.criteria}

    def to_dict(self) -> dict[str, Any]:
        """Write the rubric as its file does."""
        return list_members(self)


def make_rubric(criteria: str | Sequence[str] | Mapping[str, str], threshold: float | None = None) -> Rubric:
    """Make a rubric of words: a sentence, a list of sentences, or a mapping of names to sentences, equally weighted.

    A sentence gives its words as names: ``Is polite.`` is the rubric ``Is polite`` with the criterion ``is-polite``.
    Several sentences are the criteria of the rubric ``criteria``. Raises ``UsageError`` for one that is given twice.
    """
    if not isinstance(criteria, (str, Mapping, Sequence)):
        raise UsageError(
            f"criteria must be a sentence, a list of sentences or a mapping of names to sentences, "
            f"not {type(criteria).__name__}",
            argument="criteria",
        )
    sentences = (criteria,) if isinstance(criteria, str) else criteria
    texts = (*sentences, *sentences.values()) if isinstance(sentences, Mapping) else tuple(sentences)
    if not all(isinstance(text, str) for text in texts):
        remedy = ""
        if any(isinstance(text, Mapping) for text in texts):
            remedy = "; for weights and thresholds give a rubric: rubric={'name': ..., 'criteria': [...]}"
        raise UsageError(f"criteria must be sentences, got {show(criteria)}{remedy}", argument="criteria")
    sentence_by_name = sentences if isinstance(sentences, Mapping) else _name_sentences(sentences)
    name = _make_name(sentences[0]) if not isinstance(sentences, Mapping) and len(sentences) == 1 else "criteria"
    return _make_worded_rubric(
        name,
        tuple(sentence_by_name.items()),
        DEFAULT_THRESHOLD if threshold is None else check_share("threshold", threshold),
    )


_LONGEST_NAME = 48
"""Characters of a name that is made of a sentence."""


def _name_sentences(sentences: Sequence[str]) -> Mapping[str, str]:
    """Map a name, which is made of a sentence's words, to each sentence. Raises ``UsageError`` for a repeated one."""
    sentence_by_name: dict[str, str] = {}
    for sentence in sentences:
        if sentence in sentence_by_name.values():
            raise UsageError(f"criteria: {show(sentence)} is given twice; leave one out", argument="criteria")
        name = base = _make_name(sentence).lower().replace(" ", "-")
        number = 1
        while name in sentence_by_name:  # long sentences that begin alike have the same words as a name
            number += 1
            name = f"{base}-{number}"
        sentence_by_name[name] = sentence
    return sentence_by_name


def _make_name(sentence: str) -> str:
    """Make a name of a sentence's first words; ``criteria`` if it has none."""
    words = re.findall(r"\w+", sentence)
    while len(words) > 1 and len(" ".join(words)) > _LONGEST_NAME:
        words.pop()
    return " ".join(words)[:_LONGEST_NAME] or "criteria"


def make_gating_rubric(name: str, criteria: Sequence[Criterion], *, scale: Sequence[float] = (0.0, 1.0)) -> Rubric:
    """Make a rubric that passes when every criterion with a weight reaches its own threshold, which each of them needs.

    Its passing threshold is the weighted mean of their thresholds: that fails nothing more, and does not look too low.
    """
    gating = [criterion for criterion in criteria if criterion.weight]
    needed = math.fsum(criterion.weight * (criterion.threshold or 0.0) for criterion in gating)
    mean = needed / math.fsum(criterion.weight for criterion in gating) if gating else 1.0
    return Rubric(name=name, criteria=criteria, passing_threshold=min(mean, 1.0), scale=scale)


@lru_cache(maxsize=256)
def _make_worded_rubric(name: str, sentences: tuple[tuple[str, str], ...], threshold: float) -> Rubric:
    """Make a rubric whose criteria are pairs of a name and a sentence; equal ones are made once."""
    criteria = tuple(Criterion(name=criterion_name, description=sentence) for criterion_name, sentence in sentences)
    return Rubric(name=name, criteria=criteria, passing_threshold=threshold)


def _set_field(instance: Any, name: str, value: Any) -> None:
    """Set a field of a frozen dataclass, while it is made."""
    object.__setattr__(instance, name, value)


def _check_model(rubric: str, model: str) -> None:
    """Raise ``UsageError`` for a rubric's model that has options, runs code or reads a file."""
    # key_env and base_url would let whoever writes a rubric send any key of this machine to any host; python: would
    # let it run code, and replay: read a file. A rubric is data.
    name, question_mark, _ = model.strip().partition("?")
    if question_mark or name.startswith(("python:", "replay:")):
        fault = "options after '?'" if question_mark else f"the prefix {name.partition(':')[0]}:"
        subject = "the model" if "@" in name else f"model {show(name)}"  # the text before @ may be a password
        raise UsageError(
            f"rubric {rubric!r}: {subject} has {fault}; a rubric may name a provider's model and nothing else, "
            "the rest belongs to the judge"
        )


def _check_text(label: str, value: Any) -> None:
    """Raise ``UsageError``, which calls the value ``label``, for anything but a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{label} must be a text that is not empty, got {show(value)}")


def _check_weight(name: str, value: Any) -> float:
    """Return a criterion's weight as a float, with 0.0 for -0.0. Raises ``UsageError`` for an invalid one."""
    if not is_finite(value) or value < 0:
        raise UsageError(
            f"criterion {name!r}: weight must be a finite number of at least 0, got {show(value)}", argument="weight"
        )
    return float(value) + 0.0


def _check_total_weight(rubric: str, weights: list[float]) -> None:
    """Raise ``UsageError`` for weights whose sum is 0, or too large for a float."""
    total = sum(weights)  # not fsum, which raises an error where the sum is infinite
    if total == 0:
        raise UsageError(f"rubric {rubric!r}: the weights sum to 0; give at least one criterion a weight above 0")
    if not math.isfinite(total):
        raise UsageError(f"rubric {rubric!r}: the weights sum to more than a number can hold; divide them all by ten")


def _check_scale(name: str, value: Any) -> tuple[float, float]:
    """Return a scale as two floats, the lowest first, with 0.0 for -0.0. Raises ``UsageError`` for anything else."""
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    are_finite = all(is_finite(number) for number in numbers)
    if len(numbers) != 2 or not are_finite or not numbers[0] < numbers[1]:
        raise UsageError(
            f"rubric {name!r}: scale must be two numbers, lowest first, like [0, 1]; got {show(value)}",
            argument="scale",
        )
    return float(numbers[0]) + 0.0, float(numbers[1]) + 0.0


def _check_names(rubric: str, names: list[str]) -> None:
    """Raise ``UsageError`` if there is no criterion, or if two have the same name."""
    if not names:
        raise UsageError(f"rubric {rubric!r} has no criteria; give it at least one", argument="criteria")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UsageError(
                f"rubric {rubric!r} has two criteria named {name!r}; give each its own name", argument="criteria"
            )
        seen.add(name)


def _check_on_scale(rubric: Rubric) -> None:
    """Raise ``UsageError`` for a level or an example whose score is outside the rubric's scale."""
    low, high = rubric.scale
    for criterion in rubric.criteria:
        for score in [*(score for score, _ in criterion.levels), *(example.score for example in criterion.examples)]:
            if not low <= score <= high:
                raise UsageError(
                    f"rubric {rubric.name!r}, criterion {criterion.name!r}: {score:g} is outside the scale "
                    f"[{low:g}, {high:g}]; levels and examples are given on the rubric's own scale"
                )


def _read_levels(name: str, value: Any) -> tuple[tuple[float, str], ...]:
    """Read the levels of a criterion as pairs of score and meaning, the lowest first. Raises ``UsageError``."""
    pairs: Iterable[Any] = (
        value.items() if isinstance(value, Mapping) else _check_list(value, f"criterion {name!r}: levels")
    )
    levels: list[tuple[float, str]] = []
    for pair in pairs:
        score, meaning = pair if isinstance(pair, Sequence) and len(pair) == 2 else (None, None)
        try:
            number = float(score)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(score, bool) or not math.isfinite(number) or not isinstance(meaning, str):
            raise UsageError(
                f"criterion {name!r}: a level is a score and its meaning, like 0.5: fair; got {show(pair)}"
            )
        levels.append((number + 0.0, meaning))  # 0.0 for -0.0
    if len({score for score, _ in levels}) != len(levels) or len(levels) == 1:
        raise UsageError(
            f"criterion {name!r}: levels must be at least two different scores, got {show(levels)}", argument="levels"
        )
    return tuple(sorted(levels))


def _read_example(name: str, value: Any) -> Example:
    """Read an example: an ``Example``, or a mapping with ``content``, ``score`` and perhaps ``why``.

    Raises ``UsageError`` for anything else.
    """
    if isinstance(value, Example):
        return value
    members = dict(value) if isinstance(value, Mapping) and set(value) <= {"content", "score", "why"} else {}
    content, score, reason = members.get("content"), members.get("score"), members.get("why", "")
    if not isinstance(content, str) or not is_finite(score) or not isinstance(reason, str):
        raise UsageError(
            f"criterion {name!r}: an example has text as content, a numeric score, maybe text as why; got {show(value)}"
        )
    return Example(content=content, score=float(score or 0.0), why=reason)


def _read_rule(name: str, value: Any) -> Rule:
    """Read the rule of a criterion. Raises ``UsageError`` that names the criterion."""
    try:
        return as_rule(value, name=name)
    except UsageError as error:
        raise error.within(f"criterion {name!r}") from None


def _read_criterion(value: Any) -> Criterion:
    """Read a criterion: a ``Criterion``, or a mapping of its members. Raises ``UsageError`` for anything else."""
    if isinstance(value, Criterion):
        return value
    if not isinstance(value, Mapping):
        raise UsageError(f"a criterion must be a Criterion or a mapping with name and description, got {show(value)}")
    try:
        return Criterion(**value)
    except TypeError as error:
        raise UsageError(f"criterion {value.get('name')!r}: {error}; a criterion needs name and description") from None


def _check_list(value: Any, label: str) -> Sequence[Any]:
    """Return an iterable as a list. Raises ``UsageError``, which calls it ``label``, for a text or a mapping."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise UsageError(f"{label} must be a list, got {type(value).__name__}")
    return list(value)


def _format_number(value: float) -> str:
    """Write a number as short as possible, so that reading it gives the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _encode_canonical(name: str, data: Mapping[str, Any]) -> bytes:
    """Encode a rubric's data as JSON with sorted keys, of which its digest is computed.

    Raises ``UsageError`` for a text with a lone surrogate.
    """
    import msgspec

    try:
        return msgspec.json.encode(data, order="sorted")
    except UnicodeEncodeError:
        raise UsageError(
            f"rubric {name!r}: one of its texts is not valid Unicode, since it has a lone surrogate; replace it first"
        ) from None
