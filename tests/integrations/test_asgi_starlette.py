"""A gate around Starlette's own responses, served by uvicorn: what a client can fetch, however it asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adjudge import Gate
from adjudge.integrations.asgi import GateMiddleware
from kit.listening import listen

pytestmark = pytest.mark.timed


pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

SECRET = b"this is a secret, and more"
CALM = Gate("calm", rules=[{"regex": "secret", "absent": True}])


@asynccontextmanager
async def serve(app: Any) -> AsyncIterator[str]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    # Listening before the server starts, so that nobody has to wait until it does.
    with listen() as listening:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


def fetch(app: Any, *asked: dict[str, str], method: str = "GET") -> list[tuple[int, bytes, Any]]:
    """Each answer to a request with the given headers."""
    import aiohttp

    async def run() -> list[tuple[int, bytes, Any]]:
        answers = []
        async with serve(app) as address, aiohttp.ClientSession(auto_decompress=False) as session:
            for headers in asked or ({},):
                async with session.request(method, f"{address}/x", headers=headers) as reply:
                    answers.append((reply.status, await reply.read(), dict(reply.headers)))
        return answers

    return asyncio.run(run())


def file_app(folder: Path, data: bytes) -> Any:
    from starlette.responses import FileResponse

    path = folder / "answer.txt"
    path.write_bytes(data)
    return FileResponse(path, media_type="text/plain")


def stream_app(*pieces: str, kind: str | None = None) -> Any:
    from starlette.responses import StreamingResponse

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(iter(pieces), media_type=kind)(scope, receive, send)

    return app


RANGES = [
    *({"Range": f"bytes={at}-{at}"} for at in range(len(SECRET))),
    {"Range": "bytes=0-3,10-12"},
    {"Range": "bytes=-3"},
    {"Range": "bytes=900-"},
    {"Range": "nonsense"},
    {"Range": "bytes=0-3", "If-Range": "x"},
]


@pytest.mark.slow
def test_no_range_of_a_blocked_file_is_sent(tmp_path):
    """A byte at a time, several at once, from the end: not one of them arrives."""
    bare = fetch(file_app(tmp_path, SECRET), *RANGES[: len(SECRET)])
    assert b"".join(body for _, body, _ in bare) == SECRET  # what the gate is there for

    for status, body, _ in fetch(GateMiddleware(file_app(tmp_path, SECRET), CALM, on="response"), *RANGES):
        assert (status, json.loads(body)["error"]) == (403, "blocked")


@pytest.mark.slow
def test_a_file_that_may_pass_is_sent_whole(tmp_path):
    """Whatever part was asked for, as HTTP allows; HEAD and an unchanged file have no body, and pass."""
    app = GateMiddleware(file_app(tmp_path, b"fine and dandy"), CALM, on="response")

    for status, body, headers in fetch(app, {}, *RANGES):
        assert (status, body, "Content-Range" in headers) == (200, b"fine and dandy", False)
    ((status, body, headers),) = fetch(app, {"Range": "bytes=0-1"}, method="HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", "14")


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ([f"data: {letter}\n\n" for letter in "a secret"], "text/event-stream"),
        ([json.dumps({"delta": letter}) + "\n" for letter in "a secret"], "application/x-ndjson"),
        ([json.dumps({"delta": letter}) + "\n" for letter in "a secret"], "text/plain"),
        (list("a secret"), "text/plain"),
        (["show(", '{"a": "\\u0073', 'ecret"});'], "text/plain"),
        (["show(", '{"a": "\\u0073', 'ecret"});'], "application/javascript"),
        (list("a secret"), None),
    ],
)
def test_no_letter_of_a_blocked_stream_is_sent(pieces: list[str], kind: str | None):
    """It is held until its end, and judged as what it says."""
    ((status, body, headers),) = fetch(GateMiddleware(stream_app(*pieces, kind=kind), CALM, on="response"))

    assert (status, json.loads(body)["error"]) == (403, "blocked")
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain"])
def test_a_stream_that_may_pass_arrives_byte_for_byte(kind: str):
    """Late, and as it was."""
    pieces = [f"data: {letter}\n\n" for letter in "all fine"]
    ((status, body, _),) = fetch(GateMiddleware(stream_app(*pieces, kind=kind), CALM, on="response"))

    assert (status, body) == (200, "".join(pieces).encode())


def test_a_compressed_response_is_not_sent():
    """The gate belongs inside the compression; around it, nothing can be read."""
    from starlette.middleware.gzip import GZipMiddleware

    asked = {"Accept-Encoding": "gzip"}
    app = stream_app(*["fine "] * 200, kind="text/plain")
    around = fetch(GateMiddleware(GZipMiddleware(app), CALM, on="response"), asked)
    inside = fetch(GZipMiddleware(GateMiddleware(app, CALM, on="response")), asked)

    assert (around[0][0], inside[0][0], inside[0][2]["Content-Encoding"]) == (403, 200, "gzip")
