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
"""Characters below which nothing of what came before is shown: a few cut words would say nothing."""


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
        """The part in results and recordings, such as ``call 3``."""
        return f"{self.kind} {self.number}"


def list_parts(run: AgentRun, kind: PartKind) -> tuple[RunPart, ...]:
    """List the calls of a run, or its turns; a turn is everything from the first to the last step of one reply."""
    if kind == "call":
        places = [(place, place + 1) for place, step in enumerate(run.steps) if step.call is not None]
    else:
        turns: dict[int, tuple[int, int]] = {}
        for place, step in enumerate(run.steps):
            if step.role == "assistant":
                turns[step.turn] = (turns.get(step.turn, (place, 0))[0], place + 1)
        places = list(turns.values())
    return tuple([RunPart(kind=kind, number=nr, begin=begin, end=end) for nr, (begin, end) in enumerate(places, 1)])


def describe_part(run: AgentRun, part: RunPart) -> str:
    """Name a part and the tools that it calls, for people."""
    tools = list(dict.fromkeys(step.call.tool for step in run.steps[part.begin : part.end] if step.call is not None))
    named = ", ".join(quote(tool, 60) for tool in tools[:3]) + (f" and {len(tools) - 3} more" if len(tools) > 3 else "")
    return f"{part.name} ({named})" if named else part.name


def render_part(run: AgentRun, part: RunPart) -> RenderedRun:
    """Render a part for a judge within the run's budget: what came ``before`` it, and what is ``judged``.

    What is judged goes first where room is short: it may take three quarters. Raises ``UsageError`` for a part of so
    many steps that even the names of their tools do not fit.
    """
    room = run.budget * CHARACTERS
    judged = [step for step in run.steps[part.begin : part.end] if step.role != "system"]
    text, cut_characters = _render_judged(judged, room * 3 // 4, part)
    before, left_out = _render_before(run.steps[: part.begin], room - len(text) - 60)
    characters = cut_characters + left_out.get("characters", 0)
    counts = left_out | ({"characters": characters} if characters else {})
    return RenderedRun(text=f'{{\n "before": {before},\n "judged": {text}\n}}', left_out=counts)


def _render_judged(steps: Sequence[Step], room: int, part: RunPart) -> tuple[str, int]:
    """Render the steps of the part that is judged, within ``room``, and count the characters that were left out.

    Raises ``UsageError``.
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
    """Render the steps before the part that is judged, within ``room``, and say what was left out of them."""
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
