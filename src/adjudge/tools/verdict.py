"""What reviews of forged tools come to. Each verdict is true exactly when it approves, or when the output is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_flag, check_share
from adjudge.formats.text import show
from adjudge.result import JudgeChainResult, read_result

DIMENSIONS = ("safety", "correctness", "determinism", "bounded")
"""What a candidate is reviewed for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationVerdict:
    """Whether a candidate may become a tool, and how it did on the four dimensions, each in 0 to 1."""

    schema: ClassVar[str] = "adjudge/creation-verdict/1"

    approved: bool
    confidence: float
    """The reviewer's confidence, in 0 to 1; 0 if the candidate was rejected without a readable review."""
    safety: float
    correctness: float
    determinism: float
    bounded: float
    reasoning: str
    """The reviewer's words, or why the reply could not be read, or which check failed; it may quote the tool."""
    tool_digest: str
    """What was reviewed: SHA-256 of source, steps, schemas and allowlist. The verdict is on nothing else."""
    chain_result: JudgeChainResult | None = None
    """What every judge said; ``None`` when nobody was asked."""

    def __post_init__(self) -> None:
        check_flag("approved of a verdict", self.approved)
        for name in ("confidence", *DIMENSIONS):
            check_share(f"{name} of a verdict", getattr(self, name))
        _check_texts(self.reasoning, self.tool_digest)
        _check_approval(self)
        if self.approved and not all(getattr(self, name) > 0 for name in DIMENSIONS):
            raise UsageError("a candidate is approved only when no dimension is 0")

    def __bool__(self) -> bool:
        return self.approved

    def to_dict(self) -> dict[str, Any]:
        """This verdict as plain data; ``from_dict`` reads it back."""
        return _to_dict(self, ("approved", "confidence", *DIMENSIONS, "reasoning", "tool_digest", "chain_result"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        return _make(cls, _read(data, cls.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdict:
    """The verdict of one of the two reviewers of a promotion."""

    schema: ClassVar[str] = "adjudge/review-verdict/1"

    approved: bool
    confidence: float
    """What the reviewer stated, in 0 to 1; 0 when nothing could be read."""
    reasoning: str
    chain_result: JudgeChainResult | None = None

    def __post_init__(self) -> None:
        check_flag("approved of a verdict", self.approved)
        check_share("confidence of a verdict", self.confidence)
        _check_texts(self.reasoning)
        _check_approval(self)

    def __bool__(self) -> bool:
        return self.approved

    def to_dict(self) -> dict[str, Any]:
        """This review as plain data; ``from_dict`` reads it back."""
        return _to_dict(self, ("approved", "confidence", "reasoning", "chain_result"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        return _make(cls, _read(data, cls.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionVerdict:
    """Whether a tool may rise by one tier; both reviewers have to approve."""

    schema: ClassVar[str] = "adjudge/promotion-verdict/1"

    approved: bool
    confidence: float
    """The lower of the two."""
    safety: ReviewVerdict
    correctness: ReviewVerdict
    tool_digest: str
    """What was reviewed: SHA-256 of source, steps, schemas and allowlist."""

    def __post_init__(self) -> None:
        check_flag("approved of a verdict", self.approved)
        check_share("confidence of a verdict", self.confidence)
        for name in ("safety", "correctness"):
            if not isinstance(getattr(self, name), ReviewVerdict):
                raise UsageError(f"{name} of a promotion is a ReviewVerdict, got {show(getattr(self, name))}")
        _check_texts(self.tool_digest)
        if self.approved != (self.safety.approved and self.correctness.approved):
            raise UsageError("a promotion is approved exactly when both of its reviews approve")
        if self.confidence != min(self.safety.confidence, self.correctness.confidence):
            raise UsageError("a promotion's confidence is the lower of its two reviews'")

    def __bool__(self) -> bool:
        return self.approved

    @property
    def reasoning(self) -> str:
        """What both reviewers said."""
        return f"safety: {self.safety.reasoning}\ncorrectness: {self.correctness.reasoning}"

    def to_dict(self) -> dict[str, Any]:
        """This verdict as plain data; ``from_dict`` reads it back."""
        return _to_dict(self, ("approved", "confidence", "safety", "correctness", "tool_digest"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        given = _read(data, cls.schema)
        reviews = {name: ReviewVerdict.from_dict(given.get(name, {})) for name in ("safety", "correctness")}
        return _make(cls, given | reviews)


ToolVerdict = CreationVerdict | PromotionVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseVerdict:
    """Whether a tool's output fits its schema; computed without asking anybody."""

    schema: ClassVar[str] = "adjudge/reuse-verdict/1"

    valid: bool
    schema_errors: tuple[str, ...] = ()
    """``path: what``, as in ``u.n: ...`` and ``[2].x: ...``; of the output itself ``the output: ...``."""
    anomaly: bool = False
    """Whether the output's size or shape lies outside the history that was given."""

    def __bool__(self) -> bool:
        return self.valid

    def to_dict(self) -> dict[str, Any]:
        """This verdict as plain data."""
        said = {"valid": self.valid, "schema_errors": list(self.schema_errors), "anomaly": self.anomaly}
        return {"schema": self.schema, **said}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` when it is something else."""
        given = _read(data, cls.schema)
        found = given.get("schema_errors", [])
        # Exactly true or false: a text such as "false" would count as valid.
        if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
            raise UsageError("schema_errors of a verdict must be texts")
        if any(type(given.get(name, False)) is not bool for name in ("valid", "anomaly")):
            raise UsageError("valid and anomaly of a verdict must be true or false")
        if given.get("valid") and found:
            raise UsageError("a verdict that is valid has no schema_errors, and this one has")
        return _make(cls, {**given, "schema_errors": tuple(found)})


def read_verdict(data: Mapping[str, Any]) -> ToolVerdict:
    """A verdict of either kind from what its ``to_dict`` wrote; raises ``UsageError`` for anything else."""
    said = data.get("schema") if isinstance(data, Mapping) else None
    kinds: dict[object, type[ToolVerdict]] = {kind.schema: kind for kind in (CreationVerdict, PromotionVerdict)}
    if not isinstance(said, str) or said not in kinds:
        raise UsageError(f"a verdict has one of the schemas {', '.join(map(str, kinds))}; got {show(said)}")
    return kinds[said].from_dict(data)


def _check_texts(*texts: object) -> None:
    if not all(isinstance(text, str) for text in texts):
        raise UsageError("the reasoning and the tool digest of a verdict are texts")


def _check_approval(verdict: CreationVerdict | ReviewVerdict) -> None:
    """Refuse an approval that nobody gave: held here, no reader of replies can bring one about."""
    result = verdict.chain_result
    if result is not None and not isinstance(result, JudgeChainResult):
        raise UsageError(f"the chain_result of a verdict is a JudgeChainResult or None, got {show(result)}")
    if not verdict.approved:
        return
    if verdict.confidence <= 0:
        raise UsageError("a verdict that approves has a confidence above 0")
    if result is not None and not (result.passed and result.decided_by == "judge"):
        raise UsageError("a verdict that approves needs a result that a judge passed")


def _to_dict(verdict: Any, names: tuple[str, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {"schema": verdict.schema}
    for name in names:
        value = getattr(verdict, name)
        data[name] = value.to_dict() if hasattr(value, "to_dict") else value
    return data


def _read(data: object, schema: str) -> dict[str, Any]:
    if not isinstance(data, Mapping) or data.get("schema") != schema:
        raise UsageError(f"a verdict is read from a dictionary of schema {schema!r} that to_dict wrote")
    given = {name: item for name, item in data.items() if name != "schema"}
    if given.get("chain_result") is not None:
        given["chain_result"] = read_result(given["chain_result"])
    return given


def _make(kind: type[Any], given: Mapping[str, Any]) -> Any:
    try:
        return kind(**given)
    except TypeError as error:  # a member too many, or too few
        raise UsageError(f"this is not a dictionary that {kind.__name__}.to_dict wrote: {error}") from None
