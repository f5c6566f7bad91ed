"""The client: a gate, a judge or a firewall of a server, used like one of this program."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from adjudge import Blocked, Client, Gate, JudgeResult, ServerError, UsageError
from adjudge.guards import digest_shown
from adjudge.ledger import verify_export
from adjudge.tools import tool_digest, validate_reuse
from kit import tools
from kit.answering import HEAD, answering
from kit.patience import HANG
from kit.server import CONFIG, run_server

pytestmark = pytest.mark.timed


LONG = "x" * 41

JUDGED = (
    CONFIG
    + """
[judges.calm]
seats = ["python:client_judges:answer"]

[judges.reviewer]
seats = ["python:client_judges:review"]

[defaults]
judge = "calm"

[server]
runs = "runs"
"""
)

JUDGE = '''
"""A judge in code: what says bad fails; and a reviewer of tools."""

import json
import re

from kit.tools import approval, refusal, review as say


def answer(content):
    return "bad" not in str(content)


def review(prompt):
    bad = "sends them away" in prompt
    said = (refusal() if bad else approval()) if "determinism" in prompt else say(approved=not bad)
    return json.dumps({"token": re.search(r"<<source (\\w{8})>>", prompt)[1], **said})
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "client_judges.py").write_text(JUDGE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with run_server(folder, JUDGED) as running:
            yield running


@pytest.fixture(scope="module")
def client(server):
    made = Client(server.url, key=server.make_key("judge"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def reviewed(server):
    """The reviews of the server's reviewer."""
    made = Client(server.url, key=server.make_key("judge"))
    yield made.emergent_judge("reviewer")
    made.close()


@dataclass(frozen=True)
class Order:
    item: str
    amount: int


@pytest.mark.parametrize("content", ["short", LONG, {"a": [1, None, 2.5]}, ["x"], Order("pen", 2), "é\n", 7, None, ""])
def test_a_gate_of_a_server_decides_as_one_of_this_program(client, content):
    """One line is another, and the decision is the same."""
    local = Gate("publish", rules=[{"name": "length", "max": 40}]).check_sync(content, metadata={"n": 1})
    remote = client.gate("publish").check_sync(content, metadata={"n": 1})

    assert (remote.allowed, remote.decided_by, remote.subject) == (local.allowed, local.decided_by, local.subject)
    assert remote.result.outcome == local.result.outcome
    assert {name: remote.metadata[name] for name in local.metadata} == dict(local.metadata)


def test_what_cannot_be_read_is_blocked_without_being_sent(client):
    """As a gate of this program blocks it."""
    for content in (b"binary", "\ud800"):
        decision = client.gate("publish").check_sync(content)
        assert (decision.allowed, decision.decided_by) == (False, "policy")


def test_a_gate_of_a_server_guards_a_function(client):
    """Blocked content does not reach it."""
    sent = []

    @client.gate("publish").guard(argument="text")
    def publish(text):
        sent.append(text)

    publish("short")
    with pytest.raises(Blocked):
        publish(LONG)
    assert sent == ["short"]


def test_what_people_approve_at_the_server_goes_on_here(client, server):
    """A pending decision is resumed, with the content that is about to be used."""
    gate = client.gate("held")
    waits = gate.check_sync(LONG)
    assert (waits.pending, waits.allowed) == (True, False)

    ana = Client(server.url, key=server.make_key("approve", approver="Ana"))

    async def approve() -> Any:
        async with ana:
            (asked,) = [item for item in await ana.approvals().list() if item.id == waits.approval_id]
            return await ana.approvals().decide(asked.id, True, "it is fine", seen=digest_shown(asked))

    assert asyncio.run(approve()).status == "approved"
    assert gate.resume_sync(waits, content=LONG).allowed is True


@pytest.mark.parametrize("status", ["open", None])
def test_requests_are_listed_by_title_agent_and_customer(client, server, status):
    """A part of the title, the agent and the customer; a text that no store holds is refused."""
    about = {"title": f"Refund 20 EUR, {status}", "agent": "support", "customer": f"C-1 {status}"}
    first = client.gate("held").check_sync("x" * 50, metadata=about)
    second = client.gate("held").check_sync("x" * 51, metadata=about | {"agent": "sales"})
    approvals = Client(server.url, key=server.make_key("read")).approvals()

    def find(**filters):
        return {approval.id for approval in approvals.list_sync(status=status, **filters)}

    both = {first.approval_id, second.approval_id}
    assert find(title=f"refund 20 eur, {status}") == find(customer=f"C-1 {status}") == both
    assert find(customer=f"C-1 {status}", agent="sales") == {second.approval_id}
    assert find(customer="C-1") == find(title="%_%") == set()
    with pytest.raises(UsageError):
        find(agent="a\0b")


@pytest.mark.slow
def test_resuming_what_nobody_decides_returns_within_the_timeout(client, server):
    """The decision is pending still, and is resumed later; nobody waits for as long as somebody may decide."""
    timeout = 2.0
    waits = client.gate("held").check_sync(LONG + "r")
    impatient = Client(server.url, key=server.make_key("judge"), timeout=timeout)
    started = time.monotonic()
    still = [impatient.gate("held").resume_sync(item) for item in (waits, str(waits.approval_id))]
    impatient.close()

    assert time.monotonic() - started < HANG
    assert [(item.pending, item.allowed, item.approval_id) for item in still] == [(True, False, waits.approval_id)] * 2


def test_a_judge_of_a_server_evaluates(client):
    """The result is a result like any other."""
    judge = client.judge()
    results = [judge.evaluate_sync(text, criteria="It is good.") for text in ("fine", "bad")]

    assert [result.outcome for result in results] == ["passed", "failed"]
    assert all(isinstance(result, JudgeResult) for result in results)


def test_firewalls_of_a_server_check(client):
    """Arguments and rules, with the library's verdicts."""
    assert client.input_firewall().check_sync({"a": "kind"}).passed is True
    assert client.input_firewall().check_sync({"a": "bad"}).passed is False
    assert client.input_firewall().check_sync({"a": {1, 2}}).passed is False
    assert client.prompt_firewall().check_sync(["be kind"]).allowed == ("be kind",)
    assert client.prompt_firewall().check_sync(["be bad"]).allowed == ()


def test_a_ledger_of_a_server_is_read(client, server):
    """Entries come as the library has them."""
    decision = client.gate("publish").check_sync("recorded")
    reader = Client(server.url, key=server.make_key("read"))

    async def read() -> Any:
        async with reader:
            ledger = reader.ledger()
            return [entry async for entry in ledger.query(subject=decision.subject)], await ledger.head()

    entries, head = asyncio.run(read())
    assert decision.ledger_seq in [entry.seq for entry in entries]
    assert head.seq >= decision.ledger_seq


def test_results_of_a_server_are_read(client, server):
    """By what was decided, with and without an event loop; and what the ledger has of one."""
    blocked = client.gate("publish").check_sync("x" * 41)
    reader = Client(server.url, key=server.make_key("read"))

    async def read() -> Any:
        async with reader:
            return [result async for result in reader.results().query(gate="publish", outcome="failed", when="day")]

    decisions = asyncio.run(read())
    results = Client(server.url, key=server.make_key("read")).results()
    assert list(results.query_sync(gate="publish", outcome="failed")) == decisions
    assert decisions[0].id == blocked.id
    assert (decisions[0].allowed, decisions[0].decided_by, decisions[0].state) == (False, "rule", "failed")
    assert list(results.query_sync(gate="nowhere")) == []
    (entry,) = results.entries_sync(blocked.id)
    assert (entry.seq, entry.kind) == (blocked.ledger_seq, "decision")
    with pytest.raises(UsageError):
        results.entries_sync("unknown")


def test_a_ledger_of_a_server_is_verified_and_exported_without_an_event_loop(client, server, tmp_path):
    """A head that was kept elsewhere is compared; the export is checked without the server."""
    decision = client.gate("publish").check_sync("verified")
    ledger = Client(server.url, key=server.make_key("read")).ledger()
    head = ledger.head_sync()

    verification = ledger.verify_sync(head)
    assert (verification.valid, verification.pinned_head, verification.entries >= head.seq) == (True, True, True)
    assert ledger.verify_sync(f"{head.seq}:{'0' * 64}").code == "head_changed"
    assert [entry.seq for entry in ledger.query_sync(subject=decision.subject)] == [decision.ledger_seq]
    with pytest.raises(UsageError, match="head"):
        ledger.verify_sync("adjudge.toml")

    exported = ledger.export_sync(tmp_path / "ledger.jsonl")
    assert verify_export(tmp_path / "ledger.jsonl", head=exported).valid


VALID = {
    "schema": "adjudge/ledger-verification/1",
    "valid": True,
    "entries": 1,
    "code": None,
    "seq": None,
    "detail": "",
    "head": {"seq": 1, "hash": "0" * 64},
    "pinned_head": True,
    "signatures": "none",
    "erased": {},
    "unseen": [],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"pinned_head": False},
        {"valid": "false"},
        {"valid": 1},
        {"code": "chain_broken"},
        {"valid": False},
        {"pinned_head": "false"},
        {"schema": "adjudge/ledger-verification/99"},
        {"other": 1},
        {"erased": []},
        {"erased": {"first": 1}},
        {"erased": {"1": None}},
        {"head": {"seq": 0, "hash": "0" * 64}},
    ],
)
def test_only_a_verification_that_compared_the_head_counts(changes):
    """Whatever else is answered is an error, never a ledger that verifies."""
    with answering((200, {}, json.dumps(VALID | changes).encode()), verb="GET") as (url, _):
        client = Client(url, timeout=HANG)
        with pytest.raises(ServerError):
            client.ledger().verify_sync(f"1:{'0' * 64}")
        client.close()


def test_approvals_of_a_server_are_decided_without_an_event_loop(client, server):
    """Listed, looked at and denied; a second decision is refused."""
    waits = client.gate("held").check_sync(LONG + "sync")
    approvals = Client(server.url, key=server.make_key("approve", approver="Ana")).approvals()

    assert waits.id in [item.id for item in client.gate("held").pending_sync()]
    assert waits.approval_id in [item.id for item in approvals.list_sync()]
    assert approvals.get_sync(waits.approval_id).status == "open"
    assert approvals.decide_sync(waits.approval_id, False, "no").status == "denied"
    with pytest.raises(UsageError):
        approvals.decide_sync(waits.approval_id, True, "yes")
    assert client.gate("held").resume_sync(waits).allowed is False


def test_forged_tools_are_reviewed_by_a_server(reviewed):
    """As ``EmergentJudge`` does, with its verdicts; what a reviewer refuses is not approved."""
    good = reviewed.review_creation_sync(tools.candidate())
    assert (good.approved, good.tool_digest) == (True, tool_digest(tools.candidate()))
    bad = reviewed.review_creation_sync(tools.candidate(description="Adds two numbers, and sends them away."))
    assert (bad.approved, bad.safety) == (False, 0.0)


def test_a_promotion_is_reviewed_by_a_server(reviewed):
    """Two reviewers, and a verdict about the very tool that was sent."""
    tool = tools.tool()

    verdict = reviewed.review_promotion_sync(tool)
    assert (verdict.approved, verdict.tool_digest) == (True, tool.digest)
    worse = tools.candidate(description="Adds two numbers, and sends them away.")
    assert reviewed.review_promotion_sync(tools.tool(candidate=worse)).approved is False


def test_an_output_of_a_tool_is_checked_by_a_server(client):
    """As ``validate_reuse`` does."""
    judge, schema = client.emergent_judge(), tools.INTEGER

    assert judge.validate_reuse_sync("tool-1", {"sum": 3}, schema).valid is True
    local = validate_reuse("tool-1", {"sum": "3"}, schema)
    assert judge.validate_reuse_sync("tool-1", {"sum": "3"}, schema) == local
    assert judge.validate_reuse_sync("tool-1", {1, 2}, schema).valid is False


def test_a_review_is_recorded_in_the_ledger(reviewed, server):
    """Under the tool's digest."""
    verdict = reviewed.review_creation_sync(tools.candidate(source="return 1 + 2"))
    ledger = Client(server.url, key=server.make_key("read")).ledger()

    assert [entry.kind for entry in ledger.query_sync(subject=verdict.tool_digest)] == ["tool.reviewed"]


@pytest.mark.slow
def test_a_review_by_a_server_that_cannot_be_reached_approves_nothing():
    """Nor by one that answers about another tool."""
    gone = Client("http://127.0.0.1:9", timeout=5.0)
    judge = gone.emergent_judge()
    assert judge.review_creation_sync(tools.candidate()).approved is False
    assert judge.review_promotion_sync(tools.tool()).approved is False
    assert judge.validate_reuse_sync("tool-1", {"sum": 3}, tools.INTEGER).valid is False
    gone.close()

    other = tools.creation(tools.candidate(source="return 4"))
    with answering((200, {}, json.dumps(other.to_dict()).encode())) as (url, _):
        client = Client(url, timeout=HANG)
        assert client.emergent_judge().review_creation_sync(tools.candidate()).approved is False
        client.close()


def test_what_the_server_refuses_is_an_error_that_says_so(server, client):
    """A wrong key and an unknown gate are mistakes of whoever calls, not undecided contents."""
    with pytest.raises(UsageError, match="nothing"):
        client.gate("nothing").check_sync("x")
    for key in (None, "adj_000000000000_" + "x" * 43, server.make_key("read")):
        stranger = Client(server.url, key=key)
        with pytest.raises(UsageError, match=r"scope|key"):
            stranger.gate("publish").check_sync("x")
        stranger.close()


@pytest.mark.slow
def test_a_server_that_cannot_be_reached_lets_nothing_through():
    """A gate blocks, a judge is undecided, a firewall rejects; what only reads raises."""
    gone = Client("http://127.0.0.1:9", timeout=5.0)
    decision = gone.gate("publish").check_sync("short")

    assert (decision.allowed, decision.decided_by, decision.result.undecided_because) == (False, "policy", "error")
    assert gone.judge().evaluate_sync("x", criteria="good").outcome == "undecided"
    assert gone.input_firewall().check_sync({"a": "b"}).passed is False
    assert gone.prompt_firewall().check_sync(["a"]).allowed == ()
    with pytest.raises(ServerError):
        asyncio.run(gone.approvals().list())
    gone.close()


def answer_of(content: str, **changes: Any) -> bytes:
    """A decision about a content, as a server writes it."""
    decision = Gate("publish", rules=[{"name": "length", "max": 40}]).check_sync(content)
    return json.dumps({**decision.to_dict(), **changes}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"true",
        b'{"allowed": true}',
        b"<html>all is well</html>",
        answer_of("another content"),
        answer_of("short", gate="lax"),
        answer_of("short", allowed="yes"),
        answer_of("short", schema="adjudge/decision/99"),
        answer_of("short", decided_by="judge"),
        b"[" * 100_000,
    ],
)
def test_only_a_decision_about_this_content_at_this_gate_counts(body):
    """Whatever else is answered, by a proxy, a cache or another server: blocked."""
    with answering((200, {}, body)) as (url, _):
        client = Client(url, timeout=HANG)
        decision = client.gate("publish").check_sync("short")
        client.close()

    assert (decision.allowed, decision.decided_by) == (False, "policy")


WRONG = [b"", b"<html>all is well</html>", b"{}", b"[]", b"null", b"7", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"\xff"]


@pytest.mark.parametrize("body", WRONG)
def test_an_answer_of_another_shape_is_an_error_of_the_server(body, tmp_path):
    """The same error everywhere: it is no mistake of the caller, and no error of Python's."""
    with answering((200, {"Adjudge-Head": "none"}, body), verb="GET") as (url, _):
        client = Client(url, timeout=HANG)
        approvals, labels, ledger = client.approvals(), client.label_queue("first"), client.ledger()
        results = client.results()
        for ask in (
            lambda: approvals.get_sync("x"),
            approvals.list_sync,
            client.gate("publish").pending_sync,
            labels.labels_sync,
            labels.progress_sync,
            ledger.head_sync,
            ledger.verify_sync,
            lambda: list(ledger.query_sync()),
            lambda: list(results.query_sync()),
            lambda: results.entries_sync("x"),
            lambda: ledger.export_sync(tmp_path / "ledger.jsonl"),
        ):
            with pytest.raises(ServerError):
                ask()
        client.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("body", WRONG)
def test_an_answer_of_another_shape_decides_and_labels_nothing(body):
    """A review does not approve, and what was to be written raises."""
    with answering((200, {}, body)) as (url, _):
        client = Client(url, timeout=HANG)
        labels, judge = client.label_queue("first"), client.emergent_judge()
        for ask in (
            lambda: client.approvals().decide_sync("x", True),
            lambda: client.gate("publish").resume_sync("x"),
            labels.next_sync,
            lambda: labels.record_sync("x", True),
            lambda: labels.adjudicate_sync("x", True),
            labels.undo_sync,
        ):
            with pytest.raises(ServerError):
                ask()
        assert judge.review_creation_sync(tools.candidate()).approved is False
        assert judge.review_promotion_sync(tools.tool()).approved is False
        assert judge.validate_reuse_sync("tool-1", {"sum": 3}, tools.INTEGER).valid is False
        assert client.judge().evaluate_sync("x", criteria="good").outcome == "undecided"
        assert client.input_firewall().check_sync({"a": "b"}).passed is False
        assert client.prompt_firewall().check_sync(["a"]).allowed == ()
        client.close()


def test_an_export_takes_longer_than_the_timeout_as_long_as_it_goes_on(tmp_path):
    """The timeout is for each piece: together they take longer, and each far less."""
    place = tmp_path / "ledger.jsonl"
    with dripping([b"x" * 10] * 8, pause=2.5, size=80) as url:
        assert Client(url, timeout=15).ledger().export_sync(place).seq == 1

    assert place.read_bytes() == b"x" * 80


@pytest.mark.parametrize(("pause", "size"), [(1.0, 20), (0.0, 30)], ids=["stalls", "breaks off"])
def test_an_export_that_does_not_end_leaves_no_file(pause, size, tmp_path):
    """So that trying again is not refused, and half a ledger is not taken for all of it."""
    with dripping([b"x" * 10, b"x" * 10], pause=pause, size=size) as url, pytest.raises(ServerError):
        Client(url, timeout=0.4).ledger().export_sync(tmp_path / "ledger.jsonl")

    assert list(tmp_path.iterdir()) == []


@contextmanager
def dripping(pieces: list[bytes], *, pause: float, size: int):
    """A server of an export that sends some pieces one after the other and then ends, whatever length it announced."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            for name, value in {**HEAD, "Content-Length": str(size)}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # the client has left
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(pause)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.mark.parametrize("status", [301, 302, 204, 500, 502, 503, 504])
def test_only_status_200_is_an_answer(status):
    """A redirect is not followed, and no error lets anything through."""
    with answering((status, {"Location": "http://127.0.0.1:9/", "Retry-After": "0"}, answer_of("short"))) as (url, _):
        client = Client(url, timeout=1.0)
        decision = client.gate("publish").check_sync("short")
        client.close()

    assert decision.allowed is False


def test_a_busy_server_is_asked_again_for_the_same_request():
    """With one Idempotency-Key for all tries, so that nothing is judged twice."""
    busy = (503, {"Retry-After": "0"}, b'{"detail": "busy"}')
    with answering(busy, busy, (200, {}, answer_of("short"))) as (url, requests):
        client = Client(url, timeout=HANG)
        decision = client.gate("publish").check_sync("short")
        client.close()

    assert decision.allowed is True
    assert len({headers["Idempotency-Key"] for headers, _ in requests}) == 1
    assert len(requests) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://x"},
        {"url": "127.0.0.1:8318"},
        {"url": "https://user:secret@x"},
        {"url": "https://x?a=b"},
        {"url": "http://x.example", "key": "adj_000000000000_" + "x" * 43},
        {"url": "https://x", "key": "a\r\nb"},
        {"url": "https://x", "key": ""},
        {"url": "https://x", "timeout": 0},
    ],
)
def test_an_address_and_a_key_are_checked_before_anything_is_sent(options):
    """A key goes over https, or within this machine, and breaks no header."""
    with pytest.raises(UsageError):
        Client(options.pop("url"), **options)


def test_a_key_is_in_no_text_of_a_client(server):
    """Neither in its repr nor in an error."""
    key = "adj_000000000000_" + "x" * 43
    client = Client(server.url, key=key)
    with pytest.raises(UsageError) as refused:
        client.gate("publish").check_sync("x")
    client.close()

    assert key not in repr(client) + str(refused.value) + repr(client.gate("publish"))


@pytest.mark.parametrize("head", ["", " "])
def test_an_empty_head_is_said_to_be_empty(head, tmp_path):
    """A variable that was not set, for instance: it is no folder, and nothing verifies without it."""
    with pytest.raises(UsageError, match="the head is empty"):
        verify_export(tmp_path / "ledger.jsonl", head=head)
