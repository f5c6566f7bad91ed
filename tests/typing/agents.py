"""The public API of agents' runs as a type checker sees it; as api.py says. Never run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

from adjudge import Usage
from adjudge.agents import (
    AgentCall,
    AgentRun,
    AgentSource,
    FileChange,
    NotMade,
    RenderedRun,
    RunFormat,
    Step,
    read_run,
    run_agent,
    run_agent_sync,
)


def read(path: Path, items: list[dict[str, Any]], lines: list[str], name: RunFormat) -> list[AgentRun]:
    read_run(path, format="gemini")  # type: ignore[arg-type]
    return [read_run(path), read_run(str(path), name), read_run(items), read_run(lines, format="codex"), read_run({})]


def make(answer: str | None) -> AgentRun:
    call = AgentCall(tool="Bash", arguments={"command": "ls"}, call_id="1", result="a", duration_ms=1.5, agent=None)
    assert_type(call.not_made, NotMade | None)
    Step(role="tool")  # type: ignore[arg-type]
    return AgentRun(
        steps=(Step(role="user", text="Go."), Step(role="assistant", call=call, turn=1)),
        answer=answer,
        files=(FileChange(path="a", kind="added", diff=""),),
        outcome="finished",
        usage=Usage(input_tokens=1),
        cost=0.5,
        complete=False,
        problems=("cut",),
        unknown=("files", "failures"),
    )


def look(run: AgentRun) -> None:
    assert_type(run.calls, tuple[AgentCall, ...])
    assert_type(run.finished, bool)
    assert_type(run.usage, Usage | None)
    assert_type(run.render(6000), RenderedRun)
    assert_type(run.render().left_out, Mapping[str, Any])
    assert_type(run.copy(), AgentRun)
    assert_type(AgentRun.from_dict(run.to_dict()), AgentRun)


async def launch(command: list[str], folder: Path) -> None:
    async def work(prompt: str, workspace: Path) -> str:
        return prompt

    agents: list[AgentSource] = [command, work]
    for agent in agents:
        assert_type(await run_agent("Go.", agent=agent, workspace=folder, timeout=5, env={"A": None}), AgentRun)
    assert_type(run_agent_sync("Go.", agent=command, format="codex", with_git=True, keep=folder), AgentRun)
