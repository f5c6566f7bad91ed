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
from adjudge.models.providers.error import find_refused, make_http_error, read_complaint
from adjudge.models.providers.http import Transport
from adjudge.models.providers.key_redaction import SHORTEST_KEY, hide_key, redact_error
from adjudge.models.reported_name import REPORTED
from adjudge.models.usage import believe_usage

MAX_INPUT_CHARACTERS = 1_000_000

_ADAPTATIONS = 4

_FRAMES = 64


Sent = dict[str, tuple[str, ...]]
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
        place: Endpoint,
        max_concurrency: int | None = None,
        requests_per_minute: float | None = None,
        max_input_characters: int = MAX_INPUT_CHARACTERS,
        transport: Transport | None = None,
    ) -> None:
        if not model.strip():
            raise UsageError(f"{place.provider.prefix}: needs a model's name after it")
        self.model = model
        """The name the provider knows the model by."""
        self.place = place
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
        place = self.place
        if place.provider.prefix == "http":
            return f"{place.find_base('')}#{self.model}"
        return f"{place.provider.prefix}:{self.model}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts this model can contact; none while nothing says where it is."""
        try:
            return (read_host(self.place.find_base("")),)
        except UsageError:
            return ()

    @property
    def identity(self) -> dict[str, Any]:
        """The part of its identity besides its name and the request, for the keys of caches: the address."""
        return {"address": self.place.find_base(self.name)}

    def named(self, name: str) -> Self:
        """Another model of the same provider, over the same connections and under the same limits."""
        return type(self)(name, **self._options())

    def check(self) -> None:
        """Raise ``UsageError`` for what is wrong before anything is asked: no key, no address."""
        _ = self.access

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
            complaint = read_complaint(content)
            newly_refused = (
                find_refused(complaint, self._list_sent(request, refused)) if status in (400, 422) else frozenset()
            )
            if not newly_refused or attempts > _ADAPTATIONS:
                break
            refused |= newly_refused
        if status == 401:
            # A key that was replaced in the environment is read again.
            self._access = None
        raise make_http_error(access.host, status, complaint.message, access.secrets)

    @property
    def access(self) -> Access:
        """The address at which the provider is asked, and the key; raises ``UsageError`` as ``check`` does."""
        if self._access is None:
            provider, spec = self.place.provider, self.name
            key, base = self.place.find_key(spec), self.place.find_base(spec)
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
        """The parameters of a request that the provider's error body says it does not take, known before or not."""
        return find_refused(read_complaint(body), self._list_sent(request, frozenset()))

    def render_body(self, request: Request) -> bytes:
        """The body that ``complete`` would send, for whoever has it sent in another way."""
        head, tail = self._find_frame(request, self._refused)
        return head + _encode_text(request.user) + tail

    def read_body(self, body: bytes) -> Reply:
        """The reply in a body that came in another way; raises ``ModelError`` where there is none."""
        return self.compare_names(self._read_safely(body, {}, self.access))

    def compare_names(self, reply: Reply) -> Reply:
        """The reply with the name that was asked for, and that which is expected; logs once where they differ.

        A reply out of a cache is compared as well: it was this model's.
        """
        if not reply.model:
            return replace(reply, model_requested=self.model, model_expected=None)
        model, reported = (self.name, self.place.find_base(self.name)), reply.model[:LONGEST_NAME]
        expected = REPORTED.expect(model, reported) if self.place.provider.any_name else None
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
        # Without the key, which has been read from the environment: each process reads it from its own.
        return partial(type(self), **self._options()), (self.model,)

    # What an adapter adds.

    def _options(self) -> dict[str, Any]:
        return {"place": self.place, "max_input_characters": self.max_input_characters, "transport": self.transport}

    def _find_url(self, access: Access) -> str:
        raise NotImplementedError

    def _list_sent(self, request: Request, refused: frozenset[str]) -> Sent:
        raise NotImplementedError

    def _render_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Render the body of a request around the user part: what stands before that part, and what stands after it."""
        raise NotImplementedError

    def _read_reply(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        raise NotImplementedError

    def _extra_headers(self) -> dict[str, str]:
        return {}

    def _find_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Find the frame of a request as ``_render_frame`` returns it, which is rendered once for equal ones."""
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
            if len(self._frames) >= _FRAMES:
                self._frames.pop(next(iter(self._frames)), None)
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
            return _hide_keys(believe_usage(self._read_reply(body, headers), self.name), access.secrets)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            problem = redact_error(str(error), access.secrets)
            failed = ModelError(f"{access.host} answered with something that is not its reply format: {problem}")
        except ModelError as error:
            failed = ModelError(f"{access.host} {redact_error(str(error), access.secrets)}", status=error.status)
        # Out here, so that the error does not carry the one before it, which was not cleaned.
        raise failed


def find_finish_reason(
    reasons: Mapping[str, FinishReason], stated: str | None, *, missing: FinishReason
) -> FinishReason:
    """Find the reason why a reply ended. ``missing`` is the reason where the provider says nothing.

    Raises ``ModelError`` for a reason that is not known: something stopped the model, and a reply that was stopped may
    hold a verdict that its model was about to take back.
    """
    if not stated:
        return missing
    reason = reasons.get(stated)
    if reason is None:
        raise ModelError(f"ended its reply with the reason {stated!r}, which does not say that the reply is complete")
    return reason


def _hide_keys(reply: Reply, secrets: tuple[str, ...]) -> Reply:
    """The reply with ``***`` for each secret: a server may send back the key it was asked with.

    Log-probabilities with a secret in them are dropped; they would not fit the text any more.
    """
    if not secrets:
        return reply
    texts = {name: text for name in ("text", "model", "request_id") if (text := getattr(reply, name))}
    # Together: a look through one text costs less than through three.
    whole = "\n".join(texts.values())
    if hide_key(whole, secrets) != whole:
        hidden = {name: hide_key(text, secrets) for name, text in texts.items()}
        same = hidden.get("text", reply.text) == reply.text
        reply = replace(
            reply,
            text=hidden.get("text", reply.text),
            model=hidden.get("model", reply.model),
            request_id=hidden.get("request_id", reply.request_id),
            logprobs=reply.logprobs if same else None,
        )
    if reply.logprobs is not None and _holds_key(reply.logprobs, reply.text, secrets):
        reply = replace(reply, logprobs=None)
    return reply


def _holds_key(logprobs: tuple[TokenLogprob, ...], text: str | None, secrets: tuple[str, ...]) -> bool:
    # The chosen tokens joined, since they cut a secret in pieces; of the others, each is all there is, and what is
    # shorter than a part that counts is passed over.
    chosen = "".join([logprob.token for logprob in logprobs])
    others = "\n".join([other for logprob in logprobs for other, _ in logprob.top if len(other) >= SHORTEST_KEY])
    return any(hide_key(logprob, secrets) != logprob for logprob in (chosen, others) if logprob and logprob != text)


def _encode_text(text: str) -> bytes:
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        raise _make_surrogate_error() from None


def _make_surrogate_error() -> UsageError:
    return UsageError("the prompt holds half of a surrogate pair, which is no character; decode the content properly")


Schema = dict[str, Any]


_NAMED = ("properties", "$defs", "definitions", "patternProperties")

_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")

_SINGLE = ("items", "additionalProperties", "not")


def change_schemas(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """A copy of ``schema`` with ``change`` applied to it and to every schema inside it, innermost first.

    Order is kept: a model writes members in the order of the schema. Values that only look like schemas (inside
    ``enum``, ``const``, ``default``) are left alone.
    """
    copy: Schema = {}
    for name, value in schema.items():
        if name in _NAMED and isinstance(value, Mapping):
            copy[name] = {key: _change_texts(part, change) for key, part in value.items()}
        elif name in _LISTED and isinstance(value, list | tuple):
            copy[name] = [_change_texts(part, change) for part in value]
        elif name in _SINGLE:
            copy[name] = _change_texts(value, change)
        else:
            copy[name] = value
    return change(copy)


def add_to_free_text(schema: Mapping[str, Any], extra: Mapping[str, Any]) -> Schema:
    """A copy in which every string that may be anything also has the keywords ``extra``, such as ``maxLength``."""

    def add(part: Schema) -> Schema:
        free = part.get("type") == "string" and not {"enum", "const", "pattern"} & set(part)
        return part | dict(extra) if free else part

    return change_schemas(schema, add)


def _change_texts(value: Any, change: Callable[[Schema], Schema]) -> Any:
    # "additionalProperties" and "items" may also be a boolean.
    return change_schemas(value, change) if isinstance(value, Mapping) else value
