"""Signed links to a request: what makes one is looked at from inside, for only a server prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adjudge import Ledger
from adjudge.server.database import make_tables
from adjudge.server.links import make_link
from kit.approval_pages import CONFIG, make_request
from kit.server import run, run_server

pytestmark = pytest.mark.timed


def test_a_link_of_another_server_opens_nothing(tmp_path: Path):
    """It is signed with that server's secret, for the same request and time."""
    until = datetime.now(UTC) + timedelta(hours=1)
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana")
        ident = make_request(server)

        async def make(ledger: Ledger) -> str:
            await ledger.transact(lambda _: None, tables=make_tables())
            return await make_link(ledger, "", ident, until=until)

        async def make_elsewhere() -> str:
            async with Ledger(f"sqlite:///{tmp_path / 'other.db'}") as other:
                return await make(other)

        own, foreign = server.change(make), run(make_elsewhere())
        client = server.sign_in("Ana")

        assert client.get(own).status_code == 200
        assert client.get(foreign).status_code == 403
