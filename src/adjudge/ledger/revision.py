"""The revision of a ledger's database: of the tables that are beside the entries, and that a later version may change.

Entries have a schema of their own, which the genesis entry names and which never changes in place. Everything else (the
approvals, the tools, the server's keys and accounts) is in tables whose columns belong to a version of adjudge. The
revision says which. It is in the table in which Alembic keeps it, so that only an upgrade needs Alembic.
"""

from __future__ import annotations

from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.ledger.database import Statements

VERSION_TABLE = "adjudge_alembic_version"

REVISION = "0001"
"""The revision that this version reads and writes. Each has a file under ``migrations/versions``; they count up."""

FIRST = "0001"
"""The revision of a database that names none: all that were made before there were any."""


def read_revision(statements: Statements, *, is_named: bool) -> str:
    """Read the revision of a database; ``is_named`` says whether it has the table that names one."""
    if not is_named:
        return FIRST
    rows = statements.fetch(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - the name is ours
    return str(rows[0][0]) if rows else FIRST


def write_revision(statements: Statements) -> None:
    """Write this version's revision into a database that has just been made."""
    # As Alembic would make it: it reads and changes this table in an upgrade.
    statements.execute(
        f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
        f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
    )
    statements.insert(VERSION_TABLE, ["version_num"], [(REVISION,)])


def check_revision(statements: Statements, name: str, *, is_named: bool) -> None:
    """Raise ``UsageError`` for a database of another revision than this version's.

    ``name`` is the address of the database, and ``is_named`` says whether it has the table that names its revision.
    """
    revision = read_revision(statements, is_named=is_named)
    if revision == REVISION:
        return
    if revision.isdecimal() and int(revision) < int(REVISION):
        raise UsageError(
            f"{name} is of revision {revision}, and this version of adjudge needs {REVISION}; stop what uses it, "
            "back it up, and run `adjudge ledger upgrade`"
        )
    # A database of a later version is not read at all: a column that this version does not know may forbid something.
    raise UsageError(
        f"{name} is of revision {show(revision)}, and this version of adjudge knows {REVISION}; update adjudge"
    )
