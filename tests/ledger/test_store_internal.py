"""The store behind a ledger, and its writer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from adjudge import Ledger
from adjudge.ledger.database import Database
from adjudge.ledger.store import Store
from adjudge.ledger.writer import LedgerWriter
from kit.ledgers import run
from kit.patience import HANG


def test_many_callers_share_commits(url: str, monkeypatch: pytest.MonkeyPatch):
    """Appends that wait for one commit are written together by the next."""
    sizes: list[int] = []
    append = Store.append
    monkeypatch.setattr(Store, "append", lambda self, drafts: sizes.append(len(drafts)) or append(self, drafts))

    async def work(ledger: Ledger) -> set[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ledger.append({"n": number}, kind="run")) for number in range(500)]
        return {task.result() for task in tasks}

    assert run(url, work) == set(range(2, 502))
    assert sum(sizes) == 500
    assert len(sizes) < 100


def test_no_connection_is_made_before_it_is_known_how(url: str, monkeypatch: pytest.MonkeyPatch):
    """A reader's thread may come while the writer's opens the file: it must not connect without the pragmas."""
    from sqlalchemy import event

    store = Store(url, signer=None, about={})
    listen = event.listen
    seen: list[Any] = []

    def look(target: Any, name: str, function: Any, **how: Any) -> None:
        if function.__module__ == Database.__module__:
            seen.append(store._database._engine)
        listen(target, name, function, **how)

    monkeypatch.setattr(event, "listen", look)
    store.prepare()
    store.close()

    assert seen == [None]


def test_a_reader_that_comes_after_the_end_leaves_no_connection_open(url: str):
    """The thread of a read that was cancelled may begin, or go on, when the ledger is closed already."""
    store = Store(url, signer=None, about={})
    store.prepare()
    store.close()

    store.prepare()

    files = store._database._files
    assert (store._database._engine, store._database._users) == (None, {})
    assert files is None or files._idle == []


def test_an_append_is_not_lost_behind_the_end_of_a_ledger(url: str, monkeypatch: pytest.MonkeyPatch):
    """Another thread may close the ledger at the worst moment: what is handed in is written, and nobody waits on."""
    submit = LedgerWriter.submit

    def close_first(writer: LedgerWriter, work: Any) -> Any:
        other = Thread(target=asyncio.run, args=(ledger.aclose(),))
        other.start()
        other.join(0.3)  # ended by then, unless it rightly waits for this append
        threads.append(other)
        return submit(writer, work)

    async def go() -> int:
        async with asyncio.timeout(HANG):
            await ledger.append({"n": 1}, kind="run")
            monkeypatch.setattr(LedgerWriter, "submit", close_first)
            return await ledger.append({"n": 2}, kind="run")

    ledger, threads = Ledger(url), list[Thread]()

    assert asyncio.run(go()) == 3
    for other in threads:
        other.join()


def test_a_relative_address_stays_the_file_that_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A connection that is made after the program has gone to another folder is one to the same ledger."""
    monkeypatch.chdir(tmp_path)
    store = Store("sqlite:///a.db", signer=None, about={})
    store.prepare()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with store._database.read() as one, store._database.read() as other:
        counts = [part.fetch("SELECT count(*) FROM adjudge_ledger") for part in (one, other)]
    with store._database.connect() as connection:
        counts.append([tuple(row) for row in connection.exec_driver_sql("SELECT count(*) FROM adjudge_ledger")])
    store.close()

    assert counts == [[(1,)]] * 3
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_thread_closes_a_connection_that_another_one_uses(url: str):
    """A toolkit that takes the file for one in memory closes those of other threads: the process crashes then."""
    store, barrier = Store(url, signer=None, about={}), Barrier(12)
    store.prepare()
    counts: list[list[Any]] = []

    def look() -> None:
        with store._database.connect() as connection:
            barrier.wait(HANG)  # all are in use at once
            counts.append([tuple(row) for row in connection.exec_driver_sql("SELECT count(*) FROM adjudge_ledger")])

    threads = [Thread(target=look) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()

    assert counts == [[(1,)]] * 12
