"""The rate at which people would pass, from labels that are not drawn from the run: sensitivity and specificity.

The judge's pass rate is turned back into a rate of good answers by what is known of its errors. This assumes that the
judge errs in the run as often as on the labelled cases, which the program cannot check. All arguments may be arrays.
The corrected rate is put together from this in ``rates.py`` (``make_external_rate``).

Source: Zs. Lang and J. Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
specificity", 2014.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from adjudge.trust.intervals import LEVEL, find_limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

    Flags = NDArray[np.bool_]

FEWEST = 10
"""Labelled good answers that are needed, and labelled bad ones."""

LEAST_YOUDEN = 0.10
"""What sensitivity + specificity - 1 must be shown to exceed: dividing by less blows every error up."""


class KnownErrors(NamedTuple):
    """Labelled answers by what the judge made of them; each may be an array."""

    good_passed: Floats
    good: Floats
    bad_failed: Floats
    bad: Floats


def compute_lang_reiczigel(
    passes: Floats, cases: Floats, known: KnownErrors, *, level: float = LEVEL
) -> tuple[Floats, Floats, Floats]:
    """Rates (of Rogan and Gladen) with their lower and upper limits, in 0 to 1; NaN for a judge that knows nothing."""
    import numpy as np

    good_passed, good, bad_failed, bad = known
    z = NormalDist().inv_cdf((1 + level) / 2)
    number, rate = cases + z * z, passes / cases
    moved = (cases * rate + z * z / 2) / number
    sens, spec = (good_passed + 1) / (good + 2), (bad_failed + 1) / (bad + 2)
    youden = sens + spec - 1
    by = np.where(youden > 0, youden, np.nan)
    found = (moved + spec - 1) / by
    of_sens, of_spec = sens * (1 - sens) / (good + 2), spec * (1 - spec) / (bad + 2)
    middle = found + 2 * z * z * (found * of_sens - (1 - found) * of_spec)
    reach = z * np.sqrt(moved * (1 - moved) / number + found**2 * of_sens + (1 - found) ** 2 * of_spec) / by
    low, high = np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)
    plain = good_passed / np.maximum(good, 1) + bad_failed / np.maximum(bad, 1) - 1
    value = (rate + bad_failed / np.maximum(bad, 1) - 1) / np.where(plain > 0, plain, np.nan)
    return np.clip(value, low, high), low, high


def compute_youden_limit(known: KnownErrors, *, level: float = LEVEL) -> Floats:
    """The lower limit of sensitivity + specificity - 1, by MOVER with Wilson's limits; -1 without either class."""
    import numpy as np

    good_passed, good, bad_failed, bad = known
    both = (good > 0) & (bad > 0)
    sens, spec = good_passed / np.where(both, good, 1), bad_failed / np.where(both, bad, 1)
    low_sens, low_spec = find_limits(good_passed, good, level=level)[0], find_limits(bad_failed, bad, level=level)[0]
    return np.where(both, sens + spec - 1 - np.sqrt((sens - low_sens) ** 2 + (spec - low_spec) ** 2), -1.0)


def is_refused(known: KnownErrors, *, level: float = LEVEL) -> Flags:
    """Whether too little is known of the judge for an interval to be worth anything."""
    import numpy as np

    weak = compute_youden_limit(known, level=level) <= LEAST_YOUDEN
    return np.asarray((known.good < FEWEST) | (known.bad < FEWEST) | weak)
