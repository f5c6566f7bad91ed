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
        """As ``Statements`` says."""
        return self._connection.execute(statement, values).fetchall()

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """As ``Statements`` says."""
        if rows:
            self._connection.executemany(_write_insert(table, columns), rows)

    def execute(self, statement: str, values: Values = ()) -> None:
        """As ``Statements`` says."""
        self._connection.execute(statement, values)


class EngineStatements:
    """Statements on a connection of SQLAlchemy, handed to the driver as they are."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.is_file = connection.dialect.name == "sqlite"

    def fetch(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """As ``Statements`` says."""
        rows = self._connection.exec_driver_sql(self._write_marks(statement), tuple(values) or None)
        return [tuple(row) for row in rows]

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Values]) -> None:
        """As ``Statements`` says."""
        if rows:
            statement = self._write_marks(_write_insert(table, columns))
            self._connection.exec_driver_sql(statement, [tuple(row) for row in rows])

    def execute(self, statement: str, values: Values = ()) -> None:
        """As ``Statements`` says."""
        self._connection.exec_driver_sql(self._write_marks(statement), tuple(values) or None)

    def _write_marks(self, statement: str) -> str:
        # psycopg writes a value's mark otherwise. No statement of ours has either character in a text.
        return statement if self.is_file else statement.replace("?", "%s")


def _write_insert(table: str, columns: Sequence[str]) -> str:
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
"""The beginning of an address, or of what was meant as one; one letter before a colon is a drive."""

_FILE = "sqlite:///"


def read_address(url: str | os.PathLike[str]) -> Address:
    """Read what a program names a ledger by; raises ``UsageError`` for what is neither an address nor a path."""
    if isinstance(url, _InMemory):
        return Address(file=None, url=None)
    if isinstance(url, str):
        check_text("a ledger's url", url)
    path = _find_path(url)
    if path is not None:
        # Taken as it is: in an address, a question mark in a name would begin options.
        return Address(file=path, url=None)
    text = str(url)
    if not text.startswith(_FILE):
        return Address(file=None, url=_read_server(text))
    path, _, options = text.removeprefix(_FILE).partition("?")
    if path in ("", ":memory:") or options:
        raise UsageError("a ledger in SQLite needs a file and no options: sqlite:///adjudge.db", argument="url")
    return Address(file=path, url=None)


def _find_path(url: str | os.PathLike[str]) -> str | None:
    """The path of a file that is given as one, else ``None``: a ``Path``, and a text that is no address.

    Raises ``UsageError`` for what is no text and no path.
    """
    if isinstance(url, str):
        return None if _SCHEME.match(url) or not url.strip() else url
    try:
        path = os.fspath(url)
    except TypeError:
        path = ""
    if not isinstance(path, str) or not path:
        raise UsageError(f"a ledger's url is a text or the path of a file, got {type(url).__name__}", argument="url")
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
        """A transaction to read in; with ``snapshot``, all that it reads is as it is at one moment."""
        if self.file is not None:
            with self.use_file() as connection, _begin_in_file(connection, "BEGIN"):
                yield FileStatements(connection)
            return
        with self.connect(snapshot=snapshot) as engine_connection:
            yield EngineStatements(engine_connection)

    @contextmanager
    def write(self) -> Iterator[Statements]:
        """A transaction to write in; that of a file excludes every other writer."""
        if self.file is not None:
            with self.use_file() as connection, _begin_in_file(connection, "BEGIN IMMEDIATE"):
                yield FileStatements(connection)
            return
        with self.connect(writes=True) as engine_connection:
            yield EngineStatements(engine_connection)

    @contextmanager
    def use_file(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file of a ledger in SQLite, in no transaction."""
        with self._lock:
            if self._files is None:
                # Where it is now: a connection made later, from another folder, must be one to the same file.
                self._files = _FileConnections(partial(_connect_file, os.path.abspath(str(self.file))))  # noqa: PTH100 - links are followed by SQLite
                if self._is_closed:
                    self._files.close()  # so that none is kept open for a next use
            files = self._files
        with files.use() as connection:
            yield connection

    @contextmanager
    def connect(self, *, writes: bool = False, snapshot: bool = False) -> Iterator[Connection]:
        """A connection of SQLAlchemy in a transaction as that of ``read``, or of ``write``."""
        with self._use_engine() as engine:
            options: dict[str, Any] = {"adjudge_writes": True} if writes else {}
            if snapshot and self._address.url is not None:
                options["isolation_level"] = "REPEATABLE READ"
            chosen = engine.execution_options(**options)
            with chosen.begin() if writes else chosen.connect() as connection:
                yield connection

    def vacuum(self, tables: Sequence[str]) -> None:
        """Have PostgreSQL free the space of deleted rows of some tables, whose names are ours; nothing for a file."""
        if self.file is not None:
            return
        with self.explaining("vacuumed"), self._use_engine() as engine:
            chosen = engine.execution_options(isolation_level="AUTOCOMMIT")
            with chosen.connect() as connection:
                for table in tables:
                    connection.exec_driver_sql(f"VACUUM {table}")

    def check_file(self) -> None:
        """Raise ``UsageError`` where the file of a ledger in SQLite is none, or not there."""
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
        """Begin the file of a ledger in SQLite, unless it is there.

        Raises ``UsageError`` where it cannot be written.
        """
        if self.file is None:
            return
        try:
            create_private(self.file)
        except OSError as error:
            raise UsageError(f"the ledger {self.name} cannot be written: {error.strerror}; name another file") from None

    @contextmanager
    def explaining(self, what: str) -> Iterator[None]:
        """Raise ``LedgerError`` or ``UsageError`` for what a driver raises: that the ledger cannot be ``what``."""
        try:
            yield
        except Exception as error:
            problem = self._explain(error, what)
            if problem is None:
                raise
            raise problem from None

    def _explain(self, error: Exception, what: str) -> Exception | None:
        """Make the error to raise for one of the driver, which may quote the payload; ``None`` for another's error."""
        if isinstance(error, (UnicodeEncodeError, OverflowError)):
            # Raised by the driver, before anything reached the database.
            return UsageError(
                f"the ledger {self.name} cannot be {what}: a number is too large, or a text holds half a character"
            )
        if isinstance(error, UnicodeDecodeError):
            return LedgerError(f"the ledger {self.name} cannot be {what}: {type(error).__name__}")
        cause: BaseException | None = error if isinstance(error, sqlite3.Error) else None
        if cause is None and "sqlalchemy" in sys.modules:
            from sqlalchemy.exc import DBAPIError, SQLAlchemyError

            if isinstance(error, DBAPIError):  # whose own text quotes the payload
                cause = error.orig
            elif isinstance(error, SQLAlchemyError):
                return LedgerError(f"the ledger {self.name} cannot be {what}: {type(error).__name__}")
        if cause is None:
            return None
        reason = clean(" ".join(str(cause).split())[:300], keep_lines=False) + self._describe_refusal()
        kind = DamagedError if any(sign in reason for sign in _DAMAGE) else LedgerError
        return kind(f"the ledger {self.name} cannot be {what}: {reason}")

    def _describe_refusal(self) -> str:
        """Describe why this account may not use a ledger's file, of which SQLite says only that it cannot open it."""
        effective = os.access in os.supports_effective_ids  # else the account that began this program is asked about
        if self.file is None or os.access(self.file, os.R_OK | os.W_OK, effective_ids=effective):
            return ""
        try:
            mode = stat.S_IMODE(os.stat(self.file).st_mode)  # noqa: PTH116 - as in use_file
        except OSError:  # it is not there
            return ""
        return f"; this account may not read and write it (its mode is {mode:04o}): {_SHARE}"

    @contextmanager
    def _use_engine(self) -> Iterator[Engine]:
        """The engine, which is not closed before its last user is done.

        An engine takes back a connection that was in use while it closed, and then nobody closes that one: a reader
        whose task was cancelled is still reading in its thread. And two threads that both made one would lose one.
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
        for engine in [engine for engine, users in self._users.items() if not users and engine is not self._engine]:
            del self._users[engine]
            engine.dispose()

    def _make_engine(self) -> Engine:
        """Make the engine of a file, of a database in memory, or of a server.

        Raises ``UsageError`` where the package for a server is not installed.
        """
        from sqlalchemy import QueuePool, create_engine, event

        if self.file is not None:
            place = os.path.abspath(self.file)  # noqa: PTH100 - as in use_file
            # The pool of a file. For an address that names none, SQLAlchemy takes that of a database in memory, which
            # closes connections that other threads are using.
            engine = create_engine("sqlite:///", creator=partial(_connect_file, place), poolclass=QueuePool)
            event.listen(engine, "begin", _begin_on_engine)
            return engine
        if self._address.url is None:
            # One connection, which is the database: whoever comes second waits.
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
        """Close all connections, those in use once they are not.

        A thread whose reader was cancelled may still come: it gets a connection, which is closed after that use.
        """
        with self._lock:
            self._is_closed, self._engine = True, None
            files, self._files = self._files, None
            self._dispose_unused()
        if files is not None:
            files.close()


class DamagedError(LedgerError):
    """A store that is no database, or no text, any more."""


_SHARE = "share the file and its folder with a group, or ask through adjudge serve"
"""The remedy where this account may not use a ledger's file."""

_DAMAGE = ("malformed", "not a database", "decode to UTF-8", "invalid byte sequence")


class _FileConnections:
    """Connections to one SQLite file, each for one thread at a time, and kept open for the next."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Give a connection, an idle one if there is one; it is closed after its use if enough others are idle."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                keeps = not self._is_closed and len(self._idle) < _MOST_IDLE
                if keeps:
                    self._idle.append(connection)
            if not keeps:
                connection.close()

    def close(self) -> None:
        """Close all; one in use is closed when its user is done."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


_MOST_IDLE = 5
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
    writes = connection.get_execution_options().get("adjudge_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_server(connection: Any, _: object) -> None:
    """Keep PostgreSQL from compiling statements: ours take milliseconds, and compiling one takes ten times as long."""
    connection.autocommit = True  # a setting that is made in a transaction ends when that is rolled back
    connection.execute("SET jit = off")
    connection.autocommit = False


def _connect_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _connect_file(path: str) -> sqlite3.Connection:
    return open_sqlite(path, mode="make", patience=BUSY_SECONDS, prepare=_set_up_file)


def _set_up_file(connection: sqlite3.Connection) -> None:
    enter_wal(connection, durable=True)
    connection.execute("PRAGMA secure_delete=ON")  # what is erased is overwritten
