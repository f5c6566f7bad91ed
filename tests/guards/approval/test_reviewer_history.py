"""What one reviewer decided, and the reasons that were given before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from adjudge import Approvals, Gate, UsageError
from kit.approvals import WHO, make_result, use
from kit.clock import Clock


async def ask(approvals: Approvals, **terms: Any) -> str:
    """A request about a new result, of no gate."""
    return await approvals.request(make_result(), "Publish it?", **(WHO | terms))


async def ask_by_gate(approvals: Approvals, name: str, **terms: Any) -> str:
    """A request that a gate makes."""
    asks: dict[str, Any] = WHO | terms
    gate = Gate(name, rules=[{"name": "length", "max": 1}], on_failed="ask", approvals=approvals, ask=asks, wait=False)
    decision = await gate.check("too long")
    assert decision.approval_id is not None
    return decision.approval_id


def test_decisions_are_listed_by_when_the_vote_was_given(url: str):
    """The last one first, however old the request; what somebody else decided is in no list."""
    clock = Clock()

    async def go(approvals: Approvals) -> None:
        ids = [await ask(approvals) for _ in range(4)]
        for place, by in ((2, "ana"), (0, "ana"), (1, "bob")):
            clock.pass_by(60)
            await approvals.decide(ids[place], by, place == 0)
        assert await approvals.list_decided("ana") == ((ids[0], ids[2]), 2)
        assert await approvals.list_decided("ana", approved=False) == ((ids[2],), 1)
        assert await approvals.list_decided("ana", since=clock.now - timedelta(seconds=90)) == ((ids[0],), 1)
        assert await approvals.list_decided("ana", skip=1, most=1) == ((ids[2],), 2)
        assert await approvals.list_decided("cy") == ((), 0)

    use(url, go, clock=clock)


def test_a_vote_that_can_be_taken_back_is_in_no_list(url: str):
    """It is when it counts, with the time at which it was given."""
    clock = Clock()

    async def go(approvals: Approvals) -> None:
        ident = await ask(approvals)
        await approvals.decide(ident, "ana", False, undo_seconds=10)
        assert await approvals.list_decided("ana") == ((), 0)
        clock.pass_by(11)
        assert await approvals.list_decided("ana") == ((ident,), 1)

    use(url, go, clock=clock)


def test_decisions_can_be_limited_to_gates(url: str):
    """What is of no gate is then left out."""

    async def go(approvals: Approvals) -> None:
        ours, _, bare = [await ask_by_gate(approvals, "a"), await ask_by_gate(approvals, "b"), await ask(approvals)]
        for ident in (ours, bare):
            await approvals.decide(ident, "ana", True)
        assert await approvals.list_decided("ana", gates=["a", "c"]) == ((ours,), 1)
        assert (await approvals.list_decided("ana"))[1] == 2
        assert await approvals.list_decided("ana", gates=[]) == ((), 0)

    use(url, go)


def test_reasons_are_ones_own_first_and_the_most_used_before_the_others(url: str):
    """Then those of others at the same gate; an empty one is none, and each stands once."""

    async def go(approvals: Approvals) -> None:
        given = (("ana", "rare"), ("ana", "often"), ("ana", "often"), ("bob", "often"), ("bob", "of bob"), ("bob", ""))
        for by, reason in given:
            await approvals.decide(await ask_by_gate(approvals, "a"), by, False, reason)
        await approvals.decide(await ask_by_gate(approvals, "b"), "bob", False, "of another gate")
        ident = await ask_by_gate(approvals, "a")
        assert await approvals.list_reasons("ana", id=ident) == ("often", "rare", "of bob")

    use(url, go)


def test_no_reason_comes_from_a_request_that_one_was_not_asked_about(url: str):
    """It may quote what others alone may read; nor from the request itself."""

    async def go(approvals: Approvals) -> None:
        await approvals.decide(await ask_by_gate(approvals, "a", approvers=["bob"]), "bob", False, "of bob alone")
        ident = await ask_by_gate(approvals, "a", required=2)
        await approvals.decide(ident, "bob", True, "about this one")
        assert await approvals.list_reasons("ana", id=ident) == ()
        with pytest.raises(UsageError):
            await approvals.list_reasons("ana", id="unknown")

    use(url, go)
