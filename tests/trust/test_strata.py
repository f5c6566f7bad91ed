"""Strata of cases without labels, and how labels are shared out among them: pilots and allocations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

import numpy as np

from adjudge import UsageError
from adjudge.trust import (
    allocate_labels,
    allocate_pilot,
    find_weighted_share,
    group_scores,
    score_signals,
)

quick = settings(max_examples=60, deadline=None)
sizes_of = st.lists(st.integers(1, 400), min_size=1, max_size=6)


@st.composite
def counted(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], int]:
    """Sizes, labelled and good cases of strata, and a number of labels that is wanted."""
    sizes = draw(sizes_of)
    labelled = [draw(st.integers(0, size)) for size in sizes]
    good = [draw(st.integers(0, count)) for count in labelled]
    return sizes, labelled, good, draw(st.integers(0, sum(sizes) + 50))


# ---------------------------------------------------------------- strata


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ({"verdict": False}, {"verdict": True}),
        ({"verdict": False}, {"verdict": None}),
        ({"verdict": True, "votes": [True, False]}, {"verdict": True, "votes": [True, True]}),
        ({"verdict": False, "votes": [True] * 5}, {"verdict": True, "votes": [False, False, True]}),
        ({"verdict": True, "score": 0.7}, {"verdict": True, "score": 0.95}),
    ],
)
def test_more_signs_of_good_score_higher(lower: dict[str, object], higher: dict[str, object]):
    """The verdict counts as much as all votes together, and every vote and the score move it."""
    assert 0 < score_signals(**lower) < score_signals(**higher) < 1  # type: ignore[arg-type]


def test_equal_scores_stay_together():
    """A stratum is a range of scores, numbered from the lowest; a verdict alone makes two."""
    scores = [0.25] * 40 + [0.75] * 60

    assert group_scores(scores) == (0,) * 40 + (1,) * 60


@quick
@given(st.lists(st.floats(0, 1), min_size=1, max_size=300), st.integers(1, 6))
def test_strata_are_ranges_of_scores(scores: list[float], most: int):
    """At most so many, numbered without a gap, none below ten cases if there are several, and in the scores' order."""
    strata = group_scores(scores, most=most)
    ordered = [number for _, number in sorted(zip(scores, strata, strict=True))]

    assert ordered == sorted(ordered)
    assert sorted(set(strata)) == list(range(max(strata) + 1))
    assert max(strata) < most
    assert max(strata) == 0 or min(strata.count(number) for number in set(strata)) >= 10
    assert all(len({n for s, n in zip(scores, strata, strict=True) if s == score}) == 1 for score in set(scores))


def test_disputed_scores_get_more_strata():
    """The sums of standard deviations are about equal: sure cases share a stratum, unsure ones are split."""
    scores = [0.02] * 500 + [0.4] * 100 + [0.5] * 100 + [0.6] * 100 + [0.98] * 500
    strata = group_scores(scores)
    sums = [
        sum(math.sqrt(s * (1 - s)) for s, n in zip(scores, strata, strict=True) if n == number)
        for number in range(max(strata) + 1)
    ]

    assert len(sums) == 4
    assert max(sums) / min(sums) < 2.1


@pytest.mark.parametrize("scores", [[1.2], [float("nan")], [-0.1]])
def test_a_score_is_from_0_to_1(scores: list[float]):
    """Anything else is refused."""
    with pytest.raises(UsageError, match="score"):
        group_scores(scores)


# ---------------------------------------------------------------- where


@quick
@given(sizes_of, st.integers(1, 2000))
def test_a_pilot_is_in_proportion_with_five_each(sizes: list[int], labels: int):
    """A quarter of the labels and at least 60, of every stratum at least 5, never more than it has."""
    allocation = allocate_pilot(sizes, labels)

    assert sum(allocation) == min(max(60, math.ceil(labels / 4)), sum(sizes))
    assert all(min(5, size) <= count <= size for count, size in zip(allocation, sizes, strict=True))


@quick
@given(counted())
def test_an_allocation_reaches_its_total(sample: tuple[list[int], list[int], list[int], int]):
    """As many as are wanted, no stratum gets more than it has left, and no label is taken back."""
    sizes, labelled, good, total = sample
    more = allocate_labels(sizes, total, labelled=labelled, good=good)

    assert sum(more) == min(max(total, sum(labelled)), sum(sizes)) - sum(labelled)
    assert all(0 <= m <= size - n for m, size, n in zip(more, sizes, labelled, strict=True))


def test_labels_go_where_people_disagree():
    """In proportion to size times standard deviation, with smoothed shares: the sure stratum still gets some."""
    sure, unsure = allocate_labels([1000, 1000], 300, labelled=[40, 40], good=[40, 20])
    spread = [math.sqrt(41 / 42 * 1 / 42), 0.5]

    assert (40 + sure) / (40 + unsure) == pytest.approx(spread[0] / spread[1], abs=0.02)
    assert sure > 0


@pytest.mark.parametrize(
    ("sizes", "labelled", "good"), [([], [], []), ([10] * 7, [0] * 7, [0] * 7), ([10], [11], [0]), ([10], [5], [6])]
)
def test_counts_of_no_run_are_refused(sizes: list[int], labelled: list[int], good: list[int]):
    """One to six strata, no more labels than cases, no more good ones than labels."""
    with pytest.raises(UsageError):
        allocate_labels(sizes, 100, labelled=labelled, good=good)


@pytest.mark.parametrize(
    ("sizes", "rates"), [([1600, 400, 400], [0.98, 0.6, 0.1]), ([900, 600], [0.8, 0.3]), ([3000, 200], [0.95, 0.5])]
)
def test_planned_labels_cover(sizes: list[int], rates: list[float]):
    """Of 400 plans of 200 labels, the interval for one look covers in at least 91.5 %: 95 % less three errors of it."""
    random, inside = np.random.default_rng(20261122), 0
    good = [round(size * rate) for size, rate in zip(sizes, rates, strict=True)]
    for _ in range(400):
        pilot = allocate_pilot(sizes, 200)
        seen = [int(random.hypergeometric(g, s - g, n)) for g, s, n in zip(good, sizes, pilot, strict=True)]
        more = allocate_labels(sizes, 200, labelled=pilot, good=seen)
        rest = [
            int(random.hypergeometric(g - x, s - n - (g - x), m)) if m else 0
            for g, x, s, n, m in zip(good, seen, sizes, pilot, more, strict=True)
        ]
        of = [n + m for n, m in zip(pilot, more, strict=True)]
        counts = [x + y for x, y in zip(seen, rest, strict=True)]
        left = [1 - n / s for n, s in zip(of, sizes, strict=True)]
        share = find_weighted_share(counts, of, [s / sum(sizes) for s in sizes], unlabelled=left)
        inside += share.low <= sum(good) / sum(sizes) <= share.high

    assert inside / 400 >= 0.915


def test_a_heap_of_no_weight_changes_nothing():
    """A stratum of a run may be empty; its share counts for nothing, and is no reason to refuse the others."""
    alone = find_weighted_share([30], [40], [1.0])

    assert find_weighted_share([30, 1], [40, 10], [1.0, 0.0]) == alone
