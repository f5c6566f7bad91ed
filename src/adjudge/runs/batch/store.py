"""``batches.sqlite``: the jobs of a run, their requests, and what came back, in a file beside the run's results.

What a method here has returned from is on the disk: after a loss of power too, for a job that nobody remembers is paid
for twice.
"""

from __future__ import annotations

import operator
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.sqlite import UNUSABLE, create_private, enter_wal, open_sqlite
from adjudge.formats.text import clean
from adjudge.models.batch.job import ResultLine, State

FILE = "batches.sqlite"

SCHEMA = "adjudge/batches/1"

PAID_AGAIN = "paid again"
"""The fact that says what may be paid for twice, because somebody had it sent again."""

OPEN: tuple[State, ...] = ("planned", "uploading", "creating", "doubtful", "waiting", "cancelling", "ended")
"""The states of a job from which something may still come."""

RequestState = Literal["sent", "reply", "again", "never", "contradiction"]
"""``sent``: in a job, and without an outcome so far. ``contradiction``: it was answered twice, differently. The others
are outcomes, as ``models.batch.job.Kind`` has them."""

CONTRADICTION = "the batch has two different answers to this request"

_DDL = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, said TEXT NOT NULL) STRICT",
    """CREATE TABLE batches (
        number INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE, model TEXT NOT NULL, account TEXT NOT NULL,
        state TEXT NOT NULL, requests INTEGER NOT NULL, size INTEGER NOT NULL, tokens INTEGER NOT NULL,
        digest TEXT NOT NULL, file TEXT NOT NULL, job TEXT NOT NULL, word TEXT NOT NULL, message TEXT NOT NULL,
        done INTEGER NOT NULL, differing INTEGER NOT NULL, created_at REAL NOT NULL, deadline REAL,
        ended_at REAL) STRICT""",
    """CREATE TABLE requests (
        id TEXT PRIMARY KEY, batch INTEGER NOT NULL, line INTEGER NOT NULL, place TEXT NOT NULL, key TEXT NOT NULL,
        state TEXT NOT NULL, used INTEGER NOT NULL, held_usd REAL NOT NULL, name TEXT NOT NULL, message TEXT NOT NULL,
        body BLOB) STRICT""",
    "CREATE INDEX requests_place ON requests (place)",
    "CREATE INDEX requests_batch ON requests (batch, state)",
)

_OUTCOME = "UPDATE requests SET state = ?, body = ?, name = ?, message = ? WHERE id = ?"

_COLUMNS = ("number, label, model, account, state, requests, size, tokens, digest, file, job, word, message, done, "
            "differing, created_at, deadline, ended_at")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBatch:
    """A job as the run remembers it."""

    number: int
    """Which one of this run, from 1."""
    label: str
    """What it is called at the provider, where that keeps labels; no other job has it."""
    model: str
    """The full name of its model."""
    account: str
    """SHA-256 of address and key: with another key a job is not to be seen, and not lost."""
    state: State
    requests: int
    size: int
    """Bytes of its lines."""
    tokens: int
    """About how many input tokens it queues at the provider."""
    digest: str
    """SHA-256 of its lines."""
    file: str
    """The uploaded file's id; empty where there is none."""
    job: str
    """The provider's id; empty while it is not known."""
    word: str
    """The provider's word for its state."""
    message: str
    """What went wrong, in one sentence; empty when nothing did."""
    done: int
    """Requests the provider says it has answered."""
    differing: int
    """Ids that were answered twice, differently."""
    created_at: float
    """When the intent was kept, in seconds since 1970."""
    deadline: float | None
    """When the provider has ended it by its own rules, and an hour."""
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRequest:
    """A request of a job as the run remembers it."""

    id: str
    """Its id at the provider: ``custom_id`` or ``key`` of its line."""
    batch: int
    """The number of its job."""
    line: int
    """Which line of the job it is, from 0."""
    place: str
    """Case, order, sample, model, seat and attempt, as ``make_place`` writes them. Each job that a request goes into
    has a row of its own, and the latest one of a place counts."""
    key: str
    """The digest of the request itself."""
    state: RequestState
    used: bool
    """Whether a judgement was given its outcome. A used outcome counts again only if it is a reply."""
    name: str
    """The error's name; empty for a reply."""
    message: str
    """The error in the provider's words; empty for a reply."""
    body: bytes | None
    """The reply or the error body; ``None`` until there is an outcome, and again when the run is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounts:
    """What lines of results came to."""

    fresh: int = 0
    """Requests that had no outcome before."""
    differing: int = 0
    """Lines that say something else than an earlier one about the same request."""
    unknown: int = 0
    """Lines about no request of the job."""

    def __add__(self, other: LineCounts) -> LineCounts:
        return LineCounts(
            fresh=self.fresh + other.fresh,
            differing=self.differing + other.differing,
            unknown=self.unknown + other.unknown,
        )


class BatchStore:
    """The file. Its methods may be called from any thread, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._writable = False

    @property
    def exists(self) -> bool:
        """Whether a run has such a file."""
        return self.path.is_file()

    def open(self, *, make: bool = False, write: bool = True) -> BatchStore:
        """Open the file, beginning it with ``make``; raises ``UsageError`` when it is none of ours."""
        try:
            if make and not self.exists:
                create_private(self.path)
            self._connection = open_sqlite(
                self.path, mode="write" if write else "read", prepare=_prepare if write else None
            )
            if make and not self._ask("SELECT count(*) FROM sqlite_master")[0][0]:
                with self._writing() as connection:
                    for statement in _DDL:
                        connection.execute(statement)
                    connection.execute("INSERT INTO about VALUES ('schema', ?)", (SCHEMA,))
            said = self._ask("SELECT said FROM about WHERE name = 'schema'")
        except UNUSABLE as error:
            why = clean(str(error)[:200], keep_lines=False)
            raise UsageError(f"{self.path} cannot be read as a run's batches: {why}") from None
        if not said or said[0][0] != SCHEMA:
            raise UsageError(f"{self.path} is of another schema than {SCHEMA}; update adjudge")
        return self

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def remove(self) -> None:
        """Close the file, and take it away with what SQLite put beside it."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    # ---------------------------------------------------------------- facts

    def find_fact(self, name: str) -> str | None:
        """A fact about the whole."""
        rows = self._ask("SELECT said FROM about WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def keep_fact(self, name: str, said: str) -> None:
        """Keep a fact about the whole."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, said))

    # ---------------------------------------------------------------- jobs

    def list_batches(self, states: Sequence[State] | None = None) -> list[KeptBatch]:
        """The jobs, in the order in which they were planned; with ``states`` those alone."""
        rows = self._ask(f"SELECT {_COLUMNS} FROM batches ORDER BY number")  # noqa: S608 - our own words
        found = [_read_batch(row) for row in rows]
        return found if states is None else [item for item in found if item.state in states]

    def find_batch(self, number: int) -> KeptBatch:
        """A job by its number."""
        return _read_batch(self._ask(f"SELECT {_COLUMNS} FROM batches WHERE number = ?", (number,))[0])  # noqa: S608

    def plan(
        self,
        *,
        label: str,
        model: str,
        account: str,
        size: int,
        tokens: int,
        digest: str,
        now: float,
        requests: Sequence[tuple[str, str, str, float]],
    ) -> int:
        """Keep the intent of a job with its requests (id, place, key, dollars held), before anything is sent.

        Returns the job's number.
        """
        with self._writing() as connection:
            made = connection.execute(
                "INSERT INTO batches (label, model, account, state, requests, size, tokens, digest, file, job, word, "
                "message, done, differing, created_at) "
                "VALUES (?, ?, ?, 'planned', ?, ?, ?, ?, '', '', '', '', 0, 0, ?)",
                (label, model, account, len(requests), size, tokens, digest, now),
            )
            number = int(made.lastrowid or 0)
            connection.executemany(
                "INSERT INTO requests VALUES (?, ?, ?, ?, ?, 'sent', 0, ?, '', '', NULL)",
                [(name, number, line, place, key, held) for line, (name, place, key, held) in enumerate(requests)],
            )
        return number

    def change(self, number: int, **changes: Any) -> None:
        """Keep what changed about a job; the names are those of ``KeptBatch``."""
        said = ", ".join(f"{name} = ?" for name in changes)
        with self._writing() as connection:
            connection.execute(f"UPDATE batches SET {said} WHERE number = ?", (*changes.values(), number))  # noqa: S608

    def forget_requests(self, number: int, state: State, message: str = "") -> None:
        """Take back the requests of a job that have no outcome, so that they are sent in another."""
        with self._writing() as connection:
            connection.execute("DELETE FROM requests WHERE batch = ? AND state = 'sent'", (number,))
            connection.execute("UPDATE batches SET state = ?, message = ? WHERE number = ?", (state, message, number))

    # ---------------------------------------------------------------- requests

    def find_request(self, place: str) -> KeptRequest | None:
        """The latest request for a place."""
        rows = self._ask(
            "SELECT id, batch, line, place, key, state, used, name, message, body FROM requests WHERE place = ? "
            "ORDER BY rowid DESC LIMIT 1",
            (place,),
        )
        return _read_request(rows[0]) if rows else None

    def count_tries(self, place: str, key: str) -> int:
        """How often a request was tried in vain, since a judgement was last given what came of it."""
        query = "SELECT count(*) FROM requests WHERE place = ? AND key = ? AND state = 'again' AND used = 0"
        return self._ask(query, (place, key))[0][0]

    def list_sent(self, number: int) -> list[tuple[str, int]]:
        """The ids of a job that have no outcome yet, with their lines."""
        return self._ask("SELECT id, line FROM requests WHERE batch = ? AND state = 'sent' ORDER BY line", (number,))

    def keep_lines(
        self, number: int, lines: Iterable[ResultLine], *, is_same: Callable[[bytes, bytes], bool] = operator.eq
    ) -> LineCounts:
        """Keep what came back; ``is_same`` says whether two replies say the same.

        An id with two different answers has neither: nobody knows which one holds. Where one of them was judged
        already, in an earlier look at the results, that judgement stays.
        """
        fresh = differing = unknown = 0
        with self._writing() as connection:
            for line in lines:
                row = connection.execute(
                    "SELECT state, body, name, used FROM requests WHERE id = ? AND batch = ?", (line.id, number)
                ).fetchone()
                if row is None:
                    unknown += 1
                elif row[0] == "sent":
                    outcome = (line.kind, line.body, line.name[:200], line.message[:2000], line.id)
                    connection.execute(_OUTCOME, outcome)
                    fresh += 1
                elif _differs(row, line, is_same):
                    differing += 1
                    if not row[3]:
                        outcome = ("contradiction", None, "contradiction", CONTRADICTION, line.id)
                        connection.execute(_OUTCOME, outcome)
            if differing:
                connection.execute("UPDATE batches SET differing = differing + ? WHERE number = ?", (differing, number))
        return LineCounts(fresh=fresh, differing=differing, unknown=unknown)

    def list_settled(self, number: int) -> list[str]:
        """The ids of a job that have an outcome."""
        rows = self._ask("SELECT id FROM requests WHERE batch = ? AND state <> 'sent' ORDER BY line", (number,))
        return [row[0] for row in rows]

    def note_used(self, names: Iterable[str]) -> None:
        """Take note that a judgement was given what came of these."""
        with self._writing() as connection:
            connection.executemany("UPDATE requests SET used = 1 WHERE id = ?", [(name,) for name in names])

    def note_places_used(self, places: Iterable[str]) -> None:
        """Take note that judgements were told that all tries for these places were in vain."""
        with self._writing() as connection:
            query = "UPDATE requests SET used = 1 WHERE place = ? AND state <> 'sent'"
            connection.executemany(query, [(place,) for place in places])

    def find_requests(self, names: Sequence[str]) -> Iterator[KeptRequest]:
        """Requests by their ids."""
        for begin in range(0, len(names), 500):
            part = names[begin : begin + 500]
            marks = ", ".join("?" * len(part))
            rows = self._ask(
                "SELECT id, batch, line, place, key, state, used, name, message, body FROM requests "  # noqa: S608
                f"WHERE id IN ({marks})",
                tuple(part),
            )
            yield from map(_read_request, rows)

    def count_requests(self) -> Mapping[str, int]:
        """How many requests are in which state, under the states of their jobs where they are sent."""
        rows = self._ask(
            "SELECT CASE WHEN r.state = 'sent' THEN b.state ELSE r.state END, count(*) FROM requests r "
            "JOIN batches b ON b.number = r.batch GROUP BY 1"
        )
        return dict(rows)

    def add_held(self, number: int | None = None) -> float:
        """The dollars that are held for requests without an outcome, of one job or of all."""
        where, given = ("", ()) if number is None else (" AND batch = ?", (number,))
        return self._ask(f"SELECT coalesce(sum(held_usd), 0.0) FROM requests WHERE state = 'sent'{where}", given)[0][0]  # noqa: S608

    def note_paid_again(self, number: int) -> None:
        """Count the requests of a job that have no outcome among those that may be paid for twice."""
        query = "SELECT count(*), coalesce(sum(held_usd), 0.0), coalesce(sum(held_usd = 0), 0) FROM requests "
        [found] = self._ask(f"{query} WHERE batch = ? AND state = 'sent'", (number,))
        before = self.read_paid_again()
        self.keep_fact(PAID_AGAIN, " ".join(repr(old + new) for old, new in zip(before, found, strict=True)))

    def read_paid_again(self) -> tuple[int, float, int]:
        """How many requests may be paid for twice, at most for how many dollars, and of how many that is not known."""
        number, usd, unknown = (self.find_fact(PAID_AGAIN) or "0 0.0 0").split()
        return int(number), float(usd), int(unknown)

    def count_tokens(self, model: str) -> int:
        """The tokens that a model's jobs have queued at the provider."""
        query = """SELECT coalesce(sum(tokens), 0) FROM batches
            WHERE model = ? AND (state IN ('waiting', 'cancelling', 'creating') OR (state = 'doubtful' AND job = ''))"""
        return self._ask(query, (model,))[0][0]

    def drop_bodies(self) -> None:
        """Let go of replies that the run has kept as its own, masked: here the token stands in them."""
        with self._writing() as connection:
            connection.execute("UPDATE requests SET body = NULL WHERE used = 1")

    # ---------------------------------------------------------------- the file

    def _ask(self, query: str, given: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            if self._connection is None:
                raise AdjudgeError(f"{self.path} is closed")
            return self._connection.execute(query, tuple(given)).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                raise AdjudgeError(f"{self.path} is closed")
            connection = self._connection
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise AdjudgeError(f"{self.path} cannot be written: {clean(str(error))}") from None
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")


def _differs(row: Sequence[Any], line: ResultLine, is_same: Callable[[bytes, bytes], bool]) -> bool:
    """Whether a line says something else than the one that is kept; of two errors, the first counts."""
    state, body, name, _ = row
    if "reply" not in (state, line.kind):
        return False
    if state != line.kind:
        return state != "contradiction" or name != "contradiction"
    return body is not None and not is_same(body, line.body)


def _prepare(connection: sqlite3.Connection) -> None:
    enter_wal(connection, durable=True)


def _read_batch(row: Sequence[Any]) -> KeptBatch:
    names = [name.strip() for name in _COLUMNS.split(",")]
    return KeptBatch(**dict(zip(names, row, strict=True)))


def _read_request(row: Sequence[Any]) -> KeptRequest:
    name, batch, line, place, key, state, used, error, message, body = row
    return KeptRequest(
        id=name, batch=batch, line=line, place=place, key=key, state=state, used=bool(used), name=error,
        message=message, body=body,
    )  # fmt: skip
