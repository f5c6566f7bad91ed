"""Attacks on a server by callers of every kind: each address by whom it is not for, and what hostile texts try."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

import adjudge.server as serving
from adjudge import Approvals, Judge, Ledger
from adjudge.guards import Audit
from adjudge.testing import ScriptedModel
from kit.approval_pages import decide, list_kinds, make_request, send
from kit.audited import make_gate
from kit.labels import make_run
from kit.patience import HANG
from kit.server import PASSWORD, RunningServer, find_token, run_server
from kit.viewing import view_below

pytestmark = pytest.mark.timed


CONFIG = """
[gates.publish]
rules = [{name = "length", max = 40}]

[gates.held]
rules = [{name = "length", max = 40}]
on_failed = "ask"
ask = {approvers = ["Ana", "Ben"], show_content = true}

[judges.kind]
seats = ["python:attacked_judges:check"]

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"

[server]
runs = "runs"
labels_per_case = 2
undo_seconds = 30
"""

JUDGES = """
def check(content):
    return 1.0, "It is kind."
"""

SCOPES = ("judge", "approve", "label", "adjudicate", "read")

ALL = frozenset(SCOPES)

HOOK = "hook"
"""The scope of the keys that agents' machines hold; it goes with no other."""

ANYBODY = frozenset({"nobody"})

OPEN = (200, 303, 409, 422)
"""What an address answers to a caller whom it is for: it was found, and at most the body or the moment is wrong."""

CLOSED = (401, 403)

ACCESS: dict[tuple[str, str], frozenset[str]] = {
    **dict.fromkeys(
        [
            ("GET", "/healthz"),
            ("GET", "/readyz"),
            ("GET", "/openapi.json"),
            ("GET", "/static/{version}/{name}"),
            ("GET", "/signin"),
            ("POST", "/signin"),
        ],
        ANYBODY,
    ),
    **dict.fromkeys([("POST", "/theme"), ("POST", "/keyboard"), ("POST", "/times"), ("POST", "/signout")], ALL),
    **dict.fromkeys(
        [
            ("GET", "/v1/judges"),
            ("POST", "/v1/evaluate"),
            ("POST", "/v1/firewall/input"),
            ("POST", "/v1/firewall/prompt"),
            ("GET", "/v1/gates"),
            ("POST", "/v1/gates/{gate}/check"),
            ("POST", "/v1/gates/{gate}/resume"),
            ("GET", "/v1/gates/{gate}/pending"),
            ("POST", "/v1/tools/review"),
            ("POST", "/v1/tools/promotion"),
            ("POST", "/v1/tools/reuse"),
        ],
        frozenset({"judge"}),
    ),
    **dict.fromkeys(
        [("POST", "/v1/tools/check"), ("POST", "/v1/tools/resume"), ("POST", "/v1/hooks/{harness}")], frozenset({HOOK})
    ),
    **dict.fromkeys(
        [
            ("GET", "/v1/approvals"),
            ("GET", "/v1/approvals/{approval}"),
            ("GET", "/approvals"),
            ("GET", "/approvals/{id}"),
            ("GET", "/approvals/{id}/content"),
            ("GET", "/approvals/news"),
        ],
        frozenset({"approve", "read"}),
    ),
    ("GET", "/waiting"): frozenset(),  # for a session alone: it counts what waits for a person
    **dict.fromkeys(
        [
            ("POST", "/v1/approvals/{approval}/votes"),
            ("POST", "/v1/tools/reopen"),
            ("POST", "/approvals/judge"),
            ("POST", "/approvals/deny"),
            ("POST", "/approvals/{id}"),
            ("POST", "/approvals/{id}/decide"),
            ("POST", "/approvals/reopen"),
            ("POST", "/approvals/{id}/undo"),
            ("GET", "/approvals/deny"),
            ("GET", "/approvals/mine"),
            ("GET", "/audits"),
            ("GET", "/audits/{audit}"),
            ("GET", "/audits/{audit}/content"),
            ("POST", "/audits/{audit}/answer"),
            ("POST", "/audits/{audit}/undo"),
        ],
        frozenset({"approve"}),
    ),
    **dict.fromkeys(
        [
            ("POST", "/v1/labels/{run}/next"),
            ("POST", "/v1/labels/{run}/labels"),
            ("POST", "/v1/labels/{run}/skip"),
            ("POST", "/v1/labels/{run}/undo"),
            ("GET", "/v1/labels/{run}/progress"),
            ("POST", "/labels/{run}"),
            ("POST", "/labels/{run}/undo"),
            ("POST", "/runs/{run}/case/look"),
            ("GET", "/labels/{run}/others"),
            ("GET", "/labels/{run}"),
        ],
        frozenset({"label"}),
    ),
    ("GET", "/labels"): frozenset({"label", "adjudicate"}),
    ("GET", "/v1/labels/{run}/labels"): frozenset({"read", "adjudicate"}),
    **dict.fromkeys(
        [
            ("POST", "/v1/labels/{run}/settle"),
            ("POST", "/labels/{run}/differences"),
            ("POST", "/labels/{run}/differences/undo"),
            ("GET", "/labels/{run}/differences"),
        ],
        frozenset({"adjudicate"}),
    ),
    **dict.fromkeys(
        [
            ("GET", "/v1/ledger"),
            ("GET", "/v1/ledger/head"),
            ("GET", "/v1/ledger/verify"),
            ("GET", "/v1/ledger/export"),
            ("GET", "/metrics"),
            ("GET", "/v1/runs"),
            ("GET", "/v1/runs/{run}"),
            ("GET", "/v1/results"),
            ("GET", "/v1/results/{ident}"),
            ("GET", "/"),
            ("GET", "/results"),
            ("GET", "/results/{ident}"),
            ("GET", "/results/{ident}/content"),
            ("GET", "/monitors"),
            ("POST", "/ledger/verify"),
            ("GET", "/ledger"),
            ("GET", "/ledger/{seq}"),
            ("GET", "/runs/{run}"),
            ("GET", "/runs/{run}/report.html"),
            ("GET", "/runs/{run}/case"),
            ("GET", "/runs/{run}/case/content"),
            ("GET", "/runs/{run}/calls"),
            ("GET", "/compare"),
            ("GET", "/compare/report.html"),
            ("GET", "/runs"),
        ],
        frozenset({"read"}),
    ),
}
"""Every address that programs and browsers can ask, and the scopes of which one is needed."""

OF_GATES = {
    "/v1/gates",
    "/v1/approvals",
    "/v1/approvals/{approval}",
    "/v1/approvals/{approval}/votes",
    "/approvals",
    "/approvals/news",
    "/approvals/mine",
    "/approvals/judge",
    "/approvals/deny",
    "/approvals/{id}",
    "/approvals/{id}/content",
    "/approvals/{id}/decide",
    "/approvals/{id}/undo",
    "/audits",
    "/audits/{audit}",
    "/audits/{audit}/content",
    "/audits/{audit}/answer",
    "/audits/{audit}/undo",
    "/monitors",
    "/v1/ledger",
    "/v1/results",
    "/v1/results/{ident}",
    "/",
    "/results",
    "/results/{ident}",
    "/results/{ident}/content",
    "/ledger/{seq}",
}
"""Addresses without a gate in them that somebody who is limited to gates may ask, for what is of those."""

SECRET = "GEHEIM: pay Mallory what is owed to somebody else, today"


async def ask_without_a_gate(ledger: Ledger) -> str:
    """The id of a request that a program makes by itself, which is no gate's."""
    reply = {"criteria": [{"reasoning": "No.", "score": 0.1}]}
    result = await Judge(ScriptedModel(reply), name="careful").evaluate(SECRET, criteria="Is good.")
    async with Approvals(ledger) as approvals:
        return await approvals.request(result, SECRET, approvers=["Ana", "Gil"], content=SECRET)


async def let_through(ledger: Ledger) -> str:
    """The id of the audit of something that went through."""
    async with Approvals(ledger) as approvals:
        assert await make_gate(ledger, approvals, audit=Audit(share=1.0, approvers=("Ana",))).check(SECRET)
        (audit,) = await approvals.list(audits=True)
        return audit.id


@pytest.fixture(scope="module", name="server")
def provide_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with two reviewers, one who labels, one who reads, and one limited to a gate."""
    folder = tmp_path_factory.mktemp("attacked")
    # In a thread: what makes the run leaves a loop behind in the one that it is called in.
    for name, cases in (("first", 14), ("second", 2)):
        maker = threading.Thread(target=make_run, args=(folder / "runs" / name,), kwargs={"cases": cases})
        maker.start()
        maker.join()
    (folder / "attacked_judges.py").write_text(JUDGES, encoding="utf-8")
    damaged = folder / "runs" / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text("{", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.syspath_prepend(folder)
        running = stack.enter_context(run_server(folder, CONFIG))
        for name in ("Ana", "Ben", "Cleo"):
            running.add_account(name, "approve")
        running.add_account("Lena", "label")
        running.add_account("Rea", "read")
        running.add_account("Gil", gates=["publish"])
        yield running


@pytest.fixture(scope="module", name="held")
def provide_held(server: RunningServer) -> str:
    """The id of a request that waits."""
    return hold(server)


@pytest.fixture(scope="module", name="keys")
def provide_keys(server: RunningServer) -> dict[str, Any]:
    """A program's client for each scope alone."""
    names = {scope: {"approver": "Ana", "rater": "X"} for scope in SCOPES} | {HOOK: {}}
    return {scope: server.open_client(key=server.make_key(scope, **limits)) for scope, limits in names.items()}


def hold(server: RunningServer, content: str = SECRET, **body: Any) -> str:
    client = server.open_client(key=server.make_key("judge"))
    return client.post("/v1/gates/held/check", json={"content": content, **body}).json()["approval_id"]


def walk(routes: Any) -> Iterator[tuple[str, str]]:
    """Every method and address, whether the framework keeps those of a router together or not."""
    for route in routes:
        if hasattr(route, "path"):
            yield from ((method, route.path) for method in route.methods - {"HEAD"})
        else:
            yield from walk(route.original_router.routes)


def list_addresses(server: RunningServer) -> list[tuple[str, str]]:
    return sorted(set(walk(server.app.routes)))


def fill(path: str, held: str, gate: str = "publish", audit: str = "x") -> str:
    names = {
        "gate": gate,
        "approval": held,
        "id": held,
        "audit": audit,
        "run": "first",
        "seq": "1",
        "ident": held,
        "harness": "claude",
    }
    return path.format(version="x", name="style.css", **names)


# ---------------------------------------------------------------- every address, by whom it is not for


def test_every_address_is_in_the_table(server: RunningServer):
    """One that is new says whom it is for, or is asked by nobody here."""
    addresses = set(list_addresses(server))

    assert [item for item in sorted(addresses) if item not in ACCESS] == []
    assert sorted(set(ACCESS) - addresses) == []


def find_unframed(client: Any, addresses: Iterable[tuple[str, str]], held: str = "x") -> list[str]:
    """The addresses of those that are read which a page of another site could put into a frame."""
    paths = [fill(path, held) for method, path in addresses if method == "GET"]
    assert len(paths) > 7
    found = []
    for path in paths:
        with client.stream("GET", path) as answer:
            policy = answer.headers.get("content-security-policy", "")
            if answer.headers.get("x-frame-options") != "DENY" or "frame-ancestors 'none'" not in policy:
                found.append(f"{path}: {answer.status_code}")
    return found


def test_nothing_that_is_read_can_be_framed(server: RunningServer, held: str):
    """Whatever it answers: to somebody who may see it, to whom it is refused, and to a stranger."""
    for client in (server.sign_in("Ana"), server.sign_in("Lena"), server.open_browser()):
        assert find_unframed(client, list_addresses(server), held) == []


def test_no_page_of_a_view_can_be_framed(server: RunningServer):
    """Each address of ``adjudge view``, to who has opened it and to who has not."""
    with view_below(server.folder) as viewing:
        for client in (viewing.enter(), viewing.open_browser()):
            assert find_unframed(client, sorted(set(walk(viewing.app.routes)))) == []


@pytest.mark.slow
def test_without_a_key_or_a_session_nothing_is_answered(server: RunningServer, held: str):
    """Nobody, a session that never was, and one that has ended."""
    ended = server.sign_in("Rea")
    old = dict(ended.cookies)
    [name] = old
    assert server.open_client(cookies=old).get("/v1/results").status_code == 200
    ended.post("/signout", data={"csrf_token": find_token(ended, "/")})
    callers = [server.open_client(), server.open_client(cookies={name: "x" * 43}), server.open_client(cookies=old)]
    for method, path in list_addresses(server):
        if ACCESS[method, path] == ANYBODY:
            continue
        for client in callers:
            assert client.request(method, fill(path, held)).status_code == 401, (method, path)


@pytest.mark.slow
def test_each_scope_opens_its_own_addresses_alone(server: RunningServer, held: str, keys: dict[str, Any]):
    """No scope contains another: a key with one is refused wherever it is not among those that are needed."""
    audit = server.change(let_through)
    for method, path in list_addresses(server):
        needed = ACCESS[method, path]
        if path == "/signout" or needed == ANYBODY:
            continue
        for scope, client in keys.items():
            status = client.request(method, fill(path, held, audit=audit)).status_code
            assert status in (OPEN if scope in needed else CLOSED), (method, path, scope, status)


@pytest.mark.slow
def test_who_is_limited_to_gates_gets_nothing_that_is_no_gate_s(server: RunningServer, held: str):
    """Neither figures of the whole server, nor runs and labels."""
    client = server.open_client(key=server.make_key(gates=["publish"], approver="G", rater="G"))
    for method, path in list_addresses(server):
        if ACCESS[method, path] in (ANYBODY, ALL) or path in OF_GATES:
            continue
        status = client.request(method, fill(path, held, gate="held")).status_code
        assert status == 403, (method, path, status)


def test_what_is_no_gate_s_is_hidden_from_who_is_limited_to_gates(server: RunningServer):
    """A request that a program made by itself: in no list, not by its id, and nobody decides it by guessing that."""
    ident = server.change(ask_without_a_gate)
    client = server.sign_in("Gil")
    token = find_token(client, "/approvals")

    assert SECRET[:6] not in client.get("/approvals").text
    for path in (f"/approvals/{ident}", f"/v1/approvals/{ident}", f"/approvals/{ident}/content"):
        assert client.get(path).status_code == 404, path
    form = {"csrf_token": token, "vote": "approve", "reason": "yes"}
    assert client.post(f"/approvals/{ident}/decide", data=form).status_code == 404
    assert client.post("/approvals/deny", data={"csrf_token": token, "ids": ident}).status_code == 404
    assert "waits for a person" not in client.get("/").text
    assert list_kinds(server, ident) == ["requested"]
    server.change(lambda ledger: _deny(ledger, ident))


async def _deny(ledger: Ledger, ident: str) -> None:
    async with Approvals(ledger) as approvals:
        await approvals.decide(ident, "Ana", False)


@pytest.mark.slow
def test_no_form_and_no_endpoint_is_taken_without_the_token_of_its_session(server: RunningServer, held: str):
    """Of every address that changes something, by a session with all scopes: no token, and that of another session."""
    server.add_account("Zed")
    client = server.sign_in("Zed")
    foreign = find_token(server.sign_in("Ana"), "/approvals")
    for method, path in list_addresses(server):
        if method == "GET" or path == "/signin":
            continue
        address = fill(path, held)
        answers = [
            client.post(address),
            client.post(address, data={"csrf_token": foreign}),
            client.post(f"{address}?csrf_token={foreign}"),
            client.post(address, headers={"X-CSRF-Token": foreign}),
        ]
        assert [item.status_code for item in answers] == [403] * 4, path
    assert list_kinds(server, held) == ["requested"]
    assert client.get("/ledger").status_code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "HEAD", "TRACE", "OPTIONS"])
def test_no_other_method_does_anything(server: RunningServer, held: str, method: str):
    """Nor does a header or a field that names another method."""
    client = server.sign_in("Ana")
    token = find_token(client, "/approvals")
    headers = {"X-CSRF-Token": token, "X-HTTP-Method-Override": "POST"}
    for path in (f"/approvals/{held}/decide", f"/v1/approvals/{held}/votes", "/approvals/deny"):
        status = client.request(method, f"{path}?vote=deny&_method=POST", headers=headers).status_code
        # A page of that address answers HEAD as it does GET, without its text.
        assert status >= 400 or (status, method) == (200, "HEAD"), (path, status)
    client.get(f"/approvals/{held}?vote=deny&_method=POST", headers={"X-HTTP-Method-Override": "POST"})

    assert list_kinds(server, held) == ["requested"]


# ---------------------------------------------------------------- signing in


@pytest.mark.slow
def test_passwords_that_are_tried_at_once_count_one_by_one(server: RunningServer):
    """As many as are sent before the first has failed: five are looked at, and the rest are refused."""
    browsers = [server.open_browser() for _ in range(12)]
    forms = [
        {"name": "Ben", "password": f"guess {number}", "csrf_token": find_token(browser)}
        for number, browser in enumerate(browsers)
    ]
    with ThreadPoolExecutor(len(browsers)) as pool:
        tried = list(
            pool.map(lambda pair: pair[0].post("/signin", data=pair[1]).status_code, zip(browsers, forms, strict=True))
        )

    assert sorted(tried) == [403] * 5 + [429] * 7


def test_no_sign_in_that_is_under_way_survives_a_new_password(server: RunningServer):
    """Passwords are compared two at a time: some are compared with the old one, and begin after it was replaced."""
    server.add_account("Pia", "read")
    browsers = [server.open_browser() for _ in range(5)]
    forms = [{"name": "Pia", "password": PASSWORD, "csrf_token": find_token(browser)} for browser in browsers]
    with ThreadPoolExecutor(len(browsers)) as pool:
        tried = [pool.submit(browser.post, "/signin", data=form) for browser, form in zip(browsers, forms, strict=True)]
        server.change(lambda ledger: serving.set_password(ledger, "Pia", "another password, a longer one"))
        statuses = {item.result().status_code for item in tried}

    assert statuses <= {303, 403}
    assert [browser.get("/v1/results").status_code for browser in browsers] == [401] * 5


@pytest.mark.parametrize("charset", ["unicode_escape", "undefined", "punycode", "idna"])
def test_a_form_in_a_charset_of_its_own_is_not_read(server: RunningServer, charset: str):
    """Any codec of Python would do, before anybody has signed in: some fail, some write halves of characters."""
    form = b'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n\\ud800\r\n--x--\r\n'
    headers = {"Content-Type": f"Multipart/Form-Data; boundary=x; Charset={charset}"}
    for client, path in ((server.open_browser(), "/signin"), (server.sign_in("Rea"), "/theme")):
        assert client.post(path, content=form, headers=headers).status_code == 415


# ---------------------------------------------------------------- what an approver sees

UNSEEN = "\u3164\u2800\u034f\ufe01\U000e0101\u115f\u17b4\u200b\u202e\U000e0041"
"""Fillers, selectors, joiners, a direction, a tag: each takes no room, and a model reads it."""


def test_nothing_that_is_approved_is_unseen(server: RunningServer):
    """An instruction can be written in characters that take no room: each is a dot on the page, and counted."""
    client = server.sign_in("Ana")
    ident = hold(server, f"Pay Ana 10 euros ❤\ufe0f.{UNSEEN}{'x' * 40}")
    page = client.get(f"/approvals/{ident}")

    assert f"{len(UNSEEN)} characters cannot be seen" in page.text
    assert [f"U+{ord(char):04X}" for char in UNSEEN if char in page.text] == []
    assert "❤\ufe0f" in page.text


def test_who_asked_is_what_the_server_knows(server: RunningServer):
    """A program cannot ask in the name of somebody else: its key is named before what it says of itself."""
    key = server.make_key("judge")
    body = {"content": SECRET, "metadata": {"agent": "the security team"}}
    ident = server.open_client(key=key).post("/v1/gates/held/check", json=body).json()["approval_id"]
    page = server.sign_in("Ana").get(f"/approvals/{ident}").text

    assert f">key:{key[4:16]} as the security team</b>" in page


def test_a_session_approves_nothing_that_its_page_does_not_show(server: RunningServer):
    """Neither by its form nor by the endpoint for programs, which has a member for that."""
    ident = make_request(server, show_content=False)
    client = server.sign_in("Ana")
    headers = {"X-CSRF-Token": find_token(client, "/approvals")}
    body = {"approved": True, "reason": "yes", "seen": client.get(f"/v1/approvals/{ident}").json()["shown"]}
    votes = f"/v1/approvals/{ident}/votes"

    assert send(client, ident, "approve", "yes", seen="0" * 64).status_code == 422
    assert client.post(votes, json=body, headers=headers).status_code == 409
    assert client.post(votes, json={**body, "complete": False}, headers=headers).status_code == 403
    assert list_kinds(server, ident) == ["requested", "voted"]


def test_a_reason_that_no_database_holds_is_refused(server: RunningServer, held: str):
    """A NUL character, which a form can send: by every form that takes a reason, and nothing is decided."""
    client = server.sign_in("Ana")
    token = find_token(client, "/approvals")
    for vote in ("comment", "deny"):
        form = {"csrf_token": token, "vote": vote, "reason": "a\0b"}
        assert client.post(f"/approvals/{held}/decide", data=form).status_code == 422
    form = {"csrf_token": token, "ids": held, "reason": "a\0b"}
    assert client.post("/approvals/deny", data=form).status_code == 422
    assert list_kinds(server, held) == ["requested"]


def test_one_person_decides_once_by_page_and_key_at_the_same_time(server: RunningServer):
    """A vote that can still be undone is a vote: the key of the same person adds none, whichever comes first."""
    ident = make_request(server, required=2)
    key = server.open_client(key=server.make_key("approve", approver="Ana"))
    page = server.sign_in("Ana")
    body = {"approved": True, "reason": "yes", "seen": key.get(f"/v1/approvals/{ident}").json()["shown"]}
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send, page, ident, "approve", "yes")
        second = pool.submit(key.post, f"/v1/approvals/{ident}/votes", json=body)
        statuses = {first.result().status_code, second.result().status_code}
    kinds = list_kinds(server, ident)

    assert statuses in ({303, 409}, {200, 409})
    assert key.post(f"/v1/approvals/{ident}/votes", json=body).status_code == 409
    assert "closed" not in kinds


@pytest.mark.slow
def test_who_approves_sees_only_what_they_are_asked(server: RunningServer):
    """Nothing of another's request: no page, file, number or news; who reads sees it, and who decided keeps it."""
    ident = make_request(server, SECRET, approvers=["Cleo"], gate="held")
    ana, cleo = server.sign_in("Ana"), server.sign_in("Cleo")
    key = server.open_client(key=server.make_key("approve", approver="Ana"))
    paths = [f"/approvals/{ident}{rest}" for rest in ("", "/content", "?whole=1")]
    listed = ["/approvals", "/approvals/deny"]

    assert [ana.get(path).status_code for path in paths] == [404] * 3
    assert ana.get("/approvals/news", params={"item": ident}).status_code == 404
    assert all(ident not in ana.get(path).text for path in listed)
    assert key.get(f"/v1/approvals/{ident}").status_code == 404
    assert ident not in key.get("/v1/approvals?status=all").text
    assert key.post(f"/v1/approvals/{ident}/votes", json={"approved": False}).status_code == 404
    reader = server.open_client(key=server.make_key("read", gates=["held"]))
    assert reader.get(f"/v1/approvals/{ident}").status_code == 200

    assert send(cleo, ident, "deny", "no").status_code == 303
    assert cleo.get(paths[0]).status_code == 200


def test_a_request_like_it_is_shown_to_nobody_who_was_not_asked_about_it(server: RunningServer):
    """The page of a request shows the last one like it that was approved, with its content."""
    options: dict[str, Any] = {"gate": "alike", "score": 0.3}
    earlier = make_request(server, "What Cleo alone was asked.", approvers=["Cleo"], **options)
    decide(server, earlier, "Cleo", True)
    ident = make_request(server, "Another one.", approvers=["Ana", "Cleo"], **options)

    shown = {name: server.sign_in(name).get(f"/approvals/{ident}").text for name in ("Cleo", "Ana")}
    assert f'href="/approvals/{earlier}"' in shown["Cleo"]
    assert earlier not in shown["Ana"]
    assert "What Cleo alone" not in shown["Ana"]


def test_the_number_in_the_navigation_counts_what_one_can_decide(server: RunningServer):
    """Not what others are asked, and not what one has decided."""
    server.add_account("Nina", "approve")
    nina = server.sign_in("Nina")
    mine, _, decided = (make_request(server, approvers=names) for names in (["Nina"], ["Ben"], ["Nina", "Ben"]))
    assert count_waiting(nina) == 2

    assert send(nina, decided, "deny", "no").status_code == 303
    assert count_waiting(nina) == 1
    assert mine in nina.get("/approvals").text


def count_waiting(client: Any) -> int:
    """The number beside *Approvals* in the navigation."""
    match = re.search(r'<nav.*?href="/approvals"[^>]*>.*?(\d+)', client.get("/approvals").text, re.DOTALL)
    assert match is not None
    return int(match[1])


# ---------------------------------------------------------------- keys


def test_the_ledger_says_who_changed_a_key(server: RunningServer):
    """With what it may do and under whose name, and without anything that opens a door."""
    key = server.make_key("judge", gates=["held"])
    server.change(lambda ledger: serving.rotate_key(ledger, key[4:16], by="system:root"))
    reader = server.open_client(key=server.make_key("read"))
    (entry,) = (
        item["payload"]
        for item in reader.get("/v1/ledger?kind=key.rotated").json()["entries"]
        if item["payload"]["replaces"] == key[4:16]
    )
    assert (entry["by"], entry["scopes"], entry["gates"]) == ("system:root", ["judge"], ["held"])

    server.change(lambda ledger: serving.revoke_key(ledger, entry["key"], by="system:root"))
    text = reader.get("/v1/ledger", params={"subject": f"key:{entry['key']}"}).text
    assert '"key.revoked"' in text
    assert key[17:] not in reader.get("/v1/ledger?kind=key.created&limit=1000").text


# ---------------------------------------------------------------- labelling


@pytest.mark.slow
def test_figures_tell_nobody_what_others_said_of_a_case(server: RunningServer):
    """Where two people label each case, a rate moves by what the other said: it waits for the last."""
    label_all(server, "First", count=14)
    client = server.open_client(key=server.make_key("label", rater="Second"))
    for _ in range(13):
        page = client.get("/labels/first").text
        assert "it would tell what others said" in page
        assert "People agree" not in page
        case = re.findall(r'name="case" value="([^"]+)"', page)[0]
        client.post("/v1/labels/first/labels", json={"case": case, "value": True})


@pytest.mark.parametrize("path", ["/labels", "/v1/labels/second/labels"])
def test_who_answers_again_to_see_a_figure_move_is_not_blind(server: RunningServer, path: str):
    """A number of differences, or the labels themselves, tell what others said of a case that one labelled before."""
    number = {"/labels": 1}.get(path, 2)
    rater = f"Third{number}"
    for name in ("Other", rater):
        label_all(server, name, count=2, run="second")
    client = server.open_client(key=server.make_key("label", "adjudicate", rater=rater))
    case = server.open_client(key=server.make_key("read")).get("/v1/labels/second/labels").json()["labels"][0]["case"]
    body = {"case": case, "value": False}

    assert client.post("/v1/labels/second/labels", json=body).json()["blind"] is True
    assert client.get(path).status_code == 200
    assert client.post("/v1/labels/second/labels", json=body | {"value": True}).json()["blind"] is False


def test_who_settled_a_case_labels_it_blind_no_more(server: RunningServer):
    """They were shown what everybody said of it."""
    label_all(server, "Other", count=2, run="second")
    client = server.open_client(key=server.make_key("label", "adjudicate", rater="Judge Judy"))
    case = client.post("/v1/labels/second/settle", json={"case": "case-0", "value": True}).json()["case"]

    label = client.post("/v1/labels/second/labels", json={"case": case, "value": True}).json()
    assert (label["kind"], label["blind"]) == ("person", False)


def label_all(server: RunningServer, rater: str, *, count: int, run: str = "first") -> None:
    """Label the cases that come next, as far as there are any."""
    client = server.open_client(key=server.make_key("label", rater=rater))
    for _ in range(count):
        task = client.post(f"/v1/labels/{run}/next", json={}).json()["task"]
        if task is not None:
            client.post(f"/v1/labels/{run}/labels", json={"case": task["case"], "value": True})


# ---------------------------------------------------------------- errors


def test_no_error_says_where_files_are(server: RunningServer):
    """Of a run that is damaged its name is told, and not the folder of the server."""
    client = server.open_client(key=server.make_key(rater="R"))
    paths = ("/v1/runs/damaged", "/v1/runs", "/runs", "/runs/damaged", "/labels/damaged")
    answers = [client.get(path) for path in paths] + [client.post("/v1/labels/damaged/next", json={})]

    assert ["damaged" in item.text for item in answers] == [True] * len(answers)
    assert [str(server.folder) in item.text for item in answers] == [False] * len(answers)


@pytest.mark.parametrize("path", ["/results", "/v1/results"])
def test_a_number_that_no_database_holds_is_refused(server: RunningServer, path: str):
    """As what it is, and not by a failure."""
    client = server.open_client(key=server.make_key("read"))

    assert client.get(path, params={"before": 10**30}).status_code == 422


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_that_is_in_no_year_is_refused(server: RunningServer, time: str):
    """Its zone moves it out of the years that there are."""
    client = server.open_client(key=server.make_key("read"))

    assert client.get("/v1/ledger", params={"since": time}).status_code == 422
    assert client.get("/v1/ledger", params={"until": time}).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"criteria": "\ud800"},
        {"criteria": {"\ud800": "Is good."}},
        {"criteria": "Is good.", "instructions": "\ud800"},
        {"rubric": {"name": "a", "criteria": [{"name": "a", "description": "\ud800"}]}},
        {"rubric": {"name": "a", "criteria": [{"name": "a", "description": "b", "rule": {"contains": "\ud800"}}]}},
    ],
)
def test_half_a_character_in_what_is_asked_is_refused(server: RunningServer, body: dict[str, Any]):
    """JSON can write it, and UTF-8 cannot, in which prompts are sent and counted: so it is a mistake of the request."""
    client = server.open_client(key=server.make_key("judge"))
    text = json.dumps({"content": "x", "judge": "kind", **body})
    answer = client.post("/v1/evaluate", content=text, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (422, "usage")
    assert "not valid Unicode" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body", [{"content": [[]] * 200_000}, {"content": "x", "criteria": [1] * 200_000}, {"content": [[1] * 400] * 400}]
)
def test_values_without_number_are_refused(server: RunningServer, body: dict[str, Any]):
    """In a body that is not too large: copying and hashing them keeps everybody else waiting for seconds."""
    client = server.open_client(key=server.make_key("judge"), timeout=HANG)
    path = "/v1/evaluate" if "criteria" in body else "/v1/gates/publish/check"
    answer = client.post(path, json=body)

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert "one text" in answer.json()["detail"]


def test_a_text_is_one_value_however_long(server: RunningServer):
    """Also where it is JSON itself."""
    client = server.open_client(key=server.make_key("judge"), timeout=HANG)
    content = json.dumps([1] * 160_000)  # below largest_content, and far above what a request may hold in values

    assert client.post("/v1/gates/publish/check", json={"content": content}).json()["allowed"] is False


def test_a_way_back_that_is_no_address_leads_to_the_first_page(server: RunningServer):
    """Nor does it fail, whatever a browser is made to send."""
    client = server.sign_in("Rea")
    form = {"theme": "dark", "csrf_token": find_token(client, "/")}
    for referer, target in (("http://[x", "/"), ("//evil.example//evil.example", "/"), ("http://x/\\evil", "/")):
        answer = client.post("/theme", data=form, headers={"Referer": referer})
        assert (answer.status_code, answer.headers["location"]) == (303, target)


def test_a_failure_of_the_server_is_answered_like_everything_else(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
):
    """With the headers that protect every answer, nothing of the inside, and counted as what it is."""
    state = server.app.state.holder.get()

    async def fail() -> None:
        raise RuntimeError(f"inside {server.folder}")

    monkeypatch.setattr(type(state.ledger), "head", lambda _: fail())
    client = server.open_client(key=server.make_key("read"))
    answer = client.get("/v1/ledger/head")
    monkeypatch.undo()

    assert (answer.status_code, answer.json()["code"]) == (500, "crash")
    assert str(server.folder) not in answer.text
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert 'route="/v1/ledger/head",status="500"' in client.get("/metrics").text
