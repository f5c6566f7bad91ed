"""Entries of the ledger that a page looks for: by an id, or the newest that match some filters.

The database looks through all of them, however many there are. What it finds by their bytes alone is read and compared
before it counts: any entry may quote the id or the gate of another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.ledger.entry import Entry, read_entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import encode_payload
from adjudge.ledger.store import PAGE, make_table

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row, Select


async def find_decision_or_result(ledger: Ledger, ident: str) -> Entry | None:
    """The newest decision or result with this id, with this approval, or of a result with this id; ``None`` if none."""
    statement = _select_newest().where(make_table().c.kind.in_(("decision", "result")))

    def work(connection: Connection) -> Entry | None:
        found = _search(connection, statement, ident)
        return next((entry for entry in found if ident in _list_ids(entry)), None)

    return await ledger.look(work, tables=make_table().metadata)


async def read_newest(
    ledger: Ledger,
    *,
    kinds: Sequence[str] = (),
    gate: str = "",
    subject: str = "",
    before: int | None = None,
    most: int,
) -> tuple[Entry, ...]:
    """At most ``most`` entries, the newest first: of some kinds, of a gate, about a digest that begins so.

    ``before`` is the place of an entry; only those in front of it are looked at. An empty filter is no condition.
    """
    table = make_table()
    statement = _select_newest()
    if kinds:
        statement = statement.where(table.c.kind.in_(kinds))
    if subject:
        statement = statement.where(table.c.subject.startswith(subject, autoescape=True))
    if before is not None:
        statement = statement.where(table.c.seq < before)

    def work(connection: Connection) -> tuple[Entry, ...]:
        found = _search(connection, statement, gate)
        return tuple(islice((entry for entry in found if not gate or find_gate(entry) == gate), most))

    return await ledger.look(work, tables=table.metadata) or ()


async def read_closed(ledger: Ledger, subjects: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The closed requests about some contents: their ids, each with the names of the people who closed it."""
    table = make_table()
    statement = table.select().where(table.c.kind == "approval.closed", table.c.subject.in_(sorted(subjects)))

    def work(connection: Connection) -> dict[str, tuple[str, ...]]:
        payloads = [_read(row).payload or {} for row in connection.execute(statement)]
        return {str(said.get("approval")): _list_people(said) for said in payloads}

    return await ledger.look(work, tables=table.metadata) or {}


def find_gate(entry: Entry) -> str | None:
    """The gate that an entry names."""
    found = (entry.payload or {}).get("gate")
    return found if isinstance(found, str) else None


def _list_ids(entry: Entry) -> Sequence[object]:
    said = entry.payload or {}
    result = said.get("result")
    return said.get("id"), said.get("approval_id"), result.get("id") if isinstance(result, dict) else None


def _list_people(said: Mapping[str, object]) -> tuple[str, ...]:
    names = said.get("closed_by")
    if said.get("decided_by") != "human" or not isinstance(names, list):
        return ()
    return tuple(name for name in names if isinstance(name, str))


def _select_newest() -> Select[tuple[object, ...]]:
    table = make_table()
    return table.select().order_by(table.c.seq.desc())


def _search(connection: Connection, statement: Select[tuple[object, ...]], text: str) -> Iterator[Entry]:
    """The entries whose payload holds this text, one after the other: a search that ends early reads no more."""
    if text:
        statement = statement.where(_holds(connection, text))
    options = {"yield_per": PAGE, "stream_results": True}
    for part in connection.execution_options(**options).execute(statement).partitions():
        yield from map(_read, part)


def _holds(connection: Connection, text: str) -> ColumnElement[bool]:
    from sqlalchemy import LargeBinary, false, func, literal

    try:
        written = encode_payload({"": text}).partition(b":")[2].removesuffix(b"}")
    except UsageError:  # what no payload can say
        return false()
    wanted = literal(written, LargeBinary())
    payload = make_table().c.payload
    if connection.dialect.name == "sqlite":
        return func.instr(payload, wanted) > 0
    return func.position(wanted.op("IN")(payload)) > 0


def _read(row: Row[tuple[object, ...]]) -> Entry:
    values = list(row)
    values[5] = None if values[5] is None else bytes(values[5])  # type: ignore[call-overload] - PostgreSQL's is a view
    return read_entry(tuple(values))  # type: ignore[arg-type]
