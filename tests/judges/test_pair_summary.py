"""Many comparisons summed up: win rate, flips, favourite places, agreement with people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.trust import Share, find_interval


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_wilsons(count: int, of: int, low: float, high: float):
    """The worked examples of Newcombe (1998), table I, method 3, to their four decimals."""
    assert find_interval(count, of) == pytest.approx((low, high), abs=5e-5)


@given(of=st.integers(1, 500), data=st.data())
def test_an_interval_holds_the_rate_and_mirrors(of: int, data: st.DataObject):
    """It stays in 0 to 1, holds what was seen, and that of the losses is that of the wins turned round."""
    count = data.draw(st.integers(0, 2 * of)) / 2
    low, high = find_interval(count, of)
    mirrored = find_interval(of - count, of)

    assert 0 <= low <= count / of <= high <= 1
    assert (1 - high, 1 - low) == pytest.approx(mirrored)
    assert find_interval(count * 2, of * 2)[0] >= low


@pytest.mark.parametrize(("count", "of"), [(1, 0), (-1, 5), (6, 5), (float("nan"), 5)])
def test_an_interval_of_nothing_is_refused(count: float, of: int):
    """There is no share of nothing; a ``Share`` of nothing has neither rate nor interval."""
    with pytest.raises(UsageError):
        find_interval(count, of)
    assert (Share(count=0, of=0).rate, Share(count=0, of=0).interval) == (None, None)
