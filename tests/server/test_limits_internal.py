"""What a server's pages and a client do beyond a limit; the limits are made small here."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from adjudge import ServerError
from adjudge.client.connection import Connection
from adjudge.client.ledger import RemoteLedger
from adjudge.server.pages import results
from kit import server_demo
from kit.answering import HEAD, answering
from kit.patience import HANG
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
    every = client.get("/v1/results?when=all").json()["total"]
    seen, address = [], "/results?when=all"
    while address:
        page = client.get(address).text
        places = [int(place) for place in re.findall(r'<a class="row cut-line"[^>]*href="/results/(\d+)"', page)]
        assert f"{every} found" in page
        assert every > 40 >= len(places)
        seen += places
        older = re.search(r'rel="next" href="([^"]+)"', page)
        address = "" if older is None else unescape(older[1])

    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == every


def test_every_result_is_reached_by_a_program(server: RunningServer):
    """By the same filters, from one page to the next, until there is none."""
    client = server.open_client(key=server.make_key("read"))
    seen, before, query = [], None, {"when": "all", "limit": 20, "gate": "refunds"}
    while True:
        answer = client.get("/v1/results", params=query | ({} if before is None else {"before": before})).json()
        seen += [row["seq"] for row in answer["results"]]
        before = answer["next"]
        if before is None:
            break
        assert len(answer["results"]) == 20

    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == answer["total"] == sum(answer["counts"].values()) > 20


@pytest.mark.slow
def test_an_export_may_be_larger_than_an_answer(tmp_path: Path):
    """It goes to the file piece by piece, so only what is read into memory has a limit."""
    place = tmp_path / "ledger.jsonl"
    with answering((200, HEAD, b"[" + b" " * 5_000_000 + b"]"), verb="GET") as (url, _):
        connection = Connection(url, key=None, timeout=HANG, largest_answer=1_000)
        remote = RemoteLedger(connection=connection)
        assert remote.export_sync(place).seq == 1
        with pytest.raises(ServerError, match="1,000"):
            remote.head_sync()
        asyncio.run(connection.aclose())

    assert place.stat().st_size == 5_000_002
    assert place.stat().st_mode & 0o077 == 0
