"""Opening of SQLite files, private and without waiting for locks for ever, whatever tables they have.

The functions raise the exceptions in ``UNUSABLE``, for which their callers raise errors of their own.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

Mode = Literal["make", "write", "read", "look"]
"""``make`` makes a file that does not exist; the others never do, because a mistyped path must not leave an empty file.

``look`` reads a file to which nobody else writes, and leaves no file beside it. With ``read`` SQLite makes a log, and
does not remove it; if the file or its folder is read-only, ``read`` is ``look``."""

BUSY_SECONDS = 30.0
"""Seconds to wait for other processes when a file is opened."""

UNUSABLE = (sqlite3.Error, OSError, RuntimeError, ValueError)
"""Errors of opening. ``RuntimeError``: a link to itself, before Python 3.13; ``ValueError``: a NUL in the path."""


def create_private(path: str | os.PathLike[str], *, new: bool = False) -> None:
    """Make an empty file that its owner alone can read, unless it exists; with ``new``, raise ``FileExistsError`` then.

    This is done before SQLite makes the file, because SQLite would leave the mode to the umask. It gives its log files
    the mode of the database, so this mode is that of all three files.
    """
    with _CREATION_LOCK:  # another thread must not open the new file before this one has closed it
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            if new:
                raise
            _check_usable(path)


_CREATION_LOCK = threading.Lock()


def _check_usable(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` for a path that cannot be a database, without opening it.

    Do not open the file here: on POSIX, closing it would drop every lock that this process has on it. Another process
    could then believe to be the last user and delete the write-ahead log while this process still writes to it, and
    every commit after that would be lost.
    """
    file = Path(path)
    if not file.exists():  # a link to a file that is not there yet, and has no locks
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return
    if file.is_dir():
        code = errno.EISDIR
    elif not os.access(path, os.R_OK | os.W_OK):
        code = errno.EACCES
    elif not file.is_file():
        code = errno.EINVAL  # opening a pipe would wait for its other end
    else:
        return
    raise OSError(code, os.strerror(code), str(path))


def is_writable(path: str | os.PathLike[str]) -> bool:
    """Return whether this process may write to an existing file and make others beside it, as SQLite does."""
    return os.access(path, os.W_OK) and os.access(Path(path).parent, os.W_OK)


def name_sqlite(path: str | os.PathLike[str], mode: Literal["write", "read", "look"]) -> str:
    """Make the URI by which SQLite opens an existing file, and makes no new one."""
    file = Path(path).resolve()
    # To read, SQLite makes a log beside the file. Where it cannot, it would refuse, so it is told that nobody writes.
    leaves_nothing = mode == "look" or (mode == "read" and not is_writable(file))
    if leaves_nothing and not file.with_name(f"{file.name}-wal").exists():
        return f"{file.as_uri()}?mode=ro&immutable=1"
    return f"{file.as_uri()}?mode={'rw' if mode == 'write' else 'ro'}"


def open_sqlite(
    path: str | os.PathLike[str],
    *,
    mode: Mode,
    patience: float = BUSY_SECONDS,
    prepare: Callable[[sqlite3.Connection], object] | None = None,
) -> sqlite3.Connection:
    """Open a connection to a file, for one thread at a time; raises ``UNUSABLE``.

    The caller begins transactions, because the driver's own take the lock only when it is too late to wait for it.
    ``prepare`` gets the connection first; if it raises, the connection is closed and the exception raised.
    """
    if mode == "make":
        with suppress(OSError):  # SQLite reports below what is wrong with the path
            create_private(path)
        database = os.path.join(os.curdir, path)  # noqa: PTH118 - ":memory:" is a file too, and a Path drops the "./"
    else:
        database = name_sqlite(path, mode)
    connection = sqlite3.connect(
        database, uri=mode != "make", timeout=patience, check_same_thread=False, isolation_level=None
    )
    try:
        connection.execute("PRAGMA trusted_schema=OFF")  # a foreign schema must not call functions with effects
        if prepare is not None:
            prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def list_statements(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """List the tables, indexes, views and triggers of a file, each with its name and the statement that made it.

    A name may occur twice, because a trigger may have the name of a table.
    """
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return [(str(name), str(statement)) for name, statement in rows]


def enter_wal(connection: sqlite3.Connection, *, durable: bool = False) -> None:
    """Switch a file to a write-ahead log (WAL), so that readers do not wait for writers.

    A killed process loses no commit. With ``durable`` a machine that loses power loses none either, but every commit
    waits for the disk.
    """
    # Two processes that open a new file at once both want its lock, and SQLite does not wait for it in this statement.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            break
    connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
