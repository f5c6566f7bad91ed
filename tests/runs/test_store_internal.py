"""The file of a run: what was kept is there, whatever happens to the process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Case, CriterionResult, JudgeResult, RuleResult, Usage, UsageError
from adjudge.formats.plain_data import encode, to_plain
from adjudge.judges import read_result
from adjudge.runs import RunItem
from adjudge.runs.item import encode_case, encode_result
from adjudge.runs.store import RunStore
from kit.judges import names


def make_item(place: int, **changes: Any) -> RunItem:
    result = JudgeResult(outcome="passed", judge="careful", score=0.9)
    case = Case(id=f"case-{place}", content=f"content {place}", label=True)
    return RunItem(**({"case": case, "place": place, "result": result, "subject": f"{place:064x}"} | changes))


def keep(folder: Path, *items: RunItem) -> None:
    async def go() -> None:
        store = RunStore(folder).create()
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(store.keep(item))
        await store.flush()
        store.close()

    asyncio.run(go())


def test_what_is_kept_comes_back(tmp_path: Path):
    """Cases, results and samples come back in the order of the data set, equal to what was handed in."""
    items = [make_item(2), make_item(0, sample=1), make_item(0), make_item(1)]
    keep(tmp_path / "run", *items)

    store = RunStore(tmp_path / "run").open()
    assert list(store.items()) == sorted(items, key=lambda item: (item.place, item.sample))
    assert store.count() == {"passed": 4}
    assert (store.list_kept(0), store.list_kept(7)) == ({0: None, 1: None}, {})
    assert store.find_case(2) == ("case-2", f"{2:064x}")
    store.close()


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"metadata": {"case": "a", "odd": float("nan")}},
        {"metadata": {"case": "a\ud800"}},
        {"metadata": {"case": "a", "large": 10**30}},
        {"metadata": {"deep": {"a": [1, None]}}},
        {"value": {"a": (1, 2)}},
        {"rule_results": (RuleResult(name="r", passed=False, metadata={"at": 3}),)},
        {"criteria": (CriterionResult(name="c", score=0.5, passed=False, evidence=("e",)),), "detail": "\udfff"},
        {"usage": Usage(input_tokens=3, cost_usd=0.25), "reasoning": "\u2028 \x00 é"},
    ],
)
def test_a_result_is_written_as_it_says_itself(more: dict[str, Any]):
    """The fast way of writing a result gives what ``to_dict`` says; only the time is spelled with a Z."""
    result = JudgeResult(**({"outcome": "passed", "judge": "careful", "score": 0.9, "metadata": {"case": "a"}} | more))
    document = json.loads(encode_result(result))

    expected = json.loads(json.dumps(result.to_dict()))
    times = [datetime.fromisoformat(members.pop("created_at")) for members in (document, expected)]
    assert times[0] == times[1]
    assert document == expected
    assert read_result(json.loads(encode_result(result))).to_dict() == result.to_dict()


def test_the_file_is_its_owners_alone(tmp_path: Path):
    """Data sets and replies are often confidential, so nobody else may read them."""
    keep(tmp_path / "run", make_item(0))

    for file in (tmp_path / "run").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_id_that_two_cases_share_is_refused_and_the_others_are_kept(tmp_path: Path):
    """The error names the id and both places, and what shared the commit is not lost."""

    async def go() -> list[Any]:
        store = RunStore(tmp_path / "run").create()
        again = make_item(5, case=Case(id="case-0", content="another"))
        tasks = [asyncio.ensure_future(store.keep(item)) for item in (make_item(0), again, make_item(1))]
        await asyncio.wait(tasks)
        store.close()
        return [task.exception() for task in tasks]

    first, second, third = asyncio.run(go())
    assert (first, third) == (None, None)
    assert isinstance(second, UsageError)
    assert names(second, "'case-0'", "case 5", "case 0", "an id of its own")
    assert [item.place for item in RunStore(tmp_path / "run").open().items()] == [0, 1]


def test_replies_are_found_by_their_key(tmp_path: Path):
    """A reply that was handed in is there once the next item is kept, and the last of one key counts."""

    async def go() -> None:
        store = RunStore(tmp_path / "run").create()
        store.keep_reply("k", b"first")
        store.keep_reply("k", b"second")
        await store.keep(make_item(0))
        store.close()

    asyncio.run(go())
    store = RunStore(tmp_path / "run").open()
    assert (store.find_reply("k"), store.find_reply("other")) == (b"second", None)
    store.close()


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())


@given(
    st.builds(
        Case,
        id=st.text(),
        content=PLAIN | st.dictionaries(st.text(), PLAIN),
        reference=PLAIN,
        task=PLAIN,
        label=st.none() | st.booleans() | st.floats() | st.text(),
        labels=st.dictionaries(st.text(), st.none() | st.booleans() | st.text()),
        metadata=st.dictionaries(st.text() | st.integers(), PLAIN | st.lists(PLAIN)),
    )
)
def test_a_case_is_written_the_same_way_whatever_it_holds(case: Case):
    """The way that is quick for plain cases writes what the general way does: a subject must not depend on it."""
    members = ("content", "id", "reference", "task", "context", "label", "labels", "group", "metadata")
    document = {"schema": "adjudge/case/1"} | {name: to_plain(getattr(case, name)) for name in members}
    assert encode_case(case) == encode(document)
    assert json.loads(encode_case(case))["id"] == case.id


def test_odd_content_is_kept(tmp_path: Path):
    """Half surrogate pairs, NUL characters and nested values come back as they were."""
    contents = ["\ud800", "\0", {"a": [1, None, {"b": "\udfff"}]}]
    items = [make_item(place, case=Case(id=str(place), content=content)) for place, content in enumerate(contents)]
    keep(tmp_path / "run", *items)

    assert [item.case.content for item in RunStore(tmp_path / "run").open().items()] == contents


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: RunStore(folder).open(), "holds no run: there is no results.sqlite in it"),
        (lambda folder: (folder / "results.sqlite").write_bytes(b"no database") and RunStore(folder).open(), "run"),
        (lambda folder: RunStore(folder).create() and RunStore(folder).create(), "holds a run already"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path: Path, make: Any, message: str):
    """A folder without a run, a file that is none, and a second run in one folder are errors that say so."""
    with pytest.raises(UsageError, match=message):
        make(tmp_path)
    assert not (tmp_path / "results.sqlite-wal").exists() or (tmp_path / "results.sqlite").exists()


WRITER = """
import asyncio, sys
sys.path[:0] = sys.argv[2:]
from test_store_internal import make_item
from adjudge.runs.store import RunStore

async def go():
    store = RunStore(sys.argv[1]).create()
    async def keep(place):
        await store.keep(make_item(place))
        print(place, flush=True)
    async with asyncio.TaskGroup() as group:
        for place in range(100_000):
            group.create_task(keep(place))
            if place % 50 == 49:
                await asyncio.sleep(0)

asyncio.run(go())
"""


@pytest.mark.integration
def test_a_killed_process_loses_nothing_that_was_kept(tmp_path: Path):
    """Every item whose ``keep`` returned before ``kill -9`` is in the file, and the file opens again."""
    folder = tmp_path / "run"
    command = [sys.executable, "-c", WRITER, str(folder), str(Path(__file__).parent), *filter(None, sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        returned = {int(process.stdout.readline()) for _ in range(200)}
        os.kill(process.pid, signal.SIGKILL)
        returned |= {int(line) for line in process.stdout.read().split("\n")[:-1] if line}

    kept = {item.place for item in RunStore(folder).open().items()}
    assert len(returned) >= 200
    assert returned <= kept
