"""The spread of many numbers: counted by steps, in memory that does not grow with how many there are."""

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

_TIME_STEPS = 50
"""Steps to a factor of e: one is 2 %, so the middle of a step is at most 1 % off."""

_SHORTEST_MS, _LONGEST_MS = 1e-3, 1e9


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
    """Numbers on their way to a ``Spread``: its percentiles need all of them, so it is a value of its own."""

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()
        self._count = 0
        self._sum = 0.0
        self._lowest, self._highest = math.inf, -math.inf

    def _add(self, value: float, step: int) -> None:
        self._steps[step] += 1
        self._count += 1
        self._sum += value
        self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)

    def _finish(self, steps: Iterable[tuple[float, int]], bins: tuple[int, ...]) -> Spread | None:
        """Summarise the numbers; ``steps`` are the middle of each step and how many numbers it has, lowest first.

        A percentile is the middle of the step in which the number of its rank lies (the nearest-rank method).
        """
        if not self._count:
            return None
        ranks = {name: math.ceil(share * self._count) for name, share in _PERCENTILES.items()}
        percentiles: dict[str, float] = {}
        counted = 0
        for middle, number in steps:
            counted += number
            for name, rank in ranks.items():
                if name not in percentiles and counted >= rank:
                    # The middle of a step can lie outside of what was seen; a percentile cannot.
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
        """Count one."""
        score = min(max(score, 0.0), 1.0)  # a weighted mean may end a last digit outside
        self._bins[find_bin(score)] += 1
        self._add(score, round(score * _SCORE_STEPS))

    def finish(self) -> Spread | None:
        """Return the spread of what was counted; ``None`` when there is none."""
        steps = ((step / _SCORE_STEPS, number) for step, number in sorted(self._steps.items()))
        return self._finish(steps, tuple(self._bins))


class TimeTally(SpreadTally):
    """Durations, in milliseconds."""

    def add(self, duration_ms: float) -> None:
        """Count one; what is no duration counts as none at all."""
        value = duration_ms if math.isfinite(duration_ms) and duration_ms > 0 else 0.0
        bounded = min(max(value, _SHORTEST_MS), _LONGEST_MS)
        self._add(value, round(math.log(bounded) * _TIME_STEPS))

    def finish(self) -> Spread | None:
        """Return the spread of what was counted; ``None`` when there is none."""
        steps = ((math.exp(step / _TIME_STEPS), number) for step, number in sorted(self._steps.items()))
        return self._finish(steps, ())


def find_bin(score: float) -> int:
    """Find the bar a score belongs to: 0.05 begins the second, and 1 is in the last."""
    # 0.3 / 0.05 is less than 6 in binary; a score on the edge of two bars belongs to the upper one all the same.
    return min(int(score * BINS + 1e-9), BINS - 1)
