"""The design effect of items in groups, and the part of a sum of two totals, as the formulas have them."""

from __future__ import annotations

import itertools
import math

import pytest

from adjudge.trust.intervals import WeightedShare, compute_design_effect, find_part_of_sum

np = pytest.importorskip("numpy")


@pytest.mark.parametrize(
    ("ratio", "groups", "effect"),
    [
        (0.5, 20, (19 * 0.5 + 3 * 2) / 22),  # three groups more, whose items are all alike
        (0.25, 8, (7 * 0.25 + 3 * 2) / 10),  # as few as are enough to believe it
        (0.25, 7, 1.0),  # too few
        (0.9, 20, 1.0),  # with the three it is no longer below 1
        (1.0, 20, 1.0),
        (1.5, 20, 1.5),  # one above 1 is taken as it is, however few show it
        (1.5, 2, 1.5),
        (0.0, 20, 1.0),  # nothing varies, which shows nothing
    ],
)
def test_an_effect_below_1_is_used_as_far_as_the_groups_show_it(ratio: float, groups: int, effect: float):
    """Groups that differ by as much each, of items that come alike in twos."""
    measured = compute_design_effect(np.asarray(ratio), np.ones(groups), np.asarray(2.0))

    assert float(measured) == pytest.approx(effect)


def test_no_item_counts_as_more_than_20():
    """Many groups that hardly differ would otherwise let a few labels stand for a census."""
    measured = compute_design_effect(np.asarray(0.001), np.ones(10_000), np.asarray(1.0))

    assert float(measured) == pytest.approx(0.05)


def find_ratio(first: WeightedShare, second: WeightedShare) -> tuple[float, float]:
    """Newcombe's closed form of the limits of a ratio (MOVER-R)."""
    (one, low, high), (two, under, over) = ((each.value, each.low, each.high) for each in (first, second))
    product, lower, upper = one * two, low * (2 * one - low), high * (2 * one - high)
    below, above = over * (2 * two - over), under * (2 * two - under)
    return (
        (product - math.sqrt(product**2 - lower * below)) / below,
        (product + math.sqrt(product**2 - upper * above)) / above,
    )


def test_a_part_of_a_sum_has_the_limits_of_the_ratio_to_the_rest():
    """Those that the closed form gives, as shares."""
    part, rest = WeightedShare(value=12, low=6, high=21), WeightedShare(value=30, low=22, high=39)
    found = find_part_of_sum(part, rest)
    low, high = find_ratio(part, rest)

    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((12 / 42, low / (1 + low), high / (1 + high)))


def test_a_part_of_a_sum_is_between_nothing_and_all():
    """Of nothing there is no part; totals that are counted give a share that is."""
    nothing, some = WeightedShare(value=0, low=0, high=3), WeightedShare(value=5, low=2, high=9)
    none = WeightedShare(value=0, low=0, high=0)
    low, high = find_part_of_sum(nothing, some), find_part_of_sum(some, nothing)

    assert find_part_of_sum(none, none) is None
    assert low is not None
    assert high is not None
    assert (low.value, low.low, high.value, high.high) == (0, 0, 1, 1)
    assert 0 < low.high < 1
    assert low.high == pytest.approx(1 - high.low)
    assert find_part_of_sum(
        WeightedShare(value=1, low=1, high=1), WeightedShare(value=3, low=3, high=3)
    ) == WeightedShare(value=0.25, low=0.25, high=0.25)


def test_a_part_of_a_sum_has_no_width_only_if_it_is_counted():
    """Both totals are known, or one is known to be nothing: over totals with limits on both sides, one or none."""
    shapes = [(1.0, 1.0), (0.5, 1.0), (1.0, 2.0), (0.3, 4.0)]  # the limits, as parts of the value
    totals = [
        WeightedShare(value=value, low=low * value, high=high * value) for value in (1, 7, 400) for low, high in shapes
    ]
    totals += [WeightedShare(value=0, low=0, high=high) for high in (0, 1e-9, 3, 500)]
    for part, rest in itertools.product(totals, totals):
        found = find_part_of_sum(part, rest)
        is_counted = (part.low == part.high and rest.low == rest.high) or part.high == 0 or rest.high == 0
        if found is not None:
            assert (found.low == found.high) == is_counted, (part, rest, found)
            assert 0 <= found.low <= found.value <= found.high <= 1
