"""A scripted server on 127.0.0.1, and doubles for what the transport would wait for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from adjudge import ModelError
from adjudge.models import Form, Model, Request, open_model

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Step = tuple[int, Mapping[str, str], object] | Handler

FORM = Form(
    name="verdict",
    schema={
        "type": "object",
        "properties": {
            "token": {"type": "string"},
            "reasoning": {"type": "string", "maxLength": 400},
            "score": {"type": "number", "minimum": 0, "maximum": 1},
            "grade": {"type": "string", "enum": ["a", "b"]},
            "notes": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
        "required": ["token", "reasoning", "score", "grade", "notes"],
        "additionalProperties": False,
    },
    digest="f" * 64,
)

ASKED = Request(system="Be a judge.", user='Judge "this"\nüber 你好 \u2028', form=FORM, seed=7, logprobs=True)
PLAIN = Request(system="Be a judge.", user="Judge this.")


def completion(text: str = "fine", **changes: Any) -> dict[str, Any]:
    """A chat completion as OpenAI-compatible servers send it."""
    return {
        "id": "chatcmpl-1",
        "model": "served-model",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
    } | changes


def error(message: str, **changes: Any) -> dict[str, Any]:
    """An error body in OpenAI's shape."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None} | changes}


@dataclass
class Scripted:
    """A server that answers each request with the next step, the last one for ever, and keeps what it was asked."""

    steps: list[Step]
    port: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            self.headers.append(dict(request.headers))
            self.paths.append(request.raw_path)
            self.bodies.append(json.loads(await request.read() or b"null"))
            step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
            if not isinstance(step, tuple):
                return await step(request)
            status, headers, body = step
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            return web.Response(status=status, headers=headers, body=data)
        finally:
            self.in_flight -= 1


@asynccontextmanager
async def serve(*steps: Step, ssl: Any = None) -> AsyncIterator[Scripted]:
    """Run a scripted server in this loop."""
    server = Scripted(list(steps) or [(200, {}, completion())])
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{rest:.*}", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()


async def reset(request: web.Request) -> web.StreamResponse:
    """Break the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def break_off(request: web.Request) -> web.StreamResponse:
    """Announce more than is sent, then break the connection."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.abort()
    return response


@dataclass
class Waits:
    """A sleep that only writes down how long, and a clock that it moves."""

    seconds: list[float] = field(default_factory=list)
    now: float = 1000.0

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def clock(self) -> float:
        return self.now


def open_at(server: Scripted, prefix: str = "http", **options: Any) -> Model:
    """A model of a provider, by what its names begin with, that is asked at this server."""
    if prefix == "http":
        return open_model(f"{server.url}#some-model", **options)
    return open_model(f"{prefix}:some-model", base_url=server.url, **options)


def talk(
    *steps: Step,
    request: Request = ASKED,
    times: int = 1,
    prefix: str = "http",
    **options: Any,
) -> tuple[Any, Scripted]:
    """The last reply (or error) of a model to a script, and the server."""

    async def run():
        reply = None
        async with serve(*steps) as server:
            model: Any = open_at(server, prefix, **options)
            for _ in range(times):
                try:
                    reply = await model.complete(request)
                except ModelError as failed:
                    reply = failed
            await model.aclose()
        return reply, server

    return asyncio.run(run())


def read(body: object, **options: Any) -> Any:
    """The reply an adapter reads from a body."""
    return talk((200, {}, body), **options)[0]
