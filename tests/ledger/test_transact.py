"""Tables beside a ledger: changed together with the entries that tell of it, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, func, select

from adjudge import Ledger, UsageError
from adjudge.ledger import LedgerError, Transaction
from kit.ledgers import find
from kit.patience import HANG

TABLES = MetaData()
NOTES = Table("adjudge_test_notes", TABLES, Column("id", Integer, primary_key=True), Column("said", Text))


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def write(ledger: Ledger, note: str, *, fails: bool = False) -> Any:
    def work(transaction: Transaction) -> str:
        transaction.connection.execute(NOTES.insert().values(said=note))
        seq = transaction.append(ledger.make_entry({"said": note}, kind="run", subject="notes"))
        if fails:
            raise UsageError("changed its mind")
        return f"{note} at {seq}"

    return ledger.transact(work, tables=TABLES)


def count(connection: Any) -> int:
    return connection.execute(select(func.count()).select_from(NOTES)).scalar_one()


def test_a_table_and_its_entries_are_written_together(url: str):
    """What the work returned comes back, and both are there."""

    async def go() -> Any:
        async with Ledger(url) as ledger:
            assert await write(ledger, "first") == "first at 2"
            assert await write(ledger, "second") == "second at 3"
            return await ledger.look(count, tables=TABLES), (await ledger.verify()).valid

    assert asyncio.run(go()) == (2, True)
    assert [entry.payload for entry in find(url, kind="run")] == [{"said": "first"}, {"said": "second"}]


def test_work_that_fails_leaves_neither(url: str):
    """An exception of the work is the caller's, and takes the table's row and the entry back."""

    async def go() -> Any:
        async with Ledger(url) as ledger:
            await write(ledger, "kept")
            with pytest.raises(UsageError, match="changed its mind"):
                await write(ledger, "lost", fails=True)
            return await ledger.look(count, tables=TABLES)

    assert asyncio.run(go()) == 1
    assert [entry.payload for entry in find(url, kind="run")] == [{"said": "kept"}]


def test_reading_makes_no_tables(url: str):
    """A ledger that never had such tables has nothing to show, and still has none afterwards."""

    async def go() -> Any:
        async with Ledger(url) as ledger:
            await ledger.append({"said": "alone"}, kind="run")
            return [await ledger.look(count, tables=TABLES) for _ in range(2)]

    assert asyncio.run(go()) == [None, None]


@pytest.mark.parametrize("raised", [SystemExit(3), StopIteration(), GeneratorExit(), asyncio.CancelledError()])
def test_work_that_ends_its_program_ends_no_ledger(url: str, raised: BaseException):
    """A redaction that exits is a failure to record: whoever waits hears of it, and the next append works."""

    def work(transaction: Transaction) -> None:
        transaction.connection.execute(NOTES.insert().values(said="lost"))
        raise raised

    async def go() -> Any:
        async with Ledger(url) as ledger, asyncio.timeout(HANG):
            with pytest.raises(LedgerError, match=f"nothing was recorded: {type(raised).__name__} was raised"):
                await ledger.transact(work, tables=TABLES)
            return await write(ledger, "kept"), await ledger.look(count, tables=TABLES)

    assert asyncio.run(go()) == ("kept at 2", 1)
