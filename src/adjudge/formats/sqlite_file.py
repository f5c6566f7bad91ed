"""``SqliteFile``: a SQLite file that adjudge makes, its tables and locks, and the errors for a file of another program.

Runs, their batches, labels and cached replies are kept in such files, each kind in tables of its own. Every file has a
table ``about`` with its schema, and with facts about the whole file.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.sqlite import BUSY_SECONDS, UNUSABLE, Mode, enter_wal, is_writable, list_statements, open_sqlite
from adjudge.formats.text import clean

PAGE = 200
"""The number of rows that ``stream`` reads at once."""

_ABOUT_TABLE = "CREATE TABLE about (name TEXT PRIMARY KEY, said TEXT NOT NULL) STRICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file: its tables, how safe its commits are, and the messages for a file that cannot be used.

    The messages are templates with ``{path}``, ``{folder}``, ``{schema}`` and ``{why}``.
    """

    schema: str
    tables: tuple[str, ...]
    """The statements that make its tables, besides ``about``."""
    unreadable: str
    unwritable: str
    other_schema: str
    """For a database of another program, or of another version."""
    durable: bool = False
    """True if a commit waits for the disk, and so is there after a loss of power too."""
    options: tuple[str, ...] = ()
    """Pragmas for each connection that may write."""
    check: Callable[[Path], object] | None = None
    """Raises ``UsageError`` for a path that must not even be opened; called before each opening."""


class SqliteFile:
    """One connection to a file of ours, for one thread at a time; others wait.

    It is opened when it is first used, and again when it is used after ``close``. With the mode ``make``, opening
    begins a file that is not there. With ``write``, a file that may not be written is opened to be read. Opening waits
    ``open_wait`` seconds for other processes, and a statement ``statement_wait`` (``None``: as long as opening).

    Opening raises ``UsageError`` for a file that is not of the kind, before anything in it is changed: it may be
    somebody else's database. So it does for tables, views and triggers that are not the kind's: a few bytes of them
    can make a query that never ends. Reading raises it for a damaged file. Writing raises ``AdjudgeError`` where that
    fails.
    """

    def __init__(
        self,
        path: Path,
        kind: FileKind,
        *,
        mode: Mode = "write",
        open_wait: float = BUSY_SECONDS,
        statement_wait: float | None = None,
    ) -> None:
        self.path = path
        self.kind = kind
        self.mode: Mode = mode
        """The mode of the next opening."""
        self._open_wait = open_wait
        self._statement_wait = statement_wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None

    # ---------------------------------------------------------------- opening and closing

    def open(self) -> Self:
        """Open the file now; raises ``UsageError`` for one that cannot be used."""
        with self.using():
            return self

    def begin(self) -> Self:
        """Open the file, and make its tables if it has none; raises ``AdjudgeError`` where it cannot be written."""
        with self._lock:
            if self._connection is None:
                self._keep_connection(self._open_connection("make", self._explain_change))
        return self

    def has_tables(self) -> bool:
        """Return whether there is a file with anything in it; a process may have been killed before it began one."""
        if not self.path.is_file():
            return False
        try:
            with closing(open_sqlite(self.path, mode=self._choose_mode(), patience=self._open_wait)) as connection:
                return _has_tables(connection)
        except UNUSABLE as error:
            raise self.explain_unreadable(error) from None

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        with self._lock:
            if self._finalizer is not None:
                self._finalizer()
            self._connection = self._finalizer = None

    def remove(self) -> None:
        """Close the file, and delete it with what SQLite put beside it."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, which no other thread uses meanwhile; what SQLite raises is raised as it is."""
        with self._lock:
            if self._connection is None:
                self._keep_connection(self._open_connection(self._choose_mode(), self.explain_unreadable))
            assert self._connection is not None  # noqa: S101 - for the type checker
            yield self._connection

    # ---------------------------------------------------------------- reading

    def ask(self, query: str, /, *values: object, **named: object) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        with self._reading() as connection:
            return connection.execute(query, named or values).fetchall()

    def ask_one(self, query: str, /, **named: object) -> dict[str, Any]:
        """Run a query and return its only row, by the names of its columns."""
        with self._reading() as connection:
            cursor = connection.execute(query, named)
            return dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, read a page at a time, as they were when the query began.

        It has a connection of its own, so that a reader that is half-way does not block a writer's commits.
        """
        try:
            with closing(self._open_connection(self._choose_mode(), self.explain_unreadable)) as connection:
                rows = connection.execute(query)
                while page := rows.fetchmany(PAGE):
                    yield from page
        except sqlite3.Error as error:
            raise self.explain_unreadable(error) from None

    def find_fact(self, name: str) -> str | None:
        """Find a fact about the whole file."""
        rows = self.ask("SELECT said FROM about WHERE name = ?", name)
        return rows[0][0] if rows else None

    # ---------------------------------------------------------------- writing

    def execute(self, statement: str, /, *values: object, **named: object) -> int:
        """Execute a statement, in the ``change`` that is under way if there is one; return how many rows it changed."""
        with self._writing() as connection:
            return connection.execute(statement, named or values).rowcount

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Execute several statements in one transaction, which waits for those of other processes; an error undoes all.

        A change inside another change is part of the outer one.
        """
        with self._writing() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def set_fact(self, name: str, value: str) -> None:
        """Keep a fact about the whole file."""
        self.execute(SET_FACT, name, value)

    def clear_space(self) -> bool:
        """Remove deleted data from the file and the log beside it; return false if another process still reads the log.

        ``VACUUM`` writes the file anew without free pages, which may still have deleted rows.
        """
        with self._writing() as connection:
            connection.execute("VACUUM")
            is_blocked = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not is_blocked

    # ---------------------------------------------------------------- errors

    def explain_unreadable(self, error: Exception) -> UsageError:
        """Make the error for a file that cannot be opened or read."""
        return UsageError(self._fill_message(self.kind.unreadable, error))

    def explain_unwritable(self, error: Exception) -> AdjudgeError:
        """Make the error for a file that cannot be written."""
        return AdjudgeError(self._fill_message(self.kind.unwritable, error))

    def _explain_change(self, error: Exception) -> AdjudgeError:
        """Make the error for a statement that failed to write: the file cannot be written, or it is damaged."""
        # A full disk, or a lock that is never freed, does not mean that the file is damaged; any other error does.
        is_operational = isinstance(error, sqlite3.OperationalError)
        return self.explain_unwritable(error) if is_operational else self.explain_unreadable(error)

    def _fill_message(self, template: str, error: Exception | None = None) -> str:
        """Fill a message of the file's kind with its path, folder and schema, and with the error's text."""
        reason = "" if error is None else clean(str(error)[:200], keep_lines=False)
        return template.format(path=self.path, folder=self.path.parent, schema=self.kind.schema, why=reason)

    # ---------------------------------------------------------------- the connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; an error of SQLite means that the file cannot be read, and raises ``UsageError``."""
        try:
            with self.using() as connection:
                yield connection
        except sqlite3.Error as error:
            raise self.explain_unreadable(error) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; an error of SQLite becomes the one that ``_explain_change`` makes."""
        try:
            with self.using() as connection:
                yield connection
        except sqlite3.Error as error:
            raise self._explain_change(error) from None

    def _choose_mode(self) -> Mode:
        """Return the mode to open in: ``read`` instead of ``write`` for a file that may not be written."""
        return "read" if self.mode == "write" and not is_writable(self.path) else self.mode

    def _keep_connection(self, connection: sqlite3.Connection) -> None:
        """Keep an open connection for later uses."""
        self._connection = connection
        self._finalizer = weakref.finalize(self, connection.close)  # closes it if ``close`` is never called

    def _open_connection(self, mode: Mode, explain: Callable[[Exception], AdjudgeError]) -> sqlite3.Connection:
        """Open the file.

        Raises ``UsageError`` for a file of another kind, and for any other error the exception that ``explain`` makes.
        """
        if self.kind.check is not None:
            self.kind.check(self.path)
        try:
            return open_sqlite(
                self.path, mode=mode, patience=self._open_wait, prepare=partial(self._prepare_connection, mode)
            )
        except UsageError:  # of a file of another schema; it is a ValueError, so UNUSABLE would catch it
            raise
        except UNUSABLE as error:
            raise explain(error) from None

    def _prepare_connection(self, mode: Mode, connection: sqlite3.Connection) -> None:
        """Prepare a new connection: make tables in the mode ``make``, check the schema, and then set options.

        A database of another program is refused before anything in it is changed.
        """
        if mode == "make":
            self._make_tables(connection)
        self._check_schema(connection)
        if mode in ("make", "write"):
            enter_wal(connection, durable=self.kind.durable)
            for option in self.kind.options:
                connection.execute(option)
        if self._statement_wait is not None:
            connection.execute(f"PRAGMA busy_timeout={self._statement_wait * 1000:.0f}")

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make the tables of an empty file; one that has any table is left as it is."""
        if _has_tables(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        if not _has_tables(connection):  # another process may have made them meanwhile
            for statement in (_ABOUT_TABLE, *self.kind.tables):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES ('schema', ?)", (self.kind.schema,))
        connection.execute("COMMIT")

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        """Raise ``UsageError`` for a file of another schema, or with a table, view or trigger that is not ours."""
        # This comes before any query: a foreign table or view may be made so that reading it never ends.
        statements = [(name, _fold_blanks(statement)) for name, statement in list_statements(connection)]
        present = {statement for _, statement in statements}
        row = None
        if _fold_blanks(_ABOUT_TABLE) in present:
            row = connection.execute("SELECT said FROM about WHERE name = 'schema'").fetchone()
        if row is None or row[0] != self.kind.schema:
            raise UsageError(self._fill_message(self.kind.other_schema))
        expected = {_fold_blanks(statement) for statement in (_ABOUT_TABLE, *self.kind.tables)}
        allowed = {*expected, *_SQLITE_TABLES}
        foreign_names = [name for name, statement in statements if statement not in allowed]
        if foreign_names:
            raise self.explain_unreadable(ValueError(f"{foreign_names[0][:60]!r} in it is not as adjudge makes it"))
        missing = expected - present
        if missing:  # a missing trigger would allow rows to be changed
            raise self.explain_unreadable(ValueError(f"it lacks {min(missing)[:60]!r}, which adjudge makes"))


_SQLITE_TABLES = (
    "CREATE TABLE sqlite_sequence(name,seq)",
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
)
"""Tables that SQLite makes itself; the last two are made by ``ANALYZE``."""


def _fold_blanks(statement: str) -> str:
    """Write a statement with single blanks, so that statements can be compared."""
    return " ".join(statement.split())


SET_FACT = "INSERT OR REPLACE INTO about VALUES (?, ?)"


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
