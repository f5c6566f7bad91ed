"""What a server keeps of what it judged, read a week later; and that the operator can delete it."""

from __future__ import annotations

import asyncio
import json

import pytest

from adjudge import Ledger
from adjudge.erasure.choice import read_choice
from adjudge.erasure.forget import Places, forget
from adjudge.erasure.ledger import Order
from adjudge.server.database import ANSWERS, find_table
from kit.server import CONFIG, run_server

pytestmark = pytest.mark.timed

SERVED = (
    CONFIG
    + """
[judges.calm]
seats = ["python:kept_judges:answer"]

[defaults]
judge = "calm"
"""
)

JUDGE = 'def answer(content):\n    return "bad" not in str(content)\n'

REDACTION = 'def hide(text):\n    return text.replace("Weber", "[name]")\n'

METADATA = {"customer": "C-1"}


@pytest.fixture(name="server", scope="module")
def start_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "kept_judges.py").write_text(JUDGE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with run_server(folder, SERVED) as running:
            running.add_account("Ana")
            yield running


@pytest.fixture(name="program", scope="module")
def open_program(server):
    return server.open_client(key=server.make_key("judge", "read"))


def read_story(program, ident):
    return program.get(f"/v1/results/{ident}").json()


@pytest.mark.parametrize("content", ["It passes.", "It is blocked because it is longer than forty characters."])
def test_what_a_gate_judged_is_read_through_the_api_and_the_page(server, program, content):
    """Content, task and context of what passed and of what was blocked, without anybody having been asked."""
    body = {"content": content, "task": "Answer Weber.", "context": ["a turn"], "metadata": {"title": "A reply"}}
    decision = program.post("/v1/gates/publish/check", json=body).json()
    story = read_story(program, decision["id"])
    page = server.sign_in("Ana").get(f"/results/{decision['id']}").text

    assert story["result"]["content"] == content
    assert story["entries"][0]["payload"]["task"] == "Answer Weber."
    assert json.loads(story["entries"][0]["payload"]["context"]) == ["a turn"]
    assert content in page
    assert "Answer Weber." in page


def test_what_a_judge_and_a_firewall_judged_is_kept_too(program):
    """The result of ``/v1/evaluate``, and what an input firewall's judges said."""
    judged = {"content": "Fine, Weber.", "criteria": "Good.", "task": "Greet."}
    result = program.post("/v1/evaluate", json=judged).json()
    checked = program.post("/v1/firewall/input", json={"arguments": {"to": "Weber"}}).json()

    assert read_story(program, result["id"])["result"]["content"] == "Fine, Weber."
    assert read_story(program, result["id"])["entries"][0]["payload"]["task"] == "Greet."
    assert "Weber" in read_story(program, checked["chain_result"]["id"])["result"]["content"]


@pytest.mark.parametrize(
    ("kept", "content", "task"),
    [
        ('store_content = "redacted"\nredact = "python:redactions:hide"', "Fine, [name].", "Answer [name]."),
        ('store_content = "held"', None, None),
        ('store_content = "hash"', None, None),
    ],
)
def test_the_configuration_says_what_is_kept_of_what_passed(tmp_path, monkeypatch, kept, content, task):
    """Redacted is kept without the name; of what no person is asked about, the others keep nothing."""
    (tmp_path / "redactions.py").write_text(REDACTION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with run_server(tmp_path, CONFIG.replace('store_content = "full"', kept)) as running:
        program = running.open_client(key=running.make_key("judge", "read"))
        body = {"content": "Fine, Weber.", "task": "Answer Weber."}
        decision = program.post("/v1/gates/publish/check", json=body).json()
        payload = read_story(program, decision["id"])["entries"][0]["payload"]

    assert (payload.get("content"), payload.get("task")) == (content, task)
    files = [path.read_bytes() for path in tmp_path.glob("adjudge.db*")]
    assert not any(b"Weber" in text for text in files)


def test_held_keeps_what_a_person_is_asked_and_the_page_shows_it(tmp_path):
    """Beside the request, for the approver; not in the ledger's entries."""
    content = "Dear Mr Weber, this is longer than forty characters."
    with run_server(tmp_path, CONFIG.replace('store_content = "full"', 'store_content = "held"')) as running:
        running.add_account("Ana")
        program = running.open_client(key=running.make_key("judge", "read"))
        held = program.post("/v1/gates/held/check", json={"content": content}).json()
        entries = read_story(program, held["approval_id"])["entries"]
        page = running.sign_in("Ana").get(f"/approvals/{held['approval_id']}").text

    assert content in page
    assert not [entry for entry in entries if "Weber" in json.dumps(entry["payload"])]


def test_the_answers_that_a_server_keeps_are_forgotten(server, program):
    """Those that repeat a decision about a customer, and no others; the result is on no page any more."""
    decisions = {}
    for customer in ("C-1", "C-10"):
        body = {"content": f"For {customer}.", "metadata": {"customer": customer}}
        headers = {"Idempotency-Key": f"key-{customer}"}
        decisions[customer] = program.post("/v1/gates/publish/check", json=body, headers=headers).json()

    async def work():
        order = Order(choice=read_choice(None, "customer=C-1"), reason="asked", by="ana")
        async with Ledger(server.ledger_url) as ledger:
            return await forget(order, Places(ledger=ledger, answers=find_table(ANSWERS)))

    report = asyncio.run(work())

    assert {each.place: each.count for each in report.deleted}["kept answers"] == 1
    assert report.verified
    assert program.get(f"/v1/results/{decisions['C-1']['id']}").status_code == 404
    assert read_story(program, decisions["C-10"]["id"])["result"]["content"] == "For C-10."


@pytest.mark.parametrize(
    ("path", "body"),
    [("prompt", {"rules": ["Be kind to Weber."]}), ("input", {"arguments": {"to": "Weber"}})],
    ids=["prompt", "input"],
)
def test_the_answers_of_a_firewall_are_forgotten_by_what_they_are_about(server, program, path, body):
    """They have the texts, and neither an id nor a digest of their own: both are in the result of the judges."""
    headers = {"Idempotency-Key": f"key-{path}"}
    checked = program.post(f"/v1/firewall/{path}", json=body, headers=headers).json()

    async def work():
        choice = read_choice(checked["chain_result"]["subject"], None)
        async with Ledger(server.ledger_url) as ledger:
            order = Order(choice=choice, reason="asked", by="ana")
            return await forget(order, Places(ledger=ledger, answers=find_table(ANSWERS)))

    report = asyncio.run(work())

    assert {each.place: each.count for each in report.deleted}["kept answers"] == 1
