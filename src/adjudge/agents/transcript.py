"""A run that is being read: events of a transcript in order, and everything in it that does not fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

from adjudge.agents.run import AgentRun, RunOutcome, Unknown
from adjudge.agents.step import AgentCall, NotMade, Role, Step
from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.json import is_same, read_json
from adjudge.formats.text import flatten, quote
from adjudge.result import Usage

MOST_STEPS = 100_000

_MOST_PROBLEMS = 20

_LARGEST_COUNT = 2**53


class Transcript:
    """Builds a run. Whatever a reader adds is somebody's claim, so what contradicts it is kept as a problem."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.steps: list[Step] = []
        self.problems: list[str] = []
        self._places: dict[str, int] = {}
        self._ends: dict[int, dict[str, Any]] = {}
        """Results, failures and durations of calls, by the places of their steps.

        They join the calls once, in the end: a call that is replaced copies its arguments, and a few bytes may name one
        again.
        """
        self._turn = 0
        self._reply: str | None = None
        self._answered = True
        """True if the agent has read something since its last reply began."""

    def report(self, problem: str) -> None:
        """Add a reason why the run is not complete."""
        if len(self.problems) < _MOST_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def add_text(self, role: Role, text: str, *, reply: str | None = None) -> None:
        """Add somebody's words; ``reply`` is the id of the agent's reply that they belong to, if it has one."""
        if not text:
            return
        if role == "assistant":
            self._begin_reply(reply)
        self._add_step(Step(role=role, text=text, turn=self._turn))
        self._answered = self._answered or role == "user"

    def add_call(
        self, tool: object, arguments: Any, call_id: object, *, agent: str | None = None, reply: str | None = None
    ) -> None:
        """Add a call of a tool, as the agent made it."""
        if not isinstance(tool, str) or not tool.strip():
            self.report("a call has no name of a tool")
            tool = "(no name)"
        self._begin_reply(reply)
        identity = call_id if isinstance(call_id, str) and call_id else None
        if identity is None:
            self.report(f"a call of {quote(tool, 60)} has no id")
        elif identity in self._places:
            self.report(f"the call {quote(identity, 60)} stands there twice")
        else:
            self._places[identity] = len(self.steps)
        call = AgentCall(tool=tool, arguments=arguments, call_id=identity, agent=agent)
        self._add_step(Step(role="assistant", call=call, turn=self._turn))

    def add_result(
        self,
        call_id: object,
        text: str,
        *,
        failed: bool = False,
        duration_ms: float | None = None,
        not_made: NotMade | None = None,
    ) -> None:
        """Add what a call returned, or what the harness says in place of making it."""
        self._answered = True
        place = self._places.get(call_id) if isinstance(call_id, str) else None
        if place is None:
            named = quote(call_id, 60) if isinstance(call_id, str) else "no call"
            self.report(f"a result is of {named}, which was not made before it")
            return
        if self._has_ended(place):
            self.report(f"the call {quote(str(call_id), 60)} has two results")
            return
        shown = text.rstrip("\r\n")
        failed = failed or not_made is not None
        changed = {"error": shown or "it failed"} if failed else {"result": shown}
        self._note_end(place, duration_ms=duration_ms, not_made=not_made, **changed)

    def note_duration(self, call_id: str, duration_ms: float | None) -> None:
        """Note how long a call took, which is recorded apart from it."""
        self._note_end(self._places[call_id], duration_ms=duration_ms)

    def note_failure(self, call_id: str, reason: str) -> None:
        """Note that a call failed, which is recorded apart from it.

        Its result, if it has one, is the error then: it tells more than the reason.
        """
        place = self._places[call_id]
        known = self._ends.get(place, {})
        self._note_end(place, error=known.get("result") or known.get("error") or reason, result=None)

    def has_call(self, call_id: object) -> bool:
        """Return whether a call of this id was made."""
        return isinstance(call_id, str) and call_id in self._places

    def get_call(self, call_id: object) -> AgentCall | None:
        """Return the call of this id as it was made, without what came of it; ``None`` if it was not."""
        place = self._places.get(call_id) if isinstance(call_id, str) else None
        return None if place is None else self.steps[place].call

    def has_result(self, call_id: object) -> bool:
        """Return whether a call of this id was made and has returned."""
        place = self._places.get(call_id) if isinstance(call_id, str) else None
        return place is not None and self._has_ended(place)

    def get_result(self, call_id: object) -> str | None:
        """Return what the call of this id returned, if it was made and did not fail."""
        place = self._places.get(call_id) if isinstance(call_id, str) else None
        return None if place is None else self._ends.get(place, {}).get("result")

    def get_last_result(self) -> str | None:
        """Return the result of the last step, if that is a call that has one."""
        return self._ends.get(len(self.steps) - 1, {}).get("result")

    def get_last_text(self) -> str | None:
        """Return the agent's last words, if it said anything after its last call."""
        for step in reversed(self.steps):
            if step.role == "assistant":
                return step.text if step.call is None else None
        return None

    def make_run(
        self,
        *,
        answer: str | None = None,
        outcome: RunOutcome = "finished",
        usage: Usage | None = None,
        cost: float | None = None,
        duration_ms: float | None = None,
        unknown: tuple[Unknown, ...] = ("files",),
        metadata: Mapping[str, Any] | None = None,
    ) -> AgentRun:
        """Make the run of everything that was added."""
        for call_id, place in self._places.items():
            if not self.has_result(call_id):
                call = self.steps[place].call
                tool = quote(call.tool, 60) if call is not None else ""
                self.report(f"the call {quote(call_id, 60)} of {tool} has no result")
        return AgentRun(
            steps=tuple(starmap(self._make_step, enumerate(self.steps))),
            answer=answer,
            outcome=outcome,
            usage=usage,
            cost=cost,
            duration_ms=duration_ms,
            complete=not self.problems,
            problems=tuple(self.problems),
            unknown=unknown,
            metadata={"source": self.source, **{name: value for name, value in (metadata or {}).items() if value}},
        )

    def _begin_reply(self, reply: str | None) -> None:
        """Begin another reply of the agent, unless this is part of the one before."""
        if self._answered and (reply is None or reply != self._reply):
            self._turn += 1
        self._answered, self._reply = False, reply

    def _add_step(self, step: Step) -> None:
        if len(self.steps) >= MOST_STEPS:
            raise UsageError(f"the run has more than {MOST_STEPS:,} steps; judge it in parts", argument="source")
        self.steps.append(step)

    def _make_step(self, place: int, step: Step) -> Step:
        """Make the step at a place, with what came of its call."""
        if step.call is None or place not in self._ends:
            return step
        return replace(step, call=replace(step.call, **self._ends[place]))

    def _note_end(self, place: int, **members: Any) -> None:
        self._ends.setdefault(place, {}).update(members)

    def _has_ended(self, place: int) -> bool:
        known = self._ends.get(place, {})
        return known.get("result") is not None or known.get("error") is not None


def read_arguments(value: Any) -> Any:
    """Read the arguments of a call, which some tools write as a text; one that is no JSON stays a text."""
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


def read_text(value: Any) -> str:
    """Read what a tool returned, or a message holds: its texts, and anything else as JSON."""
    import json

    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_text(part) for part in value):
        return "\n".join(part["text"] for part in value)
    return json.dumps(value, ensure_ascii=False)


def _is_text(part: object) -> bool:
    return (
        isinstance(part, dict) and isinstance(part.get("text"), str) and str(part.get("type", "text")).endswith("text")
    )


def read_number(value: Any) -> float | None:
    """Read a number of at least 0; ``None`` for anything else."""
    return float(value) if is_finite(value) and value >= 0 else None


def read_usage(value: Any, *, cached: str, written: str, added: bool = False) -> Usage | None:
    """Read the tokens of a run; ``added`` says that its input tokens do not count those from and to the cache."""
    if not isinstance(value, dict) or read_count(value.get("input_tokens")) is None:
        return None
    counts = {name: read_count(value.get(name)) or 0 for name in ("input_tokens", "output_tokens", cached, written)}
    extra = counts[cached] + counts[written] if added else 0
    return Usage(
        input_tokens=counts["input_tokens"] + extra,
        output_tokens=counts["output_tokens"],
        cached_tokens=counts[cached],
        written_tokens=counts[written],
        calls=0,
    )


def is_answer(arguments: Any, output: Any) -> bool:
    """Return whether a value that a run gave back is made of the arguments of a call.

    The value may have more members, which were filled in. pydantic-ai asks for a value that is no object as
    ``response``.
    """
    if not isinstance(arguments, dict) or not arguments:
        return False
    if isinstance(output, dict):
        return all(name in output and is_same(output[name], value) for name, value in arguments.items())
    return arguments.keys() == {"response"} and is_same(arguments["response"], output)


def write_answer(output: Any) -> str:
    """Write a value that a run gave back as its last word: a text as it is, anything else as JSON."""
    import json

    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def add_usages(usages: Sequence[Usage | None]) -> Usage | None:
    """Add the tokens of an agent's replies; ``None`` if those of one are not known, or nobody counted any."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    total = sum(known[1:], known[0])
    return total if total.input_tokens or total.output_tokens else None


def read_count(value: Any) -> int | None:
    """Read a whole number of at least 0 that is no nonsense; ``None`` for anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_COUNT
    return value if is_count else None


def read_kind(entry: Any, name: str = "type") -> str:
    """Read the member that says what an object is; an empty text where it is no text, or no object."""
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def read_name(value: Any) -> str | None:
    """Read a text that is not empty, shortened; ``None`` for anything else."""
    return flatten(value, 200) if isinstance(value, str) and value.strip() else None
