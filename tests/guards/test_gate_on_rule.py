"""What a rule failed and what a judge failed are treated as the gate says for each."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from adjudge import Gate, JudgeChain, UsageError
from adjudge.guards import Policy
from kit import cli
from kit.cli import Line
from kit.gates import Desk, check, gate, word
from kit.judges import Seat, failed, passed
from kit.loops import run_virtual

NO = [{"regex": "content", "absent": True}]
WORDS = {"block": "blocked", "ask": "pending"}


def decide(*, rule: bool, judge: Any, **policy: Any) -> tuple[str, str]:
    """What a gate says whose rule fails, or whose judge does."""
    desk = {"approvals": Desk(), "wait": False}
    return word(check(gate(judge=judge, rules=NO if rule else [], **desk, **policy)))


@pytest.mark.parametrize(
    ("on_rule", "on_failed", "rule"), list(product((None, "block", "ask"), ("block", "ask"), (True, False)))
)
def test_each_failure_has_its_policy(on_rule: Any, on_failed: Any, rule: bool):
    """The whole table: where a rule decided, ``on_rule`` or else ``on_failed``; where the judge did, ``on_failed``."""
    decided = decide(rule=rule, judge=failed(), on_rule=on_rule, on_failed=on_failed)
    policy = (on_rule or on_failed) if rule else on_failed

    assert decided == (WORDS[policy], "policy" if policy == "ask" else "rule" if rule else "judge")


def test_a_rule_is_not_asked_about_and_no_judge_is_either():
    """Nobody pays for a judge where a rule has decided, whatever the policies are."""
    seat = passed()
    decision = check(gate(seat, rules=NO, on_failed="ask", on_rule="block", approvals=Desk(), wait=False))

    assert word(decision) == ("blocked", "rule")
    assert seat.asked == []


def test_the_decision_says_which_policy_asked():
    """In its detail, and in what an approval is bound to."""
    options: dict[str, Any] = {"rules": NO, "approvals": Desk(), "wait": False}
    by_rule, by_default = check(gate(**options, on_rule="ask")), check(gate(**options, on_failed="ask"))

    assert "on_rule='ask'" in by_rule.explain()
    assert by_rule.basis["policy"]["on_rule"] == "ask"
    assert "on_rule" not in by_default.basis["policy"]


def test_a_rule_of_a_criterion_is_a_rule():
    """Also where the judge is a chain, of which nobody was asked."""
    rubric = {
        "name": "Good",
        "criteria": [
            {"name": "calm", "description": "Calm.", "threshold": 0.9, "rule": NO[0]},
            {"name": "good", "description": "Good."},
        ],
    }
    for judge in (failed(), JudgeChain([failed(), passed()], strategy="consensus", timeout=None)):
        made = gate(judge=judge, rubric=rubric, on_rule="ask", approvals=Desk(), wait=False)
        assert word(check(made)) == ("pending", "policy")


def test_a_seat_that_judges_in_code_is_a_judge():
    """What it fails, ``on_failed`` is about, though its own result says that a rule decided."""
    seat = Seat("failed", decided_by="rule")
    chain = JudgeChain([seat], timeout=None)

    assert decide(rule=False, judge=chain, on_rule="ask", on_failed="block")[0] == "blocked"


def test_an_approval_given_under_another_on_rule_opens_nothing():
    """Who wrote ``on_rule`` down later is asked anew; who wrote the default down is not."""
    desk = Desk()
    options: dict[str, Any] = {"rules": NO, "approvals": desk, "wait": False, "on_failed": "ask"}
    pending = check(gate(**options))

    assert word(run_virtual(gate(**options, on_rule="ask").resume(pending))) == ("allowed", "human")
    stricter = run_virtual(gate(**options, on_rule="block").resume(pending))
    assert word(stricter) == ("blocked", "policy")
    assert "other policy" in stricter.detail


@pytest.mark.parametrize("policy", ["allow", "Ask", True, ""])
def test_what_on_rule_cannot_be(policy: Any):
    """It is block or ask, and an ask needs somebody to ask."""
    with pytest.raises(UsageError, match="on_rule"):
        Gate("door", rules=NO, on_rule=policy, approvals=Desk())
    with pytest.raises(UsageError, match="approvals"):
        Gate("door", rules=NO, on_rule="ask")


def test_a_policy_knows_what_it_does_with_a_rule():
    """``None`` is as ``on_failed``; a policy that asks only about rules need not hear every seat of a chain."""
    assert Policy(on_failed="ask").on_rule == "ask"
    assert Policy(on_rule="ask").asks
    assert Policy(on_rule="ask").blocks_all
    assert Policy(on_failed="ask", on_rule="block").asks


def test_a_gate_of_the_file_says_on_rule(capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path):
    """In ``adjudge.toml``, where it needs somebody to ask as well."""
    cli.isolate(monkeypatch, tmp_path)
    Path("text.txt").write_text("some content", encoding="utf-8")
    table = '[gates.publish]\nrules = [{regex = "content", absent = true}]\non_rule = "ask"\n'
    people = '[approvals]\napprovers = ["ana"]\n[ledger]\nurl = "sqlite:///adjudge.db"\n'
    line = Line(capsys)
    Path("adjudge.toml").write_text(table + people, encoding="utf-8")
    held = line("gate", "check", "publish", "text.txt", "--json")
    Path("adjudge.toml").write_text(table, encoding="utf-8")
    alone = line("gate", "check", "publish", "text.txt")

    assert (held.status, held.document["pending"]) == (3, True)
    assert alone.status == 2
    assert "ledger" in alone.sentence


def test_a_rubric_of_rules_alone_is_decided_by_rules():
    """No model is asked by it, so ``on_rule`` is about it."""
    rubric = {"name": "R", "criteria": [{"name": "calm", "description": "Calm.", "rule": NO[0]}]}
    made = Gate("door", rubric=rubric, on_rule="ask", approvals=Desk(), wait=False)

    assert word(check(made)) == ("pending", "policy")
