"""Lookups of single ledger entries for pages: a decision or result by an id, and who closed a request for approval.

The search of pages is in ``ledger/search_text.py`` and ``result_lists.py`` (``list_results``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from adjudge.ledger.columns import get_columns_table, make_column_tables
from adjudge.ledger.entry import PAYLOAD, Entry, read_entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.store import make_table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row


async def find_decision_or_result(ledger: Ledger, ident: str) -> Entry | None:
    """Find the newest decision or result whose own id, approval id or result id is ``ident``; ``None`` if none is."""
    if not can_store(ident):
        return None
    columns = get_columns_table()
    has_ident = (columns.c.ident == ident) | (columns.c.approval == ident) | (columns.c.result == ident)
    table = make_table()
    statement = table.select().join(columns, columns.c.seq == table.c.seq)
    statement = statement.where(columns.c.state.is_not(None), has_ident).order_by(table.c.seq.desc()).limit(1)

    def fetch(connection: Connection) -> Entry | None:
        """Fetch the entry; ``None`` if there is none."""
        row = connection.execute(statement).one_or_none()
        return None if row is None else _read_row(row)

    return await ledger.look(fetch, tables=make_column_tables())


async def read_closers(ledger: Ledger, subjects: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Read who closed the requests for approval about some contents: the names of people, by the id of the request.

    ``subjects`` are the digests of the contents. A request that no person closed has no names.
    """
    table = make_table()
    statement = table.select().where(table.c.kind == "approval.closed", table.c.subject.in_(sorted(subjects)))

    def fetch(connection: Connection) -> dict[str, tuple[str, ...]]:
        """Fetch the closing entries, and list the people of each by the id of its request."""
        payloads = [_read_row(row).payload or {} for row in connection.execute(statement)]
        return {str(payload.get("approval")): _list_closers(payload) for payload in payloads}

    return await ledger.look(fetch, tables=table.metadata) or {}


def find_gate(entry: Entry) -> str | None:
    """Find the gate that an entry names."""
    gate = (entry.payload or {}).get("gate")
    return gate if isinstance(gate, str) else None


def _list_closers(payload: Mapping[str, object]) -> tuple[str, ...]:
    """List the people who closed a request, by the payload of its closing entry; none if a policy closed it."""
    names = payload.get("closed_by")
    if payload.get("decided_by") != "human" or not isinstance(names, list):
        return ()
    return tuple(name for name in names if isinstance(name, str))


def _read_row(row: Row[tuple[object, ...]]) -> Entry:
    """Read the entry of a row of the ledger's table."""
    values = list(row)
    # PostgreSQL returns the payload as a memoryview, SQLite as bytes.
    values[PAYLOAD] = None if values[PAYLOAD] is None else bytes(values[PAYLOAD])  # type: ignore[call-overload]
    return read_entry(tuple(values))  # type: ignore[arg-type]
