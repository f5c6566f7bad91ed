"""A clock that is set back opens no request again."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.errors import DecisionRefused
from kit.approvals import WHO, make_result, use
from kit.clock import Clock


@pytest.mark.parametrize("seen", ["another request", "the queue", "a count", "the request"])
def test_what_expired_stays_expired(seen: str, tmp_path: Path):
    """Also if nobody looked at the request itself while its time was over."""
    clock = Clock()

    async def go(approvals):
        ident = await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
        clock.pass_by(100)
        if seen == "another request":
            await approvals.request(make_result(), "And this?", expires_in=60, **WHO)
        elif seen == "the queue":
            await approvals.list_queue()
        elif seen == "a count":
            await approvals.count_open("ana")
        else:
            await approvals.get(ident)
        clock.pass_by(-90)
        with pytest.raises(DecisionRefused) as caught:
            await approvals.decide(ident, "ana", True, "It is fine.")
        return caught.value.because, (await approvals.get(ident)).status

    assert use(f"sqlite:///{tmp_path}/a.db", go, clock=clock) in {("expired", "denied"), ("closed", "denied")}


def test_a_clock_that_goes_on_expires_as_before(tmp_path: Path):
    """Standing still for a while changes nothing."""
    clock = Clock()

    async def go(approvals):
        ident = await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
        clock.pass_by(-1000)
        early = await approvals.is_open(ident)
        clock.pass_by(1059)
        before = await approvals.is_open(ident)
        clock.pass_by(2)
        return early, before, await approvals.is_open(ident)

    assert use(f"sqlite:///{tmp_path}/a.db", go, clock=clock) == (True, True, False)
