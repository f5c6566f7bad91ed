"""``make_measurement``: a run, a data set or a file of labels joined with what people said, in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any

from adjudge.content import content_text
from adjudge.dataset.case import Case, LabelValue
from adjudge.dataset.dataset import open_dataset
from adjudge.dataset.label import Label, load_labels
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.judges.pair import PairResult
from adjudge.labels.truth import find_truths
from adjudge.measurement.compute import MeasurementOptions, compute_measurement
from adjudge.measurement.disagreement import MOST, ComparedCase
from adjudge.measurement.judged_case import (
    CaseTruth,
    CaseVerdict,
    find_verdict,
    read_own_truth,
    read_truth,
)
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.properties import TextProperties, read_properties
from adjudge.measurement.rate import count_labels
from adjudge.measurement.tally import MeasurementTally
from adjudge.result import JudgeResult
from adjudge.runs.folder import Run, open_run
from adjudge.runs.item import RunItem
from adjudge.trust.double_sampling import Target
from adjudge.trust.extra import check_extra
from adjudge.trust.label_counts import LabelCounts

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
        self._missing = set().union(*self._said.values())

    @property
    def missing(self) -> int:
        """How many labelled cases were not looked up so far."""
        return len(self._missing)

    def find(self, case: str, criterion: str | None) -> CaseTruth | None:
        """What people said of a case, on a criterion or the whole; ``None`` where nobody did."""
        self._missing.discard(case)
        return self._said[criterion].get(case)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A case as a source has it, before it is compared."""

    id: str
    place: int
    case: Case | None
    results: Sequence[JudgeResult | PairResult] = ()
    verdict: CaseVerdict | None = None
    """What a rater said who is taken for the judge; otherwise the results say it."""
    own: CaseTruth | None = None
    """What the data set says itself."""

    def find_verdict(self, criterion: str | None) -> CaseVerdict:
        return self.verdict if self.verdict is not None else find_verdict(self.results, criterion)


class _Comparison:
    """All tallies of one source: one for the whole, and one for each criterion that people labelled."""

    def __init__(
        self,
        labels: PeopleLabels,
        criterion: str | None,
        *,
        by: str | None,
        most: int,
        strata: Mapping[str, str] | None = None,
    ) -> None:
        self._labels, self._by, self._criterion = labels, by, criterion
        self._strata = strata or {}
        self.whole = MeasurementTally(criterion, most=most)
        self.criteria = [MeasurementTally(name, most=most) for name in labels.criteria]

    def add(self, judged: _Judged) -> None:
        """Count a case with all its judgements."""
        found = judged.find_verdict(self._criterion)
        truth = self._labels.find(judged.id, self._criterion)
        if truth is None and self._criterion is None:
            truth = judged.own
        agreed: list[bool] = []
        for tally in self.criteria:
            said = self._labels.find(judged.id, tally.criterion)
            verdict = judged.find_verdict(tally.criterion)
            tally.add(verdict, said, self._describe(judged))
            if said is not None and said.heap in ("good", "bad"):
                agreed.append((verdict.verdict == "passed") == (said.heap == "good") and verdict.verdict != "undecided")
        self.whole.add(found, truth, self._describe(judged, criteria_agree=bool(agreed) and all(agreed)))

    def _describe(self, judged: _Judged, *, criteria_agree: bool = False) -> ComparedCase:
        case = judged.case
        return ComparedCase(
            id=judged.id,
            place=judged.place,
            group=case.group if case is not None else None,
            kind=_find_kind(case, self._by),
            texts=partial(_read_texts, judged),
            properties=partial(_read_sides, case),
            orders=_read_orders(judged.results),
            stratum=self._strata.get(judged.id),
            criteria_agree=criteria_agree,
        )

    def finish(
        self, options: MeasurementOptions, *, judge: str, data: str, run: str | None, elsewhere: int
    ) -> Measurement:
        """The measurement, with those of the criteria in it."""
        about: dict[str, Any] = {"judge": judge, "data": data, "run": run}
        criteria = tuple(compute_measurement(tally, options, **about) for tally in self.criteria)
        return compute_measurement(self.whole, options, elsewhere=elsewhere, criteria=criteria, **about)


def make_measurement(
    run: Run | str | os.PathLike[str],
    *,
    labels: Iterable[Label] | None = None,
    criterion: str | None = None,
    by: str | None = None,
    labels_are_random: bool = False,
    target: Target = "run",
    measured_on: Run | str | os.PathLike[str] | None = None,
    alternative: bool = False,
    epsilon: float | None = None,
    most_disagreements: int = MOST,
) -> Measurement:
    """Measure the judge of a run against people.

    ``labels`` default to those of the run's own queue (``adjudge label``); cases that no label is about go by the
    ``label`` and ``labels`` that their data set has. ``criterion`` compares one criterion. ``by`` names what cases are
    compared by: ``group``, or a key of their metadata. ``target`` is what the corrected rate is of, and
    ``labels_are_random`` says that the labelled cases are a random sample of the run. ``measured_on`` is another run of
    the same judge whose labels are used as well, when this one has too few. ``alternative`` asks for the alternative
    annotator test with the handicap ``epsilon`` (0.2). At most ``most_disagreements`` of each sort are kept.

    Reads the run once. Memory grows by some bytes for each labelled case. Needs ``adjudge[trust]``; raises
    ``UsageError`` for a folder that holds no run, and for labels of no case of it.
    """
    check_extra()
    if isinstance(run, str | os.PathLike):
        with open_run(run) as opened:
            return make_measurement(
                opened,
                labels=labels,
                criterion=criterion,
                by=by,
                labels_are_random=labels_are_random,
                target=target,
                measured_on=measured_on,
                alternative=alternative,
                epsilon=epsilon,
                most_disagreements=most_disagreements,
            )
    outside = None if measured_on is None else _count_outside(measured_on, run, criterion)
    options = _make_options(
        by=by, said_random=labels_are_random, target=target, alternative=alternative, epsilon=epsilon, outside=outside
    )
    comparison, people = _compare_run(run, labels, criterion, by=by, most=most_disagreements)
    return comparison.finish(options, run=run.id, elsewhere=people.missing, **_describe_run(run))


def _make_options(**given: Any) -> MeasurementOptions:
    return MeasurementOptions(**{name: value for name, value in given.items() if value is not None})


def _compare_run(
    run: Run, labels: Iterable[Label] | None, criterion: str | None, *, by: str | None, most: int
) -> tuple[_Comparison, PeopleLabels]:
    from adjudge.measurement.run_labels import find_strata, read_queue

    people = PeopleLabels(read_queue(run) if labels is None else labels, criterion)
    comparison = _Comparison(people, criterion, by=by, most=most, strata=find_strata(run))
    for items in _group_items(run.items()):
        first = items[0]
        own = read_own_truth(first.case)
        results = tuple(item.result for item in items)
        comparison.add(_Judged(id=first.case.id, place=first.place, case=first.case, results=results, own=own))
    return comparison, people


def _group_items(items: Iterable[RunItem]) -> Iterator[list[RunItem]]:
    for _, together in groupby(items, key=lambda item: item.place):
        yield list(together)


def _count_outside(source: Run | str | os.PathLike[str], run: Run, criterion: str | None) -> LabelCounts:
    """The labels of another run; raises ``UsageError`` where another judge judged it, or the same run is named."""
    if isinstance(source, str | os.PathLike):
        with open_run(source) as opened:
            return _count_outside(opened, run, criterion)
    if source.id == run.id:
        raise UsageError(f"{source.folder} is the run itself; its labels count already, so leave it out")
    for name, what in (("judge", "judge"), ("asked", "question")):
        if source.manifest["digests"].get(name) != run.manifest["digests"].get(name):
            raise UsageError(
                f"{source.folder} was judged by another {what} than {run.folder}, so its errors say nothing of this "
                "one; name a run of the same judge and rubric"
            )
    return count_labels(_compare_run(source, None, criterion, by=None, most=0)[0].whole)


def _describe_run(run: Run) -> dict[str, str]:
    dataset, judge = (
        found if isinstance(found := run.manifest.get(name), dict) else {} for name in ("dataset", "judge")
    )
    # The name and not the path: a measurement is handed on, and whose machine it was is nobody's business.
    data = dataset.get("name") or PurePath(str(dataset.get("path") or "")).name
    return {"judge": str(judge.get("name") or "")[:300], "data": str(data)[:300]}


def measure_file(
    path: str | os.PathLike[str],
    *,
    judge: str | None = None,
    labels: Iterable[Label] = (),
    criterion: str | None = None,
    by: str | None = None,
    labels_are_random: bool = False,
    target: Target = "run",
    alternative: bool = False,
    epsilon: float | None = None,
    most_disagreements: int = MOST,
) -> tuple[Measurement, ...]:
    """Measure judges whose verdicts are in a file: each model of a file of labels, or one rater of a data set.

    A row of a label file with ``"kind": "model"`` is a verdict; ``judge`` picks one of the models. In a data set
    ``judge`` names the rater in ``labels`` who is the judge, and the others are people. ``labels`` are further labels
    of people. A data set is read once, in memory that grows by some bytes for each case; a file of labels is read
    whole. The rest is as for ``make_measurement``. Raises ``UsageError`` where the file has no verdict of a judge.
    """
    check_extra()
    options = _make_options(
        by=by, said_random=labels_are_random, target=target, alternative=alternative, epsilon=epsilon
    )
    if not _is_label_file(path):
        if judge is None:
            raise UsageError(
                f"{os.fspath(path)} is a data set; say which rater of its labels is the judge (judge=NAME)"
            )
        return (_measure_dataset(path, judge, labels, criterion, options, by=by, most=most_disagreements),)
    every = load_labels(path)
    models = dict.fromkeys(label.rater for label in every if label.kind == "model")
    if judge is not None and judge not in models:
        raise UsageError(
            f"{os.fspath(path)} has no label of kind model of {show(judge)}; it has "
            f"{', '.join(map(show, models)) or 'none at all'}"
        )
    if not models:
        raise UsageError(
            f'{os.fspath(path)} has no verdict of a judge; a judge\'s row has "kind": "model", or name a run instead'
        )
    return tuple(
        _measure_model(path, every, name, labels, criterion, options, by=by, most=most_disagreements)
        for name in ([judge] if judge is not None else models)
    )


def _is_label_file(path: str | os.PathLike[str]) -> bool:
    """Whether the first row of a file is a label's: it has a case, a rater and a value."""
    from adjudge.dataset.formats import find_format, read_rows

    name = os.fspath(path)
    form, gz = find_format(name, None)
    for _, row in read_rows(name, form, None, gz=gz):
        return not isinstance(row, UsageError) and {"case", "rater", "value"} <= set(row)
    raise UsageError(f"{name} has no row; name a run, a data set or a file of labels")


def _measure_model(
    path: str | os.PathLike[str],
    every: Sequence[Label],
    judge: str,
    labels: Iterable[Label],
    criterion: str | None,
    options: MeasurementOptions,
    *,
    by: str | None,
    most: int,
) -> Measurement:
    people = PeopleLabels([*(label for label in every if label.kind != "model"), *labels], criterion)
    comparison = _Comparison(people, criterion, by=by, most=most)
    verdicts: dict[str, LabelValue] = {}
    for label in every:
        if label.kind == "model" and label.rater == judge and label.criterion == criterion:
            verdicts[label.case] = label.value
    for place, (case, value) in enumerate(verdicts.items()):
        comparison.add(_Judged(id=case, place=place, case=None, verdict=_read_value(value)))
    return comparison.finish(options, judge=judge, data=Path(path).name, run=None, elsewhere=people.missing)


def _measure_dataset(
    path: str | os.PathLike[str],
    judge: str,
    labels: Iterable[Label],
    criterion: str | None,
    options: MeasurementOptions,
    *,
    by: str | None,
    most: int,
) -> Measurement:
    people = PeopleLabels(labels, criterion)
    comparison = _Comparison(people, criterion, by=by, most=most)
    found = False
    for place, case in enumerate(open_dataset(path)):
        if judge not in case.labels:
            continue
        found = True
        others = {rater: value for rater, value in case.labels.items() if rater != judge}
        own = read_own_truth(_Own(label=case.label, labels=others))
        verdict = _read_value(case.labels[judge])
        comparison.add(_Judged(id=case.id, place=place, case=case, verdict=verdict, own=own))
    if not found:
        raise UsageError(
            f"no case of {os.fspath(path)} has a label of {show(judge)}; name a rater that its labels have"
        )
    return comparison.finish(options, judge=judge, data=Path(path).name, run=None, elsewhere=people.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """The labels of a case without those of the judge."""

    label: LabelValue
    labels: Mapping[str, LabelValue]


def _read_value(value: LabelValue) -> CaseVerdict:
    """What a rater said, as the verdict of a judge; ``None`` and ``cannot_tell`` are undecided."""
    if isinstance(value, bool):
        return CaseVerdict(verdict="passed" if value else "failed", passed=int(value), failed=int(not value))
    if isinstance(value, int | float):
        return CaseVerdict(verdict="undecided", score=float(value))
    return CaseVerdict(verdict=value if value in ("first", "second", "tie") else "undecided")  # type: ignore[arg-type]


# ---------------------------------------------------------------- what of a case is looked at


def _find_kind(case: Case | None, by: str | None) -> str | None:
    if case is None or by is None:
        return None
    found = case.group if by == "group" else case.metadata.get(by)
    return None if found is None else str(found)[:200]


def _read_texts(judged: _Judged) -> tuple[str, str, str]:
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
