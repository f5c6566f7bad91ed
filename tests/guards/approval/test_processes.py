"""Approvals across processes: each request has one end, whoever races, and whoever is killed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, UsageError
from kit.approvals import WHO, count_kinds, make_result, start, use
from kit.ledgers import STORES, find, open_store, verify
from kit.patience import HANG
from kit.process import kill_and_read

pytestmark = pytest.mark.integration


PEOPLE = [f"person-{number}" for number in range(8)]
REQUESTS = 100 if os.environ.get("ADJUDGE_FULL") else 40


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


def read(text: str) -> list[dict[str, Any]]:
    """What a process said; a line cut short was not said."""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


async def ask_many(approvals: Approvals) -> list[str]:
    options: dict[str, Any] = {"approvers": PEOPLE}
    return [await approvals.request(make_result(), "Publish?", required=1 + n % 2, **options) for n in range(REQUESTS)]


async def get_all(approvals: Approvals) -> tuple[Any, ...]:
    return await approvals.list(status=None)


@pytest.mark.slow_table
def test_eight_processes_decide_many_requests(url: str):
    """All at once: one end each, as many counted votes as it took, every other decision refused, all on record."""
    every = use(url, ask_many)
    processes = {name: start("decide_all", url, name) for name in PEOPLE}
    for process in processes.values():
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"ready": REQUESTS}
    for process in processes.values():  # nobody begins before everybody is there
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    lines_by_name = {name: read(process.communicate(timeout=HANG)[0]) for name, process in processes.items()}
    entries = count_kinds(find(url))
    ended = {item.id: item for item in use(url, get_all)}

    assert [process.returncode for process in processes.values()] == [0] * len(PEOPLE)
    assert {name: len(lines) for name, lines in lines_by_name.items()} == dict.fromkeys(PEOPLE, REQUESTS)
    assert set(ended) == set(entries) == set(every)
    for ident, item in ended.items():
        answers = [
            line | {"by": name} for name, lines in lines_by_name.items() for line in lines if line["id"] == ident
        ]
        counted = {line["by"]: line["approved"] for line in answers if line["said"] != "closed"}
        assert counted == {vote.by: vote.approved for vote in item.votes}
        assert Counter(line["said"] in ("approved", "denied") for line in answers)[True] == 1
        assert item.status == ("denied" if False in counted.values() else "approved")
        assert len(counted) == item.required if item.status == "approved" else len(counted) <= item.required
        override = {"override": 1} if item.status == "approved" else {}
        kinds = {"approval.requested": 1, "approval.closed": 1, "approval.voted": len(counted)} | override
        assert entries[ident] == kinds | {"refused": len(PEOPLE) - len(counted)}
    assert verify(url)


@pytest.mark.parametrize(("word", "approved"), [("yes", True), ("no", False)])
@pytest.mark.slow_table
def test_one_process_waits_while_another_decides(url: str, word: str, approved: bool):
    """The answer crosses over, with the name and the reason."""

    async def ask(approvals: Approvals) -> str:
        return await approvals.request(make_result(), "Publish?", **WHO)

    ident = use(url, ask)
    waiting = start("wait_for", url, ident)
    assert waiting.stdout is not None
    assert json.loads(waiting.stdout.readline()) == {"ready": True}
    decided = start("decide_one", url, ident, "bob", word).communicate(timeout=HANG)[0]
    heard = waiting.communicate(timeout=HANG)[0]

    assert read(decided) == [{"said": "approved" if approved else "denied"}]
    assert read(heard) == [{"approved": approved, "by": "bob", "reason": "from over here"}]


@pytest.mark.slow_table
def test_a_kill_leaves_whole_steps(url: str):
    """Killed with -9 amid requests and decisions: all that returned is there, and tables and ledger agree."""
    for kill in range(3):
        process = start("ask_for_ever", url)
        assert process.stdout is not None
        output = "".join(process.stdout.readline() for _ in range(10 + 15 * kill))
        lines = read(output + kill_and_read(process))
        items = {item.id: item for item in use(url, get_all)}
        entries = count_kinds(find(url))

        assert set(items) == set(entries)
        for line in lines:
            votes = [vote.by for vote in items[line["id"]].votes]
            assert line["done"] == "request" or line["done"] in votes
        for ident, item in items.items():
            closed = {"approval.closed": 1, "override": 1} if len(item.votes) == 2 else {}
            voted = {"approval.voted": len(item.votes)} if item.votes else {}
            assert item.status == ("approved" if closed else "open")
            assert entries[ident] == {"approval.requested": 1} | voted | closed
        assert verify(url)


def test_an_id_is_found_by_a_part_of_it_in_every_store(url: str):
    """Whole, by its beginning or by its end; what a pattern would match is no part."""

    async def work(approvals: Approvals) -> None:
        ident = await approvals.request(make_result(), "Publish?", **WHO)
        for part in (ident, ident[:9], ident[-4:], ident[-9:].upper()):
            assert await approvals.find(part) == ident
        for part in ("____", "%%%%", ident[9:13] + "%"):
            with pytest.raises(UsageError, match="there is no approval"):
                await approvals.find(part)
        assert await approvals.is_open(ident)

    use(url, work)
