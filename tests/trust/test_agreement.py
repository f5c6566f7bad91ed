"""Agreement of a judge with the truth: what each statistic means, where it is undefined, and how intervals are made."""

from __future__ import annotations

import json
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import UsageError
from adjudge.trust import (
    Confusion,
    compute_accuracy,
    compute_cohen_kappa,
    compute_f1,
    compute_gwet_ac1,
    compute_krippendorff_alpha,
    compute_precision,
    compute_sensitivity,
    compute_specificity,
    find_bootstrap_interval,
    make_agreement,
    make_alternative_test,
    make_bias,
    make_ceiling,
    make_confusion,
    make_error_parts,
    make_repeatability,
    make_slices,
)
from kit.oracles import draw_pairs, is_near, need_statistics


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def make_table(*rows: tuple[int, ...], categories: tuple = (True, False)) -> Confusion:
    """A table whose rows are the truth."""
    return Confusion(categories=categories, counts=rows)


def draw_labels(items: int, seed: int = 1) -> tuple[list[bool | None], list[bool]]:
    """Labels of a judge that is right on about 85 % and now and then undecided."""
    chance = random.Random(seed)
    truth = [chance.random() < 0.6 for _ in range(items)]
    judged = [true if chance.random() < 0.8 else chance.choice([True, False, None]) for true in truth]
    return judged, truth


def test_a_table_counts_pairs_of_labels():
    """Rows are true categories, columns the judge's, in order, with undecided last."""
    table = make_confusion([True, None, False, True], [True, True, False, False])

    assert table.categories == (False, True, None)
    assert table.counts == ((1, 1, 0), (0, 1, 1), (0, 0, 0))
    assert (table.items, table.agreed) == (4, 2)
    assert (table.truth_counts, table.judge_counts) == ((2, 2, 0), (1, 2, 1))


def test_categories_have_an_order():
    """Numbers by size, texts by alphabet, or the order that was given, with categories that nobody used."""
    assert make_confusion([10, 2, 1], [1, 2, 10]).categories == (1, 2, 10)
    assert make_confusion(["b", "a"], ["a", None]).categories == ("a", "b", None)
    assert make_confusion(["low"], ["high"], categories=("low", "mid", "high")).categories == ("low", "mid", "high")


def test_undecided_can_be_left_out_on_either_side():
    """What people could not decide is no truth; the caller says whether it counts."""
    table = make_confusion([True, None, False], [None, True, False])

    assert table.leave_out(None, side="truth").items == 2
    assert table.leave_out(None, side="judge").items == 2
    assert table.leave_out(None).items == 1
    assert table.leave_out(None).categories == (False, True)


@pytest.mark.parametrize(
    ("judged", "truth", "named"),
    [
        ([], [], "no items"),
        ([True], [True, False], "lengths"),
        ([True, 1], [True, 1], "True equals 1"),
        ([0.5, float("nan")], [0.5, 0.5], "nan"),
        ([b"yes"], [b"yes"], "bytes"),
        (list(range(300)), list(range(300)), "300"),
    ],
)
def test_what_is_no_label_is_refused(judged, truth, named):
    """Nothing is guessed: a label that could mean two things, or none, is named."""
    with pytest.raises(UsageError, match=named):
        make_confusion(judged, truth)


def test_a_label_outside_the_categories_is_refused():
    """A typing error in a label must not become a category of its own where somebody listed them."""
    with pytest.raises(UsageError, match="mild"):
        make_confusion(["mild"], ["low"], categories=("low", "high"))


def test_shares_of_a_table():
    """Good items kept, bad ones caught, and good ones among those that pass."""
    table = make_table((40, 10), (5, 45))

    assert compute_accuracy(table) == 0.85
    assert compute_sensitivity(table) == 0.8
    assert compute_specificity(table) == 0.9
    assert compute_precision(table) == 40 / 45
    assert is_near(compute_f1(table), 80 / 95)


def test_undecided_counts_against_the_judge():
    """A judge cannot raise its figures by keeping silent on what is hard."""
    table = make_confusion([True, None, False, None], [True, True, False, False])

    assert compute_sensitivity(table) == 0.5
    assert compute_specificity(table) == 0.5
    assert compute_accuracy(table) == 0.5
    assert compute_precision(table) == 1.0


def test_published_coefficients():
    """The worked examples of the papers: Cohen's with 0.4 at 35 of 50, and Gwet's table where kappa breaks down."""
    assert is_near(compute_cohen_kappa(make_table((20, 5), (10, 15))), 0.4)
    gwet = make_table((118, 5), (2, 0))
    assert round(compute_cohen_kappa(gwet), 4) == -0.0234
    assert round(compute_gwet_ac1(gwet), 4) == 0.9408


def test_published_krippendorff():
    """Krippendorff's example with missing ratings has .743, .815, .849 and .797."""
    raters = (
        (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
        (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
        (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
        (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
    )
    units = [{str(at): rater[item] for at, rater in enumerate(raters)} for item in range(12)]
    scales = ("nominal", "ordinal", "interval", "ratio")
    alphas = [round(compute_krippendorff_alpha(units, scale=scale), 3) for scale in scales]
    assert alphas == [0.743, 0.815, 0.849, 0.797]


@pytest.mark.parametrize(
    ("compute", "table", "named"),
    [
        (compute_sensitivity, make_table((0, 0), (1, 1)), "sensitivity"),
        (compute_specificity, make_table((1, 1), (0, 0)), "specificity"),
        (compute_precision, make_table((0, 1), (0, 1)), "precision"),
        (compute_f1, make_table((0, 0), (0, 1)), "F1"),
        (compute_cohen_kappa, make_table((3, 0), (0, 0)), "kappa"),
        (compute_gwet_ac1, Confusion(categories=(True,), counts=((3,),)), "AC1"),
        (compute_accuracy, make_table((0, 0), (0, 0)), "accuracy"),
        (compute_cohen_kappa, make_table((0, 0), (0, 0)), "kappa"),
    ],
)
def test_what_is_undefined_is_refused(compute, table, named):
    """A statistic that divides by 0 names itself and the reason; it is never NaN."""
    with pytest.raises(UsageError, match=f"{named}.*not defined"):
        compute(table)


def test_a_category_that_the_table_lacks_is_named():
    """Shares of good items need to know which label is the good one."""
    with pytest.raises(UsageError, match=r"True.*first"):
        compute_sensitivity(make_table((1, 0), (0, 1), categories=("first", "second")))
    assert compute_sensitivity(make_table((1, 0), (0, 1), categories=("first", "second")), positive="first") == 1.0


def test_a_score_of_1_is_not_true():
    """On a scale from 1 to 5 the worst score must not be taken for a pass because 1 equals true in Python."""
    agreement = make_agreement([1, 2, 5] * 10, [1, 3, 5] * 10)

    assert agreement.sensitivity.value is None
    assert "positive" in agreement.sensitivity.note
    assert agreement.f1.value is None
    assert [baseline.name for baseline in agreement.baselines] == ["always the majority"]
    assert make_agreement([1, 2, 5] * 10, [1, 3, 5] * 10, positive=5).sensitivity.value == 1.0


@pytest.mark.parametrize("wrong", [1e200, -1e308, 10**400, float("inf"), float("nan"), "7"])
def test_numbers_that_cannot_be_squared_are_refused(wrong):
    """A score from a hostile file is named; it is no overflow, no warning and no NaN."""
    ratings = [{"a": 1.0, "b": 2.0}] * 9 + [{"a": wrong, "b": 1.0}]
    attempts = (
        lambda: compute_krippendorff_alpha(ratings, scale="interval"),
        lambda: find_bootstrap_interval([1.0, wrong]),
        lambda: make_error_parts([[1.0, 2.0], [1.0, wrong]], [1.0, 2.0]),
        lambda: make_bias([0.1 * at for at in range(39)] + [wrong], [0.0] * 40, {"length": list(range(40))}),
        lambda: make_alternative_test([1.0] * 40, [*ratings * 4], epsilon=0.2, closeness="neg_rmse"),
    )
    for attempt in attempts:
        with pytest.raises(UsageError):
            attempt()


@pytest.mark.parametrize(("text", "same"), [("true", True), ("False", False), ("1", 1), (" 2 ", 2.0)])
def test_a_text_that_spells_a_label_is_refused(text, same):
    """A judge that says "true" where people say true would never agree with them, and nobody would see why."""
    with pytest.raises(UsageError, match="look alike"):
        make_agreement([text] * 20, [same] * 20)
    with pytest.raises(UsageError, match="look alike"):
        make_slices([text] * 20, [same] * 20, ["a", "b"] * 10)


@pytest.mark.parametrize("nameless", [None, float("nan")])
def test_a_group_without_a_name_is_refused(nameless):
    """Items of no group would be taken for one large group, and the interval would depend on that one alone."""
    labels, groups = [True, False] * 20, [*range(20), *[nameless] * 20]
    for attempt in (
        lambda: make_agreement(labels, labels, groups=groups),
        lambda: make_slices(labels, labels, ["a", "b"] * 20, groups=groups),
        lambda: find_bootstrap_interval([1.0, 2.0] * 20, groups=groups),
    ):
        with pytest.raises(UsageError, match="no name"):
            attempt()


def test_labels_that_differ_from_themselves_are_refused():
    """NaN is no label: two repeats that are NaN would flip or not by where they lie in memory."""
    nan = float("nan")
    with pytest.raises(UsageError, match="nan"):
        make_repeatability([[nan, nan]] * 20)
    with pytest.raises(UsageError, match="nan"):
        make_slices([nan] * 20, [nan] * 20, ["a", "b"] * 10)


def test_a_few_values_have_no_bootstrap_interval():
    """The percentiles of one value are that value, which would pass for a certain mean."""
    for values in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(UsageError, match="at least 10"):
            find_bootstrap_interval(values)
    with pytest.raises(UsageError, match="level"):
        find_bootstrap_interval([1.0, 2.0] * 10, level=95)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e-9, 1e12])
def test_equal_values_have_no_bootstrap_interval(value: float):
    """Nor have groups with equal means: every resample has that mean, and no width would claim certainty."""
    for values, groups in (
        ([value] * 1000, None),
        ([value] * 300, [place % 20 for place in range(300)]),
        ([value * factor for factor in (1, 3)] * 20, [place // 2 for place in range(40)]),
    ):
        with pytest.raises(UsageError, match="add values that differ"):
            find_bootstrap_interval(values, groups=groups)
    low, high = find_bootstrap_interval([value] * 999 + [value + 0.5 * (abs(value) or 1)])
    assert low < high


def test_weights_count_a_near_miss_as_a_part():
    """One step away is better than two, more so with squares; the order is that of the numbers."""
    near, far = make_confusion([1, 2, 3, 2], [1, 2, 3, 3]), make_confusion([1, 2, 3, 1], [1, 2, 3, 3])

    assert compute_cohen_kappa(near, weights="quadratic") > compute_cohen_kappa(near, weights="linear")
    assert compute_cohen_kappa(near, weights="linear") > compute_cohen_kappa(far, weights="linear")


def test_every_statistic_has_a_value_or_a_reason():
    """Nothing is dropped in silence: what has no value has a note, and what has an interval says how it was made."""
    judged, truth = draw_labels(200)
    for agreement in (make_agreement(judged, truth), make_agreement(["a"], ["a"]), make_agreement([None], [True])):
        for name, estimate in agreement.estimates.items():
            assert (estimate.value is None) <= bool(estimate.note), name
            assert (estimate.interval is not None) == bool(estimate.method), name
            assert estimate.interval is None or estimate.low <= estimate.value <= estimate.high, name
        json.dumps(agreement.to_dict(), allow_nan=False)


def test_intervals_follow_the_seed():
    """The same seed gives the same limits, so that a report can be made again; another seed gives others."""
    judged, truth = draw_labels(150)

    first, again = make_agreement(judged, truth, seed=7), make_agreement(judged, truth, seed=7)
    assert first == again
    assert first.cohen_kappa != make_agreement(judged, truth, seed=8).cohen_kappa


def test_the_order_of_items_changes_nothing():
    """Agreement is a property of the set."""
    judged, truth = draw_labels(150)

    assert make_agreement(judged[::-1], truth[::-1]) == make_agreement(judged, truth)


def test_groups_widen_intervals():
    """Eight copies of each item are no new information: the intervals are as wide as those of the originals."""
    judged, truth = draw_labels(100)
    copies = make_agreement(judged * 8, truth * 8, groups=list(range(100)) * 8)
    naive, single = make_agreement(judged * 8, truth * 8), make_agreement(judged, truth)

    def width(estimate):
        return estimate.high - estimate.low

    for name in ("accuracy", "sensitivity", "specificity", "cohen_kappa", "gwet_ac1", "macro_f1"):
        ratio = width(copies.estimates[name]) / width(single.estimates[name])
        assert 0.9 < ratio < 1.15, name
        assert width(naive.estimates[name]) < 0.5 * width(copies.estimates[name]), name
    assert (copies.groups, naive.groups) == (100, None)


def test_a_perfect_group_share_is_not_certain():
    """Ten groups of a hundred answers without an error speak of ten groups, not of a thousand answers."""
    right = [True] * 1_000
    grouped = make_agreement(right, right, groups=[at // 100 for at in range(1_000)])

    assert grouped.accuracy.low < 0.75
    assert make_agreement(right, right).accuracy.low > 0.99


def test_perfect_agreement_has_no_bootstrap_interval():
    """Every resample of items that all agree agrees: an interval without width would claim certainty."""
    agreement = make_agreement([True, False] * 10, [True, False] * 10)

    assert agreement.cohen_kappa.value == 1.0
    assert agreement.cohen_kappa.interval is None
    assert "label more" in agreement.cohen_kappa.note
    assert agreement.accuracy.low < 0.9


def test_a_rare_category_refuses_an_interval():
    """Where many resamples have no bad item at all, kappa's resamples are those that were lucky."""
    agreement = make_agreement([True] * 49 + [False], [True] * 49 + [False])

    assert agreement.cohen_kappa.interval is None
    assert "resamples" in agreement.cohen_kappa.note


def test_few_groups_have_no_interval():
    """Nine groups say too little of others, however many items they hold; the values are there all the same."""
    judged, truth = draw_labels(180)
    few = make_agreement(judged, truth, groups=[at % 9 for at in range(180)])
    enough = make_agreement(judged, truth, groups=[at % 10 for at in range(180)])

    for name, estimate in few.estimates.items():
        assert estimate.value == enough.estimates[name].value
        assert estimate.interval is None
        assert "9 items or groups" in estimate.note
        assert enough.estimates[name].interval is not None


def test_one_group_is_refused():
    """Nothing varies when the only group is drawn again."""
    with pytest.raises(UsageError, match="2 groups"):
        make_agreement([True, False], [True, True], groups=["a", "a"])
    with pytest.raises(UsageError, match="groups"):
        make_agreement([True, False], [True, True], groups=["a"])


def test_judges_that_look_at_nothing():
    """A judge of bad data that always passes, and one that always says the most frequent, as what to beat."""
    agreement = make_agreement([True] * 10, [True] * 3 + [False] * 7)
    passing, majority = agreement.baselines

    assert (passing.name, passing.accuracy.rate) == ("always pass", 0.3)
    assert (majority.name, majority.category, majority.accuracy.rate) == ("always the majority", False, 0.7)
    assert agreement.prevalence.value == 0.3
    assert agreement.judge_rate.value == 1.0


def test_texts_have_weighted_kappas_only_in_an_order():
    """The alphabet is no scale; categories give one."""
    judged, truth = ["low", "high", "mid"] * 5, ["low", "mid", "mid"] * 5

    assert make_agreement(judged, truth).linear_kappa.value is None
    ordered = make_agreement(judged, truth, categories=("low", "mid", "high"))
    assert ordered.linear_kappa.value > ordered.cohen_kappa.value


@given(draw_pairs(), st.integers(0, 10))
def test_coefficients_are_bounded_and_symmetric(pairs, seed):
    """Agreement coefficients lie between -1 and 1 and do not depend on who is called the judge."""
    judged, truth = zip(*pairs, strict=True)
    one = make_agreement(judged, truth, seed=seed, resamples=100)
    other = make_agreement(truth, judged, seed=seed, resamples=100)

    for name in ("accuracy", "cohen_kappa", "gwet_ac1", "krippendorff_alpha"):
        value, swapped = one.estimates[name].value, other.estimates[name].value
        assert (value is None) == (swapped is None)
        assert value is None or (-1 - 1e-9 <= value <= 1 + 1e-9 and is_near(value, swapped))


def test_people_are_the_ceiling():
    """The mean over pairs of people who rated the same items; pairs with too few are counted and left out."""
    ratings = [{"ann": at % 2, "bob": at % 2, "cy": (at + at // 10) % 2} for at in range(40)]
    ratings[0]["dee"] = 1
    ceiling = make_ceiling(ratings)

    assert [(pair.first, pair.second) for pair in ceiling.pairs] == [("ann", "bob"), ("ann", "cy"), ("bob", "cy")]
    assert ceiling.pairs[0].kappa == 1.0
    assert ceiling.pairs_left_out == 3
    assert is_near(ceiling.agreement.value, (1 + 0.5 + 0.5) / 3)
    assert ceiling.kappa.low <= ceiling.kappa.value <= ceiling.kappa.high
    assert ceiling.krippendorff_alpha.value == compute_krippendorff_alpha(ratings)
    json.dumps(ceiling.to_dict(), allow_nan=False)


def test_a_ceiling_needs_people_with_items_in_common():
    """Without two ratings of the same items there is nothing to compare."""
    with pytest.raises(UsageError, match="in common"):
        make_ceiling([{"ann": True}, {"bob": False}])
    with pytest.raises(UsageError, match="no item has a rating"):
        make_ceiling([{}, {"ann": None}])


def test_the_worst_kind_is_named():
    """A language in which the judge guesses is found among nine in which it does not."""
    chance = random.Random(4)
    kinds = [f"language {at % 10}" for at in range(1_000)]
    judged = [chance.random() < (0.6 if kind == "language 3" else 0.95) for kind in kinds]
    sliced = make_slices(judged, [True] * 1_000, kinds)

    assert sliced.tests == 10
    assert sliced.worst.name == "language 3"
    assert sliced.worst.is_worse
    assert sum(item.is_worse for item in sliced.slices) == 1
    assert all(item.adjusted >= item.p_value for item in sliced.slices)
    json.dumps(sliced.to_dict(), allow_nan=False)


@pytest.mark.full
@pytest.mark.slow
def test_chance_among_many_kinds_is_not_worse():
    """Of 200 sets in which twenty kinds are alike, at most one in ten names a worse one: 5 %, and chance."""
    chance = random.Random(5)
    kinds = [str(at % 20) for at in range(400)]
    sliced = [make_slices([chance.random() < 0.8 for _ in kinds], [True] * 400, kinds) for _ in range(200)]

    assert sum(item.worst.is_worse for item in sliced) <= 20


def test_kinds_with_few_items_are_shown_and_not_tested():
    """Two items prove nothing, and testing them would make every other test weaker."""
    kinds = ["a"] * 20 + ["b"] * 20 + ["rare"] * 2
    sliced = make_slices([True] * 40 + [False] * 2, [True] * 42, kinds)

    assert sliced.slices[-1].name == "rare"
    assert sliced.slices[-1].p_value is None
    assert (sliced.tests, sliced.worst.is_worse) == (2, False)


def test_kinds_that_are_whole_groups_need_several():
    """One document that went wrong is not a kind of item, however many answers it has."""
    kinds = ["a"] * 50 + ["b"] * 50
    groups = [0] * 50 + list(range(1, 51))
    judged = [False] * 50 + [True] * 50

    assert make_slices(judged, [True] * 100, kinds, groups=groups).tests == 0
    assert make_slices(judged, [True] * 100, kinds).worst.is_worse


def test_the_bootstrap_of_a_mean():
    """Its limits hold the mean, follow the seed and the groups, and refuse what has no mean."""
    chance = random.Random(2)
    values = [chance.gauss(5, 2) for _ in range(200)]
    low, high = find_bootstrap_interval(values)
    assert low < sum(values) / 200 < high
    assert abs((high - low) - 2 * 1.96 * 2 / 200**0.5) < 0.12
    wide = find_bootstrap_interval(values * 4, groups=list(range(200)) * 4)
    assert abs((wide[1] - wide[0]) - (high - low)) < 0.1
    for wrong in ([], [float("nan")], [float("inf")]):
        with pytest.raises(UsageError):
            find_bootstrap_interval(wrong)


def test_without_the_extra_the_remedy_is_named(monkeypatch):
    """The packages numpy and scipy are an extra; a program without them is told how to get them."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UsageError, match=r"scipy.*adjudge\[trust\]"):
        make_agreement([True], [True])
