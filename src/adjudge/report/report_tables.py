"""The tables of a report, each counted one judgement at a time, in memory that does not grow with how many there are.

A summary begins empty, and ``add`` brings all of its members up to date. The public members are written to files. The
members whose names begin with an underscore are sums and counts from which the public ones are computed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import combinations
from typing import ClassVar, Generic, TypeVar, get_args

from adjudge.dataset.case import LabelValue
from adjudge.formats.display import list_answers
from adjudge.formats.model_name import is_same_model
from adjudge.formats.text import clean
from adjudge.judges.pair import PREFERENCES, PairResult
from adjudge.judges.pair_summary import PairSummary
from adjudge.report.cases import agrees_with_label, cut
from adjudge.report.spread import ScoreTally, Spread
from adjudge.result import CriterionResult, JudgeResult, Outcome, RuleResult
from adjudge.rubric.rubric import Rubric
from adjudge.runs.case_terms import Terms
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.trust.intervals import NO_SHARE, Share

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

MOST_NAMES = 200
"""Names of one kind that are told apart: a data set may give every case a group of its own."""

MOST_CRITERIA = 50
"""Criteria of one rubric that are told apart."""

MOST_RUBRICS = 50
"""Rubrics that are told apart: every case of a suite may bring one of its own."""

MOST_SEATS = 50
"""Judges of a chain that are told apart."""

MOST_MODELS = 50
"""Models, or changes of models, that are told apart."""

T = TypeVar("T")


class ByName(Generic[T]):
    """Summaries by name, for a limited number of names, because names may be made up by anybody."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self.others = 0
        """The number of times that a further name was asked for after the limit was reached."""
        self._by_name: dict[str | None, T] = {}
        self._most = most

    def find(self, name: str | None, make_summary: Callable[[], T]) -> T | None:
        """Find the summary of a name, or make a new one; ``None`` for a new name if there are too many already."""
        if name not in self._by_name:
            if len(self._by_name) >= self._most:
                self.others += 1
                return None
            self._by_name[name] = make_summary()
        return self._by_name[name]

    def list_all(self) -> list[T]:
        """List the summaries, in the order in which they were begun."""
        return list(self._by_name.values())


def cut_name(name: str) -> str:
    """Cut a name that somebody else chose to 500 characters."""
    return cut(name, 500)


def begin_outcomes() -> dict[str, int]:
    """Make empty counts of judgements, one for each of the three outcomes."""
    return dict.fromkeys(OUTCOMES, 0)


# ---------------------------------------------------------------- criteria and rubrics


@dataclass(slots=True, kw_only=True)
class CriterionSummary:
    """The scores of all judgements on one criterion."""

    writes_plain: ClassVar[bool] = True

    name: str
    """The criterion's name."""
    scores: Spread | None = None
    """``None`` when no judgement has a score for it; known once ``finish`` was called."""
    passed: Share = NO_SHARE
    """At or above its threshold, or 0.5 where it has none, of the judgements that name it."""
    threshold: float | None = None
    """The one that gates; ``None`` where none does."""
    weight: float = 1.0
    """Its weight in the total score."""
    rule: str | None = None
    """The kind of rule that decides it, where no model is asked."""
    _scores: ScoreTally = field(default_factory=ScoreTally, init=False, repr=False, compare=False)

    def add(self, criterion: CriterionResult) -> None:
        """Count one judgement's result on it.

        Args:
            criterion: The criterion's result.
        """
        self.passed = self.passed.add(criterion.passed)
        self.threshold, self.weight, self.rule = criterion.threshold, criterion.weight, criterion.rule
        if criterion.score is not None:
            self._scores.add(criterion.score)

    def finish(self) -> None:
        """Compute the spread of the scores, which needs them all."""
        self.scores = self._scores.finish()

    @property
    def gates(self) -> bool:
        """Return whether it has a threshold of its own or a rule, and so something to pass."""
        return self.threshold is not None or self.rule is not None


class Criteria:
    """The criteria of some judgements."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._criteria: ByName[CriterionSummary] = ByName(most)

    @property
    def others(self) -> int:
        """Mentions of criteria that were not told apart."""
        return self._criteria.others

    def add(self, result: JudgeResult | PairResult) -> None:
        """Count each criterion of a judgement."""
        for criterion in result.criteria if isinstance(result, JudgeResult) else ():
            name = cut_name(criterion.name)
            summary = self._criteria.find(name, partial(CriterionSummary, name=name))
            if summary is not None:
                summary.add(criterion)

    def finish(self) -> tuple[CriterionSummary, ...]:
        """Return the summaries, the lowest mean first, and those without a score last."""
        summaries = self._criteria.list_all()
        for summary in summaries:
            summary.finish()
        # A mean is at most 1, so 2 sorts after every mean.
        return tuple(sorted(summaries, key=lambda summary: summary.scores.mean if summary.scores else 2.0))


@dataclass(slots=True, kw_only=True)
class RubricSummary:
    """The cases that were judged by one rubric."""

    writes_plain: ClassVar[bool] = True

    digest: str
    """SHA-256 of the rubric."""
    name: str
    """The rubric's name."""
    about: str
    """The description of its first criterion."""
    threshold: float
    """Its passing threshold, as it applied."""
    own: bool
    """True if cases brought this rubric, in whole or in part; false for the run's own."""
    cases: int = 0
    """The number of cases."""
    passed: Share = NO_SHARE
    """Cases that passed. A case judged repeatedly counts by the share of its judgements that passed."""
    outcomes: dict[str, int] = field(default_factory=begin_outcomes)
    """Judgements by outcome."""
    criteria: tuple[CriterionSummary, ...] = ()
    """The lowest mean first; known once ``finish`` was called."""
    _passed: float = field(default=0.0, init=False, repr=False, compare=False)
    _criteria: Criteria = field(default_factory=partial(Criteria, MOST_CRITERIA), init=False, repr=False, compare=False)

    def add(self, items: Sequence[RunItem]) -> None:
        """Count a case with its judgements.

        Args:
            items: The judgements of the case.
        """
        self.cases += 1
        self._passed += compute_share_passed(items)
        self.passed = make_share(self._passed, self.cases)
        for item in items:
            self.outcomes[item.result.outcome] += 1
            self._criteria.add(item.result)

    def finish(self) -> None:
        """Summarise its criteria, once every case is counted."""
        self.criteria = self._criteria.finish()


def begin_rubric(rubric: Rubric, *, own: bool) -> RubricSummary:
    """Make the empty summary of the cases that are judged by a rubric."""
    return RubricSummary(
        digest=rubric.digest,
        name=cut(rubric.name, 200),
        about=cut(rubric.criteria[0].description, 200),
        threshold=rubric.passing_threshold,
        own=own,
    )


@dataclass(slots=True, kw_only=True)
class OwnSummary:
    """The number of cases that bring their own criteria, rubric, rules or threshold."""

    writes_plain: ClassVar[bool] = True

    criteria: int = 0
    """Cases with criteria or a rubric of their own."""
    rules: int = 0
    """Cases with rules of their own, in addition to those of the run."""
    threshold: int = 0
    """Cases with a passing threshold of their own."""
    below: int = 0
    """Cases that need less than the run asks for, by a threshold or a rubric of their own."""
    below_passed: int = 0
    """The number of those that passed."""
    needed: float
    """The score the run asks for: its threshold, else 0.7."""
    _below_passed: float = field(default=0.0, init=False, repr=False, compare=False)

    def add(self, brought: Mapping[str, int], share_passed: float) -> None:
        """Count what a case brings, as ``Terms.count`` names it, and the share of its judgements that passed.

        Args:
            brought: What the case brings.
            share_passed: The share of its judgements that passed.
        """
        self.criteria += brought.get("criteria", 0)
        self.rules += brought.get("rules", 0)
        self.threshold += brought.get("threshold", 0)
        if "below" in brought:
            self.below += 1
            self._below_passed += share_passed
            self.below_passed = round(self._below_passed)


class OwnCases:
    """The cases that bring criteria of their own, and the rubrics that all cases were judged by."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._run_digest = terms.rubric.digest if terms.rubric is not None else ""
        """The digest of the run's rubric; empty without one."""
        self._rubrics: ByName[RubricSummary] = ByName(MOST_RUBRICS)
        self._own = OwnSummary(needed=terms.needed)
        self._has_own_cases = False
        """True once a case came that brings something of its own."""

    @property
    def others(self) -> int:
        """Cases whose rubric was not told apart."""
        return self._rubrics.others

    def add(self, items: Sequence[RunItem]) -> bool:
        """Count a case with its judgements; returns whether it was judged by a rubric other than the run's."""
        case = items[0].case
        brought = self._terms.count(case)
        if brought:
            self._has_own_cases = True
            self._own.add(brought, compute_share_passed(items))
        rubric = items[0].rubric if items[0].rubric is not None else self._terms.rubric
        if rubric is None:
            return False
        is_other = rubric.digest != self._run_digest
        summary = self._rubrics.find(rubric.digest, partial(begin_rubric, rubric, own=is_other))
        if summary is not None:
            summary.add(items)
        return case.brings_own and is_other

    def finish(self) -> tuple[OwnSummary | None, tuple[RubricSummary, ...]]:
        """Return the summary of what cases bring, and that of each rubric, the most frequent first.

        The first is ``None`` if no case brings anything, and there are no rubrics if all cases have the run's.
        """
        if not self._has_own_cases:
            return None, ()
        rubrics = sorted(self._rubrics.list_all(), key=lambda rubric: -rubric.cases)
        for rubric in rubrics:
            rubric.finish()
        has_other_rubrics = any(rubric.own for rubric in rubrics)
        return self._own, tuple(rubrics) if has_other_rubrics else ()


# ---------------------------------------------------------------- rules, groups, seats and models


@dataclass(slots=True, kw_only=True)
class RuleSummary:
    """The number of times that a rule found something."""

    writes_plain: ClassVar[bool] = True

    name: str
    """The rule's name."""
    severity: str = "error"
    """``error``, ``warning`` or ``info``."""
    checked: int = 0
    """The number of times that it was checked."""
    failed: int = 0
    """The number of times that it failed."""

    def add(self, rule: RuleResult) -> None:
        """Count one finding, or none.

        Args:
            rule: The result of the rule.
        """
        self.severity = rule.severity
        self.checked += 1
        self.failed += not rule.passed


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """The cases of one group."""

    writes_plain: ClassVar[bool] = True

    name: str | None
    """``None`` for cases without a group."""
    cases: int = 0
    """The number of cases."""
    passed: Share = NO_SHARE
    """Cases that passed, of all cases of the group."""
    outcomes: dict[str, int] = field(default_factory=begin_outcomes)
    """Judgements by outcome."""
    mean_score: float | None = None
    """The mean score; ``None`` without scores, and for comparisons, whose scores only encode the preference."""
    accuracy: Share | None = None
    """The share of outcomes that agree with the label, of the cases that have one; ``None`` if none has."""
    pairs: PairSummary | None = None
    """For comparisons: those of this group."""
    _passed: float = field(default=0.0, init=False, repr=False, compare=False)
    _agreeing: float = field(default=0.0, init=False, repr=False, compare=False)
    _scored: int = field(default=0, init=False, repr=False, compare=False)
    _scores: float = field(default=0.0, init=False, repr=False, compare=False)

    def add(self, items: Sequence[RunItem]) -> None:
        """Count a case with its judgements.

        Args:
            items: The judgements of the case.
        """
        self.cases += 1
        self._passed += compute_share_passed(items)
        self.passed = make_share(self._passed, self.cases)
        self._add_label(items)
        for item in items:
            self.outcomes[item.result.outcome] += 1
            if isinstance(item.result, PairResult):
                self.pairs = self.pairs or PairSummary()
                self.pairs.add(item.result, read_preference(item.case.label))
            elif item.result.score is not None:
                self._scored += 1
                self._scores += item.result.score
                self.mean_score = self._scores / self._scored

    def _add_label(self, items: Sequence[RunItem]) -> None:
        """Count a case with a label by the share of its judgements that agree with the label."""
        agreements = [agrees_with_label(item.result, item.case.label) for item in items]
        if None not in agreements:
            self._agreeing += agreements.count(True) / len(agreements)
            labelled_before = self.accuracy.of if self.accuracy is not None else 0
            self.accuracy = make_share(self._agreeing, labelled_before + 1)


@dataclass(slots=True, kw_only=True)
class SeatSummary:
    """One judge of a chain."""

    writes_plain: ClassVar[bool] = True

    judge: str
    """The name of the judge."""
    asked: int = 0
    """The number of times that it was asked."""
    outcomes: dict[str, int] = field(default_factory=begin_outcomes)
    """Its answers by outcome."""
    mean_duration_ms: float = 0.0
    """The mean time of an answer, in milliseconds."""
    _duration_ms: float = field(default=0.0, init=False, repr=False, compare=False)

    def add(self, result: JudgeResult) -> None:
        """Count one answer.

        Args:
            result: The seat's answer.
        """
        self.asked += 1
        self.outcomes[result.outcome] += 1
        self._duration_ms += result.duration_ms if math.isfinite(result.duration_ms) else 0.0
        self.mean_duration_ms = self._duration_ms / self.asked


@dataclass(slots=True, kw_only=True)
class SeatPair:
    """The disagreement of two judges of a chain."""

    writes_plain: ClassVar[bool] = True

    first: str
    """The name of one judge."""
    second: str
    """The name of the other."""
    disagreed: Share = NO_SHARE
    """One passed what the other failed, of the judgements that both decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSeats:
    """The judges of a chain in all judgements together."""

    seats: tuple[SeatSummary, ...]
    pairs: tuple[SeatPair, ...]
    """Each two of them, those that disagree most first."""
    split: Share | None
    """The judgements in which some passed what others failed; ``None`` without any judgement."""


class Seats:
    """The judges of a chain, and who disagrees with whom."""

    def __init__(self) -> None:
        self._seats: ByName[SeatSummary] = ByName(MOST_SEATS)
        self._pairs: dict[tuple[str, str], SeatPair] = {}
        self._split = NO_SHARE

    @property
    def others(self) -> int:
        """Seats that were not told apart."""
        return self._seats.others

    def add(self, results: Sequence[JudgeResult]) -> None:
        """Count one judgement of a chain by the results of its seats, in their order."""
        self._split = self._split.add({"passed", "failed"} <= {result.outcome for result in results})
        decided: list[tuple[str, str]] = []
        for result in results:
            name = cut_name(result.judge)
            seat = self._seats.find(name, partial(SeatSummary, judge=name))
            if seat is None:
                continue
            seat.add(result)
            if result.outcome != "undecided":
                decided.append((name, result.outcome))
        for (first, outcome), (second, other_outcome) in combinations(decided, 2):
            pair = self._pairs.setdefault((first, second), SeatPair(first=first, second=second))
            pair.disagreed = pair.disagreed.add(outcome != other_outcome)

    def finish(self) -> ChainSeats:
        """Return what was counted."""
        pairs = sorted(self._pairs.values(), key=lambda pair: -(pair.disagreed.rate or 0.0))
        split = self._split if self._split.of else None
        return ChainSeats(seats=tuple(self._seats.list_all()), pairs=tuple(pairs), split=split)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """Replies of another model than the one asked for, or than the one that answered before."""

    writes_plain: ClassVar[bool] = True

    judge: str
    """The judge whose model it is."""
    expected: str
    """The name that was expected."""
    reported: str
    """The name that the provider reported."""
    asked: bool
    """True if ``expected`` was asked for; otherwise it is what was reported first, where any name may be."""
    judgements: int
    """The number of judgements with it."""


class ModelChanges:
    """Counts the answers of other models than were asked for, or than answered first.

    A result says itself if its model differs from the one that was asked for. If any name may come back (such as of an
    alias), a result says only if the name changed within its process, so the names of all processes are compared here.
    """

    def __init__(self) -> None:
        self.others = 0
        """Answers whose change of model was not told apart."""
        self._changes: Counter[tuple[str, str, str, bool]] = Counter()
        """Answers by judge, expected model, reported model, and whether the expected model was asked for."""
        self._names: dict[tuple[str, str], dict[str, tuple[datetime, int]]] = {}
        """For each judge and requested model the names that were reported: when first, and how often."""

    def add(self, result: JudgeResult | PairResult) -> None:
        """Count the answer of each judge in one judgement."""
        for answer in list_answers(result):
            if answer.model_differs:
                self._add_change(answer)
            elif answer.model_expected and answer.model:
                self._add_name(answer, answer.model)

    def _add_change(self, answer: JudgeResult) -> None:
        """Count an answer of another model than was expected."""
        expected = answer.model_expected or answer.model_requested or ""
        was_asked_for = not answer.model_expected
        key = (
            _cut_model_name(answer.judge),
            _cut_model_name(expected),
            _cut_model_name(answer.model or ""),
            was_asked_for,
        )
        if key in self._changes or len(self._changes) < MOST_MODELS:
            self._changes[key] += 1
        else:
            self.others += 1

    def _add_name(self, answer: JudgeResult, reported: str) -> None:
        """Count a name that the provider reported for the requested model."""
        key = _cut_model_name(answer.judge), _cut_model_name(answer.model_requested or "")
        # With too many judges and models, a new one gets counts that are not kept.
        names = self._names.setdefault(key, {}) if len(self._names) < MOST_MODELS else self._names.get(key, {})
        name = _cut_model_name(reported)
        if name in names or len(names) < MOST_MODELS:
            first_time, number = names.get(name, (answer.created_at, 0))
            names[name] = min(first_time, answer.created_at), number + 1

    def finish(self) -> tuple[ModelChange, ...]:
        """Return each change, also a change of the reported name between two processes of one run.

        Neither of the two processes saw such a change, so it is found here: the name that came first was expected.
        """
        for (judge, _), names in self._names.items():
            expected = min(names, key=lambda name: names[name][0], default="")
            for name, (_, number) in names.items():
                if not is_same_model(expected, name):
                    self._changes[judge, expected, name, False] += number
        return tuple(
            ModelChange(judge=judge, expected=expected, reported=reported, asked=asked, judgements=number)
            for (judge, expected, reported, asked), number in self._changes.items()
        )


def _cut_model_name(name: str) -> str:
    """Cut the name of a model or judge to 100 characters in one line; it may be made up by a server."""
    return cut(clean(name[:200], keep_lines=False), 100)


# ---------------------------------------------------------------- labels, repeats and costs


def begin_confusion() -> dict[str, dict[str, int]]:
    """Make empty counts of judgements by label and outcome."""
    return {"true": begin_outcomes(), "false": begin_outcomes()}


@dataclass(slots=True, kw_only=True)
class LabelSummary:
    """Agreement of the judge with labels of true and false."""

    writes_plain: ClassVar[bool] = True

    labelled: int = 0
    """Cases whose label is true or false. The shares are of these; an undecided judgement never agrees."""
    accuracy: Share = NO_SHARE
    """The share of them on which the judge agrees with the label."""
    always_passing: Share = NO_SHARE
    """The agreement of a judge that passes everything: a baseline to compare with."""
    confusion: dict[str, dict[str, int]] = field(default_factory=begin_confusion)
    """Judgements by label (``true``, ``false``) and outcome."""
    _agreeing: float = field(default=0.0, init=False, repr=False, compare=False)

    def add(self, items: Sequence[RunItem], label: bool) -> None:  # noqa: FBT001 - it is the value that is counted
        """Count a case with its judgements.

        Args:
            items: The judgements of the case.
            label: What people said of it: true is good.
        """
        self.labelled += 1
        self.always_passing = self.always_passing.add(label)
        wanted = "passed" if label else "failed"
        self._agreeing += sum(item.result.outcome == wanted for item in items) / len(items)
        self.accuracy = make_share(self._agreeing, self.labelled)
        for item in items:
            self.confusion["true" if label else "false"][item.result.outcome] += 1


class _Moments:
    """Means and sums of squares of scores and labels, from which Pearson's correlation is computed.

    They are updated by Welford's recurrence, so that large numbers do not cancel out.
    """

    def __init__(self) -> None:
        self._count = 0
        self._mean_score = self._mean_label = 0.0
        # Sums of squares, and of products, of the deviations from the means.
        self._score_squares = self._label_squares = self._products = 0.0

    def add(self, score: float, label: float) -> None:
        """Add a score and the label of its case, which is a number."""
        self._count += 1
        score_deviation, label_deviation = score - self._mean_score, label - self._mean_label
        self._mean_score += score_deviation / self._count
        self._mean_label += label_deviation / self._count
        self._score_squares += score_deviation * (score - self._mean_score)
        self._label_squares += label_deviation * (label - self._mean_label)
        self._products += score_deviation * (label - self._mean_label)

    def correlate(self) -> float | None:
        """Compute the correlation; ``None`` where scores or labels do not vary."""
        scale = math.sqrt(self._score_squares) * math.sqrt(self._label_squares)
        varies = scale > 0 and math.isfinite(scale)
        return max(-1.0, min(self._products / scale, 1.0)) if varies else None


@dataclass(slots=True, kw_only=True)
class NumberSummary:
    """Agreement of scores with labels that are numbers."""

    writes_plain: ClassVar[bool] = True

    labelled: int = 0
    """Judgements that have a score, of cases that have a number."""
    correlation: float | None = None
    """Pearson's; ``None`` where either does not vary."""
    mean_difference: float | None = None
    """Mean absolute difference, where every such label is in 0 to 1."""
    _moments: _Moments = field(default_factory=_Moments, init=False, repr=False, compare=False)
    _difference: float | None = field(default=0.0, init=False, repr=False, compare=False)

    def add(self, score: float, label: float) -> None:
        """Count a judgement of a case with a number.

        Args:
            score: The judge's score, in 0 to 1.
            label: The number that people gave the case.
        """
        if not math.isfinite(label):
            return
        self.labelled += 1
        self._moments.add(score, label)
        self.correlation = self._moments.correlate()
        if self._difference is not None:
            self._difference = self._difference + abs(score - label) if 0 <= label <= 1 else None
        self.mean_difference = None if self._difference is None else self._difference / self.labelled


@dataclass(slots=True, kw_only=True)
class RepeatSummary:
    """Cases that were judged more than once."""

    writes_plain: ClassVar[bool] = True

    cases: int = 0
    """The number of cases."""
    flipped: Share = NO_SHARE
    """Cases whose judgements do not all have the same outcome."""
    mean_range: float | None = None
    """Mean difference between a case's highest and lowest score."""
    _ranges: int = field(default=0, init=False, repr=False, compare=False)
    _range: float = field(default=0.0, init=False, repr=False, compare=False)

    def add(self, items: Sequence[RunItem]) -> None:
        """Count a case, if it has several judgements.

        Args:
            items: The judgements of the case.
        """
        if len(items) < 2:
            return
        self.cases += 1
        self.flipped = self.flipped.add(len({item.result.outcome for item in items}) > 1)
        scores = [item.result.score for item in items if item.result.score is not None]
        if len(scores) > 1:
            self._ranges += 1
            self._range += max(scores) - min(scores)
            self.mean_range = self._range / self._ranges


@dataclass(slots=True, kw_only=True)
class CostSummary:
    """Tokens and dollars. An unknown number is ``None``, never zero."""

    writes_plain: ClassVar[bool] = True

    calls: int | None = None
    """Requests that were answered."""
    input_tokens: int | None = None
    """Tokens of the prompts."""
    output_tokens: int | None = None
    """Tokens of the replies."""
    cached_tokens: int | None = None
    """Input tokens that providers took from their own prompt caches."""
    known_usd: float | None = None
    """The sum of the costs that are known, those of single judges of a chain included."""
    unknown: int = 0
    """Judgements whose cost is unknown, in whole or in part."""

    @property
    def was_asked(self) -> bool:
        """Return whether a model was asked, as far as usage says; else there is nothing to say of cost."""
        return bool(self.calls is not None or self.known_usd is not None or self.unknown)

    def add(self, result: JudgeResult | PairResult, functions: Collection[str] = ()) -> None:
        """Count one judgement's.

        Args:
            result: The judgement.
            functions: The names of judges in code, whose answers cost nothing that could be unknown.
        """
        usage = result.usage
        if usage is None:
            self.unknown += lacks_cost(result, functions)
            return
        self.calls = (self.calls or 0) + usage.calls
        self.input_tokens = (self.input_tokens or 0) + usage.input_tokens
        self.output_tokens = (self.output_tokens or 0) + usage.output_tokens
        self.cached_tokens = (self.cached_tokens or 0) + usage.cached_tokens
        costs = list(_list_costs(result))
        # Usage comes from outside and may hold any number; a sum with infinity would hide the others.
        known = [cost for cost in costs if math.isfinite(cost)]
        self.unknown += lacks_cost(result) or len(known) < len(costs)
        if known:
            self.known_usd = (self.known_usd or 0.0) + sum(known)


def _list_costs(result: JudgeResult | PairResult) -> Iterator[float]:
    """Yield the known costs of a judgement: the cost of the whole, else those of its seats or orders that are known."""
    if result.usage is not None and result.usage.cost_usd is not None:
        yield result.usage.cost_usd
        return
    inner_results = (
        [order.result for order in result.orders] if isinstance(result, PairResult) else getattr(result, "results", ())
    )
    for inner_result in inner_results:
        yield from _list_costs(inner_result)


def read_preference(label: LabelValue) -> str | None:
    """Read a label as a preference; ``None`` where it says something else."""
    return label if isinstance(label, str) and label in PREFERENCES else None


def compute_share_passed(items: Sequence[RunItem]) -> float:
    """Compute the share of a case's judgements that passed."""
    return sum(item.result.outcome == "passed" for item in items) / len(items)


def make_share(count: float, of: int) -> Share:
    """Make a share of a count that is a sum of fractions; a count that is nearly a whole number becomes that number.

    Otherwise a rounding error could make the count larger than ``of``.
    """
    nearest = round(count)
    is_nearly_whole = abs(count - nearest) < 1e-9 * max(of, 1)
    return Share(count=float(nearest) if is_nearly_whole else count, of=of)
