"""The one table of a ledger, and what makes each database refuse to change it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from adjudge.ledger._entry import COLUMNS

if TYPE_CHECKING:
    from sqlalchemy import Table

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
