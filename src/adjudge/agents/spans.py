"""Spans of OpenTelemetry, whatever their conventions: OTLP as JSON, as Python's SDK writes them, and as Phoenix does.

Sources: OTLP's JSON encoding; ``ReadableSpan.to_json`` of opentelemetry-sdk 1.45.2; spans, frames and pages of
arize-phoenix 20.26.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.agents.source import Document
from adjudge.agents.transcript import Transcript, read_text
from adjudge.errors import UsageError
from adjudge.formats.observability_rows import find_members, read_time

KIND = "openinference.span.kind"
"""The attribute that only spans of OpenInference have. Phoenix writes it beside the attributes as well."""

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that took its time in a trace: a request, a call of a tool, an agent's work, or anything else."""

    id: str
    parent: str | None
    trace: str
    name: str
    start: int
    """Nanoseconds since 1970, as ``end`` is; 0 where it is not known, as of a span that has not ended."""
    end: int
    failed: bool
    message: str = ""
    """The reason for which it failed, where there is one."""
    attributes: Mapping[str, Any]

    @property
    def duration_ms(self) -> float | None:
        """The milliseconds between begin and end; ``None`` where these are not known."""
        return (self.end - self.start) / 1e6 if self.start and self.end >= self.start else None


def is_span(entry: dict[str, Any]) -> bool:
    """Return whether an object is a span of the SDK or of Phoenix, or holds spans."""
    if isinstance(entry.get("resourceSpans"), list) or _is_page(entry):
        return True
    return "context.span_id" in entry or (
        isinstance(entry.get("attributes"), dict) and isinstance(entry.get("context"), dict)
    )


def _is_page(entry: dict[str, Any]) -> bool:
    """Return whether an object is a page of spans, as the API of Phoenix returns them."""
    rows = entry.get("data")
    first = rows[0] if isinstance(rows, list) and rows else None
    return isinstance(first, dict) and "data" not in first and is_span(first)


def list_spans(document: Document, transcript: Transcript) -> list[Span]:
    """List the spans of one trace in the order in which they began. Raises ``UsageError`` for several traces."""
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    spans = sorted(_iterate_document(document, transcript), key=lambda span: span.start)
    check_single(document, {span.trace for span in spans})
    return spans


def check_single(document: Document, traces: set[str]) -> None:
    """Raise ``UsageError`` for a document with more than one trace."""
    if len(traces) > 1:
        raise UsageError(
            f"{document.name} holds {len(traces)} traces; hand in the spans of one, which are one run",
            argument="source",
        )


def iterate_spans(entry: dict[str, Any], transcript: Transcript) -> Iterator[Span]:
    """Yield the spans in an object, which is a span, an export as OTLP, or a page of Phoenix."""
    if "resourceSpans" in entry:
        yield from _iterate_otlp(entry, transcript)
    elif _is_page(entry):
        if entry.get("next_cursor") is not None:
            transcript.report("further spans are on a page that is not here")
        for row in entry["data"]:
            if isinstance(row, dict) and is_span(row):
                yield _read_sdk_span(row)
            else:
                transcript.report("a span cannot be read")
    else:
        yield _read_sdk_span(entry)


def _iterate_document(document: Document, transcript: Transcript) -> Iterator[Span]:
    """Yield all spans of a document; report objects that are none."""
    for number, entry in zip(document.numbers, document.objects, strict=True):
        if is_span(entry):
            yield from iterate_spans(entry, transcript)
        else:
            transcript.report(f"line {number} is no span")


def _iterate_otlp(entry: dict[str, Any], transcript: Transcript) -> Iterator[Span]:
    """Yield the spans of an export as OTLP; report what cannot be read, and attributes that were dropped."""
    resources = entry["resourceSpans"]
    for resource in resources if isinstance(resources, list) else []:
        scopes = resource.get("scopeSpans") if isinstance(resource, dict) else None
        for scope in scopes if isinstance(scopes, list) else []:
            spans = scope.get("spans") if isinstance(scope, dict) else None
            for span in spans if isinstance(spans, list) else []:
                if not isinstance(span, dict):
                    transcript.report("a span cannot be read")
                    continue
                if span.get("droppedAttributesCount"):
                    transcript.report("attributes of a span were dropped before it was exported")
                yield _read_otlp_span(span)


def _read_otlp_span(span: dict[str, Any]) -> Span:
    """Read a span as OTLP writes it."""
    status = span.get("status")
    status = status if isinstance(status, dict) else {}
    return Span(
        id=read_text(span.get("spanId")),
        parent=read_text(span.get("parentSpanId")) or None,
        trace=read_text(span.get("traceId")),
        name=read_text(span.get("name")),
        start=_read_nanoseconds(span.get("startTimeUnixNano")),
        end=_read_nanoseconds(span.get("endTimeUnixNano")),
        failed=status.get("code") in (2, "STATUS_CODE_ERROR"),
        message=read_text(status.get("message")),
        attributes=_read_otlp_attributes(span.get("attributes")),
    )


def _read_sdk_span(row: dict[str, Any]) -> Span:
    """Read a span as the SDK of Python writes it, or Phoenix, which writes its kind and status beside the rest."""
    context, status = find_members(row, "context", "."), row.get("status")
    status = status if isinstance(status, dict) else {}
    attributes = find_members(row, "attributes", ".")
    kind = row.get("span_kind")
    return Span(
        id=read_text(context.get("span_id")),
        parent=read_text(row.get("parent_id")) or None,
        trace=read_text(context.get("trace_id")),
        name=read_text(row.get("name")),
        start=read_moment(row.get("start_time")),
        end=read_moment(row.get("end_time")),
        failed="ERROR" in (status.get("status_code"), row.get("status_code")),
        message=read_text(status.get("description") or row.get("status_message")),
        attributes={KIND: kind, **attributes} if isinstance(kind, str) else attributes,
    )


def _read_otlp_attributes(pairs: Any) -> dict[str, Any]:
    """Read attributes as OTLP writes them: a list of pairs of a key and a value."""
    return {
        pair["key"]: _read_otlp_value(pair.get("value"))
        for pair in (pairs if isinstance(pairs, list) else [])
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _read_otlp_value(value: Any) -> Any:
    """Read a value as OTLP writes it: in an object whose only member names its type, such as ``intValue``."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "intValue":
        return int(inner) if isinstance(inner, str) and _WHOLE_NUMBER.fullmatch(inner) else inner
    if kind == "arrayValue":
        members = inner.get("values") if isinstance(inner, dict) else None
        return [_read_otlp_value(member) for member in members] if isinstance(members, list) else []
    if kind == "kvlistValue":
        return _read_otlp_attributes(inner.get("values") if isinstance(inner, dict) else None)
    return inner


def _read_nanoseconds(value: Any) -> int:
    """Read a time as OTLP writes it, in nanoseconds since 1970; 0 for a value that is none."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**63 else 0


def read_moment(value: Any) -> int:
    """Read a time, and return it in nanoseconds since 1970; 0 for a value that is none."""
    moment = read_time(value)
    try:
        return 0 if moment is None else max(0, round(moment.timestamp() * 1e9))
    except (OverflowError, OSError, ValueError):
        return 0
