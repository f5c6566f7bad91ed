"""Limits and cancellations: of the running task, and of what is somebody else's and may ignore them.

Somebody else's coroutine is awaited in a task of its own (``Timeout.run``). Awaited in ours, one that swallows its
cancellation would keep us as long as it likes, and would hand back a late answer as if nothing had happened.

How many requests are under way at once is decided in ``models/rate_limit.py`` (``Pace``) and ``runs/pool.py``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, suppress
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from adjudge.formats.arguments import check_whole_number
from adjudge.panic import convert_panics

T = TypeVar("T")


GRACE = 1.0
"""Seconds that a cancelled task has to end; afterwards it is let go."""

_CALL_GRACE = 0.95
"""The same for a call of somebody else's: less, so that a task of ours that waits for one is not let go as well."""


_logger = logging.getLogger("adjudge")

_released: set[asyncio.Task[Any]] = set()
"""Tasks that ignored their cancellation. Held, since a loop holds its tasks weakly, until they end."""


class Timeout:
    """A block that may take so many seconds; afterwards ``late`` says whether it took longer.

    It is ``asyncio.timeout`` as a plain context manager: nothing is waited for on the way in or out, and not
    awaiting it saves a twentieth of what a judgement costs. ``None`` means no limit. Leaving late raises
    ``TimeoutError``, unless the task was cancelled from outside as well: then that cancellation goes on.

    As a block it is for code of ours, which ends when it is cancelled; what is somebody else's goes through ``run``.
    """

    __slots__ = ("_cancellations_before", "_handle", "_task", "late", "over", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.late = False
        self.over = False
        """True if the work that ``run`` waited for was cancelled, by this limit or from outside. That work must start
        nothing more, even if it ignored its cancellation."""
        self._handle: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        """Start the timer that cancels the running task after ``seconds``; there is none for ``None``."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a limit needs a running task")
        self._task, self._cancellations_before = task, task.cancelling()
        if self.seconds is not None:
            self._handle = asyncio.get_running_loop().call_later(self.seconds, self._stop)
        return self

    def _stop(self) -> None:
        """Cancel the task, because its time is over."""
        self.late = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer. Raise ``TimeoutError`` if the timer cancelled the task, and nobody else did."""
        if self._handle is not None:
            self._handle.cancel()
        if not self.late:
            return
        # False if somebody outside has cancelled the task as well: then the cancellation goes on.
        only_timer_cancelled = self._task.uncancel() <= self._cancellations_before
        if only_timer_cancelled and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    async def run(self, work: Awaitable[T], *, name: str) -> T:
        """Wait for ``work``, which is somebody else's, and return its result; what it raises is raised.

        Late, or when the running task is cancelled, it is cancelled and has ``GRACE`` to end. An answer after that
        is dropped, and this raises ``TimeoutError`` with ``late``, or ``CancelledError``.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work if inspect.iscoroutine(work) else _await_work(work), name=name)
        wakeup = loop.create_future()
        wake = partial(_wake_future, wakeup)
        task.add_done_callback(wake)
        handle = None
        if self.seconds is not None:
            handle = loop.call_later(self.seconds, wake)
        try:
            try:
                await wakeup
            except asyncio.CancelledError:
                self.over = True
                await stop_tasks([task], grace=_CALL_GRACE)
                raise
            if not task.done():
                self.late = self.over = True
                await stop_tasks([task], grace=_CALL_GRACE)
                raise TimeoutError
            with convert_panics():
                return task.result()
        finally:
            if handle is not None:
                handle.cancel()
            # An exception holds this frame, and the task holds the exception: a reference cycle, if this name stayed.
            del task


def _wake_future(wakeup: asyncio.Future[None], _task: object = None) -> None:
    """Wake whoever awaits a future; as a callback, this is also given the task that is done, and ignores it."""
    if not wakeup.done():
        wakeup.set_result(None)


async def _await_work(work: Awaitable[T]) -> T:
    """Wrap an awaitable that is no coroutine in one, since a task is made of a coroutine only."""
    return await work


async def stop_tasks(tasks: Iterable[asyncio.Task[Any]], *, grace: float = GRACE) -> None:
    """Cancel tasks and wait until they have ended; one that ignores it for ``grace`` seconds is let go.

    If the running task is cancelled meanwhile, it still waits as long as it would have, and raises that cancellation at
    the end.
    """
    pending = set(tasks)
    for task in pending:
        task.cancel()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    cancelled: asyncio.CancelledError | None = None
    while pending and (seconds := deadline - loop.time()) > 0:
        try:
            _, pending = await asyncio.wait(pending, timeout=seconds)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.done():
            _release_task(task, grace)
        elif not task.cancelled():
            task.exception()  # retrieved, or the loop would report it as never retrieved
    if cancelled is not None:
        raise cancelled


def _release_task(task: asyncio.Task[Any], grace: float) -> None:
    """Stop waiting for a task that ignores its cancellation, log that, and keep a reference until it ends.

    References to tasks whose loop was closed are dropped: those tasks never end.
    """
    _logger.warning("%s ignored for %g s that it was cancelled, and was let go", task.get_name(), grace)
    for abandoned in [released for released in _released if released.get_loop().is_closed()]:
        _released.discard(abandoned)
    _released.add(task)
    with suppress(AttributeError):  # asyncio would log a second warning for a task that is destroyed unfinished
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
    task.add_done_callback(_log_end)


def _log_end(task: asyncio.Task[Any]) -> None:
    """Log how a task that was let go has ended, and drop the reference to it."""
    _released.discard(task)
    error = None if task.cancelled() else task.exception()
    if task.cancelled():
        ending = "cancelled"
    elif error is None:
        ending = "with an answer, dropped"
    else:
        ending = type(error).__name__  # the type alone: the text of what a model raises may quote the content
    _logger.warning("%s, let go before, has ended: %s", task.get_name(), ending)


def count_cancellations() -> int:
    """Count how often the running task has been asked to stop.

    When a ``CancelledError`` arrives and this number has not grown, nobody cancelled the running task: what it awaited
    was cancelled by somebody else, and that is a failure like any other.
    """
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def describe_error(error: BaseException) -> str:
    """Return an exception's type and text."""
    return f"{type(error).__name__}: {error}"


Item = TypeVar("Item")


async def map_concurrently(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[T]],
    concurrency: int,
    *,
    give_up: Callable[[Item], T],
) -> list[T]:
    """Return the results of ``work`` for each item, in the order of the items, at most ``concurrency`` at once.

    An item that takes long holds up no other, and items are taken from the iterable when they are needed. Every item
    has a result: it is ``give_up(item)`` where something that ``work`` called cancelled it, although nobody cancelled
    this call, and where no worker was left to start the item. What ``work`` raises cancels all other work, and is
    raised.
    """
    check_whole_number("concurrency", concurrency, least=1)
    numbered = enumerate(items)
    results: dict[int, T] = {}
    workers: list[asyncio.Task[None]] = []

    async def work_on_items() -> None:
        """Work on items until none is left; with each item, start one more worker while there is room for it."""
        # All workers share one iterator: each takes the next item when it is free.
        for number, item in numbered:
            if len(workers) < concurrency:
                workers.append(group.create_task(work_on_items()))
            results[number] = give_up(item)  # it stays if this worker is cancelled before it has a result
            cancellations_before = count_cancellations()
            try:
                results[number] = await work(item)
            except asyncio.CancelledError:
                if count_cancellations() > cancellations_before:
                    raise

    try:
        async with asyncio.TaskGroup() as group:
            workers.append(group.create_task(work_on_items()))
    except BaseExceptionGroup as group_error:
        raise group_error.exceptions[0] from None
    # Items that no worker has started. Without a result nobody would miss them, and what counts results could pass.
    results |= {number: give_up(item) for number, item in numbered}
    return [results[number] for number in sorted(results)]


AHEAD = 16
"""Rounds of ``concurrency`` items that may be started while an earlier item is still under way. Their results wait for
that item, because results are yielded in order."""


async def work_through(
    source: Iterable[object] | AsyncIterable[object],
    work: Callable[[Any], Coroutine[Any, Any, T]],
    concurrency: int,
) -> AsyncGenerator[T, None]:
    """Yield the results of ``work`` for each item, in the order of the items, at most ``concurrency`` at once.

    Items are taken as they are needed. An item that takes long holds up the results of later items, but not the work on
    them, for ``AHEAD`` rounds. What ``work`` raises ends the iteration, and leaving it early cancels what still runs.
    """
    check_whole_number("concurrency", concurrency, least=1)
    async with _OrderedTasks[T](concurrency) as tasks, aclosing(_iterate_source(source)) as items:
        async for item in items:
            tasks.start(work(item))
            while not tasks.has_room() or tasks.is_first_ready():
                if not tasks.is_first_ready():
                    await tasks.wait_for_any()
                    continue
                yield await tasks.started.popleft()
                # Start the next item before another result is yielded: the consumer may be slow to come back.
                if tasks.has_room():
                    break
        while tasks.started:
            yield await tasks.started.popleft()


class _OrderedTasks(Generic[T]):
    """Tasks in the order in which they were started, at most ``concurrency`` of them running at once."""

    def __init__(self, concurrency: int) -> None:
        self.started: deque[asyncio.Task[T]] = deque()
        """The tasks whose results were not taken yet, running or done, oldest first."""
        self._running: set[asyncio.Task[T]] = set()
        self._concurrency = concurrency
        self._finished = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, T]) -> None:
        """Start a task for the work, as the last of the tasks."""
        # A bare task: a generator cannot hold a task group open across a yield; closing it cancels the task and waits.
        task = asyncio.ensure_future(work)
        self.started.append(task)
        self._running.add(task)
        task.add_done_callback(self._remove_ended)

    def has_room(self) -> bool:
        """Return whether one more task may be started: not too many run, nor do too many results wait."""
        return len(self._running) < self._concurrency and len(self.started) < AHEAD * self._concurrency

    def is_first_ready(self) -> bool:
        """Return whether the result of the oldest task is there and is to be yielded now.

        False while fewer than ``concurrency`` tasks are held: then more are started first.
        """
        return len(self.started) >= self._concurrency and self.started[0].done()

    async def wait_for_any(self) -> None:
        """Wait until any of the tasks has ended."""
        self._finished.clear()
        await self._finished.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Cancel the tasks that still run, and wait until they have ended."""
        await stop_tasks(self.started)

    def _remove_ended(self, task: asyncio.Task[T]) -> None:
        """Take a task that has ended off the running ones, and wake ``wait_for_any``."""
        self._running.discard(task)
        self._finished.set()


async def _iterate_source(source: Iterable[object] | AsyncIterable[object]) -> AsyncGenerator[object, None]:
    """Yield the items of a source; raise ``CancelledError`` if an async source swallowed a cancellation."""
    if isinstance(source, AsyncIterable):
        cancellations_before = count_cancellations()
        async for item in source:
            if count_cancellations() > cancellations_before:  # this task was told to stop, and the source ignored it
                raise asyncio.CancelledError
            yield item
            cancellations_before = count_cancellations()
    else:
        for item in source:
            yield item


Value = TypeVar("Value")


class PerLoop(Generic[Value]):
    """A value for each event loop, made at first use; ``forget`` is called with the value of a loop that is closed."""

    def __init__(self, make: Callable[[], Value], forget: Callable[[Value], None] | None = None) -> None:
        self._make = make
        self._forget = forget
        self._values: dict[asyncio.AbstractEventLoop, Value] = {}

    def get(self) -> Value:
        """Return the value of the running loop; made now when there is none."""
        loop = asyncio.get_running_loop()
        value = self._values.get(loop)
        if value is None:
            self._drop_closed()
            value = self._values[loop] = self._make()
        return value

    def pop(self) -> Value | None:
        """Forget and return the value of the running loop."""
        return self._values.pop(asyncio.get_running_loop(), None)

    def _drop_closed(self) -> None:
        """Drop the values of loops that are closed, and hand each to ``forget``."""
        # list(): another thread may be adding its own loop meanwhile.
        for loop in list(self._values):
            value = self._values.pop(loop, None) if loop.is_closed() else None
            if value is not None and self._forget is not None:
                self._forget(value)
