"""From a model to the batch interface of its provider."""

from __future__ import annotations

from adjudge.errors import UsageError
from adjudge.models.batch.anthropic import AnthropicBatches
from adjudge.models.batch.gemini import GeminiBatches
from adjudge.models.batch.job import BatchApi
from adjudge.models.batch.openai import OpenAIBatches
from adjudge.models.model import Model
from adjudge.models.providers.anthropic import Anthropic
from adjudge.models.providers.base import HttpModel
from adjudge.models.providers.gemini import Gemini
from adjudge.models.providers.openai import OpenAICompatible

_OPENAI_LIKE = frozenset({"openai", "groq", "http"})
"""Prefixes of those with OpenAI's ``/files`` and ``/batches``. Azure's deployments for batches cannot be asked live, so
nothing could be tried first; Mistral, Together and OpenRouter have interfaces of their own shape, and Ollama none."""

_KNOWN = "openai:, anthropic:, gemini:, groq:, or a server at http://... that has /v1/batches"


def open_batch_api(model: Model) -> BatchApi:
    """The batch interface for a model; raises ``UsageError`` where there is none here, or no key."""
    if isinstance(model, Anthropic):
        return AnthropicBatches(model)
    if isinstance(model, Gemini):
        return GeminiBatches(model)
    if isinstance(model, OpenAICompatible) and model.place.provider.prefix in _OPENAI_LIKE:
        return OpenAIBatches(model)
    raise UsageError(f"{model.name} cannot be asked by batch here; use {_KNOWN}, or leave batch (--batch) out")


def has_batches(model: Model) -> bool:
    """Whether a model can be asked by batch; raises ``UsageError`` for a provider's model that cannot.

    Functions, recordings and models of your own cannot either, and are asked at once.
    """
    if not isinstance(model, HttpModel):
        return False
    open_batch_api(model)
    return True
