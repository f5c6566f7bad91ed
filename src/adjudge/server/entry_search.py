"""Entries of the ledger that a page looks for: by an id, or the newest that match some filters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from adjudge.ledger.columns import find_columns, make_column_tables
from adjudge.ledger.entry import Entry, read_entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.store import make_table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Select


async def find_decision_or_result(ledger: Ledger, ident: str) -> Entry | None:
    """Find the newest decision or result with this id, this approval, or a result of this id; ``None`` if none."""
    if not can_store(ident):
        return None
    columns = find_columns()
    among = (columns.c.ident == ident) | (columns.c.approval == ident) | (columns.c.result == ident)
    statement = _select_newest().join(columns, columns.c.seq == make_table().c.seq)
    statement = statement.where(columns.c.state.is_not(None), among).limit(1)

    def fetch(connection: Connection) -> Entry | None:
        row = connection.execute(statement).one_or_none()
        return None if row is None else _read(row)

    return await ledger.look(fetch, tables=make_column_tables())


async def read_newest(
    ledger: Ledger,
    *,
    kinds: Sequence[str] = (),
    gate: str = "",
    subject: str = "",
    before: int | None = None,
    most: int,
) -> tuple[Entry, ...]:
    """Read at most ``most`` entries, the newest first: of some kinds, of a gate, about a digest that begins so.

    ``before`` is the place of an entry; only those in front of it are looked at. An empty filter is no condition.
    """
    if not can_store(gate) or not can_store(subject):
        return ()
    table, columns = make_table(), find_columns()
    statement = _select_newest()
    if gate:
        statement = statement.join(columns, columns.c.seq == table.c.seq).where(columns.c.gate == gate)
    if kinds:
        statement = statement.where(table.c.kind.in_(kinds))
    if subject:
        statement = statement.where(table.c.subject.startswith(subject, autoescape=True))
    if before is not None:
        statement = statement.where(table.c.seq < before)

    statement = statement.limit(most)

    def fetch(connection: Connection) -> tuple[Entry, ...]:
        return tuple(map(_read, connection.execute(statement)))

    return await ledger.look(fetch, tables=make_column_tables()) or ()


async def read_closed(ledger: Ledger, subjects: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Read the closed requests about some contents: their ids, each with the names of the people who closed it."""
    table = make_table()
    statement = table.select().where(table.c.kind == "approval.closed", table.c.subject.in_(sorted(subjects)))

    def fetch(connection: Connection) -> dict[str, tuple[str, ...]]:
        payloads = [_read(row).payload or {} for row in connection.execute(statement)]
        return {str(payload.get("approval")): _list_people(payload) for payload in payloads}

    return await ledger.look(fetch, tables=table.metadata) or {}


def find_gate(entry: Entry) -> str | None:
    """Find the gate that an entry names."""
    gate = (entry.payload or {}).get("gate")
    return gate if isinstance(gate, str) else None


def _list_people(payload: Mapping[str, object]) -> tuple[str, ...]:
    names = payload.get("closed_by")
    if payload.get("decided_by") != "human" or not isinstance(names, list):
        return ()
    return tuple(name for name in names if isinstance(name, str))


def _select_newest() -> Select[tuple[object, ...]]:
    table = make_table()
    return table.select().order_by(table.c.seq.desc())


def _read(row: Row[tuple[object, ...]]) -> Entry:
    values = list(row)
    values[5] = None if values[5] is None else bytes(values[5])  # type: ignore[call-overload] - PostgreSQL's is a view
    return read_entry(tuple(values))  # type: ignore[arg-type]
