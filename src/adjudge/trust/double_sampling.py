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
    """Compute rates with their lower and upper limits, from good and labelled cases and the sizes of the heaps.

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
        near_end = is_near_end(good, labelled, shrink)
        if not np.any(near_end):
            return value, low, high
        _, exact_low, exact_high = compute(method="exact")
        wide_low = np.where(near_end, np.minimum(low, exact_low), low)
        wide_high = np.where(near_end, np.maximum(high, exact_high), high)
        return value, wide_low, wide_high
    run_size = np.sum(cases, axis=-1, keepdims=True)
    weights = cases / run_size
    divisor = np.asarray(shrink, dtype=float)[..., None]
    if target == "run":
        # Not divided: a labelled case is known, whether it came in a group or not.
        unlabelled_share = np.where(cases > 0, 1 - labelled / np.where(cases > 0, cases, 1), 0.0)
        value, low, high = _clip_rates(
            combine_shares(good / divisor, labelled / divisor, weights, unlabelled_share, level=level, method=method)
        )
        # What is labelled good or bad stays so, whatever the other cases are.
        known_good, known_bad = (np.sum(count, axis=-1) / run_size[..., 0] for count in (good, labelled - good))
        return value, np.minimum(np.maximum(low, known_good), value), np.maximum(np.minimum(high, 1 - known_bad), value)
    shares = compute_shares(good, labelled)
    rate = np.sum(weights * shares, axis=-1)
    spread = np.maximum(np.sum(weights * shares**2, axis=-1) - rate**2, 0.0) / run_size[..., 0] * between
    return _clip_rates(
        combine_shares(good / divisor, labelled / divisor, weights, spread=spread, level=level, method=method)
    )


def is_near_end(good: Floats, labelled: Floats, shrink: Floats | float = 1.0) -> Flags:
    """Return whether so few labelled answers are good, or bad, that Wilson's limits alone would cover too little."""
    import numpy as np

    # A design effect below 1 makes labels count more, and does not make more of them.
    divisor = np.maximum(shrink, 1.0)
    good_count, bad_count = np.sum(good, axis=-1) / divisor, np.sum(labelled - good, axis=-1) / divisor
    return np.asarray(np.minimum(good_count, bad_count) < FEW_OF_A_KIND)


def _clip_rates(rates: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    """Clip rates, lower and upper limits to 0 and 1, which rounding may exceed, and the limits to the rates."""
    import numpy as np

    value, low, high = (np.clip(values, 0.0, 1.0) for values in rates)
    return value, np.minimum(low, value), np.maximum(high, value)


def compute_shares(good: Floats, labelled: Floats) -> Floats:
    """Compute the share of good ones among the labelled cases of each heap; 0.5 for a heap without a label."""
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
    heap_labels = np.sum(labelled, axis=-2)
    shares = compute_shares(np.sum(good, axis=-2), heap_labels)
    rate = np.sum(weights * shares, axis=-1, keepdims=True)
    label_weights = np.where(heap_labels > 0, weights / np.where(heap_labels > 0, heap_labels, 1), 0.0)
    # How far each group moves the rate: in each heap by its share of good ones, and by its mix of heaps.
    errors = label_weights[..., None, :] * (good - shares[..., None, :] * labelled)
    errors_between = np.sum((label_weights * (shares - rate))[..., None, :] * labelled, axis=-1)
    # The design effect of groups whose answers are all equal, for labels of which none varies: 1 would be a claim.
    alike = np.sum(np.sum(labelled, axis=-1) ** 2, axis=-1) / np.maximum(np.sum(labelled, axis=(-2, -1)), 1)
    errors_within = np.sum(errors, axis=-1)
    variance = np.maximum(_compute_variance(errors_within), _compute_jackknife(errors, labelled, heap_labels))
    # The variances of as many labels that do not come in groups.
    ungrouped_within = np.sum(label_weights * weights * shares * (1 - shares), axis=-1)
    ungrouped_between = np.sum(label_weights * weights * (shares - rate) ** 2, axis=-1)
    return (
        _compute_effect(variance, ungrouped_within, errors_within, alike),
        _compute_effect(_compute_variance(errors_between), ungrouped_between, errors_between, alike),
    )


def compute_shrink(deff: Floats, groups: int, *, level: float = LEVEL) -> Floats:
    """Compute by how much to divide the counts of labels that come in groups.

    That is the design effect, times a factor because it was measured from few groups: the square of Student's t over
    the normal distribution's quantile.
    """
    from scipy.special import stdtrit

    upper_probability = (1 + level) / 2
    return deff * (stdtrit(groups - 1, upper_probability) / NormalDist().inv_cdf(upper_probability)) ** 2


def _compute_variance(group_errors: Floats) -> Floats:
    """Compute the variance of a rate from how far each group moves it; the groups are the last axis."""
    import numpy as np

    groups = group_errors.shape[-1]
    return groups / (groups - 1) * np.sum(group_errors**2, axis=-1)


def _compute_jackknife(errors: Floats, labelled: Floats, heap_labels: Floats) -> Floats:
    """Compute the variance of the rate by leaving out each group in turn.

    ``errors`` and ``labelled`` have the groups in the axis before the last and the heaps in the last one;
    ``heap_labels`` are the labels of each heap.
    """
    import numpy as np

    groups, other_labels = labelled.shape[-2], heap_labels[..., None, :] - labelled
    # A heap whose labels are all of one group has no error that could be seen, with or without that group.
    factors = np.where(other_labels > 0, heap_labels[..., None, :] / np.where(other_labels > 0, other_labels, 1), 1.0)
    changes = errors * factors  # of the rate, when the group is left out
    return (groups - 1) / groups * np.sum(np.sum(changes, axis=-1) ** 2, axis=-1)


def _compute_effect(variance: Floats, ungrouped: Floats, errors: Floats, alike: Floats) -> Floats:
    """Compute the design effect: the variance of labels in groups, divided by that of as many labels in no groups.

    ``errors`` are how far each group moves the rate. ``alike`` is the effect of groups whose labels are all equal,
    which is returned where no label varies.
    """
    import numpy as np

    # Rounding leaves variances like 1e-34 where there is none.
    varies = ungrouped > 1e-18
    ratio = variance / np.where(varies, ungrouped, 1)
    return np.where(varies, compute_design_effect(ratio, errors, alike), alike)
