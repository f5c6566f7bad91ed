"""Results as OpenTelemetry events: ``gen_ai.evaluation.result``, as the semantic conventions for generative AI name it.

The conventions are in development and have no release. The names are those of
https://github.com/open-telemetry/semantic-conventions-genai (``model/gen-ai/events.yaml``), read in October 2026. Those
of its pull request 359, which say who evaluated, are emitted where ``OTEL_SEMCONV_STABILITY_OPT_IN`` asks for them.
Nothing is sent without an OpenTelemetry SDK that the program sets up itself.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_label
from adjudge.formats.text import clean, clean_id
from adjudge.result import DecidedBy, JudgeResult

try:
    from opentelemetry import trace
    from opentelemetry._logs import Logger, LoggerProvider, get_logger
    from opentelemetry.context import Context
    from opentelemetry.util.types import AttributeValue
except ModuleNotFoundError as error:
    # Other packages share the name, so it may be there without the API.
    if (error.name or "").partition(".")[0] != "opentelemetry":
        raise
    message = "adjudge.integrations.opentelemetry needs opentelemetry-api; to have it, pip install 'adjudge[otel]'"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["EvaluationEmitter", "EvaluatorType"]

EvaluatorType = Literal["llm_judge", "deterministic", "human"]

EVENT = "gen_ai.evaluation.result"

_SCHEMA = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"

_OPT_IN = "gen_ai_latest_experimental"

_TYPES: dict[DecidedBy, EvaluatorType] = {"judge": "llm_judge", "rule": "deterministic", "human": "human"}
"""The conventions' evaluator types. ``policy`` is left out, because then nobody evaluated."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationEmitter:
    """A hook that emits one event for every result: ``on_result=`` of a judge, a chain or a gate takes it.

    The event belongs to the span that is current where the judgement was asked for, or to that of ``context``. Its
    attributes: ``gen_ai.evaluation.name``; ``gen_ai.evaluation.score.value``, where there is a score;
    ``gen_ai.evaluation.score.label``, one of ``passed``, ``failed`` and ``undecided``; ``error.type`` with the reason
    where the result is undecided; ``gen_ai.response.id``, where the judgement's ``metadata`` has a ``response_id``, for
    an answer whose span is not at hand. It has no body and never the content; a result knows its digest alone.

    Where the environment variable ``OTEL_SEMCONV_STABILITY_OPT_IN`` lists ``gen_ai_latest_experimental`` when the
    emitter is made, events say as well who evaluated: ``gen_ai.evaluation.evaluator.id`` (the judge's name),
    ``.version`` (the digest of the question) and ``.type``.

    Raises ``UsageError`` for arguments that cannot be.
    """

    name: str = field(kw_only=False)
    """The quality that is evaluated, such as ``politeness``: the name under which results are found and averaged."""
    include_explanation: bool = False
    """Add ``gen_ai.evaluation.explanation``: the judge's reasoning, or why it is undecided. Off, since it may quote the
    content."""
    span_attributes: bool = False
    """Write the attributes, ``error.type`` apart, on the span as well, for those who do not read events. A span has one
    value for each name, so of several results the last one stays."""
    evaluator_type: EvaluatorType | None = None
    """The judge's kind, where ``decided_by`` does not tell: ``deterministic`` for a function that asks no model."""
    logger_provider: LoggerProvider | None = None
    """The provider to which events go; without one, the provider that the program has set for all."""
    _logger: Logger = field(init=False, repr=False)
    _names_evaluator: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_label("name", self.name)
        check_flag("include_explanation", self.include_explanation)
        check_flag("span_attributes", self.span_attributes)
        if self.evaluator_type is not None:
            check_choice("evaluator_type", self.evaluator_type, get_args(EvaluatorType))
        version = sys.modules["adjudge"].__version__
        logger = get_logger("adjudge", version, logger_provider=self.logger_provider, schema_url=_SCHEMA)
        opted_in = os.environ.get("OTEL_SEMCONV_STABILITY_OPT_IN", "").split(",")
        object.__setattr__(self, "_logger", logger)
        object.__setattr__(self, "_names_evaluator", _OPT_IN in [name.strip() for name in opted_in])

    def __call__(self, result: JudgeResult) -> None:
        """Emit the event of a result, in the current context."""
        self.emit(result)

    def emit(self, result: JudgeResult, *, context: Context | None = None) -> None:
        """Emit the event of a result.

        ``context`` holds the span of what was evaluated (``opentelemetry.trace.set_span_in_context(span)``), where that
        has ended by now; without it, the current one is taken. Raises ``UsageError`` for what is no result.
        """
        if not isinstance(result, JudgeResult):
            raise UsageError(f"an event is emitted for a JudgeResult, got {type(result).__name__}", argument="result")
        attributes = self._describe(result)
        if self.span_attributes:
            # Without error.type: on a span it says that the span's own operation failed.
            span_attributes = {name: value for name, value in attributes.items() if name != "error.type"}
            trace.get_current_span(context).set_attributes(span_attributes)
        self._logger.emit(
            timestamp=(result.created_at - _EPOCH) // timedelta(microseconds=1) * 1000,
            context=context,
            event_name=EVENT,
            attributes=attributes,
        )

    def _describe(self, result: JudgeResult) -> dict[str, AttributeValue]:
        """Describe a result by the conventions' attributes for evaluations; those without a value are left out."""
        attributes: dict[str, AttributeValue | None] = {
            "gen_ai.evaluation.name": self.name,
            "gen_ai.evaluation.score.value": None if result.score is None else float(result.score),
            "gen_ai.evaluation.score.label": result.outcome,
            "error.type": result.undecided_because,
            "gen_ai.response.id": clean_id(result.metadata.get("response_id")),
        }
        if self.include_explanation:
            attributes["gen_ai.evaluation.explanation"] = clean(result.reasoning) or result.explain()
        if self._names_evaluator:
            attributes["gen_ai.evaluation.evaluator.id"] = clean_id(result.judge)
            attributes["gen_ai.evaluation.evaluator.version"] = result.question
            attributes["gen_ai.evaluation.evaluator.type"] = self._find_type(result)
        return {name: value for name, value in attributes.items() if value is not None}

    def _find_type(self, result: JudgeResult) -> EvaluatorType | None:
        """Return the evaluator type of a result; the emitter's own ``evaluator_type`` counts if a judge decided."""
        default_type = _TYPES.get(result.decided_by)
        if default_type == "llm_judge" and self.evaluator_type is not None:
            return self.evaluator_type
        return default_type
