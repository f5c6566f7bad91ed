"""Units of work under way at once, never more than the limit of the moment, and nothing left behind."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from adjudge.concurrency import stop_tasks
from adjudge.errors import AdjudgeError

U = TypeVar("U")

R = TypeVar("R")


AHEAD = 256
"""Finished items that wait to be taken before no more is begun."""


READ_AHEAD = 64
"""Units that are read before there is room for them, so that the next begins at the moment one is finished; at most as
many as may be under way."""


AT_ONCE = 8
"""Units that are begun in one turn of the event loop. Those that are begun together are answered together, and then
each waits until all the others are read: a crowd that stays one, and begins nothing while it is read."""


LOOK = 1.0
"""Seconds after which a limit is checked again, though nothing was finished."""


class Concurrency(Protocol):
    """An object that says how many items may be under way. It is read before each item, so the number may change."""

    @property
    def current(self) -> int:
        """The number at this moment, at least 1."""
        ...


Finish = Callable[[R | BaseException], None]
"""Called with the outcome of a unit; only the first call counts."""


class Pool(Generic[U, R]):
    """Units of work, begun in their order and taken in the order in which they are finished.

    A unit is under way until it is settled, which may be later than its coroutine ends: what is only handed to somebody
    who writes it down is not finished. It is settled by a plain call, and the next unit begins in it. Going through the
    event loop for that, once for the writing and once for the beginning, would have all that are finished together wait
    for each other every time.
    """

    def __init__(
        self,
        units: AsyncGenerator[U, None],
        judge: Callable[[U, Finish[R]], Coroutine[Any, Any, None]],
        limit: Concurrency,
    ) -> None:
        self._units, self._judge, self._limit = units, judge, limit
        self._read: deque[U] = deque()
        self._busy = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: deque[R] = deque()
        self._error: BaseException | None = None
        self._wanted, self._news = asyncio.Event(), asyncio.Event()
        self._idle = asyncio.Event()
        self._ended = False
        self._stopping = False
        self._limit_check: asyncio.TimerHandle | None = None
        self._turn: asyncio.Handle | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = self._loop.create_task(self._read_all())

    async def take(self) -> tuple[R, ...]:
        """Return the results that were finished since, at least one; nothing when all is done.

        Raises what the source raised, or what a unit raised, once everything under way is finished.
        """
        while not self._done:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return ()
            self._news.clear()
            await self._news.wait()
        results = tuple(self._done)
        self._done.clear()
        self._begin_units()
        return results

    @property
    def left(self) -> int:
        """Units that were read and not begun."""
        return len(self._read)

    @property
    def under_way(self) -> int:
        """Units that were begun and are not settled."""
        return self._busy

    def wind_down(self) -> None:
        """Begin nothing more; what is under way is finished."""
        self._stopping = True
        self._wanted.set()
        self._idle.set()
        self._end_if_idle()

    @property
    def is_full(self) -> bool:
        """Return whether nothing more is begun until something is finished."""
        return self._is_full()

    def abandon(self, error: BaseException | None = None) -> None:
        """Cancel what is under way and begin nothing more; ``take`` raises ``error``, where there is one."""
        self._error = self._error or error
        self.wind_down()
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """Cancel what is under way and wait until it is gone."""
        self._stopping = True
        await stop_tasks([self._reader, *self._tasks])

    async def _read_all(self) -> None:
        """Read all units, keep the error of the source for ``take``, and end when the last unit is finished."""
        try:
            async with aclosing(self._units) as units:
                await self._read_ahead(units)
        except Exception as error:  # noqa: BLE001 - raised by ``take``, when what is under way is finished
            self._error = self._error or error
        except BaseException as error:
            # Cancelled by us, or not: a source that ends itself so would pass for one that was wound down.
            if self._reader.cancelling() or isinstance(error, SystemExit | KeyboardInterrupt):
                raise
            problem = f"the data set broke off with {type(error).__name__}; what was judged until then is kept"
            self._error = self._error or AdjudgeError(problem)
        finally:
            # Not before the last is finished: an error must not take with it what others were asked.
            while self._is_at_work() and not self._reader.cancelling():
                self._idle.clear()
                await self._idle.wait()
            self._end_taking()

    async def _read_ahead(self, units: AsyncGenerator[U, None]) -> None:
        """Read the units and begin them; pause while enough are read, and return early when the pool stops."""
        async for unit in units:
            self._read.append(unit)
            self._begin_units()
            while self._has_enough() and not self._stopping:
                self._wanted.clear()
                await self._wanted.wait()
            if self._stopping:
                return

    def _has_enough(self) -> bool:
        return len(self._read) >= min(self._find_limit(), READ_AHEAD)

    def _end_taking(self) -> None:
        if self._limit_check is not None:
            self._limit_check.cancel()
        self._ended = True
        self._news.set()

    def _end_if_idle(self) -> None:
        # Not left to the reader: it may be waiting for a source that has nothing to say for hours.
        if self._stopping and not self._busy:
            self._end_taking()

    def _is_at_work(self) -> bool:
        return self._busy > 0 or (len(self._read) > 0 and not self._stopping)

    def _begin_units(self) -> None:
        """Begin what is read, as far as there is room; what is more than ``AT_ONCE`` in the next turns of the loop."""
        at_once = AT_ONCE if self._turn is None else 0
        while self._read and at_once and not self._stopping:
            if self._is_full():
                self._check_limit_later()
                break
            at_once -= 1
            self._busy += 1
            place = _SinglePlace(self._finish_unit)
            task = self._loop.create_task(self._judge(self._read.popleft(), place))
            self._tasks.add(task)
            task.add_done_callback(partial(self._close_place, place))
            if self._turn is None:
                self._turn = self._loop.call_soon(self._begin_again)
        if not self._has_enough():
            self._wanted.set()
        if not self._is_at_work():
            self._idle.set()
        self._end_if_idle()

    def _begin_again(self) -> None:
        self._turn = None
        self._begin_units()

    def _check_limit_later(self) -> None:
        # A limit that has risen tells nobody; without the look, all would wait for the slowest that is under way.
        if self._limit_check is None:
            self._limit_check = self._loop.call_later(LOOK, self._check_limit_again)

    def _check_limit_again(self) -> None:
        self._limit_check = None
        self._begin_units()

    def _is_full(self) -> bool:
        return self._busy >= self._find_limit() or len(self._done) >= AHEAD

    def _find_limit(self) -> int:
        """Return how many units may be under way; 0 if the limit raised, which is kept for ``take``."""
        # At least one: a limit of none would wait for itself to rise. One that raises is asked in the middle of other
        # units' work, and must not stop that.
        try:
            return max(int(self._limit.current), 1)
        except Exception as error:  # noqa: BLE001 - raised by ``take``
            self._keep_error(error)
            return 0  # nothing more is begun

    def _finish_unit(self, outcome: R | BaseException) -> None:
        """Take the outcome of a unit and begin the next; after an error nothing more is begun."""
        self._busy -= 1
        if isinstance(outcome, asyncio.CancelledError):  # by ``stop``, or by others
            if not self._stopping:
                self._keep_error(AdjudgeError("a judgement was cancelled from outside; the run ends here"))
        elif isinstance(outcome, BaseException):
            self._keep_error(outcome)
        else:
            self._done.append(outcome)
        self._news.set()
        self._begin_units()

    def _keep_error(self, error: BaseException) -> None:
        self._error = self._error or error
        self.wind_down()

    def _close_place(self, finish: Finish[R], task: asyncio.Task[None]) -> None:
        """Close the place of a unit whose coroutine has ended, where nobody else is to finish it."""
        self._tasks.discard(task)
        if task.cancelled():
            finish(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            finish(error)


class _SinglePlace(Generic[R]):
    """A place among those under way, given back once: a unit that has handed its item in may be cancelled as well."""

    __slots__ = ("_finish_unit",)

    def __init__(self, finish: Finish[R]) -> None:
        self._finish_unit: Finish[R] | None = finish

    def __call__(self, outcome: R | BaseException) -> None:
        finish, self._finish_unit = self._finish_unit, None
        if finish is not None:
            finish(outcome)
