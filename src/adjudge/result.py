"""What a judgement is: the values everything else talks about.

A result's outcome is ``passed``, ``failed`` or ``undecided``, and ``passed`` is true for the first alone, so code
that only asks ``if result.passed`` fails closed by the shape of the type. Results are data: they hold no model, no
connection and no clock, and go to and from plain dictionaries; only the Python types of ``value`` and ``metadata``
are lost on the way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

from adjudge.errors import JudgmentFailed, UsageError

Outcome = Literal["passed", "failed", "undecided"]
DecidedBy = Literal["judge", "rule", "policy", "human"]
Severity = Literal["error", "warning", "info"]
Reason = Literal[
    "tampering",
    "contradiction",
    "refused",
    "truncated",
    "off_scale",
    "missing_criterion",
    "unparseable",
    "error",
    "timeout",
    "budget",
    "split",
    "unsure",
    "cancelled",
]

REASONS: tuple[Reason, ...] = get_args(Reason)
"""Why a result is undecided, gravest first; a chain shows the gravest of its seats' reasons."""

_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_GRAVITY = {reason: place for place, reason in enumerate(REASONS)}


def find_gravest(reasons: list[Reason]) -> Reason | None:
    """The gravest of some reasons, or ``None`` when there are none."""
    return min(reasons, key=_GRAVITY.__getitem__, default=None)


_FIXED = 0x7 << 76 | 0x2 << 62  # version and variant of a UUIDv7
_NOT_FIXED = ~(0xF << 76 | 0x3 << 62)


def make_id() -> str:
    """A new UUIDv7 (RFC 9562): sortable by time, random in its lower 74 bits."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & _NOT_FIXED | _FIXED
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a judgement used: tokens, calls and, where the price is known, dollars."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens the provider took from its own prompt cache; part of ``input_tokens``."""
    calls: int = 1
    """Requests that were answered; retries of refused connections are not among them."""
    cost_usd: float | None = None
    """``None`` means unknown, never free."""

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            calls=self.calls + other.calls,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; unknown keys are ignored."""
        return cls(**_known(cls, data))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What one deterministic rule said about the content."""

    name: str
    passed: bool
    severity: Severity = "error"
    message: str = ""
    """One sentence: what was found, or what was missing."""
    score: float | None = None
    """A degree in 0 to 1 for rules that measure one (similarity), else ``None``."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        return data | {"metadata": dict(self.metadata)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; unknown keys are ignored."""
        return cls(**_known(cls, data))


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """How the content did on one criterion of a rubric."""

    name: str
    score: float | None
    """In 0 to 1 whatever scale the judge was asked for; ``None`` when the judge gave none."""
    passed: bool
    """Score at or above the criterion's threshold, or above 0.5 where it has none; only an explicit one gates."""
    reasoning: str = ""
    weight: float = 1.0
    threshold: float | None = None
    """The explicit threshold, in 0 to 1; ``None`` when the criterion does not gate."""
    rule: str | None = None
    """The kind of rule that decided (``regex``), for a criterion no model was asked about."""
    evidence: tuple[str, ...] = ()
    """Quotations from the content, checked to stand in it."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        return data | {"evidence": list(self.evidence)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; unknown keys are ignored."""
        known = _known(cls, data)
        return cls(**known | {"evidence": tuple(known.get("evidence", ()))})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeResult:
    """A judge's answer to one question, computed in code from what the judge said.

    Scores are in 0 to 1, durations in milliseconds, digests are hexadecimal SHA-256.
    """

    schema: ClassVar[str] = "adjudge/result/1"

    outcome: Outcome
    judge: str
    """The name of the judge that answered."""
    undecided_because: Reason | None = None
    """Set exactly when the outcome is undecided."""
    detail: str = ""
    """One sentence about what decided, or what could not be read."""
    decided_by: DecidedBy = "judge"
    score: float | None = None
    """``None`` when undecided, never 0 for "could not tell"."""
    threshold: float | None = None
    """The passing threshold that was in force."""
    confidence: float | None = None
    """From token probabilities or votes; ``None`` is unknown, and never what a model says about itself."""
    criteria: tuple[CriterionResult, ...] = ()
    rule_results: tuple[RuleResult, ...] = ()
    reasoning: str = ""
    suggestions: tuple[str, ...] = ()
    value: Any = None
    """The instance of ``result_format``, or the reading of a named reply form; ``None`` when undecided."""
    model: str | None = None
    """The model as the provider reports it."""
    raw_response: str | None = None
    """The reply as it was received; where one was re-asked, the last."""
    earlier_responses: tuple[str, ...] = ()
    """Replies that could not be read and were followed by a re-ask, oldest first."""
    finish_reason: str | None = None
    attempts: int = 1
    """How often the model was asked; 2 after a re-ask, 0 when a rule decided."""
    duration_ms: float = 0.0
    usage: Usage | None = None
    question: str | None = None
    """Digest of the question, computed with the token masked, so it is the same on every machine."""
    subject: str | None = None
    """Digest of the content that was judged."""
    qualification: str | None = None
    """What a certificate says about the judge that decided; ``None`` where nothing is known."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=make_id)
    created_at: datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        if self.outcome not in _OUTCOMES:
            raise UsageError(f"an outcome is one of {', '.join(_OUTCOMES)}; got {self.outcome!r}")
        if self.undecided_because is not None and self.undecided_because not in REASONS:
            raise UsageError(f"undecided_because is one of {', '.join(REASONS)}; got {self.undecided_because!r}")
        # Guarding these two here means that no reader, strategy or policy, present or future, can build a result
        # that says "passed" while it carries a reason for not having decided.
        if (self.outcome == "undecided") != (self.undecided_because is not None):
            raise UsageError(
                f"a result that is {self.outcome!r} cannot have undecided_because={self.undecided_because!r}; "
                "set the reason exactly when the outcome is 'undecided'"
            )
        if self.outcome == "undecided" and self.score is not None:
            raise UsageError(f"an undecided result has no score, but was given {self.score!r}; leave it None")

    @property
    def passed(self) -> bool:
        """True only when the outcome is ``passed``; failed and undecided are both false."""
        return self.outcome == "passed"

    def __bool__(self) -> bool:
        # Without this every result is true, and `if judge.evaluate_sync(...)` lets everything through.
        return self.passed

    def criterion(self, name: str) -> CriterionResult:
        """The result for the criterion of this name; raises ``KeyError`` naming those there are."""
        for item in self.criteria:
            if item.name == name:
                return item
        raise KeyError(f"no criterion {name!r} in this result; it has {[item.name for item in self.criteria]}")

    def raise_if_failed(self) -> Self:
        """Raise ``JudgmentFailed`` unless the content passed (failed and undecided alike); else return this result."""
        if not self.passed:
            raise JudgmentFailed(self)
        return self

    def explain(self) -> str:
        """The outcome in one line: score against threshold or the reason, who decided, and the detail."""
        said = f"{self.outcome}: {self.undecided_because}" if self.undecided_because else str(self.outcome)
        if self.score is not None:
            said += f" with {self.score:.2f}"
            said += f" (needs {self.threshold:.2f})" if self.threshold is not None else ""
        low = [item.name for item in self.criteria if item.threshold is not None and not item.passed]
        said += f"; below their own threshold: {', '.join(low)}" if low else ""
        return f"{said}; {self.detail}" if self.detail else said

    def to_dict(self) -> dict[str, Any]:
        """This result as plain data that JSON can hold; ``from_dict`` reads it back."""
        data: dict[str, Any] = {"schema": self.schema}
        for item in fields(self):
            data[item.name] = _plain(getattr(self, item.name))
        return data | {"passed": self.passed}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` when it is something else."""
        return _build(cls, data, {})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.judge!r} {self.explain()}>"

    def __rich__(self) -> Any:
        from adjudge._display import draw_result

        return draw_result(self)

    def _repr_html_(self) -> str:
        from adjudge._display import write_html

        return write_html(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeChainResult(JudgeResult):
    """A chain's answer, with one result for every seat that was asked."""

    schema: ClassVar[str] = "adjudge/chain-result/1"

    strategy: str
    results: tuple[JudgeResult, ...] = ()
    """In seat order. A seat never asked is absent; one cut short is undecided: cancelled."""

    @property
    def fallback_triggered(self) -> bool:
        """True exactly when a policy decided and not a judge."""
        return self.decided_by == "policy"

    @property
    def total_duration_ms(self) -> float:
        """How long the chain took, in milliseconds (the seeds' name for ``duration_ms``)."""
        return self.duration_ms

    def to_dict(self) -> dict[str, Any]:
        """This result and those of its seats as plain data."""
        # Named, not super(): a slotted dataclass is rebuilt, and super() without arguments then fails.
        data = JudgeResult.to_dict(self)
        data["results"] = [item.to_dict() for item in self.results]
        return data | {"fallback_triggered": self.fallback_triggered, "total_duration_ms": self.total_duration_ms}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote, seats included, to any depth."""
        return _build(cls, data, {"results": tuple(read_result(item) for item in data.get("results", ()))})


R = TypeVar("R", bound=JudgeResult)


def read_result(data: Mapping[str, Any]) -> JudgeResult:
    """A result of either kind from what its ``to_dict`` wrote; raises ``UsageError`` for anything else."""
    kinds: tuple[type[JudgeResult], ...] = (JudgeChainResult, JudgeResult)
    for kind in kinds:
        if data.get("schema") == kind.schema:
            return kind.from_dict(data)
    known = ", ".join(kind.schema for kind in kinds)
    raise UsageError(f"a result has one of the schemas {known}; this dictionary has {data.get('schema')!r}")


def _build(cls: type[R], data: Mapping[str, Any], more: Mapping[str, Any]) -> R:
    try:
        return cls(**{**_fields_of(cls, data), **more})
    except UsageError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"
        raise UsageError(f"this is not a dictionary that {cls.__name__}.to_dict wrote ({said})") from None


def _fields_of(cls: type[JudgeResult], data: Mapping[str, Any]) -> dict[str, Any]:
    if data.get("schema") != cls.schema:
        raise UsageError(f"expected a dictionary with schema {cls.schema!r}, got {data.get('schema')!r}")
    return _known(cls, data) | {
        "criteria": tuple(CriterionResult.from_dict(item) for item in data.get("criteria", ())),
        "rule_results": tuple(RuleResult.from_dict(item) for item in data.get("rule_results", ())),
        "suggestions": tuple(data.get("suggestions", ())),
        "earlier_responses": tuple(data.get("earlier_responses", ())),
        "usage": Usage.from_dict(data["usage"]) if data.get("usage") else None,
        "created_at": datetime.fromisoformat(data["created_at"]),
    }


def _known(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(cls)}
    return {key: value for key, value in data.items() if key in names}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(item) for item in value]
    for way in ("to_dict", "model_dump"):
        if hasattr(value, way):
            return _plain(getattr(value, way)())
    import msgspec

    return msgspec.to_builtins(value, enc_hook=str)
