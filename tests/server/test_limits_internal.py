"""What a server's pages and a client do beyond a limit; the limits are made small here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge import ServerError
from adjudge.client.connection import Connection
from adjudge.client.ledger import RemoteLedger
from adjudge.server.pages import ledger, results
from kit import server_demo
from kit.answering import HEAD, answering
from kit.server import RunningServer, run_server

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module", name="server")
def provide_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Three days of decisions, one with a whole story."""
    folder = tmp_path_factory.mktemp("limits")
    asyncio.run(server_demo.fill_ledger(folder, days=3, a_day=40))
    asyncio.run(server_demo.tell_story(folder))
    with run_server(folder, server_demo.CONFIG) as running:
        running.add_account("Ana")
        yield running


@pytest.mark.slow
def test_every_result_is_reached_page_by_page(server: RunningServer, monkeypatch: pytest.MonkeyPatch):
    """However many there are, each page has the figures of all of them, and leads to the older ones until the last."""
    client = server.sign_in("Ana")
    monkeypatch.setattr(results, "ON_PAGE", 40)
    every = client.get("/results.json?when=all").json()["found"]
    seen, address = [], "?when=all"
    while address:
        view = client.get(f"/results.json{address}").json()
        assert view["found"] == every > 40 >= len(view["rows"])
        seen += [row["seq"] for row in view["rows"]]
        address = view["older"]

    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == every


def test_the_filters_of_the_ledger_lead_to_its_first_entry(server: RunningServer, monkeypatch: pytest.MonkeyPatch):
    """However rare what they let through is: each page leads on to the next one, and the last page says that it is."""
    client = server.sign_in("Ana")
    monkeypatch.setattr(ledger, "ON_PAGE", 8)
    seen, address = [], "?gate=refunds&kind=decision"
    while address:
        view = client.get(f"/ledger.json{address}").json()
        seen += [row["seq"] for row in view["rows"]]
        assert all(row["says"].startswith("refunds") for row in view["rows"])
        address = view["older"]
    subject = client.get(f"/ledger/{seen[-1]}.json").json()["entry"]["subject"]
    about = client.get(f"/ledger.json?subject=sha256:{subject.upper()[:12]}").json()["rows"]

    assert len(seen) > 8
    assert seen == sorted(set(seen), reverse=True)
    assert seen[-1] in {row["seq"] for row in about}
    assert client.get("/ledger.json?subject=%25").json()["rows"] == []


def test_an_export_may_be_larger_than_an_answer(tmp_path: Path):
    """It goes to the file piece by piece, so only what is read into memory has a limit."""
    place = tmp_path / "ledger.jsonl"
    with answering((200, HEAD, b"[" + b" " * 5_000_000 + b"]"), verb="GET") as (url, _):
        connection = Connection(url, key=None, timeout=5.0, largest_answer=1_000)
        remote = RemoteLedger(connection=connection)
        assert remote.export_sync(place).seq == 1
        with pytest.raises(ServerError, match="1,000"):
            remote.head_sync()
        asyncio.run(connection.aclose())

    assert place.stat().st_size == 5_000_002
    assert place.stat().st_mode & 0o077 == 0
