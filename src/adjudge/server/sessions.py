"""Sessions: an opaque random id in a cookie, and a row in the database, which ends when the row does.

Nothing is signed because nothing is in the cookie but 256 random bits; a session that is deleted is over at once.

A browser sends a cookie to every port of a host. On plain http, or at a name of this machine, another program that
serves a page here therefore gets the cookie of everybody who opens that page. There, a form needs more than the cookie
(``needs_browser_key``): the key that the browser made when the person signed in, and that it stores for this scheme,
host and port alone (``browser_key.js``), or the person's password.

How long a session lasts is in ``config/server.py``: ``session_idle`` and ``session_lifetime``.

What the person of a session may do is decided in ``permissions.py`` (``Permissions``).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from adjudge.config.server import ServerSettings
from adjudge.formats.times import get_now
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.server.accounts import CheckedAccount
from adjudge.server.database import ACCOUNTS, SESSIONS, find_table, read, write
from adjudge.server.permissions import Permissions, read_permissions

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from starlette.responses import Response


SEEN_EVERY = 60.0
"""Seconds after which a request writes down again that the session is in use; each write is a commit."""


YEAR = 365 * 24 * 3600
"""Seconds for which a browser keeps a preference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who is signed in."""

    account: str
    permissions: Permissions
    csrf_token: str
    """The secret that every form of the session sends; a page of somebody else's cannot read it.

    Where forms need the key of the browser, it is the token of the session's pages, a full stop, and the key.
    """
    digest: str
    created_at: datetime
    seen_at: datetime

    @property
    def page_token(self) -> str:
        """The part of ``csrf_token`` that pages hold. The key is in no page: whoever has the cookie can read pages."""
        return self.csrf_token.partition(".")[0]


async def begin_session(
    ledger: Ledger, checked: CheckedAccount, *, browser_key: str | None, previous: str | None = None
) -> str | None:
    """Store a new session, end the previous one of this browser, and return the new id for the cookie.

    Always a new id: one that somebody else planted before the sign-in must not become a session. ``browser_key`` is
    the key that forms need beside the token of their page; ``None`` where they need none. The result is ``None``
    where the password was replaced, or the account disabled, while the password was compared.
    """
    ident, now = secrets.token_urlsafe(32), format_time(get_now())
    token = secrets.token_urlsafe(32) + ("" if browser_key is None else f".{browser_key}")
    values = {"digest": _digest(ident), "account": checked.account.name, "csrf_token": token}
    values |= {"created_at": now, "seen_at": now}

    def replace(connection: Connection) -> str | None:
        sessions, accounts = find_table(SESSIONS), find_table(ACCOUNTS)
        # In this transaction: a new password ends all sessions, and one that began a moment later would survive it.
        matches = (accounts.c.name == checked.account.name) & (accounts.c.password == checked.stored)
        account = accounts.select().where(matches & accounts.c.disabled_at.is_(None))
        if connection.execute(account).one_or_none() is None:
            return None
        if previous is not None:
            connection.execute(sessions.delete().where(sessions.c.digest == _digest(previous)))
        connection.execute(sessions.insert().values(**values))
        return ident

    return await write(ledger, replace)


async def find_session(ledger: Ledger, ident: str, settings: ServerSettings, *, is_used: bool = True) -> Session | None:
    """The session of a cookie; ``None`` where it has ended, or the account is disabled.

    Notes that it is in use, unless ``is_used`` is false.
    """
    sessions, accounts = find_table(SESSIONS), find_table(ACCOUNTS)
    statement = (
        sessions.select()
        .add_columns(accounts.c.scopes, accounts.c.gates, accounts.c.approver, accounts.c.rater)
        .join(accounts, accounts.c.name == sessions.c.account)
        .where((sessions.c.digest == _digest(ident)) & accounts.c.disabled_at.is_(None))
    )
    row = await read(ledger, lambda connection: connection.execute(statement).one_or_none())
    if row is None:
        return None
    session, now = _read_session(row), get_now()
    if not _is_current(session, settings, now):
        await end_session(ledger, ident)
        return None
    if is_used and abs((now - session.seen_at).total_seconds()) > SEEN_EVERY:
        change = sessions.update().where(sessions.c.digest == session.digest).values(seen_at=format_time(now))
        await write(ledger, lambda connection: connection.execute(change).rowcount)
    return session


async def end_session(ledger: Ledger, ident: str) -> None:
    """End a session, if it is there."""
    table = find_table(SESSIONS)
    await write(ledger, lambda connection: connection.execute(table.delete().where(table.c.digest == _digest(ident))))


def name_cookie(settings: ServerSettings) -> str:
    """The cookie's name. With ``__Host-``, a browser takes it from this very host and over https alone."""
    return "__Host-adjudge" if settings.is_secure else "adjudge"


def set_cookie(
    response: Response,
    name: str,
    value: str,
    settings: ServerSettings,
    *,
    max_age: int | None = None,
    path: str = "/",
) -> None:
    """Give a browser a cookie that scripts cannot read, and that no other site's request carries but by a link.

    ``max_age`` is in seconds; ``None`` keeps the cookie until the browser is closed. ``path`` is the address below
    which it is sent.
    """
    secure = settings.is_secure
    response.set_cookie(name, value, max_age=max_age, path=path, secure=secure, httponly=True, samesite="lax")


def delete_cookie(response: Response, name: str, settings: ServerSettings) -> None:
    """Take a cookie from a browser."""
    response.delete_cookie(name, path="/", secure=settings.is_secure, httponly=True, samesite="lax")


def _is_current(session: Session, settings: ServerSettings, now: datetime) -> bool:
    # A clock that was set back ends a session: else it could last for ever.
    early = now < max(session.created_at, session.seen_at) - timedelta(minutes=5)
    idle = (now - session.seen_at).total_seconds() > settings.session_idle
    # One that was begun before the configuration asked for a key would be decided for by its cookie alone.
    lacks_key = settings.needs_browser_key and "." not in session.csrf_token
    return (
        not early
        and not idle
        and not lacks_key
        and (now - session.created_at).total_seconds() <= settings.session_lifetime
    )


def _digest(ident: str) -> str:
    return sha256(ident.encode("utf-8", "surrogateescape")).hexdigest()


def _read_session(row: Any) -> Session:
    return Session(
        account=row.account,
        permissions=read_permissions(row),
        csrf_token=row.csrf_token,
        digest=row.digest,
        created_at=datetime.fromisoformat(row.created_at),
        seen_at=datetime.fromisoformat(row.seen_at),
    )
