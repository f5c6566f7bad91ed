"""``/v1/tools/check``, ``/resume`` and ``/v1/hooks``: what a program and a coding agent are told about a call."""

from __future__ import annotations

import hashlib
import json
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from kit.house import TESTS
from kit.patience import HANG
from kit.server import CONFIG as NO_HOOK
from kit.server import RunningServer, approve, run_server

pytestmark = pytest.mark.timed

CONFIG = """
[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"

[gates.shell]
rules = [{not_contains = "curl", description = "No downloads."}]

[gates.deletes]
rules = [{contains = "scratch"}]
on_rule = "ask"
ask = {approvers = ["Ana"], show_content = true}

[hook]
tools = {"Bash" = "shell", "delete_*" = "deletes"}
mcp = [{server = "shop", tool = "deploy*", gate = "deletes", source = "user"}]
unchecked = ["Read"]
"""

ALLOWED, REFUSED, WAITING = "allow", "refuse", "pending"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """With ``[hook]``, one gate of rules and one that asks Ana."""
    with run_server(tmp_path_factory.mktemp("server"), CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def agent(server: RunningServer) -> Any:
    """A client with a key of the scope hook."""
    return server.open_client(key=server.make_key("hook"))


@pytest.fixture(scope="module")
def ana(server: RunningServer) -> Any:
    """A client with Ana's key."""
    return server.open_client(key=server.make_key("approve", "read", approver="Ana"))


def name_run(client: Any, run: str) -> str:
    """A run of a client's key, as the ledger has it."""
    return f"key:{client.headers['Authorization'].split('_')[1]}/{run}"


def make_call(run: str, **changed: Any) -> dict[str, Any]:
    call = {"tool": "Bash", "arguments": {"command": "ls"}, "call_id": "c1", "run_id": run}
    return {name: value for name, value in (call | changed).items() if value is not ...}


def make_event(run: str, command: str = "ls", **changed: Any) -> dict[str, Any]:
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1"}
    return {"session_id": run, "cwd": "/work", "hook_event_name": "PreToolUse", **call, **changed}


def ask(client: Any, body: Any, path: str = "/v1/tools/check") -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask_for_deletion(client: Any, run: str, path: str = "/v1/tools/check", **changed: Any) -> dict[str, Any]:
    changed = {"tool": "delete_file", "arguments": {"path": "/srv/data"}} | changed
    return ask(client, make_call(run, **changed), path)


def test_a_call_is_allowed_refused_or_not_known(agent: Any):
    """By the gate that [hook] names for the tool; ``allowed`` says it, and the status is 200."""
    passed = ask(agent, make_call("run-1"))
    refused = ask(agent, make_call("run-1", arguments={"command": "curl x"}, call_id="c2"))
    unknown = ask(agent, make_call("run-1", tool="Write", call_id="c3"))

    assert (passed["allowed"], passed["kind"], passed["because"]) == (True, ALLOWED, None)
    assert (refused["allowed"], refused["kind"], refused["because"]) == (False, REFUSED, "refused")
    assert (unknown["allowed"], unknown["because"]) == (False, "not_listed")
    assert "curl" not in refused["message"]


def test_a_held_call_is_made_once_after_a_person_says_yes(agent: Any, ana: Any):
    """The same call waits on the same request, other arguments on another one, and a yes opens this one alone."""
    held = ask_for_deletion(agent, "run-2")
    again = ask_for_deletion(agent, "run-2")
    other = ask_for_deletion(agent, "run-2", arguments={"path": "/srv/more"})
    assert (held["kind"], held["allowed"], again["approval_id"]) == (WAITING, False, held["approval_id"])
    assert other["approval_id"] != held["approval_id"]
    assert ask_for_deletion(agent, "run-2", "/v1/tools/resume")["kind"] == WAITING

    assert approve(ana, held["approval_id"]).status_code == 200
    resumed = [ask_for_deletion(agent, "run-2", "/v1/tools/resume") for _ in range(2)]

    assert [(one["allowed"], one["because"]) for one in resumed] == [(True, None), (False, "used")]
    assert ask_for_deletion(agent, "run-2-other", "/v1/tools/resume")["because"] == "refused"


def test_a_call_that_never_waited_cannot_be_resumed(agent: Any):
    """So that a framework's word that it was approved opens nothing."""
    assert ask(agent, make_call("run-3"), "/v1/tools/resume")["allowed"] is False


@pytest.mark.slow
def test_resuming_waits_for_people(agent: Any, ana: Any):
    """With ``wait``, the answer comes when they have decided."""
    held = ask_for_deletion(agent, "run-4")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask_for_deletion, agent, "run-4", "/v1/tools/resume", wait=25)
        assert approve(ana, held["approval_id"]).status_code == 200
        assert waiting.result()["allowed"] is True


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"run_id": ...}, 422),
        ({"run_id": ""}, 422),
        ({"run_id": "  "}, 422),
        ({"run_id": "x" * 184}, 422),
        ({"call_id": "x" * 201}, 422),
        ({"call_id": "ümlaut"}, 422),
        ({"tool": ""}, 422),
        ({"arguments": ["ls"]}, 422),
        ({"gate": "deletes"}, 422),
        ({"metadata": {"gate": "deletes"}}, 422),
        ({"remarks": {"mcp_server_source": "user"}}, 422),
        ({"arguments": {"command": "x" * 600_000}}, 413),
        ({"task": "x" * 600_000}, 413),
        ({"remarks": {"why": "x" * 600_000}}, 413),
    ],
)
def test_what_is_no_call_has_another_status(agent: Any, changed: dict[str, Any], status: int):
    """No member chooses a gate, none is missing, and each has its limit."""
    answer = agent.post("/v1/tools/check", json=make_call("run-5", **changed))

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_arguments_that_two_readers_read_differently_are_refused(agent: Any):
    """As JSON text they come to the guard, which reads them strictly; in the body the server does."""
    call = make_call("run-6", arguments='{"command": "ls", "Command": "curl x"}')

    assert ask(agent, call)["allowed"] is False
    assert agent.post("/v1/tools/check", content=b'{"tool": "Bash", "tool": "Read"}').status_code in (400, 422)


@pytest.mark.parametrize("amount", ["1.0000000000000000001", "1e-400", "0.1000000000000000055511151231257827"])
def test_a_decimal_that_two_readers_read_differently_is_refused(agent: Any, amount: str):
    """In an object the body is not taken, and as a text the guard refuses: two such calls would bind alike."""
    call = json.dumps(make_call("run-6", tool="delete_file", arguments={"amount": 0}))
    body = call.replace('"amount": 0', f'"amount": {amount}')
    answer = agent.post("/v1/tools/check", content=body, headers={"Content-Type": "application/json"})
    text = ask(agent, make_call("run-6", tool="delete_file", arguments=f'{{"amount": {amount}}}', call_id="c2"))

    assert (answer.status_code, answer.json()["code"]) == (400, "json")
    assert (text["allowed"], text["kind"]) == (False, REFUSED)


def test_where_a_server_comes_from_is_no_remark(agent: Any):
    """A call of an MCP server of another source than the configured one is refused."""
    changed = {"tool": "deploy", "server": "shop", "arguments": {"to": "scratch"}}

    assert ask(agent, make_call("run-7", **changed, source="user"))["allowed"] is True
    assert ask(agent, make_call("run-7", **changed, source="project", call_id="c2"))["allowed"] is False
    assert ask(agent, make_call("run-7b", **changed))["allowed"] is False


def test_files_are_those_that_the_caller_has_read(agent: Any, tmp_path_factory: pytest.TempPathFactory):
    """The server reads none that a request names: they would be of another machine, or nobody else's business."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "data").write_text("secret", encoding="utf-8")
    place = {"cwd": str(folder), "arguments": {"path": "data"}, "tool": "delete_file"}
    one = ask(agent, make_call("run-8", **place, files={"data": "0" * 64}))
    same = ask(agent, make_call("run-8", **place, files={"data": "0" * 64}))
    other = ask(agent, make_call("run-8", **place, files={"data": "1" * 64}))
    none = ask(agent, make_call("run-8", **place))

    assert one["approval_id"] == same["approval_id"]
    assert len({one["approval_id"], other["approval_id"], none["approval_id"]}) == 3


def test_people_see_that_files_are_not_bound(agent: Any, ana: Any):
    """Where nobody has read those that a call may name."""
    held = ask(agent, make_call("run-9", tool="delete_file", cwd="/work", arguments={"path": "data"}))

    shown = ana.get(f"/v1/approvals/{held['approval_id']}").json()
    assert '"files_not_bound": true' in json.dumps(shown) or "files_not_bound" in json.dumps(shown)


def test_an_answer_repeats_nonce_and_digest(agent: Any):
    """And says which configuration has answered; another digest than that of the body is refused."""
    body = json.dumps(make_call("run-10")).encode()
    headers = {"Adjudge-Nonce": "n1", "Content-Type": "application/json"}
    digest = hashlib.sha256(body).hexdigest()
    answer = agent.post("/v1/tools/check", content=body, headers={**headers, "Adjudge-Digest": digest})

    assert (answer.headers["adjudge-nonce"], answer.headers["adjudge-digest"]) == ("n1", digest)
    assert len(answer.headers["adjudge-configuration"]) == 64
    for wrong in ({"Adjudge-Digest": "0" * 64}, {"Adjudge-Nonce": "n" * 101}):
        assert agent.post("/v1/tools/check", content=body, headers={**headers, **wrong}).status_code == 400


@pytest.mark.parametrize("path", ["/v1/tools/check", "/v1/tools/resume", "/v1/hooks/claude", "/v1/evaluate"])
@pytest.mark.parametrize("key", ["", "Authorization: Bearer adj_000000000000_none\r\n"])
def test_who_has_no_key_is_answered_before_a_body_is_read(server: RunningServer, path: str, key: str):
    """Else anybody could have the server hold as many bodies as there are connections."""
    address = urlsplit(server.url)
    head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n{key}"
    with socket.create_connection((address.hostname, address.port), timeout=HANG) as connection:
        connection.sendall(f"{head}Content-Length: 900000\r\n\r\n".encode())
        begin = connection.recv(12)

    assert begin == b"HTTP/1.1 401"


def test_a_server_without_a_hook_allows_nothing(tmp_path: Any):
    """503, as for everything that the server cannot decide."""
    with run_server(tmp_path, NO_HOOK) as running:
        client = running.open_client(key=running.make_key("hook"))
        answers = [client.post("/v1/tools/check", json=make_call("r")), client.post("/v1/hooks/claude", json={})]

    assert [(one.status_code, one.json()["code"]) for one in answers] == [(503, "hook")] * 2


# ---------------------------------------------------------------- harnesses


def test_a_harness_is_answered_in_its_own_form(agent: Any, server: RunningServer):
    """Denied, without an opinion, or held; and what is let pass is on record."""
    answers = {
        harness: [
            ask(agent, make_event(f"s-{harness}", command), f"/v1/hooks/{harness}") for command in ("ls", "curl x")
        ]
        for harness in ("claude", "codex")
    }
    kinds = server.change(lambda ledger: _list_kinds(ledger, name_run(agent, "s-claude")))

    for passed, refused in answers.values():
        assert passed == {}
        assert refused["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert kinds == ["call.passed"]


async def _list_kinds(ledger: Any, run: str) -> list[str]:
    return [entry.kind async for entry in ledger.query(run=run) if entry.kind.startswith("call.")]


def test_a_persons_yes_is_allow_where_managed_hooks_alone_count(agent: Any, ana: Any):
    """Elsewhere it leaves the harness its own question."""
    event = make_event("s-3", tool_name="delete_file", tool_input={"path": "/srv/x"})
    other = make_event("s-4", tool_name="delete_file", tool_input={"path": "/srv/y"})
    answers = []
    for changed, query in ((event, ""), (other, "?managed=true")):
        path = f"/v1/hooks/claude{query}"
        assert ask(agent, changed, path)["hookSpecificOutput"]["permissionDecision"] == "deny"
        waiting = ana.get("/v1/approvals").json()["approvals"]
        [ident] = [one["id"] for one in waiting if json.dumps(one).find(changed["tool_input"]["path"]) >= 0]
        assert approve(ana, ident).status_code == 200
        answers.append(ask(agent, changed, path))

    assert answers[0] == {}
    assert answers[1]["hookSpecificOutput"]["permissionDecision"] == "allow"


@pytest.mark.parametrize(
    "event", [{}, {"hook_event_name": "Nothing", "session_id": "s"}, make_event(""), make_event("s", cwd="work"), []]
)
def test_what_is_no_event_is_no_answer(agent: Any, event: Any):
    """A status that no client takes for a pass."""
    assert agent.post("/v1/hooks/claude", json=event).status_code == 422


def test_an_unknown_harness_is_refused(agent: Any):
    """There are two."""
    assert agent.post("/v1/hooks/gemini", json=make_event("s")).status_code == 422


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_every_recorded_event_is_answered(agent: Any, harness: str):
    """Those that the real programs wrote."""
    [file] = (TESTS / "data" / "harness").glob(f"{harness}-*.jsonl")
    statuses = Counter(
        agent.post(f"/v1/hooks/{harness}", content=line, headers={"Content-Type": "application/json"}).status_code
        for line in file.read_text("utf-8").splitlines()
    )

    assert set(statuses) == {200}


# ---------------------------------------------------------------- a run that was stopped


def test_an_approver_reopens_a_run_that_was_stopped(agent: Any, ana: Any, server: RunningServer):
    """Nobody else, and with a reason; the ledger says who. A run of which nothing was refused is not one."""
    for number in range(10):
        ask(agent, make_call("run-11", arguments={"command": f"curl {number}"}, call_id=f"c{number}"))
    stopped = ask(agent, make_call("run-11", call_id="c10"))
    run = name_run(agent, "run-11")
    body = {"run_id": run, "reason": "a test of downloads"}
    others = [
        agent,
        server.open_client(key=server.make_key("read")),
        server.open_client(key=server.make_key("approve")),
    ]
    refused = [client.post("/v1/tools/reopen", json=body).status_code for client in others]
    still = ask(agent, make_call("run-11", call_id="c11"))
    wrong = [
        ana.post("/v1/tools/reopen", json=body | one).status_code for one in ({"reason": ""}, {"run_id": "run-11"})
    ]
    reopened = ana.post("/v1/tools/reopen", json=body)

    assert (stopped["because"], still["because"]) == ("stopped", "stopped")
    assert (refused, wrong, reopened.status_code) == ([403] * 3, [422] * 2, 200)
    assert (reopened.json()["by"], reopened.json()["run"]) == ("Ana", run)
    assert ask(agent, make_call("run-11", call_id="c12"))["allowed"] is True


# ---------------------------------------------------------------- whose run it is


@pytest.fixture(scope="module")
def thief(server: RunningServer) -> Any:
    """A client with another key of the scope hook, who knows all ids and arguments of the first one's calls."""
    return server.open_client(key=server.make_key("hook"))


def test_another_key_cannot_use_up_an_approval(agent: Any, thief: Any, ana: Any):
    """Its call of the same run, id and arguments is another call, whatever it writes into the run's name."""
    held = ask_for_deletion(agent, "run-20")
    assert approve(ana, held["approval_id"]).status_code == 200
    named = ("run-20", name_run(agent, "run-20"), f"../{name_run(agent, 'run-20')}")
    stolen = [ask_for_deletion(thief, run, "/v1/tools/resume") for run in named]
    asked = [ask_for_deletion(thief, run) for run in named]

    assert [(one["allowed"], one["because"]) for one in stolen] == [(False, "refused")] * 3
    assert held["approval_id"] not in [one["approval_id"] for one in asked]
    assert ask_for_deletion(agent, "run-20", "/v1/tools/resume")["allowed"] is True


def test_another_key_cannot_end_the_trust_of_a_run(agent: Any, thief: Any):
    """Neither by telling of a call that nobody checked, nor by refusals; it ends its own alone."""
    assert ask(agent, make_call("run-21"))["allowed"] is True
    forged = make_event("run-21", "curl x", hook_event_name="PostToolUse", tool_response="ok")
    for run in ("run-21", name_run(agent, "run-21")):
        ask(thief, forged | {"session_id": run}, "/v1/hooks/claude")
        for number in range(10):
            ask(thief, make_call(run, arguments={"command": f"curl {number}"}, call_id=f"c{number}"))

    assert ask(agent, make_call("run-21", call_id="c2"))["allowed"] is True
    assert ask(thief, make_call("run-21", call_id="c2"))["because"] == "stopped"


def test_a_person_sees_the_agents_run_and_whose_it_is(agent: Any, ana: Any, server: RunningServer):
    """On the page of the request, which is asked by the key."""
    held = ask_for_deletion(agent, "run-22")
    server.add_account("Ana", "approve", "read")
    page = server.sign_in("Ana").get(f"/approvals/{held['approval_id']}").text
    key = name_run(agent, "").removesuffix("/")

    assert f'run <code class="exact">run-22</code> of <code>{key}</code> asked for' in page
    assert f'asked by <b class="soft" dir="auto">{key}</b>' in page


def test_a_person_sees_for_how_long_and_for_which_files_a_yes_is_good(agent: Any, server: RunningServer):
    """The request waits without end, and the approval does not; of files that nobody has read, the page says so."""
    bound, unbound = [
        ask_for_deletion(agent, "run-23", arguments={"path": path}, **place)
        for path, place in (("/srv/x", {}), ("data", {"cwd": "/work"}))
    ]
    server.add_account("Bea", "approve", "read")
    bea = server.sign_in("Bea")
    pages = [bea.get(f"/approvals/{held['approval_id']}").text for held in (bound, unbound)]

    for page in pages:
        assert "The request does not expire." in page
        assert "Once it is approved, the call can be made within 15 min. After that" in page
    assert ["files which nobody has read for this request" in page for page in pages] == [False, True]


# ---------------------------------------------------------------- the key, and many at once


def test_a_key_of_the_scope_hook_goes_with_nothing_else(server: RunningServer):
    """No other scope, no gate, no name; and no account has it."""
    from adjudge import UsageError
    from adjudge.server import make_permissions

    for scopes, limits in (
        (("hook", "judge"), {}),
        (("hook",), {"gates": ["shell"]}),
        (("hook",), {"approver": "Ana"}),
        (("hook",), {"rater": "Ana"}),
    ):
        with pytest.raises(UsageError) as caught:
            make_permissions(scopes, **limits)
        assert caught.value.argument == "scopes"
    with pytest.raises(UsageError):
        server.add_account("Eve", "hook", approver=None, rater=None)


@pytest.mark.slow
def test_two_servers_that_are_asked_at_once_make_one_request(tmp_path: Any):
    """And of as many resumptions after the yes, one is allowed."""
    folders = [tmp_path / name for name in ("one", "two")]
    ledger = f"sqlite:///{tmp_path / 'shared.db'}"
    config = CONFIG.replace("sqlite:///adjudge.db", ledger).replace("[hook]", "[hook]\ntimeout = 200")
    config += "\n[server]\ndeadline = 300\n"
    with ExitStack() as stack:
        servers = []
        for folder in folders:
            folder.mkdir()
            servers.append(stack.enter_context(run_server(folder, config, ledger=ledger)))
        key = servers[0].make_key("hook")
        clients = [server.open_client(key=key, timeout=300) for server in servers for _ in range(4)]
        # The first request builds a server's routes. In one process, two that do so at once change the filters of
        # Python's warnings under each other.
        assert {server.open_client().get("/v1/nothing").status_code for server in servers} == {404}
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        held = list(pool.map(lambda client: ask_for_deletion(client, "run-1"), clients))
        ana = servers[0].open_client(key=servers[0].make_key("approve", "read", approver="Ana"))
        assert {one["kind"] for one in held} == {WAITING}
        assert len(ana.get("/v1/approvals").json()["approvals"]) == 1
        assert approve(ana, held[0]["approval_id"]).status_code == 200
        resumed = list(pool.map(lambda client: ask_for_deletion(client, "run-1", "/v1/tools/resume"), clients))

    assert [one["allowed"] for one in resumed].count(True) == 1
