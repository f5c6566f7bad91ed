"""Long contents are looked at by rules in two threads, so that the event loop goes on meanwhile.

Two, because a comparison of texts, and much of Python, holds the interpreter's lock: with more threads the event loop
would wait for each of them in turn. All event loops of a process share the two, and one of them compares at a time.

No rule is ended here, or anywhere: a rule that hangs has no time limit. Instead each check bounds what it looks at
(such as ``SIMILARITY_LIMIT`` in ``checks.py``), and patterns that users write run in re2. A caller that is cancelled
leaves its thread alone, and a check that takes long then ends itself (``stop_if_abandoned``).
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
"""Characters from which on a thread is worth its start: no rule takes more than some milliseconds for fewer."""

_MOST_PARTS = 500
"""Values of a content from which on it counts as long, however short they are."""


class AbandonedError(Exception):
    """Nobody waits any more for what this thread computes."""


def is_long(content: object) -> bool:
    """Return whether a content is so long that rules look at it in a thread; text and JSON values are measured."""
    if isinstance(content, str):
        return len(content) >= LONG
    if isinstance(content, AgentRun):
        return True  # a rule on text writes the whole of it first
    size, parts, to_measure = 0, 0, [content]
    while to_measure:
        value = to_measure.pop()
        parts += 1
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):
            to_measure += value.keys()
            to_measure += value.values()
        elif isinstance(value, list | tuple):
            to_measure += value
        if size >= LONG or len(to_measure) + parts >= _MOST_PARTS:
            return True
    return False


async def run_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in one of the two threads and return its result; a cancellation leaves it alone at once.

    A function that is cancelled before it has begun is not called. One that takes long calls ``stop_if_abandoned``.
    """
    abandoned = threading.Event()
    work = partial(contextvars.copy_context().run, partial(_call_unless_abandoned, abandoned, function, arguments))
    try:
        return await asyncio.get_running_loop().run_in_executor(_find_pool(), work)
    except asyncio.CancelledError:
        abandoned.set()
        raise


def stop_if_abandoned() -> None:
    """Raise ``AbandonedError`` in a thread whose caller waits no longer."""
    abandoned: threading.Event | None = getattr(_here, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise AbandonedError


def take_turn() -> AbstractContextManager[object]:
    """Return the turn of whichever of the two threads is about to keep the interpreter's lock for long.

    Without it both would, one after the other, and the event loop would wait for two. Elsewhere nothing is waited for.
    """
    return _turn if getattr(_here, "abandoned", None) is not None else nullcontext()


def _call_unless_abandoned(abandoned: threading.Event, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
    _here.abandoned = abandoned
    try:
        stop_if_abandoned()
        return function(*arguments)
    finally:
        _here.abandoned = None


_here = threading.local()

_lock = threading.Lock()

_turn = threading.Lock()

_pools: list[ThreadPoolExecutor] = []
"""The pool of this process, made at first use."""


def _find_pool() -> ThreadPoolExecutor:
    with _lock:
        if not _pools:
            _pools.append(ThreadPoolExecutor(THREADS, thread_name_prefix="adjudge-rules"))
        return _pools[0]


def _start_anew() -> None:
    """Forget the threads in a child that was forked, which has none of its parent's."""
    global _lock, _turn
    _lock, _turn = threading.Lock(), threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
