"""The limits of a corrected rate that a gate may go by: those for one look, or those that hold at every look.

A look is that somebody sees what the labels come to. The looks at a run are recorded in its folder.

An ordinary interval misses the true rate in 5 of 100 looks. Somebody who looks, labels 25 more and looks again has many
chances, and passes a bar that is not met in 10 to 18 of 100 attempts. So the ordinary limits count once: when exactly
the labels of a plan are there. Everybody else gets limits that hold at all looks together
(``trust.confidence_sequence``).

Looks at several samples of one run are several chances as well. The first plan has its one look; each further sample
gets a smaller share of what may go wrong, so that all further ones together add at most a fifth of what the first may.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar, Literal

from adjudge.dataset.label import Label
from adjudge.formats.record import Layout, write_record
from adjudge.labels.looks import Look, count_earlier_draws, find_draw, find_first_plan, has_look, have_changed
from adjudge.labels.plan import LabelPlan, PlanStatus, find_plan_status
from adjudge.labels.store import RANDOM_ORDER
from adjudge.measurement.label_origin import LabelOrigin
from adjudge.measurement.sampled_rate import Sampling, compute_rate, find_sampling, find_strata, list_draws
from adjudge.measurement.tally import NO_TIME, MeasurementTally
from adjudge.trust.confidence_sequence import LiveRate, compute_live_rate
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.double_sampling import Target
from adjudge.trust.intervals import LEVEL, IntervalMethod

LimitKind = Literal["count", "one look", "every look"]
"""The looks that limits hold for: ``count`` where every case is labelled, ``one look`` at exactly the planned labels,
or ``every look``, however many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """The limits of a corrected rate that a gate goes by."""

    kind: LimitKind
    """The looks that the limits hold for: ``count`` (all cases are labelled), ``one look`` or ``every look``."""
    low: float
    """The lower limit."""
    high: float
    """The upper limit."""
    level: float
    """The share of limits made this way that contain the true rate, at every look they are for."""
    labels: int
    """The number of labels they rest on."""
    because: str
    """The reason for these limits and no others."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """The progress of the labels of a run's plan."""

    _layout: ClassVar[Layout] = Layout(members=("plan", "planned", "labelled", "left", "beyond", "complete"))

    plan: str
    """The plan's id."""
    planned: int | None
    """The number of labels planned for the one look; ``None`` until the pilot is labelled and the rest is drawn."""
    labelled: int
    """Labelled cases that the plan drew."""
    left: int
    """The number of planned labels that are missing; while the pilot is labelled, of the pilot."""
    beyond: int
    """Labelled cases that were drawn after the planned ones."""
    pilot_left: bool
    """True if cases of the pilot are not labelled yet."""

    @property
    def complete(self) -> bool:
        """Return whether the planned labels are there."""
        return self.planned is not None and not self.left

    def describe_left(self, run: str = "RUN") -> str:
        """Describe what is missing, and what to do; empty where nothing is.

        Args:
            run: The run's folder, as commands in the text name it.
        """
        if self.complete:
            return ""
        is_or_are, it_or_them = ("is", "it") if self.left == 1 else ("are", "them")
        if self.planned is not None:
            planned = f"{self.left:,} of the {self.planned:,} planned labels"
            return f"{planned} {is_or_are} missing; label {it_or_them} (adjudge label {run})"
        labels = f"{self.left:,} label{'s' * (self.left != 1)}"
        if self.pilot_left:
            return (
                f"{labels} of the plan's pilot {is_or_are} missing; label {it_or_them} (adjudge label {run}), then "
                f"draw the rest (adjudge plan {run})"
            )
        return f"{labels} of the plan {is_or_are} not drawn yet; draw {it_or_them} (adjudge plan {run})"

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDraw:
    """The sample of labels that somebody looks at, as the record of looks names it."""

    name: str
    """The id of the plan, or ``labels 1``, ``labels 2`` for labels without one."""
    planned: bool = False
    """True if a plan drew the cases."""
    complete: bool = False
    """True if exactly the planned labels are there."""
    truths: str | None = None
    """SHA-256 of the planned cases and what people said of them; ``None`` until all are labelled."""
    added: tuple[str, ...] = ()
    """Without a plan: digests of the cases that no earlier look had."""
    of: Literal["rate", "difference"] = "rate"
    """The estimate that the labels are looked at for: both runs' labels together are other ones than one run's alone.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimit:
    """The limits that a gate goes by, or the reason why there are none; and the sample that the look is at."""

    limit: RateLimit | None = None
    no_limit_reason: str | None = None
    """The reason why there are none."""
    plan: PlanProgress | None = None
    """The progress of the labels of the run's plan, if it has one."""
    draw: LabelDraw | None = None
    """The sample of labels, as the record of looks names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedRun:
    """A run with its corrected rate, and what else its limits depend on beside the counts of the tally."""

    folder: Path
    rate: CorrectedRate | Refusal | None
    no_rate_reason: str
    """The reason why there is no rate, where there is none."""
    sampling: Sampling
    labels_are_random: bool
    """True if the labelled cases are a random sample, as the user says."""
    target: Target
    """``run`` for the rate of these cases, ``system`` for that of all that the system produces."""
    limits: IntervalMethod | None
    """The method for the shares in the corrected rate."""
    criterion: str | None
    """The criterion that is compared; ``None`` is the case as a whole."""
    plan: LabelPlan | None
    """The plan in the run's folder, if it is one of the run's contents."""
    origin: LabelOrigin
    """The contents that the labels may be drawn from."""
    stale_cases: int
    """The number of cases whose labels are all of another content."""
    labels: Sequence[Label]
    """The labels of cases that the plan drew."""
    looks: Sequence[Look]
    """The looks at the run's labels so far."""

    @property
    def is_recorded(self) -> bool:
        """Return whether a look can be recorded."""
        return os.access(self.folder, os.W_OK)

    def find_status(self, plan: LabelPlan, level: float = LEVEL) -> PlanStatus:
        """Count the labels that a plan has and needs, with its limits for every look at a level."""
        return find_plan_status(plan, self.labels, criterion=self.criterion, level=level)

    def find_level(self, draw: str) -> float:
        """Find the level of the limits for every look at the draw with this name; see ``find_level``."""
        return find_level(self.looks, draw)


def find_level(looks: Sequence[Look], draw: str, *, later: int = 0) -> float:
    """Find the confidence level of the limits that hold at every look at a draw.

    Several draws of one run are several chances to be wrong. So the limits of the first miss the true rate in 5 %, and
    those of each further draw in 5 % divided by the cube of its number: together, all further draws add 1 %.

    Args:
        looks: The looks at the run's labels so far.
        draw: The name of the draw whose labels are looked at.
        later: 1 for the draw after this one, which is not made yet, else 0.
    """
    draw_number = 1 + count_earlier_draws(looks, draw) + later
    return 1 - (1 - LEVEL) / draw_number**3


def find_limit(tally: MeasurementTally, run: RatedRun) -> GateLimit:
    """Find the limits of the corrected rate of a run that a gate goes by, or the reason why there are none yet."""
    status = None if run.plan is None else run.find_status(run.plan)
    progress = None if run.plan is None or status is None else _make_progress(run.plan, status)
    if run.sampling == "census" and isinstance(run.rate, CorrectedRate):
        limit = _make_limit("count", run.rate, "every case is labelled")
        return GateLimit(limit=limit, plan=progress)
    if run.plan is not None and status is not None and run.sampling != "random":
        return replace(_find_plan_limit(tally, run, run.plan, status), plan=progress)
    if not isinstance(run.rate, CorrectedRate):
        return GateLimit(no_limit_reason=run.no_rate_reason, plan=progress)
    return _find_sample_limit(tally, run, run.rate)


def _make_progress(plan: LabelPlan, status: PlanStatus) -> PlanProgress:
    """Make the progress of a plan's labels: how many there are, are planned and are missing."""
    labelled = sum(status.labelled)
    return PlanProgress(
        plan=plan.id,
        planned=status.planned,
        labelled=labelled,
        left=status.left,
        beyond=status.beyond,
        pilot_left=status.planned is None and labelled < len(plan.order),
    )


# ---------------------------------------------------------------- with a plan


def _find_plan_limit(tally: MeasurementTally, run: RatedRun, plan: LabelPlan, status: PlanStatus) -> GateLimit:
    """Find the limits of a planned sample: those for one look if they hold, else the wider ones for every look.

    If the limits for one look would hold, there are none until all planned labels are there.
    """
    draw = LabelDraw(name=plan.id, planned=True, complete=status.complete, truths=status.truths)
    problem = _find_one_look_problem(tally, run, plan, status)
    if problem is None and status.left:
        return GateLimit(no_limit_reason=_make_progress(plan, status).describe_left(), draw=draw)
    if not isinstance(run.rate, CorrectedRate):
        return GateLimit(no_limit_reason=run.no_rate_reason, draw=draw)
    if problem is None:
        return replace(_find_one_look_limit(run.rate, status), draw=draw)
    level = run.find_level(plan.id)
    if run.target != "run":
        return GateLimit(limit=_make_wider_limit(tally, run, run.rate, problem, level), draw=draw)
    live_rate = status.live if level == status.live.level else run.find_status(plan, level).live
    return GateLimit(limit=_make_limit("every look", live_rate, problem), draw=draw)


def _find_one_look_problem(tally: MeasurementTally, run: RatedRun, plan: LabelPlan, status: PlanStatus) -> str | None:
    """Find the reason why the limits for one look do not hold for a plan; ``None`` if they hold."""
    if status.beyond:
        is_one = status.beyond == 1
        labels, verb = ("label", "was") if is_one else ("labels", "were")
        return f"{status.beyond:,} {labels} beyond the planned ones {verb} added"
    if find_first_plan(run.looks) not in (None, plan.id):
        return "another plan of this run was looked at before"
    # The folder may have been copied without its record of looks, and the labels of the other plan tell of it still.
    if any(name != plan.id and not name.startswith(RANDOM_ORDER) for name in tally.list_plans()):
        return "labels of another plan are among them"
    if have_changed(run.looks, plan.id, status.truths):
        return "the planned labels changed after a look at them"
    # In a copy that nobody may write to, the same look at the same labels may be in the record already.
    if run.is_recorded or has_look(run.looks, plan.id, status.truths):
        return None
    return f"the look cannot be recorded in {run.folder}; make it writable, and the narrower limits for one look decide"


def _find_one_look_limit(rate: CorrectedRate, status: PlanStatus) -> GateLimit:
    """Find the limits for one look; there are none unless the rate counts exactly the planned labels."""
    if rate.labels != status.planned:
        reason = (
            f"the corrected rate counts {rate.labels:,} of the {status.planned:,} planned labels, because the others "
            "do not say that the plan drew them; label with adjudge label, or fill in the list of adjudge plan --out"
        )
        return GateLimit(no_limit_reason=reason)
    because = f"the {status.planned:,} planned labels are there, and this is the one look at them"
    return GateLimit(limit=_make_limit("one look", rate, because))


# ---------------------------------------------------------------- without a plan


def _find_sample_limit(tally: MeasurementTally, run: RatedRun, rate: CorrectedRate) -> GateLimit:
    """Find the limits for every look at a sample without a plan: wider ones for groups and for a system."""
    sampled = find_sampling(tally, run.origin, labels_are_random=run.labels_are_random, stale_cases=run.stale_cases)
    indexes = sampled.indexes
    draw_name, added = find_draw(run.looks, [f"{tally.id_digests[index]:016x}" for index in indexes])
    reason, level = "no plan was drawn for these labels", run.find_level(draw_name)
    if run.target != "run" or rate.groups is not None:
        limit = _make_wider_limit(tally, run, rate, reason, level)
    else:
        sizes, strata_and_truths = list_draws(tally, indexes, find_strata(tally, run.sampling, run.origin))
        in_random_order = [strata_and_truths[position] for position in _find_random_order(tally, run, indexes)]
        limit = _make_limit("every look", compute_live_rate(sizes, in_random_order, level=level), reason)
    return GateLimit(limit=limit, draw=LabelDraw(name=draw_name, added=added))


def _find_random_order(tally: MeasurementTally, run: RatedRun, indexes: Sequence[int]) -> list[int]:
    """Find a random order of the labelled cases at ``indexes``, as a list of positions in ``indexes``.

    Cases that were drawn for labelling were labelled in a random order, so it is that of their label times. Otherwise
    it is the order of the digests of their ids, because labels in a file may be sorted by anything, such as the easy
    cases first, even if the cases were drawn at random.
    """
    has_times = run.sampling == "plan" and all(tally.first_label_times[index] != NO_TIME for index in indexes)
    return sorted(
        range(len(indexes)),
        key=lambda position: (
            tally.first_label_times[indexes[position]] if has_times else 0,
            tally.id_digests[indexes[position]],
        ),
    )


def _make_wider_limit(
    tally: MeasurementTally, run: RatedRun, rate: CorrectedRate, because: str, level: float
) -> RateLimit:
    """Make the limits for every look at labels in groups, or at the rate of a system.

    The exact limits (``compute_live_rate``) are not known for these. So the limits for one look are computed at a
    higher level, at which they are as wide as Robbins' normal mixture asks. That holds at all looks together as far as
    the estimate is normally distributed.
    """
    number = rate.labels if rate.groups is None else rate.groups
    wider_level = find_wider_level(number, 1 - level)
    wider_rate, _ = compute_rate(
        tally,
        labels_are_random=run.labels_are_random,
        target=run.target,
        limits=run.limits,
        origin=run.origin,
        stale_cases=run.stale_cases,
        level=wider_level,
    )
    limit = _make_limit("every look", wider_rate if isinstance(wider_rate, CorrectedRate) else rate, because)
    # For one look alone they have the wider level, and for all looks together the level that was asked for.
    return replace(limit, level=level)


NARROWEST_AT = 100
"""The number of labels, or groups of them, at which the normal mixture is narrowest."""


def find_quantile(number: int, error_rate: float) -> float:
    """Find the normal quantile (in place of 1.96) for limits that hold at every look: Robbins' normal mixture.

    Args:
        number: The number of labels, or groups of them.
        error_rate: The probability that the limits miss the true value at any of the looks, such as 0.05.
    """
    deviance = -2 * math.log(error_rate)
    # The width of the mixture is such that the limits are narrowest at ``NARROWEST_AT`` labels.
    spread = number * (deviance + math.log(deviance + 1)) / NARROWEST_AT
    return math.sqrt((1 + 1 / spread) * (deviance + math.log1p(spread)))


def find_wider_level(number: int, error_rate: float) -> float:
    """Find the level at which limits for one look are as wide as those for every look.

    The arguments are those of ``find_quantile``.
    """
    # For one label the quantile is so large that its level rounds to 1, which no interval has.
    return min(2 * NormalDist().cdf(find_quantile(number, error_rate)) - 1, _HIGHEST_LEVEL)


_HIGHEST_LEVEL = 1 - 2**-50


def _make_limit(kind: LimitKind, rate: CorrectedRate | LiveRate, because: str) -> RateLimit:
    """Make limits from those of a rate; ``because`` says why they are of this kind."""
    return RateLimit(kind=kind, low=rate.low, high=rate.high, level=rate.level, labels=rate.labels, because=because)
