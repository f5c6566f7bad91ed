"""Thresholds that are tested for a promise: their order, their tests, and what is said where none is certified."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("scipy", reason="statistics about judges need the extra trust")

from scipy import stats

from adjudge import UsageError
from adjudge.trust import (
    LabelledStep,
    ThresholdStep,
    count_labelled,
    find_fewest_labels,
    find_first_step,
    find_look_level,
    make_threshold_steps,
    search_threshold,
)


def make_steps(*released: int) -> list[ThresholdStep]:
    """Thresholds 0.9, 0.8 and so on that release so many cases."""
    return [ThresholdStep(threshold=0.9 - 0.1 * place, released=number) for place, number in enumerate(released)]


def count(*pairs: tuple[int, int]) -> list[LabelledStep]:
    """Released and wrong labels at each threshold."""
    return [LabelledStep(released=released, wrong=wrong) for released, wrong in pairs]


# ---------------------------------------------------------------- the sequence


def test_thresholds_are_the_distinct_scores_the_highest_first():
    """Each knows how many cases reach it."""
    steps = make_threshold_steps([0.5, 1.0, 0.5, 0.7])

    assert [(step.threshold, step.released) for step in steps] == [(1.0, 1), (0.7, 2), (0.5, 4)]


def test_many_scores_are_thinned_by_what_they_release():
    """At most so many are left, each releases about as many more, and the lowest is among them."""
    chance = random.Random(1)
    scores = [chance.random() for _ in range(1000)]
    steps = make_threshold_steps(scores, most=20)

    assert [step.released for step in steps] == list(range(50, 1001, 50))
    assert steps[-1].threshold == min(scores)


def test_a_score_that_most_cases_share_is_one_threshold():
    """Thinning does not name it twice."""
    steps = make_threshold_steps([1.0] * 900 + [place / 1000 for place in range(100)], most=10)

    assert [step.threshold for step in steps] == [1.0, 0.0]


def test_a_share_of_all_cases_is_tested_from_the_first_threshold_on():
    """However few cases that releases."""
    assert find_first_step(make_steps(1, 50, 100), "wrong_pass", bound=0.05, level=0.95, cases=100, labels=60) == 0


def test_a_share_of_the_released_cases_is_tested_where_labels_can_certify_one():
    """Twice the fewest labels are expected among the released, by their share of the cases."""
    steps = make_steps(100, 290, 500, 900)
    options = {"bound": 0.1, "level": 0.95, "cases": 1000}

    assert find_first_step(steps, "wrong_given_pass", labels=200, **options) == 1
    assert find_first_step(steps, "wrong_given_pass", labels=60, **options) == 4


@pytest.mark.parametrize(("bound", "level", "fewest"), [(0.05, 0.95, 59), (0.1, 0.95, 29), (0.05, 0.975, 72)])
def test_so_few_labels_certify_a_threshold_without_an_error(bound: float, level: float, fewest: int):
    """One fewer does not."""
    assert find_fewest_labels(bound, level) == fewest
    assert (1 - bound) ** fewest <= 1 - level < (1 - bound) ** (fewest - 1)


def test_all_looks_together_spend_what_may_go_wrong():
    """The first has the most of it, and no number of looks exceeds it."""
    spent = [1 - find_look_level(0.95, look) for look in range(1, 2000)]

    assert spent == sorted(spent, reverse=True)
    assert spent[0] == pytest.approx(0.0304, abs=1e-4)
    assert 0.0499 < sum(spent) < 0.05


# ---------------------------------------------------------------- the tests


def test_labelled_cases_are_counted_at_every_threshold_that_releases_them():
    """A case below the lowest is in none."""
    steps = make_threshold_steps([0.9, 0.8, 0.5])
    counts = count_labelled(steps, [(0.9, False), (0.8, True), (0.8, False), (0.5, True), (0.4, True)])

    assert [(step.released, step.wrong) for step in counts] == [(1, 0), (3, 1), (4, 2)]


def test_the_p_value_is_that_of_the_binomial_distribution():
    """Of all labels for a share of all cases, of the released ones for a share of these."""
    steps, counts = make_steps(300), count((60, 2))
    of_all = search_threshold(steps, counts, "wrong_pass", bound=0.05, level=0.95, cases=1000, labels=200)
    of_released = search_threshold(steps, counts, "wrong_given_pass", bound=0.1, level=0.95, cases=1000, labels=200)

    assert of_all.tests[0].p_value == pytest.approx(stats.binom.cdf(2, 200, 0.05))
    assert of_released.tests[0].p_value == pytest.approx(stats.binom.cdf(2, 60, 0.1))


def test_the_last_threshold_before_the_first_failure_is_certified():
    """One that would pass again after a failure does not count."""
    steps = make_steps(300, 400, 500, 900)
    counts = count((80, 1), (100, 2), (110, 9), (190, 9))
    search = search_threshold(steps, counts, "wrong_given_pass", bound=0.1, level=0.95, cases=1000, labels=300)

    assert [test.p_value <= 0.05 for test in search.tests] == [True, True, False]
    assert stats.binom.cdf(9, 190, 0.1) < 0.05
    assert search.certified is search.tests[1]


def test_too_few_labels_cannot_tell_and_say_how_many_could():
    """Without an error, it takes the fewest that certify anything."""
    search = search_threshold(
        make_steps(300), count((20, 0)), "wrong_pass", bound=0.05, level=0.95, cases=1000, labels=40
    )

    assert (search.certified, search.impossible, search.needed) == (None, False, 59)


def test_the_number_of_labels_is_for_the_error_rate_that_was_seen():
    """With so many labels and as many errors in each hundred, the threshold is certified; with a few less it is not."""
    steps, counts = make_steps(300), count((60, 3))
    search = search_threshold(steps, counts, "wrong_pass", bound=0.05, level=0.95, cases=1000, labels=100)

    assert search.needed is not None
    assert stats.binom.cdf(round(0.03 * search.needed), search.needed, 0.05) <= 0.05
    assert stats.binom.cdf(round(0.03 * 200), 200, 0.05) > 0.05
    assert search.needed > 200


def test_where_every_threshold_errs_too_often_none_can():
    """It takes labels that show it at each of them that is of use; a tight one that releases hardly anything is not."""
    steps, options = make_steps(10, 300, 900), {"bound": 0.1, "level": 0.95, "cases": 1000, "labels": 200}
    shown = search_threshold(steps, count((0, 0), (60, 20), (180, 60)), "wrong_given_pass", **options)
    unclear = search_threshold(steps, count((0, 0), (60, 7), (180, 60)), "wrong_given_pass", **options)

    assert (shown.certified, shown.impossible, shown.needed) == (None, True, None)
    assert (unclear.certified, unclear.impossible, unclear.needed) == (None, False, None)


def test_a_bound_that_is_no_share_is_refused():
    """Also NaN, which nothing exceeds."""
    for bound in (1.5, -0.1, float("nan")):
        with pytest.raises(UsageError, match="bound"):
            search_threshold(make_steps(1), count((1, 0)), "wrong_pass", bound=bound, level=0.95, cases=9, labels=9)


def test_a_promise_is_broken_seldom_where_the_looser_threshold_breaks_it():
    """The tight threshold errs in 3 % of all cases and the loose one in 6 %: certified in at most 5 % of draws."""
    chance, draws, broken, kept = random.Random(7), 400, 0, 0
    steps = make_steps(400, 700)
    for _ in range(draws):
        labelled = [
            (0.9 if place < 0.4 else 0.8, place < 0.03 or 0.4 <= place < 0.43)
            for place in (chance.random() for _ in range(400))
            if place < 0.7
        ]
        search = search_threshold(
            steps, count_labelled(steps, labelled), "wrong_pass", bound=0.05, level=0.95, cases=1000, labels=400
        )
        broken += search.certified is not None and search.certified.released == 700
        kept += search.certified is not None and search.certified.released == 400

    assert broken / draws <= 0.05
    assert kept / draws >= 0.4
