"""Models: one request in, one reply out. Providers, local servers, recordings, and any function."""

from adjudge.models._defaults import DEFAULT_MODELS
from adjudge.models._function import as_model
from adjudge.models._open import hosts_of, open_model, resolve_model
from adjudge.models._recording import RecordingModel
from adjudge.models._replay import MissingRecording, ReplayModel
from adjudge.models._types import FinishReason, Form, Model, Reply, Request, TokenLogprob

__all__ = [
    "DEFAULT_MODELS",
    "FinishReason",
    "Form",
    "MissingRecording",
    "Model",
    "RecordingModel",
    "ReplayModel",
    "Reply",
    "Request",
    "TokenLogprob",
    "as_model",
    "hosts_of",
    "open_model",
    "resolve_model",
]
