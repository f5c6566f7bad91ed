"""Accounts of people: a name, a password as argon2id, and what the account may do.

What an account may do is decided in ``permissions.py`` (``Permissions``), how long a session of it lasts in
``sessions.py``, and how often a sign-in may fail in ``sign_in_throttle.py``.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.formats.times import get_now
from adjudge.guards.approval.approval import read_name
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.server.database import ACCOUNTS, SESSIONS, find_table, read, write
from adjudge.server.permissions import Permissions, read_permissions, write_permissions

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from sqlalchemy import Connection


SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1_000
"""Characters. NIST SP 800-63B asks for 8 at least, and for 15 where a password is all that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person who can sign in."""

    name: str
    """The name that is typed to sign in."""
    permissions: Permissions
    """The permissions of the person."""
    created_at: str
    """The time at which it was made, as text of ISO 8601 in UTC."""
    disabled_at: str | None = None
    """The time at which it was disabled; ``None`` if it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAccount:
    """An account whose password was right."""

    account: Account
    compared_hash: str = field(repr=False)
    """The hash that the password was compared with. It may have been replaced since: comparing takes its time."""


async def add_account(ledger: Ledger, *, name: str, password: str, permissions: Permissions) -> Account:
    """Store a new account; raises ``UsageError`` for a name that is taken or a password that is too short.

    Two accounts cannot have one approver's name, or one rater's: two approvals of one person would count as two.

    Args:
        ledger: The ledger in whose database accounts are.
        name: The name that is typed to sign in.
        password: The password; only a hash of it is kept.
        permissions: What the person may do.
    """
    if "hook" in permissions.scopes:
        raise UsageError("the scope hook is for keys of programs; give an account another", argument="permissions")
    account = Account(name=read_name(name, "name"), permissions=permissions, created_at=format_time(get_now()))
    password_hash = _hash_password(password)

    def insert_account(connection: Connection) -> Account:
        """Store the account, unless its name or a role's name is taken."""
        accounts = [_read_account(row) for row in connection.execute(find_table(ACCOUNTS).select())]
        _check_names_free(account, accounts)
        values = {"name": account.name, "password": password_hash, "created_at": account.created_at}
        connection.execute(find_table(ACCOUNTS).insert().values(**values, **write_permissions(permissions)))
        return account

    return await write(ledger, insert_account)


async def set_password(ledger: Ledger, name: str, password: str) -> None:
    """Replace a password and end all sessions of the account; raises ``UsageError`` for an unknown account.

    Args:
        ledger: The ledger in whose database accounts are.
        name: The account's name.
        password: The new password; only a hash of it is kept.
    """
    password_hash = _hash_password(password)
    await write(ledger, lambda connection: _change_account(connection, name, password=password_hash))


async def disable_account(ledger: Ledger, name: str) -> None:
    """Let an account sign in no more, and end its sessions; raises ``UsageError`` for an unknown account.

    Args:
        ledger: The ledger in whose database accounts are.
        name: The account's name.
    """
    now = format_time(get_now())
    await write(ledger, lambda connection: _change_account(connection, name, disabled_at=now))


async def enable_account(ledger: Ledger, name: str) -> None:
    """Let a disabled account sign in again; raises ``UsageError`` for an unknown account.

    Args:
        ledger: The ledger in whose database accounts are.
        name: The account's name.
    """
    await write(ledger, lambda connection: _change_account(connection, name, disabled_at=None))


async def list_accounts(ledger: Ledger) -> tuple[Account, ...]:
    """List all accounts by name, those that are disabled included.

    Args:
        ledger: The ledger in whose database accounts are.
    """
    table = find_table(ACCOUNTS)
    statement = table.select().order_by(table.c.name)
    accounts = await read(ledger, lambda connection: [_read_account(row) for row in connection.execute(statement)])
    return tuple(accounts or ())


async def check_password(ledger: Ledger, name: str, password: str) -> CheckedAccount | None:
    """Return the account if it exists, is not disabled and has this password; else ``None``.

    An unknown name takes as long as a known one, so that the time does not tell which names there are.
    """
    table = find_table(ACCOUNTS)
    row = await read(
        ledger, lambda connection: connection.execute(table.select().where(table.c.name == name)).one_or_none()
    )
    # The decoy hash is made in the thread too: the first unknown name must not take longer than a known one.
    stored_hash = None if row is None else row.password
    is_right = await asyncio.get_running_loop().run_in_executor(
        _make_password_threads(), _verify_password, stored_hash, password
    )
    if row is None or not is_right or row.disabled_at is not None:
        return None
    return CheckedAccount(account=_read_account(row), compared_hash=row.password)


def _check_names_free(account: Account, accounts: list[Account]) -> None:
    """Raise ``UsageError`` if one of ``accounts`` has the name of this account, or is the same approver or rater."""
    for other in accounts:
        if other.name == account.name:
            raise UsageError(f"there is an account {show(account.name)} already; name another")
        for role in ("approver", "rater"):
            role_name = getattr(account.permissions, role)
            if role_name is not None and role_name == getattr(other.permissions, role):
                raise UsageError(
                    f"account {show(other.name)} is the {role} {show(role_name)} already; name another {role}"
                )


def _change_account(connection: Connection, name: str, **values: Any) -> None:
    """Set columns of an account and end its sessions; raises ``UsageError`` for an unknown account."""
    accounts, sessions = find_table(ACCOUNTS), find_table(SESSIONS)
    if connection.execute(accounts.update().where(accounts.c.name == name).values(**values)).rowcount != 1:
        raise UsageError(f"there is no account {show(name)}; `adjudge accounts list` shows those there are")
    connection.execute(sessions.delete().where(sessions.c.account == name))


def _hash_password(password: str) -> str:
    """Return the argon2id hash of a new password; raises ``UsageError`` if it is too short or too long."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise UsageError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters; choose another")
    return _make_hasher().hash(password)


@cache
def _make_hasher() -> PasswordHasher:
    """Make the hasher: argon2id with the library's defaults, which are those of RFC 9106 for little memory."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _make_decoy_hash() -> str:
    """Make the hash of a password that nobody has, to check for unknown names: it takes as long as a real one."""
    import secrets

    return _make_hasher().hash(secrets.token_urlsafe(32))


@cache
def _make_password_threads() -> ThreadPoolExecutor:
    """Make the two threads that check passwords.

    No more than two, because each check takes 64 MB and a core, and would take them from the work of judging.
    """
    return ThreadPoolExecutor(2, "adjudge-passwords")


def _verify_password(stored_hash: str | None, password: str) -> bool:
    """Return whether a password has this hash.

    With ``None``, for an unknown name, a decoy is checked: so the time does not tell that there is no such account.
    """
    from argon2.exceptions import InvalidHashError, VerificationError

    if len(password) > LONGEST_PASSWORD:
        return False
    decoy_hash = _make_decoy_hash()
    try:
        return _make_hasher().verify(decoy_hash if stored_hash is None else stored_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def _read_account(row: Any) -> Account:
    """Read an account from a row of the table."""
    return Account(
        name=row.name, permissions=read_permissions(row), created_at=row.created_at, disabled_at=row.disabled_at
    )
