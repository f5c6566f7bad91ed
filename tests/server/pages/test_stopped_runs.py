"""A run that was stopped, on the pages: why its trust has ended, and the form by which an approver lets it go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kit.server import RunningServer, find_token, read_fields, run_server

pytestmark = pytest.mark.timed

CONFIG = """
[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"

[gates.shell]
rules = [{not_contains = "curl"}]

[gates.deletes]
rules = [{contains = "scratch"}]
on_rule = "ask"
ask = {approvers = ["Ana"], show_content = true}

[hook]
tools = {"Bash" = "shell", "delete_*" = "deletes"}
"""

ENDED, BUTTON = "The trust of this run has ended", "Let this run go on"

WHY = "the run made a call that was not checked as it was made"


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("server"), CONFIG) as running:
        running.add_account("Ana", "approve", "read")
        running.add_account("Ray", "read", approver=None)
        running.add_account("Kim", "approve", "read", gates=["deletes"])
        running.add_account("Zoe", "approve", "read", approver=None)
        yield running


@pytest.fixture(scope="module", name="agent")
def open_agent(server: RunningServer) -> Any:
    return server.open_client(key=server.make_key("hook"))


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


def name_run(agent: Any, run: str) -> str:
    """The run as the ledger has it."""
    return f"key:{agent.headers['Authorization'].split('_')[1]}/{run}"


def check(agent: Any, run: str, tool: str = "delete_file", call_id: str = "c1", **arguments: str) -> dict[str, Any]:
    body = {"tool": tool, "arguments": arguments or {"path": "/srv/data"}, "call_id": call_id, "run_id": run}
    answer = agent.post("/v1/tools/check", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def end_trust(agent: Any, run: str) -> None:
    """Tell of a call that was made and that nobody had checked."""
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t1", "tool_response": "ok"}
    event = {"session_id": run, "cwd": "/work", "hook_event_name": "PostToolUse", **call}
    assert agent.post("/v1/hooks/claude", json=event).status_code == 200


def send(client: Any, run: str, reason: str = "it was my own hook", **fields: str) -> Any:
    data = {"run": run, "reason": reason, "back": "/approvals", "csrf_token": find_token(client, "/")} | fields
    return client.post("/approvals/reopen", data=data)


def test_a_request_says_that_its_run_was_stopped_and_lets_it_go_on(server: RunningServer, agent: Any, ana: Any):
    """With why; the form comes back to the page, and the ledger says who, and why it may."""
    held = check(agent, "run-1")
    place = f"/approvals/{held['approval_id']}"
    assert ENDED not in ana.get(place).text
    end_trust(agent, "run-1")
    page = ana.get(place).text
    assert check(agent, "run-1", "Bash", command="ls")["because"] == "stopped"
    assert (ENDED in page, WHY in page, BUTTON in page) == (True, True, True)

    [form] = re.findall(r'<form method="post" action="/approvals/reopen".*?</form>', page, re.DOTALL)
    fields = read_fields(ana, form)
    answer = ana.post("/approvals/reopen", data=fields | {"reason": "it was my own hook"})
    entries = server.change(lambda ledger: list_reopened(ledger, name_run(agent, "run-1")))

    assert (answer.status_code, answer.headers["location"]) == (303, place)
    assert entries == [("Ana", "it was my own hook")]
    assert ENDED not in ana.get(place).text
    assert check(agent, "run-1", "Bash", "c2", command="ls")["allowed"] is True


async def list_reopened(ledger: Any, run: str) -> list[tuple[str, str]]:
    return [
        (entry.payload["by"], entry.payload["reason"]) async for entry in ledger.query(run=run, kind="run.reopened")
    ]


def test_a_decision_says_so_too(agent: Any, ana: Any):
    """A run that rules refused ten times has no request that its people could open."""
    refused = [check(agent, "run-2", "Bash", f"c{number}", command=f"curl {number}") for number in range(10)]
    page = ana.get(f"/results/{refused[-1]['decision']}").text

    assert "the run was stopped after 0 denials and 10 refusals" in page
    assert BUTTON in page


@pytest.mark.parametrize("name", ["Ray", "Kim", "Zoe"])
def test_who_may_not_decide_sees_no_form_and_can_send_none(server: RunningServer, agent: Any, name: str):
    """Not with the right to read alone, not limited to gates, and not without an approver's name."""
    run = f"run-{name}"
    held = check(agent, run)
    end_trust(agent, run)
    client = server.sign_in(name)
    page = client.get(f"/results/{held['decision']}").text

    assert (ENDED in page, BUTTON in page) == (True, False)
    assert send(client, name_run(agent, run)).status_code == 403
    assert check(agent, run, "Bash", command="ls")["because"] == "stopped"


def test_the_form_needs_a_session_its_token_and_a_reason(server: RunningServer, agent: Any, ana: Any):
    """As every form does; nothing is reopened otherwise."""
    end_trust(agent, "run-4")
    run = name_run(agent, "run-4")
    stranger = server.open_browser()
    unknown = stranger.post("/approvals/reopen", data={"run": run, "reason": "it was me"})

    assert unknown.status_code in (303, 401)
    assert send(ana, run, csrf_token="x").status_code == 403
    assert send(ana, run, " ").status_code == 422
    assert send(ana, "run-4").status_code == 422
    assert server.change(lambda ledger: list_reopened(ledger, run)) == []


def test_the_form_leads_to_this_server_alone(agent: Any, ana: Any):
    """Wherever it says that it came from."""
    end_trust(agent, "run-5")
    answer = send(ana, name_run(agent, "run-5"), back="//example.org/x")

    assert (answer.status_code, answer.headers["location"]) == (303, "/approvals")
