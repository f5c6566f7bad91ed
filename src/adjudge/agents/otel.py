"""Runs in spans of OpenTelemetry's conventions for generative AI.

Sources: "Semantic conventions for generative AI" (``gen_ai.*``), and spans recorded from pydantic-ai 2.68. Messages,
arguments and results are exported only if somebody switched that on; what was not exported is a problem of the run, and
never "no tool was called".
"""

from __future__ import annotations

from adjudge.agents.messages import open_json, read_messages
from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.spans import Span, is_span, list_spans
from adjudge.agents.trace import ModelRequest, ToolRun, Trace, find_enclosing_spans, index_spans, read_trace
from adjudge.agents.transcript import Transcript, read_count, read_name, read_text
from adjudge.result import Usage

_CHAT_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"})

_CUT_OFF_REASONS = frozenset({"length", "content_filter", "error"})

is_otel = is_span


def read_otel(document: Document) -> AgentRun:
    """Read the run of an agent from the spans of one trace."""
    transcript = Transcript("otel")
    spans = list_spans(document, transcript)
    trace = Trace(spans=index_spans(spans, transcript))
    agent_spans = find_enclosing_spans(trace.spans, lambda span: _get_operation(span) == "invoke_agent")
    roots = [span for span in spans if _get_operation(span) == "invoke_agent" and agent_spans[span.id] is None]
    trace.root = roots[0] if roots else None
    if len(roots) > 1:  # the words of all agents but the first are left out below, as those of sub-agents
        transcript.report("several agents are held by none, so they are not those of one run")
    trace.output = None if trace.root is None else open_json(trace.root.attributes.get("final_result"))
    trace.session = next(filter(None, (span.attributes.get("gen_ai.conversation.id") for span in spans)), None)
    for span in spans:
        agent_span = agent_spans[span.id]
        is_of_main_agent = agent_span is None or agent_span is trace.root
        agent = None if is_of_main_agent else _get_agent_name(agent_span)
        if _get_operation(span) in _CHAT_OPERATIONS:
            trace.requests.append(_read_chat(span, agent))
        elif _get_operation(span) == "execute_tool":
            trace.tools.append(_read_tool(span, agent))
    return read_trace(transcript, trace)


def _get_operation(span: Span) -> str:
    """Return the operation of a span, such as ``chat`` or ``execute_tool``; empty if it names none."""
    operation = span.attributes.get("gen_ai.operation.name")
    return operation if isinstance(operation, str) else ""


def _get_agent_name(span: Span | None) -> str:
    """Return the name of the agent whose span this is; ``sub-agent`` if it has none."""
    return (None if span is None else read_name(span.attributes.get("gen_ai.agent.name"))) or "sub-agent"


def _read_chat(span: Span, agent: str | None) -> ModelRequest:
    """Read a request to a model from its span; ``agent`` is the sub-agent that made it."""
    get_attribute = span.attributes.get
    reasons = get_attribute("gen_ai.response.finish_reasons")
    return ModelRequest(
        span=span,
        agent=agent,
        inputs=read_messages(get_attribute("gen_ai.input.messages"), role="user"),
        outputs=read_messages(get_attribute("gen_ai.output.messages"), role="assistant"),
        usage=_read_usage(span),
        cut_off=isinstance(reasons, list)
        and any(reason in _CUT_OFF_REASONS for reason in reasons if isinstance(reason, str)),
    )


def _read_tool(span: Span, agent: str | None) -> ToolRun:
    """Read the execution of a tool from its span; ``agent`` is the sub-agent that called it."""
    get_attribute = span.attributes.get
    result, error_type = get_attribute("gen_ai.tool.call.result"), read_name(get_attribute("error.type"))
    return ToolRun(
        span=span,
        agent=agent,
        tool=get_attribute("gen_ai.tool.name"),
        call_id=get_attribute("gen_ai.tool.call.id"),
        arguments=get_attribute("gen_ai.tool.call.arguments"),
        result=None if result is None else read_text(result),
        failure=(error_type or "it failed") if span.failed or error_type is not None else "",
    )


def _read_usage(span: Span) -> Usage | None:
    """Read the tokens of a request; ``None`` where those of its input or output are not known."""
    input_tokens = read_count(span.attributes.get("gen_ai.usage.input_tokens"))
    output_tokens = read_count(span.attributes.get("gen_ai.usage.output_tokens"))
    if input_tokens is None or output_tokens is None:
        return None
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, calls=0)
