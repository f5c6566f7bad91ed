"""``measure_file``: judges whose verdicts are in a file of labels or in a data set, compared with people."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from adjudge.dataset.case import LabelValue
from adjudge.dataset.contents import digest_content
from adjudge.dataset.dataset import open_dataset
from adjudge.dataset.formats import find_format, read_rows
from adjudge.dataset.label import Label
from adjudge.dataset.label_file import stream_labels
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import show
from adjudge.labels.truth import LabelledVerdict
from adjudge.measurement.comparison import Comparison, JudgedCase
from adjudge.measurement.compute import EPSILON, MeasurementOptions
from adjudge.measurement.disagreement import MOST_DISAGREEMENTS
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.verdict_and_truth import CaseTruth, CaseVerdict, read_stated_truth
from adjudge.trust.double_sampling import Target
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import IntervalMethod, check_method


def measure_file(
    path: str | os.PathLike[str],
    *,
    judge: str | None = None,
    labels: Iterable[Label] = (),
    criterion: str | None = None,
    by: str | None = None,
    labels_are_random: bool = False,
    target: Target = "run",
    limits: IntervalMethod | None = None,
    alternative: bool = False,
    epsilon: float = EPSILON,
    most_disagreements: int = MOST_DISAGREEMENTS,
) -> tuple[Measurement, ...]:
    """Measure judges whose verdicts are in a file: each model of a file of labels, or one rater of a data set.

    A row of a label file with ``"kind": "model"`` is a verdict. A data set is read once, in memory that grows by some
    bytes for each case; a file of labels is read whole. Raises ``UsageError`` where the file has no verdict of a judge.

    Args:
        path: The file to read.
        judge: Of a file of labels, the one model that is measured; by default each. Of a data set, the rater in its
            ``labels`` who is the judge, which has to be named; the others are people.
        labels: Further labels of people.
        criterion: The criterion that is compared; by default the case as a whole.
        by: What cases are compared by: ``group``, or a key of their metadata.
        labels_are_random: Whether the labelled cases are a random sample of all.
        target: What the rate is of: ``"run"``, these cases, or ``"system"``, everything that the system produces.
        limits: How the limits of each share are computed; by default Wilson's, near 0 and 1 the exact ones.
        alternative: Whether to run the alternative annotator test.
        epsilon: The handicap of that test, from 0 to 1.
        most_disagreements: How many disagreements of each sort are kept at most.
    """
    check_extra()
    check_choice("target", target, ("run", "system"))
    if limits is not None:
        check_method(limits)
    options = MeasurementOptions(
        criterion=criterion,
        by=by,
        labels_are_random=labels_are_random,
        target=target,
        limits=limits,
        alternative=alternative,
        epsilon=epsilon,
        most_disagreements=most_disagreements,
    )
    name = os.fspath(path)
    if _is_label_file(name):
        return _measure_models(name, judge, labels, options)
    if judge is None:
        raise UsageError(
            f"{name} is a data set; name the rater of its labels that is the judge with ",
            Argument("judge"),
            argument="judge",
        )
    return (_measure_dataset(name, judge, PeopleLabels(labels, criterion), options),)


def _is_label_file(name: str) -> bool:
    """Return whether a file is one of labels, and no data set: its first row has a case, a rater and a value.

    Raises ``UsageError`` for a file without a row.
    """
    form, gz = find_format(name, None)
    for _, row in read_rows(name, form, None, gz=gz):
        return not isinstance(row, UsageError) and {"case", "rater", "value"} <= set(row)
    raise UsageError(f"{name} has no row; name a run, a data set or a file of labels")


def _measure_models(
    name: str, judge: str | None, labels: Iterable[Label], options: MeasurementOptions
) -> tuple[Measurement, ...]:
    """Measure the models of a file of labels, which is read once; its verdicts and people's labels are kept."""
    # Both are filled while ``PeopleLabels`` takes the labels of people from the file.
    verdicts_by_model: dict[str, _Verdicts] = {}
    subjects_by_model: dict[str, dict[str, str]] = {}
    labels_of_people = _separate_models(stream_labels(name), verdicts_by_model, subjects_by_model)
    people = PeopleLabels(chain(labels_of_people, labels), options.criterion)
    measurements = []
    for model in _find_models(name, list(verdicts_by_model), judge):
        # Taken out, so that the memory of a model that is measured is free for the next.
        comparison, subjects = Comparison(people, options), subjects_by_model.pop(model, {})
        for place, (case, verdicts) in enumerate(verdicts_by_model.pop(model).items()):
            subject = subjects.get(case)
            comparison.add(JudgedCase(id=case, place=place, case=None, subject=subject, verdicts=verdicts))
        measurements.append(comparison.finish(judge=model, data=Path(name).name))
    return tuple(measurements)


_Verdicts = dict[str, Mapping[str | None, CaseVerdict]]
"""The verdicts of a model on each case, by criterion."""


def _separate_models(
    labels: Iterable[Label],
    verdicts_by_model: dict[str, _Verdicts],
    subjects_by_model: dict[str, dict[str, str]],
) -> Iterator[Label]:
    """Yield the labels of people, and put those of models into the two mappings.

    These get the verdicts of each model by case, and the digests of the contents that it judged by case. Equal verdicts
    are one object, because there may be millions.
    """
    for label in labels:
        if label.kind != "model":
            yield label
            continue
        verdicts, value = verdicts_by_model.setdefault(label.rater, {}), label.value
        if label.subject is not None:
            subjects_by_model.setdefault(label.rater, {})[label.case] = label.subject
        earlier_verdicts = verdicts.get(label.case)
        if label.criterion is None and earlier_verdicts is None and (value is True or value is False):
            verdicts[label.case] = _SHARED_VERDICTS[value]
        else:
            verdicts[label.case] = {**(earlier_verdicts or {}), label.criterion: _read_verdict(value)}


def _find_models(name: str, models: list[str], judge: str | None) -> list[str]:
    """Return the models to measure: all, or ``judge`` alone.

    Raises ``UsageError`` for a file without verdicts of a model, or without those of ``judge``.
    """
    if not models:
        raise UsageError(
            f'{name} has no verdict of a judge: a judge\'s row has "kind": "model"; add such rows, or name a run'
        )
    if judge is None:
        return models
    if judge not in models:
        raise UsageError(f"{name} has no label of a model {show(judge)}; it has {', '.join(map(show, models))}")
    return [judge]


def _measure_dataset(name: str, judge: str, people: PeopleLabels, options: MeasurementOptions) -> Measurement:
    """Measure the judge whose labels are in a data set, against the other labels there and those of people.

    Raises ``UsageError`` where no case has a label of the judge.
    """
    comparison = Comparison(people, options)
    truths = _StatedTruths()
    any_labels = False
    for place, case in enumerate(open_dataset(name)):
        labels = dict(case.labels)
        if judge not in labels:
            continue
        any_labels = True
        judge_label = labels.pop(judge)
        verdicts: Mapping[str | None, CaseVerdict]
        if judge_label is True or judge_label is False:
            verdicts = _SHARED_VERDICTS[judge_label]
        else:
            verdicts = {None: _read_verdict(judge_label)}
        stated_truth = truths.find_truth(case.label, labels)
        subject = digest_content(case.content)
        comparison.add(
            JudgedCase(
                id=case.id, place=place, case=case, subject=subject, verdicts=verdicts, stated_truth=stated_truth
            )
        )
    if not any_labels:
        raise UsageError(f"no case of {name} has a label of {show(judge)}; name a rater that its labels have")
    return comparison.finish(judge=judge, data=Path(name).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StatedLabels:
    """The labels that a case states, without the judge's."""

    label: LabelValue
    labels: Mapping[str, LabelValue]


class _StatedTruths:
    """Computes the truths that cases state themselves, once for all cases with the same labels."""

    def __init__(self) -> None:
        self._remembered: dict[tuple[object, ...], CaseTruth | None] = {}
        """Truths by raters and labels."""

    def find_truth(self, label: LabelValue, labels: Mapping[str, LabelValue]) -> CaseTruth | None:
        """Find the truth that a case's label and the labels of its raters come to: remembered, or computed now.

        Truths of labels that are numbers are not remembered: 1, 1.0 and true are three different labels, and would be
        one key of the dictionary.
        """
        key = (*labels, label, *labels.values())
        can_remember = _REMEMBERED_TYPES.issuperset(map(type, (label, *labels.values())))
        if can_remember and key in self._remembered:
            return self._remembered[key]
        truth = read_stated_truth(_StatedLabels(label=label, labels=labels))
        if can_remember and len(self._remembered) < _MOST_REMEMBERED:
            self._remembered[key] = truth
        return truth


_REMEMBERED_TYPES = frozenset((bool, str, type(None)))
"""Types of labels whose truth is remembered: no numbers, which are seldom equal anyway."""

_MOST_REMEMBERED = 4_096
"""Truths that are remembered."""


_PREFERENCES: Mapping[str | None, LabelledVerdict] = {"first": "first", "second": "second", "tie": "tie"}


def _read_verdict(value: LabelValue) -> CaseVerdict:
    """Read a rater's label as the verdict of a judge; ``None`` and ``cannot_tell`` are undecided."""
    if isinstance(value, bool):
        return CaseVerdict(verdict="passed" if value else "failed", passed=int(value), failed=int(not value))
    if isinstance(value, int | float):
        return CaseVerdict(verdict="undecided", score=float(value))
    return CaseVerdict(verdict=_PREFERENCES.get(value, "undecided"))


_SHARED_VERDICTS: dict[bool, Mapping[str | None, CaseVerdict]] = {
    value: {None: _read_verdict(value)} for value in (True, False)
}
"""The verdicts that nearly all cases have, as one object each: there may be millions."""
