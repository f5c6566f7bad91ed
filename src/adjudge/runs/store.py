"""The file of a run: one SQLite file with the cases, the results and every reply as it came.

When ``keep`` returns, the item is in the file, and a process that is killed afterwards does not lose it. Unlike a
ledger, a run does not wait until the data is on the disk: after a loss of power, it can be judged again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

from adjudge.dataset.contents import digest_content
from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.sqlite import create_private
from adjudge.formats.sqlite_file import SET_FACT, FileKind, SqliteFile
from adjudge.formats.text import clean
from adjudge.judges.pair import read_judged
from adjudge.models.replies.key import make_case_prefix
from adjudge.result import Outcome, Usage
from adjudge.runs.item import RunItem, encode_case, encode_result, erase_case, erase_result, find_erased, read_case
from adjudge.runs.writer import OnWritten, Rows, RunWriter, make_waiter

FILE = "results.sqlite"

SCHEMA = "adjudge/run-store/1"

BUSY_SECONDS = 30

LOG_BYTES = 4_000_000
"""Bytes, roughly, that the log may hold before it is brought over into the file."""

COMMIT_BYTES = 24_000
"""Bytes, roughly, that a commit adds to the log besides the bodies: the pages that lead to them."""


# Tables with row ids: without them SQLite would keep the large bodies in the pages that lead to the keys.
_TABLES = (
    """CREATE TABLE cases (
        place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, subject TEXT NOT NULL, body BLOB NOT NULL) STRICT""",
    """CREATE TABLE results (
        place INTEGER NOT NULL, sample INTEGER NOT NULL, outcome TEXT NOT NULL, because TEXT, decided_by TEXT NOT NULL,
        score REAL, duration_ms REAL NOT NULL, calls INTEGER, input_tokens INTEGER, output_tokens INTEGER,
        cost_usd REAL,
        body BLOB NOT NULL, UNIQUE (place, sample)) STRICT""",
    "CREATE TABLE replies (key TEXT NOT NULL UNIQUE, body BLOB NOT NULL) STRICT",
)

_INSERT_CASE = "INSERT INTO cases VALUES (?, ?, ?, ?) ON CONFLICT (place) DO NOTHING"

_REPLACE_RESULT = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_REPLACE_REPLY = "INSERT OR REPLACE INTO replies VALUES (?, ?)"


# A sum over no stated value is NULL and not 0, because the real value is not known.
_ITEM_TOTALS = """
    SELECT count(*) AS items, count(DISTINCT place) AS cases,
        coalesce(sum(outcome = 'passed'), 0) AS passed, coalesce(sum(outcome = 'failed'), 0) AS failed,
        coalesce(sum(outcome = 'undecided'), 0) AS undecided, avg(score) AS mean_score,
        sum(calls) AS calls, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cost_usd) AS known_cost_usd,
        coalesce(sum(cost_usd IS NULL AND (input_tokens IS NOT NULL
            OR (decided_by <> 'rule' AND because IS NOT 'budget' AND because IS NOT 'error'
                AND (:functions = '[]' OR CASE WHEN json_valid(CAST(body AS TEXT))
                    THEN json_extract(CAST(body AS TEXT), '$.judge') NOT IN (SELECT value FROM json_each(:functions))
                    ELSE 1 END)))), 0) AS unknown_costs
    FROM results"""

_REASON_COUNTS = "SELECT because, count(*) FROM results WHERE because IS NOT NULL GROUP BY because ORDER BY 2 DESC, 1"

# As text: SQLite would take a blob for its own binary form of JSON.
_AGREEMENT = """
    SELECT count(label) AS labelled, coalesce(sum(label = outcome), 0) AS agreed FROM (
        SELECT r.outcome AS outcome, CASE json_type(CAST(c.body AS TEXT), '$.label')
            WHEN 'true' THEN 'passed' WHEN 'false' THEN 'failed' END AS label
        FROM results r JOIN cases c USING (place))"""


_ROW_ERRORS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError, ValueError,
          TypeError, ArithmeticError)  # fmt: skip
"""The errors that are raised for one row that cannot be written, and not for the file."""

ERASED_CASES = "erased"
"""The name of the fact that has the number of cases that ``adjudge forget`` erased."""

MOST_TOKENS = 2**53
"""The largest number of tokens that is accepted: a thousand of them can still be added up."""


_REPLY_COSTS = """
    SELECT coalesce(sum(cost), 0.0), count(*) - count(cost) FROM (
        SELECT CASE WHEN json_valid(CAST(body AS TEXT))
            THEN json_extract(CAST(body AS TEXT), '$.reply.usage.cost_usd') END AS cost FROM replies
        WHERE NOT json_valid(CAST(body AS TEXT)) OR json_extract(CAST(body AS TEXT), '$.reply.source') IS NULL)"""
"""A judge in code has no price, so what one returned leaves nothing unknown."""


_KIND = FileKind(
    schema=SCHEMA,
    tables=_TABLES,
    unreadable="{path} cannot be read as a run: {why}; name a folder of `adjudge run`",
    unwritable="the run {folder} cannot be written: {why}",
    other_schema="{path} is no run of the schema {schema}; update adjudge, or name a folder of `adjudge run`",
    # The log is moved into the file by ``tidy``, in a thread. A commit that did it would block the event loop.
    options=("PRAGMA wal_autocheckpoint=0",),
)


class RunStore:
    """The file of a run. ``keep`` is for one event loop at a time; the rest may be called from any thread."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / FILE
        self._writer = SqliteFile(self.path, _KIND)
        # A second connection: a look-up on the event loop must not wait for a commit in a thread.
        self._reader = SqliteFile(self.path, _KIND)
        self._run_writer = RunWriter(self)
        self._logged_bytes = 0

    @property
    def reads_as(self) -> Literal["read", "look"]:
        """The mode for another connection to the file: ``read``, or ``look`` to create no files beside it."""
        return "look" if self._reader.mode == "look" else "read"

    def freeze(self) -> Self:
        """Only read until ``thaw``, and create no files in the folder. Call this while holding the run's lock."""
        self._reader.mode = self._writer.mode = "look"
        return self

    def thaw(self) -> None:
        """End ``freeze``: the file may be written again."""
        self.close()
        self._reader.mode = self._writer.mode = "write"

    def create(self) -> Self:
        """Create the file, readable by its owner only. Raises ``UsageError`` if the folder has a run already."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            create_private(self.path, new=True)
        except FileExistsError:
            if self.has_begun():  # otherwise a process was killed before it had put anything into the file
                raise UsageError(
                    f"{self.path.parent} holds a run already; resume it with ",
                    Argument("resume", "True"),
                    ", or name another",
                ) from None
        except OSError as error:
            raise UsageError(f"the run {self.path.parent} cannot be written: {error.strerror}; name another") from None
        self._writer.begin()
        return self

    def remove(self) -> None:
        """Close the file, and delete it with the files that SQLite keeps beside it."""
        self._reader.close()
        self._writer.remove()

    def has_begun(self) -> bool:
        """Return whether the file exists and has the tables of a run."""
        return self._reader.has_tables()

    def open(self) -> Self:
        """Open an existing file. Raises ``UsageError`` if there is none, or if it is not that of a run."""
        if not self.path.is_file():
            raise UsageError(
                f"{self.path.parent} holds no run: there is no {FILE} in it; name a folder of `adjudge run`"
            )
        self._reader.open()
        return self

    # ---------------------------------------------------------------- writing

    def hand_in(self, item: RunItem, on_written: OnWritten, *, body: bytes | None = None) -> None:
        """Have an item written with the next commit; ``on_written`` is called then, with the error if it cannot be.

        The error is a ``UsageError`` if another case of the run has the same id. ``body`` is the case as
        ``encode_case`` wrote it, if the caller has that.
        """
        rows = _make_rows(item, body or encode_case(item.case))
        self._logged_bytes += len(rows[_INSERT_CASE][-1]) + len(rows[_REPLACE_RESULT][-1])
        self._run_writer.hand_in(rows, on_written)

    async def keep(self, item: RunItem) -> None:
        """Hand in an item, and wait until it is in the file; raises the error if it cannot be written."""
        on_written, future = make_waiter()
        self.hand_in(item, on_written)
        await future

    def keep_reply(self, key: str, body: bytes) -> None:
        """Have a reply written under its key, at the latest with the next item."""
        self._logged_bytes += len(body)
        self._run_writer.hand_in({_REPLACE_REPLY: (key, body)}, None)

    def set_fact(self, name: str, value: str) -> None:
        """Have a named fact about the whole run written, at the latest with the next item."""
        self._run_writer.hand_in({SET_FACT: (name, value)}, None)

    async def keep_fact_now(self, name: str, value: str) -> None:
        """Write a named fact about the whole run, and wait until it is in the file. Raises an error if that fails."""
        on_written, future = make_waiter()
        self._run_writer.hand_in({SET_FACT: (name, value)}, on_written)
        await future

    async def flush(self) -> None:
        """Wait until everything handed in is in the file."""
        await self._run_writer.flush()

    def write(self, entries: Sequence[Rows], *, patient: bool) -> list[Exception | None] | None:
        """Write rows and return the error of each. If one cannot be written, the others are.

        Returns ``None`` if another process is writing to the file; with ``patient``, that is waited for.
        """
        try:
            with self._writer.using() as connection:
                connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000 if patient else 0}")
                try:
                    _write_all(connection, entries)
                    self._logged_bytes += COMMIT_BYTES
                    return [None] * len(entries)
                except _ROW_ERRORS:
                    connection.execute("ROLLBACK")
                    connection.execute("BEGIN IMMEDIATE")
                    errors = [_write_one(connection, rows) for rows in entries]
                    connection.execute("COMMIT")
                    return errors
                finally:
                    if connection.in_transaction:  # the disk is full, say: nothing of this may get into the next commit
                        connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            if not patient and error.sqlite_errorname.startswith("SQLITE_BUSY"):
                return None
            return [self._writer.explain_unwritable(error) for _ in entries]

    def is_long(self) -> bool:
        """Return whether the log of SQLite is so long that ``tidy`` is due."""
        return self._logged_bytes >= LOG_BYTES

    def tidy(self) -> None:
        """Move the log of SQLite into the file, so that it starts again from the beginning. Waits for the disk."""
        self._logged_bytes = 0
        # If that fails, the data stays in the log, and is moved another time.
        with suppress(sqlite3.Error), self._writer.using() as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # ---------------------------------------------------------------- erasing

    def erase_cases(self, places: Iterable[int], *, hide_group: Callable[[str], str | None]) -> int:
        """Erase the texts of cases and their results, and delete the replies about them. Return the number of cases.

        All are erased in one transaction. Ids, labels, outcomes, scores and costs stay, so that the figures of the run
        do not change.
        """
        count = 0
        with self._writer.change() as connection:
            connection.execute("PRAGMA secure_delete=ON")
            for place in places:
                name, body = connection.execute("SELECT id, body FROM cases WHERE place = ?", (place,)).fetchone()
                connection.execute(
                    "UPDATE cases SET body = ? WHERE place = ?", (erase_case(body, hide_group=hide_group), place)
                )
                results = connection.execute("SELECT sample, body FROM results WHERE place = ?", (place,)).fetchall()
                for sample, result in results:
                    row = (erase_result(result), place, sample)
                    connection.execute("UPDATE results SET body = ? WHERE place = ? AND sample = ?", row)
                prefix = make_case_prefix(name)
                connection.execute("DELETE FROM replies WHERE key >= ? AND key < ?", (prefix, _find_prefix_end(prefix)))
                count += 1
            earlier_row = connection.execute("SELECT said FROM about WHERE name = ?", (ERASED_CASES,)).fetchone()
            earlier_count = int(earlier_row[0] if earlier_row else 0)
            connection.execute(SET_FACT, (ERASED_CASES, str(count + earlier_count)))
        return count

    def count_erased(self) -> int:
        """Count the cases whose texts were erased."""
        return int(self._reader.find_fact(ERASED_CASES) or 0)

    def list_bodies(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield place, id and body of every case in the file, in the order of the data set."""
        return self._reader.stream("SELECT place, id, body FROM cases ORDER BY place")  # type: ignore[return-value] - the columns' types

    def list_texts(self) -> Iterator[tuple[str, bytes]]:
        """Yield the id of the case and the body, for every result in the file."""
        query = "SELECT c.id, r.body FROM results r JOIN cases c USING (place) ORDER BY r.place, r.sample"
        return self._reader.stream(query)  # type: ignore[return-value] - the columns' types

    def clear_space(self) -> bool:
        """Remove erased texts from the file and its log; return false if another process still reads it."""
        self._reader.close()
        return self._writer.clear_space()

    # ---------------------------------------------------------------- reading

    def find_fact(self, name: str) -> str | None:
        """Return the value of a named fact about the whole run; ``None`` if there is none."""
        return self._reader.find_fact(name)

    def find_reply(self, key: str) -> bytes | None:
        """Return the reply under a key; ``None`` if there is none."""
        rows = self._reader.ask("SELECT body FROM replies WHERE key = ?", key)
        return rows[0][0] if rows else None

    def list_replies(self, prefix: str) -> dict[str, bytes]:
        """Return the replies whose keys begin with a prefix, by their keys."""
        query = "SELECT key, body FROM replies WHERE key >= ?1 AND key < ?2"
        return dict(self._reader.ask(query, prefix, _find_prefix_end(prefix)))

    def find_case(self, place: int) -> tuple[str, str] | None:
        """Return id and subject of the case at a place; ``None`` if none of its items is in the file."""
        rows = self._reader.ask("SELECT id, subject FROM cases WHERE place = ?", place)
        return (rows[0][0], rows[0][1]) if rows else None

    def list_kept(self, place: int) -> Mapping[int, str | None]:
        """Return the samples of a case that are judged, each with the reason why it is undecided, or ``None``."""
        return dict(self._reader.ask("SELECT sample, because FROM results WHERE place = ?", place))

    def find_place(self, name: str) -> int | None:
        """Return the place of the case with this id; ``None`` if there is none."""
        rows = self._reader.ask("SELECT place FROM cases WHERE id = ?", name)
        return rows[0][0] if rows else None

    def list_ids(self, most: int, pattern: str = "*") -> list[str]:
        """List the ids that match a pattern of GLOB, of the first ``most`` such cases."""
        query = "SELECT id FROM cases WHERE id GLOB ? ORDER BY place LIMIT ?"
        return [row[0] for row in self._reader.ask(query, pattern, most)]

    def list_places(self, query: str, **values: object) -> list[int]:
        """List the places that a query over the tables of a run returns, in its order. The query must be a constant."""
        return [row[0] for row in self._reader.ask(query, **values)]

    def count_cases(self) -> int:
        """Count the cases in the file."""
        return self._reader.ask("SELECT count(*) FROM cases")[0][0]

    def find_outcome(self, name: str) -> str | None:
        """Return the outcome of the first judgement of the case with this id; ``None`` if there is none."""
        query = "SELECT r.outcome FROM results r JOIN cases c USING (place) WHERE c.id = ? ORDER BY r.sample LIMIT 1"
        rows = self._reader.ask(query, name)
        return rows[0][0] if rows else None

    def count_first(self) -> Mapping[str, int]:
        """Count the cases of each outcome, by their first judgement."""
        return dict(self._reader.ask("SELECT outcome, count(*) FROM results WHERE sample = 0 GROUP BY outcome"))

    def count_groups(self) -> int:
        """Count the groups that have several cases."""
        query = """SELECT count(*) FROM (
            SELECT CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.group') END AS name
            FROM cases WHERE name IS NOT NULL GROUP BY name HAVING count(*) > 1)"""
        return self._reader.ask(query)[0][0]

    def list_subjects(self) -> Iterator[tuple[Any, ...]]:
        """Yield id and subject of every case in the file, in the order of the data set."""
        return self._reader.stream("SELECT id, subject FROM cases ORDER BY place")

    def list_contents(self) -> Iterator[str]:
        """Yield the digest of the content of every case in the file, in the order of the data set."""
        for place, body in self._reader.stream("SELECT place, body FROM cases ORDER BY place"):
            yield _digest_content(place, body)

    def find_subject(self, name: str) -> str | None:
        """Return the digest of the content of the case with this id; ``None`` if there is none."""
        rows = self._reader.ask("SELECT place, body FROM cases WHERE id = ?", name)
        return _digest_content(*rows[0]) if rows else None

    def add_costs(self) -> tuple[float, int]:
        """Return the sum of the known costs of all kept replies, and the number of replies whose cost is unknown."""
        usd, unknown = self._reader.ask(_REPLY_COSTS)[0]
        return usd, unknown

    def find_last_place(self) -> int:
        """Return the last place of a case in the file; -1 if there is none."""
        place = self._reader.ask("SELECT max(place) FROM cases")[0][0]
        return -1 if place is None else place

    def sum_up(self, functions: Collection[str] = ()) -> dict[str, Any]:
        """Sum up all items: counts, the mean score, tokens, and the cost where it is known.

        The answers of judges in ``functions``, given by name, do not count as unknown costs, because they ask no model.
        """
        totals = self._reader.ask_one(_ITEM_TOTALS, functions=json.dumps(sorted(functions)))
        agreement = self._reader.ask_one(_AGREEMENT)
        counts = {name: totals.pop(name) for name in ("passed", "failed", "undecided")}
        reasons: dict[str, int] = dict(self._reader.ask(_REASON_COUNTS))
        return {"counts": counts, "undecided_because": reasons, **totals, **agreement}

    def count(self) -> Mapping[Outcome, int]:
        """Count the items of each outcome."""
        return dict(self._reader.ask("SELECT outcome, count(*) FROM results GROUP BY outcome"))

    def items(self, *, where: str = "1", order: str = "r.place, r.sample") -> Iterator[RunItem]:
        """Yield the items, a page at a time; ``where`` and ``order`` are SQL over ``results r``, never user data."""
        query = (
            "SELECT r.place, r.sample, c.subject, c.body, r.body FROM results r JOIN cases c USING (place) "  # noqa: S608
            f"WHERE {where} ORDER BY {order}"
        )
        return map(_read_item, self._reader.stream(query))

    def replies(self) -> Iterator[bytes]:
        """Yield the kept replies in the order of their keys, so that those to one case come together."""
        return (row[0] for row in self._reader.stream("SELECT body FROM replies ORDER BY key"))

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self._reader.close()
        self._writer.close()


def _find_prefix_end(prefix: str) -> str:
    """Return the first text after all those that begin with a prefix, for a range in a query."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _make_rows(item: RunItem, case_body: bytes) -> Rows:
    """Make the rows of an item: that of its case and that of its result, by the statements that write them."""
    result, case = item.result, item.case
    columns = (
        item.place,
        item.sample,
        result.outcome,
        result.undecided_because,
        result.decided_by,
        result.score,
        result.duration_ms,
        *_read_usage(result.usage),
        encode_result(result),
    )
    return {_INSERT_CASE: (item.place, case.id, item.subject, case_body), _REPLACE_RESULT: columns}


def _read_usage(usage: Usage | None) -> tuple[int | None, int | None, int | None, float | None]:
    """Return calls, input tokens, output tokens and cost as columns; ``None`` for a number that cannot be right."""
    if usage is None:
        return None, None, None, None
    calls, input_tokens, output_tokens = usage.calls, usage.input_tokens, usage.output_tokens
    cost = usage.cost_usd
    return (
        calls if 0 <= calls < MOST_TOKENS else None,
        input_tokens if 0 <= input_tokens < MOST_TOKENS else None,
        output_tokens if 0 <= output_tokens < MOST_TOKENS else None,
        cost if cost is not None and 0 <= cost < MOST_TOKENS else None,
    )


def _digest_content(place: int, body: bytes) -> str:
    """Return the digest of the content of a case in the file, also of an erased one."""
    try:
        members = json.loads(body)
        return find_erased(members) or digest_content(members["content"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _make_case_error(place, error) from None


def _make_case_error(place: int, error: Exception) -> UsageError:
    """Make the error for a case or result in the file that cannot be read."""
    reason = clean(str(error)[:200], keep_lines=False)
    return UsageError(f"what the run kept of case {place} cannot be read ({reason}); judge the case again")


def _read_item(row: tuple[Any, ...]) -> RunItem:
    """Make an item from a row of the query in ``items``."""
    place, sample, subject, body, result = row
    try:
        case, judged = read_case(body), read_judged(json.loads(result))
    except (AdjudgeError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise _make_case_error(place, error) from None
    return RunItem(place=place, sample=sample, subject=subject, case=case, result=judged)


def _write_all(connection: sqlite3.Connection, entries: Sequence[Rows]) -> None:
    """Write the rows of all entries in one transaction, statement by statement: cases before their results."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in (SET_FACT, _REPLACE_REPLY, _INSERT_CASE, _REPLACE_RESULT):
        values = [rows[statement] for rows in entries if statement in rows]
        if values:
            connection.executemany(statement, values)
    connection.execute("COMMIT")


def _write_one(connection: sqlite3.Connection, rows: Rows) -> Exception | None:
    """Write the rows of one item, and return the error if they cannot be written."""
    try:
        for statement, values in rows.items():
            connection.execute(statement, values)
    except sqlite3.IntegrityError:  # the case, which is written first, has the id of another one
        place, name = rows[_INSERT_CASE][:2]
        other = connection.execute("SELECT place FROM cases WHERE id = ?", (name,)).fetchone()
        return UsageError(
            f"the id {clean(str(name)[:80])!r} of case {place} is already used by case {other[0]}; "
            "give each case an id of its own"
        )
    except _ROW_ERRORS as error:
        problem = clean(f"{type(error).__name__}: {error}"[:200], keep_lines=False)
        return AdjudgeError(f"something of the run cannot be written ({problem}); the other cases are kept")
    return None
