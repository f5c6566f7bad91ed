"""The number of labels that an interval of some width needs.

Source: W. G. Cochran, "Sampling techniques", 1977, for the formulas of sample sizes.

How labels are shared out among groups is decided in ``strata.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero, check_share
from adjudge.formats.record import write_record
from adjudge.trust.intervals import LEVEL, check_level
from adjudge.trust.strata import PILOT, check_sizes, find_deviation

RESERVE = 1.2
"""More labels are needed than the formula for the normal distribution says, by this factor: measured, not derived."""

LIVE_WIDTH = 1.5
"""The width of the interval for every moment, in widths of the one for a single look: see research/coverage_live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsNeeded:
    """About how many labels make an interval of plus or minus ``within``, for the rate of this run."""

    within: float
    """The half-width of the interval: 0.03 is plus or minus 3 points."""
    alone: int
    """Without a judge: cases drawn at random, nothing else known of them."""
    random: int
    """Cases drawn at random; the strata are used afterwards."""
    planned: int
    """A pilot, then where people disagree most. For one look, when all of them are labelled."""
    live: int
    """As ``planned``, with a look after every label, and an end as soon as it is enough."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def compute_labels_needed(
    sizes: Sequence[int], rates: Sequence[float], *, within: float, level: float = LEVEL
) -> LabelsNeeded:
    """About how many labels a width needs, from the sizes of the strata and the shares of good cases expected in them.

    ``n0 = z² Σ w p (1 - p) / h²`` at random and ``z² (Σ w sqrt(p (1 - p)))² / h²`` as planned, then ``n0 / (1 + n0/M)``
    for a run of M cases, and a fifth more, because real intervals are wider than the normal distribution says. It is an
    estimate: the interval that comes out is what counts.

    Args:
        sizes: The number of cases of each stratum.
        rates: The share of good cases expected in each.
        within: The half-width that is wanted: 0.03 is plus or minus 3 points.
        level: The share of intervals made this way that contain the true rate.
    """
    check_sizes(sizes)
    check_above_zero("within", within)
    check_level(level)
    if len(rates) != len(sizes):
        raise UsageError(f"{len(sizes)} strata need as many expected shares, got {len(rates)}", argument="rates")
    shares = [check_share("rates", rate) for rate in rates]
    cases = sum(sizes)
    weights = [size / cases for size in sizes]
    # The variance of one label: of all cases together, within the strata, and with labels drawn by Neyman's rule.
    mean = sum(w * p for w, p in zip(weights, shares, strict=True))
    unstratified_variance = mean * (1 - mean)
    stratified_variance = sum(w * p * (1 - p) for w, p in zip(weights, shares, strict=True))
    planned_variance = sum(w * find_deviation(p) for w, p in zip(weights, shares, strict=True)) ** 2
    square = (NormalDist().inv_cdf((1 + level) / 2) / within) ** 2

    def count_labels(variance: float, width_factor: float = 1.0) -> int:
        """Compute the labels for the width, with the reserve; ``width_factor`` is for a wider kind of interval."""
        needed = square * variance * width_factor**2
        return min(cases, math.ceil(RESERVE * needed / (1 + needed / cases)))

    # Nobody knows beforehand that a stratum has one kind of case only, so no plan is smaller than its pilot.
    least = min(cases, PILOT)
    return LabelsNeeded(
        within=within,
        alone=max(count_labels(unstratified_variance), least),
        random=max(count_labels(stratified_variance), least),
        planned=max(count_labels(planned_variance), least),
        live=max(count_labels(planned_variance, LIVE_WIDTH), least),
    )
