"""The known providers as data: addresses, environment variables of keys, and their names for request parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from adjudge.errors import UsageError
from adjudge.formats.text import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider. The defaults are those of an unknown OpenAI-compatible server."""

    prefix: str
    """The prefix of a model's spec."""
    base_url: str | None = None
    """``None``: the address comes from ``base_variable`` or from the spec."""
    base_variable: str | None = None
    """The environment variable that gives another address, as in the provider's own SDK."""
    base_suffix: str = ""
    """The path after an address given by ``base_variable``."""
    key_variables: tuple[str, ...] = ()
    """The environment variables that may hold the key; the first that is set counts."""
    key_header: str = "Authorization"
    key_scheme: str = "Bearer "
    max_tokens: str = "max_tokens"
    """The name of the limit of output tokens."""
    seed: str = "seed"
    logprobs: Literal["no", "top", "count"] = "top"
    """``top``: ``logprobs`` and ``top_logprobs``; ``count``: a number in ``logprobs``; ``no``: not offered."""
    structured: bool = True
    """True if ``response_format`` takes a JSON Schema."""
    any_name: bool = False
    """True if a reply may report any model's name: deployments are named by whoever made them, routers choose, and a
    server of one's own says what it likes. Then the name that is reported first is expected of every later reply."""
    says_why: bool = False
    """True if every reply must say why it ended, so that one which does not was cut off. Local servers often leave it
    out, and so may Together and OpenRouter."""


# Sources: the request types of the packages openai 3.52, mistralai 3.7, groq 1.7 and together 3.1, and the
# OpenAI-compatibility pages of OpenRouter, Azure ("v1 API") and Ollama.
OPENAI_COMPATIBLE: Mapping[str, Provider] = {
    item.prefix: item
    for item in (
        Provider(
            prefix="openai",
            base_url="https://api.openai.com/v1",
            base_variable="OPENAI_BASE_URL",
            key_variables=("OPENAI_API_KEY",),
            max_tokens="max_completion_tokens",
            says_why=True,
        ),
        Provider(
            prefix="mistral",
            base_url="https://api.mistral.ai/v1",
            key_variables=("MISTRAL_API_KEY",),
            seed="random_seed",
            says_why=True,
        ),
        Provider(
            prefix="groq",
            base_url="https://api.groq.com/openai/v1",
            key_variables=("GROQ_API_KEY",),
            max_tokens="max_completion_tokens",
            logprobs="no",
            says_why=True,
        ),
        Provider(
            prefix="together",
            base_url="https://api.together.ai/v1",
            key_variables=("TOGETHER_API_KEY",),
            logprobs="count",
        ),
        Provider(
            prefix="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_variables=("OPENROUTER_API_KEY",),
            any_name=True,
        ),
        Provider(
            prefix="azure",
            base_variable="AZURE_OPENAI_ENDPOINT",
            base_suffix="/openai/v1",
            key_variables=("AZURE_OPENAI_API_KEY",),
            key_header="api-key",
            key_scheme="",
            max_tokens="max_completion_tokens",
            any_name=True,
            says_why=True,
        ),
        Provider(
            prefix="ollama",
            base_url="http://127.0.0.1:11434/v1",
            base_variable="OLLAMA_HOST",
            base_suffix="/v1",
            any_name=True,
        ),
    )
}


SERVER = Provider(prefix="http", any_name=True)
"""Another server that speaks the OpenAI format: vLLM, llama.cpp, SGLang, a LiteLLM proxy."""


ANTHROPIC = Provider(
    prefix="anthropic",
    base_url="https://api.anthropic.com",
    base_variable="ANTHROPIC_BASE_URL",
    key_variables=("ANTHROPIC_API_KEY",),
    key_header="x-api-key",
    key_scheme="",
    logprobs="no",
)


GEMINI = Provider(
    prefix="gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_header="x-goog-api-key",
    key_scheme="",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a model and the variable of its key: a provider, and the caller's options for it."""

    provider: Provider
    base_url: str | None = None
    """The caller's address; takes the place of the provider's."""
    key_env: str | None = None
    """The caller's key variable; takes the place of the provider's."""

    def __post_init__(self) -> None:
        if self.base_url is not None:
            _check_address(self.base_url, "base_url")
        if self.key_env is not None and not self.key_env.strip():
            raise UsageError("key_env must name an environment variable, and is empty", argument="key_env")

    def find_base(self, spec: str) -> str:
        """Find the address, without a slash at its end; raise ``UsageError`` when nothing says where the model is."""
        provider = self.provider
        if self.base_url is not None:
            return self.base_url.rstrip("/")
        configured = os.environ.get(provider.base_variable, "").strip() if provider.base_variable else ""
        if configured:
            return _read_base_variable(provider, configured)
        if provider.base_url is None:
            raise UsageError(f"{spec} needs an address: set {provider.base_variable}")
        return provider.base_url

    def find_key(self, spec: str) -> str | None:
        """Find the key to send, or ``None`` where none is sent; raise ``UsageError`` naming the variable to set."""
        variables = self._key_variables()
        for name in variables:
            key = os.environ.get(name, "").strip()
            if key and (not key.isascii() or not key.isprintable()):
                raise UsageError(f"{name} holds characters that no key has; set it to the key alone")
            if key:
                return key
        if not variables:
            return None
        raise UsageError(f"{spec} needs a key: set {' or '.join(variables)}")

    def _key_variables(self) -> tuple[str, ...]:
        """Return the environment variables to look for a key in, in their order; none where no key is to be sent."""
        if self.key_env is not None:
            return (self.key_env,)
        if self.base_url is not None and not is_same_site(self.base_url, self.provider.base_url):
            # A provider's key is sent to that provider only, because anybody may have written the address into a spec.
            # For another address the caller names a key with key_env.
            return ()
        return self.provider.key_variables


def read_host(base: str) -> str:
    """Return the host of an address, with the port if it has one."""
    parts = _split_address(base, "the address")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{host}:{parts.port}" if parts.port is not None else host


def _read_base_variable(provider: Provider, address: str) -> str:
    """Return the address from a provider's environment variable, with the path that the provider needs after it.

    Raises ``UsageError`` for an address that cannot be used.
    """
    if provider.prefix == "ollama":
        address = _read_ollama_host(address)
    _check_address(address, provider.base_variable or "the address")
    base = address.rstrip("/")
    return base if not provider.base_suffix or base.endswith(provider.base_suffix) else base + provider.base_suffix


def _read_ollama_host(address: str) -> str:
    """Return the address at which a server can be asked that binds to ``OLLAMA_HOST``: a host, host:port or URL.

    A server that binds to 0.0.0.0, which is every address of its machine, is asked at 127.0.0.1.
    """
    url = address if "://" in address else f"http://{address}"
    parts = _split_address(url, "OLLAMA_HOST")
    port = _read_port(parts, "OLLAMA_HOST") or (None if "://" in address else 11434)
    host = "127.0.0.1" if parts.hostname in (None, "", "0.0.0.0") else parts.hostname  # noqa: S104 - not a binding
    host = f"[{host}]" if host and ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "") + parts.path.rstrip("/")


def _split_address(url: str, name: str) -> SplitResult:
    """Split an address into its parts; raise ``UsageError``, which calls it ``name``, for one that is none."""
    try:
        return urlsplit(url)
    except ValueError:  # half a bracket, or a character that becomes a slash when it is normalised
        shown = "" if "@" in url else f", got {show(url)}"
        raise UsageError(f"{name} must be like https://host/v1{shown}") from None


def _read_port(parts: SplitResult, name: str) -> int | None:
    """Return the port of an address, ``None`` without one; raise ``UsageError`` for a port that is none."""
    try:
        return parts.port
    except ValueError:
        raise UsageError(f"{name} has a port that is not a number from 0 to 65535") from None


def _check_address(url: str, name: str) -> None:
    """Raise ``UsageError`` for an address that cannot be used; one with a password in it is not quoted."""
    parts = _split_address(url, name)
    if "@" in parts.netloc:
        raise UsageError(
            f"{name} holds a user name or password; addresses are written into results, so name the "
            "environment variable of the key with key_env instead"
        )
    # urlsplit drops some control characters: the HTTP client might then read another address than was checked here.
    has_odd_characters = not url.isprintable() or any(char in url for char in " \\")
    has_host = parts.scheme in ("http", "https") and parts.hostname
    if has_odd_characters or not has_host or parts.query or parts.fragment:
        raise UsageError(f"{name} must be like https://host/v1, got {show(url)}")
    _read_port(parts, name)  # raises for a port that is none


def is_same_site(url: str, provider_url: str | None) -> bool:
    """Return whether an address is on a provider's own host, or one below it, by the same scheme."""
    parts, provider_parts = urlsplit(url), urlsplit(provider_url or "")
    url_host, provider_host = parts.hostname or "", provider_parts.hostname or ""
    return (
        bool(provider_host)
        and parts.scheme == provider_parts.scheme
        and (url_host == provider_host or url_host.endswith(f".{provider_host}"))
    )
