"""How a server listens."""

from __future__ import annotations

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
