"""Runs in spans of OpenTelemetry's conventions for generative AI.

Sources: "Semantic conventions for generative AI" (``gen_ai.*``), and spans recorded from pydantic-ai 2.68. Messages,
arguments and results are exported only if somebody switched that on; what was not exported is a problem of the run, and
never "no tool was called".
"""

from __future__ import annotations

from typing import Any

from adjudge.agents.messages import open_json, read_messages
from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.spans import Span, is_span, list_spans
from adjudge.agents.trace import ModelRequest, ToolRun, Trace, find_holders, index_spans, read_trace
from adjudge.agents.transcript import Transcript, read_count, read_name, read_text
from adjudge.result import Usage

_CHATS = frozenset({"chat", "generate_content", "text_completion"})

_CUT_OFF = frozenset({"length", "content_filter", "error"})

is_otel = is_span


def read_otel(document: Document) -> AgentRun:
    """Read a run from the spans of one trace."""
    transcript = Transcript("otel")
    listed = list_spans(document, transcript)
    trace = Trace(spans=index_spans(listed, transcript))
    agents = find_holders(trace.spans, lambda span: _name_operation(span) == "invoke_agent")
    roots = [span for span in listed if _name_operation(span) == "invoke_agent" and agents[span.id] is None]
    trace.root = roots[0] if roots else None
    if len(roots) > 1:  # else the words of all but the first would be left out as those of sub-agents
        transcript.report("several agents are held by none, so they are not those of one run")
    trace.output = None if trace.root is None else open_json(trace.root.attributes.get("final_result"))
    trace.session = next(filter(None, (span.attributes.get("gen_ai.conversation.id") for span in listed)), None)
    for span in listed:
        holder = agents[span.id]
        is_own = holder is None or holder is trace.root
        agent = None if is_own else _name_agent(holder)
        if _name_operation(span) in _CHATS:
            trace.requests.append(_read_chat(span, agent))
        elif _name_operation(span) == "execute_tool":
            trace.tools.append(_read_tool(span, agent))
    return read_trace(transcript, trace)


def _name_operation(span: Span) -> str:
    operation = span.attributes.get("gen_ai.operation.name")
    return operation if isinstance(operation, str) else ""


def _name_agent(span: Span | None) -> str:
    return (None if span is None else read_name(span.attributes.get("gen_ai.agent.name"))) or "sub-agent"


def _read_chat(span: Span, agent: str | None) -> ModelRequest:
    read = span.attributes.get
    reasons = read("gen_ai.response.finish_reasons")
    return ModelRequest(
        span=span,
        agent=agent,
        inputs=read_messages(read("gen_ai.input.messages"), role="user"),
        outputs=read_messages(read("gen_ai.output.messages"), role="assistant"),
        usage=_read_usage(span),
        cut_off=isinstance(reasons, list) and any(reason in _CUT_OFF for reason in reasons if isinstance(reason, str)),
    )


def _read_tool(span: Span, agent: str | None) -> ToolRun:
    """Read the execution of a tool."""
    read = span.attributes.get
    result, kind = read("gen_ai.tool.call.result"), read_name(read("error.type"))
    return ToolRun(
        span=span,
        agent=agent,
        tool=read("gen_ai.tool.name"),
        call_id=read("gen_ai.tool.call.id"),
        arguments=read("gen_ai.tool.call.arguments"),
        result=None if result is None else read_text(result),
        failure=(kind or "it failed") if span.failed or kind is not None else "",
    )


def _read_usage(span: Span) -> Usage | None:
    counts: list[Any] = [read_count(span.attributes.get(f"gen_ai.usage.{name}_tokens")) for name in ("input", "output")]
    if None in counts:
        return None
    return Usage(input_tokens=counts[0], output_tokens=counts[1], calls=0)
