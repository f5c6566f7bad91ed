"""Two threads in which rules check long content, so that the event loop is not blocked meanwhile.

There are two, because much of Python holds the interpreter's lock: with more threads the event loop would wait for each
of them in turn. All event loops of a process share the two, and only one of them compares texts at a time.

No rule has a time limit. Instead each check limits how much it reads (such as ``SIMILARITY_LIMIT`` in ``checks.py``),
and patterns that users write run in re2 (there too). A cancelled caller returns at once and leaves its thread running;
a check that takes long then ends itself (``stop_if_abandoned``).
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

from adjudge.agents.run import AgentRun

T = TypeVar("T")

THREADS = 2

LONG = 4_000
"""Content of this many characters or more is checked in a thread; shorter content takes some milliseconds at most."""

_MANY_VALUES = 500
"""Content of this many values or more counts as long, however short the values are."""


class AbandonedError(Exception):
    """The caller of this thread was cancelled, so nobody waits for the result."""


def is_long(content: object) -> bool:
    """Return whether a content is so long that rules look at it in a thread; text and JSON values are measured."""
    if isinstance(content, str):
        return len(content) >= LONG
    if isinstance(content, AgentRun):
        return True  # a rule on text writes the whole of it first
    size, count, to_measure = 0, 0, [content]
    while to_measure:
        value = to_measure.pop()
        count += 1
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):
            to_measure += value.keys()
            to_measure += value.values()
        elif isinstance(value, list | tuple):
            to_measure += value
        if size >= LONG or len(to_measure) + count >= _MANY_VALUES:
            return True
    return False


async def run_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in one of the two threads and return its result; on cancellation, return without waiting for it.

    If the caller is cancelled before the function has begun, the function is not called. A function that takes long
    should call ``stop_if_abandoned`` now and then.
    """
    abandoned = threading.Event()
    work = partial(contextvars.copy_context().run, partial(_call_unless_abandoned, abandoned, function, arguments))
    try:
        return await asyncio.get_running_loop().run_in_executor(_get_pool(), work)
    except asyncio.CancelledError:
        abandoned.set()
        raise


def stop_if_abandoned() -> None:
    """Raise ``AbandonedError`` in a thread whose caller waits no longer."""
    abandoned: threading.Event | None = getattr(_thread_state, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def hold_comparison_lock() -> AbstractContextManager[object]:
    """Return a context manager in which only one of the two threads keeps the interpreter's lock for long.

    Without it both threads could take the lock in turn, and the event loop would wait for both. Outside of the two
    threads it does nothing.
    """
    return _comparison_lock if getattr(_thread_state, "abandoned", None) is not None else nullcontext()


def _call_unless_abandoned(abandoned: threading.Event, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
    """Call a function in this thread; ``abandoned`` is what ``stop_if_abandoned`` looks at meanwhile."""
    _thread_state.abandoned = abandoned
    try:
        stop_if_abandoned()
        return function(*arguments)
    finally:
        _thread_state.abandoned = None


_thread_state = threading.local()  # .abandoned is the event of the call that this thread runs, if it runs one

_pool_lock = threading.Lock()

_comparison_lock = threading.Lock()

_pools: list[ThreadPoolExecutor] = []
"""The pool of this process, made at first use."""


def _get_pool() -> ThreadPoolExecutor:
    """Return the pool of this process, and make it at first use."""
    with _pool_lock:
        if not _pools:
            _pools.append(ThreadPoolExecutor(THREADS, thread_name_prefix="adjudge-rules"))
        return _pools[0]


def _forget_threads() -> None:
    """Drop the pool and the locks in a forked child process, which has none of its parent's threads."""
    global _pool_lock, _comparison_lock
    _pool_lock, _comparison_lock = threading.Lock(), threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
