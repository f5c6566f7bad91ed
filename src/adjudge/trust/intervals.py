"""Intervals for a share and for a weighted sum of shares, and the value of any statistic with its interval.

The rate that is corrected by labels is put together in ``corrected_rate.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show
from adjudge.trust.extra import check_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from adjudge.trust.extra import Floats

_Numbers = TypeVar("_Numbers", float, "NDArray[np.float64]")

LEVEL = 0.95
"""The share of intervals made like this that hold the true share."""

LARGEST_COUNT = 1e9
"""No count is larger: quantiles of beta distributions would not be found, and products of counts would overflow."""

IntervalMethod = Literal["wilson", "jeffreys", "exact"]
"""``exact`` is that of Clopper and Pearson, which never covers too little and is wider than the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of something, and where the true one may be."""

    _layout: ClassVar[Layout] = Layout(
        last=("rate", "low", "high"),
        computed={
            "low": lambda share: share.interval[0] if share.interval else None,
            "high": lambda share: share.interval[1] if share.interval else None,
        },
    )

    count: float
    """Their number; a tie counts as half a win."""
    of: int
    """Of how many."""

    def add(self, part: float) -> Share:
        """Return the share with one more: a whole one, none, or a part of one.

        Args:
            part: The part, in 0 to 1.
        """
        return Share(count=self.count + part, of=self.of + 1)

    @property
    def rate(self) -> float | None:
        """The share, in 0 to 1; ``None`` of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval; ``None`` of nothing."""
        return find_interval(self.count, self.of) if self.of else None

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


NO_SHARE = Share(count=0, of=0)
"""The share with which counting begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedShare:
    """A weighted sum of shares with its interval."""

    value: float
    """The share, in 0 to 1."""
    low: float
    """The lower limit, in 0 to 1."""
    high: float
    """The upper limit, in 0 to 1."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A statistic with its interval. ``value`` is ``None`` where the data do not define it; ``note`` says why."""

    value: float | None
    """The statistic."""
    of: int
    """The number of items it was computed from."""
    low: float | None = None
    """The lower limit; ``None`` where no interval can be given."""
    high: float | None = None
    """The upper limit; ``None`` with ``low``."""
    level: float = LEVEL
    """The share of intervals made this way that contain the true value."""
    method: str = ""
    """The method of the interval: ``Wilson``, ``bootstrap of groups`` and so on; empty without an interval."""
    note: str = ""
    """The reason why there is no value or no interval, in one sentence."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both limits; ``None`` where no interval can be given."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def find_interval(
    count: float, of: float, level: float = LEVEL, *, method: IntervalMethod = "wilson"
) -> tuple[float, float]:
    """The interval of a share, by default Wilson's.

    ``jeffreys`` and ``exact`` need ``adjudge[trust]``. Jeffreys' limits are the plain quantiles of its beta
    distribution, so that of a count of 0 the lower one is a little above 0. Raises ``UsageError`` for counts that are
    no share of anything, such as 0 of 0.

    Sources: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927; L. D. Brown,
    T. T. Cai and A. DasGupta, "Interval estimation for a binomial proportion", 2001, for the others.

    Args:
        count: How many count, which may hold halves.
        of: How many there are in all, more than 0.
        level: The confidence of the interval, between 0 and 1.
        method: How the limits of each share are computed.
    """
    try:
        number, total = float(count), float(of)
    except (TypeError, ValueError, OverflowError):
        number = total = math.nan
    if not (total >= 1 / LARGEST_COUNT and 0 <= number <= total < math.inf and is_level(level)):
        raise UsageError(
            f"an interval needs a count from 0 to {show(of)}, of more than 0; got {show(count)} at level {show(level)}",
            argument="count",
        )
    if total > LARGEST_COUNT:
        raise UsageError(f"an interval is of at most {LARGEST_COUNT:,.0f}, got {show(of)}; count fewer")
    if method != "wilson":
        low, high = find_limits([number], [total], level=level, method=method)
        return float(low[0]), float(high[0])
    below, above = _find_wilson(number, total, level, math.sqrt)
    # At the ends the two are equal but for rounding, which must not exclude a rate that was seen.
    return 0.0 if number == 0 else max(below, 0.0), 1.0 if number == total else min(above, 1.0)


def find_limits(
    counts: ArrayLike, of: ArrayLike, *, level: float = LEVEL, method: IntervalMethod = "wilson"
) -> tuple[Floats, Floats]:
    """The lower and upper limits of many shares at once, as arrays; of 0 out of 0 they are 0 and 1.

    The counts need not be whole: counts that are divided by a design effect are not. Needs ``adjudge[trust]``.

    Args:
        counts: How many successes each share has.
        of: How many trials.
        level: The share of intervals made this way that contain the true share.
        method: The method of the interval.
    """
    check_extra()
    import numpy as np

    numbers, total = np.broadcast_arrays(np.asarray(counts, dtype=float), np.asarray(of, dtype=float))
    check_level(level)
    check_method(method)
    if not bool(np.all((numbers >= 0) & (numbers <= total) & (total <= LARGEST_COUNT))):
        raise UsageError(
            f"intervals need counts from 0 to what they are of, and at most {LARGEST_COUNT:,.0f}; "
            f"got {show(counts)} of {show(of)}"
        )
    # Not divided by 0: whatever is computed for a share of nothing is replaced below.
    safe_total = np.where(total > 0, total, 1)
    if method == "wilson":
        low, high = _find_wilson(numbers, safe_total, level, np.sqrt)
        low, high = (
            np.where(numbers == 0, 0.0, np.maximum(low, 0.0)),
            np.where(numbers == safe_total, 1.0, np.minimum(high, 1.0)),
        )
    else:
        low, high = _find_beta(numbers, safe_total, level, method)
    return np.where(total > 0, low, 0.0), np.where(total > 0, high, 1.0)


def find_weighted_share(
    counts: Sequence[float],
    of: Sequence[float],
    weights: Sequence[float],
    *,
    unlabelled: Sequence[float] | None = None,
    level: float = LEVEL,
    method: IntervalMethod = "wilson",
) -> WeightedShare:
    """The sum of ``weights[i] * counts[i] / of[i]`` with its interval by MOVER, clipped to 0 and the sum of weights.

    A share of nothing (0 of 0) is taken as 0.5 with the interval from 0 to 1. Needs ``adjudge[trust]``; raises
    ``UsageError`` for other numbers.

    Source: G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures", 2008.

    Args:
        counts: How many of each heap count.
        of: How many of each heap were looked at.
        weights: The weight of each heap, 0 or more; they usually add up to 1.
        unlabelled: The share of each heap that was not counted, from 0 to 1; by default 1 for each. Of a heap that was
            counted completely, the share is known.
        level: The confidence of the interval, between 0 and 1.
        method: How the limits of each share are computed.
    """
    check_extra()
    import numpy as np

    unlabelled_shares = [1.0] * len(weights) if unlabelled is None else unlabelled
    columns = [np.asarray(column, dtype=float) for column in (counts, of, weights, unlabelled_shares)]
    if len({len(column) for column in columns}) > 1 or not len(columns[0]):
        raise UsageError("a weighted sum of shares needs as many counts as sizes and weights, and at least one of each")
    _, _, weight, share_left = columns
    if not bool(np.all((weight >= 0) & np.isfinite(weight) & (share_left >= 0) & (share_left <= 1))):
        raise UsageError(
            f"weights must be 0 or more, and unlabelled shares from 0 to 1; got {list(weights)}", argument="weights"
        )
    value, low, high = combine_shares(*columns, level=level, method=method)
    return WeightedShare(value=float(value), low=float(low), high=float(high))


def combine_shares(
    counts: Floats,
    of: Floats,
    weights: Floats,
    unlabelled: Floats | float = 1.0,
    *,
    spread: Floats | float = 0.0,
    level: float = LEVEL,
    method: IntervalMethod = "wilson",
) -> tuple[Floats, Floats, Floats]:
    """Compute weighted sums of shares with their lower and upper limits, by MOVER.

    The last axis of each array has the summands: ``counts`` out of ``of``, with their ``weights``, and with the share
    of each that was not counted (``unlabelled``). ``spread`` is a variance that is added to both limits, in addition to
    that of the shares.
    """
    import numpy as np

    low, high = find_limits(counts, of, level=level, method=method)
    empty = np.broadcast_to(of == 0, low.shape)
    shares = np.where(empty, 0.5, counts / np.where(of == 0, 1, of))
    value = np.sum(weights * shares, axis=-1)
    # Heaps without any label are one heap of unknown share. Taken for independent ones, two of them would be said to
    # average out, and no label at all would give an interval that is narrower than 0 to 1.
    unknown = (0.5 * np.sum(np.where(empty, weights, 0.0), axis=-1)) ** 2
    normal = (NormalDist().inv_cdf((1 + level) / 2)) ** 2 * spread

    def combine_distances(distances: Floats) -> Floats:
        """Compute how far a limit of the sum is from it, from how far the shares are from their limits."""
        # Jeffreys' limits exclude a share of 0 or 1; that must not count as a distance.
        weighted = np.where(empty, 0.0, np.maximum(distances, 0.0)) * weights
        return np.asarray(np.sqrt(np.sum(weighted**2 * unlabelled, axis=-1) + unknown + normal))

    most = np.sum(np.broadcast_to(weights, low.shape), axis=-1)
    sum_low = np.maximum(value - combine_distances(shares - low), 0.0)
    sum_high = np.minimum(value + combine_distances(high - shares), most)
    return value, sum_low, sum_high


def find_part_of_sum(part: WeightedShare, rest: WeightedShare) -> WeightedShare | None:
    """Find which share ``part`` is of the sum of ``part`` and ``rest``, from independent limits of both.

    ``None`` where both are 0. By MOVER: a share ``s`` is within the limits if the limits of
    ``(1 - s) * part - s * rest`` contain 0. The limits are equal only where those of ``part`` are and those of ``rest``
    are, or where one of the two is known to be 0.

    Source: R. G. Newcombe, "MOVER-R confidence intervals for ratios and products of two independently estimated
    quantities", 2016.
    """
    total = part.value + rest.value
    if total <= 0:
        return None

    def reach(share: float, *, is_low: bool) -> float:
        """Compute how far the lower or the upper limit of the difference for a share is from that difference."""
        if is_low:
            return math.hypot((1 - share) * (part.value - part.low), share * (rest.high - rest.value))
        return math.hypot((1 - share) * (part.high - part.value), share * (rest.value - rest.low))

    def find(*, is_low: bool) -> float:
        """Find the share at which the limit of the difference is 0, by halving the range 60 times."""
        # The limit falls as the share grows: at 0 it is a limit of ``part``, at 1 one of minus ``rest``.
        below, above = 0.0, 1.0
        for _ in range(60):
            middle = (below + above) / 2
            difference = (1 - middle) * part.value - middle * rest.value
            limit = difference - reach(middle, is_low=True) if is_low else difference + reach(middle, is_low=False)
            below, above = (middle, above) if limit > 0 else (below, middle)
        return (below + above) / 2

    value = part.value / total
    if (part.low == part.high and rest.low == rest.high) or not part.high or not rest.high:
        return WeightedShare(value=value, low=value, high=value)
    return WeightedShare(value=value, low=min(find(is_low=True), value), high=max(find(is_low=False), value))


def is_level(level: float) -> bool:
    """Return whether an interval can have this level; at a level so near to 1 that it rounds to 1, none is finite."""
    return is_finite(level) and level > 0 and (1 + level) / 2 < 1


def check_level(level: float) -> None:
    """Raise ``UsageError`` unless an interval can have this level."""
    if not is_level(level):
        raise UsageError(
            f"the level of an interval is between 0 and 1, such as 0.95; got {show(level)}", argument="level"
        )


def check_method(method: str) -> None:
    """Raise ``UsageError`` unless there is an interval of this name."""
    if method not in get_args(IntervalMethod):
        raise UsageError(
            f"there is no interval {show(method)}; there are {', '.join(get_args(IntervalMethod))}", argument="method"
        )


def _find_wilson(
    counts: _Numbers, totals: _Numbers, level: float, root: Callable[[_Numbers], _Numbers]
) -> tuple[_Numbers, _Numbers]:
    """Find Wilson's limits of one share (``math.sqrt``) or of many (``np.sqrt``), before they are cut at 0 and 1."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate, square = counts / totals, z * z
    middle = (rate + square / (2 * totals)) / (1 + square / totals)
    half_width = z / (1 + square / totals) * root(rate * (1 - rate) / totals + square / (4 * totals * totals))
    return middle - half_width, middle + half_width


def _find_beta(counts: Floats, totals: Floats, level: float, method: str) -> tuple[Floats, Floats]:
    """Find limits of shares as quantiles of beta distributions: Jeffreys', or the exact ones of Clopper and Pearson.

    Jeffreys' add half a success and half a failure. The exact ones add a failure for the lower limit, and a success for
    the upper one.
    """
    import numpy as np
    from scipy.special import betaincinv

    tail, failures = (1 - level) / 2, totals - counts
    if method == "jeffreys":
        return betaincinv(counts + 0.5, failures + 0.5, tail), betaincinv(counts + 0.5, failures + 0.5, 1 - tail)
    # At the ends one parameter would be 0, for which there is no distribution.
    low = betaincinv(np.maximum(counts, 1e-300), failures + 1, tail)
    high = betaincinv(counts + 1, np.maximum(failures, 1e-300), 1 - tail)
    return np.where(counts == 0, 0.0, low), np.where(failures == 0, 1.0, high)


SEEN_GROUPS = 8
"""Groups that must differ from the others by about as much, before a design effect below 1 is believed."""

UNSEEN_GROUPS = 3
"""Groups whose items are all alike, added to those that were seen: so many may be of a kind that no group shows."""

LEAST_EFFECT = 0.05
"""No item counts as more than 20."""


def compute_design_effect(ratio: Floats, errors: Floats, alike: Floats) -> Floats:
    """Return the design effect of items in groups: how many times larger the variance is than that of single items.

    ``ratio`` is the variance between the groups, divided by that of single items, and ``errors`` (the groups in the
    last axis) are how far each group's sum is from what the mean predicts; the variance is computed from their squares.
    ``alike`` is the effect of groups whose items are all alike. A ratio below 1, as where one of four answers to each
    question is good, is used only as far as the groups show it: with 3 groups more whose items are all alike (the rule
    of three), and not at all where a few groups make most of the variance. Otherwise groups of a rare kind, none of
    which is labelled, would leave intervals of 95 % a coverage of 33 %.

    Source: L. Kish, "Survey sampling", 1965. The rule for less than 1 is our own; ``research/coverage`` simulates it.
    """
    import numpy as np

    groups, fourth_powers = errors.shape[-1], np.sum(errors**4, axis=-1)
    # The effective number of groups that make the variance: all of them if their errors are equally large.
    effective_groups = np.sum(errors**2, axis=-1) ** 2 / np.where(fourth_powers > 0, fourth_powers, 1)
    careful_ratio = ((groups - 1) * ratio + UNSEEN_GROUPS * alike) / (groups - 1 + UNSEEN_GROUPS)
    # A ratio of nearly 0 is rounding where nothing varies, and shows nothing.
    is_believed = (effective_groups >= SEEN_GROUPS) & (ratio > 1e-9)
    effect_below_one = np.where(is_believed, np.clip(careful_ratio, LEAST_EFFECT, 1.0), 1.0)
    return np.where(ratio < 1, effect_below_one, ratio)
