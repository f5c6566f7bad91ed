"""The alternative annotator test: may a judge replace people?

One annotator at a time is left out. Who is closer to the remaining ones, the judge or the one left out? The judge wins
over an annotator if, with a handicap ``epsilon``, that annotator's advantage is significantly small. It passes if it
wins over at least half of them.

Source: N. Calderon, R. Reichart and R. Dror, "The Alternative Annotator Test for LLM-as-a-Judge", arXiv 2501.10970.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_share, check_whole_number
from adjudge.formats.record import write_record
from adjudge.formats.text import show
from adjudge.trust.coefficients import Ratings
from adjudge.trust.confusion import Category, check_kinds
from adjudge.trust.extra import check_extra
from adjudge.trust.resampling import check_score

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

Closeness = Literal["accuracy", "neg_rmse"]
"""Closeness of a label to others: the share that are equal, or minus the root of the mean squared distance."""

LEAST_ITEMS = 30
"""The fewest items of an annotator; a t test of fewer is not valid."""

LEAST_ANNOTATORS = 3

_MOST_NAMED = 3
"""The most annotators that a sentence names."""

WANTED_ITEMS = 50
"""With fewer items the test seldom passes, however good the judge is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorTest:
    """The judge against one annotator."""

    annotator: str
    """The annotator."""
    items: int
    """The number of items that they labelled."""
    judge_wins: float
    """The share of items on which the judge is at least as close to the others: the advantage probability."""
    annotator_wins: float
    """The share on which the annotator is at least as close; a tie counts for both."""
    p_value: float
    """One-sided, that the annotator's advantage is ``epsilon`` or more."""
    adjusted: float
    """The p-value adjusted for the number of annotators (Benjamini and Yekutieli)."""
    rejected: bool
    """True if the judge wins over this annotator."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeTest:
    """The outcome of the test."""

    passed: bool
    """True if the winning rate is at least one half."""
    winning_rate: float
    """The share of the annotators that were kept over whom the judge wins."""
    advantage_probability: float
    """The mean over annotators of the share of items on which the judge is at least as close to the others."""
    epsilon: float
    """The handicap that the annotators were given."""
    q: float
    """The rate of false discoveries that was allowed."""
    closeness: Closeness
    """The measure of closeness: ``accuracy`` or ``neg_rmse``."""
    annotators: tuple[AnnotatorTest, ...]
    """The judge against each annotator that was kept."""
    annotators_left_out: tuple[str, ...]
    """Annotators with too few items."""
    items: int
    """Items with at least two annotators."""
    items_left_out: int
    """Items with fewer than two annotators."""
    undecided: int
    """Items on which the judge said nothing; there every annotator is closer."""
    notes: tuple[str, ...]
    """Sentences that a reader must know, such as too few annotators for a firm answer."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_alternative_test(
    judged: Sequence[Category],
    ratings: Ratings,
    *,
    epsilon: float,
    closeness: Closeness = "accuracy",
    q: float = 0.05,
    least_items: int = LEAST_ITEMS,
) -> AlternativeTest:
    """Test whether a judge may replace annotators.

    A judge that is undecided (``None``) is closer to nobody; leaving its hard items out would let it choose what it is
    tested on.

    Raises ``UsageError`` for lists of different length, labels that are no numbers under ``neg_rmse``, and where no
    annotator has ``least_items`` items that somebody else rated too.

    Args:
        judged: What the judge says of each item.
        ratings: For each item, the annotators and their labels.
        epsilon: The handicap for what a judge saves, from 0 to 1: the source uses 0.2 for trained experts, 0.15 for
            skilled annotators and 0.1 for crowd workers.
        closeness: ``"accuracy"``, the share of equal labels, or ``"neg_rmse"``, for numbers.
        q: The share of false discoveries that is accepted among the annotators, between 0 and 1.
        least_items: How many items an annotator needs that somebody else rated too, from 2 on; one with fewer is left
            out.
    """
    check_extra()
    from scipy.stats import false_discovery_control

    check_choice("closeness", closeness, get_args(Closeness))
    check_share("epsilon", epsilon)
    check_share("q", q)
    check_whole_number("least_items", least_items, least=2)
    people = _read_people(judged, ratings, closeness)  # the indexes of each annotator's items
    testable = {name: indexes for name, indexes in people.items() if len(indexes) >= least_items}
    if not testable:
        needs = f"an annotator needs {least_items} items that somebody else rated too"
        if not people:
            raise UsageError(f"{needs}, and nobody rated any; have {least_items} items rated by two people")
        raise UsageError(f"{needs}; {_list_missing(people, least_items)}")
    measure = _measure_share if closeness == "accuracy" else _measure_distance
    compared = {
        name: _compare_with_annotator(name, indexes, judged, ratings, measure) for name, indexes in testable.items()
    }
    p_values = [_test_advantage(advantage, epsilon) for _, _, advantage in compared.values()]
    tests = tuple(
        AnnotatorTest(
            annotator=name,
            items=len(testable[name]),
            judge_wins=judge_wins,
            annotator_wins=annotator_wins,
            p_value=p_value,
            adjusted=adjusted,
            rejected=adjusted <= q,
        )
        for (name, (judge_wins, annotator_wins, _)), p_value, adjusted in zip(
            compared.items(), p_values, false_discovery_control(p_values, method="by").tolist(), strict=True
        )
    )
    items = {index for indexes in people.values() for index in indexes}
    left_out = {name: indexes for name, indexes in people.items() if name not in testable}
    rate = sum(test.rejected for test in tests) / len(tests)
    return AlternativeTest(
        passed=rate >= 0.5,
        winning_rate=rate,
        advantage_probability=math.fsum(test.judge_wins for test in tests) / len(tests),
        epsilon=epsilon,
        q=q,
        closeness=closeness,
        annotators=tests,
        annotators_left_out=tuple(left_out),
        items=len(items),
        items_left_out=len(ratings) - len(items),
        undecided=sum(judged[index] is None for index in items),
        notes=tuple(_write_notes(tests, items, left_out, least_items)),
    )


def _read_people(judged: Sequence[Category], ratings: Ratings, closeness: Closeness) -> dict[str, list[int]]:
    """Find, for each annotator, the indexes of the items that somebody else rated too. Raises ``UsageError``."""
    if len(judged) != len(ratings):
        raise UsageError(
            f"judged and ratings have {len(judged):,} and {len(ratings):,} items; give one of each", argument="ratings"
        )
    labels = [label for row in ratings for label in row.values() if label is not None]
    labels += [label for label in judged if label is not None]
    check_kinds(set(map(type, labels)))
    for label in labels:
        if closeness == "neg_rmse" and isinstance(label, str):
            raise UsageError(f"the distance of {show(label)} from others is not defined; use closeness='accuracy'")
        if not isinstance(label, str):
            check_score(label, name="a label", remedy="use None for undecided")
    people: dict[str, list[int]] = {}
    for index, row in enumerate(ratings):
        raters = [name for name, label in row.items() if label is not None]
        for name in raters:
            people.setdefault(name, [])
            if len(raters) > 1:
                people[name].append(index)
    return people


def _compare_with_annotator(
    name: str,
    indexes: Sequence[int],
    judged: Sequence[Category],
    ratings: Ratings,
    measure: Callable[[Category, Sequence[Category]], float],
) -> tuple[float, float, Floats]:
    """Compare the judge and an annotator on the items at these indexes, by their closeness to the others' labels.

    ``measure`` computes how close a label is to those of the other annotators; more is closer. Returns the share of
    items on which the judge is at least as close, the share on which the annotator is, and for each item the
    annotator's advantage: 1, 0 or -1.
    """
    import numpy as np

    judge_wins, person_wins = [], []
    for index in indexes:
        others = [label for rater, label in ratings[index].items() if rater != name and label is not None]
        judge_closeness, person_closeness = measure(judged[index], others), measure(ratings[index][name], others)
        # A tie counts for both, so the two shares may add up to more than 1.
        judge_wins.append(judge_closeness >= person_closeness)
        person_wins.append(person_closeness >= judge_closeness)
    advantage = np.array(person_wins, dtype=float) - np.array(judge_wins, dtype=float)
    return sum(judge_wins) / len(indexes), sum(person_wins) / len(indexes), advantage


def _test_advantage(advantage: Floats, epsilon: float) -> float:
    """Compute the one-sided p-value of the hypothesis that the mean advantage is ``epsilon`` or more.

    An advantage that is the same on every item has no variance, by which the t test would divide. The p-value is then 0
    or 1.
    """
    import numpy as np
    from scipy.stats import ttest_1samp

    if np.ptp(advantage) == 0:
        return 0.0 if advantage[0] < epsilon else 1.0
    return float(ttest_1samp(advantage, epsilon, alternative="less").pvalue)


def _measure_share(label: Category, others: Sequence[Category]) -> float:
    """Compute the share of other labels that equal this one: the closeness ``accuracy``."""
    # None is equal to no label of a person, so an undecided judge agrees with nobody.
    return sum(label == other for other in others) / len(others)


def _measure_distance(label: Category, others: Sequence[Category]) -> float:
    """Compute minus the root of the mean squared distance to other labels: the closeness ``neg_rmse``."""
    if label is None:  # undecided is closer to nobody
        return -math.inf
    # As the mean of squares and not hypot: the source compares exactly such numbers for equality.
    return -math.sqrt(math.fsum((float(label) - float(other or 0)) ** 2 for other in others) / len(others))


def _list_missing(people: Mapping[str, Sequence[int]], least_items: int) -> str:
    """Write how many items each of these people lacks, those who lack fewest first; at most three are named.

    ``people`` has the indexes of the items of each.
    """
    ordered = sorted(people.items(), key=lambda named: len(named[1]), reverse=True)
    clauses = [
        f"{show(name)} has {len(indexes)}, so label {least_items - len(indexes)} more"
        for name, indexes in ordered[:_MOST_NAMED]
    ]
    others = len(ordered) - len(clauses)
    if others:
        clauses.append(f"{others:,} more people have no more than that")
    return "; ".join(clauses)


def _write_notes(
    tests: Sequence[AnnotatorTest], items: set[int], left_out: Mapping[str, Sequence[int]], least_items: int
) -> list[str]:
    """Write a note each for annotators who were left out, for few annotators and for few items."""
    notes = []
    if left_out:
        subject = "1 annotator is" if len(left_out) == 1 else f"{len(left_out):,} annotators are"
        notes.append(
            f"{subject} left out, with fewer than {least_items} items that somebody else rated too: "
            f"{_list_missing(left_out, least_items)}"
        )
    if len(tests) < LEAST_ANNOTATORS:
        notes.append(f"{len(tests)} annotators were compared; ask at least {LEAST_ANNOTATORS} for a firm answer")
    if len(items) < WANTED_ITEMS:
        notes.append(f"{len(items)} items were compared; with fewer than {WANTED_ITEMS} the test seldom passes")
    return notes
