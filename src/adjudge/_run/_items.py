"""What a run consists of: one item for each time a case was judged."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge._pair import PairResult
from adjudge.dataset._case import Case
from adjudge.result import JudgeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """One case, judged once."""

    case: Case
    place: int
    """Which case of the data set it is, from 0."""
    result: JudgeResult | PairResult
    """A ``PairResult`` where the case is a pair that was compared."""
    sample: int = 0
    """Which of the repeated judgements of this case it is, from 0."""
    subject: str = ""
    """SHA-256 of what was judged, by which a resumed run knows its data again."""
