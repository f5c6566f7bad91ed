"""Upgrading a ledger's database to the revision of this version, with Alembic.

Whether a database needs it is decided in ``revision.py`` (``check_revision``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.ledger.columns import derive, insert_columns, make_column_tables, write_search_text
from adjudge.ledger.database import EngineStatements
from adjudge.ledger.entry import AT, SEQ
from adjudge.ledger.revision import FIRST, REVISION, VERSION_TABLE, read_revision
from adjudge.ledger.search_index import append_texts, create_index
from adjudge.ledger.store import list_rows, list_tables

if TYPE_CHECKING:
    from sqlalchemy import Connection


MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerUpgrade:
    """The outcome of an upgrade. Both are revisions; they are equal when there was nothing to do."""

    before: str
    """The revision of the tables before."""
    after: str
    """The revision of the tables now."""


def upgrade_tables(connection: Connection, *, rebuild: Callable[[Connection], object] | None = None) -> LedgerUpgrade:
    """Bring the tables of a database to this version's revision, in the transaction that the connection is in.

    The columns and the search index of every entry are derived anew. ``rebuild`` then derives anew what other parts of
    adjudge keep in tables of their own.

    Raises ``UsageError`` for a revision that this version does not know, and where Alembic is not installed.
    """
    statements = EngineStatements(connection)
    before = read_revision(statements, is_named=VERSION_TABLE in list_tables(statements))
    if not before.isdecimal() or not int(FIRST) <= int(before) <= int(REVISION):
        raise UsageError(f"revision {show(before)} is not known to this version, which has {REVISION}; update adjudge")
    try:
        from alembic.migration import MigrationContext
        from alembic.operations import Operations
        from alembic.script import ScriptDirectory
    except ImportError:
        raise UsageError("an upgrade needs the package alembic; to have it, pip install 'adjudge[server]'") from None
    scripts = ScriptDirectory(str(MIGRATIONS))
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    steps = [*scripts.iterate_revisions(REVISION, before)]  # the last step first; `before` itself is not among them
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
    context.stamp(scripts, REVISION)
    rebuild_columns(connection)
    if rebuild is not None:
        rebuild(connection)
    return LedgerUpgrade(before=before, after=read_revision(statements, is_named=True))


def rebuild_columns(connection: Connection) -> None:
    """Delete the columns and the search index of all entries, and derive them anew from the payloads."""
    tables, statements = make_column_tables(), EngineStatements(connection)
    tables.create_all(connection)
    for table in tables.sorted_tables:
        connection.execute(table.delete())
    create_index(statements, 0)
    last_seq = 0
    while rows := list_rows(statements, after=last_seq):
        derived = [(row[SEQ], row[AT], derive(row)) for row in rows]
        insert_columns(statements, derived)
        search_texts = [write_search_text(seq, derived_entry) for seq, _, derived_entry in derived]
        append_texts(statements, last_seq + 1, rows[-1][SEQ], [text for text in search_texts if text is not None])
        last_seq = rows[-1][SEQ]
