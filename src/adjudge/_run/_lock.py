"""One process at a time writes to a run; the system lets go of what a killed one held."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from adjudge.errors import AdjudgeError, UsageError

FILE = "run.lock"


class RunLock:
    """A lock on a run's folder, by SQLite's own means, which every platform has and every death releases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._connection: sqlite3.Connection | None = None

    def take(self) -> None:
        """Take the lock; raises ``UsageError`` when another process or another run of this one has it."""
        try:
            # A moment's wait: somebody may just be looking whether the lock is held.
            self._connection = _lock(self.folder / FILE, patience=1.0)
        except sqlite3.OperationalError as error:
            if _is_full(error):
                raise AdjudgeError(f"the run {self.folder} cannot be written: {error}; make room for it") from None
            raise UsageError(
                f"the run {self.folder} is being written by another process; wait for it, or name another folder"
            ) from None
        except sqlite3.Error:
            raise UsageError(
                f"{self.folder / FILE} is no lock of a run; delete it if nobody writes to that run, or name another"
            ) from None

    def free(self) -> None:
        """Let go of the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def is_locked(folder: Path) -> bool:
    """Whether somebody writes to a run now."""
    if not (folder / FILE).is_file():
        return False
    try:
        _lock(folder / FILE).close()
    except sqlite3.Error as error:
        return not _is_full(error)
    return False


def _is_full(error: sqlite3.Error) -> bool:
    # A full disk is not somebody who writes: a lock that is held is found before anything is to be written.
    return error.sqlite_errorname in ("SQLITE_FULL", "SQLITE_IOERR_WRITE")


def _lock(path: Path, *, patience: float = 0.0) -> sqlite3.Connection:
    with suppress(OSError):  # SQLite says what is wrong with the place
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
