"""Correlation of a judge's scores with people's: Pearson, Spearman and Kendall, per item and averaged over groups."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, Estimate
from adjudge.trust.resampling import Clusters, check_resampling, make_estimate, number_groups

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

RESAMPLES = 1_000
"""The number of resamples that an interval over groups is made of; each ranks all items again."""

ROUNDING = 1e-13
"""Values whose spread is smaller than this, relative to their size, differ by rounding alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """The three coefficients over some items, or their means over groups."""

    pearson: Estimate
    """Pearson's correlation coefficient."""
    spearman: Estimate
    """Spearman's rank correlation coefficient."""
    kendall: Estimate
    """Kendall's tau-b, which corrects for ties."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The correlation of scores with people's."""

    _layout: ClassVar[Layout] = Layout(last=("per_item", "over_groups"))

    items: int
    """Items with a score on both sides."""
    left_out: int
    """Items without one."""
    per_item: Coefficients
    """Over all items at once; in the literature, dataset level."""
    over_groups: Coefficients | None
    """The mean of each group's own coefficient; ``None`` without groups. In the literature, document or input level."""
    groups_used: int
    """The number of groups in that mean."""
    groups_left_out: int
    """Groups in which one side has one distinct value alone, so that no correlation is defined."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def compute_pearson(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's r. Raises ``UsageError`` for fewer than two items, and where a side has one distinct value alone.

    Args:
        one: The numbers of one side.
        other: Those of the other, in the same order.
    """
    return _measure_pearson(*_read_both(one, other))


def compute_spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rho: Pearson's r of ranks, ties with their mean rank. Raises as ``compute_pearson`` does.

    Args:
        one: The numbers of one side.
        other: Those of the other, in the same order.
    """
    return _measure_spearman(*_read_both(one, other))


def compute_kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b. Raises as ``compute_pearson`` does.

    Source: M. G. Kendall, "The treatment of ties in ranking problems", 1945.

    Args:
        one: The numbers of one side.
        other: Those of the other, in the same order.
    """
    return _measure_kendall(*_read_both(one, other))


def make_correlation(
    judged: Sequence[float | None],
    truth: Sequence[float | None],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Correlation:
    """Correlate a judge's scores with the true ones. Items with ``None`` on a side are left out and counted.

    Without ``groups`` the intervals are Fisher's for Pearson (1921), Bonett and Wright's for Spearman (2000) and
    Fieller, Hartley and Pearson's for Kendall (1957), which assume independent items. With ``groups`` whole groups are
    drawn again, and the coefficients of the groups are averaged as well, with a t interval. Raises ``UsageError`` for
    fewer than two items, lists of different length, and one distinct value on a side.

    Args:
        judged: What the judge says of each item.
        truth: What people say of each item, in the same order.
        groups: The group of each item, where several come from one. ``None``: each item is for itself.
        seed: What the random draws begin with; the same seed gives the same limits.
        resamples: How many times the bootstrap draws.
    """
    check_extra()
    check_resampling(seed, resamples)
    if len(judged) != len(truth):
        raise UsageError(
            f"judged and truth have {len(judged):,} and {len(truth):,} items; give one score of each", argument="truth"
        )
    scored = [index for index in range(len(judged)) if judged[index] is not None and truth[index] is not None]
    judge_scores, true_scores = _read_both([judged[index] for index in scored], [truth[index] for index in scored])
    group_means, used_groups, left_out, clusters = None, 0, 0, None
    if groups is not None:
        if len(groups) != len(judged):
            raise UsageError(
                f"groups must name one group for each of {len(judged):,} items, got {len(groups):,}", argument="groups"
            )
        names = [groups[index] for index in scored]
        clusters = number_groups(names, len(scored))
        group_means, used_groups, left_out = _average_groups(judge_scores, true_scores, names)
    return Correlation(
        items=len(scored),
        left_out=len(judged) - len(scored),
        per_item=_make_coefficients(judge_scores, true_scores, clusters, seed, resamples),
        over_groups=group_means,
        groups_used=used_groups,
        groups_left_out=left_out,
    )


def _read_both(one: Sequence[float | None], other: Sequence[float | None]) -> tuple[Floats, Floats]:
    """Check two lists of scores, and return them as arrays that are scaled to at most 1.

    Raises ``UsageError`` for scores that cannot be correlated.
    """
    check_extra()
    import numpy as np

    if len(one) != len(other):
        raise UsageError(f"a correlation needs two values of each item, got {len(one):,} and {len(other):,} values")
    if len(one) < 2:
        raise UsageError(f"a correlation needs at least 2 items, got {len(one)}; score more items on both sides")
    arrays = []
    for values in (one, other):
        for value in values:
            if not is_finite(value) and not isinstance(value, bool):
                raise UsageError(f"a score must be a finite number, got {show(value)}; use None for a missing one")
        scores = np.array(values, dtype=float)
        # Divided by a power of two, which rounds nothing away, so that squares of scores do not overflow.
        scores = np.ldexp(scores, -int(np.frexp(np.abs(scores).max())[1]))
        if np.abs(scores - scores.mean()).max() <= ROUNDING * np.abs(scores).max():
            raise UsageError(
                f"a correlation is not defined: one side has {show(float(values[0] or 0))} alone; add items that differ"
            )
        arrays.append(scores)
    return arrays[0], arrays[1]


def _measure_pearson(one: Floats, other: Floats) -> float:
    """Compute Pearson's correlation of two arrays that vary, kept within -1 to 1 in spite of rounding."""
    import numpy as np

    centred = [scores - scores.mean() for scores in (one, other)]
    # Scaled first, so that their squares neither overflow nor vanish.
    scaled = [scores / np.abs(scores).max() for scores in centred]
    first, second = [scores / np.linalg.norm(scores) for scores in scaled]
    value = float(np.dot(first, second))
    return min(1.0, max(-1.0, value))


def _measure_spearman(one: Floats, other: Floats) -> float:
    """Compute Spearman's rho: Pearson's correlation of the ranks."""
    from scipy.stats import rankdata

    return _measure_pearson(rankdata(one), rankdata(other))


def _measure_kendall(one: Floats, other: Floats) -> float:
    """Compute Kendall's tau-b."""
    from scipy.stats import kendalltau

    return float(kendalltau(one, other).statistic)


_MEASURES: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": _measure_pearson,
    "spearman": _measure_spearman,
    "kendall": _measure_kendall,
}


def _make_coefficients(
    one: Floats, other: Floats, clusters: Clusters | None, seed: int, resamples: int
) -> Coefficients:
    """Estimate the three coefficients, with intervals by Fisher's transform or, for groups, by a bootstrap."""
    values = {name: measure(one, other) for name, measure in _MEASURES.items()}
    if clusters is None:
        return Coefficients(**{name: _estimate_by_fisher(name, value, len(one)) for name, value in values.items()})
    resampled = _resample_groups(one, other, clusters, seed, resamples)
    return Coefficients(
        **{
            name: make_estimate(
                value, len(one), resampled[:, column], clusters.groups, "bootstrap of groups", reason=""
            )
            for column, (name, value) in enumerate(values.items())
        }
    )


def _resample_groups(one: Floats, other: Floats, clusters: Clusters, seed: int, resamples: int) -> Floats:
    """Draw whole groups with replacement, and compute the three coefficients of their items, a row for each resample.

    A row is NaN where all scores of a side are equal.
    """
    import numpy as np

    codes, groups = clusters
    order = np.argsort(codes, kind="stable")
    items_by_group = np.split(order, np.cumsum(np.bincount(codes, minlength=groups))[:-1])
    random = np.random.default_rng(seed)
    coefficients = np.full((resamples, len(_MEASURES)), np.nan)
    for row in coefficients:
        items = np.concatenate([items_by_group[group] for group in random.integers(groups, size=groups)])
        first, second = one[items], other[items]
        if np.ptp(first) > 0 and np.ptp(second) > 0:
            row[:] = [measure(first, second) for measure in _MEASURES.values()]
    return coefficients


def _estimate_by_fisher(name: str, value: float, items: int) -> Estimate:
    """Give a coefficient the interval of Fisher's transform, with the variance that is published for this coefficient.

    Without an interval, for few items or a coefficient of 1 or -1, a note says why.
    """
    from scipy.special import ndtri

    least = 4 if name == "kendall" else 3  # the variance divides by the number of items beyond these
    if items <= least or abs(value) > 1 - ROUNDING:
        reason = f"more than {least} items" if items <= least else "items on which the two sides differ"
        return Estimate(value=value, of=items, note=f"no interval: it needs {reason}; score more items")
    variance, method = {
        "pearson": (1 / (items - 3), "Fisher"),
        "spearman": ((1 + value * value / 2) / (items - 3), "Bonett and Wright"),
        "kendall": (0.437 / (items - 4), "Fieller, Hartley and Pearson"),
    }[name]
    half_width = float(ndtri((1 + LEVEL) / 2)) * math.sqrt(variance)
    low, high = math.tanh(math.atanh(value) - half_width), math.tanh(math.atanh(value) + half_width)
    return Estimate(value=value, of=items, low=low, high=high, method=method)


def _average_groups(one: Floats, other: Floats, names: Sequence[Hashable]) -> tuple[Coefficients, int, int]:
    """Average the coefficients that each group of items has by itself.

    Returns the means, the number of groups used, and the number left out because all scores of a side are equal.
    """
    import numpy as np

    items_by_group: dict[Hashable, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        items_by_group[name].append(index)
    pairs = [(one[items], other[items]) for items in items_by_group.values()]
    pairs = [
        (first, second) for first, second in pairs if _has_different_values(first) and _has_different_values(second)
    ]
    coefficients = {name: np.array([measure(*pair) for pair in pairs]) for name, measure in _MEASURES.items()}
    means = Coefficients(**{name: _average_coefficient(values) for name, values in coefficients.items()})
    return means, len(pairs), len(items_by_group) - len(pairs)


def _has_different_values(scores: Floats) -> bool:
    """Return whether scores differ by more than rounding."""
    import numpy as np

    return bool(np.abs(scores - scores.mean()).max() > ROUNDING * np.abs(scores).max())


def _average_coefficient(values: Floats) -> Estimate:
    """Compute the mean of one coefficient over the groups, with Student's t interval, cut at -1 and 1."""
    from scipy.stats import t

    number = len(values)
    if not number:
        return Estimate(value=None, of=0, note="not defined: in each group a side has one distinct value alone")
    mean = float(values.mean())
    if number < 2:
        return Estimate(value=mean, of=number, note="no interval: it needs at least 2 groups; score more groups")
    half_width = float(t.ppf((1 + LEVEL) / 2, number - 1)) * float(values.std(ddof=1)) / math.sqrt(number)
    if not half_width:
        return Estimate(value=mean, of=number, note="no interval: all groups have the same value; score more groups")
    low, high = max(-1.0, mean - half_width), min(1.0, mean + half_width)
    return Estimate(value=mean, of=number, low=low, high=high, method="t, of groups")
