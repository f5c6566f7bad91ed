"""A server's ledger, to read and to export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from adjudge.client.connection import Connection
from adjudge.errors import ServerError, UsageError
from adjudge.formats.sqlite import create_private
from adjudge.ledger.entry import Entry, Head
from adjudge.ledger.export import refuse_export
from adjudge.ledger.verification import Verification
from adjudge.sync import run_sync


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteLedger:
    """A server's ledger, to read."""

    connection: Connection

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
        """Yield the entries that match all conditions, in order, as ``Ledger.query`` does."""
        wanted = _write_query(
            outcome=outcome,
            judge=judge,
            gate=gate,
            subject=subject,
            execution=execution,
            kind=kind,
            since=since,
            until=until,
        )
        place: int | None = after
        while place is not None:
            entries, place = await self._fetch(place, wanted)
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
        """``query`` without an event loop, a page of entries at a time."""
        wanted = _write_query(
            outcome=outcome,
            judge=judge,
            gate=gate,
            subject=subject,
            execution=execution,
            kind=kind,
            since=since,
            until=until,
        )
        place: int | None = after
        while place is not None:
            entries, place = run_sync(self._fetch(place, wanted))
            yield from entries

    async def head(self) -> Head:
        """The place and hash of the last entry. Keep it elsewhere to notice later changes."""
        said = await self.connection.get("v1", "ledger", "head")
        return Head(seq=said["seq"], hash=said["hash"])

    def head_sync(self) -> Head:
        """``head`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.head())

    async def verify(self, head: Head | str | None = None) -> Verification:
        """Have the server check every entry, and return the first bad one, if any.

        ``head`` is one that you kept elsewhere, as a value or ``SEQ:HASH``. Without it the answer is the server's own
        word about its own ledger, and somebody who controls the server can make it say anything. An answer that does
        not say that it compared the head you gave raises ``ServerError``. To rely on no word of the server, ``export``
        the ledger and use ``verify_export``.
        """
        pinned = head if head is None or isinstance(head, Head) else Head.parse(head)
        said = await self.connection.get("v1", "ledger", "verify", head=None if pinned is None else str(pinned))
        try:
            found = Verification.from_dict(said)
        except UsageError as error:
            raise ServerError(f"{self.connection.url} gave no verification: {error}") from None
        if pinned is not None and found.valid and not found.pinned_head:
            raise ServerError(f"{self.connection.url} did not compare the head that was given, so its answer is none")
        return found

    def verify_sync(self, head: Head | str | None = None) -> Verification:
        """``verify`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.verify(head))

    async def export(self, path: str | Path) -> Head:
        """Write every entry to a new file and return the ledger's head; ``verify_export`` checks it without the server.

        Raises ``UsageError`` when the file exists.
        """
        raw, headers = await self.connection.download("v1", "ledger", "export")
        try:
            await asyncio.to_thread(_write_new, path, raw)
        except OSError as error:
            raise refuse_export(path, error) from None
        return Head.parse(headers.get("adjudge-head", ""))

    def export_sync(self, path: str | Path) -> Head:
        """``export`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.export(path))

    async def _fetch(self, after: int, wanted: Mapping[str, str | None]) -> tuple[list[Entry], int | None]:
        said = await self.connection.get("v1", "ledger", after=after, limit=1_000, **wanted)
        return [_read_entry(item) for item in said["entries"]], said["next"]


def _write_query(*, since: datetime | None, until: datetime | None, **words: str | None) -> dict[str, str | None]:
    times = {"since": since, "until": until}
    return words | {name: None if at is None else at.isoformat() for name, at in times.items()}


def _read_entry(data: dict[str, Any]) -> Entry:
    given: dict[str, Any] = {name: value for name, value in data.items() if name != "schema"}
    given["at"] = datetime.fromisoformat(given["at"])
    return Entry(**given)


def _write_new(path: str | Path, raw: bytes) -> None:
    create_private(path, new=True)
    Path(path).write_bytes(raw)
