"""Where entries are kept: one table, through SQLAlchemy Core, on SQLite or PostgreSQL.

Entries are appended in one transaction that first excludes every other writer, so places have no gaps and every hash
names the one before it, with any number of threads, processes and machines. The database refuses updates and deletions
by itself. The owner of its file can remove those triggers; the hashes show what was changed then.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.errors import LedgerError, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.files import check_regular
from adjudge.formats.sqlite import UNUSABLE, create_private, enter_wal, open_sqlite
from adjudge.formats.text import clean, show
from adjudge.ledger.entry import COLUMNS, LEDGER_SCHEMA, NO_PREV, Head, Row, format_time, hash_entry, signed_bytes
from adjudge.ledger.payload import Draft, check_text, encode_payload
from adjudge.ledger.revision import VERSION_TABLE, check_revision, write_revision
from adjudge.result import make_id

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, MetaData, Select, Table
    from sqlalchemy.engine import URL

    from adjudge.ledger.signature import Signer


TABLE = "adjudge_ledger"


@cache
def make_table() -> Table:
    """The table's description; every database makes its own form of it."""
    from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, Table, Text

    types = {"seq": BigInteger().with_variant(Integer(), "sqlite"), "payload": LargeBinary()}
    columns = [
        Column(
            name,
            types.get(name, Text()),
            primary_key=name == "seq",
            autoincrement=False,
            nullable=name in ("payload", "signature"),
            unique=name == "id",
            index=name in ("at", "subject"),
        )
        for name in COLUMNS
    ]
    # STRICT: otherwise SQLite keeps whatever type it is given, and a number that became a text hashes the same.
    return Table(TABLE, MetaData(), *columns, sqlite_strict=True)


_KEPT = [name for name in COLUMNS if name != "payload"]

_CHANGED = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in _KEPT)

_EXCUSED = f"EXISTS (SELECT 1 FROM {TABLE} e WHERE e.kind = 'erasure' AND e.subject = OLD.id)"  # noqa: S608 - the name is ours

_FIXED = f"NEW.payload IS NOT NULL OR OLD.kind IN ('genesis', 'erasure') OR {_CHANGED} OR NOT {_EXCUSED}"


_NO_DELETE = f"""CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE}
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: nothing is deleted'); END"""

_NO_UPDATE = f"""CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} WHEN {_FIXED}
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: nothing is changed'); END"""

# INSERT OR REPLACE deletes without asking the first of these.
_IN_ORDER = f"""CREATE TRIGGER {TABLE}_in_order BEFORE INSERT ON {TABLE}
WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM {TABLE})
OR EXISTS (SELECT 1 FROM {TABLE} WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: entries are added at the end'); END"""  # noqa: S608 - the name is ours

SQLITE_DDL = (_NO_DELETE, _NO_UPDATE, _IN_ORDER)


_REFUSE = f"""CREATE OR REPLACE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'a ledger is append-only: nothing is changed or deleted'; END $$"""

_CHECK = f"""CREATE OR REPLACE FUNCTION {TABLE}_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF {_FIXED.replace("IS NOT OLD", "IS DISTINCT FROM OLD")}
THEN RAISE EXCEPTION 'a ledger is append-only: nothing is changed or deleted'; END IF; RETURN NEW; END $$"""

_EACH = f"FOR EACH ROW EXECUTE FUNCTION {TABLE}"

POSTGRES_DDL = (
    _REFUSE,
    _CHECK,
    f"CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE} {_EACH}_refuse()",
    f"CREATE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE} EXECUTE FUNCTION {TABLE}_refuse()",
    f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} {_EACH}_check()",
)


T = TypeVar("T")


BUSY_SECONDS = 30
"""How long a writer waits for others to finish."""

PAGE = 200
"""Rows that are fetched at once: their payloads, which can be large, are in memory together."""

_CREATE_LOCK = 0x61646A75
"""Held on PostgreSQL while the table is looked for and made; any number that is ours."""

_LOCK_TABLE = f"pg_advisory_xact_lock({_CREATE_LOCK}::bigint << 32 | '{TABLE}'::regclass::oid::bigint)"
"""Held on PostgreSQL by whoever writes."""


def check_place(seq: object) -> None:
    """Raise ``UsageError`` for what is no place of an entry; no database can even be asked for such a number."""
    place = check_whole_number("an entry's place", seq)
    if not 1 <= place < 2**63:
        raise explain_missing(place)


def explain_missing(seq: int) -> UsageError:
    """The error for a place at which no entry is."""
    return UsageError(f"the ledger has no entry {show(seq)}; `adjudge ledger list` shows those it has")


class Store:
    """A ledger's database. Opened at first use; its methods block, so they are called from threads."""

    def __init__(self, url: str | os.PathLike[str], *, signer: Signer | None, about: dict[str, Any]) -> None:
        """``about`` is what the genesis entry says beside the schema and the public key."""
        self._url = _read_url(url)
        self._signer, self._about = signer, about
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._users: dict[Engine, int] = {}
        self._is_ready = False
        self._made: tuple[MetaData, ...] = ()
        self._found: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The address, without a password."""
        return self._url.render_as_string(hide_password=True)

    # ---------------------------------------------------------------- reading

    def fetch(self, *, after: int = 0, count: int = PAGE, **wanted: Any) -> list[Row]:
        """The next rows in order: of a ``kind`` and a ``subject``, and ``since`` and ``until`` a time."""
        with self._reading() as connection:
            statement = _select(after, wanted).limit(count)
            return [_plain(row) for row in connection.execute(statement)]

    def stream(self) -> Generator[Row]:
        """All rows, as they are at one moment."""
        with self._reading() as connection:
            options = {"yield_per": PAGE, "stream_results": True}
            for part in connection.execution_options(**options).execute(_select(0, {})).partitions():
                yield from map(_plain, part)

    def head(self) -> Head | None:
        """The last entry; ``None`` when there is none."""
        with self._reading() as connection:
            found = _find_last(connection)
        return Head(seq=found[0], hash=found[1]) if found[0] else None

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        # Reading makes no ledger: a mistyped address would otherwise verify as an empty one.
        if self._is_file:
            self._check_file()
        with self._explaining("read"), self._use_engine() as engine, engine.connect() as connection:
            from sqlalchemy import inspect

            if not inspect(connection).has_table(TABLE):
                raise UsageError(f"{self.name} holds no ledger; the first append makes one")
            yield connection

    def _check_file(self) -> None:
        try:
            check_regular(str(self._url.database))
        except FileNotFoundError:
            raise UsageError(f"there is no ledger at {self.name}; the first append makes one") from None
        except (OSError, ValueError) as error:  # SQLite would wait for whoever writes to a pipe
            why = getattr(error, "strerror", None) or "no file has this name"
            raise UsageError(f"the ledger {self.name} cannot be read: {why}; name another file") from None

    # ---------------------------------------------------------------- writing

    def append(self, drafts: Sequence[Draft]) -> list[int]:
        """Record some drafts, in their order, in one durable commit, and return their places."""
        with self._writing() as connection:
            return self._insert(connection, drafts)

    def prepare(self) -> None:
        """Make the ledger if there is none, and find out whether it can be written."""
        with self._writing():
            pass

    def transact(self, work: Callable[[Transaction], T], tables: MetaData) -> T:
        """What some work makes of the ledger and of tables beside it, in one durable commit, or nothing of it."""
        with self._writing() as connection:
            # Each time, and not once: an upgrade may have come between, and a column may forbid something since.
            self._check_revision(connection)
            if tables not in self._made:
                tables.create_all(connection)
            said = work(Transaction(connection, lambda draft: self._insert(connection, [draft])[0]))
        self._made = (*self._made, tables) if tables not in self._made else self._made
        return said

    def look(self, work: Callable[[Connection], T], tables: MetaData) -> T | None:
        """What some reading makes of tables beside the ledger; ``None`` where they were never written."""
        with self._reading() as connection:
            there = self._check_revision(connection, tables)
            return work(connection) if there else None

    def _check_revision(self, connection: Connection, tables: MetaData | None = None) -> bool:
        """Raise for tables of another revision than ours; else whether these are there.

        Tables are looked for until they are found. They are never dropped, and a request looks for its key each time.
        """
        from sqlalchemy import inspect

        wanted = {VERSION_TABLE, *(tables.tables if tables is not None else ())}
        if not wanted <= self._found:
            self._found = frozenset(inspect(connection).get_table_names())
        check_revision(connection, self.name, is_named=VERSION_TABLE in self._found)
        return wanted - {VERSION_TABLE} <= self._found

    def change_tables(self, work: Callable[[Connection], T]) -> T:
        """What some work makes of the database, of whatever revision, in one transaction; every other writer waits."""
        self.head()  # raises where there is no ledger; upgrading makes none
        with self._explaining("upgraded"), self._begin() as connection:
            if not self._is_file:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATE_LOCK}), {_LOCK_TABLE}")
            return work(connection)

    def copy_file(self, path: str | os.PathLike[str]) -> None:
        """Copy a ledger in SQLite to a new file while it is in use; raises ``UsageError`` for one in PostgreSQL."""
        if not self._is_file:
            raise UsageError(f"{self.name} is no file; pg_dump makes a copy of a database in PostgreSQL")
        with self._reading() as connection, self._explaining("copied"):
            source: Any = connection.connection.driver_connection
            _copy_file(source, path)

    def erase(self, seq: int, reason: str, by: str) -> int:
        """Record the erasure of an entry's payload and erase it, both or neither; the place of the record."""
        table = make_table()
        with self._writing() as connection:
            found = connection.execute(table.select().where(table.c.seq == seq)).one_or_none()
            if found is None:
                raise explain_missing(seq)
            if found.kind in ("genesis", "erasure"):
                raise UsageError(f"entry {seq} is a {found.kind}; it holds nothing of what was judged, and it stays")
            if found.payload is None:
                raise UsageError(f"the payload of entry {seq} was erased before")
            said = {"seq": seq, "id": found.id, "payload_hash": found.payload_hash, "reason": reason, "by": by}
            payload = encode_payload({"schema": "adjudge/erasure/1", **said})
            places = self._insert(connection, [Draft(kind="erasure", subject=found.id, payload=payload)])
            connection.execute(table.update().where(table.c.seq == seq).values(payload=None))
        if self._is_file:
            self._write_back()
        return places[0]

    def _write_back(self) -> None:
        """Empty the write-ahead log, where what was erased still stands; given up soon when somebody is reading."""
        with self._explaining("written"), self._use_engine() as engine, engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            # Others wait behind this one: a long verification must not hold up every append.
            connection.exec_driver_sql("PRAGMA busy_timeout=200")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
            connection.exec_driver_sql("BEGIN")

    def _insert(self, connection: Connection, drafts: Sequence[Draft]) -> list[int]:
        seq, prev = _find_last(connection)
        if seq == 0:
            # Beginning anew would make a ledger whose entries were all removed look like a new one.
            raise LedgerError(f"the ledger {self.name} has lost its entries; restore it, or begin another")
        rows: list[Row] = []
        at = format_time(datetime.now(UTC))  # one for all: they become part of the ledger at the same moment
        for draft in drafts:
            seq += 1
            rows.append(self._make_row(seq, at, prev, draft))
            prev = rows[-1][8]
        self._put(connection, rows)
        return [row[0] for row in rows]

    def _put(self, connection: Connection, rows: list[Row]) -> None:
        # Straight to the driver: what the toolkit does for every value of every row is a fifth of an append, and
        # these are integers, texts and bytes, which both drivers take as they are.
        marks = ", ".join(["?" if self._is_file else "%s"] * len(COLUMNS))
        connection.exec_driver_sql(f"INSERT INTO {TABLE} ({', '.join(COLUMNS)}) VALUES ({marks})", rows)  # noqa: S608 - the names are ours, the values are bound

    def _make_row(self, seq: int, at: str, prev: str, draft: Draft) -> Row:
        ident = make_id()
        payload_hash = sha256(draft.payload).hexdigest()
        said = hash_entry(seq, ident, at, draft.kind, draft.subject, payload_hash, prev)
        signature = self._signer.sign(signed_bytes(said)) if self._signer else None
        return seq, ident, at, draft.kind, draft.subject, draft.payload, payload_hash, prev, said, signature

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if not self._is_ready:
            self._make_ready()
        with self._explaining("written"), self._begin() as connection:
            yield connection

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """A transaction that excludes every other writer of this ledger."""
        with self._use_engine() as engine, engine.execution_options(adjudge_writes=True).begin() as connection:
            if not self._is_file and self._is_ready:
                # A lock of our own, not of the table: that one would stop vacuuming, and be stopped by it. Where the
                # server answers before its log is on disk, that is switched off, or an append could be lost.
                connection.exec_driver_sql(f"SELECT {_LOCK_TABLE}, set_config('synchronous_commit', 'on', true)")
            yield connection

    def _make_ready(self) -> None:
        """Make the ledger with its genesis entry if there is none; else check that it is one we can go on with."""
        from sqlalchemy import inspect

        if self._is_file:
            self._create_file()
        with self._explaining("written"), self._begin() as connection:
            if not self._is_file:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATE_LOCK})")
            if inspect(connection).has_table(TABLE):
                self._check_genesis(connection)
                self._check_revision(connection)
            else:
                self._create(connection)
        self._is_ready = True

    def _create(self, connection: Connection) -> None:
        make_table().create(connection)
        write_revision(connection)
        for statement in SQLITE_DDL if self._is_file else POSTGRES_DDL:
            connection.exec_driver_sql(statement)
        said = {"schema": LEDGER_SCHEMA, "public_key": self._signer.public_key if self._signer else None}
        draft = Draft(kind="genesis", subject="", payload=encode_payload(said | self._about))
        self._put(connection, [self._make_row(1, format_time(datetime.now(UTC)), NO_PREV, draft)])

    def _check_genesis(self, connection: Connection) -> None:
        table = make_table()
        found = connection.execute(table.select().where(table.c.seq == 1)).one_or_none()
        if found is None or found.payload is None:
            raise LedgerError(f"the ledger {self.name} has lost its genesis entry; restore it, or begin another")
        import json

        try:
            data = json.loads(found.payload)
            schema, named = data["schema"], data["public_key"]
        except (KeyError, TypeError, ValueError, RecursionError):
            schema = named = None
        if schema != LEDGER_SCHEMA:
            raise UsageError(f"{self.name} holds a ledger of another schema than {LEDGER_SCHEMA}; update adjudge")
        own = self._signer.public_key if self._signer else None
        if named != own:
            told = f"is signed with {clean(str(named)[:64])}" if named else "was begun without signatures"
            raise UsageError(f"the ledger {self.name} {told}; open it with that key, or begin another ledger")

    # ---------------------------------------------------------------- the database

    @property
    def _is_file(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    def _create_file(self) -> None:
        try:
            create_private(str(self._url.database))
        except OSError as error:
            raise UsageError(f"the ledger {self.name} cannot be written: {error.strerror}; name another file") from None

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
                self._dispose_unused()

    def _dispose_unused(self) -> None:
        for engine in [engine for engine, users in self._users.items() if not users and engine is not self._engine]:
            del self._users[engine]
            engine.dispose()

    def _make_engine(self) -> Engine:
        from sqlalchemy import create_engine, event

        try:
            # Where it is now: a connection made later, from another folder, must be one to the same file.
            place = os.path.abspath(str(self._url.database))  # noqa: PTH100 - links are followed by SQLite
            how = {"creator": partial(_connect_file, place)} if self._is_file else {}
            engine = create_engine(self._url, **how)
        except ImportError:
            raise UsageError(
                "PostgreSQL needs the package psycopg; to have it, pip install 'adjudge[postgres]'"
            ) from None
        if self._is_file:
            event.listen(engine, "begin", _begin_file)
        return engine

    @contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            yield
        except DBAPIError as error:  # whose own text quotes the payload
            said = clean(" ".join(str(error.orig).split())[:300], keep_lines=False)
            kind = DamagedError if any(sign in said for sign in _DAMAGE) else LedgerError
            raise kind(f"the ledger {self.name} cannot be {what}: {said}") from None
        except (UnicodeEncodeError, OverflowError):  # said by the driver, before anything reached the database
            raise UsageError(
                f"the ledger {self.name} cannot be {what}: a number is too large, or a text holds half a character"
            ) from None
        except (SQLAlchemyError, UnicodeDecodeError) as error:
            raise LedgerError(f"the ledger {self.name} cannot be {what}: {type(error).__name__}") from None

    def close(self) -> None:
        """Close all connections, those in use once they are not; the next use opens new ones."""
        with self._lock:
            self._engine, self._is_ready, self._made, self._found = None, False, (), frozenset()
            self._dispose_unused()


class Transaction:
    """A transaction of a ledger: its connection, for tables beside the entries, and a way to append entries."""

    __slots__ = ("_insert", "connection")

    def __init__(self, connection: Connection, insert: Callable[[Draft], int]) -> None:
        self.connection = connection
        self._insert = insert

    def append(self, draft: Draft) -> int:
        """Append an entry within the transaction; its place, which holds once the transaction is committed."""
        return self._insert(draft)


class DamagedError(LedgerError):
    """What is stored is no database, or no text, any more."""


_DAMAGE = ("malformed", "not a database", "decode to UTF-8", "invalid byte sequence")


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|:")
"""How an address begins, or what was meant as one; one letter before a colon is a drive."""


def _find_file(url: str | os.PathLike[str]) -> str | None:
    """The path of a file that is given as one, else ``None``: a ``Path``, and a text that is no address."""
    if isinstance(url, str):
        return None if _SCHEME.match(url) or not url.strip() else url
    try:
        found = os.fspath(url)
    except TypeError:
        found = None
    if not isinstance(found, str) or not found:
        raise UsageError(f"a ledger's url is a text or the path of a file, got {type(url).__name__}")
    return found


def _read_url(url: str | os.PathLike[str]) -> URL:
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if isinstance(url, str):
        check_text("a ledger's url", url)
    file = _find_file(url)
    if file is not None:
        # Not pasted into an address: there, a question mark in a name would begin options.
        return URL.create("sqlite", database=file)
    try:
        found = make_url(str(url))
    except (ArgumentError, ValueError):
        found = None
    name = found.get_backend_name() if found is not None else ""
    if found is not None and name in ("postgresql", "postgres"):
        return found.set(drivername="postgresql+psycopg")
    if found is None or found.drivername != "sqlite":
        raise UsageError(
            "a ledger's url is sqlite:///FILE or postgresql://HOST/DATABASE, or the path of a file; this one is neither"
        )
    if not found.database or found.database == ":memory:" or found.query:
        raise UsageError("a ledger in SQLite needs a file and no options: sqlite:///adjudge.db")
    return found


def _connect_file(path: str) -> Any:
    return open_sqlite(path, mode="make", patience=BUSY_SECONDS, prepare=_set_up_file)


def _set_up_file(connection: Any) -> None:
    enter_wal(connection, durable=True)
    connection.execute("PRAGMA secure_delete=ON")  # what is erased is overwritten


def _copy_file(source: Any, path: str | os.PathLike[str]) -> None:
    """Copy a database that is in use, as it is at one moment, to a new file for its owner alone."""
    said = show(os.fspath(path))
    try:
        create_private(path, new=True)
    except FileExistsError:
        raise UsageError(f"{said} is there already; name a new file") from None
    except OSError as error:
        raise UsageError(f"{said} cannot be written: {error.strerror}; name another file") from None
    try:
        with closing(open_sqlite(path, mode="write")) as copy:
            source.backup(copy)
    except UNUSABLE as error:
        Path(path).unlink(missing_ok=True)
        raise LedgerError(f"{said} cannot be written: {clean(str(error)[:300], keep_lines=False)}") from None
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _begin_file(connection: Connection) -> None:
    writes = connection.get_execution_options().get("adjudge_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def find_latest(connection: Connection, *, behind: int = 0) -> str | None:
    """The latest time at which an entry behind a place was written; ``None`` where there is none.

    An entry before that place says nothing of what was recorded there: a clock may have been wrong for a while.
    """
    from sqlalchemy import select

    table = make_table()
    # In the order of the index of times, where the first is nearly always behind: not every entry is looked at.
    statement = select(table.c.at).where(table.c.seq > behind).order_by(table.c.at.desc()).limit(1)
    return connection.execute(statement).scalar_one_or_none()


def has_passed(connection: Connection, behind: int, at: str) -> bool:
    """Whether an entry behind a place was written at a time or later, though the clock may be set back since."""
    latest = find_latest(connection, behind=behind)
    return latest is not None and latest >= at


_LAST = f"SELECT seq, hash FROM {TABLE} ORDER BY seq DESC LIMIT 1"  # noqa: S608 - the name is ours


def _find_last(connection: Connection) -> tuple[int, str]:
    row = connection.exec_driver_sql(_LAST).one_or_none()
    return (row[0], row[1]) if row else (0, NO_PREV)


def _select(after: int, wanted: dict[str, Any]) -> Select[Any]:
    table = make_table()
    statement = table.select().where(table.c.seq > after).order_by(table.c.seq)
    for name in ("kind", "subject"):
        if wanted.get(name) is not None:
            statement = statement.where(table.c[name] == wanted[name])
    if wanted.get("since") is not None:
        statement = statement.where(table.c.at >= wanted["since"])
    if wanted.get("until") is not None:
        statement = statement.where(table.c.at < wanted["until"])
    return statement


def _plain(row: Any) -> Row:
    return tuple(row)  # type: ignore[return-value]
