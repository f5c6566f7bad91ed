"""The batch interfaces of models' providers.

The state machine that all jobs go through is run in ``runs/batch/dispatcher.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from adjudge.errors import Argument, UsageError
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


def _find_api(model: Model) -> Callable[[Any], BatchApi] | None:
    """Find the class of the batch interface for a model; ``None`` where there is none here."""
    if isinstance(model, Anthropic):
        return AnthropicBatches
    if isinstance(model, Gemini):
        return GeminiBatches
    if isinstance(model, OpenAICompatible) and model.endpoint.provider.prefix in _OPENAI_LIKE:
        return OpenAIBatches
    return None


def open_batch_api(model: Model) -> BatchApi:
    """Open the batch interface for a model; raise ``UsageError`` where there is none here, or no key."""
    api_class = _find_api(model)
    if api_class is None:
        raise _make_error(model)
    return api_class(model)


def knows_batches(model: Model) -> bool:
    """Return whether a model can be asked by batch here; its key is not looked for."""
    return _find_api(model) is not None


def has_batches(model: Model) -> TypeGuard[HttpModel]:
    """Return whether a model can be asked by batch; raises ``UsageError`` for a provider's model that cannot.

    Functions, recordings and models of your own cannot either, and are asked at once.
    """
    if not isinstance(model, HttpModel):
        return False
    open_batch_api(model)  # raises where there is none, or no key
    return True


def require_batches(model: Model) -> HttpModel:
    """Return the model itself if it can be asked by batch; raise ``UsageError`` for any other."""
    if not has_batches(model):
        raise _make_error(model)
    return model


def _make_error(model: Model) -> UsageError:
    return UsageError(
        f"{model.name} cannot be asked by batch here; use {_KNOWN}, or leave ",
        Argument("batch"),
        " out",
        argument="batch",
    )
