"""The writer of a run: what its tasks hand in is committed together on their event loop.

A commit to a file in WAL mode waits for no disk, and takes a fraction of what a thread for it would: in a thread,
SQLite lets the interpreter go and asks for it again with every row, and waits each time while the loop is busy. What
may take long, the disk or another process that holds the file, is left to a thread, and commits wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from adjudge.group_commit import GroupCommit, resolve_future

Rows = dict[str, tuple[Any, ...]]
"""Statements with their values, in the order they are to be carried out."""


Done = Callable[[Exception | None], None]
"""Called in the event loop when something is in the file, or with the reason why it is not."""


def make_waiter() -> tuple[Done, asyncio.Future[None]]:
    """Make a callback for a commit, and the future that waits for it."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return partial(resolve_future, future, None), future


class RowSink(Protocol):
    """A file that rows are written to."""

    def write(self, entries: Sequence[Rows], *, patient: bool) -> list[Exception | None] | None:
        """Write rows and return the error of each; ``None`` where others hold the file and this is not to wait."""
        ...

    def is_long(self) -> bool:
        """Return whether ``tidy`` is due."""
        ...

    def tidy(self) -> None:
        """Tidy the file, which is due now and then, and waits for the disk."""
        ...


class RunWriter:
    """A writer that commits everything handed in during one turn of the event loop at once."""

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink
        self._group: GroupCommit[tuple[Rows, Done | None]] = GroupCommit()
        self._turn: asyncio.Handle | None = None
        self._aside: asyncio.Task[None] | None = None

    def hand_in(self, rows: Rows, done: Done | None) -> None:
        """Have rows written with the next commit."""
        if self._group.hand_in((rows, done)):
            self._plan_commit()

    async def flush(self) -> None:
        """Wait until everything handed in is in the file."""
        while self._group.is_writing():
            if self._aside is not None:
                await asyncio.shield(self._aside)
            else:
                self._commit_waiting()

    def _plan_commit(self) -> None:
        self._turn = asyncio.get_running_loop().call_soon(self._commit_waiting)

    def _commit_waiting(self) -> None:
        """Commit all that waits; what would take long goes on in a thread, and the rest after it."""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        try:
            while entries := self._group.take():
                errors = self._write_entries(entries, patient=False)
                if errors is None:
                    self._run_aside(self._write_patiently(entries))
                    return
                _notify_all(entries, errors)
                if self._sink.is_long():
                    self._run_aside(asyncio.to_thread(self._sink.tidy))
                    return
        except BaseException:  # Ctrl-C, or one that was told of its commit: the others are written all the same
            self._plan_commit()
            raise

    async def _write_patiently(self, entries: Sequence[tuple[Rows, Done | None]]) -> None:
        _notify_all(
            entries, await asyncio.to_thread(self._write_entries, entries, patient=True) or [None] * len(entries)
        )

    def _write_entries(
        self, entries: Sequence[tuple[Rows, Done | None]], *, patient: bool
    ) -> list[Exception | None] | None:
        try:
            return self._sink.write([rows for rows, _ in entries], patient=patient)
        except Exception as error:  # noqa: BLE001 - who is not told waits for ever
            return [error] * len(entries)

    def _run_aside(self, work: Coroutine[Any, Any, None]) -> None:
        self._aside = asyncio.get_running_loop().create_task(work)
        self._aside.add_done_callback(self._end_aside)

    def _end_aside(self, _: asyncio.Task[None]) -> None:
        self._aside = None
        self._commit_waiting()


def _notify_all(entries: Sequence[tuple[Any, Done | None]], errors: Sequence[Exception | None]) -> None:
    for (_, done), error in zip(entries, errors, strict=True):
        if done is not None:
            done(error)
