"""Signing in to the server's pages."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from adjudge import Ledger
from adjudge.server import ACCOUNT_SCOPES, add_account, make_permissions
from kit.server import PASSWORD, find_token, run_server

pytestmark = pytest.mark.timed


IDLE, LIFETIME = timedelta(hours=1), timedelta(hours=12)
"""When a session ends, where the configuration says nothing."""


def pass_time(server, client, *, begun, seen):
    """Let a session have begun, and been used, so long ago: what a clock that went on would come to."""
    page = client.get("/v1/results")
    assert page.status_code == 200, page.text
    times = [(datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for ago in (begun, seen)]
    with closing(sqlite3.connect(server.folder / "adjudge.db")) as database:
        changed = database.execute("UPDATE adjudge_server_sessions SET created_at = ?, seen_at = ?", times).rowcount
        database.commit()
    assert changed > 0


def count_sessions(server):
    """How many sessions are stored."""
    with closing(sqlite3.connect(server.folder / "adjudge.db")) as database:
        return database.execute("SELECT count(*) FROM adjudge_server_sessions").fetchone()[0]


def test_a_password_is_kept_so_that_guessing_it_is_dear(tmp_path):
    """Argon2id with 64 MiB and three passes, as RFC 9106 has it; the servers of these tests alone take less."""

    async def do():
        async with Ledger(f"sqlite:///{tmp_path / 'adjudge.db'}") as ledger:
            permissions = make_permissions(ACCOUNT_SCOPES, approver="Ana", rater="Ana")
            await add_account(ledger, name="Ana", password=PASSWORD, permissions=permissions)

    asyncio.run(do())
    with closing(sqlite3.connect(tmp_path / "adjudge.db")) as database:
        columns = [name for _, name, *_ in database.execute("PRAGMA table_info(adjudge_server_accounts)")]
        row = dict(zip(columns, database.execute("SELECT * FROM adjudge_server_accounts").fetchone(), strict=True))

    assert [text for text in row.values() if str(text).startswith("$argon2id$v=19$m=65536,t=3,p=4$")] != []
    assert PASSWORD not in str(row)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_server(tmp_path_factory.mktemp("server")) as running:
        running.add_account("Ana")
        yield running


def test_somebody_signs_in_looks_and_signs_out(server):
    """The right password begins a session, and signing out ends it for every copy of its cookie."""
    client = server.sign_in("Ana")
    page = client.get("/ledger")
    assert (page.status_code, "<h1>Ledger</h1>" in page.text) == (200, True)

    copy = server.open_client(cookies=dict(client.cookies))
    assert copy.get("/v1/results").status_code == 200

    answer = client.post("/signout", data={"csrf_token": find_token(client, "/ledger")})
    assert (answer.status_code, answer.headers["location"]) == (303, "/signin")
    assert copy.get("/v1/results").status_code == 401


def test_a_page_without_a_session_leads_to_the_sign_in_and_back(server):
    """Who is not signed in is asked to, and goes on to where they wanted to go."""
    answer = server.open_browser().get("/ledger?a=1")

    assert (answer.status_code, answer.headers["location"]) == (303, "/signin?next=/ledger%3Fa%3D1")


def test_a_form_that_is_sent_after_the_session_ended_loses_no_text(server):
    """A page says so, shows what was written, and leads to the sign-in and back; nothing that is secret is shown."""
    client = server.sign_in("Ana")
    form = {"csrf_token": "old-token", "vote": "deny", "reason": "</textarea><b>It is late.", "password": "secret"}
    pass_time(server, client, begun=2 * IDLE, seen=IDLE + MINUTE)
    came = {"Referer": f"{server.url}/approvals/some-id?whole=true"}
    answer = client.post("/approvals/some-id/decide", data=form, headers=came)

    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "Your session has ended" in answer.text
    assert "&lt;/textarea&gt;&lt;b&gt;It is late." in answer.text
    assert 'href="/signin?next=/approvals/some-id%3Fwhole%3Dtrue"' in answer.text
    assert not any(hidden in answer.text for hidden in ("old-token", "secret", "</textarea><b>"))
    away = client.post("/signout", headers={"Referer": "https://evil.example//evil.example/x"})
    assert 'href="/signin?next=/"' in away.text


def test_a_program_without_a_key_is_told_so(server):
    """A program gets a problem it can read, and no page."""
    answer = server.open_client().get("/v1/results")

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unauthenticated"


def test_a_wrong_password_begins_no_session(server):
    """A wrong password and an unknown name are answered alike."""
    answers = []
    for name in ("Ana", "nobody"):
        client = server.open_client()
        form = {"name": name, "password": "wrong", "csrf_token": find_token(client)}
        answer = client.post("/signin", data=form)
        answers.append((answer.status_code, "adjudge" in answer.cookies, answer.text.count("do not belong together")))

    assert answers == [(403, False, 1)] * 2


def test_a_server_says_that_it_runs_and_is_ready(server):
    """Probes need no key."""
    client = server.open_client()

    assert client.get("/healthz").json() == client.get("/readyz").json() == {"status": "ok"}


SECOND = timedelta(seconds=1)

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("begun", "seen"),
    [
        pytest.param(2 * IDLE, IDLE + MINUTE, id="nobody was there"),
        pytest.param(LIFETIME + MINUTE, SECOND, id="used to the end"),
        pytest.param(-10 * MINUTE, -10 * MINUTE, id="the clock was set back"),
        pytest.param(MINUTE, -10 * MINUTE, id="the clock was set back since it was used"),
        pytest.param(-timedelta(days=400), SECOND, id="begun in another year"),
    ],
)
def test_a_session_ends(server, begun, seen):
    """After a time without use, after its lifetime, and where a clock that was set back could make it last."""
    client = server.sign_in("Ana")
    pass_time(server, client, begun=begun, seen=seen)

    page = client.get("/ledger")
    assert (page.status_code, page.headers["location"]) == (303, "/signin?next=/ledger")
    for path in ("/v1/results", "/v1/gates"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert client.post("/signout", data={"csrf_token": "x"}).status_code == 401
    assert count_sessions(server) == 0  # it does not come back when the clock is right again


@pytest.mark.parametrize(
    ("begun", "seen"),
    [
        pytest.param(2 * IDLE, IDLE - MINUTE, id="used in time"),
        pytest.param(LIFETIME - MINUTE, SECOND, id="before its end"),
        pytest.param(-MINUTE, -MINUTE, id="two servers' clocks differ by a little"),
    ],
)
def test_a_session_goes_on(server, begun, seen):
    """Until one of these times has come; and a request counts as use."""
    client = server.sign_in("Ana")
    pass_time(server, client, begun=begun, seen=seen)

    assert client.get("/ledger").status_code == 200
    with closing(sqlite3.connect(server.folder / "adjudge.db")) as database:
        (used,) = database.execute("SELECT max(seen_at) FROM adjudge_server_sessions").fetchone()
        database.execute("DELETE FROM adjudge_server_sessions")
        database.commit()
    assert abs(datetime.now(UTC) - datetime.fromisoformat(used)) <= 2 * MINUTE


def test_files_of_the_pages_are_kept_and_pages_are_not(server):
    """A file's address changes with the file; a page is of one session, and of one moment."""
    client = server.sign_in("Ana")
    page = client.get("/ledger")
    style = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]

    assert page.headers["cache-control"] == server.open_browser().get("/signin").headers["cache-control"] == "no-store"
    assert client.get(style).headers["cache-control"] == "public, max-age=31536000, immutable"
    assert client.get("/static/000000000000/style.css").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/signin", "/ledger", "/v1/results", "/static/000000000000/style.css", "/v1/gates"])
def test_head_is_get_without_the_body(server, path):
    """For caches, and for those who check whether an address is there."""
    client = server.sign_in("Ana")
    whole, head = client.get(path), client.head(path)

    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers.get("content-type") == whole.headers.get("content-type")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/healthz", {"GET", "HEAD"}),
        ("/signin", {"GET", "HEAD", "POST"}),
        ("/v1/labels/run/labels", {"GET", "HEAD", "POST"}),
        ("/v1/gates/publish/check", {"POST"}),
    ],
)
def test_a_method_that_is_not_taken_is_answered_with_those_that_are(server, path, allowed):
    """RFC 9110, 15.5.6: ``Allow`` lists every method of the address."""
    answer = server.open_client(key=server.make_key()).request("PATCH", path)

    assert answer.status_code == 405
    assert {name.strip() for name in answer.headers["allow"].split(",")} == allowed
