"""The graders of an eval of OpenAI as the criteria of a rubric.

Sources: the types of the ``openai`` package (``openai.types.graders``, ``openai.types.eval_retrieve_response``), and
OpenAI's guide to graders for what the operations of a ``string_check`` mean and what a template may name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.dataset.case import check_text
from adjudge.dataset.importers.template import fill_template, find_only_variable, parse_template
from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.text import flatten, show
from adjudge.rubric.rubric import DEFAULT_THRESHOLD, Criterion, Rubric, make_gating_rubric

SAMPLED = "sample.output_text"
"""The name of a model's answer in a template."""

MOST_GRADERS = 64

_ITEM = "item."
"""The beginning of the names of an item's variables in templates."""

_OPERATIONS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "eq": lambda text: {"equals": text},
    "ne": lambda text: {"equals": text, "absent": True},
    "like": lambda text: {"contains": text, "as_written": True},
    "ilike": lambda text: {"contains": text, "as_written": True, "ignore_case": True},
}

_SYMMETRIC = frozenset(("eq", "ne"))
"""Operations that mean the same with ``input`` and ``reference`` exchanged."""

_REASONS: Mapping[str, str] = {
    "python": "it runs code",
    "text_similarity": "no rule here has its measure",
    "multi": "it combines graders by a formula",
}
"""The reason why a grader of each of these types is not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graders:
    """The graders of an eval, and the name of the answer in its templates."""

    name: str = "OpenAI Evals"
    evaluation: str | None = None
    """The id of the eval."""
    graders: tuple[Mapping[str, Any], ...] = ()

    def find_answer(self) -> str | None:
        """Find the item's variable that is the answer, where there are no samples: the one that all string checks read.

        ``None`` where they share none or several: of two that are compared, either may be the answer.
        """
        candidates = [
            _list_answer_candidates(grader) for grader in self.graders if grader.get("type") == "string_check"
        ]
        common = set.intersection(*filter(None, candidates)) if any(candidates) else set()
        only = common.pop() if len(common) == 1 else None
        return only if only is not None and only.startswith(_ITEM) else None

    def find_reference(self, answer: str) -> str | None:
        """Find the variable of the items that the first comparing grader compares the answer with."""
        for grader in self.graders:
            names = [_find_variable(grader.get(key)) for key in ("input", "reference")]
            others = [name for name in names if name is not None and name != answer]
            if answer in names and others and others[0].startswith(_ITEM):
                return others[0]
        return None


def read_graders(evaluation: Any, where: str) -> Graders:
    """Read the graders of an eval as ``evals.retrieve`` returns it; raise ``UsageError`` for any other value."""
    graders = evaluation.get("testing_criteria") if isinstance(evaluation, Mapping) else None
    if not isinstance(graders, list) or not all(isinstance(grader, dict) for grader in graders):
        raise UsageError(
            f"{where} holds no eval of OpenAI: no list 'testing_criteria'; save what evals.retrieve returns"
        )
    try:
        check_text(evaluation)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    if len(graders) > MOST_GRADERS:
        raise UsageError(f"{where} has {len(graders):,} graders, and at most {MOST_GRADERS} are read; split it")
    name = evaluation.get("name")
    evaluation_id = evaluation.get("id")
    return Graders(
        name=flatten(name, 100) if isinstance(name, str) and name.strip() else "OpenAI Evals",
        evaluation=evaluation_id if isinstance(evaluation_id, str) else None,
        graders=tuple(graders),
    )


@dataclass(slots=True, kw_only=True)
class AppliedGraders:
    """The rubric that was made of the graders for one item."""

    rubric: Rubric | None
    """``None`` where no grader could be applied."""
    context: dict[str, Any] = field(default_factory=dict)
    """The variables that criteria name, with their values."""
    dropped: list[str] = field(default_factory=list)
    """The graders that were not applied, each with the reason."""


def apply_graders(graders: Graders, item: Mapping[str, Any], *, answer: str) -> AppliedGraders:
    """Make a rubric of the graders for one item; ``answer`` is the name of its answer in their templates.

    Every criterion must pass, as an item passes when all of its graders do. The instructions of model graders only name
    the item's variables, whose values are in the context as data: a value may come from anybody, and must not become
    part of what the judge is told to look for.
    """
    applied = AppliedGraders(rubric=None)
    scale = _find_scale(graders)
    criteria: list[Criterion] = []
    for number, grader in enumerate(graders.graders, 1):
        try:
            name = _name_grader(grader, number, [criterion.name for criterion in criteria])
            maker = _CriterionMaker(item=item, answer=answer, scale=scale, context=applied.context)
            criterion = maker.make(grader, name)
            check_text(criterion.to_dict())  # JSON can hold half a character, which has no digest
            criteria.append(criterion)
        except UsageError as error:
            applied.dropped.append(f"grader {show(grader.get('type'))} not applied: {error}")
    if criteria:
        applied.rubric = make_gating_rubric(graders.name, criteria, scale=scale)
    return applied


def _find_scale(graders: Graders) -> tuple[float, float]:
    """Find the scale, from least to most, of the first grader with a score: a rubric has one scale.

    0 to 1 without such a grader.
    """
    for grader in graders.graders:
        if grader.get("type") == "score_model":
            return _read_range(grader)
    return (0.0, 1.0)


def _read_range(grader: Mapping[str, Any]) -> tuple[float, float]:
    """Read the least and the most of a grader's scale; 0 and 1 if it has none."""
    limits = grader.get("range")
    if limits is None:
        return (0.0, 1.0)
    if isinstance(limits, list) and len(limits) == 2 and all(map(is_finite, limits)) and limits[0] < limits[1]:
        return float(limits[0]), float(limits[1])
    return (0.0, 1.0)  # such a grader is not applied: see ``_make_score``


def _name_grader(grader: Mapping[str, Any], number: int, used_names: list[str]) -> str:
    """Return a name for a grader's criterion that no other one has: its own, with its number where that is needed."""
    stated = grader.get("name")
    name = flatten(stated, 100).strip() if isinstance(stated, str) else ""
    name = name or f"grader {number}"
    return name if name not in used_names else f"{name} ({number})"


@dataclass(slots=True, kw_only=True)
class _CriterionMaker:
    """Makes criteria of graders for one item."""

    item: Mapping[str, Any]
    """The item's variables."""
    answer: str
    """The name of the answer in templates."""
    scale: tuple[float, float]
    context: dict[str, Any]
    """Gets the variables that criteria name."""

    def make(self, grader: Mapping[str, Any], name: str) -> Criterion:
        """Make the criterion of a grader; raise ``UsageError`` with the reason where there is none."""
        kind = grader.get("type")
        if kind == "string_check":
            return self._make_check(grader, name)
        if kind == "label_model":
            return self._make_label(grader, name)
        if kind == "score_model":
            return self._make_score(grader, name)
        raise UsageError(_REASONS.get(str(kind), "this type is not known here"))

    def _make_check(self, grader: Mapping[str, Any], name: str) -> Criterion:
        """Make the criterion for a string check, which a rule decides. Raises ``UsageError``."""
        operation = grader.get("operation")
        checked, reference = grader.get("input"), grader.get("reference")
        if not isinstance(operation, str) or operation not in _OPERATIONS:
            raise UsageError(f"the operation {show(operation)} is not known here")
        if _find_variable(checked) != self.answer and operation in _SYMMETRIC:
            checked, reference = reference, checked
        if _find_variable(checked) != self.answer:
            raise UsageError("its input is not the answer")
        if not isinstance(reference, str):
            raise UsageError("its reference is no text")
        wanted = fill_template(parse_template(reference), self._write_value)
        return Criterion(
            name=name,
            description=f"String check {operation}.",
            rule=_OPERATIONS[operation](wanted),
            threshold=1.0,
        )

    def _make_label(self, grader: Mapping[str, Any], name: str) -> Criterion:
        """Make the criterion of a ``label_model``: failing labels are the least of the scale, passing ones the most.

        Raises ``UsageError`` where not both kinds of labels are there.
        """
        labels, passing = _read_labels(grader, "labels"), _read_labels(grader, "passing_labels")
        failing = [label for label in labels if label not in passing]
        if not failing or not passing or not set(passing) <= set(labels):
            raise UsageError("its passing_labels must be some of its labels, and not all of them")
        low, high = self.scale
        return Criterion(
            name=name,
            description=self._write_words(grader),
            levels={low: f"the label is {' or '.join(failing)}", high: f"the label is {' or '.join(passing)}"},
            threshold=1.0,
        )

    def _make_score(self, grader: Mapping[str, Any], name: str) -> Criterion:
        """Make the criterion of a ``score_model``, with its threshold as a share of the scale, from 0 to 1.

        Raises ``UsageError`` for another scale than that of the rubric, and for a threshold outside of it.
        """
        low, high = self.scale
        if grader.get("range") not in (None, [low, high]) or _read_range(grader) != self.scale:
            raise UsageError("its range is not that of the first grader with a score, or no two numbers")
        least = grader.get("pass_threshold")
        if least is None:
            threshold = DEFAULT_THRESHOLD
        elif is_finite(least) and low <= least <= high:
            threshold = (least - low) / (high - low)
        else:
            raise UsageError(f"its pass_threshold {show(least)} is not in its range")
        return Criterion(name=name, description=self._write_words(grader), threshold=threshold)

    def _write_value(self, name: str) -> str:
        """Write the value of a variable as text; raise ``UsageError`` for any but a text or a whole number."""
        value = self._find_value(name)
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise UsageError(f"its variable {show(name)} is no text")

    def _find_value(self, name: str) -> Any:
        """Find the value of a variable by its path of names with dots.

        Raises ``UsageError`` for a variable that is not of the item, and for one that the item does not have.
        """
        if not name.startswith(_ITEM):
            # Also for the answer itself, which must not be compared with itself.
            raise UsageError(f"its template names {show(name)}, and only variables of the item are read")
        value: Any = self.item
        for step in name.removeprefix(_ITEM).split("."):
            if not isinstance(value, Mapping) or step not in value:
                raise UsageError(f"the item has no {show(name)}")
            value = value[step]
        return value

    def _write_words(self, grader: Mapping[str, Any]) -> str:
        """Write the instructions of a model grader; in place of its variables, they say where each is found.

        Raises ``UsageError``.
        """
        words = "\n\n".join(
            fill_template(parse_template(text), self._refer_to_value) for text in _list_texts(grader.get("input"))
        )
        if not words.strip():
            raise UsageError("its input holds no words")
        return words.strip()

    def _refer_to_value(self, name: str) -> str:
        """Return words in place of a variable that say where the judge finds it, and put its value into the context."""
        if name == self.answer:
            return "(the content)"
        value = self._find_value(name)
        self.context[name.removeprefix(_ITEM)] = value
        return f'("{name.removeprefix(_ITEM)}" in the context)'


def _list_answer_candidates(check: Mapping[str, Any]) -> set[str]:
    """List the variables of a string check that may be the answer: those of a sample, else those of the item."""
    keys = ("input", "reference") if check.get("operation") in _SYMMETRIC else ("input",)
    names = {name for name in map(_find_variable, map(check.get, keys)) if name is not None}
    return {name for name in names if not name.startswith(_ITEM)} or names


def _find_variable(text: Any) -> str | None:
    """Find the name of the variable that is all of a text; ``None`` for any other value."""
    if not isinstance(text, str):
        return None
    try:
        return find_only_variable(parse_template(text))
    except UsageError:
        return None


def _read_labels(grader: Mapping[str, Any], key: str) -> list[str]:
    """Read a list of labels of a grader; raise ``UsageError`` for anything but a list of texts."""
    labels = grader.get(key)
    if not isinstance(labels, list) or not all(isinstance(label, str) and label.strip() for label in labels):
        raise UsageError(f"its {key} must be a list of texts")
    return labels


def _list_texts(messages: Any) -> Iterator[str]:
    """Yield the texts of a grader's messages; raises ``UsageError`` for images and sound."""
    if not isinstance(messages, list) or not messages:
        raise UsageError("its input must be a list of messages")
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, Mapping) else part
            if not isinstance(text, str):
                raise UsageError("its input holds what is no text")
            yield text
