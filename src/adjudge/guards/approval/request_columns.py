"""The columns by which lists and searches find requests for approval, derived from the ledger's entry of each request.

No decision depends on them: before an approval counts, the ledger's own entries are read. If somebody hides a request
from lists, or lists it for somebody else, comparing the columns with the entries shows it (``verify_listed``), and an
upgrade derives the columns again (``rebuild_listed``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from adjudge.formats.text import clean, flatten
from adjudge.guards.approval.tables import APPROVALS, APPROVERS, REQUEST_COLUMNS, make_tables
from adjudge.ledger.columns import AUDIT_CLOSED, AUDIT_REQUESTED, LONGEST_TITLE, get_columns_table
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
    """The columns by which a request is found, beside its approvers; ``None`` for a value that the request has not."""

    created_at: str
    gate: str | None
    title: str | None
    agent: str | None
    customer: str | None


OPEN = ("open", "audit.open")
"""The statuses that open requests have in the table of requests."""


def find_listed_status(status: str, *, is_audit: bool) -> str:
    """Return the value that the table of requests has for a status.

    For an audit it has a prefix, so that no queue, limit or count takes an audit for a request that waits for a
    decision.
    """
    return f"audit.{status}" if is_audit else status


_NO_QUERY = SearchQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilters:
    """Conditions on the columns of a list of requests; ``None`` is no condition."""

    title: str | None = None
    """A part of the title, in capitals or not."""
    agent: str | None = None
    customer: str | None = None
    gate: str | None = None
    query: SearchQuery = _NO_QUERY
    """Words and filters of a search; the request's entry or that of its pending decision has to match them."""

    def make_conditions(self, connection: Connection) -> list[ColumnElement[bool]]:
        """Make the SQL conditions of these filters on the table of request columns."""
        table = make_tables().tables[REQUEST_COLUMNS]
        exact_values = {"agent": self.agent, "customer": self.customer, "gate": self.gate}
        conditions = [table.c[name] == value for name, value in exact_values.items() if value is not None]
        conditions += [table.c.title.icontains(self.title, autoescape=True)] if self.title else []
        return conditions + ([self._make_query_condition(connection)] if self.query else [])

    def _make_query_condition(self, connection: Connection) -> ColumnElement[bool]:
        """Make the condition that the request's entry in the ledger, or its pending decision's, matches ``query``."""
        entries = get_columns_table()
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
    """The values of the tables of lists and searches for one request, derived from its entry in the ledger."""

    columns: RequestColumns
    approvers: tuple[str, ...]
    expires_at: str | None


def derive_request(members: Mapping[str, Any]) -> ListedRequest:
    """Derive the columns, approvers and expiry of a request from the members of its entry.

    Raises ``AttributeError``, ``KeyError``, ``TypeError`` or ``ValueError`` for members that are not such an entry's.
    """
    metadata = members["metadata"]
    title = metadata.get("title")
    columns = RequestColumns(
        created_at=_convert_time(members["created_at"]),
        gate=_read_column(members.get("gate")),
        title=_read_column(flatten(title, LONGEST_TITLE).strip()) if isinstance(title, str) else None,
        agent=_read_column(metadata.get("agent")),
        customer=_read_column(metadata.get("customer")),
    )
    expires_at = members["expires_at"]
    approvers = tuple(sorted(members["approvers"]))
    return ListedRequest(columns, approvers, None if expires_at is None else _convert_time(expires_at))


def _convert_time(text: str) -> str:
    """Convert a time of an entry to the form that the tables have, in which times can be compared as texts."""
    return format_time(datetime.fromisoformat(text))


def _read_column(text: object) -> str | None:
    """Return a text that a column of every store can hold; ``None`` for any other value."""
    return text if isinstance(text, str) and 0 < len(text) <= MOST_SUBJECT and can_store(text) else None


def insert_columns(connection: Connection, ident: str, request: ListedRequest) -> None:
    """Write the columns and the approvers of a request to their tables."""
    tables = make_tables().tables
    connection.execute(tables[REQUEST_COLUMNS].insert().values(approval=ident, **request.columns._asdict()))
    rows = [{"approval": ident, "approver": name} for name in request.approvers]
    connection.execute(tables[APPROVERS].insert(), rows)


# ---------------------------------------------------------------- comparing and deriving anew


async def verify_listed(ledger: Ledger, verification: Verification) -> Verification:
    """Return the verification of a ledger, made invalid if a request's columns differ from its entry in the ledger.

    If the verification is invalid already, nothing is compared.
    """
    if not verification.valid:
        return verification
    difference = await ledger.look(find_difference, tables=make_tables(), snapshot=True)
    if difference is None:
        return verification
    seq, problem = difference
    return replace(verification, valid=False, code="columns_changed", seq=seq, detail=problem)


def find_difference(connection: Connection) -> tuple[int | None, str] | None:
    """Find the first request whose columns differ from what the ledger says.

    Returns the place of its entry (``None`` if no entry requests it) and the problem in one sentence; ``None`` if
    there is no difference.
    """
    entries, stored_requests = _read_entries(connection), _read_stored(connection)
    for stored in stored_requests:
        problem = _find_problem(connection, stored, entries)
        if problem is not None:
            request = entries.requests.get(stored.id)
            shown_id = clean(stored.id[:80], keep_lines=False)
            return None if request is None else request.seq, f"approval {shown_id} {problem}"
    missing_ids = entries.requests.keys() - {stored.id for stored in stored_requests}
    if not missing_ids:
        return None
    first_missing = min((entries.requests[ident] for ident in missing_ids), key=lambda request: request.seq)
    seq = first_missing.seq
    return seq, f"entry {seq} requests an approval that is in no list: it was dropped by hand"


_REMEDY = "; find out who changed it, and only then have `adjudge ledger upgrade` derive what is listed anew"


def _find_problem(connection: Connection, stored: _StoredRequest, entries: _LedgerEntries) -> str | None:
    """Compare a request's columns with its entries in the ledger.

    Returns the problem as the end of a sentence that begins with the approval's id, or ``None`` if they agree.
    """
    expected = _derive_listed(connection, stored, entries)
    if expected is None:
        return "is in a list, and no entry requests it: it was listed by hand"
    if stored.columns is None:
        return f"is in no list{_REMEDY}"
    for name, value, expected_value in zip(RequestColumns._fields, stored.columns, expected.columns, strict=True):
        if value != expected_value:
            return f"is listed with {name} {_show(value)}, and its entry says {_show(expected_value)}{_REMEDY}"
    if stored.approvers != expected.approvers:
        return f"is listed for {_show(', '.join(stored.approvers))}, and its entry asks others{_REMEDY}"
    if (stored.status, stored.expires_at) != (_find_status(connection, stored, entries), expected.expires_at):
        listed_as = f"{_show(stored.status)} until {_show(stored.expires_at)}"
        return f"is listed as {listed_as}, and its entries say otherwise{_REMEDY}"
    return None


def _show(value: object) -> str:
    return clean(repr(value)[:80], keep_lines=False)


def rebuild_listed(connection: Connection) -> None:
    """Replace the columns, approvers, statuses and expiries of all requests by what the ledger's entries say.

    Does nothing if the database has no table of requests.
    """
    from sqlalchemy import inspect

    if not inspect(connection).has_table(APPROVALS):
        return
    make_tables().create_all(connection)
    tables = make_tables().tables
    for index in tables[APPROVALS].indexes:  # ``create_all`` makes no index of a table that exists already
        index.create(connection, checkfirst=True)
    entries, stored_requests = _read_entries(connection), _read_stored(connection)
    for name in (APPROVERS, REQUEST_COLUMNS):
        connection.execute(tables[name].delete())
    approvals = tables[APPROVALS]
    for stored in stored_requests:
        listed = _derive_listed(connection, stored, entries)
        if listed is not None:
            insert_columns(connection, stored.id, listed)
            values = {"status": _find_status(connection, stored, entries), "expires_at": listed.expires_at}
            connection.execute(approvals.update().where(approvals.c.id == stored.id).values(**values))


@dataclass(frozen=True, slots=True)
class _RequestEntry:
    seq: int
    listed: ListedRequest
    is_audit: bool


@dataclass(frozen=True, slots=True)
class _LedgerEntries:
    """The ledger's entries about all requests."""

    requests: dict[str, _RequestEntry]
    """The entries of the requests, by the request's id."""
    end_statuses: dict[str, str]
    """The statuses of the requests that have ended, by id."""
    erased: frozenset[int]
    """The places of entries whose payload was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredRequest:
    """A request as the tables have it; ``columns`` is ``None`` if the table of columns has no row for it."""

    id: str
    status: str
    expires_at: str | None
    columns: tuple[Any, ...] | None
    approvers: tuple[str, ...]


def _read_entries(connection: Connection) -> _LedgerEntries:
    """Read from the ledger the entry and the end of every request, and which of these entries were erased."""
    from sqlalchemy import select

    table = make_ledger_table()
    kinds = ("approval.requested", AUDIT_REQUESTED, "approval.closed", AUDIT_CLOSED)
    statement = select(table.c.seq, table.c.kind, table.c.payload).where(table.c.kind.in_(kinds)).order_by(table.c.seq)
    requests: dict[str, _RequestEntry] = {}
    end_statuses: dict[str, str] = {}
    erased: set[int] = set()
    for seq, kind, payload in connection.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE)):
        if payload is None:
            erased.add(seq)
            continue
        try:
            members = json.loads(payload)
            if members["schema"] == CLOSING_SCHEMA:
                end_statuses[members["approval"]] = members["status"]
            elif members["schema"] == REQUEST_SCHEMA:
                request = _RequestEntry(seq, derive_request(members), kind == AUDIT_REQUESTED)
                requests[members["approval"]] = request
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # not an entry of adjudge: a program may record entries of this kind by itself
    return _LedgerEntries(requests, end_statuses, frozenset(erased))


_ROWS_AT_ONCE = 50


def _read_stored(connection: Connection) -> Sequence[_StoredRequest]:
    """Read all requests from the tables: their rows, columns and approvers, without their bodies."""
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


def _derive_listed(connection: Connection, stored: _StoredRequest, entries: _LedgerEntries) -> ListedRequest | None:
    """Derive the columns that a request should have from its entry; ``None`` if no entry of the ledger requests it.

    If its entry was erased, they are derived from the body of the request in its table.
    """
    request = entries.requests.get(stored.id)
    if request is not None:
        return request.listed
    body = _read_body(connection, stored.id)
    try:
        return derive_request(body) if body.get("seq") in entries.erased else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _find_status(connection: Connection, stored: _StoredRequest, entries: _LedgerEntries) -> str:
    """Find the status that a request should have in its table, by the ledger's entry of its end.

    If that entry was erased, the status in the table counts.
    """
    end_status, request = entries.end_statuses.get(stored.id), entries.requests.get(stored.id)
    is_audit = _is_audit(connection, stored) if request is None else request.is_audit
    if end_status is not None or stored.status in OPEN:
        return find_listed_status(end_status or "open", is_audit=is_audit)
    is_end_erased = _read_body(connection, stored.id).get("closed_seq") in entries.erased
    return stored.status if is_end_erased else find_listed_status("open", is_audit=is_audit)


def _is_audit(connection: Connection, stored: _StoredRequest) -> bool:
    """Return whether a request whose entry was erased is an audit, by its body in the table."""
    return bool(_read_body(connection, stored.id).get("audit"))


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
