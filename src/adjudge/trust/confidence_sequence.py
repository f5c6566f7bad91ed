"""A rate that may be looked at after every label: its interval holds at all times at once.

An ordinary 95 % interval is meant to be looked at once. Somebody who labels until it is narrow enough looks at it
hundreds of times, and stops when chance made it narrow in the wrong place. The interval of this module contains the
true rate at *every* moment, with a probability of 95 % for all moments together, so it may say when to stop.

**Method.** Labels are drawn without replacement from strata of known size. For given numbers of good cases in the
strata (the null), somebody bets on each label before it is seen, at fair odds: without replacement, the odds of the
next label are known exactly. Their fortune is a martingale, so it exceeds 20 at any time with a probability of at most
1/20 (Ville). All nulls under which it does not exceed 20 are kept, and the interval goes from the smallest to the
largest rate among them. This is betting after Waudby-Smith and Ramdas; the strata share one fortune, which is a
martingale in whatever order the strata are drawn from, as long as the order does not depend on labels not yet seen
(Spertus and Stark). So there is no union bound over strata, and strata narrow the interval as they should.

**Bets.** A fortune is split: half of most of it bets that the rate is higher, half that it is lower, each on three
horizons (about 100, 220 and 700 labels). A stratum's bets are in proportion to its weight divided by its share of the
labels, so that together they are a bet on the weighted rate alone. The rest of the fortune bets on each stratum for
itself (a beta mixture); it excludes nulls that are far off in two strata and right in their sum. All bets depend on
earlier labels alone. The logarithm of each part is convex in the null, so the limits follow from a convex problem; the
limit that is given out is the bound from its tangent, which is safe even where the solver stopped too early.

Sources: I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024, and
"Confidence sequences for sampling without replacement", NeurIPS 2020; J. Spertus and P. Stark, "Sweeter than SUITE:
supermartingale stratified union-intersection tests of elections", 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero, check_whole_number, is_finite
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, check_level

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

HORIZONS = (100.0, 220.0, 700.0)
"""Numbers of labels for which the three bets are best; from there on, a bet is made for the labels there are."""

SHARES = (0.15, 0.65, 0.2)
"""The split of the fortune among the horizons."""

APART = 0.03
"""The part of the fortune that bets on each stratum for itself."""

MOST = (0.8, 0.6, 0.55)
"""The part of its stake that a bet of each horizon may lose: one that loses everything ends that part for good."""

AHEAD = 90.0
"""The least number of labels over which a stratum makes up for bets that it lacks; later, 30 % of the labels so far."""

FIRST_LABELS = 10
"""Below so many labels, how many more are needed is not estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """The shares of labels among the strata, from some label on. Only the width of the interval depends on it.

    Args:
        first: The first label that is drawn like this, from 0.
        shares: The share of these labels that each stratum gets; 0 where it gets none. They add up to 1.
    """

    first: int
    """The first label that is drawn like this, from 0."""
    shares: tuple[float, ...]
    """The share of these labels that each stratum gets; 0 where it gets none. They add up to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRate:
    """A rate with an interval that holds at all times at once: look after every label, and stop when it will do."""

    schema: ClassVar[str] = "adjudge/live-rate/1"
    _layout: ClassVar[Layout] = Layout(last=("method", "target"))

    value: float
    """The share of good cases in the whole run as far as it is known: the labelled shares, by the strata's sizes."""
    low: float
    """The lower limit of the rate."""
    high: float
    """The upper limit of the rate."""
    level: float
    """The probability that the true rate is within the limits at every moment."""
    labels: int
    """The number of labelled cases, open ones included."""
    open: int
    """The number of them that are neither good nor bad: the low limit counts them as bad, the high one as good."""
    cases: int
    """The number of cases."""
    in_random_order: bool = True
    """False when the labels contradict a random order so clearly that no rate is left; the limits are then as wide as
    what is not labelled. Somebody chose the cases, or the later ones are of another kind."""
    method: ClassVar[str] = "betting without replacement, at all times"
    target: ClassVar[str] = "run"
    """The rate is that of these cases, not of everything that the system might produce."""

    @property
    def half_width(self) -> float:
        """Half of the interval: 0.03 is "within 3 points"."""
        return (self.high - self.low) / 2

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def compute_live_rate(
    sizes: Sequence[int],
    draws: Iterable[tuple[int, bool | None]],
    *,
    allocations: Sequence[Allocation] = (),
    level: float = LEVEL,
) -> LiveRate:
    """The rate of good cases in a run whose labels arrive one by one, with limits that hold at all times at once.

    Args:
        sizes: How many cases each stratum has, labelled ones included. The verdict of the judge makes good strata.
        draws: Each labelled case in the order in which it was labelled: its stratum, from 0, and whether it is good.
            ``None`` is open: looked at, and neither. Within each stratum the order must be random; the strata may
            alternate in any way that does not depend on labels to come.
        allocations: How labels are shared out among the strata, where that is not in proportion to their sizes.
        level: The probability with which the rate is within the limits at every moment.

    Without a label the interval is 0 to 1; when every case is labelled it is the rate itself. Needs
    ``adjudge[trust]``; raises ``UsageError`` for numbers that no such run has.
    """
    check_extra()
    checked_draws = _check_draws(sizes, draws)
    _check_allocations(allocations, len(sizes))
    check_level(level)
    open_count = sum(good is None for _, good in checked_draws)
    # The open cases counted as bad, and counted as good.
    worst = Fortune(sizes, [(stratum, good is True) for stratum, good in checked_draws], allocations, level)
    best = worst
    if open_count:
        best = Fortune(sizes, [(stratum, good is not False) for stratum, good in checked_draws], allocations, level)
    low, high = worst.find_limit(lower=True), best.find_limit(lower=False)
    has_limits = low is not None and high is not None  # without them no rate fits labels in random order
    return LiveRate(
        value=(worst.value + best.value) / 2,
        low=worst.least if low is None or high is None else low,
        high=best.most if low is None or high is None else high,
        level=level,
        labels=len(checked_draws),
        open=open_count,
        cases=sum(sizes),
        in_random_order=has_limits,
    )


def estimate_more_labels(rate: LiveRate, *, within: float) -> int | None:
    """About how many more labels make an interval as narrow as it is to be; 0 when it is.

    ``None`` below ten labels, where nothing can be said, and when open cases alone keep the interval wider. An
    estimate and no promise: it assumes that the labels to come are like those there are.

    Args:
        rate: The rate with the labels so far.
        within: The half width that the interval is to have, as a share above 0.
    """
    check_above_zero("within", within)
    if rate.half_width <= within:
        return 0
    if rate.labels < FIRST_LABELS:
        return None
    unlabelled = rate.cases - rate.labels
    # Open cases widen the interval by a fixed half-width, which no further label takes away.
    fixed = rate.open / rate.cases / 2
    if within <= fixed:
        return None
    # The width is in proportion to the root of 1/n - 1/M, for n labels and M cases.
    squared_ratio = ((within - fixed) / max(rate.half_width - fixed, within)) ** 2
    needed = 1 / (1 / rate.cases + squared_ratio * (1 / rate.labels - 1 / rate.cases))
    return min(max(math.ceil(needed) - rate.labels, 1), unlabelled)


def _check_draws(sizes: Sequence[int], draws: Iterable[tuple[int, bool | None]]) -> list[tuple[int, bool | None]]:
    """Check the sizes of strata and the labels drawn from them. Raises ``UsageError``.

    Returns for each label its stratum and whether it is good; ``None`` is open.
    """
    if not sizes:
        raise UsageError("a rate needs at least one stratum, got none; name the sizes of the strata", argument="sizes")
    for size in sizes:
        check_whole_number("sizes", size, least=1)
    checked, counts = [], [0] * len(sizes)
    for stratum, good in draws:
        check_whole_number("stratum", stratum, least=0, most=len(sizes) - 1)
        if good is not None and not isinstance(good, bool):
            raise UsageError(f"a label is True, False or None for open, got {show(good)}")
        counts[stratum] += 1
        checked.append((int(stratum), good))
    for stratum, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        if count > size:
            raise UsageError(f"stratum {stratum} has {size} cases, and {count} labels were given; count each case once")
    return checked


def _check_allocations(allocations: Sequence[Allocation], strata: int) -> None:
    """Raise ``UsageError`` unless each allocation begins after the one before and its shares add up to 1."""
    before = -1
    for allocation in allocations:
        check_whole_number("first", allocation.first, least=before + 1, where="an allocation")
        before = allocation.first
        if len(allocation.shares) != strata or any(not is_finite(share) or share < 0 for share in allocation.shares):
            raise UsageError(f"an allocation needs {strata} shares of 0 or more, got {show(allocation.shares)}")
        if abs(sum(allocation.shares) - 1) > 1e-6:
            raise UsageError(f"the shares of an allocation must add up to 1, got {show(allocation.shares)}")


class Fortune:
    """The fortune of somebody who bets on each label, as a function of the null.

    A null is a hypothesis: how many good cases each stratum has. It is excluded if the logarithm of the fortune exceeds
    ``limit``.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        draws: Sequence[tuple[int, bool]],
        allocations: Sequence[Allocation] = (),
        level: float = LEVEL,
    ) -> None:
        import numpy as np

        self.sizes = np.array(sizes, dtype=float)
        self.limit = -math.log(1 - level)
        bets = _place_bets(sizes, draws, allocations)
        table = np.array(bets, dtype=float).reshape(-1, _COLUMNS)
        self.strata = table[:, _STRATUM].astype(int)
        self.good, self.earlier_good = table[:, _GOOD] > 0, table[:, _EARLIER_GOOD]
        self._cases_left = table[:, _CASES_LEFT]
        self._stakes = np.expm1(_make_exponents(table, self.limit))
        self._mixture_odds = table[:, _MIXTURE_ODDS]
        drawn = _add_up(self.strata, np.ones(len(table)), len(sizes))
        self.known_good = _add_up(self.strata, self.good.astype(float), len(sizes))
        self.room = self.sizes - drawn
        """The number of cases of each stratum without a label."""
        self._log_shares = np.log(np.array([*SHARES, *SHARES]) / 2 * (1 - APART))
        """The logarithm of the share of the fortune with which each bet begins."""
        good_shares = np.where(drawn > 0, self.known_good / np.maximum(drawn, 1), 0.5)
        self.value = float(self.known_good.sum() + (self.room * good_shares).sum()) / float(self.sizes.sum())
        """The rate of good cases, if each stratum's cases without a label are good as often as those with one."""

    @property
    def least(self) -> float:
        """The rate if every case without a label were bad."""
        return float(self.known_good.sum() / self.sizes.sum())

    @property
    def most(self) -> float:
        """The rate if every case without a label were good."""
        return float((self.known_good + self.room).sum() / self.sizes.sum())

    def trace(self, null: Sequence[float]) -> Floats:
        """Compute the logarithm of the fortune after each label, for one null.

        For the true null it rarely exceeds ``limit``.
        """
        import numpy as np
        from scipy.special import logsumexp

        good_chances, prices = self._find_chances(np.asarray(null, dtype=float))
        gains = np.log1p(self._stakes) * self.good[:, None] - np.log(prices)
        mixture_gains = self._mixture_odds - np.log(np.where(self.good, good_chances, 1 - good_chances))
        parts = [np.cumsum(gains, axis=0) + self._log_shares, np.cumsum(mixture_gains)[:, None] + math.log(APART)]
        return np.asarray(logsumexp(np.concatenate(parts, axis=1), axis=1))

    def _find_chances(self, null: Floats) -> tuple[Floats, Floats]:
        """Compute for each label the chance that it is good, given the null and the labels before it.

        Also returns the fair price of each bet on the label (a column each): by it a win is divided.
        """
        good_chances = (null[self.strata] - self.earlier_good) / self._cases_left
        return good_chances, 1 + good_chances[:, None] * self._stakes

    def measure(self, null: Floats) -> tuple[float, Floats]:
        """Compute the logarithm of the fortune for a null, which is convex in the null, and its gradient."""
        import numpy as np
        from scipy.special import logsumexp

        good_chances, prices = self._find_chances(null)
        gains = (np.log1p(self._stakes) * self.good[:, None] - np.log(prices)).sum(axis=0) + self._log_shares
        # At the very edge a label that was seen has no chance; the fortune is then infinite, and the null excluded.
        label_chances = np.maximum(np.where(self.good, good_chances, 1 - good_chances), 1e-12)
        log_parts = np.append(gains, (self._mixture_odds - np.log(label_chances)).sum() + math.log(APART))
        total = float(logsumexp(log_parts))
        shares = np.exp(log_parts - total)  # of each bet and of the mixture in the fortune
        bet_slopes = -((self._stakes / prices) @ shares[:-1])
        slopes = bet_slopes - np.where(self.good, 1.0, -1.0) / label_chances * shares[-1]
        return total, _add_up(self.strata, slopes / self._cases_left, len(self.sizes))

    def find_limit(self, *, lower: bool) -> float | None:
        """Find the smallest or the largest rate that is not excluded; ``None`` when every null is excluded."""
        if not self.room.any() or not len(self.strata):
            return self.least if lower else self.most
        sign = 1.0 if lower else -1.0  # a largest rate is found as the smallest of the negative one
        null = self._find_null(sign)
        total, gradient = self.measure(null)
        # The tangent lies below a convex function, so whatever the tangent excludes is excluded: the limit errs on the
        # wide side only, wherever the solver stopped.
        bound = self.limit - total + float(gradient @ null)
        low, high = self.known_good, self.known_good + self.room
        edges = (low, high) if lower else (-high, -low)
        least = _minimise_over_halfspace(sign * gradient, bound, *edges)
        return None if least is None else sign * least / float(self.sizes.sum())

    def _find_null(self, sign: float) -> Floats:
        """Find about the null with the smallest rate (``sign`` 1) or the largest (-1) that is not excluded."""
        import warnings

        import numpy as np
        from scipy.optimize import Bounds, NonlinearConstraint, minimize

        low, high = self.known_good, self.known_good + self.room
        start = np.where(self.room > 0, low + self.room * np.clip(self._guess_shares(), 0.001, 0.999), low)
        weights = sign * self.sizes / self.sizes.sum()

        # The solver varies the shares of good cases in the strata, which are nulls divided by the strata's sizes.
        def make_null(shares: Floats) -> Floats:
            return np.clip(shares * self.sizes, low, high)

        def measure_fortune(shares: Floats) -> float:
            return self.measure(make_null(shares))[0]

        def find_gradient(shares: Floats) -> Floats:
            return (self.measure(make_null(shares))[1] * self.sizes)[None, :]

        def compute_rate(shares: Floats) -> tuple[float, Floats]:
            """Return what is minimised, the signed rate, and its gradient."""
            return float(weights @ shares), weights

        with warnings.catch_warnings():
            # Older versions warn when a step ends a rounding error outside the bounds; what comes out is clipped.
            warnings.simplefilter("ignore", RuntimeWarning)
            solution = minimize(
                compute_rate,
                start / self.sizes,
                jac=True,
                bounds=Bounds(low / self.sizes, high / self.sizes),
                constraints=[NonlinearConstraint(measure_fortune, -np.inf, self.limit, jac=find_gradient)],
                method="SLSQP",
                options={"maxiter": 100, "ftol": 1e-8},
            )
        return make_null(np.nan_to_num(solution.x, nan=0.5))

    def _guess_shares(self) -> Floats:
        """Guess the share of good cases in each stratum from its labels; half without any."""
        drawn = self.sizes - self.room
        return (self.known_good + 0.5) / (drawn + 1)


def _add_up(strata: NDArray[np.int_], values: Floats, count: int) -> Floats:
    """Add up the values of each of ``count`` strata; ``strata`` has the number of each value's stratum."""
    import numpy as np

    return np.bincount(strata, weights=values, minlength=count).astype(float)


_COLUMNS = 10

(
    _STRATUM,
    _GOOD,
    _EARLIER_GOOD,
    _CASES_LEFT,
    _EXPECTED,
    _SIZE,
    _DEVIATION,
    _TOP,
    _BOTTOM,
    _MIXTURE_ODDS,
) = range(_COLUMNS)
"""The columns of ``_place_bets``."""


def _place_bets(
    sizes: Sequence[int], draws: Sequence[tuple[int, bool]], allocations: Sequence[Allocation]
) -> list[tuple[float, ...]]:
    """Return for each label a row with the label and what the bets on it are based on.

    The columns are: the stratum, whether the label is good, the good labels and the cases without a label that the
    stratum had before it; the share of good cases expected in the stratum, the size of the bet relative to other
    strata, the standard deviation of a label, the largest expected share of good and of bad cases in any stratum; and
    the logarithm of the odds at which the beta mixture took the label. That last column may depend on the label itself.
    What bets are based on may depend on earlier labels only: otherwise the fortune would be no martingale, and the
    interval would promise too much.
    """
    cases, count = sum(sizes), len(sizes)
    weights = [size / cases for size in sizes]
    good, drawn, placed = [0] * count, [0] * count, [0.0] * count
    expectations = [0.5] * count
    shares, waiting, rows = weights, list(allocations), []
    for number, (stratum, is_good) in enumerate(draws):
        while waiting and waiting[0].first <= number:
            shares = [max(share, 0.1 * w) for share, w in zip(waiting.pop(0).shares, weights, strict=True)]
        good_before, drawn_before = good[stratum], drawn[stratum]
        weight, share = weights[stratum], shares[stratum]
        # The bets on a stratum should add up to its weight; what is missing is made up for over the labels ahead.
        ahead = max(AHEAD, 0.3 * number)
        even = weight / share
        size = min(max((weight * (number + ahead) - placed[stratum]) / (share * ahead), 0.3 * even), 3 * even)
        variance = sum(w * w / s * p * (1 - p) for w, s, p in zip(weights, shares, expectations, strict=True))
        same_before = good_before if is_good else drawn_before - good_before
        mixture_odds = math.log((same_before + 0.5) / (drawn_before + 1))
        expected = expectations[stratum]
        top, bottom = max(expectations), max(1 - expectation for expectation in expectations)
        cases_left = sizes[stratum] - drawn_before
        deviation = math.sqrt(variance)
        rows.append((stratum, is_good, good_before, cases_left, expected, size, deviation, top, bottom, mixture_odds))
        placed[stratum] += size
        drawn[stratum], good[stratum] = drawn_before + 1, good_before + is_good
        expectations[stratum] = (good[stratum] + 1) / (drawn[stratum] + 2)
    return rows


def _make_exponents(table: Floats, limit: float) -> Floats:
    """Compute the logarithm of the factor by which a good label multiplies each bet before the price is paid.

    The columns are the three horizons of the bets that the rate is higher, then of those that it is lower. A bet of
    ``b`` on a label that is good with the chance ``p`` turns 1 into 1 + b(1 - p) or 1 - bp. Here ``p`` is the expected
    share and not the null: only then is the logarithm of the fortune convex in the null.
    """
    import numpy as np

    number = np.arange(1, len(table) + 1, dtype=float)[:, None]
    expected, size, deviation, top, bottom = (table[:, column : column + 1] for column in range(_EXPECTED, _BOTTOM + 1))
    bets = np.sqrt(2 * (limit + math.log(2)) / np.maximum(number, np.array(HORIZONS))) / deviation
    # The same bound for all strata: a bound for one alone would tilt the bets away from the weighted rate.
    up = np.minimum(size * np.minimum(bets, np.array(MOST) / top), 0.9 / expected)
    down = np.minimum(size * np.minimum(bets, np.array(MOST) / bottom), 0.9 / (1 - expected))
    return np.concatenate([np.log1p(up / (1 - up * expected)), np.log1p(-down / (1 + down * expected))], axis=1)


def _minimise_over_halfspace(slope: Floats, bound: float, low: Floats, high: Floats) -> float | None:
    """Find the smallest sum of coordinates of a point between ``low`` and ``high`` with ``slope @ point <= bound``.

    ``None`` where there is no such point. Beginning at ``low``, the coordinates with the steepest slope are raised.
    """
    import numpy as np

    total, excess = float(low.sum()), float(slope @ low) - bound
    for axis in np.argsort(slope):
        if excess <= 0 or slope[axis] >= 0:
            break
        step = min(float(high[axis] - low[axis]), excess / -float(slope[axis]))
        total, excess = total + step, excess + step * float(slope[axis])
    # An excess that is only rounding does not mean that there is no such point.
    return total if excess <= 1e-9 * max(1.0, abs(bound)) else None
