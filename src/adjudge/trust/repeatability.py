"""Repeatability: how often a judge contradicts itself, when asked again and when two answers swap places.

Its error has two parts. Noise is what varies from one repeat to the next, and averaging repeats removes it. The rest is
systematic, and no number of repeats removes it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from adjudge.errors import UsageError
from adjudge.formats.record import write_record
from adjudge.formats.text import show
from adjudge.trust.confusion import Category, check_labels, divide
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import Estimate, Share, find_interval
from adjudge.trust.resampling import (
    RESAMPLES,
    Clusters,
    add_up,
    check_resampling,
    check_score,
    estimate_clustered_share,
    make_estimate,
    number_groups,
    resample,
)

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

Side = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeatability:
    """The differences of a judge's answers to the same question."""

    items: int
    """Items with at least two repeats."""
    left_out: int
    """Items with fewer."""
    flips: Estimate
    """The share of items on which the repeats are not all the same. It grows with the number of repeats."""
    disagreement: Estimate
    """The probability that two repeats of one item differ; it does not depend on the number of repeats."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorParts:
    """The mean squared error of one answer, and the parts it is made of."""

    items: int
    """Items with two repeats or more and a true value."""
    left_out: int
    """Items with fewer than two repeats, or without a true value."""
    error: Estimate
    """The mean squared error of a single repeat; with true and false, the share of wrong answers."""
    noise: Estimate
    """The part that varies between repeats of one item: the variance within items."""
    systematic: Estimate
    """The part that stays when repeats are averaged: the squared error of an item's long-run mean."""
    noise_share: Estimate
    """Noise divided by error: what averaging very many repeats would save."""
    intraclass: Estimate
    """The intraclass correlation ICC(1): how much of the variance of single repeats lies between items."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFlips:
    """Pairs that were judged in both orders."""

    pairs: int
    """The number of pairs."""
    flips: Share
    """Pairs with another verdict after the swap, ties included."""
    undecided: int
    """Pairs in which at least one order gave no verdict; they are not counted as consistent or as flipped."""
    conflicts: int
    """Pairs in which each order named a different winner."""
    favouring_first: int
    """Conflicts in which both times the answer that was shown first won."""
    favouring_second: int
    """Conflicts in which both times the answer that was shown second won."""
    p_value: float | None
    """Two-sided exact binomial test that conflicts favour neither place; ``None`` without a conflict."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_repeatability(
    repeats: Sequence[Sequence[Category]],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Repeatability:
    """Measure how often repeated labels of an item differ; ``None`` is undecided and differs from every label.

    Raises ``UsageError`` where no item has two repeats.

    Args:
        repeats: For each item, its labels.
        groups: The group of each item, where several come from one. ``None``: each item is for itself.
        seed: What the random draws begin with; the same seed gives the same limits.
        resamples: How many times the bootstrap draws.
    """
    check_extra()
    check_resampling(seed, resamples)
    import numpy as np

    check_labels(label for row in repeats for label in row)
    repeated = [index for index, row in enumerate(repeats) if len(row) > 1]
    if not repeated:
        raise UsageError("no item has two repeats, so nothing can differ; judge each item at least twice")
    clusters = _number_clusters(groups, len(repeats), repeated)
    flips = np.array([len(set(repeats[index])) > 1 for index in repeated], dtype=float)
    disagreements = np.array([_find_disagreement(repeats[index]) for index in repeated])
    return Repeatability(
        items=len(repeated),
        left_out=len(repeats) - len(repeated),
        flips=_estimate_share(flips, clusters),
        disagreement=_estimate_means(disagreements[:, None], clusters, seed, resamples)[0],
    )


def make_error_parts(
    repeats: Sequence[Sequence[float | None]],
    truth: Sequence[float | None],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> ErrorParts:
    """Divide a judge's squared error into noise and the systematic part; true and false count as 1 and 0.

    For an item with r repeats of variance s² (divisor r - 1) and mean m, noise is s² and the systematic part is
    (m - truth)² - s²/r. Both are unbiased, and they add up to the mean of (repeat - truth)². The systematic part may
    come out slightly below 0. Repeats and true values of ``None`` are left out.

    Raises ``UsageError`` where no item has two repeats and a true value, and for values that are no numbers.
    Source: S. Geman, E. Bienenstock and R. Doursat, "Neural networks and the bias/variance dilemma", 1992 (parts);
    P. E. Shrout and J. L. Fleiss, "Intraclass correlations", 1979 (ICC(1), from a one-way analysis of variance).

    Args:
        repeats: The numbers that each item got, one list for each item.
        truth: The true value of each item; ``None`` is unknown.
        groups: The group of each item, if they come in groups.
        seed: The seed of the bootstrap intervals.
        resamples: How often the bootstrap draws.
    """
    check_extra()
    check_resampling(seed, resamples)
    import numpy as np

    if len(repeats) != len(truth):
        raise UsageError(
            f"repeats and truth have {len(repeats):,} and {len(truth):,} items; give one of each", argument="truth"
        )
    rows = [[value for value in row if value is not None] for row in repeats]
    repeated = [index for index, row in enumerate(rows) if len(row) > 1 and truth[index] is not None]
    if not repeated:
        raise UsageError("no item has two repeats and a true value; judge labelled items at least twice")
    clusters = _number_clusters(groups, len(repeats), repeated)
    parts = np.array([_divide_error(rows[index], truth[index]) for index in repeated])
    error, noise, systematic = _estimate_means(parts[:, : len(_PARTS)], clusters, seed, resamples)
    noise_share, intraclass = _estimate_ratios(parts, clusters, seed, resamples)
    return ErrorParts(
        items=len(repeated),
        left_out=len(repeats) - len(repeated),
        error=error,
        noise=noise,
        systematic=systematic,
        noise_share=noise_share,
        intraclass=intraclass,
    )


def make_order_flips(forward: Sequence[Side | None], backward: Sequence[Side | None]) -> OrderFlips:
    """Compare the verdicts on pairs in both orders. Both name the sides as the item does, not as they were shown.

    Raises ``UsageError`` for no pairs, lists of different length, and other words.

    Args:
        forward: The verdicts with the item's first answer shown first; ``None`` is undecided.
        backward: The verdicts with the item's first answer shown second; ``None`` is undecided.
    """
    check_extra()
    from scipy.stats import binomtest

    if len(forward) != len(backward) or not forward:
        raise UsageError(f"each pair needs a verdict in both orders, got {len(forward):,} and {len(backward):,}")
    for verdict in (*forward, *backward):
        if verdict not in {"first", "second", "tie", None}:
            raise UsageError(f"a verdict on a pair is 'first', 'second', 'tie' or None, got {show(verdict)}")
    verdicts = list(zip(forward, backward, strict=True))
    decided = [pair for pair in verdicts if None not in pair]
    # Shown first: the item's first answer in the forward order, its second in the other.
    favouring_first, favouring_second = decided.count(("first", "second")), decided.count(("second", "first"))
    conflicts = favouring_first + favouring_second
    return OrderFlips(
        pairs=len(verdicts),
        flips=Share(
            count=sum(forward_verdict != backward_verdict for forward_verdict, backward_verdict in decided),
            of=len(decided),
        ),
        undecided=len(verdicts) - len(decided),
        conflicts=conflicts,
        favouring_first=favouring_first,
        favouring_second=favouring_second,
        p_value=min(1.0, float(binomtest(favouring_first, conflicts).pvalue)) if conflicts else None,
    )


def _number_clusters(groups: Sequence[Hashable] | None, items: int, indexes: Sequence[int]) -> Clusters | None:
    """Number the groups of the items at these indexes; ``None`` where items come in no groups.

    Raises ``UsageError`` unless ``groups`` has a group for each of all ``items``.
    """
    if groups is None:
        return None
    if len(groups) != items:
        raise UsageError(
            f"groups must name one group for each of {items:,} items, got {len(groups):,}; give as many",
            argument="groups",
        )
    return number_groups([groups[index] for index in indexes], len(indexes))


def _find_disagreement(labels: Sequence[Category]) -> float:
    """Compute the share of pairs of repeats of one item that differ, from the labels of the repeats."""
    number = len(labels)
    same = sum(labels.count(label) * (labels.count(label) - 1) for label in set(labels))
    return 1 - same / (number * (number - 1))


_PARTS = ("error", "noise", "systematic")
"""The parts of an item's error."""

_ERROR, _NOISE, _SYSTEMATIC, _WITHIN, _REPEATS, _TOTAL, _TOTAL_SQUARED, _REPEATS_SQUARED = range(8)
"""The columns of ``_divide_error``: the parts of the error, and the sums for the analysis of variance."""


def _divide_error(values: Sequence[float], truth: float | None) -> list[float]:
    """Divide the squared error of one item's repeats into parts, and sum up for the analysis of variance.

    Returns the mean squared error, its noise and its systematic part. With r repeats of the mean m, the sums are: the
    squared distances of the repeats from m, r, r·m, r·m² and r².
    """
    for value in (*values, truth):
        check_score(value)
    repeats, target = len(values), float(truth or 0)
    mean = math.fsum(values) / repeats
    within = math.fsum((value - mean) ** 2 for value in values)
    error = math.fsum((value - target) ** 2 for value in values) / repeats
    noise = within / (repeats - 1)
    systematic = (mean - target) ** 2 - noise / repeats
    return [
        error,
        noise,
        systematic,
        within,
        repeats,
        repeats * mean,
        repeats * mean**2,
        repeats**2,
    ]


def _estimate_share(flips: Floats, clusters: Clusters | None) -> Estimate:
    """Estimate the share of items that flipped; ``flips`` has 1 or 0 for each item."""
    import numpy as np

    count, number = int(flips.sum()), len(flips)
    if clusters is None:
        low, high = find_interval(count, number)
        return Estimate(value=count / number, of=number, low=low, high=high, method="Wilson")
    codes, groups = clusters
    return estimate_clustered_share(add_up(flips, codes, groups), add_up(np.ones(number), codes, groups))


def _make_units(rows: Floats, clusters: Clusters | None) -> tuple[Floats, str]:
    """Make the units that a bootstrap draws, one row each, and name the bootstrap.

    ``rows`` has a row for each item. A unit is an item or, where items come in groups, the sum of a group's rows. The
    first column of a unit is the number of its items.
    """
    import numpy as np

    items = np.column_stack([np.ones(len(rows)), rows])
    if clusters is None:
        return items, "bootstrap of items"
    codes, groups = clusters
    sums = np.zeros((groups, items.shape[1]))
    np.add.at(sums, codes, items)
    return sums, "bootstrap of groups"


def _estimate_means(rows: Floats, clusters: Clusters | None, seed: int, resamples: int) -> list[Estimate]:
    """Estimate the mean of each column of ``rows``, which has a row for each item, with a bootstrap interval."""
    units, method = _make_units(rows, clusters)

    def compute_means(sums: Floats) -> Floats:  # of each resample: the number of items, then the sum of each column
        return sums[:, 1:] / sums[:, :1]

    resampled = resample(units, compute_means, seed=seed, resamples=resamples)
    return [
        make_estimate(float(mean), len(rows), resampled[:, column], len(units), method, reason="")
        for column, mean in enumerate(rows.mean(axis=0))
    ]


def _estimate_ratios(parts: Floats, clusters: Clusters | None, seed: int, resamples: int) -> list[Estimate]:
    """Estimate the share of noise in the error, and the intraclass correlation, from the rows of ``_divide_error``."""
    import numpy as np

    parts = parts.copy()
    # Scores are moved so that their mean is 0, which changes neither: large scores that are close keep their digits.
    repeats = parts[:, _REPEATS]
    centre = parts[:, _TOTAL].sum() / repeats.sum()
    means = parts[:, _TOTAL] / repeats - centre
    parts[:, _TOTAL], parts[:, _TOTAL_SQUARED] = repeats * means, repeats * means**2
    units, method = _make_units(parts, clusters)

    def measure(sums: Floats) -> Floats:
        """Compute both statistics of each resample, a column each."""
        columns = sums[:, 1:]
        noise_share = divide(columns[:, _NOISE], columns[:, _ERROR], np.nan)
        return np.stack([noise_share, _measure_intraclass(items=sums[:, 0], columns=columns)], axis=1)

    resampled = resample(units, measure, seed=seed, resamples=resamples)
    values = measure(units.sum(axis=0)[None, :])[0]
    reasons = ("no repeat was wrong", "all repeats are equal, or there is one item")
    return [
        make_estimate(float(value), len(parts), resampled[:, column], len(units), method, reason=reason)
        for column, (value, reason) in enumerate(zip(values, reasons, strict=True))
    ]


def _measure_intraclass(*, items: Floats, columns: Floats) -> Floats:
    """Compute the intraclass correlation ICC(1) of each resample, by a one-way analysis of variance.

    A row of ``columns`` has the sums over a resample of the columns of ``_divide_error``; ``items`` are the numbers of
    items in the resamples.
    """
    import numpy as np

    within, repeats = columns[:, _WITHIN], columns[:, _REPEATS]
    between = np.maximum(columns[:, _TOTAL_SQUARED] - divide(columns[:, _TOTAL] ** 2, repeats, 0.0), 0.0)
    # The number of repeats of an item, averaged as is right for items with different numbers.
    repeats_per_item = divide(repeats - divide(columns[:, _REPEATS_SQUARED], repeats, 0.0), items - 1, np.nan)
    mean_square_between = divide(between, items - 1, np.nan)
    mean_square_within = divide(within, repeats - items, np.nan)
    total = mean_square_between + (repeats_per_item - 1) * mean_square_within
    return divide(mean_square_between - mean_square_within, total, np.nan)
