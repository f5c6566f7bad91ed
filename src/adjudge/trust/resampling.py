"""The bootstrap: items, or whole groups of them, are drawn again with replacement, and the statistic computed again.

A statistic here is a function of column sums: each item (or group) is a row of counts, and a resample is a weighted sum
of rows. Rows that are equal are drawn together, so a million items with four kinds of row cost as much as four.

Source: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentile interval);
A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8 (whole groups).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number, is_finite
from adjudge.formats.text import show
from adjudge.trust.confusion import check_group
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, Estimate, check_level, compute_design_effect, find_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from adjudge.trust.extra import Floats

    Table = Floats | csr_array

RESAMPLES = 2_000
"""The number of resamples that an interval is made of."""

LEAST_UNITS = 10
"""The fewest items, or groups of them, that an interval is made of."""

MOST_UNDEFINED = 0.05
"""The largest share of resamples in which a statistic may be undefined before its interval is refused."""

CELLS = 4_000_000
"""The number of numbers that are held at once; a larger table is resampled in more steps."""

LARGEST_SCORE = 1e100
"""No score is larger; a sum of squares of such numbers still fits into a float."""


def check_score(value: object, *, name: str = "a score", remedy: str = "use None for a missing one") -> None:
    """Raise ``UsageError`` unless a value is a number that can be squared; true and false count as 1 and 0."""
    if isinstance(value, bool):
        return
    if not isinstance(value, int | float) or not is_finite(value) or abs(value) > LARGEST_SCORE:
        raise UsageError(f"{name} must be a finite number of at most {LARGEST_SCORE:g}, got {show(value)}; {remedy}")


def check_resampling(seed: int, resamples: int) -> None:
    """Raise ``UsageError`` unless a seed and a number of resamples can be used."""
    check_whole_number("seed", seed, least=0)
    check_whole_number("resamples", resamples, least=100, most=1_000_000)


def find_bootstrap_interval(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> tuple[float, float]:
    """The percentile bootstrap interval of a mean.

    The same seed gives the same limits. Raises ``UsageError`` for no values, values that are not finite, groups of
    another length, fewer than 10 values or groups (their percentiles lie much too close), and equal values or equal
    means of all groups, which say nothing of other values. Source: Efron and Tibshirani 1993, chapter 13.

    Args:
        values: The numbers whose mean it is.
        groups: The group of each value; whole groups are then drawn. ``None``: each value is for itself.
        seed: What the random draws begin with; the same seed gives the same limits.
        resamples: How many times the bootstrap draws.
        level: The confidence of the interval, between 0 and 1.
    """
    check_extra()
    check_resampling(seed, resamples)
    check_level(level)
    import numpy as np

    for value in values:
        check_score(value, name="a value", remedy="leave it out")
    if not len(values):
        raise UsageError("the mean of no values is not defined; give at least one")
    codes, count = number_groups(groups, len(values))
    if count < LEAST_UNITS:
        raise UsageError(f"an interval needs at least {LEAST_UNITS} values or groups of them, got {count}; add more")
    numbers = np.asarray(values, dtype=float)
    # A row for each group: the sum of its values, and their number.
    rows = np.column_stack([add_up(numbers, codes, count), add_up(np.ones(len(numbers)), codes, count)])
    means = resample(rows, lambda sums: (sums[:, 0] / sums[:, 1])[:, None], seed=seed, resamples=resamples)
    low, high = np.quantile(means[:, 0], [(1 - level) / 2, (1 + level) / 2])
    if numbers.min() == numbers.max() or high - low <= _NOISE * max(abs(low), abs(high)):
        raise UsageError("every resample has the same mean, which says nothing of other values; add values that differ")
    return float(low), float(high)


_NOISE = 1e-12
"""The part of a mean by which sums of equal numbers may differ."""


class Clusters(NamedTuple):
    """The groups that items come in."""

    codes: NDArray[np.int64]
    """The number of each item's group, from 0."""
    groups: int
    """The number of groups."""


def number_groups(groups: Iterable[Hashable] | None, items: int) -> Clusters:
    """Number the groups of items; each item is a group where none are given. Raises ``UsageError``."""
    import numpy as np

    if groups is None:
        return Clusters(np.arange(items), items)
    names: dict[Hashable, int] = {}
    listed = list(groups)
    for group in listed:
        check_group(group)
    codes = np.fromiter((names.setdefault(group, len(names)) for group in listed), dtype=np.int64)
    if len(codes) != items:
        raise UsageError(
            f"groups must name one group for each of {items:,} items, got {len(codes):,}; give as many",
            argument="groups",
        )
    check_groups(len(names))
    return Clusters(codes, len(names))


def add_up(values: Floats, codes: NDArray[np.int64], groups: int) -> Floats:
    """Add up the values of each group; ``codes`` has the number of each value's group."""
    import numpy as np

    return np.bincount(codes, values, groups).astype(float)


def check_groups(groups: int) -> None:
    """Raise ``UsageError`` for fewer than two groups: nothing varies when the only one is drawn again."""
    if groups < 2:
        raise UsageError(f"an interval over groups needs at least 2 groups, got {groups}; leave groups out")


def resample(
    rows: Table,
    compute: Callable[[Floats], Floats],
    *,
    seed: int,
    resamples: int,
    counts: Floats | None = None,
) -> Floats:
    """Draw rows with replacement as often as there are, again and again, and compute the statistics of each resample.

    ``rows`` has one row for each unit (an item or a group), or for several equal units: ``counts`` has the number of
    units of each row, by default 1. ``compute`` is called with the column sums of resamples, a row each, and returns
    their statistics, a row each. All these rows are returned.
    """
    import numpy as np

    distinct_rows = rows
    if counts is None and isinstance(rows, np.ndarray):
        distinct_rows, repeats = np.unique(rows, axis=0, return_counts=True)
        counts = repeats.astype(float)
    row_count, column_count = (int(size) for size in distinct_rows.shape or ())
    counts = np.ones(row_count) if counts is None else counts
    unit_count, shares = int(counts.sum()), counts / counts.sum()
    random = np.random.default_rng(seed)
    step = max(1, CELLS // max(row_count, column_count))  # resamples that are in memory at once
    statistics = []
    for start in range(0, resamples, step):
        # How often each row is drawn, for each resample.
        weights = random.multinomial(unit_count, shares, size=min(step, resamples - start)).astype(float)
        statistics.append(compute(np.asarray(weights @ distinct_rows)))
    return np.concatenate(statistics)


def _find_limits(resampled: Floats, units: int, level: float = LEVEL) -> tuple[float, float] | str:
    """Find the expanded percentile limits of a statistic, from its value in each resample of this number of units.

    Where limits would mislead, a sentence that says why is returned instead. Plain percentiles are too narrow where few
    units are drawn: they follow the normal distribution where a mean follows Student's t, and a resample varies less by
    sqrt((n - 1) / n). Expanded ones take percentiles further out.
    Source: T. C. Hesterberg, "What teachers should know about the bootstrap", 2015, section 5.3.
    """
    import numpy as np
    from scipy.stats import norm, t

    defined = resampled[np.isfinite(resampled)]
    if len(defined) < (1 - MOST_UNDEFINED) * len(resampled):
        share = 100 * (1 - len(defined) / len(resampled))
        return f"no interval: undefined in {share:.0f} % of resamples; label more of the rare cases"
    if units < LEAST_UNITS:
        return _describe_few(units)
    tail = float(norm.sf(math.sqrt(units / (units - 1)) * t.ppf((1 + level) / 2, units - 1)))
    low, high = (float(limit) for limit in np.quantile(defined, [tail, 1 - tail]))
    if high - low < 1e-12:
        return "no interval: every resample gives the same value, which says nothing of other items; label more"
    return low, high


def find_clustered_share(counts: Floats, sizes: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Find a Wilson interval for a share whose items come in groups: ``counts`` of ``sizes`` in each group.

    The number of items is divided by the design effect (how much more the share varies when whole groups are drawn) and
    by the factor that Student's t with G - 1 degrees of freedom adds to the normal distribution. A share of 0 or 1
    shows no variance at all, so there each group counts as one item. Source: E. L. Korn and B. I. Graubard, "Confidence
    intervals for proportions with small expected number of positive counts estimated from survey data", 1998.
    """
    import numpy as np
    from scipy.special import ndtri
    from scipy.stats import t

    group_counts, group_sizes = counts[sizes > 0], sizes[sizes > 0]
    groups, items, rate = len(group_sizes), group_sizes.sum(), group_counts.sum() / group_sizes.sum()
    factor = (t.ppf((1 + level) / 2, groups - 1) / ndtri((1 + level) / 2)) ** 2 if groups > 1 else math.inf
    if rate in {0.0, 1.0}:
        effect = items / groups
    else:
        errors = group_counts - rate * group_sizes
        group_variance = groups / max(groups - 1, 1) * np.sum(errors**2) / items**2
        item_variance = rate * (1 - rate) / items
        alike_effect = np.sum(group_sizes**2) / items  # of groups whose items are all alike
        effect = compute_design_effect(group_variance / item_variance, errors, alike_effect)
    if math.isinf(factor):  # one group alone shows nothing
        return 0.0, 1.0
    effective_items = float(items / (effect * factor))
    return find_interval(min(float(rate) * effective_items, effective_items), effective_items, level)


def estimate_clustered_share(counts: Floats, sizes: Floats) -> Estimate:
    """Estimate a share of items that come in groups: ``counts`` of ``sizes`` in each group.

    It has no interval if fewer than 10 groups have an item.
    """
    items, groups = int(sizes.sum()), int((sizes > 0).sum())
    value = float(counts.sum()) / items
    if groups < LEAST_UNITS:
        return Estimate(value=value, of=items, note=_describe_few(groups))
    low, high = find_clustered_share(counts, sizes)
    return Estimate(value=value, of=items, low=low, high=high, method="Wilson, of groups")


def _describe_few(units: int) -> str:
    """Write why there is no interval of so few units, which are items or groups."""
    missing = LEAST_UNITS - units
    return f"no interval: {units} items or groups are too few, at least {LEAST_UNITS} are needed; label {missing} more"


def make_estimate(value: float, items: int, resampled: Floats, units: int, method: str, *, reason: str) -> Estimate:
    """Make the estimate of a statistic, with limits from its values in the resamples.

    ``units`` is the number of items or groups that each resample drew. A value that is not finite means that the
    statistic is not defined, for the given ``reason``.
    """
    import numpy as np

    if not np.isfinite(value):
        return Estimate(value=None, of=items, note=f"not defined: {reason}")
    limits = _find_limits(resampled, units)
    if isinstance(limits, str):
        return Estimate(value=value, of=items, note=limits)
    return Estimate(value=value, of=items, low=limits[0], high=limits[1], method=method)
