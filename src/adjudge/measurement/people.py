"""The labels that people gave each case, in a few bytes for each label.

Whether a label is of another content than the case has now is decided here (``_is_other``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from adjudge.dataset.label import Label, LabelDesign
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.labels.truth import find_truths
from adjudge.measurement.judged_case import CaseTruth, read_truth
from adjudge.measurement.label_origin import Planned
from adjudge.measurement.tally import NO_TIME

MOST_CRITERIA = 50
"""Criteria with a measurement of their own."""

_EPOCH, _MOMENT = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_NONE = -1

_MOST_KNOWN = 65_536

_DIGEST = 32
"""Bytes of a SHA-256 digest."""


def describe_uncounted(number: int) -> str:
    """Describe labels that are not counted, because people read another content: one clause."""
    if number == 1:
        return "1 label is not counted: it is of another content than the case of its id"
    return f"{number:,} labels are not counted: they are of another content than the case of their id"


class PeopleLabels:
    """The labels that people gave each case, on the whole and on each criterion.

    Of a label only what a truth needs is kept, and what many labels have in common is kept once. The labels of a case
    are chained: each knows the place of the one before it.
    """

    def __init__(self, labels: Iterable[Label], criterion: str | None, planned: Planned | None = None) -> None:
        """Keep labels; where ``planned`` is the run's own plan, it says how a case was drawn, and not the label."""
        self._planned = planned
        self._cases: dict[str, int] = {}
        self._last = array("i")
        """The latest label of each case."""
        self._before, self._patterns, self._at = array("i"), array("i"), array("q")
        self._subject = bytearray()
        """The digest of the content that was read, 32 bytes for each label; zeros where it is unknown."""
        self._pattern_numbers: dict[tuple[object, ...], int] = {}
        self._examples: list[Label] = []
        """One label of each pattern: labels of one pattern differ in their case and time alone."""
        self._known: dict[tuple[str | None, tuple[int, ...], bool, LabelDesign | None], CaseTruth | None] = {}
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
        if not all(self._is_compared):
            self._drop_uncompared()

    def __len__(self) -> int:
        """Return how many cases have a label that is compared."""
        return len(self._cases)

    def find_number(self, case: str) -> int | None:
        """Find the number of a labelled case, from 0; ``None`` if nobody labelled it."""
        return self._cases.get(case)

    def list_other(self, number: int, subject: str | None) -> tuple[list[LabelDesign | None], bool]:
        """List the draws of the labels of a case that are of another content, and return whether all labels are."""
        places = list(self._list_places(number))
        wrong = [place for place in places if self._is_other(place, subject)]
        return [self._examples[self._patterns[place]].design for place in wrong], len(wrong) == len(places)

    def find(self, case: str, criterion: str | None, subject: str | None) -> CaseTruth | None:
        """Find the truth of a content by people's labels, on a criterion or the whole; ``None`` without labels.

        The truth of one pattern of labels is computed once (``_known``): of a million cases most have one of a few.
        """
        number = self._cases.get(case)
        if number is None:
            return None
        places = [place for place in self._list_places(number) if not self._is_other(place, subject)]
        patterns = tuple([self._patterns[place] for place in places])
        plan_design = None if self._planned is None else self._planned.designs.get(case)
        key = (criterion, patterns, subject is None, plan_design)
        if key in self._known:
            return self._known[key]
        labels = [
            replace(
                self._examples[pattern],
                case=case,
                at=_read_time(self._at[place]),
                subject=None if subject is None else self._examples[pattern].subject,
            )
            for pattern, place in zip(patterns, places, strict=True)
        ]
        truth = find_truths(labels, criterion=criterion).get(case)
        case_truth = None if truth is None else read_truth(truth)
        if case_truth is not None and plan_design is not None and case_truth.bound:
            case_truth = msgspec.structs.replace(case_truth, designs=(plan_design, *case_truth.designs))
        # Where somebody labelled a case twice, it depends on the times which of the labels counts.
        distinct = len(
            {
                (
                    label_example.kind,
                    label_example.kind == "adjudication" or label_example.rater,
                    label_example.criterion,
                )
                for label_example in labels
            }
        )
        if distinct == len(labels) and len(self._known) < _MOST_KNOWN:
            self._known[key] = case_truth
        return case_truth

    def list_draws(self, number: int) -> set[LabelDesign]:
        """List the designs by which a case was drawn, as its labels have them."""
        designs = [self._examples[self._patterns[place]].design for place in self._list_places(number)]
        return {design for design in designs if design is not None}

    def find_moment(self, case: str) -> int:
        """Find when a case got its first label, in microseconds; ``NO_TIME`` where a label of it has no time."""
        number = self._cases.get(case)
        return NO_TIME if number is None else min(self._at[place] for place in self._list_places(number))

    def _is_other(self, place: int, subject: str | None) -> bool:
        """Return whether a label says that another content was read."""
        if subject is None or self._examples[self._patterns[place]].subject is None:
            return False
        return self._subject[place * _DIGEST : (place + 1) * _DIGEST] != bytes.fromhex(subject)

    def _add_label(self, label: Label) -> None:
        """Add a label: what labels have in common is kept once, and of each only its time and its content's digest."""
        number = self._cases.get(label.case)
        if number is None:
            number = self._cases[label.case] = len(self._cases)
            self._last.append(_NONE)
        value, design = label.value, self._find_design(label)
        says = (label.subject is not None, label.blind)
        key = (label.kind, label.rater, label.criterion, type(value), value, label.comment, design, says)
        pattern = self._pattern_numbers.get(key)
        if pattern is None:
            pattern = self._pattern_numbers[key] = len(self._examples)
            self._examples.append(label if design is label.design else replace(label, design=design))
        self._before.append(self._last[number])
        self._last[number] = len(self._patterns)
        self._patterns.append(pattern)
        self._at.append(NO_TIME if label.at is None else (label.at - _EPOCH) // _MOMENT)
        self._subject += bytes(_DIGEST) if label.subject is None else bytes.fromhex(label.subject)

    def _find_design(self, label: Label) -> LabelDesign | None:
        # The run's own plan is known itself, so what a label says of it counts for nothing.
        planned, design = self._planned, label.design
        return None if planned is not None and design is not None and design.plan == planned.plan else design

    def _list_places(self, number: int) -> Iterator[int]:
        """List the labels of a case in their order."""
        place, places = self._last[number], []
        while place != _NONE:
            places.append(place)
            place = self._before[place]
        return reversed(places)

    def _drop_uncompared(self) -> None:
        """Forget the cases none of whose labels is about what is compared."""
        compared_cases = [
            case
            for case, number in self._cases.items()
            if any(self._is_compared[self._patterns[place]] for place in self._list_places(number))
        ]
        self._last = array("i", [self._last[self._cases[case]] for case in compared_cases])
        self._cases = {case: number for number, case in enumerate(compared_cases)}


def _read_time(moment: int) -> datetime | None:
    return None if moment == NO_TIME else _EPOCH + timedelta(microseconds=moment)
