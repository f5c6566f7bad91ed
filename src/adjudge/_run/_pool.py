"""Many things under way at once, never more than the limit of the moment, and nothing left behind."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

from adjudge.errors import AdjudgeError

U = TypeVar("U")
R = TypeVar("R")

AHEAD = 256
"""Finished items that wait for whoever takes them before no more is begun."""


LOOK = 1.0
"""Seconds after which a limit is looked at again, though nothing was finished."""


class Limit(Protocol):
    """How many may be under way; it is looked at whenever one is to begin, so it may change meanwhile."""

    @property
    def current(self) -> int:
        """The number at this moment, at least 1."""
        ...


class Pool(Generic[U, R]):
    """Units of work, begun in their order and taken in the order in which they are finished."""

    def __init__(self, units: AsyncGenerator[U, None], work: Callable[[U], Awaitable[R]], limit: Limit) -> None:
        self._units, self._work, self._limit = units, work, limit
        self._running: set[asyncio.Task[R]] = set()
        self._done: deque[R] = deque()
        self._error: BaseException | None = None
        self._room, self._news = asyncio.Event(), asyncio.Event()
        self._ended = False
        self._stopping = False
        self._look: asyncio.TimerHandle | None = None
        self._pump = asyncio.ensure_future(self._fill())

    async def take(self) -> tuple[R, ...]:
        """What has been finished since, at least one; nothing when all is done.

        Raises what the source raised, or what a unit raised, once everything under way is finished.
        """
        while not self._done:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return ()
            self._news.clear()
            await self._news.wait()
        taken = tuple(self._done)
        self._done.clear()
        self._room.set()
        return taken

    def wind_down(self) -> None:
        """Begin nothing more; what is under way is finished."""
        self._stopping = True
        self._room.set()

    async def stop(self) -> None:
        """Cancel what is under way and wait until it is gone."""
        self._stopping = True
        tasks = {self._pump, *self._running}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # seen, so that the loop does not report it as never retrieved

    async def _fill(self) -> None:
        try:
            async with aclosing(self._units) as units:
                await self._begin_all(units)
        except Exception as error:  # noqa: BLE001 - raised by ``take``, when what is under way is finished
            self._error = self._error or error
        finally:
            # Not before the last is finished: an error must not take with it what others were asked.
            while self._running and not self._pump.cancelling():
                await asyncio.wait(self._running)
            if self._look is not None:
                self._look.cancel()
            self._ended = True
            self._news.set()

    async def _begin_all(self, units: AsyncGenerator[U, None]) -> None:
        async for unit in units:
            while not self._stopping and self._is_full():
                await self._wait_for_room()
            if self._stopping:
                return
            task = asyncio.ensure_future(self._work(unit))
            self._running.add(task)
            task.add_done_callback(self._settle)

    async def _wait_for_room(self) -> None:
        self._room.clear()
        # A limit that has risen tells nobody; without the look, all would wait for the slowest that is under way.
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK, self._look_again)
        await self._room.wait()

    def _look_again(self) -> None:
        self._look = None
        self._room.set()

    def _is_full(self) -> bool:
        # At least one: a limit of none would wait for itself to rise.
        return len(self._running) >= max(self._limit.current, 1) or len(self._done) >= AHEAD

    def _settle(self, task: asyncio.Task[R]) -> None:
        self._running.discard(task)
        self._room.set()
        self._news.set()
        if task.cancelled():
            if not self._stopping:
                self._fail(AdjudgeError("a judgement was cancelled from outside; the run ends here"))
        elif (error := task.exception()) is not None:
            self._fail(error)
        else:
            self._done.append(task.result())

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self.wind_down()
