"""Runs in spans of OpenTelemetry's conventions for generative AI: OTLP as JSON, or as the SDK of Python writes spans.

Sources: "Semantic conventions for generative AI" (``gen_ai.*``), OTLP's JSON encoding, and spans recorded from
pydantic-ai 2.68. Messages, arguments and results are exported only if somebody switched that on; what was not exported
is a problem of the run, and never "no tool was called".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.step import Role
from adjudge.agents.transcript import Transcript, read_arguments, read_count, read_kind, read_name, read_text
from adjudge.errors import UsageError
from adjudge.formats.json import read_json
from adjudge.result import Usage

_CHATS = frozenset({"chat", "generate_content", "text_completion"})

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    id: str
    parent: str | None
    trace: str
    start: int
    """Nanoseconds since 1970, as the span's end is."""
    end: int
    failed: bool
    attributes: Mapping[str, Any]

    @property
    def operation(self) -> str:
        return str(self.attributes.get("gen_ai.operation.name", ""))

    @property
    def duration_ms(self) -> float | None:
        return (self.end - self.start) / 1e6 if self.start and self.end >= self.start else None


def is_otel(entry: dict[str, Any]) -> bool:
    """Return whether an object is a span of the SDK, or holds spans of OTLP."""
    if isinstance(entry.get("resourceSpans"), list):
        return True
    return isinstance(entry.get("attributes"), dict) and isinstance(entry.get("context"), dict)


def read_otel(document: Document) -> AgentRun:
    """Read a run from the spans of one trace."""
    transcript = Transcript("otel")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    spans = sorted(_list_spans(document, transcript), key=lambda span: span.start)
    traces = {span.trace for span in spans}
    if len(traces) > 1:
        raise UsageError(
            f"{document.name} holds {len(traces)} traces; hand in the spans of one, which are one run",
            argument="source",
        )
    return _Reader(transcript, spans).make_run()


class _Reader:
    def __init__(self, transcript: Transcript, spans: list[_Span]) -> None:
        self.transcript = transcript
        self.spans = {span.id: span for span in spans}
        if len(self.spans) != len(spans):
            transcript.report("a span stands there twice")
        self.chats = [span for span in spans if span.operation in _CHATS]
        self.tools = [span for span in spans if span.operation == "execute_tool"]
        self.agents = [span for span in spans if span.operation == "invoke_agent"]
        self.root = next((span for span in self.agents if self._find_agent(span) is None), None)

    def make_run(self) -> AgentRun:
        self._check_spans()
        for chat in self.chats:
            self._read_chat(chat)
        for tool in self.tools:
            self._read_tool(tool)
        answer = self._find_answer()
        if answer is None:
            self.transcript.report("it ends before the agent's last word, or that was not exported")
        failed = self.root.failed if self.root is not None else any(span.failed for span in self.chats)
        return self.transcript.make_run(
            answer=answer,
            outcome="failed" if failed or answer is None else "finished",
            usage=self._add_usage(),
            duration_ms=self.root.duration_ms if self.root is not None else None,
            unknown=("files",) if self.tools or not self.transcript.steps else ("files", "failures"),
            metadata={"session": read_name(self._find_session())},
        )

    def _check_spans(self) -> None:
        if not self.chats:
            self.transcript.report("no requests to a model were exported, so nobody knows which tools were called")
        for span in (*self.chats, *self.tools, *self.agents):
            if span.parent is not None and span.parent not in self.spans:
                self.transcript.report("a span that holds others is missing, so the trace is not whole")

    def _find_agent(self, span: _Span) -> _Span | None:
        """Find the agent's span that another is in; in a loop of spans there is none."""
        seen: set[str] = set()
        parent = span.parent
        while parent is not None and parent not in seen:
            seen.add(parent)
            outer = self.spans.get(parent)
            if outer is None:
                return None
            if outer.operation == "invoke_agent":
                return outer
            parent = outer.parent
        return None

    def _name_agent(self, span: _Span) -> str | None:
        """Name the sub-agent that a span is of; the agent that holds the others has no name here."""
        agent = self._find_agent(span)
        if agent is None or agent is self.root:
            return None
        return read_name(agent.attributes.get("gen_ai.agent.name")) or "sub-agent"

    def _read_chat(self, chat: _Span) -> None:
        agent = self._name_agent(chat)
        inputs, outputs = (
            _read_messages(chat.attributes.get(f"gen_ai.{name}.messages")) for name in ("input", "output")
        )
        if inputs is None or outputs is None:
            self.transcript.report("the messages of a request to a model were not exported")
        is_first = agent is None and not self.transcript.steps
        for message in inputs or []:
            self._read_message(message, agent, is_first=is_first)
        for message in outputs or []:
            for part in message["parts"]:
                self._read_own_part(part, agent, reply=chat.id)

    def _read_message(self, message: dict[str, Any], agent: str | None, *, is_first: bool) -> None:
        """Read a message that the model was sent: what it repeats is known, except for results and what came first."""
        role = _ROLES.get(read_kind(message, "role"), "system")
        for part in message["parts"]:
            if part.get("type") == "tool_call_response":
                self._read_response(part)
            elif is_first and role == "assistant":
                self._read_own_part(part, agent, reply=None)
            elif is_first and part.get("type") == "text":
                self.transcript.add_text(role, read_text(part.get("content")))

    def _read_response(self, part: dict[str, Any]) -> None:
        call_id = part.get("id")
        # A request repeats the whole conversation, with every result in it.
        if not self.transcript.has_result(call_id):
            result = part["response"] if "response" in part else part.get("result")
            self.transcript.add_result(call_id, read_text(result))

    def _read_own_part(self, part: dict[str, Any], agent: str | None, reply: str | None) -> None:
        kind = part.get("type")
        if kind == "text" and agent is None:
            self.transcript.add_text("assistant", read_text(part.get("content")), reply=reply)
        elif kind == "tool_call":
            arguments = read_arguments(part.get("arguments"))
            self.transcript.add_call(part.get("name"), arguments, part.get("id"), agent=agent, reply=reply)

    def _read_tool(self, span: _Span) -> None:
        """Read what was executed: it says how a call went, and of a call that no message has, that it was made."""
        call_id = span.attributes.get("gen_ai.tool.call.id")
        result = span.attributes.get("gen_ai.tool.call.result")
        if not self.transcript.has_call(call_id):
            self.transcript.report("a tool was executed that no message of the agent calls")
            arguments = span.attributes.get("gen_ai.tool.call.arguments")
            if arguments is None:
                self.transcript.report("the arguments of a call were not exported")
            tool = span.attributes.get("gen_ai.tool.name")
            self.transcript.add_call(tool, read_arguments(arguments), call_id, agent=self._name_agent(span))
        if not isinstance(call_id, str) or not self.transcript.has_call(call_id):
            return
        if result is not None and not self.transcript.has_result(call_id):
            self.transcript.add_result(call_id, read_text(result))
        kind = read_name(span.attributes.get("error.type"))
        failed = span.failed or kind is not None
        self.transcript.note_failure(call_id, (kind or "it failed") if failed else "", span.duration_ms)

    def _find_answer(self) -> str | None:
        """Find the agent's last word: the text of its last request's output, if that called nothing."""
        chats = [chat for chat in self.chats if self._name_agent(chat) is None]
        outputs = _read_messages(chats[-1].attributes.get("gen_ai.output.messages")) if chats else None
        parts = [part for message in outputs or [] for part in message["parts"]]
        if any(part.get("type") == "tool_call" for part in parts):
            return None
        return "".join(read_text(part.get("content")) for part in parts if part.get("type") == "text") or None

    def _add_usage(self) -> Usage | None:
        total: Usage | None = None
        for chat in self.chats:
            counts = [read_count(chat.attributes.get(f"gen_ai.usage.{name}_tokens")) for name in ("input", "output")]
            if counts[0] is not None and counts[1] is not None:
                usage = Usage(input_tokens=counts[0], output_tokens=counts[1])
                total = usage if total is None else total + usage
        return total

    def _find_session(self) -> Any:
        sessions = [span.attributes.get("gen_ai.conversation.id") for span in self.spans.values()]
        return next((session for session in sessions if session), None)


def _read_messages(value: Any) -> list[dict[str, Any]] | None:
    """Read the messages of an attribute, a value or its JSON; ``None`` where there are none that can be read."""
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError:
            return None
    if not isinstance(value, list):
        return None
    is_good = all(
        isinstance(message, dict)
        and isinstance(message.get("parts"), list)
        and all(isinstance(part, dict) for part in message["parts"])
        for message in value
    )
    return value if is_good else None


def _list_spans(document: Document, transcript: Transcript) -> Iterator[_Span]:
    for number, entry in zip(document.numbers, document.objects, strict=True):
        if not is_otel(entry):
            transcript.report(f"line {number} is no span")
        elif "resourceSpans" in entry:
            yield from _list_otlp(entry, transcript)
        else:
            yield _read_sdk_span(entry)


def _list_otlp(entry: dict[str, Any], transcript: Transcript) -> Iterator[_Span]:
    for resource in entry["resourceSpans"]:
        scopes = resource.get("scopeSpans") if isinstance(resource, dict) else None
        for scope in scopes if isinstance(scopes, list) else []:
            spans = scope.get("spans") if isinstance(scope, dict) else None
            for span in spans if isinstance(spans, list) else []:
                if isinstance(span, dict):
                    yield _read_otlp_span(span)
                else:
                    transcript.report("a span cannot be read")


def _read_otlp_span(span: dict[str, Any]) -> _Span:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return _Span(
        id=read_text(span.get("spanId")),
        parent=read_text(span.get("parentSpanId")) or None,
        trace=read_text(span.get("traceId")),
        start=_read_nanoseconds(span.get("startTimeUnixNano")),
        end=_read_nanoseconds(span.get("endTimeUnixNano")),
        failed=code in (2, "STATUS_CODE_ERROR"),
        attributes=_read_pairs(span.get("attributes")),
    )


def _read_sdk_span(span: dict[str, Any]) -> _Span:
    context, status = span["context"], span.get("status")
    return _Span(
        id=read_text(context.get("span_id")),
        parent=read_text(span.get("parent_id")) or None,
        trace=read_text(context.get("trace_id")),
        start=_read_moment(span.get("start_time")),
        end=_read_moment(span.get("end_time")),
        failed=isinstance(status, dict) and status.get("status_code") == "ERROR",
        attributes=span["attributes"],
    )


def _read_pairs(pairs: Any) -> dict[str, Any]:
    return {
        pair["key"]: _read_value(pair.get("value"))
        for pair in (pairs if isinstance(pairs, list) else [])
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _read_value(value: Any) -> Any:
    """Read a value of OTLP, which is wrapped in a member that names its type."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "intValue":
        return int(inner) if isinstance(inner, str) and inner.lstrip("-").isdigit() and len(inner) < 20 else inner
    if kind == "arrayValue":
        members = inner.get("values") if isinstance(inner, dict) else None
        return [_read_value(member) for member in members] if isinstance(members, list) else []
    if kind == "kvlistValue":
        return _read_pairs(inner.get("values") if isinstance(inner, dict) else None)
    return inner


def _read_nanoseconds(value: Any) -> int:
    text = str(value)
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else 0


def _read_moment(value: Any) -> int:
    try:
        moment = datetime.fromisoformat(value)
        return round(moment.timestamp() * 1e9)
    except (TypeError, ValueError, OverflowError, OSError):
        return 0
