"""The columns by which requests are found: the columns of lists, derived from the ledger's entry of each request.

They prove nothing, and no decision rests on them: before an approval counts, the ledger's own entries are read. A
request that somebody hid from lists, or listed for somebody else, is found by comparing the columns with the entries,
and an upgrade derives them anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from adjudge.formats.text import clean, flatten
from adjudge.guards.approval.tables import APPROVALS, APPROVERS, REQUEST_COLUMNS, make_tables
from adjudge.ledger.columns import AUDIT_CLOSED, AUDIT_REQUESTED, LONGEST_TITLE, find_columns
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import MOST_SUBJECT, can_store
from adjudge.ledger.search_index import match_any
from adjudge.ledger.search_text import SearchQuery
from adjudge.ledger.store import make_table as make_ledger_table
from adjudge.ledger.verification import Verification

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


REQUEST_SCHEMA = "adjudge/approval-request/1"

CLOSING_SCHEMA = "adjudge/approval-closing/1"


class RequestColumns(NamedTuple):
    """The columns by which a request is found, beside its approvers; ``None`` is what it does not say."""

    created_at: str
    gate: str | None
    title: str | None
    agent: str | None
    customer: str | None


OPEN = ("open", "audit.open")
"""The statuses that open requests have in the table of requests."""


def find_listed_status(status: str, *, is_audit: bool) -> str:
    """Find how the table of requests has a status.

    That of an audit is another one, so that no queue, limit or count takes an audit for what waits for a decision.
    """
    return f"audit.{status}" if is_audit else status


_EVERYTHING = SearchQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilters:
    """Conditions on the columns of a list of requests; ``None`` is no condition."""

    title: str | None = None
    """A part of the title, in capitals or not."""
    agent: str | None = None
    customer: str | None = None
    gate: str | None = None
    query: SearchQuery = _EVERYTHING
    """Words and filters that the search index has of the request's entry, or of the decision that waits for it."""

    def make_conditions(self, connection: Connection) -> list[ColumnElement[bool]]:
        """Make the conditions on the table of columns."""
        table = make_tables().tables[REQUEST_COLUMNS]
        exact = {"agent": self.agent, "customer": self.customer, "gate": self.gate}
        conditions = [table.c[name] == value for name, value in exact.items() if value is not None]
        conditions += [table.c.title.icontains(self.title, autoescape=True)] if self.title else []
        return conditions + ([self._match(connection)] if self.query else [])

    def _match(self, connection: Connection) -> ColumnElement[bool]:
        """Make the condition that an entry about the request, or the decision that waits for it, matches ``query``."""
        entries = find_columns()
        return match_any(
            connection,
            self.query,
            make_tables().tables[REQUEST_COLUMNS].c.approval,
            named=entries.c.approval,
            place=entries.c.seq,
            where=entries.c.kind.in_(("approval.requested", AUDIT_REQUESTED, "decision")),
        )


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """All that is derived from the entry of a request."""

    columns: RequestColumns
    approvers: tuple[str, ...]
    expires_at: str | None


def derive_request(members: Mapping[str, Any]) -> ListedRequest:
    """Derive what a request is found by from its entry; raise what reading another mapping raises."""
    metadata = members["metadata"]
    title = metadata.get("title")
    columns = RequestColumns(
        created_at=_write_time(members["created_at"]),
        gate=_read_column(members.get("gate")),
        title=_read_column(flatten(title, LONGEST_TITLE).strip()) if isinstance(title, str) else None,
        agent=_read_column(metadata.get("agent")),
        customer=_read_column(metadata.get("customer")),
    )
    expires_at = members["expires_at"]
    return ListedRequest(
        columns, tuple(sorted(members["approvers"])), None if expires_at is None else _write_time(expires_at)
    )


def _write_time(text: str) -> str:
    return format_time(datetime.fromisoformat(text))


def _read_column(text: object) -> str | None:
    """Read the text of a column, which every store can hold; ``None`` for anything else."""
    return text if isinstance(text, str) and 0 < len(text) <= MOST_SUBJECT and can_store(text) else None


def insert_columns(connection: Connection, ident: str, request: ListedRequest) -> None:
    """List a new request."""
    tables = make_tables().tables
    connection.execute(tables[REQUEST_COLUMNS].insert().values(approval=ident, **request.columns._asdict()))
    rows = [{"approval": ident, "approver": name} for name in request.approvers]
    connection.execute(tables[APPROVERS].insert(), rows)


# ---------------------------------------------------------------- comparing and deriving anew


async def verify_listed(ledger: Ledger, verification: Verification) -> Verification:
    """Return the verification of a ledger, with a fault if a request for approval is not listed as its entry has it.

    A ledger that is changed already is not compared any further.
    """
    if not verification.valid:
        return verification
    difference = await ledger.look(find_difference, tables=make_tables(), snapshot=True)
    if difference is None:
        return verification
    seq, problem = difference
    return replace(verification, valid=False, code="columns_changed", seq=seq, detail=problem)


def find_difference(connection: Connection) -> tuple[int | None, str] | None:
    """The first request that is not listed as the ledger has it: the place of its entry, and one sentence."""
    entries, stored = _read_entries(connection), _read_stored(connection)
    for row in stored:
        problem = _compare(connection, row, entries)
        if problem is not None:
            request = entries.requests.get(row.id)
            shown = clean(row.id[:80], keep_lines=False)
            return None if request is None else request.seq, f"approval {shown} {problem}"
    missing = entries.requests.keys() - {row.id for row in stored}
    if not missing:
        return None
    lost = min((entries.requests[ident] for ident in missing), key=lambda request: request.seq)
    return lost.seq, f"entry {lost.seq} requests an approval that is in no list: it was dropped by hand"


_REMEDY = "; find out who changed it, and only then have `adjudge ledger upgrade` derive what is listed anew"


def _compare(connection: Connection, row: _StoredRequest, entries: _Entries) -> str | None:
    """Compare how a request is listed with its entries; return the rest of a sentence, or ``None`` if they agree."""
    request = _find_listed(connection, row, entries)
    if request is None:
        return "is in a list, and no entry requests it: it was listed by hand"
    if row.columns is None:
        return f"is in no list{_REMEDY}"
    for name, value, wanted in zip(RequestColumns._fields, row.columns, request.columns, strict=True):
        if value != wanted:
            return f"is listed with {name} {_show(value)}, and its entry says {_show(wanted)}{_REMEDY}"
    if row.approvers != request.approvers:
        return f"is listed for {_show(', '.join(row.approvers))}, and its entry asks others{_REMEDY}"
    if (row.status, row.expires_at) != (_find_status(connection, row, entries), request.expires_at):
        return f"is listed as {_show(row.status)} until {_show(row.expires_at)}, and its entries say otherwise{_REMEDY}"
    return None


def _show(value: object) -> str:
    return clean(repr(value)[:80], keep_lines=False)


def rebuild_listed(connection: Connection) -> None:
    """Derive what requests are found by anew, in place of what is there; nothing where none was ever made."""
    from sqlalchemy import inspect

    if not inspect(connection).has_table(APPROVALS):
        return
    make_tables().create_all(connection)
    tables = make_tables().tables
    for index in tables[APPROVALS].indexes:  # of a table that was there, ``create_all`` makes none
        index.create(connection, checkfirst=True)
    entries, stored = _read_entries(connection), _read_stored(connection)
    for name in (APPROVERS, REQUEST_COLUMNS):
        connection.execute(tables[name].delete())
    approvals = tables[APPROVALS]
    for row in stored:
        request = _find_listed(connection, row, entries)
        if request is not None:
            insert_columns(connection, row.id, request)
            values = {"status": _find_status(connection, row, entries), "expires_at": request.expires_at}
            connection.execute(approvals.update().where(approvals.c.id == row.id).values(**values))


@dataclass(frozen=True, slots=True)
class _EntryOfRequest:
    seq: int
    listed: ListedRequest
    is_audit: bool


@dataclass(frozen=True, slots=True)
class _Entries:
    """The ledger's entries about all requests."""

    requests: dict[str, _EntryOfRequest]
    ends: dict[str, str]
    """The status of those that have ended."""
    erased: frozenset[int]
    """The places of entries whose payload was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredRequest:
    """A request as the tables have it."""

    id: str
    status: str
    expires_at: str | None
    columns: tuple[Any, ...] | None
    approvers: tuple[str, ...]


def _read_entries(connection: Connection) -> _Entries:
    """Read what the ledger says of all requests: of each its entry, its end, and which entries were erased."""
    from sqlalchemy import select

    table = make_ledger_table()
    kinds = ("approval.requested", AUDIT_REQUESTED, "approval.closed", AUDIT_CLOSED)
    statement = select(table.c.seq, table.c.kind, table.c.payload).where(table.c.kind.in_(kinds)).order_by(table.c.seq)
    requests: dict[str, _EntryOfRequest] = {}
    ends: dict[str, str] = {}
    erased: set[int] = set()
    for seq, kind, payload in connection.execute(statement.execution_options(yield_per=_READ_AT_ONCE)):
        if payload is None:
            erased.add(seq)
            continue
        try:
            members = json.loads(payload)
            if members["schema"] == CLOSING_SCHEMA:
                ends[members["approval"]] = members["status"]
            elif members["schema"] == REQUEST_SCHEMA:
                request = _EntryOfRequest(seq, derive_request(members), kind == AUDIT_REQUESTED)
                requests[members["approval"]] = request
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # anybody's: a program may record an entry of this kind by itself
    return _Entries(requests, ends, frozenset(erased))


_READ_AT_ONCE = 50


def _read_stored(connection: Connection) -> Sequence[_StoredRequest]:
    """Read what the tables say of all requests, with their columns and approvers."""
    from sqlalchemy import select

    tables = make_tables().tables
    approvals, listed, approvers = (tables[name] for name in (APPROVALS, REQUEST_COLUMNS, APPROVERS))
    names: dict[str, list[str]] = {}
    for ident, name in connection.execute(select(approvers.c.approval, approvers.c.approver)):
        names.setdefault(ident, []).append(name)
    columns = {row.approval: tuple(row)[1:] for row in connection.execute(listed.select())}
    statement = select(approvals.c.id, approvals.c.status, approvals.c.expires_at)
    return [
        _StoredRequest(
            id=row.id,
            status=row.status,
            expires_at=row.expires_at,
            columns=columns.get(row.id),
            approvers=tuple(sorted(names.get(row.id, ()))),
        )
        for row in connection.execute(statement.order_by(approvals.c.id))
    ]


def _find_listed(connection: Connection, row: _StoredRequest, entries: _Entries) -> ListedRequest | None:
    """Find how a request should be listed; ``None`` where the ledger says nothing of it."""
    request = entries.requests.get(row.id)
    if request is not None:
        return request.listed
    # Its entry may be erased. Then the request itself is what is left to derive from.
    body = _read_body(connection, row.id)
    try:
        return derive_request(body) if body.get("seq") in entries.erased else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _find_status(connection: Connection, row: _StoredRequest, entries: _Entries) -> str:
    """Find how a request ended, as the ledger has it; as its table has it where that entry is erased."""
    ended, request = entries.ends.get(row.id), entries.requests.get(row.id)
    is_audit = _is_audit(connection, row) if request is None else request.is_audit
    if ended is not None or row.status in OPEN:
        return find_listed_status(ended or "open", is_audit=is_audit)
    is_erased = _read_body(connection, row.id).get("closed_seq") in entries.erased
    return row.status if is_erased else find_listed_status("open", is_audit=is_audit)


def _is_audit(connection: Connection, row: _StoredRequest) -> bool:
    """Return whether a request is an audit, as it says itself, since its entry is erased."""
    return bool(_read_body(connection, row.id).get("audit"))


def _read_body(connection: Connection, ident: str) -> Mapping[str, Any]:
    """Read the stored body of a request; empty where it is no JSON object."""
    from sqlalchemy import select

    approvals = make_tables().tables[APPROVALS]
    body = connection.execute(select(approvals.c.body).where(approvals.c.id == ident)).scalar_one()
    try:
        members = json.loads(body)
    except (RecursionError, ValueError):
        members = None
    return members if isinstance(members, dict) else {}
