"""The writer of a run: the rows that its tasks hand in are committed together, on their event loop.

A commit to a file in WAL mode does not wait for the disk, and is much faster than one in a thread: there, SQLite
releases the interpreter and waits for it again with every row, while the event loop is busy. Work that may take long,
because of the disk or of another process that holds the file, is left to a thread, and commits wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from adjudge.group_commit import GroupCommit, resolve_future

Rows = dict[str, tuple[Any, ...]]
"""Statements with their values, in the order they are to be carried out."""


OnWritten = Callable[[Exception | None], None]
"""Called in the event loop with ``None`` when rows are in the file, or with the error if they cannot be written."""


def make_waiter() -> tuple[OnWritten, asyncio.Future[None]]:
    """Make a callback for rows that are handed in, and the future that waits for its call."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return partial(resolve_future, future, None), future


class RowSink(Protocol):
    """A file that rows are written to."""

    def write(self, entries: Sequence[Rows], *, patient: bool) -> list[Exception | None] | None:
        """Write rows and return the error of each; ``None``, unless ``patient``, if another process holds the file."""
        ...

    def is_long(self) -> bool:
        """Return whether ``tidy`` is due."""
        ...

    def tidy(self) -> None:
        """Do the work on the file that is due now and then, and waits for the disk."""
        ...


class RunWriter:
    """A writer that commits everything handed in during one turn of the event loop at once."""

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink
        self._group: GroupCommit[tuple[Rows, OnWritten | None]] = GroupCommit()
        self._planned_commit: asyncio.Handle | None = None
        self._thread_task: asyncio.Task[None] | None = None

    def hand_in(self, rows: Rows, on_written: OnWritten | None) -> None:
        """Have rows written with the next commit, and ``on_written`` called then."""
        if self._group.hand_in((rows, on_written)):
            self._plan_commit()

    async def flush(self) -> None:
        """Wait until everything handed in is in the file."""
        while self._group.is_writing():
            if self._thread_task is not None:
                await asyncio.shield(self._thread_task)
            else:
                self._commit_waiting()

    def _plan_commit(self) -> None:
        """Have the rows that wait committed at the end of this turn of the event loop."""
        self._planned_commit = asyncio.get_running_loop().call_soon(self._commit_waiting)

    def _commit_waiting(self) -> None:
        """Commit all rows that wait. If that would take long, continue in a thread, and with other rows after that."""
        if self._planned_commit is not None:
            self._planned_commit.cancel()
            self._planned_commit = None
        try:
            while entries := self._group.take():
                errors = self._write_entries(entries, patient=False)
                if errors is None:
                    self._run_beside(self._write_patiently(entries))
                    return
                _notify_all(entries, errors)
                if self._sink.is_long():
                    self._run_beside(asyncio.to_thread(self._sink.tidy))
                    return
        except BaseException:  # Ctrl-C, or an error of a callback: the other rows are written all the same
            self._plan_commit()
            raise

    async def _write_patiently(self, entries: Sequence[tuple[Rows, OnWritten | None]]) -> None:
        """Write rows in a thread, which waits until another process releases the file."""
        errors = await asyncio.to_thread(self._write_entries, entries, patient=True)
        _notify_all(entries, errors or [None] * len(entries))

    def _write_entries(
        self, entries: Sequence[tuple[Rows, OnWritten | None]], *, patient: bool
    ) -> list[Exception | None] | None:
        """Write rows and return the error of each; ``None``, unless ``patient``, if another process holds the file."""
        try:
            return self._sink.write([rows for rows, _ in entries], patient=patient)
        except Exception as error:  # noqa: BLE001 - without an answer, those who handed in rows would wait for ever
            return [error] * len(entries)

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that waits for a thread; commits continue after it."""
        self._thread_task = asyncio.get_running_loop().create_task(work)
        self._thread_task.add_done_callback(self._continue_commits)

    def _continue_commits(self, _: asyncio.Task[None]) -> None:
        """Commit the rows that were handed in while a thread was at work."""
        self._thread_task = None
        self._commit_waiting()


def _notify_all(entries: Sequence[tuple[Any, OnWritten | None]], errors: Sequence[Exception | None]) -> None:
    """Call the callback of each entry with its error, or with ``None`` if it is written."""
    for (_, on_written), error in zip(entries, errors, strict=True):
        if on_written is not None:
            on_written(error)
