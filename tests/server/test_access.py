"""Who may do what: keys, scopes, gates, sessions, other sites' requests; each refused with the right status."""

from __future__ import annotations

import json
import re
import socket
import statistics
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

import adjudge.server as serving
from kit.patience import HANG, wait_for
from kit.server import CONFIG, PASSWORD, find_token, hash_dearly, run_server

pytestmark = pytest.mark.timed


LIMITED = (
    CONFIG
    + """
[server]
largest_body = 2_000
deadline = 4.0
session_idle = 1_000
"""
)

BODY = {"content": "short"}

ADDRESSES = [
    ("GET", "/v1/gates"),
    ("POST", "/v1/gates/publish/check"),
    ("POST", "/v1/gates/held/resume"),
    ("GET", "/v1/gates/held/pending"),
    ("GET", "/v1/judges"),
    ("POST", "/v1/evaluate"),
    ("POST", "/v1/firewall/input"),
    ("POST", "/v1/firewall/prompt"),
    ("POST", "/v1/tools/review"),
    ("POST", "/v1/tools/promotion"),
    ("POST", "/v1/tools/reuse"),
    ("POST", "/v1/tools/check"),
    ("POST", "/v1/tools/reopen"),
    ("POST", "/v1/tools/resume"),
    ("POST", "/v1/hooks/claude"),
    ("POST", "/v1/hooks/codex"),
    ("GET", "/v1/approvals"),
    ("GET", "/v1/approvals/x"),
    ("POST", "/v1/approvals/x/votes"),
    ("POST", "/v1/labels/r/next"),
    ("POST", "/v1/labels/r/labels"),
    ("GET", "/v1/labels/r/labels"),
    ("GET", "/v1/labels/r/progress"),
    ("POST", "/v1/labels/r/settle"),
    ("GET", "/v1/ledger"),
    ("GET", "/v1/ledger/head"),
    ("GET", "/v1/ledger/verify"),
    ("GET", "/v1/ledger/export"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/runs/r"),
    ("GET", "/metrics"),
    ("GET", "/v1/results"),
    ("GET", "/v1/results/x"),
    ("GET", "/ledger"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_server(tmp_path_factory.mktemp("server"), LIMITED) as running:
        running.add_account("Ana")
        yield running


def check(client, gate="publish", body=BODY, **headers):
    return client.post(f"/v1/gates/{gate}/check", json=body, headers=headers)


def test_every_address_is_in_the_list_above(server):
    """An endpoint that is new is one more to ask without a key."""
    known = {path.replace("{gate}", "publish") for path in server.app.openapi()["paths"]}
    asked = {path for _, path in ADDRESSES}

    open_to_all = {"/healthz", "/readyz"}
    assert {path.split("/")[2] for path in known - open_to_all if path.startswith("/v1/")} <= {
        path.split("/")[2] for path in asked if path.startswith("/v1/")
    }


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_without_a_key_nothing_is_answered(server, method, path):
    """No key, and no session: 401, whatever is asked for."""
    answer = server.open_client().request(method, path, json={} if method == "POST" else None)

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_a_key_without_the_scope_is_refused(server, method, path):
    """A key for something else: 403."""
    client = server.open_client(key=server.make_key("label" if "label" not in path else "judge", rater="R"))
    answer = client.request(method, path, json={} if method == "POST" else None)

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer adj_000000000000_" + "x" * 43,
        "Bearer adj_" + "0" * 1_000,
        "Bearer ' OR 1=1 --",
        "Basic YW5hOmFuYQ==",
        "adj_000000000000_" + "x" * 43,
        "Bearer \xe9",
    ],
)
def test_what_is_no_key_is_refused(server, header):
    """Whatever stands in the header."""
    answer = check(server.open_client(), Authorization=header.encode("latin-1"))

    assert answer.status_code == 401


def test_a_key_that_is_nearly_right_is_refused(server):
    """The prefix of one and the secret of another, and one letter changed."""
    one, two = server.make_key("judge"), server.make_key("judge")
    swapped = one[:17] + two[17:]
    changed = one[:-1] + ("A" if one[-1] != "A" else "B")

    assert [check(server.open_client(key=key)).status_code for key in (one, swapped, changed)] == [200, 401, 401]


def test_a_wrong_key_is_not_made_good_by_a_session(server):
    """Else a program with a revoked key could go on with a cookie that it was given."""
    client = server.sign_in("Ana")

    assert check(client, Authorization="Bearer adj_000000000000_" + "x" * 43).status_code == 401


@pytest.mark.slow
def test_a_key_ends(server):
    """When it expires, is revoked, or is rotated."""
    key = server.make_key("judge")
    client = server.open_client(key=key)
    assert check(client).status_code == 200

    _, other = server.change(lambda ledger: serving.rotate_key(ledger, key[4:16]))
    # Another process revoked it, which this one may learn a second later.
    wait_for(lambda: check(client).status_code == 401)
    assert check(server.open_client(key=other)).status_code == 200

    server.change(lambda ledger: serving.revoke_key(ledger, other[4:16]))
    wait_for(lambda: check(server.open_client(key=other)).status_code == 401)

    soon = server.make_key("judge", expires_at=datetime.now(UTC) + timedelta(seconds=0.5))
    wait_for(lambda: check(server.open_client(key=soon)).status_code == 401)


def test_a_rotated_key_can_be_kept_for_a_while(server):
    """Until the program that has it was given the new one."""
    key = server.make_key("judge")
    until = datetime.now(UTC) + timedelta(hours=1)
    _, other = server.change(lambda ledger: serving.rotate_key(ledger, key[4:16], old_until=until))

    assert [check(server.open_client(key=item)).status_code for item in (key, other)] == [200, 200]


def test_a_key_is_stored_as_a_digest_alone(server):
    """Who reads the database has no key, no password and no session."""
    key, client = server.make_key("judge"), server.sign_in("Ana")
    stored = b"".join(path.read_bytes() for path in server.folder.iterdir() if path.name.startswith("adjudge.db"))

    assert key[4:16].encode() in stored
    assert key[17:].encode() not in stored
    assert PASSWORD.encode() not in stored
    assert client.cookies["adjudge"].encode() not in stored


def test_a_key_of_one_gate_is_for_that_gate(server):
    """Not for others, nor for what is no gate's."""
    client = server.open_client(key=server.make_key("judge", "read", gates=["publish"]))

    assert check(client).status_code == 200
    assert check(client, gate="held").status_code == 403
    assert [item["name"] for item in client.get("/v1/gates").json()["gates"]] == ["publish"]
    for method, path in (("GET", "/v1/ledger"), ("GET", "/v1/ledger/export"), ("GET", "/v1/ledger/head")):
        assert client.request(method, path).status_code == 403
    assert client.get("/v1/ledger", params={"gate": "publish"}).status_code == 200
    assert client.get("/v1/ledger", params={"gate": "held"}).status_code == 403


@pytest.mark.slow
def test_the_time_of_a_refusal_tells_nothing_of_a_key(server, monkeypatch):
    """An unknown prefix takes as long as a known one with a wrong secret; the medians are close."""
    hash_dearly(monkeypatch)
    key = server.make_key("judge")
    texts = {"known": key[:17] + "x" * 43, "unknown": "adj_000000000000_" + "x" * 43}
    times: dict[str, list[float]] = {name: [] for name in texts}
    client = server.open_client()
    for _ in range(25):
        for name, text in texts.items():
            started = time.perf_counter()
            check(client, Authorization=f"Bearer {text}")
            times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(durations) for name, durations in times.items()}

    # Loose: what this catches is a password hash, or a comparison that is left out, for one of the two.
    assert max(medians.values()) < 4 * min(medians.values())


# ---------------------------------------------------------------- sessions


def test_a_session_ends_with_its_account(server):
    """Who is disabled is signed out everywhere, and cannot come back."""
    server.add_account("Dora", "read")
    client = server.sign_in("Dora")
    assert client.get("/v1/results").status_code == 200

    server.change(lambda ledger: serving.disable_account(ledger, "Dora"))

    assert client.get("/v1/results").status_code == 401
    with pytest.raises(AssertionError):
        server.sign_in("Dora")


def test_another_password_ends_all_sessions(server):
    """Else whoever stole one would keep it."""
    server.add_account("Eva", "read")
    client = server.sign_in("Eva")
    server.change(lambda ledger: serving.set_password(ledger, "Eva", "another password, a longer one"))

    assert client.get("/v1/results").status_code == 401


def test_signing_in_makes_a_new_session(server):
    """A session that somebody planted before is not the one that is signed in (fixation)."""
    client = server.open_browser(cookies={"adjudge": "planted"})
    form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(client)}
    answer = client.post("/signin", data=form)

    assert answer.status_code == 303
    assert answer.cookies["adjudge"] not in ("", "planted")
    assert server.open_client(cookies={"adjudge": "planted"}).get("/v1/results").status_code == 401


def test_a_cookie_is_kept_from_scripts_and_other_sites(server):
    """HttpOnly, SameSite, for this host alone."""
    client = server.open_browser()
    form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(client)}
    cookies = client.post("/signin", data=form).headers.get_list("set-cookie")
    session = next(item for item in cookies if item.startswith("adjudge="))

    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in session.split(";")}
    assert "Domain" not in session


@pytest.mark.parametrize("token", [None, "", "wrong", "x" * 150])
def test_a_form_without_the_token_of_its_session_is_refused(server, token):
    """Another site can send a form and cannot know the token."""
    client = server.sign_in("Ana")
    answer = client.post("/signout", data={} if token is None else {"csrf_token": token})

    assert answer.status_code == 403
    assert client.get("/v1/results").status_code == 200


def test_a_token_of_another_session_is_refused(server):
    """It belongs to one session."""
    one, two = server.sign_in("Ana"), server.sign_in("Ana")

    assert one.post("/signout", data={"csrf_token": find_token(two, "/ledger")}).status_code == 403


def test_a_session_needs_the_token_for_endpoints_as_well(server):
    """A script of ours sends it in a header."""
    client = server.sign_in("Ana")
    token = find_token(client, "/ledger")

    assert check(client).status_code == 403
    assert check(client, **{"X-CSRF-Token": token}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_request_of_another_site_is_refused(server, headers):
    """By what the browser says, before anything else is looked at: even the sign-in."""
    client = server.open_browser()
    form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(client)}

    assert client.post("/signin", data=form, headers=headers).status_code == 403


def test_a_browser_at_another_address_is_told_the_server_s_own(tmp_path):
    """A page with a link, and nothing happened; a program gets a problem."""
    config = f'{CONFIG}\n[server]\npublic_url = "https://adjudge.example"\n'
    with run_server(tmp_path, config) as running:
        shown = running.open_browser().get("/signin")
        headers = {"Host": "adjudge.example", "Accept": "text/html"}
        browser = running.open_client(headers=headers)
        form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(browser)}
        headers = {"Host": "adjudge.example", "Origin": running.url, "Sec-Fetch-Site": "same-origin"}
        page = browser.post("/signin", data=form, headers=headers)
        problem = running.open_client().post("/signin", data=form, headers=headers)

    assert (shown.status_code, page.status_code) == (421, 403)
    assert (problem.status_code, problem.json()["code"]) == (403, "cross_site")
    assert page.headers["content-type"].startswith("text/html")
    for answer in (shown, page):
        assert 'href="https://adjudge.example/signin"' in answer.text
    assert "https://adjudge.example" in problem.json()["detail"]


def test_another_name_of_this_machine_is_another_site(server):
    """What answers there need not be this server: a browser is shown the address, and its forms are not taken."""
    port = server.url.rpartition(":")[2]
    for name in ("localhost", "[::1]"):
        page = server.open_browser().get("/signin", headers={"Host": f"{name}:{port}"})
        assert (page.status_code, f'href="{server.url}/signin"' in page.text) == (421, True)
        client = server.open_browser()
        form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(client)}
        assert client.post("/signin", data=form, headers={"Origin": f"http://{name}:{port}"}).status_code == 403
    program = server.open_client(key=server.make_key("judge"))
    assert program.get("/v1/gates", headers={"Host": f"localhost:{port}"}).status_code == 200


def test_the_server_s_own_pages_may_send_forms(server):
    """Their origin is the server's."""
    client = server.open_browser(follow_redirects=False)
    form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(client)}
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}

    assert client.post("/signin", data=form, headers=headers).status_code == 303


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "[::2]"])
def test_a_request_for_another_name_is_refused(server, host):
    """A name of somebody else's that points here would make their page one of this server (DNS rebinding)."""
    answer = server.open_client(key=server.make_key("judge")).get("/v1/gates", headers={"Host": host})

    assert answer.status_code in (400, 421)


def test_a_browser_that_asks_for_another_name_gets_a_page_with_the_right_address(server):
    """With its style, and with nothing that needs a name; a program gets a problem as ever."""
    browser = server.open_client(headers={"Accept": "text/html", "Host": "evil.example"})
    page = browser.get("/results")
    problem = server.open_client(headers={"Host": "evil.example"}).get("/v1/results")

    assert (page.status_code, problem.status_code, problem.json()["code"]) == (421, 421, "host")
    assert page.headers["content-type"].startswith("text/html")
    assert f'href="{server.url}/signin"' in page.text
    assert "content-security-policy" in page.headers
    style = re.search(r'href="(/static/[^"]*style[.]css)"', page.text)[1]
    assert browser.get(style).status_code == 200
    assert [browser.get(path).status_code for path in ("/static/x/style.css", f"{style}x", "/signin")] == [421] * 3


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "/%0d%0aSet-Cookie: a=b",
        "http:/evil.example",
        "/\r\nX: y",
    ],
)
def test_signing_in_leads_to_no_other_site(server, target):
    """Whatever the address says (open redirect, header injection)."""
    client = server.open_browser()
    form = {"name": "Ana", "password": PASSWORD, "csrf_token": find_token(client), "next": target}
    answer = client.post("/signin", data=form)

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith(("//", "/\\"))
    assert "x" not in answer.headers
    assert "a" not in answer.cookies


@pytest.mark.slow
def test_many_wrong_passwords_are_slowed_down(server):
    """The sixth within a while is refused before the password is looked at, and says when to come again."""
    server.add_account("Finn", "read")
    client = server.open_browser()
    answers = []
    for _ in range(7):
        form = {"name": "Finn", "password": "wrong", "csrf_token": find_token(client)}
        answers.append(client.post("/signin", data=form))

    assert [item.status_code for item in answers] == [403] * 5 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) > 0


# ---------------------------------------------------------------- what is sent


def test_a_body_that_is_too_large_is_refused(server):
    """Whether it says so or not."""
    client = server.open_client(key=server.make_key("judge"))

    def pieces():
        yield b'{"content": "'
        for _ in range(50):
            yield b"x" * 100
        yield b'"}'

    json_type = {"Content-Type": "application/json"}
    declared = client.post("/v1/gates/publish/check", content=b"x" * 5_000, headers=json_type)
    unsaid = client.post("/v1/gates/publish/check", content=pieces(), headers=json_type)

    assert [declared.status_code, unsaid.status_code] == [413, 413]
    assert declared.headers["content-type"] == "application/problem+json"


@pytest.mark.slow
def test_a_body_that_is_too_slow_is_refused(server):
    """Who sends a byte now and then keeps no place for ever."""
    key = server.make_key("judge")
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG) as connection:
        head = f"POST /v1/gates/publish/check HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {key}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        answer = connection.recv(10_000)

    assert answer.startswith(b"HTTP/1.1 504")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/gates/../gates",
        "/v1/gates/..%2f..%2fetc%2fpasswd/check",
        "/v1/runs/..",
        "/v1/runs/..%2f..%2fadjudge.db",
        "/v1/runs/%00",
        "/v1/labels/..%2f../progress",
        "/static/..%2f..%2fapp.py",
        "/static/../app.py",
        "//v1/gates",
        "/v1/gates/",
        "/V1/gates",
        "/adjudge.toml",
        "/adjudge.db",
    ],
)
def test_paths_lead_nowhere_else(server, path):
    """Nothing but the addresses there are, and no file."""
    key = server.make_key()
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG) as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answer.split(b" ")[1] in (b"400", b"403", b"404", b"405")


def test_an_answer_carries_no_header_of_a_request(server):
    """Line breaks in what is sent make no header and no line of their own."""
    client = server.open_client(key=server.make_key("judge"))
    answer = client.get("/v1/gates/a%0d%0aSet-Cookie:%20a=b/pending")

    assert answer.status_code == 404
    assert "set-cookie" not in answer.headers


def test_every_answer_is_protected(server):
    """By the same headers, an error's too, and nothing says what the server is made of."""
    for answer in (
        server.open_client().get("/healthz"),
        server.open_browser().get("/signin"),
        server.open_client().get("/v1/x"),
    ):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "no-store" in answer.headers["cache-control"]
        assert "server" not in answer.headers


def test_a_problem_tells_nothing_of_the_inside(server):
    """No path, no traceback, no query, and none of what was sent."""
    client = server.open_client(key=server.make_key())
    answers = [
        check(client, body={"content": "geheim", "geheim2": 1}),
        check(client, body={"content": "x", "metadata": "geheim"}),
        client.get("/v1/ledger", params={"since": "geheim"}),
        client.get("/v1/runs/geheim-not-there-" + "x" * 300),
        client.post("/v1/evaluate", json={"content": "x", "rubric": {"name": 3}}),
    ]

    for answer in answers:
        text = json.dumps(answer.json())
        assert answer.status_code in (404, 422)
        assert not any(word in text for word in ("Traceback", str(server.folder), "site-packages", "SELECT"))
    assert "geheim" not in json.dumps([item["what"] for item in answers[0].json()["errors"]])


@pytest.mark.slow
def test_many_requests_at_once_are_all_answered(server):
    """None is lost, and each is decided."""
    key = server.make_key("judge")
    statuses: list[int] = []

    def ask() -> None:
        with server.open_client(key=key) as client:
            statuses.extend(check(client).status_code for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert statuses == [200] * 80
