"""Is a difference between two runs over the same cases more than chance would bring? Two exact tests, and intervals.

Both compare each case with itself. The first is McNemar's exact test: of the cases that passed in one run only, how
surprising is this split if either run were as likely to be the better one? The second flips the signs of the
differences between scores: were the runs alike, each difference could as well have had the other sign.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from random import Random
from statistics import NormalDist
from typing import Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, check_level, compute_design_effect
from adjudge.trust.label_counts import read_count
from adjudge.trust.resampling import add_up, check_groups, number_groups

KEPT = 5_000
"""Differences that are kept for flipping; with more, their sum is normal to any digit that is shown."""

FLIPS = 10_000

MOST_EXACT = 16
"""Differences of which every combination of signs is tried."""


_LOW_BITS = bytes(number & 1 for number in range(256))
"""For each byte its lowest bit: a table for ``bytes.translate``, which makes random bytes random zeros and ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """A mean before and after, over the cases that have a score in both runs."""

    _layout: ClassVar[Layout] = Layout(last=("delta",))

    cases: int
    """The number of cases."""
    before: float | None
    """``None`` without such a case."""
    after: float | None
    """The mean after; ``None`` without such a case."""
    differing: int
    """Cases whose score is another."""
    p_value: float | None
    """Two-sided; ``None`` when no case differs."""
    method: str
    """The method: ``exact``, ``10,000 sign flips`` or ``normal``."""

    @property
    def delta(self) -> float | None:
        """After minus before."""
        return None if self.before is None or self.after is None else self.after - self.before

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(slots=True)
class PairedTally:
    """A running comparison of two scores of each case, in bounded memory."""

    cases: int = 0
    _before: float = 0.0
    """The sum of the scores before."""
    _after: float = 0.0
    """The sum of the scores after."""
    _differing: int = 0
    """Cases whose scores differ."""
    _sum: float = 0.0
    """The sum of the differences."""
    _squares: float = 0.0
    """The sum of their squares."""
    _differences: array[float] = field(default_factory=lambda: array("d"))
    """The first ``KEPT`` differences that are not 0."""

    def add(self, before: float, after: float) -> None:
        """Add the two scores of one case."""
        self.cases += 1
        self._before += before
        self._after += after
        difference = after - before
        if not difference:
            return
        self._differing += 1
        self._sum += difference
        self._squares += difference * difference
        if len(self._differences) < KEPT:
            self._differences.append(difference)

    def sum_up(self) -> Means:
        """Return the means before and after, and the p-value of their difference."""
        p_value, method = self._compute_p_value()
        return Means(
            cases=self.cases,
            before=self._before / self.cases if self.cases else None,
            after=self._after / self.cases if self.cases else None,
            differing=self._differing,
            p_value=p_value,
            method=method,
        )

    def _compute_p_value(self) -> tuple[float | None, str]:
        """Compute the p-value that nothing changed, and name the test; ``None`` where no pair differs."""
        if not self._differing:
            return None, "exact"
        if self._differing <= MOST_EXACT:
            return _try_all_signs(self._differences), "exact"
        if self._differing <= KEPT:
            return _flip_signs(self._differences), f"{FLIPS:,} sign flips"
        return math.erfc(abs(self._sum) / math.sqrt(2 * self._squares)), "normal"


def compute_mcnemar(worse: int, better: int) -> float | None:
    """McNemar's exact two-sided p-value for cases that passed in one of two runs only; ``None`` without any.

    Twice the binomial tail at one half, and at most 1 (McNemar 1947, exact form). Raises ``UsageError`` for what is no
    count.

    Args:
        worse: Cases that passed in the earlier run alone.
        better: Cases that passed in the later run alone.
    """
    worse, better = read_count(worse, "worse"), read_count(better, "better")
    total, fewer = worse + better, min(worse, better)
    if not total:
        return None
    # The binomial probability of ``fewer`` or less, as a multiple of that of ``fewer``, the largest term. Each term
    # follows from the one before it, so no factorial of a million is ever written out.
    log_largest = math.lgamma(total + 1) - math.lgamma(fewer + 1) - math.lgamma(total - fewer + 1) - total * math.log(2)
    tail, ratio = 0.0, 1.0
    for successes in range(fewer, -1, -1):
        tail += ratio
        ratio *= successes / (total - successes + 1)
        if ratio < tail * 1e-17:
            break
    return min(1.0, 2 * math.exp(log_largest) * tail)


def _try_all_signs(differences: array[float]) -> float:
    """Compute the exact p-value: the share of all choices of signs whose sum is as far from 0 as the observed one."""
    sums = [0.0]
    for difference in differences:
        sums = [total + difference for total in sums] + [total - difference for total in sums]
    observed = _find_observed_sum(differences)
    return sum(abs(total) >= observed for total in sums) / len(sums)


def _flip_signs(differences: array[float]) -> float:
    """Estimate the p-value by ``FLIPS`` random choices of signs; ``_try_all_signs`` is for few differences."""
    # The same seed each time, so that a figure in a report can be computed again.
    random, observed, total = Random(0), _find_observed_sum(differences), math.fsum(differences)  # noqa: S311 - chance, and no secret
    extreme = 0
    for _ in range(FLIPS):
        is_positive = random.randbytes(len(differences)).translate(_LOW_BITS)
        # Those with a plus minus those with a minus are twice those with a plus, minus all.
        extreme += abs(2 * sum(compress(differences, is_positive)) - total) >= observed
    # The observed choice of signs is counted as one of them, so the p-value is never 0.
    return (extreme + 1) / (FLIPS + 1)


def _find_observed_sum(differences: array[float]) -> float:
    """Find how far the sum of the differences is from 0, less a little for sums that equal it but for rounding."""
    return abs(math.fsum(differences)) - 1e-12 * math.fsum(map(abs, differences))


def find_paired_difference(gained: int, lost: int, of: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of how much larger one share is than another of the same cases, in -1 to 1.

    Cases must be independent; ``find_grouped_difference`` is for others. Raises ``UsageError`` for counts that cannot
    be.

    Source: D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a difference of binomial proportions
    based on paired data", 2012.

    Args:
        gained: How many cases count in the second share only.
        lost: How many cases count in the first share only.
        of: How many cases there are in all.
        level: The confidence of the interval, between 0 and 1.
    """
    check_level(level)
    better, worse, cases = read_count(gained, "gained"), read_count(lost, "lost"), read_count(of, "of")
    if not cases or better + worse > cases:
        raise UsageError(f"{better} gained and {worse} lost cases are no part of {cases} cases; count each once")
    return _find_bonett_price(better, worse, cases, level)


def find_grouped_difference(
    differences: Sequence[int], groups: Sequence[Hashable], *, level: float = LEVEL
) -> tuple[float, float]:
    """Return the interval of ``find_paired_difference`` for cases that come in groups, such as answers to one question.

    The counts are divided by the design effect, and by the factor that Student's t adds for the number of groups. Needs
    ``adjudge[trust]``; raises ``UsageError`` for fewer than 2 groups and for other differences.

    Args:
        differences: 1 for a case that was gained, -1 for one that was lost, and 0 for any other.
        groups: The group of each case.
        level: The confidence of the interval, between 0 and 1.
    """
    check_extra()
    check_level(level)
    codes, number = number_groups(groups, len(differences))
    if not set(differences) <= {-1, 0, 1}:
        raise UsageError("a difference is -1, 0 or 1 for each case; compare verdicts, not scores")
    check_groups(number)
    import numpy as np
    from scipy.special import stdtrit

    changes = np.asarray(differences, dtype=float)
    sums, sizes = add_up(changes, codes, number), add_up(np.ones(len(changes)), codes, number)
    mean, cases = changes.mean(), len(changes)
    errors, case_variance = sums - mean * sizes, float(np.mean(changes**2) - mean**2)
    alike_effect = np.asarray(np.sum(sizes**2) / cases)  # of groups whose cases are all alike
    group_variance = number / (number - 1) * np.sum(errors**2) / cases
    if case_variance > 1e-12:
        effect = compute_design_effect(group_variance / case_variance, errors, alike_effect)
    else:
        effect = alike_effect
    upper_probability = (1 + level) / 2
    t_factor = (float(stdtrit(number - 1, upper_probability)) / NormalDist().inv_cdf(upper_probability)) ** 2
    divisor = float(effect) * t_factor
    gained, lost = (float(np.sum(changes == change)) / divisor for change in (1, -1))
    return _find_bonett_price(gained, lost, cases / divisor, level)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts:
    """The labelled cases of one stratum, of which two shares are compared.

    Args:
        size: The number of cases of the stratum, labelled or not.
        of: Labelled cases.
        gained: Those that count in the second share only.
        lost: Those that count in the first only.
    """

    size: int
    """The number of cases of the stratum, labelled or not."""
    of: int
    """Labelled cases."""
    gained: int
    """Those that count in the second share only."""
    lost: int
    """Those that count in the first only."""


def find_stratified_difference(strata: Sequence[PairedCounts], *, level: float = LEVEL) -> tuple[float, float, float]:
    """Return how much larger one share is than another of the same cases, and its limits, from labels of strata.

    Each stratum weighs as many cases as it has, whatever the number of its labels. Its interval is that of
    ``find_paired_difference``, narrower by the share of the stratum that is labelled, and MOVER adds them up. Raises
    ``UsageError`` for a stratum without a label and for counts that cannot be.

    Source: G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures: a general approach",
    2008 (MOVER).

    Args:
        strata: The cases of each stratum, with the labels among them.
        level: The share of intervals made this way that contain the true difference.
    """
    check_level(level)
    cases = sum(read_count(stratum.size, "size") for stratum in strata)
    value = below = above = 0.0  # below and above: the squared distances of the limits from the value
    for stratum in strata:
        if not stratum.of or stratum.of > stratum.size:
            raise UsageError(
                f"{stratum.of:,} of {stratum.size:,} cases of a stratum are labelled; label at least one of each"
            )
        low, high = find_paired_difference(stratum.gained, stratum.lost, stratum.of, level=level)
        weight, difference = stratum.size / cases, (stratum.gained - stratum.lost) / stratum.of
        unlabelled_share = 1 - stratum.of / stratum.size
        # Divided by all cases at the end: a sum of counts is exact, and a difference of 0 is not 1e-17.
        value += stratum.size * (stratum.gained - stratum.lost) / stratum.of
        # The limits lie around a value that is nearer to 0, so one of them may be on the wrong side of the difference.
        below += weight**2 * max(difference - low, 0.0) ** 2 * unlabelled_share
        above += weight**2 * max(high - difference, 0.0) ** 2 * unlabelled_share
    value /= cases
    return value, max(value - math.sqrt(below), -1.0), min(value + math.sqrt(above), 1.0)


def _find_bonett_price(gained: float, lost: float, cases: float, level: float) -> tuple[float, float]:
    """Find the limits of a paired difference by Bonett and Price, who add a case to those gained and to those lost."""
    adjusted_cases = cases + 2
    gained_share, lost_share = (gained + 1) / adjusted_cases, (lost + 1) / adjusted_cases
    middle, z = gained_share - lost_share, NormalDist().inv_cdf((1 + level) / 2)
    half_width = z * math.sqrt((gained_share + lost_share - middle**2) / adjusted_cases)
    return max(middle - half_width, -1.0), min(middle + half_width, 1.0)
