"""The spread of many numbers: mean, limits and percentiles, in memory that does not grow with how many there are.

Numbers are rounded to steps and counted by step, from which the percentiles follow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.formats.record import Layout, write_record

BINS = 20
"""Bars of a histogram of scores; the last one includes 1."""


_SCORE_STEPS = 1000
"""Steps from 0 to 1 that scores are rounded to."""

_TIME_STEPS = 50
"""Steps to a factor of e that durations are rounded to: one is 2 %, so the middle of a step is at most 1 % off."""

_SHORTEST_MS, _LONGEST_MS = 1e-3, 1e9
"""The limits of the durations that have steps of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The distribution of some numbers: exact minimum, maximum and mean, and percentiles by nearest rank.

    Percentiles of scores are exact to 0.001, those of durations to 1 %.
    """

    _layout: ClassVar[Layout] = Layout(omitted=("bins",))

    count: int
    """The number of values."""
    mean: float
    """Their mean."""
    lowest: float
    """The lowest."""
    p5: float
    """The 5th percentile."""
    p25: float
    """The 25th percentile."""
    median: float
    """The median."""
    p75: float
    """The 75th percentile."""
    p95: float
    """The 95th percentile."""
    p99: float
    """The 99th percentile."""
    highest: float
    """The highest."""
    bins: tuple[int, ...] = ()
    """The number of scores in each twentieth of 0 to 1; empty for numbers that are not scores."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


class SpreadTally:
    """Counts of numbers by steps, from which a ``Spread`` is made once all numbers are added."""

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()
        self._count = 0
        self._sum = 0.0
        self._lowest, self._highest = math.inf, -math.inf

    def _add(self, value: float, step: int) -> None:
        """Count a number, which is rounded to a step."""
        self._steps[step] += 1
        self._count += 1
        self._sum += value
        self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)

    def _finish(self, steps: Iterable[tuple[float, int]], bins: tuple[int, ...]) -> Spread | None:
        """Summarise the numbers; ``None`` if there are none.

        ``steps`` has the middle of each step with the count of its numbers, the lowest step first. A percentile is the
        middle of the step that has the number of its rank (the nearest-rank method).
        """
        if not self._count:
            return None
        ranks = {name: math.ceil(share * self._count) for name, share in _PERCENTILES.items()}
        percentiles: dict[str, float] = {}
        counted_so_far = 0
        for middle, number in steps:
            counted_so_far += number
            for name, rank in ranks.items():
                if name not in percentiles and counted_so_far >= rank:
                    # The middle of a step may be below the lowest number, or above the highest.
                    percentiles[name] = min(max(middle, self._lowest), self._highest)
        mean = self._sum / self._count
        return Spread(
            count=self._count, mean=mean, lowest=self._lowest, highest=self._highest, bins=bins, **percentiles
        )


_PERCENTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


class ScoreTally(SpreadTally):
    """Scores, in 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self._bins = [0] * BINS

    def add(self, score: float) -> None:
        """Count a score."""
        score = min(max(score, 0.0), 1.0)  # by a rounding error, a weighted mean may be just outside 0 to 1
        self._bins[find_bin(score)] += 1
        self._add(score, round(score * _SCORE_STEPS))

    def finish(self) -> Spread | None:
        """Return the spread of the scores; ``None`` if there are none."""
        steps = ((step / _SCORE_STEPS, number) for step, number in sorted(self._steps.items()))
        return self._finish(steps, tuple(self._bins))


class TimeTally(SpreadTally):
    """Durations, in milliseconds."""

    def add(self, duration_ms: float) -> None:
        """Count a duration; a value that is no duration, such as infinity or -1, counts as 0."""
        value = duration_ms if math.isfinite(duration_ms) and duration_ms > 0 else 0.0
        bounded = min(max(value, _SHORTEST_MS), _LONGEST_MS)
        self._add(value, round(math.log(bounded) * _TIME_STEPS))

    def finish(self) -> Spread | None:
        """Return the spread of the durations; ``None`` if there are none."""
        steps = ((math.exp(step / _TIME_STEPS), number) for step, number in sorted(self._steps.items()))
        return self._finish(steps, ())


def find_bin(score: float) -> int:
    """Find the index of the histogram's bar for a score: bar 1 begins at 0.05, and a score of 1 is in the last bar."""
    # A score on the edge of two bars belongs to the upper one; 1e-9 is against rounding errors below the edge.
    return min(int(score * BINS + 1e-9), BINS - 1)
