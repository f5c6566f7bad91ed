"""A number of dollars that calls share, held before they are made so that it is not overrun.

What a call can cost is computed in ``price.py`` (``bound_cost``).
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adjudge.errors import ReplyError, UsageError
from adjudge.formats.numbers import format_amounts, format_distinct

_PARTS = 10**12
"""Parts of a dollar. Amounts are whole numbers of them, because sums of floats are not exact, and a limit must be."""


MOST = 10**15
"""The largest number of dollars that is believed. A reported cost may be absurd, and counting it must not fail: what
was held for the call would never be released, and calls that wait for it would wait for ever."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Dollars that are held for one call; handed back to ``charge``."""

    parts: int
    """The amount, in the smallest parts that a budget counts."""


class Budget:
    """A limit in US dollars for calls of any number of models, in total or in any period of ``per`` seconds.

    Before a call is made, the most that it can cost is reserved (``held``); afterwards its actual cost is ``spent``,
    and the rest is released. A call that does not fit waits as long as calls under way may leave enough; otherwise it
    is not made, and its result is ``undecided: budget``. So no more than ``usd`` is spent, unless a call costs more
    than the computed maximum.

    One budget may be used by several event loops in several threads; it is not shared between processes. Raises
    ``UsageError`` for negative or non-finite amounts.

    Args:
        usd: The limit in dollars.
        per: The period in seconds for which the limit holds; ``None`` is all time together.
        spent: Dollars that an earlier budget already spent.
        on_hold: Awaited when something is held and before the call is made, to write down what is gone; where it
            raises, the call is not made.
        clock: The time in seconds; for tests.
    """

    def __init__(
        self,
        usd: float,
        *,
        per: float | None = None,
        spent: float = 0.0,
        on_hold: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.usd = float(_check_amount("budget", usd, least=0.0))
        """Dollars that may be spent."""
        self.per = None if per is None else float(_check_amount("per", per, least=None))
        """Seconds after which what was spent no longer counts; ``None``: it counts for ever."""
        self._on_hold = on_hold
        self._clock = clock
        self._total = int(self.usd * _PARTS)
        self._spent = _count_parts(_check_amount("spent", spent, least=0.0))
        self._held = 0
        self.dearest: float | None = None
        """The most that one call was to be held for; ``None`` before the first."""
        self._lock = threading.Lock()
        # With ``per``: what was spent when, to be taken off again.
        self._recent: deque[tuple[float, int]] = deque([(clock(), self._spent)] if per is not None else ())
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def spent(self) -> float:
        """Dollars that count as spent; a call of unknown cost counts with the most that it can have cost."""
        with self._lock:
            self._forget_old()
            return self._spent / _PARTS

    @property
    def held(self) -> float:
        """Dollars held for calls under way."""
        return self._held / _PARTS

    @property
    def left(self) -> float:
        """Dollars that are neither spent nor held; 0 where more was spent than allowed."""
        with self._lock:
            self._forget_old()
            return max(self._total - self._spent - self._held, 0) / _PARTS

    async def reserve(self, usd: float) -> Reservation:
        """Hold the most a call can cost, waiting for calls under way where that can help.

        Raises ``ReplyError`` (``budget``) when it does not fit. The reservation must be given to ``charge``.

        Args:
            usd: The most that the call can cost, in US dollars.
        """
        self.dearest = max(self.dearest or 0.0, usd)
        reservation = await self._wait_for_room(_count_parts(usd))
        if self._on_hold is not None:
            try:
                await self._on_hold()
            except BaseException:  # nothing was asked
                self.charge(reservation, 0.0)
                raise
        return reservation

    async def _wait_for_room(self, parts: int) -> Reservation:
        """Hold an amount, in a budget's smallest parts, as soon as it fits; wait while calls under way may leave room.

        Raises ``ReplyError`` (``budget``) once it would not fit even if all that is held were released.
        """
        while True:
            with self._lock:
                self._forget_old()
                if self._spent + self._held + parts <= self._total:
                    self._held += parts
                    return Reservation(parts)
                if self._spent + parts > self._total:  # not even if all that is held were released
                    raise self._make_error(parts)
                loop = asyncio.get_running_loop()
                wakeup: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, wakeup))
            await wakeup

    def charge(self, reservation: Reservation, usd: float | None) -> None:
        """Count the cost of a call, and free the rest of its reservation. ``None`` is unknown: all of it is spent.

        Args:
            reservation: What ``reserve`` returned for the call.
            usd: The cost of the call in US dollars.
        """
        cost = reservation.parts if usd is None else _count_parts(usd)
        with self._lock:
            self._held -= reservation.parts
            self._spent += cost
            if self.per is not None:
                self._recent.append((self._clock(), cost))
            waiting, self._waiting = self._waiting, []
        for loop, wakeup in waiting:
            # Somebody whose loop is closed waits no more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_wake_waiter, wakeup)

    def __repr__(self) -> str:
        return "<Budget {} of {} USD spent>".format(*format_distinct(self.spent, self.usd, digits=4))

    def _forget_old(self) -> None:
        """Take what was spent more than ``per`` seconds ago off the sum; the caller holds the lock."""
        while self.per is not None and self._recent:
            spent_at, parts = self._recent[0]
            if spent_at > self._clock() - self.per:
                return
            self._recent.popleft()
            self._spent -= parts

    def _make_error(self, parts: int) -> ReplyError:
        """Make the error for a call that does not fit; ``parts`` is the most that it can cost, as a budget counts."""
        left = max(self._total - self._spent, 0) / _PARTS
        period = "" if self.per is None else f" in {self.per:g} seconds"
        limit, remaining, cost = format_amounts(self.usd, left, parts / _PARTS)
        return ReplyError(
            "budget", f"of the budget of {limit}{period}, {remaining} are left, and the call may cost {cost}"
        )


def _wake_waiter(wakeup: asyncio.Future[None]) -> None:
    """Let a call that waits for room try again; called in its event loop."""
    if not wakeup.done():
        wakeup.set_result(None)


def _count_parts(usd: float) -> int:
    """Convert dollars to the whole parts that a budget counts, rounded up; no more than ``MOST`` dollars."""
    return math.ceil(min(usd, MOST) * _PARTS)


def _check_amount(argument: str, value: Any, *, least: float | None) -> float:
    """Return a number of dollars of at least ``least``, or, if ``least`` is ``None``, of seconds above 0.

    Raises ``UsageError`` for any other value.
    """
    # NaN is not in the range either.
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST
    if not is_number or (value <= 0 if least is None else value < least):
        unit = "dollars, 0 or more" if least is not None else "a finite number of seconds above 0"
        most = f" and at most {MOST:,}" if isinstance(value, int | float) and value > MOST else ""
        raise UsageError(f"{argument} must be {unit}{most}; got {value!r}", argument=argument)
    return value
