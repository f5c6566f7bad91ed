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


_Waiting = concurrent.futures.Future

_ENDINGS = (concurrent.futures.CancelledError, KeyboardInterrupt, SystemExit)
"""The exceptions of a call that ended with its loop."""


class _LoopThread:
    """A private loop and its thread; made anew when the loop has ended, and after a fork, where no thread survives."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.waiting: set[_Waiting[Any]] = set()
        """The calls that somebody waits for. Guarded by the lock, like ``ended``."""
        self.ended: str | None = None
        """The cause that ended the loop, in words; nothing is handed to it from then on."""
        self.cause: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="adjudge-sync", daemon=True)
        self.thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> _Waiting[T]:
        """Hand a coroutine to the loop; the lock is held."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self.waiting.add(future)
        return future

    def wait_for_cancelled(self) -> None:
        """Give what was cancelled a moment to close its connections before the caller's interrupt goes on."""
        gone = threading.Event()
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.call_later, 0.01, gone.set)
            gone.wait(timeout=1.0)

    def raise_ended(self) -> NoReturn:
        """Raise for a call that ended with the loop."""
        raise AdjudgeError(
            f"the event loop of all sync calls ended before this one, because {self.ended}; nothing was decided, and "
            "the next call has a new loop"
        ) from self.cause

    def close(self) -> None:
        """Stop the loop and close what lives on it (connections)."""
        if self.pid == os.getpid() and self.thread.is_alive():
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(timeout=2.0)

    def _run(self) -> None:
        """Run the loop in its thread until it is stopped; whatever ends it, nobody is left waiting."""
        ended = "it was stopped"
        try:
            asyncio.set_event_loop(self.loop)
            self.loop.run_forever()
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - those who wait are told of it
            self.cause, ended = error, f"{type(error).__name__} was raised in it"
        finally:
            with _lock:
                self.ended = ended
                if self in _loop_threads:
                    _loop_threads.remove(self)
            self._finish(_stop_all)
            self._fail_waiting()
            self._finish(_close_generators)
            with suppress(Exception, KeyboardInterrupt, SystemExit):
                self.loop.close()

    def _finish(self, ending: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run one more coroutine in the loop, for seconds at most; what it raises changes nothing."""
        work = ending()
        with suppress(Exception, KeyboardInterrupt, SystemExit):
            self.loop.run_until_complete(work)
        with suppress(Exception):
            work.close()  # where it could not be begun, since somebody has closed the loop

    def _fail_waiting(self) -> None:
        with _lock:
            waiting = list(self.waiting)
        for future in waiting:  # what ignored its cancellation, and has no loop now that could ever answer
            with suppress(concurrent.futures.InvalidStateError):
                future.set_exception(concurrent.futures.CancelledError())


async def _stop_all() -> None:
    # Calls that were handed in and not begun are among them, and are cancelled before they ask anybody.
    await stop_tasks([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])


async def _close_generators() -> None:
    async with asyncio.timeout(GRACE):
        await asyncio.get_running_loop().shutdown_asyncgens()


_lock = threading.Lock()

_loop_threads: list[_LoopThread] = []

_left_behind: list[_LoopThread] = []
"""Loop threads of the process that this one was forked from. Kept for good: closing such a loop, which its end would
do, takes the other process's connections out of the poll that both share."""


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return what it returns; an interrupt cancels it.

    Raises ``AdjudgeError`` where the loop ended before it.
    """
    __tracebackhide__ = True  # pytest shows whose call it was, and what was raised in it
    with _lock:
        loop_thread = _get_loop_thread()
        inside = threading.current_thread() is loop_thread.thread
        future = None if inside else loop_thread.start(work)
    if future is None:
        work.close()
        raise UsageError("a sync call was made from inside adjudge's own loop; await evaluate() there instead")
    try:
        return future.result()
    except BaseException as error:
        if loop_thread.ended is not None and future.done() and isinstance(error, _ENDINGS):
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
            loop_thread.raise_ended()
        if future.cancel():
            loop_thread.wait_for_cancelled()
        _cut_waiting(error)
        raise
    finally:
        with _lock:
            loop_thread.waiting.discard(future)


def _cut_waiting(error: BaseException) -> None:
    """Cut the frames of the wait out of a traceback: they are in every one, and none of them says anything."""
    begin = error.__traceback__
    end = begin.tb_next if begin is not None else None
    while end is not None and end.tb_frame.f_code.co_filename == _Waiting.result.__code__.co_filename:
        end = end.tb_next
    if begin is not None and end is not None:
        begin.tb_next = end


def make_sync(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make the twin of a coroutine function for callers without an event loop, with its parameters and its types."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        return run_sync(function(*args, **kwargs))

    _describe_twin(call, function)
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
    """Make the twin of a coroutine method, made in the body of its class, as ``make_sync`` makes that of a function."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        # Looked up on the object: a subclass that has another method of this name is asked with that one.
        return run_sync(getattr(self, name)(*args, **kwargs))

    _describe_twin(call, method)
    return cast("SyncMethod[S_contra, P, R_co]", call)


def _describe_twin(twin: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Give a twin its own name, and a docstring with the arguments that both take."""
    twin.__name__, twin.__qualname__ = f"{function.__name__}_sync", f"{function.__qualname__}_sync"
    introduction, heading, arguments = (function.__doc__ or "").partition("Args:\n")
    indent = introduction[len(introduction.rstrip(" ")) :]
    sentence = (
        f"``{function.__name__}`` for callers without an event loop; works inside a running loop too, and blocks it."
    )
    twin.__doc__ = f"{sentence}\n\n{indent}{heading}{arguments}" if heading else sentence


def _get_loop_thread() -> _LoopThread:
    """Return the loop thread of this process, started if there is none. The caller holds ``_lock``."""
    if not _loop_threads or _loop_threads[0].pid != os.getpid():
        _left_behind.extend(_loop_threads)
        _loop_threads.clear()
        _loop_threads.append(_LoopThread())
        import atexit

        atexit.register(_loop_threads[0].close)
    return _loop_threads[0]


def _forget_loop_threads() -> None:
    """Forget the loop threads in a child that was forked: its lock may be held by a thread that it does not have."""
    global _lock  # noqa: PLW0603 - there is no other way to a lock that nobody can release
    _lock = threading.Lock()
    _left_behind.extend(_loop_threads)
    _loop_threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loop_threads)
