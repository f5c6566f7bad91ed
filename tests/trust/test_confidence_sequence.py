"""A rate that may be looked at after every label, and how many more labels it needs."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.trust import Allocation, LiveRate, compute_live_rate, estimate_more_labels, find_weighted_share

quick = settings(max_examples=40, deadline=None)


def label(seed: int, sizes: list[int], good: list[int], labels: int) -> list[tuple[int, bool]]:
    """The first labels of a run, in a random order of all its cases."""
    cases = [(place, number < good[place]) for place, size in enumerate(sizes) for number in range(size)]
    order = np.random.default_rng(seed).permutation(len(cases))[:labels]
    return [cases[place] for place in order.tolist()]


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, bool]]]:
    """Sizes of strata, and labels of some of their cases."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))
    places = draw(st.permutations([place for place, size in enumerate(sizes) for _ in range(size)]))
    count = draw(st.integers(0, len(places)))
    return sizes, [(place, draw(st.booleans())) for place in places[:count]]


def test_nothing_is_known_without_a_label():
    """The interval of no label is 0 to 1."""
    rate = compute_live_rate([30, 20], [])

    assert (rate.low, rate.high, rate.labels, rate.cases) == (0.0, 1.0, 0, 50)


def test_all_labels_are_the_rate_itself():
    """When every case is labelled, nothing is left to chance, and the interval is the rate."""
    rate = compute_live_rate([3, 2], [(0, True), (0, True), (1, False), (1, True), (0, False)])

    assert (rate.low, rate.value, rate.high) == (0.6, 0.6, 0.6)


@quick
@given(runs())
def test_an_interval_is_never_wider_than_what_is_open(sample: tuple[list[int], list[tuple[int, bool]]]):
    """Cases that are labelled are known: the limits count those without a label as bad or good, at the widest."""
    sizes, draws = sample
    rate = compute_live_rate(sizes, draws)
    good, left = sum(value for _, value in draws), sum(sizes) - len(draws)

    assert good / sum(sizes) - 1e-9 <= rate.low <= rate.high <= (good + left) / sum(sizes) + 1e-9


@pytest.mark.slow
@quick
@given(runs())
def test_good_and_bad_are_alike(sample: tuple[list[int], list[tuple[int, bool]]]):
    """With good and bad exchanged, the interval is mirrored."""
    sizes, draws = sample
    rate = compute_live_rate(sizes, draws)
    other = compute_live_rate(sizes, [(place, not value) for place, value in draws])

    assert (other.low, other.high) == pytest.approx((1 - rate.high, 1 - rate.low), abs=2e-3)


@pytest.mark.parametrize(
    ("sizes", "good"), [([3200], [2040]), ([2000, 1200], [1900, 100]), ([800] * 4, [80, 320, 560, 760])]
)
def test_it_is_little_wider_than_an_interval_for_one_look(sizes: list[int], good: list[int]):
    """At 200 labels, the mean width is at most 1.6 times that of the ordinary interval."""
    ratios = []
    for seed in range(12):
        draws = label(seed, sizes, good, 200)
        rate = compute_live_rate(sizes, draws)
        of = [sum(place == item for item, _ in draws) for place in range(len(sizes))]
        counts = [sum(value for item, value in draws if item == place) for place in range(len(sizes))]
        left = [1 - k / size for k, size in zip(of, sizes, strict=True)]
        once = find_weighted_share(counts, of, [size / sum(sizes) for size in sizes], unlabelled=left)
        ratios.append((rate.high - rate.low) / (once.high - once.low))
        assert rate.value == pytest.approx(once.value)

    assert 1 < float(np.mean(ratios)) <= 1.6


def test_a_good_judge_narrows_it():
    """The judge's verdict as strata gives a narrower interval from the same labels, if it knows something."""
    draws = label(1, [2000, 1200], [1960, 60], 200)
    judged = compute_live_rate([2000, 1200], draws)
    alone = compute_live_rate([3200], [(0, good) for _, good in draws])

    assert judged.half_width < 0.6 * alone.half_width


def test_open_cases_count_both_ways():
    """A case that nobody can tell is bad in the lower limit and good in the upper one."""
    draws = label(2, [300, 200], [270, 30], 100)
    unsure = [(place, None if number % 10 == 0 else good) for number, (place, good) in enumerate(draws)]
    rate = compute_live_rate([300, 200], unsure)

    assert rate.open == 10
    assert rate.low == compute_live_rate([300, 200], [(place, good is True) for place, good in unsure]).low
    assert rate.high == compute_live_rate([300, 200], [(place, good is not False) for place, good in unsure]).high


def test_a_planned_allocation_narrows_it():
    """Labels that are not drawn in proportion give a narrower interval when the bets know how they are drawn."""
    sizes = [1600, 400]
    random = np.random.default_rng(5)
    places = (random.random(300) < 0.5).astype(int).tolist()
    draws = [(place, bool(random.random() < (0.97, 0.5)[place])) for place in places]
    planned = compute_live_rate(sizes, draws, allocations=[Allocation(first=0, shares=(0.5, 0.5))])

    assert planned.half_width < compute_live_rate(sizes, draws).half_width


@pytest.mark.full
@pytest.mark.slow
def test_how_many_more_is_told_within_a_quarter():
    """The estimate after 100 labels is, in the median, within a quarter of what it takes to be within 5 points."""
    sizes, good = [2000, 1200], [1900, 100]
    off = []
    for seed in range(9):
        draws = label(seed, sizes, good, 600)
        more = estimate_more_labels(compute_live_rate(sizes, draws[:100]), within=0.05)
        taken = next(n for n in range(100, 600, 5) if compute_live_rate(sizes, draws[:n]).half_width <= 0.05)
        assert more is not None
        off.append((100 + more) / taken)

    assert 0.75 <= float(np.median(off)) <= 1.25


@pytest.mark.full
@pytest.mark.slow
def test_single_cases_of_groups_are_a_random_sample_of_the_run():
    """The truth may be the same in a whole group: cases that are drawn one by one still hold for this run.

    Whole groups, taken for single cases, do not: their labels repeat each other.
    """
    chance = random.Random(3)
    groups = [[chance.random() < 0.7] * 8 for _ in range(100)]
    cases = [good for group in groups for good in group]
    rate, runs, single, whole = sum(cases) / len(cases), 60, 0, 0
    for _ in range(runs):
        drawn = chance.sample(cases, 160)
        together = [good for group in chance.sample(groups, 20) for good in group]
        for labels in (40, 160):
            rate_of_sample = compute_live_rate([len(cases)], [(0, good) for good in drawn[:labels]])
            single += rate_of_sample.low <= rate <= rate_of_sample.high
            rate_of_sample = compute_live_rate([len(cases)], [(0, good) for good in together[:labels]])
            whole += rate_of_sample.low <= rate <= rate_of_sample.high

    assert single >= 0.95 * 2 * runs
    assert whole < 0.85 * 2 * runs


def make_rate(**changed: float) -> LiveRate:
    """An interval of 40 points after 100 labels of 1,000 cases."""
    known = {"value": 0.5, "low": 0.3, "high": 0.7, "level": 0.95, "labels": 100, "open": 0, "cases": 1000}
    return LiveRate(**(known | changed))


def test_enough_is_zero_more():
    """An interval that is narrow enough needs no label, and one of too few labels says nothing."""
    assert estimate_more_labels(make_rate(), within=0.2) == 0
    assert estimate_more_labels(make_rate(labels=9), within=0.1) is None
    assert estimate_more_labels(make_rate(), within=0.0001) == 900


def test_open_cases_can_make_enough_impossible():
    """Where open cases alone keep the interval wider, no number of labels will do."""
    assert estimate_more_labels(make_rate(open=60), within=0.03) is None


@pytest.mark.parametrize(
    ("sizes", "draws", "named"),
    [
        ([], [], "stratum"),
        ([0], [], "0"),
        ([5], [(1, True)], "1"),
        ([5], [(0, 1)], "1"),
        ([1], [(0, True), (0, True)], "2 labels"),
    ],
)
def test_numbers_of_no_run_are_refused(sizes: list[int], draws: list[tuple[int, bool]], named: str):
    """Strata without cases, labels of no stratum, values that are none, and more labels than cases."""
    with pytest.raises(UsageError, match=named):
        compute_live_rate(sizes, draws)


@pytest.mark.parametrize("shares", [(0.5,), (0.5, 0.6), (-0.5, 1.5), (float("nan"), 1.0)])
def test_shares_that_are_none_are_refused(shares: tuple[float, ...]):
    """An allocation has a share of 0 or more for each stratum, and they add up to 1."""
    with pytest.raises(UsageError, match="shares"):
        compute_live_rate([5, 5], [], allocations=[Allocation(first=0, shares=shares)])


@pytest.mark.parametrize("level", [0, 1, float("nan"), True])
def test_a_level_is_between_0_and_1(level: float):
    """A level of 1 would need an endless fortune."""
    with pytest.raises(UsageError, match="level"):
        compute_live_rate([5], [], level=level)


def test_it_is_plain_data():
    """A rate says what it is, how it was made and for what."""
    document = compute_live_rate([3], [(0, True)]).to_dict()

    assert document["schema"] == "adjudge/live-rate/1"
    assert (document["target"], document["labels"], document["cases"]) == ("run", 1, 3)
