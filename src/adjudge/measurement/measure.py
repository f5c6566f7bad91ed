"""``make_measurement``: the judge of a run compared with people, in one pass over the run.

The statistics are chosen in ``compute.py`` and computed in ``trust``; which limits a gate may go by is decided in
``limit.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.labels.looks import load_looks
from adjudge.labels.plan import read_plan
from adjudge.measurement.comparison import Comparison, list_judged_cases
from adjudge.measurement.compute import EPSILON, MeasurementOptions
from adjudge.measurement.disagreement import MOST
from adjudge.measurement.limit import RatedRun, find_limit
from adjudge.measurement.measurement import ErrorsElsewhere, Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.preference_difference import find_preference_difference
from adjudge.measurement.run_labels import read_plan_file, read_run_labels
from adjudge.runs.folder import Run, open_run
from adjudge.trust.corrected_rate import Refusal
from adjudge.trust.double_sampling import Target
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import IntervalMethod, check_method


def make_measurement(
    run: Run | str | os.PathLike[str],
    *,
    labels: Iterable[Label] | None = None,
    criterion: str | None = None,
    by: str | None = None,
    labels_are_random: bool = False,
    target: Target = "run",
    limits: IntervalMethod | None = None,
    measured_on: Run | str | os.PathLike[str] | None = None,
    alternative: bool = False,
    epsilon: float = EPSILON,
    most_disagreements: int = MOST,
) -> Measurement:
    """Measure the judge of a run against people.

    Reads the run once. Memory grows by some bytes for each labelled case. Needs ``adjudge[trust]``; raises
    ``UsageError`` for a folder that holds no run, and for labels of no case of it.

    Args:
        run: The run, or its folder.
        labels: The labels of people; by default those of the run's own queue. Cases that no label is about go by the
            ``label`` and ``labels`` that their data set has.
        criterion: The criterion that is compared; by default the case as a whole.
        by: What cases are compared by: ``group``, or a key of their metadata. ``None`` is nothing.
        labels_are_random: Whether the labelled cases are a random sample of the run, which nothing but you can know.
        target: What the corrected rate is of: ``"run"``, these cases, or ``"system"``, everything that the system
            produces.
        limits: How the limits of each share are computed; by default Wilson's, near 0 and 1 the exact ones.
        measured_on: Another, labelled run of the same judge, or its folder: what was counted there is shown beside this
            run and is in none of its rates, because a judge errs more often on some traffic than on other. ``None`` is
            none.
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
    if isinstance(run, Run):
        return _measure_join(run, labels, options, measured_on)
    with open_run(run) as opened:
        return _measure_join(opened, labels, options, measured_on)


def measure_sample(run: Run, labels: Sequence[Label], *, labels_are_random: bool = False) -> Measurement:
    """Measure the judge of a run on the labels alone that are a random sample of it, for all contents like these.

    Labels that somebody picked beside the draw are in no figure. Needs ``adjudge[trust]``.
    """
    check_extra()
    options = MeasurementOptions(
        labels_are_random=labels_are_random, target="system", most_disagreements=0, drawn_only=True
    )
    return _compare_with_people(run, labels, options)


def _measure_join(
    run: Run,
    labels: Iterable[Label] | None,
    options: MeasurementOptions,
    measured_on: Run | str | os.PathLike[str] | None,
) -> Measurement:
    """Measure an open run, and the run ``measured_on`` for comparison; ``labels`` are by default those of its queue."""
    measurement = _compare_with_people(run, read_run_labels(run) if labels is None else tuple(labels), options)
    if measured_on is None:
        return measurement
    return replace(measurement, measured_on=_measure_other(measured_on, run, options))


def _compare_with_people(run: Run, labels: Sequence[Label], options: MeasurementOptions) -> Measurement:
    """Compare the verdicts of a run with people's labels, in the light of the plan that drew the labelled cases."""
    plan = read_plan_file(run, labels)
    comparison = _join_labels(run, PeopleLabels(labels, options.criterion, plan.planned), options)
    judge, data = name_judge_and_data(run)
    measurement = comparison.finish(
        run=run.id,
        judge=judge,
        data=data,
        planned=plan.planned,
        problem=plan.problem,
        distrusted=plan.distrusted,
        # Only a run that is finished has all of its contents; others would come that nobody could draw.
        is_whole=run.status == "finished",
        recorded=run.contents,
    )
    return _add_limit(measurement, comparison, run, options, labels)


def _add_limit(
    measurement: Measurement, comparison: Comparison, run: Run, options: MeasurementOptions, labels: Sequence[Label]
) -> Measurement:
    """Add to a measurement the limits that a gate goes by, or why there are none."""
    rate = measurement.rate
    refused = f"{rate.reason}; {rate.remedy}" if isinstance(rate, Refusal) else None
    plan = None if comparison.origin.planned is None else read_plan(run.folder)
    drawn = frozenset() if plan is None else frozenset(planned_case.case for planned_case in plan.order)
    rated = RatedRun(
        folder=run.folder,
        rate=rate,
        missing=refused or measurement.left_out.get("rate", "no case has a label"),
        sampling=measurement.sampling,
        labels_are_random=options.labels_are_random,
        target=options.target,
        limits=options.limits,
        criterion=options.criterion,
        plan=plan,
        origin=comparison.origin,
        lost=comparison.lost,
        labels=[label for label in labels if label.case in drawn],
        looks=load_looks(run.folder),
    )
    limit = find_limit(comparison.whole, rated)
    if measurement.kind == "preference" and measurement.labelled:
        preference = find_preference_difference(comparison.whole, rated, limit)
        measurement = replace(measurement, preference=preference)
    left_out = measurement.left_out if limit.missing is None else {**measurement.left_out, "limit": limit.missing}
    return replace(measurement, limit=limit.limit, plan=limit.plan, draw=limit.draw, left_out=left_out)


def _join_labels(run: Run, labels: PeopleLabels, options: MeasurementOptions) -> Comparison:
    comparison = Comparison(labels, options)
    for judged in list_judged_cases(run):
        comparison.add(judged)
    return comparison


def _measure_other(source: Run | str | os.PathLike[str], run: Run, options: MeasurementOptions) -> ErrorsElsewhere:
    """Measure the judge on another run; raises ``UsageError`` for one of another judge, and for this run itself."""
    if not isinstance(source, Run):
        with open_run(source) as opened:
            return _measure_other(opened, run, options)
    if source.id == run.id:
        raise UsageError(f"{source.folder} is the run itself; its labels count already, so leave it out")
    for name, noun in (("judge", "judge"), ("asked", "question")):
        if source.manifest["digests"].get(name) != run.manifest["digests"].get(name):
            raise UsageError(
                f"{source.folder} was judged by another {noun} than {run.folder}, so its errors say nothing of this "
                "one; name a run of the same judge and rubric"
            )
    count_options = replace(options, by=None, alternative=False, most_disagreements=0)
    measurement = _compare_with_people(source, read_run_labels(source), count_options)
    if not measurement.labelled:
        raise UsageError(f"{source.folder} has no labels, so nothing was measured on it; label it (adjudge label)")
    return ErrorsElsewhere(name=source.folder.name, measurement=measurement)


def name_judge_and_data(run: Run) -> tuple[str, str]:
    """Name the judge and the data set of a run."""
    dataset, judge = (
        member if isinstance(member := run.manifest.get(name), dict) else {} for name in ("dataset", "judge")
    )
    # The name and not the path: a measurement is handed on, and whose machine it was is nobody's business.
    dataset_name = dataset.get("name") or PurePath(str(dataset.get("path") or "")).name
    return str(judge.get("name") or "")[:300], str(dataset_name)[:300]
