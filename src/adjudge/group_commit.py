"""Group commit: entries of several callers go into one transaction, so that many cost little more than one.

``GroupCommit`` is the part that ledgers, runs and reply caches share: what waits, in order, one writer at a time, and
nothing missed when that writer ends. Where the writer runs is left to each, since their promises differ, and a change
for one would break another:

* a ledger's has a thread of its own. Each commit waits for the disk, and the end of a program waits for none of them.
* a run's is its event loop. Its commits wait for no disk, and a thread would cost more than they do.
* a cache's is a thread that the end of a program waits for. Nobody is answered, and a failure loses only replies.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class GroupCommit(Generic[T]):
    """The entries that wait for the next transaction; may be used from any thread.

    ``count`` says how many of those that wait go into the next group, at least one; by default all of them.
    """

    def __init__(self, *, count: Callable[[Sequence[T]], int] = len) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._waiting: list[T] = []
        self._writing = False

    def __len__(self) -> int:
        """Count the entries that wait."""
        return len(self._waiting)

    def hand_in(self, entry: T) -> bool:
        """Add an entry that waits; ``True`` if the caller must start a writer, because none is under way."""
        with self._lock:
            self._waiting.append(entry)
            needs_writer, self._writing = not self._writing, True
        return needs_writer

    def take(self) -> list[T]:
        """Take the next group, in the order in which it was handed in.

        An empty list tells the writer that asked to end. That is decided under the lock of ``hand_in``, so an entry
        that is handed in a moment later has a new writer started for it.
        """
        with self._lock:
            if not self._waiting:
                self._writing = False
                return []
            size = self._count(self._waiting)
            group, self._waiting = self._waiting[:size], self._waiting[size:]
            return group

    def is_writing(self) -> bool:
        """Return whether a writer is under way: everything that waits is written without another call."""
        return self._writing


Resolution = tuple[asyncio.Future[Any], Any, Exception | None]
"""A future that somebody waits for, and its end: a value, or the exception that is raised there."""


def resolve_future(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    """Resolve a future, in its loop; do nothing if it was cancelled meanwhile."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def resolve_futures(resolutions: Iterable[Resolution]) -> None:
    """Resolve futures from another thread: each in its loop, and each loop woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[Resolution]] = {}
    for resolution in resolutions:
        future, _, _ = resolution
        loops.setdefault(future.get_loop(), []).append(resolution)
    for loop, loop_resolutions in loops.items():
        # RuntimeError: the loop was closed, so nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve_in_loop, loop_resolutions)


def _resolve_in_loop(resolutions: Sequence[Resolution]) -> None:
    """Resolve futures of the running loop."""
    for future, value, error in resolutions:
        resolve_future(future, value, error)
