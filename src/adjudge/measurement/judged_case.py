"""A judged case, as far as it takes to compare it with what people said of it."""

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
from adjudge.labels.truth import LabelledVerdict, Truth, TruthHeap
from adjudge.result import JudgeResult


class CaseVerdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the judge decided of a case: the verdict of more than half of its judgements."""

    verdict: LabelledVerdict
    score: float | None = None
    """The mean of the scores, where there are any; ``None`` for a comparison."""
    judgements: int = 1
    passed: int = 0
    failed: int = 0
    flipped: bool = False
    """Whether the judgements are not all the same."""


class CaseTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What people said of a case, and what it comes to."""

    value: LabelValue
    """True, false, a number, a preference or ``cannot_tell``; ``None`` is unresolved."""
    ratings: Mapping[str, LabelValue] = msgspec.field(default_factory=dict)
    """What each person said who looked."""
    override: bool = False
    """Whether it rests on overrides alone: only cases that a gate held back have those."""
    comments: tuple[str, ...] = ()
    designs: tuple[LabelDesign, ...] = ()
    """How the case was drawn, where that is recorded: by several draws, it may be."""
    bound: bool = True
    """Whether a label says that this very content was read; what a data set says of its own cases is bound to them."""
    blind: bool = True
    """Whether everybody whose label decides is known to have seen no verdict of a judge."""

    @property
    def heap(self) -> TruthHeap:
        """Where the case is counted."""
        if isinstance(self.value, bool):
            return "good" if self.value else "bad"
        if self.value is None:
            return "unresolved"
        if isinstance(self.value, str):
            return self.value if self.value in ("first", "second", "tie") else "cannot_tell"  # type: ignore[return-value]
        return "number"

    @property
    def differs(self) -> bool:
        """Whether people said different things, settled or not."""
        return len({(isinstance(value, bool), value) for value in self.ratings.values()}) > 1


def find_verdict(results: Sequence[JudgeResult | PairResult], criterion: str | None = None) -> CaseVerdict:
    """The verdict of a case's judgements, on a criterion or (``None``) on the whole; undecided without a majority.

    A judgement that says nothing of the criterion is undecided on it.
    """
    said = [_read(result, criterion) for result in results]
    counted = Counter(verdict for verdict, _ in said)
    verdict, number = counted.most_common(1)[0]
    if 2 * number <= len(said):
        verdict = "undecided"
    scores = [score for _, score in said if score is not None]
    return CaseVerdict(
        verdict=verdict,
        score=sum(scores) / len(scores) if scores else None,
        judgements=len(said),
        passed=counted["passed"],
        failed=counted["failed"],
        flipped=len(counted) > 1,
    )


def _read(result: JudgeResult | PairResult, criterion: str | None) -> tuple[LabelledVerdict, float | None]:
    if isinstance(result, PairResult):
        return result.preferred or "undecided", None
    if criterion is None:
        return result.outcome, result.score
    found = next((item for item in result.criteria if item.name == criterion), None)
    if found is None or found.score is None:
        return "undecided", None
    return ("passed" if found.passed else "failed"), found.score


def read_truth(truth: Truth) -> CaseTruth:
    """What the labels of a file or a queue come to."""
    every = (*truth.labels, *truth.overrides, *([truth.adjudication] if truth.adjudication else []))
    return CaseTruth(
        value=truth.value,
        ratings={label.rater: label.value for label in truth.labels},
        override=bool(truth.overrides) and not truth.labels and truth.adjudication is None,
        comments=tuple(label.comment for label in every if label.comment),
        designs=_list_designs(every),
        bound=any(label.subject is not None for label in every),
        blind=all(label.blind for label in truth.labels) and (truth.adjudication is None or truth.adjudication.blind),
    )


def _list_designs(labels: Sequence[Label]) -> tuple[LabelDesign, ...]:
    # Of a label that does not say what was read nobody knows what was drawn.
    said = [label.design for label in labels if label.design is not None and label.subject is not None]
    return tuple(dict.fromkeys(said))


class Labelled(Protocol):
    """Anything that has the labels of a data set's case."""

    @property
    def label(self) -> LabelValue:
        """What a person decided."""
        ...

    @property
    def labels(self) -> Mapping[str, LabelValue]:
        """What each rater said; ``None`` could not tell."""
        ...


def read_own_truth(case: Labelled) -> CaseTruth | None:
    """What a case of a data set says itself: its ``label``, else what more than half of its ``labels`` are."""
    if case.label is None and not case.labels:
        return None
    ratings = {rater: CANNOT_TELL if value is None else value for rater, value in case.labels.items()}
    return CaseTruth(value=settle(tuple(ratings.values())) if case.label is None else case.label, ratings=ratings)


def settle(values: Sequence[LabelValue]) -> LabelValue:
    """What more than half of the people said, ``cannot_tell`` included; ``None`` is unresolved."""
    if 2 * sum(value == CANNOT_TELL for value in values) > len(values):
        return CANNOT_TELL
    return find_truth(values)
