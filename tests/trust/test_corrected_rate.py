"""Corrected rates: what people would pass, from the judge's verdicts and some labels."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.trust import (
    CorrectedRate,
    Heap,
    HeapVerdict,
    IntervalMethod,
    Refusal,
    compute_sample_p_value,
    count_groups,
    find_interval,
    find_worth,
    make_corrected_rate,
    make_internal_rate,
)
from kit.house import TESTS

pytest.importorskip("scipy")

Z = 1.959963984540054
PASSED = Heap(verdict="passed", cases=640, good=60, bad=4)
FAILED = Heap(verdict="failed", cases=360, good=3, bad=33)


def take_rate(answer: CorrectedRate | Refusal) -> CorrectedRate:
    """The rate, which must have been given."""
    assert isinstance(answer, CorrectedRate), answer
    return answer


def take_refusal(answer: CorrectedRate | Refusal) -> Refusal:
    """The refusal, which must have come."""
    assert isinstance(answer, Refusal), answer
    return answer


def count_pairs(rows: list[tuple[str, int, bool | None]], columns: int = 2):
    """Groups from rows of group, heap and truth."""
    groups, heaps, truths = zip(*rows, strict=True)
    return count_groups(groups, heaps, truths, columns=columns)


def make_alike(groups: int, each: int = 8, *, bad_groups: int = 5) -> tuple[list[Heap], list[tuple[str, int, bool]]]:
    """A run of one heap whose labels come in groups of equal answers."""
    rows = [(f"q{number}", 0, number >= bad_groups) for number in range(groups) for _ in range(each)]
    good = sum(truth for _, _, truth in rows)
    return [Heap(verdict="passed", cases=3_200, good=good, bad=len(rows) - good)], rows


def heaps_of_a_run() -> st.SearchStrategy[list[Heap]]:
    """Two or three heaps with any labels that fit into them."""

    def heap(verdict: str) -> st.SearchStrategy[Heap]:
        numbers = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 500))
        return numbers.map(lambda item: Heap(verdict=verdict, good=item[0], bad=item[1], cases=sum(item)))

    return st.tuples(*map(heap, ("passed", "failed", "undecided"))).map(list)


# --------------------------------------------------------------------------------------- labels drawn from the run


def test_the_rate_of_the_system_is_double_sampling_with_wilson_limits():
    """Shares of both heaps, weighed by their sizes; MOVER, with the uncertainty of the judge's own rate."""
    rate = take_rate(make_internal_rate([PASSED, FAILED], target="system"))
    w, a, b = 0.64, 60 / 64, 3 / 36
    (low_a, high_a), (low_b, high_b) = find_interval(60, 64), find_interval(3, 36)
    theta, spread = w * a + (1 - w) * b, Z * Z * (a - b) ** 2 * w * (1 - w) / 1000

    assert rate.value == pytest.approx(theta)
    assert rate.low == pytest.approx(theta - math.sqrt((w * (a - low_a)) ** 2 + (0.36 * (b - low_b)) ** 2 + spread))
    assert rate.high == pytest.approx(theta + math.sqrt((w * (high_a - a)) ** 2 + (0.36 * (high_b - b)) ** 2 + spread))
    assert (rate.target, rate.labels, rate.cases) == ("system", 100, 1000)
    assert (rate.naive.count, rate.naive.of) == (640, 1000)


def test_the_rate_of_the_run_knows_what_is_labelled():
    """The last term goes, and each heap counts by the share of it that has no label."""
    rate = take_rate(make_internal_rate([PASSED, FAILED], target="run"))
    w, a, b = 0.64, 60 / 64, 3 / 36
    (low_a, _), (low_b, _) = find_interval(60, 64), find_interval(3, 36)
    reach = (w * (a - low_a)) ** 2 * (1 - 64 / 640) + (0.36 * (b - low_b)) ** 2 * (1 - 36 / 360)

    assert rate.low == pytest.approx(w * a + 0.36 * b - math.sqrt(reach))
    assert rate.target == "run"


@given(heaps=heaps_of_a_run())
def test_a_run_that_is_labelled_throughout_has_its_own_rate(heaps: list[Heap]):
    """Nothing is left to estimate, so the interval is the rate."""
    full = [dataclasses.replace(item, cases=item.labels) for item in heaps]
    whole = sum(item.cases for item in full)
    if whole:
        rate = take_rate(make_internal_rate(full))
        share = sum(item.good for item in full) / whole
        assert (rate.low, rate.value, rate.high) == pytest.approx((share, share, share))


@given(heaps=heaps_of_a_run(), target=st.sampled_from(["run", "system"]))
def test_an_interval_contains_the_rate_and_mirrors(heaps: list[Heap], target):
    """With good and bad exchanged the rate is its complement; order and splitting off an empty heap change nothing."""
    if not any(item.labels for item in heaps):
        return
    rate = take_rate(make_internal_rate(heaps, target=target))
    turned = [dataclasses.replace(item, good=item.bad, bad=item.good) for item in heaps]
    other = take_rate(make_internal_rate([*turned[::-1], Heap(verdict="passed", cases=0)], target=target))

    assert 0 <= rate.low <= rate.value + 1e-12
    assert rate.value <= rate.high + 1e-12
    assert rate.high <= 1
    assert (1 - other.high, 1 - other.low) == pytest.approx(rate.interval, abs=1e-9)


def test_undecided_verdicts_are_a_heap_of_their_own():
    """They are neither passes nor fails: a different share of them is good, and the judge's own rate has none."""
    undecided = Heap(verdict="undecided", cases=200, good=18, bad=2)
    rate = take_rate(make_internal_rate([PASSED, FAILED, undecided]))

    assert rate.value == pytest.approx((640 * 60 / 64 + 360 * 3 / 36 + 200 * 0.9) / 1200)
    assert rate.naive.rate == pytest.approx(640 / 1200)


def test_a_judge_that_knows_nothing_is_no_reason_to_refuse():
    """Both heaps are alike, and the interval is about as wide as that of people alone."""
    rate = take_rate(
        make_internal_rate(
            [Heap(verdict="passed", cases=1000, good=50, bad=50), Heap(verdict="failed", cases=1000, good=50, bad=50)],
            target="system",
        )
    )
    low, high = find_interval(100, 200)

    assert rate.high - rate.low == pytest.approx(high - low, rel=0.02)
    assert rate.worth == pytest.approx(200, rel=0.05)


def test_strata_may_be_labelled_unevenly():
    """The weights are the sizes of the strata, whatever was drawn from them."""
    heaps = [
        Heap(verdict="passed", cases=900, good=10, bad=0, stratum="sure"),
        Heap(verdict="passed", cases=100, good=30, bad=60, stratum="doubt"),
    ]
    rate = take_rate(make_corrected_rate(heaps, sampled=True))

    assert rate.value == pytest.approx(0.9 + 0.1 / 3)
    assert "each stratum" in rate.assumptions[0]


def test_a_stratum_with_few_labels_is_one_heap():
    """With fewer than 5 labels in one of its heaps, its verdicts are not told apart."""
    rest = Heap(verdict="passed", cases=100, good=20, bad=20, stratum="b")
    sparse = [
        Heap(verdict="passed", cases=80, good=8, bad=2, stratum="a"),
        Heap(verdict="failed", cases=20, good=2, stratum="a"),
    ]
    whole = Heap(verdict="passed", cases=100, good=10, bad=2, stratum="a")

    assert (
        take_rate(make_internal_rate([*sparse, rest])).interval == take_rate(make_internal_rate([whole, rest])).interval
    )


def test_unresolved_truth_is_counted_both_ways():
    """The bounds are the rate with all of them bad, and with all of them good; the interval holds both intervals."""
    heaps = [dataclasses.replace(PASSED, unresolved=4), FAILED]
    rate = take_rate(make_internal_rate(heaps))
    bad = take_rate(make_internal_rate([dataclasses.replace(PASSED, bad=8), FAILED]))
    good = take_rate(make_internal_rate([dataclasses.replace(PASSED, good=64), FAILED]))

    assert rate.bounds == pytest.approx((bad.value, good.value))
    assert (rate.low, rate.high) == pytest.approx((bad.low, good.high))
    assert bad.value < rate.value < good.value
    assert (rate.labels, rate.unresolved, rate.worth) == (104, 4, None)
    assert any("4 unresolved" in sentence for sentence in rate.assumptions)


def test_without_labels_there_is_no_rate():
    """The refusal says what to do, and still shows what the judge passed."""
    refusal = take_refusal(make_internal_rate([Heap(verdict="passed", cases=3), Heap(verdict="failed", cases=1)]))

    assert refusal.because == "no_labels"
    assert refusal.remedy == "label all 4 cases of this run"
    assert refusal.naive is not None
    assert refusal.naive.rate == 0.75
    unsettled = take_refusal(make_internal_rate([Heap(verdict="passed", cases=9, unresolved=3)]))
    assert (unsettled.because, "3 labelled cases" in unsettled.reason) == ("no_labels", True)


# ------------------------------------------------------------------------------------------------- labels in groups


def test_whole_groups_that_the_judge_passed_are_less_of_a_surprise():
    """Passes that come by groups are fewer draws than they are cases, though each group has as many failed ones."""
    heaps = [
        Heap(verdict="passed", cases=300, good=12),
        Heap(verdict="failed", cases=100, bad=24),
        Heap(verdict="undecided", cases=100, good=12),
    ]
    kinds = [[1] * 4 + [0 if number < 3 else 2] * 4 for number in range(6)]
    rows = [(f"q{number}", kind, kind != 1) for number, group in enumerate(kinds) for kind in group]

    assert compute_sample_p_value(heaps) < 0.001
    assert compute_sample_p_value(heaps, groups=count_pairs(rows, 3)) > 0.01


def test_groups_of_equal_answers_count_as_one_label_each():
    """The design effect of 20 groups with 8 equal answers is about 8, so the interval is wider than that of 20."""
    heaps, rows = make_alike(20)
    grouped = take_rate(make_internal_rate(heaps, groups=count_pairs(rows, 1), target="system"))
    alone = find_interval(15, 20)

    assert grouped.deff == pytest.approx(8 * 20 / 19)
    assert (grouped.groups, grouped.labels, grouped.worth) == (20, 160, None)
    assert grouped.high - grouped.low > alone[1] - alone[0]
    assert any("groups do not depend" in sentence for sentence in grouped.assumptions)


def test_groups_of_equal_answers_bring_a_rate_nearer_to_its_end():
    """40 bad labels of 5 groups are 5 of their kind, so the limits are as wide as the exact ones; 40 alone are 40."""
    heaps, rows = make_alike(20)

    assert take_rate(make_internal_rate(heaps)).method.endswith("Wilson limits")
    assert take_rate(make_internal_rate(heaps, groups=count_pairs(rows, 1))).method.endswith("Wilson and exact limits")


def test_groups_of_one_are_labels():
    """Without anything alike in them, only Student's t makes the interval wider, and only a little."""
    rows = [(f"q{number}", number % 2, number % 5 > 0) for number in range(200)]
    heaps = [
        Heap(
            verdict=verdict,
            cases=1000,
            good=sum(truth for _, at, truth in rows if at == place),
            bad=sum(not truth for _, at, truth in rows if at == place),
        )
        for place, verdict in enumerate(("passed", "failed"))
    ]
    grouped = take_rate(make_internal_rate(heaps, groups=count_pairs(rows)))
    plain = take_rate(make_internal_rate(heaps))

    assert grouped.deff == pytest.approx(1, abs=0.02)
    assert plain.high - plain.low < grouped.high - grouped.low < 1.03 * (plain.high - plain.low)


def test_the_design_effect_is_at_least_that_of_the_jackknife():
    """Leaving out each group in turn, with the weights of the heaps, gives the variance that counts are shrunk by."""
    import numpy as np

    rng = np.random.default_rng(7)
    rows = [
        (f"q{group}", int(rng.random() < 0.2 + 0.6 * (group % 3 == 0)), bool(rng.random() < 0.3 + 0.5 * (group % 2)))
        for group in range(24)
        for _ in range(1 + group % 8)
    ]
    weights, everything = (0.7, 0.3), sorted({name for name, _, _ in rows})

    def rate(left_out: str) -> float:
        total = 0.0
        for place, weight in enumerate(weights):
            truths = [truth for name, at, truth in rows if at == place and name != left_out]
            total += weight * sum(truths) / len(truths)
        return total

    shares = [[truth for _, at, truth in rows if at == place] for place in (0, 1)]
    simple = sum(
        w * w * np.mean(item) * (1 - np.mean(item)) / len(item) for w, item in zip(weights, shares, strict=True)
    )
    jackknife = 23 / 24 * sum((rate(name) - rate("")) ** 2 for name in everything)
    heaps = [
        Heap(verdict=verdict, cases=cases, good=sum(item), bad=len(item) - sum(item))
        for verdict, cases, item in zip(("passed", "failed"), (700, 300), shares, strict=True)
    ]
    corrected = take_rate(make_internal_rate(heaps, groups=count_pairs(rows)))

    assert corrected.deff == pytest.approx(max(1, jackknife / simple), rel=0.03)
    assert corrected.deff >= jackknife / simple - 1e-9


def make_fixed(groups: int, chance, *, all_good: float = 0.0) -> tuple[list[Heap], list[tuple[str, int, bool]], float]:
    """A run of 400 questions of whose 4 answers 1 is good, or all; a judge that errs; whole questions are labelled."""
    import numpy as np

    good = np.arange(4)[None, :] < np.where(chance.random(400) < all_good, 4, 1)[:, None]
    passed = np.where(good, chance.random((400, 4)) < 0.8, chance.random((400, 4)) < 0.25)
    rows = [(f"q{at}", int(not passed[at, n]), bool(good[at, n])) for at in range(groups) for n in range(4)]
    heaps = [
        Heap(
            verdict=verdict,
            cases=int((passed == (place == 0)).sum()),
            good=sum(truth for _, heap, truth in rows if heap == place),
            bad=sum(not truth for _, heap, truth in rows if heap == place),
        )
        for place, verdict in enumerate(("passed", "failed"))
    ]
    return heaps, rows, float(good.mean())


@pytest.mark.parametrize(("groups", "narrower"), [(10, 1.0), (12, 1.0), (60, 0.8), (200, 0.65)])
def test_groups_that_differ_less_than_single_answers_narrow_the_interval_as_far_as_they_show_it(groups, narrower):
    """Of 4 answers to each question 1 is good: few questions show too little of that for an effect below 1."""
    import numpy as np

    heaps, rows, _ = make_fixed(groups, np.random.default_rng(4))
    grouped = take_rate(make_internal_rate(heaps, groups=count_pairs(rows)))
    single = take_rate(make_internal_rate(heaps))

    assert grouped.deff is not None
    assert (grouped.deff < 1) == (narrower < 1)
    assert grouped.high - grouped.low > 0
    if narrower < 1:
        assert grouped.high - grouped.low < narrower * (single.high - single.low)
    else:
        assert grouped.high - grouped.low > single.high - single.low


def test_groups_that_never_differ_are_no_proof_that_none_does():
    """With 40 questions all alike, a kind of question that none of them is may still be there: the effect stays 1."""
    rows = [(f"q{at}", 0, n == 0) for at in range(40) for n in range(4)]
    heaps = [Heap(verdict="passed", cases=1600, good=40, bad=120)]
    rate = take_rate(make_internal_rate(heaps, groups=count_pairs(rows, 1)))

    assert rate.deff == 1
    assert rate.low < 0.25 < rate.high


@pytest.mark.parametrize("all_good", [0.0, 0.03, 0.1])
def test_an_effect_below_1_covers_where_a_few_groups_are_of_another_kind(all_good: float):
    """60 of 400 questions are labelled; in 3 or 10 of 100 all four answers are good, which few labels may show."""
    import numpy as np

    chance, held = np.random.default_rng(6), 0
    for _ in range(150):
        heaps, rows, truth = make_fixed(60, chance, all_good=all_good)
        rate = take_rate(make_internal_rate(heaps, groups=count_pairs(rows)))
        held += rate.low <= truth <= rate.high

    assert held >= 0.9 * 150


def test_answers_that_are_all_alike_do_not_make_groups_independent():
    """Where everything was good, nothing shows how alike groups are: each counts as one label, and not as 8."""
    heaps, rows = make_alike(12, bad_groups=0)
    rate = take_rate(make_internal_rate(heaps, groups=count_pairs(rows, 1), target="system"))

    assert rate.deff == pytest.approx(8)
    assert rate.low < find_interval(12, 12)[0]
    assert any("12 groups are few: label 3 more" in note for note in rate.notes)


def test_fewer_than_10_groups_are_refused():
    """The refusal says how many more are needed."""
    heaps, rows = make_alike(9)
    refusal = take_refusal(make_internal_rate(heaps, groups=count_pairs(rows, 1)))

    assert (refusal.because, refusal.more_groups) == ("few_groups", 1)
    assert "9 groups" in refusal.reason
    assert "label 1 more group; 15 in all" in refusal.remedy
    heaps, rows = make_alike(8)
    refusal = take_refusal(make_internal_rate(heaps, groups=count_pairs(rows, 1)))
    assert "label 2 more groups; 15 in all" in refusal.remedy


def test_unresolved_truth_in_groups_is_counted_both_ways():
    """The counts of the groups and of the heaps are moved together."""
    heaps, rows = make_alike(20)
    rows = [*rows[:-8], *[(name, place, None) for name, place, _ in rows[-8:]]]
    heaps = [dataclasses.replace(heaps[0], good=heaps[0].good - 8, unresolved=8)]
    rate = take_rate(make_internal_rate(heaps, groups=count_pairs(rows, 1)))

    assert rate.bounds == pytest.approx((14 / 20, 15 / 20))
    assert rate.low < 14 / 20 < 15 / 20 < rate.high


def test_the_design_effect_is_that_of_the_labels_that_people_settled():
    """Labels without a truth, taken as good or bad, would make their groups more alike, or less."""
    _, alike = make_alike(20)
    rows = [(name, place, truth if at < 80 or at % 8 else None) for at, (name, place, truth) in enumerate(alike)]
    settled = [(name, place, truth) for name, place, truth in rows if truth is not None]
    good = sum(truth for _, _, truth in settled)
    heap = Heap(verdict="passed", cases=3_200, good=good, bad=len(settled) - good)

    expected = take_rate(make_internal_rate([heap], groups=count_pairs([*settled], 1))).deff
    heap = dataclasses.replace(heap, unresolved=len(rows) - len(settled))
    assert take_rate(make_internal_rate([heap], groups=count_pairs(rows, 1))).deff == pytest.approx(expected)


# ------------------------------------------------------------------------------------------ which labels give a rate


def draw_run(chance, *, cases: int, labels: int, good: float, sens: float, spec: float, weights=None) -> list[Heap]:
    """The heaps of a run with so many labels, drawn at random or with weights from (truth, passed)."""
    import numpy as np

    truth = chance.random(cases) < good
    passed = np.where(truth, chance.random(cases) < sens, chance.random(cases) > spec)
    share = None if weights is None else weights(truth, passed) / weights(truth, passed).sum()
    drawn = np.zeros(cases, dtype=bool)
    drawn[chance.choice(cases, labels, replace=False, p=share)] = True
    return [
        Heap(
            verdict="passed" if side is passed else "failed",
            cases=int(side.sum()),
            good=int((side & drawn & truth).sum()),
            bad=int((side & drawn & ~truth).sum()),
        )
        for side in (passed, ~passed)
    ]


JUDGES = [(0.95, 0.9), (0.8, 0.7), (0.5, 0.5), (0.3, 0.2), (1.0, 1.0), (1.0, 0.0)]
"""Sensitivity and specificity: good, fair, blind and contrary judges, one without error and one that passes all."""


@pytest.mark.matrix
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("good", [0.0, 0.02, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("sampled", [True, False])
def test_no_interval_has_zero_width_except_a_census(judge: tuple[float, float], good: float, sampled: bool):
    """Over judges, shares of good answers, sizes, limits and targets: certainty comes from counting all cases alone."""
    import numpy as np

    chance = np.random.default_rng(int(100 * good) + JUDGES.index(judge))
    methods: tuple[IntervalMethod | None, ...] = (None, "wilson", "jeffreys", "exact")
    for cases, labels in ((1, 1), (2, 1), (7, 6), (50, 49), (50, 50), (400, 10), (400, 399), (400, 400), (5000, 600)):
        heaps = draw_run(chance, cases=cases, labels=labels, good=good, sens=judge[0], spec=judge[1])
        for method, target in itertools.product(methods, ("run", "system")):
            answer = make_corrected_rate(heaps, sampled=sampled, target=target, method=method)
            census = labels == cases and target == "run"
            if isinstance(answer, CorrectedRate):
                assert (answer.low == answer.high) == census, (heaps, method, target, answer)
            assert (
                isinstance(answer, Refusal) == (not sampled and labels < cases) or compute_sample_p_value(heaps) < 0.01
            )


@pytest.mark.matrix
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("good", [0.0, 0.02, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_no_interval_of_strata_or_groups_has_zero_width_except_a_census(
    judge: tuple[float, float], good: float, size: int
):
    """Nor where one stratum is counted and another is not, or where all answers of each group are alike."""
    import numpy as np

    chance = np.random.default_rng(int(100 * good) + JUDGES.index(judge))
    given = 0
    for cases, labels, others in itertools.product((60, 400), (40, 60, 400), ((1, 1), (30, 12), (30, 29), (30, 30))):
        if labels > cases:
            continue
        first = draw_run(chance, cases=cases, labels=labels, good=good, sens=judge[0], spec=judge[1])
        second = draw_run(chance, cases=others[0], labels=others[1], good=good, sens=judge[0], spec=judge[1])
        strata = [
            dataclasses.replace(heap, stratum=name) for name, part in (("a", first), ("b", second)) for heap in part
        ]
        truths = [
            (place, truth) for place, heap in enumerate(first) for truth in [True] * heap.good + [False] * heap.bad
        ]
        groups = count_pairs([(f"q{at // size}", place, truth) for at, (place, truth) in enumerate(truths)])
        for heaps, drawn, is_counted in (
            (strata, None, labels == cases and others[0] == others[1]),
            (first, groups, labels == cases),
        ):
            for target in ("run", "system"):
                answer = make_internal_rate(heaps, groups=drawn, target=target)
                if isinstance(answer, CorrectedRate):
                    given += 1
                    assert (answer.low == answer.high) == (is_counted and target == "run"), (
                        heaps,
                        size,
                        target,
                        answer,
                    )
    assert given >= 40


def read_recorded() -> list[dict[str, Any]]:
    """Counts of random labels of a run, with the rates that were given for them before any other design went."""
    path = TESTS / "data" / "corrected_rates.jsonl"
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", read_recorded())
def test_random_labels_of_the_run_give_the_rates_that_were_recorded(row: dict[str, Any]):
    """Four judges, four shares of good answers and three sizes: values, limits and bounds, to the last digit."""
    heaps = [Heap(**heap) for heap in row["heaps"]]
    rate = take_rate(make_corrected_rate(heaps, sampled=True, target=row["target"], method=row["method"])).to_dict()

    for name, expected in row["rate"].items():
        assert rate[name] == pytest.approx(expected, rel=1e-12, abs=1e-12), name


def test_labels_that_somebody_chose_give_no_rate():
    """The refusal says what to do, and still shows what the judge passed."""
    refusal = take_refusal(make_corrected_rate([dataclasses.replace(PASSED, bad=14), FAILED]))

    assert refusal.because == "not_random"
    assert "not known that the labelled cases were drawn at random" in refusal.reason
    assert refusal.remedy == "label 50 cases of this run at random"
    assert refusal.naive is not None
    assert refusal.naive.rate == 0.64


def test_a_census_needs_no_draw():
    """Where every case has a label nothing was chosen, so nobody has to say that it was random."""
    rate = take_rate(make_corrected_rate([Heap(verdict="passed", cases=9, good=6, bad=3)]))

    assert rate.interval == pytest.approx((6 / 9, 6 / 9))


@pytest.mark.parametrize("chosen", ["by verdict", "by truth"])
def test_labels_that_do_not_look_random_give_no_rate(chosen: str):
    """Half passed and half failed cases, or the bad ones first: nobody knows which, and no interval is right for both.

    Every draw that is noticed is refused. Random draws are noticed in fewer than 3 of 100.
    """
    import numpy as np

    chance = np.random.default_rng(1)
    weights = {
        "by verdict": lambda truth, passed: np.where(passed, 1 / passed.sum(), 1 / (~passed).sum()),
        "by truth": lambda truth, passed: np.where(truth, 1.0, 3.0),
        "at random": None,
    }
    refused = dict.fromkeys((chosen, "at random"), 0)
    for way in refused:
        for _ in range(100):
            heaps = draw_run(chance, cases=1000, labels=200, good=0.7, sens=0.9, spec=0.8, weights=weights[way])
            answer = make_corrected_rate(heaps, sampled=True)
            assert isinstance(answer, Refusal) == (compute_sample_p_value(heaps) < 0.01)
            refused[way] += isinstance(answer, Refusal)
            if isinstance(answer, Refusal):
                assert answer.because == "not_random"
                assert "do not look like a random sample" in answer.reason

    assert refused[chosen] > 60
    assert refused["at random"] < 3


@pytest.mark.parametrize(
    ("bad", "method", "words"),
    [
        (1, None, "1 of the labelled answers is bad: so near to the end the interval is as wide as the exact one"),
        (2, None, "2 of the labelled answers are bad: so near to the end the interval is as wide as the exact one"),
        (0, "wilson", "0 of the labelled answers are bad: so near to the end the interval covers less than it says"),
        (43, "wilson", "7 of the labelled answers are good: so near to the end the interval covers less than it says"),
        (1, "exact", ""),
        (8, None, ""),
        (42, "wilson", ""),
    ],
)
def test_a_rate_near_the_end_says_so(bad: int, method: IntervalMethod | None, words: str):
    """Where 1 label of 50 is bad, Wilson's limits cover down to 85 % of 95 %. By default the exact ones join them."""
    good = 40 - min(bad, 40)
    heaps = [
        Heap(verdict="passed", cases=150, good=good, bad=min(bad, 40)),
        Heap(verdict="failed", cases=50, good=50 - bad - good, bad=bad - min(bad, 40)),
    ]
    rate = take_rate(make_internal_rate(heaps, method=method))

    assert [note.startswith(words) for note in rate.notes if "so near to the end" in note] == [True] * bool(words)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=4
    ),
    st.sampled_from([None, "wilson", "jeffreys", "exact"]),
    st.booleans(),
)
def test_limits_of_a_run_leave_out_what_its_labels_exclude(
    counts: list[tuple[int, int, int, int]], method: IntervalMethod | None, sampled: bool
):
    """With k of n cases labelled bad, at most n - k are good; with k labelled good, at least k are."""
    verdicts: list[HeapVerdict] = ["passed", "failed", "undecided", "failed"]
    heaps = [
        Heap(verdict=verdict, cases=good + bad + unknown + rest, good=good, bad=bad, unresolved=unknown)
        for verdict, (good, bad, unknown, rest) in zip(verdicts, counts, strict=False)
    ]
    cases = sum(heap.cases for heap in heaps)
    if not cases:
        return
    rate = make_corrected_rate(heaps, sampled=sampled, method=method)
    if isinstance(rate, Refusal):
        return

    least, most = sum(heap.good for heap in heaps) / cases, 1 - sum(heap.bad for heap in heaps) / cases
    assert least - 1e-12 <= rate.low <= rate.value <= rate.high <= most + 1e-12


def test_a_tiny_run_has_no_impossible_limit():
    """Of 6 cases one is labelled bad: at most 5 of 6 are good, whatever an interval for large runs says."""
    rate = take_rate(make_internal_rate([Heap(verdict="passed", cases=6, good=2, bad=1)]))

    assert rate.high == pytest.approx(5 / 6)
    assert rate.low >= 2 / 6


@pytest.mark.full
@pytest.mark.slow
def test_the_default_limits_cover_near_the_end():
    """A run of 200 cases of which 1 in 100 is bad, a judge that knows nothing, and 50 labels."""
    import numpy as np

    chance = np.random.default_rng(2)
    methods: tuple[IntervalMethod | None, ...] = (None, "wilson", "exact")
    held = dict.fromkeys(methods, 0)
    for _ in range(400):
        good = int(chance.binomial(200, 0.99))
        passed = int(chance.binomial(good, 0.5)), int(chance.binomial(200 - good, 0.5))
        sizes = [passed[0], passed[1], good - passed[0], 200 - good - passed[1]]
        drawn = [int(number) for number in chance.multivariate_hypergeometric(sizes, 50)]
        heaps = [
            Heap(verdict="passed", cases=sum(sizes[:2]), good=drawn[0], bad=drawn[1]),
            Heap(verdict="failed", cases=sum(sizes[2:]), good=drawn[2], bad=drawn[3]),
        ]
        for method in methods:
            rate = take_rate(make_internal_rate(heaps, method=method))
            held[method] += rate.low - 1e-9 <= good / 200 <= rate.high + 1e-9

    assert held[None] >= 0.93 * 400
    assert held["exact"] >= 0.93 * 400
    assert held["wilson"] < held["exact"]


def test_groups_of_very_different_size_are_named():
    """One question with half of the labels: the design effect cannot know how such questions differ."""
    rows = [("giant", True)] * 60 + [(f"q{at}", at % 4 > 0) for at in range(60)]
    groups = count_groups([name for name, _ in rows], [0] * 120, [good for _, good in rows], columns=1)
    good = sum(good for _, good in rows)
    rate = take_rate(make_internal_rate([Heap(verdict="passed", cases=500, good=good, bad=120 - good)], groups=groups))

    assert any("unequal" in note for note in rate.notes)
    heaps, alternating = make_alike(20, bad_groups=10)
    rate = take_rate(make_internal_rate(heaps, groups=count_pairs(alternating, 1)))
    assert not any("unequal" in note for note in rate.notes)


def test_the_guard_is_fishers_test():
    """Its p-value is scipy's for the same table, when nothing is in groups and there are no strata."""
    from scipy.stats import fisher_exact

    heaps = [Heap(verdict="passed", cases=640, good=20, bad=30), Heap(verdict="failed", cases=360, good=12, bad=38)]
    expected = fisher_exact([[50, 50], [590, 310]])[1]

    assert compute_sample_p_value(heaps) == pytest.approx(expected)


def test_strata_are_compared_each_with_itself():
    """Drawing more from a stratum that the judge fails is a plan, and no sign of a sample that is not random."""
    heaps = [
        Heap(verdict="passed", cases=900, good=10, stratum="sure"),
        Heap(verdict="failed", cases=100, good=20, bad=40, stratum="doubt"),
    ]

    assert compute_sample_p_value(heaps) == 1
    plain = [dataclasses.replace(item, stratum=None) for item in heaps]
    assert compute_sample_p_value(plain) < 0.01


def test_the_guard_knows_that_groups_are_alike():
    """Whole questions that the judge passes or fails together differ from the rest by chance more than single cases."""
    rows = [(f"q{number}", number % 3 == 0, True) for number in range(30) for _ in range(8)]
    heaps = [Heap(verdict="passed", cases=1700, good=160), Heap(verdict="failed", cases=1500, good=80)]

    assert compute_sample_p_value(heaps) < 0.01
    grouped = count_pairs([(name, int(place), truth) for name, place, truth in rows])
    assert compute_sample_p_value(heaps, groups=grouped) > 0.01


# ---------------------------------------------------------------------------------------------------------- the rest


def test_a_judge_without_error_is_worth_the_whole_run():
    """If the run is labelled throughout by a perfect judge, its labels are worth as many as there are cases."""
    assert find_worth(0.5, 0.0, cases=1000) == 1000
    assert find_worth(0.5, 1.0, cases=1000) == 1


@given(value=st.floats(0, 1), labels=st.integers(5, 500), target=st.sampled_from(["run", "system"]))
def test_people_alone_are_worth_their_own_number(value: float, labels: int, target):
    """The width of people's own interval is worth the labels that it was made of."""
    rate = take_rate(
        make_internal_rate(
            [Heap(verdict="passed", cases=1000, good=round(value * labels), bad=labels - round(value * labels))],
            target=target,
        )
    )

    assert rate.worth == pytest.approx(labels, abs=1)


def test_a_million_cases_take_no_time():
    """Only counts are computed with; the guard's exact test is no exception."""
    rate = take_rate(
        make_corrected_rate(
            [
                Heap(verdict="passed", cases=640_000, good=5_990, bad=410),
                Heap(verdict="failed", cases=360_000, good=300, bad=3_300),
            ],
            sampled=True,
        )
    )

    assert rate.high - rate.low < 0.02


def test_rates_and_refusals_are_plain_data():
    """What a report writes can be written as JSON."""
    rate = take_rate(make_corrected_rate([dataclasses.replace(PASSED, unresolved=1), FAILED], sampled=True))
    data = json.loads(json.dumps(rate.to_dict()))
    refusal = json.loads(json.dumps(take_refusal(make_internal_rate([Heap(verdict="passed", cases=1)])).to_dict()))

    assert (data["value"], data["target"], data["naive"]["count"]) == (rate.value, "run", 640)
    assert refusal["because"] == "no_labels"


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: make_internal_rate([]), "one case or more"),
        (lambda: make_internal_rate([Heap(verdict="passed", cases=5, good=4, bad=2)]), "6 labels"),
        (lambda: make_internal_rate([Heap(verdict="passed", cases=5, good=-1)]), "good.*-1"),
        (lambda: make_internal_rate([Heap(verdict="passed", cases=math.nan)]), "cases.*nan"),
        (lambda: make_internal_rate([Heap(verdict="passed", cases=True)]), "cases.*True"),
        (lambda: make_internal_rate([Heap(verdict="pass", cases=5, good=1)]), "pass"),
        (lambda: make_internal_rate([PASSED], target="world"), "world.*run.*system"),
        (lambda: make_internal_rate([PASSED], level=1.0), "level.*1.0"),
        (lambda: make_internal_rate([dataclasses.replace(PASSED, stratum=str(at)) for at in range(7)]), "6 strata"),
        (lambda: make_internal_rate([PASSED], groups=count_groups(["a"], [0], [True], columns=1)), "add up"),
        (lambda: count_groups(["a"], [0], [], columns=1), "1, 1 and 0"),
        (lambda: count_groups(["a"], [2], [True], columns=2), "0 to 1"),
        (lambda: find_worth(2, 0.1, cases=5), "rate"),
        (lambda: find_worth(0.5, math.inf, cases=5), "width.*inf"),
        (lambda: find_worth(0.5, 0.1, cases=5, target="world"), "world"),
        (lambda: make_corrected_rate([PASSED, FAILED], method="wald"), "wald.*wilson"),
        (lambda: make_corrected_rate([PASSED, FAILED], level="0.95"), "level.*0.95"),
        (lambda: make_internal_rate([PASSED], level=1 - 1e-16), "level"),
        (lambda: Heap(verdict="passed", cases=10**400), "cases.*1,000,000,000"),
        (lambda: Heap(verdict="passed", cases=5, stratum=1), "stratum.*1"),
        (lambda: count_groups(["a", None], [0, 0], [True, True], columns=1), "None"),
        (lambda: count_groups(["a", math.nan], [0, 0], [True, True], columns=1), "nan"),
        (lambda: count_groups(["a"], [0], ["cannot_tell"], columns=1), "cannot_tell"),
        (lambda: count_groups(["a"], [0], [1], columns=1), "True, False or None.*1"),
    ],
)
def test_counts_that_cannot_be_are_refused(call, named: str):
    """The complaint names the count and its value."""
    with pytest.raises(UsageError, match=named):
        call()


def test_counts_may_be_numpys():
    """They become Python's own, so that the result can be written as JSON."""
    import numpy as np

    heaps = [Heap(verdict="passed", cases=np.int64(50), good=np.int32(9), bad=np.uint8(1))]

    assert json.dumps(take_rate(make_internal_rate(heaps)).to_dict()) == json.dumps(
        take_rate(make_internal_rate([Heap(verdict="passed", cases=50, good=9, bad=1)])).to_dict()
    )


# ------------------------------------------------------------------------------------------------------- simulations


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    good=st.sampled_from([0.1, 0.5, 0.8]),
    sens=st.sampled_from([0.7, 0.95]),
    spec=st.sampled_from([0.7, 0.95]),
)
def test_the_public_functions_cover(seed: int, good: float, sens: float, spec: float):
    """Of 200 runs with 100 labels, 172 or more intervals hold the rate of the run.

    With a coverage of 93 % fewer would be seen once in 2,000 times; where it is 94.5 % or more, once in 100,000.
    """
    import numpy as np

    rng, held = np.random.default_rng(seed), 0
    chances = [good * sens, good * (1 - sens), (1 - good) * (1 - spec), (1 - good) * spec]
    for _ in range(200):
        mine, rest = rng.multinomial(100, chances), rng.multinomial(2000, chances)
        whole = mine + rest
        heaps = [
            Heap(
                verdict=verdict,
                cases=int(whole[at] + whole[at + 2]),
                good=int(mine[at]),
                bad=int(mine[at + 2]),
            )
            for at, verdict in enumerate(("passed", "failed"))
        ]
        low, high = take_rate(make_internal_rate(heaps)).interval
        held += low <= whole[:2].sum() / whole.sum() <= high

    assert held >= 172


@pytest.mark.slow_table
@pytest.mark.integration
@pytest.mark.parametrize("method", ["double-sampling", "ends", "groups", "fixed-groups", "strata"])
def test_the_page_of_coverage_can_be_computed_again(method: str, require):
    """A sample of the cells of research/coverage with fewer draws keeps the bounds, less three standard errors."""
    import subprocess
    import sys

    from kit import house

    script = house.ROOT / "research" / "coverage"
    require("research/coverage", script.is_file(), "run the tests in a checkout")
    few = {name: ["--cells", "3", "--draws", "200"] for name in ("groups", "fixed-groups")} | {
        "strata": ["--cells", "2", "--draws", "60"]
    }
    options = few.get(method, ["--cells", "12", "--draws", "500"])
    command = [sys.executable, str(script), "--method", method, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, "adjudge, target run" in done.stdout) == (0, True), done.stderr


def test_the_page_names_the_commands_that_wrote_it():
    """Its tables are between the marks of both scripts, and nobody wrote them by hand."""
    from kit import house

    page = Path(house.ROOT / "docs" / "coverage.md").read_text("utf-8")

    assert "All bounds are kept." in page
    assert page.index("written by research/coverage -->\n\nSimulated with seed") > 0
    assert page.index("written by research/real_judges.py -->\n\n## Recorded judges") > 0


def test_what_a_rate_assumes_is_said_of_what_it_is_about():
    """Of the run, or of the system that made it; of cases, or of groups; and where a draw is only said to be random."""
    heaps = [PASSED, FAILED]
    said = take_rate(make_corrected_rate(heaps, sampled=True, recorded=False))
    of_run = take_rate(make_corrected_rate(heaps, sampled=True, target="run"))
    of_system = take_rate(make_corrected_rate(heaps, sampled=True, target="system"))
    grouped_heaps, rows = make_alike(20)
    grouped = take_rate(make_internal_rate(grouped_heaps, groups=count_pairs(rows, 1)))
    sample = "The run is a random sample of what the system produces."

    assert of_run.assumptions[0] == "The labelled cases were drawn at random from this run."
    assert grouped.assumptions[0] == "The labelled groups were drawn at random from this run."
    claim = "You said that the labelled cases were drawn at random from this run; no recorded draw shows it."
    assert (said.assumptions, said.interval) == ((claim, *of_run.assumptions[1:]), of_run.interval)
    assert sample not in of_run.assumptions
    assert sample in of_system.assumptions
