"""Repeatability: how often a judge contradicts itself, and how much of its error that explains."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import UsageError
from adjudge.trust import make_error_parts, make_order_flips, make_repeatability
from kit.oracles import is_near, need_statistics


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def test_a_flip_is_any_difference():
    """An item flips if its repeats are not all the same; undecided is another answer."""
    repeatability = make_repeatability([[True, True], [True, False], [True, None], [True]])

    assert (repeatability.items, repeatability.left_out) == (3, 1)
    assert repeatability.flips.value == 2 / 3
    assert repeatability.flips.method == "Wilson"


def test_disagreement_does_not_grow_with_repeats():
    """With more repeats more items flip; the probability that two of them differ stays the same."""
    chance = random.Random(2)
    rows = [[chance.random() < 0.8 for _ in range(12)] for _ in range(400)]
    few, many = make_repeatability([row[:3] for row in rows]), make_repeatability(rows)

    assert many.flips.value > few.flips.value + 0.3
    assert abs(many.disagreement.value - few.disagreement.value) < 0.05
    assert few.disagreement.low < 2 * 0.8 * 0.2 < few.disagreement.high


def test_groups_widen_the_interval_of_flips():
    """Answers to one question flip together."""
    rows = [[True, at % 2 == 0] for at in range(40) for _ in range(5)]
    alone = make_repeatability(rows).flips
    grouped = make_repeatability(rows, groups=[at // 5 for at in range(200)]).flips

    assert grouped.high - grouped.low > 1.8 * (alone.high - alone.low)


def test_noise_and_a_systematic_part_make_up_the_error():
    """A judge that is wrong always on some items and half of the time on others."""
    rows = [[False] * 4] * 10 + [[True, False, True, False]] * 10 + [[True] * 4] * 30
    parts = make_error_parts(rows, [True] * 50)

    assert is_near(parts.error.value, (10 + 5) / 50)
    assert is_near(parts.noise.value, 10 * (1 / 3) / 50)
    assert is_near(parts.error.value, parts.noise.value + parts.systematic.value)
    assert is_near(parts.noise_share.value, parts.noise.value / parts.error.value)
    assert parts.noise_share.low < parts.noise_share.value < parts.noise_share.high
    json.dumps(parts.to_dict(), allow_nan=False)


def test_a_judge_that_only_guesses_is_all_noise():
    """Answers drawn around the truth: averaging would remove the error; a constant offset would remain."""
    chance = random.Random(2)
    truth = [chance.gauss(5, 1) for _ in range(300)]
    noisy = make_error_parts([[true + chance.gauss(0, 1) for _ in range(5)] for true in truth], truth)
    offset = make_error_parts([[true + 1 + chance.gauss(0, 0.1) for _ in range(5)] for true in truth], truth)

    assert noisy.noise_share.low < 1 < noisy.noise_share.high
    assert offset.noise_share.high < 0.05
    assert is_near(round(offset.systematic.value, 1), 1.0)


def test_the_intraclass_correlation_is_the_share_between_items():
    """Items that differ as much as repeats do give one half."""
    chance = random.Random(3)
    rows = [[mean + chance.gauss(0, 1) for _ in range(6)] for mean in (chance.gauss(0, 1) for _ in range(500))]
    intraclass = make_error_parts(rows, [0.0] * 500).intraclass

    assert intraclass.low < 0.5 < intraclass.high


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=5), min_size=1, max_size=15), st.integers(-5, 5))
def test_parts_add_up_and_do_not_move(rows, shift):
    """Whatever the data, noise and the systematic part are the error, and another origin changes nothing."""
    truth = [float(at % 2) for at in range(len(rows))]
    parts = make_error_parts(rows, truth, resamples=100)
    moved = make_error_parts(
        [[value + shift * 1e6 for value in row] for row in rows],
        [value + shift * 1e6 for value in truth],
        resamples=100,
    )

    assert is_near(parts.error.value, parts.noise.value + parts.systematic.value)
    assert is_near(parts.error.value, moved.error.value)
    assert (parts.intraclass.value is None) == (moved.intraclass.value is None)
    if parts.intraclass.value is not None:
        assert abs(parts.intraclass.value - moved.intraclass.value) < 1e-6


def test_what_has_no_parts_says_so():
    """A judge that is never wrong has no share of noise, and one answer an item no variance."""
    parts = make_error_parts([[1, 1], [0, 0]], [1, 0])

    assert parts.error.value == 0.0
    assert parts.noise_share.value is None
    assert "no repeat was wrong" in parts.noise_share.note
    for wrong in ([[1], [0]], [[1, None], [None, 0]]):
        with pytest.raises(UsageError, match="at least twice"):
            make_error_parts(wrong, [1, 0])
    with pytest.raises(UsageError, match="twice"):
        make_repeatability([[True]])
    with pytest.raises(UsageError, match="2 and 1"):
        make_error_parts([[1, 1], [0, 0]], [1])
    with pytest.raises(UsageError, match="'good'"):
        make_error_parts([["good", 1]], [1])


def test_a_place_that_wins_twice_is_a_bias():
    """Conflicts that favour the answer shown first, whichever it is, are no chance."""
    forward = ["first"] * 18 + ["second"] * 2 + ["tie", None]
    backward = ["second"] * 16 + ["first"] * 2 + ["first", "second"] + ["first", "first"]
    flips = make_order_flips(forward, backward)

    assert (flips.pairs, flips.undecided) == (22, 1)
    assert (flips.flips.count, flips.flips.of) == (18, 21)
    assert (flips.conflicts, flips.favouring_first, flips.favouring_second) == (17, 16, 1)
    assert flips.p_value < 0.001
    json.dumps(flips.to_dict(), allow_nan=False)


def test_orders_without_a_conflict_have_no_test():
    """Nothing to test where both orders agree; what is no verdict is refused."""
    assert make_order_flips(["first"], ["first"]).p_value is None
    assert make_order_flips(["tie"], ["first"]).flips.rate == 1.0
    assert make_order_flips([None], [None]).flips.rate is None
    with pytest.raises(UsageError, match="'A'"):
        make_order_flips(["A"], ["first"])
    with pytest.raises(UsageError, match="both orders"):
        make_order_flips([], [])
