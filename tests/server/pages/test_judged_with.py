"""What a content was judged with is shown to whoever decides: nobody approves while any of it was not shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Case, Gate, Judge, Ledger
from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.guards import ToolCall, ToolGuard, digest_shown
from kit.approval_pages import CONFIG, find_form, make_request, read_approval, send
from kit.labels import make_run
from kit.markup import Reader
from kit.server import RunningServer, approve, find_token, run_server

pytestmark = pytest.mark.timed


TASK = "Answer the customer of order 77418."

TALK = [
    {"role": "user", "content": "My tent came too late. I want my money back."},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "orders.get", "arguments": '{"id": 77418}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "total 184.00\ndelivered 9 November"},
    {"role": "assistant", "content": "It came three days late."},
]

PASSAGES = ["Refunds take ten working days.", "More than 100 EUR needs a person."]

LONG = AgentRun(
    steps=(
        Step(role="user", text="Make it pass."),
        *[
            Step(
                role="assistant",
                turn=number,
                call=AgentCall(tool="Bash", arguments={"command": f"ls {number}"}, result="ok"),
            )
            for number in range(1, 301)
        ],
    ),
    answer="It passes.",
)

HOOK = """
[gates.payments]
rules = [{contains = "never"}]
on_rule = "ask"

[hook]
tools = {"refund" = "payments"}
effects = {"refund" = ["cannot be taken back", "money leaves"]}
"""


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    make_run(folder / "runs" / "monday", [Case(id="x", content=LONG, context=TALK, task=TASK)])
    config = CONFIG.replace("undo_seconds = 30", 'undo_seconds = 0\nruns = "runs"') + HOOK
    with run_server(folder, config=config) as running:
        running.add_account("Ana")
        yield running


@pytest.fixture(scope="module", name="ana")
def sign_in_ana(server: RunningServer) -> Any:
    return server.sign_in("Ana")


def read_words(page: str) -> str:
    return " ".join(Reader(page).text.split())


def list_seen(page: str) -> list[str]:
    """The digest that the form of a page sends back; none while it does not show everything."""
    return re.findall(r'name="seen" value="([^"]+)"', find_form(page))


# ---------------------------------------------------------------- shown


def test_task_and_context_are_shown_beside_what_is_decided(server: RunningServer, ana: Any):
    """A conversation as a transcript, passages below each other; what came back stands with its call."""
    ident = make_request(server, texts={"task": TASK, "context": {"talk": TALK, "passages": PASSAGES}})
    page = ana.get(f"/approvals/{ident}").text
    words = read_words(page)

    for text in (
        TASK,
        TALK[0]["content"],
        "orders.get",
        "id 77418",
        "result, 2 lines",
        "delivered 9 November",
        *PASSAGES,
    ):
        assert text in words
    assert words.index("orders.get") < words.index("delivered 9 November") < words.index("three days late")
    assert list_seen(page) == [digest_shown(read_approval(server, ident))]


def test_what_the_gate_did_not_get_is_said(server: RunningServer, ana: Any):
    """Else nobody could tell a context that is empty from one that is not shown."""
    alone = read_words(ana.get(f"/approvals/{make_request(server)}").text)
    tasked = read_words(ana.get(f"/approvals/{make_request(server, texts={'task': TASK})}").text)

    assert "The gate got no task and no context. The content alone was judged." in alone
    assert "The gate got no context." in tasked


def test_a_run_is_shown_as_what_it_did(server: RunningServer, ana: Any):
    """Its steps, folded, and its answer; as JSON it can be read too."""
    ident = make_request(server, LONG, quote="ls 150")
    page = ana.get(f"/approvals/{ident}").text

    assert "301 steps, 300 calls" in read_words(page)
    assert ">ls 150<" in page, "what is quoted is not folded"
    assert "<mark" in page
    assert list_seen(page) == []
    assert "agent-run/1" in ana.get(f"/approvals/{ident}?json=true&whole=true").text


@pytest.mark.parametrize("name", ["task", "context"])
def test_each_text_is_offered_as_a_file(server: RunningServer, ana: Any, name: str):
    """Letter for letter, and as a file that no browser opens."""
    ident = make_request(server, texts={name: TALK})
    sent = ana.get(f"/approvals/{ident}/content?part={name}")

    assert json.loads(sent.text) == TALK
    assert sent.headers["content-disposition"] == f'attachment; filename="{name}.txt"'
    assert ana.get(f"/approvals/{ident}/content?part=reference").status_code == 404


def test_nobody_else_reads_it(server: RunningServer):
    """It is as private as the content."""
    ident = make_request(server, texts={"task": TASK}, approvers=["Ana"])
    assert server.open_client().get(f"/approvals/{ident}/content?part=task").status_code in {303, 401}
    server.add_account("Zoe", "approve")
    assert server.sign_in("Zoe").get(f"/approvals/{ident}/content?part=task").status_code == 404


# ---------------------------------------------------------------- not shown


TEXTS = {
    "a long text": {"task": "word " * 5_000},
    "a long conversation": {"context": [*TALK, *({"role": "user", "content": f"And {n}?"} for n in range(60))]},
    "a long message": {"context": [{"role": "user", "content": "word " * 2_000}]},
    "a long list": {"context": [f"passage {n}" for n in range(200)]},
    "a long run": {"context": LONG},
    "a long reference": {"reference": "word " * 5_000},
}


@pytest.mark.parametrize("name", TEXTS)
def test_nobody_approves_while_anything_was_not_shown(server: RunningServer, ana: Any, name: str):
    """The form has no digest, and the server refuses one without it; "Show the rest" shows all, and then it works."""
    ident = make_request(server, texts=TEXTS[name])
    page = ana.get(f"/approvals/{ident}").text
    assert list_seen(page) == []
    assert "Not shown yet:" in read_words(page)
    assert re.search(r'value="approve"[^>]*disabled', page)

    assert send(ana, ident, "approve", "fine").status_code == 422
    assert read_approval(server, ident).status == "open"

    assert send(ana, ident, "approve", "fine", params={"whole": "true"}).status_code == 303
    assert read_approval(server, ident).status == "approved"


def test_folded_steps_count_as_shown_once_they_were_opened(server: RunningServer, ana: Any):
    """One fold after the other, without a script: the address keeps what is open."""
    ident = make_request(server, LONG, quote="ls 150")
    page = ana.get(f"/approvals/{ident}").text
    opened = 0
    while not list_seen(page):
        link = re.search(r'<li class="turn folded".*?<button[^>]* formaction="([^"]+)"', page, re.DOTALL)
        assert link is not None, "nothing is folded, and yet something is not shown"
        page = ana.get(link[1].replace("&amp;", "&").partition("#")[0]).text
        opened += 1

    assert opened == 2, "before and behind what is quoted"
    assert list_seen(page) == [digest_shown(read_approval(server, ident))]


def test_denying_works_while_something_is_not_shown(server: RunningServer, ana: Any):
    """Nobody has to read two thousand steps to say no."""
    ident = make_request(server, LONG)
    assert send(ana, ident, "deny").status_code == 303
    assert read_approval(server, ident).status == "denied"


def test_a_digest_from_elsewhere_approves_nothing_that_is_missing(server: RunningServer, ana: Any):
    """What the gate judged with and the request does not keep cannot be approved, whatever the form says."""

    async def fail(value: Any) -> Any:
        if value == TASK:
            raise RuntimeError
        return value

    ident = make_request(server, texts={"task": TASK}, redact=fail)
    page = ana.get(f"/approvals/{ident}").text
    assert list_seen(page) == []

    seen = digest_shown(read_approval(server, ident))
    data = {"csrf_token": find_token(ana, "/approvals"), "vote": "approve", "reason": "x", "seen": seen}
    assert ana.post(f"/approvals/{ident}/decide", data=data).status_code == 422
    assert read_approval(server, ident).status == "open"


def test_a_redacted_context_is_shown_as_the_judge_was_shown_it(server: RunningServer, ana: Any):
    """And says so; it is no reason not to approve."""
    ident = make_request(
        server, texts={"context": "Ana Lindt said so."}, redact=lambda text: str(text).replace("Ana Lindt", "[name]")
    )
    page = ana.get(f"/approvals/{ident}").text

    assert "[name] said so." in read_words(page)
    assert "Ana Lindt said" not in page
    assert "redacted, as the judge was shown it" in read_words(page)
    assert list_seen(page)


def test_over_http_the_digest_covers_task_and_context(server: RunningServer):
    """``/v1`` gives both with the request; a digest of another request is refused."""
    server.add_account("Ben")
    client = server.open_client(key=server.make_key("approve", "read", approver="Ana"))
    ident, other = (make_request(server, texts={"task": text}) for text in (TASK, "Another."))
    shown = client.get(f"/v1/approvals/{ident}").json()
    foreign = client.get(f"/v1/approvals/{other}").json()["shown"]

    assert shown["texts"] == {"task": TASK}
    assert approve(client, ident, seen=foreign).status_code == 409
    assert approve(client, ident).status_code == 200


def test_forgetting_a_request_forgets_what_it_was_judged_with(server: RunningServer, ana: Any):
    """With the content."""
    ident = make_request(server, texts={"task": TASK})
    assert send(ana, ident, "deny").status_code == 303

    async def forget(ledger: Ledger) -> None:
        async with Approvals(ledger) as approvals:
            await approvals.forget(ident)

    server.change(forget)
    assert dict(read_approval(server, ident).texts) == {}
    assert TASK not in ana.get(f"/approvals/{ident}").text


# ---------------------------------------------------------------- effects


def hold_call(server: RunningServer, *, run_id: str = "run-1", show_content: bool = True, **options: Any) -> str:
    """The id of a request that a guard makes."""

    async def work(ledger: Ledger) -> str:
        async with Approvals(ledger) as approvals:
            ask = {"approvers": ["Ana", "Ben"], "expires_in": 3_600}
            gate = Gate(
                "payments", rules=[{"contains": "never"}], on_rule="ask", ask=ask, approvals=approvals, ledger=ledger,
                show_content=show_content,
            )  # fmt: skip
            async with ToolGuard(gate, **options) as guard:
                verdict = await guard.check(ToolCall("refund", {"amount": 184}, "c1", run_id), task=TASK)
        assert verdict.approval_id is not None
        return verdict.approval_id

    return server.change(work)


def test_effects_are_shown_as_the_operators_words(server: RunningServer, ana: Any):
    """Beside the call, and escaped as everything is."""
    ident = hold_call(server, effects={"refund": ["cannot be taken back", "<b>money leaves</b>"]})
    page = ana.get(f"/approvals/{ident}").text

    assert '<span class="tag">cannot be taken back</span>' in page
    assert "<b>money" not in page
    assert "Declared for this tool by whoever runs the guard. The agent cannot write it." in read_words(page)
    assert TASK in read_words(page)


def test_effects_of_the_configuration_reach_the_page_of_a_request(server: RunningServer, ana: Any):
    """As ``[hook]`` of ``adjudge.toml`` declares them for a tool, of a call that a program had checked."""
    agent = server.open_client(key=server.make_key("hook"))
    call = {"tool": "refund", "arguments": {"amount": 184}, "call_id": "c1", "run_id": "run-http"}
    held = agent.post("/v1/tools/check", json=call).json()
    page = ana.get(f"/approvals/{held['approval_id']}").text

    for effect in ("cannot be taken back", "money leaves"):
        assert f'<span class="tag">{effect}</span>' in page
    assert "Declared for this tool by whoever runs the guard." in read_words(page)


@pytest.mark.parametrize("show_content", [True, False])
def test_a_result_shows_the_effects_that_were_declared(server: RunningServer, ana: Any, show_content: bool):
    """With the call, or without one where its content was not kept; a reader a week later is no approver."""
    effects = {"refund": ["cannot be taken back", "<b>money leaves</b>"]}
    unsafe = () if show_content else ("payments.show_content",)
    run_id = f"effects-{show_content}"
    ident = hold_call(server, run_id=run_id, effects=effects, show_content=show_content, unsafe=unsafe)
    page = ana.get(f"/results/{ident}").text

    assert ("tool-call" in page) is show_content
    assert re.findall(r'<span class="tag">(.*?)</span>', page) == [
        "cannot be taken back", "&lt;b&gt;money leaves&lt;/b&gt;",
    ]  # fmt: skip
    assert read_words(page).count("Declared for this tool by whoever runs the guard.") == 1


def test_a_result_shows_no_effects_that_a_client_wrote(server: RunningServer, ana: Any):
    """Whatever its metadata say beside the member that the server alone writes."""
    client = server.open_client(key=server.make_key("judge"))
    body = {"content": "x" * 50, "metadata": {"effects": ["harmless"], "title": "A short one"}}
    held = client.post("/v1/gates/replies/check", json=body).json()
    page = ana.get(f"/results/{held['approval_id']}").text

    assert "A short one" in page
    assert "harmless" not in page
    assert "Declared for this tool" not in page


def test_a_client_cannot_declare_effects(server: RunningServer):
    """They stand in a member of the metadata that the server alone writes."""
    client = server.open_client(key=server.make_key("judge"))
    body = {"content": "x", "metadata": {"call": {"run_id": "r", "effects": ["harmless"]}}}

    assert client.post("/v1/gates/replies/check", json=body).status_code == 422


# ---------------------------------------------------------------- the other pages


@pytest.mark.parametrize("path", ["/labels/monday", "/runs/monday", "/runs/monday/report.html"])
def test_the_same_transcript_is_on_labels_runs_and_reports(ana: Any, path: str):
    """With its steps as rows, and not as one text of JSON."""
    page = ana.get(path).text

    assert '<ol class="turns">' in page
    assert re.search(r'<b class="exact">Bash</b>', page)
    assert "orders.get" in page


def test_a_label_opens_what_is_folded(ana: Any):
    """The case stays the same, and says nothing of its judge."""
    page = ana.get("/labels/monday").text
    link = re.search(r'<li class="turn folded".*?<a href="([^"]+)"', page, re.DOTALL)
    assert link is not None
    assert ">ls 150<" not in page
    opened = ana.get(link[1].replace("&amp;", "&")).text
    assert ">ls 150<" in opened
    assert "left out for the judge" not in opened


def test_a_result_shows_the_run_that_was_judged(server: RunningServer, ana: Any):
    """Where the ledger keeps it."""

    async def judge(_: Ledger) -> None:
        async with Ledger(server.ledger_url, store_content="full") as ledger:
            result = await Judge(lambda content: False).evaluate(LONG, criteria="Good.")
            await ledger.append(result, content=json.dumps(LONG.to_dict()))

    server.change(judge)
    found = server.open_client(key=server.make_key("read")).get("/v1/results?when=all").json()["results"]
    pages = [ana.get(f"/results/{row['seq']}?whole=true").text for row in found]

    assert any(">ls 150<" in page for page in pages)
