"""``Idempotency-Key``: a request that is sent twice is done once, and answered twice.

The answer is stored in the database, under the caller, the address and the key, with a digest of the body. So another
caller with the same key gets nothing of it, and the same key with another body is refused. This is for the server's own
addresses; a request of an application that a gate held back and its client sends again is in
``guards/repeated_request.py``.

How long an answer is kept is ``idempotency`` in ``config/server.py``.

While a request is under way, its row in the table holds the name of the attempt that works on it and, in
``created_at``, the end of its deadline. So no other request, and no server with another deadline, takes the row for an
old one meanwhile. Once the deadline is over, another attempt may take the row; the first one then finds that the row is
no longer its own, and leaves it alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from adjudge.formats.times import get_now
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.server.caller import Caller
from adjudge.server.database import ANSWERS, find_table, write
from adjudge.server.problem import Problem
from adjudge.server.state import ServerState

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

LONGEST_KEY = 255

_DEADLINE_MARGIN = 5.0
"""Seconds after the deadline from which a request that left no answer counts as lost with its server."""


async def answer_once(
    request: Request, state: ServerState, caller: Caller, work: Callable[[], Awaitable[Response]]
) -> Response:
    """Answer a request with what ``work`` returns or, if its ``Idempotency-Key`` was answered before, with that answer.

    Raises ``Problem`` for a key that belongs to another request (422), or to one that is under way (409).
    """
    key = _read_key(request)
    if key is None:
        return await work()
    identity = json.dumps([caller.identity, request.method, request.scope["path"], key])
    key_digest = sha256(identity.encode()).hexdigest()
    body_digest = sha256(await request.body()).hexdigest()
    attempt = _Attempt(key_digest=key_digest, body_digest=body_digest, name=token_hex(16).encode())
    stored_response = await write(state.ledger, lambda connection: _begin_request(connection, attempt, state))
    if stored_response is not None:
        return stored_response
    try:
        response = await work()
    except BaseException:
        await _forget_request(state.ledger, attempt)  # it had no answer, so it may be sent again
        raise
    await write(state.ledger, lambda connection: _store_response(connection, attempt, response))
    return response


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One attempt at a request with an ``Idempotency-Key``; a client that sends it again makes another attempt."""

    key_digest: str
    """The digest of the caller, the address and the key, by which the row is found."""
    body_digest: str
    """The digest of the request's body."""
    name: bytes
    """A random name that no other attempt has."""


def _read_key(request: Request) -> str | None:
    """Read the header ``Idempotency-Key``; ``None`` without one. Raises ``Problem`` (400) for an invalid key."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1 or not 0 < len(keys[0]) <= LONGEST_KEY or not keys[0].isprintable():
        raise Problem(400, f"give one Idempotency-Key of 1 to {LONGEST_KEY} characters", code="bad_idempotency_key")
    return keys[0]


def _begin_request(connection: Connection, attempt: _Attempt, state: ServerState) -> Response | None:
    """Return the stored answer to a request, or store that this attempt is under way and return ``None``.

    Raises ``Problem`` where the key is another request's (422), or the request is under way (409).
    """
    table, now = find_table(ANSWERS), get_now()
    oldest = format_time(now - timedelta(seconds=state.settings.idempotency))
    connection.execute(table.delete().where(table.c.created_at < oldest))
    row = connection.execute(table.select().where(table.c.digest == attempt.key_digest)).one_or_none()
    if row is not None and row.request != attempt.body_digest:
        raise Problem(422, "this Idempotency-Key belongs to another request of yours", code="reused_idempotency_key")
    if row is not None and row.status is not None:
        return Response(row.body, row.status, media_type="application/json", headers={"Idempotency-Replayed": "true"})
    # A row without a status is of an attempt that is under way, and its ``created_at`` is the end of the deadline.
    if row is not None and datetime.fromisoformat(row.created_at) > now:
        raise Problem(
            409,
            "the request with this Idempotency-Key is under way; send it again for its answer",
            code="under_way",
            headers={"Retry-After": str(state.settings.retry_after)},
        )
    end = format_time(now + timedelta(seconds=state.settings.deadline + _DEADLINE_MARGIN))
    values = {"request": attempt.body_digest, "body": attempt.name, "created_at": end}
    if row is None:
        connection.execute(table.insert().values(digest=attempt.key_digest, **values))
    else:  # an earlier attempt was lost with its server, and this one takes over its row
        connection.execute(table.update().where(table.c.digest == attempt.key_digest).values(**values))
    return None


def _match_row(attempt: _Attempt) -> ColumnElement[bool]:
    """Make the SQL condition that a row is still that of this attempt, and was not taken over by a later one."""
    table = find_table(ANSWERS)
    return (table.c.digest == attempt.key_digest) & table.c.status.is_(None) & (table.c.body == attempt.name)


def _store_response(connection: Connection, attempt: _Attempt, response: Response) -> None:
    """Store the answer to a request in its row, if the row is still that of this attempt."""
    values = {"status": response.status_code, "body": bytes(response.body), "created_at": format_time(get_now())}
    connection.execute(find_table(ANSWERS).update().where(_match_row(attempt)).values(**values))


async def _forget_request(ledger: Ledger, attempt: _Attempt) -> None:
    """Delete the row of a request that failed without an answer, if the row is still that of this attempt."""
    statement = find_table(ANSWERS).delete().where(_match_row(attempt))
    await write(ledger, lambda connection: connection.execute(statement).rowcount)
