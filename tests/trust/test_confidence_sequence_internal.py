"""The bets behind the live interval: what makes them fair, and what makes the limits those of all nulls together."""

from __future__ import annotations

import math
from itertools import permutations, product

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

import numpy as np

from adjudge.trust.confidence_sequence import APART, Allocation, Fortune, compute_live_rate


def make_draws(random: np.random.Generator, sizes: list[int], good: list[int], labels: int) -> list[tuple[int, bool]]:
    """Labels of a run in a random order."""
    cases = [(place, number < good[place]) for place, size in enumerate(sizes) for number in range(size)]
    return [cases[place] for place in random.permutation(len(cases))[:labels].tolist()]


@pytest.mark.parametrize("allocations", [[], [Allocation(first=0, shares=(0.2, 0.8))]])
def test_a_fortune_is_fair_under_the_truth(allocations: list[Allocation]):
    """Over every order of a small run, the mean of what 1 becomes is at most 1, and less by the part apart alone.

    That part also bets on labels which the null rules out, and loses those bets.
    """
    cases = [(0, True), (0, True), (0, False), (1, True), (1, False), (1, False)]
    fortunes = [np.exp(Fortune([3, 3], list(order), allocations).trace([2, 1])) for order in permutations(cases)]
    mean = np.mean(fortunes, axis=0)

    assert mean.max() <= 1 + 1e-9
    assert mean.min() >= 1 - APART - 1e-9


def test_strata_may_alternate_by_what_was_seen():
    """Which stratum comes next may depend on earlier labels: here the second after a good label, else the first."""
    total = 0.0
    for first, second in product(sorted(set(permutations([1, 1, 0]))), sorted(set(permutations([1, 0, 0])))):
        heaps, draws, place = [list(first), list(second)], [], 0
        while len(draws) < 4:
            place = place if heaps[place] else 1 - place
            draws.append((place, bool(heaps[place].pop())))
            place = int(draws[-1][1])
        total += math.exp(Fortune([3, 3], draws).trace([2, 1])[-1]) / 9

    assert 1 - APART - 1e-9 <= total <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_limits_are_those_of_all_nulls_that_are_not_excluded(seed: int):
    """Every pair of counts is tried: none that is kept is outside the limits, and the limits are no wider by a case."""
    random, sizes = np.random.default_rng(seed), [60, 40]
    draws = make_draws(random, sizes, [50, 10], 30 + 10 * seed)
    fortune = Fortune(sizes, draws)
    low, high = fortune.known_good.astype(int), (fortune.known_good + fortune.room).astype(int)
    nulls = product(*(range(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)))
    kept = [sum(null) / 100 for null in nulls if fortune.measure(np.array(null, dtype=float))[0] < fortune.limit]
    rate = compute_live_rate(sizes, draws)

    assert rate.low <= min(kept) < rate.low + 0.02
    assert rate.high - 0.02 < max(kept) <= rate.high


@pytest.mark.parametrize(
    ("sizes", "good"), [([400], [240]), ([250, 150], [235, 15]), ([300, 30], [285, 15]), ([100] * 4, [5, 40, 70, 98])]
)
def test_the_truth_is_inside_at_every_moment(sizes: list[int], good: list[int]):
    """Of 250 runs labelled to the end, at least 91 % keep the true rate all the way: 95 % less three errors of it."""
    random = np.random.default_rng(20261122)
    kept = 0
    for _ in range(250):
        fortune = Fortune(sizes, make_draws(random, sizes, good, 250))
        kept += bool((fortune.trace(good) < fortune.limit).all())

    assert kept / 250 >= 0.91
