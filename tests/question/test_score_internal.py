"""The arithmetic of scores."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Criterion, Rubric
from adjudge.question.score import TOLERANCE, decide, grade_criterion, reaches, to_unit, weigh


def rubric(*criteria: dict, **more) -> Rubric:
    made = [{"name": chr(97 + at), "description": "d", **item} for at, item in enumerate(criteria)]
    return Rubric(name="r", criteria=made, **more)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 9)), min_size=1, max_size=6), st.integers(0, 100))
def test_tidying_a_score_flips_no_decision(entries, threshold):
    """The outcome is that of exact arithmetic, and whoever compares what is shown comes to the same."""
    made = rubric(*[{"weight": weight} for _, weight in entries], passing_threshold=threshold / 100)
    graded = [grade_criterion(item, score / 100) for item, (score, _) in zip(made.criteria, entries, strict=True)]
    outcome, score = decide(made, tuple(graded))
    exact = Fraction(sum(score * weight for score, weight in entries), 100 * sum(weight for _, weight in entries))

    assert (outcome == "passed") is (exact >= Fraction(threshold, 100))
    assert (outcome == "passed") is reaches(score, threshold / 100)
    assert abs(score - exact) <= TOLERANCE / 100
    shorter = float(f"{score:.12g}")
    assert score == shorter or abs(score - shorter) > 8 * math.ulp(score)


@pytest.mark.parametrize(
    ("weights", "given_scores", "mean"),
    [
        ((3, 2), (0.9, 0.8), 0.86),
        ((1, 1, 1), (1, 1, 0.1), 0.7),
        ((5, 4, 3), (0.99, 1, 1), 0.995833333),
        ((0, 1), (0, 1), 1),
    ],
)
def test_the_score_is_the_weighted_mean(weights, given_scores, mean):
    """Sum of score times weight over the sum of weights."""
    made = rubric(*({"weight": weight} for weight in weights))

    assert weigh(made, given_scores) == pytest.approx(mean, abs=1e-8)


WEIGHT = st.floats(0, 1e6, allow_subnormal=False)


@given(pairs=st.lists(st.tuples(WEIGHT, st.floats(0, 1, allow_subnormal=False)), min_size=1, max_size=8))
def test_the_mean_is_that_of_exact_fractions(pairs):
    """Within the tolerance, whatever the weights; and it stays between the lowest and the highest score."""
    if sum(weight for weight, _ in pairs) <= 1e-3:
        return
    made = rubric(*({"weight": weight} for weight, _ in pairs))

    mean = weigh(made, [score for _, score in pairs])

    exact = sum(Fraction(w) * Fraction(s) for w, s in pairs) / sum(Fraction(w) for w, _ in pairs)
    assert abs(Fraction(mean) - exact) < Fraction(TOLERANCE)
    assert min(s for _, s in pairs) - TOLERANCE <= mean <= max(s for _, s in pairs) + TOLERANCE


@pytest.mark.parametrize(
    ("score", "threshold", "reached"),
    [
        (0.8, 0.8, True),
        (0.7999999999, 0.8, True),
        (0.79, 0.8, False),
        (0.799999, 0.8, False),
        (0, 0, True),
        (1, 1, True),
    ],
)
def test_a_threshold_is_reached_within_the_tolerance(score, threshold, reached):
    """1e-9 of slack, so that seven tenths three times is seven tenths, and no more."""
    assert reaches(score, threshold) is reached


@pytest.mark.parametrize(
    ("score", "threshold", "passed"), [(0.55, None, True), (0.5, None, True), (0.49, None, False), (0.89, 0.9, False)]
)
def test_a_criterion_is_shown_as_passed_at_its_threshold_or_at_half(score, threshold, passed):
    """0.5 where it has none."""
    assert grade_criterion(Criterion(name="a", description="d", threshold=threshold), score).passed is passed


@given(
    values=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    thresholds=st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3),
    passing=st.floats(0, 1),
)
def test_raising_a_score_never_fails_a_rubric(values, thresholds, passing):
    """The outcome is monotone in every score."""
    made = rubric(*({"threshold": threshold} for threshold in thresholds), passing_threshold=passing)

    def outcome(given_scores):
        pairs = zip(made.criteria, given_scores, strict=True)
        return decide(made, tuple(grade_criterion(item, score) for item, score in pairs))[0]

    if outcome(values) == "passed":
        assert outcome([min(1.0, score + 0.1) for score in values]) == "passed"


def test_a_scale_may_be_negative():
    """From -1 to 1, 0 is a half."""
    assert to_unit(0, rubric({}, scale=[-1, 1])) == 0.5
