"""A scripted model: a server on 127.0.0.1 with which a coding agent can be tried without network, key or cost.

It implements as much of Anthropic's Messages and OpenAI's Responses as Claude Code and Codex need, and answers each
request with the next step of a script.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

LARGEST_REQUEST = 50_000_000
"""The most bytes of a request that are read; the rest of a longer one is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A call of a tool that the model makes."""

    tool: str
    arguments: Mapping[str, Any]
    call_id: str
    namespace: str | None = None
    """The namespace that Codex gives to a tool of an MCP server."""
    is_text: bool = False
    """True for a tool of Codex that takes a text and no JSON, which is the argument ``input``."""


Step = Sequence[ScriptedCall] | str
"""One answer of the model: calls of tools, or a text that ends the turn."""

ScriptedStep = Step | Callable[[dict[str, Any]], Step]
"""A step, or a function that makes a step from the body of the request."""


@dataclass(slots=True)
class Script:
    """The steps that are not used yet, and the requests that got the others."""

    steps: list[ScriptedStep]
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the requests that offered the model tools, in the order in which they came."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, body: dict[str, Any]) -> Step:
        """Record a request, and return the next step for it."""
        with self.lock:
            self.requests.append(body)
            step = self.steps.pop(0) if self.steps else "The script is over."
        return step(body) if callable(step) else step


class ScriptedModel:
    """A server with a script; a context manager that closes it."""

    def __init__(self, steps: Iterable[ScriptedStep]) -> None:
        self.script = Script(list(steps))
        handler = type("ScriptedHandler", (_Handler,), {"script": self.script})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="adjudge-scripted-model", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests so far that offered the model tools."""
        return self.script.requests

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        pass

    def do_HEAD(self) -> None:
        self._send_json({})

    def do_GET(self) -> None:
        self._send_json({"data": [], "models": []}, status=404)

    def do_POST(self) -> None:
        """Answer a request as the provider would, with the next step of the script."""
        raw = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), LARGEST_REQUEST))
        body: dict[str, Any] = {}
        with suppress(ValueError):
            parsed = json.loads(raw)
            body = parsed if isinstance(parsed, dict) else {}
        if self.path.endswith("/responses"):
            self._send_events(write_responses(self.script.take(body)))
        elif "count_tokens" in self.path:
            self._send_json({"input_tokens": 10})
        elif self.path.startswith("/v1/messages"):
            # A request without tools asks for a title or the like, and uses no step of the script.
            step = self.script.take(body) if body.get("tools") else "title"
            if body.get("stream"):
                self._send_events(write_messages(step))
            else:
                self._send_json(_make_message(step))
        else:
            self._send_json({}, status=404)

    def _send_json(self, document: object, *, status: int = 200) -> None:
        """Send a document as JSON."""
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Send events as an event stream, and close the connection to mark its end."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True


def write_messages(step: Step) -> list[dict[str, Any]]:
    """Write a step as the events of Anthropic's Messages."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**_make_message(step), "content": []}}]
    for index, block in enumerate(_make_content_blocks(step)):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": _get_stop_reason(step), "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]


def _make_message(step: Step) -> dict[str, Any]:
    """Make the whole reply that Anthropic's Messages would give for a step."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": _make_content_blocks(step),
        "stop_reason": _get_stop_reason(step),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _make_content_blocks(step: Step) -> list[dict[str, Any]]:
    """Make the content blocks of Anthropic's Messages for a step."""
    if isinstance(step, str):
        return [{"type": "text", "text": step}]
    return [{"type": "tool_use", "id": call.call_id, "name": call.tool, "input": dict(call.arguments)} for call in step]


def _get_stop_reason(step: Step) -> str:
    """Return the stop reason of Anthropic's Messages for a step."""
    return "end_turn" if isinstance(step, str) else "tool_use"


def write_responses(step: Step) -> list[dict[str, Any]]:
    """Write a step as the events of OpenAI's Responses."""
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    items = [_make_text_item(step)] if isinstance(step, str) else [_make_call_item(call) for call in step]
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    events = [{"type": "response.created", "response": response}]
    for index, item in enumerate(items):
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": item},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    completed = {**response, "status": "completed", "output": items, "usage": usage}
    return [*events, {"type": "response.completed", "response": completed}]


def _make_text_item(text: str) -> dict[str, Any]:
    """Make the output item of OpenAI's Responses for a text."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m0", "role": "assistant", "status": "completed", "content": content}


def _make_call_item(call: ScriptedCall) -> dict[str, Any]:
    """Make the output item of OpenAI's Responses for a call."""
    item = {"id": f"f_{call.call_id}", "call_id": call.call_id, "name": call.tool, "status": "completed"}
    if call.namespace is not None:
        item["namespace"] = call.namespace
    if call.is_text:
        return {"type": "custom_tool_call", **item, "input": call.arguments["input"]}
    return {"type": "function_call", **item, "arguments": json.dumps(call.arguments)}
