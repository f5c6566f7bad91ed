"""A clock that is set back opens nothing again, for other processes either: the ledger shows that time has passed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate, Ledger
from adjudge.errors import DecisionRefused
from adjudge.server.keys import create_key, find_key, rotate_key
from adjudge.server.permissions import Permissions
from kit.approvals import WHO, make_result
from kit.ledgers import STORES, open_store
from kit.patience import HANG


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


@contextmanager
def later(monkeypatch: Any, seconds: float) -> Iterator[None]:
    """The ledger of a machine whose clock goes ahead; after that it is set back."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(seconds=seconds)

    with monkeypatch.context() as patch:
        patch.setattr("adjudge.ledger.store.datetime", Ahead)
        yield


async def write_something(url: str) -> None:
    async with Ledger(url) as ledger:
        await ledger.append(make_result(), gate="another")


async def look(approvals: Approvals, way: str, ident: str) -> Any:
    """Whether a request can still be decided, by one of the ways to find out."""
    if way == "decide":
        with pytest.raises(DecisionRefused) as caught:
            await approvals.decide(ident, "ana", True, "It is fine.")
        assert caught.value.because == "expired"
        return False
    if way == "get":
        return (await approvals.get(ident)).status == "open"
    if way == "queue":
        return ident in [item.id for item in await approvals.list_queue()]
    if way == "count":
        return bool(await approvals.count_open("ana"))
    if way == "wait":
        return (await asyncio.wait_for(approvals.wait(ident), HANG)).approved
    return ident in [item.id for item in await approvals.list()]


@pytest.mark.slow_table
@pytest.mark.parametrize("way", ["decide", "get", "queue", "count", "wait", "list"])
@pytest.mark.parametrize("same_object", [False, True], ids=["fresh", "same"])
def test_what_expired_while_others_wrote_is_closed(url: str, way: str, same_object: bool, monkeypatch: Any):
    """Nobody looked at it. An entry behind it is dated after its end, and that is enough."""

    async def go() -> Any:
        async with Approvals(url) as first, Approvals(url) as second:
            ident = await first.request(make_result(), "Publish it?", expires_in=60, **WHO)
            with later(monkeypatch, 100):
                await write_something(url)
            is_open = await look(first if same_object else second, way, ident)
            return is_open, (await second.get(ident)).decided_by

    assert asyncio.run(go()) == (False, "policy")


def test_an_entry_before_a_request_does_not_end_it(url: str, monkeypatch: Any):
    """A machine whose clock was a year ahead for once: what is asked afterwards lives as long as it says."""

    async def go() -> Any:
        async with Approvals(url) as approvals:
            with later(monkeypatch, 365 * 86_400):
                await write_something(url)
            ident = await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
            assert [item.id for item in await approvals.list_queue()] == [ident]
            held = await approvals.decide(ident, "ana", True, "It is fine.", undo_seconds=30)
            assert held.pending_votes
            await approvals.withdraw(ident, "ana")
            return (await approvals.decide(ident, "ana", True, "It is fine.")).status

    assert asyncio.run(go()) == "approved"


def test_an_entry_before_the_end_changes_nothing(url: str, monkeypatch: Any):
    """Servers whose clocks differ a little."""

    async def go() -> Any:
        async with Approvals(url) as approvals:
            ident = await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
            with later(monkeypatch, 20):
                await write_something(url)
            return await approvals.is_open(ident)

    assert asyncio.run(go()) is True


def test_a_vote_that_was_final_is_not_taken_back(url: str, monkeypatch: Any):
    """Its time to undo was over before the clock was set back; then it counts."""

    async def go() -> Any:
        async with Approvals(url) as approvals:
            ident = await approvals.request(make_result(), "Publish it?", **WHO)
            await approvals.decide(ident, "ana", False, "No.", undo_seconds=30)
            with later(monkeypatch, 100):
                await write_something(url)
            assert await approvals.list_undoable("ana") == ()
            with pytest.raises(DecisionRefused) as caught:
                await approvals.withdraw(ident, "ana")
            return caught.value.because, (await approvals.get(ident)).status

    assert asyncio.run(go()) == ("final", "denied")


@pytest.mark.slow_table
@pytest.mark.parametrize("seen", ["another request", "the queue", "a count", "a decision"])
def test_what_somebody_saw_expire_is_closed_for_others(url: str, seen: str):
    """With any clock: where something else was asked for while its time was over, that is written down."""
    now = datetime(2030, 1, 1, tzinfo=UTC)

    async def go() -> Any:
        async with Approvals(url, clock=lambda: now) as approvals:
            ident = await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
            other = await approvals.request(make_result(), "And this?", **WHO)
        async with Approvals(url, clock=lambda: now + timedelta(seconds=100)) as approvals:
            if seen == "another request":
                await approvals.request(make_result(), "And that?", **WHO)
            elif seen == "the queue":
                await approvals.list_queue()
            elif seen == "a count":
                await approvals.count_open("ana")
            else:
                await approvals.decide(other, "ana", False, "No.")
        async with Approvals(url, clock=lambda: now) as approvals:
            return await approvals.is_open(ident)

    assert asyncio.run(go()) is False


@pytest.mark.parametrize("is_swept", [True, False], ids=["closed when due", "left alone"])
def test_only_what_was_written_down_is_over_for_another_process(url: str, is_swept: bool):
    """Nobody looked while its time was over, and nothing was written: ``close_due`` alone writes it down."""
    now = datetime(2030, 1, 1, tzinfo=UTC)

    async def go() -> Any:
        async with Approvals(url, clock=lambda: now) as approvals:
            ident = await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
        async with Approvals(url, clock=lambda: now + timedelta(seconds=100)) as approvals:
            closed = await approvals.close_due() if is_swept else 0
        async with Approvals(url, clock=lambda: now) as approvals:
            return closed, await approvals.is_open(ident)

    assert asyncio.run(go()) == ((1, False) if is_swept else (0, True))


def test_the_search_uses_the_index_of_times(tmp_path: Path):
    """A ledger has millions of entries, and each look at a request asks it."""
    asyncio.run(write_something(f"sqlite:///{tmp_path}/a.db"))
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        query = "SELECT at FROM adjudge_ledger WHERE seq > 1 ORDER BY at DESC LIMIT 1"
        (plan,) = database.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
    assert "INDEX ix_adjudge_ledger_at" in plan[-1]


def test_an_answer_does_not_get_younger(url: str, monkeypatch: Any):
    """``resume_within`` bounds for how long an approval can be used."""

    async def go() -> Any:
        async with Approvals(url) as approvals:
            rules = [{"regex": "x", "absent": True}]
            ask = {"approvers": ["ana"]}
            gate = Gate("refunds", rules=rules, on_failed="ask", ask=ask, wait=False, approvals=approvals)
            held = await gate.check("x")
            await approvals.decide(held.approval_id or "", "ana", True, "It is fine.")
            with later(monkeypatch, 1000):
                await write_something(url)
            approval = await approvals.pending(held.approval_id or "")
            return approval is not None and (approval.answered_for or 0) >= 990

    assert asyncio.run(go())


@pytest.mark.parametrize("ended", ["expired", "replaced"])
def test_a_key_does_not_become_valid_again(url: str, ended: str, monkeypatch: Any):
    """Nobody used it meanwhile; entries show that its time was over."""
    allowed = Permissions(scopes=frozenset({"judge"}))

    async def go() -> Any:
        async with Ledger(url) as ledger:
            await write_something(url)
            now = datetime.now(UTC)
            ends = now + timedelta(seconds=60)
            key, text = await create_key(
                ledger, name="ci", permissions=allowed, expires_at=ends if ended == "expired" else None
            )
            if ended == "replaced":
                await rotate_key(ledger, key.prefix, old_until=ends)
            _, other = await create_key(ledger, name="other", permissions=allowed)
            before = [await find_key(ledger, one) is not None for one in (text, other)]
            with later(monkeypatch, 100):
                await write_something(url)
            return before, [await find_key(ledger, one) is not None for one in (text, other)]

    assert asyncio.run(go()) == ([True, True], [False, True])
