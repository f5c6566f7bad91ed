"""Replies that are kept to be given again: one SQLite file, for any number of processes and threads.

**The file is trusted.** Anyone who can write it decides what judges say, so it is created for its owner alone, and one
that others can write is refused.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from adjudge.concurrency import PerLoop
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero
from adjudge.formats.sqlite import create_private
from adjudge.formats.sqlite_file import FileKind, SqliteFile
from adjudge.formats.text import clean
from adjudge.group_commit import GroupCommit

SCHEMA = "adjudge/reply-cache/1"

BUSY_SECONDS = 10.0

LOOKUP_SECONDS = 0.1
"""Seconds that a lookup, which is made on the event loop, waits for another process; then the model is asked."""


_TABLES = (
    """CREATE TABLE replies (
        place INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at REAL NOT NULL, model TEXT NOT NULL,
        body BLOB NOT NULL) STRICT""",
    # Of each model at its address: what its newest reply reported as its name, and since when that is so.
    """CREATE TABLE names (
    source TEXT PRIMARY KEY, reported TEXT NOT NULL, since REAL NOT NULL) STRICT""",
)

_FIND = """SELECT body FROM replies WHERE key = ?1 AND at BETWEEN ?2 AND ?3
    AND at >= coalesce((SELECT since FROM names WHERE source = ?4), ?2)"""

_FIND_NAME = "SELECT reported FROM names WHERE source = ?"

_LIST = "SELECT key, at, model, length(body) FROM replies ORDER BY place"

# The place goes up with each reply that is kept, also where it takes another's: the lowest is the oldest.
_KEEP = "INSERT OR REPLACE INTO replies (key, at, model, body) VALUES (?, ?, ?, ?)"

_DROP = """DELETE FROM replies WHERE place IN (
    SELECT place FROM replies ORDER BY place LIMIT (SELECT count(*) / 8 + 1 FROM replies))"""


_log = logging.getLogger("adjudge.cache")


class ReplyToWrite(NamedTuple):
    """A reply that is about to be written into the file; its members are the columns, in order."""

    key: str
    at: float
    """The time at which it was kept, in seconds since 1970."""
    model: str
    body: bytes


class NameToWrite(NamedTuple):
    """A name that a model reported, which is about to be written into the file."""

    source: str
    name: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReply:
    """A reply in a cache: its key, time, model and size, without the question or the text."""

    key: str
    """The digest of everything that determines the answer."""
    at: float
    """The time at which it was kept, in seconds since 1970."""
    model: str
    """The name of the model that answered."""
    size: int
    """Its size in bytes."""


def _check_path(path: Path) -> None:
    """Raise ``UsageError`` for a path that must not be a cache; create the file if there is none."""
    try:
        create_private(path)
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a path with NUL in it
        reason = clean(f"the cache {path} cannot be opened: {getattr(error, 'strerror', None) or error}")
        raise UsageError(f"{reason}; name another file") from None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"the cache {path} is not a regular file; name another", argument="path")
    # Otherwise anybody on the machine could write what a judge is to have said.
    if os.name == "posix" and status.st_mode & 0o022:
        raise UsageError(
            f"the cache {path} can be written by others than its owner, who could write verdicts into it; "
            "take that right away (chmod go-w), or name another"
        )


_KIND = FileKind(
    schema=SCHEMA,
    tables=_TABLES,
    unreadable="{path} cannot be used as a cache ({why}); delete it, or name another file",
    unwritable="{path} cannot be written: {why}",
    other_schema="{path} is a database, but no cache of schema {schema}; name another file",
    check=_check_path,
)


class ReplyCache:
    """A file of replies, each under a key of everything that determines the answer.

    The file is created, readable by its owner alone, when it is first used. A reply is written a moment after it came,
    together with others; ``flush`` waits for that.

    A file that cannot be opened, is no cache of ours, or can be written by others raises ``UsageError`` from ``check``,
    which judges call before anything is asked. What breaks later, a full disk or a damaged page, never changes what a
    judgement says: it is logged once, and the models are asked.

    Args:
        path: The file.
        expires_in: Seconds after which a reply is no longer used by this object; ``None`` is never.
        max_bytes: The size of the file from which the oldest replies are dropped; ``None`` is no limit.
        wall: The time in seconds since 1970; for tests.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        expires_in: float | None = None,
        max_bytes: int | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self.expires_in = check_above_zero("expires_in", expires_in, otherwise="for never", where="a cache")
        self.max_bytes = check_above_zero("max_bytes", max_bytes, otherwise="for no limit", where="a cache")
        self._wall = wall
        self._lock = threading.Lock()
        self._lookups = SqliteFile(self.path, _KIND, mode="make", open_wait=BUSY_SECONDS, statement_wait=LOOKUP_SECONDS)
        # Writes have a connection and a lock of their own: a writer that waits for another process must not stop
        # lookups, which are made on the event loop.
        self._writes = SqliteFile(self.path, _KIND, mode="make", open_wait=BUSY_SECONDS)
        self._group: GroupCommit[ReplyToWrite | NameToWrite] = GroupCommit()
        self._replies_to_write: dict[str, ReplyToWrite] = {}
        """The replies that are not in the file yet, by key, for lookups; also while they are being written."""
        self._names_to_write: list[NameToWrite] = []
        self._writer: Future[None] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._has_warned = False
        self.under_way: PerLoop[dict[str, Any]] = PerLoop(dict)
        """The requests of each running loop that are being made, by key, for those who want the same."""

    def check(self) -> Self:
        """Open the file, or begin one; raises ``UsageError`` when it cannot serve as a cache."""
        self._lookups.open()
        return self

    def find(self, key: str, source: str = "") -> bytes | None:
        """The row kept under a key and not expired; ``None`` too where the file cannot be read.

        Args:
            key: The digest of the request.
            source: The model and the address that are asked, as for ``note_name``: no row is found that is older than
                the last change of the name that they report. Empty is none.
        """
        with self._lock:
            unwritten = self._replies_to_write.get(key)
        since, until = -math.inf, math.inf
        if self.expires_in is not None:
            until = self._wall()
            since = until - self.expires_in
        if unwritten is not None and unwritten.at >= since:
            return unwritten.body
        try:
            with self._lookups.using() as connection:
                row = connection.execute(_FIND, (key, since, until, source)).fetchone()
        except (sqlite3.Error, UsageError) as error:
            self._warn_once("read", error)
            return None
        return row[0] if row else None

    def find_name(self, source: str) -> str | None:
        """The name that the newest reply of a source reported, whichever process asked; ``None`` where none did.

        Args:
            source: The model and the address that were asked.
        """
        with self._lock:
            for noted in reversed(self._names_to_write):
                if noted.source == source:
                    return noted.name
        try:
            with self._lookups.using() as connection:
                row = connection.execute(_FIND_NAME, (source,)).fetchone()
        except (sqlite3.Error, UsageError) as error:
            self._warn_once("read", error)
            return None
        return row[0] if row else None

    def note_name(self, source: str, name: str) -> None:
        """Note which name a live reply reported. If it differs from before, the stored replies count as expired.

        Args:
            source: The model and the address that were asked.
            name: The name that the provider reported.
        """
        with self._lock:
            latest = self._names_to_write[-1] if self._names_to_write else None
            if latest is None or (latest.source, latest.name) != (source, name):
                noted = NameToWrite(source, name, self._wall())
                self._names_to_write.append(noted)
                self._queue_row(noted)

    def keep(self, key: str, model: str, row: bytes) -> None:
        """Queue a row to be kept under a key; it is found from now on.

        Args:
            key: The digest of the request.
            model: The name of the model.
            row: The reply, as it is written.
        """
        with self._lock:
            row_of_key = ReplyToWrite(key, self._wall(), model, row)
            self._replies_to_write[key] = row_of_key
            self._queue_row(row_of_key)

    def _queue_row(self, row: ReplyToWrite | NameToWrite) -> None:
        """Queue a row for the writer, and start a writer if there is none.

        The caller holds the lock, so that ``flush`` knows the writer of every queued row.
        """
        if not self._group.hand_in(row):
            return
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="adjudge-cache")
        try:
            self._writer = self._pool.submit(self._write_waiting)
        except RuntimeError as error:  # the interpreter is about to end
            self._warn_once("written", error)

    def entries(self) -> Iterator[CachedReply]:
        """Yield the replies in the file, oldest first."""
        self.flush()
        for key, at, model, size in self._writes.stream(_LIST):
            yield CachedReply(key=key, at=at, model=model, size=size)

    def rows(self) -> Iterator[bytes]:
        """The rows in the file as they were kept, oldest first."""
        self.flush()
        for (body,) in self._writes.stream("SELECT body FROM replies ORDER BY place"):
            yield body

    def clear(self, *, model: str | None = None, older_than: float | None = None) -> int:
        """Drop all replies, or those of one model or older than so many seconds; returns how many.

        Args:
            model: Only replies of this model; ``None`` is all.
            older_than: Only replies older than so many seconds; ``None`` is all.
        """
        self.flush()
        before = math.inf if older_than is None else self._wall() - older_than
        query = "DELETE FROM replies WHERE at <= ? AND (? IS NULL OR model = ?)"
        dropped = self._writes.execute(query, before, model, model)
        self._writes.execute("VACUUM")
        return dropped

    def drop_subjects(self, subjects: Collection[str], *, dry_run: bool = False) -> tuple[int, int]:
        """Drop the replies about contents with these digests; return how many, and how many do not say what about.

        Replies to calls that no judge made do not say it.

        Args:
            subjects: The digests of the contents.
            dry_run: Count them and drop nothing.
        """
        self.flush()
        keys: list[tuple[str]] = []
        unknown = 0
        for key, body in self._writes.stream("SELECT key, body FROM replies"):
            subject = _read_subject(body)
            unknown += subject is None
            if subject in subjects:
                keys.append((key,))
        if keys and not dry_run:
            with self._writes.change() as connection:
                connection.executemany("DELETE FROM replies WHERE key = ?", keys)
        return len(keys), unknown

    def clear_space(self) -> bool:
        """Have what was dropped leave the file; false where others read it still."""
        return self._writes.clear_space()

    def flush(self) -> None:
        """Wait until everything kept so far is in the file."""
        with self._lock:
            writer = self._writer
        if writer is not None:
            writer.result()

    def close(self) -> None:
        """Write what is left and close the file; a later use opens it again."""
        self.flush()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        self._lookups.close()
        self._writes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ReplyCache({str(self.path)!r})"

    # ---------------------------------------------------------------- the file

    def _write_waiting(self) -> None:
        """Write all rows that wait. After a failure, the rows are dropped, and a warning is logged once."""
        try:
            while group := self._group.take():
                self._write_group(group)
        except Exception as error:  # noqa: BLE001 - whatever happens to the file, judgements go on without it
            self._warn_once("written", error)
            self._writes.close()
            with self._lock:
                while self._group.take():  # drop the rows that were queued meanwhile, too
                    pass
                self._replies_to_write.clear()
                self._names_to_write.clear()

    def _write_group(self, group: Sequence[ReplyToWrite | NameToWrite]) -> None:
        """Write a group of replies and names in one transaction, and drop the oldest replies beyond ``max_bytes``."""
        names = [entry for entry in group if isinstance(entry, NameToWrite)]
        rows = [entry for entry in group if isinstance(entry, ReplyToWrite)]
        with self._writes.using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for new_name in names:
                self._write_name(connection, new_name)
            connection.executemany(_KEEP, rows)
            connection.execute("COMMIT")
            if self.max_bytes is not None:
                while _measure_used_bytes(connection) > self.max_bytes and connection.execute(_DROP).rowcount > 0:
                    pass
        with self._lock:
            del self._names_to_write[: len(names)]
            for row in rows:
                if self._replies_to_write.get(row.key) is row:
                    del self._replies_to_write[row.key]

    def _write_name(self, connection: sqlite3.Connection, new_name: NameToWrite) -> None:
        """Write the name that a model reports. If it has changed, log that older replies are not used any more."""
        query = "SELECT reported, since FROM names WHERE source = ?"
        row = connection.execute(query, (new_name.source,)).fetchone()
        if row is None:
            # Since 0, so that no reply counts as older: another process may have kept some, each with its own name.
            connection.execute("INSERT INTO names VALUES (?, ?, 0)", (new_name.source, new_name.name))
            return
        reported, since = row
        if reported != new_name.name and since <= new_name.at:  # else another process has written a later change
            update = "UPDATE names SET reported = ?, since = ? WHERE source = ?"
            connection.execute(update, (new_name.name, new_name.at, new_name.source))
            shown_names = [repr(clean(text, keep_lines=False)[:100]) for text in (new_name.name, reported)]
            _log.warning(
                "the cache %s: the model %s answers now and not %s, whose replies are not used", self.path, *shown_names
            )

    def _warn_once(self, action: str, error: Exception) -> None:
        """Log the first error of the file; ``action`` is what failed: ``read`` or ``written``."""
        if not self._has_warned:
            self._has_warned = True
            reason = clean(str(error), keep_lines=False)
            _log.warning("the cache %s cannot be %s (%s); models are asked instead", self.path, action, reason)


def _read_subject(body: bytes) -> str | None:
    """Read the digest of the content that a kept reply is about; ``None`` where the row does not have it."""
    try:
        subject = json.loads(body).get("subject")
    except (AttributeError, RecursionError, ValueError):
        return None
    return subject if isinstance(subject, str) else None


def _measure_used_bytes(connection: sqlite3.Connection) -> int:
    """Measure the bytes of the pages in use, without free pages, which are used again before the file grows."""
    pragmas = ("page_count", "freelist_count", "page_size")
    used, free, size = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    return (used - free) * size
