"""What the tasks of a run hand in, committed together on their event loop.

A commit to a file in WAL mode waits for no disk, and takes a fraction of what a thread for it would: in a thread,
SQLite lets the interpreter go and asks for it again with every row, and waits each time while the loop is busy. What
may take long, the disk or another process that holds the file, is left to a thread, and commits wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from adjudge.group_commit import GroupCommit, settle

Rows = dict[str, tuple[Any, ...]]
"""Statements with their values, in the order they are to be carried out."""


Done = Callable[[Exception | None], None]
"""Called in the event loop when something is in the file, or with the reason why it is not."""


def wait_for() -> tuple[Done, asyncio.Future[None]]:
    """What is told of a commit, and who waits for it."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return partial(settle, future, None), future


class RowSink(Protocol):
    """Where rows go."""

    def write(self, together: Sequence[Rows], *, patient: bool) -> list[Exception | None] | None:
        """What went wrong with each; ``None`` when the file is held by others and this is not to wait for it."""
        ...

    def is_long(self) -> bool:
        """Whether ``tidy`` is due."""
        ...

    def tidy(self) -> None:
        """What now and then has to be done to the file, and waits for the disk."""
        ...


class RunWriter:
    """Everything that is handed in during one turn of the event loop goes into one commit."""

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink
        self._group: GroupCommit[tuple[Rows, Done | None]] = GroupCommit()
        self._turn: asyncio.Handle | None = None
        self._aside: asyncio.Task[None] | None = None

    def hand_in(self, rows: Rows, done: Done | None) -> None:
        """Have rows written with the next commit."""
        if self._group.hand_in((rows, done)):
            self._plan()

    async def flush(self) -> None:
        """Wait until everything handed in is in the file."""
        while self._group.is_writing():
            if self._aside is not None:
                await asyncio.shield(self._aside)
            else:
                self._commit()

    def _plan(self) -> None:
        self._turn = asyncio.get_running_loop().call_soon(self._commit)

    def _commit(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        try:
            while together := self._group.take():
                errors = self._write(together, patient=False)
                if errors is None:
                    self._leave(self._write_patiently(together))
                    return
                _notify(together, errors)
                if self._sink.is_long():
                    self._leave(asyncio.to_thread(self._sink.tidy))
                    return
        except BaseException:  # Ctrl-C, or one that was told of its commit: the others are written all the same
            self._plan()
            raise

    async def _write_patiently(self, together: Sequence[tuple[Rows, Done | None]]) -> None:
        _notify(together, await asyncio.to_thread(self._write, together, patient=True) or [None] * len(together))

    def _write(self, together: Sequence[tuple[Rows, Done | None]], *, patient: bool) -> list[Exception | None] | None:
        try:
            return self._sink.write([rows for rows, _ in together], patient=patient)
        except Exception as error:  # noqa: BLE001 - who is not told waits for ever
            return [error] * len(together)

    def _leave(self, work: Coroutine[Any, Any, None]) -> None:
        self._aside = asyncio.get_running_loop().create_task(work)
        self._aside.add_done_callback(self._go_on)

    def _go_on(self, _: asyncio.Task[None]) -> None:
        self._aside = None
        self._commit()


def _notify(together: Sequence[tuple[Any, Done | None]], errors: Sequence[Exception | None]) -> None:
    for (_, done), error in zip(together, errors, strict=True):
        if done is not None:
            done(error)
