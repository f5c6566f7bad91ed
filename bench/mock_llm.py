#!/usr/bin/env python3
"""A very fast OpenAI-compatible mock, for measuring what clients cost. It listens on 127.0.0.1 only.

    python mock_llm.py --port 8099

A hand-written HTTP/1.1 keep-alive server; it uses uvloop and orjson where they are installed. All settings travel in
the path, so one server serves many runs, and every run has its own statistics:

    http://127.0.0.1:8099/run-a_lat-200_seed-1/v1/chat/completions        pairs, "_" between, "-" inside

    run   the run's id for /stats?run=ID ("default")
    lat   latency in ms (0);  sig  its lognormal sigma (0: always the same)
    e429  share answered 429 with Retry-After;  ra  its seconds (0.1)
    e500  share answered 500;  mal  share whose verdict is cut off;  hang  share never answered;  seed  of the faults
    v     the verdict: 1 passes (1), 0 fails;  rlen  characters of a reason (100)

Which requests get a fault follows from the seed, the item ("item-" and digits in the request) and how often this run
has seen that item: every client meets the same ones.

The answer has the shape that was asked for: a tool call, an instance of the JSON Schema, adjudge's own form in text,
a line with a grade, or a JSON verdict. Where the schema has a member "token", or adjudge's text form is asked for, the
eight characters that the last user message tells the judge to begin with are copied, as a model would.

Also GET /stats?run=ID (with the longest sum of Retry-After that one item was told to wait), /reset?run=ID, and
/last?run=ID, which returns the last request of a run as it came.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import json
import math
import random
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

Json = dict[str, Any]

try:
    import orjson

    loads: Callable[[bytes], Any] = orjson.loads
    dumps: Callable[[Any], bytes] = orjson.dumps
except ImportError:
    loads = json.loads

    def dumps(value: Any) -> bytes:
        """As orjson writes it."""
        return json.dumps(value, separators=(",", ":")).encode()


REASON = (
    "The answer addresses the question directly, states the main facts correctly and stays within the criterion; "
    "no unsupported claim was found when each sentence was compared with the input given. "
) * 20
ITEM = re.compile(rb"item-(\d+)")
TOKEN = re.compile(r'"token": "([a-z2-7]{8})"')
ASKED_TOKEN = "tokentok"  # what stands for the token in an answer that is kept; as long as a token is
CRITERION = re.compile(r"^\d+\. (.+?): ", re.MULTILINE)
REASONING = ("reason", "explan", "rational", "justif", "think", "feedback", "analysis", "comment", "critique")
STATUS = {200: "OK", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
FAULTS = ("e429", "e500", "mal", "hang")


class Settings:
    """The settings that the path of a request holds about the run it belongs to."""

    def __init__(self, text: str) -> None:
        said = dict(part.partition("-")[::2] for part in text.split("_"))
        self.run = said.get("run", "default")
        self.latency_s = float(said.get("lat", 0)) / 1000
        self.sigma = float(said.get("sig", 0))
        self.retry_after = said.get("ra", "0.1")
        self.faults = [(name, float(said[name])) for name in FAULTS if name in said]
        self.seed = said.get("seed", "0").encode()
        self.passes = said.get("v", "1") != "0"
        self.reason = REASON[: int(said.get("rlen", 100))]
        self.random = random.Random(said.get("seed", "0"))

    def draw_latency(self) -> float:
        """Seconds to wait before the answer."""
        if not self.latency_s or not self.sigma:
            return self.latency_s
        return self.latency_s * math.exp(self.random.gauss(0, self.sigma))

    def draw_fault(self, item: bytes, attempt: int) -> str | None:
        """Draw what goes wrong with this attempt at this item, if anything."""
        if not self.faults:
            return None
        digest = hashlib.blake2b(b"%s/%s/%d" % (self.seed, item, attempt), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        for name, share in self.faults:
            if place < share:
                return name
            place -= share
        return None


class Run:
    """Counts of one run."""

    def __init__(self) -> None:
        self.requests = self.answered = self.in_flight = self.max_in_flight = self.gone = 0
        self.connections = self.max_connections = self.connections_opened = 0
        self.bytes_in = self.bytes_out = 0
        self.faults: dict[str, int] = {}
        self.attempts: dict[bytes, int] = {}
        self.waits: dict[bytes, float] = {}
        self.last = b""
        self.first_at = self.marked_at = time.perf_counter()
        self.area = 0.0

    def mark(self, change: int) -> None:
        """Note that one more or one fewer request is in flight."""
        now = time.perf_counter()
        if self.requests:
            self.area += self.in_flight * (now - self.marked_at)
        else:
            self.first_at = now
        self.marked_at = now
        self.in_flight += change
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def count(self) -> Json:
        """Return what /stats answers."""
        span = self.marked_at - self.first_at
        shown = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        mean = self.area / span if span else 0.0
        items = {"items": len(self.attempts), "longest_wait_s": round(max(self.waits.values(), default=0.0), 3)}
        return shown | {"mean_in_flight": round(mean, 2), "faults": self.faults} | items


RUNS: dict[str, Run] = {}
SETTINGS: dict[str, Settings] = {}
ANSWERS: dict[Any, tuple[bytes, bytes]] = {}


def build_instance(schema: Json, root: Json, settings: Settings, name: str = "") -> Any:
    """The smallest instance of a schema, its numbers as high as they may be where the verdict is to pass."""
    schema = resolve(schema, root)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = next(item for item in kind if item != "null") if isinstance(kind, list) else kind
    if kind == "object":
        members: Json = schema.get("properties") or {}
        return {key: build_instance(item, root, settings, key) for key, item in members.items()}
    if kind == "array":
        item = build_instance(schema.get("items") or {}, root, settings, name)
        return [item] * schema.get("minItems", 1)
    return choose_scalar(schema, kind, settings, name)


def resolve(schema: Json, root: Json) -> Json:
    """The schema that references and alternatives lead to; the first alternative is taken."""
    for _ in range(20):
        found: Any = root
        if "$ref" in schema:
            for part in schema["$ref"].lstrip("#/").split("/"):
                found = found[part]
        else:
            found = next((schema[kind][0] for kind in ("anyOf", "oneOf") if schema.get(kind)), None)
        if found is None:
            break
        schema = found
    return schema


def choose_scalar(schema: Json, kind: str, settings: Settings, name: str) -> Any:
    """A value that is no container."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        options = schema["enum"]
        numbers = all(isinstance(option, int | float) for option in options)
        ordered = sorted(options, reverse=True) if numbers else options
        return ordered[0] if settings.passes else ordered[-1]
    if kind == "boolean":
        return settings.passes
    if kind in ("integer", "number"):
        end = schema.get("maximum", 1) if settings.passes else schema.get("minimum", 0)
        return int(end) if kind == "integer" else float(end)
    if name == "token":
        return ASKED_TOKEN
    is_reason = any(word in name.lower() for word in REASONING)
    return settings.reason if is_reason else ("yes" if settings.passes else "no")


def asks_grade(request: Json) -> bool:
    """Return True if the reply is to end with a line like ``GRADE: C``."""
    return "GRADE:" in str(request["messages"][-1].get("content", ""))


def write_text(request: Json, settings: Settings) -> str:
    """The verdict for a request that asks for no structured output."""
    system = str(request["messages"][0].get("content", ""))
    reason, passes = settings.reason, settings.passes
    if asks_grade(request):
        return f"{reason}\n\nGRADE: {'C' if passes else 'I'}"
    if "Reply with one JSON object of this shape" not in system:
        words: Json = dict.fromkeys(("verdict", "choice", "value", "result", "label"), "yes" if passes else "no")
        words |= {"reason": reason, "reasoning": reason}
        return dumps(words | {"safe": passes, "pass": passes, "score": int(passes)}).decode()
    names = CRITERION.findall(system)
    scores = [{"name": name, "reasoning": reason, "score": float(passes)} for name in names]
    first = {"token": ASKED_TOKEN} if '"token"' in system else {}
    return dumps(first | {"criteria": scores, "reasoning": reason, "suggestions": ["None."]}).decode()


def write_logprobs(text: str, top: int) -> Json:
    """Every token of a text with ``top`` alternatives."""
    content = []
    for piece in re.findall(r" ?[A-Za-z]{1,6}|\d|[^A-Za-z\d]", text):
        others = [str((int(piece) + at) % 10) if piece.isdigit() else f"{piece}{at}" for at in range(1, top)]
        listed = [{"token": piece, "logprob": -0.01, "bytes": list(piece.encode())}]
        for at, other in enumerate(others, 1):
            listed.append({"token": other, "logprob": -3.0 - 0.5 * at, "bytes": list(other.encode())})
        content.append(listed[0] | {"top_logprobs": listed})
    return {"content": content, "refusal": None}


def build_message(request: Json, settings: Settings, *, cut: bool) -> tuple[Json, str]:
    """The assistant's message and why it ended."""
    message: Json = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
    if request.get("tools"):
        function = request["tools"][0]["function"]
        parameters = function.get("parameters") or {}
        arguments = dumps(build_instance(parameters, parameters, settings)).decode()
        arguments = arguments[: len(arguments) * 2 // 3] if cut else arguments
        called = {"name": function["name"], "arguments": arguments}
        message["tool_calls"] = [{"id": "call_mock", "type": "function", "function": called}]
        return message, "tool_calls"
    form = (request.get("response_format") or {}).get("json_schema")
    text = dumps(build_instance(form["schema"], form["schema"], settings)).decode() if form else ""
    text = text or write_text(request, settings)
    message["content"] = text[: len(text) * 2 // 3] if cut else text
    return message, "stop"


def build_answer(request: Json, settings: Settings, *, cut: bool) -> bytes:
    """A whole HTTP response."""
    message, finish = build_message(request, settings, cut=cut)
    top = request.get("top_logprobs") or int(bool(request.get("logprobs")))
    logprobs = write_logprobs(message["content"], top) if top and message["content"] else None
    details = {"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0}
    answer = {
        "id": "chatcmpl-mock",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.get("model", "mock"),
        "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 512,
            "completion_tokens": 64,
            "total_tokens": 576,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": details,
        },
        "service_tier": "default",
        "system_fingerprint": "fp_mock",
    }
    return write_response(200, dumps(answer))


def find_answer(request: Json, settings: Settings, *, cut: bool) -> bytes:
    """The response to a request; all but the token is built once for all requests that ask for the same."""
    messages = request["messages"]
    shape = [request.get(name) for name in ("tools", "response_format", "logprobs", "top_logprobs", "model")]
    constant = messages[0].get("content") if len(messages) > 1 else ""
    grade = not shape[0] and not shape[1] and asks_grade(request)
    key = (dumps(shape), constant if isinstance(constant, str) else "", grade, settings.passes, settings.reason)
    pair = ANSWERS.get(key)
    if pair is None:
        pair = ANSWERS[key] = (
            build_answer(request, settings, cut=False),
            build_answer(request, settings, cut=True),
        )
    answer = pair[cut]
    if ASKED_TOKEN.encode() not in answer:
        return answer
    tokens = TOKEN.findall(messages[-1]["content"])
    return answer.replace(ASKED_TOKEN.encode(), tokens[-1].encode()) if tokens else answer


def write_response(status: int, body: bytes, extra: str = "") -> bytes:
    """An HTTP response."""
    head = f"HTTP/1.1 {status} {STATUS[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}x-request-id: req_mock\r\n{extra}\r\n".encode() + body


def write_error(status: int, extra: str = "") -> bytes:
    """An error as OpenAI writes one."""
    error = {"message": "an error that was asked for", "type": "mock", "param": None, "code": None}
    return write_response(status, dumps({"error": error}), extra)


class Connection(asyncio.Protocol):
    """One client's connection; requests are answered one after another."""

    loop: ClassVar[asyncio.AbstractEventLoop]

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.waiting = b""
        self.run: Run | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, _error: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()
        if self.run is not None:
            self.run.connections -= 1
            if self.busy:
                self.run.mark(-1)
                self.run.gone += 1

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while not self.busy and self.waiting:
            head, found, rest = self.waiting.partition(b"\r\n\r\n")
            if not found:
                return
            length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            size = int(length[1]) if length else 0
            if len(rest) < size:
                return
            self.waiting = rest[size:]
            method, target, _ = head.split(b" ", 2)
            if method == b"GET":
                self.transport.write(answer_get(target.decode()))
            else:
                self.take(target.decode(), rest[:size])

    def take(self, target: str, body: bytes) -> None:
        """Answer one request, at once or later."""
        settings = SETTINGS.get(target)
        if settings is None:
            settings = SETTINGS[target] = Settings(target.split("/")[1])
        run = RUNS.get(settings.run) or RUNS.setdefault(settings.run, Run())
        self.join(run)
        run.mark(1)
        run.requests += 1
        run.bytes_in += len(body)
        run.last = body
        self.busy = True
        found = ITEM.search(body)
        item = found[1] if found else b""
        run.attempts[item] = run.attempts.get(item, 0) + 1
        fault = settings.draw_fault(item, run.attempts[item])
        if fault:
            run.faults[fault] = run.faults.get(fault, 0) + 1
        if fault == "hang":
            return
        if fault == "e429":
            run.waits[item] = run.waits.get(item, 0.0) + float(settings.retry_after)
            answer = write_error(429, f"Retry-After: {settings.retry_after}\r\n")
        elif fault == "e500":
            answer = write_error(500)
        else:
            answer = find_answer(loads(body), settings, cut=fault == "mal")
        wait = settings.draw_latency()
        if wait > 0:
            self.timer = self.loop.call_later(wait, self.finish, answer)
        else:
            self.finish(answer)

    def join(self, run: Run) -> None:
        """Count this connection to the run that uses it."""
        if self.run is run:
            return
        if self.run is not None:
            self.run.connections -= 1
        self.run = run
        run.connections += 1
        run.connections_opened += 1
        run.max_connections = max(run.max_connections, run.connections)

    def finish(self, answer: bytes) -> None:
        """Send the answer, and take the next request if it is there already."""
        assert self.run is not None
        self.timer = None
        self.run.mark(-1)
        self.run.answered += 1
        self.run.bytes_out += len(answer)
        self.transport.write(answer)
        self.busy = False
        if self.waiting:
            self.loop.call_soon(self.data_received, b"")


def answer_get(target: str) -> bytes:
    """Return what the addresses beside the API say."""
    path, _, query = target.partition("?")
    name = query.removeprefix("run=")
    known: Mapping[str, Run] = {name: RUNS[name]} if name in RUNS else {}
    if path == "/stats":
        return write_response(200, dumps(known[name].count() if known else Run().count()))
    if path == "/last":
        return write_response(200, known[name].last if known else b"")
    if path == "/reset":
        RUNS.pop(name, None)
        return write_response(200, b"{}")
    if path.endswith("/models"):
        return write_response(200, dumps({"object": "list", "data": [{"id": "mock", "object": "model"}]}))
    return write_error(404)


async def serve(port: int) -> None:
    """Listen until the process is ended."""
    Connection.loop = asyncio.get_running_loop()
    server = await Connection.loop.create_server(Connection, "127.0.0.1", port, backlog=4096)
    # The server must not be what a measurement measures: what lives now lives for good.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the port and serve."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible mock for measuring clients.")
    parser.add_argument("--port", type=int, default=8099, help="0 takes any free one; the address is printed")
    options = parser.parse_args()
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    run(serve(options.port))


if __name__ == "__main__":
    main()
