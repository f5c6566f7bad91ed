"""The requests that one reviewer has decided, and the reasons that were given before, read without the requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from adjudge.guards.approval.store import select_asked
from adjudge.guards.approval.tables import REQUEST_COLUMNS, VOTES, make_tables
from adjudge.ledger.entry import format_time

if TYPE_CHECKING:
    from sqlalchemy import Connection

LATEST_REASONS = 1_000
"""Of the latest requests with a vote, so many votes are looked at for reasons, however many there are."""


def find_decided(
    connection: Connection,
    *,
    by: str,
    approved: bool | None,
    since: datetime | None,
    gates: Collection[str] | None,
    skip: int,
    most: int,
) -> tuple[list[str], int]:
    """Find the ids of the requests with a vote of somebody that counts, the last vote first; and how many there are.

    ``approved``, ``since`` and ``gates`` each limit them where they are not ``None``.
    """
    from sqlalchemy import func, select

    votes, columns = make_tables().tables[VOTES], make_tables().tables[REQUEST_COLUMNS]
    # By the index on the approvers' names: votes have none on who gave them.
    conditions = [votes.c.by == by, votes.c.approval.in_(select_asked(by))]
    conditions += [] if approved is None else [votes.c.approved == int(approved)]
    conditions += [] if since is None else [votes.c.at >= format_time(since)]
    conditions += [] if gates is None else [columns.c.gate.in_(sorted(gates))]
    joined = votes.join(columns, columns.c.approval == votes.c.approval)
    ids = select(votes.c.approval).select_from(joined).where(*conditions)
    ids = ids.order_by(votes.c.at.desc(), votes.c.approval.desc()).offset(skip).limit(most)
    total = select(func.count()).select_from(joined).where(*conditions)
    return list(connection.execute(ids).scalars()), connection.execute(total).scalar_one()


def find_reasons(connection: Connection, *, by: str, gate: str | None, apart_from: str) -> list[str]:
    """Find the reasons given before, the most used first: somebody's own, then those of others at the same gate.

    Only votes about requests that ``by`` was asked about too are looked at, and of those the latest: the reason of
    anybody else may quote what ``by`` is not to see. ``apart_from`` is a request whose votes do not count.
    """
    from sqlalchemy import select

    votes, columns = make_tables().tables[VOTES], make_tables().tables[REQUEST_COLUMNS]
    latest = select(votes.c.approval, votes.c.by, votes.c.reason).where(votes.c.reason != "")
    latest = latest.where(votes.c.approval != apart_from, votes.c.approval.in_(select_asked(by)))
    recent = latest.order_by(votes.c.approval.desc()).limit(LATEST_REASONS).subquery()
    joined = recent.join(columns, columns.c.approval == recent.c.approval)
    mine: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for row in connection.execute(select(recent.c.by, recent.c.reason, columns.c.gate).select_from(joined)):
        if row.by == by:
            mine[row.reason] += 1
        elif row.gate == gate:
            others[row.reason] += 1
    own_reasons = [reason for reason, _ in mine.most_common()]
    return own_reasons + [reason for reason, _ in others.most_common() if reason not in mine]
