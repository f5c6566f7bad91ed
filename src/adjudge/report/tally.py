"""Counting what judgements say, one at a time and in memory that does not grow with how many there are."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import Generic, TypeVar, get_args

from adjudge.dataset.case import LabelValue
from adjudge.formats.display import list_answers
from adjudge.formats.model_name import is_same_model
from adjudge.formats.text import clean
from adjudge.judges.pair import PREFERENCES, PairResult
from adjudge.judges.pair_summary import PairTally
from adjudge.report.cases import agrees_with_label, cut
from adjudge.report.report import (
    CostSummary,
    CriterionSummary,
    GroupSummary,
    LabelSummary,
    ModelChange,
    NumberSummary,
    OwnSummary,
    RepeatSummary,
    RubricSummary,
    RuleSummary,
    ScoreTally,
    SeatPair,
    SeatSummary,
)
from adjudge.result import CriterionResult, JudgeResult, Outcome, RuleResult
from adjudge.rubric.rubric import Rubric
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.runs.terms import Terms
from adjudge.trust.intervals import Share

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

MOST_NAMES = 200
"""Names of one kind that are told apart: a data set may give every case a group of its own."""


T = TypeVar("T")


class NamedTallies(Generic[T]):
    """Tallies by name, for a bounded number of names; what has another name is only counted."""

    def __init__(self, make: Callable[[], T], most: int = MOST_NAMES) -> None:
        self.by_name: dict[str | None, T] = {}
        self.others = 0
        self._make = make
        self._most = most

    def get(self, name: str | None) -> T | None:
        """Get the tally of a name; ``None`` where there are too many names already."""
        name = cut(name, 500) if name is not None else None
        if name not in self.by_name:
            if len(self.by_name) >= self._most:
                self.others += 1
                return None
            self.by_name[name] = self._make()
        return self.by_name[name]


class CriterionTally:
    """One criterion."""

    def __init__(self) -> None:
        self._scores = ScoreTally()
        self._seen = self._passed = 0
        self._last: CriterionResult | None = None

    def add(self, criterion: CriterionResult) -> None:
        """Count one judgement's result on it."""
        self._seen += 1
        self._passed += criterion.passed
        self._last = criterion
        if criterion.score is not None:
            self._scores.add(criterion.score)

    def finish(self, name: str) -> CriterionSummary:
        """Return the summary."""
        return CriterionSummary(
            name=name,
            scores=self._scores.finish(),
            passed=Share(count=self._passed, of=self._seen),
            threshold=self._last.threshold if self._last else None,
            weight=self._last.weight if self._last else 1.0,
            rule=self._last.rule if self._last else None,
        )


class RubricTally:
    """The cases that were judged by one rubric."""

    def __init__(self) -> None:
        self.cases = 0
        self.criteria: NamedTallies[CriterionTally] = NamedTallies(CriterionTally, 50)
        self._passed = 0.0
        self._outcomes: Counter[str] = Counter()
        self._rubric: Rubric | None = None

    def add(self, items: Sequence[RunItem], rubric: Rubric) -> None:
        """Count a case with its judgements."""
        self.cases += 1
        self._rubric = rubric
        self._passed += compute_share_passed(items)
        for item in items:
            self._outcomes[item.result.outcome] += 1
            add_criteria(self.criteria, item.result)

    def finish(self, digest: str, *, own: bool) -> RubricSummary:
        """Return the summary."""
        rubric = self._rubric
        return RubricSummary(
            digest=digest,
            name=cut(rubric.name, 200) if rubric is not None else "",
            about=cut(rubric.criteria[0].description, 200) if rubric is not None else "",
            threshold=rubric.passing_threshold if rubric is not None else 0.0,
            own=own,
            cases=self.cases,
            passed=make_share(self._passed, self.cases),
            outcomes=order_outcomes(self._outcomes),
            criteria=finish_criteria(self.criteria),
        )


def add_criteria(tallies: NamedTallies[CriterionTally], result: JudgeResult | PairResult) -> None:
    """Count each criterion of a judgement."""
    for criterion in result.criteria if isinstance(result, JudgeResult) else ():
        counted = tallies.get(criterion.name)
        if counted is not None:
            counted.add(criterion)


def finish_criteria(tallies: NamedTallies[CriterionTally]) -> tuple[CriterionSummary, ...]:
    """Return the summaries of some criteria, the lowest mean first."""
    summaries = [tally.finish(str(name)) for name, tally in tallies.by_name.items()]
    return tuple(sorted(summaries, key=lambda summary: summary.scores.mean if summary.scores else 2.0))


class OwnTally:
    """The criteria that cases bring themselves, and the rubrics they were judged by."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._run = terms.rubric.digest if terms.rubric is not None else ""
        self._rubrics: NamedTallies[RubricTally] = NamedTallies(RubricTally, MOST_RUBRICS)
        self._counts: Counter[str] = Counter()
        self._below_passed = 0.0

    @property
    def others(self) -> int:
        """Cases whose rubric was not told apart."""
        return self._rubrics.others

    def add(self, items: Sequence[RunItem]) -> bool:
        """Count a case with its judgements; returns whether it was judged by a rubric other than the run's."""
        case = items[0].case
        counted = self._terms.count(case)
        self._counts.update(counted)
        if "below" in counted:
            self._below_passed += compute_share_passed(items)
        rubric = items[0].rubric if items[0].rubric is not None else self._terms.rubric
        if rubric is None:
            return False
        tally = self._rubrics.get(rubric.digest)
        if tally is not None:
            tally.add(items, rubric)
        return case.brings_own and rubric.digest != self._run

    def finish(self) -> tuple[OwnSummary | None, tuple[RubricSummary, ...]]:
        """Return the summary, and that of each rubric; nothing where no case brings anything."""
        if not self._counts:
            return None, ()
        counts = self._counts
        summary = OwnSummary(
            criteria=counts["criteria"],
            rules=counts["rules"],
            threshold=counts["threshold"],
            below=counts["below"],
            below_passed=round(self._below_passed),
            needed=self._terms.needed,
        )
        rubrics = [
            tally.finish(str(digest), own=digest != self._run)
            for digest, tally in sorted(self._rubrics.by_name.items(), key=lambda pair: -pair[1].cases)
        ]
        return summary, tuple(rubrics) if any(rubric.own for rubric in rubrics) else ()


MOST_RUBRICS = 50
"""Rubrics that are told apart: every case of a suite may bring one of its own."""


class RuleTally:
    """One rule."""

    def __init__(self) -> None:
        self._severity = "error"
        self._checked = self._failed = 0

    def add(self, rule: RuleResult) -> None:
        """Count one finding, or none."""
        self._severity = rule.severity
        self._checked += 1
        self._failed += not rule.passed

    def finish(self, name: str) -> RuleSummary:
        """Return how often it found something."""
        return RuleSummary(name=name, severity=self._severity, checked=self._checked, failed=self._failed)


class GroupTally:
    """One group of cases."""

    def __init__(self) -> None:
        self.cases = 0
        self._passed = 0.0
        self._outcomes: Counter[str] = Counter()
        self._scored, self._sum = 0, 0.0
        self._labelled, self._right = 0, 0.0
        self._pairs = PairTally()

    def add(self, items: Sequence[RunItem]) -> None:
        """Count a case with its judgements."""
        self.cases += 1
        self._passed += compute_share_passed(items)
        agreed = [agrees_with_label(item.result, item.case.label) for item in items]
        if None not in agreed:
            self._labelled += 1
            self._right += agreed.count(True) / len(agreed)
        for item in items:
            self._outcomes[item.result.outcome] += 1
            if isinstance(item.result, PairResult):
                self._pairs.add(item.result, read_preference(item.case.label))
            elif item.result.score is not None:
                self._scored += 1
                self._sum += item.result.score

    def finish(self, name: str | None) -> GroupSummary:
        """Return the summary of its cases."""
        pairs = self._pairs.finish()
        return GroupSummary(
            name=name,
            cases=self.cases,
            passed=make_share(self._passed, self.cases),
            outcomes=order_outcomes(self._outcomes),
            mean_score=self._sum / self._scored if self._scored else None,
            accuracy=make_share(self._right, self._labelled) if self._labelled else None,
            pairs=pairs if pairs.pairs else None,
        )


class SeatTally:
    """The judges of a chain, and who disagrees with whom."""

    def __init__(self) -> None:
        self._outcomes: NamedTallies[Counter[str]] = NamedTallies(Counter, 50)
        self._durations: defaultdict[str, float] = defaultdict(float)
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._disagreed: Counter[tuple[str, str]] = Counter()
        self._chains = self._split = 0

    @property
    def others(self) -> int:
        """Seats that were not told apart."""
        return self._outcomes.others

    def add(self, seats: Sequence[JudgeResult]) -> None:
        """Count one judgement of a chain by its seats, in their order."""
        self._chains += 1
        self._split += {"passed", "failed"} <= {seat.outcome for seat in seats}
        decided: list[tuple[str, str]] = []
        for seat in seats:
            counted = self._outcomes.get(seat.judge)
            if counted is None:
                continue
            counted[seat.outcome] += 1
            name = cut(seat.judge, 500)
            self._durations[name] += seat.duration_ms if math.isfinite(seat.duration_ms) else 0.0
            if seat.outcome != "undecided":
                decided.append((name, seat.outcome))
        for (first, outcome), (second, other_outcome) in combinations(decided, 2):
            self._pairs[first, second] += 1
            self._disagreed[first, second] += outcome != other_outcome

    def finish(self) -> tuple[tuple[SeatSummary, ...], tuple[SeatPair, ...], Share | None]:
        """Return each judge; each two of them, those that disagree most first; and the judgements that were split."""
        seats = [
            SeatSummary(
                judge=str(name),
                asked=counted.total(),
                outcomes=order_outcomes(counted),
                mean_duration_ms=self._durations[str(name)] / counted.total(),
            )
            for name, counted in self._outcomes.by_name.items()
        ]
        pairs = [
            SeatPair(first=first, second=second, disagreed=Share(count=self._disagreed[first, second], of=number))
            for (first, second), number in self._pairs.items()
        ]
        pairs.sort(key=lambda pair: -(pair.disagreed.rate or 0.0))
        return tuple(seats), tuple(pairs), Share(count=self._split, of=self._chains) if self._chains else None


class ModelTally:
    """The models that answered, where they are others than were asked for."""

    def __init__(self) -> None:
        self.others = 0
        self._changes: Counter[tuple[str, str, str, bool]] = Counter()
        self._names: dict[tuple[str, str], dict[str, tuple[datetime, int]]] = {}

    def add(self, result: JudgeResult | PairResult) -> None:
        """Count the answer of each judge in one judgement."""
        for leaf in list_answers(result):
            if leaf.model_differs:
                expected = leaf.model_expected or leaf.model_requested or ""
                names = _cut_name(leaf.judge), _cut_name(expected), _cut_name(leaf.model or "")
                key = (*names, not leaf.model_expected)
                if key in self._changes or len(self._changes) < _MOST_MODELS:
                    self._changes[key] += 1
                else:
                    self.others += 1
            elif leaf.model_expected and leaf.model:
                self._add_name(leaf, leaf.model)

    def _add_name(self, leaf: JudgeResult, reported: str) -> None:
        key = _cut_name(leaf.judge), _cut_name(leaf.model_requested or "")
        names = self._names.setdefault(key, {}) if len(self._names) < _MOST_MODELS else self._names.get(key, {})
        name = _cut_name(reported)
        if name in names or len(names) < _MOST_MODELS:
            first, number = names.get(name, (leaf.created_at, 0))
            names[name] = min(first, leaf.created_at), number + 1

    def finish(self) -> tuple[ModelChange, ...]:
        """Return each change; that of a name between two processes of one run, which neither of them saw, as well."""
        for (judge, _), names in self._names.items():
            expected = min(names, key=lambda name: names[name][0], default="")
            for name, (_, number) in names.items():
                if not is_same_model(expected, name):
                    self._changes[judge, expected, name, False] += number
        return tuple(
            ModelChange(judge=judge, expected=expected, reported=reported, asked=asked, judgements=number)
            for (judge, expected, reported, asked), number in self._changes.items()
        )


_MOST_MODELS = 50


def _cut_name(name: str) -> str:
    return cut(clean(name[:200], keep_lines=False), 100)


class LabelTally:
    """The judge compared with people who said true or false."""

    def __init__(self) -> None:
        self._cases = self._good = 0
        self._right = 0.0
        self._confusion = {"true": Counter[str](), "false": Counter[str]()}

    def add(self, items: Sequence[RunItem], label: bool) -> None:  # noqa: FBT001 - it is the value that is counted
        """Count a case with its judgements."""
        self._cases += 1
        self._good += label
        wanted = "passed" if label else "failed"
        self._right += sum(item.result.outcome == wanted for item in items) / len(items)
        self._confusion["true" if label else "false"].update(item.result.outcome for item in items)

    def finish(self) -> LabelSummary | None:
        """Return how often the judge is right; ``None`` without such labels."""
        if not self._cases:
            return None
        return LabelSummary(
            labelled=self._cases,
            accuracy=make_share(self._right, self._cases),
            always_passing=Share(count=self._good, of=self._cases),
            confusion={label: order_outcomes(outcomes) for label, outcomes in self._confusion.items()},
        )


class NumberTally:
    """Scores beside numbers that people gave (Welford's recurrence, so that large numbers do not cancel out)."""

    def __init__(self) -> None:
        self._count = 0
        self._mean_score = self._mean_label = 0.0
        self._score_squares = self._label_squares = self._products = 0.0
        self._difference = 0.0
        self._same_scale = True

    def add(self, score: float, label: float) -> None:
        """Count a judgement of a case with a number."""
        if not math.isfinite(label):
            return
        self._count += 1
        off_score, off_label = score - self._mean_score, label - self._mean_label
        self._mean_score += off_score / self._count
        self._mean_label += off_label / self._count
        self._score_squares += off_score * (score - self._mean_score)
        self._label_squares += off_label * (label - self._mean_label)
        self._products += off_score * (label - self._mean_label)
        self._difference += abs(score - label)
        self._same_scale = self._same_scale and 0 <= label <= 1

    def finish(self) -> NumberSummary | None:
        """Return how scores and numbers go together; ``None`` without such labels."""
        if not self._count:
            return None
        scale = math.sqrt(self._score_squares) * math.sqrt(self._label_squares)
        good = scale > 0 and math.isfinite(scale)
        return NumberSummary(
            labelled=self._count,
            correlation=max(-1.0, min(self._products / scale, 1.0)) if good else None,
            mean_difference=self._difference / self._count if self._same_scale else None,
        )


class RepeatTally:
    """Cases that are judged more than once."""

    def __init__(self) -> None:
        self._cases = self._flipped = self._ranges = 0
        self._range = 0.0

    def add(self, items: Sequence[RunItem]) -> None:
        """Count a case, if it has several judgements."""
        if len(items) < 2:
            return
        self._cases += 1
        self._flipped += len({item.result.outcome for item in items}) > 1
        scores = [item.result.score for item in items if item.result.score is not None]
        if len(scores) > 1:
            self._ranges += 1
            self._range += max(scores) - min(scores)

    def finish(self) -> RepeatSummary | None:
        """Return how steady the judge is; ``None`` where nothing was repeated."""
        if not self._cases:
            return None
        return RepeatSummary(
            cases=self._cases,
            flipped=Share(count=self._flipped, of=self._cases),
            mean_range=self._range / self._ranges if self._ranges else None,
        )


class CostTally:
    """Tokens and dollars."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._stated = self._priced = self._unknown = 0
        self._usd = 0.0

    def add(self, result: JudgeResult | PairResult) -> None:
        """Count one judgement's."""
        usage = result.usage
        self._unknown += lacks_cost(result)
        if usage is None:
            return
        self._stated += 1
        for name in _COUNTED:
            self._sums[name] += getattr(usage, name)
        known = list(_list_costs(result))
        self._priced += bool(known)
        self._usd += sum(known)

    def finish(self) -> CostSummary:
        """Return the usage, as far as it was stated."""
        sums = {name: self._sums[name] if self._stated else None for name in _COUNTED}
        return CostSummary(**sums, known_usd=self._usd if self._priced else None, unknown=self._unknown)


_COUNTED = ("calls", "input_tokens", "output_tokens", "cached_tokens")


def _list_costs(result: JudgeResult | PairResult) -> Iterator[float]:
    """Yield the known costs of a judgement: the whole, or that of the seats or orders whose price is known."""
    if result.usage is not None and result.usage.cost_usd is not None:
        yield result.usage.cost_usd
        return
    parts = (
        [order.result for order in result.orders] if isinstance(result, PairResult) else getattr(result, "results", ())
    )
    for part in parts:
        yield from _list_costs(part)


def read_preference(label: LabelValue) -> str | None:
    """Read a label as a preference; ``None`` where it says something else."""
    return label if isinstance(label, str) and label in PREFERENCES else None


def compute_share_passed(items: Sequence[RunItem]) -> float:
    """Compute the share of a case's judgements that passed."""
    return sum(item.result.outcome == "passed" for item in items) / len(items)


def make_share(count: float, of: int) -> Share:
    """Make a share whose parts are fractions: their sum may end a last digit beyond the whole."""
    near = round(count)
    return Share(count=float(near) if abs(count - near) < 1e-9 * max(of, 1) else count, of=of)


def order_outcomes(counted: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of all three outcomes, in one order."""
    return {name: counted.get(name, 0) for name in OUTCOMES}
