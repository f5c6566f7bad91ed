"""Asking those who review tools, in time, and what a caller is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from adjudge._tasks import Limit
from adjudge.errors import UsageError
from adjudge.rules._words import show
from adjudge.tools._record import ToolRecord
from adjudge.tools._steps import Outcome
from adjudge.tools._types import EmergentTool, ToolCandidate, tool_digest
from adjudge.tools._verdicts import CreationVerdict, PromotionVerdict, ReviewVerdict

_IN_TIME = 0.9
"""The share of its claim that a review may take, so that it ends before anybody else may begin one."""


class ToolJudge(Protocol):
    """What reviews tools: an ``EmergentJudge``, or what does the same."""

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Whether a candidate may become a tool."""

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Whether a tool may rise one tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeResult:
    """What became of a candidate; true exactly when its review has made it a tool that runs."""

    tool: EmergentTool | None = None
    verdict: CreationVerdict | None = None
    """What the review said; ``None`` where nobody was asked."""
    refused: str | None = None
    """Why there is no tool, in a word: ``sandbox``, ``empty``, ``untested``, ``rejected``, ``session_cap``, ``name``
    and so on; ``None`` where there is one."""
    detail: str = ""
    """The same in a sentence; it may quote the candidate."""

    def __bool__(self) -> bool:
        return self.tool is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What became of a promotion; true exactly when the tool rose by it."""

    promoted: bool
    record: ToolRecord | None
    """The tool as it now is; ``None`` where it was removed meanwhile."""
    verdict: PromotionVerdict | None = None
    """What the panel said; ``None`` where nobody was asked."""
    because: str | None = None
    """Why it did not rise, in a word: ``usage``, ``cool_down``, ``busy``, ``already``, ``rejected``, ``changed``..."""
    detail: str = ""
    """The same in a sentence; it may quote what the reviewers said."""

    def __bool__(self) -> bool:
        return self.promoted


def make_promotion(outcome: Outcome, verdict: PromotionVerdict | None) -> Promotion:
    """What a caller is told of a promotion."""
    found = outcome.hindrance
    return Promotion(
        promoted=found is None and verdict is not None,
        record=outcome.record,
        verdict=verdict,
        because=found.because if found is not None else None,
        detail=found.detail if found is not None else "",
    )


def make_result(outcome: Outcome, verdict: CreationVerdict | None) -> ForgeResult:
    """What a caller is told of a review."""
    found = outcome.hindrance
    if found is not None or outcome.record is None:
        because, detail = (found.because, found.detail) if found is not None else ("removed", "it was removed")
        return ForgeResult(verdict=verdict, refused=because, detail=detail)
    return ForgeResult(tool=outcome.record.tool, verdict=verdict)


async def ask_creation(judge: ToolJudge, candidate: ToolCandidate, seconds: float) -> CreationVerdict:
    """The verdict on a candidate; late, it is a rejection."""
    try:
        verdict = await Limit(seconds * _IN_TIME).run(judge.review_creation(candidate), what="review_creation")
    except TimeoutError:
        return CreationVerdict(
            approved=False,
            confidence=0.0,
            safety=0.0,
            correctness=0.0,
            determinism=0.0,
            bounded=0.0,
            reasoning=_say_late(seconds),
            tool_digest=tool_digest(candidate),
        )
    if not isinstance(verdict, CreationVerdict) or verdict.tool_digest != tool_digest(candidate):
        raise UsageError(f"review_creation returns a CreationVerdict on what it was given, got {show(verdict)}")
    return verdict


async def ask_promotion(judge: ToolJudge, tool: EmergentTool, seconds: float) -> PromotionVerdict:
    """The panel's verdict on a tool; late, it is a rejection."""
    try:
        verdict = await Limit(seconds * _IN_TIME).run(judge.review_promotion(tool), what="review_promotion")
    except TimeoutError:
        said = ReviewVerdict(approved=False, confidence=0.0, reasoning=_say_late(seconds))
        return PromotionVerdict(approved=False, confidence=0.0, safety=said, correctness=said, tool_digest=tool.digest)
    if not isinstance(verdict, PromotionVerdict) or verdict.tool_digest != tool.digest:
        raise UsageError(f"review_promotion returns a PromotionVerdict on what it was given, got {show(verdict)}")
    return verdict


def _say_late(seconds: float) -> str:
    return f"rejected, since the review took longer than {seconds * _IN_TIME:g} seconds"
