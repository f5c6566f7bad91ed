"""API keys: 32 random bytes behind a public prefix. Only the SHA-256 is stored.

A key has 256 random bits, so nobody finds one by trying, and a fast hash is right: the slow one of a password would
take 0.4 s of every request.

What a key may do is decided in ``permissions.py`` (``Permissions``).
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_label
from adjudge.formats.text import show
from adjudge.formats.times import get_now
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import Draft
from adjudge.ledger.store import Transaction, has_passed
from adjudge.ledger.store import make_table as make_ledger_table
from adjudge.server.database import KEYS, find_table, make_tables, read
from adjudge.server.permissions import Permissions, read_permissions, write_permissions

if TYPE_CHECKING:
    from sqlalchemy import Connection

_KEY_PATTERN = re.compile(r"adj_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")

_REVOKED_DIGEST = "-"
"""The value that is stored in place of a revoked key's digest: the digest of no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key; its secret is not among this."""

    prefix: str
    """12 hexadecimal digits, which may be shown and logged."""
    name: str
    """The key's name."""
    permissions: Permissions
    """The permissions of whoever has the key."""
    created_at: str
    """The time at which it was made, as text of ISO 8601 in UTC."""
    expires_at: str | None = None
    """The time at which it expires; ``None`` is never."""
    revoked_at: str | None = None
    """The time at which it was revoked; ``None`` if it is not."""

    def is_valid(self, now: datetime) -> bool:
        """Return whether it is neither revoked nor expired.

        Args:
            now: The time at which it is used.
        """
        at = format_time(now)
        return (self.revoked_at is None or at < self.revoked_at) and (self.expires_at is None or at < self.expires_at)


async def create_key(
    ledger: Ledger, *, name: str, permissions: Permissions, expires_at: datetime | None = None, by: str | None = None
) -> tuple[ApiKey, str]:
    """Store a new key and return it with its text, which is not kept anywhere and cannot be shown again.

    The ledger records it as ``key.created``, without the text.

    Args:
        ledger: The ledger in whose database the key is kept.
        name: What people call the program.
        permissions: What it may do, as ``make_permissions`` makes it.
        expires_at: When the key ends; ``None`` is never.
        by: Who did it, for the ledger; ``None`` names nobody.
    """
    check_label("name", name)
    now = get_now()
    if expires_at is not None and expires_at <= now:
        raise UsageError(f"a key must expire in the future, got {format_time(expires_at)}", argument="expires_at")
    key, text, digest = _make_key(name, permissions, now, expires_at)
    entry = _make_entry(ledger, "key.created", key, by)

    def insert(transaction: Transaction) -> None:
        """Store the key, and record it in the ledger."""
        _insert_key(transaction.connection, key, digest)
        transaction.append(entry)

    await ledger.transact(insert, tables=make_tables())
    return key, text


async def rotate_key(
    ledger: Ledger,
    prefix: str,
    *,
    old_until: datetime | None = None,
    by: str | None = None,
) -> tuple[ApiKey, str]:
    """Store a new key with the name and permissions of another, and revoke that one, at once or from a moment on.

    The new key expires when the old one would have. The ledger records it as ``key.rotated``. Raises ``UsageError`` for
    a key that is unknown or not valid.

    Args:
        ledger: The ledger in whose database the key is kept.
        prefix: The public part of the old key, of 12 characters.
        old_until: When the old key ends; ``None`` is at once.
        by: Who did it, for the ledger; ``None`` names nobody.
    """
    now = get_now()

    def rotate(transaction: Transaction) -> tuple[ApiKey, str]:
        """Store the new key, revoke the old one, and record both in the ledger; return the new key and its text."""
        connection = transaction.connection
        old = _load_key(connection, prefix)
        if not old.is_valid(now):
            raise UsageError(f"key {prefix} is revoked or expired; create another")
        expires = None if old.expires_at is None else datetime.fromisoformat(old.expires_at)
        key, text, digest = _make_key(old.name, old.permissions, now, expires)
        _insert_key(connection, key, digest)
        _set_revoked(connection, prefix, old_until or now)
        transaction.append(_make_entry(ledger, "key.rotated", key, by, replaces=prefix))
        return key, text

    return await ledger.transact(rotate, tables=make_tables())


async def revoke_key(ledger: Ledger, prefix: str, *, by: str | None = None) -> ApiKey:
    """Revoke a key from now on; raises ``UsageError`` for one that is unknown or revoked already.

    The ledger records it as ``key.revoked``.

    Args:
        ledger: The ledger in whose database the key is kept.
        prefix: The public part of the key, of 12 characters.
        by: Who did it, for the ledger; ``None`` names nobody.
    """
    now = get_now()

    def revoke(transaction: Transaction) -> ApiKey:
        """Revoke the key and record it in the ledger."""
        connection = transaction.connection
        key = _load_key(connection, prefix)
        if key.revoked_at is not None and key.revoked_at <= format_time(now):
            raise UsageError(f"key {prefix} was revoked before, at {key.revoked_at}")
        _set_revoked(connection, prefix, now)
        transaction.append(_make_entry(ledger, "key.revoked", key, by))
        return replace(key, revoked_at=format_time(now))

    return await ledger.transact(revoke, tables=make_tables())


async def list_keys(ledger: Ledger) -> tuple[ApiKey, ...]:
    """List all keys, the oldest first, those that were revoked included.

    Args:
        ledger: The ledger in whose database keys are.
    """
    table = find_table(KEYS)
    statement = table.select().order_by(table.c.created_at, table.c.prefix)
    keys = await read(ledger, lambda connection: [_read_key(row) for row in connection.execute(statement)])
    return tuple(keys or ())


async def find_key(ledger: Ledger, text: str) -> ApiKey | None:
    """Find the valid API key whose text this is; ``None`` for a text that is no key, or an invalid key."""
    match = _KEY_PATTERN.fullmatch(text)
    if match is None:
        return None
    prefix = match[1]
    table = find_table(KEYS)
    statement = table.select().where(table.c.prefix == prefix)

    def fetch(connection: Connection) -> tuple[Any, bool]:
        """Fetch the row of the key, and whether the key has ended; ``None`` and false if there is none."""
        row = connection.execute(statement).one_or_none()
        return row, row is not None and _has_ended(connection, row)

    row, has_ended = await read(ledger, fetch) or (None, False)
    # Compared in constant time, so that the time does not tell how much of the key was right.
    if row is None or not hmac.compare_digest(_digest(text), row.digest):
        return None
    key = _read_key(row)
    return key if not has_ended and key.is_valid(get_now()) else None


def _has_ended(connection: Connection, row: Any) -> bool:
    """Return whether the ledger shows that a key has expired or was revoked.

    An entry of the ledger behind the key's own that is as late as its end proves it, even if the clock was set back
    since.
    """
    from sqlalchemy import func, select

    ends = [end for end in (row.expires_at, row.revoked_at) if end is not None]
    if not ends:
        return False
    entries = make_ledger_table()
    statement = select(func.max(entries.c.seq)).where(entries.c.subject == f"key:{row.prefix}")
    last_seq = connection.execute(statement).scalar_one()
    return last_seq is not None and has_passed(connection, behind=last_seq, at=min(ends))


def _make_entry(ledger: Ledger, kind: str, key: ApiKey, by: str | None, replaces: str | None = None) -> Draft:
    """Make the ledger entry about a key: what it may do and under whose name, but not its secret or its digest."""
    permissions = key.permissions
    payload = {"key": key.prefix, "name": key.name, "by": by, "expires_at": key.expires_at}
    payload |= {} if replaces is None else {"replaces": replaces}
    payload |= {"scopes": sorted(permissions.scopes), "approver": permissions.approver, "rater": permissions.rater}
    payload |= {"gates": None if permissions.gates is None else sorted(permissions.gates)}
    return ledger.make_entry(payload, kind=kind, subject=f"key:{key.prefix}")


def _make_key(
    name: str, permissions: Permissions, now: datetime, expires_at: datetime | None
) -> tuple[ApiKey, str, str]:
    """Make a key; return the key as it is stored, its text, which is never stored, and the digest of the text."""
    prefix = secrets.token_hex(6)
    secret = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    text = f"adj_{prefix}_{secret}"
    key = ApiKey(
        prefix=prefix,
        name=name,
        permissions=permissions,
        created_at=format_time(now),
        expires_at=None if expires_at is None else format_time(expires_at),
    )
    return key, text, _digest(text)


def _digest(text: str) -> str:
    """Return the digest of a key's text, which is stored in place of the text."""
    return sha256(text.encode()).hexdigest()


def _insert_key(connection: Connection, key: ApiKey, digest: str) -> None:
    """Store a key with the digest of its text."""
    values = {name: getattr(key, name) for name in ("prefix", "name", "created_at", "expires_at")}
    values |= {"digest": digest, **write_permissions(key.permissions)}
    connection.execute(find_table(KEYS).insert().values(**values))


def _set_revoked(connection: Connection, prefix: str, at: datetime) -> None:
    """Store the time from which a key is revoked; one that is revoked now loses its digest too."""
    table = find_table(KEYS)
    values = {"revoked_at": format_time(at)}
    if at <= get_now():
        # The time alone is not enough: a clock that is set back would make the key valid again.
        values["digest"] = _REVOKED_DIGEST
    connection.execute(table.update().where(table.c.prefix == prefix).values(**values))


def _load_key(connection: Connection, prefix: str) -> ApiKey:
    """Load a key by its prefix; raises ``UsageError`` if there is none."""
    table = find_table(KEYS)
    row = connection.execute(table.select().where(table.c.prefix == prefix)).one_or_none()
    if row is None:
        raise UsageError(f"there is no key {show(prefix)}; `adjudge keys list` shows those there are")
    return _read_key(row)


def _read_key(row: Any) -> ApiKey:
    """Read a key from a row of the table."""
    names = ("prefix", "name", "created_at", "expires_at", "revoked_at")
    return ApiKey(**{name: getattr(row, name) for name in names}, permissions=read_permissions(row))
