"""Building a run from the events of a transcript, in order, with everything in them that does not fit together."""

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
    """Builds a run from what a reader adds in order. A transcript may be forged, so contradictions are reported.

    A report makes the run not complete.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.steps: list[Step] = []
        self.problems: list[str] = []
        self._step_of_call: dict[str, int] = {}
        self._end_of_step: dict[int, dict[str, Any]] = {}
        """The results, failures and durations of calls, by the index of their steps.

        They are put into the calls once, at the end: each time that a call is replaced its arguments are copied, and a
        few bytes may name a call again.
        """
        self._turn = 0
        self._reply_id: str | None = None
        self._has_read_since_reply = True
        """True if the agent has read something since its last reply began, so that what it says now is another
        reply."""

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
        self._has_read_since_reply = self._has_read_since_reply or role == "user"

    def add_call(
        self, tool: object, arguments: Any, call_id: object, *, agent: str | None = None, reply: str | None = None
    ) -> None:
        """Add a call of a tool, as the agent made it.

        ``agent`` is the sub-agent that made it, and ``reply`` the id of the reply that it is part of; both may be
        ``None``.
        """
        if not isinstance(tool, str) or not tool.strip():
            self.report("a call has no name of a tool")
            tool = "(no name)"
        self._begin_reply(reply)
        known_id = call_id if isinstance(call_id, str) and call_id else None
        if known_id is None:
            self.report(f"a call of {quote(tool, 60)} has no id")
        elif known_id in self._step_of_call:
            self.report(f"the call {quote(known_id, 60)} stands there twice")
        else:
            self._step_of_call[known_id] = len(self.steps)
        call = AgentCall(tool=tool, arguments=arguments, call_id=known_id, agent=agent)
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
        self._has_read_since_reply = True
        step_index = self._step_of_call.get(call_id) if isinstance(call_id, str) else None
        if step_index is None:
            call_name = quote(call_id, 60) if isinstance(call_id, str) else "no call"
            self.report(f"a result is of {call_name}, which was not made before it")
            return
        if self._has_ended(step_index):
            self.report(f"the call {quote(str(call_id), 60)} has two results")
            return
        shown_text = text.rstrip("\r\n")
        failed = failed or not_made is not None
        members = {"error": shown_text or "it failed"} if failed else {"result": shown_text}
        self._note_end(step_index, duration_ms=duration_ms, not_made=not_made, **members)

    def note_duration(self, call_id: str, duration_ms: float | None) -> None:
        """Note how long a call took, where that is recorded apart from its result."""
        self._note_end(self._step_of_call[call_id], duration_ms=duration_ms)

    def note_failure(self, call_id: str, reason: str) -> None:
        """Note that a call failed, where that is recorded apart from its result.

        If it has a result, that becomes its error: it tells more than the reason.
        """
        step_index = self._step_of_call[call_id]
        end = self._end_of_step.get(step_index, {})
        self._note_end(step_index, error=end.get("result") or end.get("error") or reason, result=None)

    def has_call(self, call_id: object) -> bool:
        """Return whether a call with this id was added."""
        return isinstance(call_id, str) and call_id in self._step_of_call

    def get_call(self, call_id: object) -> AgentCall | None:
        """Return the call with this id as it was added, without its result; ``None`` if there is none."""
        step_index = self._step_of_call.get(call_id) if isinstance(call_id, str) else None
        return None if step_index is None else self.steps[step_index].call

    def has_result(self, call_id: object) -> bool:
        """Return whether a call with this id was added and has a result or an error."""
        step_index = self._step_of_call.get(call_id) if isinstance(call_id, str) else None
        return step_index is not None and self._has_ended(step_index)

    def get_result(self, call_id: object) -> str | None:
        """Return the result of the call with this id; ``None`` if it has none, it failed, or there is no such call."""
        step_index = self._step_of_call.get(call_id) if isinstance(call_id, str) else None
        return None if step_index is None else self._end_of_step.get(step_index, {}).get("result")

    def get_last_result(self) -> str | None:
        """Return the result of the last step; ``None`` if that is no call, or has no result."""
        return self._end_of_step.get(len(self.steps) - 1, {}).get("result")

    def get_last_text(self) -> str | None:
        """Return the last words of the agent; ``None`` if it has called a tool since, or said nothing."""
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
        for call_id, step_index in self._step_of_call.items():
            if not self.has_result(call_id):
                call = self.steps[step_index].call
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
        """Begin a new reply of the agent, which is a new turn, unless this is a part of the reply before.

        It is a part of that if the agent has read nothing since, or if both have the same id.
        """
        if self._has_read_since_reply and (reply is None or reply != self._reply_id):
            self._turn += 1
        self._has_read_since_reply, self._reply_id = False, reply

    def _add_step(self, step: Step) -> None:
        """Add a step. Raises ``UsageError`` for more than ``MOST_STEPS``."""
        if len(self.steps) >= MOST_STEPS:
            raise UsageError(f"the run has more than {MOST_STEPS:,} steps; judge it in parts", argument="source")
        self.steps.append(step)

    def _make_step(self, step_index: int, step: Step) -> Step:
        """Return the step at an index, with the result, the failure and the duration of its call."""
        if step.call is None or step_index not in self._end_of_step:
            return step
        return replace(step, call=replace(step.call, **self._end_of_step[step_index]))

    def _note_end(self, step_index: int, **members: Any) -> None:
        """Note members of ``AgentCall``, such as ``result``, for the call in the step at an index."""
        self._end_of_step.setdefault(step_index, {}).update(members)

    def _has_ended(self, step_index: int) -> bool:
        """Return whether the call in the step at an index has a result or an error."""
        end = self._end_of_step.get(step_index, {})
        return end.get("result") is not None or end.get("error") is not None


def read_arguments(value: Any) -> Any:
    """Read the arguments of a call, which some frameworks write as JSON; a text that is no JSON stays a text."""
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


def read_text(value: Any) -> str:
    """Read the text of a message or a result: a text as it is, the texts of parts in lines, any other value as JSON."""
    import json

    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_text(part) for part in value):
        return "\n".join(part["text"] for part in value)
    return json.dumps(value, ensure_ascii=False)


def _is_text(part: object) -> bool:
    """Return whether a part of a message is a text."""
    return (
        isinstance(part, dict) and isinstance(part.get("text"), str) and str(part.get("type", "text")).endswith("text")
    )


def read_number(value: Any) -> float | None:
    """Read a number of at least 0; ``None`` for anything else."""
    return float(value) if is_finite(value) and value >= 0 else None


def read_usage(value: Any, *, cached: str, written: str, added: bool = False) -> Usage | None:
    """Read the tokens of a run or a reply; ``None`` if they are not known.

    ``cached`` and ``written`` are the names of the members with the tokens that were read from and written to the
    cache. ``added`` says that these are not in the input tokens, and have to be added.
    """
    if not isinstance(value, dict) or read_count(value.get("input_tokens")) is None:
        return None
    counts = {name: read_count(value.get(name)) or 0 for name in ("input_tokens", "output_tokens", cached, written)}
    uncounted = counts[cached] + counts[written] if added else 0
    return Usage(
        input_tokens=counts["input_tokens"] + uncounted,
        output_tokens=counts["output_tokens"],
        cached_tokens=counts[cached],
        written_tokens=counts[written],
        calls=0,
    )


def is_answer(arguments: Any, output: Any) -> bool:
    """Return whether the output of a run is made of the arguments of a call.

    The output may have further members, which were filled in. If the output is no object, pydantic-ai has it in an
    argument ``response``.
    """
    if not isinstance(arguments, dict) or not arguments:
        return False
    if isinstance(output, dict):
        return all(name in output and is_same(output[name], value) for name, value in arguments.items())
    return arguments.keys() == {"response"} and is_same(arguments["response"], output)


def write_answer(output: Any) -> str:
    """Write the output of a run as its answer: a text as it is, any other value as JSON."""
    import json

    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def add_usages(usages: Sequence[Usage | None]) -> Usage | None:
    """Add up the tokens of an agent's replies; ``None`` if those of one reply are not known, or all are 0."""
    known_usages = [usage for usage in usages if usage is not None]
    if not known_usages or len(known_usages) < len(usages):
        return None
    total = sum(known_usages[1:], known_usages[0])
    return total if total.input_tokens or total.output_tokens else None


def read_count(value: Any) -> int | None:
    """Read a whole number from 0 to below 2^53; ``None`` for any other value."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_COUNT
    return value if is_count else None


def read_kind(entry: Any) -> str:
    """Read the member ``type`` of an object, which says what the object is; empty where it has none."""
    return read_string(entry, "type")


def read_string(entry: Any, name: str) -> str:
    """Read a member of an object that is a text; an empty text where there is no such member, or no object."""
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def read_name(value: Any) -> str | None:
    """Read a text that is not blank, in at most 200 characters; ``None`` for any other value."""
    return flatten(value, 200) if isinstance(value, str) and value.strip() else None
