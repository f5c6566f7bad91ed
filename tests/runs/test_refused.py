"""A refused ``resume`` writes nothing: the folder of the run is as it was, byte by byte."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import AdjudgeError, Case, Judge, JudgeChain, UsageError, open_run, run
from adjudge.runs import BatchOptions
from kit import cli
from kit.batch import go, options, serve
from kit.cli import WORDS, Line
from kit.judges import names
from kit.runs import CRITERIA, STORE, Words, cut_off, do, make_cases

pytestmark = pytest.mark.timed


PRICES = {"words": {"input": 1.0, "output": 1.0}}


def read_folder(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes. SQLite's index of a log is a cache, which every reader writes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def change(cases: list[Case], place: int, **changes: Any) -> list[Case]:
    return [replace(case, **changes) if number == place else case for number, case in enumerate(cases)]


def write_rows(path: Path, cases: list[Case], *more: str) -> Path:
    rows = [json.dumps({"id": case.id, "content": case.content, "label": case.label}) for case in cases]
    path.write_text("".join(f"{row}\n" for row in (*rows, *more)), encoding="utf-8")
    return path


def iterate(cases: list[Case]) -> AsyncIterator[Case]:
    async def go_through() -> AsyncIterator[Case]:
        for case in cases:
            yield case

    return go_through()


DATA: dict[str, Callable[[list[Case]], list[Case]]] = {
    "another content first": lambda cases: change(cases, 0, content="another"),
    "another content last": lambda cases: change(cases, len(cases) - 1, content="another"),
    "another label": lambda cases: change(cases, 2, label=None),
    "another id": lambda cases: change(cases, 2, id="new"),
    "another order": lambda cases: cases[::-1],
    "one case less": lambda cases: cases[1:],
    "cut short": lambda cases: cases[:-1],
    "no case": lambda _: [],
    "other data": lambda _: make_cases(9, start=100),
    "an id twice": lambda cases: [*cases, cases[0]],
}

SOURCES: dict[str, Callable[[list[Case]], Any]] = {
    "a list": lambda cases: cases,
    "a generator": iter,
    "an asynchronous generator": iterate,
}


def list_kept(folder: Path) -> list[Case]:
    """The cases that a run has kept, as the data set has them."""
    with open_run(folder) as kept:
        return make_cases(kept.store.count_cases())


def refuse(folder: Path, *arguments: Any, error: type[AdjudgeError] = UsageError, **options: Any) -> AdjudgeError:
    """The error of a run that is refused, which has written nothing and asked nobody."""
    before = read_folder(folder)
    with pytest.raises(error) as caught:
        run(
            *arguments, out=folder, **({"criteria": CRITERIA, "resume": True, "prices": PRICES} | options)
        ).finish_sync()
    assert read_folder(folder) == before
    return caught.value


@pytest.fixture(params=["finished", "interrupted", "undecided"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run of nine cases: complete; left after a few; complete, with cases that are to be judged again."""
    out = tmp_path / "run"
    if request.param == "interrupted":
        cut_off(make_cases(9), Judge(Words()), out, 4, concurrency=1).close()
        gc.collect()  # whoever shows the run in between opens it once more
    else:
        do(make_cases(9), out=out, **({"budget": 0.0, "prices": PRICES}
                                      if request.param == "undecided" else {}))  # fmt: skip
    return out


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("data", DATA)
def test_other_data_change_nothing(folder: Path, data: str, source: str):
    """However the data differ and however they are read, nothing is asked and nothing is written."""
    model = Words()
    refuse(folder, SOURCES[source](DATA[data](list_kept(folder))), Judge(model))
    assert model.requests == []


REFUSALS: dict[str, dict[str, Any]] = {
    "another judge": {"judge": Judge(Words("other"))},
    "another parameter": {"judge": Judge(Words(), temperature=1.0)},
    "a chain": {"judge": JudgeChain([Words()], name="words")},
    "another rubric": {"criteria": "Is bad."},
    "another threshold": {"threshold": 0.9},
    "instructions": {"instructions": "Be strict."},
    "rules": {"rules": [{"regex": "x"}]},
    "a sample": {"sample": 3},
    "a sample that cannot be drawn": {"sample": 0},
    "no criteria": {"criteria": None},
    "an unknown retry": {"retry": ["nothing"]},
    "an unknown engine": {"engine": "dask"},
    "batches of a judge without": {"batch": True},
    "Ray with a cache": {"engine": "ray", "cache": "replies.cache"},
    "Ray with a concurrency of one's own": {"engine": "ray", "concurrency": type("Two", (), {"current": 2})()},
    "no resume": {"resume": False},
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_another_question_changes_nothing(folder: Path, refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A judge, rubric, option or executor that does not fit is refused before anything is written."""
    monkeypatch.chdir(tmp_path)
    options = dict(REFUSALS[refusal])
    refuse(folder, make_cases(9), options.pop("judge", None) or Judge(Words()), **options)


def test_fewer_repetitions_change_nothing(tmp_path: Path):
    """A run of two judgements a case is no run of one."""
    do(make_cases(3), out=tmp_path / "run", repeat=2)
    refuse(tmp_path / "run", make_cases(3), Judge(Words()))


def test_a_budget_without_known_costs_changes_nothing(tmp_path: Path):
    """Nobody knows what is left of the budget; that is found before the run is touched."""
    do(make_cases(3), out=tmp_path / "run")
    error = refuse(tmp_path / "run", make_cases(3), Judge(Words()), budget=1.0)
    assert names(error, "3 replies of unknown cost")


@pytest.mark.parametrize("row", ["nonsense", '{"id": "case-0", "content": "again"}', '{"id": "new"}'])
def test_a_row_that_cannot_be_read_changes_nothing(folder: Path, row: str, tmp_path: Path):
    """The next row is no case: nothing new was judged, so the run is as it was."""
    refuse(folder, write_rows(tmp_path / "data.jsonl", list_kept(folder), row), Judge(Words()))


def test_a_missing_data_set_changes_nothing(folder: Path, tmp_path: Path):
    """A mistyped path leaves no trace in the run."""
    refuse(folder, tmp_path / "gone.jsonl", Judge(Words()))


def test_a_locked_run_changes_nothing(folder: Path):
    """Somebody else writes to it: that run goes on undisturbed, and is the one that writes."""
    with closing(sqlite3.connect(folder / "run.lock", isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        error = refuse(folder, make_cases(9), Judge(Words()))
    assert names(error, "is being written by another process")


@pytest.mark.parametrize("data", ["other data", "no case"])
def test_a_copy_without_its_lock_stays_without(folder: Path, data: str):
    """The lock's file is not copied along with a run by everybody; a refusal does not leave one."""
    (folder / "run.lock").unlink()
    refuse(folder, DATA[data](make_cases(9)), Judge(Words()))
    assert not (folder / "run.lock").exists()


def write_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda folder: (folder / "run.json").write_text("{"),
    "no manifest of a run": lambda folder: (folder / "run.json").write_text("[]"),
    "another schema": lambda folder: write_manifest(folder, schema="adjudge/run/2"),
    "no digests": lambda folder: write_manifest(folder, digests=None),
    "no options": lambda folder: write_manifest(folder, options=[]),
    "an unknown option of batches": lambda folder: write_manifest(folder, options={"batch": {"speed": 1}}),
    "no results": lambda folder: (folder / STORE).write_bytes(b"nothing that SQLite reads"),
    "no lock": lambda folder: (folder / "run.lock").write_bytes(b"no lock of a run, and no database either" * 20),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_left_as_it_is(folder: Path, damage: str):
    """What is left of it may still be put right by hand."""
    DAMAGE[damage](folder)
    refuse(folder, make_cases(9), Judge(Words()))


def test_a_killed_run_keeps_its_log(tmp_path: Path):
    """What a killed process had committed is in SQLite's log, which is not brought over into the file either."""
    live = do(make_cases(9), out=tmp_path / "run")
    with closing(sqlite3.connect(live.folder / STORE, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("UPDATE results SET score = 1.0")
        shutil.copytree(live.folder, tmp_path / "killed")
    assert (tmp_path / "killed" / f"{STORE}-wal").stat().st_size
    refuse(tmp_path / "killed", make_cases(9, start=50), Judge(Words()))
    assert open_run(tmp_path / "killed").store.sum_up()["mean_score"] == 1.0


@pytest.fixture
def batched(tmp_path: Path) -> Iterator[tuple[Any, Path]]:
    """A finished run by batches, and its provider."""
    with serve() as server:
        go(server, make_cases(4), tmp_path / "run")
        yield server, tmp_path / "run"


@pytest.mark.parametrize("damage", ["other data", "no secret", "a damaged secret"])
def test_a_run_by_batches_is_left_as_it_is(batched: tuple[Any, Path], damage: str):
    """Neither its batches nor its secret change, and the provider hears nothing."""
    server, folder = batched
    cases = make_cases(4, start=8 if damage == "other data" else 0)
    if damage == "no secret":
        (folder / "batch.secret").unlink()
    elif damage == "a damaged secret":
        (folder / "batch.secret").write_text("secret")
    jobs = len(server.jobs)
    refuse(folder, cases, Judge(server.open()), criteria="Is good.", batch=options())
    assert len(server.jobs) == jobs


def test_a_live_run_is_not_made_one_by_batches_by_a_refusal(tmp_path: Path):
    """What was made for the batches of a run that is refused is taken away again."""
    with serve() as server:
        run(make_cases(3), Judge(server.open()), criteria="Is good.", out=tmp_path / "run").finish_sync()
        (tmp_path / "run" / "batch.secret").write_text("secret")
        refuse(tmp_path / "run", make_cases(3), Judge(server.open()), criteria="Is good.", batch=BatchOptions())
    assert not (tmp_path / "run" / "batches.sqlite").exists()


def test_an_interruption_before_the_first_new_case_changes_nothing(tmp_path: Path):
    """Ctrl-C while the kept cases are compared: the finished run is still finished."""
    folder = tmp_path / "run"
    do(make_cases(9), out=folder)
    before = read_folder(folder)

    async def leave() -> None:
        running = run(make_cases(12), Judge(Words()), criteria=CRITERIA, out=folder, resume=True)
        begun = asyncio.ensure_future(anext(aiter(running)))
        await asyncio.sleep(0)
        running.wind_down()
        with pytest.raises(StopAsyncIteration):
            await begun
        assert (await running).status == "finished"

    asyncio.run(leave())
    assert read_folder(folder) == before


def test_what_was_refused_can_be_resumed(folder: Path):
    """With the right data the same run goes on as if nobody had tried."""
    refuse(folder, make_cases(9, start=3), Judge(Words()))
    done = do(make_cases(12), out=folder, resume=True, prices=PRICES)
    assert (done.status, done.manifest["dataset"]["cases"]) == ("finished", 12)


def test_kept_cases_of_a_generator_are_judged_again_once_all_are_compared(tmp_path: Path):
    """A generator cannot be read twice; what is due waits until the last kept case was the same."""

    def is_short(content: str) -> bool:
        return len(content) < 100

    cases = [*make_cases(3), Case(id="odd", content="raise"), *make_cases(2, start=4)]
    run(cases, Judge(Words()), criteria=CRITERIA, rules=[is_short], out=tmp_path / "run").finish_sync()
    model = Words()
    options: dict[str, Any] = {"criteria": CRITERIA, "rules": [is_short], "out": tmp_path / "run", "resume": True}
    done = run(iter(cases), Judge(model), retry=["error"], **options).finish_sync()

    assert (done.status, [request.case for request in model.requests]) == ("finished", ["odd"])


@pytest.mark.parametrize("data", ["other.jsonl", "gone.jsonl", "short.jsonl"])
def test_the_command_leaves_the_run_as_it_was(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: str
):
    """Exit status 2, one sentence, and the report shows the same run as before."""
    cli.isolate(monkeypatch, tmp_path)
    line = Line(capsys)
    write_rows(Path("data.jsonl"), make_cases(5))
    write_rows(Path("other.jsonl"), make_cases(5, start=9))
    write_rows(Path("short.jsonl"), make_cases(2))
    arguments = ("--criteria", "Is good.", "--judge", WORDS, "--out", "R")
    line("run", "data.jsonl", *arguments)
    before, shown = read_folder(Path("R")), line("report", "R", "--json").document

    refused = line("run", data, *arguments, "--resume")
    assert refused.status == 2
    assert refused.sentence
    assert read_folder(Path("R")) == before
    after = line("report", "R", "--json").document
    assert after == shown
