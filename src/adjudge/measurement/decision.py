"""The decision whether the share of a run that people would pass reaches a bar: made by its lower limit, and recorded.

Which limits hold is decided in ``gate_limit.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.dataset.label import Label
from adjudge.formats.arguments import check_share
from adjudge.formats.numbers import count_digits, format_points
from adjudge.formats.record import Layout, write_record
from adjudge.measurement.gate_limit import RateLimit
from adjudge.measurement.look_record import write_look_record
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.result import Outcome
from adjudge.runs.folder import Run, open_run
from adjudge.trust.corrected_rate import CorrectedRate
from adjudge.trust.double_sampling import Target
from adjudge.trust.intervals import IntervalMethod

TOLERANCE = 1e-9
"""The rounding error of a share that is compared with a bar: a share that is below the bar by less reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateDecision:
    """A decision whether people would pass enough of a run, as far as the labels show it."""

    schema: ClassVar[str] = "adjudge/rate-decision/1"
    _layout: ClassVar[Layout] = Layout(last=("limit",))

    outcome: Outcome
    """``passed``: the lower limit reaches the bar. ``failed``: it does not. ``undecided``: there is no limit yet."""
    bar: float
    """The share that people have to pass."""
    limit: RateLimit | None
    """The limits that decided; ``None`` where there are none."""
    left: int | None
    """The number of labels of the run's plan that are missing; ``None`` without a plan."""
    reason: str
    """One sentence, which names the limit."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def decide_rate(
    run: Run | str | os.PathLike[str],
    bar: float,
    *,
    labels: Iterable[Label] | None = None,
    criterion: str | None = None,
    labels_are_random: bool = False,
    target: Target = "run",
    limits: IntervalMethod | None = None,
) -> RateDecision:
    """Decide whether people would pass at least a share of a run, and record the look in the run's folder.

    With a plan the limits for one look decide, once, when exactly the planned labels are there; before that the outcome
    is ``undecided``, and ``left`` says how many are missing. Without a plan, and when a plan was extended or replaced
    after a look, the limits that hold at every look decide.

    Raises ``UsageError`` for a bar that is no share and for what ``make_measurement`` refuses.

    Args:
        run: The run, or its folder.
        bar: The share, from 0 to 1, that people would have to pass.
        labels: The labels of people; by default those of the run's own queue.
        criterion: The criterion that is compared; by default the case as a whole.
        labels_are_random: Whether the labelled cases are a random sample of the run, which nothing but you can know.
        target: What the rate is of: ``"run"``, these cases, or ``"system"``, everything that the system produces.
        limits: How the limits of each share are computed; by default Wilson's, near 0 and 1 the exact ones.
    """
    check_share("bar", bar)
    if not isinstance(run, Run):
        with open_run(run) as opened:
            return decide_rate(opened, bar, labels=labels, criterion=criterion, labels_are_random=labels_are_random,
                               target=target, limits=limits)  # fmt: skip
    measurement = make_measurement(run, labels=labels, criterion=criterion, labels_are_random=labels_are_random,
                             target=target, limits=limits, most_disagreements=0)  # fmt: skip
    decision = compare_rate(measurement, bar, status=run.status)
    record_look(run, measurement, by="python", decision=decision)
    return decision


def compare_rate(measurement: Measurement, bar: float, *, status: str = "finished") -> RateDecision:
    """Compare the lower limit of a measurement with a bar; undecided if the run's ``status`` is not ``finished``."""
    outcome, reason = _compare_with_bar(measurement, bar, status)
    left = None if measurement.plan is None else measurement.plan.left
    return RateDecision(outcome=outcome, bar=bar, limit=measurement.limit, left=left, reason=reason)


def _compare_with_bar(measurement: Measurement, bar: float, status: str) -> tuple[Outcome, str]:
    """Decide by the lower limit whether people's rate reaches the bar, and explain that in a sentence."""
    if status != "finished":
        return (
            "undecided",
            f"the run is {status}, so what people would pass of all cases is open; finish it with --resume",
        )
    limit = measurement.limit
    if limit is None:
        return "undecided", measurement.left_out.get("limit", "the corrected rate is not known")
    # As many digits as show a difference from the bar; two fewer in per cent than as a share.
    digits = max(count_digits(limit.low, bar, digits=3) - 2, 1)
    lower = f"the lower limit {_KIND_WORDS[limit.kind]} is {format_points(limit.low, digits=digits)} %"
    rate = measurement.rate.value if isinstance(measurement.rate, CorrectedRate) else None
    rate_clause = "" if rate is None or limit.kind == "count" else f", corrected rate {format_points(rate)} %"
    finding = f"{lower} ({limit.because}{rate_clause})"
    # The lower limit has to reach the bar: a run that may be worse has not shown that it is good enough.
    if limit.low >= bar - TOLERANCE:
        return "passed", finding
    return "failed", f"{finding}{_describe_further_labels(limit, bar)}"


_KIND_WORDS = {"count": "by counting", "one look": "for one look", "every look": "for every look"}


def _describe_further_labels(limit: RateLimit, bar: float) -> str:
    """Describe, after a failed decision, which limits hold if people label more; empty where labels cannot help.

    They cannot help where every case is labelled, and where even the upper limit is below the bar.
    """
    if limit.kind == "count" or limit.high < bar - TOLERANCE:
        return ""
    if limit.kind == "one look":
        return "; the one look is taken: with further labels, the wider limits for every look decide"
    return "; you may label more and look again, because these limits hold however often you look"


def record_look(run: Run, measurement: Measurement, *, by: str, decision: RateDecision | None = None) -> None:
    """Record in the run's folder that somebody looks at the limits by its labels; nothing where there is no sample.

    The limits for ``one look`` hold for the first look alone, so call this before their figures are shown. Raises
    ``AdjudgeError`` where such a look cannot be recorded.
    """
    write_look_record(
        run,
        measurement.draw,
        None if measurement.limit is None else measurement.limit.kind,
        by=by,
        labels=measurement.labelled,
        bar=None if decision is None else decision.bar,
        outcome=None if decision is None else decision.outcome,
    )
