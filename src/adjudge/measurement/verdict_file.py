"""``measure_file``: judges whose verdicts are in a file of labels or in a data set, compared with people."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adjudge.dataset.case import LabelValue
from adjudge.dataset.dataset import open_dataset
from adjudge.dataset.formats import find_format, read_rows
from adjudge.dataset.label import Label
from adjudge.dataset.label_file import load_labels
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import show
from adjudge.measurement.comparison import Comparison, JudgedCase, PeopleLabels
from adjudge.measurement.compute import EPSILON, MeasurementOptions
from adjudge.measurement.disagreement import MOST
from adjudge.measurement.judged_case import CaseVerdict, read_own_truth
from adjudge.measurement.measurement import Measurement
from adjudge.trust.double_sampling import Target
from adjudge.trust.extra import check_extra


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
    epsilon: float = EPSILON,
    most_disagreements: int = MOST,
) -> tuple[Measurement, ...]:
    """Measure judges whose verdicts are in a file: each model of a file of labels, or one rater of a data set.

    A row of a label file with ``"kind": "model"`` is a verdict; ``judge`` picks one of the models. In a data set
    ``judge`` names the rater in ``labels`` who is the judge, and the others are people. ``labels`` are further labels
    of people. A data set is read once, in memory that grows by some bytes for each case; a file of labels is read
    whole. The rest is as for ``make_measurement``. Raises ``UsageError`` where the file has no verdict of a judge.
    """
    check_extra()
    check_choice("target", target, ("run", "system"))
    options = MeasurementOptions(
        criterion=criterion,
        by=by,
        said_random=labels_are_random,
        target=target,
        alternative=alternative,
        epsilon=epsilon,
        most_disagreements=most_disagreements,
    )
    name = os.fspath(path)
    if _is_label_file(name):
        every = load_labels(name)
        people = PeopleLabels([*(label for label in every if label.kind != "model"), *labels], criterion)
        return tuple(_measure_model(name, every, model, people, options) for model in _find_models(name, every, judge))
    if judge is None:
        raise UsageError(f"{name} is a data set; say which rater of its labels is the judge (--judge NAME)")
    return (_measure_dataset(name, judge, PeopleLabels(labels, criterion), options),)


def _is_label_file(name: str) -> bool:
    """Whether the first row of a file is a label's: it has a case, a rater and a value."""
    form, gz = find_format(name, None)
    for _, row in read_rows(name, form, None, gz=gz):
        return not isinstance(row, UsageError) and {"case", "rater", "value"} <= set(row)
    raise UsageError(f"{name} has no row; name a run, a data set or a file of labels")


def _find_models(name: str, every: Sequence[Label], judge: str | None) -> list[str]:
    models = list(dict.fromkeys(label.rater for label in every if label.kind == "model"))
    if not models:
        raise UsageError(
            f'{name} has no verdict of a judge: a judge\'s row has "kind": "model"; add such rows, or name a run'
        )
    if judge is None:
        return models
    if judge not in models:
        raise UsageError(f"{name} has no label of a model {show(judge)}; it has {', '.join(map(show, models))}")
    return [judge]


def _measure_model(
    name: str, every: Sequence[Label], judge: str, people: PeopleLabels, options: MeasurementOptions
) -> Measurement:
    comparison = Comparison(people, options)
    said: dict[str, dict[str | None, CaseVerdict]] = {}
    for label in every:
        if label.kind == "model" and label.rater == judge:
            said.setdefault(label.case, {})[label.criterion] = _read_value(label.value)
    for place, (case, verdicts) in enumerate(said.items()):
        comparison.add(JudgedCase(id=case, place=place, case=None, verdicts=verdicts))
    return comparison.finish(judge=judge, data=Path(name).name)


def _measure_dataset(name: str, judge: str, people: PeopleLabels, options: MeasurementOptions) -> Measurement:
    comparison = Comparison(people, options)
    found = False
    for place, case in enumerate(open_dataset(name)):
        if judge not in case.labels:
            continue
        found = True
        others = {rater: value for rater, value in case.labels.items() if rater != judge}
        own = read_own_truth(_OwnLabels(label=case.label, labels=others))
        verdicts: dict[str | None, CaseVerdict] = {None: _read_value(case.labels[judge])}
        comparison.add(JudgedCase(id=case.id, place=place, case=case, verdicts=verdicts, own=own))
    if not found:
        raise UsageError(f"no case of {name} has a label of {show(judge)}; name a rater that its labels have")
    return comparison.finish(judge=judge, data=Path(name).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnLabels:
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
