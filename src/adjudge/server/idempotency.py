"""``Idempotency-Key``: a request that is sent twice is done once, and answered twice.

The answer is stored in the database, under the caller, the address and the key, with a digest of the body. So another
caller with the same key gets nothing of it, and the same key with another body is refused. This is for the server's own
addresses; a request of an application that a gate held back and its client sends again is in
``guards/repeated_request.py``.

How long an answer is kept is ``idempotency`` in ``config/server.py``.

A row of a request that is under way holds its owner, and in the place of its time the end of its deadline. So no other
request, and no server with another deadline, takes it for old while it is under way. What outlives its deadline all the
same finds that the row is another's, and leaves it alone.
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

_MARGIN = 5.0
"""Seconds after the deadline from which a request that left no answer counts as lost with its server."""


async def answer_once(
    request: Request, state: ServerState, caller: Caller, work: Callable[[], Awaitable[Response]]
) -> Response:
    """Answer a request: with that of ``work``, or, where the key was seen before, with the stored answer.

    Raises ``Problem`` for a key that belongs to another request (422), or to one that is under way (409).
    """
    key = _read_key(request)
    if key is None:
        return await work()
    identity = json.dumps([caller.identity, request.method, request.scope["path"], key])
    digest = sha256(identity.encode()).hexdigest()
    body = sha256(await request.body()).hexdigest()
    begun = _Begun(digest=digest, body=body, owner=token_hex(16).encode())
    stored_response = await write(state.ledger, lambda connection: _begin_request(connection, begun, state))
    if stored_response is not None:
        return stored_response
    try:
        response = await work()
    except BaseException:
        await _forget_request(state.ledger, begun)  # it had no answer, so it may be sent again
        raise
    await write(state.ledger, lambda connection: _store_response(connection, begun, response))
    return response


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A request with a key."""

    digest: str
    """Of its caller, its address and its key, under which its row is found."""
    body: str
    """Of its body."""
    owner: bytes
    """The name that no other try of it has."""


def _read_key(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1 or not 0 < len(keys[0]) <= LONGEST_KEY or not keys[0].isprintable():
        raise Problem(400, f"give one Idempotency-Key of 1 to {LONGEST_KEY} characters", code="bad_idempotency_key")
    return keys[0]


def _begin_request(connection: Connection, begun: _Begun, state: ServerState) -> Response | None:
    """Note that a request is under way, or return the answer to it that is there.

    Raises ``Problem`` where the key is another request's (422), or the request is under way (409).
    """
    table, now = find_table(ANSWERS), get_now()
    old = format_time(now - timedelta(seconds=state.settings.idempotency))
    connection.execute(table.delete().where(table.c.created_at < old))
    row = connection.execute(table.select().where(table.c.digest == begun.digest)).one_or_none()
    if row is not None and row.request != begun.body:
        raise Problem(422, "this Idempotency-Key belongs to another request of yours", code="reused_idempotency_key")
    if row is not None and row.status is not None:
        return Response(row.body, row.status, media_type="application/json", headers={"Idempotency-Replayed": "true"})
    if row is not None and datetime.fromisoformat(row.created_at) > now:
        raise Problem(
            409,
            "the request with this Idempotency-Key is under way; send it again for its answer",
            code="under_way",
            headers={"Retry-After": str(state.settings.retry_after)},
        )
    end = format_time(now + timedelta(seconds=state.settings.deadline + _MARGIN))
    values = {"request": begun.body, "body": begun.owner, "created_at": end}
    if row is None:
        connection.execute(table.insert().values(digest=begun.digest, **values))
    else:
        connection.execute(table.update().where(table.c.digest == begun.digest).values(**values))
    return None


def _is_own(begun: _Begun) -> ColumnElement[bool]:
    """Return the condition that a row is still that of this try, and not of one that took its place."""
    table = find_table(ANSWERS)
    return (table.c.digest == begun.digest) & table.c.status.is_(None) & (table.c.body == begun.owner)


def _store_response(connection: Connection, begun: _Begun, response: Response) -> None:
    values = {"status": response.status_code, "body": bytes(response.body), "created_at": format_time(get_now())}
    connection.execute(find_table(ANSWERS).update().where(_is_own(begun)).values(**values))


async def _forget_request(ledger: Ledger, begun: _Begun) -> None:
    forget = find_table(ANSWERS).delete().where(_is_own(begun))
    await write(ledger, lambda connection: connection.execute(forget).rowcount)
