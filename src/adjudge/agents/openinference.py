"""Runs in spans of OpenInference's conventions, which Phoenix, Arize and others show.

Sources: openinference-semantic-conventions 0.1.42; spans recorded from openinference-instrumentation-langchain 0.1.80,
-openai-agents 2.6.0 and -pydantic-ai 0.1.30; exports of arize-phoenix 20.26.1. What a span holds is written flat
(``llm.output_messages.0.message.role``), nested, or as Phoenix has it in frames, half of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.agents.messages import Message, read_messages
from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.spans import KIND, Span, is_span, iterate_spans, list_spans
from adjudge.agents.trace import (
    ModelRequest,
    ToolRun,
    Trace,
    find_root,
    find_sub_agents,
    index_spans,
    open_output,
    open_tool_message,
    read_trace,
)
from adjudge.agents.transcript import Transcript, read_count, read_number
from adjudge.formats.text import flatten
from adjudge.result import Usage

_CUT_OFF_REASONS = frozenset({"length", "max_tokens", "content_filter"})


def is_openinference(entry: dict[str, Any]) -> bool:
    """Return whether an object is, or holds, a span that OpenInference gives a kind."""
    return is_span(entry) and any(_get_span_kind(span) for span in iterate_spans(entry, Transcript("")))


def read_openinference(document: Document) -> AgentRun:
    """Read the run of an agent from the spans of one trace."""
    transcript = Transcript("openinference")
    spans = list_spans(document, transcript)
    trace = Trace(spans=index_spans(spans, transcript))
    trace.root = find_root(trace.spans, transcript)
    agents = find_sub_agents(
        trace.spans, _get_span_kind, lambda span: get_nested(span.attributes, "agent", "name") or span.name
    )
    for span in spans:
        kind, agent = _get_span_kind(span), agents[span.id]
        if kind not in ("LLM", "TOOL") and span is not trace.root:
            continue
        attributes = nest_dotted_names(span.attributes)
        trace.session = trace.session or get_nested(attributes, "session", "id")
        if kind == "LLM":
            trace.requests.append(_read_request(span, attributes, agent, transcript))
        elif kind == "TOOL" and not _is_handoff(span, attributes):
            trace.tools.append(_read_tool(span, attributes, agent))
        if span is trace.root:
            trace.output = open_output(get_nested(attributes, "output", "value"))
    return read_trace(transcript, trace)


def nest_dotted_names(value: Any) -> dict[str, Any]:
    """Return the members of a value, nested by one level: ``a.b`` and ``a.c`` become ``b`` and ``c`` in ``a``.

    The members of a list are named by their index. A value that is neither an object nor a list has no members.
    """
    if isinstance(value, list):
        return {str(index): member for index, member in enumerate(value)}
    members: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for name, member in value.items() if isinstance(value, Mapping) else ():
        first_name, dot, other_names = name.partition(".")
        if not dot:
            members[first_name] = member
        elif member is not None:  # in a frame, every row has every column, and those that it lacks are None
            groups.setdefault(first_name, {})[other_names] = member
    for first_name, group in groups.items():
        nested = members.get(first_name)
        members[first_name] = {**nested, **group} if isinstance(nested, dict) else group
    return members


def get_nested(value: Any, *names: str) -> Any:
    """Return the value at a path of names, each a member of the one before; ``None`` where there is nothing."""
    for name in names:
        value = nest_dotted_names(value).get(name)
    return value


def _get_span_kind(span: Span) -> str:
    """Return the kind that OpenInference gives a span, such as ``LLM`` or ``TOOL``; empty if it gives none."""
    kind = span.attributes.get(KIND)
    kind = get_nested(span.attributes.get("openinference"), "span", "kind") if kind is None else kind
    return kind if isinstance(kind, str) else ""


def _is_handoff(span: Span, attributes: Mapping[str, Any]) -> bool:
    """Return whether the span of a tool is one of a handoff to another agent.

    The call and the result of a handoff are in the messages already.
    """
    return get_nested(attributes, "tool", "name") is None and span.name.startswith("handoff to ")


def _read_request(span: Span, attributes: Mapping[str, Any], agent: str | None, transcript: Transcript) -> ModelRequest:
    """Read a request to a model from its span; ``agent`` is the sub-agent that made it."""
    llm_attributes = attributes.get("llm")
    members = nest_dotted_names(llm_attributes)
    finish_reason = members.get("finish_reason")
    return ModelRequest(
        span=span,
        agent=agent,
        inputs=_read_messages(members.get("input_messages"), "user", transcript),
        outputs=_read_messages(members.get("output_messages"), "assistant", transcript),
        usage=_read_usage(members.get("token_count")),
        cost=read_number(get_nested(members.get("cost"), "total")),
        cut_off=isinstance(finish_reason, str) and finish_reason in _CUT_OFF_REASONS,
    )


def _read_messages(value: Any, role: str, transcript: Transcript) -> tuple[Message, ...] | None:
    """Read the numbered messages of a span; ``role`` is the role of messages that name none."""
    chat_messages = [_convert_message(member, transcript) for member in _list_numbered(value, transcript)]
    return read_messages(chat_messages, role=role)


def _convert_message(value: Any, transcript: Transcript) -> dict[str, Any]:
    """Convert a message of a span to the form of Chat Completions; a text or call that it holds twice is taken once."""
    members = nest_dotted_names(get_nested(value, "message"))
    parts = [_convert_part(part) for part in _list_numbered(members.get("contents"), transcript)]
    calls = [get_nested(call, "tool_call") for call in _list_numbered(members.get("tool_calls"), transcript)]
    content = members.get("content")
    if isinstance(content, str) and not any(part["type"] == "text" for part in parts):
        parts.append({"type": "text", "text": content})
    parts = [part for part in parts if not _is_listed_call(part, calls)]
    message = {
        "role": members.get("role", ""),
        "content": parts,
        "tool_calls": [_convert_call(call) for call in calls],
        "tool_call_id": members.get("tool_call_id"),
    }
    if members.get("function_call_name") is not None:
        message["function_call"] = members["function_call_name"]
    return message


def _convert_part(value: Any) -> dict[str, Any]:
    """Convert a part of a message to the form of Chat Completions."""
    members = nest_dotted_names(get_nested(value, "message_content"))
    return {"type": members.get("type", "text" if "text" in members else ""), "text": members.get("text"), **members}


def _is_listed_call(part: Mapping[str, Any], calls: Sequence[Any]) -> bool:
    """Return whether a part is a call that is also in the message's list of calls.

    A part with an id is, if a call there has the same id. One without an id is, if there are calls at all.
    """
    if part["type"] != "tool_use":
        return False
    tool_use = nest_dotted_names(part.get("tool_use"))
    ids = (part.get("id"), part.get("tool_use_id"), tool_use.get("id"))
    call_id = next((value for value in ids if value is not None), None)
    if call_id is None:
        return bool(calls)
    return any(nest_dotted_names(call).get("id") == call_id for call in calls)


def _convert_call(value: Any) -> dict[str, Any]:
    """Convert a call in a message to the form of Chat Completions."""
    members = nest_dotted_names(value)
    return {"id": members.get("id"), "function": nest_dotted_names(members.get("function"))}


def _list_numbered(value: Any, transcript: Transcript) -> list[Any]:
    """List members that are named by numbers, in the order of the numbers.

    The numbers need neither begin with 0 nor be without gaps. A member with another name is reported, and none is
    listed.
    """
    members = nest_dotted_names(value)
    if not all(name.isdecimal() and name.isascii() and len(name) < 10 for name in members):
        transcript.report("a list in a span has a member without a number")
        return []
    return [members[name] for name in sorted(members, key=int)]


def _read_tool(span: Span, attributes: Mapping[str, Any], agent: str | None) -> ToolRun:
    """Read the execution of a tool from its span; ``agent`` is the sub-agent that called it."""
    result, answered_id = open_tool_message(get_nested(attributes, "output", "value"))
    tool = attributes.get("tool")
    return ToolRun(
        span=span,
        agent=agent,
        tool=get_nested(tool, "name") or span.name,
        call_id=get_nested(attributes, "tool_call", "id") or get_nested(tool, "id"),
        arguments=get_nested(attributes, "input", "value"),
        result=result,
        answers=answered_id,
        failure=(flatten(span.message, 300) or "it failed") if span.failed else "",
    )


def _read_usage(value: Any) -> Usage | None:
    """Read the tokens of a request; ``None`` where those of the prompt or the completion are not known."""
    members = nest_dotted_names(value)
    prompt_tokens = _read_whole_number(members.get("prompt"))
    completion_tokens = _read_whole_number(members.get("completion"))
    if prompt_tokens is None or completion_tokens is None:
        return None
    cached = _read_whole_number(get_nested(members.get("prompt_details"), "cache_read")) or 0
    return Usage(
        input_tokens=prompt_tokens, output_tokens=completion_tokens, cached_tokens=min(cached, prompt_tokens), calls=0
    )


def _read_whole_number(value: Any) -> int | None:
    """Read a count, which in a frame with gaps is a float; ``None`` for any other value."""
    return read_count(int(value) if isinstance(value, float) and value.is_integer() else value)
