"""The values that a report consists of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import Any, ClassVar

from adjudge.formats.record import Layout, write_record
from adjudge.judges.pair_summary import PairSummary
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import ShownCase
from adjudge.trust.intervals import Share

_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """The run that the report is about. A text is empty if the manifest does not have it."""

    id: str = ""
    status: str = "unknown"
    """``finished``, ``interrupted``, ``running``, or ``unknown``."""
    created_at: str = ""
    adjudge: str = ""
    """The version that judged."""
    dataset: str = ""
    expected: int | None = None
    """Cases the data set has, or that were drawn from it, where that is known."""
    skipped: int = 0
    """Rows of the data set that could not be read and were left out."""
    judge: str = ""
    models: tuple[str, ...] = ()
    rubric: str = ""
    threshold: float | None = None
    """The rubric's passing threshold."""
    repeat: int = 1
    sample: int | None = None
    """The number of cases that were drawn; ``None`` when all are judged."""
    command: tuple[str, ...] = ()
    paid_again: int = 0
    """Requests of batches that were sent again with ``pay_again``, so that the provider may charge for each twice."""
    paid_again_usd: float | None = None
    """At most so many dollars were charged for them that no other figure has; ``None`` where that is not known."""

    @property
    def title(self) -> str:
        """The run in a few words."""
        return " judged by ".join(filter(None, (self.dataset or "A run", self.judge)))

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def read_description(manifest: Mapping[str, Any], *, status: str = "") -> RunDescription:
    """Read the description of a run from its manifest; a member that is absent, or of another type, is left empty."""
    dataset, judge, rubric, options = [
        _read_mapping(manifest, name) for name in ("dataset", "judge", "rubric", "options")
    ]
    command = manifest.get("command")
    sample = _read_count(options, "sample")
    cases = _read_count(dataset, "cases")
    return RunDescription(
        id=_read_text(manifest, "id"),
        status=_read_status(status or _read_text(manifest, "status")),
        created_at=_read_text(manifest, "created_at"),
        adjudge=_read_text(_read_mapping(manifest, "versions"), "adjudge"),
        # The name and not the path: a report is handed on, and its reader needs nothing of the machine it was made on.
        dataset=_read_text(dataset, "name") or PurePath(_read_text(dataset, "path")).name,
        expected=sample if sample is not None and (cases is None or sample < cases) else cases,
        skipped=_read_count(dataset, "skipped") or 0,
        judge=_read_text(judge, "name"),
        models=tuple(dict.fromkeys(_list_models(judge)))[:20],
        rubric=_read_text(rubric, "name"),
        threshold=_read_number(rubric, "passing_threshold"),
        repeat=_read_count(options, "repeat") or 1,
        sample=sample,
        command=tuple(map(str, command)) if isinstance(command, list) else (),
        paid_again=_read_count(_read_mapping(manifest, "paid_again"), "requests") or 0,
        paid_again_usd=_read_number(_read_mapping(manifest, "paid_again"), "at_most_usd"),
    )


def _read_status(status: str) -> str:
    # One of ours or none: it becomes a part of our own sentences, where nothing is escaped.
    return status if status in {"finished", "interrupted", "running"} else "unknown"


def _list_models(judge: Mapping[str, Any], depth: int = 0) -> list[str]:
    name = _read_text(_read_mapping(judge, "model"), "name")
    seats = judge.get("seats")
    mappings = (
        [entry for entry in seats if isinstance(entry, Mapping)] if isinstance(seats, list) and depth < 20 else []
    )
    return [name] * bool(name) + [model for seat in mappings for model in _list_models(seat, depth + 1)]


def _read_mapping(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    return value if isinstance(value, Mapping) else {}


def _read_text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    return value[:_LONGEST] if isinstance(value, str) else ""


def _read_count(members: Mapping[str, Any], name: str) -> int | None:
    value = members.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _read_number(members: Mapping[str, Any], name: str) -> float | None:
    value = members.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


BINS = 20
"""Bars of a histogram of scores; the last one includes 1."""


_SCORE_STEPS = 1000

_TIME_STEPS = 50
"""Steps to a factor of e: one is 2 %, so the middle of a step is at most 1 % off."""

_SHORTEST_MS, _LONGEST_MS = 1e-3, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The distribution of some numbers: exact minimum, maximum and mean, and percentiles by nearest rank.

    Percentiles of scores are exact to 0.001, those of durations to 1 %.
    """

    _layout: ClassVar[Layout] = Layout(omitted=("bins",))

    count: int
    mean: float
    lowest: float
    p5: float
    p25: float
    median: float
    p75: float
    p95: float
    p99: float
    highest: float
    bins: tuple[int, ...] = ()
    """The number of scores in each twentieth of 0 to 1; empty for numbers that are not scores."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


class SpreadTally:
    """Numbers on their way to a ``Spread``."""

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()
        self._count = 0
        self._sum = 0.0
        self._lowest, self._highest = math.inf, -math.inf

    def _add(self, value: float, step: int) -> None:
        self._steps[step] += 1
        self._count += 1
        self._sum += value
        self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)

    def _finish(self, values: Iterable[tuple[float, int]], bins: tuple[int, ...]) -> Spread | None:
        if not self._count:
            return None
        ranks = {name: math.ceil(share * self._count) for name, share in _PERCENTILES.items()}
        percentiles: dict[str, float] = {}
        passed = 0
        for value, number in values:
            passed += number
            for name, rank in ranks.items():
                if name not in percentiles and passed >= rank:
                    # The middle of a step can lie outside of what was seen; a percentile cannot.
                    percentiles[name] = min(max(value, self._lowest), self._highest)
        mean = self._sum / self._count
        return Spread(
            count=self._count, mean=mean, lowest=self._lowest, highest=self._highest, bins=bins, **percentiles
        )


_PERCENTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


class ScoreTally(SpreadTally):
    """Scores, in 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self._bins = [0] * BINS

    def add(self, score: float) -> None:
        """Count one."""
        score = min(max(score, 0.0), 1.0)  # a weighted mean may end a last digit outside
        self._bins[find_bin(score)] += 1
        self._add(score, round(score * _SCORE_STEPS))

    def finish(self) -> Spread | None:
        """Return the spread of what was counted; ``None`` when there is none."""
        steps = ((step / _SCORE_STEPS, number) for step, number in sorted(self._steps.items()))
        return self._finish(steps, tuple(self._bins))


class TimeTally(SpreadTally):
    """Durations, in milliseconds."""

    def add(self, duration_ms: float) -> None:
        """Count one; what is no duration counts as none at all."""
        value = duration_ms if math.isfinite(duration_ms) and duration_ms > 0 else 0.0
        bounded = min(max(value, _SHORTEST_MS), _LONGEST_MS)
        self._add(value, round(math.log(bounded) * _TIME_STEPS))

    def finish(self) -> Spread | None:
        """Return the spread of what was counted; ``None`` when there is none."""
        steps = ((math.exp(step / _TIME_STEPS), number) for step, number in sorted(self._steps.items()))
        return self._finish(steps, ())


def find_bin(score: float) -> int:
    """Find the bar a score belongs to: 0.05 begins the second, and 1 is in the last."""
    # 0.3 / 0.05 is less than 6 in binary; a score on the edge of two bars belongs to the upper one all the same.
    return min(int(score * BINS + 1e-9), BINS - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionSummary:
    """The scores of all judgements on one criterion."""

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

    @property
    def gates(self) -> bool:
        """Return whether it has a threshold of its own or a rule, and so something to pass."""
        return self.threshold is not None or self.rule is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricSummary:
    """The cases that were judged by one rubric."""

    digest: str
    """SHA-256 of the rubric."""
    name: str
    about: str
    """The description of its first criterion."""
    threshold: float
    """Its passing threshold, as it applied."""
    own: bool
    """Whether cases brought this rubric, in whole or in part; false for the run's own."""
    cases: int
    passed: Share
    """Cases that passed. A case judged repeatedly counts by the share of its judgements that passed."""
    outcomes: Mapping[str, int]
    """Judgements by outcome."""
    criteria: tuple[CriterionSummary, ...]
    """The lowest mean first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSummary:
    """The number of cases that bring their own criteria, rubric, rules or threshold."""

    criteria: int
    """Cases with criteria or a rubric of their own."""
    rules: int
    """Cases with rules of their own, in addition to those of the run."""
    threshold: int
    """Cases with a passing threshold of their own."""
    below: int
    """Cases that need less than the run asks for, by a threshold or a rubric of their own."""
    below_passed: int
    """The number of those that passed."""
    needed: float
    """The score the run asks for: its threshold, else 0.7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSummary:
    """The number of times that a rule found something."""

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
    """The mean score; ``None`` without scores, and for comparisons, whose scores only encode the preference."""
    accuracy: Share | None
    """The share of outcomes that agree with the label, of the cases that have one; ``None`` if none has."""
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
    """The disagreement of two judges of a chain."""

    first: str
    second: str
    disagreed: Share
    """One passed what the other failed, of the judgements that both decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """Replies of another model than the one asked for, or than the one that answered before."""

    judge: str
    expected: str
    reported: str
    asked: bool
    """Whether ``expected`` was asked for; otherwise it is what was reported first, where any name may be."""
    judgements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSummary:
    """Agreement of the judge with labels of true and false."""

    labelled: int
    """Cases whose label is true or false. The shares are of these; an undecided judgement never agrees."""
    accuracy: Share
    always_passing: Share
    """The agreement of a judge that passes everything: a baseline to compare with."""
    confusion: Mapping[str, Mapping[str, int]]
    """Judgements by label (``true``, ``false``) and outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSummary:
    """Agreement of scores with labels that are numbers."""

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
    """Tokens and dollars. An unknown number is ``None``, never zero."""

    calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    known_usd: float | None
    """The sum of the costs that are known, those of single judges of a chain included."""
    unknown: int
    """Judgements whose cost is unknown, in whole or in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The summary of a run; made by ``make_report``."""

    schema: ClassVar[str] = "adjudge/report/1"

    about: RunDescription
    """The run: who judged what by which rubric."""
    cases: int
    judgements: int
    """The number of judgements; more than ``cases`` if cases are judged repeatedly."""
    outcomes: Mapping[str, int]
    """Judgements that ``passed``, ``failed`` and are ``undecided``."""
    case_outcomes: Mapping[str, int]
    """Cases by the worst of their judgements."""
    passed: Share
    """Cases that passed, of all cases. A case judged repeatedly counts by the share of its judgements that passed."""
    undecided_because: Mapping[str, int]
    text_after: int
    """Replies that could not be read because text followed the answer, those before a re-ask included."""
    decided_by: Mapping[str, int]
    scores: Spread | None
    threshold: float | None
    """The passing threshold, where all judgements have the same."""
    criteria: tuple[CriterionSummary, ...]
    """The lowest mean first; where cases bring their own, those of the run's rubric alone."""
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
    """Replies of other models than were asked for."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Names beyond the report's limits (``criteria``, ``rules``, ``groups``, ``seats``, ``models``, ``rubrics``),
    counted together.
    """
    own: OwnSummary | None = None
    """The number of cases that bring their own criteria, rules or threshold; ``None`` if none does."""
    measurement: Measurement | None = None
    """The judge compared with people, if labels were given or the run was labelled."""

    @property
    def is_measured(self) -> bool:
        """Return whether the judge is compared with people: then that is the agreement to show, and to lead with."""
        return self.measurement is not None and self.measurement.labelled > 0

    rubrics: tuple[RubricSummary, ...] = ()
    """Each rubric that applied, that of most cases first; empty where every case was judged by the run's."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold. ``cases_shown`` has at most 2,000 cases."""
        data: dict[str, Any] = {"schema": self.schema}
        for item in fields(self):
            data[item.name] = _to_plain(getattr(self, item.name))
        return data | {"cases_shown": len(self.shown)}


def _to_plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _to_plain(getattr(value, item.name)) for item in fields(value)}
    # A file may hold any number; JSON has no form for these, and nobody knows what they mean.
    return None if isinstance(value, float) and not math.isfinite(value) else value
