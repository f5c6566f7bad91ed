"""One held call, checked by many at once, in several processes, and with one of them killed: it runs once at most."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals
from adjudge.guards import ToolGuard
from kit.ledgers import STORES, open_store, verify
from kit.patience import HANG
from kit.tool_guards import make_call, start, use_guard

pytestmark = pytest.mark.integration


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    with open_store(request.param, tmp_path, require) as url:
        yield url


def check_in_two_processes(url: str, folder: Path) -> list[dict[str, Any]]:
    """What two processes are told that check one call 25 times each."""
    processes = [start("check_many", url, "25", str(folder)) for _ in range(2)]
    return [json.loads(process.communicate(timeout=HANG)[0]) for process in processes]


def list_runs(folder: Path) -> list[Path]:
    return list(folder.glob("ran-*"))


def approve(url: str) -> int:
    """Approve every open request, and return how many there are of any status."""

    async def work(_: ToolGuard, approvals: Approvals) -> int:
        for approval in await approvals.list():
            await approvals.decide(approval.id, "ana", approved=True)
        return len(await approvals.list(status=None))

    return int(use_guard(url, work))


def test_fifty_checks_in_two_processes_make_one_request_and_one_execution(url: str, tmp_path: Path):
    """Twenty-five in each, at once, before the yes and after it."""
    held = check_in_two_processes(url, tmp_path)
    assert {kind for reports in held for kind in reports["kinds"]} == {"pending"}
    assert len({ident for reports in held for ident in reports["approvals"]}) == 1
    assert approve(url) == 1

    reports = check_in_two_processes(url, tmp_path)

    assert sorted(kind for each in reports for kind in each["kinds"]) == ["allow"] + ["refuse"] * 49
    assert len(list_runs(tmp_path)) == 1
    assert verify(url).valid


def test_a_process_that_is_killed_between_yes_and_execution_leaves_a_call_that_is_not_made_again(
    url: str, tmp_path: Path
):
    """Nobody knows whether it ran. So it is refused, and listed for people who can look."""
    check_in_two_processes(url, tmp_path)
    approve(url)
    process = start("check_and_stop", url, str(tmp_path))
    with process:
        assert json.loads(process.stdout.readline()) == {"kind": "allow"}
        os.kill(process.pid, signal.SIGKILL)

    async def work(guard: ToolGuard, _: Approvals) -> None:
        verdict = await guard.check(make_call())
        entries = [entry async for entry in guard.ledger.query(run="run-1", kind="decision")]
        allowed = [entry for entry in entries if (entry.payload or {})["allowed"]]

        assert verdict.because == "used"
        assert len(allowed) == 1
        [call] = await guard.list_unfinished("run-1", at_work=0)
        assert (call.tool, call.call_id, call.seq) == ("delete_file", "c1", allowed[0].seq)
        assert await guard.list_unfinished("run-1") == ()  # it was allowed a moment ago, and may be at work

    use_guard(url, work)
    assert list_runs(tmp_path) == []
