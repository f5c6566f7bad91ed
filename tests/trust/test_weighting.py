"""Agreement from labels that were drawn with unequal probabilities: weighed, it is that of the whole run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adjudge import UsageError
from adjudge.trust import Agreement, make_agreement, weigh_agreement

np = pytest.importorskip("numpy", reason="statistics need the extra trust")
pytest.importorskip("scipy", reason="statistics need the extra trust")

Table = Sequence[Sequence[int]]


def agree(*tables: Table) -> Agreement:
    """The agreement of labels that were counted alike; rows are bad and good, columns failed and passed."""
    total = np.sum(tables, axis=0)
    pairs = [(judged, true) for true in (0, 1) for judged in (0, 1) for _ in range(total[true][judged])]
    return make_agreement(
        [bool(judged) for judged, _ in pairs],
        [bool(true) for _, true in pairs],
        categories=(False, True),
        resamples=100,
    )


FAILED, PASSED = [[38, 0], [1, 0]], [[0, 9], [0, 112]]
"""39 labels of 87 cases that a judge failed, and 121 of 363 that it passed."""


def test_a_label_counts_for_the_cases_that_it_stands_for():
    """Of the fails more were labelled: counted alike, the judge seems to catch more bad cases than it does."""
    plain = agree(FAILED, PASSED)
    weighed = weigh_agreement(plain, [FAILED, PASSED], [87, 363])
    caught, missed = 38 * 87 / 39, 9 * 363 / 121

    assert plain.specificity.value == 38 / 47
    assert weighed.specificity.value == pytest.approx(caught / (caught + missed))
    assert weighed.precision.value == pytest.approx(plain.precision.value)
    assert weighed.prevalence.value == pytest.approx((112 * 363 / 121 + 87 / 39) / 450)
    assert weighed.baselines[0].accuracy.rate == pytest.approx(weighed.prevalence.value)
    assert weighed.confusion == plain.confusion


def test_equal_probabilities_change_no_value():
    """Where each label stands for as many cases, every estimate is what it was."""
    plain = agree(FAILED, PASSED)
    weighed = weigh_agreement(plain, [FAILED, PASSED], [390, 1210])

    for name in ("accuracy", "sensitivity", "specificity", "precision", "f1", "cohen_kappa", "gwet_ac1"):
        assert getattr(weighed, name).value == pytest.approx(getattr(plain, name).value), name


def test_what_is_labelled_completely_has_no_uncertainty():
    """Of these cases and no more everything is known; of what they are a sample of, it is not."""
    plain = agree(FAILED, PASSED)
    counted = weigh_agreement(plain, [FAILED, PASSED], [39, 121]).specificity
    sampled = weigh_agreement(plain, [FAILED, PASSED], [39, 121], whole=False).specificity

    assert counted.interval == (38 / 47, 38 / 47)
    assert sampled.interval is not None
    assert sampled.interval[0] < 38 / 47 < sampled.interval[1]


def test_a_class_without_labels_has_no_value():
    """Nothing is made up where no label is bad."""
    good = [[0, 0], [3, 40]]
    weighed = weigh_agreement(agree(good), [good], [400])

    assert weighed.specificity.value is None
    assert weighed.specificity.note


@pytest.mark.parametrize(
    ("tables", "sizes", "named"),
    [([FAILED], [87], "add up"), ([FAILED, PASSED], [38, 363], "38"), ([FAILED, PASSED], [87], "size")],
)
def test_counts_that_cannot_be_are_refused(tables: list[Table], sizes: list[int], named: str):
    """Tables that lack labels, strata smaller than their labels, and strata without a size."""
    with pytest.raises(UsageError, match=named):
        weigh_agreement(agree(FAILED, PASSED), tables, sizes)


@pytest.mark.full
@pytest.mark.slow
def test_weighed_intervals_hold_where_plain_ones_never_do():
    """800 passes (80 % good) and 200 fails (40 % good), 60 labels each: 300 draws with seed 1.

    The error of the simulation is 1.3 points at 95 %.
    """
    random = np.random.default_rng(1)
    truth = {"sensitivity": 640 / 720, "specificity": 120 / 280, "accuracy": 760 / 1000}
    held = {name: [0, 0] for name in truth}
    for _ in range(300):
        passed, failed = int(random.hypergeometric(640, 160, 60)), int(random.hypergeometric(80, 120, 60))
        tables = [[[0, 60 - passed], [0, passed]], [[60 - failed, 0], [failed, 0]]]
        plain = agree(*tables)
        for place, agreement in enumerate((plain, weigh_agreement(plain, tables, [800, 200]))):
            for name, value in truth.items():
                low, high = getattr(agreement, name).interval
                held[name][place] += low <= value <= high

    assert all(weighed >= 0.93 * 300 for _, weighed in held.values()), held
    assert held["sensitivity"][0] < 30
    assert held["specificity"][0] < 30


@pytest.mark.full
@pytest.mark.slow
def test_a_large_stratum_without_an_error_is_not_taken_for_perfect():
    """900 cases of which 3 in 100 are judged wrongly, 20 labelled; 100 cases with 30 in 100, 40 labelled.

    In half of the draws no label of the large stratum is wrong. Its variance then comes out as 0, and intervals that
    believe it hold the accuracy in 46 of 100 runs.
    """
    random = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        tables = []
        for size, wrong, number in ((900, 27, 20), (100, 30, 40)):
            missed = int(random.hypergeometric(wrong, size - wrong, number))
            good = (number - missed) // 2
            tables.append([[number - missed - good, missed], [0, good]])
        low, high = weigh_agreement(agree(*tables), tables, [900, 100]).accuracy.interval
        held += low <= 1 - 57 / 1000 <= high

    assert held >= 0.93 * 200


def test_where_everybody_agrees_the_interval_is_no_point_and_not_everything():
    """A rate of 1 shows no variance; the labels count as many as they are worth for being weighed unequally."""
    tables = [[[20, 0], [0, 20]], [[10, 0], [0, 10]]]
    low, high = weigh_agreement(agree(*tables), tables, [900, 100]).accuracy.interval

    assert 0.85 < low < 0.95
    assert high == 1.0
