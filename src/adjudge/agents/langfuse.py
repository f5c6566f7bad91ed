"""Runs in traces of Langfuse: what its API and its page export, a trace with its observations or these by themselves.

Sources: the API's types in langfuse 5.0.4 (``ObservationV2``) and its description of ``TraceWithFullDetails``;
observations that the SDK recorded of a LangChain agent. An observation is read as the span that it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.agents.messages import read_messages
from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.spans import Span, check_single, read_moment
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
from adjudge.agents.transcript import Transcript, read_count, read_kind, read_number, read_text
from adjudge.formats.text import flatten
from adjudge.result import Usage


def is_langfuse(entry: dict[str, Any]) -> bool:
    """Return whether an object is a trace with its observations, a page of observations, or one observation."""
    observations = entry.get("observations", entry.get("data"))
    if isinstance(observations, list):
        return any(isinstance(member, dict) and _is_observation(member) for member in observations[:50])
    return _is_observation(entry)


def _is_observation(value: dict[str, Any]) -> bool:
    """Return whether an object is an observation of Langfuse."""
    return bool(read_kind(value)) and "startTime" in value and ("traceId" in value or "parentObservationId" in value)


def read_langfuse(document: Document) -> AgentRun:
    """Read the run of an agent from the observations of one trace."""
    transcript = Transcript("langfuse")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    trace_members = _open_trace(document.objects[0])
    observations = sorted(_list_observations(document, transcript), key=lambda span: span.start)
    trace_ids = {read_text(trace_members.get("id"))} if trace_members else set()
    check_single(document, (trace_ids | {span.trace for span in observations}) - {""})
    trace = Trace(spans=index_spans(observations, transcript))
    roots = [span for span in observations if span.parent is None]
    # The trace itself holds its observations. Without it, they are all there only if one observation holds the others.
    trace.root = find_root(trace.spans, transcript) if not trace_members or len(roots) == 1 else None
    output = trace_members.get("output")
    if output is None and trace.root:
        output = trace.root.attributes.get("output")
    trace.output = open_output(output)
    session_ids = [span.attributes.get("sessionId") for span in roots]
    trace.session = trace_members.get("sessionId") or next(filter(None, session_ids), None)
    agents = find_sub_agents(trace.spans, lambda span: read_kind(span.attributes), lambda span: span.name)
    for span in observations:
        kind = read_kind(span.attributes)
        if kind == "GENERATION":
            trace.requests.append(_read_request(span, agents[span.id]))
        elif kind == "TOOL":
            trace.tools.append(_read_tool(span, agents[span.id]))
    return read_trace(transcript, trace)


def _open_trace(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the members of the trace of an object that has observations; none for any other object.

    Langfuse's page exports them as ``trace`` beside the observations, its API has the observations among them.
    """
    if not isinstance(entry.get("observations"), list):
        return {}
    trace = entry.get("trace")
    return trace if isinstance(trace, dict) else entry


def _list_observations(document: Document, transcript: Transcript) -> list[Span]:
    """List the observations of an export as spans; report those that are missing or cannot be read."""
    spans: list[Span] = []
    for number, entry in zip(document.numbers, document.objects, strict=True):
        rows = entry.get("observations", entry.get("data"))
        if isinstance(rows, list) and "observations" in entry and len(document.objects) > 1:
            transcript.report(f"line {number} is another trace")
        for row in rows if isinstance(rows, list) else [entry]:
            if isinstance(row, dict) and _is_observation(row):
                spans.append(_read_observation(row))
            else:
                transcript.report(f"line {number} has an observation that cannot be read")
    pages = [entry["meta"] for entry in document.objects if isinstance(entry.get("meta"), dict) and "data" in entry]
    total = read_count(pages[-1].get("totalPages")) if pages else None
    if pages and (pages[-1].get("cursor") is not None or (total is not None and total > len(pages))):
        transcript.report("further observations are on a page that is not here")
    return spans


def _read_observation(row: dict[str, Any]) -> Span:
    """Read an observation as a span, with its whole row as attributes; one that is marked as the root has no parent."""
    parent = None if row.get("isRootObservation") is True else read_text(row.get("parentObservationId")) or None
    return Span(
        id=read_text(row.get("id")),
        parent=parent,
        trace=read_text(row.get("traceId")),
        name=read_text(row.get("name")),
        start=read_moment(row.get("startTime")),
        end=read_moment(row.get("endTime")),
        failed=row.get("level") == "ERROR",
        message=read_text(row.get("statusMessage")),
        attributes=row,
    )


def _read_request(span: Span, agent: str | None) -> ModelRequest:
    """Read an observation that is a request to a model; ``agent`` is the sub-agent that made it."""
    get_attribute = span.attributes.get
    return ModelRequest(
        span=span,
        agent=agent,
        inputs=read_messages(get_attribute("input"), role="user"),
        outputs=read_messages(get_attribute("output"), role="assistant"),
        usage=_read_usage(span.attributes),
        cost=_read_cost(span.attributes),
    )


def _read_tool(span: Span, agent: str | None) -> ToolRun:
    """Read an observation that is the execution of a tool; ``agent`` is the sub-agent that called it."""
    get_attribute, metadata = span.attributes.get, span.attributes.get("metadata")
    result, answered_id = open_tool_message(get_attribute("output"))
    return ToolRun(
        span=span,
        agent=agent,
        tool=span.name,
        call_id=metadata.get("tool_call_id") if isinstance(metadata, dict) else None,
        arguments=get_attribute("input"),
        result=result,
        answers=answered_id,
        failure=(flatten(span.message, 300) or "it failed") if span.failed else "",
    )


def _read_usage(row: Mapping[str, Any]) -> Usage | None:
    """Read the tokens of a request; Langfuse counts each kind of input or output, such as cached input, by itself."""
    details = row.get("usageDetails") or row.get("usage")
    counts = {name: read_count(count) for name, count in details.items()} if isinstance(details, dict) else {}
    known_counts = {name: count for name, count in counts.items() if count is not None}
    if "input" not in known_counts or "output" not in known_counts:
        return None
    input_counts = {name: count for name, count in known_counts.items() if name.startswith("input")}
    return Usage(
        input_tokens=sum(input_counts.values()),
        output_tokens=sum(count for name, count in known_counts.items() if name.startswith("output")),
        cached_tokens=sum(count for name, count in input_counts.items() if "cache" in name),
        calls=0,
    )


def _read_cost(row: Mapping[str, Any]) -> float | None:
    """Read the dollars that a request cost; ``None`` for 0, which Langfuse writes for a model without a known price."""
    details = row.get("costDetails")
    costs = (
        details.get("total") if isinstance(details, dict) else None,
        row.get("totalCost"),
        row.get("calculatedTotalCost"),
    )
    return next((cost for cost in map(read_number, costs) if cost), None)
