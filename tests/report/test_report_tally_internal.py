"""Percentiles, bars and counts of a report."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.report.spread import ScoreTally, TimeTally, find_bin


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_percentiles_of_scores_are_those_of_nearest_rank(scores: list[float]):
    """To a thousandth; the ends and the mean are exact, and every score is in one bar."""
    tally = ScoreTally()
    for score in scores:
        tally.add(score)
    spread = tally.finish()
    ranked = sorted(scores)

    assert spread is not None
    assert (spread.lowest, spread.highest, sum(spread.bins)) == (ranked[0], ranked[-1], len(scores))
    assert spread.mean == pytest.approx(statistics.fmean(scores))
    for name, share in (("p5", 0.05), ("median", 0.5), ("p95", 0.95)):
        assert getattr(spread, name) == pytest.approx(ranked[math.ceil(share * len(ranked)) - 1], abs=0.00051)


@given(st.lists(st.floats(0.01, 1e7), min_size=1, max_size=60))
def test_percentiles_of_durations_are_within_one_per_cent(durations: list[float]):
    """From a hundredth of a millisecond to hours, in memory that does not grow."""
    tally = TimeTally()
    for duration in durations:
        tally.add(duration)
    spread = tally.finish()
    ranked = sorted(durations)

    assert spread is not None
    assert spread.median == pytest.approx(ranked[math.ceil(0.5 * len(ranked)) - 1], rel=0.011)
    assert spread.lowest <= spread.p5 <= spread.median <= spread.p99 <= spread.highest


def test_bars_begin_at_their_lower_end():
    """A score on the edge belongs to the bar above, whatever binary makes of it; 1 is in the last."""
    assert [find_bin(n / 20) for n in range(21)] == [*range(20), 19]


def test_a_result_file_may_hold_any_duration():
    """NaN and infinity are in files too, and count as no time; nothing at all has no spread."""
    tally = TimeTally()
    for duration in (math.nan, math.inf, -1.0):
        tally.add(duration)
    spread = tally.finish()

    assert spread is not None
    assert (spread.lowest, spread.highest, spread.mean) == (0, 0, 0)
    assert ScoreTally().finish() is None
