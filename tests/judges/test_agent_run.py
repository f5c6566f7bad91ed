"""An agent's run as content: rules read the run, a judge as much of it as its budget holds, and the result says so."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import hashlib
import json

import pytest

from adjudge import Approvals, Case, Gate, Judge, JudgeChain, Ledger, UsageError
from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.testing import ScriptedModel

GOOD = {"criteria": [{"name": "honest", "reasoning": "It is.", "score": 0.9}]}

HONEST = {"honest": "The answer is true."}


def in_loop(test):
    """A test that awaits, in a loop of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


def digest(run: AgentRun) -> str:
    """The digest of the whole run, written as any JSON content is."""
    return hashlib.sha256(json.dumps(run.to_dict(), indent=2, ensure_ascii=False).encode()).hexdigest()


def make_run(count: int = 2, size: int = 10, **changes) -> AgentRun:
    calls = [
        AgentCall(tool="read", arguments={"path": f"/f{number}"}, call_id=str(number), result="x" * size)
        for number in range(count)
    ]
    steps = [Step(role="assistant", call=call, turn=turn) for turn, call in enumerate(calls, 1)]
    return AgentRun(**({"steps": steps, "answer": "Two files."} | changes))


@in_loop
async def test_a_judge_reads_the_whole_of_a_short_run():
    """The text is what ``render`` returns, and nothing is said to be missing."""
    model, run = ScriptedModel(GOOD), make_run()

    result = await Judge(model).evaluate(run, criteria=HONEST, rules=[{"called": "read", "max": 2}])

    assert result.passed
    assert run.render().text in model.requests[0].user
    assert "left_out" not in result.metadata
    assert result.subject == digest(run)


@in_loop
async def test_what_was_left_out_is_in_the_result():
    """In its metadata, beside the caller's own, and in its one line."""
    run = make_run(count=500, size=1000)

    result = await Judge(ScriptedModel(GOOD)).evaluate(run, criteria=HONEST, metadata={"case": "7", "left_out": 0})

    assert result.passed
    assert result.metadata == {"case": "7", "left_out": run.render().left_out}
    assert f"the judge was not shown {result.metadata['left_out']['steps']:,} steps" in result.explain()


@in_loop
async def test_the_budget_of_a_run_decides_how_much_is_shown():
    """With more, more is shown; the whole if it fits."""
    run, model = make_run(count=60, size=1000), ScriptedModel([GOOD, GOOD])
    judge = Judge(model)

    less = await judge.evaluate(run, criteria=HONEST)
    whole = await judge.evaluate(dataclasses.replace(run, budget=60_000), criteria=HONEST)

    assert "left_out" in less.metadata
    assert "left_out" not in whole.metadata
    assert len(model.requests[0].user) < 50_000 < len(model.requests[1].user)


@in_loop
async def test_two_runs_that_look_alike_to_a_judge_are_not_one_content():
    """What is left out of the text still counts for the digest of the content."""
    run = make_run(count=500, size=1000)
    step = dataclasses.replace(
        run.steps[250], call=AgentCall(tool="read", arguments={}, call_id="250", result="y" * 1000)
    )
    other = dataclasses.replace(run, steps=(*run.steps[:250], step, *run.steps[251:]))

    one = await Judge(ScriptedModel(GOOD)).evaluate(run, criteria=HONEST)
    two = await Judge(ScriptedModel(GOOD)).evaluate(other, criteria=HONEST)

    assert one.subject != two.subject


@in_loop
async def test_a_failed_rule_decides_and_no_model_is_asked():
    """Rules see the run and not its text."""
    model = ScriptedModel(GOOD)
    rubric = {
        "name": "calls",
        "criteria": [{"name": "few", "description": "Few calls.", "rule": {"limits": {"calls": 1}}, "threshold": 1}],
    }

    by_call = await Judge(model).evaluate(make_run(), criteria=HONEST, rules=[{"not_called": "read"}])
    by_rubric = await Judge(model).evaluate(make_run(), rubric)

    assert (by_call.outcome, by_rubric.outcome, len(model.requests)) == ("failed", "failed", 0)


@in_loop
async def test_chains_and_many_contents_take_runs():
    """As they take texts, and in cases too."""
    chain = JudgeChain([Judge(ScriptedModel(GOOD)), Judge(ScriptedModel(GOOD))], strategy="consensus")
    judge = Judge(ScriptedModel([GOOD, GOOD]))
    contents = [make_run(), Case(id="1", content=make_run())]

    chained = await chain.evaluate(make_run(count=500, size=1000), criteria=HONEST)
    results = [result async for result in judge.evaluate_many(contents, criteria=HONEST, rules=[{"called": "read"}])]

    assert chained.passed
    assert "was not shown" in chained.explain()
    assert [result.passed for result in results] == [True, True]


@in_loop
async def test_a_function_judges_what_a_model_would_read():
    """As a value."""
    seen = []

    def look(content):
        seen.append(content)
        return True

    assert (await Judge(look).evaluate(make_run(), criteria="Is good.")).passed
    assert seen == [json.loads(make_run().render().text)]


@in_loop
async def test_a_rule_that_changes_a_run_changes_it_for_nobody_else():
    """A gate hands each rule a copy."""

    def spoil(run):
        run.calls[0].arguments["path"] = "/etc/shadow"
        return True

    run, model = make_run(), ScriptedModel(GOOD)
    rubric = {"name": "honest", "criteria": [{"name": "honest", "description": "The answer is true."}]}
    gate = Gate("g", judge=Judge(model), rubric=rubric, rules=[spoil, {"called": "read"}])
    decision = await gate.check(run)

    assert run.calls[0].arguments == {"path": "/f0"}
    assert "shadow" not in "".join(request.user for request in model.requests)
    assert decision.subject == digest(run)


@in_loop
async def test_a_gate_redacts_what_leaves_it_and_rules_still_read_the_run():
    """The redaction sees plain data, returns it, and a judge reads a run again."""
    model = ScriptedModel(GOOD)

    def hide(data):
        return json.loads(json.dumps(data).replace("/f1", "(path)"))

    rubric = {"name": "honest", "criteria": [{"name": "honest", "description": "The answer is true."}]}
    gate = Gate(
        "g", judge=Judge(model), rubric=rubric, rules=[{"called": "read", "arguments": {"path": "/f1"}}], redact=hide
    )

    decision = await gate.check(make_run())

    assert decision.allowed
    assert "(path)" in model.requests[0].user
    assert "/f1" not in model.requests[0].user
    assert json.loads(make_run().render().text)["outcome"] in model.requests[0].user


@in_loop
async def test_a_redaction_that_spoils_a_run_lets_nothing_through():
    """What is no run any more is not judged as if it were one."""
    model = ScriptedModel(GOOD)
    rubric = {"name": "honest", "criteria": [{"name": "honest", "description": "The answer is true."}]}
    gate = Gate("g", judge=Judge(model), rubric=rubric, redact=lambda data: {**data, "steps": "hidden"})

    decision = await gate.check(make_run())

    assert not decision.allowed
    assert model.requests == []


@in_loop
async def test_an_approval_is_of_the_whole_run(tmp_path):
    """A run that differs where no judge would see it is another content."""
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    approvals = Approvals(ledger)
    run = make_run(count=500, size=1000)
    rules = [{"limits": {"calls": 1}}]
    gate = Gate(
        "g", rules=rules, on_failed="ask", approvals=approvals, ledger=ledger, wait=False, ask={"approvers": ["ana"]}
    )
    step = dataclasses.replace(run.steps[250], call=AgentCall(tool="read", arguments={}, call_id="250", result="y"))
    other = dataclasses.replace(run, steps=(*run.steps[:250], step, *run.steps[251:]))

    pending = [await gate.check(run) for _ in range(2)]
    for decision in pending:
        assert decision.approval_id is not None
        await approvals.decide(decision.approval_id, "ana", True, "fine")

    assert (await gate.resume(pending[0], content=run)).allowed
    assert not (await gate.resume(pending[1], content=other)).allowed
    await ledger.aclose()


@in_loop
async def test_a_run_that_cannot_be_written_is_refused():
    """More than may be written, even if a judge would see little of it."""
    with pytest.raises(UsageError):
        await Judge(ScriptedModel(GOOD)).evaluate(make_run(count=5, size=5_000_000), criteria=HONEST)
