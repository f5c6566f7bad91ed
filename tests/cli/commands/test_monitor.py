"""``adjudge monitor``: one sentence on each gate, what to do, and a status that a script can go by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals
from adjudge.guards import Audit, Gate
from kit import cli
from kit.audited import label, use
from kit.cli import ME, WORDS, Line, Ran
from kit.judges import names
from kit.ledgers import find, record

pytestmark = pytest.mark.timed

URL = "sqlite:///a.db"
HERE = ("--ledger", "a.db")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    return Line(capsys)


def give(*answers: bool, **options: Any) -> None:
    """Let one content through at gate "answers" for each of these answers, and answer its audit."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        await label(gate, approvals, answers)

    use(URL, work, **options)


def run(line: Line, *arguments: str, status: int) -> Ran:
    """What the command line did, with this exit status."""
    ran = line(*arguments)
    assert ran.status == status, ran.err
    return ran


@pytest.mark.parametrize(
    ("answers", "verdict", "status"),
    [([True] * 60, "quiet", 0), ([False] * 8, "alarm", 1), ([True] * 3, "too few labels", 3)],
    ids=["quiet", "alarm", "few"],
)
def test_the_status_says_what_the_answers_show(line: Line, answers: list[bool], verdict: str, status: int):
    """0 is quiet, 1 an alarm, and 3 that nothing can be said yet."""
    give(*answers)
    ran = run(line, "monitor", "--json", *HERE, status=status)
    (monitor,) = json.loads(ran.out)["monitors"]

    assert (monitor["gate"], monitor["verdict"], monitor["labels"]) == ("answers", verdict, len(answers))
    assert run(line, "monitor", *HERE, status=status).out.splitlines()[0] == f"{monitor['says']}."


def test_an_alarm_is_said_in_one_sentence_first_and_then_what_to_do(line: Line):
    """With the counts, what was promised, and the command that begins anew."""
    give(*[False] * 8)
    first, then = run(line, "monitor", "answers", *HERE, status=1).out.splitlines()[:2]

    assert names(first, "alarm", "'answers'", "8 of 8", "should have been stopped", "10 %")
    assert names(then, "let people decide", "adjudge monitor answers --reset")


def test_people_begin_anew_in_their_own_name(line: Line):
    """The reset is an entry of the ledger, and the alarm is over."""
    give(*[False] * 8)
    ran = run(line, "monitor", "answers", "--reset", "measured again", *HERE, status=0)

    assert "recorded as entry" in ran.err
    run(line, "monitor", "answers", *HERE, status=3)
    (entry,) = find(URL, kind="monitor.reset")
    assert (entry.payload or {})["by"] == ME
    assert (entry.payload or {})["reason"] == "measured again"


def test_nothing_that_is_not_there_is_monitored_or_begun_anew(line: Line):
    """A gate that is mistyped is no quiet one, and a reset names one gate."""
    record(URL, {"n": 1})
    assert names(run(line, "monitor", *HERE, status=2).err, "no audits", "audit = 0.02")
    give(True)
    assert names(run(line, "monitor", "anwers", *HERE, status=2).err, "'anwers'", "'answers'")
    assert names(run(line, "monitor", "--reset", "why", *HERE, status=2).err, "--reset", "name")
    assert find(URL, kind="monitor.reset") == []


def test_audits_are_listed_shown_and_answered_in_a_shell(line: Line):
    """By those who are asked, without anything of what the judge said."""

    async def work(gate: Gate, approvals: Approvals) -> str:
        await gate.check("The content.")
        (audit,) = await approvals.list(audits=True)
        return audit.id

    ident = use(URL, work, audit=Audit(share=1.0, approvers=(ME,)))

    assert "no requests" in line("approvals", "list", *HERE).err
    assert ident in line("approvals", "list", "--audits", *HERE).out
    shown = line("approvals", "show", ident, *HERE).out
    assert names(shown, "The content.", "approve: it was right", "deny: it should have been stopped")
    assert "What the judge thinks." not in shown
    assert line.vote(ident, "--reason", "I looked", *HERE, command="deny").status == 0
    assert names(run(line, "monitor", *HERE, status=3).out, "1 of 1")


CONFIG = f"""
[judges.words]
seats = ["{WORDS}"]

[rubrics]
polite = "polite.yaml"

[gates.answers]
rubric = "polite"
judge = "words"
audit = AUDIT

[approvals]
approvers = ["ana"]
show_content = true

[ledger]
url = "sqlite:///a.db"
"""


def configure(audit: str) -> None:
    Path("adjudge.toml").write_text(CONFIG.replace("AUDIT", audit), encoding="utf-8")
    Path("polite.yaml").write_text(
        "name: Polite\ncriteria:\n  - {name: criteria, description: Is polite.}\n", encoding="utf-8"
    )
    Path("good.txt").write_text("good", encoding="utf-8")


@pytest.mark.parametrize(
    ("audit", "promise", "who"),
    [("1", 0.1, "ana"), ('{share = 1, promise = 0.05, approvers = ["ben"]}', 0.05, "ben")],
    ids=["share", "table"],
)
def test_a_gate_of_the_configuration_is_audited(line: Line, audit: str, promise: float, who: str):
    """People are those of ``[approvals]`` unless the audit names others; the command waits for nobody."""
    configure(audit)
    run(line, "gate", "check", "answers", "good.txt", status=0)
    (asked,) = json.loads(run(line, "approvals", "list", "--audits", "--json", status=0).out)["approvals"]

    assert (asked["content"], asked["approvers"], asked["audit"]["promise"]) == ("good", [who], promise)
    assert json.loads(run(line, "monitor", "--json", status=3).out)["monitors"][0]["audits"] == 1


def test_of_a_gate_of_which_nothing_was_drawn_yet_nothing_can_be_said(line: Line):
    """A new gate is no wrong usage, and no quiet one either; nothing else waits for it to be drawn from."""
    configure("1")
    record("sqlite:///a.db", {"n": 1})

    for gate in ([], ["answers"]):
        fresh = run(line, "monitor", *gate, status=3)
        assert names(fresh.err, "nothing was drawn yet of 'answers'")
    assert json.loads(run(line, "monitor", "--json", status=3).out)["monitors"] == []


def test_an_answered_audit_proposes_nothing_to_resume(line: Line):
    """Content that was audited went through already."""
    configure(f'{{share = 1, approvers = ["{ME}"]}}')
    run(line, "gate", "check", "answers", "good.txt", status=0)
    (asked,) = json.loads(run(line, "approvals", "list", "--audits", "--json", status=0).out)["approvals"]

    answered = line.vote(asked["id"], "--reason", "I looked")
    assert answered.status == 0
    assert "resume" not in answered.out + answered.err


@pytest.mark.parametrize(
    ("audit", "parts"),
    [
        ("2", ["audit", "between 0 and 1"]),
        ('"yes"', ["audit", "'yes'"]),
        ("{shares = 0.1}", ["shares", "share"]),
        ("{promise = 2}", ["promise"]),
    ],
    ids=["share", "text", "key", "promise"],
)
def test_what_is_wrong_with_an_audit_is_said_with_its_table(line: Line, audit: str, parts: list[str]):
    """Before anything is judged."""
    configure(audit)

    assert names(run(line, "gate", "check", "answers", "good.txt", status=2).err, "[gates.answers]", *parts)
