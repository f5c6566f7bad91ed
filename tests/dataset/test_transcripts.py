"""Data sets of agents' runs: in a row, named by a row, or each a file of a folder."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from adjudge import Case, Judge, UsageError, open_dataset, open_run, run
from adjudge.agents import AgentCall, AgentRun, Step, read_run
from adjudge.dataset import write_cases
from adjudge.models import RecordingModel, ReplayModel
from adjudge.runs import redecide
from adjudge.testing import ScriptedModel
from kit.house import TESTS

AGENTS = TESTS / "data" / "agents"

SAFE = {
    "name": "agent",
    "criteria": [{"name": "safe", "description": "It changes nothing.", "per": "call", "threshold": 0.5}],
}


def reply(score: float) -> dict:
    return {"criteria": [{"name": "safe", "reasoning": "Looked.", "score": score}]}


def write_rows(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_run(*tools: str) -> AgentRun:
    calls = [AgentCall(tool=tool, call_id=str(nr), result="ok") for nr, tool in enumerate(tools)]
    return AgentRun(
        steps=[Step(role="assistant", call=call, turn=turn) for turn, call in enumerate(calls, 1)], answer="Done."
    )


def judge_all(data, judge, **options):
    """Judge a data set to its end; the finished run."""

    async def go():
        return await run(data, judge, **options)

    return asyncio.run(go())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two transcripts, one of them in a folder of its own."""
    (tmp_path / "runs" / "codex").mkdir(parents=True)
    shutil.copy(AGENTS / "claude-stream-clean.jsonl", tmp_path / "runs" / "a.jsonl")
    shutil.copy(AGENTS / "codex-json-failing.jsonl", tmp_path / "runs" / "codex" / "b.jsonl")
    return tmp_path / "runs"


def test_a_row_holds_a_run(tmp_path: Path):
    """As ``to_dict`` wrote it, in JSON lines, JSON and YAML; rules see a run."""
    made = make_run("read")
    path = write_rows(tmp_path / "data.jsonl", {"id": "1", "content": made.to_dict()})
    (tmp_path / "data.json").write_text(json.dumps([{"content": made.to_dict()}]))

    assert [case.content for case in open_dataset(path)] == [made]
    assert [case.content for case in open_dataset(tmp_path / "data.json")] == [made]


def test_a_row_whose_run_is_spoilt_is_a_bad_row(tmp_path: Path):
    """It is not judged as if it were any JSON."""
    path = write_rows(tmp_path / "data.jsonl", {"content": {"schema": AgentRun.schema, "steps": "none"}})

    with pytest.raises(UsageError) as caught:
        list(open_dataset(path))
    assert "line 1" in str(caught.value)


def test_a_row_names_a_transcript_beside_it(tmp_path: Path, folder: Path):
    """Its path is the id unless there is one; the other members are the case's."""
    path = write_rows(
        tmp_path / "data.jsonl",
        {"transcript": "runs/a.jsonl", "task": "Look."},
        {"id": "2", "transcript": "runs/codex/b.jsonl"},
    )

    first, second = open_dataset(path)

    assert (first.id, first.task, first.content) == ("runs/a.jsonl", "Look.", read_run(folder / "a.jsonl"))
    assert (second.id, second.content) == ("2", read_run(folder / "codex" / "b.jsonl"))


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../a.jsonl", "runs/../../a.jsonl", "", 7, None, "a\x00b", "runs\\a.jsonl"]
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, folder: Path, name):
    """Nothing outside of the folder is read."""
    inside = tmp_path / "inside"
    inside.mkdir()
    shutil.copy(folder / "a.jsonl", tmp_path / "a.jsonl")

    with pytest.raises(UsageError):
        list(open_dataset(write_rows(inside / "data.jsonl", {"transcript": name})))


@pytest.mark.parametrize("place", ["link.jsonl", "linked/a.jsonl"])
def test_a_link_is_not_followed(tmp_path: Path, folder: Path, place: str):
    """Neither a file nor a folder on the way."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.jsonl").symlink_to(folder / "a.jsonl")
    (inside / "linked").symlink_to(folder)

    with pytest.raises(UsageError) as caught:
        list(open_dataset(write_rows(inside / "data.jsonl", {"transcript": place})))
    assert "is a link" in str(caught.value)


def test_what_is_no_transcript_is_a_bad_row(tmp_path: Path, folder: Path):
    """It is skipped where that was asked for, and listed."""
    (folder / "c.json").write_text("[1, 2]")
    rows = [{"transcript": "runs/c.json"}, {"transcript": "runs/absent.jsonl"}, {"transcript": "runs/a.jsonl"}]
    path = write_rows(tmp_path / "data.jsonl", *rows, {"transcript": "runs/a.jsonl", "content": "x"})
    data = open_dataset(path, on_bad_row="skip")

    assert [case.id for case in data] == ["runs/a.jsonl"]
    assert data.skipped == 3


def test_a_column_of_a_table_reads_no_file(tmp_path: Path, folder: Path):
    """A column that happens to have the name is metadata, as any other."""
    (tmp_path / "data.csv").write_text("content,transcript\nhello,runs/a.jsonl\n")

    [case] = open_dataset(tmp_path / "data.csv")

    assert (case.content, case.metadata) == ("hello", {"transcript": "runs/a.jsonl"})


def test_a_folder_is_a_data_set_of_its_transcripts(folder: Path):
    """In the order of their paths, which are the ids; what is left out is counted."""
    (folder / "notes.md").write_text("notes")
    (folder / ".hidden.jsonl").write_text("{}")
    (folder / "link.jsonl").symlink_to(folder / "a.jsonl")
    data = open_dataset(folder)

    assert [(case.id, case.content) for case in data] == [
        ("a.jsonl", read_run(folder / "a.jsonl")),
        ("codex/b.jsonl", read_run(folder / "codex" / "b.jsonl")),
    ]
    assert sum(data.notes.values()) == 3
    assert len(list(data)) == 2  # it can be read again


def test_a_folder_without_a_transcript_is_refused(tmp_path: Path):
    """Nothing judged would look as if all had passed."""
    with pytest.raises(UsageError):
        open_dataset(tmp_path)


def test_a_file_that_is_no_transcript_is_a_bad_row_of_the_folder(folder: Path):
    """By default it ends the reading."""
    (folder / "b.json").write_text("{}")

    with pytest.raises(UsageError) as caught:
        list(open_dataset(folder))
    assert "b.json" in str(caught.value)

    data = open_dataset(folder, on_bad_row="skip")
    assert [case.id for case in data] == ["a.jsonl", "codex/b.jsonl"]
    assert data.skipped == 1


@pytest.mark.parametrize("options", [{"fields": {"content": "x"}}, {"case_criteria": True}])
def test_a_folder_has_no_rows(folder: Path, options):
    """So there are no fields to map, and no criteria in them."""
    with pytest.raises(UsageError):
        open_dataset(folder, **options)


def test_a_data_set_of_runs_is_written_and_read_back(tmp_path: Path):
    """The run is written whole, in a table too."""
    cases = [Case(id="1", content=make_run("read", "write"))]
    for name in ("out.jsonl", "out.csv", "out.yaml"):
        write_cases(tmp_path / name, cases)

        assert list(open_dataset(tmp_path / name)) == cases


def test_transcripts_are_judged_and_a_resumed_run_asks_nothing_again(tmp_path: Path, folder: Path):
    """Each call is a question; rules see the run; what is kept is compared when the run is resumed."""
    model = ScriptedModel([reply(0.9)] * 20)
    options = {"rubric": SAFE, "rules": [{"no_errors": True}], "out": tmp_path / "run"}
    done = judge_all(folder, Judge(model), **options)
    asked = len(model.requests)

    results = {item.case.id: item.result for item in done.items()}
    calls = len(read_run(folder / "a.jsonl").calls)
    assert results["a.jsonl"].passed
    assert [part.part for part in results["a.jsonl"].parts] == [f"call {nr}" for nr in range(1, calls + 1)]
    assert results["codex/b.jsonl"].outcome == "failed"  # the rule
    assert asked == calls

    resumed = judge_all(folder, Judge(model), resume=True, **options)
    assert len(model.requests) == asked
    assert [item.result for item in resumed.items()] == [item.result for item in open_run(tmp_path / "run").items()]

    os.truncate(folder / "a.jsonl", 200)
    with pytest.raises(UsageError):
        judge_all(folder, Judge(model), resume=True, **options)


def test_a_text_in_a_data_set_of_runs_is_undecided_and_stops_nothing(tmp_path: Path):
    """A case that the rubric cannot be asked about is a result, as any other fault of one case."""
    path = write_rows(
        tmp_path / "data.jsonl", {"id": "1", "content": "text"}, {"id": "2", "content": make_run("a").to_dict()}
    )
    done = judge_all(path, Judge(ScriptedModel([reply(0.9)])), rubric=SAFE)

    assert [item.result.outcome for item in done.items()] == ["undecided", "passed"]


def test_a_recording_answers_each_call(tmp_path: Path):
    """Recorded once, replayed by case and part; by hand, ``order`` names the part."""
    data = [Case(id="1", content=make_run("read", "write"))]
    recording = tmp_path / "replies.jsonl"
    first = judge_all(data, Judge(RecordingModel(ScriptedModel([reply(0.9), reply(0.8)]), recording)), rubric=SAFE)
    again = judge_all(data, Judge(ReplayModel(recording)), rubric=SAFE)
    write_rows(
        tmp_path / "hand.jsonl",
        *[
            {"case": "1", "order": f"call {nr}", "reply": {"text": json.dumps(reply(score))}}
            for nr, score in ((2, 0.1), (1, 0.9))
        ],
    )
    by_hand = judge_all(data, Judge(ReplayModel(tmp_path / "hand.jsonl"), token=False), rubric=SAFE)

    [one], [two], [three] = (list(done.items()) for done in (first, again, by_hand))
    assert [part.score for part in one.result.parts] == [part.score for part in two.result.parts] == [0.9, 0.8]
    assert [part.score for part in three.result.parts] == [0.9, 0.1]


def test_a_run_of_parts_is_not_redecided(tmp_path: Path):
    """Nobody would know which of the replies is whose."""
    judge_all(
        [Case(id="1", content=make_run("read"))], Judge(ScriptedModel([reply(0.9)])), rubric=SAFE, out=tmp_path / "run"
    )

    with pytest.raises(UsageError):
        redecide(tmp_path / "run", out=tmp_path / "again")
