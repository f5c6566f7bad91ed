"""The alternative annotator test: may a judge replace people? Each rule that is easily missed has its test."""

from __future__ import annotations

import json
import random
from importlib.util import find_spec

import pytest

from adjudge.errors import UsageError
from adjudge.trust import make_alternative_test
from kit.oracles import is_near, need_statistics


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def draw_ratings(items: int, people: str = "abc", right: float = 0.8, seed: int = 1) -> list[dict[str, str]]:
    """Labels of people of whom each is right with a probability."""
    chance = random.Random(seed)
    return [{name: "x" if chance.random() < right else "y" for name in people} for _ in range(items)]


def test_a_good_judge_may_replace_people():
    """One that is always right wins over people who are mostly right."""
    result = make_alternative_test(["x"] * 100, draw_ratings(100), epsilon=0.2)

    assert result.passed
    assert result.winning_rate == 1.0
    assert result.advantage_probability > 0.9
    assert result.notes == ()
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_bad_judge_may_not():
    """One that is always wrong wins over nobody."""
    result = make_alternative_test(["y"] * 100, draw_ratings(100), epsilon=0.2)

    assert not result.passed
    assert result.winning_rate == 0.0


def test_a_tie_counts_for_both():
    """Judge and annotator who say the same are equally close, and both win."""
    result = make_alternative_test(["x"] * 40, [{"a": "x", "b": "x", "c": "x"}] * 40, epsilon=0.1)

    for test in result.annotators:
        assert (test.judge_wins, test.annotator_wins) == (1.0, 1.0)


@pytest.mark.parametrize(("epsilon", "p_value"), [(0.1, 0.0), (0.0, 1.0)])
def test_a_constant_advantage_is_below_the_handicap_or_not(epsilon, p_value):
    """The t test would divide by 0: no advantage on any item is less than 0.1, and not less than 0."""
    result = make_alternative_test(["x"] * 40, [{"a": "x", "b": "x", "c": "x"}] * 40, epsilon=epsilon)

    assert [test.p_value for test in result.annotators] == [p_value] * 3


def test_p_values_are_those_of_a_t_test():
    """One-sided: is the mean advantage of the annotator below the handicap?"""
    from scipy.stats import ttest_1samp

    ratings = draw_ratings(80, right=0.7)
    judged = [row["a"] for row in draw_ratings(80, "a", 0.75, seed=2)]
    result = make_alternative_test(judged, ratings, epsilon=0.15)
    advantage = []
    for label, row in zip(judged, ratings, strict=True):
        others = [row["b"], row["c"]]
        judge, person = others.count(label), others.count(row["a"])
        advantage.append((person >= judge) - (judge >= person))

    assert is_near(result.annotators[0].p_value, ttest_1samp(advantage, 0.15, alternative="less").pvalue)


def test_rejections_are_those_of_benjamini_and_yekutieli(require):
    """With three annotators the largest p-value must be below 0.05 / (1 + 1/2 + 1/3)."""
    require("statsmodels", find_spec("statsmodels"), "pip install statsmodels")
    from statsmodels.stats.multitest import multipletests

    judged = [row["a"] for row in draw_ratings(70, "a", 0.85, seed=5)]
    result = make_alternative_test(judged, draw_ratings(70, seed=6), epsilon=0.1)
    rejected, adjusted, *_ = multipletests([test.p_value for test in result.annotators], 0.05, "fdr_by")

    assert [test.rejected for test in result.annotators] == list(rejected)
    assert all(map(is_near, [test.adjusted for test in result.annotators], adjusted))


def test_half_of_the_annotators_is_enough():
    """The winning rate passes at one half exactly."""
    # c and d rate items of their own, where the judge is wrong.
    ratings = [{"a": "x", "b": "x"}] * 50 + [{"c": "x", "d": "x"}] * 50
    result = make_alternative_test(["x"] * 50 + ["y"] * 50, ratings, epsilon=0.1)

    assert result.winning_rate == 0.5
    assert result.passed


def test_annotators_with_few_items_are_left_out_of_the_rate():
    """Below 30 items a t test is not valid; the rate is over those that were kept."""
    ratings = [*draw_ratings(60), *draw_ratings(20, "ad", seed=3)]
    result = make_alternative_test(["x"] * 80, ratings, epsilon=0.2)

    assert result.annotators_left_out == ("d",)
    assert [test.annotator for test in result.annotators] == ["a", "b", "c"]
    assert [test.items for test in result.annotators] == [80, 60, 60]
    assert result.notes == (
        "1 annotator is left out, with fewer than 30 items that somebody else rated too: 'd' has 20, so label 10 more",
    )


def test_of_many_annotators_with_few_items_those_who_lack_fewest_are_named():
    """Who is nearest to counting is told how many labels are missing; a crowd is not listed."""
    few = [row for at, name in enumerate("vwxyz", 1) for row in draw_ratings(at, f"a{name}", seed=at)]
    ratings = [*draw_ratings(60), *few]
    (note,) = make_alternative_test(["x"] * len(ratings), ratings, epsilon=0.2).notes

    assert note.startswith("5 annotators are left out")
    assert note.endswith(
        "'z' has 5, so label 25 more; 'y' has 4, so label 26 more; 'x' has 3, so label 27 more; "
        "2 more people have no more than that"
    )


def test_items_of_one_annotator_are_left_out():
    """Nobody remains to be close to."""
    result = make_alternative_test(["x"] * 70, [*draw_ratings(60), *draw_ratings(10, "a")], epsilon=0.2)

    assert (result.items, result.items_left_out) == (60, 10)


def test_an_undecided_judge_is_close_to_nobody():
    """A judge that keeps silent where it would be wrong must not gain by it."""
    ratings = draw_ratings(80)
    silent = make_alternative_test(["x"] * 40 + [None] * 40, ratings, epsilon=0.2)
    numbers = make_alternative_test([None] * 80, [{"a": 1, "b": 2, "c": 1}] * 80, epsilon=0.2, closeness="neg_rmse")

    assert silent.undecided == 40
    assert silent.winning_rate == 0.0
    assert numbers.advantage_probability == 0.0


def test_scores_are_compared_by_their_distance():
    """A judge one point off is closer than a person two points off, though neither agrees with anybody."""
    chance = random.Random(3)
    ratings = [{"a": 1, "b": 3 + chance.choice([0, 1]), "c": 3} for _ in range(60)]
    near, far = (
        make_alternative_test([score] * 60, ratings, epsilon=0.1, closeness="neg_rmse").annotators for score in (2, 9)
    )

    assert near[0].judge_wins == 1.0
    assert [test.judge_wins for test in far] == [0.0, 0.0, 0.0]


def test_few_annotators_and_items_are_said():
    """Two annotators, or forty items, give an answer that is not firm."""
    notes = make_alternative_test(["x"] * 40, draw_ratings(40, "ab"), epsilon=0.2).notes

    assert len(notes) == 2
    assert "at least 3" in notes[0]
    assert "40 items" in notes[1]


@pytest.mark.parametrize(
    ("judged", "ratings", "options", "named"),
    [
        (["x"] * 20, [{"a": "x", "b": "x"}] * 20, {}, "30 items.*'a' has 20, so label 10 more"),
        (["x"] * 27, [{"a": "x", "b": "x"}] * 27, {}, "'a' has 27, so label 3 more; 'b' has 27, so label 3 more"),
        (["x"] * 40, [{"a": "x"}] * 40, {}, "'a' has 0, so label 30 more"),
        (["x"] * 40, [{}] * 40, {}, "nobody rated any; have 30 items rated by two people"),
        (["x"], [], {}, "1 and 0 items"),
        (["x"] * 40, [{"a": "x", "b": "x"}] * 40, {"closeness": "neg_rmse"}, "'x'"),
        (["x"] * 40, [{"a": "x", "b": "x"}] * 40, {"closeness": "distance"}, "closeness"),
        (["x"] * 40, [{"a": "x", "b": "x"}] * 40, {"epsilon": 2}, "epsilon"),
        ([1.0] * 40, [{"a": float("nan"), "b": 1.0}] * 40, {"closeness": "neg_rmse"}, "nan"),
    ],
)
def test_what_cannot_be_tested_is_refused(judged, ratings, options, named):
    """Too few items, labels without a distance, and options that are none."""
    with pytest.raises(UsageError, match=named):
        make_alternative_test(judged, ratings, **{"epsilon": 0.2} | options)
