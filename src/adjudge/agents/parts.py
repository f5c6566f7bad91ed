"""The parts of a run that are judged one by one: its calls and its turns, each with what came before it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.agents.rendering import CHARACTERS, RenderedRun, count_characters, cut_steps, render_steps
from adjudge.agents.run import AgentRun
from adjudge.agents.step import Step
from adjudge.errors import UsageError
from adjudge.formats.text import quote

PartKind = Literal["call", "turn"]

_LEAST_BEFORE = 4_000
"""The fewest characters in which the steps before a part are shown; in less room, only their number is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """One call, or one turn, of a run: the steps from ``begin`` up to ``end``."""

    kind: PartKind
    number: int
    """Counted from 1, in order."""
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name of the part in results and recordings, such as ``call 3``."""
        return f"{self.kind} {self.number}"


def list_parts(run: AgentRun, kind: PartKind) -> tuple[RunPart, ...]:
    """List the parts of a run of one kind: its calls, or its turns.

    A turn is everything from the first to the last step of one reply of the agent.
    """
    if kind == "call":
        bounds = [(index, index + 1) for index, step in enumerate(run.steps) if step.call is not None]
    else:
        turns: dict[int, tuple[int, int]] = {}
        for index, step in enumerate(run.steps):
            if step.role == "assistant":
                begin, _ = turns.get(step.turn, (index, 0))  # the first step of the turn, which may be this one
                turns[step.turn] = (begin, index + 1)
        bounds = list(turns.values())
    return tuple(
        [RunPart(kind=kind, number=number, begin=begin, end=end) for number, (begin, end) in enumerate(bounds, 1)]
    )


def describe_part(run: AgentRun, part: RunPart) -> str:
    """Describe a part for people: its name, and the tools that it calls."""
    tools = list(dict.fromkeys(step.call.tool for step in run.steps[part.begin : part.end] if step.call is not None))
    tool_names = ", ".join(quote(tool, 60) for tool in tools[:3])
    tool_names += f" and {len(tools) - 3} more" if len(tools) > 3 else ""
    return f"{part.name} ({tool_names})" if tool_names else part.name


def render_part(run: AgentRun, part: RunPart) -> RenderedRun:
    """Render a part for a judge within the run's budget: what came ``before`` it, and what is ``judged``.

    What is judged may take up to three quarters of the room, and what came before gets the rest. Raises ``UsageError``
    for a part of so many steps that even the names of their tools do not fit.
    """
    room = run.budget * CHARACTERS
    judged = [step for step in run.steps[part.begin : part.end] if step.role != "system"]
    text, cut_characters = _render_judged(judged, room * 3 // 4, part)
    before, left_out = _render_before(run.steps[: part.begin], room - len(text) - 60)
    characters = cut_characters + left_out.get("characters", 0)
    counts = left_out | ({"characters": characters} if characters else {})
    return RenderedRun(text=f'{{\n "before": {before},\n "judged": {text}\n}}', left_out=counts)


def _render_judged(steps: Sequence[Step], room: int, part: RunPart) -> tuple[str, int]:
    """Render the steps of the judged part in at most ``room`` characters, and count the characters that were left out.

    Raises ``UsageError`` where that is not possible.
    """
    limit = room
    while limit:
        items, cut_characters = cut_steps(steps, limit)
        text = json.dumps(items, ensure_ascii=False, indent=1)
        if len(text) <= room:
            return text, cut_characters
        limit //= 2
    raise UsageError(
        f"{part.name} has {len(steps):,} steps, which do not fit into the run's budget; raise the budget, or judge "
        "with per: call",
        argument="content",
    )


def _render_before(steps: Sequence[Step], room: int) -> tuple[str, dict[str, Any]]:
    """Render the steps before the judged part in at most ``room`` characters, and count what was left out of them.

    The counts have the form of ``RenderedRun.left_out``.
    """
    if room >= _LEAST_BEFORE:
        rendered = render_steps(steps, room)
        return rendered.text, dict(rendered.left_out)
    shown = [step for step in steps if step.role != "system"]
    if not shown:
        return "{}", {}
    calls = Counter(step.call.tool[:80] for step in shown if step.call is not None)
    characters = sum(map(count_characters, shown))
    return (
        json.dumps({"steps_left_out": len(shown)}),
        {"steps": len(shown), "calls": dict(calls.most_common(8)), "characters": characters},
    )
