"""Calls that were made: whether somebody had let them pass as they were made, and what follows if not."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate, Ledger
from adjudge.errors import LedgerError, UsageError
from adjudge.guards import Screened, ToolCall, ToolGuard, ToolVerdict

CALL = ToolCall("Bash", {"command": "ls"}, "t1", "s1", cwd="/work")


def with_ledger(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an asynchronous test with a ledger of its own."""

    @functools.wraps(test)
    def run_test(tmp_path: Path, **values: Any) -> None:
        async def run() -> None:
            async with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
                await test(ledger=ledger, **values)

        asyncio.run(run())

    names = [name for name in inspect.signature(test).parameters if name != "ledger"]
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("tmp_path", *names)]
    run_test.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run_test


def make_guard(ledger: Ledger, **options: Any) -> ToolGuard:
    return ToolGuard({"Bash": Gate("shell", rules=[{"not_contains": "curl"}])}, ledger=ledger, **options)


async def pass_call(guard: ToolGuard, call: ToolCall) -> None:
    verdict = await guard.check(call)
    assert verdict
    await guard.record_pass(call, verdict)


async def list_kinds(ledger: Ledger) -> list[str]:
    return [entry.kind async for entry in ledger.query(run="s1") if entry.kind.startswith("call.")]


@with_ledger
async def test_a_call_that_was_let_pass_is_known_when_it_was_made(ledger: Ledger):
    """Another guard, in another process, knows it too; the folder may have changed by the call itself."""
    await pass_call(make_guard(ledger), CALL)

    assert await make_guard(ledger).record_run(replace(CALL, cwd="/tmp"), failed=True)
    assert await list_kinds(ledger) == ["call.passed", "call.ran"]
    assert await make_guard(ledger).check(replace(CALL, call_id="t2"))


@pytest.mark.parametrize(
    "changed",
    [
        {"arguments": {"command": "ls -l"}},
        {"tool": "Shell"},
        {"server": "bank"},
        {"agent": "sub"},
        {"call_id": "t2"},
    ],
)
@with_ledger
async def test_a_call_that_was_made_otherwise_ends_the_runs_trust(ledger: Ledger, changed: Mapping[str, Any]):
    """Another hook may rewrite a call after it was checked, so no answer of the guard means anything any more."""
    guard = make_guard(ledger, reading=["Bash"])
    await pass_call(guard, CALL)

    assert not await guard.record_run(replace(CALL, **changed))
    verdict = await guard.check(replace(CALL, call_id="t3"))

    assert await list_kinds(ledger) == ["call.passed", "call.unchecked"]
    assert (verdict.kind, verdict.because) == ("refuse", "stopped")
    assert await guard.check(replace(CALL, run_id="s2"))


@pytest.mark.parametrize(
    "arguments", ['{"command": "ls", "command": "curl x"}', {"command": "ls", "Command": "curl x"}, "x" * 1_000_001]
)
@with_ledger
async def test_a_call_that_was_made_and_cannot_be_read_ends_the_runs_trust(ledger: Ledger, arguments: Any):
    """Nobody can have let it pass, and what rewrites calls could write it so on purpose."""
    guard = make_guard(ledger)
    await pass_call(guard, CALL)

    assert not await guard.record_run(replace(CALL, arguments=arguments))
    assert (await guard.check(replace(CALL, call_id="t2"))).because == "stopped"


@with_ledger
async def test_a_pass_is_for_one_run(ledger: Ledger):
    """The second run of one call was not let pass."""
    guard = make_guard(ledger)
    await pass_call(guard, CALL)

    assert [await guard.record_run(CALL) for _ in range(2)] == [True, False]


@with_ledger
async def test_of_runs_that_are_recorded_at_once_only_one_uses_a_pass(ledger: Ledger):
    """Each of these guards counts the passes before any of them has recorded its run."""
    guards = [make_guard(ledger) for _ in range(8)]
    await pass_call(guards[0], CALL)

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(guard.record_run(CALL)) for guard in guards]

    assert sum(run.result() for run in runs) == 1
    assert (await guards[0].check(replace(CALL, call_id="t2"))).because == "stopped"


@pytest.mark.parametrize("missing", ["run_id", "by", "reason"])
@with_ledger
async def test_a_run_is_reopened_by_somebody_and_for_a_reason(ledger: Ledger, missing: str):
    """An auditor asks later who it was and why."""
    words = {"run_id": "s1", "by": "ana", "reason": "it was my own hook"} | {missing: " "}

    with pytest.raises(UsageError, match=missing):
        await make_guard(ledger).reopen(**words)


@with_ledger
async def test_a_hook_that_is_installed_twice_stops_nothing(ledger: Ledger):
    """It lets the call pass twice, and is told twice that it was made."""
    guard = make_guard(ledger)
    await pass_call(guard, CALL)
    await pass_call(guard, CALL)

    assert [await guard.record_run(CALL) for _ in range(2)] == [True, True]


@with_ledger
async def test_people_can_reopen_a_run_with_an_unchecked_call(ledger: Ledger):
    """As one that was stopped for refusals."""
    guard = make_guard(ledger)
    await guard.record_run(CALL)
    refused = await guard.check(CALL)

    await guard.reopen("s1", by="ana", reason="it was my own hook")

    assert refused.because == "stopped"
    assert await guard.check(CALL)


class NoRoot:
    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        return Screened(allowed=call.cwd != "/", decided_by="rule", detail="not at the root")


@with_ledger
async def test_a_screen_is_before_every_gate(ledger: Ledger):
    """Also before that of a tool that nothing else checks; its refusal counts like one of a rule."""
    guard = ToolGuard({"Read": None}, screens=[NoRoot()], ledger=ledger)
    call = ToolCall("Read", {}, "t1", "s1", cwd="/")

    verdicts = [await guard.check(replace(call, cwd=cwd)) for cwd in ("/work", "/", "/")]

    assert [verdict.because for verdict in verdicts] == [None, "refused", "refused_before"]


# ---------------------------------------------------------------- approved calls that may not have run


async def approve_call(guard: ToolGuard, approvals: Approvals, call: ToolCall) -> ToolVerdict:
    """Have people approve a call, and use their approval."""
    held = await guard.check(call)
    assert held.approval_id is not None
    await approvals.decide(held.approval_id, "ana", True)
    verdict = await guard.check(replace(call, call_id=f"{call.call_id}-again"))
    assert verdict
    return verdict


@asynccontextmanager
async def open_asking_guard(ledger: Ledger) -> AsyncIterator[tuple[ToolGuard, Approvals]]:
    """A guard that asks ana about every command, and knows calls by their content, as hooks do."""
    async with Approvals(ledger) as approvals:
        people = {"approvals": approvals, "ask": {"approvers": ["ana"]}, "show_content": True}
        gate = Gate("shell", rules=[{"contains": "scratch"}], on_rule="ask", **people)
        yield ToolGuard({"Bash": gate, "Read": None}, ledger=ledger, match="content"), approvals


@with_ledger
async def test_an_approved_call_is_listed_until_it_is_known_to_have_been_made(ledger: Ledger):
    """Killed before the pass, between the pass and the call, and after it, as the hook of a harness notes them."""
    async with open_asking_guard(ledger) as (guard, approvals):
        assert await guard.check(ToolCall("Read", {}, "r1", "s1"))  # nobody approved it, so it is not listed
        verdict = await approve_call(guard, approvals, CALL)
        made = replace(CALL, call_id="t1-again")
        steps = [await guard.list_unfinished(at_work=0)]
        await guard.record_pass(made, verdict)
        steps.append(await guard.list_unfinished(at_work=0))
        await guard.record_run(made, failed=True)
        steps.append(await guard.list_unfinished(at_work=0))

    assert [[(call.tool, call.run_id) for call in listed] for listed in steps] == [[("Bash", "s1")]] * 2 + [[]]


@with_ledger
async def test_one_that_returned_is_known_by_its_result(ledger: Ledger):
    """Of the same call that was approved twice and made once, one is listed; other runs are left out."""
    async with open_asking_guard(ledger) as (guard, approvals):
        for number in (1, 2):
            call = replace(CALL, call_id=f"t{number}")
            await approve_call(guard, approvals, call)
            if number == 1:
                await guard.check_result(replace(call, call_id="t1-again"), "a.tar")
        listed = await guard.list_unfinished("s1", at_work=0)

        assert [call.tool for call in listed] == ["Bash"]
        assert listed[0].approval_id == (await approvals.list(status="approved"))[-1].id
        assert await guard.list_unfinished("s2", at_work=0) == ()


@with_ledger
async def test_a_text_that_was_approved_is_no_call_that_may_not_have_run(ledger: Ledger):
    """Nobody says what becomes of it; nor of an answer."""
    async with open_asking_guard(ledger) as (guard, approvals):
        for _ in range(2):
            verdict = await guard.check_content("Bash", "publish this", run_id="s1")
            for waiting in await approvals.list():
                await approvals.decide(waiting.id, "ana", True)

        assert verdict
        assert await guard.list_unfinished(at_work=0) == ()


@with_ledger
async def test_a_result_is_read_where_its_record_cannot_be_written(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    """What was done cannot be undone by that."""
    async with open_asking_guard(ledger) as (guard, approvals):
        await approve_call(guard, approvals, CALL)

        async def fail(*_: Any, **__: Any) -> int:
            raise LedgerError("the disk is full")

        monkeypatch.setattr(Ledger, "append", fail)
        assert await guard.check_result(replace(CALL, call_id="t1-again"), "a.tar")
        monkeypatch.undo()

        assert len(await guard.list_unfinished(at_work=0)) == 1
