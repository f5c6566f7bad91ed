"""A test of a promised share that may be looked at after every label: false alarms, and how soon a broken one shows."""

from __future__ import annotations

import itertools
import random
from statistics import median

import pytest

from adjudge.trust import ShareTest


def bet(promise: float, labels: list[bool]) -> ShareTest:
    test = ShareTest(promise=promise)
    for is_bad in labels:
        test = test.add(is_bad=is_bad)
    return test


@pytest.mark.parametrize("promise", [0.05, 0.1, 0.5])
def test_nobody_can_expect_to_win_where_the_promise_is_just_kept(promise: float):
    """The expected wealth is 1 after any number of labels; computed over all sequences of ten."""
    sequences = itertools.product([False, True], repeat=10)
    expected = sum(
        bet(promise, list(labels)).wealth * promise ** sum(labels) * (1 - promise) ** (10 - sum(labels))
        for labels in sequences
    )

    assert expected == pytest.approx(1.0)


@pytest.mark.parametrize("promise", [0.01, 0.1, 0.9])
def test_wealth_is_never_negative(promise: float):
    """So that Ville's inequality holds: no bettor can lose more than there is."""
    assert bet(promise, [False] * 3_000).wealth > 0
    assert min(bet(promise, [False, True] * 100).wealths) >= 0


def test_what_was_shown_once_stays_shown():
    """Good labels after an alarm do not take it back."""
    test = bet(0.1, [True] * 10 + [False] * 2_000)

    assert test.wealth < 1
    assert test.is_broken(0.95)
    assert not bet(0.1, [False] * 2_000).is_broken(0.95)


def find_alarm(rng: random.Random, share: float, *, most: int, after_good: int = 0) -> int:
    test = bet(0.1, [False] * after_good)
    for number in range(1, most + 1):
        test = test.add(is_bad=rng.random() < share)
        if test.is_broken(0.95):
            return number
    return most + 1


def test_a_broken_promise_is_found_soon_and_a_kept_one_seldom_doubted():
    """In a small simulation; ``research/monitor.py`` makes the table of the docs with a large one."""
    rng = random.Random(1)

    assert median(find_alarm(rng, 0.33, most=500) for _ in range(200)) <= 25
    assert sum(find_alarm(rng, 0.1, most=300) <= 300 for _ in range(200)) <= 0.05 * 200


def test_a_judge_that_was_good_for_long_is_found_too():
    """Not all is bet on the first labels, so a judge that turns bad after a thousand good ones is noticed."""
    rng = random.Random(1)

    assert median(find_alarm(rng, 0.33, most=500, after_good=1_000) for _ in range(20)) <= 120
