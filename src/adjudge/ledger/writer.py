"""The thread that writes a ledger: what waits is written together, in one durable commit.

Appends of one caller are as fast as the disk; those of many share its commits, so they cost little more than one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from adjudge.errors import LedgerError
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
    loop: asyncio.AbstractEventLoop


Waiting = SimpleQueue[Job | None]


_ANYTHING = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
"""What a job can raise in a thread. Those who wait must be told of all of it, and the next job must be done."""


class LedgerWriter:
    """One thread, started with the first job; ``let_go`` lets it finish what was handed in."""

    def __init__(self, store: Store) -> None:
        self._waiting: Waiting = SimpleQueue()
        # A daemon: a program that ends does not wait, and an append that has not returned was promised to nobody.
        self._thread = threading.Thread(target=_run, args=(self._waiting, store), name="adjudge-ledger", daemon=True)
        self._thread.start()

    def submit(self, work: Draft | Callable[[], Any]) -> asyncio.Future[Any]:
        """Hand in a job; the future is done, with its place or what it returned, when it is durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.put(Job(work=work, future=future, loop=loop))
        return future

    def let_go(self) -> None:
        """End the thread once everything handed in is written, without waiting for it."""
        self._waiting.put(None)

    def join(self) -> None:
        """Wait for the end of the thread, once it was let go."""
        self._thread.join()


def _run(waiting: Waiting, store: Store) -> None:
    jobs: list[Job | None] = []
    while None not in jobs:
        jobs = _take(waiting, several=len(jobs) > 1)
        together: list[Job] = []
        for job in jobs:
            if job is None or isinstance(job.work, Draft):
                together += [job] if job is not None else []
                continue
            _write(store, together)
            together = []
            _do(job)
        _write(store, together)
    store.close()


def _take(waiting: Waiting, *, several: bool) -> list[Job | None]:
    """Everything that waits, at least one job; what comes after the end is left.

    ``several`` says that there were several the last time. Then others are on their way, and a moment's patience puts
    them into the same commit, which is most of what an append costs. One caller alone never waits.
    """
    jobs = [waiting.get()]
    size = _drain(waiting, jobs, 0)
    for _ in range(MOST_PAUSES if several or len(jobs) > 1 else 0):
        before = len(jobs)
        if jobs[-1] is None or before >= MOST_TOGETHER or size >= MOST_BYTES_TOGETHER:
            break
        time.sleep(PAUSE)
        size = _drain(waiting, jobs, size)
        if len(jobs) == before:
            break
    return jobs


def _drain(waiting: Waiting, jobs: list[Job | None], size: int) -> int:
    """Add what waits to the jobs, up to what one commit takes; the bytes they hold, ``size`` of them before."""
    with suppress(Empty):
        while len(jobs) < MOST_TOGETHER and size < MOST_BYTES_TOGETHER and jobs[-1] is not None:
            jobs.append(waiting.get_nowait())
            work = jobs[-1].work if jobs[-1] else None
            size += len(work.payload) if isinstance(work, Draft) else 0
    return size


def _write(store: Store, jobs: list[Job]) -> None:
    if not jobs:
        return
    try:
        places = store.append([job.work for job in jobs if isinstance(job.work, Draft)])
    except _ANYTHING as error:
        for job in jobs:
            _notify([(job, None, _again(error))])
        return
    _notify([(job, place, None) for job, place in zip(jobs, places, strict=True)])


def _do(job: Job) -> None:
    assert callable(job.work)  # noqa: S101 - for the type checker: there is no third kind
    try:
        _notify([(job, job.work(), None)])
    except _ANYTHING as error:
        _notify([(job, None, _raisable(error))])


def _raisable(error: BaseException) -> Exception:
    """What whoever waits is told: a redaction that ends its program must end neither this thread nor theirs.

    With the thread, everything appended afterwards would wait for ever; and no future takes ``StopIteration``.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return LedgerError(f"nothing was recorded: {type(error).__name__} was raised")


def _again(error: BaseException) -> Exception:
    """An exception of its own for each who waits: raising one many times would mix up their tracebacks."""
    from adjudge.errors import AdjudgeError

    return type(error)(str(error)) if isinstance(error, AdjudgeError) else LedgerError(f"nothing was recorded: {error}")


Written = tuple[Job, Any, Exception | None]


def _notify(written: list[Written]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[Written]] = {}
    for item in written:
        loops.setdefault(item[0].loop, []).append(item)
    for loop, items in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, items)


def _settle(written: list[Written]) -> None:
    for job, place, error in written:
        if job.future.done():  # cancelled meanwhile
            continue
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(place)
