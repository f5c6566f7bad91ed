"""Signed links to a request for approval, for a mail or a message. They expire, and grant no access by themselves.

A link opens the page of one request. It neither signs anybody in nor decides anything: the person who opens it needs
an account, and sends the form of the page. The signature only keeps others from making links that look like ours.

Whether the person who opens it may see the request is decided in ``api/approvals.py`` (``can_see``).
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.webhook import MakeLink
from adjudge.ledger.ledger import Ledger
from adjudge.server.database import SECRETS, find_table, read, write

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_ROW_NAME = "links"
"""The name of the row with the secret that signs links, in the table of secrets."""

_SECRET_BYTES = 32

_LIFETIME = timedelta(days=7)


async def make_link(ledger: Ledger, base_url: str, ident: str, *, until: datetime, page: str = "approvals") -> str:
    """Make the address of a request's page, signed, which can be opened until a time.

    ``page`` is the first part of the page's path, as ``find_page`` returns it. The secret is in the server's own
    tables; it is made with the first link.
    """
    until_seconds = int(until.timestamp())
    signature = _sign(await _find_secret(ledger), ident, until_seconds)
    return f"{base_url}/{page}/{ident}?until={until_seconds}&link={signature}"


def find_page(approval: Approval) -> str:
    """Return the first part of the path of the page on which people decide a request: audits have their own page."""
    return "audits" if approval.audit else "approvals"


def make_linker(ledger: Ledger, base_url: str) -> MakeLink:
    """Make a function that makes the link of a request, for a webhook: until it expires, else for 7 days."""

    async def make(approval: Approval) -> str:
        """Make the link of a request, which can be opened until the request expires, or for 7 days."""
        until = find_end(approval, datetime.now(UTC))
        return await make_link(ledger, base_url, approval.id, until=until, page=find_page(approval))

    return make


def find_end(approval: Approval, now: datetime) -> datetime:
    """Return the time until which a link can be opened by default: until the request expires, else for 7 days."""
    return approval.expires_at or now + _LIFETIME


async def check_link(ledger: Ledger, ident: str, *, until: int, signature: str, now: datetime) -> None:
    """Raise ``UsageError`` for a link that this server did not make for this request, or whose time is over."""
    if not hmac.compare_digest(_sign(await _find_secret(ledger), ident, until).encode(), signature.encode()):
        raise UsageError("this link was not made by this server, or was changed; open the queue of approvals instead")
    if now.timestamp() >= until:
        raise UsageError("the time of this link is over; open the queue of approvals instead")


def _sign(secret: bytes, ident: str, until: int) -> str:
    """Sign the id of a request and the time, in seconds, until which its link can be opened."""
    signature = hmac.digest(secret, f"adjudge/approval-link/1\n{ident}\n{until}".encode(errors="surrogatepass"), sha256)
    return urlsafe_b64encode(signature).decode().rstrip("=")


async def _find_secret(ledger: Ledger) -> bytes:
    """Return the secret that signs links, which all servers of one database share; it is made if there is none."""
    table = find_table(SECRETS)
    query = table.select().where(table.c.name == _ROW_NAME)
    row = await read(ledger, lambda connection: connection.execute(query).one_or_none())
    if row is None:
        # Looked for once more in the transaction: if another process has made one since, its links must stay valid.
        def find_or_make(connection: Connection) -> Row[Any]:
            """Return the row with the secret, which is stored first if it is not there."""
            if connection.execute(query).one_or_none() is None:
                connection.execute(table.insert().values(name=_ROW_NAME, secret=secrets.token_hex(_SECRET_BYTES)))
            return connection.execute(query).one()

        row = await write(ledger, find_or_make)
    return bytes.fromhex(row.secret)
