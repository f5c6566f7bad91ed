"""The server's own tables, in the ledger's database: keys, accounts, sessions, secrets, and stored answers to requests.

They change through ``Ledger.transact``, so that any number of servers on one database see the same, and a key that was
revoked is revoked everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.ledger.ledger import Ledger

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, MetaData, Table


KEYS = "adjudge_server_keys"

ACCOUNTS = "adjudge_server_accounts"

SESSIONS = "adjudge_server_sessions"

ANSWERS = "adjudge_server_answers"

SECRETS = "adjudge_server_secrets"


T = TypeVar("T")


@cache
def make_tables() -> MetaData:
    """Describe the tables. Times are columns of text, in a form whose order as text is their order in time."""
    from sqlalchemy import MetaData

    tables = MetaData()
    _describe_keys(tables)
    _describe_accounts(tables)
    _describe_sessions(tables)
    _describe_answers(tables)
    _describe_secrets(tables)
    return tables


def _describe_keys(tables: MetaData) -> None:
    """Add the table of API keys."""
    from sqlalchemy import Column, Table, Text

    Table(
        KEYS,
        tables,
        Column("prefix", Text, primary_key=True),
        Column("digest", Text, nullable=False),
        Column("name", Text, nullable=False),
        *_make_permission_columns(),
        Column("created_at", Text, nullable=False),
        Column("expires_at", Text),
        Column("revoked_at", Text),
        sqlite_strict=True,
    )


def _describe_accounts(tables: MetaData) -> None:
    """Add the table of people's accounts; ``password`` is a hash."""
    from sqlalchemy import Column, Table, Text

    Table(
        ACCOUNTS,
        tables,
        Column("name", Text, primary_key=True),
        Column("password", Text, nullable=False),
        *_make_permission_columns(),
        Column("created_at", Text, nullable=False),
        Column("disabled_at", Text),
        sqlite_strict=True,
    )


def _describe_sessions(tables: MetaData) -> None:
    """Add the table of sessions of people who are signed in."""
    from sqlalchemy import Column, ForeignKey, Table, Text

    Table(
        SESSIONS,
        tables,
        # The digest of the id: somebody who reads the database cannot sign in with what it holds.
        Column("digest", Text, primary_key=True),
        Column("account", Text, ForeignKey(f"{ACCOUNTS}.name"), nullable=False, index=True),
        Column("csrf_token", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("seen_at", Text, nullable=False),
        sqlite_strict=True,
    )


def _describe_answers(tables: MetaData) -> None:
    """Add the table of the answers to requests with an ``Idempotency-Key``.

    ``request`` is the digest of the request's body. While the request is under way, ``status`` is null, ``body`` is the
    name of the attempt that works on it, and ``created_at`` is the end of its deadline.
    """
    from sqlalchemy import Column, Integer, LargeBinary, Table, Text

    Table(
        ANSWERS,
        tables,
        Column("digest", Text, primary_key=True),
        Column("request", Text, nullable=False),
        Column("status", Integer),
        Column("body", LargeBinary),
        Column("created_at", Text, nullable=False, index=True),
        sqlite_strict=True,
    )


def _describe_secrets(tables: MetaData) -> None:
    """Add the table of the server's own secrets, such as the one that signs links."""
    from sqlalchemy import Column, Table, Text

    Table(
        SECRETS,
        tables,
        Column("name", Text, primary_key=True),
        Column("secret", Text, nullable=False),
        sqlite_strict=True,
    )


def _make_permission_columns() -> list[Column[Any]]:
    """Make the columns of a key's or an account's permissions; only ``scopes`` is never null."""
    from sqlalchemy import Column, Text

    return [Column(name, Text, nullable=name != "scopes") for name in ("scopes", "gates", "approver", "rater")]


def find_table(name: str) -> Table:
    """Find a table by its name."""
    return make_tables().tables[name]


async def read(ledger: Ledger, work: Callable[[Connection], T]) -> T | None:
    """Return what a function reads from the tables; ``None`` where they were never made."""
    return await ledger.look(work, tables=make_tables())


async def write(ledger: Ledger, work: Callable[[Connection], T]) -> T:
    """Run a function that changes the tables, in one durable transaction, while every other writer waits."""
    return await ledger.transact(lambda transaction: work(transaction.connection), tables=make_tables())


def write_names(names: AbstractSet[str] | None) -> str | None:
    """Write names as a column holds them: as a JSON list, or null for ``None``."""
    return None if names is None else json.dumps(sorted(names))


def read_names(text: str | None) -> frozenset[str] | None:
    """Read names from a column that ``write_names`` wrote."""
    return None if text is None else frozenset(json.loads(text))
