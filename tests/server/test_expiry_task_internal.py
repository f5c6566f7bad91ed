"""A request whose time is over is closed by the server itself: nobody has to ask for a page, and no clock opens it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adjudge.errors import LedgerError
from adjudge.guards.approval.approvals import Approvals
from adjudge.ledger import Entry
from kit.approvals import WHO, make_result, use
from kit.ledgers import find
from kit.patience import wait_for
from kit.server import RunningServer, run_server

pytestmark = pytest.mark.timed


def list_closed(server: RunningServer) -> list[Entry]:
    """The entries about the ends of requests, without a look at any request."""
    return find(server.ledger_url, kind="approval.closed")


def ask(server: RunningServer, minutes: int) -> str:
    """Ask somebody in another process, an hour ago, and give them so many minutes."""
    past = datetime.now(UTC) - timedelta(hours=1)

    async def work(approvals: Approvals) -> str:
        return await approvals.request(make_result(), "Publish it?", expires_in=60 * minutes, **WHO)

    return use(server.ledger_url, work, clock=lambda: past)


def test_what_nobody_looked_at_stays_closed_when_the_clock_is_set_back(tmp_path: Path, monkeypatch: Any):
    """One request is over and is closed once; the other has time left."""
    monkeypatch.setattr("adjudge.server.expiry_task.EVERY", 0.01)
    with run_server(tmp_path) as server:
        over, open_one = ask(server, minutes=1), ask(server, minutes=600)
        wait_for(lambda: list_closed(server))
        past = datetime.now(UTC) - timedelta(hours=1)

        async def look(approvals: Approvals) -> tuple[bool, bool]:
            return await approvals.is_open(over), await approvals.is_open(open_one)

        assert use(server.ledger_url, look, clock=lambda: past) == (False, True)
        (closed,) = list_closed(server)
        assert closed.payload is not None
        assert (closed.payload["status"], closed.payload["decided_by"]) == ("denied", "policy")


def test_a_store_that_fails_once_is_asked_again(tmp_path: Path, monkeypatch: Any):
    """What could not be closed this minute is closed in the next one."""
    monkeypatch.setattr("adjudge.server.expiry_task.EVERY", 0.01)
    close_due, failures = Approvals.close_due, []

    async def fail_first(self: Approvals, **options: Any) -> int:
        if not failures:
            failures.append("away")
            raise LedgerError("the store is away")
        return await close_due(self, **options)

    monkeypatch.setattr(Approvals, "close_due", fail_first)
    with run_server(tmp_path) as server:
        wait_for(lambda: failures)
        ask(server, minutes=1)
        wait_for(lambda: list_closed(server))
