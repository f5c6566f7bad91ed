"""The difference of the rates at which people would pass two systems, from the judge's verdicts and some labels.

Both systems answer the same questions, and one judge judges all answers. People label both answers of questions that
were drawn at random. Each question is compared with itself, so what makes a question hard for both systems cancels. The
judge's verdicts on all questions make the interval narrower as far as they follow the labels, and they cannot bias it:
what they get wrong is estimated from the labelled questions and taken off.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, check_level

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

FEWEST_QUESTIONS = 30
"""With fewer labelled questions the interval covers less than it says (docs/coverage.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateDifference:
    """The difference of the rates at which people would pass the second and the first system, with its interval."""

    schema: ClassVar[str] = "adjudge/rate-difference/1"
    _layout: ClassVar[Layout] = Layout(last=("judged",))

    value: float
    """The second rate minus the first, in -1 to 1."""
    low: float
    """The lower limit of the difference."""
    high: float
    """The upper limit of the difference."""
    level: float
    """The share of intervals made this way that contain the true difference."""
    questions: int
    """Questions that both systems answered."""
    labels: int
    """Questions of which people labelled both answers, with the unresolved ones."""
    unresolved: int
    """Labelled questions of which people did not settle an answer; the limits hold whatever is true of them."""
    weight: float
    """The share of the judge's difference that is used, from 0 (it follows the labels not at all) to 1."""
    worth: int
    """Labelled questions that people alone would need for an interval as narrow."""
    more: int | None
    """About how many more labelled questions would show a difference of this size; ``None`` if it is shown, or 0."""
    judged: float
    """The difference of the rates that the judge passed, for comparison."""

    @property
    def interval(self) -> tuple[float, float]:
        """Both limits."""
        return self.low, self.high

    @property
    def is_shown(self) -> bool:
        """True if the interval has 0 on one side: one of the systems is better."""
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


def make_rate_difference(
    judged: Sequence[int],
    people: Mapping[int, tuple[int, int]],
    *,
    level: float = LEVEL,
    quantile: float | None = None,
    later_quantile: float | None = None,
) -> RateDifference:
    """Estimate the difference of two systems' rates from labels of questions that were drawn at random.

    Args:
        judged: The judge's difference on each question: 1 if it passed the second answer alone, -1 if the first alone,
            else 0. Undecided is not passed.
        people: The same by people, by the place of each labelled question in ``judged``: the least and the greatest
            difference that their labels allow. The two are equal unless people did not settle an answer.
        level: The share of intervals that contain the true difference.
        quantile: A number in place of Student's t for ``level``, for limits that hold at every look.
        later_quantile: The same for the next look, by which ``more`` is counted. By default ``quantile``, or the one of
            ``level`` for one look.

    The interval is of these questions: with a label of every question it has no width. Needs ``adjudge[trust]``. Raises
    ``UsageError`` for fewer than 2 labelled questions and for differences that are none.

    Source: paired prediction-powered inference. A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient
    prediction-powered inference", 2023, arXiv 2311.01453. Two pseudo residuals of 1 in the variance, Student's t and
    the correction for a finite population keep its coverage at 30 labels and more.
    """
    check_level(level)
    check_extra()
    import numpy as np

    judge_differences = np.asarray(judged, dtype=float)
    _check_differences(judge_differences, people)
    labelled = np.fromiter(people, dtype=int, count=len(people))  # the indexes of the labelled questions
    bounds = np.asarray([people[int(index)] for index in labelled], dtype=float)
    least, greatest = bounds[:, 0], bounds[:, 1]
    unresolved = int((least != greatest).sum())
    middle = _estimate_corrected(judge_differences, labelled, bounds.mean(axis=1), level=level, quantile=quantile)
    estimates = [middle]
    if unresolved:
        estimates += [
            _estimate_corrected(judge_differences, labelled, truth, level=level, quantile=quantile)
            for truth in (least, greatest)
        ]
    low = max(min(estimate.value - estimate.half_width for estimate in estimates), -1.0)
    high = min(max(estimate.value + estimate.half_width for estimate in estimates), 1.0)
    factor = later_quantile or quantile or _find_z(level)
    return RateDifference(
        value=middle.value,
        low=low,
        high=high,
        level=level,
        questions=len(judge_differences),
        labels=len(labelled),
        unresolved=unresolved,
        weight=middle.weight,
        worth=_find_worth(middle, len(labelled), len(judge_differences)),
        more=None if low > 0 or high < 0 else _find_more(middle, len(labelled), len(judge_differences), factor),
        judged=float(judge_differences.mean()),
    )


def estimate_labels_of_difference(
    questions: int, *, expect: float, within: float, level: float = LEVEL, pairs: bool = False
) -> int:
    """Estimate how many questions people have to label for an interval of a given width, before they begin.

    The judge is expected to err on the two answers of a question independently. The estimate is at least
    ``FEWEST_QUESTIONS``, and at most all questions.

    Args:
        questions: How many questions there are, and so the most that can be labelled.
        expect: The chance, from 0 to 1, with which the judge is expected to be right about an answer.
        within: The half width that the interval is to have, as a share above 0.
        level: The confidence of the interval, between 0 and 1.
        pairs: Whether the judge prefers one of two answers, the wrong one with the chance 1 - ``expect``, and does not
            judge each; ties would need fewer labels.
    """
    # A preference is -1 or 1. The best weight of one that is right with chance a is 2a - 1, which leaves 1 - (2a - 1)²;
    # a judge that is right in less than a half has no weight.
    spread = 1 - max(2 * expect - 1, 0.0) ** 2 if pairs else 2 * (1 - expect)
    needed = 1 / ((within / _find_z(level)) ** 2 / max(spread, 1e-12) + 1 / questions)
    return min(max(math.ceil(needed), FEWEST_QUESTIONS), questions)


def estimate_labels_of_judges(cases: int, *, disagreement: float, within: float, level: float = LEVEL) -> int:
    """Estimate how many cases people have to label to know the difference of two judges' agreement within ``within``.

    On a case that both judges decide alike, both are right or both are wrong, so its difference is 0.
    On any other it is -1, 0 or 1. So its variance is at most the share of the cases that they decide differently, and
    as much as that where each judge is right on half of these; where one of them is right more often, the interval is
    narrower than ``within``. Counted is the interval of ``find_stratified_difference`` for one look at one stratum,
    which adds two cases, one for each judge. At least ``FEWEST_QUESTIONS``, and at most all ``cases``.

    Args:
        cases: The number of cases that both judges decided.
        disagreement: The share of them on which the verdicts differ, which is known without a label. Undecided differs
            from passed and from failed.
        within: The half-width of the interval that is wanted.
        level: The confidence of the interval, between 0 and 1.
    """
    most_variance = (within / _find_z(level)) ** 2  # that the estimate may have

    def is_enough(labels: int) -> bool:
        variance = (labels * disagreement + 2) / (labels + 2)
        return variance / (labels + 2) * (1 - labels / cases) <= most_variance

    return min(max(bisect_left(range(cases), True, key=is_enough), FEWEST_QUESTIONS), cases)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """An estimate of the difference, with the variances from which the numbers of labels follow."""

    value: float
    half_width: float
    """Half the width of the interval."""
    weight: float
    """The share of the judge's difference that is used."""
    residual_variance: float
    """The variance of what is left of people's difference on a question when the weighted judge's is taken off."""
    label_variance: float
    """The variance of people's difference on a question by itself."""


def _estimate_corrected(
    judge_differences: Floats, labelled: Floats, truth: Floats, *, level: float, quantile: float | None
) -> _Estimate:
    """Estimate the mean difference: the judge's on all questions, corrected by people's on the labelled ones.

    ``labelled`` are the indexes of the labelled questions, and ``truth`` people's differences on these.
    """
    from scipy.special import stdtrit

    labels, questions = len(labelled), len(judge_differences)
    judge_on_labelled = judge_differences[labelled]
    weight = _find_weight(truth, judge_on_labelled)
    residuals = truth - weight * judge_on_labelled
    residual_variance = _find_variance(residuals)
    factor = float(stdtrit(labels - 1, (1 + level) / 2)) if quantile is None else quantile
    # Where all are labelled the correction is exact, and so is the sum: a difference of 0 must not come out as 1e-17.
    value = truth.mean() if labels == questions else weight * judge_differences.mean() + residuals.mean()
    return _Estimate(
        value=float(value),
        half_width=factor * math.sqrt(residual_variance / labels * (1 - labels / questions)),
        weight=weight,
        residual_variance=residual_variance,
        label_variance=_find_variance(truth),
    )


def _find_weight(truth: Floats, judge_differences: Floats) -> float:
    """Find the weight of the judge's differences, from 0 to 1, that makes the interval narrowest.

    A judge that contradicts people has the weight 0: a negative one would turn its verdicts around.
    """
    centred = judge_differences - judge_differences.mean()
    variance = float((centred**2).sum())
    return min(max(float((centred * truth).sum()) / variance, 0.0), 1.0) if variance > 1e-12 else 0.0


def _find_variance(residuals: Floats) -> float:
    """Compute a variance with two residuals more, one of 1 and one of -1, so that equal labels do not make it 0."""
    return float((((residuals - residuals.mean()) ** 2).sum() + 2) / (len(residuals) + 1))


def _find_worth(estimate: _Estimate, labels: int, questions: int) -> int:
    """Find how many labelled questions people alone need for as narrow an interval, at most all of them."""
    inverse = 1 / questions + estimate.residual_variance / estimate.label_variance * (1 / labels - 1 / questions)
    return min(round(1 / inverse), questions)


def _find_more(estimate: _Estimate, labels: int, questions: int, factor: float) -> int | None:
    """Find about how many more labelled questions give an interval without 0, if the difference stays as it is.

    ``factor`` is the quantile by which the interval will be computed. ``None`` for a difference of 0, and where all
    questions are labelled.
    """
    if not estimate.value or labels == questions:
        return None
    needed = 1 / ((estimate.value / factor) ** 2 / estimate.residual_variance + 1 / questions)
    return max(min(math.ceil(needed), questions) - labels, 1)


def _find_z(level: float) -> float:
    """Find the quantile of the normal distribution for an interval of this level: 1.96 for 95 %."""
    return NormalDist().inv_cdf((1 + level) / 2)


def _check_differences(judged: Floats, people: Mapping[int, tuple[int, int]]) -> None:
    """Raise ``UsageError`` for differences other than -1, 0 and 1, and for labels that are of no question or too few.

    ``people`` has the least and the greatest difference that the labels of a question allow, by the question's index.
    """
    import numpy as np

    if not set(np.unique(judged)) <= {-1.0, 0.0, 1.0}:
        raise UsageError("a difference is -1, 0 or 1 for each question; compare verdicts, not scores")
    if len(people) < 2:
        raise UsageError(f"people labelled both answers of {len(people)} questions; a difference needs at least 2")
    for index, (least, greatest) in people.items():
        if not 0 <= index < len(judged) or not -1 <= least <= greatest <= 1:
            raise UsageError(
                f"the label at {index} is of no question, or allows differences from {least} to {greatest}"
            )
