"""The store in which entries are kept: one table, on SQLite or PostgreSQL.

Entries are appended in one transaction that first excludes every other writer, so places have no gaps and every hash
names the one before it, with any number of threads, processes and machines. The database refuses updates and deletions
by itself. The owner of its file can remove those triggers; the hashes show what was changed then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.errors import LedgerError, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.sqlite import UNUSABLE, create_private, open_sqlite
from adjudge.formats.text import clean, quote, show
from adjudge.ledger.columns import (
    AUDITED,
    ENTRY_COLUMNS,
    delete_columns,
    derive,
    derive_draft,
    find_difference,
    find_stray,
    insert_columns,
    make_column_tables,
    write_audited_condition,
    write_condition,
    write_search_text,
)
from adjudge.ledger.database import BUSY_SECONDS, DamagedError, Database, EngineStatements, Statements
from adjudge.ledger.entry import (
    COLUMNS,
    HASH,
    LEDGER_SCHEMA,
    NO_PREV,
    PAYLOAD,
    SEQ,
    Head,
    Row,
    format_time,
    hash_entry,
    signed_bytes,
)
from adjudge.ledger.payload import Draft, write_draft
from adjudge.ledger.revision import VERSION_TABLE, check_revision, write_revision
from adjudge.ledger.search_index import (
    SEARCH_STATE,
    TRIGRAMS_DDL,
    append_texts,
    create_index,
    find_missing,
    find_search_problem,
    purge_trigrams,
    replace_texts,
)
from adjudge.result import make_id

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Table

    from adjudge.ledger.signature import Signer


TABLE = "adjudge_ledger"


@cache
def make_table() -> Table:
    """Describe the ledger's table for SQLAlchemy, which makes each database's own form of it."""
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
    # STRICT: otherwise SQLite stores values of any type, and a text in place of a number has the same hash.
    return Table(TABLE, MetaData(), *columns, sqlite_strict=True)


_KEPT = [name for name in COLUMNS if name != "payload"]

_CHANGED = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in _KEPT)

_EXCUSED = f"EXISTS (SELECT 1 FROM {TABLE} e WHERE e.kind = 'erasure' AND e.subject = OLD.id)"  # noqa: S608 - the name is ours

_FIXED = f"NEW.payload IS NOT NULL OR OLD.kind IN ('genesis', 'erasure') OR {_CHANGED} OR NOT {_EXCUSED}"


_NO_DELETE = f"""CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE}
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: nothing is deleted'); END"""

_NO_UPDATE = f"""CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} WHEN {_FIXED}
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: nothing is changed'); END"""

# INSERT OR REPLACE deletes without running the trigger against deletions.
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


MEMBERS = ("outcome", "judge", "gate", "execution", "approval")
"""The members by which a query finds entries, beside their own columns."""

PAGE = 200
"""Rows that are fetched at once: their payloads, which can be large, are in memory together."""

_CREATE_LOCK = 0x61646A75
"""The number of the lock that is held on PostgreSQL while the table is looked for and made. It has no meaning."""

_LOCK_TABLE = f"pg_advisory_xact_lock({_CREATE_LOCK}::bigint << 32 | '{TABLE}'::regclass::oid::bigint)"
"""The SQL that takes the lock which a writer of this ledger holds on PostgreSQL."""


def check_place(seq: object) -> None:
    """Raise ``UsageError`` for a value that cannot be the place of an entry; no database could even look for it."""
    number = check_whole_number("seq", seq)
    if not 1 <= number < 2**63:
        raise explain_missing(number)


def explain_missing(seq: int) -> UsageError:
    """Make the error for a place at which there is no entry."""
    return UsageError(f"the ledger has no entry {show(seq)}; `adjudge ledger list` shows those it has")


class Store:
    """A ledger's database. Opened at first use; its methods block, so they are called from threads."""

    def __init__(self, url: str | os.PathLike[str], *, signer: Signer | None, about: dict[str, Any]) -> None:
        """``about`` has the members of the genesis entry besides the schema and the public key."""
        self._database = Database(url)
        self._signer, self._genesis_members = signer, about
        self._is_ready, self._is_index_complete = False, True
        self._tables: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The address, without a password."""
        return self._database.name

    # ---------------------------------------------------------------- reading

    def fetch(self, *, after: int = 0, count: int = PAGE, **conditions: Any) -> list[Row]:
        """List the next ``count`` rows behind a place that meet all conditions, as ``list_rows`` does."""
        with self._begin_reading() as statements:
            if any(conditions.get(name) is not None for name in MEMBERS):
                self._check_columns()
            return list_rows(statements, after=after, count=count, **conditions)

    def stream(self, on_difference: Callable[[int, str], object] | None = None) -> Generator[Row]:
        """Yield all rows, as they are at one moment.

        ``on_difference`` is called at most once, for the first entry whose stored columns differ from the derived ones,
        with its place and the difference in words. Without it, columns are not compared.
        """
        with self._begin_reading(snapshot=True) as statements:
            last_seq, compares = 0, on_difference is not None
            if compares:
                self._check_columns()
            while rows := list_rows(statements, after=last_seq):
                yield from rows
                last_seq = rows[-1][SEQ]
                difference = find_difference(statements, rows, self._tables) if compares else None
                if difference is not None and on_difference is not None:
                    on_difference(*difference)
                    compares = False
            stray_seq = find_stray(statements, last_seq) if compares else None
            if stray_seq is not None and on_difference is not None:
                on_difference(stray_seq, "is listed, and there is no such entry: it was dropped, or listed by hand")

    def head(self) -> Head | None:
        """Return the head of the last entry; ``None`` for a ledger without entries."""
        with self._begin_reading() as statements:
            seq, last_hash = _find_last(statements)
        return Head(seq=seq, hash=last_hash) if seq else None

    @contextmanager
    def _begin_reading(self, *, snapshot: bool = False) -> Iterator[Statements]:
        """Begin a transaction to read in, which ends with the block. Raises where there is no ledger.

        With ``snapshot``, all that it reads is as it is at one moment.
        """
        # Reading creates no file: otherwise a mistyped address would verify as an empty ledger.
        self._database.check_file()
        with self._database.explaining("read"), self._database.read(snapshot=snapshot) as statements:
            self._check_ledger_exists(statements)
            yield statements

    def _check_ledger_exists(self, statements: Statements) -> None:
        """Raise ``UsageError`` where there is no ledger. The tables are listed again until its table is among them."""
        if TABLE not in self._tables:
            self._tables = list_tables(statements)
        if TABLE not in self._tables:
            raise UsageError(f"{self.name} holds no ledger; the first append makes one")

    def _check_columns(self) -> None:
        """Raise ``UsageError`` for a ledger of an earlier version, whose entries have no columns beside them."""
        if ENTRY_COLUMNS not in self._tables:
            # List the tables again the next time, because an upgrade may have made them.
            self._tables = frozenset()
            raise _explain_no_columns(self.name)

    # ---------------------------------------------------------------- writing

    def append(self, drafts: Sequence[Draft]) -> list[int]:
        """Append drafts in their order, in one durable commit, and return their places."""
        with self._begin_writing() as statements:
            return self._append_drafts(statements, drafts)

    def prepare(self) -> None:
        """Create the ledger if there is none, and check that it can be written."""
        with self._begin_writing():
            pass

    def extend_search(self) -> bool:
        """Add the next missing entries to the search index, and return whether more may be missing."""
        if self._is_index_complete:
            return False
        with self._begin_writing() as statements:
            missing = find_missing(statements, PAGE)
            if missing is not None:
                first, last = missing
                rows = list_rows(statements, after=first - 1, count=last - first + 1)
                search_texts = [write_search_text(row[SEQ], derive(row)) for row in rows]
                replace_texts(statements, first, last, [text for text in search_texts if text is not None])
        self._is_index_complete = missing is None
        return not self._is_index_complete

    def explain_search(self) -> str | None:
        """Explain in one sentence why searching this ledger is slow; ``None`` if it is not."""
        with self._begin_reading() as statements:
            return find_search_problem(statements, self._tables)

    def transact(self, work: Callable[[Transaction], T], tables: MetaData) -> T:
        """Call a function with a transaction, in which it changes tables beside the ledger and appends entries.

        All of it is one durable commit, or nothing is changed. ``tables`` are created if they are missing.
        """
        self._make_ready()
        with self._database.explaining("written"), self._database.connect(writes=True) as connection:
            statements = EngineStatements(connection)
            self._lock_out_writers(statements)
            # Checked in each transaction: an upgrade may have been made meanwhile, with a column that forbids
            # something.
            if not self._check_tables(statements, tables):
                tables.create_all(connection)
            return work(Transaction(connection, partial(self._append_drafts, statements)))

    def look(self, work: Callable[[Connection], T], tables: MetaData, *, snapshot: bool = False) -> T | None:
        """Return what a function reads from tables beside the ledger; ``None`` where these were never created.

        With ``snapshot``, all that it reads is as it is at one moment.
        """
        self._database.check_file()
        with self._database.explaining("read"), self._database.connect(snapshot=snapshot) as connection:
            statements = EngineStatements(connection)
            self._check_ledger_exists(statements)
            has_tables = self._check_tables(statements, tables)
            return work(connection) if has_tables else None

    def _check_tables(self, statements: Statements, tables: MetaData | None = None) -> bool:
        """Return whether the database has ``tables``.

        Raises ``UsageError`` for a database of another revision than this version's, and for one that has some of them
        only. The tables of the database are listed again until all are found: tables are never dropped, and every
        request needs this.
        """
        names = set() if tables is None else set(tables.tables)
        if not names | {VERSION_TABLE} <= self._tables:
            self._tables = list_tables(statements)
        check_revision(statements, self.name, is_named=VERSION_TABLE in self._tables)
        missing = sorted(names - self._tables)
        if missing and names & self._tables:
            # A later version added some of them. Created now, they would lack what an upgrade derives from older rows.
            raise UsageError(f"{self.name} has no table {missing[0]} yet; run `adjudge ledger upgrade`")
        return not missing

    def change_tables(self, work: Callable[[Connection], T]) -> T:
        """Call a function with a connection in one transaction, on a database of any revision; other writers wait."""
        self.head()  # raises where there is no ledger
        with self._database.explaining("upgraded"), self._database.connect(writes=True) as connection:
            if self._database.file is None:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATE_LOCK}), {_LOCK_TABLE}")
            return work(connection)

    def copy_file(self, path: str | os.PathLike[str]) -> None:
        """Copy a ledger in SQLite to a new file while it is in use; raises ``UsageError`` for one in PostgreSQL."""
        if self._database.file is None:
            raise UsageError(f"{self.name} is no file; pg_dump makes a copy of a database in PostgreSQL")
        with self._begin_reading():
            pass  # raises where there is no ledger
        with self._database.explaining("copied"), self._database.use_file() as source:
            _copy_file(source, path)

    def erase(self, seq: int, reason: str, by: str) -> int:
        """Erase the payload of an entry and record that, both or neither; return the place of the record."""
        with self._begin_writing() as statements:
            record_seq = _erase(statements, partial(self._append_drafts, statements), seq, {"reason": reason, "by": by})
            purge_trigrams(statements)
        if self._database.file is not None:
            self._empty_write_ahead_log()
        return record_seq

    def clear_space(self, tables: Sequence[str]) -> str:
        """Have what was erased, and deleted from some tables, leave the files of the database.

        Return why it may still be in them, as a part of a sentence; empty where it is gone.
        """
        if self._database.file is not None:
            is_empty = self._empty_write_ahead_log()
            return "" if is_empty else "another process is reading, so the log beside the file still holds it"
        with self._database.explaining("written"), self._database.connect() as connection:
            names = sorted({TABLE, *tables} & list_tables(EngineStatements(connection)))
        try:
            self._database.vacuum(names)
        except LedgerError as error:
            return f"VACUUM was refused ({error})"
        return ""

    def _empty_write_ahead_log(self) -> bool:
        """Empty the write-ahead log of SQLite, which still holds what was erased, and return whether it is empty.

        This is given up soon if another process is reading.
        """
        with self._database.explaining("written"), self._database.use_file() as connection:
            # A short wait, because appends wait for this: a long verification must not delay them.
            connection.execute("PRAGMA busy_timeout=200")
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
        return not busy

    def _append_drafts(self, statements: Statements, drafts: Sequence[Draft]) -> list[int]:
        """Append drafts in the transaction that is under way, and return their places."""
        last_seq, last_hash = _find_last(statements)
        if last_seq == 0:
            # A new genesis entry would make a ledger whose entries were all removed look like a new one.
            raise LedgerError(f"the ledger {self.name} has lost its entries; restore it, or begin another")
        return self._write_entries(statements, last_seq, last_hash, drafts)

    def _write_entries(self, statements: Statements, seq: int, prev: str, drafts: Sequence[Draft]) -> list[int]:
        """Write entries for drafts behind the entry at ``seq``, whose hash is ``prev``, and return their places."""
        rows: list[Row] = []
        at = format_time(datetime.now(UTC))  # the same for all, as they are committed together
        for new_seq, draft in enumerate(drafts, start=seq + 1):
            rows.append(self._make_entry_row(new_seq, at, prev, draft))
            prev = rows[-1][HASH]
        statements.insert(TABLE, COLUMNS, rows)
        derived = [(row[SEQ], at, derive_draft(draft)) for row, draft in zip(rows, drafts, strict=True)]
        insert_columns(statements, derived)
        search_texts = [write_search_text(new_seq, derived_entry) for new_seq, _, derived_entry in derived]
        texts = [text for text in search_texts if text is not None]
        if not append_texts(statements, seq + 1, rows[-1][SEQ], texts):
            self._is_index_complete = False
        return [row[SEQ] for row in rows]

    def _make_entry_row(self, seq: int, at: str, prev: str, draft: Draft) -> Row:
        """Make the row of a new entry, with its id, its hashes and, if the ledger has a key, its signature."""
        ident = make_id()
        payload_hash = sha256(draft.payload).hexdigest()
        entry_hash = hash_entry(seq, ident, at, draft.kind, draft.subject, payload_hash, prev)
        signature = self._signer.sign(signed_bytes(entry_hash)) if self._signer else None
        return seq, ident, at, draft.kind, draft.subject, draft.payload, payload_hash, prev, entry_hash, signature

    @contextmanager
    def _begin_writing(self) -> Iterator[Statements]:
        """Begin a transaction to write in, which is committed at the end of the block; every other writer waits."""
        self._make_ready()
        with self._database.explaining("written"), self._database.write() as statements:
            self._lock_out_writers(statements)
            yield statements

    def _lock_out_writers(self, statements: Statements) -> None:
        """Wait for every other writer on PostgreSQL; on a file, beginning to write has done that already."""
        if not statements.is_file:
            # An advisory lock and not one of the table: that one would block vacuuming, and be blocked by it. The
            # server must not answer before its log is on disk, as it may be configured to: an append could be lost.
            statements.execute(f"SELECT {_LOCK_TABLE}, set_config('synchronous_commit', 'on', true)")

    def _make_ready(self) -> None:
        """Create the ledger with its genesis entry if there is none; else check that this version can append to it."""
        if self._is_ready:
            return
        self._database.create_file()
        with self._database.explaining("written"):
            with self._database.write() as statements:
                if not statements.is_file:
                    statements.execute(f"SELECT pg_advisory_xact_lock({_CREATE_LOCK})")
                self._tables = list_tables(statements)
                if TABLE in self._tables:
                    self._check_usable(statements)
                    self._is_ready = True
                    return
            self._create()
        self._is_ready = True

    def _check_usable(self, statements: Statements) -> None:
        """Raise for an existing ledger that this version cannot append to; create its search index if it is missing."""
        self._check_genesis(statements)
        self._check_tables(statements)
        self._check_columns()
        if SEARCH_STATE not in self._tables:
            last_seq, _ = _find_last(statements)
            create_index(statements, last_seq)
            self._tables = list_tables(statements)
        self._is_index_complete = False  # unknown until ``extend_search`` is called

    def _create(self) -> None:
        """Create the tables and the genesis entry, unless another process was quicker."""
        with self._database.connect(writes=True) as connection:
            statements = EngineStatements(connection)
            if not statements.is_file:
                statements.execute(f"SELECT pg_advisory_xact_lock({_CREATE_LOCK})")
            self._tables = list_tables(statements)
            if TABLE in self._tables:  # another process was quicker
                self._check_usable(statements)
                return
            make_table().create(connection)
            make_column_tables().create_all(connection)
            create_index(statements, 0)
            write_revision(statements)
            for statement in SQLITE_DDL if statements.is_file else POSTGRES_DDL:
                statements.execute(statement)
            genesis = {"schema": LEDGER_SCHEMA, "public_key": self._signer.public_key if self._signer else None}
            self._write_entries(statements, 0, NO_PREV, [write_draft("genesis", "", genesis | self._genesis_members)])

    def _check_genesis(self, statements: Statements) -> None:
        """Raise for a ledger without its genesis entry, of another schema, or signed with another key than ours."""
        rows = list_rows(statements, count=1)
        genesis = rows[0] if rows else None
        payload = None if genesis is None or genesis[SEQ] != 1 else genesis[PAYLOAD]
        if payload is None:
            raise LedgerError(f"the ledger {self.name} has lost its genesis entry; restore it, or begin another")
        import json

        try:
            data = json.loads(payload)
            schema, ledger_key = data["schema"], data["public_key"]
        except (KeyError, TypeError, ValueError, RecursionError):
            schema = ledger_key = None
        if schema != LEDGER_SCHEMA:
            raise UsageError(f"{self.name} holds a ledger of another schema than {LEDGER_SCHEMA}; update adjudge")
        own_key = self._signer.public_key if self._signer else None
        if ledger_key != own_key:
            difference = (
                f"is signed with {clean(str(ledger_key)[:64])}" if ledger_key else "was begun without signatures"
            )
            raise UsageError(f"the ledger {self.name} {difference}; open it with that key, or begin another ledger")

    def close(self) -> None:
        """Close all connections; those in use are closed when their users are done. A later use opens new ones."""
        self._is_ready, self._tables = False, frozenset()
        self._database.close()


class Transaction:
    """A transaction of a ledger, for tables beside the entries, and a way to append entries.

    Args:
        connection: The connection that the transaction is of.
        insert: Writes entries and returns their places.
    """

    __slots__ = ("_insert", "connection")

    def __init__(self, connection: Connection, insert: Callable[[Sequence[Draft]], list[int]]) -> None:
        self.connection = connection
        self._insert = insert

    def append(self, draft: Draft) -> int:
        """Append an entry within the transaction; its place, which holds once the transaction is committed.

        Args:
            draft: The entry, as ``make_entry`` made it.
        """
        return self._insert([draft])[0]

    def erase(self, seq: int, record: Mapping[str, Any]) -> int:
        """Erase the payload of an entry, and record that: why, and by whom. Return the place of the record.

        Args:
            seq: The place of the entry.
            record: The members of the record.
        """
        return _erase(EngineStatements(self.connection), self._insert, seq, record)

    def record_erasure(self, record: Mapping[str, Any]) -> int:
        """Append the entry that sums up several erasures, after the last; it excuses no payload that is missing.

        Args:
            record: The members of the record.
        """
        purge_trigrams(EngineStatements(self.connection))
        return self._insert([write_draft("erasure", "", record)])[0]


def _erase(
    statements: Statements, insert: Callable[[Sequence[Draft]], list[int]], seq: int, record: Mapping[str, Any]
) -> int:
    """Erase the payload of an entry and record that, in the current transaction; return the place of the record.

    ``record`` has the members of the record, ``insert`` appends entries. Raises ``UsageError`` for an entry that is not
    there, that has no payload any more, or that holds nothing of what was judged.
    """
    rows = list_rows(statements, after=seq - 1, count=1)
    if not rows or rows[0][SEQ] != seq:
        raise explain_missing(seq)
    _, entry_id, _, kind, _, payload, payload_hash = rows[0][:7]
    if kind in ("genesis", "erasure"):
        raise UsageError(f"entry {seq} is a {kind}; it holds nothing of what was judged, and it stays")
    if payload is None:
        raise UsageError(f"the payload of entry {seq} was erased before")
    erased_entry = {"schema": "adjudge/erasure/1", "seq": seq, "id": entry_id, "payload_hash": payload_hash}
    record_seq = insert([write_draft("erasure", entry_id, erased_entry | dict(record))])[0]
    statements.execute(f"UPDATE {TABLE} SET payload = NULL WHERE seq = ?", (seq,))  # noqa: S608 - the name is ours
    delete_columns(statements, seq)
    return record_seq


def _copy_file(source: Any, path: str | os.PathLike[str]) -> None:
    """Copy a SQLite database while it is in use, as it is at one moment, to a new file that only its owner can read.

    Raises ``UsageError`` where that file exists or cannot be made, and ``LedgerError`` where copying fails.
    """
    shown_path = show(os.fspath(path))
    try:
        create_private(path, new=True)
    except FileExistsError:
        raise UsageError(f"{shown_path} is there already; name a new file") from None
    except OSError as error:
        raise UsageError(f"{shown_path} cannot be written: {error.strerror}; name another file") from None
    try:
        with closing(open_sqlite(path, mode="write")) as copy:
            source.backup(copy)
    except UNUSABLE as error:
        Path(path).unlink(missing_ok=True)
        raise LedgerError(f"{shown_path} cannot be written: {clean(str(error)[:300], keep_lines=False)}") from None
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def find_latest(connection: Connection, *, behind: int = 0) -> str | None:
    """Find the latest time at which an entry behind a place was written; ``None`` where there is none.

    Entries up to that place are not looked at: the clock may have been wrong when they were written.
    """
    from sqlalchemy import select

    table = make_table()
    # The latest entry by time is nearly always behind the place, so the index of times gives it without a search.
    statement = select(table.c.at).where(table.c.seq > behind).order_by(table.c.at.desc()).limit(1)
    return connection.execute(statement).scalar_one_or_none()


def has_passed(connection: Connection, *, behind: int, at: str) -> bool:
    """Return whether a time has passed, because an entry behind a place was written then or later.

    The clock of this machine is not asked: it may have been set back.
    """
    latest = find_latest(connection, behind=behind)
    return latest is not None and latest >= at


# ---------------------------------------------------------------- the statements


def list_tables(statements: Statements) -> frozenset[str]:
    """List the names of a database's tables.

    Raises ``DamagedError`` for a file in which a view, a trigger or a generated column is in place of what we create.
    These compute rows, without end if they want to, and a ledger to verify may come from anybody.
    """
    if not statements.is_file:
        return frozenset([row[0] for row in statements.fetch(_SERVER_TABLES)])
    objects = statements.fetch("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    for _, name, table, statement in objects:
        is_ours = str(table).lower().startswith("adjudge_")  # other programs may have tables in the same file
        if is_ours and statement not in _OWN_STATEMENTS and not _stores_data(str(statement)):
            raise DamagedError(f"{quote(str(name), 60)} in the ledger's file is not as adjudge makes it")
    return frozenset([name for object_type, name, _, _ in objects if object_type == "table"])


_OWN_STATEMENTS = frozenset({*SQLITE_DDL, TRIGRAMS_DDL})


def _stores_data(statement: str) -> bool:
    """Return whether a statement makes an index, or a table without generated columns."""
    return bool(_STORES_DATA.match(statement)) and not _GENERATED.search(statement)


_STORES_DATA = re.compile(r"CREATE (TABLE|INDEX|UNIQUE INDEX) ")

_GENERATED = re.compile(r"\bAS\b", re.IGNORECASE)

_SERVER_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()"


_SELECT_LAST = f"SELECT seq, hash FROM {TABLE} ORDER BY seq DESC LIMIT 1"  # noqa: S608 - the name is ours


def _find_last(statements: Statements) -> tuple[int, str]:
    """Return the place and the hash of the last entry; 0 and ``NO_PREV`` in a ledger without entries."""
    for seq, last_hash in statements.fetch(_SELECT_LAST):
        return seq, last_hash
    return 0, NO_PREV


_SELECT_ROWS = f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)} FROM {TABLE} e"  # noqa: S608 - the names are ours

_CONDITIONS = {
    "kind": "e.kind = ?",
    "subject": "e.subject = ?",
    "subject_like": "e.subject LIKE ? ESCAPE '!'",
    "since": "e.at >= ?",
    "until": "e.at < ?",
}


def list_rows(statements: Statements, *, after: int = 0, count: int = PAGE, **conditions: str | None) -> list[Row]:
    """List the next ``count`` rows behind the place ``after`` that meet all conditions, in order.

    The conditions are ``kind``, ``subject``, ``subject_like``, ``since``, ``until``, ``run``, ``audited`` and those in
    ``MEMBERS``; ``None`` is no condition.
    """
    select, clauses, values = _SELECT_ROWS, ["e.seq > ?"], [after]
    filters: dict[str, Any] = {name: value for name, value in conditions.items() if value is not None}
    for name, value in filters.items():
        if name == AUDITED and after:
            clauses.append(write_audited_condition())
            values += [after, value]
            continue
        clause = _CONDITIONS.get(name) or write_condition(name)
        clauses.append(clause)
        values += [value] * clause.count("?")
    needs_columns = not filters.keys() <= _CONDITIONS.keys()
    if needs_columns:
        select += f" JOIN {ENTRY_COLUMNS} c ON c.seq = e.seq"
    rows: list[Any] = statements.fetch(f"{select} WHERE {' AND '.join(clauses)} ORDER BY e.seq LIMIT {count:d}", values)
    return rows


def _explain_no_columns(name: str) -> UsageError:
    """Make the error for a ledger, by its address, whose entries have no columns beside them."""
    return UsageError(f"the entries of {name} have no columns to be searched by; run `adjudge ledger upgrade`")
