"""What a report consists of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from adjudge._pair_summary import PairSummary, Share
from adjudge.report._about import About
from adjudge.report._shown import ShownCase
from adjudge.report._spread import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionSummary:
    """What all judgements come to on one criterion."""

    name: str
    scores: Spread | None
    """``None`` when no judgement has a score for it."""
    passed: Share
    """At or above its threshold, or 0.5 where it has none, of the judgements that name it."""
    threshold: float | None
    """The one that gates; ``None`` where none does."""
    weight: float
    rule: str | None
    """The kind of rule that decides it, where no model is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSummary:
    """How often a rule found something."""

    name: str
    severity: str
    checked: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The cases of one group."""

    name: str | None
    """``None`` for cases without a group."""
    cases: int
    passed: Share
    outcomes: Mapping[str, int]
    mean_score: float | None
    """``None`` for comparisons as well, whose scores are codes."""
    accuracy: Share | None
    """What the labels say, of the cases that have one; ``None`` where none has."""
    pairs: PairSummary | None
    """For comparisons: those of this group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatSummary:
    """One judge of a chain."""

    judge: str
    asked: int
    outcomes: Mapping[str, int]
    mean_duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatPair:
    """How often two judges of a chain disagree."""

    first: str
    second: str
    disagreed: Share
    """One passed what the other failed, of the judgements that both decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """Replies of another model than was asked for, or than had answered before."""

    judge: str
    expected: str
    reported: str
    asked: bool
    """Whether ``expected`` was asked for; otherwise it is what was reported first, where any name may be."""
    judgements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSummary:
    """The judge beside what people decided."""

    labelled: int
    """Cases whose label is true or false; the shares are of them, and an undecided judgement is never right."""
    accuracy: Share
    always_passing: Share
    """How often a judge would be right that passes everything: a floor to compare with."""
    confusion: Mapping[str, Mapping[str, int]]
    """Judgements by label (``true``, ``false``) and outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSummary:
    """Scores beside labels that are numbers."""

    labelled: int
    """Judgements that have a score, of cases that have a number."""
    correlation: float | None
    """Pearson's; ``None`` where either does not vary."""
    mean_difference: float | None
    """Mean absolute difference, where every such label is in 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatSummary:
    """Cases that were judged more than once."""

    cases: int
    flipped: Share
    """Cases whose judgements do not all have the same outcome."""
    mean_range: float | None
    """Mean difference between a case's highest and lowest score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSummary:
    """Tokens and dollars. What nobody stated is ``None``, and never zero."""

    calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    known_usd: float | None
    """The sum of the costs that are known, those of single judges of a chain included."""
    unknown: int
    """Judgements that used tokens whose price, or a part of it, nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run came to; made by ``make_report``."""

    schema: ClassVar[str] = "adjudge/report/1"

    about: About
    """The run: who judged what by which rubric."""
    cases: int
    judgements: int
    """More than ``cases`` where cases are judged repeatedly."""
    outcomes: Mapping[str, int]
    """Judgements that ``passed``, ``failed`` and are ``undecided``."""
    case_outcomes: Mapping[str, int]
    """Cases by the worst of their judgements."""
    passed: Share
    """Cases that passed, of all; one that is judged repeatedly counts by the share of its judgements that did."""
    undecided_because: Mapping[str, int]
    decided_by: Mapping[str, int]
    scores: Spread | None
    threshold: float | None
    """The passing threshold, where all judgements have the same."""
    criteria: tuple[CriterionSummary, ...]
    """The lowest mean first."""
    rules: tuple[RuleSummary, ...]
    groups: tuple[GroupSummary, ...]
    """The lowest share first; empty when no case has a group."""
    seats: tuple[SeatSummary, ...]
    seat_pairs: tuple[SeatPair, ...]
    split: Share | None
    """Judgements in which judges of the chain decided differently; ``None`` without a chain."""
    labels: LabelSummary | None
    numbers: NumberSummary | None
    pairs: PairSummary | None
    """For comparisons: win rate, flips, and accuracy."""
    repeats: RepeatSummary | None
    cost: CostSummary
    durations: Spread | None
    """Milliseconds for each judgement."""
    shown: tuple[ShownCase, ...] = field(repr=False)
    """At most 2,000 cases, failures first."""
    model_changes: tuple[ModelChange, ...] = ()
    """Where other models answered than were asked for."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What there was too much of to tell apart (``criteria``, ``rules``, ``groups``, ``seats``, ``models``), counted
    together."""

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data that JSON can hold, without ``shown`` being more than it says."""
        data: dict[str, Any] = {"schema": self.schema}
        for item in fields(self):
            data[item.name] = _write(getattr(self, item.name))
        return data | {"cases_shown": len(self.shown)}


def _write(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_write(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _write(item) for key, item in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _write(getattr(value, item.name)) for item in fields(value)}
    # A file may hold any number; JSON has no form for these, and nobody knows what they mean.
    return None if isinstance(value, float) and not math.isfinite(value) else value
