"""The one way in for callers without an event loop.

All sync calls run on one private loop in one daemon thread, so they work inside a running loop too (a notebook) and
nobody's loop is ever patched. The thread starts with the first call and ends with the interpreter. Where something ends
the loop before that (``KeyboardInterrupt`` out of a hook, ``get_running_loop().stop()``), those who wait are told, and
the next call has a new thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar, cast, overload

from adjudge.concurrency import GRACE, stop_tasks
from adjudge.errors import AdjudgeError, UsageError

T = TypeVar("T")

P = ParamSpec("P")

S_contra = TypeVar("S_contra", contravariant=True)

R_co = TypeVar("R_co", covariant=True)


_CallFuture = concurrent.futures.Future
"""A sync call's result, which its thread waits for."""

_LOOP_END_ERRORS = (concurrent.futures.CancelledError, KeyboardInterrupt, SystemExit)
"""The exceptions of a call that ended with its loop."""


class _LoopThread:
    """A private loop and its thread; made anew when the loop has ended, and after a fork, where no thread survives."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.waiting: set[_CallFuture[Any]] = set()
        """The calls that somebody waits for. Guarded by the lock, like ``ended``."""
        self.ended: str | None = None
        """The cause that ended the loop, in words; nothing is handed to it from then on."""
        self.cause: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="adjudge-sync", daemon=True)
        self.thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> _CallFuture[T]:
        """Start a coroutine in the loop, and return the future of its result. The caller holds ``_lock``."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self.waiting.add(future)
        return future

    def wait_for_cancelled(self) -> None:
        """Give cancelled calls a moment to close their connections before the caller's interrupt goes on."""
        moment_over = threading.Event()
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.call_later, 0.01, moment_over.set)
            moment_over.wait(timeout=1.0)

    def raise_ended(self) -> NoReturn:
        """Raise the ``AdjudgeError`` of a call whose loop ended before it."""
        raise AdjudgeError(
            f"the event loop of all sync calls ended before this one, because {self.ended}; nothing was decided, and "
            "the next call has a new loop"
        ) from self.cause

    def close(self) -> None:
        """Stop the loop, which closes its connections; do nothing in a forked child, where its thread does not run."""
        if self.pid == os.getpid() and self.thread.is_alive():
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(timeout=2.0)

    def _run(self) -> None:
        """Run the loop in its thread until it ends; however it ends, every call that waits gets an error."""
        end_reason = "it was stopped"
        try:
            asyncio.set_event_loop(self.loop)
            self.loop.run_forever()
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - those who wait are told of it
            self.cause, end_reason = error, f"{type(error).__name__} was raised in it"
        finally:
            with _lock:
                self.ended = end_reason
                if self in _loop_threads:
                    _loop_threads.remove(self)
            self._run_cleanup(_cancel_all_tasks)
            self._cancel_waiting()
            self._run_cleanup(_close_generators)
            with suppress(Exception, KeyboardInterrupt, SystemExit):
                self.loop.close()

    def _run_cleanup(self, clean_up: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a cleanup coroutine in the loop that has stopped; ignore what it raises."""
        work = clean_up()
        with suppress(Exception, KeyboardInterrupt, SystemExit):
            self.loop.run_until_complete(work)
        with suppress(Exception):
            work.close()  # for a coroutine that never ran, because somebody has closed the loop

    def _cancel_waiting(self) -> None:
        """End the calls that still wait with ``CancelledError``."""
        with _lock:
            waiting = list(self.waiting)
        for future in waiting:  # calls that ignored their cancellation; without a loop they cannot get an answer
            with suppress(concurrent.futures.InvalidStateError):
                future.set_exception(concurrent.futures.CancelledError())


async def _cancel_all_tasks() -> None:
    """Cancel the tasks of the running loop and wait for them; calls that were not started yet ask nobody any more."""
    await stop_tasks([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])


async def _close_generators() -> None:
    """Close the asynchronous generators of the running loop, for ``GRACE`` seconds at most."""
    async with asyncio.timeout(GRACE):
        await asyncio.get_running_loop().shutdown_asyncgens()


_lock = threading.Lock()

_loop_threads: list[_LoopThread] = []

_inherited_loop_threads: list[_LoopThread] = []
"""Loop threads of the process that this one was forked from. Kept for good: closing such a loop, which its end would
do, takes the other process's connections out of the poll that both share."""


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return what it returns; an interrupt cancels it.

    Raises ``AdjudgeError`` where the loop ended before it.
    """
    __tracebackhide__ = True  # pytest shows whose call it was, and what was raised in it
    with _lock:
        loop_thread = _get_loop_thread()
        is_in_loop_thread = threading.current_thread() is loop_thread.thread
        future = None if is_in_loop_thread else loop_thread.start(work)
    if future is None:
        work.close()
        raise UsageError("a sync call was made from inside adjudge's own loop; await evaluate() there instead")
    try:
        return future.result()
    except BaseException as error:
        if loop_thread.ended is not None and future.done() and isinstance(error, _LOOP_END_ERRORS):
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:  # never started: Python would warn of it
                work.close()
            loop_thread.raise_ended()
        if future.cancel():
            loop_thread.wait_for_cancelled()
        _cut_wait_frames(error)
        raise
    finally:
        with _lock:
            loop_thread.waiting.discard(future)


def _cut_wait_frames(error: BaseException) -> None:
    """Cut the frames of ``Future.result`` out of a traceback, after its first frame: they tell a reader nothing."""
    first = error.__traceback__
    entry = first.tb_next if first is not None else None
    while entry is not None and entry.tb_frame.f_code.co_filename == _CallFuture.result.__code__.co_filename:
        entry = entry.tb_next
    if first is not None and entry is not None:
        first.tb_next = entry


def make_sync(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make the sync version of a coroutine function, for callers without an event loop: same parameters and types."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        return run_sync(function(*args, **kwargs))

    _describe_sync_version(call, function)
    return call


class SyncMethod(Protocol[S_contra, P, R_co]):
    """A sync method as type checkers see it: bound to its object, with the parameters of the one that is awaited.

    It is a description only; at run time there is a plain function, as ``def`` makes one.
    """

    @overload
    def __get__(self, instance: None, owner: Any, /) -> Callable[Concatenate[S_contra, P], R_co]: ...

    @overload
    def __get__(self, instance: S_contra, owner: Any, /) -> Callable[P, R_co]: ...


def make_sync_method(
    method: Callable[Concatenate[S_contra, P], Coroutine[Any, Any, R_co]],
) -> SyncMethod[S_contra, P, R_co]:
    """Make the sync version of a coroutine method, in the body of its class; as ``make_sync`` does for a function."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        # Looked up on the object, so that a subclass's own method of this name is called.
        return run_sync(getattr(self, name)(*args, **kwargs))

    _describe_sync_version(call, method)
    return cast("SyncMethod[S_contra, P, R_co]", call)


def _describe_sync_version(sync_version: Callable[..., Any], original: Callable[..., Any]) -> None:
    """Give a sync version its own name, and a docstring with the arguments of the original."""
    sync_version.__name__, sync_version.__qualname__ = f"{original.__name__}_sync", f"{original.__qualname__}_sync"
    introduction, heading, arguments = (original.__doc__ or "").partition("Args:\n")
    indent = introduction[len(introduction.rstrip(" ")) :]
    sentence = (
        f"``{original.__name__}`` for callers without an event loop; works inside a running loop too, and blocks it."
    )
    sync_version.__doc__ = f"{sentence}\n\n{indent}{heading}{arguments}" if heading else sentence


def _get_loop_thread() -> _LoopThread:
    """Return the loop thread of this process, started if there is none. The caller holds ``_lock``."""
    if not _loop_threads or _loop_threads[0].pid != os.getpid():
        _inherited_loop_threads.extend(_loop_threads)  # of the process that this one was forked from; kept, not closed
        _loop_threads.clear()
        _loop_threads.append(_LoopThread())
        import atexit

        atexit.register(_loop_threads[0].close)
    return _loop_threads[0]


def _forget_loop_threads() -> None:
    """Begin without loop threads in a forked child, and with a new lock: a thread that is gone may hold the old one."""
    global _lock  # noqa: PLW0603 - there is no other way to a lock that nobody can release
    _lock = threading.Lock()
    _inherited_loop_threads.extend(_loop_threads)
    _loop_threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loop_threads)
