"""The labels of one case: which of them count, what they make the truth, and how they are joined with the case."""

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


def list_labels(labels: Iterable[Label], name: str | None) -> dict[str, list[Label]]:
    """What people said of each case, for one criterion or (``None``) of the whole.

    A model's label is left out: it is no one's verdict that a judge could be measured against.
    """
    found: dict[str, list[Label]] = {}
    for label in labels:
        if not isinstance(label, Label):
            raise UsageError(f"labels must be Label, got {show(label)}; load_labels reads a file of them")
        if label.kind != "model" and label.criterion == name:
            found.setdefault(label.case, []).append(label)
    return found


def group_labels(labels: Iterable[Label], name: str | None) -> dict[str, CaseLabels]:
    """The labels of each case that count, for one criterion or (``None``) of the whole."""
    return {case: choose_labels(given) for case, given in list_labels(labels, name).items()}


def choose_labels(labels: Iterable[Label]) -> CaseLabels:
    """Those labels of one case that count: of each rater the later one, by ``at`` where both have it, else by place."""
    latest: dict[tuple[LabelKind, str], Label] = {}
    for label in labels:
        key = (label.kind, "" if label.kind == "adjudication" else label.rater)
        before = latest.get(key)
        if before is None or before.at is None or label.at is None or label.at >= before.at:
            latest[key] = label
    return CaseLabels(
        people={label.rater: label for (kind, _), label in latest.items() if kind == "person"},
        overrides={label.rater: label for (kind, _), label in latest.items() if kind == "override"},
        adjudication=latest.get(("adjudication", "")),
    )


class LabelJoin:
    """Gives cases what people said of them, by their ids, once through a data set or a run.

    A label of another content than the case has is left out: people may have read last week's answer.
    """

    def __init__(self, said: Mapping[str, Sequence[Label]]) -> None:
        self._said = said
        self.missing = set(said)
        """Ids that no case has had so far."""
        self.other_contents = 0
        """Labels so far that are of another content than the case of their id."""

    def join(self, case: Case) -> Case:
        """The case with these labels beside its own; its ``label`` stays, where it has one."""
        given = self._said.get(case.id)
        if given is None:
            return case
        self.missing.discard(case.id)
        kept = self._leave_out(case, given)
        if not kept:
            return case
        said = choose_labels(kept)
        shown = {rater: None if value == CANNOT_TELL else value for rater, value in said.values.items()}
        label = find_truth(said.decisive) if case.label is None else case.label
        return replace(case, label=label, labels={**case.labels, **shown})

    def _leave_out(self, case: Case, given: Sequence[Label]) -> Sequence[Label]:
        if all(label.subject is None for label in given):
            return given
        subject = digest_content(case.content)
        kept = [label for label in given if label.subject in (None, subject)]
        self.other_contents += len(given) - len(kept)
        return kept

    def describe_missing(self, where: str) -> str:
        """Which labelled cases are not there, in words: a file of another data set is a slip."""
        some = flatten(", ".join(sorted(self.missing)[:3]), 120)
        return f"labelled case that is not in the {where} ({some})"


OTHER_CONTENTS = "label that is not counted, because it is of another content than the case has"
"""How a label of another content is named in notes, with their number."""
