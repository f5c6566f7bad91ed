"""A ledger's database: its address, its connections, and what its errors are called.

What the ledger itself reads and writes is SQL as text, with ``?`` for a value, and the same for both databases. A
SQLite file is reached through ``sqlite3``, which costs a program that appends a few decisions neither the time nor the
memory of a toolkit. PostgreSQL, and the tables that others keep beside the ledger, are reached through SQLAlchemy.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from adjudge.errors import LedgerError, UsageError
from adjudge.formats.files import check_regular
from adjudge.formats.sqlite import create_private, enter_wal, open_sqlite
from adjudge.formats.text import clean
from adjudge.ledger.payload import check_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL


BUSY_SECONDS = 30
"""The time that a writer waits for others to finish."""

Values = Sequence[Any]
"""The values that a statement's marks stand for, or that a row holds: integers, floats, texts, bytes and ``None``."""


class Statements(Protocol):
    """A transaction of either database, in which SQL is executed."""

    is_file: bool
    """True if the database is SQLite; few statements differ."""

    def fetch(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows; each ``?`` stands for one of the values."""
        ...

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows into a table."""
        ...

    def execute(self, statement: str, values: Values = ()) -> None:
        """Execute a statement that returns no rows."""
        ...


class FileStatements:
    """Statements on a connection to a SQLite file."""

    is_file = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def fetch(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows, as ``Statements`` describes it."""
        return self._connection.execute(statement, values).fetchall()

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows into a table, as ``Statements`` describes it."""
        if rows:
            self._connection.executemany(_write_insert(table, columns), rows)

    def execute(self, statement: str, values: Values = ()) -> None:
        """Execute a statement that returns no rows, as ``Statements`` describes it."""
        self._connection.execute(statement, values)


class EngineStatements:
    """Statements on a connection of SQLAlchemy, which are handed to the driver as they are written."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.is_file = connection.dialect.name == "sqlite"

    def fetch(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows, as ``Statements`` describes it."""
        rows = self._connection.exec_driver_sql(self._write_marks(statement), tuple(values) or None)
        return [tuple(row) for row in rows]

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """Insert rows into a table, as ``Statements`` describes it."""
        if rows:
            statement = self._write_marks(_write_insert(table, columns))
            self._connection.exec_driver_sql(statement, [tuple(row) for row in rows])

    def execute(self, statement: str, values: Values = ()) -> None:
        """Execute a statement that returns no rows, as ``Statements`` describes it."""
        self._connection.exec_driver_sql(self._write_marks(statement), tuple(values) or None)

    def _write_marks(self, statement: str) -> str:
        """Write the marks for values as the driver has them: ``?`` for SQLite, ``%s`` for PostgreSQL."""
        # No statement of ours has either character in a text.
        return statement if self.is_file else statement.replace("?", "%s")


def _write_insert(table: str, columns: Sequence[str]) -> str:
    """Write the statement that inserts a row into a table, with a mark for the value of each column."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - the names are ours, the values are bound


# ---------------------------------------------------------------- the address


class _InMemory(str):
    """The type of ``IN_MEMORY``, so that no text that somebody writes is taken for it."""

    __slots__ = ()


IN_MEMORY: Final = _InMemory("in memory")
"""The address of a ledger that is gone when it is closed. Only parts of adjudge that keep nothing use it: nobody could
verify later what it recorded.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The place of a ledger: a SQLite file, a database in PostgreSQL, or neither and so in memory."""

    file: str | None
    url: URL | None
    """The database in PostgreSQL; ``None`` for a file."""

    @property
    def name(self) -> str:
        """The address as it is shown, without a password."""
        if self.file is None and self.url is None:
            return IN_MEMORY
        return f"sqlite:///{self.file}" if self.url is None else self.url.render_as_string(hide_password=True)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|:")
"""The beginning of an address, or of what was meant as one. A single letter before a colon is a drive of Windows."""

_FILE = "sqlite:///"


def read_address(url: str | os.PathLike[str]) -> Address:
    """Read the address by which a program names a ledger: a URL or a path.

    Raises ``UsageError`` for anything else.
    """
    if isinstance(url, _InMemory):
        return Address(file=None, url=None)
    if isinstance(url, str):
        check_text("a ledger's url", url)
    path = _find_path(url)
    if path is not None:
        # Not made a URL, in which a question mark in the name of the file would begin options.
        return Address(file=path, url=None)
    text = str(url)
    if not text.startswith(_FILE):
        return Address(file=None, url=_read_server(text))
    path, _, options = text.removeprefix(_FILE).partition("?")
    if path in ("", ":memory:") or options:
        raise UsageError("a ledger in SQLite needs a file and no options: sqlite:///adjudge.db", argument="url")
    return Address(file=path, url=None)


def _find_path(address: str | os.PathLike[str]) -> str | None:
    """Return the path of a file that is given as a path: a ``Path``, or a text without a scheme. Else return ``None``.

    Raises ``UsageError`` for a value that is neither a text nor a path.
    """
    if isinstance(address, str):
        return None if _SCHEME.match(address) or not address.strip() else address
    try:
        path = os.fspath(address)
    except TypeError:
        path = ""
    if not isinstance(path, str) or not path:
        raise UsageError(
            f"a ledger's url is a text or the path of a file, got {type(address).__name__}", argument="url"
        )
    return path


def _read_server(text: str) -> URL:
    """Read the address of a PostgreSQL server; raise ``UsageError`` for any other address."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is not None and url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url is not None and url.drivername == "sqlite":
        raise UsageError("a ledger in SQLite needs a file and no options: sqlite:///adjudge.db", argument="url")
    raise UsageError(
        "a ledger's url is sqlite:///FILE or postgresql://HOST/DATABASE, or the path of a file; this one is neither",
        argument="url",
    )


# ---------------------------------------------------------------- connections


class Database:
    """The connections of one ledger. Made when they are needed; its methods block, so they are called from threads."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self._address = read_address(url)
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._users: dict[Engine, int] = {}
        self._files: _FileConnections | None = None
        self._is_closed = False

    @property
    def name(self) -> str:
        """The address, without a password."""
        return self._address.name

    @property
    def file(self) -> str | None:
        """The path of a ledger in SQLite."""
        return self._address.file

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator[Statements]:
        """Begin a transaction to read in, which ends with the block.

        With ``snapshot``, all that it reads is as it is at one moment.
        """
        if self.file is not None:
            with self.use_file() as connection, _begin_in_file(connection, "BEGIN"):
                yield FileStatements(connection)
            return
        with self.connect(snapshot=snapshot) as engine_connection:
            yield EngineStatements(engine_connection)

    @contextmanager
    def write(self) -> Iterator[Statements]:
        """Begin a transaction to write in, which ends with the block; that on a file makes other writers wait."""
        if self.file is not None:
            with self.use_file() as connection, _begin_in_file(connection, "BEGIN IMMEDIATE"):
                yield FileStatements(connection)
            return
        with self.connect(writes=True) as engine_connection:
            yield EngineStatements(engine_connection)

    @contextmanager
    def use_file(self) -> Iterator[sqlite3.Connection]:
        """Give a connection to the file of a ledger in SQLite, without a transaction."""
        with self._lock:
            if self._files is None:
                # An absolute path: a connection that is made later, in another working directory, is to the same file.
                self._files = _FileConnections(partial(_connect_file, os.path.abspath(str(self.file))))  # noqa: PTH100 - links are followed by SQLite
                if self._is_closed:
                    self._files.close()  # so that connections are closed after their use
            files = self._files
        with files.use() as connection:
            yield connection

    @contextmanager
    def connect(self, *, writes: bool = False, snapshot: bool = False) -> Iterator[Connection]:
        """Give a connection of SQLAlchemy in a transaction, as ``read`` or ``write`` begin one."""
        with self._use_engine() as engine:
            options: dict[str, Any] = {"adjudge_writes": True} if writes else {}
            if snapshot and self._address.url is not None:
                options["isolation_level"] = "REPEATABLE READ"
            configured_engine = engine.execution_options(**options)
            with configured_engine.begin() if writes else configured_engine.connect() as connection:
                yield connection

    def vacuum(self, tables: Sequence[str]) -> None:
        """Have PostgreSQL free the space of deleted rows of some tables, whose names are ours; nothing for a file."""
        if self.file is not None:
            return
        with self.explaining("vacuumed"), self._use_engine() as engine:
            autocommit_engine = engine.execution_options(isolation_level="AUTOCOMMIT")
            with autocommit_engine.connect() as connection:
                for table in tables:
                    connection.exec_driver_sql(f"VACUUM {table}")

    def check_file(self) -> None:
        """Raise ``UsageError`` where the file of a ledger in SQLite is not there, is no file, or cannot be read."""
        if self.file is None:
            return
        try:
            check_regular(self.file)
        except FileNotFoundError:
            raise UsageError(f"there is no ledger at {self.name}; the first append makes one") from None
        except (OSError, ValueError) as error:  # SQLite would wait for whoever writes to a pipe
            reason = getattr(error, "strerror", None) or "no file has this name"
            remedy = _SHARE if isinstance(error, PermissionError) else "name another file"
            raise UsageError(f"the ledger {self.name} cannot be read: {reason}; {remedy}") from None

    def create_file(self) -> None:
        """Create the file of a ledger in SQLite, unless it is there.

        Raises ``UsageError`` where it cannot be written.
        """
        if self.file is None:
            return
        try:
            create_private(self.file)
        except OSError as error:
            raise UsageError(f"the ledger {self.name} cannot be written: {error.strerror}; name another file") from None

    @contextmanager
    def explaining(self, verb: str) -> Iterator[None]:
        """Replace the errors of a database driver in the block by ``LedgerError`` or ``UsageError``.

        They say that the ledger cannot be ``verb``, a participle such as ``read`` or ``written``.
        """
        try:
            yield
        except Exception as error:
            problem = self._explain(error, verb)
            if problem is None:
                raise
            raise problem from None

    def _explain(self, error: Exception, verb: str) -> Exception | None:
        """Make the error to raise in place of one of a database driver; ``None`` if the error is not one of a driver.

        The driver's own text may quote the payload.
        """
        if isinstance(error, (UnicodeEncodeError, OverflowError)):
            # Raised by the driver, before anything reached the database.
            return UsageError(
                f"the ledger {self.name} cannot be {verb}: a number is too large, or a text holds half a character"
            )
        if isinstance(error, UnicodeDecodeError):
            return LedgerError(f"the ledger {self.name} cannot be {verb}: {type(error).__name__}")
        driver_error: BaseException | None = error if isinstance(error, sqlite3.Error) else None
        if driver_error is None and "sqlalchemy" in sys.modules:
            from sqlalchemy.exc import DBAPIError, SQLAlchemyError

            if isinstance(error, DBAPIError):  # whose own text quotes the payload
                driver_error = error.orig
            elif isinstance(error, SQLAlchemyError):
                return LedgerError(f"the ledger {self.name} cannot be {verb}: {type(error).__name__}")
        if driver_error is None:
            return None
        reason = clean(" ".join(str(driver_error).split())[:300], keep_lines=False) + self._describe_refusal()
        error_type = DamagedError if any(sign in reason for sign in _SIGNS_OF_DAMAGE) else LedgerError
        return error_type(f"the ledger {self.name} cannot be {verb}: {reason}")

    def _describe_refusal(self) -> str:
        """Describe why this account may not use the file of a ledger; empty if it may.

        SQLite itself says only that it cannot open the file.
        """
        # Where the system cannot check the effective account, the account that started this program is checked.
        uses_effective_ids = os.access in os.supports_effective_ids
        if self.file is None or os.access(self.file, os.R_OK | os.W_OK, effective_ids=uses_effective_ids):
            return ""
        try:
            mode = stat.S_IMODE(os.stat(self.file).st_mode)  # noqa: PTH116 - as in use_file
        except OSError:  # it is not there
            return ""
        return f"; this account may not read and write it (its mode is {mode:04o}): {_SHARE}"

    @contextmanager
    def _use_engine(self) -> Iterator[Engine]:
        """Give the engine, which is made if there is none, and which is disposed of only after its last user is done.

        An engine takes back a connection that was in use while it was disposed of, and then nobody closes that
        connection: a reader whose task was cancelled may still be reading in its thread. The lock keeps two threads
        from making an engine each, of which one would be lost.
        """
        with self._lock:
            self._engine = engine = self._engine or self._make_engine()
            self._users[engine] = self._users.get(engine, 0) + 1
        try:
            yield engine
        finally:
            with self._lock:
                self._users[engine] -= 1
                if self._is_closed:
                    self._engine = None
                self._dispose_unused()

    def _dispose_unused(self) -> None:
        """Dispose of the engines that nobody uses any more, except for the current one."""
        for engine in [engine for engine, users in self._users.items() if not users and engine is not self._engine]:
            del self._users[engine]
            engine.dispose()

    def _make_engine(self) -> Engine:
        """Make the engine of a file, of a database in memory, or of a server.

        Raises ``UsageError`` where the package for a server is not installed.
        """
        from sqlalchemy import QueuePool, create_engine, event

        if self.file is not None:
            path = os.path.abspath(self.file)  # noqa: PTH100 - as in use_file
            # The pool is named, because this address names no file: SQLAlchemy would take the pool for a database in
            # memory, which closes connections that other threads are using.
            engine = create_engine("sqlite:///", creator=partial(_connect_file, path), poolclass=QueuePool)
            event.listen(engine, "begin", _begin_on_engine)
            return engine
        if self._address.url is None:
            # The one connection is the database itself, so a second user waits for it.
            engine = create_engine(
                "sqlite://", creator=_connect_memory, poolclass=QueuePool, pool_size=1, max_overflow=0
            )
            event.listen(engine, "begin", _begin_on_engine)
            return engine
        try:
            engine = create_engine(self._address.url)
        except ImportError:
            raise UsageError(
                "PostgreSQL needs the package psycopg; to have it, pip install 'adjudge[postgres]'"
            ) from None
        event.listen(engine, "connect", _set_up_server)
        return engine

    def close(self) -> None:
        """Close all connections; those in use are closed when their users are done.

        A thread whose reader was cancelled may still ask for a connection: it gets one, which is closed after that use.
        """
        with self._lock:
            self._is_closed, self._engine = True, None
            files, self._files = self._files, None
            self._dispose_unused()
        if files is not None:
            files.close()


class DamagedError(LedgerError):
    """The file of a ledger is damaged: it is no database any more, or a text in it is no UTF-8."""


_SHARE = "share the file and its folder with a group, or ask through adjudge serve"
"""The remedy where this account may not use a ledger's file."""

_SIGNS_OF_DAMAGE = ("malformed", "not a database", "decode to UTF-8", "invalid byte sequence")


class _FileConnections:
    """Connections to one SQLite file, each for one thread at a time, and kept open for the next."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for the block: an idle one, or a new one if none is idle.

        It is kept open for the next use, unless enough others are idle.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                is_kept = not self._is_closed and len(self._idle) < _MOST_IDLE_CONNECTIONS
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def close(self) -> None:
        """Close all connections; one that is in use is closed when its user is done."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


_MOST_IDLE_CONNECTIONS = 5
"""Connections to a file that are kept open for their next use."""


@contextmanager
def _begin_in_file(connection: sqlite3.Connection, statement: str) -> Iterator[None]:
    """Begin a transaction with ``statement``; commit it at the end, or roll it back on an exception."""
    connection.execute(statement)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _begin_on_engine(connection: Connection) -> None:
    """Begin a transaction on a connection to SQLite, which for a writer excludes every other writer at once."""
    writes = connection.get_execution_options().get("adjudge_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_server(connection: Any, _: object) -> None:
    """Keep PostgreSQL from compiling statements: ours take milliseconds, and compiling one takes ten times as long."""
    connection.autocommit = True  # else a rollback would undo the setting
    connection.execute("SET jit = off")
    connection.autocommit = False


def _connect_memory() -> sqlite3.Connection:
    """Open a new database in memory; ``isolation_level=None`` keeps sqlite3 from beginning transactions by itself."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _connect_file(path: str) -> sqlite3.Connection:
    """Open a connection to the file of a ledger in SQLite, which is created if it is missing."""
    return open_sqlite(path, mode="make", patience=BUSY_SECONDS, prepare=_set_up_file)


def _set_up_file(connection: sqlite3.Connection) -> None:
    """Set up a connection to a SQLite file: a durable write-ahead log, and deleted rows that are overwritten."""
    enter_wal(connection, durable=True)
    connection.execute("PRAGMA secure_delete=ON")
