"""Chat completions, the wire format that OpenAI, most other providers and every local server speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ModelError, UsageError
from adjudge.models.model import FinishReason, Form, Reply, Request, TokenLogprob
from adjudge.models.providers.base import Access, HttpModel, OptionalParameters, add_to_free_text, find_finish_reason
from adjudge.models.providers.catalog import Endpoint
from adjudge.models.providers.error import read_error_body
from adjudge.models.usage import read_count
from adjudge.result import Usage

_TOP_LOGPROBS = 20

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",  # Together
    "eos_token": "stop",  # text-generation-inference
    "stop_sequence": "stop",
    "end_turn": "stop",  # proxies that pass on what Anthropic says
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "model_length": "length",  # Mistral
    "max_tokens": "length",
    "content_filter": "refusal",
}
"""Every other reason is an error of the model: ``error`` (Mistral, OpenRouter), ``abort`` (vLLM, SGLang),
``insufficient_system_resource`` (DeepSeek) and what nobody knows yet end replies that are not complete."""

_OTHER_LIMIT_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct):
    # "reasoning" and "reasoning_content" are not here on purpose: what is not read cannot enter the answer.
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Top(msgspec.Struct):
    token: str = ""
    logprob: float | None = None


class _Token(msgspec.Struct):
    token: str = ""
    logprob: float | None = None
    top_logprobs: list[_Top] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None
    tokens: list[str] | None = None
    """Together's form: tokens and their numbers side by side."""
    token_logprobs: list[float | None] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


_DECODER = msgspec.json.Decoder(_Completion)


class OpenAICompatible(HttpModel):
    """A model behind an OpenAI-compatible ``/chat/completions``.

    ``free_text`` adds JSON Schema keywords to every string of the form that has no ``enum``, ``const`` or
    ``pattern``: ``{"pattern": "^[A-Za-z0-9 ,.;:()-]{1,200}$"}`` for a server whose decoder can write broken UTF-8.
    Such a pattern leaves out quotes, braces and backslashes, with which a small model breaks its own JSON.
    """

    def __init__(
        self,
        model: str,
        *,
        endpoint: Endpoint,
        free_text: Mapping[str, object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, endpoint=endpoint, **options)
        if free_text is not None and not isinstance(free_text, Mapping):
            raise UsageError(
                f"free_text must be a mapping of JSON Schema keywords, got {type(free_text).__name__}",
                argument="free_text",
            )
        self.free_text = dict(free_text) if free_text else None

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of every model, and the keywords that are added to the strings of a form."""
        return super().identity | ({"free_text": self.free_text} if self.free_text else {})

    def _options(self) -> dict[str, Any]:
        """Return the arguments with which a model like this one is made."""
        return super()._options() | {"free_text": self.free_text}

    def _find_url(self, access: Access) -> str:
        """Return the address to which requests are posted."""
        return f"{access.base}/chat/completions"

    def _list_optional_parameters(self, request: Request, refused: frozenset[str]) -> OptionalParameters:
        """List the optional parameters that are not ``refused``, each with the names that an error may call it by."""
        body = self._make_parameters(request, refused)
        other_names = {"logprobs": ("logprobs", "top_logprobs"), "response_format": ("response_format", "json_schema")}
        return {name: other_names.get(name, (name,)) for name in body if name != "top_logprobs"}

    def _render_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Render the body of a request around the user part: the bytes before it and those after it."""
        system = [{"role": "system", "content": request.system}] if request.system else []
        opening = msgspec.json.encode({"model": self.model, "messages": [*system, {"role": "user", "content": ""}]})
        parameters = msgspec.json.encode(self._make_parameters(request, refused))
        # ``opening`` ends in '""}]}'. The user part takes the place of '""', and the parameters follow after '}]'.
        end = b"," + parameters[1:] if len(parameters) > 2 else b"}"
        return opening.removesuffix(b'""}]}'), b"}]" + end

    def _make_parameters(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        """Make the parameters of a request, under the provider's names and without those that it refused."""
        provider, body = self.endpoint.provider, dict[str, Any]()
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body[provider.seed] = request.seed
        if request.max_output_tokens is not None:
            limit = provider.max_tokens
            # A provider that refuses one name of the limit may take the other one.
            body[_OTHER_LIMIT_NAME[limit] if limit in refused else limit] = request.max_output_tokens
        if request.logprobs and provider.logprobs == "count":
            body["logprobs"] = 1
        elif request.logprobs and provider.logprobs == "top":
            body |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
        if request.form is not None and provider.structured:
            body["response_format"] = self._make_form(request.form)
        if "logprobs" in refused:
            body.pop("top_logprobs", None)
        return {name: value for name, value in body.items() if name not in refused}

    def _make_form(self, form: Form) -> dict[str, Any]:
        """Make the ``response_format`` that holds a model to the form's schema."""
        schema = add_to_free_text(form.schema, self.free_text) if self.free_text else form.schema
        return {"type": "json_schema", "json_schema": {"name": form.name, "strict": True, "schema": schema}}

    def _read_reply(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Read the provider's reply, with the reason why it ended. Raises ``ModelError`` for one without a choice."""
        completion = _DECODER.decode(body)
        if not completion.choices:
            # Routers answer 200 with an error inside.
            raise ModelError(f"answered without a choice: {read_error_body(body).message}")
        choice = completion.choices[0]
        message = choice.message
        text = message.content if not isinstance(message.content, list) else _join_parts(message.content)
        reason: FinishReason = "refusal"
        if not message.refusal:
            missing: FinishReason = "length" if self.endpoint.provider.says_why else "other"
            reason = find_finish_reason(_FINISH_REASONS, choice.finish_reason, missing=missing)
        return Reply(
            text=text or message.refusal or text,
            finish_reason=reason,
            usage=_read_usage(completion.usage),
            logprobs=_read_logprobs(choice.logprobs),
            model=completion.model,
            request_id=headers.get("x-request-id") or completion.id,
        )


def _join_parts(parts: list[_Part]) -> str:
    """Join the texts of the parts that are text."""
    return "".join(part.text for part in parts if part.type == "text" and part.text)


def _read_usage(usage: _Usage | None) -> Usage | None:
    """Convert the provider's usage; ``None`` where it reports none."""
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    return Usage(
        input_tokens=read_count(usage.prompt_tokens),
        output_tokens=read_count(usage.completion_tokens),
        cached_tokens=read_count(details.cached_tokens) if details else 0,
        written_tokens=read_count(details.cache_write_tokens) if details else 0,
    )


def _read_logprobs(logprobs: _Logprobs | None) -> tuple[TokenLogprob, ...] | None:
    """Convert the log-probabilities of a reply's tokens; ``None`` where any number is missing.

    Without some of the alternatives, the others would look like all that the model could choose from.
    """
    if logprobs is None:
        return None
    if logprobs.content:
        tokens = logprobs.content
    elif logprobs.tokens and logprobs.token_logprobs and len(logprobs.tokens) == len(logprobs.token_logprobs):
        tokens = [_Token(token, number) for token, number in zip(logprobs.tokens, logprobs.token_logprobs, strict=True)]
    else:
        return None
    listed: list[TokenLogprob] = []
    for chosen in tokens:
        if chosen.logprob is None:
            return None
        top = tuple(
            (alternative.token, alternative.logprob)
            for alternative in chosen.top_logprobs or ()
            if alternative.logprob is not None
        )
        if len(top) < len(chosen.top_logprobs or ()):
            return None
        listed.append(TokenLogprob(token=chosen.token, logprob=chosen.logprob, top=top))
    return tuple(listed)
