"""Limits and cancellations: of the running task, and of what is somebody else's and may ignore them.

Somebody else's coroutine is awaited in a task of its own (``Limit.run``). Awaited in ours, one that swallows its
cancellation would keep us as long as it likes, and would hand back a late answer as if nothing had happened.
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

T = TypeVar("T")


GRACE = 1.0
"""Seconds that a cancelled task has to end; afterwards it is let go."""


_logger = logging.getLogger("adjudge")

_let_go: set[asyncio.Task[Any]] = set()
"""Tasks that ignored their cancellation. Held, since a loop holds its tasks weakly, until they end."""

_stopping: set[asyncio.Task[Any] | None] = set()
"""Tasks that wait for others to stop, at most ``GRACE`` seconds. A task that waits for one of these waits as long."""


class Timeout:
    """A block that may take so many seconds; afterwards ``late`` says whether it took longer.

    It is ``asyncio.timeout`` as a plain context manager: nothing is waited for on the way in or out, and not
    awaiting it saves a twentieth of what a judgement costs. ``None`` means no limit. Leaving late raises
    ``TimeoutError``, unless the task was cancelled from outside as well: then that cancellation goes on.

    As a block it is for code of ours, which ends when it is cancelled; what is somebody else's goes through ``run``.
    """

    __slots__ = ("_before", "_handle", "_task", "late", "over", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.late = False
        self.over = False
        """Whether what ``run`` waited for was told to stop, by this limit or from outside: it must begin nothing more,
        even where it has swallowed that it was told so."""
        self._handle: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a limit needs a running task")
        self._task, self._before = task, task.cancelling()
        if self.seconds is not None:
            self._handle = asyncio.get_running_loop().call_later(self.seconds, self._stop)
        return self

    def _stop(self) -> None:
        self.late = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self.late and self._task.uncancel() <= self._before and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    async def run(self, work: Awaitable[T], *, what: str) -> T:
        """What ``work``, which is somebody else's, returns in time; what it raises is raised.

        Late, or when the running task is cancelled, it is cancelled and has ``GRACE`` to end. An answer after that
        is dropped, and this raises ``TimeoutError`` with ``late``, or ``CancelledError``.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(_catch_exit(work))
        task.set_name(what)
        woken = loop.create_future()
        wake = partial(_wake, woken)
        task.add_done_callback(wake)
        handle = None
        if self.seconds is not None:
            handle = loop.call_later(self.seconds, wake)
        try:
            try:
                await woken
            except asyncio.CancelledError:
                self.over = True
                await stop_tasks([task])
                raise
            if not task.done():
                self.late = self.over = True
                await stop_tasks([task])
                raise TimeoutError
            return _open(task.result())
        finally:
            if handle is not None:
                handle.cancel()
            if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()  # cancelled before its task had begun it
            del task  # an exception holds this frame, and the task the exception: without a knot both are freed


def _wake(waiting: asyncio.Future[None], _ended: object = None) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _catch_exit(work: Awaitable[T]) -> tuple[T | None, SystemExit | None]:
    # Raised in a task, it would go through the loop and end everything that runs in it.
    try:
        return await work, None
    except SystemExit as error:
        return None, error


def _open(ended: tuple[T | None, SystemExit | None]) -> T:
    said, error = ended
    if error is not None:
        raise error
    return said  # type: ignore[return-value]


async def stop_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; one that ignores it for ``GRACE`` is let go.

    A cancellation of the running task meanwhile cuts nothing short and makes nothing longer; it is raised at the end.
    """
    pending = set(tasks)
    for task in pending:
        task.cancel()
    own, loop = asyncio.current_task(), asyncio.get_running_loop()
    until = loop.time() + GRACE
    cancelled: asyncio.CancelledError | None = None
    _stopping.add(own)
    try:
        # Those of ours that wait for others in turn end when these do, a moment later: let go, they would be accused.
        while waited := pending if until > loop.time() else pending & _stopping:
            try:
                await asyncio.wait(waited, timeout=max(until - loop.time(), 0.0) or GRACE)
            except asyncio.CancelledError as error:
                cancelled = error
            pending = {task for task in pending if not task.done()}
    finally:
        _stopping.discard(own)
        for task in tasks:
            if not task.done():
                _leave(task)
            elif not task.cancelled():
                task.exception()  # seen, so that the loop does not report it as never retrieved
    if cancelled is not None:
        raise cancelled


def _leave(task: asyncio.Task[Any]) -> None:
    _logger.warning("%s ignored for %g s that it was cancelled, and was let go", task.get_name(), GRACE)
    for known in [held for held in _let_go if held.get_loop().is_closed()]:
        _let_go.discard(known)
    _let_go.add(task)
    with suppress(AttributeError):  # said above already
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
    task.add_done_callback(_log_end)


def _log_end(task: asyncio.Task[Any]) -> None:
    _let_go.discard(task)
    error = None if task.cancelled() else task.exception()
    # The type alone: what a model raises may quote the content.
    how = "cancelled" if task.cancelled() else "with an answer, dropped" if error is None else type(error).__name__
    _logger.warning("%s, let go before, has ended: %s", task.get_name(), how)


def count_cancellations() -> int:
    """How often the running task has been asked to stop.

    When a ``CancelledError`` arrives and this number has not grown, nobody cancelled the task: what it awaited had
    been cancelled by somebody else, and that is a failure like any other.
    """
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def is_for_us(error: BaseException) -> bool:
    """Whether an exception out of somebody else's code is nobody's failure, and has to go on.

    Ctrl-C, and the end of a coroutine that is closed because its loop is gone. Anything else went wrong there,
    with any base class: a ``GeneratorExit`` or ``BaseExceptionGroup`` raised by a judge too. Whose a cancellation is,
    only the task that awaits can tell, by ``count_cancellations``.
    """
    if isinstance(error, GeneratorExit):
        try:
            return asyncio.current_task() is None
        except RuntimeError:  # no loop runs: nobody awaits this any more
            return True
    return isinstance(error, KeyboardInterrupt)


def describe_error(error: BaseException) -> str:
    """What an exception is and says, also where its own text cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException as wrong:
        if is_for_us(wrong):
            raise
        return type(error).__name__


Item = TypeVar("Item")


async def map_concurrently(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[T]],
    concurrency: int,
    *,
    give_up: Callable[[Item], T],
) -> list[T]:
    """What ``work`` makes of each item, in the order of the items, at most ``concurrency`` at once.

    One that takes long holds up no other, and items are taken as they are needed. An item whose work was cancelled by
    nobody who waits here, but by something that it called, is what ``give_up`` says of it, and so is one that nobody
    is left to take up: every item is in the list. What ``work`` raises cancels the rest, and is raised as it is.
    """
    check_whole_number("concurrency", concurrency, least=1)
    numbered = enumerate(items)
    done: dict[int, T] = {}
    workers: list[asyncio.Task[None]] = []

    async def take() -> None:
        # One iterator for all of them: each takes the next item when it is free.
        for number, item in numbered:
            if len(workers) < concurrency:
                workers.append(group.create_task(take()))
            done[number] = give_up(item)  # a worker that is cancelled from within can say nothing any more
            before = count_cancellations()
            try:
                done[number] = await work(item)
            except asyncio.CancelledError:
                if count_cancellations() > before:
                    raise

    try:
        async with asyncio.TaskGroup() as group:
            workers.append(group.create_task(take()))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    # Left out, they would be missed by nobody: what knows nothing of them could be a pass.
    done |= {number: give_up(item) for number, item in numbered}
    return [done[number] for number in sorted(done)]


AHEAD = 16
"""Rounds of ``concurrency`` items that are begun while an earlier one takes its time, and wait for it when finished."""


async def work_through(
    source: Iterable[object] | AsyncIterable[object],
    work: Callable[[Any], Coroutine[Any, Any, T]],
    concurrency: int,
) -> AsyncGenerator[T, None]:
    """What ``work`` makes of each item, in the order of the items, at most ``concurrency`` at once.

    Items are taken as they are needed. One that takes long holds up what comes after it, but not the work on it, for
    ``AHEAD`` rounds. What ``work`` raises ends the iteration, and leaving it early cancels what still runs.
    """
    check_whole_number("concurrency", concurrency, least=1)
    async with _Ahead[T](concurrency) as ahead, aclosing(_iterate(source)) as items:
        async for item in items:
            ahead.begin(work(item))
            while not ahead.has_room() or ahead.has_next():
                if not ahead.has_next():
                    await ahead.news()
                    continue
                yield await ahead.begun.popleft()
                if ahead.has_room():  # whoever takes them may take his time: the places are not empty meanwhile
                    break
        while ahead.begun:
            yield await ahead.begun.popleft()


class _Ahead(Generic[T]):
    """Work in the order in which it was begun, of which what is finished early waits for what came before it."""

    def __init__(self, concurrency: int) -> None:
        self.begun: deque[asyncio.Task[T]] = deque()
        self._running: set[asyncio.Task[T]] = set()
        self._concurrency = concurrency
        self._news = asyncio.Event()

    def begin(self, work: Coroutine[Any, Any, T]) -> None:
        """Begin one more."""
        # A bare task: a generator cannot hold a task group open across a yield; closing it cancels the task and waits.
        task = asyncio.ensure_future(work)
        self.begun.append(task)
        self._running.add(task)
        task.add_done_callback(self._settle)

    def has_room(self) -> bool:
        """Whether one more may be begun."""
        return len(self._running) < self._concurrency and len(self.begun) < AHEAD * self._concurrency

    def has_next(self) -> bool:
        """Whether one is to be handed out now; not before as many were begun as may run, so that all of them do."""
        return len(self.begun) >= self._concurrency and self.begun[0].done()

    async def news(self) -> None:
        """Wait until one is finished."""
        self._news.clear()
        await self._news.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Cancel what still runs, and wait until it is gone."""
        await stop_tasks(self.begun)

    def _settle(self, task: asyncio.Task[T]) -> None:
        self._running.discard(task)
        self._news.set()


async def _iterate(contents: Iterable[object] | AsyncIterable[object]) -> AsyncGenerator[object, None]:
    if isinstance(contents, AsyncIterable):
        before = count_cancellations()
        async for content in contents:
            if count_cancellations() > before:  # the source has swallowed that we are to stop
                raise asyncio.CancelledError
            yield content
            before = count_cancellations()
    else:
        for content in contents:
            yield content


Value = TypeVar("Value")


class PerLoop(Generic[Value]):
    """A value for each event loop, made at first use; ``forget`` is called with the value of a loop that is closed."""

    def __init__(self, make: Callable[[], Value], forget: Callable[[Value], None] | None = None) -> None:
        self._make = make
        self._forget = forget
        self._values: dict[asyncio.AbstractEventLoop, Value] = {}

    def get(self) -> Value:
        """The value of the running loop; made now when there is none."""
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
        # list(): another thread may be adding its own loop meanwhile.
        for loop in list(self._values):
            value = self._values.pop(loop, None) if loop.is_closed() else None
            if value is not None and self._forget is not None:
                self._forget(value)
