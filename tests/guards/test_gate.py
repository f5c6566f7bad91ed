"""A gate: rules, then a judge, then perhaps a person; what goes wrong on the way blocks."""

from __future__ import annotations

import hashlib
from typing import get_args

import pytest

from adjudge import AdjudgeError, Decision, Gate, Judge, JudgeChain, JudgeResult, Rule, RuleResult, UsageError
from adjudge.errors import Reason
from adjudge.testing import ScriptedModel
from kit.gates import GOOD, Book, Desk, check, gate, seat, word
from kit.judges import Plain, complaint, failed, names, passed, scores, silent
from kit.loops import run_virtual

REASONS: tuple[str, ...] = get_args(Reason)

SHORT = {"name": "length", "max": 20}
WARNING = {"regex": "perhaps", "absent": True, "severity": "warning"}
INFO = {"regex": "perhaps", "absent": True, "severity": "info"}


# ---------------------------------------------------------------- rules


def test_a_failed_error_rule_decides_before_any_model():
    """Nobody is asked, and the decision is the rule's."""
    judge = passed()
    decision = check(gate(judge, rules=[SHORT]), "far more than twenty characters")

    assert word(decision) == ("blocked", "rule")
    assert judge.asked == []
    assert decision.result.outcome == "failed"
    assert "rule 'length' failed" in decision.explain()


def test_warnings_reach_the_judge_and_decide_nothing():
    """A failed warning stands in the prompt as a finding; info is only recorded."""
    model = ScriptedModel(scores(1.0, names=["good"]))
    decision = check(gate(judge=Judge(model), rules=[WARNING, INFO]), "perhaps")

    assert word(decision) == ("allowed", "judge")
    assert model.requests[0].user.count("regex: ") == 1
    assert [(item.severity, item.passed) for item in decision.result.rule_results] == [
        ("warning", False),
        ("info", False),
    ]


def test_a_gate_of_rules_alone_needs_no_judge():
    """Rules decide both ways."""
    made = gate(rules=[SHORT, WARNING])

    assert word(check(made, "short")) == ("allowed", "rule")
    assert word(check(made, "perhaps")) == ("allowed", "rule")
    assert word(check(made, "x" * 21)) == ("blocked", "rule")


def test_a_rubric_of_rules_alone_needs_no_judge():
    """Its criteria are decided in code."""
    rubric = {"name": "R", "criteria": [{"name": "a", "description": "d", "rule": {"regex": "good"}}]}

    assert check(gate(rubric=rubric), "good").allowed
    assert not check(gate(rubric=rubric), "bad").allowed


def test_no_rule_runs_twice():
    """A rule that costs something is evaluated once a check."""
    calls = []
    made = gate(passed(), rules=[lambda text: calls.append(text) is None])

    assert check(made, "x").allowed
    assert calls == ["x"]


def test_a_rule_that_raises_blocks():
    """A broken check lets nothing through; one that ends the program leaves nobody hanging on the sync door."""

    def leave(text: str) -> bool:
        raise SystemExit(0)

    with pytest.raises(AdjudgeError, match="nothing was decided"):
        gate(rules=[leave]).check_sync("x")
    assert word(check(gate(passed(), rules=[lambda text: 1 / 0]))) == ("blocked", "rule")


# ---------------------------------------------------------------- judging


@pytest.mark.parametrize(
    ("kind", "decided"),
    [
        ("passed", ("allowed", "judge")),
        ("failed", ("blocked", "judge")),
        *[(r, ("blocked", "policy")) for r in REASONS],
    ],
)
def test_only_a_pass_goes_through(kind: str, decided: tuple[str, str]):
    """Failed is the judge's decision; undecided is blocked by the gate's policy."""
    decision = check(gate(seat(kind)))

    assert word(decision) == decided
    assert bool(decision) is decision.allowed


def test_what_surrounds_the_content_reaches_the_judge():
    """Task, context and reference are data for the judge; metadata is kept and not sent."""
    model = ScriptedModel(scores(1.0, names=["good"]))
    decision = check(
        gate(judge=Judge(model)), task="T-t", context=["C-c"], reference="R-r", metadata={"execution": "M-m"}
    )
    user = model.requests[0].user

    assert all(text in user for text in ("T-t", "C-c", "R-r"))
    assert "M-m" not in user
    assert decision.metadata == decision.result.metadata == {"execution": "M-m"}


@pytest.mark.parametrize("content", ["a\x00b", b"bytes", "\ud800", object(), [[b""]]])
@pytest.mark.parametrize("on_undecided", ["block", "allow"])
def test_content_that_cannot_be_read_is_blocked(content: object, on_undecided: str):
    """Also where undecided content is let through: or a NUL character would open the gate."""
    judge = passed()
    decision = check(gate(judge, on_undecided=on_undecided), content)

    assert word(decision) == ("blocked", "policy")
    assert decision.result.undecided_because == "error"
    assert judge.asked == []


def test_content_that_is_too_long_is_blocked():
    """A model's limit is no way around it."""
    model = Plain("never asked")
    model.max_input_characters = 5
    decision = check(gate(judge=Judge(model), on_undecided="allow"))

    assert word(decision) == ("blocked", "policy")
    assert "takes 5" in decision.explain()


def test_content_that_raises_when_it_is_opened_is_blocked():
    """An object may do anything in a property; what it raises is not quoted."""

    class Trap:
        @property
        def output(self) -> str:
            raise RuntimeError("private")

    decision = check(gate(passed(), on_undecided="allow"), Trap())

    assert word(decision) == ("blocked", "policy")
    assert "RuntimeError" in decision.explain()
    assert "private" not in decision.explain()


def test_name_rubric_and_judge_may_stand_in_that_order():
    """As they are said; what else a gate has is named."""
    made = Gate("door", GOOD, failed(), rules=["json"])

    assert (made.name, made.rubric.name, made.judge.name) == ("door", "Good", "seat")


def test_a_judge_with_a_rubric_of_its_own_is_enough():
    """The gate need not repeat it."""
    judge = Judge(ScriptedModel(scores(1.0, names=["good"])), rubric=GOOD)

    assert check(Gate("door", judge=judge)).allowed


# ---------------------------------------------------------------- policies


def test_undecided_is_let_through_only_by_name():
    """And then the decision says that a policy did it, and which."""
    decision = check(gate(silent("timeout"), on_undecided="allow"))

    assert word(decision) == ("allowed", "policy")
    assert "on_undecided='allow'" in decision.explain()


@pytest.mark.parametrize("because", ["tampering", "contradiction"])
def test_an_attack_is_never_let_through_as_undecided(because: str):
    """Tampering has a policy of its own; a judge that said two things may have said no."""
    assert word(check(gate(seat(because), on_undecided="allow"))) == ("blocked", "policy")


@pytest.mark.parametrize("seats", [("passed", "failed"), ("timeout", "failed"), ("passed", "tampering")])
def test_undecided_is_not_let_through_over_an_objection(seats: tuple[str, ...]):
    """A chain that could not decide, in which a seat said no, has not merely failed to answer."""
    chain = JudgeChain([seat(kind) for kind in seats], strategy="majority", timeout=None)
    decision = check(gate(judge=chain, on_undecided="allow"))

    assert decision.result.outcome == "undecided"
    assert word(decision) == ("blocked", "policy")


def test_tampering_in_one_seat_makes_the_strictest_policy_count():
    """A person is not shown what was tampered with because another seat happened to fail."""
    chain = JudgeChain([seat("tampering"), seat("failed")], strategy="consensus", timeout=None, stop_early=False)
    desk = Desk()
    decision = check(gate(judge=chain, on_failed="ask", approvals=desk))

    assert word(decision) == ("blocked", "judge")
    assert desk.requests == []


def test_a_chain_that_opens_is_a_policy():
    """``fail_open`` is asked for by name on the chain, and the decision says so."""
    chain = JudgeChain([silent("timeout")], fail_open=True, timeout=None)

    assert word(check(gate(judge=chain))) == ("allowed", "policy")


@pytest.mark.parametrize("kind", ["failed", "timeout", "tampering"])
def test_observe_decides_and_lets_through(kind: str):
    """The decision says that a policy let it through, and what would have happened."""
    judge = seat(kind)
    decision = check(gate(judge, mode="observe"))

    assert word(decision) == ("allowed", "policy")
    assert decision.would_allow is False
    assert len(judge.asked) == 1
    assert "enforce would block" in decision.explain()


def test_observe_changes_nothing_about_a_pass():
    """What would have gone through anyway went through because of the judge."""
    decision = check(gate(passed(), mode="observe"))

    assert (word(decision), decision.would_allow) == (("allowed", "judge"), True)


def test_observe_lets_through_what_a_rule_or_a_reader_stops():
    """Nothing is held up, however it would have been stopped."""
    assert word(check(gate(passed(), rules=[SHORT], mode="observe"), "x" * 21)) == ("allowed", "policy")
    assert word(check(gate(passed(), mode="observe"), b"")) == ("allowed", "policy")


def test_observe_asks_no_person():
    """Watching must not give anybody work."""
    desk = Desk()
    decision = check(gate(failed(), on_failed="ask", approvals=desk, mode="observe"))

    assert word(decision) == ("allowed", "policy")
    assert desk.requests == []


# ---------------------------------------------------------------- sampling


def test_what_is_not_sampled_is_let_through_by_policy():
    """Nobody was asked, so there is no result."""
    judge = failed()
    decision = check(gate(judge, sample=0))

    assert word(decision) == ("allowed", "policy")
    assert (decision.result, decision.sampled, decision.would_allow, judge.asked) == (None, False, None, [])
    assert "not sampled (sample=0)" in decision.explain()


def test_rules_are_never_left_out():
    """They cost nothing, so sampling spares the judge alone."""
    assert word(check(gate(passed(), rules=[SHORT], sample=0), "x" * 21)) == ("blocked", "rule")


def test_the_same_content_is_always_treated_alike():
    """Trying again does not help, and about the share that was asked for is judged."""
    made = gate(passed(), sample=0.5)
    subjects = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(400)]
    first = [made.takes(item) for item in subjects]

    assert first == [made.takes(item) for item in subjects]
    assert 120 < sum(first) < 280


def test_what_is_sampled_cannot_be_known_without_the_secret():
    """Two gates draw differently unless they share a seed."""
    subjects = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(200)]

    def drawn(**options: object) -> list[bool]:
        made = gate(passed(), sample=0.5, **options)
        return [made.takes(item) for item in subjects]

    assert drawn() != drawn()
    assert drawn(seed="s") == drawn(seed="s")
    assert drawn(seed="s") != drawn(seed="t")


# ---------------------------------------------------------------- the values


def test_a_decision_goes_to_a_dictionary_and_back():
    """With its result, whichever kind that is."""
    for judge in (passed(), Judge(ScriptedModel(scores(0.2, names=["good"])))):
        decision = check(gate(judge, ledger=Book(), config="d" * 64), metadata={"execution": "e"})

        assert Decision.from_dict(decision.to_dict()) == decision
        assert decision.to_dict()["schema"] == "adjudge/decision/1"
        assert decision.config == "d" * 64


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "adjudge/result/1"},
        {"allowed": "yes"},
        {"pending": [[]]},
        {"allowed": True},
        {"pending": True, "allowed": True, "decided_by": "policy"},
        {"decided_by": "nobody"},
        {"result": []},
        {"created_at": "yesterday"},
    ],
)
def test_only_what_a_decision_wrote_is_read(change: dict[str, object]):
    """A dictionary that allows what no judge passed is refused, like any other that cannot be."""
    data = check(gate(failed())).to_dict() | change

    with pytest.raises(UsageError):
        Decision.from_dict(data)


def test_a_pass_in_a_judges_name_needs_that_judges_pass():
    """The type itself refuses anything else."""
    no = JudgeResult(outcome="failed", judge="j", score=0.0)
    opened = JudgeResult(outcome="passed", judge="j", decided_by="policy")
    for result, by in ((None, "judge"), (no, "judge"), (no, "rule"), (opened, "judge")):
        with pytest.raises(UsageError, match="needs a result that this"):
            Decision(gate="g", allowed=True, decided_by=by, result=result)


def test_the_sync_door():
    """For callers without a loop."""
    assert gate(passed()).check_sync("x").allowed
    assert not gate(failed()).check_sync("x").allowed


def test_what_could_not_be_read_elsewhere_is_a_decision_too():
    """Whoever reads a request that cannot be read has it decided, and recorded, like everything else."""
    book = Book()
    decision = run_virtual(gate(passed(), ledger=book).refuse("the body is too large"))

    assert word(decision) == ("blocked", "policy")
    assert len(book.entries) == 1
    assert word(run_virtual(gate(passed(), mode="observe").refuse("too large"))) == ("allowed", "policy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_failed": "allow"}, "on_failed … one of block, ask … got 'allow'"),
        ({"on_undecided": "pass"}, "on_undecided … one of block, allow, ask … got 'pass'"),
        ({"on_tampering": "allow"}, "on_tampering … one of block, ask … got 'allow'"),
        ({"mode": "off"}, "mode … one of enforce, observe … got 'off'"),
        ({"sample": 1.5}, "sample … between 0 and 1 … got 1.5 … for 1.5 % write 0.015"),
        ({"sample": float("nan")}, "sample … a number between 0 and 1 … got nan"),
        ({"sample": True}, "sample … a number between 0 and 1 … got True"),
        ({"on_failed": "ask"}, "gate 'door' … 'ask' needs somebody to ask … give approvals"),
        ({"wait": "no"}, "wait … true or false"),
        (
            {"ledger": "sqlite:///a.db"},
            "ledger … a Ledger, or have its append … got str",
        ),
        ({"approvals": "sqlite:///a.db", "on_failed": "ask"}, "approvals … Approvals, or have their request and"),
        ({"redact": "names"}, "redact … a function … got str"),
        ({"rules": "length"}, "rules … a list of rules … got str"),
        ({"rules": [{"lenght": 3}]}, "no rule is named 'lenght'"),
        ({"name": " "}, "a gate … name must be a printable text"),
        ({"rubric": None}, "nothing says what good means … give rubric"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_at_once(options: dict[str, object], message: str):
    """Not when the first content comes."""
    name = options.pop("name", "door")

    assert names(complaint(Gate, name, **{"judge": passed(), "rubric": GOOD, **options}), *message.split(" … "))


def test_a_rubric_with_a_model_does_not_go_with_a_chain():
    """No content could ever pass, so it is said at once."""
    message = complaint(Gate, "door", rubric={**GOOD, "model": "openai:gpt-6.1-terra"}, judge=JudgeChain([passed()]))

    assert "take the model out of the rubric" in message


def test_a_gate_closes_what_its_judge_opened():
    """One of rules alone has nothing to close."""
    run_virtual(gate(passed()).aclose())
    run_virtual(gate(rules=[SHORT]).aclose())


def test_a_gate_needs_something_to_check():
    """Without rules and judge nothing would ever be stopped."""
    assert "there is nothing to check" in complaint(Gate, "door")
    for options in (
        {},
        {"rubric": "Is polite and short."},
    ):
        message = complaint(Gate, "door", judge=passed(), **options)
        assert "rubric" in message
        assert "criteri" in message
    assert "rubric 'Good' needs a judge" in complaint(Gate, "door", rubric=GOOD)
    assert "needs a judge" in complaint(Gate, "door", rubric=GOOD, rules=[SHORT])
    assert "this gate has none" in complaint(Gate, "door", rules=[SHORT], sample=0.5)


def test_arguments_of_the_caller_are_the_callers():
    """What is wrong with the call and not with the content is raised."""
    assert "metadata must be a mapping" in complaint(gate(passed()).check, "x", metadata=["e"])


def test_a_rule_object_is_as_good_as_data():
    """Functions, mappings, names and ``Rule``s."""

    async def later(content: str) -> RuleResult:
        return RuleResult(name="x", passed="no" not in content)

    made = gate(rules=[Rule(name="a", evaluate=later), "json"])

    assert check(made, "{}").allowed
    assert not check(made, '"no"').allowed
