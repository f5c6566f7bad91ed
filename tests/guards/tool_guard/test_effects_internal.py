"""Effects that an operator declares for a tool: people read them, and their approval is bound to them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import Approvals, Ledger, UsageError
from adjudge.guards import ToolGuard
from adjudge.guards.tool_guard.effects import LONGEST_EFFECT, MOST_EFFECTS
from kit.tool_guards import make_asking_gate, make_call

pytestmark = pytest.mark.timed


GONE = ("cannot be taken back", "money leaves")


async def read_effects(approvals: Approvals, ident: str | None) -> Any:
    """The effects with which a request was made."""
    assert ident is not None
    approval = await approvals.get(ident)
    return approval.metadata["call"].get("effects")


def use_approvals(url: str, work: Any) -> None:
    async def run() -> None:
        async with Ledger(url) as ledger, Approvals(ledger) as approvals:
            await work(approvals)

    asyncio.run(run())


def test_people_are_asked_with_the_effects_of_the_tool(url: str):
    """The most specific name counts, as for gates; a tool of MCP is named by server and tool."""

    async def work(approvals: Approvals) -> None:
        gate = make_asking_gate(approvals)
        effects: Any = {"*": ["a person reads it"], "delete_*": GONE, ("bank", "pay*"): ["money leaves"]}
        guard = ToolGuard({"*": gate, ("bank", "pay*"): gate}, effects=effects)
        expected = {"delete_file": [*GONE], "other": ["a person reads it"]}
        for number, (tool, shown) in enumerate(expected.items()):
            verdict = await guard.check(make_call(tool, f"c{number}"))
            assert await read_effects(approvals, verdict.approval_id) == shown
        paid = await guard.check(make_call("pay_now", "c9", server="bank"))
        assert await read_effects(approvals, paid.approval_id) == ["money leaves"]

    use_approvals(url, work)


def test_an_approval_counts_while_the_effects_are_those_that_were_read(url: str):
    """The words of whoever declared them are a part of what was approved."""

    async def work(approvals: Approvals) -> None:
        gate = make_asking_gate(approvals)
        guard = ToolGuard(gate, effects={"delete_file": GONE})
        held = await guard.check(make_call())
        assert held.approval_id is not None
        await approvals.decide(held.approval_id, "ana", True, "fine")

        assert await guard.check(make_call())

    use_approvals(url, work)


@pytest.mark.parametrize("before", [None, {"delete_file": ["harmless"]}])
def test_after_another_declaration_people_are_asked_again(url: str, before: Any):
    """Who said yes before "money leaves" stood there has not said yes to that; the call is not refused for good."""

    async def work(approvals: Approvals) -> None:
        gate = make_asking_gate(approvals)
        held = await ToolGuard(gate, effects=before).check(make_call())
        assert held.approval_id is not None
        await approvals.decide(held.approval_id, "ana", True, "fine")

        again = await ToolGuard(gate, effects={"delete_file": GONE}).check(make_call())

        assert again.kind == "pending"
        assert again.approval_id != held.approval_id
        assert await read_effects(approvals, again.approval_id) == [*GONE]

    use_approvals(url, work)


@pytest.mark.parametrize(
    "declared",
    ["money leaves", [], [""], [" money leaves"], ["a\nb"], ["x" * (LONGEST_EFFECT + 1)], [1], None, ["a", "a"],
     ["\u202eabc"], [f"effect {number}" for number in range(MOST_EFFECTS + 1)]],
)  # fmt: skip
def test_what_is_no_list_of_short_lines_is_refused(url: str, declared: Any):
    """Before the guard is made."""

    async def work(approvals: Approvals) -> None:
        with pytest.raises(UsageError) as caught:
            ToolGuard(make_asking_gate(approvals), effects={"delete_file": declared})
        assert caught.value.argument == "effects"

    use_approvals(url, work)
