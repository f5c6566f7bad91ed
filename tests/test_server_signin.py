"""Signing in to the server's pages."""

from __future__ import annotations

import pytest

from server_support import find_token, run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_server(tmp_path_factory.mktemp("server")) as running:
        running.add_account("Ana")
        yield running


def test_somebody_signs_in_looks_and_signs_out(server):
    """The right password begins a session, and signing out ends it for every copy of its cookie."""
    client = server.sign_in("Ana")
    page = client.get("/keys")
    assert (page.status_code, "<h1>Keys</h1>" in page.text) == (200, True)

    copy = server.open_client(cookies=dict(client.cookies))
    assert copy.get("/keys.json").status_code == 200

    answer = client.post("/signout", data={"csrf_token": find_token(client, "/keys")})
    assert (answer.status_code, answer.headers["location"]) == (303, "/signin")
    assert copy.get("/keys.json").status_code == 401


def test_a_page_without_a_session_leads_to_the_sign_in_and_back(server):
    """Who is not signed in is asked to, and goes on to where they wanted to go."""
    answer = server.open_browser().get("/keys?a=1")

    assert (answer.status_code, answer.headers["location"]) == (303, "/signin?next=/keys%3Fa%3D1")


def test_a_program_without_a_key_is_told_so(server):
    """A program gets a problem it can read, and no page."""
    answer = server.open_client().get("/keys.json")

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unauthenticated"


def test_a_wrong_password_begins_no_session(server):
    """A wrong password and an unknown name are answered alike."""
    said = []
    for name in ("Ana", "nobody"):
        client = server.open_client()
        form = {"name": name, "password": "wrong", "csrf_token": find_token(client)}
        answer = client.post("/signin", data=form)
        said.append((answer.status_code, "adjudge" in answer.cookies, answer.text.count("do not belong together")))

    assert said == [(403, False, 1)] * 2


def test_the_json_twin_takes_a_key(server):
    """The same view as JSON, for a program with the scope."""
    client = server.open_client(key=server.make_key("admin"))

    assert [row["is_valid"] for row in client.get("/keys.json").json()["keys"]] == [True]


def test_a_server_says_that_it_runs_and_is_ready(server):
    """Probes need no key."""
    client = server.open_client()

    assert client.get("/healthz").json() == client.get("/readyz").json() == {"status": "ok"}
