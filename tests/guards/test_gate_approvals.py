"""A gate that asks people: what was held back goes on in their name, and never in a judge's or by mistake."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision, Gate, Judge, JudgeResult, Ledger
from adjudge.guards import ApprovalAnswer
from adjudge.testing import ScriptedModel
from kit.approvals import make_result, start, tell
from kit.gates import GOOD, Desk, check, gate, word
from kit.judges import complaint, failed, names, passed, silent
from kit.ledgers import find, verify
from kit.patience import HANG

pytestmark = pytest.mark.timed


ASK = {"approvers": ["ana", "bob"]}
JUDGED = JudgeResult(outcome="passed", judge="second", score=1.0, confidence=0.9)


def make_gate(ledger: Any, approvals: Approvals, judge: Any = None, **options: Any) -> Gate:
    terms = {"rubric": GOOD, "judge": failed() if judge is None else judge, "on_failed": "ask", "ask": ASK} | options
    return Gate("publish", approvals=approvals, ledger=ledger, **terms)


def run(url: str, work: Any, judge: Any = None, **options: Any) -> Any:
    """What an async function makes of a gate and its approvals, which share a ledger."""

    async def go() -> Any:
        async with Ledger(url) as ledger, Approvals(ledger) as approvals:
            return await work(make_gate(ledger, approvals, judge, **options), approvals)

    return asyncio.run(go())


@pytest.mark.parametrize(("approved", "outcome"), [(True, "allowed"), (False, "blocked")])
def test_a_gate_waits_for_people(url: str, approved: bool, outcome: str):
    """And goes by what they say; the ledger tells the story of the content in one query."""

    async def work(made: Gate, approvals: Approvals) -> Decision:
        asked = asyncio.Event()
        made = made.replace(on_event=lambda event: asked.set() if event.kind == "asked" else None)
        async with asyncio.TaskGroup() as group:
            checking = group.create_task(made.check("The content."))
            await asked.wait()
            (request,) = await approvals.list()
            await approvals.decide(request.id, "bob", approved, "I looked")
        return checking.result()

    decision = run(url, work)
    story = [entry.kind for entry in find(url, subject=decision.subject)]

    assert word(decision) == (outcome, "human")
    assert decision.detail == f"{'approved' if approved else 'denied'} by bob: I looked"
    assert decision.result is not None
    assert decision.result.outcome == "failed"
    override = ["override"] if approved else []
    assert story == ["approval.requested", "approval.voted", "approval.closed", *override, "decision"]
    assert [entry.kind for entry in find(url, gate="publish")] == story
    assert verify(url)


@pytest.mark.integration
def test_a_pending_decision_is_resumed_by_another_process(url: str):
    """Written down, decided elsewhere, read back: the one that takes its place is allowed."""

    async def hold(made: Gate, approvals: Approvals) -> str:
        pending = await made.check("The content.")
        assert word(pending) == ("pending", "policy")
        return json.dumps(pending.to_dict())

    async def resume(made: Gate, approvals: Approvals) -> Decision:
        return await made.resume(Decision.from_dict(json.loads(written)))

    written = run(url, hold, wait=False, show_content=True)
    process = start("decide_all_open", url, "ana")
    output = process.communicate(timeout=HANG)[0]
    decision = run(url, resume, wait=False)

    assert json.loads(output) == {"gate": "publish", "content": "The content.", "said": "approved"}
    assert word(decision) == ("allowed", "human")
    assert decision.detail == "approved by ana: read it"
    assert [entry.payload and entry.payload["allowed"] for entry in find(url, kind="decision")] == [False, True]


@pytest.mark.parametrize(("on_expiry", "outcome"), [("deny", "blocked"), ("approve", "allowed")])
def test_an_expiry_decides_by_policy(url: str, on_expiry: str, outcome: str):
    """It lets through only where that was asked for by name, and nobody's name stands under it."""

    async def work(made: Gate, _: Approvals) -> Decision:
        return await made.check("The content.")

    decision = run(url, work, ask=ASK | {"expires_in": 0.05, "on_expiry": on_expiry})

    assert word(decision) == (outcome, "policy")
    assert "it expired" in decision.detail


def test_a_first_judge_approves_in_its_own_name(url: str):
    """Never as a person; the decision holds what was judged first and what that judge said, and goes there and back."""
    second = passed(name="second", confidence=0.9)

    async def work(made: Gate, _: Approvals) -> Decision:
        return await made.check("The content.")

    decision = run(url, work, ask=ASK | {"first": second}, show_content=True)

    assert word(decision) == ("allowed", "judge")
    assert names(decision.detail, "approved by second", "0.90")
    assert decision.result is not None
    assert decision.answer is not None
    assert (decision.result.outcome, decision.answer.judge) == ("failed", "second")
    assert Decision.from_dict(decision.to_dict()).to_dict() == decision.to_dict()
    assert ("voted", True, "second") in tell(url)


@pytest.mark.parametrize(("judge", "outcome"), [(passed(confidence=0.9), "allowed"), (passed(), "pending")])
def test_a_gate_that_does_not_wait_for_people_hears_the_first_judge(url: str, judge: Any, outcome: str):
    """What it approved is decided, and nobody has to come back for it."""

    async def work(made: Gate, _: Approvals) -> Decision:
        return await made.check("The content.")

    decision = run(url, work, ask=ASK | {"first": judge}, show_content=True, wait=False)

    assert word(decision) == (outcome, "judge" if outcome == "allowed" else "policy")


def test_people_and_the_first_judge_see_what_redaction_leaves(url: str):
    """Or nothing, unless the gate shows it: by default a request carries the digest alone."""

    async def work(made: Gate, approvals: Approvals) -> Any:
        await made.check("Ana wrote this.")
        return (await approvals.list())[0].content

    assert run(url, work, wait=False) is None
    url += "2"
    redact = {"redact": lambda text: text.replace("Ana", "[name]")}
    assert run(url, work, wait=False, show_content=True, **redact) == "[name] wrote this."
    url += "3"
    assert run(url, work, silent(), on_undecided="ask", wait=False, show_content=True, redact=len) == "15"


def test_what_is_kept_of_the_first_judge_is_known_by_the_content(url: str):
    """It is asked about the content that was held, however redacted, and its answer is found by that digest."""
    model = ScriptedModel({"criteria": [{"score": 1.0, "reasoning": "Fine."}], "confidence": 1.0})

    async def work(made: Gate, _: Approvals) -> Decision:
        return await made.check("Ana wrote this.")

    redact = {"redact": lambda text: "x"}
    decision = run(url, work, ask=ASK | {"first": Judge(model)}, show_content=True, wait=False, **redact)

    assert [request.subject for request in model.requests] == [decision.subject]


def test_a_redaction_that_fails_shows_nothing(url: str):
    """People are asked all the same, and told what was judged."""

    async def work(made: Gate, approvals: Approvals) -> Any:
        await made.check("Ana wrote this.")
        return (await approvals.list())[0].content

    rules = {"rules": [lambda text: False], "judge": None, "rubric": None}
    options = {"redact": lambda text: 1 / 0, "show_content": True, "wait": False} | rules

    async def go() -> Any:
        async with Ledger(url) as ledger, Approvals(ledger) as approvals:
            made = Gate("publish", approvals=approvals, ledger=ledger, on_failed="ask", ask=ASK, **options)
            return await work(made, approvals)

    assert asyncio.run(go()) is None


def test_a_changed_table_blocks(url: str, tmp_path: Path):
    """What the ledger does not confirm lets nothing through."""

    async def work(made: Gate, approvals: Approvals) -> Decision:
        pending = await made.check("The content.")
        assert pending.approval_id is not None
        await approvals.decide(pending.approval_id, "ana", False)
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            connection.execute("UPDATE adjudge_votes SET approved = 1")
            connection.execute(
                "UPDATE adjudge_approvals SET status = 'approved', "
                'body = replace(body, \'"status": "denied"\', \'"status": "approved"\')'
            )
        assert await approvals.get(pending.approval_id)
        return await made.resume(pending)

    decision = run(url, work, wait=False)

    assert word(decision) == ("blocked", "policy")
    assert names(decision.detail, "approval", "could not be read", "LedgerError")


def test_an_approval_of_something_else_opens_nothing(url: str):
    """Whoever keeps pending decisions cannot pair one with the approval of something harmless."""

    async def work(made: Gate, approvals: Approvals) -> Decision:
        harmless, other = await made.check("Harmless."), await made.check("The content.")
        assert harmless.approval_id is not None
        await approvals.decide(harmless.approval_id, "ana", True)
        return await made.resume(replace(other, approval_id=harmless.approval_id))

    decision = run(url, work, wait=False)

    assert word(decision) == ("blocked", "policy")
    assert names(decision.detail, "approval", "about something else")


@pytest.mark.parametrize("name", ["draft", None])
def test_an_approval_of_the_same_content_elsewhere_opens_nothing(url: str, name: str | None):
    """Those whom a laxer gate asks, or somebody without any gate, do not decide for those whom this one asks."""

    async def work(made: Gate, approvals: Approvals) -> Decision:
        pending = await made.check("The content.")
        lax = {"approvers": ["mallory"], "content": "The content."}
        about = pending.result if name is None else replace(pending, gate=name)
        asked = await approvals.request(about, "Is it fine?", **lax)  # type: ignore[arg-type]
        await approvals.decide(asked, "mallory", True)
        return await made.resume(replace(pending, approval_id=asked))

    decision = run(url, work, wait=False)

    assert word(decision) == ("blocked", "policy")
    assert names(decision.detail, "approval", "elsewhere than at this gate")


def test_nobody_is_asked_about_what_cannot_be_read(url: str):
    """It has no digest, so that an approval of it would open anything else that has none."""

    async def work(made: Gate, approvals: Approvals) -> tuple[Decision, int]:
        return await made.check("\0"), len(await approvals.list())

    decision, asked = run(url, work, on_undecided="ask", wait=False)

    assert (word(decision), asked) == (("blocked", "policy"), 0)
    assert names(decision.detail, "nobody was asked", "cannot be read")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({}, "gate 'publish' … ask … a request needs approvers … nobody could ever approve it"),
        (ASK | {"required": 3}, "gate 'publish' … ask … required=3 needs as many different approvers … 2"),
        (ASK | {"expires": 60}, "gate 'publish' … ask … a request has no 'expires' … it has approvers, required"),
        (ASK | {"content": "x"}, "gate 'publish' … ask … a request has no 'content'"),
        (ASK | {"has_content": True}, "gate 'publish' … ask:"),
        (ASK | {"on_expiry": "approve"}, "gate 'publish' … ask … on_expiry='approve' needs expires_in"),
        (ASK | {"first": failed()}, "first needs the content … a gate hands over with show_content=True"),
        (["ana"], "gate 'publish' … ask … a mapping of arguments … got list"),
    ],
)
def test_terms_that_nobody_could_meet_are_no_gate(url: str, ask: Any, message: str):
    """Said when the gate is made, and not when the first content is held back and nobody can be asked."""
    assert names(complaint(make_gate, None, Approvals(url), ask=ask), *message.split(" … "))
    assert "show_content must be true or false, got 1" in complaint(make_gate, None, Approvals(url), show_content=1)


def test_terms_are_not_looked_at_where_nobody_is_asked(url: str):
    """A gate that only blocks may have approvals that it never uses."""
    assert make_gate(None, Approvals(url), ask={}, on_failed="block").name == "publish"


@pytest.mark.parametrize(
    ("answer", "decided"),
    [
        (ApprovalAnswer(True, "second", "sure", JUDGED), ("allowed", "judge")),
        (ApprovalAnswer(True, "ana", "sure"), ("allowed", "human")),
        (ApprovalAnswer(True, None, "sure"), ("allowed", "policy")),
        (ApprovalAnswer(False, "second", "", JUDGED), ("blocked", "policy")),
        (ApprovalAnswer(True, None, "", JUDGED), ("blocked", "policy")),
        (ApprovalAnswer(True, "second", "", make_result("failed")), ("blocked", "policy")),
        (ApprovalAnswer(True, "second", "", make_result("passed", decided_by="policy")), ("blocked", "policy")),
        (ApprovalAnswer(True, "second", "", "passed"), ("blocked", "policy")),  # type: ignore[arg-type]
        (ApprovalAnswer(True, "ana", "", None, "7" * 64), ("blocked", "policy")),
        (ApprovalAnswer(True, "ana", "", None, 7), ("blocked", "policy")),  # type: ignore[arg-type]
        (ApprovalAnswer(True, "ana", "", None, None, "elsewhere"), ("blocked", "policy")),
        (ApprovalAnswer(True, "ana", "", None, None, 7), ("blocked", "policy")),  # type: ignore[arg-type]
        ((True, "ana", ""), ("blocked", "policy")),
        (["ana"], ("blocked", "policy")),
    ],
)
def test_only_a_plain_answer_about_this_content_counts(answer: Any, decided: tuple[str, str]):
    """A judge's yes is a pass of its own under its name; anything else that claims to be one blocks."""
    assert word(check(gate(failed(), on_failed="ask", approvals=Desk(answer)))) == decided
