"""Stored replies stay what they are: files written earlier still answer, and the same bytes are written today.

``kit/stored_replies.py`` wrote the files in ``tests/data/stored``.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, ReplyCache, open_run, run
from adjudge.judges import with_layers
from adjudge.models import ReplayModel
from adjudge.runs import redecide
from kit import stored_replies
from kit.house import TESTS
from kit.stored_replies import CASES, CRITERIA, Told

STORED = TESTS / "data" / "stored"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, since a file that is opened may be written to."""
    return Path(shutil.copytree(STORED, tmp_path / "stored"))


def read_tables(path: Path) -> dict[str, Any]:
    """The statements that made a file, its schema and its replies, without the digest of a function's code."""
    with closing(sqlite3.connect(path)) as connection:
        tables = sorted(row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
        about = connection.execute("SELECT said FROM about WHERE name = 'schema'").fetchall()
        replies = [hide_code(row) for row in connection.execute("SELECT key, body FROM replies ORDER BY key")]
    return {"tables": tables, "schema": about, "replies": replies}


def hide_code(value: Any) -> Any:
    """Without the digest of a function's code, which is another one for every version of Python."""
    return re.sub(r'"code":"[0-9a-f]{64}"', '"code":"..."', repr(value))


def hide_subject(text: str) -> str:
    """Some rows without the digest of their content, which those that are stored here do not have yet."""
    return re.sub(r'"subject":"[0-9a-f]{64}",', "", text)


def test_a_recording_is_written_as_it_was(tmp_path: Path):
    """Row by row: keys, masked tokens, escaped braces, log-probabilities, attempts and the mark of a function."""
    asyncio.run(stored_replies.record(tmp_path / "recording.jsonl"))

    written, stored = [(place / "recording.jsonl").read_bytes() for place in (tmp_path, STORED)]
    assert hide_subject(hide_code(written)) == hide_code(stored)


def test_a_recording_still_answers():
    """Equal rows are used up in order, and a question asked once more than it was recorded has no answer."""
    judge = Judge(ReplayModel(STORED / "recording.jsonl", model="provider:it"))

    async def ask() -> list[Any]:
        return [await judge.evaluate("It left {{token}}.", criteria=CRITERIA, task="When?") for _ in range(3)]

    first, second, third = asyncio.run(ask())
    assert (first.outcome, second.outcome, third.undecided_because) == ("passed", "passed", "error")
    assert first.usage is not None
    assert (first.usage.cost_usd, first.model, first.request_id) == (0.0125, "it-2026-11-01", "req-1")
    assert "the same request was recorded 2 times, and asked once more than that" in third.detail


def test_a_cache_is_written_as_it_was(tmp_path: Path):
    """Tables, keys and rows are the same."""
    asyncio.run(stored_replies.keep(tmp_path / "cache.sqlite"))

    written = read_tables(tmp_path / "cache.sqlite")
    written["replies"] = [hide_subject(row) for row in written["replies"]]
    assert written == read_tables(STORED / "cache.sqlite")


def test_a_cache_still_answers(folder: Path):
    """No seat asks its model for what was cached."""
    seats = [Told(), Told()]
    chain = JudgeChain([Judge(seats[0], name="a"), Judge(seats[1], name="b")], strategy="consensus")
    with ReplyCache(folder / "cache.sqlite") as cache:
        result = asyncio.run(with_layers(chain, cache=cache).evaluate("It left.", criteria=CRITERIA))

    assert result.passed
    assert [seat.requests for seat in seats] == [[], []]


def test_the_replies_of_a_run_are_written_as_they_were(tmp_path: Path):
    """Places, keys and rows are the same, of models and of a judge in code."""
    asyncio.run(stored_replies.make_runs(tmp_path))

    for name in ("finished", "left", "code"):
        written, stored = [read_tables(place / name / "results.sqlite") for place in (tmp_path, STORED)]
        assert written == stored


def test_a_run_resumes_from_its_replies(folder: Path):
    """The replies that were kept are not asked for again, even where the results are lost."""
    with closing(sqlite3.connect(folder / "left" / "results.sqlite")) as connection, connection:
        connection.execute("DELETE FROM results")
    seats = [Told(), Told()]
    chain = JudgeChain([Judge(seats[0], name="a"), Judge(seats[1], name="b")], strategy="consensus")

    resumed = run(CASES, chain, criteria=CRITERIA, out=folder / "left", resume=True).finish_sync()

    assert resumed.counts == {"passed": 4, "failed": 2, "undecided": 0}
    assert [len(seat.requests) for seat in seats] == [2, 2]


def test_a_run_is_redecided_from_its_replies(folder: Path):
    """Kept replies are read under another rubric, and nobody is asked."""
    rubric = {"name": "one", "criteria": [{"name": "correct", "description": CRITERIA["correct"]}]}

    narrowed = redecide(open_run(folder / "finished"), rubric=rubric)

    assert (narrowed.after, narrowed.unknown) == ({"passed": 8, "failed": 4, "undecided": 0}, 0)
