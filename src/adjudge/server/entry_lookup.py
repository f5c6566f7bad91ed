"""Entries of the ledger that pages look up beside those they list: a decision by its result, what closed a request.

The search of pages is in ``ledger/search_text.py`` and ``result_lists.py`` (``list_results``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from adjudge.ledger.columns import find_columns, make_column_tables
from adjudge.ledger.entry import PAYLOAD, Entry, read_entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.store import make_table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row


async def find_decision_or_result(ledger: Ledger, ident: str) -> Entry | None:
    """Find the newest decision or result with this id, this approval, or a result of this id; ``None`` if none."""
    if not can_store(ident):
        return None
    columns = find_columns()
    among = (columns.c.ident == ident) | (columns.c.approval == ident) | (columns.c.result == ident)
    table = make_table()
    statement = table.select().join(columns, columns.c.seq == table.c.seq)
    statement = statement.where(columns.c.state.is_not(None), among).order_by(table.c.seq.desc()).limit(1)

    def fetch(connection: Connection) -> Entry | None:
        row = connection.execute(statement).one_or_none()
        return None if row is None else _read_row(row)

    return await ledger.look(fetch, tables=make_column_tables())


async def read_closed(ledger: Ledger, subjects: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Read the closed requests about some contents: their ids, each with the names of the people who closed it."""
    table = make_table()
    statement = table.select().where(table.c.kind == "approval.closed", table.c.subject.in_(sorted(subjects)))

    def fetch(connection: Connection) -> dict[str, tuple[str, ...]]:
        payloads = [_read_row(row).payload or {} for row in connection.execute(statement)]
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


def _read_row(row: Row[tuple[object, ...]]) -> Entry:
    values = list(row)
    # PostgreSQL's is a view of memory.
    values[PAYLOAD] = None if values[PAYLOAD] is None else bytes(values[PAYLOAD])  # type: ignore[call-overload]
    return read_entry(tuple(values))  # type: ignore[arg-type]
