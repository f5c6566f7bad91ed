"""The database tables of approvals: requests, votes, pending votes, pending decisions, and their index tables."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import MetaData

APPROVALS = "adjudge_approvals"

VOTES = "adjudge_votes"

PENDING_VOTES = "adjudge_pending_votes"

PENDING = "adjudge_pending"

REQUEST_COLUMNS = "adjudge_approval_columns"

APPROVERS = "adjudge_approvers"


@cache
def make_tables() -> MetaData:
    """Describe the tables for SQLAlchemy, which creates them in any database."""
    from sqlalchemy import MetaData

    tables = MetaData()
    _add_requests(tables)
    _add_votes(tables)
    _add_pending_votes(tables)
    _add_pending_decisions(tables)
    _add_index_tables(tables)
    return tables


def _add_requests(tables: MetaData) -> None:
    """Add the table of requests."""
    from sqlalchemy import Column, Index, Integer, Table, Text

    # Members that queries filter by have columns; ``body`` is the request as its to_dict writes it, without the votes.
    requests = Table(
        APPROVALS,
        tables,
        Column("id", Text, primary_key=True),
        Column("status", Text, nullable=False),
        Column("expires_at", Text, index=True),
        Column("overrides", Integer, nullable=False),
        Column("body", Text, nullable=False),
        sqlite_strict=True,
    )
    # It has all columns that the queue and every page's count read of thousands of requests, so no body is read for it.
    Index(f"{APPROVALS}_queue", requests.c.status, requests.c.expires_at, requests.c.id)


def _add_votes(tables: MetaData) -> None:
    """Add the table of votes that count."""
    from sqlalchemy import Column, ForeignKey, Integer, Table, Text

    Table(
        VOTES,
        tables,
        Column("approval", Text, ForeignKey(f"{APPROVALS}.id"), primary_key=True),
        # In the primary key, so that nobody is counted twice even if the code that counts has a mistake.
        Column("by", Text, primary_key=True),
        Column("seq", Integer, nullable=False),
        Column("approved", Integer, nullable=False),
        Column("at", Text, nullable=False),
        Column("reason", Text, nullable=False),
        sqlite_strict=True,
    )


def _add_pending_votes(tables: MetaData) -> None:
    """Add the table of votes that can still be taken back."""
    from sqlalchemy import Column, Integer, Table, Text

    # In a table of their own, votes that can still be taken back count nowhere.
    Table(
        PENDING_VOTES,
        tables,
        Column("approval", Text, primary_key=True),
        Column("by", Text, primary_key=True),
        Column("seq", Integer, nullable=False),
        Column("approved", Integer, nullable=False),
        Column("at", Text, nullable=False),
        Column("final_at", Text, nullable=False, index=True),
        Column("reason", Text, nullable=False),
        sqlite_strict=True,
    )


def _add_pending_decisions(tables: MetaData) -> None:
    """Add the table of pending decisions of gates."""
    from sqlalchemy import BigInteger, Column, Integer, Table, Text

    Table(
        PENDING,
        tables,
        Column("approval", Text, primary_key=True),
        Column("gate", Text, nullable=False, index=True),
        Column("idempotency", Text, unique=True),
        Column("created_at", Text, nullable=False),
        Column("expires_at", Text),
        Column("decision", Text, nullable=False),
        Column("used_at", Text),
        Column("used_seq", BigInteger().with_variant(Integer(), "sqlite")),
        sqlite_strict=True,
    )


def _add_index_tables(tables: MetaData) -> None:
    """Add the index tables of requests: the columns of lists and searches, and the approvers."""
    from sqlalchemy import Column, Index, Table, Text

    # Derived from the ledger's entry of each request (request_columns.py), so that a list reads only what it shows.
    columns = Table(
        REQUEST_COLUMNS,
        tables,
        Column("approval", Text, primary_key=True),
        Column("created_at", Text, nullable=False),
        *(Column(name, Text) for name in ("gate", "title", "agent", "customer")),
        sqlite_strict=True,
    )
    # By their hash: a PostgreSQL B-tree index refuses texts of some thousand bytes, and so the request would fail.
    for name in ("gate", "agent", "customer"):
        Index(f"{REQUEST_COLUMNS}_{name}", columns.c[name], postgresql_using="hash")
    approvers = Table(
        APPROVERS,
        tables,
        Column("approval", Text, primary_key=True),
        Column("approver", Text, primary_key=True),
        sqlite_strict=True,
    )
    Index(f"{APPROVERS}_approver", approvers.c.approver, postgresql_using="hash")
