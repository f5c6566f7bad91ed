"""Google's Gemini API: ``generateContent``, v1beta. Source: the types of the package google-genai 3.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ModelError, UsageError
from adjudge.models.defaults import DEFAULT_MODELS
from adjudge.models.model import FinishReason, Reply, Request, TokenLogprob
from adjudge.models.providers.base import Access, HttpModel, Sent, find_finish_reason
from adjudge.models.providers.catalog import GEMINI, Endpoint
from adjudge.models.providers.error import read_complaint
from adjudge.models.usage import read_count
from adjudge.result import Usage

_TOP_LOGPROBS = 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")

_WORDS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "maxOutputTokens": ("maxOutputTokens", "max_output_tokens"),
    "responseLogprobs": ("responseLogprobs", "response_logprobs", "logprobs"),
    "responseJsonSchema": ("responseJsonSchema", "response_json_schema", "responseMimeType", "response_mime_type"),
}

_PARTNERS = {"responseLogprobs": "logprobs", "responseJsonSchema": "responseMimeType"}


_REASONS: Mapping[str, FinishReason] = {
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
        place: Endpoint = Endpoint(provider=GEMINI),  # noqa: B008
        **options: Any,
    ) -> None:
        super().__init__(model, place=place, **options)
        if not _NAME.fullmatch(model):
            raise UsageError(
                f"a Gemini model is called like {DEFAULT_MODELS['gemini']}, got {model!r}", argument="model"
            )

    def _find_url(self, access: Access) -> str:
        model = self.model if "/" in self.model else f"models/{self.model}"
        return f"{access.base}/{model}:generateContent"

    def _list_sent(self, request: Request, refused: frozenset[str]) -> Sent:
        return {name: _WORDS[name] for name in self._make_config(request, refused) if name in _WORDS}

    def _render_frame(self, request: Request, refused: frozenset[str]) -> tuple[bytes, bytes]:
        body: dict[str, Any] = {}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        config = self._make_config(request, refused)
        if config:
            body["generationConfig"] = config
        body["contents"] = [{"role": "user", "parts": [{"text": ""}]}]
        encoded = msgspec.json.encode(body)
        return encoded.removesuffix(b'""}]}]}'), b"}]}]}"

    def _make_config(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        """Make the config without what is unset or refused, and without the partner of what is refused."""
        config: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed,
            "maxOutputTokens": request.max_output_tokens,
        }
        if request.form is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": request.form.schema}
        if request.logprobs:
            config |= {"responseLogprobs": True, "logprobs": _TOP_LOGPROBS}
        gone = refused | {_PARTNERS[name] for name in refused if name in _PARTNERS}
        return {name: value for name, value in config.items() if value is not None and name not in gone}

    def _read_reply(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Read a reply of the provider; a blocked one is a refusal. Raises ``ModelError``."""
        response = _DECODER.decode(body)
        blocked = response.prompt_feedback.block_reason if response.prompt_feedback else None
        candidate = response.candidates[0] if response.candidates else None
        if candidate is None and not blocked:
            raise ModelError(f"answered without a candidate: {read_complaint(body).message}")
        parts = (candidate.content.parts if candidate and candidate.content else None) or []
        reason: FinishReason = "refusal"
        if candidate is not None and not blocked:
            # "If empty, the model has not stopped generating."
            reason = find_finish_reason(_REASONS, candidate.finish_reason, missing="length")
        return Reply(
            text="".join(part.text for part in parts if part.text and not part.thought) if candidate else None,
            finish_reason=reason,
            usage=_read_usage(response.usage_metadata),
            logprobs=_read_logprobs(candidate.logprobs_result) if candidate else None,
            model=response.model_version,
            request_id=response.response_id or headers.get("x-goog-request-id"),
        )


def _read_usage(usage: _Usage | None) -> Usage | None:
    """Read the usage; what the model thought is counted as output. ``None`` where the provider says nothing."""
    if usage is None:
        return None
    return Usage(
        input_tokens=read_count(usage.prompt_token_count),
        output_tokens=read_count(usage.candidates_token_count) + read_count(usage.thoughts_token_count),
        cached_tokens=read_count(usage.cached_content_token_count),
    )


def _read_logprobs(logprobs: _Logprobs | None) -> tuple[TokenLogprob, ...] | None:
    """The tokens of a reply, or ``None`` where any number is missing: half a distribution is none."""
    if logprobs is None or not logprobs.chosen_candidates:
        return None
    tops = logprobs.top_candidates or []
    tokens: list[TokenLogprob] = []
    for place, candidate in enumerate(logprobs.chosen_candidates):
        chosen = _list_pairs([candidate])
        if not chosen:
            return None
        listed = (tops[place].candidates or []) if place < len(tops) else []
        top = _list_pairs(listed)
        if len(top) < len(listed):  # the rest would be taken for all that stood to choose
            return None
        tokens.append(TokenLogprob(token=chosen[0][0], logprob=chosen[0][1], top=top))
    return tuple(tokens)


def _list_pairs(candidates: list[_Chosen]) -> tuple[tuple[str, float], ...]:
    return tuple(
        (candidate.token, candidate.log_probability)
        for candidate in candidates
        if candidate.token is not None and candidate.log_probability is not None
    )
