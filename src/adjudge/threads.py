"""Calls of synchronous functions in daemon threads, which are kept for the next call.

Not the event loop's executor: a function that hangs would hold one of its threads, and the end of the program with it.
Here a thread that hangs is never idle again, another one takes its place, and no thread keeps the program from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from adjudge.concurrency import describe_error
from adjudge.panic import convert_panics

T = TypeVar("T")

Work: TypeAlias = Callable[[], Callable[[], None]]
"""A call, which returns a function that reports its end."""

IDLE_SECONDS = 10.0
"""A thread without a call ends after this long."""

IDLE = "adjudge idle"
"""Name of a thread without a call."""


async def call_in_thread(function: Callable[[], T], *, name: str, on_return: Callable[[], None] | None = None) -> T:
    """Call a function in a daemon thread, and return what it returns.

    A thread cannot be killed: if the caller is cancelled, what the function still returns is dropped.

    Args:
        function: It is called with the context variables of the caller.
        name: Name of the thread during the call.
        on_return: Called in the event loop when the function has returned or raised, also if nobody waits any more,
            and if no thread could be started.

    Raises what the function raises; ``SystemExit`` and the like too, but ``RuntimeError`` for what an event loop would
    take for its own: ``StopIteration`` and ``asyncio.CancelledError``.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    call = functools.partial(contextvars.copy_context().run, function)

    def finish(result: Any, error: BaseException | None) -> None:
        """Set the outcome, in the event loop; it is dropped if nobody waits any more."""
        if on_return is not None:
            on_return()
        if outcome.done():
            _close_coroutine(result)
            return
        if error is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(error)

    def work() -> Callable[[], None]:
        """Call the function, in the thread, and return the function that reports its end to the loop."""
        result, error = None, None
        try:
            with convert_panics():
                result = call()
        except BaseException as raised:  # noqa: BLE001 - raised where it is awaited
            error = _make_raisable(raised)
        return functools.partial(_report, loop, functools.partial(finish, result, error), result)

    try:
        _pool.submit(work, name)
    except RuntimeError:  # the system has no more threads
        if on_return is not None:
            on_return()
        raise
    return await _await_outcome(outcome)


def _report(loop: asyncio.AbstractEventLoop, finish: Callable[[], None], result: object) -> None:
    """Have the event loop set an outcome. If the loop was closed meanwhile, nobody waits, and the result is dropped."""
    try:
        loop.call_soon_threadsafe(finish)
    except RuntimeError:
        _close_coroutine(result)


async def _await_outcome(outcome: asyncio.Future[T]) -> T:
    """Wait for the outcome and return it; if the wait is cancelled as the outcome comes, drop the outcome."""
    try:
        return await outcome
    except asyncio.CancelledError:
        if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
            _close_coroutine(outcome.result())
        raise


def _close_coroutine(result: Any) -> None:
    """Close a result that is a coroutine and that nobody will await: Python would warn of it otherwise."""
    if inspect.iscoroutine(result):
        result.close()


def _make_raisable(error: BaseException) -> BaseException:
    """Return the error to raise where the call is awaited: a ``RuntimeError`` for one that asyncio uses itself."""
    # A future cannot carry StopIteration, and a CancelledError would look like the caller's own cancellation.
    if isinstance(error, StopIteration | asyncio.CancelledError):
        return RuntimeError(describe_error(error))
    return error


class _Pool:
    """Threads that wait for work. The one that was idle for the shortest time is used first, so that others can end."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()

    def submit(self, work: Work, name: str) -> None:
        """Do work in an idle thread, or in a new one; raises ``RuntimeError`` if the system has no more threads."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            worker.thread.start()
        worker.thread.name = name
        worker.tasks.put(work)

    def add_idle(self, worker: _Worker) -> None:
        """Add a worker to those that wait for work."""
        with self._lock:
            self._idle.append(worker)

    def remove_idle(self, worker: _Worker) -> bool:
        """Remove a worker from those that wait for work; false if it is none, because it was just given work."""
        with self._lock:
            if worker in self._idle:
                self._idle.remove(worker)
                return True
            return False

    def clear(self) -> None:
        """Forget all threads in the child of a fork: none of them exists there, and the lock may be held by one."""
        self._idle, self._lock = [], threading.Lock()


class _Worker:
    """A thread and the queue from which it gets its work."""

    def __init__(self, pool: _Pool) -> None:
        self.tasks: SimpleQueue[Work] = SimpleQueue()
        self.thread = threading.Thread(target=self._run_functions, name=IDLE, daemon=True)
        self._pool = pool

    def _run_functions(self) -> None:
        """Do the work that comes, until none has come for ``IDLE_SECONDS``."""
        while (work := self._wait_for_work()) is not None:
            report = work()
            self.thread.name = IDLE
            # Idle before the report: a caller that then calls the next function gets this thread, and no new one.
            self._pool.add_idle(self)
            report()
            del work, report  # else the objects that they refer to would live as long as the thread is idle

    def _wait_for_work(self) -> Work | None:
        """Return the next work; ``None`` if none came for ``IDLE_SECONDS``, and the worker is taken out of the pool."""
        try:
            return self.tasks.get(timeout=IDLE_SECONDS)
        except Empty:
            # If it is not in the pool any more, work was handed to it at this very moment.
            return None if self._pool.remove_idle(self) else self.tasks.get()


_pool = _Pool()
"""One for the process: a thread belongs to no event loop."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)
