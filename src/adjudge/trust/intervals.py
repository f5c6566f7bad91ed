"""Intervals for a share: what a count says about the rate behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from adjudge.errors import UsageError

LEVEL = 0.95
"""How much of the time an interval made like this holds the true share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of something, and where the true one may be."""

    count: float
    """How many; a tie counts as half a win."""
    of: int
    """Of how many."""

    @property
    def rate(self) -> float | None:
        """The share, in 0 to 1; ``None`` of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval; ``None`` of nothing."""
        return find_interval(self.count, self.of) if self.of else None

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        low, high = self.interval or (None, None)
        return {"count": self.count, "of": self.of, "rate": self.rate, "low": low, "high": high}


def find_interval(count: float, of: int, level: float = LEVEL) -> tuple[float, float]:
    """The Wilson score interval of ``count`` out of ``of``; ``count`` may hold halves, and is then conservative.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not (of > 0 and 0 <= count <= of and 0 < level < 1):
        raise UsageError(f"an interval needs a count from 0 to {of}, of more than 0; got {count!r} at level {level!r}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate, square = count / of, z * z
    middle = (rate + square / (2 * of)) / (1 + square / of)
    reach = z / (1 + square / of) * math.sqrt(rate * (1 - rate) / of + square / (4 * of * of))
    # At the ends the two are equal but for rounding, which must not exclude a rate that was seen.
    low = 0.0 if count == 0 else max(middle - reach, 0.0)
    high = 1.0 if count == of else min(middle + reach, 1.0)
    return low, high
