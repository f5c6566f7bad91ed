"""The limits of a certificate's shares: what they hold for, however often somebody looks."""

from __future__ import annotations

import random
from functools import cache

import pytest

from adjudge.measurement.certification import certify_share
from adjudge.trust.intervals import LEVEL, Estimate, find_interval

pytest.importorskip("scipy", reason="measuring needs the extra trust")


@cache
def find_limits(right: int, labels: int, *, every: bool) -> tuple[float, float]:
    low, high = find_interval(right, labels)
    share = certify_share(Estimate(value=right / labels, of=labels, low=low, high=high), LEVEL if every else None)
    assert share is not None
    assert share.low is not None
    assert share.high is not None
    return share.low, share.high


def test_limits_for_every_look_hold_for_somebody_who_looks_until_they_suit():
    """Of a judge that only just meets the bar; the limits for one look are reached by it far too often."""
    rng, bar, draws = random.Random(20261128), 0.8, 300
    reached = {True: 0, False: 0}
    for _ in range(draws):
        right, found = 0, {True: False, False: False}
        for labels in range(1, 151):
            right += rng.random() < bar
            if labels >= 10 and labels % 5 == 0:
                for every in (True, False):
                    found[every] |= find_limits(right, labels, every=every)[0] >= bar
        for every in (True, False):
            reached[every] += found[every]

    assert reached[True] <= 0.05 * draws < reached[False]


@pytest.mark.parametrize(("right", "labels"), [(0, 20), (1, 20), (10, 20), (19, 20), (20, 20), (1, 1)])
def test_limits_for_every_look_are_wider_and_stay_shares(right: int, labels: int):
    """Also of nothing and of everything, where one limit is the share itself."""
    (low, high), (wide_low, wide_high) = (find_limits(right, labels, every=every) for every in (False, True))

    assert 0 <= wide_low <= low <= right / labels <= high <= wide_high <= 1
    assert wide_high - wide_low > high - low


def test_a_share_without_limits_has_none():
    """As of labels in too few groups; and what no label is about is not certified."""
    share = certify_share(Estimate(value=0.5, of=8), LEVEL)

    assert share is not None
    assert (share.low, share.high) == (None, None)
    assert certify_share(Estimate(value=None, of=0), None) is None
