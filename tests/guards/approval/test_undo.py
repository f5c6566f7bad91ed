"""Taking a vote back: until then it decides nothing, whoever waits, and the ledger keeps all of it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate
from adjudge.guards import Approval, DecisionRefused
from adjudge.ledger import LedgerError
from kit.approvals import ask, tell, try_to, use
from kit.clock import Clock
from kit.judges import complaint, names
from kit.ledgers import STORES, find, open_store

pytestmark = pytest.mark.timed


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


def play(url: str, *steps: tuple[Any, ...], **options: Any) -> tuple[list[str], Approval]:
    """What becomes of votes that can be undone for 10 seconds: ``(who, yes)``, ``(who, "undo")``, ``(seconds,)``."""
    clock = Clock()

    async def work(approvals: Approvals, ident: str) -> tuple[list[str], Approval]:
        statuses = []
        for step in steps:
            if len(step) == 1:
                clock.pass_by(step[0])
                continue
            by, answer, undo = (*step, 10)[:3]
            try:
                if answer == "undo":
                    approval = await approvals.withdraw(ident, by)
                else:
                    approval = await approvals.decide(ident, by, answer, undo_seconds=undo)
                statuses.append(approval.status)
            except DecisionRefused as error:
                statuses.append(error.because)
        return statuses, await approvals.get(ident)

    return ask(url, work, clock=clock, **options)


def test_a_vote_decides_nothing_until_its_time_to_undo_is_over(url: str):
    """The request is open meanwhile, and says who can still take it back."""
    _, pending = play(url, ("ana", True), (9.9,))
    assert (pending.status, pending.votes, [vote.by for vote in pending.pending_votes]) == ("open", (), ["ana"])
    assert (pending.missing, bool(pending)) == (1, False)
    assert names(pending.explain(), "ana approved and can take it back until 12:00:10Z", "by bob")

    _, final = play(url, ("ana", True), (10,))
    assert (final.status, final.closed_by, final.pending_votes) == ("approved", ("ana",), ())
    assert final.votes[0].final_at is None


def test_an_approval_waits_for_a_denial_that_is_pending_and_for_no_other_approval(url: str):
    """Of two approvals the one that cannot be taken back counts at once, and here ends the request."""
    _, approved = play(url, ("ana", True), ("bob", True, 0))
    assert (approved.status, approved.closed_by) == ("approved", ("bob",))

    _, waits = play(url, ("ana", False), ("bob", True, 0))
    assert (waits.status, [vote.by for vote in waits.pending_votes]) == ("open", ["ana", "bob"])


def test_who_waits_is_told_afterwards_alone(url: str):
    """A gate goes on with a yes when nobody can take it back any more."""
    clock = Clock()

    async def work(approvals: Approvals, ident: str) -> tuple[bool, Any]:
        await approvals.decide(ident, "ana", True, "read it", undo_seconds=10)
        waiting = asyncio.create_task(approvals.wait(ident))
        await asyncio.sleep(0.1)  # it has looked; no time has passed for it
        early = waiting.done()
        clock.pass_by(10)
        return early, await waiting

    early, answer = ask(url, work, clock=clock)

    assert not early
    assert (answer.approved, answer.by, answer.reason) == (True, "ana", "read it")


def test_a_vote_that_is_taken_back_never_counts(url: str):
    """Its voter can decide anew; the ledger keeps the vote, its withdrawal and what counted."""
    statuses, approval = play(url, ("ana", True), (5,), ("ana", "undo"), (60,), ("ana", False), (10,))

    assert statuses == ["open", "open", "open"]
    assert (approval.status, [vote.approved for vote in approval.votes]) == ("denied", [False])
    assert [(kind, person) for kind, _, person in tell(url)] == [
        ("requested", ["ana", "bob"]),
        ("vote_pending", None),
        ("vote_withdrawn", None),
        ("vote_pending", None),
        ("voted", "ana"),
        ("closed", "human"),
    ]
    withdrawn = next(entry.payload for entry in find(url) if entry.kind == "approval.vote_withdrawn")
    assert (withdrawn["by"], withdrawn["approved"], withdrawn["vote"]) == ("ana", True, 3)


@pytest.mark.slow_table
@pytest.mark.parametrize(
    ("steps", "statuses"),
    [
        ([("ana", True), (10,), ("ana", "undo")], ["open", "final"]),
        ([("ana", True), ("bob", "undo")], ["open", "final"]),
        ([("ana", "undo")], ["final"]),
        ([("ana", True, 0), ("ana", "undo")], ["approved", "final"]),
        ([("ana", True), ("ana", "undo"), ("ana", "undo")], ["open", "open", "final"]),
    ],
    ids=["too late", "of another", "none", "at once", "twice"],
)
def test_only_ones_own_pending_vote_can_be_taken_back(url: str, steps: list[Any], statuses: list[str]):
    """Too late, another's, or none: nothing is changed, and the voter is told."""
    assert play(url, *steps)[0] == statuses


def test_two_tabs_are_one_person(url: str):
    """While the first vote can still be taken back, the same person cannot give another."""
    assert play(url, ("ana", True), ("ana", True), (10,), ("ana", True), required=2)[0] == ["open", "double", "double"]


@pytest.mark.parametrize("undo", [10, 0])
def test_no_approval_counts_while_somebody_denies(url: str, undo: float):
    """A denial that can still be taken back holds up the approval that would open the gate before it counts."""
    three = {"approvers": ["ana", "bob", "cy"]}
    statuses, approval = play(url, ("ana", False), (5,), ("bob", True, undo), (4.9,), ("cy", True, 0), **three)
    assert (statuses, approval.status) == (["open", "open", "open"], "open")

    _, denied = play(url, ("ana", False), (5,), ("bob", True, undo), (60,))
    assert (denied.status, denied.closed_by) == ("denied", ("ana",))

    _, approved = play(url, ("ana", False), (5,), ("bob", True, undo), ("ana", "undo"), (60,))
    assert (approved.status, approved.closed_by) == ("approved", ("bob",))


def test_a_denial_after_an_approval_still_ends_it(url: str):
    """Both can be taken back; if neither is, it is denied."""
    _, approval = play(url, ("ana", True), (5,), ("bob", False), (60,))

    assert (approval.status, approval.closed_by) == ("denied", ("bob",))


@pytest.mark.slow_table
@pytest.mark.parametrize("on_expiry", ["deny", "approve"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_vote_counts_at_the_latest_when_the_request_expires(url: str, on_expiry: str, approved: bool):
    """It came in time, so it decides, and not the expiry."""
    _, approval = play(url, (55,), ("ana", approved), (60,), expires_in=60, on_expiry=on_expiry)

    assert (approval.status, approval.decided_by) == ("approved" if approved else "denied", "human")


def test_what_is_pending_when_somebody_else_closes_the_request_is_refused(url: str):
    """The ledger says that it did not count, and why."""
    statuses, approval = play(url, ("ana", True), ("bob", False, 0), (60,))
    refused = [entry.payload for entry in find(url, kind="approval.voted") if not entry.payload["accepted"]]

    assert (statuses, approval.status, approval.closed_by) == (["open", "denied"], "denied", ("bob",))
    assert [(entry["by"], entry["refused_because"]) for entry in refused] == [("ana", "closed")]


def test_listing_counts_what_is_final(url: str):
    """Somebody who only looks finds it approved, as with one that expired."""
    clock = Clock()

    async def work(approvals: Approvals, ident: str) -> tuple[int, int]:
        await approvals.decide(ident, "ana", True, undo_seconds=10)
        before = len(await approvals.list())
        clock.pass_by(10)
        return before, len(await approvals.list(status="approved"))

    assert ask(url, work, clock=clock) == (1, 1)


def test_a_gate_blocks_while_the_approval_can_be_taken_back(url: str):
    """Its decision comes once the vote counts, and not from the vote."""
    clock = Clock()

    async def work(approvals: Approvals) -> tuple[bool, bool]:
        options: dict[str, Any] = {
            "on_failed": "ask",
            "approvals": approvals,
            "ask": {"approvers": ["ana"]},
            "wait": False,
        }
        gate = Gate("replies", rules=[{"regex": "refund", "absent": True}], **options)
        pending = await gate.check("You get a refund.")
        await approvals.decide(pending.approval_id, "ana", True, undo_seconds=10)
        waiting = asyncio.create_task(gate.resume(pending))
        await asyncio.sleep(0.1)  # it has looked; no time has passed for it
        done = waiting.done()
        clock.pass_by(10)
        return done, (await waiting).allowed

    assert use(url, work, clock=clock) == (False, True)


@pytest.mark.slow_table
@pytest.mark.parametrize("seconds", [-1, 301, float("nan"), "10", True])
def test_the_time_to_undo_is_checked(url: str, seconds: Any):
    """Nothing is recorded with a time that cannot be meant."""
    ident = ask(url, Approvals.get).id
    assert names(complaint(Approvals(url).decide, ident, "ana", True, undo_seconds=seconds), "undo_seconds", "300")
    assert len(find(url, kind="approval.vote_pending")) == 0


def test_a_vote_that_was_taken_back_and_put_back_by_hand_opens_nothing(tmp_path: Path):
    """The ledger holds no vote that counted, so who waits is not told yes."""
    url, clock = f"sqlite:///{tmp_path / 'adjudge.db'}", Clock()

    async def work(approvals: Approvals, ident: str) -> str:
        await approvals.decide(ident, "ana", True, undo_seconds=10)
        await approvals.withdraw(ident, "ana")
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            votes = "INSERT INTO adjudge_votes VALUES (?, 'ana', 3, 1, '2026-11-20T12:00:00Z', '')"
            connection.execute(votes, (ident,))
        # The table counts it, with a vote that the ledger says was taken back.
        return await try_to(approvals, ident, "bob", True)

    assert ask(url, work, clock=clock, required=2) == "approved"
    with pytest.raises(LedgerError, match="the ledger does not confirm what ana decided"):
        asyncio.run(wait_for_all(url))


_MADE_UP = "INSERT INTO adjudge_pending_votes SELECT approval, 'bob', seq, 1, at, final_at, reason"


@pytest.mark.parametrize(
    "change",
    [
        f"{_MADE_UP} FROM adjudge_pending_votes",
        "UPDATE adjudge_pending_votes SET by = 'bob'",
        "UPDATE adjudge_pending_votes SET final_at = '2026-11-20T12:00:01.000000Z'",
        "UPDATE adjudge_pending_votes SET seq = 2",
        "INSERT INTO adjudge_pending_votes VALUES (:id, 'ana', 3, 1, :at, :final_at, '')",
    ],
    ids=["another's", "its voter", "its time", "its entry", "a withdrawn one"],
)
def test_a_pending_vote_that_was_made_up_does_not_count(tmp_path: Path, change: str):
    """Counting it would write into the ledger what nobody said."""
    url, clock = f"sqlite:///{tmp_path / 'adjudge.db'}", Clock()

    async def work(approvals: Approvals, ident: str) -> None:
        voted = await approvals.decide(ident, "ana", True, undo_seconds=10)
        if ":id" in change:
            await approvals.withdraw(ident, "ana")
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            vote = voted.pending_votes[0].to_dict()
            times = {name: vote[name].replace("+00:00", ".000000Z") for name in ("at", "final_at")}
            connection.execute(change, {"id": ident} | times if ":id" in change else {})
        clock.pass_by(10)
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"a pending vote on approval .* is not the one in the ledger"):
                await approvals.wait(ident)

    # Both count only if the request needs both.
    ask(url, work, clock=clock, required=2)
    assert not find(url, kind="approval.closed")


async def wait_for_all(url: str) -> None:
    async with Approvals(url) as approvals:
        for item in await approvals.list(status="approved"):
            await approvals.wait(item.id)


def test_an_approver_comments_without_deciding(url: str):
    """Everybody finds it in the request's history; a stranger is refused."""

    async def work(approvals: Approvals, ident: str) -> tuple[Any, ...]:
        await approvals.comment(ident, "bob", "Is that the new policy?")
        with pytest.raises(DecisionRefused, match="'eve' is none of the approvers"):
            await approvals.comment(ident, "eve", "Yes.")
        entry = (await approvals.history(ident))[-1]
        return entry.kind, entry.payload["by"], entry.payload["text"], (await approvals.get(ident)).status

    assert ask(url, work) == ("approval.commented", "bob", "Is that the new policy?", "open")
