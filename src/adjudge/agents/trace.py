"""Reading a run from a trace: from its requests to models and its executions of tools, whatever its conventions.

The messages to and from models say which tools were called, and the spans of tools say how each call went. Both are
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

_INNER_KINDS = frozenset({"TOOL", "EVALUATOR", "GUARDRAIL"})
"""Kinds of spans, as OpenInference and Langfuse name them, inside which requests and calls are not the agent's own."""


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
    """Return spans by their ids; an id that occurs twice is reported."""
    indexed = {span.id: span for span in spans}
    if len(indexed) != len(spans):
        transcript.report("a span stands there twice")
    return indexed


def find_enclosing_spans(spans: Mapping[str, Span], is_wanted: Callable[[Span], bool]) -> dict[str, Span | None]:
    """Find for each span the nearest span around it that is wanted; ``None`` without one, and in a loop of spans.

    Each span is looked at once, because spans inside each other in a long row would take the square of their number.
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
                span = outer  # noqa: PLW2901 - outward, up to a span whose holder is known
        nearest = holders.get(span.id)
        for span_id in path:
            holders.setdefault(span_id, nearest)
    return holders


def find_sub_agents(
    spans: Mapping[str, Span], find_kind: Callable[[Span], str], find_name: Callable[[Span], Any]
) -> dict[str, str | None]:
    """Return the name of the sub-agent that each span is of; ``None`` for the agent itself.

    Everything inside a tool or a check is a sub-agent's. ``find_kind`` and ``find_name`` are called once for a span,
    because they may look through all that it has.
    """
    kinds = {span_id: find_kind(span) for span_id, span in spans.items()}
    inner_holders = find_enclosing_spans(spans, lambda span: kinds[span.id] in _INNER_KINDS)
    agents = find_enclosing_spans(spans, lambda span: kinds[span.id] == "AGENT")
    # An agent that is not inside a tool or a check is the agent itself.
    sub_agents = {
        agent.id: agent for agent in agents.values() if agent is not None and inner_holders[agent.id] is not None
    }
    sub_agent_names = {agent_id: read_name(find_name(agent)) for agent_id, agent in sub_agents.items()}
    names: dict[str, str | None] = {}
    for span_id, agent in agents.items():
        name = None if agent is None else sub_agent_names.get(agent.id)
        names[span_id] = None if inner_holders[span_id] is None else name or "sub-agent"
    return names


def find_root(spans: Mapping[str, Span], transcript: Transcript) -> Span | None:
    """Find the span that is inside no other. If there are several, or none, report that and return ``None``."""
    roots = [span for span in spans.values() if span.parent is None]
    if len(roots) > 1:
        transcript.report("several spans are held by none, so they are not those of one run")
    elif not roots:
        transcript.report("no span holds the others, so the trace is not whole")
    return roots[0] if len(roots) == 1 else None


def open_output(value: Any) -> Any:
    """Return what a run gave back, read from JSON where it is a text.

    Of the state of a LangChain graph, that is its ``structured_response``.
    """
    output = open_json(value)
    if isinstance(output, dict) and isinstance(output.get("messages"), list):
        return output.get("structured_response")
    return output


def open_tool_message(value: Any) -> tuple[str | None, str | None]:
    """Read what a tool returned: its result as a text, and the id of the call that it answers.

    Only a message of LangChain names that id; else it is ``None``.
    """
    opened = open_json(value)
    message = opened.get("data", opened) if isinstance(opened, dict) else None
    if isinstance(message, dict) and isinstance(message.get("tool_call_id"), str) and "content" in message:
        return read_text(message["content"]), message["tool_call_id"]
    return None if value is None else read_text(value), None


def read_trace(transcript: Transcript, trace: Trace) -> AgentRun:
    """Read the run of a trace."""
    return _TraceReader(transcript, trace).make_run()


class _TraceReader:
    """Reads the requests and executions of a trace into a run."""

    def __init__(self, transcript: Transcript, trace: Trace) -> None:
        """Collect the results of executions, and find for each span the request around it."""
        self.transcript, self.trace = transcript, trace
        self.result_of_call = {
            run.call_id: run.result for run in trace.tools if isinstance(run.call_id, str) and run.result
        }
        request_ids = {request.span.id for request in trace.requests}
        self.holding_request = find_enclosing_spans(trace.spans, lambda span: span.id in request_ids)
        """The request around each span, if there is one."""
        self.has_begun = False
        self.executed_call_ids: set[str] = set()
        """The ids of the calls whose tools were executed."""

    def make_run(self) -> AgentRun:
        """Make the run of the trace: first from its requests, in order, and then from the executions of tools."""
        transcript, root = self.transcript, self.trace.root
        self._check_spans()
        for request in self.trace.requests:
            self._read_request(request)
        answer = self._read_answer()
        matcher = _CallMatcher(transcript)
        for run in self.trace.tools:
            self._read_tool(run, matcher)
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
        """Report signs that the export is not whole: no request, no end, or a span whose parent is missing."""
        if not self.trace.requests:
            self.transcript.report("no requests to a model were exported, so nobody knows which tools were called")
        root, spans, checked = self.trace.root, self.trace.spans, set[str]()
        if root is not None and not root.end:
            self.transcript.report("the run had not ended when it was exported")
        for record in (*self.trace.requests, *self.trace.tools):
            if root is not None and root.end and record.span.start > root.end:
                self.transcript.report("something comes after the end of the run")
            span: Span | None = record.span
            while span is not None and span.id not in checked:
                checked.add(span.id)
                if span.parent is not None and span.parent not in spans:
                    self.transcript.report("a span that holds others is missing, so the trace is not whole")
                span = spans.get(span.parent) if span.parent is not None else None

    def _read_request(self, request: ModelRequest) -> None:
        """Read a request to a model: its reply, and what is new in its messages.

        Every request repeats the conversation so far, so only the first request of the agent has new words in its
        input.
        """
        if request.inputs is None or request.outputs is None:
            self.transcript.report("the messages of a request to a model were not exported")
        if request.cut_off:
            self.transcript.report("a message of the agent was cut off")
        if self.holding_request.get(request.span.id) is not None:
            self._read_second_record(request)
            return
        is_first = request.agent is None and not self.has_begun
        self.has_begun = self.has_begun or is_first
        for message in request.inputs or ():
            for part in message.parts:
                if is_first and not isinstance(part, ResultPart):
                    self._read_part(part, message, request, reply=None)
                else:
                    self._read_repeated(part, request)
        for message in request.outputs or ():
            for part in message.parts:
                self._read_part(part, Message("assistant", ()), request, reply=request.span.id)

    def _read_second_record(self, request: ModelRequest) -> None:
        """Read a request inside another one, of which it is a second record by another program that writes traces.

        Only calls and results that are new in it are read.
        """
        for message in request.outputs or ():
            for part in message.parts:
                is_known = isinstance(part, CallPart) and self.transcript.has_call(part.call_id)
                if not is_known and not isinstance(part, Words):
                    self._read_part(part, message, request, reply=request.span.id)

    def _read_repeated(self, part: MessagePart, request: ModelRequest) -> None:
        """Read a part of what a request repeats of the conversation: only results can be new. Report unknown calls."""
        if isinstance(part, ResultPart):
            if not self.transcript.has_result(part.call_id):
                self._add_result(part)
        elif isinstance(part, CallPart) and request.agent is None and not self.transcript.has_call(part.call_id):
            self.transcript.report("a message repeats a call that no request to a model has")

    def _read_part(self, part: MessagePart, message: Message, request: ModelRequest, reply: str | None) -> None:
        """Read a part of a message; words of a sub-agent are left out, and a part of an unknown kind is reported."""
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
        """Add a result, as the span of its tool has it if there is one.

        The span has the whole result, and some frameworks put several results into one message.
        """
        span_result = self.result_of_call.get(part.call_id) if isinstance(part.call_id, str) else None
        self.transcript.add_result(part.call_id, part.text if span_result is None else span_result, failed=part.failed)

    def _read_tool(self, run: ToolRun, matcher: _CallMatcher) -> None:
        """Read the execution of a tool: note how its call went.

        If no message has that call, it is reported and added.
        """
        call_id, transcript = matcher.take(run), self.transcript
        if call_id is None:
            call_id = run.call_id if isinstance(run.call_id, str) and run.call_id else f"span {run.span.id}"
            transcript.report("a tool was executed that no message of the agent calls")
            if run.arguments is None:
                transcript.report("the arguments of a call were not exported")
            if not transcript.has_call(call_id):
                transcript.add_call(run.tool, read_arguments(run.arguments), call_id, agent=run.agent)
        elif call_id in self.executed_call_ids:
            transcript.report(f"the tool of the call {quote(call_id, 60)} ran twice")
        self.executed_call_ids.add(call_id)
        if run.result is not None and not transcript.has_result(call_id):
            transcript.add_result(call_id, run.result)
        transcript.note_duration(call_id, run.span.duration_ms)
        if run.failure:
            transcript.note_failure(call_id, run.failure)

    def _knows_failures(self) -> bool:
        """Return whether the tool of every call has a span; without one, nobody knows whether the call failed."""
        steps = self.transcript.steps
        return not steps or all(step.call is None or step.call.call_id in self.executed_call_ids for step in steps)

    def _read_answer(self) -> str | None:
        """Read the answer of the agent; ``None`` if there is none.

        It is the text of the agent's last reply, if that has no calls. A run may also end with a call whose arguments
        are its output. The tool of such a call does not run, so only the comparison with the output of the run shows
        that the run was not cut off there. That call is noted as executed.
        """
        requests = [request for request in self.trace.requests if request.agent is None]
        reply = requests[-1].outputs if requests else None
        parts = [part for message in reply or () for part in message.parts]
        calls = [part for part in parts if isinstance(part, CallPart)]
        if not calls:
            return "".join(part.text for part in parts if isinstance(part, Words)) or None
        has_ended = self.trace.root is not None and self.trace.root.end and not self.trace.root.failed
        for call in calls:
            if has_ended and is_answer(call.arguments, self.trace.output):
                answer = write_answer(self.trace.output)
                if not self.transcript.has_result(call.call_id):
                    self.transcript.add_result(call.call_id, answer)
                if isinstance(call.call_id, str):
                    self.executed_call_ids.add(call.call_id)
                return answer
        return None


class _CallMatcher:
    """Finds the call that a tool was executed for, among those that no execution was matched with."""

    def __init__(self, transcript: Transcript) -> None:
        """Collect the calls of a transcript by their tools, and by the texts of their arguments."""
        self.transcript = transcript
        self.free_call_ids: set[str] = set()
        self.by_arguments: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.by_tool: dict[str, list[str]] = defaultdict(list)
        for step in reversed(transcript.steps):  # the first call is last in each list, from where it is taken
            call = step.call
            if call is None or call.call_id is None or not transcript.has_call(call.call_id):
                continue
            self.free_call_ids.add(call.call_id)
            self.by_tool[call.tool].append(call.call_id)
            for text in _list_argument_texts(call.arguments):
                self.by_arguments[call.tool, text].append(call.call_id)

    def take(self, run: ToolRun) -> str | None:
        """Take the call that a tool was executed for; ``None`` if no message has it.

        It is found by the id that the execution names, else by the tool and its arguments. A call that was taken is
        given to a later execution only if that names it.
        """
        if isinstance(run.call_id, str) and run.call_id:
            return self._take_named(run)
        tool = run.tool if isinstance(run.tool, str) else ""
        if run.arguments is None:
            return self._take_first_free(self.by_tool[tool])
        text = run.arguments if isinstance(run.arguments, str) else _write_json(run.arguments)
        candidates = self.by_arguments.get((tool, text))
        if not candidates:  # the same arguments may be written as JSON in another way
            candidates = self.by_arguments.get((tool, _write_json(read_arguments(text))), [])
        if run.answers in self.free_call_ids and run.answers in candidates[-_MOST_COMPARED:]:
            self.free_call_ids.discard(run.answers)
            return run.answers
        return self._take_first_free(candidates)

    def _take_named(self, run: ToolRun) -> str | None:
        """Take the call whose id an execution names; report it if the tool or its arguments are others.

        The arguments are compared only for the first execution of a call: a further one is reported anyway, and each
        comparison writes all arguments, which many short spans may name.
        """
        if not self.transcript.has_call(run.call_id):
            return None
        is_first = run.call_id in self.free_call_ids
        self.free_call_ids.discard(run.call_id)
        call = self.transcript.get_call(run.call_id)
        is_compared = is_first and run.arguments is not None
        if is_compared and call is not None and not _are_same_arguments(call.arguments, run.arguments):
            self.transcript.report(f"the tool of the call {quote(run.call_id, 60)} ran with other arguments")
        if isinstance(run.tool, str) and call is not None and run.tool != call.tool:
            self.transcript.report(f"another tool than that of the call {quote(run.call_id, 60)} ran for it")
        return run.call_id

    def _take_first_free(self, candidates: list[str]) -> str | None:
        """Take the first of some calls that was not taken yet; ``None`` if all were."""
        while candidates:
            call_id = candidates.pop()
            if call_id in self.free_call_ids:
                self.free_call_ids.discard(call_id)
                return call_id
        return None


_MOST_COMPARED = 100
"""The most calls with the same arguments among which the one that a result names is looked for."""


def _are_same_arguments(arguments: Any, traced: Any) -> bool:
    """Return whether the arguments that a span has are those of a call, in any way of writing them."""
    text = traced if isinstance(traced, str) else _write_json(traced)
    return text in _list_argument_texts(arguments) or _write_json(read_arguments(traced)) == _write_json(arguments)


def _list_argument_texts(arguments: Any) -> set[str]:
    """List the texts as which frameworks write the arguments of a call.

    They are written as JSON, as Python shows them, or, if there is only one argument, as its value.
    """
    texts = {_write_json(arguments)}
    if isinstance(arguments, dict):
        texts.add(repr(arguments))
        single_value = next(iter(arguments.values())) if len(arguments) == 1 else None
        texts |= {single_value} if isinstance(single_value, str) else set()
    return texts


def _write_json(value: Any) -> str:
    """Write a value as JSON with sorted names, so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
