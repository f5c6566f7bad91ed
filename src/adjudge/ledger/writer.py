"""The thread that writes a ledger: what waits is written together, in one durable commit.

The statements are in ``store.py``, for both databases.

Appends of one caller are as fast as the disk; those of many share its commits, so they cost little more than one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from adjudge.errors import LedgerError
from adjudge.formats.text import clean
from adjudge.group_commit import GroupCommit, resolve_futures
from adjudge.hooks import logger
from adjudge.ledger.payload import Draft
from adjudge.ledger.store import Store

MOST_TOGETHER = 1_000
"""Entries of one commit."""

MOST_BYTES_TOGETHER = 20_000_000
"""Bytes of payload after which a commit takes no further entry."""

PAUSE, MOST_PAUSES = 0.001, 4
"""Seconds for which a commit waits for further entries of several callers, and how often at most; it goes on at once
when none came in one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A draft to append, or something else that only the writer may do; and who waits for it."""

    work: Draft | Callable[[], Any]
    future: asyncio.Future[Any]


Jobs = GroupCommit[Job]

Wakes = SimpleQueue[bool]
"""``True`` for a job that nobody is about to write, and ``False`` for the end."""


_ANYTHING = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
"""The exceptions that a job can raise in a thread. Those who wait must be told of all of it, and the next job must be
done."""


class LedgerWriter:
    """One thread, started with the first job; ``let_go`` lets it finish what was handed in."""

    def __init__(self, store: Store) -> None:
        self._jobs: Jobs = GroupCommit(count=_count_together)
        self._wakes: Wakes = SimpleQueue()
        # A daemon: a program that ends does not wait, and an append that has not returned was promised to nobody.
        self._thread = threading.Thread(
            target=_write_jobs, args=(self._jobs, self._wakes, store), name="adjudge-ledger", daemon=True
        )
        self._thread.start()

    def submit(self, work: Draft | Callable[[], Any]) -> asyncio.Future[Any]:
        """Hand in a job; the future is done, with its place or what it returned, when it is durable."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._jobs.hand_in(Job(work=work, future=future)):
            self._wakes.put(True)
        return future

    def let_go(self) -> None:
        """End the thread once everything handed in is written, without waiting for it."""
        # No lock is taken here, only that of the queue, which can be entered again: a finalizer calls this, in the
        # middle of whatever the garbage collector interrupted, ``hand_in`` or ``take`` of this very writer included.
        self._wakes.put(False)

    def join(self) -> None:
        """Wait for the end of the thread, once it was let go."""
        self._thread.join()


def _write_jobs(jobs: Jobs, wakes: Wakes, store: Store) -> None:
    """Write what is handed in, in the thread of a ledger, until it is let go."""
    several, goes_on = False, True
    while goes_on:
        goes_on = wakes.get()
        _wait_for_others(jobs, several=several)
        while together := jobs.take():
            several = len(together) > 1
            _carry_out(store, together)
            _wait_for_others(jobs, several=several)
        while goes_on and wakes.empty() and _extend_search(store):
            pass  # in parts, so that who comes with a job waits for one of them at most
    store.close()


def _extend_search(store: Store) -> bool:
    """Add a part of what is missing to the search index, and return whether there is more to add."""
    try:
        return store.extend_search()
    except _ANYTHING as error:
        # Whatever is wrong is somebody's answer with their next append. Searching does without, as long as it has to.
        logger.warning("the search index could not be extended: %s", clean(str(error)[:300], keep_lines=False))
        return False


def _wait_for_others(jobs: Jobs, *, several: bool) -> None:
    """Give further callers a moment to hand in what the same commit can take.

    ``several`` says that there were several the last time. Then others are on their way, and a moment's patience puts
    them into the same commit, which is most of what an append costs. One caller alone never waits.
    """
    for _ in range(MOST_PAUSES if len(jobs) > 1 or (several and len(jobs)) else 0):
        before = len(jobs)
        if before >= MOST_TOGETHER:
            return
        time.sleep(PAUSE)
        if len(jobs) == before:
            return


def _count_together(jobs: Sequence[Job]) -> int:
    """Count how many of those that wait one commit takes."""
    size = 0
    for number, job in enumerate(jobs[:MOST_TOGETHER], start=1):
        size += len(job.work.payload) if isinstance(job.work, Draft) else 0
        if size >= MOST_BYTES_TOGETHER:
            return number
    return min(len(jobs), MOST_TOGETHER)


def _carry_out(store: Store, jobs: Sequence[Job]) -> None:
    """Do jobs in their order; drafts that follow each other in one commit."""
    together: list[Job] = []
    for job in jobs:
        if isinstance(job.work, Draft):
            together.append(job)
            continue
        _write(store, together)
        together = []
        _run_function(job)
    _write(store, together)


def _write(store: Store, jobs: list[Job]) -> None:
    """Write the drafts of some jobs in one commit, and hand their places, or what was raised, to who waits."""
    if not jobs:
        return
    try:
        places = store.append([job.work for job in jobs if isinstance(job.work, Draft)])
    except _ANYTHING as error:
        resolve_futures((job.future, None, _make_own_error(error)) for job in jobs)
        return
    resolve_futures((job.future, place, None) for job, place in zip(jobs, places, strict=True))


def _run_function(job: Job) -> None:
    """Call the function that a job hands in, and hand its result, or what it raises, to who waits."""
    assert callable(job.work)  # noqa: S101 - for the type checker: there is no third kind
    try:
        resolve_futures([(job.future, job.work(), None)])
    except _ANYTHING as error:
        resolve_futures([(job.future, None, _make_raisable(error))])


def _make_raisable(error: BaseException) -> Exception:
    """Make the exception for whoever waits.

    A redaction that ends its program must end neither this thread nor theirs.

    With the thread, everything appended afterwards would wait for ever; and no future takes ``StopIteration``.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return LedgerError(f"nothing was recorded: {type(error).__name__} was raised")


def _make_own_error(error: BaseException) -> Exception:
    """Make an exception of its own for each who waits: raising one many times would mix up their tracebacks."""
    from adjudge.errors import AdjudgeError

    return type(error)(str(error)) if isinstance(error, AdjudgeError) else LedgerError(f"nothing was recorded: {error}")
