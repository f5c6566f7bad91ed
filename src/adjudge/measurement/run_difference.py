"""The difference between the systems of two runs: how often people would pass the answers of each.

People labelled both answers to some of the questions. If the answers are the same and only the judges differ, the runs
are compared in ``judge_difference.py`` instead.

The difference and its limits are computed in ``trust/rate_difference.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal

from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.labels.looks import Look, find_draw, find_first_plan, have_changed, load_looks
from adjudge.labels.plan import LabelPlan, find_plan_problem, read_plan
from adjudge.labels.truth import TruthHeap
from adjudge.measurement.gate_limit import LabelDraw, LimitKind, find_level, find_quantile
from adjudge.measurement.judge_difference import JudgeDifference
from adjudge.measurement.look_record import write_look_record
from adjudge.measurement.measurement import OPEN
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.run_labels import read_run_labels
from adjudge.measurement.verdict_and_truth import CaseTruth, find_verdict, read_stated_truth
from adjudge.runs.folder import Run
from adjudge.trust.extra import check_extra
from adjudge.trust.rate_difference import FEWEST_QUESTIONS, RateDifference, make_rate_difference

Better = Literal["better", "worse", "cannot tell"]
"""Of the later run beside the earlier: its interval is above 0, below 0, or holds 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemDifference:
    """The rates at which people would pass the later and the earlier run's system on the same questions, subtracted."""

    schema: ClassVar[str] = "adjudge/system-difference/1"
    _layout: ClassVar[Layout] = Layout(last=("draw",))

    rate: RateDifference | None
    """The difference with its interval; ``None`` where the labels allow none."""
    limit: LimitKind | None
    """The looks that the interval holds for; ``None`` without one."""
    because: str
    """The reason for these limits, or for their absence, and the remedy. One clause."""
    questions: int
    """Questions of which people labelled both answers."""
    left: int | None = None
    """The number of planned questions of which an answer has no label yet; ``None`` without a plan."""
    draw: LabelDraw | None = None
    """The sample of labels, as the record of looks names it."""

    @property
    def standing(self) -> Better:
        """Say whether the later system is shown to be better or worse."""
        if self.rate is None or not self.rate.is_shown:
            return "cannot tell"
        return "better" if self.rate.low > 0 else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True)
class _JudgedRun:
    """A run with what the judge and people say of each of its cases."""

    run: Run
    passed: Mapping[str, bool]
    """The cases, each with True if the judge passed it; undecided is not passed."""
    truths: Mapping[str, CaseTruth]
    """The labelled cases whose label is of the content that was judged."""


def compare_systems(
    before: Run,
    after: Run,
    *,
    labels: Iterable[Label] | None = None,
    labels_are_random: bool = False,
) -> SystemDifference:
    """Compare how often people would pass the answers of two runs, from labels of both answers of some questions.

    Args:
        before: The run of the first system.
        after: The run of the second on the same questions, by the ids of its cases.
        labels: Labels of the answers of both runs. Each has to say which content was read (``subject``), because one
            case has two answers. By default those of each run's own queue.
        labels_are_random: True if the questions whose answers are labelled are a random sample, as the user says.

    The interval is for one look, once the questions that ``adjudge plan --against`` drew are labelled in both runs.
    With labels that are random as the user says, it holds at every look. Labels that somebody chose give none.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for runs of pairs, for an unfinished run, and for runs that have no
    case in common.
    """
    check_extra()
    for run in (before, after):
        _check_run(run)
    labels = None if labels is None else tuple(labels)
    first, second = [_read_run(run, read_run_labels(run) if labels is None else labels) for run in (before, after)]
    questions = sorted(first.passed.keys() & second.passed.keys())
    if not questions:
        raise UsageError(f"{before.folder} and {after.folder} have no case in common; run both on one data set")
    labelled = [case for case in questions if case in first.truths and case in second.truths]
    looks = (*load_looks(before.folder), *load_looks(after.folder))
    if labelled == questions:
        rate = _estimate_difference(first, second, questions, labelled)
        return SystemDifference(rate=rate, limit="count", because="every answer is labelled", questions=len(labelled))
    plan = _find_common_plan(first, second)
    if plan is not None:
        return _compare_planned(first, second, questions, plan, looks)
    if not labels_are_random:
        because = (
            "nobody drew these questions at random, so they say nothing of the others; draw some with "
            f"adjudge plan {before.folder} --against {after.folder}"
        )
        return SystemDifference(rate=None, limit=None, because=because, questions=len(labelled))
    return _compare_sampled(first, second, questions, labelled, looks)


def _check_run(run: Run) -> None:
    """Raise ``UsageError`` for a run of pairs and for one that is not finished."""
    if run.compares:
        raise UsageError(
            f"{run.folder} compares pairs, and a difference is of answers that are good or bad; compare the two "
            "systems' answers one by one"
        )
    if run.status != "finished":
        raise UsageError(f"the run {run.folder} is {run.status}; finish it with adjudge run --resume")


def _compare_sampled(
    first: _JudgedRun, second: _JudgedRun, questions: Sequence[str], labelled: Sequence[str], looks: Sequence[Look]
) -> SystemDifference:
    """Compare from labels that are a random sample of the questions, as the user says; limits are for every look."""
    name, added = find_draw(looks, [_digest_id(case) for case in labelled])
    draw = LabelDraw(name=name, added=added, of="difference")
    if len(labelled) < FEWEST_QUESTIONS:
        return _ask_for_more_labels(len(labelled), draw)
    rate = _estimate_difference(first, second, questions, labelled, error_rate=1 - find_level(looks, name))
    because = "the labels are a random sample, as you say, and these limits hold however often you look"
    return SystemDifference(rate=rate, limit="every look", because=because, questions=len(labelled), draw=draw)


def record_difference_look(run: Run, difference: SystemDifference | JudgeDifference, *, by: str) -> None:
    """Add a look at a difference to the record in the folder of the earlier run; nothing where there is no sample.

    Raises ``AdjudgeError`` where a look that needs its record cannot be recorded.

    Args:
        run: The earlier run.
        difference: The difference that was looked at.
        by: Who looked: the command, ``server`` or ``python``.
    """
    labels = difference.questions if isinstance(difference, SystemDifference) else difference.agreement.of
    write_look_record(run, difference.draw, difference.limit, by=by, labels=labels)


# ---------------------------------------------------------------- reading


def _read_run(run: Run, labels: Sequence[Label]) -> _JudgedRun:
    """Read which cases of a run the judge passed, and the truths by labels of exactly the answers in this run."""
    people = PeopleLabels(labels, None)
    passed: dict[str, bool] = {}
    truths: dict[str, CaseTruth] = {}
    for _, items_of_case in groupby(run.items(), key=lambda item: item.place):
        items = list(items_of_case)
        case = items[0].case
        passed[case.id] = find_verdict([item.result for item in items]).verdict == "passed"
        # A case has another answer in each run, so a label counts only if it says which answer was read.
        truth = people.find_truth(case.id, None, digest_content(case.content))
        if truth is not None and not truth.bound:
            truth = None
        truth = truth or read_stated_truth(case)
        if truth is not None and not truth.override and truth.heap in ("good", "bad", *OPEN):
            truths[case.id] = truth
    return _JudgedRun(run, passed, truths)


def _find_common_plan(first: _JudgedRun, second: _JudgedRun) -> LabelPlan | None:
    """Find the plan that drew the same questions of both runs; ``None`` without one."""
    first_plan, second_plan = [read_plan(judged.run.folder) for judged in (first, second)]
    if first_plan is None or second_plan is None or first_plan.id != second_plan.id:
        return None
    if (first_plan.run, second_plan.run) != (first.run.id, second.run.id) or first_plan.against != second.run.id:
        return None
    problems = [find_plan_problem(judged.run) for judged in (first, second)]
    if any(problem is not None for problem in problems):
        return None
    first_cases = [planned.case for planned in first_plan.order]
    second_cases = [planned.case for planned in second_plan.order]
    return first_plan if first_cases == second_cases else None


# ---------------------------------------------------------------- with a plan


def _compare_planned(
    first: _JudgedRun, second: _JudgedRun, questions: Sequence[str], plan: LabelPlan, looks: Sequence[Look]
) -> SystemDifference:
    """Compare two systems by planned labels; there is no rate before all planned questions have both labels.

    Limits are for one look, or for every look where those do not hold.
    """
    planned = [planned_case.case for planned_case in plan.order]
    labelled = [case for case in planned if case in first.truths and case in second.truths]
    left = len(planned) - len(labelled)
    if left:
        draw = LabelDraw(name=plan.id, planned=True, of="difference")
        because = (
            f"{left:,} of the {len(planned):,} planned questions lack a label of one of their answers; label them with "
            f"adjudge label {first.run.folder} and adjudge label {second.run.folder}"
        )
        return SystemDifference(rate=None, limit=None, because=because, questions=len(labelled), left=left, draw=draw)
    truths_digest = _digest_truths(first, second, planned)
    problem = _find_one_look_problem(plan, truths_digest, looks)
    error_rate = None if problem is None else 1 - find_level(looks, plan.id)
    # This plan cannot be extended. Further labels take a new plan, whose limits are stricter.
    later_error_rate = 1 - find_level(looks, plan.id, later=1)
    return SystemDifference(
        rate=_estimate_difference(
            first, second, questions, planned, error_rate=error_rate, later_error_rate=later_error_rate
        ),
        limit="one look" if problem is None else "every look",
        because=problem or f"the {len(planned):,} planned questions are labelled, and this is the one look at them",
        questions=len(planned),
        left=0,
        draw=LabelDraw(name=plan.id, planned=True, complete=True, truths=truths_digest, of="difference"),
    )


def _find_one_look_problem(plan: LabelPlan, truths_digest: str, looks: Sequence[Look]) -> str | None:
    """Find the reason why the limits for one look do not hold for a plan; ``None`` if they hold."""
    if find_first_plan(looks) not in (None, plan.id):
        return "another plan of this run was looked at before, so the limits are those for every look"
    if have_changed(looks, plan.id, truths_digest, of="difference"):
        return "the planned labels changed after a look at them, so the limits are those for every look"
    return None


def _digest_truths(first: _JudgedRun, second: _JudgedRun, cases: Sequence[str]) -> str:
    """Digest the truths of cases in both runs, by which a look at the same labels is known again."""
    # Ordered by the runs' ids: a look at the difference the other way round is a look at the same labels.
    runs = sorted((first, second), key=lambda judged: judged.run.id)
    rows = [[case, *(judged.truths[case].heap for judged in runs)] for case in cases]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _digest_id(case: str) -> str:
    """Digest the id of a case to 16 characters, by which the record of looks knows the case."""
    return hashlib.sha256(case.encode(errors="surrogatepass")).hexdigest()[:16]


def _ask_for_more_labels(labelled: int, draw: LabelDraw) -> SystemDifference:
    """Make a difference without a rate that says how many more questions have to be labelled."""
    because = (
        f"{labelled} questions are labelled in both runs, and with fewer than {FEWEST_QUESTIONS} the interval covers "
        f"less than it says; label {FEWEST_QUESTIONS - labelled} more"
    )
    return SystemDifference(rate=None, limit=None, because=because, questions=labelled, draw=draw)


# ---------------------------------------------------------------- the estimate


def _estimate_difference(
    first: _JudgedRun,
    second: _JudgedRun,
    questions: Sequence[str],
    labelled: Sequence[str],
    *,
    error_rate: float | None = None,
    later_error_rate: float | None = None,
) -> RateDifference:
    """Estimate how much more often people would pass the answers of the second run, from the ``labelled`` questions.

    Without an ``error_rate``, the limits are for one look. With one, they hold at every look, and all looks together
    miss the true difference at most that often. ``later_error_rate`` is the same for further labels, where they need a
    new plan.
    """
    judged_differences = [second.passed[case] - first.passed[case] for case in questions]
    positions = {case: position for position, case in enumerate(questions)}
    people_bounds = {
        positions[case]: _find_bounds(first.truths[case].heap, second.truths[case].heap) for case in labelled
    }
    quantile, later_quantile = [
        None if rate is None else find_quantile(len(labelled), rate) for rate in (error_rate, later_error_rate)
    ]
    return make_rate_difference(judged_differences, people_bounds, quantile=quantile, later_quantile=later_quantile)


_BOUNDS: dict[TruthHeap, tuple[int, int]] = {"good": (1, 1), "bad": (0, 0)}
"""The least and the greatest number of passes of an answer by its truth; 0 and 1 where people did not settle it."""


def _find_bounds(before: TruthHeap, after: TruthHeap) -> tuple[int, int]:
    """Find the least and the greatest difference of a question: an answer that people did not settle may be either."""
    before_least, before_most = _BOUNDS.get(before, (0, 1))
    after_least, after_most = _BOUNDS.get(after, (0, 1))
    return after_least - before_most, after_most - before_least
