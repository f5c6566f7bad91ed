"""Comparisons of a data set's cases: their data, their recordings, and where they are kept."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from adjudge import Case, Judge, JudgeResult
from adjudge.judges.compare import compare_case
from adjudge.models import RecordingModel, ReplayModel
from adjudge.runs import RunItem
from adjudge.runs.store import RunStore
from adjudge.testing import ScriptedModel
from kit.judges import complaint
from kit.pairs import BAD, GOOD, make_pair, prefer_good

BETTER = "Answers the question."


def test_a_case_brings_its_own_task_and_id():
    """``compare_case`` takes contents, data and id from the case; the id cannot be named by its metadata."""
    model = ScriptedModel(prefer_good)
    case = Case(id="7", content={"a": GOOD, "b": BAD}, task="the task", label="first", metadata={"case": "8", "x": 1})
    pair = asyncio.run(compare_case(case, Judge(model), criteria=BETTER, sample=2, metadata={"y": 2}))

    assert pair.metadata == {"case": "7", "x": 1, "y": 2}
    assert {(request.case, request.sample) for request in model.requests} == {("7", 2)}
    assert all("the task" in request.user for request in model.requests)


@pytest.mark.parametrize("content", ["text", {"a": 1}, {"a": 1, "b": 2, "c": 3}, [1, 2]])
def test_a_case_that_is_no_pair_is_refused(content: Any):
    """The error names the case and the form a pair has."""
    case = Case(id="odd", content=content)
    assert "'odd' is not a pair" in complaint(compare_case, case, Judge(ScriptedModel("x")), criteria=BETTER)


def test_a_comparison_takes_criteria_of_a_case_and_nothing_that_is_for_one_content():
    """Its words say what better means; rules and a threshold judge one content by itself and are refused."""
    model, pair = ScriptedModel(prefer_good), {"a": GOOD, "b": BAD}
    case = Case(id="7", content=pair, criteria="Is shorter.")
    done = asyncio.run(compare_case(case, Judge(model), criteria="Is longer."))

    assert done.preferred == "first"
    assert all("Is shorter." in request.system and "longer" not in request.system for request in model.requests)
    for odd in ({"threshold": 0.0}, {"rules": ["secrets"]}):
        message = complaint(compare_case, Case(id="7", content=pair, **odd), Judge(model), criteria="Is longer.")
        assert "'7'" in message
        assert next(iter(odd)) in message


def test_a_recorded_comparison_replays_order_by_order(tmp_path: Any):
    """Recordings tell the orders apart, and a replay asks nobody and says the same."""
    path, model = tmp_path / "pairs.jsonl", ScriptedModel(prefer_good)
    case = Case(id="7", content={"a": GOOD, "b": BAD})
    first = asyncio.run(compare_case(case, Judge(RecordingModel(model, path)), criteria=BETTER))
    again = asyncio.run(compare_case(case, Judge(ReplayModel(path), reask=0), criteria=BETTER))

    assert {json.loads(line)["order"] for line in path.read_text().splitlines()} == {"ab", "ba"}
    assert (again.preferred, again.flipped) == (first.preferred, first.flipped) == ("first", False)
    assert len(model.requests) == 2


def test_a_pair_is_kept_in_a_run_beside_results(tmp_path: Any):
    """A run's file keeps pairs and results alike, and gives back what was kept; a pair's score is 1, 0.5 or 0."""
    case = Case(id="0", content={"a": GOOD, "b": BAD})
    items = [
        RunItem(case=case, place=0, result=make_pair("first", "second")),
        RunItem(case=case, place=0, sample=1, result=make_pair("first", "first")),
        RunItem(case=case, place=0, sample=2, result=make_pair("first", "timeout")),
        RunItem(case=Case(id="1", content="x"), place=1, result=JudgeResult(outcome="passed", judge="j", score=0.9)),
    ]

    async def go() -> RunStore:
        store = RunStore(tmp_path / "run").create()
        for item in items:
            await store.keep(item)
        return store

    store = asyncio.run(go())
    assert list(store.items()) == items
    assert store.count() == {"passed": 2, "failed": 1, "undecided": 1}
    with closing(sqlite3.connect(store.path)) as connection:
        scores = connection.execute("SELECT score FROM results ORDER BY place, sample").fetchall()
    assert scores == [(1.0,), (0.5,), (None,), (0.9,)]
    store.close()
