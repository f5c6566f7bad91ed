"""Votes as pages, HTTP and commands cast them."""

from __future__ import annotations

import pytest

from adjudge import Approvals
from adjudge.guards import DecisionRefused
from adjudge.guards.approval.vote_casting import cast_vote
from kit.approvals import ask

pytestmark = pytest.mark.timed


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_that_comes_too_late_is_recorded_however_little_it_says(url: str, approved: bool):
    """Of a request that is closed nobody has to look at anything: the attempt is what the ledger should show."""

    async def work(approvals: Approvals, ident: str) -> list[object]:
        await approvals.decide(ident, "ana", approved, "I read it.")
        with pytest.raises(DecisionRefused) as caught:
            await cast_vote(approvals, ident, "bob", approved=True, reason="", seen=None, require_complete=True)
        assert caught.value.because == "closed"
        return [(entry.payload or {}).get("accepted") for entry in await approvals.history(ident)]

    assert ask(url, work).count(False) == 1
