"""The limits of a corrected rate that a gate may go by: those for one look, or those that hold at every look.

An ordinary interval misses the true rate in 5 of 100 looks. Somebody who looks, labels 25 more and looks again has many
chances, and passes a bar that is not met in 10 to 18 of 100 attempts. So the ordinary limits count once: when exactly
the labels of a plan are there. Everybody else gets limits that hold at all looks together (``trust.live``).

Looks at several samples of one run are several chances as well. The first plan has its one look; each further sample
gets a smaller share of what may go wrong, so that all of them together stay within it.
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
from adjudge.measurement.label_origin import Origin
from adjudge.measurement.rate import Sampling, compute_rate, find_sampling, find_strata, list_draws
from adjudge.measurement.tally import NO_TIME, MeasurementTally
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.double_sampling import Target
from adjudge.trust.intervals import LEVEL, IntervalMethod
from adjudge.trust.live import LiveRate, compute_live_rate

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
class FoundLimit:
    """The limits for a gate, or why there are none; and what the record of looks notes."""

    limit: RateLimit | None = None
    missing: str | None = None
    """The reason why there are none."""
    plan: PlanProgress | None = None
    draw: LabelDraw | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedRun:
    """The facts that the limits of a corrected rate depend on, beside the counts."""

    folder: Path
    rate: CorrectedRate | Refusal | None
    missing: str
    """The reason why there is no rate, where there is none."""
    sampling: Sampling
    labels_are_random: bool
    target: Target
    limits: IntervalMethod | None
    criterion: str | None
    plan: LabelPlan | None
    origin: Origin
    """The contents that the labels may be drawn from."""
    lost: int
    """The number of cases whose labels are all of another content."""
    labels: Sequence[Label]
    """The labels of cases that the plan drew."""
    looks: Sequence[Look]

    @property
    def is_recorded(self) -> bool:
        """Return whether a look can be recorded."""
        return os.access(self.folder, os.W_OK)

    def find_status(self, plan: LabelPlan, level: float = LEVEL) -> PlanStatus:
        """Find how far the labels of the plan are."""
        return find_plan_status(plan, self.labels, criterion=self.criterion, level=level)

    def find_level(self, draw: str) -> float:
        """The level of the limits for every look: each further sample gets less of what may go wrong."""
        return find_level(self.looks, draw)


def find_level(looks: Sequence[Look], draw: str, *, later: int = 0) -> float:
    """Find the level of the limits for every look at a draw: each further sample gets less of what may go wrong.

    Args:
        looks: The looks at the run's labels so far.
        draw: The draw whose labels are looked at.
        later: 1 for the sample after this one, which is not drawn yet.
    """
    return 1 - (1 - LEVEL) / (1 + count_earlier_draws(looks, draw) + later) ** 3


def find_limit(tally: MeasurementTally, run: RatedRun) -> FoundLimit:
    """The limits of the corrected rate of a run that a gate goes by, or why there are none yet."""
    status = None if run.plan is None else run.find_status(run.plan)
    progress = None if run.plan is None or status is None else _make_progress(run.plan, status)
    if run.sampling == "census" and isinstance(run.rate, CorrectedRate):
        limit = _make_limit("count", run.rate, "every case is labelled")
        return FoundLimit(limit=limit, plan=progress)
    if run.plan is not None and status is not None and run.sampling != "random":
        return replace(_limit_plan(tally, run, run.plan, status), plan=progress)
    if not isinstance(run.rate, CorrectedRate):
        return FoundLimit(missing=run.missing, plan=progress)
    return _limit_sample(tally, run, run.rate)


def _make_progress(plan: LabelPlan, status: PlanStatus) -> PlanProgress:
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


def _limit_plan(tally: MeasurementTally, run: RatedRun, plan: LabelPlan, status: PlanStatus) -> FoundLimit:
    """Find the limits of a planned sample: for one look where nothing is against it, else for every look.

    While planned labels are missing, and nothing is against the one look, there are none.
    """
    draw = LabelDraw(name=plan.id, planned=True, complete=status.complete, truths=status.truths)
    reason = _find_why_not_once(tally, run, plan, status)
    if reason is None and status.left:
        return FoundLimit(missing=_make_progress(plan, status).describe_left(), draw=draw)
    if not isinstance(run.rate, CorrectedRate):
        return FoundLimit(missing=run.missing, draw=draw)
    if reason is None:
        return replace(_limit_once(run.rate, status), draw=draw)
    level = run.find_level(plan.id)
    if run.target != "run":
        return FoundLimit(limit=_make_wider_limit(tally, run, run.rate, reason, level), draw=draw)
    live = status.live if level == status.live.level else run.find_status(plan, level).live
    return FoundLimit(limit=_make_limit("every look", live, reason), draw=draw)


def _find_why_not_once(tally: MeasurementTally, run: RatedRun, plan: LabelPlan, status: PlanStatus) -> str | None:
    """Find why the limits for one look do not hold for a plan; ``None``: they do."""
    if status.beyond:
        one = status.beyond == 1
        return f"{status.beyond:,} label{'' if one else 's'} beyond the planned ones {'was' if one else 'were'} added"
    if find_first_plan(run.looks) not in (None, plan.id):
        return "another plan of this run was looked at before"
    # The record may have been left behind when the folder was copied; the labels of the other plan were not.
    if any(name != plan.id and not name.startswith(RANDOM_ORDER) for name in tally.list_plans()):
        return "labels of another plan are among them"
    if have_changed(run.looks, plan.id, status.truths):
        return "the planned labels changed after a look at them"
    # Where this very look was recorded before, as in a copy that nobody may write to, it is no further one.
    if run.is_recorded or has_look(run.looks, plan.id, status.truths):
        return None
    return f"the look cannot be recorded in {run.folder}; make it writable, and the narrower limits for one look decide"


def _limit_once(rate: CorrectedRate, status: PlanStatus) -> FoundLimit:
    """Find the limits for one look; there are none unless the rate counts exactly the planned labels."""
    if rate.labels != status.planned:
        missing = (
            f"the corrected rate counts {rate.labels:,} of the {status.planned:,} planned labels, because the others "
            "do not say that the plan drew them; label with adjudge label, or fill in the list of adjudge plan --out"
        )
        return FoundLimit(missing=missing)
    because = f"the {status.planned:,} planned labels are there, and this is the one look at them"
    return FoundLimit(limit=_make_limit("one look", rate, because))


# ---------------------------------------------------------------- without a plan


def _limit_sample(tally: MeasurementTally, run: RatedRun, rate: CorrectedRate) -> FoundLimit:
    """Find the limits for every look at a sample without a plan: wider ones for groups and for a system."""
    places = find_sampling(tally, run.origin, labels_are_random=run.labels_are_random, lost=run.lost).places
    name, added = find_draw(run.looks, [f"{tally.marks[at]:016x}" for at in places])
    reason, level = "no plan was drawn for these labels", run.find_level(name)
    if run.target != "run" or rate.groups is not None:
        limit = _make_wider_limit(tally, run, rate, reason, level)
    else:
        sizes, draws = list_draws(tally, places, find_strata(tally, run.sampling, run.origin))
        ordered = [draws[at] for at in _order_places(tally, run, places)]
        limit = _make_limit("every look", compute_live_rate(sizes, ordered, level=level), reason)
    return FoundLimit(limit=limit, draw=LabelDraw(name=name, added=added))


def _order_places(tally: MeasurementTally, run: RatedRun, places: Sequence[int]) -> list[int]:
    """A random order of the labelled cases: that of their labels where it was drawn, else that of their digests.

    Labels in a file may be sorted by anything, such as the easy cases first, even if the cases were drawn at random.
    """
    timed = run.sampling == "plan" and all(tally.moments[at] != NO_TIME for at in places)
    return sorted(
        range(len(places)),
        key=lambda at: (tally.moments[places[at]] if timed else 0, tally.marks[places[at]]),
    )


def _make_wider_limit(
    tally: MeasurementTally, run: RatedRun, rate: CorrectedRate, because: str, level: float
) -> RateLimit:
    """The limits for every look at labels in groups, or at the rate of a system, on which no exact bets are known.

    They are the limits for one look with Robbins' normal mixture in place of the quantile of a single look. It holds at
    all looks together as far as the estimate is normally distributed.
    """
    number = rate.labels if rate.groups is None else rate.groups
    wider = find_wider_level(number, 1 - level)
    rate_at_level, _ = compute_rate(
        tally,
        labels_are_random=run.labels_are_random,
        target=run.target,
        limits=run.limits,
        origin=run.origin,
        lost=run.lost,
        level=wider,
    )
    limit = _make_limit("every look", rate_at_level if isinstance(rate_at_level, CorrectedRate) else rate, because)
    return replace(limit, level=level)


NARROWEST_AT = 100
"""The number of labels, or groups of them, at which the normal mixture is narrowest."""


def find_quantile(number: int, share: float) -> float:
    """Find the number in place of 1.96 for limits that hold at every look, for so many labels."""
    square = -2 * math.log(share)
    spread = number * (square + math.log(square + 1)) / NARROWEST_AT
    return math.sqrt((1 + 1 / spread) * (square + math.log1p(spread)))


def find_wider_level(number: int, share: float) -> float:
    """Find the level at which limits of one look are those for every look, for so many labels."""
    # For one label the quantile is so large that its level rounds to 1, which no interval has.
    return min(2 * NormalDist().cdf(find_quantile(number, share)) - 1, _HIGHEST_LEVEL)


_HIGHEST_LEVEL = 1 - 2**-50


def _make_limit(kind: LimitKind, rate: CorrectedRate | LiveRate, because: str) -> RateLimit:
    return RateLimit(kind=kind, low=rate.low, high=rate.high, level=rate.level, labels=rate.labels, because=because)
