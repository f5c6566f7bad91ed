"""``batches.sqlite``: the jobs of a run, their requests, and their outcomes, in a file beside the run's results.

When a method here has returned, its change is on the disk, and survives a loss of power: a job that is not remembered
would be paid for twice.

Which state follows another is decided in ``dispatcher.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from adjudge.formats.sqlite_file import FileKind, SqliteFile
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

_TABLES = (
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

_SET_OUTCOME = "UPDATE requests SET state = ?, body = ?, name = ?, message = ? WHERE id = ?"

_COLUMNS = ("number, label, model, account, state, requests, size, tokens, digest, file, job, word, message, done, "
            "differing, created_at, deadline, ended_at")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBatch:
    """A job as the run remembers it."""

    number: int
    """The number of the batch in this run, from 1."""
    label: str
    """The label at the provider, where that keeps labels; no other job has it."""
    model: str
    """The full name of its model."""
    account: str
    """SHA-256 of address and key: with another key a job is not to be seen, and not lost."""
    state: State
    requests: int
    size: int
    """Bytes of its lines."""
    tokens: int
    """The number of input tokens that it queues at the provider, roughly."""
    digest: str
    """SHA-256 of its lines."""
    file: str
    """The uploaded file's id; empty where there is none."""
    job: str
    """The provider's id; empty while it is not known."""
    word: str
    """The provider's word for its state."""
    message: str
    """The fault, in one sentence; empty when nothing did."""
    done: int
    """Requests the provider says it has answered."""
    differing: int
    """Ids that were answered twice, differently."""
    created_at: float
    """The time at which the intent was kept, in seconds since 1970."""
    deadline: float | None
    """The time by which the provider ends it by its own rules, and an hour."""
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRequest:
    """A request of a job as the run remembers it."""

    id: str
    """Its id at the provider: ``custom_id`` or ``key`` of its line."""
    batch: int
    """The number of its job."""
    line: int
    """The number of its line in the job, from 0."""
    place: str
    """Case, order, sample, model, seat and attempt, as ``make_reply_key`` writes them. Each job that a request goes
    into has a row of its own, and the latest one of a place counts."""
    key: str
    """The digest of the request itself."""
    state: RequestState
    used: bool
    """True if a judgement has used its outcome. A used outcome counts again only if it is a reply."""
    name: str
    """The error's name; empty for a reply."""
    message: str
    """The error in the provider's words; empty for a reply."""
    body: bytes | None
    """The reply or the error body; ``None`` until there is an outcome, and again when the run is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounts:
    """The number of lines of results of each kind."""

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


_KIND = FileKind(
    schema=SCHEMA,
    tables=_TABLES,
    unreadable="{path} cannot be read as a run's batches: {why}",
    unwritable="{path} cannot be written: {why}",
    other_schema="{path} holds no batches of the schema {schema}; update adjudge",
    durable=True,
)


class PaidAgain(NamedTuple):
    """The requests that may be paid for twice."""

    requests: int = 0
    usd: float = 0.0
    """The dollars that they cost at most, where that is known."""
    unknown: int = 0
    """Those whose cost is not known."""

    def add(self, other: PaidAgain) -> PaidAgain:
        """Return the sum of both."""
        return PaidAgain(
            requests=self.requests + other.requests, usd=self.usd + other.usd, unknown=self.unknown + other.unknown
        )

    def write(self) -> str:
        """Write the sums as a fact of the file."""
        return " ".join(map(repr, self))


def read_paid_again(fact: str | None) -> PaidAgain:
    """Read the sums that ``PaidAgain.write`` wrote; all are 0 where there is no fact."""
    if not fact:
        return PaidAgain()
    requests, usd, unknown = fact.split()
    return PaidAgain(int(requests), float(usd), int(unknown))


class BatchStore:
    """The file. Its methods may be called from any thread, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._file = SqliteFile(self.path, _KIND)

    @property
    def exists(self) -> bool:
        """Return whether the run has a file of batches."""
        return self.path.is_file()

    def open(self, *, make: bool = False, write: bool = True) -> BatchStore:
        """Open the file; ``make`` creates a missing one. Raises ``UsageError`` if it is no file of batches."""
        self._file.mode = "write" if write else "read"
        if make:
            self._file.begin()
        else:
            self._file.open()
        return self

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def remove(self) -> None:
        """Close the file, and delete it with the files that SQLite keeps beside it."""
        self._file.remove()

    def find_fact(self, name: str) -> str | None:
        """Return the value of a named fact about the whole run; ``None`` if there is none."""
        return self._file.find_fact(name)

    def set_fact(self, name: str, value: str) -> None:
        """Store a named fact about the whole run."""
        self._file.set_fact(name, value)

    # ---------------------------------------------------------------- jobs

    def list_batches(self, states: Sequence[State] | None = None) -> list[KeptBatch]:
        """List the jobs in the order in which they were planned, or only those in one of the ``states``."""
        rows = self._file.ask(f"SELECT {_COLUMNS} FROM batches ORDER BY number")  # noqa: S608 - our own words
        batches = [_read_batch(row) for row in rows]
        return batches if states is None else [batch for batch in batches if batch.state in states]

    def find_batch(self, number: int) -> KeptBatch:
        """Return the job with this number."""
        return _read_batch(self._file.ask(f"SELECT {_COLUMNS} FROM batches WHERE number = ?", number)[0])  # noqa: S608

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
        """Store a job that is about to be sent, with its requests, each as id, place, key and dollars held.

        Returns the job's number.
        """
        with self._file.change() as connection:
            cursor = connection.execute(
                "INSERT INTO batches (label, model, account, state, requests, size, tokens, digest, file, job, word, "
                "message, done, differing, created_at) "
                "VALUES (?, ?, ?, 'planned', ?, ?, ?, ?, '', '', '', '', 0, 0, ?)",
                (label, model, account, len(requests), size, tokens, digest, now),
            )
            number = int(cursor.lastrowid or 0)
            connection.executemany(
                "INSERT INTO requests VALUES (?, ?, ?, ?, ?, 'sent', 0, ?, '', '', NULL)",
                [
                    (request_id, number, line, place, key, held_usd)
                    for line, (request_id, place, key, held_usd) in enumerate(requests)
                ],
            )
        return number

    def change(self, number: int, **changes: Any) -> None:
        """Store changed columns of a job; their names are those of ``KeptBatch``."""
        assignments = ", ".join(f"{name} = ?" for name in changes)
        with self._file.change() as connection:
            connection.execute(f"UPDATE batches SET {assignments} WHERE number = ?", (*changes.values(), number))  # noqa: S608

    def forget_requests(self, number: int, state: State, message: str = "") -> None:
        """Delete the requests of a job that have no outcome, so that they are sent in another; set the job's state."""
        with self._file.change() as connection:
            connection.execute("DELETE FROM requests WHERE batch = ? AND state = 'sent'", (number,))
            connection.execute("UPDATE batches SET state = ?, message = ? WHERE number = ?", (state, message, number))

    # ---------------------------------------------------------------- requests

    def find_request(self, place: str) -> KeptRequest | None:
        """Return the latest request for a place; ``None`` if there is none."""
        rows = self._file.ask(
            "SELECT id, batch, line, place, key, state, used, name, message, body FROM requests WHERE place = ? "
            "ORDER BY rowid DESC LIMIT 1",
            place,
        )
        return _read_request(rows[0]) if rows else None

    def count_tries(self, place: str, key: str) -> int:
        """Count how often a request has been in a job that did not run it, since a judgement last used its outcome."""
        query = "SELECT count(*) FROM requests WHERE place = ? AND key = ? AND state = 'again' AND used = 0"
        return self._file.ask(query, place, key)[0][0]

    def list_sent(self, number: int) -> list[tuple[str, int]]:
        """List the requests of a job that have no outcome yet: the id of each, and the number of its line."""
        return self._file.ask("SELECT id, line FROM requests WHERE batch = ? AND state = 'sent' ORDER BY line", number)

    def keep_lines(
        self, number: int, lines: Iterable[ResultLine], *, is_same: Callable[[bytes, bytes], bool] = operator.eq
    ) -> LineCounts:
        """Store the outcomes in lines of a job's results; ``is_same`` compares the bodies of two replies.

        A request with two different answers becomes a contradiction, because it is not known which one is right. If a
        judgement has used the first of them already, that one stays.
        """
        fresh = differing = unknown = 0
        with self._file.change() as connection:
            for line in lines:
                row = connection.execute(
                    "SELECT state, body, name, used FROM requests WHERE id = ? AND batch = ?", (line.id, number)
                ).fetchone()
                if row is None:
                    unknown += 1
                    continue
                state, body, name, used = row
                if state == "sent":
                    outcome = (line.kind, line.body, line.name[:200], line.message[:2000], line.id)
                    connection.execute(_SET_OUTCOME, outcome)
                    fresh += 1
                elif _differs(state, body, name, line, is_same):
                    differing += 1
                    if not used:
                        outcome = ("contradiction", None, "contradiction", CONTRADICTION, line.id)
                        connection.execute(_SET_OUTCOME, outcome)
            if differing:
                connection.execute("UPDATE batches SET differing = differing + ? WHERE number = ?", (differing, number))
        return LineCounts(fresh=fresh, differing=differing, unknown=unknown)

    def list_settled(self, number: int) -> list[str]:
        """List the ids of a job's requests that have an outcome."""
        rows = self._file.ask("SELECT id FROM requests WHERE batch = ? AND state <> 'sent' ORDER BY line", number)
        return [row[0] for row in rows]

    def note_used(self, names: Iterable[str]) -> None:
        """Note that judgements have used the outcomes of the requests with these ids."""
        with self._file.change() as connection:
            connection.executemany("UPDATE requests SET used = 1 WHERE id = ?", [(name,) for name in names])

    def note_places_used(self, places: Iterable[str]) -> None:
        """Note that judgements have used every outcome for these places, also tries without a reply."""
        with self._file.change() as connection:
            query = "UPDATE requests SET used = 1 WHERE place = ? AND state <> 'sent'"
            connection.executemany(query, [(place,) for place in places])

    def find_requests(self, request_ids: Sequence[str]) -> Iterator[KeptRequest]:
        """Yield the requests with these ids."""
        # SQLite takes a limited number of parameters.
        for start in range(0, len(request_ids), 500):
            some_ids = request_ids[start : start + 500]
            marks = ", ".join("?" * len(some_ids))
            rows = self._file.ask(
                "SELECT id, batch, line, place, key, state, used, name, message, body FROM requests "  # noqa: S608
                f"WHERE id IN ({marks})",
                *some_ids,
            )
            yield from map(_read_request, rows)

    def count_requests(self) -> Mapping[str, int]:
        """Count the requests by state; those without an outcome count under the state of their job."""
        rows = self._file.ask(
            "SELECT CASE WHEN r.state = 'sent' THEN b.state ELSE r.state END, count(*) FROM requests r "
            "JOIN batches b ON b.number = r.batch GROUP BY 1"
        )
        return dict(rows)

    def add_held(self, number: int | None = None) -> float:
        """Add up the dollars that are held for requests without an outcome, of one job or of all."""
        query = """SELECT coalesce(sum(held_usd), 0.0) FROM requests
            WHERE state = 'sent' AND (:batch IS NULL OR batch = :batch)"""
        return self._file.ask(query, batch=number)[0][0]

    def note_paid_again(self, number: int) -> None:
        """Add the requests of a job that have no outcome to those that may be paid for twice."""
        query = "SELECT count(*), coalesce(sum(held_usd), 0.0), coalesce(sum(held_usd = 0), 0) FROM requests "
        [sums] = self._file.ask(f"{query} WHERE batch = ? AND state = 'sent'", number)
        self.set_fact(PAID_AGAIN, self.read_paid_again().add(PaidAgain(*sums)).write())

    def read_paid_again(self) -> PaidAgain:
        """Read how many requests may be paid for twice, and for how much."""
        return read_paid_again(self.find_fact(PAID_AGAIN))

    def count_tokens(self, model: str) -> int:
        """Return the number of tokens that a model's jobs have queued at the provider."""
        query = """SELECT coalesce(sum(tokens), 0) FROM batches
            WHERE model = ? AND (state IN ('waiting', 'cancelling', 'creating') OR (state = 'doubtful' AND job = ''))"""
        return self._file.ask(query, model)[0][0]

    def list_outcomes(self) -> Iterator[tuple[str, bytes | None, str]]:
        """Yield the outcomes that are still stored: place of the request, body of the reply or error, and message."""
        yield from self._file.stream(
            "SELECT place, body, message FROM requests WHERE body IS NOT NULL OR message <> '' ORDER BY rowid"
        )

    def erase_replies(self, prefixes: Iterable[str]) -> bool:
        """Erase the outcomes of requests whose place begins with one of these prefixes; the requests themselves stay.

        Returns true if the texts have left the file and its log; false if another process still reads the file.
        """
        with self._file.change() as connection:
            for prefix in prefixes:
                end = prefix[:-1] + chr(ord(prefix[-1]) + 1)  # the first text after all that begin with the prefix
                connection.execute(
                    "UPDATE requests SET body = NULL, message = '' WHERE place >= ? AND place < ?", (prefix, end)
                )
        return self._file.clear_space()

    def drop_bodies(self) -> None:
        """Delete the replies that were used. The run keeps its own copy of them, in which the token is masked."""
        with self._file.change() as connection:
            connection.execute("UPDATE requests SET body = NULL WHERE used = 1")


def _differs(
    state: str, body: bytes | None, name: str, line: ResultLine, is_same: Callable[[bytes, bytes], bool]
) -> bool:
    """Return whether a line has another answer than the stored outcome with this ``state``, ``body`` and ``name``."""
    if "reply" not in (state, line.kind):
        return False  # of two errors, the first counts
    if state != line.kind:
        return state != "contradiction" or name != "contradiction"  # a contradiction is counted once
    return body is not None and not is_same(body, line.body)


def _read_batch(row: Sequence[Any]) -> KeptBatch:
    """Make a job from a row with ``_COLUMNS``."""
    names = [name.strip() for name in _COLUMNS.split(",")]
    return KeptBatch(**dict(zip(names, row, strict=True)))


def _read_request(row: Sequence[Any]) -> KeptRequest:
    """Make a request from a row of the table ``requests``, without the dollars held."""
    request_id, batch, line, place, key, state, used, error, message, body = row
    return KeptRequest(
        id=request_id, batch=batch, line=line, place=place, key=key, state=state, used=bool(used), name=error,
        message=message, body=body,
    )  # fmt: skip
