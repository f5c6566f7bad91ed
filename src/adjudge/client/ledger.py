"""A server's ledger, to read and to export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from adjudge.client.connection import Connection
from adjudge.formats.sqlite import create_private
from adjudge.ledger.entry import Entry, Head
from adjudge.ledger.export import refuse_export


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
        wanted: dict[str, str | None] = {"outcome": outcome, "judge": judge, "gate": gate, "subject": subject}
        wanted |= {"execution": execution, "kind": kind}
        wanted |= {"since": None if since is None else since.isoformat()}
        wanted |= {"until": None if until is None else until.isoformat()}
        place: int | None = after
        while place is not None:
            said = await self.connection.get("v1", "ledger", after=place, limit=1_000, **wanted)
            for item in said["entries"]:
                yield _read_entry(item)
            place = said["next"]

    async def head(self) -> Head:
        """The place and hash of the last entry. Keep it elsewhere to notice later changes."""
        said = await self.connection.get("v1", "ledger", "head")
        return Head(seq=said["seq"], hash=said["hash"])

    async def export(self, path: str | Path) -> Head:
        """Write every entry to a new file and return the ledger's head; ``verify_export`` checks it without the server.

        Raises ``UsageError`` when the file exists.
        """
        raw, headers = await self.connection.download("v1", "ledger", "export")
        try:
            await asyncio.to_thread(_write_new, path, raw)
        except OSError as error:
            raise refuse_export(path, error) from None
        return Head.parse(headers.get("Adjudge-Head", ""))


def _read_entry(data: dict[str, Any]) -> Entry:
    given: dict[str, Any] = {name: value for name, value in data.items() if name != "schema"}
    given["at"] = datetime.fromisoformat(given["at"])
    return Entry(**given)


def _write_new(path: str | Path, raw: bytes) -> None:
    create_private(path, new=True)
    Path(path).write_bytes(raw)
