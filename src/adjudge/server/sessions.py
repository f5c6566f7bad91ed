"""Sessions of people who are signed in: a random id in a cookie, and a row in the database.

The cookie holds nothing but 256 random bits, so it needs no signature. A session is over as soon as its row is deleted.

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

    The id is always new: one that somebody else planted in the browser before the sign-in must not become a session.
    ``browser_key`` is the key that forms need beside the token of their page; ``None`` where they need none. The result
    is ``None`` if the password was replaced, or the account disabled, while the password was compared.
    """
    ident, now = secrets.token_urlsafe(32), format_time(get_now())
    token = secrets.token_urlsafe(32) + ("" if browser_key is None else f".{browser_key}")
    values = {"digest": _digest(ident), "account": checked.account.name, "csrf_token": token}
    values |= {"created_at": now, "seen_at": now}

    def replace_session(connection: Connection) -> str | None:
        """Store the new session in place of the previous one; ``None`` if the account has changed meanwhile."""
        sessions, accounts = find_table(SESSIONS), find_table(ACCOUNTS)
        # The account is checked again in this transaction. A new password ends all sessions that there are, but not
        # this one if it were stored a moment later.
        matches = (accounts.c.name == checked.account.name) & (accounts.c.password == checked.compared_hash)
        account = accounts.select().where(matches & accounts.c.disabled_at.is_(None))
        if connection.execute(account).one_or_none() is None:
            return None
        if previous is not None:
            connection.execute(sessions.delete().where(sessions.c.digest == _digest(previous)))
        connection.execute(sessions.insert().values(**values))
        return ident

    return await write(ledger, replace_session)


async def find_session(ledger: Ledger, ident: str, settings: ServerSettings, *, is_used: bool = True) -> Session | None:
    """Find the session with the id that a cookie holds; ``None`` if it has ended, or the account is disabled.

    The time of its last use is updated, unless ``is_used`` is false.
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
    """Return the name of the cookie. A browser accepts ``__Host-`` only from this very host and over https."""
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
    """Set a cookie that scripts cannot read, and that another site can have sent only by a link to this one.

    ``max_age`` is in seconds; ``None`` keeps the cookie until the browser is closed. ``path`` is the address below
    which it is sent.
    """
    secure = settings.is_secure
    response.set_cookie(name, value, max_age=max_age, path=path, secure=secure, httponly=True, samesite="lax")


def delete_cookie(response: Response, name: str, settings: ServerSettings) -> None:
    """Delete a cookie that ``set_cookie`` set."""
    response.delete_cookie(name, path="/", secure=settings.is_secure, httponly=True, samesite="lax")


def _is_current(session: Session, settings: ServerSettings, now: datetime) -> bool:
    """Return whether a session has not ended yet, by its times and by the settings."""
    # If the clock was set back, the session has ended: otherwise it could last for ever.
    is_clock_back = now < max(session.created_at, session.seen_at) - timedelta(minutes=5)
    is_idle = (now - session.seen_at).total_seconds() > settings.session_idle
    # It began before the settings asked for the key of the browser, so its cookie alone would be enough for forms.
    lacks_key = settings.needs_browser_key and "." not in session.csrf_token
    return (
        not is_clock_back
        and not is_idle
        and not lacks_key
        and (now - session.created_at).total_seconds() <= settings.session_lifetime
    )


def _digest(ident: str) -> str:
    """Digest the id of a session, which is stored in place of the id."""
    return sha256(ident.encode("utf-8", "surrogateescape")).hexdigest()


def _read_session(row: Any) -> Session:
    """Read a session from a row of the table, joined with its account."""
    return Session(
        account=row.account,
        permissions=read_permissions(row),
        csrf_token=row.csrf_token,
        digest=row.digest,
        created_at=datetime.fromisoformat(row.created_at),
        seen_at=datetime.fromisoformat(row.seen_at),
    )
