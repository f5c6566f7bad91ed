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
"""The most votes, those on the latest requests, whose reasons are read."""


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
    """Find the requests with a counted vote of a person; return their ids, the last vote first, and their number.

    ``approved``, ``since`` and ``gates`` each limit them if not ``None``; ``skip`` and ``most`` choose the page of ids.
    """
    from sqlalchemy import func, select

    votes, columns = make_tables().tables[VOTES], make_tables().tables[REQUEST_COLUMNS]
    # select_asked narrows the votes by the index of approvers, because the table of votes has no index by voter.
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
    """Find reasons that were given before: a person's own, then those of others at the same gate, the most used first.

    Only the latest votes on requests that also asked ``by`` are read, because the reason of another vote may quote a
    content that ``by`` may not see. Votes on the request ``apart_from`` are left out.
    """
    from sqlalchemy import select

    votes, columns = make_tables().tables[VOTES], make_tables().tables[REQUEST_COLUMNS]
    latest = select(votes.c.approval, votes.c.by, votes.c.reason).where(votes.c.reason != "")
    latest = latest.where(votes.c.approval != apart_from, votes.c.approval.in_(select_asked(by)))
    recent = latest.order_by(votes.c.approval.desc()).limit(LATEST_REASONS).subquery()
    joined = recent.join(columns, columns.c.approval == recent.c.approval)
    own_counts: Counter[str] = Counter()
    other_counts: Counter[str] = Counter()
    for row in connection.execute(select(recent.c.by, recent.c.reason, columns.c.gate).select_from(joined)):
        if row.by == by:
            own_counts[row.reason] += 1
        elif row.gate == gate:
            other_counts[row.reason] += 1
    own_reasons = [reason for reason, _ in own_counts.most_common()]
    return own_reasons + [reason for reason, _ in other_counts.most_common() if reason not in own_counts]
