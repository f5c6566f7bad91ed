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

_CUT_OFF = frozenset({"length", "max_tokens", "content_filter"})


def is_openinference(entry: dict[str, Any]) -> bool:
    """Return whether an object is a span that OpenInference gives a kind, or holds one."""
    return is_span(entry) and any(_name_kind(span) for span in iterate_spans(entry, Transcript("")))


def read_openinference(document: Document) -> AgentRun:
    """Read a run from the spans of one trace."""
    transcript = Transcript("openinference")
    listed = list_spans(document, transcript)
    trace = Trace(spans=index_spans(listed, transcript))
    trace.root = find_root(trace.spans, transcript)
    agents = find_sub_agents(trace.spans, _name_kind, lambda span: pick(span.attributes, "agent", "name") or span.name)
    for span in listed:
        kind, agent = _name_kind(span), agents[span.id]
        if kind not in ("LLM", "TOOL") and span is not trace.root:
            continue
        attributes = nest_dotted_names(span.attributes)
        trace.session = trace.session or pick(attributes, "session", "id")
        if kind == "LLM":
            trace.requests.append(_read_request(span, attributes, agent, transcript))
        elif kind == "TOOL" and not _is_handoff(span, attributes):
            trace.tools.append(_read_tool(span, attributes, agent))
        if span is trace.root:
            trace.output = open_output(pick(attributes, "output", "value"))
    return read_trace(transcript, trace)


def nest_dotted_names(value: Any) -> dict[str, Any]:
    """Open an object or a list one level deep: names with dots are put together by what stands before the first."""
    if isinstance(value, list):
        return {str(place): member for place, member in enumerate(value)}
    members: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for name, member in value.items() if isinstance(value, Mapping) else ():
        head, dot, rest = name.partition(".")
        if not dot:
            members[head] = member
        elif member is not None:  # a frame has every column in every row
            below.setdefault(head, {})[rest] = member
    for head, group in below.items():
        whole = members.get(head)
        members[head] = {**whole, **group} if isinstance(whole, dict) else group
    return members


def pick(value: Any, *names: str) -> Any:
    """Return the value at some names, one in the other; ``None`` where there is nothing."""
    for name in names:
        value = nest_dotted_names(value).get(name)
    return value


def _name_kind(span: Span) -> str:
    kind = span.attributes.get(KIND)
    kind = pick(span.attributes.get("openinference"), "span", "kind") if kind is None else kind
    return kind if isinstance(kind, str) else ""


def _is_handoff(span: Span, attributes: Mapping[str, Any]) -> bool:
    """Return whether a span of a tool stands for a handoff, whose call and result are in the messages alone."""
    return pick(attributes, "tool", "name") is None and span.name.startswith("handoff to ")


def _read_request(span: Span, attributes: Mapping[str, Any], agent: str | None, transcript: Transcript) -> ModelRequest:
    made = attributes.get("llm")
    members = nest_dotted_names(made)
    return ModelRequest(
        span=span,
        agent=agent,
        inputs=_read_messages(members.get("input_messages"), "user", transcript),
        outputs=_read_messages(members.get("output_messages"), "assistant", transcript),
        usage=_read_usage(members.get("token_count")),
        cost=read_number(pick(members.get("cost"), "total")),
        cut_off=members.get("finish_reason") in _CUT_OFF if isinstance(members.get("finish_reason"), str) else False,
    )


def _read_messages(value: Any, role: str, transcript: Transcript) -> tuple[Message, ...] | None:
    opened = [_open_message(member, transcript) for member in _list_numbered(value, transcript)]
    return read_messages(opened, role=role)


def _open_message(value: Any, transcript: Transcript) -> dict[str, Any]:
    """Return a message in the form of Chat Completions; a text that it holds twice is read once."""
    members = nest_dotted_names(pick(value, "message"))
    parts = [_open_part(part) for part in _list_numbered(members.get("contents"), transcript)]
    calls = [pick(call, "tool_call") for call in _list_numbered(members.get("tool_calls"), transcript)]
    content = members.get("content")
    if isinstance(content, str) and not any(part["type"] == "text" for part in parts):
        parts.append({"type": "text", "text": content})
    parts = [part for part in parts if not _stands_among(part, calls)]
    message = {
        "role": members.get("role", ""),
        "content": parts,
        "tool_calls": [_open_call(call) for call in calls],
        "tool_call_id": members.get("tool_call_id"),
    }
    if members.get("function_call_name") is not None:
        message["function_call"] = members["function_call_name"]
    return message


def _open_part(value: Any) -> dict[str, Any]:
    members = nest_dotted_names(pick(value, "message_content"))
    return {"type": members.get("type", "text" if "text" in members else ""), "text": members.get("text"), **members}


def _stands_among(part: Mapping[str, Any], calls: Sequence[Any]) -> bool:
    """Return whether a part is a call that the message has among its calls too; one with another id is none of them."""
    if part["type"] != "tool_use":
        return False
    made = nest_dotted_names(part.get("tool_use"))
    name = next((one for one in (part.get("id"), part.get("tool_use_id"), made.get("id")) if one is not None), None)
    return bool(calls) if name is None else any(nest_dotted_names(call).get("id") == name for call in calls)


def _open_call(value: Any) -> dict[str, Any]:
    members = nest_dotted_names(value)
    return {"id": members.get("id"), "function": nest_dotted_names(members.get("function"))}


def _list_numbered(value: Any, transcript: Transcript) -> list[Any]:
    """List what is numbered, in order; the numbers need neither begin with 0 nor be without gaps."""
    members = nest_dotted_names(value)
    if not all(name.isdecimal() and name.isascii() and len(name) < 10 for name in members):
        transcript.report("a list in a span has a member without a number")
        return []
    return [members[name] for name in sorted(members, key=int)]


def _read_tool(span: Span, attributes: Mapping[str, Any], agent: str | None) -> ToolRun:
    result, answers = open_tool_message(pick(attributes, "output", "value"))
    tool = attributes.get("tool")
    return ToolRun(
        span=span,
        agent=agent,
        tool=pick(tool, "name") or span.name,
        call_id=pick(attributes, "tool_call", "id") or pick(tool, "id"),
        arguments=pick(attributes, "input", "value"),
        result=result,
        answers=answers,
        failure=(flatten(span.message, 300) or "it failed") if span.failed else "",
    )


def _read_usage(value: Any) -> Usage | None:
    members = nest_dotted_names(value)
    tokens = [_read_whole(members.get(name)) for name in ("prompt", "completion")]
    if tokens[0] is None or tokens[1] is None:
        return None
    cached = _read_whole(pick(members.get("prompt_details"), "cache_read")) or 0
    return Usage(input_tokens=tokens[0], output_tokens=tokens[1], cached_tokens=min(cached, tokens[0]), calls=0)


def _read_whole(value: Any) -> int | None:
    """Read a count; in a frame with gaps it is a fraction."""
    return read_count(int(value) if isinstance(value, float) and value.is_integer() else value)
