"""The shared part of providers' adapters: key and address, the cached frame of a body, refused parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import msgspec

from adjudge.errors import ModelError, UsageError
from adjudge.formats.arguments import check_above_zero, check_whole_number
from adjudge.formats.model_name import LONGEST_NAME
from adjudge.models.model import FinishReason, Reply, Request, TokenLogprob
from adjudge.models.providers.catalog import Endpoint, read_host
from adjudge.models.providers.error import find_refused, make_http_error, read_error_body
from adjudge.models.providers.http import Transport
from adjudge.models.providers.key_redaction import SHORTEST_KEY, hide_key, redact_error
from adjudge.models.reported_name import REPORTED
from adjudge.models.usage import drop_impossible_usage

MAX_INPUT_CHARACTERS = 1_000_000

_MOST_ADAPTATIONS = 4
"""The number of times that a request is sent again without parameters that the provider refuses."""

_MOST_FRAMES = 64
"""Frames of bodies that one model keeps."""


OptionalParameters = dict[str, tuple[str, ...]]
"""The optional parameters of a request, each with the names a provider's complaint may call it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The address at which a provider is asked, and the key."""

    base: str
    """The address without a slash at its end."""
    host: str
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def base_v1(self) -> str:
        """The address of version 1 of the API: ``base``, with ``/v1`` after it unless it ends in that."""
        return self.base if self.base.endswith("/v1") else f"{self.base}/v1"

    @property
    def digest(self) -> str:
        """SHA-256 of address and key: the same only where the same account is asked at the same place."""
        return hashlib.sha256("\n".join((self.base, *self.secrets)).encode()).hexdigest()


class HttpModel:
    """A model behind HTTP. An adapter adds how its provider writes a request and a reply.

    The body of a request is a frame, constant for a rubric and therefore cached, around the encoded user part.
    """

    structured = True
    """``Request.form`` is honoured; the reply is checked in code all the same."""

    def __init__(
        self,
        model: str,
        *,
        endpoint: Endpoint,
        max_concurrency: int | None = None,
        requests_per_minute: float | None = None,
        max_input_characters: int = MAX_INPUT_CHARACTERS,
        transport: Transport | None = None,
    ) -> None:
        if not model.strip():
            raise UsageError(f"{endpoint.provider.prefix}: needs a model's name after it")
        self.model = model
        """The name the provider knows the model by."""
        self.endpoint = endpoint
        self.max_input_characters = check_whole_number("max_input_characters", max_input_characters, least=1)
        if max_concurrency is not None:
            check_whole_number("max_concurrency", max_concurrency, least=1)
        if requests_per_minute is not None:
            requests_per_minute = float(check_above_zero("requests_per_minute", requests_per_minute))
        self.transport = transport or Transport(
            max_concurrency=max_concurrency, requests_per_minute=requests_per_minute
        )
        self._access: Access | None = None
        self._refused: frozenset[str] = frozenset()
        self._frames: dict[Any, tuple[bytes, bytes]] = {}

    @cached_property
    def name(self) -> str:
        """The name of this model in results and recordings: its spec, without options."""
        endpoint = self.endpoint
        if endpoint.provider.prefix == "http":
            return f"{endpoint.find_base('')}#{self.model}"
        return f"{endpoint.provider.prefix}:{self.model}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts this model can contact; none while nothing says where it is."""
        try:
            return (read_host(self.endpoint.find_base("")),)
        except UsageError:
            return ()

    @property
    def identity(self) -> dict[str, Any]:
        """The part of its identity besides its name and the request, for the keys of caches: the address."""
        return {"address": self.endpoint.find_base(self.name)}

    def named(self, name: str) -> Self:
        """Return another model of the same provider, over the same connections and under the same limits."""
        return type(self)(name, **self._options())

    def check(self) -> None:
        """Raise ``UsageError`` for what is wrong before anything is asked: no key, no address."""
        _ = self.access  # reads the key and the address, and raises without them

    async def complete(self, request: Request, /) -> Reply:
        """Ask the provider; raises ``ModelError`` when it does not serve the request.

        Where it names a parameter that it does not take, the request is sent again without it, and the model
        remembers that once the provider has accepted the rest.
        """
        access, url = self.access, self._find_url(self.access)
        refused = self._refused
        user = _encode_text(request.user)
        attempts = 0
        while True:
            attempts += 1
            head, tail = self._find_frame(request, refused)
            status, headers, content = await self.transport.post(
                url, access.headers, head + user + tail, secrets=access.secrets, call=request.call
            )
            if 200 <= status < 300:
                self._refused |= refused
                return self.compare_names(self._read_safely(content, headers, access))
            complaint = read_error_body(content)
            newly_refused = (
                find_refused(complaint, self._list_optional_parameters(request, refused))
                if status in (400, 422)
                else frozenset()
            )
            if not newly_refused or attempts > _MOST_ADAPTATIONS:
                break
            refused |= newly_refused
        if status == 401:
            # The key is read from the environment again at the next request, where it may have been replaced.
            self._access = None
        raise make_http_error(access.host, status, complaint.message, access.secrets)

    @property
    def access(self) -> Access:
        """The address at which the provider is asked, and the key; raises ``UsageError`` as ``check`` does."""
        if self._access is None:
            provider, spec = self.endpoint.provider, self.name
            key, base = self.endpoint.find_key(spec), self.endpoint.find_base(spec)
            headers = self._extra_headers()
            if key is not None:
                headers[provider.key_header] = provider.key_scheme + key
            self._access = Access(base=base, host=read_host(base), headers=headers, secrets=(key,) if key else ())
        return self._access

    @property
    def refused(self) -> frozenset[str]:
        """The parameters that the provider has been found not to take."""
        return self._refused

    def refuse_parameters(self, names: Iterable[str]) -> None:
        """Leave these parameters out from now on; another process found that the provider does not take them."""
        self._refused |= frozenset(names)

    def find_refused(self, body: bytes, request: Request) -> frozenset[str]:
        """Find the parameters of a request that an error body says the provider does not take, known before or not."""
        return find_refused(read_error_body(body), self._list_optional_parameters(request, frozenset()))

    def render_body(self, request: Request) -> bytes:
        """Render the body that ``complete`` would send, for a caller that sends it in another way, as by batch."""
        head, tail = self._find_frame(request, self._refused)
        return head + _encode_text(request.user) + tail

    def read_body(self, body: bytes) -> Reply:
        """Read the reply in a body that was received in another way, as by batch. Raises ``ModelError``."""
        return self.compare_names(self._read_safely(body, {}, self.access))

    def compare_names(self, reply: Reply) -> Reply:
        """Return the reply with the model's name that was asked for and the one expected; warn where they differ.

        A reply out of a cache is compared as well, because this model gave it.
        """
        if not reply.model:
            return replace(reply, model_requested=self.model, model_expected=None)
        model, reported = (self.name, self.endpoint.find_base(self.name)), reply.model[:LONGEST_NAME]
        expected = REPORTED.expect(model, reported) if self.endpoint.provider.any_name else None
        REPORTED.compare(model, reported, expected or self.model, requested=expected is None)
        return replace(reply, model=reported, model_requested=self.model, model_expected=expected)

    async def aclose(self) -> None:
        """Close the connections of the running loop; the next call opens new ones."""
        await self.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __reduce__(self) -> tuple[Callable[..., HttpModel], tuple[str]]:
        # Pickled without the key: each process reads it from its own environment.
        return partial(type(self), **self._options()), (self.model,)

    # What an adapter adds.

    def _options(self) -> dict[str, Any]:
        """Return the arguments with which a model like this one is made."""
        return {
            "endpoint": self.endpoint,
            "max_input_characters": self.max_input_characters,
            "transport": self.transport,
        }

    def _find_url(self, access: Access) -> str:
        """Return the address to which requests are posted."""
        raise NotImplementedError

    def _list_optional_parameters(self, request: Request, refused: frozenset[str]) -> OptionalParameters:
        """List the optional parameters that are not ``refused``, each with the names that an error may call it by."""
        raise NotImplementedError

    def _render_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Render the body of a request around the user part: the bytes before it and those after it."""
        raise NotImplementedError

    def _read_reply(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Read a reply of the provider. Raises ``ModelError`` and decoding errors for a body that holds none."""
        raise NotImplementedError

    def _extra_headers(self) -> dict[str, str]:
        """Return the headers that the provider needs besides the key."""
        return {}

    def _find_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Return the frame of a request: the bytes of its body before the user part and those after it.

        Equal requests have equal frames, which are rendered once and kept.
        """
        form = request.form
        key = (
            request.system,
            form and (form.name, form.digest),
            request.temperature,
            request.seed,
            request.max_output_tokens,
            request.logprobs,
            refused,
        )
        frame = self._frames.get(key)
        if frame is None:
            if len(self._frames) >= _MOST_FRAMES:
                self._frames.pop(next(iter(self._frames)), None)  # the one that was added first
            try:
                frame = self._frames[key] = self._render_frame(request, refused)
            except UnicodeEncodeError:
                raise _make_surrogate_error() from None
        return frame

    def _read_safely(self, body: bytes, headers: Mapping[str, str], access: Access) -> Reply:
        """Read a reply of the provider, with keys masked in it and in the message of any error.

        Raises ``ModelError`` for a body that holds no reply.
        """
        try:
            return _hide_keys(drop_impossible_usage(self._read_reply(body, headers), self.name), access.secrets)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            problem = redact_error(str(error), access.secrets)
            model_error = ModelError(f"{access.host} answered with something that is not its reply format: {problem}")
        except ModelError as error:
            model_error = ModelError(f"{access.host} {redact_error(str(error), access.secrets)}", status=error.status)
        # Outside the block, so that the error does not carry the original one, in which keys are not masked.
        raise model_error


def find_finish_reason(
    reasons: Mapping[str, FinishReason], stated: str | None, *, missing: FinishReason
) -> FinishReason:
    """Return the reason why a reply ended. ``missing`` is the reason where the provider states none.

    Raises ``ModelError`` for a reason that is not known: something stopped the model, and a reply that was stopped may
    hold a verdict that its model was about to take back.
    """
    if not stated:
        return missing
    finish_reason = reasons.get(stated)
    if finish_reason is None:
        raise ModelError(f"ended its reply with the reason {stated!r}, which does not say that the reply is complete")
    return finish_reason


def _hide_keys(reply: Reply, secrets: tuple[str, ...]) -> Reply:
    """Return the reply with ``***`` for each secret, because a server may send back the key that it was asked with.

    Log-probabilities with a secret in them, or of a text that was changed, are dropped.
    """
    if not secrets:
        return reply
    texts = {name: text for name in ("text", "model", "request_id") if (text := getattr(reply, name))}
    # Searched together, because searching one text takes less time than three.
    joined = "\n".join(texts.values())
    if hide_key(joined, secrets) != joined:
        redacted = {name: hide_key(text, secrets) for name, text in texts.items()}
        is_same_text = redacted.get("text", reply.text) == reply.text
        reply = replace(
            reply,
            text=redacted.get("text", reply.text),
            model=redacted.get("model", reply.model),
            request_id=redacted.get("request_id", reply.request_id),
            logprobs=reply.logprobs if is_same_text else None,
        )
    if reply.logprobs is not None and _holds_key(reply.logprobs, reply.text, secrets):
        reply = replace(reply, logprobs=None)
    return reply


def _holds_key(logprobs: tuple[TokenLogprob, ...], text: str | None, secrets: tuple[str, ...]) -> bool:
    """Return whether the tokens of log-probabilities hold a secret; ``text`` is the reply's, searched before."""
    # Chosen tokens are joined, because a secret may be cut into several. Alternatives do not belong together: each has
    # a line of its own, without those that are too short to hold a part of a secret.
    chosen = "".join([logprob.token for logprob in logprobs])
    alternatives = "\n".join([token for logprob in logprobs for token, _ in logprob.top if len(token) >= SHORTEST_KEY])
    searched = [tokens for tokens in (chosen, alternatives) if tokens and tokens != text]
    return any(hide_key(tokens, secrets) != tokens for tokens in searched)


def _encode_text(text: str) -> bytes:
    """Encode a text as a JSON string. Raises ``UsageError`` for half of a surrogate pair."""
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        raise _make_surrogate_error() from None


def _make_surrogate_error() -> UsageError:
    return UsageError("the prompt holds half of a surrogate pair, which is no character; decode the content properly")


Schema = dict[str, Any]


_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")

_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")

_SINGLE_SCHEMAS = ("items", "additionalProperties", "not")


def change_schemas(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """Return a copy of ``schema`` with ``change`` applied to it and to every schema inside it, innermost first.

    Order is kept, because a model writes members in the order of the schema. Values that only look like schemas (inside
    ``enum``, ``const``, ``default``) are left alone.
    """
    copy: Schema = {}
    for name, value in schema.items():
        if name in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            copy[name] = {key: _change_if_schema(inner_schema, change) for key, inner_schema in value.items()}
        elif name in _SCHEMA_LISTS and isinstance(value, list | tuple):
            copy[name] = [_change_if_schema(inner_schema, change) for inner_schema in value]
        elif name in _SINGLE_SCHEMAS:
            copy[name] = _change_if_schema(value, change)
        else:
            copy[name] = value
    return change(copy)


def add_to_free_text(schema: Mapping[str, Any], extra: Mapping[str, Any]) -> Schema:
    """Return a copy in which each string that may be any text also has the keywords ``extra`` (``maxLength``)."""

    def add_keywords(inner_schema: Schema) -> Schema:
        is_free_text = inner_schema.get("type") == "string" and not {"enum", "const", "pattern"} & set(inner_schema)
        return inner_schema | dict(extra) if is_free_text else inner_schema

    return change_schemas(schema, add_keywords)


def _change_if_schema(value: Any, change: Callable[[Schema], Schema]) -> Any:
    """Change the schemas in a value; a boolean, which ``additionalProperties`` and ``items`` may be, stays as it is."""
    return change_schemas(value, change) if isinstance(value, Mapping) else value
