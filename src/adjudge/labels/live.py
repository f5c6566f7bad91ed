"""How well the rate of good cases is known while people label: the one place that asks ``trust.live``."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from adjudge.errors import UsageError
from adjudge.labels.queue import LabelQueue

WITHIN = 0.03


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


def estimate_live(queue: LabelQueue, *, within: float = WITHIN) -> LiveEstimate | None:
    """The rate of good cases from the labels of a queue so far, and about how many more are needed.

    ``None`` where there is nothing to say: no label, answers that are not good or bad, an order that is not random, or
    ``adjudge[trust]`` is not installed.
    """
    found = queue.list_draws()
    if found is None or not found.draws or find_spec("adjudge.trust.live") is None:
        return None
    live: Any = import_module("adjudge.trust.live")
    names = list(found.sizes)
    draws = [(names.index(stratum), good) for stratum, good in found.draws]
    try:
        rate = live.compute_live_rate(list(found.sizes.values()), draws)
    except UsageError:  # without numpy and scipy; the labels are kept all the same
        return None
    if not rate.in_random_order:
        return None
    more = live.estimate_more_labels(rate, within=within)
    return LiveEstimate(value=rate.value, low=rate.low, high=rate.high, within=within, more=more)
