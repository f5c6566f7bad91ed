"""The truth of a case, as it follows from its labels, and tables that compare the verdicts of a judge with it.

No case is dropped. Cases that people could not tell or do not agree on, and cases that no judge decided, are counted in
heaps of their own, and a rate counts the first two as bad and as good in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adjudge.dataset.case import LabelValue
from adjudge.dataset.case_labels import CaseLabels, find_truth, group_labels
from adjudge.dataset.label import Label
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show

SettledBy = Literal["adjudication", "majority", "override"]

TruthHeap = Literal["good", "bad", "first", "second", "tie", "number", "cannot_tell", "unresolved"]

LabelledVerdict = Literal["passed", "failed", "undecided", "first", "second", "tie"]

_VERDICTS: tuple[LabelledVerdict, ...] = ("passed", "failed", "undecided", "first", "second", "tie")

_HEAPS: tuple[TruthHeap, ...] = ("good", "bad", "first", "second", "tie", "number", "cannot_tell", "unresolved")

_OPEN: tuple[TruthHeap, ...] = ("cannot_tell", "unresolved")
"""The heaps of cases that may be good or bad."""


def find_majority_verdict(counts: Counter[LabelledVerdict]) -> LabelledVerdict:
    """Find the verdict that more than half of a case's judgements give; else ``undecided``.

    ``counts`` has the number of judgements with each verdict, and one at least.
    """
    verdict, count = counts.most_common(1)[0]
    return verdict if 2 * count > counts.total() else "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The truth of one case by its labels, for one criterion or for the whole case."""

    schema: ClassVar[str] = "adjudge/truth/1"
    _layout: ClassVar[Layout] = Layout(
        members=("case", "criterion", "value", "heap", "settled_by", "differs", "labels", "adjudication", "overrides")
    )

    case: str
    """The id of the case."""
    criterion: str | None = None
    """The criterion it is about; ``None`` is the case as a whole."""
    value: LabelValue = None
    """True, false, a number, ``first``, ``second``, ``tie`` or ``cannot_tell``; ``None`` is unresolved."""
    settled_by: SettledBy | None = None
    """``adjudication``, ``majority`` (of people), ``override`` (no person labelled the case otherwise), or ``None``."""
    labels: tuple[Label, ...] = ()
    """The latest label of each person, by the rater's name."""
    adjudication: Label | None = None
    """The latest label that settles the case."""
    overrides: tuple[Label, ...] = ()
    """The latest override of each person, by the rater's name."""

    @property
    def heap(self) -> TruthHeap:
        """The heap in which the case is counted: ``good`` is true, ``bad`` is false."""
        if isinstance(self.value, bool):
            return "good" if self.value else "bad"
        if self.value is None:
            return "unresolved"
        return next((heap for heap in _HEAPS if heap == self.value), "number")

    @property
    def differs(self) -> bool:
        """Return whether people said different things, settled or not."""
        return len({(isinstance(label.value, bool), label.value) for label in self.labels}) > 1

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def find_truths(labels: Iterable[Label], *, criterion: str | None = None) -> dict[str, Truth]:
    """Find the truth of every labelled case by its id, for one criterion or (``None``) for the whole case.

    The latest adjudication decides. Without one, the value that more than half of the people gave who looked at the
    case; whoever cannot tell has looked, and ``cannot_tell`` may be the majority. A case that only has overrides goes
    by them, and says so: they are never blind and always against the judge. Otherwise it is unresolved. Labels of
    models are left out. Raises ``UsageError`` for anything but labels.

    Args:
        labels: The labels of all raters.
        criterion: The criterion; ``None`` is the whole case.
    """
    return {
        case: _make_truth(case, criterion, case_labels) for case, case_labels in group_labels(labels, criterion).items()
    }


def _make_truth(case: str, criterion: str | None, case_labels: CaseLabels) -> Truth:
    """Make the truth of a case; one that its labels do not settle has neither a value nor ``settled_by``."""
    value = _find_majority(case_labels.decisive)
    settled_by: SettledBy
    if case_labels.adjudication is not None:
        settled_by = "adjudication"
    else:
        settled_by = "majority" if case_labels.people else "override"
    return Truth(
        case=case,
        criterion=criterion,
        value=value,
        settled_by=None if value is None else settled_by,
        labels=_sort_by_rater(case_labels.people),
        adjudication=case_labels.adjudication,
        overrides=_sort_by_rater(case_labels.overrides),
    )


def _find_majority(values: tuple[LabelValue, ...]) -> LabelValue:
    """Find the label that more than half of the people gave, which may be ``cannot_tell``; else ``None``."""
    unsure = sum(value == CANNOT_TELL for value in values)
    return CANNOT_TELL if 2 * unsure > len(values) else find_truth(values)


def _sort_by_rater(labels: Mapping[str, Label]) -> tuple[Label, ...]:
    """Return labels in the order of their raters' names."""
    return tuple(labels[rater] for rater in sorted(labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthTable:
    """The number of times that each verdict of a judge met each truth; ``tabulate_truths`` makes one."""

    schema: ClassVar[str] = "adjudge/truth-table/1"
    _layout: ClassVar[Layout] = Layout(computed={"counts": lambda table: _nest_counts(table.counts)})

    counts: Mapping[tuple[LabelledVerdict, TruthHeap], int]
    """Cases by verdict and heap; what is not in it is 0."""
    without_verdict: int = 0
    """Labelled cases of which no verdict was given."""
    overrides: int = 0
    """Cases with a verdict whose truth rests on overrides alone; they are in no other count."""

    def count(self, verdict: LabelledVerdict, heap: TruthHeap | None = None) -> int:
        """Count the cases with this verdict and, if given, in this heap.

        Args:
            verdict: The judge's verdict.
            heap: What people made of the cases, such as ``good``.
        """
        check_choice("verdict", verdict, _VERDICTS)
        if heap is not None:
            check_choice("heap", heap, _HEAPS)
            return self.counts.get((verdict, heap), 0)
        return sum(number for (counted_verdict, _), number in self.counts.items() if counted_verdict == verdict)

    def bounds(self, verdict: LabelledVerdict, heap: TruthHeap = "good") -> tuple[int, int]:
        """The fewest and the most cases with this verdict that may be in this heap.

        What people could not tell or agree on is counted as not in it, then as in it.

        Args:
            verdict: The judge's verdict.
            heap: What people made of the cases, such as ``good``.
        """
        certain = self.count(verdict, heap)
        return certain, certain + sum(self.count(verdict, other) for other in _OPEN if other != heap)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data: a member for each verdict, with a member for each heap."""
        return write_record(self)


def _nest_counts(
    counts: Mapping[tuple[LabelledVerdict, TruthHeap], int],
) -> dict[LabelledVerdict, dict[TruthHeap, int]]:
    """Convert the counts of a truth table to plain data: for each verdict that was counted, the count of each heap."""
    return {
        verdict: {heap: counts[verdict, heap] for heap in _HEAPS if (verdict, heap) in counts}
        for verdict in _VERDICTS
        if any(verdict == counted for counted, _ in counts)
    }


def tabulate_truths(truths: Mapping[str, Truth], verdicts: Mapping[str, LabelledVerdict]) -> TruthTable:
    """Compare truths with the verdicts of a judge, both by case id; cases without labels are not counted.

    Cases whose truth rests on overrides alone are counted apart, because only cases that a gate held back have
    overrides: no rate of a judge follows from them. Raises ``UsageError`` for a verdict that no judge gives.

    Args:
        truths: The truth of each case, from ``find_truths``.
        verdicts: The judge's verdict on each case, by its id.
    """
    counts: Counter[tuple[LabelledVerdict, TruthHeap]] = Counter()
    missing = overrides = 0
    for case, truth in truths.items():
        verdict = verdicts.get(case)
        if verdict is None:
            missing += 1
        elif verdict not in _VERDICTS:
            raise UsageError(f"the verdict on {show(case)} must be one of {', '.join(_VERDICTS)}, got {show(verdict)}")
        elif truth.overrides and not truth.labels and truth.adjudication is None:
            overrides += 1
        else:
            counts[verdict, truth.heap] += 1
    return TruthTable(counts=dict(counts), without_verdict=missing, overrides=overrides)
