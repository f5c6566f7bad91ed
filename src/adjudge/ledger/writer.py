"""The thread that writes a ledger: all drafts that wait are written together, in one durable commit.

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

MOST_PER_COMMIT = 1_000
"""The most entries of one commit."""

MOST_BYTES_PER_COMMIT = 20_000_000
"""The number of bytes of payload from which on a commit takes no further entry."""

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
"""The messages that wake the writer: ``True`` if there are jobs to do, ``False`` if it is to end."""


_ANY_ERROR = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
"""The exceptions that a job can raise in a thread. Those who wait must be told of all of it, and the next job must be
done."""


class LedgerWriter:
    """A thread that does the jobs of a ledger in their order; ``request_end`` ends it after the last of them."""

    def __init__(self, store: Store) -> None:
        self._jobs: Jobs = GroupCommit(count=_count_for_commit)
        self._wakes: Wakes = SimpleQueue()
        # A daemon thread: the end of a program does not wait for it, since an append that has not returned was never
        # promised to be recorded.
        self._thread = threading.Thread(
            target=_write_jobs, args=(self._jobs, self._wakes, store), name="adjudge-ledger", daemon=True
        )
        self._thread.start()

    def submit(self, work: Draft | Callable[[], Any]) -> asyncio.Future[Any]:
        """Hand in a draft to append, or a function to call, and return its future.

        The future is done when the work is durable, with the place of the entry or what the function returned.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._jobs.hand_in(Job(work=work, future=future)):
            self._wakes.put(True)
        return future

    def request_end(self) -> None:
        """End the thread once everything that was handed in is done, without waiting for that."""
        # A finalizer may call this while the garbage collector has interrupted ``hand_in`` or ``take`` of this very
        # writer. So no lock is taken here but that of the queue, which is reentrant.
        self._wakes.put(False)

    def join(self) -> None:
        """Wait for the end of the thread, after ``request_end``."""
        self._thread.join()


def _write_jobs(jobs: Jobs, wakes: Wakes, store: Store) -> None:
    """Do the jobs of a ledger in its thread, until a wake says that it is to end; then close the store.

    While no job waits, the search index is completed in parts, so that a new job waits for one part at most.
    """
    were_several, is_running = False, True
    while is_running:
        is_running = wakes.get()
        _wait_for_others(jobs, were_several=were_several)
        while group := jobs.take():
            were_several = len(group) > 1
            _do_jobs(store, group)
            _wait_for_others(jobs, were_several=were_several)
        while is_running and wakes.empty() and _extend_search(store):
            pass
    store.close()


def _extend_search(store: Store) -> bool:
    """Add the next missing part to the search index, and return whether there may be more to add."""
    try:
        return store.extend_search()
    except _ANY_ERROR as error:
        # If the store fails, the next append fails too, and its caller is told. A search works without the index.
        logger.warning("the search index could not be extended: %s", clean(str(error)[:300], keep_lines=False))
        return False


def _wait_for_others(jobs: Jobs, *, were_several: bool) -> None:
    """Wait a moment for jobs of further callers, which can share the next commit.

    A commit is most of the cost of an append. If several jobs wait, or were done in the last commit, others probably
    follow. The jobs of a single caller are never delayed.
    """
    expects_others = len(jobs) > 1 or (were_several and len(jobs) > 0)
    for _ in range(MOST_PAUSES if expects_others else 0):
        count = len(jobs)
        if count >= MOST_PER_COMMIT:
            return
        time.sleep(PAUSE)
        if len(jobs) == count:
            return


def _count_for_commit(jobs: Sequence[Job]) -> int:
    """Count how many of the waiting jobs go into the next commit: at most so many entries, and bytes of payload."""
    size = 0
    for number, job in enumerate(jobs[:MOST_PER_COMMIT], start=1):
        size += len(job.work.payload) if isinstance(job.work, Draft) else 0
        if size >= MOST_BYTES_PER_COMMIT:
            return number
    return min(len(jobs), MOST_PER_COMMIT)


def _do_jobs(store: Store, jobs: Sequence[Job]) -> None:
    """Do jobs in their order; drafts without a function between them are appended in one commit."""
    draft_jobs: list[Job] = []
    for job in jobs:
        if isinstance(job.work, Draft):
            draft_jobs.append(job)
            continue
        _append_drafts(store, draft_jobs)
        draft_jobs = []
        _run_function(job)
    _append_drafts(store, draft_jobs)


def _append_drafts(store: Store, jobs: list[Job]) -> None:
    """Append the drafts of some jobs in one commit; give the future of each job its place, or the error."""
    if not jobs:
        return
    try:
        places = store.append([job.work for job in jobs if isinstance(job.work, Draft)])
    except _ANY_ERROR as error:
        resolve_futures((job.future, None, _copy_error(error)) for job in jobs)
        return
    resolve_futures((job.future, place, None) for job, place in zip(jobs, places, strict=True))


def _run_function(job: Job) -> None:
    """Call the function of a job, and give its return value, or its error, to the future of the job."""
    assert callable(job.work)  # noqa: S101 - for the type checker: there is no third kind
    try:
        resolve_futures([(job.future, job.work(), None)])
    except _ANY_ERROR as error:
        resolve_futures([(job.future, None, _make_raisable(error))])


def _make_raisable(error: BaseException) -> Exception:
    """Return the exception that is set on a future for what the function of a job raised.

    Exceptions that end a program, as a function for redaction may raise them, are replaced: they must end neither this
    thread, without which every later append would wait for ever, nor the waiting task. A future takes no
    ``StopIteration``.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return LedgerError(f"nothing was recorded: {type(error).__name__} was raised")


def _copy_error(error: BaseException) -> Exception:
    """Make a new exception for one of several waiting jobs: raising the same one many times would mix up tracebacks."""
    from adjudge.errors import AdjudgeError

    return type(error)(str(error)) if isinstance(error, AdjudgeError) else LedgerError(f"nothing was recorded: {error}")
