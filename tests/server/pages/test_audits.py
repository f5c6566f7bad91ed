"""The pages of audits: what went through is shown without the judge, and an answer is counted by the monitor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge import Approvals, Client, Ledger
from adjudge.guards import digest_shown
from kit.approval_pages import CONFIG, list_queue, make_request
from kit.audited import Reporting, make_gate
from kit.markup import Reader
from kit.server import RunningServer, find_token, read_fields, run_server

pytestmark = pytest.mark.timed

AUDITED = """
[gates.answers]
rubric = "correctness"
judge = "ollama:llama3"
audit = {share = 0.02, promise = 0.1, approvers = ["Ana"]}
"""

HOSTILE = "</pre><script>alert(1)</script>"


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("server"), config=CONFIG + AUDITED) as running:
        running.add_account("Ana", "approve", "read")
        running.add_account("Ben", "approve")
        running.add_account("Gil", "read", gates=["replies"])
        yield running


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


def let_through(server: RunningServer, content: str = "The content.", **options: Any) -> str:
    """The id of the audit of a content that a judge lets through."""

    async def work(ledger: Ledger) -> str:
        async with Approvals(ledger) as approvals:
            gate = make_gate(ledger, approvals, Reporting(), ask={"approvers": ["Ana"]}, **{"audit": 1.0} | options)
            assert await gate.check(content, task="Answer the customer.")
            return (await approvals.list(audits=True))[-1].id

    return server.change(work)


def read(client: Any, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def read_words(page: str) -> str:
    return " ".join(Reader(page).text.split())


def answer_form(client: Any, ident: str, answer: str, **more: str) -> Any:
    """Fill in the form of an audit's page, as a browser without scripts does, and send it."""
    page = read(client, f"/audits/{ident}")
    form = re.search(r'<form class="stack".*?</form>', page, re.DOTALL)
    assert form is not None
    fields = read_fields(client, form[0])
    return client.post(f"/audits/{ident}/answer", data=fields | {"answer": answer} | more)


def test_an_audit_shows_what_went_through_and_nothing_of_the_judge(server: RunningServer, ana: Any):
    """Content, task and the exact bytes; a text that looks like markup is a text."""
    ident = let_through(server, f"The content. {HOSTILE}")
    page = read(ana, f"/audits/{ident}")
    words = read_words(page)

    assert "What went through" in words
    assert f"The content. {HOSTILE}" in words
    assert "Answer the customer." in words
    assert "What the judge thinks." not in page
    assert HOSTILE not in page
    assert ana.get(f"/audits/{ident}/content").text == f"The content. {HOSTILE}"


def test_an_audit_is_in_no_queue_of_approvals_and_not_in_the_number_of_what_waits(server: RunningServer, ana: Any):
    """Each has its own page, and neither opens on the other."""
    before = ana.get("/waiting").json()
    ident = let_through(server)
    request = make_request(server)

    assert ident not in list_queue(read(ana, "/approvals"))
    assert request in list_queue(read(ana, "/approvals"))
    assert ana.get("/waiting").json()["pages"]["/approvals"] == before["pages"]["/approvals"] + 1
    assert ana.get(f"/approvals/{ident}").status_code == 404
    assert ana.get(f"/audits/{request}").status_code == 404


@pytest.mark.parametrize(("answer", "bad"), [("right", 0), ("stop", 1)])
def test_an_answer_is_kept_can_be_taken_back_and_is_counted(server: RunningServer, ana: Any, answer: str, bad: int):
    """The next audit follows; the answer counts once it can no longer be undone."""
    ident = let_through(server)
    sent = answer_form(ana, ident, answer, reason="I looked")

    assert sent.status_code == 303
    assert "take it back" in read(ana, sent.headers["location"])
    token = find_token(ana, f"/audits/{ident}")
    assert ana.post(f"/audits/{ident}/undo", data={"csrf_token": token}).status_code == 303
    assert answer_form(ana, ident, answer).status_code == 303
    votes = server.change(lambda ledger: read_votes(ledger, ident))
    assert [vote.approved for vote in votes] == [not bad]


async def read_votes(ledger: Ledger, ident: str) -> Any:
    async with Approvals(ledger) as approvals:
        return (await approvals.get(ident)).pending_votes


def test_what_the_page_did_not_show_cannot_be_answered(server: RunningServer, ana: Any):
    """Either answer says what was shown: a label of something else would be none."""
    ident = let_through(server)

    for answer in ("right", "stop"):
        assert answer_form(ana, ident, answer, seen="").status_code == 409
        assert answer_form(ana, ident, answer, seen="0" * 64).status_code == 409


def test_a_long_content_can_be_answered_once_every_part_of_it_was_shown(server: RunningServer, ana: Any):
    """Its page shows a part at a time, and which parts were shown is kept for this audit."""
    audit = let_through(server, "A line of a long text.\n" * 30_000)
    path = f"/audits/{audit}"
    assert 'name="seen"' not in read(ana, path)

    number, page = 1, read(ana, f"{path}?whole=true")
    while f"part=content.{number + 1}" in page:
        number += 1
        page = read(ana, f"{path}?part=content.{number}")

    assert number > 1
    assert 'name="seen"' in page


def test_somebody_who_is_not_asked_sees_no_audit(server: RunningServer):
    """As with requests: the page says nothing of what is not for them."""
    ident = let_through(server)
    ben = server.sign_in("Ben")

    assert ben.get(f"/audits/{ident}").status_code == 404
    assert "No audit is for you" in read_words(read(ben, "/audits"))


def test_the_monitor_says_first_what_the_answers_show(server: RunningServer, ana: Any):
    """And what to do; somebody who is limited to other gates does not see it."""
    let_through(server)
    words = read_words(read(ana, "/monitors"))

    assert "Too few audits of gate 'answers' are answered" in words
    assert "What to do: label" in words
    assert "'answers'" not in read_words(read(server.sign_in("Gil"), "/monitors"))


def test_the_overview_says_what_an_alarm_needs(server: RunningServer, ana: Any):
    """Only once there is one: that there are few labels yet needs nobody at once."""
    assert "refunds" not in read_words(read(ana, "/"))

    async def work(ledger: Ledger) -> None:
        async with Approvals(ledger) as approvals:
            gate = make_gate(ledger, approvals).replace(name="refunds")
            for _ in range(8):
                await gate.check("The content.")
                (audit,) = [each for each in await approvals.list(audits=True) if each.gate == "refunds"]
                await approvals.decide(audit.id, "ana", False)

    server.change(work)
    words = read_words(read(ana, "/"))

    assert "refunds: alarm" in words
    assert "8 of 8 audits should have been stopped." in words


def test_the_overview_says_what_to_do_where_nothing_bad_was_found(server: RunningServer, ana: Any):
    """Another model answers: the audits so far have no bad one, and are not the reason."""

    async def work(ledger: Ledger) -> None:
        async with Approvals(ledger) as approvals:
            for model in ("m-1", "m-2"):
                gate = make_gate(ledger, approvals, Reporting(model)).replace(name="returns")
                await gate.check("The content.")

    server.change(work)
    words = read_words(read(ana, "/"))

    assert "returns: model changed" in words
    assert re.search(r"Label [0-9,]+ more of what it lets through; 2 audits are open\.", words)
    assert "0 of 0 audits" not in words


def test_programs_find_and_answer_audits_over_http(server: RunningServer):
    """In the list of audits alone, and without anything of what the judge said."""
    ident = let_through(server, "Over HTTP.")
    key = server.make_key("approve", approver="Ana")
    client = server.open_client(key=key)

    assert ident not in [row["id"] for row in client.get("/v1/approvals", params={"status": "all"}).json()["approvals"]]
    rows = client.get("/v1/approvals", params={"audits": "true"}).json()["approvals"]
    assert ident in [row["id"] for row in rows]
    audit = client.get(f"/v1/approvals/{ident}").json()
    assert (audit["content"], audit["result"], audit["score"], audit["reason"]) == ("Over HTTP.", None, None, "")
    # They would tell one that was planted: its result is as old as it is.
    for members in (audit, rows[-1]):
        assert (members["result_id"], members["seq"]) == ("", None)
    assert digest_shown(Client(server.url, key=key).approvals().get_sync(ident)) == audit["shown"]
    vote = {"approved": True, "seen": audit["shown"]}
    assert client.post(f"/v1/approvals/{ident}/votes", json=vote).json()["status"] == "approved"
