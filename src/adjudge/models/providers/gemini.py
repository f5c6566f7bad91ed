"""Google's Gemini API: ``generateContent``, v1beta. Source: the types of the package google-genai 3.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ModelError, UsageError
from adjudge.models.defaults import DEFAULT_MODELS
from adjudge.models.model import FinishReason, Reply, Request, TokenLogprob
from adjudge.models.providers.base import Access, HttpModel, OptionalParameters, find_finish_reason
from adjudge.models.providers.catalog import GEMINI, Endpoint
from adjudge.models.providers.error import read_error_body
from adjudge.models.usage import read_count
from adjudge.result import Usage

_TOP_LOGPROBS = 20

_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")

_NAMES_IN_ERRORS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "maxOutputTokens": ("maxOutputTokens", "max_output_tokens"),
    "responseLogprobs": ("responseLogprobs", "response_logprobs", "logprobs"),
    "responseJsonSchema": ("responseJsonSchema", "response_json_schema", "responseMimeType", "response_mime_type"),
}

_PAIRED_PARAMETERS = {"responseLogprobs": "logprobs", "responseJsonSchema": "responseMimeType"}
"""Parameters that are sent together with another one, and left out together with it."""


_FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "BLOCKLIST": "refusal",
    "SPII": "refusal",
    "ESCALATION": "refusal",
    "MODEL_ARMOR": "refusal",
    "PUP_LIMITED_DISABLED": "refusal",
}
"""Every other reason (``OTHER``, ``LANGUAGE``, ``MALFORMED_RESPONSE``) is an error of the model: what was written until
then is not complete."""


class _Part(msgspec.Struct):
    text: str | None = None
    thought: bool | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Chosen(msgspec.Struct, rename="camel"):
    token: str | None = None
    log_probability: float | None = None


class _Top(msgspec.Struct):
    candidates: list[_Chosen] | None = None


class _Logprobs(msgspec.Struct, rename="camel"):
    chosen_candidates: list[_Chosen] | None = None
    top_candidates: list[_Top] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    logprobs_result: _Logprobs | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: Any = None
    candidates_token_count: Any = None
    thoughts_token_count: Any = None
    cached_content_token_count: Any = None


class _Response(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None
    response_id: str | None = None


_DECODER = msgspec.json.Decoder(_Response)


class Gemini(HttpModel):
    """A Gemini model. The key goes in a header, never in the address, where proxies and logs would keep it."""

    def __init__(
        self,
        model: str,
        *,
        endpoint: Endpoint = Endpoint(provider=GEMINI),  # noqa: B008
        **options: Any,
    ) -> None:
        super().__init__(model, endpoint=endpoint, **options)
        if not _MODEL_NAME.fullmatch(model):
            raise UsageError(
                f"a Gemini model is called like {DEFAULT_MODELS['gemini']}, got {model!r}", argument="model"
            )

    def _find_url(self, access: Access) -> str:
        """Return the address to which requests are posted."""
        model = self.model if "/" in self.model else f"models/{self.model}"
        return f"{access.base}/{model}:generateContent"

    def _list_optional_parameters(self, request: Request, refused: frozenset[str]) -> OptionalParameters:
        """List the optional parameters that are not ``refused``, each with the names that an error may call it by."""
        return {
            name: _NAMES_IN_ERRORS[name] for name in self._make_config(request, refused) if name in _NAMES_IN_ERRORS
        }

    def _render_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        """Render the body of a request around the user part: the bytes before it and those after it."""
        body: dict[str, Any] = {}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        config = self._make_config(request, refused)
        if config:
            body["generationConfig"] = config
        body["contents"] = [{"role": "user", "parts": [{"text": ""}]}]
        encoded = msgspec.json.encode(body)
        return encoded.removesuffix(b'""}]}]}'), b"}]}]}"  # the user part takes the place of the empty text

    def _make_config(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        """Make the ``generationConfig`` of a request, without unset or refused parameters or their pairs."""
        config: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed,
            "maxOutputTokens": request.max_output_tokens,
        }
        if request.form is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": request.form.schema}
        if request.logprobs:
            config |= {"responseLogprobs": True, "logprobs": _TOP_LOGPROBS}
        left_out = refused | {_PAIRED_PARAMETERS[name] for name in refused if name in _PAIRED_PARAMETERS}
        return {name: value for name, value in config.items() if value is not None and name not in left_out}

    def _read_reply(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Read the provider's reply; a blocked one is a refusal. Raises ``ModelError`` for one without a candidate."""
        response = _DECODER.decode(body)
        blocked = response.prompt_feedback.block_reason if response.prompt_feedback else None
        candidate = response.candidates[0] if response.candidates else None
        if candidate is None and not blocked:
            raise ModelError(f"answered without a candidate: {read_error_body(body).message}")
        parts = (candidate.content.parts if candidate and candidate.content else None) or []
        reason: FinishReason = "refusal"
        if candidate is not None and not blocked:
            # "If empty, the model has not stopped generating."
            reason = find_finish_reason(_FINISH_REASONS, candidate.finish_reason, missing="length")
        return Reply(
            text="".join(part.text for part in parts if part.text and not part.thought) if candidate else None,
            finish_reason=reason,
            usage=_read_usage(response.usage_metadata),
            logprobs=_read_logprobs(candidate.logprobs_result) if candidate else None,
            model=response.model_version,
            request_id=response.response_id or headers.get("x-goog-request-id"),
        )


def _read_usage(usage: _Usage | None) -> Usage | None:
    """Convert the provider's usage, with thoughts counted as output; ``None`` where it reports none."""
    if usage is None:
        return None
    return Usage(
        input_tokens=read_count(usage.prompt_token_count),
        output_tokens=read_count(usage.candidates_token_count) + read_count(usage.thoughts_token_count),
        cached_tokens=read_count(usage.cached_content_token_count),
    )


def _read_logprobs(logprobs: _Logprobs | None) -> tuple[TokenLogprob, ...] | None:
    """Convert the log-probabilities of a reply's tokens; ``None`` where any number is missing.

    Without some of the alternatives, the others would look like all that the model could choose from.
    """
    if logprobs is None or not logprobs.chosen_candidates:
        return None
    tops = logprobs.top_candidates or []
    tokens: list[TokenLogprob] = []
    for index, candidate in enumerate(logprobs.chosen_candidates):
        chosen_pairs = _list_pairs([candidate])
        if not chosen_pairs:
            return None
        alternatives = (tops[index].candidates or []) if index < len(tops) else []
        top = _list_pairs(alternatives)
        if len(top) < len(alternatives):
            return None
        token, logprob = chosen_pairs[0]
        tokens.append(TokenLogprob(token=token, logprob=logprob, top=top))
    return tuple(tokens)


def _list_pairs(candidates: list[_Chosen]) -> tuple[tuple[str, float], ...]:
    """List the token and the log-probability of each candidate, without those that lack either."""
    return tuple(
        (candidate.token, candidate.log_probability)
        for candidate in candidates
        if candidate.token is not None and candidate.log_probability is not None
    )
