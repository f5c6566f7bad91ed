"""A run from a trace: the requests to models and the calls of tools in it, whoever's conventions name them.

What the model was sent and what it answered says what was called; the spans of tools say how each call went. Both are
compared: a tool that ran and that no message calls, and one that ran with other arguments, are problems of the run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.agents.messages import CallPart, Message, MessagePart, ResultPart, Words, open_json
from adjudge.agents.run import AgentRun
from adjudge.agents.spans import Span
from adjudge.agents.transcript import (
    Transcript,
    add_usages,
    is_answer,
    read_arguments,
    read_name,
    read_text,
    write_answer,
)
from adjudge.formats.text import quote
from adjudge.result import Usage

_INNER = frozenset({"TOOL", "EVALUATOR", "GUARDRAIL"})
"""Kinds of spans, as OpenInference and Langfuse name them, in which requests and calls are not the agent's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to a model."""

    span: Span
    agent: str | None = None
    """The sub-agent that made it; ``None`` for the agent itself."""
    inputs: Sequence[Message] | None = None
    """The messages that the model was sent; ``None`` if they were not exported."""
    outputs: Sequence[Message] | None = None
    usage: Usage | None = None
    cost: float | None = None
    cut_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """One execution of a tool."""

    span: Span
    agent: str | None = None
    tool: Any = None
    call_id: Any = None
    """The id of the call, where the span has it."""
    arguments: Any = None
    """The arguments, or a text from which they are known again; ``None`` if they were not exported."""
    result: str | None = None
    answers: str | None = None
    """The id of the call that its result says it is of, which is the tool's word alone."""
    failure: str = ""
    """The reason for which it failed; empty if it did not."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """The parts of a trace, by anybody's conventions."""

    spans: Mapping[str, Span]
    requests: list[ModelRequest] = field(default_factory=list)
    tools: list[ToolRun] = field(default_factory=list)
    root: Span | None = None
    """The span that holds the run, if there is one."""
    output: Any = None
    """The value that the run gave back, where the trace says so."""
    session: Any = None


def index_spans(spans: Sequence[Span], transcript: Transcript) -> dict[str, Span]:
    """Return spans by their ids; an id that occurs twice is a problem."""
    indexed = {span.id: span for span in spans}
    if len(indexed) != len(spans):
        transcript.report("a span stands there twice")
    return indexed


def find_holders(spans: Mapping[str, Span], is_wanted: Callable[[Span], bool]) -> dict[str, Span | None]:
    """Find for each span the nearest one that holds it and is wanted; a loop of spans has none.

    Each is looked at once: spans that hold one another in a long row would take the square of their number.
    """
    holders: dict[str, Span | None] = {}
    for span in spans.values():
        path: dict[str, Span] = {}
        while span.id not in holders and span.id not in path:
            path[span.id] = span
            outer = spans.get(span.parent) if span.parent is not None else None
            if outer is None or is_wanted(outer):
                holders[span.id] = outer
            else:
                span = outer  # noqa: PLW2901 - upward, until one is known
        nearest = holders.get(span.id)
        for name in path:
            holders.setdefault(name, nearest)
    return holders


def find_sub_agents(
    spans: Mapping[str, Span], find_kind: Callable[[Span], str], find_name: Callable[[Span], Any]
) -> dict[str, str | None]:
    """Name the sub-agent that each span is of: what happens inside of a tool or a check is not the agent's own.

    Each span is asked once for its kind and its name, which may be looked for in all that it has, and not again for
    each span that it holds.
    """
    kinds = {name: find_kind(span) for name, span in spans.items()}
    inner = find_holders(spans, lambda span: kinds[span.id] in _INNER)
    agents = find_holders(spans, lambda span: kinds[span.id] == "AGENT")
    # Those that no tool holds are the agent that has the tool.
    within = {agent.id: agent for agent in agents.values() if agent is not None and inner[agent.id] is not None}
    called = {name: read_name(find_name(agent)) for name, agent in within.items()}
    names: dict[str, str | None] = {}
    for name, agent in agents.items():
        named = None if agent is None else called.get(agent.id)
        names[name] = None if inner[name] is None else named or "sub-agent"
    return names


def find_root(spans: Mapping[str, Span], transcript: Transcript) -> Span | None:
    """Find the span that no other holds; several, or none, are a problem."""
    roots = [span for span in spans.values() if span.parent is None]
    if len(roots) > 1:
        transcript.report("several spans are held by none, so they are not those of one run")
    elif not roots:
        transcript.report("no span holds the others, so the trace is not whole")
    return roots[0] if len(roots) == 1 else None


def open_output(value: Any) -> Any:
    """Return what a run gave back; a graph of LangChain has it as ``structured_response`` in its state."""
    output = open_json(value)
    if isinstance(output, dict) and isinstance(output.get("messages"), list):
        return output.get("structured_response")
    return output


def open_tool_message(value: Any) -> tuple[str | None, str | None]:
    """Return the result that a value is, and the id of its call where it is a message of LangChain that has one."""
    opened = open_json(value)
    message = opened.get("data", opened) if isinstance(opened, dict) else None
    if isinstance(message, dict) and isinstance(message.get("tool_call_id"), str) and "content" in message:
        return read_text(message["content"]), message["tool_call_id"]
    return None if value is None else read_text(value), None


def read_trace(transcript: Transcript, trace: Trace) -> AgentRun:
    """Read the run of a trace."""
    return _Reader(transcript, trace).make_run()


class _Reader:
    def __init__(self, transcript: Transcript, trace: Trace) -> None:
        self.transcript, self.trace = transcript, trace
        self.results = {run.call_id: run.result for run in trace.tools if isinstance(run.call_id, str) and run.result}
        requests = {request.span.id for request in trace.requests}
        self.inside = find_holders(trace.spans, lambda span: span.id in requests)
        self.began = False
        self.executed: set[str] = set()
        """The ids of the calls whose tools were executed."""

    def make_run(self) -> AgentRun:
        """Make the run of a trace: its requests first, in order, and then what its tools returned."""
        transcript, root = self.transcript, self.trace.root
        self._check_spans()
        for request in self.trace.requests:
            self._read_request(request)
        answer = self._read_answer()
        calls = _Calls(transcript)
        for run in self.trace.tools:
            self._read_tool(run, calls)
        if answer is None:
            transcript.report("it ends before the agent's last word, or that was not exported")
        failed = root.failed if root is not None else any(request.span.failed for request in self.trace.requests)
        costs = [request.cost for request in self.trace.requests]
        return transcript.make_run(
            answer=answer,
            outcome="failed" if failed or answer is None else "finished",
            usage=add_usages([request.usage for request in self.trace.requests]),
            cost=sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
            duration_ms=None if root is None else root.duration_ms,
            unknown=("files",) if self._knows_failures() else ("files", "failures"),
            metadata={"session": read_name(self.trace.session)},
        )

    def _check_spans(self) -> None:
        """Report what shows that the export is not whole: no request, no end, or a span whose parent is missing."""
        if not self.trace.requests:
            self.transcript.report("no requests to a model were exported, so nobody knows which tools were called")
        root, spans, checked = self.trace.root, self.trace.spans, set[str]()
        if root is not None and not root.end:
            self.transcript.report("the run had not ended when it was exported")
        for part in (*self.trace.requests, *self.trace.tools):
            if root is not None and root.end and part.span.start > root.end:
                self.transcript.report("something comes after the end of the run")
            span: Span | None = part.span
            while span is not None and span.id not in checked:
                checked.add(span.id)
                if span.parent is not None and span.parent not in spans:
                    self.transcript.report("a span that holds others is missing, so the trace is not whole")
                span = spans.get(span.parent) if span.parent is not None else None

    def _read_request(self, request: ModelRequest) -> None:
        """Read a request to a model: what its messages have that earlier ones had not, and its reply."""
        if request.inputs is None or request.outputs is None:
            self.transcript.report("the messages of a request to a model were not exported")
        if request.cut_off:
            self.transcript.report("a message of the agent was cut off")
        if self.inside.get(request.span.id) is not None:
            self._read_again(request)
            return
        is_first = request.agent is None and not self.began
        self.began = self.began or is_first
        for message in request.inputs or ():
            for part in message.parts:
                if is_first and not isinstance(part, ResultPart):
                    self._read_part(part, message, request, reply=None)
                else:
                    self._read_repeated(part, request)
        for message in request.outputs or ():
            for part in message.parts:
                self._read_part(part, Message("assistant", ()), request, reply=request.span.id)

    def _read_again(self, request: ModelRequest) -> None:
        """Read a request inside of another one, which two programs that write traces saw: what is new in it counts."""
        for message in request.outputs or ():
            for part in message.parts:
                is_known = isinstance(part, CallPart) and self.transcript.has_call(part.call_id)
                if not is_known and not isinstance(part, Words):
                    self._read_part(part, message, request, reply=request.span.id)

    def _read_repeated(self, part: MessagePart, request: ModelRequest) -> None:
        """Read a part that was said before: a request repeats the whole conversation, with every result in it."""
        if isinstance(part, ResultPart):
            if not self.transcript.has_result(part.call_id):
                self._add_result(part)
        elif isinstance(part, CallPart) and request.agent is None and not self.transcript.has_call(part.call_id):
            self.transcript.report("a message repeats a call that no request to a model has")

    def _read_part(self, part: MessagePart, message: Message, request: ModelRequest, reply: str | None) -> None:
        """Read a part of a message; the words of a sub-agent are left out, and an unknown part is reported."""
        if isinstance(part, Words):
            if request.agent is None:
                self.transcript.add_text(message.role, part.text, reply=reply)
        elif isinstance(part, CallPart):
            self.transcript.add_call(part.tool, part.arguments, part.call_id, agent=request.agent, reply=reply)
        elif isinstance(part, ResultPart):
            self._add_result(part)
        else:
            self.transcript.report(part.problem)

    def _add_result(self, part: ResultPart) -> None:
        """Add a result; the tool's own span has it whole, where some put several into one message."""
        known = self.results.get(part.call_id) if isinstance(part.call_id, str) else None
        self.transcript.add_result(part.call_id, part.text if known is None else known, failed=part.failed)

    def _read_tool(self, run: ToolRun, calls: _Calls) -> None:
        """Read the execution of a tool: it shows how a call went, and a call that no message has."""
        call_id, transcript = calls.take(run), self.transcript
        if call_id is None:
            call_id = run.call_id if isinstance(run.call_id, str) and run.call_id else f"span {run.span.id}"
            transcript.report("a tool was executed that no message of the agent calls")
            if run.arguments is None:
                transcript.report("the arguments of a call were not exported")
            if not transcript.has_call(call_id):
                transcript.add_call(run.tool, read_arguments(run.arguments), call_id, agent=run.agent)
        elif call_id in self.executed:
            transcript.report(f"the tool of the call {quote(call_id, 60)} ran twice")
        self.executed.add(call_id)
        if run.result is not None and not transcript.has_result(call_id):
            transcript.add_result(call_id, run.result)
        transcript.note_duration(call_id, run.span.duration_ms)
        if run.failure:
            transcript.note_failure(call_id, run.failure)

    def _knows_failures(self) -> bool:
        """Return whether each call's tool has a span: of one without, nobody knows whether it failed."""
        steps = self.transcript.steps
        return not steps or all(step.call is None or step.call.call_id in self.executed for step in steps)

    def _read_answer(self) -> str | None:
        """Read the agent's last word: the text of its last reply, if that called nothing.

        A run may also end with a call whose arguments are what it gives back. Its tool does not run, so that only the
        comparison with what the run gave back tells it from a run that was cut off; such a call is noted as executed.
        """
        requests = [request for request in self.trace.requests if request.agent is None]
        outputs = requests[-1].outputs if requests else None
        parts = [part for message in outputs or () for part in message.parts]
        calls = [part for part in parts if isinstance(part, CallPart)]
        if not calls:
            return "".join(part.text for part in parts if isinstance(part, Words)) or None
        ended = self.trace.root is not None and self.trace.root.end and not self.trace.root.failed
        for call in calls:
            if ended and is_answer(call.arguments, self.trace.output):
                answer = write_answer(self.trace.output)
                if not self.transcript.has_result(call.call_id):
                    self.transcript.add_result(call.call_id, answer)
                if isinstance(call.call_id, str):
                    self.executed.add(call.call_id)
                return answer
        return None


class _Calls:
    """The calls of a run, found by what a tool's span says of the one that it executed."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.free: set[str] = set()
        self.by_arguments: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.by_tool: dict[str, list[str]] = defaultdict(list)
        for step in reversed(transcript.steps):  # the first is taken from the end
            call = step.call
            if call is None or call.call_id is None or not transcript.has_call(call.call_id):
                continue
            self.free.add(call.call_id)
            self.by_tool[call.tool].append(call.call_id)
            for text in _list_texts(call.arguments):
                self.by_arguments[call.tool, text].append(call.call_id)

    def take(self, run: ToolRun) -> str | None:
        """Take the call that a tool was executed for, which no later execution is given unless it names it.

        ``None`` if no message has it.
        """
        if isinstance(run.call_id, str) and run.call_id:
            return self._take_named(run)
        tool = run.tool if isinstance(run.tool, str) else ""
        if run.arguments is None:
            return self._take_first_free(self.by_tool[tool])
        text = run.arguments if isinstance(run.arguments, str) else _write_json(run.arguments)
        candidates = self.by_arguments.get((tool, text)) or self.by_arguments.get(
            (tool, _write_json(read_arguments(text))), []
        )
        if run.answers in self.free and run.answers in candidates[-_MOST_ALIKE:]:
            self.free.discard(run.answers)
            return run.answers
        return self._take_first_free(candidates)

    def _take_named(self, run: ToolRun) -> str | None:
        """Take the call that an execution names; report where the tool or the arguments are others.

        The arguments are compared for the first execution alone. A further one is a problem anyway, and each
        comparison writes all arguments, which many short spans may name.
        """
        if not self.transcript.has_call(run.call_id):
            return None
        is_first = run.call_id in self.free
        self.free.discard(run.call_id)
        call = self.transcript.get_call(run.call_id)
        is_compared = is_first and run.arguments is not None
        if is_compared and call is not None and not _are_arguments(call.arguments, run.arguments):
            self.transcript.report(f"the tool of the call {quote(run.call_id, 60)} ran with other arguments")
        if isinstance(run.tool, str) and call is not None and run.tool != call.tool:
            self.transcript.report(f"another tool than that of the call {quote(run.call_id, 60)} ran for it")
        return run.call_id

    def _take_first_free(self, candidates: list[str]) -> str | None:
        while candidates:
            call_id = candidates.pop()
            if call_id in self.free:
                self.free.discard(call_id)
                return call_id
        return None


_MOST_ALIKE = 100
"""Calls with the same arguments among which the one that a result names is searched."""


def _are_arguments(arguments: Any, traced: Any) -> bool:
    text = traced if isinstance(traced, str) else _write_json(traced)
    return text in _list_texts(arguments) or _write_json(read_arguments(traced)) == _write_json(arguments)


def _list_texts(arguments: Any) -> set[str]:
    """List the texts as which the arguments of a call are written: JSON, Python's, and the only one by itself."""
    texts = {_write_json(arguments)}
    if isinstance(arguments, dict):
        texts.add(repr(arguments))
        only = next(iter(arguments.values())) if len(arguments) == 1 else None
        texts |= {only} if isinstance(only, str) else set()
    return texts


def _write_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
