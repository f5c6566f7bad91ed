"""Commits of a run: what is handed in together is written together, and the event loop waits for nobody."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from adjudge import AdjudgeError, Usage
from adjudge.runs import store as _store
from adjudge.runs.store import RunStore
from adjudge.runs.writer import Rows, RunWriter
from kit.loops import in_loop
from kit.patience import HANG
from kit.reports import make_item

pytestmark = pytest.mark.timed


class Book:
    """A writer that writes down who wrote what, in which thread, and can be held by somebody else."""

    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.threads: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self.due = False
        self.tidied = 0

    def write(self, together: Sequence[Rows], *, patient: bool) -> list[Exception | None] | None:
        if not self.free.is_set():
            if not patient:
                return None
            self.free.wait(HANG)
        self.threads.append("loop" if threading.current_thread() is threading.main_thread() else "other")
        self.written.append([name for rows in together for name in rows])
        return [ValueError(name) if name == "bad" else None for rows in together for name in rows]

    def is_long(self) -> bool:
        return self.due

    def tidy(self) -> None:
        self.due = False
        self.free.wait(HANG)
        self.tidied += 1


def hand_in(commits: RunWriter, *names: str) -> list[tuple[str, Exception | None]]:
    answers: list[tuple[str, Exception | None]] = []
    for name in names:
        commits.hand_in({name: ()}, lambda error, name=name: answers.append((name, error)))
    return answers


async def turn(number: int = 3) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@in_loop
async def test_what_is_handed_in_together_is_written_together():
    """One commit for a turn of the loop, in its thread; each is told of its own error."""
    book = Book()
    commits = RunWriter(book)
    answers = hand_in(commits, "a", "bad", "c")
    assert (answers, book.written) == ([], [])
    await turn()
    assert book.written == [["a", "bad", "c"]]
    assert [(name, str(error)) for name, error in answers] == [("a", "None"), ("bad", "bad"), ("c", "None")]
    hand_in(commits, "d")
    await turn()
    assert (book.written[1:], book.threads) == ([["d"]], ["loop", "loop"])


@in_loop
async def test_a_file_that_others_hold_keeps_the_loop_free():
    """A thread waits for them; what comes meanwhile is written after it, in its order."""
    book = Book()
    commits = RunWriter(book)
    book.free.clear()
    answers = hand_in(commits, "a")
    await turn()
    later = hand_in(commits, "b")
    await turn(20)  # the loop turns, and nothing is written
    assert (answers, later, book.written) == ([], [], [])
    book.free.set()
    await commits.flush()
    assert (answers, later) == ([("a", None)], [("b", None)])
    assert (book.written, book.threads) == ([["a"], ["b"]], ["other", "loop"])


@in_loop
async def test_what_waits_for_the_disk_is_done_in_a_thread_and_commits_wait():
    """Nothing is written while the file is tidied, and everything afterwards."""
    book = Book()
    commits = RunWriter(book)
    book.due = True
    hand_in(commits, "a")
    book.free.set()
    await turn(1)
    book.free.clear()
    later = hand_in(commits, "b", "c")
    await turn(20)
    assert later == []
    book.free.set()
    await commits.flush()
    assert ([name for name, _ in later], book.tidied) == (["b", "c"], 1)
    assert book.written[-1][-1] == "c"


@pytest.mark.parametrize("held", [False, True])
@in_loop
async def test_a_writer_that_breaks_leaves_nobody_waiting(held: bool):
    """Whatever it raises, on the loop or in a thread, everybody is told."""

    class Broken(Book):
        def write(self, together: Sequence[Rows], *, patient: bool) -> list[Exception | None] | None:
            if held and not patient:
                return None
            raise MemoryError("none left")

    commits = RunWriter(Broken())
    answers = hand_in(commits, "a", "b")
    async with asyncio.timeout(HANG):
        await commits.flush()
    assert [(name, str(error)) for name, error in answers] == [("a", "none left"), ("b", "none left")]


@in_loop
async def test_one_who_breaks_on_being_told_keeps_nobody_else_from_the_file():
    """What is handed in afterwards is written, without anybody flushing."""
    book = Book()
    commits = RunWriter(book)
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def break_down(_: object) -> None:
        raise RuntimeError("told too much")

    commits.hand_in({"a": ()}, break_down)
    await turn()
    answers = hand_in(commits, "b")
    await turn()
    assert (answers, book.written) == ([("b", None)], [["a"], ["b"]])
    assert [str(error) for error in reported] == ["told too much"]


@in_loop
async def test_flushing_writes_at_once():
    """Nothing is left for a later turn; flushing nothing is nothing."""
    book = Book()
    commits = RunWriter(book)
    await commits.flush()
    answers = hand_in(commits, "a")
    await commits.flush()
    await turn()
    assert (answers, book.written) == ([("a", None)], [["a"]])


@in_loop
async def test_another_process_in_the_file_is_waited_for(tmp_path: Path):
    """The event loop turns while somebody else writes into a run's file, and the item is kept afterwards."""
    store = RunStore(tmp_path / "run").create()
    await store.keep(make_item(0))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kept = asyncio.ensure_future(store.keep(make_item(1)))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not kept.done()
        other.execute("COMMIT")
        await asyncio.wait_for(kept, HANG)
    assert [item.place for item in store.items()] == [0, 1]
    store.close()


@in_loop
async def test_a_file_that_others_do_not_let_go_of_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """After its time, an item that cannot be kept says so instead of waiting for ever."""
    monkeypatch.setattr(_store, "BUSY_SECONDS", 0)
    store = RunStore(tmp_path / "run").create()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(AdjudgeError, match=r"run cannot be written: database is locked"):
            await store.keep(make_item(0))
        with pytest.raises(AdjudgeError, match="database is locked"):
            await store.keep_fact_now("a", "b")
    await store.keep(make_item(0))
    store.close()


@in_loop
async def test_the_log_is_brought_over_before_it_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """After many commits the log is about as long as one stretch of it, not as everything written."""
    monkeypatch.setattr(_store, "LOG_BYTES", 200_000)
    store = RunStore(tmp_path / "run").create()
    for place in range(600):
        await store.keep(make_item(place, content="x" * 3_000))
    log = store.path.with_name(store.path.name + "-wal")
    assert log.stat().st_size < 1_000_000 < store.path.stat().st_size
    await store.flush()
    store.close()


@pytest.mark.parametrize("number", [2**63, 10**30, -1])
@in_loop
async def test_what_cannot_have_been_used_is_unknown(tmp_path: Path, number: int):
    """A provider that reports absurd counts costs its own case nothing, and no other; sums leave it out."""
    store = RunStore(tmp_path / "run").create()
    odd = Usage(input_tokens=number, output_tokens=3, cost_usd=float(number))
    items = [make_item(place) for place in range(3)]
    result = items[1].result
    items[1] = make_item(1, result=type(result)(**{**_members(result), "usage": odd}))
    items[2] = make_item(2, result=type(result)(**{**_members(result), "usage": Usage(input_tokens=5)}))
    async with asyncio.timeout(HANG):
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(store.keep(item))
    assert [item.result.usage for item in store.items()] == [None, odd, Usage(input_tokens=5)]
    assert (store.sum_up()["input_tokens"], store.sum_up()["known_cost_usd"]) == (5, None)
    store.close()


@in_loop
async def test_a_row_that_cannot_be_written_takes_no_other_with_it(tmp_path: Path):
    """A key that has no UTF-8 is an error of its own, and what shared its commit is kept."""
    store = RunStore(tmp_path / "run").create()
    store.keep_reply("\ud800", b"reply")
    store.keep_reply("k", b"reply")
    kept = asyncio.ensure_future(store.keep(make_item(0)))
    with pytest.raises(AdjudgeError, match="cannot be written"):
        await store.keep_fact_now("\ud800", "x")
    await kept
    assert ([item.place for item in store.items()], store.find_reply("k")) == ([0], b"reply")
    store.close()


def _members(result: object) -> dict[str, object]:
    return {name: getattr(result, name) for name in ("outcome", "judge", "score")}
