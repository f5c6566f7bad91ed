"""A redecided run as a folder of its own, for reports, comparisons and going on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from adjudge._run._items import RunItem
from adjudge._run._kept import make_reply_key
from adjudge._run._lock import RunLock
from adjudge._run._manifest import FILE, make_manifest, write_manifest
from adjudge._run._store import PAGE, RunStore
from adjudge._run._value import Run
from adjudge.errors import UsageError


class _Place(msgspec.Struct):
    """What of a kept reply says whose it is."""

    model: str
    case: str | None = None
    order: str | None = None
    sample: int = 0
    seat: int = 0
    attempt: int = 1


class RedecidedRun:
    """The folder that a redecided run is written to; raises ``UsageError`` when it cannot be one."""

    def __init__(self, source: Run, folder: Path, about: Mapping[str, Any], command: Sequence[str] | None) -> None:
        self.source, self.folder = source, folder
        kept = {name: source.manifest[name] for name in ("dataset", "asked", "options")}
        redecided = {"run": source.id, "policy": about["policy"]}
        own = {name: about[name] for name in ("judge", "rubric", "digests")}
        self.manifest = make_manifest(command=command, **kept, **own, redecided=redecided)
        self._lock = RunLock(folder)
        self._store = RunStore(folder)

    def begin(self) -> None:
        """Make the folder, and copy the replies: with them it can be gone on with, asking for what is missing."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(
                f"the run {self.folder} cannot be written: {error.strerror}; name another folder"
            ) from None
        if (self.folder / FILE).exists():
            raise UsageError(f"{self.folder} holds a run already; name another folder")
        self._lock.take()
        try:
            write_manifest(self.folder, self.manifest)
            self._store.create()
        except BaseException:
            self._lock.free()
            raise

    async def copy_replies(self) -> None:
        """Every reply of the source, as it was written."""
        replies = self.source.store.replies()
        decoder = msgspec.json.Decoder(_Place)
        while page := list(islice(replies, PAGE)):
            for body in page:
                self._keep_reply(decoder, body)
            await self._store.flush()

    def _keep_reply(self, decoder: msgspec.json.Decoder[_Place], body: bytes) -> None:
        try:
            place = msgspec.structs.asdict(decoder.decode(body))
        except msgspec.DecodeError:  # nothing could find it, here or there
            return
        self._store.keep_reply(make_reply_key(**place), body)

    async def keep(self, items: Iterable[RunItem]) -> None:
        """Keep some items, in one commit where they come together."""
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(self._store.keep(item))

    def end(self, *, whole: bool) -> None:
        """Say how it ended and what it came to."""
        try:
            summary = self._store.sum_up()
            status = "finished" if whole and self.source.status == "finished" else "interrupted"
            now = datetime.now(UTC).isoformat()
            counts = summary.pop("counts")
            write_manifest(
                self.folder,
                {**self.manifest, "status": status, "updated_at": now, "counts": counts, "summary": summary},
            )
        finally:
            self._store.close()
            self._lock.free()
