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

MOST_UNDECIDED = 0.5
"""The share of undecided judgements from which nothing is sent by batch."""


class FirstCases:
    """The first judgements, which are made live, and their outcomes."""

    def __init__(self, count: int) -> None:
        self.count = max(count, 0)
        self._live_units: set[tuple[int, int]] = set()
        self._undecided_reasons: Counter[str] = Counter()
        self._judged_count = 0
        self._all_judged = asyncio.Event()
        self.have_passed = self.count == 0
        """True if all of them are judged, and enough of them decided."""

    def is_live(self, unit: Unit) -> bool:
        """Return whether a unit is one of the first, which are judged live."""
        return (unit.place, unit.sample) in self._live_units

    def note(self, item: RunItem) -> None:
        """Note the outcome of one of the first judgements."""
        self._judged_count += 1
        if item.result.undecided_because is not None:
            self._undecided_reasons[item.result.undecided_because] += 1
        if self._judged_count >= self.count:
            self._all_judged.set()

    async def hold_back(self, units: AsyncGenerator[Unit, None]) -> AsyncGenerator[Unit, None]:
        """Yield the units of a run, and wait after the first ones until these are judged.

        Raises ``AdjudgeError`` if too many of the first judgements are undecided.
        """
        async with aclosing(units) as source:
            async for unit in source:
                if not self.have_passed and len(self._live_units) >= self.count:
                    await self._all_judged.wait()
                    self._check_results()
                    self.have_passed = True
                if not self.have_passed:
                    self._live_units.add((unit.place, unit.sample))
                yield unit

    def _check_results(self) -> None:
        """Raise ``AdjudgeError`` if at least ``MOST_UNDECIDED`` of the first judgements are undecided."""
        undecided = sum(self._undecided_reasons.values())
        if undecided < MOST_UNDECIDED * self._judged_count:
            return
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in self._undecided_reasons.most_common())
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
        return self.waiting.current if self.first.have_passed else self.live.current
