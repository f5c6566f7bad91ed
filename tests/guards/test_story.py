"""Gate, people, ledger and audit together: each way in which something is held back and goes on, told by one ledger."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision, Gate, Judge, JudgeChain, Ledger, Rule
from adjudge.ledger import AuditEntry, derive_audit, verify_export
from adjudge.testing import ScriptedModel
from kit import cli
from kit.audits import find_codes
from kit.cli import HIDDEN, Line
from kit.clock import Clock
from kit.gates import GOOD, word
from kit.ledgers import find, verify

URL = "sqlite:///adjudge.db"
FULL = "sqlite:///full.db"
CONTENTS = ("passes", "rule breaker", "sure", "approved", "denied", "blank expires", "expires", "waits")
ENDS = {
    "passes": ("allowed", "judge"),
    "rule breaker": ("blocked", "rule"),
    "sure": ("allowed", "judge"),  # by the judge that was asked before people
    "approved": ("allowed", "human"),
    "denied": ("blocked", "human"),
    "blank expires": ("allowed", "policy"),
    "expires": ("blocked", "policy"),
    "waits": ("pending", "policy"),
}


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def judge_content(request: Any) -> Any:
    """The gate's judge: only "passes" does; what is blank is no answer."""
    content = cli.find_content(request.user)
    if "blank" in content:
        return "I cannot say."
    return {"criteria": [{"name": "good", "reasoning": f"It says {content}.", "score": float(content == "passes")}]}


def approve_content(request: Any) -> Any:
    """The judge that is asked before people: sure of one content alone."""
    score = float("\nsure\n" in request.user)
    return {"criteria": [{"name": "approval", "reasoning": "As always.", "score": score}]}


def make_gate(ledger: Ledger, approvals: Approvals) -> Gate:
    seats = [Judge(ScriptedModel(approve_content), name=f"second-{number}") for number in range(3)]
    first = JudgeChain(seats, strategy="majority", name="panel", stop_early=False)
    return Gate(
        "publish",
        rubric=GOOD,
        judge=Judge(ScriptedModel(judge_content), name="careful", reask=0),
        rules=[Rule(name="calm", evaluate=lambda text: "rule breaker" not in str(text))],
        on_failed="ask",
        on_undecided="ask",
        approvals=approvals,
        ask={"approvers": ["ana", "bob"], "first": first, "expires_in": 60},
        show_content=True,
        wait=False,
        ledger=ledger,
    )


async def tell(url: str, **options: Any) -> tuple[dict[str, Decision], str]:
    """Put every content through the gate and let each end in its own way; the last decisions, and the ledger's head."""
    clock = Clock()
    async with Ledger(url, **options) as ledger, Approvals(ledger, clock=clock) as approvals:
        gate = make_gate(ledger, approvals)
        own = {
            "blank expires": gate.replace(ask={**gate.ask, "on_expiry": "approve"}),
            "rule breaker": gate.replace(on_failed="block"),
        }
        ends = {content: await own.get(content, gate).check(content) for content in CONTENTS}
        for content, by, approved in (("approved", "bob", True), ("denied", "ana", False)):
            await approvals.decide(ends[content].approval_id or "", by, approved, f"{content} by phone")
        clock.pass_by(61)
        for content, held in ends.items():
            if held.pending and content != "waits":
                ends[content] = await own.get(content, gate).resume(held)
        for kind in ("run", "tool.reviewed", "tool.promoted", "tool.demoted", "certificate", "anchor"):
            await ledger.append({"schema": f"adjudge/{kind}/1", "approved": True, "outcome": "passed"}, kind=kind)
        head = await ledger.export(Path("ledger.jsonl"))
    return ends, str(head)


def audit(source: Any, **options: Any) -> AuditEntry:
    return asyncio.run(derive_audit(source, **options))


def test_everything_ends_as_it_should_and_says_by_whom(line: Line):
    """Judge, rule, the judge asked first, people and expiry: each decision names who made it."""
    ends, _ = asyncio.run(tell(URL))

    assert {content: word(decision) for content, decision in ends.items()} == ENDS
    assert ends["sure"].answer is not None
    assert (ends["sure"].answer.judge, ends["sure"].answer.confidence) == ("panel", 1.0)
    assert ends["approved"].detail == "approved by bob: approved by phone"
    assert "on_expiry='approve' was asked for" in ends["blank expires"].detail
    assert [ends[name].result.judge for name in ("sure", "approved", "denied")] == ["careful"] * 3  # type: ignore[union-attr]


@pytest.mark.slow
def test_one_chain_holds_all_of_it(line: Line):
    """Every kind of entry in one order, from the genesis on, and the content's digest finds the story of each."""
    ends, head = asyncio.run(tell(URL))
    kinds = Counter(entry.kind for entry in find(URL))

    assert kinds == {
        "genesis": 1,
        "decision": len(CONTENTS) + 4,  # those that were pending and are not any more
        "approval.requested": 6,
        "approval.voted": 2 + 6,  # by people, and by the judge that was asked before them
        "approval.closed": 5,
        "override": 1,
        **dict.fromkeys(("run", "tool.reviewed", "tool.promoted", "tool.demoted", "certificate", "anchor"), 1),
    }
    assert [entry.kind for entry in find(URL, subject=ends["approved"].subject)] == [
        "approval.requested",
        "approval.voted",
        "decision",
        "approval.voted",
        "approval.closed",
        "override",
        "decision",
    ]
    assert verify(URL, head)


def test_the_audit_tells_who_decided_what(line: Line):
    """Of real entries, and the same from the export alone: what became of each content, and in whose name."""
    ends, head = asyncio.run(tell(URL))
    Path("adjudge.db").unlink()
    report = audit(Path("ledger.jsonl"), head=head, gate="publish")
    names = {decision.subject: content for content, decision in ends.items()}
    judged = {names[item.subject]: (item.became, item.decided_by, item.by) for item in report.judged}

    assert judged == {
        "passes": ("let through", "judge", ""),
        "rule breaker": ("stopped", "rule", ""),
        "sure": ("let through", "judge", "panel"),
        "approved": ("let through", "human", "bob"),
        "denied": ("stopped", "human", "ana"),
        "blank expires": ("let through", "policy", ""),
        "expires": ("stopped", "policy", ""),
        "waits": ("pending", "", ""),
    }
    codes = {names[item.subject]: [one.code for one in report.found if one.seq == item.seq] for item in report.judged}
    assert codes == {
        "passes": [],
        "rule breaker": ["stopped"],
        "sure": ["let_through"],
        "approved": ["approved"],
        "denied": ["stopped"],
        "blank expires": ["opened"],
        "expires": ["stopped"],
        "waits": ["pending"],
    }
    assert (report.opinion, report.basis and report.basis.verified, report.basis and report.basis.pinned_head) == (
        "adverse",
        True,
        True,
    )


@pytest.mark.slow
def test_the_export_shows_every_changed_byte_of_a_vote(line: Line):
    """Whoever would like somebody else to have decided, or otherwise, is found with the export alone."""
    _, head = asyncio.run(tell(URL))
    whole = Path("ledger.jsonl").read_bytes()
    start = whole.index(b'"kind":"approval.voted"')
    start, end = whole.rindex(b"\n", 0, start) + 1, whole.index(b"\n", start)
    for place in range(start, end, 7):
        Path("changed.jsonl").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not verify_export("changed.jsonl", head=head).valid, place
    report = audit(Path("changed.jsonl"))

    assert find_codes(report)[0] == "ledger_changed"
    assert report.opinion == "disclaimer"


@pytest.mark.slow
def test_the_command_line_tells_the_story(line: Line):
    """A line for each entry with who did what, and a report that people can read; nothing of the contents."""
    ends, _ = asyncio.run(tell(URL))
    listed = line("ledger", "list", "--ledger", URL)
    rows = {int(row.split()[0]): row for row in listed.out.splitlines()[1:]}
    report = line("ledger", "report", "--ledger", URL)
    seq = ends["approved"].ledger_seq or 0

    assert "allowed by human" in rows[seq]
    for text in (
        "asked ana, bob; needs 1",
        "bob approves: approved by phone",
        "ana denies: denied by phone",
        "pending",
    ):
        assert text in listed.out
    for text in ("approved by panel", "approved by policy", "denied by policy", "overruled by bob", "blocked by rule"):
        assert text in listed.out
    assert report.status == 1
    assert "it failed, a gate asked people, and a person (bob) approved it" in report.out
    assert "it failed, and a judge (panel) let it through" in report.out
    assert HIDDEN.search(listed.out + report.out) is None
    for seq in rows:
        assert line("ledger", "show", str(seq), "--ledger", URL).status == 0
    shown = "".join(line("ledger", "show", str(seq), "--ledger", URL).out for seq in rows)
    assert "It says" not in shown
    assert "rule breaker" not in shown


def test_a_full_ledger_keeps_what_was_said(line: Line):
    """The same story with the judge's words, where ``store_content`` says so."""
    asyncio.run(tell(FULL, store_content="full"))
    payloads = str([entry.payload for entry in find(FULL)])

    assert "It says denied." in payloads
    assert "As always." in payloads
