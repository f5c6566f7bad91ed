"""Group commit: what several callers hand in goes into one transaction, so that many cost little more than one.

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
    """What waits for the next transaction; may be used from any thread.

    ``count`` says how many of those that wait go into the next group, at least one; by default all of them.
    """

    def __init__(self, *, count: Callable[[Sequence[T]], int] = len) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._waiting: list[T] = []
        self._writing = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def hand_in(self, item: T) -> bool:
        """Let something wait; ``True`` if the caller must start a writer, because none is under way."""
        with self._lock:
            self._waiting.append(item)
            first, self._writing = not self._writing, True
        return first

    def take(self) -> list[T]:
        """The next group, in the order in which it was handed in.

        An empty one ends the writer that asked. It does so under the lock of ``hand_in``: what comes a moment later
        starts another, and is not left lying.
        """
        with self._lock:
            if not self._waiting:
                self._writing = False
                return []
            number = self._count(self._waiting)
            group, self._waiting = self._waiting[:number], self._waiting[number:]
            return group

    def is_writing(self) -> bool:
        """Whether a writer is under way: everything that waits is written without another call."""
        return self._writing


Answer = tuple[asyncio.Future[Any], Any, Exception | None]
"""Who waits, and what is said: a value, or the exception that is raised there."""


def settle(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    """Answer one who waits, in that future's own loop; nothing if it was cancelled meanwhile."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def answer_all(answers: Iterable[Answer]) -> None:
    """Answer from another thread: each in its own loop, and each loop woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for answer in answers:
        loops.setdefault(answer[0].get_loop(), []).append(answer)
    for loop, several in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_settle_all, several)


def _settle_all(answers: Sequence[Answer]) -> None:
    for answer in answers:
        settle(*answer)
