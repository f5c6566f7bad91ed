"""The design effect of items in groups, as the formula has it."""

from __future__ import annotations

import pytest

from adjudge.trust.intervals import compute_design_effect

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
