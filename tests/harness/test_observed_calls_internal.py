"""Calls of an observing hook that no entry says were made: refused, or not known yet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import Gate, Ledger
from adjudge.guards import ToolCall, ToolGuard
from adjudge.harness import observed_calls
from adjudge.harness.observed_calls import CallCollection, add_ledger
from adjudge.ledger.database import IN_MEMORY

PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: x\n*** End Patch\nEOF"


async def observe(*calls: tuple[str, bool]) -> dict[str, Any]:
    """The outcomes of calls that a guard let pass, of which the harness made some."""
    collection = CallCollection()
    async with Ledger(IN_MEMORY, store_content="full") as ledger:
        gate = Gate("shell", rules=["secrets"], mode="observe", ledger=ledger)
        guard = ToolGuard({"Bash": gate}, unsafe=["shell.mode"])
        for number, (command, ran) in enumerate(calls):
            call = ToolCall("Bash", {"command": command}, f"c{number}", "run-1")
            await guard.record_pass(call, await guard.check(call))
            if ran:
                await guard.record_run(call)
        await add_ledger(collection, ledger)
    return {
        case.content["arguments"]["command"]: case.metadata["call"]["outcomes"] for case in collection.cases.values()
    }


def test_a_call_was_refused_if_its_run_went_on_without_it(monkeypatch: pytest.MonkeyPatch):
    """A harness says nothing of a refusal. Of a patch in a command Codex never says that it was applied."""
    monkeypatch.setattr(observed_calls, "AT_WORK", 0.0)

    found = asyncio.run(observe(("rm x", False), (PATCH, False), ("ls", True)))

    assert found == {"rm x": {"refused": 1}, PATCH: {"unknown": 1}, "ls": {"ran": 1}}


def test_a_call_may_be_waiting_for_its_user_for_a_while():
    """A call may be waiting for its user for a while."""
    assert asyncio.run(observe(("rm x", False), ("ls", True)))["rm x"] == {"unknown": 1}
