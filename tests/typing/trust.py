"""The statistics of adjudge.trust as a type checker sees them. Checked by ./scripts/lint, never run."""

from __future__ import annotations

from typing import Any, assert_type

from adjudge.trust import (
    CorrectedRate,
    GroupCounts,
    Heap,
    PairedCounts,
    RateDifference,
    Refusal,
    Share,
    WeightedShare,
    compute_sample_p_value,
    count_groups,
    estimate_labels_of_difference,
    estimate_labels_of_judges,
    find_interval,
    find_limits,
    find_stratified_difference,
    find_weighted_share,
    find_worth,
    make_corrected_rate,
    make_internal_rate,
    make_rate_difference,
)


def estimate() -> None:
    """Intervals, and rates that may be refused."""
    assert_type(find_interval(3, 10, method="exact"), tuple[float, float])
    find_interval(3, 10, method="wald")  # pyrefly: ignore[bad-argument-type]
    find_limits([1, 2], [3, 4], level=0.9, method="jeffreys")
    assert_type(find_weighted_share([1], [2], [1.0], unlabelled=[0.5]), WeightedShare)
    heaps = [Heap(verdict="passed", cases=10, good=3, bad=1), Heap(verdict="undecided", cases=1, stratum="a")]
    groups = count_groups(["a", "a"], [0, 0], [True, None], columns=2)
    assert_type(groups, GroupCounts)
    assert_type(compute_sample_p_value(heaps, groups=groups), float)
    rate = make_corrected_rate(heaps, sampled=True, recorded=False, groups=groups, target="system")
    assert_type(rate, CorrectedRate | Refusal)
    make_internal_rate(heaps, method="exact")
    make_internal_rate(heaps, target="world")  # pyrefly: ignore[bad-argument-type]
    assert_type(find_worth(0.5, 0.1, cases=1000), int)
    assert_type(make_rate_difference([0, 1, -1], {0: (0, 0), 1: (1, 1)}), RateDifference)
    assert_type(estimate_labels_of_difference(100, expect=0.8, within=0.05), int)
    assert_type(estimate_labels_of_difference(100, expect=0.8, within=0.05, pairs=True), int)
    assert_type(estimate_labels_of_judges(100, disagreement=0.2, within=0.05), int)
    counts = [PairedCounts(size=10, of=4, gained=1, lost=0)]
    assert_type(find_stratified_difference(counts), tuple[float, float, float])


def read(rate: CorrectedRate, refusal: Refusal) -> None:
    """What a report branches on has a closed type."""
    assert_type(rate.interval, tuple[float, float])
    assert_type(rate.bounds, tuple[float, float] | None)
    assert_type(rate.naive, Share)
    assert_type(rate.to_dict(), dict[str, Any])
    assert_type(refusal.naive, Share | None)
    rate.value = 1.0  # pyrefly: ignore[read-only]
