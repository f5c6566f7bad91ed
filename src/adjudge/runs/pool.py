"""A pool that judges the units of a run at the same time, as many as a limit allows at each moment.

The limit is decided in ``models/rate_limit.py`` (``Pace``), and lowered where little budget is left in ``layers.py``
(``_BudgetLimit``).
"""

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


MOST_UNTAKEN = 256
"""The number of results that wait to be taken from which on no more units are started."""


READ_AHEAD = 64
"""The most units that are read before there is room for them, so that the next can start at once when one is finished.
They are never more than may run."""


STARTS_PER_TURN = 8
"""The most units that are started in one turn of the event loop. Units that start together are answered together; then
each reply waits until all the others are read, and no unit is started meanwhile."""


LIMIT_CHECK_SECONDS = 1.0
"""Seconds after which a limit is checked again, though no unit was finished."""


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

    A unit runs until its ``Finish`` is called, which may be after its coroutine has ended: a result that still has to
    be written to disk is not finished. The call of ``Finish`` also starts the next unit. If the event loop did that in
    later turns, once for the writing and once for the start, units that finish together would wait for each other every
    time.
    """

    def __init__(
        self,
        units: AsyncGenerator[U, None],
        judge: Callable[[U, Finish[R]], Coroutine[Any, Any, None]],
        limit: Concurrency,
    ) -> None:
        self._units, self._judge, self._limit = units, judge, limit
        self._unstarted: deque[U] = deque()
        self._running_count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: deque[R] = deque()
        self._error: BaseException | None = None
        self._wants_units, self._has_news = asyncio.Event(), asyncio.Event()
        self._is_idle = asyncio.Event()
        self._has_ended = False
        self._is_stopping = False
        self._limit_check: asyncio.TimerHandle | None = None
        self._next_turn: asyncio.Handle | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = self._loop.create_task(self._read_all())

    async def take_results(self) -> tuple[R, ...]:
        """Wait for results, and return those that have come since the last call; none when there will be no more.

        Raises the error of the source or of a unit, once every unit that runs is finished.
        """
        while not self._results:
            if self._has_ended:
                if self._error is not None:
                    raise self._error
                return ()
            self._has_news.clear()
            await self._has_news.wait()
        results = tuple(self._results)
        self._results.clear()
        self._start_units()
        return results

    @property
    def unstarted_count(self) -> int:
        """The number of units that were read and not started."""
        return len(self._unstarted)

    @property
    def running_count(self) -> int:
        """The number of units that were started and are not finished."""
        return self._running_count

    def wind_down(self) -> None:
        """Start no more units; those that run are finished."""
        self._is_stopping = True
        self._wants_units.set()
        self._is_idle.set()
        self._end_if_idle()

    @property
    def is_full(self) -> bool:
        """Return whether no more units are started until one is finished, or until results are taken."""
        return self._is_full()

    def abandon(self, error: BaseException | None = None) -> None:
        """Cancel the units that run and start no more; ``take_results`` raises ``error``, if there is one."""
        self._error = self._error or error
        self.wind_down()
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """Cancel the units that run, and wait until they have ended."""
        self._is_stopping = True
        await stop_tasks([self._reader, *self._tasks])

    async def _read_all(self) -> None:
        """Read all units, keep the error of the source for ``take_results``, and end when the last unit is finished."""
        try:
            async with aclosing(self._units) as units:
                await self._read_ahead(units)
        except Exception as error:  # noqa: BLE001 - raised by ``take_results``, when the units that run are finished
            self._error = self._error or error
        except BaseException as error:
            # Only a cancellation by this pool ends the reading without an error. A source that cancels itself would
            # otherwise look like one that has ended.
            if self._reader.cancelling() or isinstance(error, SystemExit | KeyboardInterrupt):
                raise
            problem = f"the data set broke off with {type(error).__name__}; what was judged until then is kept"
            self._error = self._error or AdjudgeError(problem)
        finally:
            # The results end only when the last unit is finished: an error of the source must not lose other results.
            while self._has_work() and not self._reader.cancelling():
                self._is_idle.clear()
                await self._is_idle.wait()
            self._end_results()

    async def _read_ahead(self, units: AsyncGenerator[U, None]) -> None:
        """Read the units and start them; pause while enough are read, and return early when the pool stops."""
        async for unit in units:
            self._unstarted.append(unit)
            self._start_units()
            while self._has_read_enough() and not self._is_stopping:
                self._wants_units.clear()
                await self._wants_units.wait()
            if self._is_stopping:
                return

    def _has_read_enough(self) -> bool:
        """Return whether enough units are read and not started."""
        return len(self._unstarted) >= min(self._find_limit(), READ_AHEAD)

    def _end_results(self) -> None:
        """Note that no more results will come, and wake up whoever waits for them."""
        if self._limit_check is not None:
            self._limit_check.cancel()
        self._has_ended = True
        self._has_news.set()

    def _end_if_idle(self) -> None:
        """End the results if the pool is stopping and no unit runs."""
        # The reader would do this too, but it may be waiting for a source that gives nothing for hours.
        if self._is_stopping and not self._running_count:
            self._end_results()

    def _has_work(self) -> bool:
        """Return whether units run, or are still to be started."""
        return self._running_count > 0 or (len(self._unstarted) > 0 and not self._is_stopping)

    def _start_units(self) -> None:
        """Start units that are read, if there is room: at most ``STARTS_PER_TURN`` in one turn of the event loop."""
        starts_left = STARTS_PER_TURN if self._next_turn is None else 0
        while self._unstarted and starts_left and not self._is_stopping:
            if self._is_full():
                self._check_limit_later()
                break
            starts_left -= 1
            self._running_count += 1
            finish = _FinishOnce(self._finish_unit)
            task = self._loop.create_task(self._judge(self._unstarted.popleft(), finish))
            self._tasks.add(task)
            task.add_done_callback(partial(self._finish_failed_task, finish))
            if self._next_turn is None:
                self._next_turn = self._loop.call_soon(self._start_more)
        if not self._has_read_enough():
            self._wants_units.set()
        if not self._has_work():
            self._is_idle.set()
        self._end_if_idle()

    def _start_more(self) -> None:
        """Start further units in the next turn of the event loop."""
        self._next_turn = None
        self._start_units()

    def _check_limit_later(self) -> None:
        """Check the limit again after a while, though no unit has finished: a limit that rises does not say so."""
        if self._limit_check is None:
            self._limit_check = self._loop.call_later(LIMIT_CHECK_SECONDS, self._check_limit_again)

    def _check_limit_again(self) -> None:
        self._limit_check = None
        self._start_units()

    def _is_full(self) -> bool:
        """Return whether as many units run as the limit allows, or too many results wait to be taken."""
        return self._running_count >= self._find_limit() or len(self._results) >= MOST_UNTAKEN

    def _find_limit(self) -> int:
        """Return how many units may run; 0 if the limit raised an error, which ``take_results`` raises then.

        The error must not be raised here, because the limit is read while other units finish.
        """
        # At least one: with a limit of 0, no unit would ever finish, and the limit would not be read again.
        try:
            return max(int(self._limit.current), 1)
        except Exception as error:  # noqa: BLE001 - raised by ``take_results``
            self._keep_error(error)
            return 0  # no more units are started

    def _finish_unit(self, outcome: R | BaseException) -> None:
        """Store the result of a unit, and start the next; after an error no more units are started."""
        self._running_count -= 1
        if isinstance(outcome, asyncio.CancelledError):  # by ``stop``, or from outside
            if not self._is_stopping:
                self._keep_error(AdjudgeError("a judgement was cancelled from outside; the run ends here"))
        elif isinstance(outcome, BaseException):
            self._keep_error(outcome)
        else:
            self._results.append(outcome)
        self._has_news.set()
        self._start_units()

    def _keep_error(self, error: BaseException) -> None:
        """Keep the first error for ``take_results``, and start no more units."""
        self._error = self._error or error
        self.wind_down()

    def _finish_failed_task(self, finish: Finish[R], task: asyncio.Task[None]) -> None:
        """Finish a unit whose coroutine was cancelled or raised. Any other is finished by a call of its ``Finish``."""
        self._tasks.discard(task)
        if task.cancelled():
            finish(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            finish(error)


class _FinishOnce(Generic[R]):
    """The ``Finish`` of a unit. Only the first call counts, because a unit that has a result may still be cancelled."""

    __slots__ = ("_finish_unit",)

    def __init__(self, finish: Finish[R]) -> None:
        self._finish_unit: Finish[R] | None = finish

    def __call__(self, outcome: R | BaseException) -> None:
        finish, self._finish_unit = self._finish_unit, None
        if finish is not None:
            finish(outcome)
