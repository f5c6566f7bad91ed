"""How a server listens."""

from __future__ import annotations

import io
import logging
import socket
from contextlib import closing

import pytest

from adjudge.config.server import ServerSettings

pytest.importorskip("uvicorn")


def test_answers_are_sent_without_delay():
    """The event loop sends at once only on a socket that is named as TCP; on another, an answer takes 40 ms longer."""
    from adjudge.server.serving import _listen

    with closing(_listen(ServerSettings(port=0))) as listener, socket.create_connection(listener.getsockname()):
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
        told = (type(failure), failure, None) if failure is not None else None
        handler.handle(logging.LogRecord("of the test", level, __file__, 1, text, (), told))
    lines = stream.getvalue().split("\n")

    assert [line for line in lines if not line.startswith("    ")] == ["ERROR failed: a", "INFO after", ""]
    assert "    INFO approved··[2J···b" in lines
