"""Correlation of scores with people's: over all items, and averaged over groups."""

from __future__ import annotations

import json
import random

import pytest

from adjudge.errors import UsageError
from adjudge.trust import compute_kendall, compute_pearson, compute_spearman, make_correlation
from kit.oracles import is_near, need_statistics


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def draw_scores(groups: int, size: int = 6, seed: int = 1) -> tuple[list[float], list[float], list[str]]:
    """Scores of answers to questions; the questions differ, and so do the answers to one."""
    chance = random.Random(seed)
    judged, truth, names = [], [], []
    for group in range(groups):
        hard = chance.gauss(0, 2)
        for _ in range(size):
            good = chance.gauss(0, 1)
            truth.append(hard + good)
            judged.append(hard + good + chance.gauss(0, 1))
            names.append(f"question {group}")
    return judged, truth, names


def test_scores_correlate_over_items_and_within_groups():
    """Hard questions score low with everybody, so the correlation over all items is the higher one."""
    correlation = make_correlation(*draw_scores(40)[:2], groups=draw_scores(40)[2], resamples=200)

    assert correlation.per_item.pearson.value > correlation.over_groups.pearson.value > 0.5
    assert (correlation.groups_used, correlation.groups_left_out) == (40, 0)
    for coefficients in (correlation.per_item, correlation.over_groups):
        for estimate in (coefficients.pearson, coefficients.spearman, coefficients.kendall):
            assert estimate.low < estimate.value < estimate.high
    json.dumps(correlation.to_dict(), allow_nan=False)


def test_the_mean_over_groups_is_that_of_their_coefficients():
    """Groups with one distinct value on a side have no correlation: they are left out and counted."""
    judged = [1, 2, 3, 1, 2, 3, 5, 5, 5, 1, 2, 3]
    truth = [1, 2, 3, 1, 3, 2, 1, 2, 3, 4, 4, 4]
    correlation = make_correlation(judged, truth, groups=list("aaabbbcccddd"), resamples=100)

    assert (correlation.groups_used, correlation.groups_left_out) == (2, 2)
    assert is_near(correlation.over_groups.kendall.value, (1 + 1 / 3) / 2)
    assert is_near(correlation.over_groups.spearman.value, (1 + 0.5) / 2)


def test_groups_widen_the_interval():
    """Four copies of each item are no new information."""
    judged, truth, _ = draw_scores(50, 1)
    single = make_correlation(judged, truth).per_item.kendall
    copies = make_correlation(judged * 4, truth * 4, groups=list(range(50)) * 4, resamples=300).per_item.kendall
    naive = make_correlation(judged * 4, truth * 4).per_item.kendall

    assert 0.8 < (copies.high - copies.low) / (single.high - single.low) < 1.25
    assert naive.high - naive.low < 0.6 * (copies.high - copies.low)


def test_missing_scores_are_left_out_and_counted():
    """A judge that gave no score, and people that gave none."""
    correlation = make_correlation([1, None, 3, 4, 5], [1, 2, None, 3, 5])

    assert (correlation.items, correlation.left_out) == (3, 2)
    assert correlation.per_item.pearson.value == compute_pearson([1, 4, 5], [1, 3, 5])


@pytest.mark.parametrize("compute", [compute_pearson, compute_spearman, compute_kendall])
@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ([1], [2], "at least 2 items"),
        ([], [], "at least 2 items"),
        ([1, 2], [1], "1 values"),
        ([1, 1, 1], [1, 2, 3], "not defined"),
        ([0.1 + 0.2, 0.3], [1, 2], "not defined"),
        ([1, float("nan")], [1, 2], "nan"),
        ([1, "2"], [1, 2], "'2'"),
    ],
)
def test_what_has_no_correlation_is_refused(compute, one, other, named):
    """Also where values differ by rounding alone: ranks would make the most of it."""
    with pytest.raises(UsageError, match=named):
        compute(one, other)


def test_a_perfect_correlation_has_no_interval():
    """Fisher's transform of 1 is infinite."""
    estimate = make_correlation([1, 2, 3, 4, 5], [2, 4, 6, 8, 10]).per_item.pearson

    assert estimate.value == pytest.approx(1.0)
    assert estimate.interval is None
    assert "differ" in estimate.note


def test_few_items_have_no_interval():
    """With three items the variance of Fisher's transform is infinite."""
    assert make_correlation([1, 2, 3], [1, 3, 2]).per_item.spearman.interval is None
    assert make_correlation([1, 2, 3, 4, 5], [1, 3, 2, 5, 4]).per_item.spearman.interval is not None


def test_groups_without_a_correlation_have_no_mean():
    """Each document with one item: nothing varies within any."""
    correlation = make_correlation([1, 2, 3], [1, 3, 2], groups=["a", "b", "c"], resamples=100)

    assert correlation.over_groups.pearson.value is None
    assert correlation.groups_left_out == 3
