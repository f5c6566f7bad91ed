"""What this machine has to judge with when nobody says: providers whose keys are set, servers on the usual ports."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

from adjudge._depth import nests_too_deeply
from adjudge.models._defaults import default_spec

PROVIDERS = (
    ("OPENAI_API_KEY", default_spec("openai")),
    ("ANTHROPIC_API_KEY", default_spec("anthropic")),
    ("GEMINI_API_KEY", default_spec("gemini")),
    ("GOOGLE_API_KEY", default_spec("gemini")),
    ("MISTRAL_API_KEY", default_spec("mistral")),
    ("GROQ_API_KEY", default_spec("groq")),
    ("TOGETHER_API_KEY", default_spec("together")),
    ("OPENROUTER_API_KEY", default_spec("openrouter")),
)
"""The variable that configures a provider, and the model that is asked then."""

LOCAL_PORTS = ((11434, "Ollama"), (8080, "llama.cpp"), (8000, "vLLM"), (1234, "LM Studio"), (30000, "SGLang"))
"""Where local servers usually listen on 127.0.0.1."""

_LARGEST_ANSWER = 65_536
"""Bytes that are read of what a port answers."""


def find_keys() -> list[str]:
    """The names of the key variables that are set; their values go nowhere."""
    return [variable for variable, _ in PROVIDERS if os.environ.get(variable, "").strip()]


def find_configured() -> Iterator[tuple[str, str]]:
    """The model of each provider whose key is set, and why it was found; most usual first."""
    keys, seen = find_keys(), set[str]()
    for variable, spec in PROVIDERS:
        if variable in keys and spec not in seen:
            seen.add(spec)
            yield spec, f"{variable} is set"


def find_local(timeout: float = 0.3) -> Iterator[tuple[str, str]]:
    """The first model of each local server that answers on the usual ports, and why it was found.

    ``timeout`` is in seconds, for one port and all that it says.
    """
    for port, server in LOCAL_PORTS:
        name = _first_model(port, timeout)
        if name:
            yield f"http://127.0.0.1:{port}/v1#{name}", f"{server}'s port {port} answers"


def _first_model(port: int, timeout: float) -> str | None:
    import json
    from http.client import HTTPException, HTTPResponse

    try:
        answer = HTTPResponse(_Said(_ask(port, timeout)))  # type: ignore[arg-type] - makefile is all that it uses
        answer.begin()
        text = answer.read().decode()
        name = None if nests_too_deeply(text) else json.loads(text)["data"][0]["id"]
    except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError):
        return None
    # A question mark would begin the options of a model's name; whoever serves such a name can be named in full.
    return name if isinstance(name, str) and name.isprintable() and "?" not in name else None


def _ask(port: int, timeout: float) -> bytes:
    """What a port of this machine answers until the time is over, at most 64 KB.

    Anybody may listen there. The standard library's client waits anew for every piece, so that a stream which never
    ends would keep it for ever. Neither proxies nor redirects: nobody else should learn of this.
    """
    import socket
    import time

    end = time.monotonic() + timeout
    said = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        while len(said) < _LARGEST_ANSWER and (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                piece = connection.recv(_LARGEST_ANSWER - len(said))
            except TimeoutError:  # a server that does not close may still have said all
                break
            if not piece:
                break
            said += piece
    return said


class _Said:
    """Bytes as the standard library's reader of HTTP wants them."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._said)
