"""The verdict of a judge on a case, and the truth of the case by people's labels, as they are compared.

Several judgements of one case are made one verdict by ``find_verdict``; people's labels are made one truth in
``labels/truth.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from adjudge.dataset.case import LabelValue
from adjudge.dataset.case_labels import find_truth
from adjudge.dataset.label import Label, LabelDesign
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.judges.pair import PairResult
from adjudge.labels.truth import LabelledVerdict, Truth, TruthHeap, find_majority_verdict
from adjudge.result import JudgeResult


class CaseVerdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The judge's decision on a case: the verdict of more than half of its judgements."""

    verdict: LabelledVerdict
    score: float | None = None
    """The mean of the scores, where there are any; ``None`` for a comparison."""
    judgements: int = 1
    """The number of judgements."""
    passed: int = 0
    """The number of judgements that passed."""
    failed: int = 0
    """The number of judgements that failed."""
    flipped: bool = False
    """True if the judgements are not all the same."""


_PREFERENCES: dict[str, TruthHeap] = {"first": "first", "second": "second", "tie": "tie"}


class CaseTruth(msgspec.Struct, frozen=True, kw_only=True):
    """The truth of a case, with the labels of people that it follows from."""

    value: LabelValue
    """True, false, a number, a preference or ``cannot_tell``; ``None`` is unresolved."""
    ratings: Mapping[str, LabelValue] = msgspec.field(default_factory=dict)
    """The label of each person who looked."""
    override: bool = False
    """True if it rests on overrides alone: only cases that a gate held back have those."""
    comments: tuple[str, ...] = ()
    designs: tuple[LabelDesign, ...] = ()
    """The designs by which the case was drawn for labelling, one for each draw, where labels record them."""
    bound: bool = True
    """True if a label records which content was read, or if the truth is stated by the data set that has the case."""
    blind: bool = True
    """True if everybody whose label decides is known to have seen no verdict of a judge."""

    @property
    def heap(self) -> TruthHeap:
        """The heap in which the case is counted: a word for the truth, such as ``good``, ``tie`` or ``unresolved``."""
        if isinstance(self.value, bool):
            return "good" if self.value else "bad"
        if self.value is None:
            return "unresolved"
        if isinstance(self.value, str):
            return _PREFERENCES.get(self.value, "cannot_tell")
        return "number"

    @property
    def differs(self) -> bool:
        """Return whether people said different things, settled or not."""
        # With the type, because True equals 1.
        return len({(isinstance(value, bool), value) for value in self.ratings.values()}) > 1


def find_verdict(results: Sequence[JudgeResult | PairResult], criterion: str | None = None) -> CaseVerdict:
    """Find the verdict of a case's judgements, on a criterion or (``None``) on the whole; undecided without a majority.

    A judgement that says nothing of the criterion is undecided on it.
    """
    judgements = [_read_judgement(result, criterion) for result in results]
    counts = Counter(verdict for verdict, _ in judgements)
    scores = [score for _, score in judgements if score is not None]
    return CaseVerdict(
        verdict=find_majority_verdict(counts),
        score=sum(scores) / len(scores) if scores else None,
        judgements=len(judgements),
        passed=counts["passed"],
        failed=counts["failed"],
        flipped=len(counts) > 1,
    )


def _read_judgement(result: JudgeResult | PairResult, criterion: str | None) -> tuple[LabelledVerdict, float | None]:
    """Read the verdict of one judgement, and its score if it has one."""
    if isinstance(result, PairResult):
        return result.preferred or "undecided", None
    if criterion is None:
        return result.outcome, result.score
    for criterion_result in result.criteria:
        if criterion_result.name == criterion:
            if criterion_result.score is None:
                break
            return ("passed" if criterion_result.passed else "failed"), criterion_result.score
    return "undecided", None


def read_truth(truth: Truth) -> CaseTruth:
    """Make the truth of a case, as it is compared with a verdict, from that of a file's or a queue's labels."""
    labels = (*truth.labels, *truth.overrides, *([truth.adjudication] if truth.adjudication else []))
    has_only_overrides = bool(truth.overrides) and not truth.labels and truth.adjudication is None
    adjudication_is_blind = truth.adjudication is None or truth.adjudication.blind
    return CaseTruth(
        value=truth.value,
        ratings={label.rater: label.value for label in truth.labels},
        override=has_only_overrides,
        comments=tuple(label.comment for label in labels if label.comment),
        designs=_list_designs(labels),
        bound=any(label.subject is not None for label in labels),
        blind=all(label.blind for label in truth.labels) and adjudication_is_blind,
    )


def _list_designs(labels: Sequence[Label]) -> tuple[LabelDesign, ...]:
    """List the different designs by which a case was drawn, as its labels record them."""
    # Without the digest of the content that was read, nobody knows whether that content was the drawn one.
    designs = [label.design for label in labels if label.design is not None and label.subject is not None]
    return tuple(dict.fromkeys(designs))


class Labelled(Protocol):
    """Anything that has the labels of a data set's case."""

    @property
    def label(self) -> LabelValue:
        """The decision of a person."""
        ...

    @property
    def labels(self) -> Mapping[str, LabelValue]:
        """Each rater's label; ``None`` could not tell."""
        ...


def read_stated_truth(case: Labelled) -> CaseTruth | None:
    """Read the truth that a case of a data set states itself: its ``label``, else the majority of its ``labels``."""
    if case.label is None and not case.labels:
        return None
    ratings = {rater: CANNOT_TELL if value is None else value for rater, value in case.labels.items()}
    return CaseTruth(
        value=find_majority(tuple(ratings.values())) if case.label is None else case.label, ratings=ratings
    )


def find_majority(values: Sequence[LabelValue]) -> LabelValue:
    """Find the label that more than half of the people gave, ``cannot_tell`` included; ``None`` is unresolved."""
    if 2 * sum(value == CANNOT_TELL for value in values) > len(values):
        return CANNOT_TELL
    return find_truth(values)
