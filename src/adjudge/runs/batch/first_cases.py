"""The first cases of a run by batches, judged live: a broken prompt then costs twenty calls and not twenty thousand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from adjudge.errors import AdjudgeError, Argument
from adjudge.runs.item import RunItem
from adjudge.runs.pool import Concurrency
from adjudge.runs.schedule import Unit

SHARE = 0.5
"""The share of undecided judgements from which nothing is sent by batch."""


class FirstCases:
    """The first judgements, which are made live, and their outcomes."""

    def __init__(self, number: int) -> None:
        self.number = max(number, 0)
        self._live: set[tuple[int, int]] = set()
        self._reasons: Counter[str] = Counter()
        self._judged_count = 0
        self._all_judged = asyncio.Event()
        self.over = self.number == 0
        """True if they are judged, and well enough."""

    def is_live(self, unit: Unit) -> bool:
        """Return whether a unit is one of them."""
        return (unit.place, unit.sample) in self._live

    def note(self, item: RunItem) -> None:
        """Note the outcome of one of them."""
        self._judged_count += 1
        if item.result.undecided_because is not None:
            self._reasons[item.result.undecided_because] += 1
        if self._judged_count >= self.number:
            self._all_judged.set()

    async def hold_back(self, units: AsyncGenerator[Unit, None]) -> AsyncGenerator[Unit, None]:
        """The units, those after the first only when the first are judged; raises ``AdjudgeError`` for bad ones."""
        async with aclosing(units) as source:
            async for unit in source:
                if not self.over and len(self._live) >= self.number:
                    await self._all_judged.wait()
                    self._check_results()
                    self.over = True
                if not self.over:
                    self._live.add((unit.place, unit.sample))
                yield unit

    def _check_results(self) -> None:
        """Raise ``AdjudgeError`` if at least ``SHARE`` of the first judgements are undecided."""
        undecided = sum(self._reasons.values())
        if undecided < SHARE * self._judged_count:
            return
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in self._reasons.most_common())
        raise AdjudgeError(
            f"{undecided:,} of the first {self._judged_count:,} judgements, made live, are undecided ({reasons}), so "
            "nothing was sent by batch; adjudge report RUN shows why; put it right and begin another run, or go on "
            "unchecked with ",
            Argument("check", "0"),
        )


@dataclass(frozen=True, slots=True)
class Stages:
    """The limit of a run by batches: that of a live run for the first cases, then how many may wait."""

    first: FirstCases
    live: Concurrency
    waiting: Concurrency

    @property
    def current(self) -> int:
        """The number of items that may be under way at this moment."""
        return self.waiting.current if self.first.over else self.live.current
