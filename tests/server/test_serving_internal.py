"""How a server listens."""

from __future__ import annotations

import io
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from adjudge.config.server import ServerSettings
from adjudge.errors import UsageError
from adjudge.server.listening import listen_unix
from kit.patience import HANG

pytestmark = pytest.mark.timed


pytest.importorskip("uvicorn")


def test_answers_are_sent_without_delay():
    """The event loop sends at once only on a socket that is named as TCP; on another, an answer takes 40 ms longer."""
    from adjudge.server.listening import listen

    with closing(listen(ServerSettings(port=0))) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with closing(accepted):
            assert accepted.proto == socket.IPPROTO_TCP


def test_no_line_of_a_record_looks_like_another_record():
    """What was sent is quoted in tracebacks: its line breaks are indented, and its escape sequences are none."""
    from adjudge.server.log_format import RecordFormatter

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(RecordFormatter("%(levelname)s %(message)s"))
    error = ValueError("a\nINFO approved\r\x1b[2J\u202e\x9b\u2028b")
    for level, text, failure in ((logging.ERROR, "failed: a\nINFO approved", error), (logging.INFO, "after", None)):
        failed = (type(failure), failure, None) if failure is not None else None
        handler.handle(logging.LogRecord("of the test", level, __file__, 1, text, (), failed))
    lines = stream.getvalue().split("\n")

    assert [line for line in lines if not line.startswith("    ")] == ["ERROR failed: a", "INFO after", ""]
    assert "    INFO approved··[2J···b" in lines


HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"


def test_a_head_that_is_not_complete_in_time_ends_the_connection():
    """Not sent at all, half of it, a byte now and then, or half of a second one: 60 of them leave nothing behind."""
    with serve_briefly() as (server, connect):
        with closing(connect()) as silent, closing(connect()) as trickling, closing(connect()) as second:
            halves = [connect() for _ in range(60)]
            for half in halves:
                half.sendall(HEAD)
            second.sendall(HEAD + b"\r\n")
            assert second.recv(1_000).startswith(b"HTTP/1.1 200")
            second.sendall(HEAD)
            assert is_closed_while_sending(trickling, HEAD)
            assert all(is_closed(one) for one in [silent, second, *halves])
            for half in halves:
                half.close()
        assert not server.server_state.connections


def test_a_complete_head_ends_its_limit():
    """An answer may take longer, and so may the body of a request, which has the server's deadline."""
    with serve_briefly(answer_after=0.6) as (_, connect), closing(connect()) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        assert slow.recv(1_000).startswith(b"HTTP/1.1 200")


def test_a_body_that_goes_on_after_its_answer_ends_the_connection():
    """Each byte of it would otherwise begin the limit for silence anew."""
    with serve_briefly() as (_, connect), closing(connect()) as late:
        late.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\na")
        assert late.recv(1_000).startswith(b"HTTP/1.1 200")
        assert is_closed_while_sending(late, b"a" * 100)


@contextmanager
def serve_briefly(*, answer_after: float = 0.0) -> Iterator[Any]:
    """Run uvicorn as ``adjudge serve`` runs it, with 0.3 s for a head, and a function that connects to it."""
    import asyncio

    import uvicorn

    from adjudge.server.listening import listen, make_uvicorn_config

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
            return
        await asyncio.sleep(answer_after)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    settings = ServerSettings(port=0)
    config = make_uvicorn_config(app, settings)
    assert isinstance(config.http, type)
    config.http = type("Quick", (config.http,), {"head_seconds": 0.3})
    server = uvicorn.Server(config)
    with closing(listen(settings)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield server, lambda: socket.create_connection(listener.getsockname(), timeout=HANG)
        finally:
            server.should_exit = True
            thread.join(HANG)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes a connection."""
    try:
        return connection.recv(1_000) == b""
    except ConnectionError:
        return True


def is_closed_while_sending(connection: socket.socket, data: bytes) -> bool:
    """Whether the server closes a connection on which a byte comes every 50 ms."""
    end = time.monotonic() + HANG
    try:
        for place in count():
            connection.sendall(data[place % len(data) :][:1])
            time.sleep(0.05)
            if time.monotonic() > end:
                return False
    except ConnectionError:
        return True
    return False


def test_a_unix_socket_on_windows_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Python has none there: the remedy is a port, and not an error about a missing constant."""
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(UsageError) as raised:
        listen_unix(str(tmp_path / "adjudge.sock"), "0600")

    assert raised.value.argument == "uds"
    assert not (tmp_path / "adjudge.sock").exists()
