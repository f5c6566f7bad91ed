"""Strata of cases, and how labels are shared out among them: first a pilot, then where people disagree most.

Cases are grouped by something that needs no label: the verdict of the judge, the votes of others, a score. A few of
each group are labelled (the pilot). The remaining labels go where they narrow the interval most: in proportion to the
size of a group times the standard deviation of its labels (Neyman). The strata make the interval narrower and never
wrong: within each stratum the cases are drawn at random.

The intervals are computed elsewhere: of a rate in ``double_sampling.py``, of an agreement in ``weighting.py``, of a
difference in ``difference.py`` (``find_stratified_difference``).

Sources: J. Neyman, "On the two different aspects of the representative method", JRSS 1934; T. Dalenius and J. L.
Hodges, "Minimum variance stratification", JASA 1959, for strata of about equal sums of standard deviations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share, check_whole_number
from adjudge.formats.text import show

MOST_STRATA = 6
"""More strata cover more than they promise, and are wider for it."""

STRATA = 4
"""Strata that are made of a score."""

LEAST_CASES = 10
"""A stratum of fewer cases is joined with its neighbour: too few to say anything about it."""

PILOT = 60
"""Labels of a pilot, at least."""

PILOT_SHARE = 0.25
"""The share of all labels that a pilot takes, where that is more."""

PILOT_EACH = 5
"""Labels of the pilot in each stratum, at least."""


def score_signals(*, verdict: bool | None, votes: Sequence[bool] = (), score: float | None = None) -> float:
    """Score how likely a case is good, by what is known without a label: above 0 and below 1.

    The verdict counts as much as all others together. It is used to group cases and for nothing else, so it need not be
    right: a bad one costs labels and no coverage.

    Args:
        verdict: The judge's verdict; ``None`` is undecided.
        votes: The verdicts of other seats or judges.
        score: The judge's score, from 0 to 1; ``None`` where there is none.
    """
    verdict_votes = [0.5 if verdict is None else float(verdict)] * max(1, len(votes))
    votes_and_score = [
        *verdict_votes,
        *(float(vote) for vote in votes),
        *([] if score is None else [check_share("score", score)]),
    ]
    return (sum(votes_and_score) + 0.5) / (len(votes_and_score) + 1)


def group_scores(scores: Sequence[float], *, most: int = STRATA) -> tuple[int, ...]:
    """The stratum of each case, from 0 for the lowest scores.

    The sums of ``sqrt(s(1 - s))`` are about equal, so that cases of which more can be expected to be disputed get
    more strata. Equal scores stay together. A stratum of fewer than 10 cases is joined with its neighbour. Raises
    ``UsageError`` for scores that are not from 0 to 1.

    Args:
        scores: The judge's score of each case, from 0 to 1.
        most: How many strata there are at most, from 1 to 6.
    """
    check_whole_number("most", most, least=1, most=MOST_STRATA)
    counted = Counter(check_share("scores", score) for score in scores)
    # At 0 and 1 nothing would be expected to be disputed, which no judge earns.
    masses = {score: count * find_deviation(min(max(score, 0.02), 0.98)) for score, count in counted.items()}
    total_mass, lower_mass = sum(masses.values()), 0.0  # lower_mass: of all lower scores
    group_of_score: dict[float, int] = {}
    for score in sorted(masses):
        group_of_score[score] = min(int(most * (lower_mass + masses[score] / 2) / total_mass), most - 1)
        lower_mass += masses[score]
    joined = _join_small(group_of_score, counted)
    return tuple(joined[score] for score in scores)


def _join_small(group_of_score: dict[float, int], counted: Counter[float]) -> dict[float, int]:
    """Join strata of too few cases with their neighbours, and number them anew from 0.

    Takes and returns the stratum of each score; ``counted`` has the number of cases with each score.
    """
    groups: list[list[float]] = []  # the scores of each stratum
    cases: list[int] = []
    for score in sorted(group_of_score):
        is_small = bool(groups) and cases[-1] < LEAST_CASES
        if groups and (is_small or group_of_score[groups[-1][-1]] == group_of_score[score]):
            groups[-1].append(score)
            cases[-1] += counted[score]
        else:
            groups.append([score])
            cases.append(counted[score])
    if len(groups) > 1 and cases[-1] < LEAST_CASES:
        last = groups.pop()
        groups[-1] += last
    return {score: number for number, group in enumerate(groups) for score in group}


def find_deviation(rate: float) -> float:
    """Return the standard deviation of a label (1 if good, else 0) where this share of labels is good."""
    return math.sqrt(rate * (1 - rate))


def allocate_pilot(sizes: Sequence[int], labels: int) -> tuple[int, ...]:
    """Allocate the labels of the pilot to the strata: in proportion to their sizes, at least 5 each.

    The pilot has a quarter of the labels and at least 60; a stratum never gets more than it has.

    Args:
        sizes: The number of cases in each stratum.
        labels: How many labels are planned, from 1 on.
    """
    check_sizes(sizes)
    check_whole_number("labels", labels, least=1)
    total = min(max(PILOT, math.ceil(PILOT_SHARE * labels)), sum(sizes))
    least = [min(PILOT_EACH, size) for size in sizes]
    return _allocate_total(total, sizes, [float(size) for size in sizes], least)


def allocate_labels(
    sizes: Sequence[int], labels: int, *, labelled: Sequence[int], good: Sequence[int]
) -> tuple[int, ...]:
    """Allocate further labels to the strata, so that all together are where people disagree most (Neyman).

    The share of good ones is smoothed, ``(x + 1) / (n + 2)``: a stratum in which everybody agreed so far still gets
    labels. One that has more than its part keeps them.

    Args:
        sizes: The number of cases in each stratum.
        labels: How many labels there are to be in all, those so far included.
        labelled: How many cases of each stratum are labelled so far.
        good: How many of these are good.
    """
    check_sizes(sizes)
    if not len(sizes) == len(labelled) == len(good):
        raise UsageError(
            f"{len(sizes)} strata need as many counts, got {len(labelled)} and {len(good)}", argument="labelled"
        )
    for size, count, x in zip(sizes, labelled, good, strict=True):
        check_whole_number("labelled", count, least=0, most=size)
        check_whole_number("good", x, least=0, most=count)
    check_whole_number("labels", labels, least=0)
    proportions = [
        size * find_deviation((x + 1) / (count + 2)) for size, count, x in zip(sizes, labelled, good, strict=True)
    ]
    total = min(max(labels, sum(labelled)), sum(sizes))
    targets = _allocate_total(total, sizes, proportions, list(labelled))
    return tuple(target - count for target, count in zip(targets, labelled, strict=True))


def _allocate_total(
    total: int, sizes: Sequence[int], proportions: Sequence[float], least: Sequence[int]
) -> tuple[int, ...]:
    """Divide ``total`` labels among strata in these proportions, as whole numbers.

    Each stratum gets at least its number in ``least``, and at most its size; the others then get less or more.
    """
    total = max(total, sum(least))
    # Search the factor of the proportions at which the bounded parts add up to the total.
    low, high = 0.0, 1.0
    while sum(_multiply_bounded(high, proportions, least, sizes)) < total and high < 1e12:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if sum(_multiply_bounded(middle, proportions, least, sizes)) < total:
            low = middle
        else:
            high = middle
    exact = _multiply_bounded(high, proportions, least, sizes)
    rounded = [math.floor(share + 1e-9) for share in exact]
    # What rounding down left over goes to the largest remainders.
    by_remainder = sorted(range(len(rounded)), key=lambda stratum: (rounded[stratum] - exact[stratum], stratum))
    for stratum in by_remainder:
        if sum(rounded) < total and rounded[stratum] < sizes[stratum]:
            rounded[stratum] += 1
    return tuple(rounded)


def _multiply_bounded(
    factor: float, proportions: Sequence[float], least: Sequence[int], most: Sequence[int]
) -> list[float]:
    """Multiply each proportion by a factor, and keep the product between its least and its most."""
    bounds = zip(proportions, least, most, strict=True)
    return [min(max(factor * proportion, float(low)), float(high)) for proportion, low, high in bounds]


def check_sizes(sizes: Sequence[int]) -> None:
    """Raise ``UsageError`` for too many strata or none, and for one without a case."""
    if not 0 < len(sizes) <= MOST_STRATA:
        raise UsageError(f"a plan has 1 to {MOST_STRATA} strata, got {show(len(sizes))}; join some", argument="sizes")
    for size in sizes:
        check_whole_number("sizes", size, least=1)
