"""What approvals do beside asking and deciding: they close what is over, delete what is due, tell others, and end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adjudge import Approvals, Ledger, UsageError
from kit.approvals import make_result, use
from kit.ledgers import run
from kit.webhooks import Receiver, deliver

pytestmark = pytest.mark.timed


def make_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'a.db'}"


def test_a_vote_counts_once_it_can_no_longer_be_taken_back(tmp_path: Path):
    """Whoever reads the request then finds it decided; a moment before it is open."""
    now = [datetime(2026, 11, 30, 9, tzinfo=UTC)]

    async def work(approvals: Approvals) -> list[str]:
        ident = await approvals.request(make_result(), "Send it?", approvers=["ana"])
        await approvals.decide(ident, "ana", True, "It is fine.", undo_seconds=30)
        statuses = [(await approvals.get(ident)).status]
        now[0] += timedelta(seconds=31)
        return [*statuses, (await approvals.get(ident)).status]

    assert use(make_url(tmp_path), work, clock=lambda: now[0]) == ["open", "approved"]


def test_held_has_thirty_days_unless_somebody_says(tmp_path: Path):
    """Other ledgers keep the texts of requests until somebody forgets them."""
    for store_content, given, seconds in (
        ("held", None, 30 * 86_400),
        ("held", 60, 60),
        ("hash", None, None),
        ("full", None, None),
        ("full", 60, 60),
    ):
        ledger = Ledger(make_url(tmp_path), store_content=store_content)  # type: ignore[arg-type]
        assert Approvals(ledger, keep_for=given).keep_for == seconds
    with pytest.raises(UsageError) as caught:
        Approvals(ledger, keep_for=0)
    assert caught.value.argument == "keep_for"


def test_listing_requests_deletes_what_is_over_by_the_ledgers_own_dates(tmp_path: Path):
    """Nobody has to call ``forget_due``: each look at requests does it."""

    async def work(ledger: Ledger) -> None:
        approvals = Approvals(ledger, keep_for=1e-3)
        ident = await approvals.request(make_result(), "Send it?", approvers=["ana"], content="My name is Weber.")
        await approvals.decide(ident, "ana", True)
        await asyncio.sleep(0.01)
        again = Approvals(ledger, keep_for=1e-3)
        await again.list()
        assert (await again.get(ident)).content is None

    run(make_url(tmp_path), work)


def test_without_a_time_nothing_is_deleted(tmp_path: Path):
    """And it is said that nothing was."""

    async def work(approvals: Approvals) -> tuple[int, str | None]:
        ident = await approvals.request(make_result(), "Send it?", approvers=["ana"], content="My name is Weber.")
        await approvals.decide(ident, "ana", True)
        return await approvals.forget_due(), (await approvals.get(ident)).message

    assert use(make_url(tmp_path), work) == (0, "Send it?")


def test_a_request_is_announced_when_it_is_made(tmp_path: Path):
    """Before anybody has decided anything."""
    receiver = Receiver()

    async def work(approvals: Approvals) -> None:
        await approvals.request(make_result(), "Send it?", approvers=["ana"])

    deliver(tmp_path, receiver, work)

    assert receiver.events == [("approval.requested", "open")]


def test_what_nobody_decided_is_an_empty_list(tmp_path: Path):
    """Also where nobody was ever asked."""

    async def work(approvals: Approvals) -> tuple[tuple[str, ...], int]:
        await approvals.ledger.append({"passed": 1}, kind="run")
        return await approvals.list_decided("ana")

    assert use(make_url(tmp_path), work) == ((), 0)


@pytest.mark.parametrize("is_given", [True, False])
def test_the_ledger_that_they_opened_is_closed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_given: bool
):
    """Whoever hands in a ledger goes on with it."""
    closed: list[Ledger] = []

    async def close(ledger: Ledger) -> None:
        closed.append(ledger)

    ledger = Ledger(make_url(tmp_path))
    approvals = Approvals(ledger if is_given else make_url(tmp_path))
    monkeypatch.setattr(Ledger, "aclose", close)
    asyncio.run(approvals.aclose())

    assert closed == ([] if is_given else [approvals.ledger])
