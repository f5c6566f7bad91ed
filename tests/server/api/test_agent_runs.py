"""Agents' runs over HTTP: rules and judges read one as a run, for a program in any language and for the client."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json

import pytest

from adjudge import Client, Decision, Gate, JudgeResult, Usage, UsageError
from adjudge.agents import AgentCall, AgentRun, FileChange, Step, read_run
from kit.server import approve, run_server
from kit.transcripts import find_file

pytestmark = pytest.mark.timed


CONFIG = """
[judges.calm]
seats = ["python:run_judges:answer"]

[defaults]
judge = "calm"

[gates.runs]
rules = [{commands = {only = ["ls **", "cat **"]}}, "no_errors"]

[gates.held]
rules = [{called = "npm"}]
on_failed = "ask"
ask = {approvers = ["Ana"], show_content = true}

[server]
largest_content = 9_000

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"
"""

JUDGE = '''
"""A judge in code: a part of a run that says bad fails."""


def answer(content):
    return "bad" not in str(content)
'''

LOOKED = read_run(find_file("claude-stream"))

DIGEST = hashlib.sha256(json.dumps(LOOKED.to_dict(), ensure_ascii=False, indent=2).encode()).hexdigest()

RULES = [{"commands": {"only": ["ls **", "cat **"]}}, {"trajectory": {"calls": ["Bash", "Bash", "Bash"]}}, "no_errors"]

PER_CALL = {
    "name": "Calls",
    "criteria": [
        {"name": "in-scope", "description": "The call fits.", "per": "call"},
        {"name": "honest", "description": "It is true."},
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "run_judges.py").write_text(JUDGE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with run_server(folder, CONFIG) as running:
            yield running


@pytest.fixture(scope="module")
def program(server):
    return server.open_client(key=server.make_key("judge"))


@pytest.fixture(scope="module")
def client(server):
    made = Client(server.url, key=server.make_key("judge"))
    yield made
    made.close()


def say_yes(server, ident: str) -> None:
    """What a person who may decide sends."""
    ana = server.open_client(key=server.make_key("approve", approver="Ana"))
    answer = approve(ana, ident)
    assert answer.status_code == 200, answer.text


def evaluate(program, **body):
    return program.post("/v1/evaluate", json={"criteria": "It is true.", **body})


def test_rules_on_runs_hold_for_a_run_that_is_sent(program):
    """They fail for the same JSON as content: whoever writes a content could make it look like a run."""
    sent = LOOKED.to_dict()
    run, content = (evaluate(program, rules=RULES, **{name: sent}).json() for name in ("run", "content"))

    assert [rule["passed"] for rule in run["rule_results"]] == [True, True, True]
    assert (run["outcome"], content["outcome"]) == ("passed", "failed")
    assert [rule["passed"] for rule in content["rule_results"]] == [False, False, False]
    assert run["subject"] == DIGEST


def test_a_run_as_a_program_in_any_language_writes_it(program):
    """What it does not know, it leaves out."""
    steps = [
        {"role": "user", "text": "Look."},
        {"role": "assistant", "call": {"tool": "Bash", "arguments": {"command": "ls"}, "result": "a.txt"}},
    ]
    run = {"schema": "adjudge/agent-run/1", "steps": steps, "answer": "One file.", "unknown": ["files"]}

    rules = ["no_errors", {"called": "Bash"}, {"files": {"only": ["src/**"]}}]
    results = evaluate(program, run=run, rules=rules).json()["rule_results"]

    assert [rule["passed"] for rule in results] == [True, True, False]


def test_a_run_that_is_not_complete_fails_its_rules(program):
    """Its reader says why, and the server keeps that."""
    cut = dataclasses.replace(LOOKED, complete=False, problems=("line 3 cannot be read",))
    result = evaluate(program, run=cut.to_dict(), rules=["no_errors"]).json()

    assert result["outcome"] == "failed"
    assert "line 3 cannot be read" in result["rule_results"][0]["message"]


def test_criteria_about_the_calls_of_a_run_are_judged_for_each(program):
    """For anything else, they are refused."""
    result = JudgeResult.from_dict(
        program.post("/v1/evaluate", json={"run": LOOKED.to_dict(), "rubric": PER_CALL}).json()
    )
    refused = program.post("/v1/evaluate", json={"content": LOOKED.to_dict(), "rubric": PER_CALL})

    assert result.passed
    assert [part.part for part in result.parts] == ["call 1", "call 2", "call 3"]
    assert (refused.status_code, refused.json()["argument"]) == (422, "content")


def test_a_gate_decides_about_a_run(program):
    """As a gate of a program does."""
    good = program.post("/v1/gates/runs/check", json={"run": LOOKED.to_dict()}).json()
    other = dataclasses.replace(
        LOOKED, steps=[Step(role="assistant", call=AgentCall(tool="Bash", arguments={"command": "rm -rf /"}))]
    )
    bad = program.post("/v1/gates/runs/check", json={"run": other.to_dict()}).json()

    assert (good["allowed"], bad["allowed"]) == (True, False)
    assert good["subject"] == DIGEST


def test_a_run_that_people_approved_is_let_through_and_no_other(program, server):
    """What is resumed is compared with what was held back."""
    pending = program.post("/v1/gates/held/check", json={"run": LOOKED.to_dict()}).json()
    say_yes(server, pending["approval_id"])
    other = dataclasses.replace(LOOKED, answer="Something else.")

    def resume(**body) -> Decision:
        body = {"approval": pending["approval_id"], **body}
        return Decision.from_dict(program.post("/v1/gates/held/resume", json=body).json())

    assert not resume(run=other.to_dict()).allowed
    pending = program.post("/v1/gates/held/check", json={"run": LOOKED.to_dict()}).json()
    say_yes(server, pending["approval_id"])
    assert resume(run=LOOKED.to_dict()).allowed


def make_damaged(*path: str | int, **members: object) -> dict:
    run = copy.deepcopy(LOOKED.to_dict())
    place = run
    for step in path:
        place = place[step]
    place.update(members)
    return run


@pytest.mark.parametrize(
    ("run", "place"),
    [
        (make_damaged(complet=False), "complet"),
        (make_damaged("steps", 0, roles="user"), "steps.0.roles"),
        (make_damaged("steps", 1, "call", results="x"), "steps.1.call.results"),
        (make_damaged(schema="adjudge/agent-run/2"), "schema"),
        (make_damaged(complete="yes"), "complete"),
        (make_damaged(cost=-1), "cost"),
        (make_damaged(steps={}), "steps"),
        (make_damaged(budget=True), "budget"),
        ("run", "run"),
    ],
    ids=map(str, range(9)),
)
def test_a_run_with_an_unknown_member_or_one_of_another_type_is_refused(program, run, place: str):
    """A misspelt member that is ignored would make a run complete that is not. No value is in the answer."""
    answer = evaluate(program, run=run)

    assert answer.status_code == 422
    assert any(error["at"].endswith(place) or place in error["at"] for error in answer.json()["errors"])
    assert "backup" not in answer.text


def test_a_misspelt_member_inside_a_run_leads_to_the_nearest(program):
    """Of those that stand there, and not of those of the whole request."""
    [error] = evaluate(program, run=make_damaged("steps", 1, "call", results="x")).json()["errors"]

    assert error["what"].endswith("did you mean 'result'?")


@pytest.mark.parametrize(
    "run",
    [make_damaged(problems=["cut"]), make_damaged(budget=5), make_damaged("steps", 1, "call", tool=" ")],
    ids=map(str, range(3)),
)
def test_a_run_that_contradicts_itself_is_refused(program, run: dict):
    """As the library refuses it."""
    answer = evaluate(program, run=run)

    assert (answer.status_code, answer.json()["code"]) == (422, "usage")


def test_a_request_has_content_or_a_run(program):
    """Neither both nor none, at each address that judges one."""
    run = LOOKED.to_dict()
    for path, body in (("/v1/evaluate", {"criteria": "Good."}), ("/v1/gates/runs/check", {})):
        for members in ({}, {"content": "x", "run": run}):
            answer = program.post(path, json=body | members)
            assert (answer.status_code, answer.json()["argument"]) == (422, "content")


def test_a_run_is_limited_as_content_is(program):
    """By largest_content."""
    large = dataclasses.replace(LOOKED, answer="x" * 9_001)

    assert evaluate(program, run=large.to_dict()).status_code == 413


def test_the_description_has_the_members_that_a_run_has(program):
    """None is missing, and none is there that the library does not know."""
    schemas = program.get("/openapi.json").json()["components"]["schemas"]
    kinds = {"RunBody": AgentRun, "StepBody": Step, "CallBody": AgentCall, "FileChangeBody": FileChange}
    for name, kind in {**kinds, "UsageBody": Usage}.items():
        members = {field.name for field in dataclasses.fields(kind)}
        assert set(schemas[name]["properties"]) - {"schema"} == members, name
    files = [FileChange(path="a", kind="added", diff="+x")]
    whole = dataclasses.replace(LOOKED, files=files, exit_code=0, budget=2_000)
    assert evaluate(program, run=json.loads(json.dumps(whole.to_dict()))).status_code == 200


def test_the_client_sends_a_run_as_one(client):
    """A judge and a gate of a server say what those of this program say."""
    result = client.judge().evaluate_sync(LOOKED, criteria="It is true.", rules=RULES)
    calls = client.judge().evaluate_sync(LOOKED, PER_CALL)
    decision = client.gate("runs").check_sync(LOOKED)
    own = Gate("runs", rules=[{"commands": {"only": ["ls **", "cat **"]}}, "no_errors"]).check_sync(LOOKED)

    assert result.passed
    assert all(rule.passed for rule in result.rule_results)
    assert [part.part for part in calls.parts] == ["call 1", "call 2", "call 3"]
    assert (decision.allowed, decision.subject) == (own.allowed, own.subject) == (True, result.subject)


def test_the_client_resumes_a_run_that_people_approved(client, server):
    """It compares what it sends with what was held back, as for any content."""
    pending = client.gate("held").check_sync(LOOKED)
    assert pending.pending
    say_yes(server, pending.approval_id)

    assert client.gate("held").resume_sync(pending, content=LOOKED).allowed


def test_a_budget_is_sent_along(client):
    """A judge is shown as much of the run as it says."""
    long = dataclasses.replace(LOOKED, answer="x" * 4_500, budget=1_000)

    assert client.judge().evaluate_sync(long, criteria="It is true.").metadata["left_out"]["characters"] > 0
    with pytest.raises(UsageError):
        client.judge().evaluate_sync(LOOKED, criteria="It is true.", rules=[{"limits": {}}])
