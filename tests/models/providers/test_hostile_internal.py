"""What a server may send: whatever the bytes, a reply or a ModelError, and nothing unprintable in its message."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge import ModelError
from adjudge.models import Reply
from adjudge.models.providers.anthropic import Anthropic, strip_schema
from adjudge.models.providers.base import Access, change_schemas
from adjudge.models.providers.catalog import SERVER, Endpoint
from adjudge.models.providers.error import LONGEST, ErrorBody, find_refused, make_http_error, read_error_body
from adjudge.models.providers.gemini import Gemini
from adjudge.models.providers.key_redaction import redact_error
from adjudge.models.providers.openai import OpenAICompatible
from kit.wire import FORM

ACCESS = Access(base="", host="host", headers={}, secrets=("sk-secret",))
ADAPTERS = [
    OpenAICompatible("m", endpoint=Endpoint(provider=SERVER, base_url="http://host/v1")),
    Anthropic("m"),
    Gemini("m"),
]

names = st.sampled_from(
    [
        "choices",
        "message",
        "content",
        "finish_reason",
        "logprobs",
        "usage",
        "error",
        "detail",
        "msg",
        "loc",
        "text",
        "type",
        "stop_reason",
        "candidates",
        "parts",
        "finishReason",
        "usageMetadata",
        "id",
        "model",
        "tokens",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**30) | st.floats() | st.text(max_size=8) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
bodies = st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode())


@pytest.mark.parametrize("model", ADAPTERS, ids=lambda model: type(model).__name__)
@given(body=bodies)
@example(body=b"[" * 100_000)
@example(body=b'{"choices":' * 50_000)
def test_any_body_is_a_reply_or_a_model_error(model, body):
    """No other exception leaves an adapter, so no bytes of a server can crash a run."""
    answer: Reply | ModelError
    try:
        answer = model._read_safely(body, {}, ACCESS)
    except ModelError as error:
        answer = error

    assert isinstance(answer, Reply) or (str(answer).startswith("host ") and str(answer).isprintable())


@given(bodies)
@example(b"[" * 100_000)
@example(b'{"error": {"message": "' + b"x" * 100_000 + b'"}}')
def test_any_complaint_is_told_in_one_printable_line(body):
    """Cut, without control characters, and with the status."""
    error = make_http_error("host", 500, read_error_body(body).message)

    assert str(error).startswith("host answered 500")
    assert str(error).isprintable()
    assert len(str(error)) <= LONGEST + 30
    assert error.status == 500


@given(st.text(max_size=700), st.integers(0, 700))
def test_a_secret_is_removed_wherever_the_text_is_cut(text, place):
    """Not even a part of it survives at the cut."""
    secret = "sk-0123456789abcdef"
    redacted = redact_error(text[:place] + secret + text[place:], [secret])

    assert secret[:8] not in redacted or secret[:8] in text
    assert len(redacted) <= LONGEST


@given(st.text(max_size=60))
def test_control_and_direction_characters_are_removed(text):
    """Nothing that moves a cursor, colours a terminal or turns the reading direction is repeated."""
    assert redact_error(f"\x1b[2J\u202e{text}\x00\u2066").isprintable()


def test_only_what_was_sent_can_be_refused():
    """A server cannot make a model drop what it never sent, and a name inside a longer word does not count."""
    sent = {"seed": ("seed",), "temperature": ("temperature",)}

    assert find_refused(ErrorBody(message="logprobs is not supported"), sent) == frozenset()
    assert find_refused(ErrorBody(message="seedling is not supported"), sent) == frozenset()
    assert find_refused(ErrorBody(message="random_seed is not supported"), sent) == frozenset()
    assert find_refused(ErrorBody(message="'seed' is not supported"), sent) == {"seed"}
    assert find_refused(ErrorBody(message="not supported", param="temperature"), sent) == {"temperature"}
    assert find_refused(ErrorBody(message="seed must be smaller", param="seed"), sent) == frozenset()


def test_a_schema_is_changed_everywhere_but_in_values():
    """Every place where a schema can stand is reached; what stands in enum, const and default is data."""
    leaf = {"type": "integer", "minimum": 1}
    schema = {
        "$defs": {"minimum": leaf},
        "properties": {"minimum": leaf, "list": {"items": leaf, "prefixItems": [leaf]}},
        "anyOf": [leaf, {"allOf": [leaf]}],
        "additionalProperties": leaf,
        "items": False,
        "enum": [leaf],
        "const": leaf,
        "default": leaf,
    }
    changed = change_schemas(schema, lambda part: {name: value for name, value in part.items() if name != "minimum"})
    bare = {"type": "integer"}

    assert changed == {
        "$defs": {"minimum": bare},
        "properties": {"minimum": bare, "list": {"items": bare, "prefixItems": [bare]}},
        "anyOf": [bare, {"allOf": [bare]}],
        "additionalProperties": bare,
        "items": False,
        "enum": [leaf],
        "const": leaf,
        "default": leaf,
    }


def test_anthropic_schemas_keep_what_the_api_takes():
    """Alternatives, formats and a minimum of one item stay; numbers' and texts' limits go; objects are closed."""
    schema = {
        "type": "object",
        "properties": {
            "one": {"oneOf": [{"type": "null"}, {"type": "string", "minLength": 3, "format": "date"}]},
            "some": {"type": "array", "items": {"type": "number", "multipleOf": 2}, "minItems": 1, "maxItems": 3},
            "odd": {"type": "string", "format": "color"},
        },
        "required": ["one"],
    }

    assert change_schemas(schema, strip_schema) == {
        "type": "object",
        "properties": {
            "one": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
            "some": {"type": "array", "items": {"type": "number"}, "minItems": 1},
            "odd": {"type": "string"},
        },
        "required": ["one"],
        "additionalProperties": False,
    }
    assert FORM.schema["properties"]["score"]["minimum"] == 0
