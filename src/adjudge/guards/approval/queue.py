"""The queue of open requests, read without the requests in full: there may be thousands, each of a megabyte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.errors import LedgerError, Reason
from adjudge.formats.typed import read_typed, read_typed_json
from adjudge.guards.approval.approval import Approval, Status, Vote
from adjudge.guards.approval.store import (
    APPROVALS,
    PENDING_VOTES,
    READ_AT_ONCE,
    VOTES,
    list_votes,
    make_tables,
    make_voting_tables,
    read_votes,
)
from adjudge.ledger.entry import format_time
from adjudge.result import Outcome

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

LONGEST_BEGINNING = 4_000
"""Characters of a content that a summary has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """A place in the queue: whom an open request asks, and until when."""

    id: str
    approvers: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    gate: str | None = None
    voters: frozenset[str] = frozenset()
    """Who has voted, whether their votes count already or not."""

    def waits_for(self, name: str | None) -> bool:
        """Whether somebody is one of the approvers and has not decided."""
        return name in self.approvers and name not in self.voters


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """What a list shows of a request."""

    id: str
    message: str
    approvers: tuple[str, ...]
    created_at: datetime
    outcome: Outcome
    status: Status
    required: int
    expires_at: datetime | None = None
    undecided_because: Reason | None = None
    score: float | None = None
    content: str | None = None
    """How the content begins, in at most 4,000 characters; ``None`` where it was not kept."""
    gate: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    votes: tuple[Vote, ...] = ()
    pending_votes: tuple[Vote, ...] = ()


def read_queue(
    connection: Connection, *, now: datetime, after: str = "", with_pending: bool = True
) -> list[QueuedRequest]:
    """The open requests whose time is not over, in the order of the queue; ``after`` reads those with later ids alone.

    ``with_pending=False`` is for a store of an earlier version, which has no table of pending votes yet.
    """
    from sqlalchemy import select

    table = make_tables().tables[APPROVALS]
    where = (table.c.status == "open") & (table.c.id > after)
    where &= table.c.expires_at.is_(None) | (table.c.expires_at > format_time(now))
    voters: dict[str, set[str]] = {}
    for votes in _list_tables_of_votes(with_pending=with_pending):
        voted = select(votes.c.approval, votes.c.by).join(table, table.c.id == votes.c.approval).where(where)
        for row in connection.execute(voted):
            voters.setdefault(row.approval, set()).add(row.by)
    statement = select(table.c.id, table.c.body).where(where).execution_options(yield_per=READ_AT_ONCE)
    found = [
        replace(_read_body(row.id, row.body, QueuedRequest), voters=frozenset(voters.get(row.id, ())))
        for row in connection.execute(statement)
    ]
    return sorted(found, key=place_in_queue)


def load_summaries(connection: Connection, ids: Sequence[str], *, with_pending: bool = True) -> list[RequestSummary]:
    """What a list shows of some requests, in the order of ``ids``; those that are not there are left out."""
    from sqlalchemy import select

    table = make_tables().tables[APPROVALS]
    counted, *pending = (
        list_votes(connection, votes, list(ids)) for votes in _list_tables_of_votes(with_pending=with_pending)
    )
    statement = select(table.c.id, table.c.body).where(table.c.id.in_(ids))
    found = {}
    for row in connection.execute(statement.execution_options(yield_per=READ_AT_ONCE)):
        read = _read_body(row.id, row.body, RequestSummary)
        found[row.id] = replace(
            read,
            content=None if read.content is None else read.content[:LONGEST_BEGINNING],
            votes=_make_votes(counted.get(row.id, ())),
            pending_votes=_make_votes(pending[0].get(row.id, ()), "final_at") if pending else (),
        )
    return [found[ident] for ident in ids if ident in found]


def find_undoable(connection: Connection, *, by: str, now: datetime) -> list[str]:
    """The ids of the requests with a vote of somebody who can still take it back."""
    from sqlalchemy import select

    votes = make_voting_tables().tables[PENDING_VOTES]
    where = (votes.c.final_at > format_time(now)) & (votes.c.by == by)
    return list(connection.execute(select(votes.c.approval).where(where).order_by(votes.c.approval)).scalars())


def place_in_queue(request: QueuedRequest | Approval) -> tuple[bool, datetime, str]:
    """Where a request is in the queue: by when it expires, those that never do last; the older first."""
    return request.expires_at is None, request.expires_at or request.created_at, request.id


def _list_tables_of_votes(*, with_pending: bool) -> list[Table]:
    names = (VOTES, PENDING_VOTES) if with_pending else (VOTES,)
    return [make_voting_tables().tables[name] for name in names]


T = TypeVar("T", QueuedRequest, RequestSummary)


def _read_body(ident: str, body: str, kind: type[T]) -> T:
    try:
        found = read_typed_json(body, kind)
    except (RecursionError, ValueError) as error:
        raise LedgerError(
            f"approval {ident} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    if found.id != ident:
        raise LedgerError(
            f"approval {ident} cannot be read from its table, which says otherwise; it was changed by hand"
        )
    return found


def _make_votes(rows: Iterable[Any], *more: str) -> tuple[Vote, ...]:
    return tuple(read_typed(said, Vote) for said in read_votes(rows, ("by", "seq", "at", "reason", *more)))
