"""Verdicts and labels brought together, case by case: on the whole, and on each criterion that people labelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from adjudge.content import content_text
from adjudge.dataset.case import Case
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.judges.pair import PairResult
from adjudge.labels.truth import find_truths
from adjudge.measurement.compute import MeasurementOptions, compute_measurement
from adjudge.measurement.disagreement import ComparedCase
from adjudge.measurement.judged_case import CaseTruth, CaseVerdict, find_verdict, read_truth
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.properties import TextProperties, read_properties
from adjudge.measurement.tally import MeasurementTally
from adjudge.result import JudgeResult

MOST_CRITERIA = 50
"""Criteria with a measurement of their own."""


class PeopleLabels:
    """What people said of each case, on the whole and on each criterion; kept in memory, a label each."""

    def __init__(self, labels: Iterable[Label], criterion: str | None) -> None:
        every = tuple(labels)
        named = sorted({label.criterion for label in every if label.criterion is not None and label.kind != "model"})
        if criterion is not None and criterion not in named:
            known = ", ".join(map(show, named)) or "none"
            raise UsageError(f"no label is about the criterion {show(criterion)}; the labels have {known}")
        if len(named) > MOST_CRITERIA:
            raise UsageError(
                f"the labels name {len(named):,} criteria, and at most {MOST_CRITERIA} are compared at once"
            )
        self.criteria = () if criterion is not None else tuple(named)
        self._said: dict[str | None, dict[str, CaseTruth]] = {
            name: {case: read_truth(truth) for case, truth in find_truths(every, criterion=name).items()}
            for name in (criterion, *self.criteria)
        }

    @property
    def cases(self) -> set[str]:
        """The ids of all labelled cases."""
        return set().union(*self._said.values())

    def find(self, case: str, criterion: str | None) -> CaseTruth | None:
        """What people said of a case, on a criterion or the whole; ``None`` where nobody did."""
        return self._said[criterion].get(case)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """A case as a source has it, before it is compared."""

    id: str
    place: int
    case: Case | None
    results: Sequence[JudgeResult | PairResult] = ()
    verdicts: Mapping[str | None, CaseVerdict] | None = None
    """What a rater said who is taken for the judge, by criterion; otherwise the results say it."""
    own: CaseTruth | None = None
    """What the data set says itself."""

    def find_verdict(self, criterion: str | None) -> CaseVerdict | None:
        """The verdict on a criterion or the whole; ``None`` where the rater said nothing of it."""
        return find_verdict(self.results, criterion) if self.verdicts is None else self.verdicts.get(criterion)


class Comparison:
    """All tallies of one source: one for the whole, and one for each criterion that people labelled."""

    def __init__(self, labels: PeopleLabels, options: MeasurementOptions) -> None:
        self._labels, self._options = labels, options
        self._missing = labels.cases
        self.whole = MeasurementTally(options.criterion, most=options.most_disagreements)
        self.criteria = [MeasurementTally(name, most=options.most_disagreements) for name in labels.criteria]

    def add(self, judged: JudgedCase) -> None:
        """Count a case with all its judgements."""
        self._missing.discard(judged.id)
        agreed = [self._add_criterion(judged, tally) for tally in self.criteria]
        said = [item for item in agreed if item is not None]
        found = judged.find_verdict(self._options.criterion)
        if found is None:
            return
        truth = self._labels.find(judged.id, self._options.criterion)
        if truth is None and self._options.criterion is None:
            truth = judged.own
        self.whole.add(found, truth, self._describe(judged, criteria_agree=bool(said) and all(said)))

    def _add_criterion(self, judged: JudgedCase, tally: MeasurementTally) -> bool | None:
        """Whether judge and people agree on a criterion; ``None`` where one of them says nothing of it."""
        found, truth = judged.find_verdict(tally.criterion), self._labels.find(judged.id, tally.criterion)
        if found is None:
            return None
        tally.add(found, truth, self._describe(judged))
        if truth is None or truth.heap not in ("good", "bad"):
            return None
        return found.verdict == ("passed" if truth.heap == "good" else "failed")

    def _describe(self, judged: JudgedCase, *, criteria_agree: bool = False) -> ComparedCase:
        case = judged.case
        return ComparedCase(
            id=judged.id,
            place=judged.place,
            group=case.group if case is not None else None,
            kind=_find_kind(case, self._options.by),
            texts=partial(_read_texts, judged),
            properties=partial(_read_sides, case),
            orders=_read_orders(judged.results),
            criteria_agree=criteria_agree,
        )

    def finish(self, *, judge: str, data: str, run: str | None = None) -> Measurement:
        """The measurement, with those of the criteria in it."""
        about: dict[str, Any] = {"judge": judge, "data": data, "run": run}
        criteria = tuple(compute_measurement(tally, self._options, **about) for tally in self.criteria if tally.cases)
        return compute_measurement(self.whole, self._options, elsewhere=len(self._missing), criteria=criteria, **about)


# ---------------------------------------------------------------- what of a case is looked at


def _find_kind(case: Case | None, by: str | None) -> str | None:
    if case is None or by is None:
        return None
    found = case.group if by == "group" else case.metadata.get(by)
    return None if found is None else str(found)[:200]


def _read_texts(judged: JudgedCase) -> tuple[str, str, str]:
    case = judged.case
    if case is None:
        return "", "", ""
    first = judged.results[0] if judged.results else None
    why = "" if first is None else getattr(first, "reasoning", "") or first.detail
    return _read_text(case.content), _read_text(case.task), why


def _read_text(value: Any) -> str:
    try:
        return "" if value is None else content_text(value)
    except UsageError as error:  # a case that could not be judged for what its content is
        return f"({error})"


def _read_sides(case: Case | None) -> tuple[TextProperties, ...]:
    if case is None:
        return ()
    content = case.content
    pair = isinstance(content, dict) and set(content) == {"a", "b"}
    sides = (content["a"], content["b"]) if pair else (content,)
    return tuple(read_properties(_read_text(side), case.metadata) for side in sides)


def _read_orders(results: Sequence[JudgeResult | PairResult]) -> tuple[str | None, str | None] | None:
    if not results or not isinstance(results[0], PairResult):
        return None
    said = {item.order: item.preferred for item in results[0].orders}
    return said.get("ab"), said.get("ba")
