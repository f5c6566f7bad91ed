"""Forms on plain http: the cookie of a session alone decides nothing, because every port of the host gets it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from adjudge.server import set_password
from kit.approval_pages import CONFIG, decide, make_request, read_approval, send
from kit.server import PASSWORD, RunningServer, find_token, read_fields, run_server

pytestmark = pytest.mark.timed

httpx = pytest.importorskip("httpx")


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("server"), config=CONFIG) as running:
        for name in ("Ana", "Ben", "Noa", "Gus"):
            running.add_account(name)
        yield running


def copy_cookies(server: RunningServer, client: httpx.Client) -> httpx.Client:
    """A program that has the session's cookies and nothing else, as every other port of the host can have them."""
    return server.open_browser(cookies=dict(client.cookies))


@pytest.mark.parametrize("has_scripts", [True, False])
def test_who_has_the_cookie_reads_and_decides_nothing(server: RunningServer, has_scripts: bool):
    """Not with the token that the pages hold, not over /v1, and not with an invented key."""
    ident = make_request(server)
    thief = copy_cookies(server, server.sign_in("Ana", has_scripts=has_scripts))
    fields = read_fields(thief, thief.get(f"/approvals/{ident}").text)
    shown = thief.get(f"/v1/approvals/{ident}").json()["shown"]
    body = {"approved": True, "reason": "fine", "seen": shown}
    for token in (fields["csrf_token"], f"{fields['csrf_token']}.", f"{fields['csrf_token']}.{'k' * 43}"):
        form = fields | {"csrf_token": token, "vote": "approve", "reason": "fine"}
        assert thief.post(f"/approvals/{ident}/decide", data=form).status_code == 403
        headers = {"X-CSRF-Token": token}
        assert thief.post(f"/v1/approvals/{ident}/votes", json=body, headers=headers).status_code == 403
        assert thief.post("/approvals/deny", data={"csrf_token": token, "ids": ident}).status_code == 403
    assert (read_approval(server, ident).votes, read_approval(server, ident).pending_votes) == ((), ())


def test_no_page_holds_the_key(server: RunningServer):
    """Whoever has the cookie could read it there."""
    ana, ident = server.sign_in("Ana"), make_request(server)
    key = find_token(ana, "/").partition(".")[2]

    assert len(key) == 43
    for path in ("/", "/approvals", f"/approvals/{ident}", "/ledger", "/signin", f"/v1/approvals/{ident}"):
        answer = ana.get(path)
        assert key not in answer.text + repr(answer.headers)


def test_the_browser_that_signed_in_decides(server: RunningServer):
    """With its key; the key of another session of the same account is not that one."""
    ident, other = make_request(server), server.sign_in("Ana")
    ana = server.sign_in("Ana")
    key = find_token(other, "/").partition(".")[2]
    mixed = f"{find_token(ana, '/').partition('.')[0]}.{key}"

    assert send(ana, ident, "approve", "fine", csrf_token=mixed).status_code == 403
    assert send(ana, ident, "approve", "fine").status_code == 303
    assert [vote.by for vote in read_approval(server, ident).pending_votes] == ["Ana"]


def test_without_scripts_a_form_is_sent_again_with_the_password(server: RunningServer):
    """The page that asks for it has all that was sent, shows what that is, and nothing is recorded before."""
    ident, ana = make_request(server), server.sign_in("Ana", has_scripts=False)
    asked = send(ana, ident, "deny", "It promises\r\na day. <b>")
    assert asked.status_code == 403
    assert read_approval(server, ident).pending_votes == ()
    assert "It promises\na day. &lt;b&gt;</textarea>" in asked.text
    assert f'The form sends <b dir="auto">deny</b> to <code dir="auto">/approvals/{ident}/decide</code>.' in asked.text

    wrong = send_again(ana, asked.text, "wrong")
    assert (wrong.status_code, "The password is not that of your account" in wrong.text) == (403, True)
    assert read_approval(server, ident).pending_votes == ()

    assert send_again(ana, wrong.text, PASSWORD).status_code == 303
    [pending] = read_approval(server, ident).pending_votes
    assert (pending.by, pending.approved, pending.reason) == ("Ana", False, "It promises\na day. <b>")


def send_again(client: Any, page: str, password: str) -> Any:
    """Fill in the form that asks for the password, and send it."""
    form = re.search(r'<form class="stack form-narrow" method="post" action="([^"]+)">.*?</form>', page, re.DOTALL)
    assert form is not None
    fields = {
        name: value.replace("&lt;", "<").replace("&gt;", ">") for name, value in read_fields(client, form[0]).items()
    }
    return client.post(form[1], data=fields | {"session_password": password})


def test_a_password_is_that_of_the_session_s_account(server: RunningServer):
    """Another account's is refused, however right it is for that one."""
    server.add_account("Ria")
    other = "another password, a longer one"
    server.change(lambda ledger: set_password(ledger, "Ria", other))
    ident, ana = make_request(server), server.sign_in("Ana", has_scripts=False)
    assert server.sign_in("Ria", other).get("/v1/results").status_code == 200

    assert send(ana, ident, "deny", session_password=other).status_code == 403
    assert read_approval(server, ident).pending_votes == ()
    assert send(ana, ident, "deny", session_password=PASSWORD).status_code == 303


def test_a_program_is_told_what_is_wrong_as_json(server: RunningServer):
    """It is asked for no password: it has the token, or a key of its own."""
    ident, noa = make_request(server), server.sign_in("Noa", has_scripts=False)
    fields = read_fields(noa, noa.get(f"/approvals/{ident}").text) | {"vote": "deny"}
    program = server.open_client(cookies=dict(noa.cookies))
    answer = program.post(f"/approvals/{ident}/decide", data=fields)

    assert (answer.status_code, answer.json()["code"]) == (403, "csrf")


def test_guessing_the_password_is_slowed_down(server: RunningServer):
    """As it is when signing in: with the cookie alone one could guess without end otherwise."""
    gus = copy_cookies(server, server.sign_in("Gus"))
    answers = [
        gus.post("/approvals/deny", data={"csrf_token": "x", "session_password": f"guess {number}"})
        for number in range(7)
    ]

    assert [answer.status_code for answer in answers] == [403] * 5 + [429] * 2
    assert ("Too many attempts" in answers[-1].text, int(answers[-1].headers["retry-after"]) > 0) == (True, True)
    assert "Password of Gus" in answers[-1].text  # what was written is there to be sent later


def test_what_records_nothing_needs_no_password(server: RunningServer):
    """To see more, to choose colours, to sign out: the token of the page is enough, and is needed."""
    ident, ben = make_request(server), server.sign_in("Ben", has_scripts=False)
    token = find_token(ben, f"/approvals/{ident}")
    wanted = {"/theme": 303, "/keyboard": 303, "/times": 303, f"/approvals/{ident}": 200, "/approvals/judge": 303}
    wanted |= {"/ledger/verify": 303}

    for path, status in wanted.items():
        assert ben.post(path, data={"csrf_token": "x", "judge": "show"}).status_code == 403
        assert ben.post(path, data={"csrf_token": token, "judge": "show"}).status_code == status
    assert ben.post("/signout", data={"csrf_token": token}).status_code == 303
    assert ben.get("/v1/results").status_code == 401


def test_a_vote_that_was_meant_for_another_session_is_not_cast(server: RunningServer):
    """A tab that was opened before somebody else signed in there shows the other's name."""
    ident, ana, ben = make_request(server), server.sign_in("Ana"), server.sign_in("Ben")
    page = ana.get(f"/approvals/{ident}").text
    key = find_token(ben, "/").partition(".")[2]
    token = f"{read_fields(ana, page)['csrf_token'].partition('.')[0]}.{key}"

    assert send(ben, ident, "approve", "fine", csrf_token=token).status_code == 403
    decide(server, ident, "Ana", False)


def test_over_https_the_page_holds_the_whole_token(tmp_path: Any):
    """A browser sends that cookie to no plain port, so scripts are not needed, and no password is taken in place."""
    config = CONFIG.replace("[server]", '[server]\npublic_url = "https://adjudge.example"', 1)
    with run_server(tmp_path, config=config) as running:
        running.add_account("Ana")
        browser = running.open_client(headers={"Accept": "text/html", "Host": "adjudge.example"})
        page = browser.get("/signin")
        planted = page.headers["set-cookie"].partition(";")[0]
        form = read_fields(browser, page.text) | {"name": "Ana", "password": PASSWORD, "browser_key": "k" * 43}
        cookies = browser.post("/signin", data=form, headers={"Cookie": planted}).headers.get_list("set-cookie")
        session = next(cookie for cookie in cookies if cookie.startswith("__Host-adjudge="))
        headers = {"Accept": "text/html", "Host": "adjudge.example", "Cookie": session.partition(";")[0]}
        client = running.open_client(headers=headers)
        ident = make_request(running)
        refused = send(client, ident, "deny", csrf_token="x", session_password=PASSWORD)
        taken = send(client, ident, "deny")

        assert 'name="browser_key"' not in page.text
        assert {"HttpOnly", "SameSite=lax", "Path=/", "Secure"} <= {part.strip() for part in session.split(";")}
        assert (refused.status_code, "session_password" in refused.text) == (403, False)
        assert taken.status_code == 303


@pytest.mark.parametrize("url", ["https://127.0.0.1:8443", "https://localhost", "https://adjudge.localhost"])
def test_over_https_at_a_name_of_this_machine_the_key_is_needed_too(tmp_path: Any, url: str):
    """There a browser sends a secure cookie to ports of plain http as well."""
    config = CONFIG.replace("[server]", f'[server]\npublic_url = "{url}"', 1)
    with run_server(tmp_path, config=config) as running:
        host = url.removeprefix("https://").partition(":")[0]
        page = running.open_browser().get("/signin", headers={"Host": host})

        assert 'name="browser_key"' in page.text


def test_a_session_without_a_key_ends_where_one_is_needed(server: RunningServer):
    """One that was begun under another configuration: its cookie alone would decide."""
    ana = server.sign_in("Ana")
    assert ana.get("/v1/results").status_code == 200
    with closing(sqlite3.connect(server.folder / "adjudge.db")) as database:
        token = "substr(csrf_token, 1, instr(csrf_token, '.') - 1)"
        assert database.execute(f"UPDATE adjudge_server_sessions SET csrf_token = {token}").rowcount > 0
        database.commit()

    assert ana.get("/v1/results").status_code == 401


@pytest.mark.parametrize("has_session", [True, False])
def test_a_broken_form_is_an_error_of_its_sender(server: RunningServer, has_session: bool):
    """Not of the server, whoever sends it."""
    client = server.sign_in("Ana") if has_session else server.open_browser()
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/approvals/some-id/decide", content=b"--x\r\nno header", headers=headers)

    assert answer.status_code in (400, 401, 403)
