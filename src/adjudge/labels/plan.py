"""The plan of a run: which of its cases people label, in which order, and what the labels come to so far.

A plan is drawn from the run alone. The cases are grouped by what is known without a label (the verdict of the judge,
the votes of its seats, the score), some of each group are drawn for the pilot, and once these are labelled, the rest is
drawn where people disagree most. It is kept in the run's folder with its seed, so that anybody can draw it again, and
each case has the probability with which it was drawn.

How many labels each group gets is decided in ``trust/strata.py`` (``allocate_pilot``, ``allocate_labels``).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from adjudge.dataset.contents import ContentSet, ContentTally, digest_content
from adjudge.dataset.label import Label, LabelDesign
from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.arguments import check_above_zero, check_flag, check_share, check_whole_number
from adjudge.formats.files import read_text
from adjudge.formats.numbers import format_distinct
from adjudge.formats.private_file import write_private
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.sqlite import UNUSABLE, open_sqlite
from adjudge.formats.text import show
from adjudge.labels.planned_order import PLAN_FILE, PLAN_SCHEMA, order_complete
from adjudge.labels.store import find_position
from adjudge.labels.truth import LabelledVerdict, Truth, TruthHeap, find_majority_verdict, find_truths
from adjudge.result import JudgeChainResult, JudgeResult, make_id
from adjudge.runs.folder import MANIFEST_FILE, Run
from adjudge.runs.item import RunItem
from adjudge.trust.confidence_sequence import Allocation, LiveRate, compute_live_rate, estimate_more_labels
from adjudge.trust.corrected_rate import CorrectedRate, make_internal_rate
from adjudge.trust.intervals import LEVEL, WeightedShare
from adjudge.trust.label_counts import make_strata
from adjudge.trust.labels_needed import LabelsNeeded, compute_labels_needed
from adjudge.trust.rate_difference import estimate_labels_of_difference, estimate_labels_of_judges
from adjudge.trust.strata import LEAST_CASES, allocate_labels, allocate_pilot, group_scores, score_signals

EXPECT = 0.8
"""The share of verdicts that people are expected to agree with, where nobody says otherwise."""

PhaseKind = Literal["pilot", "spread", "more"]

LOCK_FILE = f"{PLAN_FILE}.lock"

_LARGEST = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStratum:
    """Cases of a run that are alike as far as is known without a label."""

    name: str
    """The name, which labels have too and people who label can see: it says nothing of the verdict."""
    about: str
    """The verdict of its cases, and what tells them from others of that verdict; empty where one stratum has all."""
    size: int
    """The number of cases it has, drawn or not."""
    low: float | None = None
    """The lowest and the highest signal (``score_signals``) of its cases, by which cases are sorted into strata. It is
    no score of the judge. ``None`` where it has undecided ones alone."""
    high: float | None = None
    """The highest score of its cases; ``None`` as for ``low``."""
    undecided: bool = False
    """True if cases that the judge left undecided are in it."""
    expected: float
    """The share of good cases expected before anybody labelled any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPhase:
    """Cases that were drawn at one time."""

    kind: PhaseKind
    """``pilot``, ``spread`` (where people disagree most) or ``more`` (what was added after that)."""
    first: int
    """The place of its first case in the order, from 0."""
    labels: tuple[int, ...]
    """The number of cases of each stratum that were drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """A case that was drawn."""

    case: str
    """The id of the case."""
    stratum: str
    """The name of its stratum."""
    p: float
    """The probability of being drawn in its phase, for each case of the stratum that was not drawn before."""
    subject: str | None = None
    """SHA-256 of its content. Labels of another content do not count for the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """The cases of a run that people label, and how these were drawn. ``make_plan`` draws one."""

    schema: ClassVar[str] = PLAN_SCHEMA
    _layout: ClassVar[Layout] = Layout(
        members=(
            "id",
            "run",
            "seed",
            "within",
            "at",
            "digests",
            "contents",
            "strata",
            "phases",
            "order",
            "ignored_groups",
            "against",
            "pairs",
        ),
        omitted=("against", "pairs"),
        computed={"at": lambda plan: plan.at.astimezone(UTC), "digests": lambda plan: {"items": plan.digest}},
    )

    id: str
    """The id of the plan."""
    run: str
    """The id of the run."""
    at: datetime
    """The time at which it was drawn, in UTC."""
    seed: int
    """The seed of the draw: the same seed draws the same cases."""
    within: float
    """The half-width that is wanted: 0.03 is plus or minus 3 points."""
    digest: str
    """SHA-256 of what it was drawn from: every case with its verdict and score."""
    strata: tuple[PlanStratum, ...]
    """The strata that the run was divided into."""
    phases: tuple[PlanPhase, ...]
    """The draws so far: the pilot, and what followed."""
    order: tuple[PlannedCase, ...]
    """The drawn cases, in the order in which to label them."""
    contents: ContentSet
    """The contents that it was drawn from. It holds for every run of the same contents."""
    ignored_groups: int = 0
    """The number of groups of several whose cases were drawn one by one, as ``ignore_groups`` allowed."""
    against: str | None = None
    """The id of the run that is compared with this one; ``None`` if the plan is for the rate of this run alone. That
    other run has a plan of the same id and cases, unless it has the same contents and another judge: then labels of
    this run are enough. Such a plan has one stratum, and is drawn whole at once."""
    pairs: bool = False
    """True if the cases are pairs, and it is for how much more often people prefer one side. Such a plan has one
    stratum, and is drawn whole at once."""

    @property
    def is_whole(self) -> bool:
        """Return whether it was drawn whole at once, for a difference, so that nothing is drawn after it."""
        return self.against is not None or self.pairs

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cases of each stratum."""
        return tuple(stratum.size for stratum in self.strata)

    @property
    def drawn(self) -> tuple[int, ...]:
        """The number of cases of each stratum that were drawn so far."""
        return tuple(sum(phase.labels[index] for phase in self.phases) for index in range(len(self.strata)))

    @property
    def needed(self) -> LabelsNeeded:
        """The number of labels it takes, as far as that is known before anybody labelled any."""
        return compute_labels_needed(self.sizes, [stratum.expected for stratum in self.strata], within=self.within)

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """The shares of labels among the strata, for ``compute_live_rate``."""
        return tuple(
            Allocation(first=phase.first, shares=tuple(count / sum(phase.labels) for count in phase.labels))
            for phase in self.phases
        )

    def find_design(self, case: str) -> LabelDesign | None:
        """Find the design of a label of this case; ``None`` for a case that was not drawn.

        Args:
            case: The id of the case.
        """
        drawn = next((planned for planned in self.order if planned.case == case), None)
        return None if drawn is None else self.make_design(drawn)

    def make_design(self, drawn: PlannedCase) -> LabelDesign:
        """Make the design of a label of a drawn case: how it was drawn, and from which contents.

        Args:
            drawn: The case as the plan drew it.
        """
        return LabelDesign(
            plan=self.id,
            stratum=drawn.stratum,
            p=drawn.p,
            size=next((stratum.size for stratum in self.strata if stratum.name == drawn.stratum), None),
            contents=self.contents.digest,
            cases=self.contents.cases,
        )

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data, as it is kept."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """The progress of the labels of a plan. ``find_plan_status`` computes it."""

    _layout: ClassVar[Layout] = Layout(
        members=(
            "pending",
            "labelled",
            "good",
            "open",
            "live",
            "once",
            "elsewhere",
            "before",
            "other_contents",
            "unbound",
            "planned",
            "left",
            "beyond",
            "complete",
            "more",
            "enough",
        ),
        computed={"pending": lambda status: len(status.pending)},
    )

    pending: tuple[PlannedCase, ...]
    """Drawn cases that too few people labelled yet, in their order."""
    labelled: tuple[int, ...]
    """Labelled cases in each stratum, open ones included."""
    good: tuple[int, ...]
    """Labelled cases of each stratum that people passed."""
    open: tuple[int, ...]
    """Cases that people could not tell or do not agree on."""
    elsewhere: int
    """Labelled cases that the plan did not draw; they are left out, because nobody knows how likely they were to be
    labelled."""
    live: LiveRate
    """The rate so far, with limits that hold after every label."""
    once: WeightedShare | None
    """The 95 % interval for one look, from the planned labels alone, as ``adjudge agree`` gives it; ``None`` until they
    are in, and where people settled none of them."""
    more: int | None
    """About how many more labels until the live interval is narrow enough; ``None`` is not known."""
    enough: bool
    """True if labelling may stop: the live interval is narrow enough. The ordinary one never says so."""
    planned: int | None = None
    """The number of labels planned for the one look: the pilot and what was drawn after it, as its labels said.
    ``None`` before the pilot is labelled."""
    before: int = 0
    """The number of ``elsewhere`` that were labelled before the plan was drawn."""
    other_contents: int = 0
    """The number of labels of drawn cases that are of another content; they are not counted."""
    unbound: int = 0
    """The number of drawn cases whose labels do not say which content was read; they still have to be labelled."""
    left: int = 0
    """The number of planned labels that are missing; while the pilot is labelled, of the pilot's."""
    beyond: int = 0
    """The number of labelled cases that were drawn after the planned ones, to go on looking."""
    truths: str | None = None
    """SHA-256 of the planned cases and what people said of them; ``None`` until all of them are labelled."""

    @property
    def complete(self) -> bool:
        """Return whether exactly the planned labels are there: the moment for the limit for one look."""
        return self.truths is not None and not self.beyond

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


# ---------------------------------------------------------------- drawing


@dataclass(frozen=True, slots=True)
class _CaseSignals:
    """The signals of one case: what a run says of it, as far as that tells without a label how likely it is good."""

    case: str
    subject: str
    """The digest of its content."""
    verdict: bool | None
    """True if the judge passed it; ``None`` is undecided."""
    score: float
    """All signals together, as ``score_signals`` has them."""
    judge_score: float | None
    """The judge's own score."""
    vote_share: float | None
    """The share of the other votes that pass."""
    outcome: LabelledVerdict
    """The verdict of most judgements, by which runs are compared."""


@dataclass(frozen=True, slots=True)
class _RunSignals:
    """The signals of all cases of a run."""

    cases: list[_CaseSignals]
    digest: str
    """SHA-256 of every case with its verdict and score."""
    contents: ContentSet
    groups: int
    """The number of groups with several cases."""


def make_plan(
    run: Run,
    *,
    within: float | None = None,
    expect: float = EXPECT,
    seed: int | None = None,
    ignore_groups: bool = False,
) -> LabelPlan:
    """Draw the pilot of a plan for a run. ``write_plan`` keeps it.

    Of a run of pairs the whole plan is drawn, and it is for how much more often people prefer one side than the other.
    Its cases are a simple random sample.

    Args:
        run: A finished run.
        within: The half-width of the interval that is wanted: of the rate, by default 0.03, or of the difference of
            the sides, by default 0.05.
        expect: The share of the judge's verdicts that people are expected to agree with. It is used to guess how many
            labels it takes; when the pilot is labelled, its labels say so.
        seed: By which cases are drawn. By default one that nobody can know beforehand.
        ignore_groups: Draw single cases although several are of one group, such as answers to one question. The
            intervals are right for this run and too narrow for other questions.

    Raises ``UsageError`` for a run that is not finished, one without cases, or one with groups of several cases unless
    ``ignore_groups`` is given.
    """
    width = (0.05 if run.compares else 0.03) if within is None else check_above_zero("within", within)
    check_share("expect", expect)
    plan_seed = secrets.randbits(32) if seed is None else check_whole_number("seed", seed, least=0)
    signals = _read_signals(run)
    if signals.groups and not check_flag("ignore_groups", ignore_groups):
        raise UsageError(
            f"the cases of {run.folder} come in groups ({signals.groups:,} of several cases), and a plan draws single "
            "cases: its number of labels is for the rate of this run, and too small for that of other groups; pass ",
            Argument("ignore_groups", "True"),
            " if this run is all you ask about, or label whole groups instead",
            argument="ignore_groups",
        )
    strata = (
        (_make_whole_stratum(signals),)
        if run.compares
        else _name_strata(_make_strata(signals.cases, expect), plan_seed)
    )
    plan = LabelPlan(
        id=make_id(),
        run=run.id,
        at=datetime.now(UTC),
        seed=plan_seed,
        within=width,
        digest=signals.digest,
        contents=signals.contents,
        strata=strata,
        phases=(),
        order=(),
        ignored_groups=signals.groups,
        pairs=run.compares,
    )
    if plan.pairs:
        labels = estimate_labels_of_difference(len(signals.cases), expect=expect, within=width, pairs=True)
        return _draw_phase(plan, signals.cases, "pilot", (labels,))
    return _draw_phase(plan, signals.cases, "pilot", allocate_pilot(plan.sizes, plan.needed.planned))


def make_paired_plans(
    before: Run, after: Run, *, within: float = 0.05, expect: float = EXPECT, seed: int | None = None
) -> tuple[LabelPlan, ...]:
    """Draw the cases that people label to compare two systems, or two judges of the same contents.

    Of two systems there are two plans, the first run's first. The cases are a simple random sample of those of both
    runs, and the same in each, because each case is compared with itself. Of two judges there is one plan, of the first
    run, whose labels compare both. Its size follows from the share of cases that they decide differently. Nothing is
    drawn afterwards: the difference is read once, when all of the cases are labelled.

    Args:
        before: A finished run of the first system or judge, of cases that are good or bad.
        after: A finished run of the second one on the same cases, by their ids.
        within: The half-width of the interval of the difference that is wanted.
        expect: The share of the judge's verdicts that people are expected to agree with. Only for two systems.
        seed: By which cases are drawn. By default one that nobody can know beforehand.

    Raises ``UsageError`` for runs of different cases, for judges that decide every case alike, for one run twice, and
    for what ``make_plan`` refuses.
    """
    check_above_zero("within", within)
    check_share("expect", expect)
    plan_seed = secrets.randbits(32) if seed is None else check_whole_number("seed", seed, least=0)
    first, second = _read_pair(before, after)
    # For each plan: its run, the run that it is compared with, and the signals of its run.
    sides = [(before, after, first), (after, before, second)]
    cases = len(first.cases)
    if _list_subjects(first) == _list_subjects(second):  # two judges of the same contents
        sides = sides[:1]
        disagreement = _find_disagreement(first, second)
        if not disagreement:
            raise UsageError(
                f"no labels can tell {before.folder} and {after.folder} apart: both judges decide every case alike, so "
                "they agree with people equally often; name runs whose verdicts differ"
            )
        labels = estimate_labels_of_judges(cases, disagreement=disagreement, within=within)
    else:
        labels = estimate_labels_of_difference(cases, expect=expect, within=within)
    plan_id, drawn_at = make_id(), datetime.now(UTC)
    plans = [
        LabelPlan(
            id=plan_id,
            run=run.id,
            at=drawn_at,
            seed=plan_seed,
            within=within,
            digest=signals.digest,
            contents=signals.contents,
            strata=(_make_whole_stratum(signals),),
            phases=(),
            order=(),
            against=other.id,
        )
        for run, other, signals in sides
    ]
    return tuple(
        _draw_phase(plan, signals.cases, "pilot", (labels,)) for plan, (_, _, signals) in zip(plans, sides, strict=True)
    )


def _read_pair(before: Run, after: Run) -> tuple[_RunSignals, _RunSignals]:
    """Read the signals of two runs that are compared; raises ``UsageError`` where no plan can be drawn of them."""
    if before.id == after.id:
        raise UsageError(f"{before.folder} is one run; name the run of the other system to compare it with")
    for run in (before, after):
        if run.compares:
            raise UsageError(
                f"{run.folder} compares pairs, which are two systems side by side already; draw a plan of it alone"
            )
    first, second = _read_signals(before), _read_signals(after)
    for run, signals in ((before, first), (after, second)):
        if signals.groups:
            raise UsageError(
                f"the cases of {run.folder} come in groups ({signals.groups:,} of several cases), and no interval is "
                "known for a difference in groups; keep one case of each group"
            )
    if _list_subjects(first).keys() != _list_subjects(second).keys():
        raise UsageError(
            f"{before.folder} and {after.folder} have different cases, and a difference is of the same questions; run "
            "both systems on one data set"
        )
    return first, second


def _list_subjects(signals: _RunSignals) -> dict[str, str]:
    """List the digest of each case's content, by the id of the case."""
    return {case_signals.case: case_signals.subject for case_signals in signals.cases}


def _find_disagreement(first: _RunSignals, second: _RunSignals) -> float:
    """Find the share of cases that two judges decide differently."""
    outcomes = {case_signals.case: case_signals.outcome for case_signals in second.cases}
    differing = sum(case_signals.outcome != outcomes[case_signals.case] for case_signals in first.cases)
    return differing / len(outcomes)


def _make_whole_stratum(signals: _RunSignals) -> PlanStratum:
    """Make the stratum of a plan for a difference: all cases, because each is compared with itself."""
    return PlanStratum(name="all", about="", size=len(signals.cases), low=0.0, high=1.0, undecided=True, expected=0.5)


def continue_plan(plan: LabelPlan, run: Run, status: PlanStatus) -> LabelPlan:
    """Add the cases to label next to a plan: the same while some are not labelled yet, or when it is enough.

    After the pilot the rest of the planned labels is drawn where people disagree most. When these are in, the plan is
    extended until the live interval is narrow enough. Raises ``UsageError`` when the run changed since the plan was
    drawn.

    Args:
        plan: The plan so far.
        run: The run that it was drawn from.
        status: How far labelling is, from ``find_plan_status``.
    """
    signals = _read_signals(run, plan)
    if status.pending or status.enough or plan.is_whole:
        return plan
    drawn_so_far = sum(plan.drawn)
    kind: PhaseKind
    total, kind = _estimate_total(plan, status.labelled, status.good, status.open), "spread"
    if len(plan.phases) > 1 or total <= drawn_so_far:
        total, kind = drawn_so_far + (status.more or STEP), "more"
    allocation = allocate_labels(plan.sizes, total, labelled=status.labelled, good=_add_half(status.good, status.open))
    return _draw_phase(plan, signals.cases, kind, allocation) if sum(allocation) else plan


def _estimate_total(plan: LabelPlan, labelled: Sequence[int], good: Sequence[int], unsure: Sequence[int]) -> int:
    """Estimate how many labels a plan needs in all, from the labelled, good and open cases of each stratum so far."""
    rates = [
        (good_count + 1) / (count + 2) for good_count, count in zip(_add_half(good, unsure), labelled, strict=True)
    ]
    return compute_labels_needed(plan.sizes, rates, within=plan.within).planned


def _add_half(good: Sequence[int], unsure: Sequence[int]) -> list[int]:
    """Add half of the open cases of each stratum to its good ones, because they may come out either way."""
    return [good_count + open_count // 2 for good_count, open_count in zip(good, unsure, strict=True)]


STEP = 60
"""The number of cases that are added where it is not known how many more it takes."""


def _draw_phase(plan: LabelPlan, signals: Sequence[_CaseSignals], kind: PhaseKind, labels: Sequence[int]) -> LabelPlan:
    """Draw more cases at random, and return the plan with them as a new phase. Raises ``UsageError``.

    ``labels`` is the number of cases to draw from each stratum.
    """
    drawn_before = {planned_case.case for planned_case in plan.order}
    undrawn: list[list[tuple[int, str, str]]] = [[] for _ in plan.strata]  # position, case and subject, by stratum
    for case_signals in signals:
        if case_signals.case not in drawn_before:
            position = find_position(plan.seed, case_signals.case)
            stratum_index = _find_stratum(plan.strata, case_signals)
            if stratum_index is None:
                raise UsageError(
                    f"the case {show(case_signals.case)} is in no stratum of the plan; draw the plan again"
                )
            undrawn[stratum_index].append((position, case_signals.case, case_signals.subject))
    drawn: list[PlannedCase] = []
    for stratum, candidates, count in zip(plan.strata, undrawn, labels, strict=True):
        # The first by a keyed digest are a random sample, and the same one wherever the case stands in the data.
        p = count / len(candidates) if candidates else 0.0
        first = sorted(candidates)[:count]
        drawn += [PlannedCase(case=case, stratum=stratum.name, p=p, subject=subject) for _, case, subject in first]
    # Mixed by another digest: labels that come stratum by stratum would say little until all are there.
    mixed = sorted(
        drawn,
        key=lambda planned_case: (
            find_position(plan.seed, f"{len(plan.phases)}:{planned_case.case}"),
            planned_case.case,
        ),
    )
    phase = PlanPhase(kind=kind, first=len(plan.order), labels=tuple(labels))
    return replace(plan, phases=(*plan.phases, phase), order=(*plan.order, *mixed))


def _read_signals(run: Run, plan: LabelPlan | None = None, *, keep: bool = True) -> _RunSignals:
    """Read the signals of each case of a finished run; raise ``UsageError`` if ``plan`` was not drawn from this run.

    Without ``keep`` the signals of single cases are not returned, to save memory where only the plan is checked.
    """
    if run.status != "finished":
        raise UsageError(
            f"the run {run.folder} is {run.status}, and a plan is drawn from all cases; finish it with adjudge run "
            "--resume"
        )
    signals, problem = _compare(run, plan, keep=keep)
    if not signals.contents.cases:
        raise UsageError(f"the run {run.folder} has no case to label; name another run")
    if problem is not None:
        path = run.folder / PLAN_FILE
        raise UsageError(f"the run {run.folder} and its plan differ: {problem}; delete {path}, and draw another plan")
    if run.contents not in (None, signals.contents):
        raise UsageError(
            f"{run.folder / MANIFEST_FILE} names other contents than the run holds, so one of its files was changed; "
            "restore the run, or judge the data again"
        )
    return signals


def _compare(run: Run, plan: LabelPlan | None, *, keep: bool) -> tuple[_RunSignals, str | None]:
    """Read the signals of each case of a run, and compare a plan with them.

    Returns the signals, and a sentence on how the plan differs; ``None`` if it does not, or there is no plan.
    """
    check, contents, listed, groups = PlanCheck(plan), ContentTally(), list[_CaseSignals](), Counter[str]()
    for judgements in _group_cases(run.items()):
        case = judgements[0].case
        subject = digest_content(case.content)
        signals = check.add(judgements, subject)
        if keep:
            listed.append(signals)
        contents.add(subject)
        if case.group is not None:
            groups[case.group] += 1
    content_set = contents.finish()
    problem = check.find_problem(run.id, content_set)
    return _RunSignals(listed, check.digest, content_set, sum(count > 1 for count in groups.values())), problem


class PlanCheck:
    """A check whether a plan was drawn from a run, in one pass and in memory that does not grow with the run.

    What is compared: the contents, every verdict and score, how many cases each stratum has by these, and that the
    drawn cases are those which the plan's seed draws.
    """

    def __init__(self, plan: LabelPlan | None) -> None:
        self._plan = plan
        self._hash = hashlib.sha256()
        self._sizes: Counter[int] = Counter()
        self._drawn = {} if plan is None else {planned.case: planned for planned in plan.order}
        self._last_drawn: dict[int, tuple[int, str]] = {}
        """The last drawn case of each stratum, by the seed."""
        self._first_undrawn: dict[int, tuple[int, str]] = {}
        """The first case of each stratum that was not drawn, by the seed."""
        self._drawn_count = 0
        """The drawn cases that the run has."""
        self._misfit: str | None = None
        """A sentence on the first case that contradicts the plan."""

    @property
    def digest(self) -> str:
        """SHA-256 of every case with its verdict and score."""
        return self._hash.hexdigest()

    def add(self, judgements: Sequence[RunItem], subject: str) -> _CaseSignals:
        """Compare a case with the plan, and return its signals.

        ``judgements`` are all that the run has of the case, and ``subject`` is the digest of its content.
        """
        for judgement in judgements:
            row = [
                judgement.case.id,
                judgement.subject,
                judgement.sample,
                judgement.result.outcome,
                getattr(judgement.result, "score", None),
            ]
            self._hash.update(json.dumps(row).encode() + b"\n")
        signals = _find_signals(judgements, subject)
        if self._plan is not None and self._misfit is None:
            self._compare_case(self._plan, signals)
        return signals

    def _compare_case(self, plan: LabelPlan, signals: _CaseSignals) -> None:
        """Count a case in its stratum, and compare it with the plan's row of it if it was drawn.

        The positions of the last drawn and the first undrawn case are kept: the seed draws those in front.
        """
        stratum = _find_stratum(plan.strata, signals)
        if stratum is None:
            self._misfit = f"the case {show(signals.case)} is in none of its strata"
            return
        self._sizes[stratum] += 1
        position, drawn = (find_position(plan.seed, signals.case), signals.case), self._drawn.get(signals.case)
        if drawn is None:
            self._first_undrawn[stratum] = min(position, self._first_undrawn.get(stratum, position))
            return
        self._drawn_count += 1
        self._last_drawn[stratum] = max(position, self._last_drawn.get(stratum, position))
        if drawn.stratum != plan.strata[stratum].name or drawn.subject != signals.subject:
            self._misfit = f"the drawn case {show(signals.case)} has another verdict or content in it"

    def find_problem(self, run: str, contents: ContentSet) -> str | None:
        """Find how the plan differs from the run whose cases were added; ``None`` if it was drawn from this run.

        ``run`` is the id of the run, and ``contents`` are those of all its cases.
        """
        plan = self._plan
        if plan is None:
            return None
        if plan.contents != contents:
            return describe_other_contents(plan.contents, contents)
        if plan.run != run or plan.digest != self.digest:
            return "its verdicts changed since the plan was drawn, so nobody knows any more how likely a case was drawn"
        if self._misfit is not None or self._drawn_count < len(plan.order):
            return self._misfit or "the plan names cases that the run does not have"
        for index in range(len(plan.strata)):
            problem = self._find_stratum_problem(plan, index)
            if problem:
                return problem
        return None

    def _find_stratum_problem(self, plan: LabelPlan, index: int) -> str | None:
        """Find how a stratum of the plan, given by its index, differs from the run; ``None`` if it does not."""
        stratum = plan.strata[index]
        if self._sizes[index] != stratum.size:
            return (
                f"the plan says that {stratum.size:,} cases are in the stratum {show(stratum.about or stratum.name)}, "
                f"and by their verdicts {self._sizes[index]:,} are"
            )
        has_both = index in self._last_drawn and index in self._first_undrawn
        if has_both and self._last_drawn[index] > self._first_undrawn[index]:
            return f"its cases of the stratum {show(stratum.about or stratum.name)} are not those that its seed draws"
        return None


def describe_other_contents(drawn_from: ContentSet, contents: ContentSet | None) -> str:
    """Write how the contents that a plan was drawn from differ from those of a run; ``None`` is an unfinished run."""
    if contents is None:
        return f"the plan was drawn from {drawn_from.cases:,} cases, and the run is not finished any more"
    if drawn_from.cases == contents.cases:
        return f"the plan was drawn from other contents than its {contents.cases:,} cases have"
    return f"the plan was drawn from {drawn_from.cases:,} cases, and the run has {contents.cases:,}"


def find_plan_problem(run: Run) -> str | None:
    """Find why the plan in a run's folder was not drawn from the run's contents; ``None`` if it was, or there is none.

    The plan of another run of the same contents is accepted: its strata cannot be checked without the other run's
    verdicts. Raises ``UsageError`` for a file that is no plan.
    """
    plan = read_plan(run.folder)
    if plan is None:
        return None
    if run.status != "finished":
        return describe_other_contents(plan.contents, None)
    if plan.run == run.id:
        return _compare(run, plan, keep=False)[1]
    return None if plan.contents == run.contents else describe_other_contents(plan.contents, run.contents)


def find_case_stratum(plan: LabelPlan, judgements: Sequence[RunItem], subject: str) -> str | None:
    """Find the name of a case's stratum, drawn or not, in the run that a plan was drawn from; ``None`` if it has none.

    ``judgements`` are all that the run has of the case, and ``subject`` is the digest of its content.
    """
    index = _find_stratum(plan.strata, _find_signals(judgements, subject))
    return None if index is None else plan.strata[index].name


def _group_cases(items: Iterable[RunItem]) -> Iterator[list[RunItem]]:
    """Yield the judgements of each case, which follow each other in a run."""
    group: list[RunItem] = []
    for item in items:
        if group and item.place != group[0].place:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _find_signals(judgements: Sequence[RunItem], subject: str) -> _CaseSignals:
    """Find the signals of a case: verdict and score of its first judgement, and the votes beside it.

    Votes are the later judgements and the seats of the first one; those that are undecided are no votes.
    """
    first, *repeats = [judgement.result for judgement in judgements]
    vote_outcomes = [result.outcome for result in repeats]
    if isinstance(first, JudgeChainResult):
        vote_outcomes += [result.outcome for result in first.results]
    verdict = None if first.outcome == "undecided" else first.outcome == "passed"
    judge_score = first.score if isinstance(first, JudgeResult) and verdict is not None else None
    votes = [outcome == "passed" for outcome in vote_outcomes if outcome != "undecided"]
    clipped_score = None if judge_score is None else min(max(judge_score, 0.0), 1.0)
    return _CaseSignals(
        case=judgements[0].case.id,
        subject=subject,
        verdict=verdict,
        score=score_signals(verdict=verdict, votes=votes, score=clipped_score),
        judge_score=judge_score,
        vote_share=sum(votes) / len(votes) if votes else None,
        outcome=find_majority_verdict(Counter(judgement.result.outcome for judgement in judgements)),
    )


def _make_strata(signals: Sequence[_CaseSignals], expect: float) -> tuple[PlanStratum, ...]:
    """Divide cases into strata by the score of their signals; cases without a verdict are a stratum of their own.

    Too few of these join the smallest stratum instead. What tells strata of one verdict from each other is left out of
    ``about`` where a verdict has one stratum.
    """
    decided = [case_signals for case_signals in signals if case_signals.verdict is not None]
    undecided = len(signals) - len(decided)
    numbers = group_scores([case_signals.score for case_signals in decided]) if decided else ()
    groups: dict[int, list[_CaseSignals]] = {}
    for number, case_signals in zip(numbers, decided, strict=True):
        groups.setdefault(number, []).append(case_signals)
    strata = [_make_stratum(groups[number], expect) for number in sorted(groups)]
    if undecided and strata and undecided < LEAST_CASES:
        smallest = min(range(len(strata)), key=lambda index: strata[index].size)
        strata[smallest] = replace(strata[smallest], size=strata[smallest].size + undecided, undecided=True)
    elif undecided:
        strata.append(PlanStratum(name="", about="undecided", size=undecided, undecided=True, expected=0.5))
    verdicts = [read_verdict(stratum) for stratum in strata]
    return tuple(
        stratum if verdicts.count(verdict) > 1 else replace(stratum, about=verdict)
        for verdict, stratum in zip(verdicts, strata, strict=True)
    )


def _make_stratum(group: Sequence[_CaseSignals], expect: float) -> PlanStratum:
    """Make a stratum of decided cases, still without a name.

    ``expect`` is the share of verdicts that people are expected to agree with, from which the share of good cases
    follows.
    """
    passed = sum(case_signals.verdict is True for case_signals in group)
    passed_share, scores = passed / len(group), [case_signals.score for case_signals in group]
    verdict = "passed" if passed_share == 1 else "failed" if passed_share == 0 else MIXED
    expected = passed_share * expect + (1 - passed_share) * (1 - expect)
    # ``read_verdict`` reads the verdict back.
    about = ", ".join((verdict, *_describe_signals(group)))
    return PlanStratum(name="", about=about, size=len(group), low=min(scores), high=max(scores), expected=expected)


MIXED = "mixed"
"""The verdict of a stratum with passed and failed cases, too few of one of them for a stratum of their own."""


def read_verdict(stratum: PlanStratum) -> str:
    """Read the verdict of a stratum's cases from the beginning of ``about``; empty where one stratum has all cases."""
    return stratum.about.partition(",")[0]


def _describe_signals(group: Sequence[_CaseSignals]) -> Iterator[str]:
    """Yield the range of the judge's scores of some cases, and of the votes on them, as far as every case has them."""
    scores = [case_signals.judge_score for case_signals in group if case_signals.judge_score is not None]
    percentages = [100 * case_signals.vote_share for case_signals in group if case_signals.vote_share is not None]
    if len(scores) == len(group):
        yield f"score {_format_range(scores, digits=2)}"
    if len(percentages) == len(group):
        yield f"{_format_range(percentages, digits=0)} % of votes pass"


def _format_range(values: Sequence[float], *, digits: int) -> str:
    """Write the least and the greatest of some numbers, such as ``0.20 to 0.45``; one number where they are equal."""
    return " to ".join(dict.fromkeys(format_distinct(min(values), max(values), digits=digits)))


def _name_strata(strata: Sequence[PlanStratum], seed: int) -> tuple[PlanStratum, ...]:
    """Name strata s1, s2 and so on, in a random order by the seed.

    Labels have these names, and a rater must not read the verdict from them.
    """
    order = sorted(range(len(strata)), key=lambda index: find_position(seed, f"stratum {index}"))
    return tuple(replace(stratum, name=f"s{order.index(index) + 1}") for index, stratum in enumerate(strata))


def _find_stratum(strata: Sequence[PlanStratum], case_signals: _CaseSignals) -> int | None:
    """Find the index of the stratum that a case falls into, by its verdict and signals; ``None`` if there is none."""
    for index, stratum in enumerate(strata):
        if case_signals.verdict is None and stratum.undecided:
            return index
        is_in_range = (
            stratum.low is not None and stratum.high is not None and stratum.low <= case_signals.score <= stratum.high
        )
        if case_signals.verdict is not None and is_in_range:
            return index
    return None


# ---------------------------------------------------------------- labels so far


def find_plan_status(
    plan: LabelPlan,
    labels: Iterable[Label],
    *,
    per_case: int = 1,
    criterion: str | None = None,
    level: float = LEVEL,
) -> PlanStatus:
    """Find how far labelling is, and whether it is enough; raises ``UsageError`` for labels that are not good or bad.

    The truth of a case is that of ``find_truths``. A case counts, once, when ``per_case`` people labelled it or
    somebody settled it; before, a later label might still change what was counted. Labels of cases that the plan did
    not draw are left out, and so are labels of another content. A case whose labels do not say which content was read
    is still to be labelled. Cases count in the order of the times of their labels, or in that of the plan where one has
    none. A case that was labelled before the plan was drawn counts at its place in the plan.

    Args:
        plan: The plan that drew the cases.
        labels: The labels so far.
        per_case: How many people have to label a case until it counts; a case that somebody settled counts as well.
        criterion: The criterion that the labels are about; by default the case as a whole.
        level: The confidence of the interval, between 0 and 1.
    """
    check_whole_number("per_case", per_case, least=1)
    counted_labels = select_bound(plan, labels)
    truths = find_truths(counted_labels.labels, criterion=criterion).items()
    labelled_truths = {case: truth for case, truth in truths if truth.labels or truth.adjudication}
    drawn_cases = {planned_case.case for planned_case in plan.order}
    complete_truths = {
        case: truth
        for case, truth in labelled_truths.items()
        if case in counted_labels.bound and _is_complete(truth, per_case)
    }
    # The drawn cases that count, in the order of the plan; and whether each is good, with ``None`` for open ones.
    counted = {drawn.case: complete_truths[drawn.case] for drawn in plan.order if drawn.case in complete_truths}
    values = {case: _read_truth(plan, truth) for case, truth in counted.items()}
    planned_cases = _find_planned(plan, values)  # None until it is known how many cases to draw
    live = compute_live_rate(
        plan.sizes, _order_draws(plan, counted, values, per_case), allocations=plan.allocations, level=level
    )
    labelled, good, unsure = _count_by_stratum(plan, plan.order, values)
    needed_cases = plan.order if planned_cases is None else planned_cases
    missing = [drawn for drawn in needed_cases if drawn.case not in values]
    undrawn = 0
    if planned_cases is None and not missing:
        undrawn = _estimate_total(plan, labelled, good, unsure) - len(plan.order)
    are_all_labelled = planned_cases is not None and not missing
    elsewhere = [truth for case, truth in labelled_truths.items() if case not in drawn_cases]
    return PlanStatus(
        pending=tuple(drawn for drawn in plan.order if drawn.case not in counted),
        labelled=labelled,
        good=good,
        open=unsure,
        elsewhere=len(elsewhere),
        before=sum(_was_labelled_before(truth, plan) for truth in elsewhere),
        other_contents=counted_labels.other_contents,
        unbound=sum(case in drawn_cases and case not in counted_labels.bound for case in labelled_truths),
        live=live,
        planned=None if planned_cases is None else len(planned_cases),
        left=len(missing) + undrawn,
        beyond=0 if planned_cases is None else sum(drawn.case in values for drawn in plan.order[len(planned_cases) :]),
        truths=_digest_truths(plan, planned_cases, counted) if planned_cases is not None and are_all_labelled else None,
        once=_estimate_once(plan, planned_cases, values) if planned_cases is not None and are_all_labelled else None,
        more=estimate_more_labels(live, within=plan.within),
        # Never by the ordinary interval: whoever looks at that until it is narrow stops where chance made it narrow.
        enough=live.half_width <= plan.within,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLabels:
    """The labels of a plan's cases, without those of other contents."""

    labels: tuple[Label, ...]
    """All labels but those of a drawn case that are of another content."""
    bound: frozenset[str]
    """The drawn cases of which a label says that this content was read."""
    other_contents: int
    """The number of labels of drawn cases that are of another content."""


def select_bound(plan: LabelPlan, labels: Iterable[Label]) -> BoundLabels:
    """Leave out the labels of drawn cases that are of another content than the plan drew.

    The result also names the drawn cases whose content is known to have been read (``bound``).
    """
    subjects = {planned_case.case: planned_case.subject for planned_case in plan.order}
    counted, bound, other_contents = [], set[str](), 0
    for label in labels:
        if label.case not in subjects or label.subject is None:
            counted.append(label)
        elif label.subject == subjects[label.case]:
            counted.append(label)
            if label.kind in ("person", "adjudication"):
                bound.add(label.case)
        else:
            other_contents += 1
    return BoundLabels(labels=tuple(counted), bound=frozenset(bound), other_contents=other_contents)


def find_designs(plan: LabelPlan, labels: Sequence[Label]) -> dict[str, LabelDesign]:
    """Find the designs of the labelled cases of a plan that count, by case id: the same cases as in the live interval.

    A case that was labelled before the plan was drawn counts only when the plan's cases before it in its stratum are
    labelled too: somebody may have labelled the worst first.
    """
    bound_labels = select_bound(plan, labels)
    first_times: dict[str, datetime | None] = {}  # of each case's labels; None if one of them has no time
    for label in bound_labels.labels:
        if label.case in bound_labels.bound and label.subject is not None and label.kind in ("person", "adjudication"):
            earliest, time = first_times.get(label.case, label.at), label.at
            first_times[label.case] = None if earliest is None or time is None else min(earliest, time)
    known_times = {case: time for case, time in first_times.items() if time is not None}
    counted = set(first_times)
    if len(known_times) == len(first_times):
        early = {case for case, time in known_times.items() if time < plan.at}
        planned = ((planned_case.case, planned_case.stratum) for planned_case in plan.order)
        counted = set(order_complete(planned, known_times, early))
    designs: dict[tuple[str, float], LabelDesign] = {}
    for planned_case in plan.order:
        designs.setdefault((planned_case.stratum, planned_case.p), plan.make_design(planned_case))
    return {
        planned_case.case: designs[planned_case.stratum, planned_case.p]
        for planned_case in plan.order
        if planned_case.case in counted
    }


def _is_complete(truth: Truth | None, per_case: int) -> bool:
    """Return whether enough people labelled a case, or somebody settled it."""
    return truth is not None and (truth.adjudication is not None or len(truth.labels) >= per_case)


def _was_labelled_before(truth: Truth, plan: LabelPlan) -> bool:
    """Return whether all labels of a case are known to be older than the plan."""
    labels = [*truth.labels, *([truth.adjudication] if truth.adjudication is not None else [])]
    return all(label.at is not None and label.at < plan.at for label in labels)


class _StratumCounts(NamedTuple):
    """The cases of each stratum whose labels count."""

    labelled: tuple[int, ...]
    good: tuple[int, ...]
    unsure: tuple[int, ...]
    """Cases that are neither good nor bad, as people could not tell or do not agree."""


def _count_by_stratum(
    plan: LabelPlan, cases: Iterable[PlannedCase], values: Mapping[str, bool | None]
) -> _StratumCounts:
    """Count the labelled, good and open cases of each stratum.

    ``values`` says of each case that counts whether it is good; ``None`` is open.
    """
    counts: Counter[tuple[str, bool | None]] = Counter(
        (planned_case.stratum, values[planned_case.case]) for planned_case in cases if planned_case.case in values
    )
    names = [stratum.name for stratum in plan.strata]
    labelled = tuple(sum(counts[name, value] for value in (True, False, None)) for name in names)
    return _StratumCounts(
        labelled=labelled,
        good=tuple(counts[name, True] for name in names),
        unsure=tuple(counts[name, None] for name in names),
    )


def _find_planned(plan: LabelPlan, values: Mapping[str, bool | None]) -> tuple[PlannedCase, ...] | None:
    """Find the cases planned for one look: all that were drawn, but for phases of the kind ``more``.

    ``None`` while only the pilot was drawn, unless it is labelled and its labels need no further cases.
    """
    planned_count = next((phase.first for phase in plan.phases if phase.kind == "more"), len(plan.order))
    if len(plan.phases) == 1 and not plan.is_whole:
        labelled, good, unsure = _count_by_stratum(plan, plan.order, values)
        if sum(labelled) < len(plan.order) or _estimate_total(plan, labelled, good, unsure) > len(plan.order):
            return None
    return plan.order[:planned_count]


def _order_draws(
    plan: LabelPlan, counted: Mapping[str, Truth], values: Mapping[str, bool | None], per_case: int
) -> list[tuple[int, bool | None]]:
    """List the stratum's index and the value (good or not) of each case that counts, in the order in which they count.

    That is the order of the times of their labels, or the plan's where a label has no time.
    """
    indexes = {stratum.name: index for index, stratum in enumerate(plan.strata)}
    draws = [
        (indexes[planned_case.stratum], values[planned_case.case])
        for planned_case in plan.order
        if planned_case.case in values
    ]
    times = {case: _find_time(truth, per_case) for case, truth in counted.items()}
    if any(time is None for time in times.values()):
        return draws
    early = {case for case, time in times.items() if time is not None and time < plan.at}
    strata = {planned_case.case: indexes[planned_case.stratum] for planned_case in plan.order}
    ordered = order_complete(((planned_case.case, planned_case.stratum) for planned_case in plan.order), times, early)
    return [(strata[case], values[case]) for case in ordered]


def _find_time(truth: Truth, per_case: int) -> datetime | None:
    """Find the time at which a case had enough labels, or was settled; ``None`` where a label has no time."""
    times = [label.at for label in truth.labels]
    if len(times) >= per_case:
        return None if None in times else sorted(time for time in times if time is not None)[per_case - 1]
    return None if truth.adjudication is None else truth.adjudication.at


def _read_truth(plan: LabelPlan, truth: Truth) -> bool | None:
    """Read whether a case is good, or of a pair whether the first side is preferred.

    ``None`` where people do not settle it. Raises ``UsageError`` for a value that a plan cannot count.
    """
    if truth.heap in {"cannot_tell", "unresolved"}:
        return None
    if plan.pairs:
        if truth.heap in _PREFERENCES:
            return truth.heap == "first"
        raise UsageError(
            f"the pair {show(truth.case)} is labelled {show(truth.value)}, and a plan of pairs needs first, second or "
            "tie; label it again (adjudge label)"
        )
    if isinstance(truth.value, bool):
        return truth.value
    raise UsageError(
        f"the case {show(truth.case)} is labelled {show(truth.value)}, and a plan needs true or false; say which "
        "are good with ",
        Argument("label_map"),
    )


_PREFERENCES: tuple[TruthHeap, ...] = ("first", "second", "tie")


def _estimate_once(
    plan: LabelPlan, planned: Sequence[PlannedCase], values: Mapping[str, bool | None]
) -> WeightedShare | None:
    """Estimate the rate with its interval for one look, once all planned cases are labelled.

    It is computed as every corrected rate is. ``None`` where people settled none of the cases.
    """
    counts = Counter((planned_case.stratum, values[planned_case.case]) for planned_case in planned)
    rate = make_internal_rate(make_strata({stratum.name: stratum.size for stratum in plan.strata}, counts))
    if not isinstance(rate, CorrectedRate):
        return None
    return WeightedShare(value=rate.value, low=rate.low, high=rate.high)


def _digest_truths(plan: LabelPlan, planned: Sequence[PlannedCase], truths: Mapping[str, Truth]) -> str:
    """Compute the SHA-256 of the planned cases with their truths, by which a changed label is found."""
    rows = sorted((case.case, _encode_truth(plan, truths[case.case])) for case in planned)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _encode_truth(plan: LabelPlan, truth: Truth) -> bool | str | None:
    """Return the truth of a case as it is digested: of a pair the side, so that a tie differs from the second side."""
    return truth.heap if truth.heap in _PREFERENCES else _read_truth(plan, truth)


# ---------------------------------------------------------------- the file


def write_plan(plan: LabelPlan, folder: str | os.PathLike[str]) -> Path:
    """Keep a plan in the folder of its run, in one step, readable by its owner alone; returns the file.

    It overwrites a plan only with its own continuation. Raises ``UsageError`` where another plan is kept: its cases may
    be labelled already, and their probabilities would be lost.

    Args:
        plan: The plan.
        folder: The folder of its run.
    """
    path = Path(folder) / PLAN_FILE
    try:
        write_private(path, json.dumps(plan.to_dict(), indent=2).encode() + b"\n", put=partial(_replace_plan, plan))
    except OSError as error:
        raise AdjudgeError(f"the plan {path} cannot be written: {error.strerror}") from None
    return path


def _replace_plan(plan: LabelPlan, fresh: Path, path: Path) -> None:
    """Move the file ``fresh``, in which a plan was written, to ``path``.

    Raises ``UsageError`` where another plan is there, unless ``plan`` continues that one.
    """
    # A lock file, because to look and then to replace would let a second plan in between.
    with _hold_lock(path.parent / LOCK_FILE):
        if os.path.lexists(path):
            existing = _read_plan(path, read_text(path, noun="a plan", most=_LARGEST))
            if existing.id != plan.id or existing.order != plan.order[: len(existing.order)]:
                raise UsageError(
                    f"{path} was written by somebody else meanwhile, or holds another plan; nothing was overwritten: "
                    "run adjudge plan again to follow it, or delete it to begin anew"
                )
        fresh.replace(path)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock on a file that one process at a time has, and that ends with the process. Raises ``UsageError``."""
    try:
        lock = open_sqlite(path, mode="make", prepare=lambda opened: opened.execute("BEGIN EXCLUSIVE"))
    except UNUSABLE as error:
        raise UsageError(f"{path} cannot be locked ({show(str(error))}); delete it if nobody writes a plan") from None
    try:
        yield
    finally:
        lock.close()


def load_plan(run: Run) -> LabelPlan | None:
    """The plan in the folder of a run, or ``None``; raises ``UsageError`` for a file that is none, or of another run.

    ``continue_plan`` and ``check_plan`` compare the run with what the plan was drawn from.

    Args:
        run: The run.
    """
    plan = read_plan(run.folder)
    if plan is not None and plan.run != run.id:
        path = run.folder / PLAN_FILE
        raise UsageError(f"{path} is the plan of the run {show(plan.run)}; delete it, and draw one for {show(run.id)}")
    return plan


def read_plan(folder: Path) -> LabelPlan | None:
    """The plan in a folder, of whichever run, or ``None``; raises ``UsageError`` for a file that is none."""
    path = folder / PLAN_FILE
    if not path.exists():
        return None
    plan = _read_plan(path, read_text(path, noun="a plan", most=_LARGEST))
    _check_counts(path, plan)
    return plan


def _read_plan(path: Path, text: str) -> LabelPlan:
    """Read a plan from the text of its file, where ``digest`` is written as ``digests.items``.

    Raises ``UsageError`` for a text that is no plan.
    """
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON; delete it, and draw another plan") from None
    digests = members.get("digests") if isinstance(members, dict) else None
    digest = digests.get("items") if isinstance(digests, dict) else None
    try:
        return read_record(LabelPlan, members | {"digest": digest} if isinstance(members, dict) else members)
    except UsageError as error:
        raise UsageError(f"{path} is damaged ({error}); delete it, and draw another plan") from None


def _check_counts(path: Path, plan: LabelPlan) -> None:
    """Raise ``UsageError`` for a plan whose parts do not fit together: its probabilities would be made up."""
    names = [stratum.name for stratum in plan.strata]
    drawn_counts = [sum(planned_case.stratum == name for planned_case in plan.order) for name in names]
    fits = all(len(phase.labels) == len(names) and sum(phase.labels) > 0 for phase in plan.phases)
    fits = fits and plan.within > 0 and all(0 < planned_case.p <= 1 for planned_case in plan.order)
    fits = fits and all(count <= size for count, size in zip(drawn_counts, plan.sizes, strict=True))
    fits = fits and sum(plan.sizes) == plan.contents.cases
    fits = fits and len(set(names)) == len(names)
    if not fits or list(plan.drawn) != drawn_counts or sum(drawn_counts) != len(plan.order):
        raise UsageError(f"{path} is damaged (its parts do not fit together); delete it, and draw another plan")


def check_plan(plan: LabelPlan, run: Run) -> None:
    """Raise ``UsageError`` when the run is not what the plan was drawn from any more.

    Args:
        plan: The plan.
        run: The run.
    """
    _read_signals(run, plan, keep=False)
