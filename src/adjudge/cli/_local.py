"""What this machine has to judge with when nobody says: providers whose keys are set, servers on the usual ports."""

from __future__ import annotations

import os
from collections.abc import Iterator

PROVIDERS = (
    ("OPENAI_API_KEY", "openai:gpt-5-mini"),
    ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-4-5"),
    ("GEMINI_API_KEY", "gemini:gemini-2.5-flash"),
    ("GOOGLE_API_KEY", "gemini:gemini-2.5-flash"),
    ("MISTRAL_API_KEY", "mistral:mistral-small-latest"),
    ("GROQ_API_KEY", "groq:llama-3.3-70b-versatile"),
    ("TOGETHER_API_KEY", "together:meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    ("OPENROUTER_API_KEY", "openrouter:openai/gpt-5-mini"),
)
"""The variable that configures a provider, and the model that is asked then."""

LOCAL_PORTS = ((11434, "Ollama"), (8080, "llama.cpp"), (8000, "vLLM"), (1234, "LM Studio"), (30000, "SGLang"))
"""Where local servers usually listen on 127.0.0.1."""

_LARGEST_LIST = 1_000_000


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
    """The first model of each local server that answers on the usual ports, and why it was found."""
    for port, server in LOCAL_PORTS:
        name = _first_model(port, timeout)
        if name:
            yield f"http://127.0.0.1:{port}/v1#{name}", f"{server}'s port {port} answers"


def _first_model(port: int, timeout: float) -> str | None:
    import json
    from http.client import HTTPConnection, HTTPException

    # Neither proxies nor redirects: this asks the machine itself, and nobody else should learn of it.
    connection = HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", "/v1/models")
        found = json.loads(connection.getresponse().read(_LARGEST_LIST))
        name = found["data"][0]["id"]
    except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError):
        return None
    finally:
        connection.close()
    # A question mark would begin the options of a model's name; whoever serves such a name can be named in full.
    return name if isinstance(name, str) and name.isprintable() and "?" not in name else None
