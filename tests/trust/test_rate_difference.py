"""The difference of two systems' rates from a judge and some labels, and of two judges' shares over strata."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

pytest.importorskip("scipy", reason="statistics about judges need the extra trust")

import numpy as np
from scipy import stats

from adjudge import UsageError
from adjudge.trust import (
    PairedCounts,
    estimate_labels_of_difference,
    estimate_labels_of_judges,
    find_paired_difference,
    find_stratified_difference,
    make_rate_difference,
)


def settle(differences: dict[int, int]) -> dict[int, tuple[int, int]]:
    """Labels that people agree on."""
    return {place: (value, value) for place, value in differences.items()}


def make_population(questions: int, accuracy: float, seed: int) -> tuple[list[int], list[int]]:
    """What people and a judge say of both systems' answers: the second system is right 8 points more often."""
    chance = random.Random(seed)
    people, judged = [], []
    for _ in range(questions):
        hard = chance.random()
        answers = [hard < 0.62 + 0.1 * chance.random(), hard < 0.70 + 0.1 * chance.random()]
        verdicts = [answer if chance.random() < accuracy else not answer for answer in answers]
        people.append(answers[1] - answers[0])
        judged.append(verdicts[1] - verdicts[0])
    return people, judged


def test_without_a_judge_it_is_the_mean_of_the_labels():
    """A judge that says the same of both systems leaves what people said, by Student's t with two residuals more."""
    people = [1, 0, 0, -1, 1, 1, 0, 0, 1, 0] * 4
    difference = make_rate_difference([0] * 4000, settle(dict(enumerate(people))))

    mean = np.mean(people)
    variance = (np.sum((people - mean) ** 2) + 2) / (len(people) + 1)
    reach = stats.t.ppf(0.975, 39) * np.sqrt(variance / 40 * (1 - 40 / 4000))
    assert difference.weight == 0
    assert difference.interval == pytest.approx((mean - reach, mean + reach))
    assert difference.worth == 40


def test_a_judge_that_is_right_brings_what_it_knows_of_the_other_questions():
    """Its mean over all questions is the value, and few labels are as good as many without it."""
    people, judged = make_population(2000, 1.0, seed=3)
    difference = make_rate_difference(judged, settle({place: people[place] for place in range(100)}))

    assert difference.value == pytest.approx(np.mean(people))
    assert difference.weight == pytest.approx(1)
    assert difference.worth > 400


def test_a_judge_that_is_often_right_is_used_by_the_covariance_over_its_variance():
    """Between the ends the weight is that of PPI++, and value and limits are those of the weighed residuals."""
    people, judged = make_population(2000, 0.8, seed=7)
    labels = 80
    difference = make_rate_difference(judged, settle({place: people[place] for place in range(labels)}))

    truth, seen = np.asarray(people[:labels]), np.asarray(judged[:labels])
    weight = np.cov(truth, seen)[0, 1] / np.var(seen, ddof=1)
    residuals = truth - weight * seen
    value = weight * np.mean(judged) + np.mean(residuals)
    variance = (np.sum((residuals - np.mean(residuals)) ** 2) + 2) / (labels + 1)
    reach = stats.t.ppf(0.975, labels - 1) * np.sqrt(variance / labels * (1 - labels / 2000))
    assert 0 < weight < 1
    assert difference.weight == pytest.approx(weight)
    assert difference.value == pytest.approx(value)
    assert difference.interval == pytest.approx((value - reach, value + reach))


def test_a_judge_that_is_always_wrong_is_not_used():
    """The weight is never negative: a judge that says the opposite by chance must not turn the labels around."""
    people, judged = make_population(2000, 1.0, seed=4)
    difference = make_rate_difference(
        [-value for value in judged], settle({place: people[place] for place in range(100)})
    )

    assert difference.weight == 0


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("labels", [30, 100])
def test_the_interval_covers_the_true_difference(accuracy: float, labels: int):
    """In at least 93 of 100 draws, whatever the judge is worth."""
    people, judged = make_population(500, accuracy, seed=5)
    truth, chance = float(np.mean(people)), random.Random(6)
    draws = 400
    covered = 0
    for _ in range(draws):
        drawn = chance.sample(range(500), labels)
        low, high = make_rate_difference(judged, settle({place: people[place] for place in drawn})).interval
        covered += low <= truth <= high

    assert covered / draws >= 0.93


def test_every_question_labelled_leaves_no_width():
    """A census is counted, and nothing more would tell."""
    difference = make_rate_difference([0, 1, -1, 0], settle({0: 1, 1: 0, 2: 0, 3: 0}))

    assert difference.interval == (0.25, 0.25)
    assert (difference.more, difference.worth) == (None, 4)


@pytest.mark.parametrize("judged_right", range(20, 41))
def test_a_count_of_no_difference_is_0(judged_right: int):
    """And not 1e-17, which would show one of two equal systems to be better, however the judge is weighed."""
    truth = [1, -1, 0, 0] * 10
    judged = [*truth[:judged_right], *([0, 1] * 10)[: 40 - judged_right]]
    made = make_rate_difference(judged, {place: (value, value) for place, value in enumerate(truth)})

    assert (made.value, made.low, made.high, made.is_shown) == (0, 0, 0, False)


def test_a_count_of_strata_without_a_difference_is_0():
    """What one stratum gains the others lose."""
    strata = [
        PairedCounts(size=size, of=size, gained=gained, lost=lost)
        for size, gained, lost in ((29, 0, 4), (14, 1, 0), (26, 3, 0))
    ]

    assert find_stratified_difference(strata) == (0, 0, 0)


def test_labels_that_are_not_settled_widen_the_limits_to_both_sides():
    """The limits hold whether an open answer is good or bad."""
    settled = make_rate_difference([0] * 100, settle(dict.fromkeys(range(40), 0)))
    open_ones = make_rate_difference([0] * 100, settle(dict.fromkeys(range(1, 40), 0)) | {0: (-1, 1)})

    assert open_ones.unresolved == 1
    assert open_ones.low < settled.low
    assert open_ones.high > settled.high


def test_how_many_more_labels_would_tell():
    """About so many that the interval around the same difference leaves out 0; none where it does already."""
    people, judged = make_population(2000, 0.9, seed=7)
    few = make_rate_difference(judged, settle({place: people[place] for place in range(60)}))

    assert few.more is not None
    assert 0 < few.more < 1940
    enough = make_rate_difference(judged, settle({place: people[place] for place in range(1500)}))
    assert enough.is_shown
    assert enough.more is None


@pytest.mark.parametrize(
    ("judged", "people"),
    [([0, 0.5, 1], {0: (0, 0), 1: (0, 0)}), ([0, 0, 0], {0: (0, 0)}), ([0, 0], {0: (0, 0), 7: (0, 0)}),
     ([0, 0], {0: (0, 0), 1: (1, -1)}), ([0, 0], {0: (0, 0), 1: (0, 2)})],
)  # fmt: skip
def test_what_is_no_difference_is_refused(judged: Any, people: Any):
    """Scores, a single label, a label of no question and bounds that are none raise ``UsageError``."""
    with pytest.raises(UsageError):
        make_rate_difference(judged, people)


def test_labels_needed_fall_with_the_width_and_with_a_better_judge():
    """Never fewer than the interval needs to cover as it should, and never more than there are questions."""
    wide, narrow = [estimate_labels_of_difference(2000, expect=0.8, within=within) for within in (0.1, 0.03)]
    assert wide < narrow < 2000
    assert estimate_labels_of_difference(2000, expect=0.95, within=0.03) < narrow
    assert estimate_labels_of_difference(20, expect=0.8, within=0.03) == 20
    assert estimate_labels_of_difference(2000, expect=1.0, within=0.5) == 30
    pairs = [estimate_labels_of_difference(10**9, expect=expect, within=0.05, pairs=True) for expect in (0.3, 0.5, 0.8)]
    assert pairs == [1537, 1537, 984]


# ---------------------------------------------------------------- judges


@pytest.mark.parametrize(("cases", "within"), [(600, 0.05), (600, 0.1), (10_000, 0.03)])
def test_labels_needed_of_two_judges_reach_the_width(cases: int, within: float):
    """Of judges that differ on a fifth of the cases and are right equally often, the widest there are; and no more."""
    labels = estimate_labels_of_judges(cases, disagreement=0.2, within=within)
    changes, chance = [1] * (cases // 10) + [-1] * (cases // 10) + [0] * (cases - 2 * (cases // 10)), random.Random(1)
    reaches, held = [], 0
    for _ in range(400):
        drawn = chance.sample(changes, labels)
        counts = PairedCounts(size=cases, of=labels, gained=drawn.count(1), lost=drawn.count(-1))
        _, low, high = find_stratified_difference([counts])
        reaches.append((high - low) / 2)
        held += low <= 0 <= high

    assert 0.98 * within < sum(reaches) / len(reaches) < 1.005 * within
    assert held >= 0.93 * 400


def test_labels_needed_of_two_judges_are_those_of_the_verdicts_that_differ():
    """About z² D / within², with two added cases, less where many of all are labelled; at least 30 and at most all."""
    assert estimate_labels_of_judges(10**9, disagreement=0.2, within=0.01) == pytest.approx(1.96**2 * 2000, rel=0.01)
    few, many = [estimate_labels_of_judges(2000, disagreement=share, within=0.05) for share in (0.1, 0.3)]
    assert few < many < 2000
    assert estimate_labels_of_judges(20, disagreement=0.2, within=0.05) == 20
    assert estimate_labels_of_judges(2000, disagreement=0.2, within=0.5) == 30


def test_one_stratum_is_bonetts_and_prices_interval():
    """Of few cases of many, the interval over strata is that of ``find_paired_difference``."""
    value, low, high = find_stratified_difference([PairedCounts(size=10**9, of=100, gained=12, lost=3)])

    assert value == pytest.approx(0.09)
    assert (low, high) == pytest.approx(find_paired_difference(12, 3, 100), abs=1e-6)


def test_the_limits_of_two_strata_are_added_up_by_mover():
    """Each side by itself: the distance of a stratum's limit from its own value, squared, weighed and added."""
    strata = [PairedCounts(size=900, of=60, gained=9, lost=3), PairedCounts(size=300, of=100, gained=2, lost=12)]
    value, low, high = find_stratified_difference(strata)

    # Bonett and Price: 6 / 62 -+ 1.959964 sqrt((14 / 62 - (6 / 62)^2) / 62), and
    # -10 / 102 -+ 1.959964 sqrt((16 / 102 - (10 / 102)^2) / 102).
    limits = [(-0.01903, 0.21258), (-0.17251, -0.02357)]
    assert [find_paired_difference(9, 3, 60), find_paired_difference(2, 12, 100)] == [
        pytest.approx(pair, abs=1e-5) for pair in limits
    ]
    # 0.75 * 0.1 - 0.25 * 0.1, and the parts that are labelled, 1 / 15 and 1 / 3, have no width.
    assert value == pytest.approx(0.05)
    below = math.sqrt(14 / 15 * (0.75 * (0.1 + 0.01903)) ** 2 + 2 / 3 * (0.25 * (-0.1 + 0.17251)) ** 2)
    above = math.sqrt(14 / 15 * (0.75 * (0.21258 - 0.1)) ** 2 + 2 / 3 * (0.25 * (-0.02357 + 0.1)) ** 2)
    assert (low, high) == pytest.approx((0.05 - below, 0.05 + above), abs=1e-5)


@pytest.mark.slow
def test_strata_are_weighed_by_their_cases():
    """With unequal shares of labels the interval covers the difference of all cases in 93 of 100 draws."""
    chance = random.Random(8)
    strata = [
        [chance.choices((1, -1, 0), (0.15, 0.05, 0.8))[0] for _ in range(900)],
        [chance.choices((1, -1, 0), (0.02, 0.12, 0.86))[0] for _ in range(300)],
    ]
    truth, draws, covered = sum(map(sum, strata)) / 1200, 500, 0
    for _ in range(draws):
        drawn = [chance.sample(strata[0], 60), chance.sample(strata[1], 90)]
        counts = [
            PairedCounts(size=len(every), of=len(some), gained=some.count(1), lost=some.count(-1))
            for every, some in zip(strata, drawn, strict=True)
        ]
        _, low, high = find_stratified_difference(counts)
        covered += low <= truth <= high

    assert covered / draws >= 0.93


def test_a_stratum_without_labels_is_refused():
    """Nobody knows what is in it."""
    with pytest.raises(UsageError, match="label at least one"):
        find_stratified_difference([PairedCounts(size=10, of=0, gained=0, lost=0)])
