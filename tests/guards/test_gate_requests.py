"""An approval opens the one request that it was given for: nothing that merely looks like it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from adjudge import Approvals, Criterion, Decision, Gate, Judge, Ledger, Rubric, Rule
from adjudge.guards import ApprovalAnswer
from adjudge.rules import rule_from_spec
from adjudge.testing import ScriptedModel
from kit import cli
from kit.approvals import make_result
from kit.cli import Line
from kit.gates import Desk, check, gate, word
from kit.house import TESTS
from kit.judges import failed, names, passed
from kit.ledgers import find, open_schema, verify
from kit.loops import run_virtual

pytestmark = pytest.mark.timed


RUBRIC = {"name": "Good", "criteria": [{"name": "good", "description": "It is good."}]}
ASK = {"approvers": ["ana", "bob"], "required": 1, "expires_in": 3600}
"""What a version wrote that did not know the digest of a request."""


def strict(text: object) -> bool:
    """Say no."""
    return False


def stricter(text: object) -> bool:
    """Say no."""
    return text is None


def calls_a_helper(text: object) -> bool:
    return strict(text)


def make_gate(ledger: Any, approvals: Any, **changes: Any) -> Gate:
    options: dict[str, Any] = {"rubric": RUBRIC, "judge": failed(), "on_failed": "ask", "ask": ASK, "wait": False}
    options |= {"approvals": approvals, "ledger": ledger} | changes
    return Gate(options.pop("name", "publish"), **options)


def run(url: str, work: Callable[..., Any]) -> Any:
    """What an async function makes of a ledger and the approvals beside it."""

    async def go() -> Any:
        async with Ledger(url) as ledger, Approvals(ledger) as approvals:
            return await work(ledger, approvals)

    return asyncio.run(go())


HELD: dict[str, Any] = {"task": "Say yes.", "context": ["The policy."], "reference": {"a": 1}, "metadata": {"run": 1}}

GATES: Mapping[str, dict[str, Any]] = {
    "approvers": {"ask": ASK | {"approvers": ["ana", "cy"]}},
    "one approver fewer": {"ask": ASK | {"approvers": ["ana"]}},
    "one approver more": {"ask": ASK | {"approvers": ["ana", "bob", "cy"]}},
    "required": {"ask": ASK | {"required": 2}},
    "expires_in": {"ask": ASK | {"expires_in": 60}},
    "never expires": {"ask": ASK | {"expires_in": None}},
    "on_expiry": {"ask": ASK | {"on_expiry": "approve"}},
    "execution": {"ask": ASK | {"execution": "run-2"}},
    "metadata of the request": {"ask": ASK | {"metadata": {"ticket": 7}}},
    "a judge that answers first": {"ask": ASK | {"first": failed(name="other")}, "show_content": True},
    "rubric": {"rubric": {"name": "Good", "criteria": [{"name": "good", "description": "It is very good."}]}},
    "threshold": {"rubric": RUBRIC | {"passing_threshold": 0.9}},
    "criterion's threshold": {"rubric": {"name": "Good", "criteria": [{**RUBRIC["criteria"][0], "threshold": 0.9}]}},  # type: ignore[index, dict-item]
    "a rule more": {"rules": [{"length": 4000}]},
    "on_undecided": {"on_undecided": "ask"},
    "on_tampering": {"on_tampering": "ask"},
    "on_failed": {"on_failed": "block", "on_undecided": "ask"},
    "name": {"name": "publish-to-all"},
}
"""Everything about a gate that an approval is bound to, each changed alone."""


@pytest.mark.parametrize("changed", [*GATES, None])
def test_a_gate_under_other_terms_is_not_opened(url: str, changed: str | None):
    """A gate of the same name that asks other people, has other rules or another rubric goes its own way."""

    async def hold(ledger: Ledger, approvals: Approvals) -> str:
        pending = await make_gate(ledger, approvals).check("yes", **HELD)
        await approvals.decide(pending.approval_id or "", "ana", True, "fine")
        return json.dumps(pending.to_dict())

    async def resume(ledger: Ledger, approvals: Approvals) -> Decision:
        own = make_gate(ledger, approvals, **(GATES[changed] if changed else {}))
        pending = Decision.from_dict(json.loads(written))
        return await own.resume(replace(pending, gate=own.name))

    written = run(url, hold)
    decision = run(url, resume)

    assert word(decision) == (("blocked", "policy") if changed else ("allowed", "human"))
    if changed:
        assert names(decision.detail, "than this gate has now", "through the gate again")
    assert verify(url)


@pytest.mark.parametrize(
    "rules",
    [
        ([{"regex": "a", "absent": True}], [{"regex": "b", "absent": True}]),
        ([{"length": 1}], [{"length": 2}]),
        ([{"length": 1}], [{"name": "length", "max": 1, "severity": "warning"}]),
        ([Rule(name="own", evaluate=strict)], [Rule(name="own", evaluate=stricter)]),
        ([lambda text: False], [lambda text: len(str(text)) < 0]),
        ([strict], [Rule(name="strict", evaluate=stricter, spec={"python": "test:strict"}, description="Say no.")]),
    ],
    ids=range(6),
)
def test_another_rule_of_the_same_name_is_another_gate(rules: Any):
    """Whether it is written as data or is a function; an equal one is the same."""
    desk = Desk()
    one, other = (gate(rules=each, on_failed="ask", approvals=desk, wait=False) for each in rules)
    same = gate(rules=rules[0], on_failed="ask", approvals=desk, wait=False)
    warned = one.replace(rules=[*rules[0], Rule(name="no", evaluate=strict)])
    pending = check(warned, "aaa")

    assert word(run_virtual(same.replace(rules=[*rules[0], Rule(name="no", evaluate=strict)]).resume(pending)))[0] == (
        "allowed"
    )
    changed = run_virtual(other.replace(rules=[*rules[1], Rule(name="no", evaluate=strict)]).resume(pending))
    assert word(changed) == ("blocked", "policy")
    assert names(changed.detail, "other rules", "this gate has now")


def test_a_rule_that_names_a_function_is_known_by_its_code(monkeypatch: pytest.MonkeyPatch):
    """A file names ``module:function``; the function of that name may be another one by tomorrow."""

    def make(function: Callable[[object], bool]) -> Gate:
        module = ModuleType("rules_of_a_file")
        vars(module)["check"] = function
        monkeypatch.setitem(sys.modules, module.__name__, module)
        rule = rule_from_spec({"python": "rules_of_a_file:check"}, allow_python=True)
        return Gate("door", rules=[rule], on_failed="ask", approvals=Desk(), wait=False)

    pending = check(make(strict), "bad")

    assert word(run_virtual(make(strict).resume(pending))) == ("allowed", "human")
    assert "other rules than" in run_virtual(make(stricter).resume(pending)).detail


def test_a_function_is_known_by_what_it_was_made_with():
    """Two rules of one factory differ where what they close over does; a rule of a criterion is looked at as well."""

    def at_most(count: int) -> Callable[[object], bool]:
        return lambda text: len(str(text)) <= count

    def make(count: int) -> Gate:
        short = Criterion(name="short", description="Short.", rule=at_most(count))
        rubric = Rubric(name="Short", criteria=[short])
        return Gate("door", rubric=rubric, on_failed="ask", approvals=Desk(), wait=False)

    pending = check(make(2), "too long")

    assert word(run_virtual(make(2).resume(pending))) == ("allowed", "human")
    assert "other rubric than" in run_virtual(make(3).resume(pending)).detail


def test_a_rule_that_calls_itself_is_known_again():
    """Such a function closes over itself, so looking at what it holds has to end somewhere."""

    def make() -> Gate:
        def is_short(text: object, left: int = 3) -> bool:
            return left > 0 and (not text or is_short(str(text)[1:], left - 1))

        return Gate("door", rules=[is_short], on_failed="ask", approvals=Desk(), wait=False)

    assert word(run_virtual(make().resume(check(make(), "too long")))) == ("allowed", "human")


def test_a_function_is_known_by_the_words_it_was_made_with():
    """A list counts by what it holds: the identity by which replies are kept knows it by its type alone."""

    def make(words: list[str]) -> Gate:
        def avoids(text: object) -> bool:
            return not any(word in str(text) for word in words)

        return Gate("door", rules=[avoids], on_failed="ask", approvals=Desk(), wait=False)

    pending = check(make(["bad", "worse"]), "bad")

    assert word(run_virtual(make(["bad", "worse"]).resume(pending))) == ("allowed", "human")
    assert "other rules than" in run_virtual(make(["bad"]).resume(pending)).detail


def test_a_function_is_known_by_the_functions_that_it_calls(monkeypatch: pytest.MonkeyPatch):
    """A helper that was changed while a person decided makes the rule another one."""

    def make() -> Gate:
        return Gate("door", rules=[calls_a_helper], on_failed="ask", approvals=Desk(), wait=False)

    pending = check(make(), "bad")

    assert word(run_virtual(make().resume(pending))) == ("allowed", "human")
    monkeypatch.setitem(globals(), "strict", stricter)
    assert "other rules than" in run_virtual(make().resume(pending)).detail


def test_a_judge_with_a_rubric_of_its_own_is_bound_to_it():
    """Though the gate names none."""

    def make(text: str) -> Gate:
        model = ScriptedModel({"criteria": [{"name": "good", "reasoning": "No.", "score": 0.0}]})
        rubric = {"name": "Good", "criteria": [{"name": "good", "description": text}]}
        return Gate("door", judge=Judge(model, rubric=rubric), on_failed="ask", approvals=Desk(), wait=False)  # type: ignore[arg-type]

    pending = check(make("It is good."))

    assert word(run_virtual(make("It is good.").resume(pending))) == ("allowed", "human")
    assert "other rubric than" in run_virtual(make("It is fair.").resume(pending)).detail


OTHERS: Mapping[str, dict[str, Any]] = {
    "task": {"task": "Say no."},
    "no task": {"task": None},
    "context": {"context": ["Another policy."]},
    "no context": {"context": None},
    "reference": {"reference": {"a": 2}},
    "no reference": {"reference": None},
    "metadata": {"metadata": {"run": 2}},
    "metadata of another type": {"metadata": {"run": "1"}},
    "no metadata": {"metadata": None},
    "task as context": {"task": None, "context": "Say yes."},
    "asked once more": {},
}
"""Everything about a check that an approval is bound to, each changed alone; the content stays."""


@pytest.mark.parametrize("changed", [*OTHERS, None])
def test_the_yes_for_one_question_is_none_for_another(url: str, changed: str | None):
    """The same content for another task, with another context, or asked a second time waits for its own yes."""

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        made = make_gate(ledger, approvals)
        one = await made.check("yes", **HELD)
        other = one if changed is None else await made.check("yes", **(HELD | OTHERS[changed]))
        await approvals.decide(one.approval_id or "", "ana", True, "fine")
        # Whoever keeps the decisions that wait pairs one with the approval of the other.
        return await made.resume(replace(other, approval_id=one.approval_id))

    decision = run(url, work)

    assert word(decision) == (("blocked", "policy") if changed else ("allowed", "human"))
    if changed:
        same = changed == "asked once more"
        subject = "another judgement of the same content" if same else "another request"
        assert decision.detail.startswith(f"the approval is about {subject}")


@pytest.mark.parametrize(
    "change",
    [
        {"basis": {"task": "5" * 64}},
        {"basis": {"task": None}},
        {"basis": {}},
        {"metadata": {"run": 2}},
        {"subject": "5" * 64},
        {"request": "5" * 64},
        {"request": ""},
        {"request": None},
    ],
    ids=str,
)
def test_a_waiting_decision_that_was_changed_opens_nothing(url: str, change: dict[str, Any]):
    """Each member that the digest is made of, and the digest, as they stand in a file that somebody can write."""

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        made = make_gate(ledger, approvals)
        pending = await made.check("yes", **HELD)
        await approvals.decide(pending.approval_id or "", "ana", True, "fine")
        document = json.loads(json.dumps(pending.to_dict()))
        basis = (
            {"basis": document["basis"] | change["basis"] if change.get("basis") else {}} if "basis" in change else {}
        )
        return await made.resume(Decision.from_dict(document | change | basis))

    assert word(run(url, work)) == ("blocked", "policy")


@pytest.mark.parametrize(
    "ask",
    [
        {"expires_in": 3600.0, "required": 1, "approvers": ("ana", "bob")},
        {"approvers": ["bob", "ana", "ana"], "expires_in": timedelta(hours=1)},
        {"approvers": {"ana", "bob"}, "expires_in": 3600, "first": None, "on_expiry": "deny", "metadata": {}},
    ],
    ids=["a number with a point", "another order", "a set and what is the default"],
)
def test_equal_terms_are_the_same_however_they_are_written(url: str, ask: dict[str, Any]):
    """The order of names, a number with a point, a default that is said, metadata in another order."""
    numbers = {"b": 1.0, "a": [2, {"d": -0.0, "c": 1e21}], "large": 2**60, "ä": "\ud800"}

    async def hold(ledger: Ledger, approvals: Approvals) -> None:
        made = make_gate(ledger, approvals)
        pending = await made.check("yes", metadata=numbers)
        await approvals.decide(pending.approval_id or "", "bob", True)

    async def resume(ledger: Ledger, approvals: Approvals) -> list[Decision]:
        made = make_gate(ledger, approvals, ask=ask)
        (approval,) = await approvals.list(status=None)
        # Once as the ledger holds it, and once as it was written by hand, with its members in another order.
        held = [entry async for entry in ledger.query(kind="decision", subject=approval.subject)]
        pending = Decision.from_dict(held[0].payload or {})
        turned = replace(pending, metadata={"large": 2**60, "ä": "\ud800", "a": [2.0, {"c": 1e21, "d": 0}], "b": 1})
        return [await made.resume(item) for item in (pending, turned)]

    run(url, hold)

    assert [word(item) for item in run(url, resume)] == [("allowed", "human")] * 2


@pytest.mark.integration
def test_another_process_computes_the_same(url: str):
    """What is asked is known again under another hash seed, functions and sets included."""
    code = (
        "import asyncio, json, sys; sys.path[:0] = json.loads(sys.argv[1])\n"
        "from test_gate_requests import Gate, strict\nfrom kit.gates import Desk\n"
        "ask = {'approvers': {'ana', 'bob', 'cy'}, 'first': None, 'metadata': {'tags': ['x']}}\n"
        "gate = Gate('door', rules=[strict, lambda text: text in {'a', 'b', 'c'}], on_failed='ask', wait=False,\n"
        "            approvals=Desk(), ask=ask)\n"
        "print(gate.check_sync({'b': 1, 'a': 2}, metadata={'s': ['z']}).request)\n"
    )
    import adjudge

    roots = json.dumps([str(Path(adjudge.__file__).parents[1]), str(TESTS), str(TESTS / "guards")])

    def start(seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, roots],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        return done.stdout

    one, other = start("1"), start("2")

    assert len(one.strip()) == 64
    assert one == other


def test_the_digest_stands_wherever_the_request_does(url: str):
    """In the decision that waits, the ledger's entry, the approval, the answer, and in what takes its place."""

    async def work(ledger: Ledger, approvals: Approvals) -> tuple[Any, ...]:
        made = make_gate(ledger, approvals)
        pending = await made.check("yes", **HELD)
        ident = pending.approval_id or ""
        await approvals.decide(ident, "ana", True)
        answer, later = await approvals.wait(ident), await made.resume(pending)
        return pending.request, (await approvals.get(ident)).request, answer.request, later.request, answer, pending

    *digests, answer, pending = run(url, work)
    (asked,) = find(url, kind="approval.requested")

    assert {*digests, asked.payload and asked.payload["request"]} == {pending.request}
    assert answer.result_id == pending.result.id
    assert (answer.approved, answer.by, answer.reason, answer.judged) == (True, "ana", "", None)
    assert (answer.subject, answer.gate) == (pending.subject, "publish")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE adjudge_approvals SET body = replace(body, '{mine}', '{theirs}')",
        'UPDATE adjudge_approvals SET body = replace(body, \'"request": "{mine}"\', \'"request": null\')',
        "UPDATE adjudge_approvals SET body = replace(body, '{result}', '0197b3a0-0000-7000-8000-000000000000')",
    ],
    ids=["another", "none", "result"],
)
def test_a_table_that_says_something_else_than_the_ledger_opens_nothing(url: str, tmp_path: Path, statement: str):
    """Whoever can write the table cannot make an approval that of another request, or of none."""

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        made = make_gate(ledger, approvals)
        mine, theirs = await made.check("yes", task="a"), await made.check("yes", task="b")
        await approvals.decide(mine.approval_id or "", "ana", True)
        result = mine.result.id if mine.result is not None else ""
        query = statement.format(mine=mine.request, theirs=theirs.request, result=result)
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            assert connection.execute(query).rowcount == 2
        return await made.resume(replace(theirs, approval_id=mine.approval_id))

    decision = run(url, work)

    assert word(decision) == ("blocked", "policy")
    assert names(decision.detail, "approval", "could not be read", "LedgerError")


def test_terms_that_somebody_else_asked_under_are_not_the_gates(url: str):
    """An approval of the very decision that waits, from people whom the gate does not ask, opens nothing."""

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        made = make_gate(ledger, approvals)
        pending = await made.check("yes", **HELD)
        asked = await approvals.request(pending, "Lunch?", approvers=["mallory"])
        await approvals.decide(asked, "mallory", True)
        return await made.resume(replace(pending, approval_id=asked))

    assert run(url, work).detail.startswith("the approval is about another request")


def test_what_was_denied_is_not_opened_by_the_yes_of_another_time(url: str):
    """Asked again, the second yes is for the second decision; the first stays denied, and a yes can be heard again."""

    async def work(ledger: Ledger, approvals: Approvals) -> list[Decision]:
        made = make_gate(ledger, approvals)
        one, other = await made.check("yes"), await made.check("yes")
        await approvals.decide(one.approval_id or "", "ana", False)
        await approvals.decide(other.approval_id or "", "bob", True)
        paired = replace(one, approval_id=other.approval_id)
        return [await made.resume(item) for item in (one, paired, other, other)]

    words = [word(item) for item in run(url, work)]

    assert words == [("blocked", "human"), ("blocked", "policy"), ("allowed", "human"), ("allowed", "human")]


def test_terms_changed_while_people_were_asked_open_nothing(url: str):
    """A gate looks again once they have answered: who is asked is what it says then."""
    ask = {"approvers": ["ana", "bob"]}

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        made = make_gate(ledger, approvals, ask=ask)
        pending = await made.check("yes")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(made.resume(pending))
            await asyncio.sleep(0.1)
            ask["approvers"] = ["cy"]
            await approvals.decide(pending.approval_id or "", "ana", True)
        return waiting.result()

    assert "under other terms" in run(url, work).detail


def test_metadata_that_says_something_else_later_is_as_it_was_when_people_were_asked(url: str):
    """An object of the caller's, such as a span that goes on, does not make its own approval void."""

    class Span:
        ended = 0

        def to_dict(self) -> dict[str, int]:
            Span.ended += 1
            return {"ended": Span.ended}

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        asked = asyncio.Event()
        hear = {"wait": True, "on_event": lambda event: asked.set() if event.kind == "asked" else None}
        async with asyncio.TaskGroup() as group:
            checking = make_gate(ledger, approvals, **hear).check("yes", metadata={"span": Span()})
            waiting = group.create_task(checking)
            await asked.wait()
            (approval,) = await approvals.list()
            await approvals.decide(approval.id, "ana", True)
        return waiting.result()

    assert word(run(url, work)) == ("allowed", "human")


@pytest.mark.parametrize(
    ("answer", "decided"),
    [
        (lambda held: ApprovalAnswer(True, "ana"), "allowed"),
        (lambda held: ApprovalAnswer(True, "ana", "", None, held.subject, "door"), "allowed"),
        (lambda held: ApprovalAnswer(True, "ana", request=held.request, result_id=held.result.id), "allowed"),
        (lambda held: ApprovalAnswer(True, "ana", "", None, held.subject, "door", held.request, "another"), "blocked"),
        (lambda held: ApprovalAnswer(True, "ana", request="5" * 64), "blocked"),
        (lambda held: ApprovalAnswer(True, "ana", request=""), "blocked"),
        (lambda held: ApprovalAnswer(True, "ana", request=held.request.upper()), "blocked"),
        (lambda held: ApprovalAnswer(True, "ana", request=7), "blocked"),  # type: ignore[arg-type]
        (lambda held: ApprovalAnswer(True, "ana", result_id="another"), "blocked"),
        (lambda held: ApprovalAnswer(True, "ana", result_id=""), "blocked"),
        (lambda held: (True, "ana", ""), "blocked"),
        (lambda held: ApprovalAnswer(True, "ana", "", None, "5" * 64, "door", held.request), "blocked"),
    ],
    ids=range(12),
)
def test_an_asker_of_ones_own_is_held_to_what_it_says(answer: Callable[[Any], Any], decided: str):
    """Three members are trusted; what it says beyond that has to be right."""
    desk = Desk()
    made = gate(failed(), on_failed="ask", approvals=desk, wait=False)
    pending = check(made)
    desk.answer = answer(pending)

    assert desk.requests[0][0].request == pending.request
    assert word(run_virtual(made.resume(pending)))[0] == decided


def test_an_asker_that_passes_on_to_approvals_is_no_other(url: str):
    """It hands on the terms as they are, so that both compute the same."""

    async def work(ledger: Ledger, approvals: Approvals) -> Decision:
        class Through:
            async def request(self, decision: Decision, message: str, /, **options: Any) -> str:
                return await approvals.request(decision, message, **options)

            async def wait(self, approval: str, /) -> ApprovalAnswer:
                return await approvals.wait(approval)

        made = make_gate(ledger, Through(), ask=ASK | {"first": failed()}, show_content=True)
        pending = await made.check("yes", **HELD)
        await approvals.decide(pending.approval_id or "", "ana", True)
        return await made.resume(pending)

    assert word(run(url, work)) == ("allowed", "human")


def test_a_laxer_judge_that_answers_first_does_not_open_the_gate(url: str):
    """Its yes was given under the terms that named it."""
    first = passed(name="second", confidence=0.9)

    async def work(ledger: Ledger, approvals: Approvals) -> list[Decision]:
        lax = make_gate(ledger, approvals, ask=ASK | {"first": first}, show_content=True)
        sure = await lax.check("yes")
        held = replace(sure, pending=True, allowed=False, decided_by="policy", answer=None)
        return [sure, await lax.resume(held), await make_gate(ledger, approvals).resume(held)]

    assert [word(item)[0] for item in run(url, work)] == ["allowed", "allowed", "blocked"]


def test_a_request_about_a_result_alone_has_no_digest(url: str):
    """No gate asked, so that it opens none."""

    async def work(ledger: Ledger, approvals: Approvals) -> tuple[Any, ...]:
        ident = await approvals.request(make_result(), "Publish it?", approvers=["ana"])
        await approvals.decide(ident, "ana", True)
        return (await approvals.get(ident)).request, (await approvals.wait(ident)).request

    assert run(url, work) == (None, "")


def test_a_server_holds_the_same_as_a_file(require: Any):
    """On PostgreSQL an approval is bound as well, and another gate of that name stays shut."""
    with open_schema(require) as url:

        async def hold(ledger: Ledger, approvals: Approvals) -> str:
            pending = await make_gate(ledger, approvals).check("yes", **HELD)
            await approvals.decide(pending.approval_id or "", "ana", True, "fine")
            return json.dumps(pending.to_dict())

        async def resume(ledger: Ledger, approvals: Approvals) -> list[Decision]:
            pending = Decision.from_dict(json.loads(written))
            gates = [make_gate(ledger, approvals, **more) for more in (GATES["required"], {})]
            return [await made.resume(pending) for made in gates]

        written = run(url, hold)

        assert [word(item)[0] for item in run(url, resume)] == ["blocked", "allowed"]


# ---------------------------------------------------------------- on the command line


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    for name, text in {"yes": "yes", "a": "Task A.", "b": "Task B."}.items():
        Path(f"{name}.txt").write_text(text, encoding="utf-8")
    rows = [{"id": "1", "content": "yes", "task": "Task A."}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("others.jsonl").write_text(json.dumps(rows[0] | {"task": "Task B."}) + "\n", encoding="utf-8")
    Path("bare.jsonl").write_text('{"id": "1", "content": "yes"}\n', encoding="utf-8")
    write_config()
    return Line(capsys)


def write_config(**more: Any) -> None:
    import getpass

    people = json.dumps([getpass.getuser(), *more.get("people", ["bob"])])
    Path("adjudge.toml").write_text(
        f'[gates.publish]\nrules = [{{regex = "{more.get("word", "yes")}", absent = true}}]\non_failed = "ask"\n'
        f'[approvals]\napprovers = {people}\nshow_content = true\n[ledger]\nurl = "sqlite:///adjudge.db"\n',
        encoding="utf-8",
    )


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("yes.txt",), 0),
        (("yes.txt", "--task", "a.txt"), 0),
        (("yes.txt", "--task", "b.txt"), 2),
        (("yes.txt", "--context", "a.txt"), 2),
        (("--task", "a.txt"), 0),
        (("--task", "b.txt"), 2),
        (("rows.jsonl",), 0),
        (("others.jsonl",), 2),
        (("bare.jsonl",), 2),
        (("bare.jsonl", "--task", "a.txt"), 0),
    ],
    ids=range(10),
)
def test_the_command_goes_on_with_the_task_that_was_approved(line: Line, arguments: tuple[str, ...], status: int):
    """What it is told about what it goes on with has to be what was held back; a case is compared whole."""
    ident = line("gate", "check", "publish", "yes.txt", "--task", "a.txt", "--json").document["approval_id"]
    assert line.vote(ident, "--reason", "fine").status == 0
    done = line("gate", "resume", ident, *arguments)

    assert done.status == status
    if status:
        assert "put" in done.err
        assert "through the gate again" in done.err


@pytest.mark.parametrize("more", [{"people": ["cy"]}, {"word": "ye"}], ids=["people", "rules"])
def test_a_gate_of_the_file_that_was_made_stricter_is_not_opened(line: Line, more: dict[str, Any]):
    """The file was changed after people were asked."""
    ident = line("gate", "check", "publish", "yes.txt", "--json").document["approval_id"]
    assert line.vote(ident, "--reason", "fine").status == 0
    write_config(**more)
    done = line("gate", "resume", ident, "yes.txt")

    assert done.status == 1
    assert done.out.startswith("blocked by policy: ")
    assert names(done.out, "people", f"other {'terms' if 'people' in more else 'rules'}")
    write_config()
    assert line("gate", "resume", ident, "yes.txt").status == 0
