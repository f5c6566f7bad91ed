"""Whatever the order of decisions: nobody is approved by fewer than were required, or after somebody said no."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Approvals, UsageError
from adjudge.guards import Approval, Vote
from adjudge.guards.approval.approval import count, expire, is_due, refuse
from approval_support import Clock, count_kinds, make_result, try_to, use
from judge_support import names
from ledger_support import find, verify

PEOPLE = ["ana", "bob", "cy", "dee"]
STEPS = st.lists(
    st.tuples(st.sampled_from([*PEOPLE, "eve", "Ana"]), st.sampled_from([True, True, True, False]), st.integers(0, 40)),
    max_size=12,
)
TERMS = st.integers(1, 4).flatmap(
    lambda names: st.fixed_dictionaries(
        {
            "approvers": st.permutations(PEOPLE).map(lambda order: tuple(order[:names])),
            "required": st.integers(1, names),
            "on_expiry": st.sampled_from(["deny", "approve"]),
        }
    )
)


def expect(steps: Any, terms: dict[str, Any]) -> tuple[str, str | None]:
    """The status and who decided, said a second way: from the whole list and not step by step."""
    now, said = 0, {}
    for by, approved, pause in steps:
        now += pause
        if now >= 100:
            break
        if by in terms["approvers"]:
            said.setdefault(by, approved)
        if not all(said.values()):
            return "denied", "human"
        if len(said) == terms["required"]:
            return "approved", "human"
    if sum(pause for _, _, pause in steps) >= 100:
        return ("approved" if terms["on_expiry"] == "approve" else "denied"), "policy"
    return "open", None


@settings(max_examples=500)
@given(steps=STEPS, terms=TERMS)
def test_every_order_of_decisions_counts_alike(steps: Any, terms: dict[str, Any]):
    """Approved by people exactly when enough different ones said yes in time and nobody before them said no."""
    clock = Clock()
    common: dict[str, Any] = {"id": "a", "message": "m", "result_id": "r", "judge": "j", "subject": "s"}
    common |= {"created_at": clock(), "expires_at": clock() + timedelta(seconds=100), "outcome": "failed"}
    approval = Approval(**common, **terms)
    for by, approved, pause in steps:
        clock.pass_by(pause)
        approval = expire(approval, clock()) if is_due(approval, clock()) else approval
        if refuse(approval, by) is None:
            approval = count(approval, Vote(by=by, approved=approved, at=clock()))

    assert (approval.status, approval.decided_by) == expect(steps, terms)
    yes = {vote.by for vote in approval.votes if vote.approved}
    assert len({vote.by for vote in approval.votes}) == len(approval.votes)
    if approval.decided_by == "human" and approval:
        assert len(yes & set(terms["approvers"])) == terms["required"] == len(approval.votes)


@settings(max_examples=25)
@given(steps=STEPS, terms=TERMS)
def test_the_store_counts_as_the_rules_do(steps: Any, terms: dict[str, Any]):
    """The same from the tables, with every attempt in a ledger that verifies, and one end at most."""
    clock = Clock()

    async def go(approvals: Approvals) -> Approval:
        ident = await approvals.request(make_result(), "Publish it?", expires_in=100, **terms)
        for by, approved, pause in steps:
            clock.pass_by(pause)
            await try_to(approvals, ident, by, approved)
        found = await approvals.get(ident)
        if found.status != "open":
            assert (await approvals.wait(ident)).approved is bool(found)
        return found

    with TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory) / 'adjudge.db'}"
        found = use(url, go, clock=clock)
        counted = count_kinds(find(url))[found.id]
        assert verify(url)

    assert (found.status, found.decided_by) == expect(steps, terms)
    assert counted["approval.voted"] + counted["refused"] == len(steps)
    assert counted["approval.voted"] == len(found.votes)
    assert counted["approval.closed"] == (found.status != "open")


AT = Clock()()
ANA, BOB, NO = (Vote(by=by, approved=yes, at=AT) for by, yes in (("ana", True), ("bob", True), ("bob", False)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "approved", "decided_by": "human"}, "approved … 2 of its approvers … nobody who denied"),
        ({"status": "approved", "decided_by": "human", "votes": (ANA, ANA)}, "approved … 2 of its approvers"),
        ({"status": "approved", "decided_by": "human", "votes": (ANA, BOB, NO)}, "approved … nobody who denied"),
        ({"status": "approved", "decided_by": "policy"}, "expiry … on_expiry='approve'"),
        ({"status": "approved", "decided_by": "judge"}, "judge … asked first … did not pass"),
        ({"status": "approved", "decided_by": "rule"}, "approved … decided_by='rule'"),
        ({"status": "denied", "decided_by": "judge"}, "denied … decided_by='judge'"),
        ({"status": "approved"}, "approved … decided_by=None"),
        ({"decided_by": "human"}, "open … decided_by='human'"),
        ({"status": "closed"}, "status … open, approved, denied … 'closed'"),
    ],
)
def test_an_approval_that_nobody_gave_cannot_be_made(changes: dict[str, Any], said: str):
    """Not by counting wrongly, nor from a file."""
    common: dict[str, Any] = {"id": "a", "message": "m", "result_id": "r", "judge": "j", "subject": "s"}
    common |= {"created_at": AT, "outcome": "failed", "approvers": ("ana", "bob"), "required": 2}
    data = Approval(**common).to_dict()
    written = {
        name: [vote.to_dict() for vote in value] if name == "votes" else value for name, value in changes.items()
    }

    for make in (lambda: Approval(**(common | changes)), lambda: Approval.from_dict(data | written)):
        with pytest.raises(UsageError) as caught:
            make()
        assert names(caught.value, *said.split(" … "))
