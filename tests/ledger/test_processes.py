"""Several processes, and processes that are killed: what was promised is there, and the chain is whole."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adjudge import Ledger
from adjudge.ledger import LedgerError
from kit.ledgers import STORES, find, open_schema, open_store, record, run, start_appender, verify
from kit.patience import HANG
from kit.process import kill_and_read

pytestmark = pytest.mark.integration


@pytest.fixture(name="postgres")
def make_schema(require) -> Iterator[str]:
    """The address of a schema of its own, which is dropped afterwards."""
    with open_schema(require) as url:
        yield url


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


def read_lines(text: str) -> set[tuple[int, int, int]]:
    """What a process said it had appended: place, task and number; a line cut short was not said."""
    return {tuple(map(int, line.split())) for line in text.splitlines(keepends=True) if line.endswith("\n")}  # type: ignore[misc]


def stored(url: str, mark: str) -> set[tuple[int, int, int]]:
    """What the ledger holds of a process."""
    entries = [(entry.seq, entry.payload) for entry in find(url, kind="run")]
    return {(seq, data["task"], data["number"]) for seq, data in entries if data and data["mark"] == mark}


@pytest.mark.slow_table
def test_every_append_that_returned_survives_a_kill(url: str):
    """Killed with -9 during concurrent appends, five times: all that returned is there, the next goes on."""
    random = Random()
    for kill in range(5):
        process = start_appender(url, f"process {kill}")
        assert process.stdout is not None
        # Killed after a number of appends and not of seconds, so that there was something to lose.
        output = "".join(process.stdout.readline() for _ in range(random.randrange(1, 150)))
        output += kill_and_read(process)
        returned = read_lines(output)

        assert returned
        assert returned <= stored(url, f"process {kill}")
        assert verify(url)


def test_four_processes_write_one_chain(url: str):
    """Begun at once on a ledger that is not there yet: one genesis entry, no gaps, each append where it was said."""
    processes = {f"process {number}": start_appender(url, f"process {number}", count=25) for number in range(4)}
    lines_by_mark = {mark: read_lines(process.communicate(timeout=HANG)[0]) for mark, process in processes.items()}
    verification = verify(url)

    assert [process.returncode for process in processes.values()] == [0] * 4
    assert {mark: stored(url, mark) for mark in processes} == lines_by_mark
    assert verification
    assert verification.entries == 1 + 4 * 25 * 8


def test_both_stores_do_the_same(url: str):
    """Append, query, erase, head and export, and a chain that verifies."""
    record(url, {"n": 1}, {"n": 2, "text": "é\0"})

    assert run(url, lambda ledger: ledger.erase(2, "why", "me")) == 4
    assert [entry.kind for entry in find(url)] == ["genesis", "run", "run", "erasure"]
    assert [entry.seq for entry in find(url, since=find(url)[2].at)] == [3, 4]
    assert run(url, Ledger.head).seq == 4
    assert verify(url).erased == {2: 4}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM adjudge_ledger WHERE seq = 2",
        "TRUNCATE adjudge_ledger",
        "UPDATE adjudge_ledger SET payload = NULL WHERE seq = 2",
        "UPDATE adjudge_ledger SET signature = 'x' WHERE seq = 2",
        "INSERT INTO adjudge_ledger SELECT * FROM adjudge_ledger WHERE seq = 2 ON CONFLICT (seq) DO UPDATE SET at = ''",
    ],
    ids=range(5),
)
def test_postgres_refuses_changes(postgres: str, statement: str):
    """Updates, deletions and emptying are refused by the database itself."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError

    record(postgres, {"n": 1})
    engine = create_engine(postgres)
    with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()

    assert verify(postgres)


async def read_and_give_up(url: str) -> None:
    """Several reads of a new object at once, all cancelled under way, and closed while their threads still read."""
    ledger = Ledger(url)
    reads = [asyncio.create_task(ledger.verify()) for _ in range(4)]
    await asyncio.sleep(0.02)
    for read in reads:
        read.cancel()
    await asyncio.wait(reads)
    await ledger.aclose()


def test_reads_that_were_cancelled_leave_no_connection_open(postgres: str, monkeypatch: pytest.MonkeyPatch):
    """Each is closed when its thread is done, though the ledger was closed before."""
    record(postgres, *({"n": number} for number in range(50)))
    gc.collect()  # what earlier tests left open is not of these reads
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: left.append(str(unraisable.exc_value)))
    for _ in range(10):
        asyncio.run(read_and_give_up(postgres))  # which waits for its threads
        gc.collect()

    assert left == []
    assert verify(postgres)


def test_a_server_that_is_not_there_is_an_error(require):
    """Nothing was recorded, and that is said; the ledger can be used again."""
    require("psycopg", find_spec("psycopg"), "pip install 'adjudge[postgres]'")

    async def work() -> None:
        async with Ledger("postgresql://nobody@127.0.0.1:1/none") as ledger:
            for _ in range(2):
                with pytest.raises(LedgerError, match="cannot be written"):
                    await ledger.append({}, kind="run")

    asyncio.run(work())
