"""How a run ends: finished, left early, cancelled, or by what is wrong with the data or the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adjudge import AdjudgeError, Case, Judge, UsageError, open_dataset, open_run, run
from kit.runs import CRITERIA, Words, do, make_cases, take


def test_bad_data_end_the_run_and_what_was_judged_stays(tmp_path: Path):
    """A row that cannot be read is an error that names it, and the cases before it are kept."""
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a", "content": "good"}\n{"id": "b", "content": "bad"}\nnonsense\n')

    with pytest.raises(UsageError, match="line 3"):
        do(path, out=tmp_path / "run")
    left = open_run(tmp_path / "run")
    assert (left.status, left.counts) == ("interrupted", {"passed": 1, "failed": 1, "undecided": 0})


def test_a_run_that_never_came_to_a_case_leaves_nothing_in_the_way(tmp_path: Path):
    """The column has another name: the same command, put right, begins, and is not told to go on with anything."""
    path, out = tmp_path / "cases.csv", tmp_path / "run"
    path.write_text("text\ngood\n")

    running = run(path, Judge(Words()), criteria="Is kind.", out=out)
    with pytest.raises(UsageError, match="no column is the content"):
        running.finish_sync()
    assert not out.exists()

    assert do(open_dataset(path, fields={"content": "text"}), out=out).counts["passed"] == 1


def test_a_folder_that_was_there_stays(tmp_path: Path):
    """A run that came to nothing takes away what it has put there, and no more."""
    path, out = tmp_path / "cases.csv", tmp_path / "run"
    path.write_text("text\ngood\n")
    out.mkdir()

    with pytest.raises(UsageError, match="no column is the content"):
        do(path, out=out)
    assert list(out.iterdir()) == []


def test_a_run_that_goes_on_is_never_taken_away(tmp_path: Path):
    """What was judged before stays, even where the data cannot be read at all now."""
    path, out = tmp_path / "cases.csv", tmp_path / "run"
    path.write_text("content\ngood\n")
    do(path, out=out)
    path.write_text("text\ngood\n")

    with pytest.raises(UsageError, match="no column is the content"):
        do(path, out=out, resume=True)
    assert open_run(out).counts["passed"] == 1


def test_a_run_says_that_it_has_not_begun(tmp_path: Path):
    """A notebook shows it where an ``await`` was forgotten."""
    running = run(make_cases(1), Judge(Words()), criteria=CRITERIA, out=tmp_path / "run")

    assert "not begun: await it" in repr(running)
    running.finish_sync()
    assert repr(running) == f"<Running {str(tmp_path / 'run')!r} ended>"


def test_a_run_that_was_wound_down_before_it_began_judges_nothing(tmp_path: Path):
    """Whoever stops a program does not wait until a run has opened its folder; resumed, it goes on."""
    out = tmp_path / "run"
    running = run(make_cases(3), Judge(Words()), criteria=CRITERIA, out=out)
    running.wind_down()

    ended = running.finish_sync()
    assert (ended.status, sum(ended.counts.values())) == ("interrupted", 0)
    assert sum(do(make_cases(3), out=out, resume=True).counts.values()) == 3


def test_an_id_that_two_cases_share_ends_the_run(tmp_path: Path):
    """It would make results of two cases into one; the error names both."""
    with pytest.raises(UsageError, match=r"row 2: the id 'a' .* case 0"):
        do([Case(id="a", content="good"), Case(id="a", content="bad")], out=tmp_path / "run", concurrency=1)
    assert open_run(tmp_path / "run").counts["passed"] == 1


@pytest.mark.parametrize("room", [0, 20_000])
def test_a_disk_that_is_full_from_the_beginning_is_said(tmp_path: Path, room: int):
    """It is the disk's trouble and no crash, and nobody is told that another process has the run."""
    resource = pytest.importorskip("resource")
    out, model, message = tmp_path / "run", Words(), ""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))  # what a full disk does, for one process
    try:
        do(make_cases(3), Judge(model), out=out)
    except AdjudgeError as error:
        message = str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert message.startswith(f"the run {out} cannot be written: disk I/O error")
    assert model.requests == []
    assert do(make_cases(3), out=out, resume=True).status == "finished"


def test_leaving_early_cancels_what_is_under_way(tmp_path: Path):
    """Whoever leaves the loop leaves no request behind, and what was finished is kept."""
    model = Words(turns=3)

    async def go() -> None:
        running = run(make_cases(500), Judge(model), criteria=CRITERIA, out=tmp_path / "run", concurrency=8)
        taken = await take(running, 20)
        done = await running
        assert (done.status, model.now) == ("interrupted", 0)
        assert {item.place for item in taken} <= {item.place for item in done.items()}
        assert len(model.requests) < 200
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(go())


def test_a_block_ends_with_everything_ended(tmp_path: Path):
    """``async with`` waits until nothing runs any more, even where the loop was left and its items are still held."""

    async def go() -> None:
        model = Words()
        async with run(make_cases(500), Judge(model), criteria=CRITERIA, out=tmp_path / "run") as running:
            items = aiter(running)
            await anext(items)
        assert model.now == 0
        assert open_run(tmp_path / "run").manifest["status"] == "interrupted"
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(go())


def test_a_cancellation_ends_the_run_in_order(tmp_path: Path):
    """Cancelled, a run lets go of its folder and says that it was interrupted; the cancellation goes on."""
    model = Words()

    async def go() -> None:
        kept = asyncio.Event()
        dataset = ["good", "wait"]
        running = run(dataset, Judge(model), criteria=CRITERIA, out=tmp_path / "run", on_progress=lambda _: kept.set())
        waiting = asyncio.ensure_future(running)
        await kept.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert model.now == 0

    asyncio.run(go())
    left = open_run(tmp_path / "run")
    assert (left.status, left.counts["passed"]) == ("interrupted", 1)
    assert do(["good", "bad"], out=tmp_path / "other").status == "finished"


def test_winding_down_finishes_what_is_under_way(tmp_path: Path):
    """No further case is begun, and those that were are kept, not cancelled."""
    model = Words(turns=20)

    async def go() -> None:
        running = run(make_cases(300), Judge(model), criteria=CRITERIA, out=tmp_path / "run", concurrency=10)
        async for _ in running:
            running.wind_down()
        done = await running
        assert (done.status, sum(done.counts.values())) == ("interrupted", len(model.requests))

    asyncio.run(go())


def test_a_run_begins_once():
    """A second loop over the same run would be half of it; the error says what to do."""

    async def go() -> None:
        running = run(["good"], Judge(Words()), criteria=CRITERIA)
        async for _ in running:
            pass
        with pytest.raises(UsageError, match="has begun already"):
            aiter(running)

    asyncio.run(go())
