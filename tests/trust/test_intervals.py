"""Intervals for shares and for weighted sums of shares, compared with what statsmodels computes."""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.trust import IntervalMethod, WeightedShare, find_interval, find_limits, find_weighted_share
from kit.environment import require

pytest.importorskip("scipy")

METHODS: tuple[IntervalMethod, ...] = ("wilson", "jeffreys", "exact")
ORACLE = {"wilson": "wilson", "jeffreys": "jeffreys", "exact": "beta"}
heaps = st.lists(
    st.tuples(st.integers(1, 300), st.floats(0, 1), st.integers(1, 1000)).map(
        lambda item: (round(item[0] * item[1]), item[0], item[2])
    ),
    min_size=1,
    max_size=6,
)
"""How many were counted, of how many, and how large the heap is."""


def combine(heaps: list[tuple[int, int, int]], **options) -> WeightedShare:
    """The weighted share of heaps."""
    whole = sum(size for _, _, size in heaps)
    return find_weighted_share(
        [count for count, _, _ in heaps], [of for _, of, _ in heaps], [size / whole for _, _, size in heaps], **options
    )


@pytest.mark.parametrize("method", METHODS)
@given(of=st.integers(1, 10**7), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]))
@pytest.mark.slow_table
def test_intervals_are_those_of_statsmodels(method: IntervalMethod, of: int, share: float, level: float):
    """Wilson, Jeffreys and exact limits agree to 1e-9, none and all included."""
    require("statsmodels", find_spec("statsmodels"), "pip install statsmodels")
    from statsmodels.stats.proportion import proportion_confint

    for count in {round(share * of), 0, of, 1, of - 1}:
        expected = proportion_confint(count, of, alpha=1 - level, method=ORACLE[method])
        assert find_interval(count, of, level, method=method) == pytest.approx(expected, abs=1e-9)


@given(of=st.integers(1, 10**6), share=st.floats(0, 1), level=st.floats(0.5, 0.999))
def test_intervals_are_those_of_scipy(of: int, share: float, level: float):
    """Wilson and Clopper-Pearson as the binomial test has them, Jeffreys as quantiles of a beta distribution."""
    from scipy.stats import beta, binomtest

    for count in {round(share * of), 0, of}:
        test = binomtest(count, of)
        for method, name in (("wilson", "wilson"), ("exact", "exact")):
            expected = test.proportion_ci(level, method=name)
            assert find_interval(count, of, level, method=method) == pytest.approx(tuple(expected), abs=1e-9)
        quantiles = beta.ppf([(1 - level) / 2, (1 + level) / 2], count + 0.5, of - count + 0.5)
        assert find_interval(count, of, level, method="jeffreys") == pytest.approx(tuple(quantiles), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@given(of=st.integers(1, 200), share=st.floats(0, 1))
def test_many_shares_at_once_are_each_alone(method: IntervalMethod, of: int, share: float):
    """Arrays of counts give what each count gives; a share of nothing may be anything from 0 to 1."""
    count = round(share * of)
    low, high = find_limits([[count, 0], [of, 0]], [[of, 0], [of, of]], method=method)

    assert (low[0, 0], high[0, 0]) == pytest.approx(find_interval(count, of, method=method), abs=1e-12)
    assert (low[1, 1], high[1, 1]) == pytest.approx(find_interval(0, of, method=method), abs=1e-12)
    assert (low[0, 1], high[0, 1]) == (0.0, 1.0)


def test_a_weighted_share_is_what_zou_and_donner_write():
    """The distances of the two Wilson limits are combined by the root of the sum of their squares."""
    share = find_weighted_share([47, 3], [50, 50], [0.6, 0.4])
    (low_a, high_a), (low_b, high_b) = find_interval(47, 50), find_interval(3, 50)

    assert share.value == pytest.approx(0.6 * 0.94 + 0.4 * 0.06)
    assert share.low == pytest.approx(share.value - math.hypot(0.6 * (0.94 - low_a), 0.4 * (0.06 - low_b)))
    assert share.high == pytest.approx(share.value + math.hypot(0.6 * (high_a - 0.94), 0.4 * (high_b - 0.06)))
    assert share.to_dict() == {"value": share.value, "low": share.low, "high": share.high}


@given(of=st.floats(1, 10**6), share=st.floats(0, 1), level=st.floats(0.5, 0.999))
def test_one_wilson_interval_serves_all(of: float, share: float, level: float):
    """A share alone, many at once, and of groups (whose counts are not whole) have the same limits, to the last bit."""
    low, high = find_limits([share * of], [of], level=level)

    assert find_interval(share * of, of, level) == (float(low[0]), float(high[0]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 10**3, 10**6, 10**9])
def test_the_largest_counts_have_limits_on_both_sides(method: IntervalMethod, size: int):
    """No limit is NaN, whether nothing, one or all were counted; more than a billion is refused and not guessed."""
    for count in (0, 1, size // 2, size - 1, size):
        low, high = find_interval(count, size, method=method)
        assert 0 <= low <= high <= 1
    with pytest.raises(UsageError, match="1,000,000,000"):
        find_interval(1, 10**9 + 1, method=method)


@pytest.mark.parametrize("method", METHODS)
@given(of=st.integers(1, 300), share=st.floats(0, 1))
def test_one_heap_is_its_own_interval(method: IntervalMethod, of: int, share: float):
    """With one heap of weight 1 nothing is combined; Jeffreys' limits are moved to hold the share."""
    count = round(share * of)
    weighted, (low, high) = (
        find_weighted_share([count], [of], [1], method=method),
        find_interval(count, of, method=method),
    )

    expected = (count / of, min(low, count / of), max(high, count / of))
    assert (weighted.value, weighted.low, weighted.high) == pytest.approx(expected, abs=1e-12)


@given(rows=heaps, data=st.data())
def test_a_weighted_share_stays_in_range_and_mirrors(rows: list[tuple[int, int, int]], data: st.DataObject):
    """It is in its interval, in 0 to 1; turned round it is that of the others; the order of heaps is nothing."""
    method = data.draw(st.sampled_from(METHODS))
    plain = combine(rows, method=method)
    turned = combine([(of - count, of, size) for count, of, size in rows], method=method)
    moved = combine(data.draw(st.permutations(rows)), method=method)

    assert 0 <= plain.low <= plain.value + 1e-12
    assert plain.value - 1e-12 <= plain.high <= 1
    assert (1 - turned.high, 1 - turned.low) == pytest.approx((plain.low, plain.high), abs=1e-9)
    assert moved.to_dict() == pytest.approx(plain.to_dict(), abs=1e-9)


@given(rows=heaps)
def test_what_is_labelled_completely_is_known(rows: list[tuple[int, int, int]]):
    """The less of the heaps is left, the narrower; with nothing left, the value is exact."""
    widths = []
    for left in (0.0, 0.3, 1.0):
        item = combine(rows, unlabelled=[left] * len(rows))
        widths.append(item.high - item.low)

    assert widths[0] == pytest.approx(0, abs=1e-12)
    assert widths == sorted(widths)


def test_a_heap_without_labels_may_be_anything():
    """Its share is taken as 0.5 from 0 to 1, and several of them are not taken to average out."""
    assert find_weighted_share([0, 0], [0, 0], [0.7, 0.3]) == WeightedShare(value=0.5, low=0.0, high=1.0)
    known = find_weighted_share([10, 0, 0], [10, 0, 0], [0.6, 0.2, 0.2], unlabelled=[0, 1, 1])
    assert (known.value, known.low, known.high) == pytest.approx((0.8, 0.6, 1.0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("count", "of", "level"),
    [
        (1, 0, 0.95),
        (0, 0, 0.95),
        (-1, 5, 0.95),
        (6, 5, 0.95),
        (math.nan, 5, 0.95),
        (1, math.inf, 0.95),
        (1, 5, 1),
        (1, 5, 0),
        (1, 5, math.nan),
        (1, 5, 1 - 1e-16),
        (1, 5, "0.95"),
        ("1", 5, None),
        (None, 5, 0.95),
        (1, 10**400, 0.95),
        (0, 1e-300, 0.95),
    ],
)
def test_what_is_no_share_is_refused(method: IntervalMethod, count: float, of: float, level: float):
    """The complaint names the count or the level; a share of 0 of 0 has no interval that statsmodels would give."""
    with pytest.raises(UsageError, match="count"):
        find_interval(count, of, level, method=method)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: find_limits([2], [1]), "counts"),
        (lambda: find_limits([1], [math.inf]), "counts from 0"),
        (lambda: find_limits([1], [2], level=0), "level"),
        (lambda: find_limits([1], [2], method="wald"), "wald.*wilson"),
        (lambda: find_weighted_share([], [], []), "at least one"),
        (lambda: find_weighted_share([1], [2], [0.5, 0.5]), "as many"),
        (lambda: find_weighted_share([1, 1], [2, 2], [1, -1]), "weights.*-1"),
        (lambda: find_weighted_share([1], [2], [1], unlabelled=[1.5]), "unlabelled"),
        (lambda: find_weighted_share([1], [2], [math.nan]), "weights.*nan"),
    ],
)
def test_other_numbers_are_refused(call, named: str):
    """The complaint says what was wrong, and what would do."""
    with pytest.raises(UsageError, match=named):
        call()


def test_without_the_extra_the_call_says_what_to_install(monkeypatch):
    """Wilson's interval of one share needs nothing; the others name ``adjudge[trust]``."""
    monkeypatch.setitem(sys.modules, "scipy", None)

    assert find_interval(1, 4) == pytest.approx((0.0456, 0.6994), abs=1e-4)
    with pytest.raises(UsageError, match=r"scipy.*adjudge\[trust\]"):
        find_interval(1, 4, method="exact")
    with pytest.raises(UsageError, match=r"scipy.*adjudge\[trust\]"):
        find_weighted_share([1], [2], [1])
