"""``make_measurement``: the judge of a run compared with people, in one pass over the run.

The statistics are chosen in ``compute.py`` and computed in ``trust``; which limits a gate may go by is decided in
``gate_limit.py``.
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
from adjudge.measurement.disagreement import MOST_DISAGREEMENTS
from adjudge.measurement.gate_limit import RatedRun, find_limit
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
    most_disagreements: int = MOST_DISAGREEMENTS,
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
        return _measure_runs(run, labels, options, measured_on)
    with open_run(run) as opened:
        return _measure_runs(opened, labels, options, measured_on)


def measure_sample(run: Run, labels: Sequence[Label], *, labels_are_random: bool = False) -> Measurement:
    """Measure the judge of a run on those labels alone that are a random sample of it.

    The intervals are for all contents like these. Labels that somebody picked beside the draw are in no figure. Needs
    ``adjudge[trust]``.
    """
    check_extra()
    options = MeasurementOptions(
        labels_are_random=labels_are_random, target="system", most_disagreements=0, drawn_only=True
    )
    return _compare_with_people(run, labels, options)


def _measure_runs(
    run: Run,
    labels: Iterable[Label] | None,
    options: MeasurementOptions,
    measured_on: Run | str | os.PathLike[str] | None,
) -> Measurement:
    """Measure the judge of an open run, and of the run ``measured_on`` for comparison if there is one.

    Without ``labels``, the labels of the run's own queue are taken.
    """
    measurement = _compare_with_people(run, read_run_labels(run) if labels is None else tuple(labels), options)
    if measured_on is None:
        return measurement
    return replace(measurement, measured_on=_measure_other_run(measured_on, run, options))


def _compare_with_people(run: Run, labels: Sequence[Label], options: MeasurementOptions) -> Measurement:
    """Make the measurement of a run from its verdicts, people's labels and the plan in its folder."""
    plan_file = read_plan_file(run, labels)
    comparison = _compare_cases(run, PeopleLabels(labels, options.criterion, plan_file.known_plan), options)
    judge, data = name_judge_and_data(run)
    measurement = comparison.finish(
        run=run.id,
        judge=judge,
        data=data,
        known_plan=plan_file.known_plan,
        problem=plan_file.problem,
        distrusted_plan=plan_file.distrusted_plan,
        # An unfinished run will get further contents, which no draw could have chosen.
        is_whole=run.status == "finished",
        recorded=run.contents,
    )
    return _add_limit(measurement, comparison, run, options, labels)


def _add_limit(
    measurement: Measurement, comparison: Comparison, run: Run, options: MeasurementOptions, labels: Sequence[Label]
) -> Measurement:
    """Add to a measurement the limits that a gate goes by, or why there are none."""
    rate = measurement.rate
    refusal = f"{rate.reason}; {rate.remedy}" if isinstance(rate, Refusal) else None
    plan = None if comparison.origin.known_plan is None else read_plan(run.folder)
    drawn = frozenset() if plan is None else frozenset(planned_case.case for planned_case in plan.order)
    rated_run = RatedRun(
        folder=run.folder,
        rate=rate,
        no_rate_reason=refusal or measurement.left_out.get("rate", "no case has a label"),
        sampling=measurement.sampling,
        labels_are_random=options.labels_are_random,
        target=options.target,
        limits=options.limits,
        criterion=options.criterion,
        plan=plan,
        origin=comparison.origin,
        stale_cases=comparison.stale_cases,
        labels=[label for label in labels if label.case in drawn],
        looks=load_looks(run.folder),
    )
    gate_limit = find_limit(comparison.whole, rated_run)
    if measurement.kind == "preference" and measurement.labelled:
        preference = find_preference_difference(comparison.whole, rated_run, gate_limit)
        measurement = replace(measurement, preference=preference)
    left_out = measurement.left_out
    if gate_limit.no_limit_reason is not None:
        left_out = {**left_out, "limit": gate_limit.no_limit_reason}
    return replace(measurement, limit=gate_limit.limit, plan=gate_limit.plan, draw=gate_limit.draw, left_out=left_out)


def _compare_cases(run: Run, labels: PeopleLabels, options: MeasurementOptions) -> Comparison:
    """Compare each case of a run with people's labels, in one pass over the run."""
    comparison = Comparison(labels, options)
    for judged in list_judged_cases(run):
        comparison.add(judged)
    return comparison


def _measure_other_run(other: Run | str | os.PathLike[str], run: Run, options: MeasurementOptions) -> ErrorsElsewhere:
    """Measure the judge of ``run`` on another run by the labels of its queue.

    Raises ``UsageError`` for a run of another judge or question, for ``run`` itself, and for one without labels.
    """
    if not isinstance(other, Run):
        with open_run(other) as opened:
            return _measure_other_run(opened, run, options)
    if other.id == run.id:
        raise UsageError(f"{other.folder} is the run itself; its labels count already, so leave it out")
    for name, noun in (("judge", "judge"), ("asked", "question")):
        if other.manifest["digests"].get(name) != run.manifest["digests"].get(name):
            raise UsageError(
                f"{other.folder} was judged by another {noun} than {run.folder}, so its errors say nothing of this "
                "one; name a run of the same judge and rubric"
            )
    count_options = replace(options, by=None, alternative=False, most_disagreements=0)
    measurement = _compare_with_people(other, read_run_labels(other), count_options)
    if not measurement.labelled:
        raise UsageError(f"{other.folder} has no labels, so nothing was measured on it; label it (adjudge label)")
    return ErrorsElsewhere(name=other.folder.name, measurement=measurement)


def name_judge_and_data(run: Run) -> tuple[str, str]:
    """Return the names of the judge and of the data set of a run; empty where its manifest has none."""
    dataset, judge = run.manifest.get("dataset"), run.manifest.get("judge")
    dataset = dataset if isinstance(dataset, dict) else {}
    judge = judge if isinstance(judge, dict) else {}
    # The name and not the path: a measurement is handed on, and whose machine it was is nobody's business.
    dataset_name = dataset.get("name") or PurePath(str(dataset.get("path") or "")).name
    return str(judge.get("name") or "")[:300], str(dataset_name)[:300]
