"""One tool, many tasks and processes, and processes that are killed: one panel, and no tier without a verdict."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adjudge import EmergentJudge, ToolRegistry
from adjudge.models import Request
from adjudge.testing import ScriptedModel
from adjudge.tools import ToolRecord
from kit.clock import Clock
from kit.ledgers import STORES, find, open_store, verify
from kit.patience import HANG
from kit.process import kill_and_read
from kit.registries import HERE, add, make_judge, run, start, wear
from kit.tools import review

pytestmark = pytest.mark.integration


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store that several processes can use."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


async def make_worn(registry: ToolRegistry) -> str:
    """A tool that may be promoted."""
    ident = await add(registry)
    await wear(registry, ident)
    return ident


def promoted(url: str, ident: str) -> list[Any]:
    """What the ledger says of a tool's promotions."""
    payloads = [entry.payload or {} for entry in find(url, kind="tool.promoted")]
    return [payload for payload in payloads if payload["tool"] == ident]


# ---------------------------------------------------------------- one panel


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_two_hundred_tasks_ask_the_panel_once(store: str, tmp_path: Path):
    """One of them promotes, and the others are told at once that somebody does."""
    requests: list[Request] = []
    judge = EmergentJudge(ScriptedModel(review()), ScriptedModel(review(), requests=requests, delay=0.2))

    async def go(registry: ToolRegistry) -> Counter[str | None]:
        ident = await make_worn(registry)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(registry.promote(ident, judge)) for _ in range(200)]
        assert (await registry.get(ident)).tier == "agent"
        return Counter(task.result().because for task in asked)

    reasons = run(go, None if store == "memory" else f"sqlite:///{tmp_path / 'adjudge.db'}")

    assert len(requests) == 2  # the safety auditor and the correctness reviewer, once each
    assert reasons.pop(None) == 1
    assert set(reasons) <= {"busy", "already"}
    assert reasons.total() == 199


@pytest.mark.full
def test_two_hundred_promotions_from_four_processes_ask_the_panel_once(url: str, tmp_path: Path):
    """All begin when all are ready; one panel, one entry, one tier."""
    ident = run(make_worn, url)
    calls = tmp_path / "calls"
    processes = [start("promote_at_once", url, ident, "50", str(calls)) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    reasons = Counter(line for process in processes for line in process.communicate(timeout=HANG)[0].split())

    assert [process.returncode for process in processes] == [0] * 4
    assert calls.read_bytes() == b".."
    assert reasons.pop("None") == 1
    assert set(reasons) <= {"busy", "already"}
    assert reasons.total() == 199
    assert run(lambda registry: registry.get(ident), url).tier == "agent"
    assert len(promoted(url, ident)) == 1


# ---------------------------------------------------------------- kills


@pytest.mark.parametrize("moment", ["hang_after_verdict", "hang_before_commit"])
@pytest.mark.slow_table
def test_a_kill_between_verdict_and_record_promotes_nothing(url: str, moment: str):
    """Neither a tier nor an entry is left; when the claim of the dead has ended, the panel is asked again."""
    ident = run(make_worn, url)
    process = start(moment, url, ident)
    assert process.stdout is not None
    assert process.stdout.readline() in {"verdict\n", "written\n"}
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=HANG)
    clock = Clock()

    async def look(registry: ToolRegistry) -> ToolRecord:
        record = await registry.get(ident)
        assert record.claim is not None
        clock.now = record.claim.until
        clock.pass_by(-1)
        assert (await registry.promote(ident, make_judge())).because == "busy"
        clock.pass_by(1)
        return record

    record = run(look, url, clock=clock)

    assert (record.tier, len(record.tool.verdicts), promoted(url, ident)) == ("session", 1, [])
    assert run(lambda registry: registry.promote(ident, make_judge()), url, clock=clock)
    assert len(promoted(url, ident)) == 1
    assert verify(url)


@pytest.mark.slow_table
def test_kills_at_any_moment_leave_no_tier_without_a_verdict(url: str):
    """Killed with -9 five times while it forges and promotes: tables and ledger agree, and what returned is there."""
    random = Random()
    returned: set[str] = set()
    for kill in range(5):
        process = start("churn", url, str(kill))
        assert process.stdout is not None
        text = "".join(process.stdout.readline() for _ in range(random.randrange(1, 12)))
        text += kill_and_read(process)
        returned |= {line.strip() for line in text.splitlines(keepends=True) if line.endswith("\n")}

    async def check(registry: ToolRegistry) -> dict[str, str]:
        records = await registry.list()
        for record in records:
            await registry.check(record.id, agent=record.tool.agent, session=record.tool.session)
            assert record.tool.verdicts[-1].approved
        return {record.id: record.tier for record in records}

    tiers = run(check, url)
    entries = [entry.payload or {} for entry in find(url, kind="tool.promoted")]
    approved = {text["tool"] for text in entries if text["verdict"]["approved"]}

    assert returned
    assert {ident for ident, tier in tiers.items() if tier == "agent"} == approved
    assert returned <= approved
    assert verify(url)


# ---------------------------------------------------------------- what goes wrong while the panel is asked


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_review_that_fails_or_is_cancelled_gives_its_claim_back(store: str, tmp_path: Path):
    """Nobody waits for a claim whose holder is gone, as long as it could still say so."""

    class Failing:
        async def review_promotion(self, tool: Any) -> Any:
            raise OSError(tool.id)

    class Waiting:
        def __init__(self) -> None:
            self.asked = asyncio.Event()

        async def review_promotion(self, tool: Any) -> Any:
            self.asked.set()
            await asyncio.sleep(3_600)
            return tool

    async def go(registry: ToolRegistry) -> None:
        ident = await make_worn(registry)
        with pytest.raises(OSError, match=ident):
            await registry.promote(ident, Failing())  # type: ignore[arg-type]
        waiting = Waiting()
        task = asyncio.create_task(registry.promote(ident, waiting))  # type: ignore[arg-type]
        await waiting.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await registry.promote(ident, make_judge())
        await registry.check(ident, agent=HERE["agent"], session="another")

    run(go, None if store == "memory" else f"sqlite:///{tmp_path / 'adjudge.db'}")


def test_two_registries_in_threads_share_one_memory():
    """A registry in memory serves several loops: every use is counted."""
    registry = ToolRegistry()
    ident = asyncio.run(add(registry))

    def use_often() -> None:
        asyncio.run(wear(registry, ident, 200))

    async def go() -> int:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(asyncio.to_thread(use_often))
        usage = (await registry.get(ident)).tool.usage
        return usage.uses if usage is not None else 0

    assert asyncio.run(go()) == 800
