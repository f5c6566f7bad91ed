"""The two tables of approvals, beside the ledger whose entries tell of every change to them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from adjudge._display import clean
from adjudge.approval._values import Approval, Vote
from adjudge.errors import LedgerError, UsageError
from adjudge.ledger._entry import write_time
from adjudge.ledger._payload import can_store

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Select, Table

APPROVALS = "adjudge_approvals"
VOTES = "adjudge_votes"
PAGE = 200
"""Requests that are fetched at once."""


@cache
def make_tables() -> MetaData:
    """The tables' description; every database makes its own form of it."""
    from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text

    tables = MetaData()
    # What is looked for has a column; the rest is the request as its to_dict writes it, without the votes.
    Table(
        APPROVALS,
        tables,
        Column("id", Text, primary_key=True),
        Column("status", Text, nullable=False, index=True),
        Column("expires_at", Text, index=True),
        Column("overrides", Integer, nullable=False),
        Column("body", Text, nullable=False),
        sqlite_strict=True,
    )
    Table(
        VOTES,
        tables,
        Column("approval", Text, ForeignKey(f"{APPROVALS}.id"), primary_key=True),
        # In the key: were the counting wrong one day, nobody could be counted twice all the same.
        Column("by", Text, primary_key=True),
        Column("seq", Integer, nullable=False),
        Column("approved", Integer, nullable=False),
        Column("at", Text, nullable=False),
        Column("reason", Text, nullable=False),
        sqlite_strict=True,
    )
    return tables


def insert(connection: Connection, approval: Approval) -> None:
    """Write a new request."""
    connection.execute(_approvals().insert().values(id=approval.id, **_write(approval)))


def update(connection: Connection, approval: Approval, vote: Vote | None = None) -> None:
    """Write what became of an open request, and the vote that made it so."""
    table = _approvals()
    if vote is not None:
        values: dict[str, Any] = {"approval": approval.id, "by": vote.by, "seq": vote.seq}
        values |= {"approved": int(vote.approved), "at": write_time(vote.at), "reason": vote.reason}
        connection.execute(make_tables().tables[VOTES].insert().values(**values))
    where = (table.c.id == approval.id) & (table.c.status == "open")
    if connection.execute(table.update().where(where).values(**_write(approval))).rowcount != 1:
        raise LedgerError(f"approval {approval.id} was closed by something that is not adjudge; nothing was changed")


def rewrite(connection: Connection, approval: Approval) -> None:
    """Write what is left of a closed request once its texts are forgotten."""
    table = _approvals()
    connection.execute(table.update().where(table.c.id == approval.id).values(**_write(approval)))


def load(connection: Connection, ident: str) -> Approval:
    """The request of this id; raises ``UsageError`` when there is none."""
    # What no store can hold is no id, and some raise when they are asked for it.
    known = isinstance(ident, str) and can_store(ident)
    found = _fetch(connection, _approvals().select().where(_approvals().c.id == ident)) if known else []
    if not found:
        raise explain_missing(ident)
    return found[0]


def load_many(
    connection: Connection, *, after: str = "", status: str | None = None, overrides: bool = False
) -> list[Approval]:
    """The next requests in the order in which they were made."""
    table = _approvals()
    statement = table.select().where(table.c.id > after).order_by(table.c.id).limit(PAGE)
    if status is not None:
        statement = statement.where(table.c.status == status)
    if overrides:
        statement = statement.where(table.c.overrides == 1)
    return _fetch(connection, statement)


def find_due(connection: Connection, now: datetime) -> list[str]:
    """The ids of open requests whose time is over."""
    from sqlalchemy import select

    table = _approvals()
    where = (table.c.status == "open") & (table.c.expires_at <= write_time(now))
    return list(connection.execute(select(table.c.id).where(where).order_by(table.c.id)).scalars())


def find_ids(connection: Connection, part: str) -> list[str]:
    """The ids that are, begin or end like this; at most two, for what is not unique is of no use."""
    from sqlalchemy import select

    table = _approvals()
    same = table.c.id.startswith(part, autoescape=True) | table.c.id.endswith(part, autoescape=True)
    statement = select(table.c.id).where((table.c.id == part) | same)
    # The whole id comes first, and stands for itself: it may be how another one begins.
    return list(connection.execute(statement.order_by(table.c.id != part, table.c.id).limit(2)).scalars())


def explain_missing(ident: object) -> UsageError:
    """What is said of an id that no request has."""
    shown = clean(repr(ident)[:80], keep_lines=False)
    return UsageError(f"there is no approval {shown}; `adjudge approvals list --status all` shows those there are")


def _approvals() -> Table:
    return make_tables().tables[APPROVALS]


def _write(approval: Approval) -> dict[str, Any]:
    data = approval.to_dict()
    del data["votes"]
    return {
        "status": approval.status,
        "expires_at": None if approval.expires_at is None else write_time(approval.expires_at),
        "overrides": int(approval.overrides),
        # In ASCII: NUL and halves of characters in somebody's metadata are escapes then, which every store can hold.
        "body": json.dumps(data),
    }


def _fetch(connection: Connection, statement: Select[Any]) -> list[Approval]:
    rows = connection.execute(statement).all()
    votes = make_tables().tables[VOTES]
    wanted = votes.select().where(votes.c.approval.in_([row.id for row in rows])).order_by(votes.c.seq)
    given: dict[str, list[Any]] = {}
    for vote in connection.execute(wanted):
        given.setdefault(vote.approval, []).append(vote)
    return [_read(row, given.get(row.id, ())) for row in rows]


def _read(row: Any, votes: Iterable[Any]) -> Approval:
    try:
        body = json.loads(row.body)
        names = ("by", "seq", "at", "reason")
        read = [{name: getattr(vote, name) for name in names} | {"approved": bool(vote.approved)} for vote in votes]
        found = Approval.from_dict({**body, "votes": read})
        if (found.id, found.status) != (row.id, row.status):
            raise UsageError("its columns say otherwise")
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(
            f"approval {row.id} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    return found
