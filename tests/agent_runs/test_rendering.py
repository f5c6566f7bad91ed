"""A run as a judge reads it: within its budget, with a count of what is missing, and cut nowhere in silence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.agents import AgentCall, AgentRun, FileChange, Step
from kit.growth import measure_growth


def call(number: int, **changes) -> Step:
    members = {"tool": "read", "arguments": {"path": f"/f{number}"}, "call_id": str(number), "result": "x" * 5000}
    return Step(role="assistant", call=AgentCall(**(members | changes)), turn=number)


def make_long(calls: int) -> AgentRun:
    """A run of so many calls, each with a result of 5,000 characters."""
    return AgentRun(steps=[call(number) for number in range(calls)], answer="answer" * 1000)


LONG = make_long(2000)


def test_a_short_run_is_whole():
    """A short run is whole."""
    run = AgentRun(steps=[Step(role="user", text="Go."), call(1, result="fine")], answer="Done.")

    rendered = run.render()

    value = json.loads(rendered.text)
    assert rendered.is_whole
    assert value["answer"] == "Done."
    assert value["steps"][1] == {"turn": 1, "call": "read", "arguments": {"path": "/f1"}, "result": "fine"}


def test_what_fitting_into_the_budget_takes_grows_with_the_calls_alone():
    """Four times the calls take four times as long, and not sixteen times."""
    runs = {n: make_long(n) for n in (500, 2_000)}

    assert measure_growth(lambda n: runs[n].render(), 500) < 8


def test_two_thousand_calls_fit_into_the_budget():
    """Two thousand calls fit into the budget."""
    rendered = LONG.render()

    assert len(rendered.text) <= 48_000
    assert rendered.left_out["steps"] == rendered.left_out["calls"]["read"] > 1000
    assert rendered.left_out["characters"] > 9_000_000


def test_left_out_steps_are_counted_by_tool_where_they_stood():
    """Left out steps are counted by tool where they stood."""
    steps = json.loads(LONG.render(2000).text)["steps"]
    gaps = [step["left_out"] for step in steps if "left_out" in step]

    assert len(gaps) == 1
    assert gaps[0]["read"] + len(steps) - 1 == 2000
    assert [step["arguments"]["path"] for step in steps[-3:]] == ["/f1997", "/f1998", "/f1999"]


def test_calls_that_failed_stay_before_others():
    """Calls that failed stay before others."""
    steps = list(LONG.steps)
    steps[1000] = call(1000, result=None, error="disk full")

    rendered = AgentRun(steps=steps).render(2000)

    assert "disk full" in rendered.text


def test_arguments_stay_longer_than_results():
    """Arguments stay longer than results."""
    run = AgentRun(steps=[call(1, arguments={"text": "a" * 9000}, result="b" * 90_000)])

    text = run.render(6000).text

    assert text.count("a") > 5000
    assert text.count("b") < text.count("a")


def test_the_agents_answer_and_its_files_cannot_push_out_each_other():
    """The agent's answer and its files cannot push out each other."""
    files = [FileChange(path=f"src/{number}.py", kind="modified", diff="+line\n" * 1000) for number in range(50)]
    run = AgentRun(steps=LONG.steps, files=files, answer="a" * 100_000)

    rendered = run.render(4000)

    value = json.loads(rendered.text)
    assert value["files"][0]["path"] == "src/0.py"
    assert len(value["files"]) + value["files_left_out"] == 50
    assert len([step for step in value["steps"] if "call" in step]) >= 3
    assert rendered.left_out["files"] == value["files_left_out"]


def test_a_run_says_in_its_text_that_it_is_not_complete():
    """A run says in its text that it is not complete."""
    run = AgentRun(answer="Done.", complete=False, problems=["line 3 cannot be read"], unknown=["files"])

    value = json.loads(run.render().text)

    assert (value["complete"], value["problems"]) == (False, ["line 3 cannot be read"])
    assert value["not_recorded"] == ["files"]


def test_system_messages_are_counted_and_not_shown():
    """System messages are counted and not shown."""
    run = AgentRun(steps=[Step(role="system", text="You are helpful."), Step(role="user", text="Go.")])

    text = run.render().text

    assert "helpful" not in text
    assert json.loads(text)["system_messages_not_shown"] == 1


hostile = st.text(alphabet='a\n\x01"é😀', max_size=3000)


@given(
    texts=st.lists(st.tuples(hostile, hostile, st.booleans()), max_size=12),
    answer=hostile,
    factor=st.integers(1, 40),
    budget=st.integers(1000, 4000),
)
def test_no_run_is_larger_than_its_budget(texts, answer, factor, budget):
    """No run is larger than its budget."""
    steps = [
        call(number, tool=f"t{one}", arguments={one: other}, **({"error": other, "result": None} if bad else {}))
        for number, (one, other, bad) in enumerate(texts)
    ]
    files = [FileChange(path=one, kind="added", diff=other) for one, other, _ in texts]

    rendered = AgentRun(steps=steps * factor, answer=answer * factor, files=files).render(budget)

    assert len(rendered.text) <= budget * 4
    json.loads(rendered.text)
    assert rendered.is_whole == ("left out" not in rendered.text and "left_out" not in rendered.text)


def test_a_budget_in_which_nothing_could_be_shown_is_refused():
    """A budget in which nothing could be shown is refused."""
    with pytest.raises(UsageError) as caught:
        LONG.render(999)

    assert caught.value.argument == "budget"
