"""A free port of 127.0.0.1 that a test's server listens on."""

from __future__ import annotations

import socket


def listen() -> socket.socket:
    """Listen on a free port; named as TCP, for only then does asyncio send the body of an answer without a delay."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(2_048)
    return listener
