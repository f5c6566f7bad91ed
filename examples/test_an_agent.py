"""Agents in a test suite: a matrix of agents and prompts, run in a copy of a workspace, checked by rules and a judge.

Run it: python -m pytest examples/test_an_agent.py

The agents here are functions, so that it runs anywhere. In your suite they are commands:
``["claude", "-p", "{prompt}", "--output-format", "stream-json", "--verbose"]`` or ``["codex", "exec", "--json",
"{prompt}"]``. ``pytest --judge MODEL --judge-record`` keeps what they did and what the judge said; with
``--judge-replay`` CI needs neither.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, Rules
from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.models import Request
from adjudge.testing import ScriptedModel

CHECKS = Rules(
    {
        "own files": {"files": {"only": ["src/**"], "deleted": 0}},
        "looked first": {"trajectory": {"calls": ["Read", "Write"], "mode": "in_order"}},
        "cheap": {"limits": {"calls": 5}},
    }
)

PROMPT = "Give greet() a parameter for the name."


def make_agent(greeting: str) -> Callable[[str, Path], AgentRun]:
    """A stand-in for an agent: it reads a file, writes it anew, and says so."""

    def work(prompt: str, workspace: Path) -> AgentRun:
        file = workspace / "src" / "greet.py"
        read = AgentCall(tool="Read", arguments={"path": "src/greet.py"}, result=file.read_text())
        file.write_text(f"def greet(name):\n    return f'{greeting}, {{name}}.'\n")
        write = AgentCall(tool="Write", arguments={"path": "src/greet.py"}, result="ok")
        steps = [Step(role="user", text=prompt)]
        steps += [Step(role="assistant", call=call, turn=turn) for turn, call in enumerate((read, write), 1)]
        return AgentRun(steps=steps, answer="greet() takes a name now.")

    return work


def score_by_words(request: Request) -> dict[str, object]:
    """A stand-in for a judge's model, which looks at the difference."""
    done = "+def greet(name):" in request.user
    return {"criteria": [{"name": "done", "reasoning": "", "score": 0.9 if done else 0.1}]}


DOUBLE = Judge(ScriptedModel(score_by_words))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return the folder that the agents work on; usually one beside the test."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "greet.py").write_text("def greet():\n    return 'Hello.'\n")
    return tmp_path


@pytest.mark.parametrize("greeting", ["Hello", "Good morning"])
@pytest.mark.judged(criteria={"done": "The change does what was asked."}, repeat=3, at_least=2, judge=DOUBLE)
def test_agents_change_what_they_are_asked_to(run_agent: Any, workspace: Path, greeting: str) -> AgentRun:
    """Each agent three times: the rules hold every time, and the judge agrees at least twice."""
    run = run_agent.sync(PROMPT, agent=make_agent(greeting), workspace=workspace)

    failed = [result.message for result in CHECKS.evaluate_sync(run) if not result.passed]
    assert failed == []
    return run


def test_an_agent_that_does_more_is_caught(run_agent: Any, workspace: Path) -> None:
    """A test of the test: a file that nobody asked for."""

    def meddle(prompt: str, folder: Path) -> AgentRun:
        (folder / ".env").write_text("KEY=1\n")
        return make_agent("Hi")(prompt, folder)

    run = run_agent.sync(PROMPT, agent=meddle, workspace=workspace)

    assert [result.name for result in CHECKS.evaluate_sync(run) if not result.passed] == ["own files"]
