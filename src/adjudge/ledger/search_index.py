"""The search index of a ledger: the text of each entry that can be searched, and an index of its trigrams.

Trigrams are indexed by FTS5 in SQLite and by ``pg_trgm`` in PostgreSQL; where neither is there, every text is read. The
index is no authority. It proposes entries, whose texts are compared again, and what is shown is read from the entries.

It is written in the transaction of the entry. A ledger that has entries from before gets it in parts, the newest first,
each in a transaction of its own, so that it is resumed wherever it was left. One row says which entries it has: those
of the places from ``since`` to ``last``. A writer that finds other entries behind ``last``, of a version without the
index, begins it anew, and replaces what is there.

What a query means, and in which form texts are compared, is decided in ``search_text.py`` (``read_query``, ``fold``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from adjudge.ledger.database import EngineStatements, Statements
from adjudge.ledger.search_text import SearchQuery

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

SEARCH_TEXTS = "adjudge_ledger_search"

SEARCH_STATE = "adjudge_ledger_search_state"

SEARCH_TRIGRAMS = "adjudge_ledger_search_trigrams"
"""The index: a table of FTS5 in SQLite, an index in PostgreSQL."""

# The texts stay in their own table, and without places of the trigrams the index is half as large: a match is compared
# with its text anyway. Python has folded the texts; SQLite would fold them otherwise.
TRIGRAMS_DDL = (
    f"CREATE VIRTUAL TABLE {SEARCH_TRIGRAMS} USING fts5(text, content='{SEARCH_TEXTS}', content_rowid='seq', "
    "tokenize='trigram case_sensitive 1', detail='none', columnsize=0)"
)

FORERUNNER = "adjudge_ledger_words"
"""The table of a preview that this takes the place of."""

FORM = 1
"""The form of the texts. Texts of another form are written anew; increase it when ``make_search_text`` changes."""

_MOST_TRIGRAMS = 24
"""The most trigrams of a query that are looked up. More would not change what is found: the texts are compared
again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """The state of the index: the entries it has, and its trigrams."""

    form: int
    since: int
    """The first place of which, and of all behind it up to ``last``, the texts are there."""
    last: int
    has_trigrams: bool
    """False where a writer had no FTS5 or no ``pg_trgm``, so that every text has to be read."""


# ---------------------------------------------------------------- what the database can do


@cache
def find_fts5_problem() -> str | None:
    """Explain why the SQLite of this Python cannot index trigrams; ``None`` if it can."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='trigram')")
        except sqlite3.Error:
            return (
                f"Searching reads every text, which is slow in a large ledger, because SQLite {sqlite3.sqlite_version} "
                "of this Python has no FTS5 with trigrams; use a Python with SQLite 3.34 or later and FTS5"
            )
    return None


_NO_TRGM_PROBLEM = (
    "Searching reads every text, which is slow in a large ledger, because this database has no index of pg_trgm; have "
    "its owner run CREATE EXTENSION pg_trgm, and run `adjudge ledger upgrade`"
)


def find_search_problem(statements: Statements, tables: Iterable[str]) -> str | None:
    """Explain in one sentence why searching a ledger with these tables is slow; ``None`` if it is not."""
    if statements.is_file and find_fts5_problem() is not None:
        return find_fts5_problem()
    if SEARCH_STATE not in tables:
        return None  # it is made when the ledger is next written to
    state = read_state(statements)
    return None if statements.is_file or state.has_trigrams else _NO_TRGM_PROBLEM


# ---------------------------------------------------------------- writing


def create_index(statements: Statements, last: int) -> None:
    """Create the tables of the search index, empty, for a ledger whose last entry is at ``last``.

    Tables of an earlier index are dropped.
    """
    seq_type, strict_suffix = ("INTEGER", " STRICT") if statements.is_file else ("BIGINT", "")
    for table in (FORERUNNER, SEARCH_TRIGRAMS, SEARCH_TEXTS, SEARCH_STATE):
        if statements.is_file or table != SEARCH_TRIGRAMS:  # in PostgreSQL an index, dropped with its table
            statements.execute(f"DROP TABLE IF EXISTS {table}")
    statements.execute(f"CREATE TABLE {SEARCH_TEXTS} (seq {seq_type} PRIMARY KEY, text TEXT NOT NULL){strict_suffix}")
    statements.execute(
        f"CREATE TABLE {SEARCH_STATE} (form INTEGER NOT NULL, since {seq_type} NOT NULL, last {seq_type} NOT NULL, "
        f"has_trigrams INTEGER NOT NULL){strict_suffix}"
    )
    has_trigrams = _create_trigram_index(statements)
    # The index has the entries from since to last. Here since is behind last: it has none yet.
    statements.insert(SEARCH_STATE, _STATE_COLUMNS, [(FORM, last + 1, last, int(has_trigrams))])


_STATE_COLUMNS = ("form", "since", "last", "has_trigrams")


def _create_trigram_index(statements: Statements) -> bool:
    """Create the index of trigrams, and return whether this database can have one."""
    if not statements.is_file:
        return _create_gin_index(statements)
    if find_fts5_problem() is not None:
        return False
    statements.execute(TRIGRAMS_DDL)
    if _can_delete_securely():
        statements.execute(f"INSERT INTO {SEARCH_TRIGRAMS}({SEARCH_TRIGRAMS}, rank) VALUES ('secure-delete', 1)")  # noqa: S608 - the name is ours
    return True


def _can_delete_securely() -> bool:
    """Return whether the SQLite of this Python overwrites deleted trigrams by itself (``secure-delete`` of FTS5)."""
    return sqlite3.sqlite_version_info >= (3, 42)


_SCHEMA_OF_TRGM = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
)


def _create_gin_index(statements: Statements) -> bool:
    """Create the index of trigrams in PostgreSQL, on a table that is still empty.

    Return false where the server has no ``pg_trgm``, or does not let us use it.
    """
    from sqlalchemy.exc import DBAPIError

    statements.execute("SAVEPOINT adjudge_search")
    try:
        if not statements.fetch(_SCHEMA_OF_TRGM):
            # Not in this ledger's own schema: dropping that would drop the index of every other ledger in the database.
            public = statements.fetch("SELECT 1 FROM pg_namespace WHERE nspname = 'public'")
            statements.execute(f"CREATE EXTENSION IF NOT EXISTS pg_trgm{' SCHEMA public' if public else ''}")
        schema = str(statements.fetch(_SCHEMA_OF_TRGM)[0][0]).replace('"', '""')
        operators = f'"{schema}".gin_trgm_ops'
        statements.execute(f"CREATE INDEX {SEARCH_TRIGRAMS} ON {SEARCH_TEXTS} USING gin (text {operators})")
    except (DBAPIError, IndexError):
        statements.execute("ROLLBACK TO SAVEPOINT adjudge_search")
        return False
    statements.execute("RELEASE SAVEPOINT adjudge_search")
    return True


def read_state(statements: Statements) -> SearchState:
    """Read the state of the index: which entries it has, and whether it has their trigrams."""
    rows = statements.fetch(f"SELECT {', '.join(_STATE_COLUMNS)} FROM {SEARCH_STATE}")  # noqa: S608 - the names are ours
    # If somebody emptied the table, a search reads every text, until an upgrade writes the index anew.
    form, since, last, has_trigrams = rows[0] if rows else (0, 1, 0, 0)
    return SearchState(form=form, since=since, last=last, has_trigrams=bool(has_trigrams))


def _write_state(statements: Statements, **values: int) -> None:
    """Change the given members of the state of the index."""
    columns = ", ".join(f"{name} = ?" for name in values)
    statements.execute(f"UPDATE {SEARCH_STATE} SET {columns}", tuple(values.values()))  # noqa: S608 - the names are ours


def append_texts(statements: Statements, first: int, last: int, texts: Sequence[tuple[int, str]]) -> bool:
    """Add the texts of the new entries ``first`` to ``last``, and return whether the index now has all entries.

    If the index does not end just before ``first``, or has texts of another form, it begins anew with ``first``. Then
    the entries before it are missing, which ``find_missing`` finds and ``replace_texts`` adds later.
    """
    state = read_state(statements)
    _insert_texts(statements, texts, _must_write_trigrams(statements, state))
    if state.form == FORM and state.last == first - 1:
        _write_state(statements, last=last)
        return state.since <= 1
    _write_state(statements, form=FORM, since=first, last=last)
    return first <= 1


def find_missing(statements: Statements, most: int) -> tuple[int, int] | None:
    """Find the first and the last of the next ``most`` entries to add to the index; ``None`` if none is missing.

    The newest are added first. An index that has another form, or lacks trigrams that can be written now, begins anew.
    """
    state = read_state(statements)
    since = state.since
    if state.form != FORM:
        since = state.last + 1
        _write_state(statements, form=FORM, since=since)
    if statements.is_file and not state.has_trigrams and find_fts5_problem() is None:
        # It was written by a Python without FTS5, and nobody knows which trigrams are missing.
        statements.execute(f"DROP TABLE IF EXISTS {SEARCH_TRIGRAMS}")
        statements.execute(f"DELETE FROM {SEARCH_TEXTS}")  # noqa: S608 - the name is ours
        since = state.last + 1
        _write_state(statements, since=since, has_trigrams=int(_create_trigram_index(statements)))
    return None if since <= 1 else (max(1, since - most), since - 1)


def replace_texts(statements: Statements, first: int, last: int, texts: Sequence[tuple[int, str]]) -> None:
    """Write the texts of all entries from ``first`` to ``last``; those behind ``last`` are in the index already."""
    has_trigrams = _must_write_trigrams(statements, read_state(statements))
    _delete_texts(statements, first, last, has_trigrams)
    _insert_texts(statements, texts, has_trigrams)
    _write_state(statements, since=first)


def delete_text(statements: Statements, seq: int) -> None:
    """Delete the text of an entry. ``purge_trigrams`` then overwrites what is left of it in the index of trigrams."""
    _delete_texts(statements, seq, seq, _must_write_trigrams(statements, read_state(statements)))


def purge_trigrams(statements: Statements) -> None:
    """Overwrite what is left of deleted texts in the index of trigrams.

    Call it once, after the last of several texts is deleted: it may write the whole index.
    """
    if statements.is_file and not _can_delete_securely() and _must_write_trigrams(statements, read_state(statements)):
        statements.execute(f"INSERT INTO {SEARCH_TRIGRAMS}({SEARCH_TRIGRAMS}) VALUES ('optimize')")  # noqa: S608 - the name is ours


def _must_write_trigrams(statements: Statements, state: SearchState) -> bool:
    """Return whether this process has to write trigrams whenever it writes texts.

    If it should and cannot, because it has no FTS5, note in the state of the index that its trigrams are incomplete.
    """
    if not statements.is_file or not state.has_trigrams:
        return False  # PostgreSQL updates its index by itself
    if find_fts5_problem() is None:
        return True
    _write_state(statements, has_trigrams=0)
    return False


def _insert_texts(statements: Statements, texts: Sequence[tuple[int, str]], has_trigrams: bool) -> None:  # noqa: FBT001
    """Insert texts into the index, each with the place of its entry; ``has_trigrams``: also their trigrams."""
    statements.insert(SEARCH_TEXTS, ("seq", "text"), texts)
    if has_trigrams:
        statements.insert(SEARCH_TRIGRAMS, ("rowid", "text"), texts)


def _delete_texts(statements: Statements, first: int, last: int, has_trigrams: bool) -> None:  # noqa: FBT001
    """Delete the texts of the entries ``first`` to ``last``; ``has_trigrams``: also their trigrams.

    The trigrams are deleted first, because FTS5 needs the texts for that.
    """
    where = "WHERE seq BETWEEN ? AND ?"
    if has_trigrams:
        # The command by which FTS5 deletes rows has the form of an insertion.
        statements.execute(
            f"INSERT INTO {SEARCH_TRIGRAMS}({SEARCH_TRIGRAMS}, rowid, text) "  # noqa: S608 - the names are ours
            f"SELECT 'delete', seq, text FROM {SEARCH_TEXTS} {where}",
            (first, last),
        )
    statements.execute(f"DELETE FROM {SEARCH_TEXTS} {where}", (first, last))  # noqa: S608 - the name is ours


# ---------------------------------------------------------------- searching


def match_entries(connection: Connection, query: SearchQuery, place: ColumnElement[int]) -> ColumnElement[bool]:
    """Make the condition that the entry at ``place``, a column, is in the index and matches a query.

    It is false where there is no index.
    """
    from sqlalchemy import column, false, select, table

    statements = EngineStatements(connection)
    if not _has_index(statements):
        return false()
    texts = table(SEARCH_TEXTS, column("seq"), column("text"))
    matching = select(texts.c.seq).where(*_make_conditions(query, texts.c.text, is_file=statements.is_file))
    fts5_query = _write_fts5_query(statements, query)
    if fts5_query:
        trigrams = table(SEARCH_TRIGRAMS, column("rowid"), column(SEARCH_TRIGRAMS))
        proposed_seqs = select(trigrams.c.rowid).where(trigrams.c[SEARCH_TRIGRAMS].op("MATCH")(fts5_query))
        matching = matching.where(texts.c.seq.in_(proposed_seqs))
    return place.in_(matching)


def match_any(
    connection: Connection,
    query: SearchQuery,
    owner: ColumnElement[str],
    *,
    named: ColumnElement[str],
    place: ColumnElement[int],
    where: ColumnElement[bool],
) -> ColumnElement[bool]:
    """Make the condition that some entry that matches a query belongs to ``owner``, a column.

    ``place`` is the column with the place of an entry, ``named`` the column that names its owner, and ``where`` a
    condition that the entry has to meet.

    If the trigrams propose few entries, these are listed and looked at. If they propose many, as for a word that is in
    nearly all, listing them would take longer than reading the texts of the owners that are looked through.
    """
    from sqlalchemy import column, false, select, table

    statements = EngineStatements(connection)
    if not _has_index(statements):
        return false()
    texts = table(SEARCH_TEXTS, column("seq"), column("text"))
    matching = select(named).where(where, *_make_conditions(query, texts.c.text, is_file=statements.is_file))
    matching = matching.join_from(place.table, texts, texts.c.seq == place)
    proposed_seqs = _find_few_proposed(statements, query)
    if proposed_seqs is not None:
        return owner.in_(matching.where(named.is_not(None), place.in_(proposed_seqs)))
    return matching.where(named == owner).correlate(owner.table).exists()


def _find_few_proposed(statements: Statements, query: SearchQuery) -> list[int] | None:
    """Find the entries that trigrams propose for a query; ``None`` where these are many, or there are no trigrams."""
    fts5_query = _write_fts5_query(statements, query)
    if not fts5_query:
        return None
    statement = f"SELECT rowid FROM {SEARCH_TRIGRAMS} WHERE {SEARCH_TRIGRAMS} MATCH ? LIMIT ?"  # noqa: S608 - the names are ours
    proposed = [int(str(row[0])) for row in statements.fetch(statement, (fts5_query, _MOST_PROPOSED + 1))]
    return proposed if len(proposed) <= _MOST_PROPOSED else None


_MOST_PROPOSED = 1_000
"""The most proposed entries that are looked at one by one."""


def _write_fts5_query(statements: Statements, query: SearchQuery) -> str:
    """Write the expression by which FTS5 proposes entries for a query; empty where there is no FTS5, or no trigram."""
    if not statements.is_file or find_fts5_problem() is not None or not read_state(statements).has_trigrams:
        return ""
    return _join_trigrams(query)


def find_unsearched(connection: Connection) -> int:
    """Find the place up to which entries are not in the index yet, and so are not searched; 0 where all are in it."""
    statements = EngineStatements(connection)
    return max(0, read_state(statements).since - 1) if _has_index(statements) else 0


def _has_index(statements: Statements) -> bool:
    """Return whether a database has the search index."""
    statement = (
        "SELECT 1 FROM sqlite_master WHERE name = ?"
        if statements.is_file
        else "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = ?"
    )
    return bool(statements.fetch(statement, (SEARCH_STATE,)))


def _make_conditions(query: SearchQuery, text: ColumnElement[str], *, is_file: bool) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions in SQL for a text: it holds each part of a query, and the parts of each pattern in order."""
    from sqlalchemy import func, literal

    for part in query.list_parts():
        # In SQLite, LIKE refuses a pattern of 50,000 bytes, and is slower than instr.
        yield func.instr(text, part) > 0 if is_file else text.contains(part, autoescape=True)
    for parts in query.list_patterns():
        pattern = "".join(f"%{_escape_like(part)}" for part in parts)
        yield text.like(literal(f"{pattern}%"), escape="/")


def _escape_like(part: str) -> str:
    """Escape with ``/`` the characters that have a meaning in a pattern of ``LIKE``."""
    return part.replace("/", "//").replace("%", "/%").replace("_", "/_")


def _join_trigrams(query: SearchQuery) -> str:
    """Join some trigrams of a query into an expression of FTS5: all of them have to be in the text.

    Empty where the query has no trigram, as a word of two letters.
    """
    trigrams: dict[str, None] = {}
    for part in sorted(query.list_parts(), key=len, reverse=True):
        if len(part) < 3:
            continue
        # Every third place, so that the trigrams cover the part without overlap, and the last three characters.
        starts = [*range(0, len(part) - 2, 3), len(part) - 3]
        for start in starts:
            if len(trigrams) < _MOST_TRIGRAMS:
                trigrams[part[start : start + 3]] = None
    quoted = (trigram.replace('"', '""') for trigram in trigrams)
    return " AND ".join(f'"{trigram}"' for trigram in quoted)
