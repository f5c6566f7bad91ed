"""What a team does in a day, once, with the server's ledger, keys, accounts and sessions in PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import Approvals, Client
from kit import ledgers
from kit.approval_pages import list_queue
from kit.server import CONFIG, find_token, run_server

pytestmark = pytest.mark.integration


LONG = "x" * 41


@pytest.fixture(name="postgres")
def make_postgres(require: Any):
    with ledgers.open_schema(require) as url:
        yield url


def test_people_and_programs_share_a_server_on_postgresql(tmp_path, postgres):
    """Sign in, hold back, approve by the page's server, resume, read and verify the ledger, sign out."""
    with run_server(tmp_path, CONFIG.replace("sqlite:///adjudge.db", postgres), ledger=postgres) as server:
        server.add_account("Ana")
        browser = server.sign_in("Ana")
        assert browser.get("/ledger").status_code == 200

        program = Client(server.url, key=server.make_key("judge", "read"))
        gate = program.gate("held")
        assert gate.check_sync("short").allowed is True
        waits = gate.check_sync(LONG)
        assert (waits.pending, waits.allowed) == (True, False)

        shown = browser.get(f"/v1/approvals/{waits.approval_id}").json()["shown"]
        vote = {"approved": True, "reason": "It is fine.", "seen": shown}
        token = {"x-csrf-token": find_token(browser, "/ledger")}
        voted = browser.post(f"/v1/approvals/{waits.approval_id}/votes", json=vote, headers=token)
        assert (voted.status_code, voted.json()["status"]) == (200, "approved")
        assert gate.resume_sync(waits, content=LONG).allowed is True

        ledger = program.ledger()
        head = ledger.head_sync()
        assert ledger.verify_sync(head).valid is True
        kinds = [entry.kind for entry in ledger.query_sync()]
        assert kinds.count("decision") == 3
        assert (browser.get("/").status_code, browser.get("/approvals").status_code) == (200, 200)
        assert browser.get("/ledger").status_code == 200
        assert "<b>Ana</b> approved" in browser.get(f"/results/{waits.id}").text
        document = browser.get(f"/v1/results/{waits.id}").json()
        assert "approval.voted" in [entry["kind"] for entry in document["entries"]]
        assert browser.get("/results/unknown").status_code == 404
        listed = browser.get("/v1/results?gate=held").json()
        assert [row["people"] for row in listed["results"] if row["approval_id"]] == [["Ana"]]
        assert listed["counts"] == {"passed": 1, "failed": 1, "undecided": 0, "held": 0}

        out = browser.post("/signout", data={"csrf_token": token["x-csrf-token"]})
        assert (out.status_code, browser.get("/v1/results").status_code) == (303, 401)
        program.close()

    assert ledgers.verify(postgres)


def test_the_queue_of_approvals_is_read_from_postgresql(tmp_path, postgres):
    """The next to expire first, what is new since the page was made, and nothing of what the database cannot hold."""
    with run_server(tmp_path, CONFIG.replace("sqlite:///adjudge.db", postgres), ledger=postgres) as server:
        server.add_account("Ana")
        browser = server.sign_in("Ana")
        program = Client(server.url, key=server.make_key("judge"))
        held = [program.gate("held").check_sync(f"{LONG}{number}").approval_id for number in range(3)]
        program.close()
        page = browser.get("/approvals").text

        assert list_queue(page) == held
        assert "3 wait, 3 of them for you" in page
        assert "2 new" in browser.get(f"/approvals/news?after={held[0]}").text
        assert browser.get("/approvals/news?after=%00").status_code == 422
        assert "3 wait for a person" in browser.get("/").text
        ids = server.change(lambda ledger: Approvals(ledger).summarise(["\0", held[2]]))
        assert [item.id for item in ids] == [held[2]]
