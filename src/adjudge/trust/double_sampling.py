"""The rate at which people would pass, from labels drawn from the run: double sampling with MOVER limits.

The cases of a run fall into heaps, by the judge's verdict. In each heap the labels say which share is really good; the
shares are weighed by the sizes of the heaps. Nothing has to be assumed about the judge: a bad one only makes the heaps
alike. All arrays hold the heaps in their last axis, and any number of repetitions before it.
``corrected_rate.py`` puts the corrected rate together from this.

Sources: A. Tenenbein, "A double sampling scheme for estimating from binomial data with misclassifications", 1970 (the
estimate); G. Y. Zou and A. Donner, 2008 (the limits); L. Kish, "Survey sampling", 1965 (the design effect).
"""

from __future__ import annotations

from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from adjudge.trust.intervals import LEVEL, IntervalMethod, combine_shares, compute_design_effect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

    Flags = NDArray[np.bool_]

FEW_OF_A_KIND = 8
"""With fewer labelled good answers, or bad ones, Wilson's limits cover too little: down to 85 % of 95 %."""

Target = Literal["run", "system"]
"""The cases that the rate is of: those of this ``run``, or everything that the ``system`` produces."""


def compute_double_sampling(
    good: Floats,
    labelled: Floats,
    cases: Floats,
    *,
    target: Target = "run",
    shrink: Floats | float = 1.0,
    between: Floats | float = 1.0,
    level: float = LEVEL,
    method: IntervalMethod | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Rates with their lower and upper limits, from good and labelled cases and the sizes of the heaps.

    Labels that come in groups count less: the counts are divided by ``shrink``. ``between`` is the design effect of
    how the run's cases are distributed over the heaps, which matters for the ``system`` alone. The limits are those of
    ``method``. Without one they are Wilson's, and as wide as the exact ones too where fewer than 8 labelled answers
    are good, or bad: so near to the end, Wilson's alone cover as little as 85 %. Limits for the ``run`` leave out what
    its labels exclude.
    """
    import numpy as np

    if method is None:
        compute = partial(
            compute_double_sampling,
            good,
            labelled,
            cases,
            target=target,
            shrink=shrink,
            between=between,
            level=level,
        )
        value, low, high = compute(method="wilson")
        near = is_near_end(good, labelled, shrink)
        if not np.any(near):
            return value, low, high
        _, lower, higher = compute(method="exact")
        return value, np.where(near, np.minimum(low, lower), low), np.where(near, np.maximum(high, higher), high)
    whole = np.sum(cases, axis=-1, keepdims=True)
    weights = cases / whole
    by = np.asarray(shrink, dtype=float)[..., None]
    if target == "run":
        # The share that is left is that of the cases themselves: what was labelled is known, in groups or not.
        left = np.where(cases > 0, 1 - labelled / np.where(cases > 0, cases, 1), 0.0)
        value, low, high = _clip_rates(
            combine_shares(good / by, labelled / by, weights, left, level=level, method=method)
        )
        # What is labelled good or bad stays so, whatever the other cases are.
        known_good, known_bad = (np.sum(count, axis=-1) / whole[..., 0] for count in (good, labelled - good))
        return value, np.minimum(np.maximum(low, known_good), value), np.maximum(np.minimum(high, 1 - known_bad), value)
    shares = compute_shares(good, labelled)
    rate = np.sum(weights * shares, axis=-1)
    spread = np.maximum(np.sum(weights * shares**2, axis=-1) - rate**2, 0.0) / whole[..., 0] * between
    return _clip_rates(combine_shares(good / by, labelled / by, weights, spread=spread, level=level, method=method))


def is_near_end(good: Floats, labelled: Floats, shrink: Floats | float = 1.0) -> Flags:
    """Return whether so few labelled answers are good, or bad, that Wilson's limits alone would cover too little."""
    import numpy as np

    # Counts that are worth more than their number are no more of a kind.
    by = np.maximum(shrink, 1.0)
    of_good, of_bad = np.sum(good, axis=-1) / by, np.sum(labelled - good, axis=-1) / by
    return np.asarray(np.minimum(of_good, of_bad) < FEW_OF_A_KIND)


def _clip_rates(rates: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    """Rates in 0 to 1: weights that add up to 1 may exceed it by rounding."""
    import numpy as np

    value, low, high = (np.clip(values, 0.0, 1.0) for values in rates)
    return value, np.minimum(low, value), np.maximum(high, value)


def compute_shares(good: Floats, labelled: Floats) -> Floats:
    """The share of good among the labelled cases of each heap; 0.5 of nothing."""
    import numpy as np

    return np.where(labelled > 0, good / np.where(labelled > 0, labelled, 1), 0.5)


def compute_design_effects(good: Floats, labelled: Floats, cases: Floats) -> tuple[Floats, Floats]:
    """Compute how much more the rate varies because labels come in groups: within the heaps, and between them.

    ``good`` and ``labelled`` have the groups in the axis before the last; there must be two or more. The first is the
    larger one of two estimates of the variance: linearised, and by leaving out each group in turn (the jackknife). They
    are equal where each group has as many labels in each heap. Where a heap lives on a few groups, the linearised one
    is too small: at 15 groups its intervals cover as little as 92 %. Either effect may be below 1
    (``compute_design_effect``).
    """
    import numpy as np

    weights = cases / np.sum(cases, axis=-1, keepdims=True)
    number = np.sum(labelled, axis=-2)
    shares = compute_shares(np.sum(good, axis=-2), number)
    rate = np.sum(weights * shares, axis=-1, keepdims=True)
    each = np.where(number > 0, weights / np.where(number > 0, number, 1), 0.0)
    errors = each[..., None, :] * (good - shares[..., None, :] * labelled)
    across = np.sum((each * (shares - rate))[..., None, :] * labelled, axis=-1)
    # Groups of equal answers, if nothing varies in what was seen: a design effect of 1 would be a claim.
    alike = np.sum(np.sum(labelled, axis=-1) ** 2, axis=-1) / np.maximum(np.sum(labelled, axis=(-2, -1)), 1)
    within = np.sum(errors, axis=-1)
    variance = np.maximum(_compute_variance(within), _compute_jackknife(errors, labelled, number))
    # The variances of as many labels that do not come in groups.
    ungrouped_within = np.sum(each * weights * shares * (1 - shares), axis=-1)
    ungrouped_across = np.sum(each * weights * (shares - rate) ** 2, axis=-1)
    return (
        _compute_effect(variance, ungrouped_within, within, alike),
        _compute_effect(_compute_variance(across), ungrouped_across, across, alike),
    )


def compute_shrink(deff: Floats, groups: int, *, level: float = LEVEL) -> Floats:
    """Compute the divisor of counts: the design effect, and Student's t for having measured it from few groups."""
    from scipy.special import stdtrit

    tail = (1 + level) / 2
    return deff * (stdtrit(groups - 1, tail) / NormalDist().inv_cdf(tail)) ** 2


def _compute_variance(by_group: Floats) -> Floats:
    import numpy as np

    groups = by_group.shape[-1]
    return groups / (groups - 1) * np.sum(by_group**2, axis=-1)


def _compute_jackknife(errors: Floats, labelled: Floats, number: Floats) -> Floats:
    """The variance of the rate over leaving out each group in turn."""
    import numpy as np

    groups, rest = labelled.shape[-2], number[..., None, :] - labelled
    # A heap whose labels are all of one group has no error that could be seen, with or without that group.
    left_out = errors * np.where(rest > 0, number[..., None, :] / np.where(rest > 0, rest, 1), 1.0)
    return (groups - 1) / groups * np.sum(np.sum(left_out, axis=-1) ** 2, axis=-1)


def _compute_effect(variance: Floats, ungrouped: Floats, errors: Floats, alike: Floats) -> Floats:
    """Compute the design effect: a variance of labels in groups, divided by that of labels that come one by one.

    ``errors`` and ``alike`` are as for ``compute_design_effect``. Where no label varies, the effect is ``alike``.
    """
    import numpy as np

    # Rounding leaves variances like 1e-34 where there is none.
    varies = ungrouped > 1e-18
    ratio = variance / np.where(varies, ungrouped, 1)
    return np.where(varies, compute_design_effect(ratio, errors, alike), alike)
