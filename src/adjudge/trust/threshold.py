"""From which score on may a judge decide alone? Thresholds that are tested on labels, so that a promise is kept.

A threshold releases the cases whose score reaches it; people decide the others. Learn-then-test asks of each threshold
whether its risk is above what was promised, and certifies it where that is unlikely. The tests come in one fixed order,
from the threshold that releases least, and end at the first that fails. So no correction for the number of thresholds
is needed: a promise is broken only if the first threshold that breaks it was certified.

Source: A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, "Learn then test: Calibrating predictive
algorithms to achieve risk control", 2021, arXiv 2110.01052: fixed sequence testing, here with exact binomial p-values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from adjudge.formats.arguments import check_share, check_whole_number
from adjudge.formats.record import write_record
from adjudge.trust.extra import check_extra

Risk = Literal["wrong_pass", "wrong_given_pass", "lost"]
"""The cases that are promised to be rare: those that are released and wrong, as a share of all cases or of the released
ones; or, in a cascade, cases that the cheap judge decides wrongly and the strong one would decide rightly, as a share
of all."""

MOST_THRESHOLDS = 100
"""Thresholds that are tested at most."""

USEFUL_SHARE = 0.1
"""The share of all cases that a threshold has to release to be of use."""

_MOST_LABELS = 1_000_000
"""The largest number of labels that is estimated; if more are needed, no number is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdStep:
    """A threshold of the sequence, as it is known without a label.

    Args:
        threshold: The least score that is released.
        released: Cases with at least this score, labelled or not.
    """

    threshold: float
    """The least score that is released."""
    released: int
    """Cases with at least this score, labelled or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledStep:
    """The labelled cases that a threshold of the sequence releases.

    Args:
        released: Labelled cases that it releases.
        wrong: Those of them that people did not find good.
    """

    released: int
    """Labelled cases that it releases."""
    wrong: int
    """Those of them that people did not find good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdTest:
    """The test of one threshold."""

    threshold: float
    """The least score that is released."""
    released: int
    """Cases that it releases, labelled or not."""
    labels_released: int
    """Labelled cases that it releases."""
    wrong: int
    """Those of them that people did not find good."""
    p_value: float
    """The chance of so few wrong cases, or fewer, if the risk were exactly the bound."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSearch:
    """The thresholds that were tested in their order, and what follows where none is certified."""

    tests: tuple[ThresholdTest, ...]
    """The last failed, unless the whole sequence was certified."""
    certified: ThresholdTest | None
    """The last threshold that was certified; ``None``: people decide everything."""
    impossible: bool
    """True if the labels show that no threshold of any use keeps the promise."""
    needed: int | None
    """About how many labels certify the tightest useful threshold at the error rate that was seen; ``None`` where one
    is certified, and where no number does."""


# ---------------------------------------------------------------- before labels are read


def make_threshold_steps(scores: Iterable[float], *, most: int = MOST_THRESHOLDS) -> tuple[ThresholdStep, ...]:
    """Make the thresholds to test from the scores of all cases that may be released, without any label.

    They are the distinct scores, the highest first. Of more than ``most`` scores those are kept that release about
    equally many cases more each time; the lowest is always among them.

    Args:
        scores: The judge's score of each case, from 0 to 1.
        most: How many thresholds are made at most, from 1 on.
    """
    check_whole_number("most", most, least=1)
    counts = sorted(Counter(scores).items(), reverse=True)
    released = list(accumulate(number for _, number in counts))
    if len(counts) <= most:
        indexes = range(len(counts))
    else:
        wanted_numbers = (released[-1] * step / most for step in range(1, most + 1))
        indexes = sorted({bisect_left(released, number - 1e-9) for number in wanted_numbers})
    return tuple([ThresholdStep(threshold=counts[index][0], released=released[index]) for index in indexes])


def find_first_step(
    steps: Sequence[ThresholdStep], risk: Risk, *, bound: float, level: float, cases: int, labels: int
) -> int:
    """Find the place in the sequence at which the tests begin; the length of it where no test could succeed.

    A share of all cases may be tested from the first threshold on. A share of the released ones needs labels among
    these: twice as many as without a single error certify a threshold, by the share of cases that it releases. At fewer
    a judge that is good enough would often end the sequence by one error. What people say of the labelled cases has no
    part in it.

    Args:
        steps: The thresholds to test, as ``make_threshold_steps`` makes them.
        risk: What is promised to be rare: ``"wrong_pass"``, ``"wrong_given_pass"`` or ``"lost"``.
        bound: The share that is promised not to be exceeded, between 0 and 1.
        level: The confidence of the promise, between 0 and 1.
        cases: How many cases there are.
        labels: How many of them are labelled.
    """
    if risk != "wrong_given_pass":
        return 0
    fewest = 2 * find_fewest_labels(bound, level)
    for index, step in enumerate(steps):
        # Of the labels, about as large a share is released as of the cases.
        if step.released * labels >= fewest * cases:
            return index
    return len(steps)


def find_fewest_labels(bound: float, level: float) -> int:
    """Find how many labels certify a threshold if none of them is wrong: the least n with (1 - bound)^n <= 1 - level.

    It is 59 for a bound of 0.05 at 0.95, and 29 for 0.1.

    Args:
        bound: The share of wrong ones that is promised not to be exceeded, between 0 and 1.
        level: The confidence of the promise, between 0 and 1.
    """
    return math.ceil(math.log(1 - level) / math.log1p(-bound) - 1e-9)


def find_look_level(confidence: float, look: int) -> float:
    """Find the confidence of the tests at a look, so that the promise is kept at all looks together.

    Look k may break it with the chance (1 - confidence) 6 / (π² k²), which over all looks sums to 1 - confidence. The
    first look has 61 % of it.

    Args:
        confidence: The confidence of the promise at all looks together, between 0 and 1.
        look: The number of this look, from 1.
    """
    check_whole_number("look", look, least=1)
    return 1 - (1 - check_share("confidence", confidence)) * 6 / (math.pi * look) ** 2


# ---------------------------------------------------------------- the tests


def count_labelled(steps: Sequence[ThresholdStep], labelled: Iterable[tuple[float, bool]]) -> tuple[LabelledStep, ...]:
    """Count the labelled cases that each threshold releases, from the score of each and whether it is wrong.

    A labelled case that no threshold releases is left out.

    Args:
        steps: The thresholds to test, as ``make_threshold_steps`` makes them.
        labelled: The score of each labelled case, and whether it is wrong.
    """
    negated_thresholds = [-step.threshold for step in steps]  # ascending, as bisect needs them
    # By the first threshold that releases a case, and by whether it is wrong.
    counts = Counter((bisect_left(negated_thresholds, -score), is_wrong) for score, is_wrong in labelled)
    wrong_counts = accumulate(counts[index, True] for index in range(len(steps)))
    right_counts = accumulate(counts[index, False] for index in range(len(steps)))
    return tuple(
        [
            LabelledStep(released=wrong + right, wrong=wrong)
            for wrong, right in zip(wrong_counts, right_counts, strict=True)
        ]
    )


def search_threshold(
    steps: Sequence[ThresholdStep],
    counts: Sequence[LabelledStep],
    risk: Risk,
    *,
    bound: float,
    level: float,
    cases: int,
    labels: int,
    next_level: float | None = None,
) -> ThresholdSearch:
    """Search the threshold that releases most and keeps a promise, by labels of cases that were drawn at random.

    Args:
        steps: The sequence of thresholds, from the one that releases least; fixed before any label was read.
        counts: The labelled cases that each of them releases.
        risk: What is promised to be rare.
        bound: The share that it must not exceed, above 0 and below 1.
        level: The confidence of each test.
        cases: All cases, labelled or not.
        labels: Labelled cases, released or not.
        next_level: The confidence of the next look, for the number of labels that it needs; by default ``level``.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for a bound or a level that is no share.
    """
    check_extra()
    check_share("bound", bound)
    check_share("level", level)
    first = find_first_step(steps, risk, bound=bound, level=level, cases=cases, labels=labels)
    tests: list[ThresholdTest] = []
    certified = None
    for step, count in zip(steps[first:], counts[first:], strict=True):
        tests.append(
            ThresholdTest(
                threshold=step.threshold,
                released=step.released,
                labels_released=count.released,
                wrong=count.wrong,
                p_value=compute_p_value(count.wrong, _count_base(count, risk, labels), bound),
            )
        )
        if tests[-1].p_value > 1 - level:
            break
        certified = tests[-1]
    useful = _list_useful(steps, counts, cases)
    impossible = False
    if certified is None and useful:
        impossible = all(
            _compute_upper_p_value(count.wrong, _count_base(count, risk, labels), bound) <= 1 - level
            for _, count in useful
        )
    needed = None
    if certified is None and useful and not impossible:
        needed = _estimate_labels(useful[0], risk, bound, next_level or level, cases=cases, labels=labels)
    return ThresholdSearch(tests=tuple(tests), certified=certified, impossible=impossible, needed=needed)


def _count_base(count: LabelledStep, risk: Risk, labels: int) -> int:
    """Return the number of labels that a risk is a share of: those that the threshold releases, or all ``labels``."""
    return count.released if risk == "wrong_given_pass" else labels


def compute_p_value(wrong: int, of: int, bound: float) -> float:
    """Compute the chance that ``wrong`` labels or fewer are wrong, of ``of``, if the share ``bound`` of all cases is.

    It is 1 without a label.
    """
    from scipy.special import bdtr

    return float(bdtr(wrong, of, bound)) if of else 1.0


def _compute_upper_p_value(wrong: int, labels: int, bound: float) -> float:
    """Compute the chance that ``wrong`` labels or more are wrong, if the share ``bound`` of all cases is wrong."""
    from scipy.special import bdtrc

    return float(bdtrc(wrong - 1, labels, bound)) if wrong else 1.0


def _list_useful(
    steps: Sequence[ThresholdStep], counts: Sequence[LabelledStep], cases: int
) -> list[tuple[ThresholdStep, LabelledStep]]:
    """List the thresholds that release a tenth of all cases or more, each with its labels; else the loosest alone."""
    pairs = list(zip(steps, counts, strict=True))
    useful = [(step, count) for step, count in pairs if step.released >= USEFUL_SHARE * cases]
    return useful or pairs[-1:]


def _estimate_labels(
    useful: tuple[ThresholdStep, LabelledStep], risk: Risk, bound: float, level: float, *, cases: int, labels: int
) -> int | None:
    """Estimate how many labels certify a threshold, if its error rate stays as its labels show it.

    ``None`` where no number of labels does, because the rate is not below the bound, or too near to it.
    """
    import numpy as np
    from scipy.special import bdtr

    step, count = useful
    base = _count_base(count, risk, labels)
    error_rate = count.wrong / base if base else 0.0
    if error_rate >= bound:
        return None
    numbers = np.unique(np.geomspace(1, _MOST_LABELS, 2_000).astype(int))
    enough = numbers[bdtr(np.floor(error_rate * numbers + 0.5), numbers, bound) <= 1 - level]
    if not len(enough):
        return None
    needed = int(enough[0])
    if risk == "wrong_given_pass":
        # Among the released cases, twice the fewest labels are needed, as in ``find_first_step``.
        needed = math.ceil(max(needed, 2 * find_fewest_labels(bound, level)) * cases / step.released)
    return max(needed, labels + 1)
