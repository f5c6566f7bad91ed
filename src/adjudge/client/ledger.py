"""A server's ledger, to read and to export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from adjudge.client.connection import Connection
from adjudge.client.request_members import read_answer
from adjudge.errors import ServerError
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.sqlite import create_private
from adjudge.ledger.entry import Entry, Head
from adjudge.ledger.export import refuse_export
from adjudge.ledger.verification import Verification
from adjudge.sync import make_sync_method, run_sync


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteLedger:
    """A server's ledger, to read."""

    connection: Connection
    """The way to the server."""

    async def query(
        self,
        *,
        outcome: str | None = None,
        judge: str | None = None,
        gate: str | None = None,
        subject: str | None = None,
        execution: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: int = 0,
    ) -> AsyncIterator[Entry]:
        """Yield the entries that match all conditions, in order, as ``Ledger.query`` does.

        Args:
            outcome: Only results with this outcome.
            judge: Only results of the judge of this name.
            gate: Only entries of the gate of this name.
            subject: Only entries about the content with this digest.
            execution: Only entries that were recorded with this ``execution``.
            kind: Only entries of this kind, such as ``result`` or ``decision``.
            since: Only entries from this time on.
            until: Only entries before this time.
            after: Only entries behind this place.
        """
        filters = _write_query(
            outcome=outcome,
            judge=judge,
            gate=gate,
            subject=subject,
            execution=execution,
            kind=kind,
            since=since,
            until=until,
        )
        after_seq: int | None = after
        while after_seq is not None:
            entries, after_seq = await self._fetch_page(after_seq, filters)
            for entry in entries:
                yield entry

    def query_sync(
        self,
        *,
        outcome: str | None = None,
        judge: str | None = None,
        gate: str | None = None,
        subject: str | None = None,
        execution: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: int = 0,
    ) -> Iterator[Entry]:
        """Do the same as ``query`` without an event loop, a page of entries at a time."""
        filters = _write_query(
            outcome=outcome,
            judge=judge,
            gate=gate,
            subject=subject,
            execution=execution,
            kind=kind,
            since=since,
            until=until,
        )
        after_seq: int | None = after
        while after_seq is not None:
            entries, after_seq = run_sync(self._fetch_page(after_seq, filters))
            yield from entries

    async def head(self) -> Head:
        """Return the place and hash of the last entry. Keep it elsewhere to notice later changes."""
        reply = await self.connection.get("v1", "ledger", "head")
        return read_answer(
            lambda members: Head.parse(f"{members['seq']}:{members['hash']}"), reply, self.connection.url, "head"
        )

    head_sync = make_sync_method(head)

    async def verify(self, head: Head | str | None = None) -> Verification:
        """Have the server check every entry, and return the first bad one, if any.

        Without ``head`` the answer is the server's own word about its own ledger, and somebody who controls the server
        can make it say anything. An answer that does not say that it compared the head you gave raises ``ServerError``.
        To rely on no word of the server, ``export`` the ledger and use ``verify_export``.

        Args:
            head: A head that you kept elsewhere, as a value or ``SEQ:HASH``. ``None`` compares with none.
        """
        pinned = head if head is None or isinstance(head, Head) else Head.parse(head)
        reply = await self.connection.get("v1", "ledger", "verify", head=None if pinned is None else str(pinned))
        verification = read_answer(Verification.from_dict, reply, self.connection.url, "verification")
        if pinned is not None and verification.valid and not verification.pinned_head:
            raise ServerError(f"{self.connection.url} did not compare the head that was given, so its answer is none")
        return verification

    verify_sync = make_sync_method(verify)

    async def export(self, path: str | Path) -> Head:
        """Write every entry to a new file and return the ledger's head; ``verify_export`` checks it without the server.

        An export may be of any size and take any time, as long as the server goes on sending: ``timeout`` is for each
        piece of it. What came of one that broke off is removed. Raises ``UsageError`` when the file exists.

        Args:
            path: The file to write; it must not exist.
        """
        url = self.connection.url
        async with self.connection.download("v1", "ledger", "export") as (headers, pieces):
            head = read_answer(Head.parse, headers.get("adjudge-head", ""), url, "head with its export")
            await _write_new_file(path, pieces)
        return head

    export_sync = make_sync_method(export)

    async def _fetch_page(self, after: int, filters: Mapping[str, str | None]) -> tuple[list[Entry], int | None]:
        """Fetch the entries after a number, and the number after which there are more, or ``None``."""
        reply = await self.connection.get("v1", "ledger", after=after, limit=1_000, **filters)
        return read_answer(_read_page, reply, self.connection.url, "list of entries")


def _write_query(*, since: datetime | None, until: datetime | None, **filters: str | None) -> dict[str, str | None]:
    """Write the filters of a query as parameters of the address, its times in ISO format."""
    times = {"since": since, "until": until}
    return filters | {name: None if time is None else time.isoformat() for name, time in times.items()}


def _read_page(members: Mapping[str, Any]) -> tuple[list[Entry], int | None]:
    """Read a page: its entries, and the number after which there are more, or ``None``.

    Raises ``TypeError`` for another number than an integer, which ``read_answer`` turns into a ``ServerError``.
    """
    entries, next_after = [read_typed(row, Entry) for row in members["entries"]], members["next"]
    if next_after is not None and type(next_after) is not int:
        raise TypeError
    return entries, next_after


async def _write_new_file(path: str | Path, pieces: AsyncIterator[bytes]) -> None:
    """Write a new file piece by piece, in threads, because a slow disk must not block the event loop.

    A file that could not be written whole is removed. Raises the error of ``refuse_export`` for an error of the disk.
    """
    try:
        await asyncio.to_thread(create_private, path, new=True)
    except OSError as error:
        raise refuse_export(path, error) from None
    try:
        with await asyncio.to_thread(Path(path).open, "wb") as file:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)
    except BaseException as error:
        _remove(path)  # not in a thread, because a task that was cancelled cannot wait for one
        if isinstance(error, OSError):
            raise refuse_export(path, error) from None
        raise


def _remove(path: str | Path) -> None:
    Path(path).unlink(missing_ok=True)
