"""``/v1/ledger``: reading, verifying and exporting the record. Nothing is written here."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response, StreamingResponse

from adjudge.guards.approval.request_columns import verify_listed
from adjudge.ledger.entry import Entry, Head
from adjudge.server.api.endpoint import answer, explaining_usage, make_router
from adjudge.server.caller import Caller, require
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState

router = make_router("ledger")

MOST = 1_000

_CHUNK_BYTES = 65_536

Reading = Annotated[Caller, Depends(require("read"))]

ReadingOfGates = Annotated[Caller, Depends(require("read", by_gate=True))]

Words = Annotated[str | None, Query(max_length=500)]


@router.get("/ledger")
async def query_ledger(  # noqa: PLR0917 - each is a member of the query
    state: CurrentState,
    caller: ReadingOfGates,
    kind: Words = None,
    outcome: Words = None,
    judge: Words = None,
    gate: Words = None,
    subject: Words = None,
    execution: Words = None,
    since: Words = None,
    until: Words = None,
    after: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Response:
    """List the entries that match all conditions, in order; ``next`` is the ``after`` of the next page, or null."""
    if caller.permissions.gates is not None and gate is None:
        raise Problem(403, "this is limited to gates; name one of them", code="forbidden")
    caller.check("read", gate)
    since_time, until_time = _read_time("since", since), _read_time("until", until)
    with explaining_usage():
        query = state.ledger.query(
            kind=kind,
            outcome=outcome,
            judge=judge,
            gate=gate,
            subject=subject,
            execution=execution,
            since=since_time,
            until=until_time,
            after=after,
        )
        entries = [entry async for entry in _take_first(query, limit + 1)]
    rows = [entry.to_dict() for entry in entries[:limit]]
    next_after = entries[limit - 1].seq if len(entries) > limit else None
    return answer({"schema": "adjudge/ledger-entries/1", "entries": rows, "next": next_after})


@router.get("/ledger/head")
async def get_head(state: CurrentState, _caller: Reading) -> Response:
    """Return the place and the hash of the last entry, to keep elsewhere."""
    return answer((await state.ledger.head()).to_dict())


@router.get("/ledger/verify")
async def verify_ledger(
    state: CurrentState, caller: Reading, head: Annotated[str | None, Query(max_length=500)] = None
) -> Response:
    """Check every entry; ``valid`` says whether it is unchanged. ``head`` is a SEQ:HASH that was kept elsewhere."""
    with explaining_usage():
        # Parsed here, because ``verify`` takes any text that is no head for the path of a file.
        expected_head = None if head is None else Head.parse(head)
    async with state.queue.enter(caller.identity):
        verification = await verify_listed(state.ledger, await state.ledger.verify(expected_head))
    return answer(verification.to_dict())


@router.get(
    "/ledger/export",
    response_class=StreamingResponse,
    responses={200: {"description": "JSON Lines.", "content": {"application/jsonl": {}}}},
)
async def export_ledger(state: CurrentState, caller: Reading) -> Response:
    """Export every entry, one JSON object a line. ``adjudge ledger verify`` checks the file without the ledger."""
    async with state.queue.enter(caller.identity):
        folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="adjudge-export-")
        try:
            head = await state.ledger.export(Path(folder.name) / "ledger.jsonl")
        except BaseException:
            folder.cleanup()
            raise
    name = f"ledger-{head.seq}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Adjudge-Head": str(head)}
    return StreamingResponse(_stream_export(folder), media_type="application/jsonl", headers=headers)


async def _take_first(entries: AsyncIterator[Entry], most: int) -> AsyncIterator[Entry]:
    """Yield the first entries, at most ``most``."""
    count = 0
    async for entry in entries:
        yield entry
        count += 1
        if count >= most:
            return


async def _stream_export(folder: tempfile.TemporaryDirectory[str]) -> AsyncIterator[bytes]:
    """Yield the exported ledger of a temporary folder in chunks, and remove the folder at the end."""
    try:
        with (Path(folder.name) / "ledger.jsonl").open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
                yield chunk
    finally:
        folder.cleanup()


def _read_time(name: str, text: str | None) -> datetime | None:
    """Read a time and convert it to UTC; one without a zone is taken to be UTC. ``None`` without a text.

    Raises ``Problem`` (422) for any other text; ``name`` is that of the parameter.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # the conversion to UTC can lead beyond the year 9999 or before the year 1
        raise Problem(422, f"{name} is a time like 2026-11-22T12:00:00Z", code="usage") from None
