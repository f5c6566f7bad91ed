"""The rate of good cases while people label: the one place that asks ``trust.confidence_sequence``."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from adjudge.errors import UsageError
from adjudge.labels.queue import LabelQueue
from adjudge.trust.confidence_sequence import Allocation, compute_live_rate, estimate_more_labels

WITHIN = 0.03
"""The half-width of the interval that is aimed at, where no plan says it: plus or minus 3 points."""

FEWEST = 10
"""Below so many labels the limits are too far apart to be of use to anybody."""


def prepare_live() -> None:
    """Start a thread that imports scipy for ``estimate_live``, because that takes seconds the first time."""
    if find_spec("scipy") is not None:
        # No daemon: an interpreter that ends while a library is being loaded can hang. So quitting at once may take as
        # long as loading does.
        threading.Thread(target=_import_scipy, daemon=False).start()


def _import_scipy() -> None:
    with suppress(ImportError):
        import_module("scipy.optimize")
        import_module("scipy.stats")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEstimate:
    """The rate of good cases so far, with limits that may be looked at after every label."""

    value: float
    low: float
    high: float
    within: float
    """The half width that is aimed at."""
    more: int | None
    """About how many labels are still needed for that; ``None`` is not known yet."""
    left: int = 0
    """Cases of the run's plan that were drawn and have no label yet. ``adjudge agree`` waits for them."""
    ignored_groups: int = 0
    """The number of groups with several cases: the limits hold for these cases, and are too narrow for others."""


def estimate_live(queue: LabelQueue, *, within: float = WITHIN) -> LiveEstimate | None:
    """Estimate the rate of good cases from the labels of a queue so far, and about how many more are needed.

    The half-width that is aimed at is that of the run's plan, else ``within``.
    ``None`` where there is nothing to say: fewer than 10 labels, answers that are not good or bad, an order that is
    not random, or ``adjudge[trust]`` is not installed.
    """
    sample = queue.list_draws()
    if sample is None or len(sample.draws) < FEWEST:
        return None
    strata = list(sample.sizes)
    draws = [(strata.index(stratum), good) for stratum, good in sample.draws]
    within = sample.within or within
    try:
        allocations = [
            Allocation(first=first, shares=tuple(count / sum(counts) for count in counts))
            for first, counts in sample.phases
        ]
        rate = compute_live_rate(list(sample.sizes.values()), draws, allocations=allocations)
    except UsageError:  # without numpy and scipy; the labels are kept all the same
        return None
    if not rate.in_random_order:
        return None
    more = estimate_more_labels(rate, within=within)
    drawn_count = sum(sum(counts) for _, counts in sample.phases)  # by the run's plan; 0 without one
    return LiveEstimate(
        value=rate.value,
        low=rate.low,
        high=rate.high,
        within=within,
        more=more,
        left=max(drawn_count - len(sample.draws), 0),
        ignored_groups=sample.ignored_groups,
    )
