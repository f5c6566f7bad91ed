"""Upgrading a ledger's database to the revision of this version, with Alembic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.ledger.revision import FIRST, REVISION, VERSION_TABLE, read_revision

if TYPE_CHECKING:
    from sqlalchemy import Connection


MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerUpgrade:
    """What an upgrade did. Both are revisions; they are equal when there was nothing to do."""

    before: str
    after: str


def upgrade_tables(connection: Connection) -> LedgerUpgrade:
    """Bring the tables of a database to this version's revision, in the transaction that the connection is in.

    Raises ``UsageError`` for a revision that this version does not know, and where Alembic is not installed.
    """
    from sqlalchemy import inspect

    before = read_revision(connection, is_named=inspect(connection).has_table(VERSION_TABLE))
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
    steps = [*scripts.iterate_revisions(REVISION, before)]  # without `before` itself, the last first
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
    context.stamp(scripts, REVISION)
    return LedgerUpgrade(before=before, after=read_revision(connection, is_named=True))
