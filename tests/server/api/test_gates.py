"""Gates, judges and firewalls over HTTP: what is decided, for whom, and what is refused."""

from __future__ import annotations

import json

import pytest

from adjudge import Decision, JudgeResult, Ledger
from kit.server import CONFIG, approve, run_server

pytestmark = pytest.mark.timed


LONG = "x" * 41

JUDGED = (
    CONFIG
    + """
[judges.calm]
seats = ["python:server_judges:answer"]

[defaults]
judge = "calm"

[rubrics]
own = "own.yaml"
"""
)

JUDGE = '''
"""A judge in code: what says bad fails."""


def answer(content):
    return "bad" not in str(content)
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "server_judges.py").write_text(JUDGE, encoding="utf-8")
    (folder / "own.yaml").write_text(
        "name: Own\ncriteria: [{name: good, description: It is good.}]\n", encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with run_server(folder, JUDGED) as running:
            running.add_account("Ana")
            yield running


@pytest.fixture(scope="module")
def program(server):
    return server.open_client(key=server.make_key("judge"))


def check(client, content, gate="publish", **more):
    headers = more.pop("headers", {})
    return client.post(f"/v1/gates/{gate}/check", json={"content": content, **more}, headers=headers)


def test_a_gate_answers_with_its_decision(program, server):
    """What the library would have decided, recorded, with who asked."""
    answer = check(program, "short", metadata={"request": 7})
    decision = Decision.from_dict(answer.json())

    assert (answer.status_code, decision.allowed, decision.decided_by) == (200, True, "rule")
    assert decision.metadata["request"] == 7
    assert decision.metadata["adjudge_caller"].startswith("key:")

    async def read(ledger: Ledger):
        return await ledger.read(decision.ledger_seq)

    assert server.change(read).payload["id"] == decision.id


def test_what_a_rule_refuses_is_blocked(program):
    """A decision that is not allowed is an answer like any other."""
    assert check(program, LONG).json()["allowed"] is False


def test_a_request_that_is_sent_again_is_decided_once(program):
    """With one Idempotency-Key there is one decision, whatever happens on the way."""
    first = check(program, "once", headers={"Idempotency-Key": "k1"})
    again = check(program, "once", headers={"Idempotency-Key": "k1"})

    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"


def test_an_idempotency_key_belongs_to_one_body(program):
    """Another content under the same key would get a decision that is not about it."""
    check(program, "one", headers={"Idempotency-Key": "k2"})
    answer = check(program, "another", headers={"Idempotency-Key": "k2"})

    assert (answer.status_code, answer.json()["code"]) == (422, "reused_idempotency_key")


def test_an_idempotency_key_belongs_to_one_caller(program, server):
    """Another caller with the same key and body gets a decision of its own."""
    mine = check(program, "mine", headers={"Idempotency-Key": "k3"})
    other = server.open_client(key=server.make_key("judge"))

    assert check(other, "mine", headers={"Idempotency-Key": "k3"}).json()["id"] != mine.json()["id"]


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_an_idempotency_key_has_a_length(program, key):
    """None, and one without end, are refused."""
    answer = check(program, "one", headers={"Idempotency-Key": key})

    assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")


def test_what_people_approve_goes_on(program, server):
    """A gate that asks answers with a pending decision, which is resumed once somebody has approved."""
    waits = check(program, LONG, gate="held").json()
    assert (waits["allowed"], waits["pending"]) == (False, True)

    ident = {"approval": waits["approval_id"]}
    assert program.post("/v1/gates/held/resume", json=ident).json()["pending"] is True
    listed = program.get("/v1/gates/held/pending").json()["decisions"]
    assert waits["id"] in [item["id"] for item in listed]

    ana = server.open_client(key=server.make_key("approve", approver="Ana"))
    voted = approve(ana, waits["approval_id"])
    assert (voted.status_code, voted.json()["status"]) == (200, "approved")

    done = program.post("/v1/gates/held/resume", json=ident | {"content": LONG}).json()
    assert (done["allowed"], done["decided_by"]) == (True, "human")


def test_what_was_approved_is_what_was_held_back(program, server):
    """An approval of one content opens the gate for no other."""
    waits = check(program, LONG + "a", gate="held").json()
    ana = server.open_client(key=server.make_key("approve", approver="Ana"))
    approve(ana, waits["approval_id"])

    done = program.post("/v1/gates/held/resume", json={"approval": waits["approval_id"], "content": LONG + "b"}).json()

    assert done["allowed"] is False


def test_a_body_that_is_not_sent_as_json_is_answered_with_the_header_to_send(program):
    """Whatever a tool sends by default."""
    for headers in ({}, {"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": "text/plain"}):
        refused = program.post("/v1/gates/publish/check", content=b'{"content": "x"}', headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        assert "Content-Type: application/json" in refused.json()["detail"]


def test_a_held_decision_is_resumed_with_any_key_for_its_gate_and_with_no_other(program, server):
    """A key can be rotated while people decide. One without the scope, or of another gate, learns nothing."""
    waits = check(program, LONG + "r", gate="held").json()
    ident = {"approval": waits["approval_id"], "content": LONG + "r"}
    ana = server.open_client(key=server.make_key("approve", approver="Ana"))
    approve(ana, waits["approval_id"])

    for key in (server.make_key("judge", gates=["publish"]), server.make_key("approve", "read", approver="Ana")):
        refused = server.open_client(key=key).post("/v1/gates/held/resume", json=ident)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert program.post("/v1/gates/publish/resume", json=ident).status_code == 404  # held by another gate

    other = server.open_client(key=server.make_key("judge", gates=["held"])).post("/v1/gates/held/resume", json=ident)
    assert (other.status_code, other.json()["allowed"], other.json()["decided_by"]) == (200, True, "human")


def test_two_sessions_of_one_person_are_one_approval(program, server):
    """Who has decided in one place is told so in the other, with 409."""
    waits = check(program, LONG + "c", gate="held").json()
    keys = [server.make_key("approve", approver="Ben") for _ in range(2)]
    answers = [
        server.open_client(key=key).post(f"/v1/approvals/{waits['approval_id']}/votes", json={"approved": False})
        for key in keys
    ]

    assert [item.status_code for item in answers] == [200, 409]
    assert answers[1].json()["code"] in ("double", "closed")


def test_an_approval_is_listed_for_its_approvers_alone(program, server):
    """Somebody who is not asked learns nothing of it, not even whether it exists."""
    waits = check(program, LONG + "d", gate="held").json()["approval_id"]
    ana, eve = [server.open_client(key=server.make_key("approve", approver=name)) for name in ("Ana", "Eve")]

    assert waits in [item["id"] for item in ana.get("/v1/approvals").json()["approvals"]]
    assert eve.get("/v1/approvals").json()["approvals"] == []
    assert eve.get(f"/v1/approvals/{waits}").status_code == 404
    assert eve.post(f"/v1/approvals/{waits}/votes", json={"approved": True}).status_code == 404


def test_a_judge_of_the_server_is_asked(program):
    """By the server's own rubric, a shipped one, one of the request, or a sentence."""
    for options in (
        {"rubric": "own"},
        {"criteria": "It is good."},
        {"rubric": {"name": "R", "criteria": [{"name": "a", "description": "b"}]}},
    ):
        good = program.post("/v1/evaluate", json={"content": "fine", **options}).json()
        bad = program.post("/v1/evaluate", json={"content": "bad", **options}).json()
        assert (good["outcome"], bad["outcome"]) == ("passed", "failed"), options


def test_a_request_names_no_model_no_address_and_no_file(program, server):
    """Else whoever has a key could have the server ask a host of theirs, or read a file."""
    rubric = {"name": "R", "model": "http://127.0.0.1:1/v1#x", "criteria": [{"name": "a", "description": "b"}]}
    assert JudgeResult.from_dict(program.post("/v1/evaluate", json={"content": "x", "rubric": rubric}).json()).passed

    for options in (
        {"judge": "http://127.0.0.1:1/v1#x", "criteria": "good"},
        {"judge": "python:os:system", "criteria": "good"},
        {"rubric": "own.yaml"},
        {"rubric": str(server.folder / "own.yaml")},
        {"rubric": "../own"},
        {"criteria": "good", "rules": [{"python": "os:system"}]},
        {"criteria": "good", "rules": ["python:os:system"]},
    ):
        answer = program.post("/v1/evaluate", json={"content": "x", **options})
        assert (answer.status_code, answer.json()["code"]) == (422, "usage"), options


def test_firewalls_check_arguments_and_rules(program):
    """What the library's firewalls say, over HTTP."""
    passed = program.post("/v1/firewall/input", json={"arguments": {}}).json()
    rules = program.post("/v1/firewall/prompt", json={"rules": []}).json()

    assert (passed["passed"], rules["allowed"], rules["passed"]) == (True, [], True)
    for word, good in (("kind", True), ("bad", False)):
        verdict = program.post("/v1/firewall/input", json={"arguments": {"a": word}}).json()
        kept = program.post("/v1/firewall/prompt", json={"rules": [f"be {word}"]}).json()
        assert (verdict["passed"], kept["allowed"]) == (good, [f"be {word}"] if good else [])


def test_an_output_of_a_tool_is_checked_by_its_schema(program):
    """Computed, without asking anybody."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    answers = [
        program.post("/v1/tools/reuse", json={"tool_id": "t", "output": output, "output_schema": schema}).json()
        for output in ({"n": 1}, {"n": "1"})
    ]

    assert [item["valid"] for item in answers] == [True, False]


def test_a_gate_that_does_not_exist_is_not_found(program):
    """With the sentence that says so."""
    assert check(program, "x", gate="nothing").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        '{"content": "a", "content": "b"}',
        '{"content": NaN}',
        '{"content": ',
        "[" * 5_000,
        '{"content": "a", "contnet": "b"}',
        "{}",
        '{"content": "a", "metadata": []}',
        '{"content": "a", "metadata": {"adjudge_caller": "key:else"}}',
        '{"content": "a", "metadata": {"call": {"run_id": "victim"}}}',
        "[]",
        "null",
        b"\xff\xfe",
    ],
)
def test_a_body_has_one_reading(program, body):
    """A member twice, an unknown one, NaN, a wrong type: refused before anything is judged."""
    answer = program.post("/v1/gates/publish/check", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("address", ["gates/publish/check", "evaluate"])
def test_a_request_cannot_say_who_asked(program, address):
    """The server writes it, and a result that somebody else seems to have asked for would stand in the ledger."""
    body = {"content": "a", "metadata": {"adjudge_caller": "key:else"}}
    more = {"criteria": "Is polite."} if address == "evaluate" else {}
    answer = program.post(f"/v1/{address}", json=body | more)

    assert answer.status_code == 422
    assert "adjudge_caller" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("address", "body", "at", "what"),
    [
        ("gates/publish/check", {"content": "a", "contxt": "b"}, "body.contxt", "did you mean 'context'?"),
        ("evaluate", {"content": "a", "rubrik": "b"}, "body.rubrik", "did you mean 'rubric'?"),
        ("evaluate", {"content": "a", "zzz": 1}, "body.zzz", "there is no such member"),
    ],
)
def test_a_misspelt_member_leads_to_the_nearest(program, address, body, at, what):
    """Of those that this address takes, at any address; the value is not repeated."""
    answer = program.post(f"/v1/{address}", json=body)
    [error] = answer.json()["errors"]

    assert (answer.status_code, error["at"]) == (422, at)
    assert error["what"].endswith(what)


def test_a_half_character_is_judged_and_answered(program):
    """Content that no other encoding can hold comes back as an escape."""
    answer = program.post(
        "/v1/gates/publish/check",
        content=json.dumps({"content": "a", "metadata": {"half": "\ud800"}}),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code in (200, 422)


def test_metrics_count_what_was_decided(program, server):
    """Prometheus reads them with a key."""
    check(program, "counted")
    text = server.open_client(key=server.make_key("read")).get("/metrics").text

    assert 'adjudge_decisions_total{by="rule",decision="allowed",gate="publish"}' in text
    assert 'route="/v1/gates/{gate}/check"' in text


def test_the_ledger_is_read_verified_and_exported(program, server):
    """By whoever may read, page by page."""
    check(program, "recorded")
    reader = server.open_client(key=server.make_key("read"))
    first = reader.get("/v1/ledger", params={"limit": 2}).json()
    rest = reader.get("/v1/ledger", params={"after": first["next"], "gate": "publish"}).json()

    assert [entry["seq"] for entry in first["entries"]] == [1, 2]
    assert all(entry["seq"] > 2 for entry in rest["entries"])
    head = reader.get("/v1/ledger/head").json()
    document = reader.get("/v1/ledger/verify", params={"head": f"{head['seq']}:{head['hash']}"}).json()
    assert (document["valid"], document["pinned_head"]) == (True, True)
    assert len(reader.get("/v1/ledger/export").text.splitlines()) >= head["seq"]
    assert reader.get("/v1/ledger/verify", params={"head": "/etc/passwd"}).status_code == 422


def test_a_function_that_returns_no_verdict_is_the_operators_mistake(tmp_path, caplog):
    """Nothing is decided, the client is told that it can do nothing about it, and the log says what came back."""
    (tmp_path / "slip_judges.py").write_text("def answer(content):\n    return None\n", encoding="utf-8")
    (tmp_path / "own.yaml").write_text(
        "name: Own\ncriteria: [{name: good, description: It is good.}]\n", encoding="utf-8"
    )
    slip = JUDGED.replace("server_judges", "slip_judges") + '\n[gates.slip]\nrubric = "own"\njudge = "calm"\n'
    with run_server(tmp_path, slip) as running:
        client = running.open_client(key=running.make_key("judge"))
        evaluated = client.post("/v1/evaluate", json={"content": "Secret", "rubric": "own"})
        checked = check(client, "Secret", gate="slip")

    for refused in (evaluated, checked):
        assert (refused.status_code, refused.json()["code"]) == (500, "function")
        assert "None" not in refused.text
    assert "the function returned None" in caplog.text
