"""A run as a value: what it holds, what it refuses, and that it is written and read without loss."""

from __future__ import annotations

import dataclasses
import json

import pytest

from adjudge import Usage, UsageError
from adjudge.agents import AgentCall, AgentRun, FileChange, Step


def make_run(**changes):
    call = AgentCall(tool="Bash", arguments={"command": "npm test"}, call_id="1", result="ok", duration_ms=12.5)
    members = {
        "steps": [Step(role="user", text="Test it."), Step(role="assistant", call=call, turn=1)],
        "answer": "It passes.",
        "files": [FileChange(path="src/a.py", kind="modified", diff="-x\n+y\n")],
        "usage": Usage(input_tokens=10, output_tokens=5),
        "cost": 0.25,
        "duration_ms": 1500,
        "metadata": {"source": "test"},
    }
    return AgentRun(**(members | changes))


def test_a_run_is_read_back_as_it_was_written():
    """A run is read back as it was written."""
    run = make_run()

    data = json.loads(json.dumps(run.to_dict()))

    assert data["schema"] == "adjudge/agent-run/1"
    assert AgentRun.from_dict(data) == run


def test_calls_are_those_of_the_steps_in_order():
    """Calls are those of the steps in order."""
    run = make_run()

    assert [call.tool for call in run.calls] == ["Bash"]
    assert run.finished
    assert not dataclasses.replace(run, complete=False).finished


def test_what_was_handed_in_can_be_changed_without_changing_the_run():
    """What was handed in can be changed without changing the run."""
    arguments = {"path": ["a"]}
    run = AgentRun(steps=[Step(role="assistant", call=AgentCall(tool="read", arguments=arguments))])

    arguments["path"].append("b")
    run.copy().calls[0].arguments["path"].append("c")

    assert run.calls[0].arguments == {"path": ["a"]}


def test_a_complete_run_has_no_problems():
    """A complete run has no problems."""
    with pytest.raises(UsageError) as caught:
        make_run(problems=["line 3 cannot be read"])

    assert caught.value.argument == "complete"


@pytest.mark.parametrize(
    ("argument", "changes"),
    [
        ("steps", {"steps": ["text"]}),
        ("steps", {"steps": "text"}),
        ("files", {"files": [{"path": "a"}]}),
        ("answer", {"answer": 3}),
        ("outcome", {"outcome": "good"}),
        ("cost", {"cost": float("nan")}),
        ("cost", {"cost": -1}),
        ("complete", {"complete": "yes"}),
        ("unknown", {"unknown": ["weather"]}),
        ("metadata", {"metadata": {"a": object()}}),
        ("budget", {"budget": 10}),
        ("budget", {"budget": True}),
    ],
    ids=map(str, range(12)),
)
def test_a_member_of_another_type_is_refused(argument, changes):
    """A member of another type is refused."""
    with pytest.raises(UsageError) as caught:
        make_run(**changes)

    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("tool", lambda: AgentCall(tool=" ")),
        ("arguments", lambda: AgentCall(tool="a", arguments={"x": float("inf")})),
        ("arguments", lambda: AgentCall(tool="a", arguments={1: "x"})),
        ("result", lambda: AgentCall(tool="a", result={"x": 1})),
        ("role", lambda: Step(role="tool")),
        ("call", lambda: Step(role="user", call=AgentCall(tool="a"))),
        ("call", lambda: Step(role="assistant", text="a", call=AgentCall(tool="a"))),
        ("turn", lambda: Step(role="user", turn=-1)),
        ("kind", lambda: FileChange(path="a", kind="renamed")),
    ],
    ids=map(str, range(9)),
)
def test_a_part_that_makes_no_sense_is_refused(argument, make):
    """A part that makes no sense is refused."""
    with pytest.raises(UsageError) as caught:
        make()

    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "damage",
    [
        {"schema": "adjudge/agent-run/2"},
        {"steps": [{"role": "assistant", "call": {"arguments": {}}}]},
        {"steps": {}},
        {"cost": "much"},
        {"problems": ["cut"], "complete": True},
    ],
    ids=map(str, range(5)),
)
def test_damaged_data_is_no_run(damage):
    """Damaged data is no run."""
    with pytest.raises(UsageError):
        AgentRun.from_dict(make_run().to_dict() | damage)


def test_a_repr_says_how_much_there_is_and_quotes_nothing():
    """A repr says how much there is and quotes nothing."""
    assert repr(make_run(answer="secret")) == "<AgentRun finished: 2 steps, 1 calls>"
