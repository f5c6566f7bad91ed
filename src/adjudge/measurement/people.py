"""The labels that people gave the cases, kept in a few bytes for each label, and the truth of a case by them.

Whether a label is of another content than the case has now is decided here (``_is_other``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from adjudge.dataset.label import Label, LabelDesign
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.labels.truth import find_truths
from adjudge.measurement.label_origin import KnownPlan
from adjudge.measurement.tally import NO_TIME
from adjudge.measurement.verdict_and_truth import CaseTruth, read_truth

MOST_CRITERIA = 50
"""Criteria with a measurement of their own."""

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_NO_LABEL = -1
"""The number in place of a label's where there is none before it."""

_MOST_REMEMBERED = 65_536
"""Truths that are remembered, by the patterns of labels that they follow from."""

_DIGEST = 32
"""Bytes of a SHA-256 digest."""


def describe_uncounted(number: int) -> str:
    """Describe labels that are not counted, because people read another content: one clause."""
    if number == 1:
        return "1 label is not counted: it is of another content than the case of its id"
    return f"{number:,} labels are not counted: they are of another content than the case of their id"


class PeopleLabels:
    """The labels that people gave each case, on the whole and on each criterion.

    There may be millions of labels, so that no ``Label`` is kept for each. Labels have numbers in the order in which
    they were added, and arrays hold of each label its pattern, its time and the digest of the content that was read. A
    pattern is all else, such as rater, value and comment: labels with the same share one. The labels of a case are a
    chain, from its last label back to its first.
    """

    def __init__(self, labels: Iterable[Label], criterion: str | None, known_plan: KnownPlan | None = None) -> None:
        """Keep labels; where ``known_plan`` is the run's own plan, it says how a case was drawn, and not the label."""
        self._known_plan = known_plan
        self._cases: dict[str, int] = {}
        """The number of each labelled case, by its id."""
        self._last_labels = array("i")
        """The number of the last label of each case, by the case's number."""
        self._previous_labels = array("i")
        """The number of the label of the same case that came before, for each label; ``_NO_LABEL`` for the first."""
        self._patterns = array("i")
        """The number of the pattern of each label."""
        self._times = array("q")
        """The time of each label, in microseconds since 1970; ``NO_TIME`` where it has none."""
        self._subjects = bytearray()
        """The digest of the content that was read, 32 bytes for each label; zeros where it is unknown."""
        self._pattern_numbers: dict[tuple[object, ...], int] = {}
        self._examples: list[Label] = []
        """The first label of each pattern, by the pattern's number."""
        self._remembered: dict[tuple[str | None, tuple[int, ...], bool, LabelDesign | None], CaseTruth | None] = {}
        for label in labels:
            if not isinstance(label, Label):
                raise UsageError(
                    f"labels must be Label, got {show(label)}; load_labels reads a file of them", argument="labels"
                )
            if label.kind != "model":
                self._add_label(label)
        criteria = sorted({label.criterion for label in self._examples if label.criterion is not None})
        if criterion is not None and criterion not in criteria:
            listed = ", ".join(map(show, criteria)) or "none"
            raise UsageError(f"no label is about the criterion {show(criterion)}; the labels have {listed}")
        if len(criteria) > MOST_CRITERIA:
            raise UsageError(
                f"the labels name {len(criteria):,} criteria, and at most {MOST_CRITERIA} are compared at once"
            )
        self.criteria = () if criterion is not None else tuple(criteria)
        compared = {criterion, *self.criteria}
        self._is_compared = [label.criterion in compared for label in self._examples]
        """True for each pattern whose criterion (``None`` is the case as a whole) is compared."""
        if not all(self._is_compared):
            self._drop_uncompared_cases()

    def __len__(self) -> int:
        """Return how many cases have a label that is compared."""
        return len(self._cases)

    def find_number(self, case: str) -> int | None:
        """Find the number of a labelled case, from 0; ``None`` if nobody labelled it."""
        return self._cases.get(case)

    def list_other(self, number: int, subject: str | None) -> tuple[list[LabelDesign | None], bool]:
        """Check which labels of a case are of another content than the one with the digest ``subject``.

        Returns the designs of these labels (``None`` for a label without one), and whether they are all of its labels.
        """
        label_numbers = list(self._list_label_numbers(number))
        others = [label_number for label_number in label_numbers if self._is_other(label_number, subject)]
        designs = [self._examples[self._patterns[label_number]].design for label_number in others]
        return designs, len(others) == len(label_numbers)

    def find_truth(self, case: str, criterion: str | None, subject: str | None) -> CaseTruth | None:
        """Find the truth of a case by people's labels, on a criterion or the whole; ``None`` without labels.

        ``subject`` is the digest of the case's content: labels of another content do not count. A truth is computed
        once for all cases whose labels have the same patterns, because most of a million cases share a few patterns.
        """
        number = self._cases.get(case)
        if number is None:
            return None
        label_numbers = [
            label_number
            for label_number in self._list_label_numbers(number)
            if not self._is_other(label_number, subject)
        ]
        patterns = tuple([self._patterns[label_number] for label_number in label_numbers])
        plan_design = None if self._known_plan is None else self._known_plan.designs.get(case)
        key = (criterion, patterns, subject is None, plan_design)
        if key in self._remembered:
            return self._remembered[key]
        labels = [
            replace(
                self._examples[pattern],
                case=case,
                at=_read_time(self._times[label_number]),
                subject=None if subject is None else self._examples[pattern].subject,
            )
            for pattern, label_number in zip(patterns, label_numbers, strict=True)
        ]
        truth = find_truths(labels, criterion=criterion).get(case)
        case_truth = None if truth is None else read_truth(truth)
        if case_truth is not None and plan_design is not None and case_truth.bound:
            case_truth = msgspec.structs.replace(case_truth, designs=(plan_design, *case_truth.designs))
        if _are_distinct(labels) and len(self._remembered) < _MOST_REMEMBERED:
            self._remembered[key] = case_truth
        return case_truth

    def list_draws(self, number: int) -> set[LabelDesign]:
        """List the designs by which a case was drawn, as its labels have them."""
        label_numbers = self._list_label_numbers(number)
        designs = [self._examples[self._patterns[label_number]].design for label_number in label_numbers]
        return {design for design in designs if design is not None}

    def find_first_label_time(self, case: str) -> int:
        """Find when a case got its first label, in microseconds; ``NO_TIME`` where a label of it has no time."""
        number = self._cases.get(case)
        if number is None:
            return NO_TIME
        # ``NO_TIME`` is below every time, so it is the least where a label has it.
        return min(self._times[label_number] for label_number in self._list_label_numbers(number))

    def _is_other(self, label_number: int, subject: str | None) -> bool:
        """Return whether a label says that another content was read; false where one of the two is unknown."""
        if subject is None or self._examples[self._patterns[label_number]].subject is None:
            return False
        start = label_number * _DIGEST
        return self._subjects[start : start + _DIGEST] != bytes.fromhex(subject)

    def _add_label(self, label: Label) -> None:
        """Add a label to the arrays; a label whose pattern is new becomes the example of its pattern."""
        case_number = self._cases.get(label.case)
        if case_number is None:
            case_number = self._cases[label.case] = len(self._cases)
            self._last_labels.append(_NO_LABEL)
        value, design = label.value, self._find_own_design(label)
        has_subject = label.subject is not None
        # With the type of the value, because 1, 1.0 and True are equal and three different labels.
        key = (
            label.kind,
            label.rater,
            label.criterion,
            type(value),
            value,
            label.comment,
            design,
            (has_subject, label.blind),
        )
        pattern = self._pattern_numbers.get(key)
        if pattern is None:
            pattern = self._pattern_numbers[key] = len(self._examples)
            self._examples.append(label if design is label.design else replace(label, design=design))
        label_number = len(self._patterns)
        self._previous_labels.append(self._last_labels[case_number])
        self._last_labels[case_number] = label_number
        self._patterns.append(pattern)
        self._times.append(NO_TIME if label.at is None else (label.at - _EPOCH) // _MICROSECOND)
        self._subjects += bytes(_DIGEST) if label.subject is None else bytes.fromhex(label.subject)

    def _find_own_design(self, label: Label) -> LabelDesign | None:
        """Return the design that a label records; ``None`` if it is of the run's own plan, which is known better."""
        known_plan, design = self._known_plan, label.design
        return None if known_plan is not None and design is not None and design.plan == known_plan.plan else design

    def _list_label_numbers(self, case_number: int) -> Iterator[int]:
        """List the numbers of the labels of a case, in the order in which they were added."""
        label_number, label_numbers = self._last_labels[case_number], []
        while label_number != _NO_LABEL:
            label_numbers.append(label_number)
            label_number = self._previous_labels[label_number]
        return reversed(label_numbers)

    def _drop_uncompared_cases(self) -> None:
        """Drop the cases none of whose labels is about a criterion that is compared, and number the others anew."""
        compared_cases = [
            case
            for case, case_number in self._cases.items()
            if any(
                self._is_compared[self._patterns[label_number]]
                for label_number in self._list_label_numbers(case_number)
            )
        ]
        self._last_labels = array("i", [self._last_labels[self._cases[case]] for case in compared_cases])
        self._cases = {case: case_number for case_number, case in enumerate(compared_cases)}


def _are_distinct(labels: Sequence[Label]) -> bool:
    """Return whether no two labels of a case are of one rater, kind and criterion; adjudications count as one rater's.

    Of two such labels the later one counts. So their truth depends on their times, which no pattern has.
    """
    raters = {(label.kind, label.kind == "adjudication" or label.rater, label.criterion) for label in labels}
    return len(raters) == len(labels)


def _read_time(microseconds: int) -> datetime | None:
    """Return the time so many microseconds after the beginning of 1970; ``None`` for ``NO_TIME``."""
    return None if microseconds == NO_TIME else _EPOCH + timedelta(microseconds=microseconds)
