"""Verdicts on forged tools. Each is true exactly when it approves, or when the output is valid.

The verdicts are decided in ``review.py`` (``EmergentJudge``) and ``reuse.py`` (``validate_reuse``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_flag, check_share
from adjudge.formats.record import Layout, read_any_record, read_record, write_record
from adjudge.formats.text import show
from adjudge.result import JudgeChainResult

DIMENSIONS = ("safety", "correctness", "determinism", "bounded")
"""The properties that a candidate is reviewed for."""

_LAYOUT = Layout(readers={"chain_result": JudgeChainResult.from_dict}, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationVerdict:
    """The verdict on a candidate: whether it may become a tool, and its score on four dimensions, each in 0 to 1.

    Args:
        approved: True if the candidate may become a tool.
        confidence: The reviewer's confidence, in 0 to 1; 0 if the candidate was rejected without a readable review.
        safety: The score for doing no harm; 1 is safe.
        correctness: The score for doing what it claims.
        determinism: The score for giving the same output for the same input.
        bounded: The score for ending, within limits of time and memory.
        reasoning: The reviewer's words, or why the reply could not be read, or which check failed; it may quote the
            tool.
        tool_digest: The digest of what was reviewed: SHA-256 of source, steps, schemas and allowlist. The verdict is on
            nothing else.
        chain_result: The result of every judge; ``None`` when nobody was asked.
    """

    schema: ClassVar[str] = "adjudge/creation-verdict/1"
    _layout: ClassVar[Layout] = _LAYOUT

    approved: bool
    """True if the candidate may become a tool."""
    confidence: float
    """The reviewer's confidence, in 0 to 1; 0 if the candidate was rejected without a readable review."""
    safety: float
    """The score for doing no harm; 1 is safe."""
    correctness: float
    """The score for doing what it claims."""
    determinism: float
    """The score for giving the same output for the same input."""
    bounded: float
    """The score for ending, within limits of time and memory."""
    reasoning: str
    """The reviewer's words, or why the reply could not be read, or which check failed; it may quote the tool."""
    tool_digest: str
    """The digest of what was reviewed: SHA-256 of source, steps, schemas and allowlist. The verdict is on nothing else.
    """
    chain_result: JudgeChainResult | None = None
    """The result of every judge; ``None`` when nobody was asked."""

    def __post_init__(self) -> None:
        check_flag("approved", self.approved, where="a verdict")
        for name in ("confidence", *DIMENSIONS):
            check_share(name, getattr(self, name), where="a verdict")
        _check_texts(self.reasoning, self.tool_digest)
        _check_approval(self)
        if self.approved and not all(getattr(self, name) > 0 for name in DIMENSIONS):
            raise UsageError("a candidate is approved only when no dimension is 0")

    def __bool__(self) -> bool:
        return self.approved

    def to_dict(self) -> dict[str, Any]:
        """Write this verdict as plain data, which ``from_dict`` reads back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def reject_creation(reasoning: str, digest: str) -> CreationVerdict:
    """Make the verdict that rejects a candidate without a readable review: all scores are 0."""
    return CreationVerdict(
        approved=False,
        confidence=0.0,
        safety=0.0,
        correctness=0.0,
        determinism=0.0,
        bounded=0.0,
        reasoning=reasoning,
        tool_digest=digest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdict:
    """The verdict of one of the two reviewers of a promotion.

    Args:
        approved: True if the reviewer approves.
        confidence: The confidence that the reviewer stated, in 0 to 1; 0 when nothing could be read.
        reasoning: The reviewer's words.
        chain_result: The result of every judge; ``None`` when nobody was asked.
    """

    schema: ClassVar[str] = "adjudge/review-verdict/1"
    _layout: ClassVar[Layout] = _LAYOUT

    approved: bool
    """True if the reviewer approves."""
    confidence: float
    """The confidence that the reviewer stated, in 0 to 1; 0 when nothing could be read."""
    reasoning: str
    """The reviewer's words."""
    chain_result: JudgeChainResult | None = None
    """The result of every judge; ``None`` when nobody was asked."""

    def __post_init__(self) -> None:
        check_flag("approved", self.approved, where="a verdict")
        check_share("confidence", self.confidence, where="a verdict")
        _check_texts(self.reasoning)
        _check_approval(self)

    def __bool__(self) -> bool:
        return self.approved

    def to_dict(self) -> dict[str, Any]:
        """Write this review as plain data, which ``from_dict`` reads back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionVerdict:
    """The verdict on a promotion by one tier; both reviewers have to approve.

    Args:
        approved: True if both reviewers approve.
        confidence: The lower of the two.
        safety: The verdict of the reviewer of safety.
        correctness: The verdict of the reviewer of correctness.
        tool_digest: The digest of what was reviewed: SHA-256 of source, steps, schemas and allowlist.
    """

    schema: ClassVar[str] = "adjudge/promotion-verdict/1"
    _layout: ClassVar[Layout] = Layout(strict=True)

    approved: bool
    """True if both reviewers approve."""
    confidence: float
    """The lower of the two."""
    safety: ReviewVerdict
    """The verdict of the reviewer of safety."""
    correctness: ReviewVerdict
    """The verdict of the reviewer of correctness."""
    tool_digest: str
    """The digest of what was reviewed: SHA-256 of source, steps, schemas and allowlist."""

    def __post_init__(self) -> None:
        check_flag("approved", self.approved, where="a verdict")
        check_share("confidence", self.confidence, where="a verdict")
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
        """The reasoning of both reviewers."""
        return f"safety: {self.safety.reasoning}\ncorrectness: {self.correctness.reasoning}"

    def to_dict(self) -> dict[str, Any]:
        """Write this verdict as plain data, which ``from_dict`` reads back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


ToolReviewVerdict = CreationVerdict | PromotionVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseVerdict:
    """The verdict on whether a tool's output fits its schema; computed without asking anybody."""

    schema: ClassVar[str] = "adjudge/reuse-verdict/1"
    _layout: ClassVar[Layout] = Layout(strict=True)

    valid: bool
    """True if the output fits the schema."""
    schema_errors: tuple[str, ...] = ()
    """``path: what``, as in ``u.n: ...`` and ``[2].x: ...``; of the output itself ``the output: ...``."""
    anomaly: bool = False
    """True if the output's size or shape lies outside the history that was given."""

    def __post_init__(self) -> None:
        if self.valid and self.schema_errors:
            raise UsageError("a verdict that is valid has no schema_errors, and this one has")

    def __bool__(self) -> bool:
        return self.valid

    def to_dict(self) -> dict[str, Any]:
        """Write this verdict as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def read_verdict(data: Mapping[str, Any]) -> ToolReviewVerdict:
    """Read a verdict of either kind from what its ``to_dict`` wrote; raises ``UsageError`` for anything else.

    Args:
        data: What ``to_dict`` wrote.
    """
    return read_any_record((CreationVerdict, PromotionVerdict), data)


def _check_texts(*texts: object) -> None:
    """Raise ``UsageError`` for a reasoning or a digest that is no text."""
    if not all(isinstance(text, str) for text in texts):
        raise UsageError("the reasoning and the tool digest of a verdict are texts")


def _check_approval(verdict: CreationVerdict | ReviewVerdict) -> None:
    """Raise ``UsageError`` for a verdict that approves without a confidence, or against the result of its judges.

    This is checked in the type, so that no reader of replies can make an approval that nobody gave.
    """
    result = verdict.chain_result
    if result is not None and not isinstance(result, JudgeChainResult):
        raise UsageError(f"the chain_result of a verdict is a JudgeChainResult or None, got {show(result)}")
    if not verdict.approved:
        return
    if verdict.confidence <= 0:
        raise UsageError("a verdict that approves has a confidence above 0")
    if result is not None and not (result.passed and result.decided_by == "judge"):
        raise UsageError("a verdict that approves needs a result that a judge passed")
