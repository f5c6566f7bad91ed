"""The number of labels that an interval of some width needs."""

from __future__ import annotations

import math

from adjudge.trust import compute_labels_needed


def test_the_formulas_are_those_of_the_books():
    """For one stratum: z² p (1 - p) / h², then the share that is labelled, then a fifth more."""
    n0 = 1.959963984540054**2 * 0.25 / 0.03**2
    needed = compute_labels_needed([3200], [0.5], within=0.03)

    assert needed.alone == needed.random == needed.planned == math.ceil(1.2 * n0 / (1 + n0 / 3200))


def test_neyman_is_never_more_than_at_random():
    """Strata help, and labels where people disagree help more; looking at all times costs."""
    needed = compute_labels_needed([2000, 1200], [0.95, 0.4], within=0.03)

    assert needed.planned < needed.random < needed.alone
    assert needed.live > needed.planned


def test_no_plan_is_larger_than_its_run():
    """Labelling everything is always enough, and a plan has at least its pilot."""
    assert compute_labels_needed([100, 50], [0.5, 0.5], within=0.001).planned == 150
    assert compute_labels_needed([5000], [1.0], within=0.1).planned == 60
