"""The first cases of a run by batches, judged live: a broken prompt then costs twenty calls and not twenty thousand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from adjudge.errors import AdjudgeError
from adjudge.runs.item import RunItem
from adjudge.runs.pool import Concurrency
from adjudge.runs.schedule import Unit

SHARE = 0.5
"""The share of undecided judgements from which nothing is sent by batch."""


class FirstCases:
    """How many judgements are made live, and what came of them."""

    def __init__(self, wanted: int) -> None:
        self.wanted = max(wanted, 0)
        self._live: set[tuple[int, int]] = set()
        self._reasons: Counter[str] = Counter()
        self._settled = 0
        self._is_settled = asyncio.Event()
        self.over = self.wanted == 0
        """Whether they are judged, and well enough."""

    def is_live(self, unit: Unit) -> bool:
        """Whether a unit is one of them."""
        return (unit.place, unit.sample) in self._live

    def note(self, unit: Unit, item: RunItem) -> None:
        """Take note of what a unit came to."""
        if not self.is_live(unit):
            return
        self._settled += 1
        if item.result.undecided_because is not None:
            self._reasons[item.result.undecided_because] += 1
        if self._settled >= self.wanted:
            self._is_settled.set()

    async def hold_back(self, units: AsyncGenerator[Unit, None]) -> AsyncGenerator[Unit, None]:
        """The units, those after the first only when the first are judged; raises ``AdjudgeError`` for bad ones."""
        async with aclosing(units) as source:
            async for unit in source:
                if not self.over and len(self._live) >= self.wanted:
                    await self._is_settled.wait()
                    self._check()
                    self.over = True
                if not self.over:
                    self._live.add((unit.place, unit.sample))
                yield unit

    def _check(self) -> None:
        undecided = sum(self._reasons.values())
        if undecided < SHARE * self._settled:
            return
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in self._reasons.most_common())
        raise AdjudgeError(
            f"{undecided:,} of the first {self._settled:,} judgements, made live, are undecided ({reasons}), so "
            "nothing was sent by batch; adjudge report RUN shows why; put it right and begin another run, or "
            "go on unchecked with check=0 (--batch-check 0)"
        )


@dataclass(frozen=True, slots=True)
class Stages:
    """The limit of a run by batches: that of a live run for the first cases, then how many may wait."""

    first: FirstCases
    live: Concurrency
    waiting: Concurrency

    @property
    def current(self) -> int:
        """How many items may be under way at this moment."""
        return self.waiting.current if self.first.over else self.live.current
