"""Least squares with standard errors that allow errors of unequal size (HC3), or items that come in groups.

Where few items have a property, robust errors come out much too small: of five items of which none happened to be
wrong, nothing is seen to vary. So the error of an effect is never smaller than the one that follows if errors vary
everywhere alike.

Source: J. G. MacKinnon and H. White, "Some heteroskedasticity-consistent covariance matrix estimators with improved
finite sample properties", 1985 (HC3); K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear
models", 1986 (groups), with the small-sample factor G/(G-1) (n-1)/(n-k); B. R. Moulton, "Random group effects and the
precision of regression estimates", 1986 (errors that vary alike, and are alike within groups).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.trust.intervals import LEVEL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A regression that was fitted: its coefficients, one for each column of the design."""

    values: Floats
    """The coefficients."""
    errors: Floats
    """Their robust standard errors."""
    freedom: int
    """Degrees of freedom of Student's t."""

    def find_p_values(self) -> Floats:
        """Compute for each coefficient the two-sided p-value of the hypothesis that it is 0."""
        import numpy as np
        from scipy.stats import t

        # A coefficient without an error is certain: its p-value is 1 if it is 0, and else 0.
        certain_ratios = np.where(self.values, math.inf, 0.0)
        ratios = np.divide(np.abs(self.values), self.errors, out=certain_ratios, where=self.errors > 0)
        return np.minimum(1.0, 2 * t.sf(ratios, self.freedom))

    def find_limits(self) -> tuple[Floats, Floats]:
        """Compute the lower and the upper limit of each coefficient's 95 % interval."""
        from scipy.stats import t

        half_widths = float(t.ppf((1 + LEVEL) / 2, self.freedom)) * self.errors
        return self.values - half_widths, self.values + half_widths


def fit_robustly(design: Floats, outcome: Floats, groups: tuple[NDArray[np.int64], int] | None) -> Fit:
    """Fit outcome = design x coefficients by least squares, with robust standard errors.

    ``groups`` has the number of each item's group, and how many groups there are; ``None`` if items are independent.
    Raises ``UsageError`` where one item alone decides a coefficient, unless items come in groups.
    """
    import numpy as np

    items, columns = design.shape
    unit, triangle = np.linalg.qr(design)  # unit: columns of length 1 at right angles to each other
    inverse = np.linalg.inv(triangle)
    values = inverse @ (unit.T @ outcome)
    residuals = outcome - design @ values
    # What is left of an exact fit is rounding, and would pass for a tiny but certain effect.
    residuals[np.abs(residuals) < 1e-12 * max(1.0, float(np.abs(outcome).max()))] = 0.0
    if groups is None:
        leverage = (unit**2).sum(axis=1)
        if leverage.max() > 1 - 1e-9:
            raise UsageError("one item alone decides an effect, so its error cannot be known; leave the effect out")
        scores, factor, freedom = unit * (residuals / (1 - leverage))[:, None], 1.0, items - columns
    else:
        codes, number = groups
        scores = np.zeros((number, columns))
        np.add.at(scores, codes, unit * residuals[:, None])
        factor, freedom = number / (number - 1) * (items - 1) / (items - columns), number - 1
    robust = np.diag(inverse @ (scores.T @ scores) @ inverse.T) * factor
    uniform = _compute_uniform_variance(unit @ inverse.T, residuals, items - columns, groups, float(np.ptp(outcome)))
    # Without this lower bound, an effect of a rare value of a property is found in 60 of 100 draws that have none.
    errors = np.sqrt(np.maximum(robust, uniform))
    # A coefficient that is 0 but for rounding must not pass for certain where no error is left.
    values[np.abs(values) < 1e-12 * max(1.0, float(np.abs(outcome).max()))] = 0.0
    return Fit(values=values, errors=errors, freedom=freedom)


def _compute_uniform_variance(
    influence: Floats, residuals: Floats, freedom: int, groups: tuple[NDArray[np.int64], int] | None, spread: float
) -> Floats:
    """Compute the variance of each coefficient, if errors vary equally everywhere and correlate equally in each group.

    ``influence`` is how much the outcome of each item adds to each coefficient, ``spread`` the range of the outcomes.
    With ``c`` for the correlation of two errors of one group, a coefficient's variance is the variance of an error,
    times ``(1 - c)`` of the sum of squares of its influence over items and ``c`` of that over whole groups (Moulton,
    1986, "Random group effects and the precision of regression estimates").
    """
    import numpy as np

    variance = float(residuals @ residuals) / freedom
    if not variance:
        # No residual is left, which does not show that none ever would be: as if one more item were off by the spread.
        variance = spread**2 / (len(residuals) + 1)
    over_items = (influence**2).sum(axis=0)
    if groups is None:
        return variance * over_items
    if not residuals.any():  # nothing shows how alike errors are within a group, so they are taken to be the same
        return variance * _add_up_groups(influence, groups)
    codes, number = groups
    sizes = np.bincount(codes, minlength=number).astype(float)
    pairs = float((sizes * (sizes - 1)).sum())  # of two items of one group
    group_sums = np.bincount(codes, residuals, number)
    # The square of a group's sum has each product of two of its residuals, and the squares, which are subtracted.
    products = float(group_sums @ group_sums) - float(residuals @ residuals)
    correlation = min(max(products / (variance * pairs), 0.0), 1.0) if pairs else 0.0
    return variance * (over_items * (1 - correlation) + correlation * _add_up_groups(influence, groups))


def _add_up_groups(influence: Floats, groups: tuple[NDArray[np.int64], int]) -> Floats:
    """Sum the influence of each group's items on each coefficient, and add up the squares of these sums."""
    import numpy as np

    codes, number = groups
    sums = np.zeros((number, influence.shape[1]))
    np.add.at(sums, codes, influence)
    return (sums**2).sum(axis=0)
