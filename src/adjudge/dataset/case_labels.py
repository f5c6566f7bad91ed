"""The labels of one case: which of them count, what they make the truth, and how they are joined with the case.

Labels of a run, with adjudications and overrides among them, come to a truth in ``labels/truth.py`` (``find_truths``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from adjudge.dataset.case import Case, LabelValue
from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label, LabelKind
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show


def find_truth(values: Sequence[LabelValue]) -> LabelValue:
    """Find the label that more than half of the people gave; ``None``, unresolved, where there is no such label.

    People who cannot tell count too, so one of two who is sure is no majority.
    """
    if not values:
        return None
    # True is not 1, but 1 is 1.0.
    counts = Counter((isinstance(value, bool), value) for value in values)
    (_, most_frequent), count = counts.most_common(1)[0]
    if 2 * count > len(values) and most_frequent not in (None, CANNOT_TELL):
        return most_frequent
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
        """The labels that the truth of the case follows from: adjudication, else people, else overrides."""
        if self.adjudication is not None:
            return (self.adjudication.value,)
        return tuple(label.value for label in (self.people or self.overrides).values())

    @property
    def values(self) -> dict[str, LabelValue]:
        """Each rater's label; who settled a case is no rater of it, because they saw the labels of the others."""
        return {rater: label.value for rater, label in {**self.overrides, **self.people}.items()}


def list_labels(labels: Iterable[Label], name: str | None) -> dict[str, list[Label]]:
    """List the labels that people gave each case, for the criterion ``name`` or (``None``) for the whole.

    A model's labels are left out, because no judge is measured against them. Raises ``UsageError``.
    """
    by_case: dict[str, list[Label]] = {}
    for label in labels:
        if not isinstance(label, Label):
            raise UsageError(
                f"labels must be Label, got {show(label)}; load_labels reads a file of them", argument="labels"
            )
        if label.kind != "model" and label.criterion == name:
            by_case.setdefault(label.case, []).append(label)
    return by_case


def group_labels(labels: Iterable[Label], name: str | None) -> dict[str, CaseLabels]:
    """Choose the labels of each case that count, for the criterion ``name`` or (``None``) for the whole."""
    return {case_id: choose_labels(case_labels) for case_id, case_labels in list_labels(labels, name).items()}


def choose_labels(labels: Iterable[Label]) -> CaseLabels:
    """Choose the labels of one case that count: the latest of each rater, and the latest adjudication of anybody.

    Of two labels the later one is that with the later time; where one has no time, the one that comes later.
    """
    latest: dict[tuple[LabelKind, str], Label] = {}
    for label in labels:
        key = (label.kind, "" if label.kind == "adjudication" else label.rater)
        earlier = latest.get(key)
        if earlier is None or earlier.at is None or label.at is None or label.at >= earlier.at:
            latest[key] = label
    return CaseLabels(
        people={label.rater: label for (kind, _), label in latest.items() if kind == "person"},
        overrides={label.rater: label for (kind, _), label in latest.items() if kind == "override"},
        adjudication=latest.get(("adjudication", "")),
    )


class LabelJoin:
    """Gives cases the labels that people gave them, by their ids, once through a data set or a run.

    A label of another content than the case has is left out: people may have read last week's answer.
    """

    def __init__(self, labels: Mapping[str, Sequence[Label]]) -> None:
        self._labels = labels
        self.missing = set(labels)
        """Ids that no case has had so far."""
        self.other_contents = 0
        """Labels so far that are of another content than the case of their id."""

    def join(self, case: Case) -> Case:
        """Return the case with these labels beside its own; its ``label`` stays, where it has one."""
        labels = self._labels.get(case.id)
        if labels is None:
            return case
        self.missing.discard(case.id)
        counted = self._drop_other_contents(case, labels)
        if not counted:
            return case
        chosen = choose_labels(counted)
        by_rater = {rater: None if value == CANNOT_TELL else value for rater, value in chosen.values.items()}
        label = find_truth(chosen.decisive) if case.label is None else case.label
        return replace(case, label=label, labels={**case.labels, **by_rater})

    def _drop_other_contents(self, case: Case, labels: Sequence[Label]) -> Sequence[Label]:
        """Return the labels without those that say they are of another content than the case has, which are counted."""
        if all(label.subject is None for label in labels):
            return labels
        subject = digest_content(case.content)
        counted = [label for label in labels if label.subject in (None, subject)]
        self.other_contents += len(labels) - len(counted)
        return counted

    def describe_missing(self, where: str) -> str:
        """Write a note on labelled cases that are missing in ``where``, with three of their ids.

        Most often somebody gave the labels of another data set.
        """
        examples = flatten(", ".join(sorted(self.missing)[:3]), 120)
        return f"labelled case that is not in the {where} ({examples})"


OTHER_CONTENTS = "label that is not counted, because it is of another content than the case has"
"""The words for labels of another content in notes, which give their number."""
