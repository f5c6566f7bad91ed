"""Criteria that are judged for each call or turn of an agent's run: what is asked, and what it adds up to."""

from __future__ import annotations

import asyncio
import functools
import json
from dataclasses import replace

import pytest

from adjudge import Gate, Judge, JudgeChain, JudgeResult, Rubric, UsageError, compare, load_rubric
from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.testing import ScriptedModel


def in_loop(test):
    """A test that awaits, in a loop of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


def make_rubric(*criteria, **members) -> Rubric:
    return load_rubric({"name": "agent", "criteria": list(criteria), **members})


SAFE = {"name": "safe", "description": "The call changes nothing that it should not.", "per": "call", "threshold": 0.6}

HONEST = {"name": "honest", "description": "The answer is true."}

CALM = {"name": "calm", "description": "The turn wastes nothing.", "per": "turn"}


def make_run(*tools: str, size: int = 5, **changes) -> AgentRun:
    steps = [Step(role="user", text="Tidy up.")]
    for number, tool in enumerate(tools, 1):
        call = AgentCall(tool=tool, arguments={"number": number}, call_id=str(number), result="r" * size)
        steps.append(Step(role="assistant", call=call, turn=(number + 1) // 2))
    return AgentRun(**({"steps": steps, "answer": "Done."} | changes))


def read_content(user: str) -> dict:
    """The content of a prompt: the JSON between its fence lines."""
    return json.loads(user.split("<<content ")[1].split("\n", 1)[1].split("\n<<end content", maxsplit=1)[0])


class Scores:
    """A model that scores by what it is asked about: by the tool of the call that is judged, else by the run."""

    name = "scores"

    def __init__(self, by_tool, run=0.9, turn=0.9) -> None:
        self.by_tool, self.run, self.turn = by_tool, run, turn
        self.contents: list[dict] = []

    def __call__(self, prompt: str) -> str:
        content = read_content(prompt)
        self.contents.append(content)
        token = prompt.split("<<content ")[1][:8]
        if "judged" not in content:
            entries = [{"name": "honest", "reasoning": "as a whole", "score": self.run}]
        elif "calm" in prompt.split("Rubric: agent")[1].split("1. ")[1].split(":", maxsplit=1)[0]:
            entries = [{"name": "calm", "reasoning": "the turn", "score": self.turn}]
        else:
            tool = content["judged"][-1]["call"]
            entries = [{"name": "safe", "reasoning": f"saw {tool}", "score": self.by_tool[tool]}]
        return json.dumps({"token": token, "criteria": entries, "reasoning": "", "suggestions": []})


@in_loop
async def test_each_call_is_judged_and_the_lowest_decides():
    """One question a call and one for the rest; the result names the call, and holds every score."""
    scores = Scores({"read": 0.9, "delete": 0.2})
    result = await Judge(scores).evaluate(make_run("read", "delete", "read"), make_rubric(SAFE, HONEST))

    assert len(scores.contents) == 4
    assert result.outcome == "failed"
    assert result.criterion("safe").score == 0.2
    assert result.criterion("safe").reasoning == 'call 2 ("delete"): saw delete'
    assert result.criterion("honest").reasoning == "as a whole"
    assert [(part.part, part.score, part.passed) for part in result.parts] == [
        ("call 1", 0.9, True),
        ("call 2", 0.2, False),
        ("call 3", 0.9, True),
    ]
    assert result.score == pytest.approx(0.55)
    assert result.attempts == 4
    assert JudgeResult.from_dict(result.to_dict()) == result


@in_loop
async def test_a_call_is_shown_with_what_came_before_it_and_nothing_after():
    """It is judged by what was known then."""
    scores = Scores({"read": 0.9, "write": 0.9, "send": 0.9})
    await Judge(scores).evaluate(make_run("read", "write", "send"), make_rubric(SAFE), task="Tidy up.")

    second = next(content for content in scores.contents if content["judged"][0]["call"] == "write")
    assert [step.get("call", step.get("role")) for step in second["before"]["steps"]] == ["user", "read"]
    assert second["judged"] == [{"turn": 1, "call": "write", "arguments": {"number": 2}, "result": "rrrrr"}]
    assert "send" not in json.dumps(second)
    assert "Done." not in json.dumps(second)


@in_loop
async def test_a_turn_holds_the_calls_that_were_made_at_once():
    """Turns and calls of one rubric are separate questions."""
    scores = Scores({"read": 0.9, "write": 0.9, "send": 0.9}, turn=0.5)
    result = await Judge(scores).evaluate(make_run("read", "write", "send"), make_rubric(SAFE, CALM))

    turns = [content for content in scores.contents if len(content["judged"]) == 2]
    assert len(scores.contents) == 5  # two turns, three calls
    assert [step["call"] for step in turns[0]["judged"]] == ["read", "write"]
    assert [part.part for part in result.parts] == ["turn 1", "turn 2", "call 1", "call 2", "call 3"]
    assert result.criterion("calm").score == 0.5


@in_loop
async def test_one_call_that_nobody_could_judge_leaves_all_undecided():
    """It could be the bad one."""

    def answer(prompt):
        if read_content(prompt)["judged"][0]["call"] == "write":
            return "no idea"
        return Scores({"read": 1.0})(prompt)

    result = await Judge(answer, reask=0).evaluate(make_run("read", "write", "read"), make_rubric(SAFE))

    assert (result.outcome, result.undecided_because) == ("undecided", "unparseable")
    assert result.detail.startswith('call 2 ("write"): ')
    assert result.score is None
    assert result.criteria == ()
    assert [part.part for part in result.parts] == ["call 1", "call 3"]
    assert result.earlier_responses[1] == "no idea"


@in_loop
async def test_a_run_without_calls_meets_what_is_asked_of_each_call():
    """Nobody is asked; a rule like ``called`` demands that there are any."""
    model = ScriptedModel([])
    result = await Judge(model).evaluate(make_run(), make_rubric(SAFE))

    assert result.passed
    assert result.criterion("safe").rule == "complete"
    assert model.requests == []


@in_loop
async def test_a_run_that_is_not_complete_fails_what_is_asked_of_each_call():
    """A call that is missing could be anything."""
    model = ScriptedModel([])
    run = make_run("read", complete=False, problems=["there is no end"])
    result = await Judge(model).evaluate(run, make_rubric(SAFE))

    assert result.outcome == "failed"
    assert "there is no end" in result.criterion("safe").reasoning
    assert model.requests == []


@pytest.mark.parametrize("content", ["a text", {"schema": "adjudge/agent-run/1"}, [{"role": "user", "content": "x"}]])
def test_a_content_that_is_no_run_is_refused(content):
    """A run that came as plain JSON too."""
    with pytest.raises(UsageError) as caught:
        Judge(ScriptedModel([])).evaluate_sync(content, make_rubric(SAFE))

    assert caught.value.argument == "content"


def test_more_than_a_hundred_parts_are_refused_and_none_is_left_out():
    """A hundred are asked."""
    scores = Scores({"read": 0.9})
    assert Judge(scores).evaluate_sync(make_run(*["read"] * 100), make_rubric(SAFE)).passed
    assert len(scores.contents) == 100

    with pytest.raises(UsageError) as caught:
        Judge(scores).evaluate_sync(make_run(*["read"] * 101), make_rubric(SAFE))
    assert caught.value.argument == "content"


@in_loop
async def test_what_is_cut_of_a_part_is_said():
    """The judged call has the first claim on the budget."""
    scores = Scores({"read": 0.9})
    run = replace(make_run(*["read"] * 5, size=3_000), budget=2_000)
    result = await Judge(scores).evaluate(run, make_rubric(SAFE))

    last = max(scores.contents, key=lambda content: content["judged"][0]["arguments"]["number"])
    assert last["judged"][0]["result"] == "r" * 3_000
    assert all(len(json.dumps(content)) < 8_000 for content in scores.contents)
    assert result.metadata["left_out"] == {"parts": 3}
    assert "for 3 of its parts something was left out" in result.explain()


@in_loop
async def test_a_call_longer_than_the_budget_is_cut_in_its_middle():
    """And the result counts it."""
    scores = Scores({"read": 0.9})
    run = replace(make_run("read", size=100_000), budget=1_000)
    result = await Judge(scores).evaluate(run, make_rubric(SAFE))

    assert "characters left out" in scores.contents[0]["judged"][0]["result"]
    assert result.metadata["left_out"] == {"parts": 1}


@in_loop
async def test_a_turn_that_cannot_be_shown_is_refused():
    """Its steps would be left out, and judged unseen."""
    call = AgentCall(tool="read", arguments={}, result="x")
    run = AgentRun(steps=[Step(role="assistant", call=call, turn=1)] * 200, answer="x", budget=1_000)

    with pytest.raises(UsageError):
        await Judge(Scores({})).evaluate(run, make_rubric(CALM))


@in_loop
async def test_seats_of_a_chain_are_asked_about_each_call():
    """A vote is about the run: each seat's lowest."""
    kind, strict = Scores({"read": 0.9, "send": 0.9}), Scores({"read": 0.9, "send": 0.1})
    run, rubric = make_run("read", "send"), make_rubric(SAFE)
    every = JudgeChain([Judge(kind, name="kind"), Judge(strict, name="strict")], strategy="consensus", stop_early=False)
    result = await every.evaluate(run, rubric)

    assert result.outcome == "failed"
    assert [len(seat.parts) for seat in result.results] == [2, 2]
    assert [seat.outcome for seat in result.results] == ["passed", "failed"]


@in_loop
async def test_a_function_is_called_for_each_call():
    """With the part as a value."""
    seen = []

    def look(content):
        seen.append(content["judged"][0]["call"])
        return content["judged"][0]["call"] != "send"

    result = await Judge(look).evaluate(make_run("read", "send"), make_rubric(SAFE))

    assert sorted(seen) == ["read", "send"]
    assert result.outcome == "failed"
    assert result.criterion("safe").reasoning == 'call 2 ("send")'


@in_loop
async def test_a_gate_holds_a_run_by_its_worst_call():
    """One bad call is enough."""
    gate = Gate("g", judge=Judge(Scores({"read": 0.9, "send": 0.1})), rubric=make_rubric(SAFE))

    assert (await gate.check(make_run("read"))).allowed
    assert not (await gate.check(make_run("read", "send"))).allowed


@in_loop
async def test_the_question_depends_on_every_part():
    """Two runs that differ in one call are two questions; the same run is one."""
    judge, rubric = Judge(Scores({"read": 0.9, "send": 0.9})), make_rubric(SAFE)
    one = await judge.evaluate(make_run("read", "read"), rubric)
    same = await judge.evaluate(make_run("read", "read"), rubric)
    other = await judge.evaluate(make_run("read", "send"), rubric)

    assert one.question == same.question != other.question


def test_a_rubric_without_per_has_the_digest_that_it_had():
    """And ``run``, the default, is not written."""
    plain = make_rubric(HONEST)

    assert "per" not in plain.to_dict()["criteria"][0]
    assert make_rubric({**HONEST, "per": "run"}).digest == plain.digest
    assert make_rubric({**HONEST, "per": "call"}).digest != plain.digest
    assert load_rubric(make_rubric(SAFE, CALM).to_dict()) == make_rubric(SAFE, CALM)


@pytest.mark.parametrize("members", [{"per": "step"}, {"per": 1}, {"per": "call", "rule": {"no_errors": True}}])
def test_what_per_cannot_mean_is_refused(members):
    """Other words, and a rule, which reads the whole run."""
    with pytest.raises(UsageError) as caught:
        make_rubric({**HONEST, **members})

    assert "per" in str(caught.value)


def test_a_form_of_reply_about_the_whole_is_refused():
    """Nobody could say of which part it is."""
    with pytest.raises(UsageError) as caught:
        Judge(ScriptedModel([])).evaluate_sync(make_run("read"), make_rubric(SAFE), result_format=AgentCall)

    assert caught.value.argument == "result_format"


def test_a_comparison_has_no_parts():
    """It shows two contents as a whole."""
    with pytest.raises(UsageError) as caught:
        asyncio.run(compare(make_run("read"), make_run("read"), judge=ScriptedModel([]), rubric=make_rubric(SAFE)))

    assert caught.value.argument == "rubric"
