"""The queue of open requests, read from columns and not from their bodies: there may be thousands, each a megabyte.

When a vote can no longer be taken back is decided in ``votes.py`` (``find_final_at``), and who may see a request
over HTTP in ``server/api/approvals.py`` (``can_see``). When an unanswered request expires, and how it ends then, is
decided in ``approval.py`` (``is_due``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from adjudge.errors import LedgerError, Reason
from adjudge.formats.msgspec_types import read_typed, read_typed_json
from adjudge.guards.approval.approval import Status, Vote
from adjudge.guards.approval.request_columns import RequestFilters, find_listed_status
from adjudge.guards.approval.store import READ_AT_ONCE, list_votes, read_votes
from adjudge.guards.approval.tables import (
    APPROVALS,
    APPROVERS,
    PENDING_VOTES,
    REQUEST_COLUMNS,
    VOTES,
    make_tables,
)
from adjudge.ledger.entry import format_time
from adjudge.result import Outcome

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Table

QueueOrder = Literal["expiry", "oldest", "newest"]
"""The order of the queue: what expires next first, or by when it was requested."""

QUEUE_ORDERS: tuple[QueueOrder, ...] = get_args(QueueOrder)

LONGEST_BEGINNING = 4_000
"""Characters of a content that a summary has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """A place in the queue: whom an open request asks, and until when."""

    id: str
    """The id of the request."""
    approvers: tuple[str, ...]
    """The people who may decide."""
    created_at: datetime
    """The time at which it was made, in UTC."""
    expires_at: datetime | None = None
    """The time at which it ends without an answer; ``None`` is never."""
    gate: str | None = None
    """The gate that asks; ``None`` where a program asks."""
    voters: frozenset[str] = frozenset()
    """The people who have voted, whether their votes count already or not."""

    def waits_for(self, name: str | None) -> bool:
        """Return whether somebody is one of the approvers and has not decided.

        Args:
            name: The name of the approver; ``None`` is nobody.
        """
        return name in self.approvers and name not in self.voters


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlaces:
    """The places of a queue, without what is in it: there may be thousands."""

    ids: tuple[str, ...] = ()
    """The ids of the requests, in order."""
    waiting: frozenset[str] = frozenset()
    """Those that wait for whoever looks: one of the approvers, who has not decided them."""

    @property
    def mine(self) -> list[str]:
        """The ids of those that wait, in order."""
        return [ident for ident in self.ids if ident in self.waiting]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReader:
    """The owner of a queue: the requests they see, and those of these that wait for them."""

    name: str | None = None
    """Their name as an approver."""
    sees_all: bool = True
    """False where they see only what they are asked."""
    gates: frozenset[str] | None = None
    """The gates whose requests they see; ``None`` is all, requests of no gate included."""
    audits: bool = False
    """True for the queue of audits, which is another one: nothing waits for their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChoices:
    """The choices that a queue can be filtered by: the values that the requests in it have, each in order."""

    gates: tuple[str, ...] = ()
    """The gates that ask."""
    agents: tuple[str, ...] = ()
    """The agents whose calls wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """The part of a request that a list shows."""

    id: str
    """The id of the request."""
    message: str
    """The question that the people are asked."""
    approvers: tuple[str, ...]
    """The people who may decide."""
    created_at: datetime
    """The time at which it was made, in UTC."""
    outcome: Outcome
    """The outcome of the result they are asked about."""
    status: Status
    """``open``, ``approved`` or ``denied``."""
    required: int
    """The number of people who have to approve."""
    audit: Mapping[str, float] = field(default_factory=dict)
    """The terms of an audit; empty for a request that something waits for."""
    expires_at: datetime | None = None
    """The time at which it ends without an answer; ``None`` is never."""
    undecided_because: Reason | None = None
    """The reason why the judge could not decide; ``None`` if it did."""
    score: float | None = None
    """The score of the result, in 0 to 1; ``None`` without one."""
    content: str | None = None
    """The beginning of the content, in at most 4,000 characters; ``None`` where it was not kept."""
    gate: str | None = None
    """The gate that asks; ``None`` where a program asks."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours: the ``metadata`` of the check."""
    votes: tuple[Vote, ...] = ()
    """The votes that counted, in order."""
    pending_votes: tuple[Vote, ...] = ()
    """Votes that their voters can still take back, in order."""


def read_queue(
    connection: Connection, filters: RequestFilters, *, now: datetime, after: str = ""
) -> list[QueuedRequest]:
    """Read the open requests that match and have not expired, the one that expires next first.

    Only requests whose ids come after ``after`` are read; an empty ``after`` reads all.
    """
    from sqlalchemy import select

    tables = make_tables().tables
    table = tables[APPROVALS]
    where = (table.c.status == "open") & (table.c.id > after)
    where &= table.c.expires_at.is_(None) | (table.c.expires_at > format_time(now))
    voters: dict[str, set[str]] = {}
    for votes in _list_vote_tables():
        voter_query = select(votes.c.approval, votes.c.by).join(table, table.c.id == votes.c.approval).where(where)
        for row in connection.execute(voter_query):
            voters.setdefault(row.approval, set()).add(row.by)
    approvers: dict[str, list[str]] = {}
    names = tables[APPROVERS]
    names_joined = names.join(table, table.c.id == names.c.approval)
    approver_query = select(names.c.approval, names.c.approver).select_from(names_joined).where(where)
    for row in connection.execute(approver_query.order_by(names.c.approver)):
        approvers.setdefault(row.approval, []).append(row.approver)
    listed = tables[REQUEST_COLUMNS]
    joined = table.join(listed, listed.c.approval == table.c.id)
    statement = select(table.c.id, table.c.expires_at, listed.c.created_at, listed.c.gate).select_from(joined)
    requests = [
        QueuedRequest(
            id=row.id,
            approvers=tuple(approvers.get(row.id, ())),
            created_at=datetime.fromisoformat(row.created_at),
            expires_at=None if row.expires_at is None else datetime.fromisoformat(row.expires_at),
            gate=row.gate,
            voters=frozenset(voters.get(row.id, ())),
        )
        for row in connection.execute(statement.where(where, *filters.make_conditions(connection)))
    ]
    return sorted(requests, key=_make_sort_key)


def read_places(
    connection: Connection,
    filters: RequestFilters,
    *,
    reader: QueueReader,
    order: QueueOrder,
    now: datetime,
    after: str,
) -> QueuePlaces:
    """Read the ids of the open requests that the reader sees and that match, in an order.

    The result also says which of them wait for the reader's vote. Only requests whose ids come after ``after`` are
    read; an empty ``after`` reads all.
    """
    from sqlalchemy import func, select

    table, listed = make_tables().tables[APPROVALS], make_tables().tables[REQUEST_COLUMNS]
    waits_for_reader = _make_waiting_condition(reader.name, table.c.id)
    orders = {
        "expiry": (table.c.expires_at.is_(None), func.coalesce(table.c.expires_at, listed.c.created_at), table.c.id),
        "oldest": (listed.c.created_at, table.c.id),
        "newest": (listed.c.created_at.desc(), table.c.id.desc()),
    }
    conditions = [*_list_visible_conditions(reader, now), *filters.make_conditions(connection)]
    conditions += [table.c.id > after] if after else []
    joined = table.join(listed, listed.c.approval == table.c.id)
    statement = select(table.c.id, waits_for_reader).select_from(joined).where(*conditions).order_by(*orders[order])
    rows = connection.execute(statement).all()
    return QueuePlaces(
        ids=tuple([ident for ident, _ in rows]), waiting=frozenset([ident for ident, is_waiting in rows if is_waiting])
    )


def count_queue(connection: Connection, *, reader: QueueReader, now: datetime) -> tuple[int, str | None]:
    """Count the open requests that the reader sees, and return the count and when the first of them expires."""
    from sqlalchemy import func, select

    table, listed = make_tables().tables[APPROVALS], make_tables().tables[REQUEST_COLUMNS]
    joined = table.join(listed, listed.c.approval == table.c.id)
    statement = select(func.count(), func.min(table.c.expires_at)).select_from(joined)
    count, first_expiry = connection.execute(statement.where(*_list_visible_conditions(reader, now))).one()
    return count, first_expiry


def count_open(connection: Connection, *, approver: str, gates: Collection[str] | None, now: datetime) -> int:
    """Count the open requests that an approver can still decide, of some gates or (``None``) all.

    This has to be fast, because every page shows the count and refreshes it.
    """
    from sqlalchemy import func, select

    table, listed = make_tables().tables[APPROVALS], make_tables().tables[REQUEST_COLUMNS]
    source = table if gates is None else table.join(listed, listed.c.approval == table.c.id)
    statement = select(func.count()).select_from(source)
    return connection.execute(statement.where(*_list_waiting_conditions(approver, gates, now))).scalar_one()


def count_open_by_gate(
    connection: Connection, *, approver: str, gates: Collection[str] | None, now: datetime
) -> dict[str | None, int]:
    """Count the open requests that an approver can still decide, by gate; the key ``None`` is for those of no gate."""
    from sqlalchemy import func, select

    table, listed = make_tables().tables[APPROVALS], make_tables().tables[REQUEST_COLUMNS]
    joined = table.join(listed, listed.c.approval == table.c.id)
    statement = select(listed.c.gate, func.count()).select_from(joined).group_by(listed.c.gate)
    rows = connection.execute(statement.where(*_list_waiting_conditions(approver, gates, now)))
    return dict([tuple(row) for row in rows])


def list_choices(connection: Connection, *, reader: QueueReader, now: datetime, most: int) -> QueueChoices:
    """List the gates and the agents of the open requests that the reader sees, at most ``most`` of each."""
    from sqlalchemy import select

    table, listed = make_tables().tables[APPROVALS], make_tables().tables[REQUEST_COLUMNS]
    joined = table.join(listed, listed.c.approval == table.c.id)
    # One query for both, because going through the whole queue takes long.
    statement = select(listed.c.gate, listed.c.agent).select_from(joined)
    pairs = connection.execute(statement.where(*_list_visible_conditions(reader, now)).distinct()).all()
    gates = sorted({gate for gate, _ in pairs if gate})
    agents = sorted({agent for _, agent in pairs if agent})
    return QueueChoices(gates=tuple(gates[:most]), agents=tuple(agents[:most]))


def _list_visible_conditions(reader: QueueReader, now: datetime) -> list[ColumnElement[bool]]:
    """List the conditions that a request is open, that it has not expired, and that the reader may see it."""
    from sqlalchemy import false

    tables = make_tables().tables
    table, listed, approvers = (tables[name] for name in (APPROVALS, REQUEST_COLUMNS, APPROVERS))
    status = find_listed_status("open", is_audit=reader.audits)
    conditions = [table.c.status == status, table.c.expires_at.is_(None) | (table.c.expires_at > format_time(now))]
    if reader.gates is not None:
        conditions.append(listed.c.gate.in_(sorted(reader.gates)))
    if not reader.sees_all and reader.name is None:
        conditions.append(false())
    elif not reader.sees_all:
        conditions.append(_make_row_condition(approvers.c.approver, approvers.c.approval, reader.name, table.c.id))
    return conditions


def _list_waiting_conditions(approver: str, gates: Collection[str] | None, now: datetime) -> list[ColumnElement[bool]]:
    """List the conditions that a request is open, is of these gates (``None``: all), and waits for an approver."""
    reader = QueueReader(gates=None if gates is None else frozenset(gates))
    return [
        *_list_visible_conditions(reader, now),
        _make_waiting_condition(approver, make_tables().tables[APPROVALS].c.id),
    ]


def _make_waiting_condition(name: str | None, ident: ColumnElement[str]) -> ColumnElement[bool]:
    """Make the condition that a request (``ident``) asks a person who has not voted on it; false for no person."""
    from sqlalchemy import false

    if name is None:
        return false()
    approvers = make_tables().tables[APPROVERS]
    condition = _make_row_condition(approvers.c.approver, approvers.c.approval, name, ident)
    for votes in _list_vote_tables():
        condition &= ~_make_row_condition(votes.c.by, votes.c.approval, name, ident)
    return condition


def _make_row_condition(
    names: ColumnElement[str], requests: ColumnElement[str], name: str | None, ident: ColumnElement[str]
) -> ColumnElement[bool]:
    """Make the condition that a table has a row with a person's name and a request's id.

    ``names`` and ``requests`` are the columns of that table.
    """
    from sqlalchemy import select

    # A subquery for each request of the queue. An IN would read all requests that this person was ever asked.
    return select(requests).where(requests == ident, names == name).correlate(ident.table).exists()


def load_summaries(connection: Connection, ids: Sequence[str]) -> list[RequestSummary]:
    """Load what a list shows of some requests, in the order of ``ids``; unknown ids are left out."""
    from sqlalchemy import select

    table = make_tables().tables[APPROVALS]
    vote_rows, pending_rows = (list_votes(connection, votes, list(ids)) for votes in _list_vote_tables())
    statement = select(table.c.id, table.c.body).where(table.c.id.in_(ids))
    summaries = {}
    for row in connection.execute(statement.execution_options(yield_per=READ_AT_ONCE)):
        summary = _read_summary(row.id, row.body)
        summaries[row.id] = replace(
            summary,
            content=None if summary.content is None else summary.content[:LONGEST_BEGINNING],
            votes=_make_votes(vote_rows.get(row.id, ())),
            pending_votes=_make_votes(pending_rows.get(row.id, ()), "final_at"),
        )
    return [summaries[ident] for ident in ids if ident in summaries]


def find_undoable(connection: Connection, *, by: str, now: datetime) -> list[str]:
    """Find the ids of the requests with a pending vote of a person who can still take it back."""
    from sqlalchemy import select

    votes = make_tables().tables[PENDING_VOTES]
    where = (votes.c.final_at > format_time(now)) & (votes.c.by == by)
    return list(connection.execute(select(votes.c.approval).where(where).order_by(votes.c.approval)).scalars())


def _make_sort_key(request: QueuedRequest) -> tuple[bool, datetime, str]:
    """Return the key that sorts requests by when they expire; those that never expire come last, the oldest first."""
    return request.expires_at is None, request.expires_at or request.created_at, request.id


def _list_vote_tables() -> list[Table]:
    """List the two tables of votes: those that count, and those that can still be taken back."""
    return [make_tables().tables[name] for name in (VOTES, PENDING_VOTES)]


def _read_summary(ident: str, body: str) -> RequestSummary:
    """Read a summary from the body that the table has for a request.

    Raises ``LedgerError`` if the body is unreadable or has another id.
    """
    try:
        summary = read_typed_json(body, RequestSummary)
    except (RecursionError, ValueError) as error:
        raise LedgerError(
            f"approval {ident} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    if summary.id != ident:
        raise LedgerError(
            f"approval {ident} cannot be read from its table, which says otherwise; it was changed by hand"
        )
    return summary


def _make_votes(rows: Iterable[Any], *more_columns: str) -> tuple[Vote, ...]:
    """Read votes from rows of a table of votes."""
    return tuple(read_typed(vote, Vote) for vote in read_votes(rows, ("by", "seq", "at", "reason", *more_columns)))
