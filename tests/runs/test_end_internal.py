"""The lock of a run whose disk is full."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adjudge import AdjudgeError, Case, Judge, open_run, run
from adjudge.runs import Progress
from adjudge.runs.folder import LOCK_FILE, RunLock, is_locked
from kit.cli import serve
from kit.runs import CRITERIA, Words, do

pytestmark = pytest.mark.timed


def test_a_run_whose_disk_is_full_is_not_being_written(tmp_path: Path):
    """Looking whether somebody holds the lock needs room too; without it a run would be under way for ever."""
    resource = pytest.importorskip("resource")
    (tmp_path / LOCK_FILE).touch()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        free = not is_locked(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert free
    lock = RunLock(tmp_path)
    lock.acquire()
    assert is_locked(tmp_path)
    lock.release()


def test_a_disk_that_is_full_ends_the_run(tmp_path: Path):
    """Nothing is judged that could not be kept; what was kept stays, and with room again the run goes on."""
    out, cases = tmp_path / "run", [Case(id=str(n), content="good " * 1000) for n in range(200)]

    def fill(_: Progress) -> None:
        assert running._engine is not None
        assert running._engine.run is not None
        with running._engine.run.store._writer.using() as connection:
            connection.execute("PRAGMA max_page_count = 1")  # as many as there are

    running = run(cases, Judge(Words()), criteria=CRITERIA, out=out, concurrency=4, on_progress=fill)
    with pytest.raises(AdjudgeError, match="cannot be written: database or disk is full"):
        running.finish_sync()
    left = open_run(out)
    assert left.status == "interrupted"
    assert 0 < left.counts["passed"] < 20

    assert do(cases, out=out, resume=True).counts["passed"] == 200


def test_a_judge_that_the_run_made_is_closed_with_it():
    """A name is opened and closed by the run; a judge that was handed in stays its owner's."""
    with serve() as provider:

        async def go() -> None:
            done = await run(["good"], provider.spec, criteria=CRITERIA)
            assert done.counts["passed"] == 1
            async with Judge(provider.spec) as judge:
                await run(["good"], judge, criteria=CRITERIA)
                assert judge.model.transport._states.get().session is not None

        asyncio.run(go())
