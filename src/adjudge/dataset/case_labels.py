"""The labels of one case: which of them count, what they make the truth, and how they are joined with the case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from adjudge.dataset.case import Case, LabelValue
from adjudge.dataset.label import Label, LabelKind
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show


def find_truth(values: Sequence[LabelValue]) -> LabelValue:
    """What more than half of the people said who looked at a case, or ``None``: it is unresolved.

    Who cannot tell has looked, so one of two who is sure is no majority.
    """
    # True is not 1, but 1 is 1.0.
    counted = Counter((isinstance(value, bool), value) for value in values)
    for (_, value), count in counted.most_common(1):
        if 2 * count > len(values) and value not in (None, CANNOT_TELL):
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLabels:
    """The labels of one case that count: the latest of each rater."""

    people: Mapping[str, Label]
    """Those of the kind ``person``, by rater."""
    overrides: Mapping[str, Label]
    """Those of the kind ``override``, by rater: no votes beside people's, because each of them is against a judge."""
    adjudication: Label | None
    """The latest of the kind ``adjudication``, whoever gave it."""

    @property
    def decisive(self) -> tuple[LabelValue, ...]:
        """What the truth of the case follows from: the adjudication alone, else people's labels, else overrides."""
        if self.adjudication is not None:
            return (self.adjudication.value,)
        return tuple(label.value for label in (self.people or self.overrides).values())

    @property
    def values(self) -> dict[str, LabelValue]:
        """What each rater said; who settled a case is no rater of it, because they saw what the others said."""
        return {rater: label.value for rater, label in {**self.overrides, **self.people}.items()}


def group_labels(labels: Iterable[Label], name: str | None) -> dict[str, CaseLabels]:
    """What people said of each case, for one criterion or (``None``) of the whole; the later label of a rater counts.

    Later is by ``at`` where both have it, else by the place. A model's label is left out: it is no one's verdict
    that a judge could be measured against.
    """
    latest: dict[tuple[str, LabelKind, str], Label] = {}
    for label in labels:
        if not isinstance(label, Label):
            raise UsageError(f"labels must be Label, got {show(label)}; load_labels reads a file of them")
        if label.kind == "model" or label.criterion != name:
            continue
        key = (label.case, label.kind, "" if label.kind == "adjudication" else label.rater)
        before = latest.get(key)
        if before is None or before.at is None or label.at is None or label.at >= before.at:
            latest[key] = label
    found: dict[str, dict[LabelKind, dict[str, Label]]] = {}
    for (case, kind, _), label in latest.items():
        found.setdefault(case, {}).setdefault(kind, {})[label.rater] = label
    return {
        case: CaseLabels(
            people=kinds.get("person", {}),
            overrides=kinds.get("override", {}),
            adjudication=next(iter(kinds.get("adjudication", {}).values()), None),
        )
        for case, kinds in found.items()
    }


class LabelJoin:
    """Gives cases what people said of them, by their ids, once through a data set or a run."""

    def __init__(self, said: Mapping[str, CaseLabels]) -> None:
        self._said = said
        self.missing = set(said)
        """Ids that no case has had so far."""

    def join(self, case: Case) -> Case:
        """The case with these labels beside its own; its ``label`` stays, where it has one."""
        said = self._said.get(case.id)
        if said is None:
            return case
        self.missing.discard(case.id)
        shown = {rater: None if value == CANNOT_TELL else value for rater, value in said.values.items()}
        label = find_truth(said.decisive) if case.label is None else case.label
        return replace(case, label=label, labels={**case.labels, **shown})

    def describe_missing(self, where: str) -> str:
        """Which labelled cases are not there, in words: a file of another data set is a slip."""
        some = flatten(", ".join(sorted(self.missing)[:3]), 120)
        return f"labelled case that is not in the {where} ({some})"
