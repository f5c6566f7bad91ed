"""Whatever the order of decisions: nobody is approved by fewer than were required, or after somebody said no."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Approvals, UsageError
from adjudge.guards import Approval, Vote
from adjudge.guards.approval.approval import expire, is_due, make_approval_id
from adjudge.guards.approval.votes import count_vote, find_refusal
from kit.approvals import count_kinds, make_result, try_to, use
from kit.clock import Clock
from kit.judges import names
from kit.ledgers import find, verify

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
    now, answers = 0, {}
    for by, approved, pause in steps:
        now += pause
        if now >= 100:
            break
        if by in terms["approvers"]:
            answers.setdefault(by, approved)
        if not all(answers.values()):
            return "denied", "human"
        if len(answers) == terms["required"]:
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
        if find_refusal(approval, by) is None:
            approval = count_vote(approval, Vote(by=by, approved=approved, at=clock()))

    assert (approval.status, approval.decided_by) == expect(steps, terms)
    yes = {vote.by for vote in approval.votes if vote.approved}
    assert len({vote.by for vote in approval.votes}) == len(approval.votes)
    if approval.decided_by == "human" and approval:
        assert len(yes & set(terms["approvers"])) == terms["required"] == len(approval.votes)


@pytest.mark.slow
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
        approval = await approvals.get(ident)
        if approval.status != "open":
            assert (await approvals.wait(ident)).approved is bool(approval)
        return approval

    with TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory) / 'adjudge.db'}"
        approval = use(url, go, clock=clock)
        counted = count_kinds(find(url))[approval.id]
        assert verify(url)

    assert (approval.status, approval.decided_by) == expect(steps, terms)
    assert counted["approval.voted"] + counted["refused"] == len(steps)
    assert counted["approval.voted"] == len(approval.votes)
    assert counted["approval.closed"] == (approval.status != "open")


AT = Clock()()
ANA, BOB, NO = (Vote(by=by, approved=yes, at=AT) for by, yes in (("ana", True), ("bob", True), ("bob", False)))


REQUEST: dict[str, Any] = {
    "id": "a",
    "message": "m",
    "result_id": "r",
    "judge": "j",
    "subject": "s",
    "created_at": AT,
    "outcome": "failed",
    "approvers": ("ana", "bob"),
    "required": 2,
}


@pytest.mark.parametrize(
    ("changes", "message"),
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
    ],
)
def test_an_approval_that_nobody_gave_cannot_be_made(changes: dict[str, Any], message: str):
    """Not by counting wrongly, nor from a file."""
    data = Approval(**REQUEST).to_dict()
    written = {
        name: [vote.to_dict() for vote in value] if name == "votes" else value for name, value in changes.items()
    }

    for make in (lambda: Approval(**(REQUEST | changes)), lambda: Approval.from_dict(data | written)):
        with pytest.raises(UsageError) as caught:
            make()
        assert names(caught.value, *message.split(" … "))


@pytest.mark.parametrize("ended", [{}, {"status": "denied", "decided_by": "human", "closed_because": "no\nyes"}])
def test_an_approval_is_explained_in_one_line(ended: dict[str, Any]):
    """Whoever gave the reason could otherwise write a second line that looks like one of ours."""
    approval = Approval(**REQUEST, first_said="the judge did not pass it\napproved by ana", **ended)

    assert len(approval.explain().splitlines()) == 1


def test_an_id_holds_the_time_to_a_quarter_of_a_microsecond(monkeypatch: pytest.MonkeyPatch):
    """A UUIDv7 (RFC 9562) with 12 bits of the millisecond, so ids sort as they were made; what follows is random."""
    moments = [1_763_000_000_000_000_000 + rest for rest in (0, 245, 999_756, 1_000_000)]
    idents = []
    for moment in moments:
        monkeypatch.setattr(time, "time_ns", lambda moment=moment: moment)
        idents.append(make_approval_id())

    uuids = [UUID(ident[:36]) for ident in idents]
    assert [uuid.int >> 80 for uuid in uuids] == [moment // 1_000_000 for moment in moments]
    assert [uuid.int >> 64 & 0xFFF for uuid in uuids] == [0, 1, 4095, 0]
    assert {(uuid.version, uuid.variant) for uuid in uuids} == {(7, RFC_4122)}
    assert {len(bytes.fromhex(ident[37:])) for ident in idents} == {16}
    assert idents == sorted(idents)
    assert len({ident[19:] for ident in idents}) == len(idents)


def test_one_person_has_to_approve_where_no_number_is_named():
    """In Python and in a file alike: no number is not the number 0, with which nobody would have to."""
    terms = {name: value for name, value in REQUEST.items() if name != "required"}
    data = {name: value for name, value in Approval(**terms).to_dict().items() if name != "required"}

    assert Approval(**terms).missing == Approval.from_dict(data).missing == 1
    with pytest.raises(UsageError):
        Approval.from_dict(data | {"status": "approved", "decided_by": "human"})


def test_an_approval_has_one_of_three_states():
    """Whoever makes one is told which; in a file it is the member that is named."""
    with pytest.raises(UsageError) as made:
        Approval(**(REQUEST | {"status": "closed"}))
    with pytest.raises(UsageError) as read:
        Approval.from_dict(Approval(**REQUEST).to_dict() | {"status": "closed"})

    assert names(made.value, "status", "open, approved, denied", "'closed'")
    assert names(read.value, "$.status", "'closed'")


UNDO = 10

VOTES = st.sampled_from(["yes", "yes", "no", "undo"])

ACTIONS = st.lists(st.tuples(st.sampled_from(PEOPLE), VOTES, st.sampled_from([0, 1, 9, 10, 30])), max_size=14)


@pytest.mark.slow
@settings(max_examples=20)
@given(steps=ACTIONS, terms=TERMS, undo=st.lists(st.sampled_from([0, UNDO]), min_size=14, max_size=14))
def test_no_vote_counts_that_was_taken_back_and_no_denial_is_passed_over(
    steps: Any, terms: dict[str, Any], undo: list[int]
):
    """Whatever the order of votes and withdrawals, read back from the ledger: what counted, and when."""
    clock = Clock()
    began = clock()

    async def work(approvals: Approvals) -> tuple[Approval, Any]:
        ident = await approvals.request(make_result(), "Publish it?", **terms, expires_in=100)
        for (by, action, pause), seconds in zip(steps, undo, strict=False):
            clock.pass_by(pause)
            with suppress(UsageError):
                if action == "undo":
                    await approvals.withdraw(ident, by)
                else:
                    await approvals.decide(ident, by, action == "yes", undo_seconds=seconds)
        clock.pass_by(UNDO)
        return await approvals.get(ident), await approvals.history(ident)

    with TemporaryDirectory() as folder:
        approval, entries = use(f"sqlite:///{Path(folder) / 'adjudge.db'}", work, clock=clock)
    events = [(entry.kind.removeprefix("approval."), entry.seq, entry.payload) for entry in entries]
    pending = {seq: vote for kind, seq, vote in events if kind == "vote_pending"}
    withdrawn = {vote["vote"] for kind, _, vote in events if kind == "vote_withdrawn"}
    counted = [vote for kind, _, vote in events if kind == "voted" and vote["accepted"]]
    closed = approval.closed_at

    assert withdrawn <= set(pending)
    assert len({vote["by"] for vote in counted}) == len(counted)
    for vote in counted:
        same = [seq for seq, other in pending.items() if (other["by"], other["at"]) == (vote["by"], vote["at"])]
        assert not withdrawn.intersection(same)
    if approval.status == "approved" and approval.decided_by == "human":
        assert closed is not None
        assert len({vote["by"] for vote in counted if vote["approved"]}) >= terms["required"]
        assert all(vote["approved"] for vote in counted)
        # Nobody who said no before it was approved, and did not take that back, was passed over.
        noes = [seq for seq, vote in pending.items() if not vote["approved"] and vote["at"] < closed.isoformat()]
        assert set(noes) <= withdrawn
    if closed is not None:
        assert closed <= began + timedelta(seconds=sum(pause for _, _, pause in steps) + UNDO)
    if approval.status != "open":
        assert approval.pending_votes == ()
