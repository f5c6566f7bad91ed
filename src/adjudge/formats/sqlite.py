"""SQLite files: one way of opening them, whatever is kept in them.

Who opens a file says what its refusal is called; what is raised here is ``UNUSABLE``.
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
"""``make`` begins a file that is not there; the others never do: a mistyped path must not leave an empty one.

``look`` reads a file to which nobody else writes, and leaves nothing beside it. For ``read`` SQLite begins a log, which
it does not remove; where the file or its folder is read-only, ``read`` is ``look``."""

BUSY_SECONDS = 30.0
"""Seconds that whoever opens a file waits for others to finish."""

UNUSABLE = (sqlite3.Error, OSError, RuntimeError, ValueError)
"""Errors of opening. ``RuntimeError``: a link to itself, before Python 3.13; ``ValueError``: a NUL in the path."""


def create_private(path: str | os.PathLike[str], *, new: bool = False) -> None:
    """Begin a file for its owner alone, unless it is there; with ``new``, ``FileExistsError`` when it is.

    Before SQLite does: it would leave it to the umask. It gives its log the mode of the database, so this one decides
    for all three files.
    """
    with _BEGINNING:  # another thread must not open the new file before this one has closed it
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            if new:
                raise
            _check_usable(path)


_BEGINNING = threading.Lock()


def _check_usable(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` for a path that cannot be a database, without opening it.

    Do not open the file here: on POSIX, closing it would drop every lock that this process has on it. Another process
    could then believe to be the last user and delete the write-ahead log while this process still writes to it, and
    every commit after that would be lost.
    """
    place = Path(path)
    if not place.exists():  # a link to a file that is not there yet, and has no locks
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return
    if place.is_dir():
        code = errno.EISDIR
    elif not os.access(path, os.R_OK | os.W_OK):
        code = errno.EACCES
    elif not place.is_file():
        code = errno.EINVAL  # a pipe would be waited for
    else:
        return
    raise OSError(code, os.strerror(code), str(path))


def is_writable(path: str | os.PathLike[str]) -> bool:
    """Return whether this process may write to a file that is there, and begin others beside it, as SQLite does."""
    return os.access(path, os.W_OK) and os.access(Path(path).parent, os.W_OK)


def name_sqlite(path: str | os.PathLike[str], mode: Literal["write", "read", "look"]) -> str:
    """Make the address under which SQLite opens a file that is there, and begins none."""
    place = Path(path).resolve()
    # Where nothing may be written, SQLite cannot begin the log that it wants to read with, and would refuse.
    leaves_nothing = mode == "look" or (mode == "read" and not is_writable(place))
    if leaves_nothing and not place.with_name(f"{place.name}-wal").exists():
        return f"{place.as_uri()}?mode=ro&immutable=1"
    return f"{place.as_uri()}?mode={'rw' if mode == 'write' else 'ro'}"


def open_sqlite(
    path: str | os.PathLike[str],
    *,
    mode: Mode,
    patience: float = BUSY_SECONDS,
    prepare: Callable[[sqlite3.Connection], object] | None = None,
) -> sqlite3.Connection:
    """Open a connection to a file, for one thread at a time; raises ``UNUSABLE``.

    Transactions are begun by its user: the driver would begin one that only locks when it is too late to wait.
    ``prepare`` is handed the connection first; what it raises is raised, and the connection closed.
    """
    if mode == "make":
        with suppress(OSError):  # SQLite says what is wrong with the place
            create_private(path)
        place = os.path.join(os.curdir, path)  # noqa: PTH118 - ":memory:" is a file too, and a Path drops the "./"
    else:
        place = name_sqlite(path, mode)
    connection = sqlite3.connect(
        place, uri=mode != "make", timeout=patience, check_same_thread=False, isolation_level=None
    )
    try:
        connection.execute("PRAGMA trusted_schema=OFF")  # a file of a stranger calls no function that does anything
        if prepare is not None:
            prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def list_statements(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """List the statements that made what is in a file, tables, indexes, views and triggers, each with its name.

    A name may be there twice: a trigger may be called like a table.
    """
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return [(str(name), str(statement)) for name, statement in rows]


def enter_wal(connection: sqlite3.Connection, *, durable: bool = False) -> None:
    """Keep a log beside the file, so that those who read wait for nobody who writes.

    A process that is killed loses no commit; ``durable``: a machine that loses power does not either, and every commit
    waits for the disk.
    """
    # Two processes that open a new file at once both want its lock, and here SQLite does not wait for it by itself.
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            break
    connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
