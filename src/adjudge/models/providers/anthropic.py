"""Anthropic's Messages API, version 2026-10-21.

That version takes no ``temperature`` (any value is answered with 400) and offers neither a seed nor
log-probabilities, so these parts of a request are not sent. Source: "Migrating to API version 2026-10-21" of the
Claude Platform docs, and the request types of the package anthropic 2.11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.models.model import FinishReason, Reply, Request
from adjudge.models.providers.base import (
    Access,
    HttpModel,
    OptionalParameters,
    Schema,
    change_schemas,
    find_finish_reason,
)
from adjudge.models.providers.catalog import ANTHROPIC, Endpoint
from adjudge.models.usage import read_count
from adjudge.result import Usage

_VERSION = "2026-10-21"

_DEFAULT_MAX_TOKENS = 4096
"""Output tokens where the request sets no limit; the API demands one."""


_FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "length",  # the turn is to be continued
}


_KNOWN_KEYWORDS = frozenset(
    {"$defs", "$ref", "type", "enum", "const", "anyOf", "allOf", "description", "title", "properties", "required"}
    | {"additionalProperties", "items", "minItems", "format"}
)
"""The JSON Schema keywords the API takes. Left out are, above all, ``minimum``, ``maximum``, ``multipleOf``,
``minLength``, ``maxLength``, ``pattern``, ``maxItems``, ``uniqueItems``, ``default`` and ``examples``; ``oneOf``
becomes ``anyOf``, ``minItems`` above 1 goes. Source: ``anthropic/lib/_parse/_transform.py`` of the package anthropic
2.11. What the schema no longer says, code still checks."""


_KNOWN_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _StopDetails(msgspec.Struct):
    explanation: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None


class _Message(msgspec.Struct):
    content: list[_Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: _Usage | None = None


_DECODER = msgspec.json.Decoder(_Message)


class Anthropic(HttpModel):
    """A Claude model. The system part is marked for the provider's prompt cache."""

    def __init__(
        self,
        model: str,
        *,
        endpoint: Endpoint = Endpoint(provider=ANTHROPIC),  # noqa: B008
        **options: Any,
    ) -> None:
        super().__init__(model, endpoint=endpoint, **options)

    def _find_url(self, access: Access) -> str:
        """Return the address to which requests are posted."""
        return f"{access.base_v1}/messages"

    def _extra_headers(self) -> dict[str, str]:
        """Return the headers that the API needs besides the key."""
        return {"anthropic-version": _VERSION}

    def _list_optional_parameters(self, request: Request, refused: frozenset[str]) -> OptionalParameters:
        """List the optional parameters that are not ``refused``, each with the names that an error may call it by."""
        if request.form is None or "output_config" in refused:
            return {}
        return {"output_config": ("output_config", "structured outputs")}

    def _render_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Render the body of a request around the user part: the bytes before it and those after it."""
        body: dict[str, Any] = {"model": self.model, "max_tokens": request.max_output_tokens or _DEFAULT_MAX_TOKENS}
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}]
        if request.form is not None and "output_config" not in refused:
            schema = change_schemas(request.form.schema, strip_schema)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        body["messages"] = [{"role": "user", "content": ""}]
        encoded = msgspec.json.encode(body)
        return encoded.removesuffix(b'""}]}'), b"}]}"  # the user part takes the place of the empty content

    def _read_reply(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Read the provider's reply; a refusal without text has the explanation as its text.

        Raises ``ModelError`` for a stop reason that is not known.
        """
        message = _DECODER.decode(body)
        # Text blocks alone: thinking, redacted thinking and tool blocks are no part of the answer.
        text = "".join(block.text for block in message.content if block.type == "text" and block.text)
        explanation = message.stop_details.explanation if message.stop_details else None
        # "In non-streaming mode this value is always non-null": without it, something cut the reply off.
        reason = find_finish_reason(_FINISH_REASONS, message.stop_reason, missing="length")
        return Reply(
            text=text or (explanation if reason == "refusal" else None) or text,
            finish_reason=reason,
            usage=_read_usage(message.usage),
            model=message.model,
            request_id=headers.get("request-id") or message.id,
        )


def strip_schema(inner_schema: Schema) -> Schema:
    """Remove the keywords that the API does not take from one schema; the schemas inside it are stripped already."""
    if "oneOf" in inner_schema and "anyOf" not in inner_schema:
        inner_schema = inner_schema | {"anyOf": inner_schema["oneOf"]}
    keywords = {name: value for name, value in inner_schema.items() if name in _KNOWN_KEYWORDS}
    if keywords.get("minItems", 0) not in (0, 1):
        del keywords["minItems"]
    if keywords.get("format", "date") not in _KNOWN_FORMATS:
        del keywords["format"]
    return keywords | {"additionalProperties": False} if keywords.get("type") == "object" else keywords


def _read_usage(usage: _Usage | None) -> Usage | None:
    """Convert the provider's usage; ``None`` where it reports none."""
    if usage is None:
        return None
    cached, written = read_count(usage.cache_read_input_tokens), read_count(usage.cache_creation_input_tokens)
    return Usage(
        # The API counts cached input apart; here it is part of the input, as with every other provider.
        input_tokens=read_count(usage.input_tokens) + written + cached,
        output_tokens=read_count(usage.output_tokens),
        cached_tokens=cached,
        written_tokens=written,
    )
