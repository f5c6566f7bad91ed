"""The plan of a run: which of its cases people label, in which order, and what the labels come to so far.

A plan is drawn from the run alone. The cases are grouped by what is known without a label (the verdict of the judge,
the votes of its seats, the score), some of each group are drawn for the pilot, and once these are labelled, the rest is
drawn where people disagree most. It is kept in the run's folder with its seed, so that anybody can draw it again, and
each case has the probability with which it was drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from adjudge.dataset.label import Label, LabelDesign
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_above_zero, check_share, check_whole_number
from adjudge.formats.files import read_text
from adjudge.formats.text import show
from adjudge.formats.typed import read_typed
from adjudge.labels.order import PLAN_FILE, PLAN_SCHEMA, find_position
from adjudge.labels.truth import Truth, find_truths
from adjudge.result import JudgeChainResult, JudgeResult, make_id
from adjudge.runs.folder import Run
from adjudge.runs.item import RunItem
from adjudge.trust.intervals import WeightedShare, find_weighted_share
from adjudge.trust.live import Allocation, LiveRate, compute_live_rate, estimate_more_labels
from adjudge.trust.planning import (
    LEAST_CASES,
    LabelsNeeded,
    allocate_labels,
    allocate_pilot,
    compute_labels_needed,
    group_scores,
    score_signals,
)

EXPECT = 0.8
"""The share of verdicts that people are expected to agree with, where nobody says otherwise."""

PhaseKind = Literal["pilot", "spread", "more"]

_LARGEST = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStratum:
    """Cases of a run that are alike as far as is known without a label."""

    name: str
    size: int
    """How many cases it has, drawn or not."""
    low: float | None = None
    """The lowest and the highest score (``score_signals``) of its cases; ``None`` where it has undecided ones alone."""
    high: float | None = None
    undecided: bool = False
    """Whether cases that the judge left undecided are in it."""
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
    """How many cases of each stratum were drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """A case that was drawn."""

    case: str
    stratum: str
    p: float
    """The probability of being drawn in its phase, for each case of the stratum that was not drawn before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """Which cases of a run people label, and how these were drawn. ``make_plan`` draws one."""

    schema: ClassVar[str] = PLAN_SCHEMA

    id: str
    run: str
    """The id of the run."""
    at: datetime
    seed: int
    within: float
    """The half-width that is wanted: 0.03 is plus or minus 3 points."""
    digest: str
    """SHA-256 of what it was drawn from: every case with its verdict and score."""
    strata: tuple[PlanStratum, ...]
    phases: tuple[PlanPhase, ...]
    order: tuple[PlannedCase, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cases each stratum has."""
        return tuple(stratum.size for stratum in self.strata)

    @property
    def drawn(self) -> tuple[int, ...]:
        """How many cases of each stratum were drawn so far."""
        return tuple(sum(phase.labels[place] for phase in self.phases) for place in range(len(self.strata)))

    @property
    def needed(self) -> LabelsNeeded:
        """About how many labels it takes, as far as it is known before anybody labelled any."""
        return compute_labels_needed(self.sizes, [item.expected for item in self.strata], within=self.within)

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """How labels are shared out among the strata, for ``compute_live_rate``."""
        return tuple(
            Allocation(first=phase.first, shares=tuple(count / sum(phase.labels) for count in phase.labels))
            for phase in self.phases
        )

    def find_design(self, case: str) -> LabelDesign | None:
        """What a label of this case says of how it was drawn; ``None`` for a case that was not."""
        found = next((item for item in self.order if item.case == case), None)
        return None if found is None else LabelDesign(plan=self.id, stratum=found.stratum, p=found.p)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data, as it is kept."""
        kept = {name: getattr(self, name) for name in ("id", "run", "seed", "within")}
        return {
            "schema": self.schema,
            **kept,
            "at": self.at.astimezone(UTC).isoformat(),
            "digests": {"items": self.digest},
            "strata": [_to_plain(item) for item in self.strata],
            "phases": [_to_plain(item) for item in self.phases],
            "order": [_to_plain(item) for item in self.order],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """How far the labels of a plan are. ``find_plan_status`` computes it."""

    pending: tuple[PlannedCase, ...]
    """Drawn cases that nobody labelled yet, in their order."""
    labelled: tuple[int, ...]
    """Labelled cases in each stratum, open ones included."""
    good: tuple[int, ...]
    open: tuple[int, ...]
    """Cases that people could not tell or do not agree on."""
    elsewhere: int
    """Labelled cases that the plan did not draw; they are left out, because nobody knows why they were labelled."""
    live: LiveRate
    """The rate so far, with limits that hold after every label."""
    once: WeightedShare | None
    """The ordinary 95 % interval, for the one look when the drawn cases are labelled; ``None`` before."""
    more: int | None
    """About how many more labels until the live interval is narrow enough; ``None`` is not known."""
    enough: bool
    """Whether labelling may stop: the live interval is narrow enough, or the planned look found the ordinary one so."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        said = {name: list(getattr(self, name)) for name in ("labelled", "good", "open")}
        once = None if self.once is None else self.once.to_dict()
        rest = {"elsewhere": self.elsewhere, "more": self.more, "enough": self.enough}
        return {"pending": len(self.pending), **said, "live": self.live.to_dict(), "once": once, **rest}


def _to_plain(value: PlanStratum | PlanPhase | PlannedCase) -> dict[str, Any]:
    found = {name: getattr(value, name) for name in value.__slots__}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in found.items()}


# ---------------------------------------------------------------- drawing


@dataclass(frozen=True, slots=True)
class _Signals:
    """What is known of a case without a label."""

    case: str
    verdict: bool | None
    score: float


def make_plan(run: Run, *, within: float = 0.03, expect: float = EXPECT, seed: int | None = None) -> LabelPlan:
    """Draw the pilot of a plan for a run. ``write_plan`` keeps it.

    Args:
        run: A finished run of cases that are good or bad.
        within: The half-width of the interval that is wanted.
        expect: The share of the judge's verdicts that people are expected to agree with. It is used to guess how many
            labels it takes; when the pilot is labelled, its labels say so.
        seed: By which cases are drawn. By default one that nobody can know beforehand.

    Raises ``UsageError`` for a run of pairs, one that is not finished, or one without cases.
    """
    check_above_zero("within", within)
    check_share("expect", expect)
    chosen = secrets.randbits(32) if seed is None else check_whole_number("seed", seed, least=0)
    signals, digest = _read_signals(run)
    strata = _make_strata(signals, expect)
    plan = LabelPlan(
        id=make_id(),
        run=run.id,
        at=datetime.now(UTC),
        seed=chosen,
        within=within,
        digest=digest,
        strata=strata,
        phases=(),
        order=(),
    )
    return _draw(plan, signals, "pilot", allocate_pilot(plan.sizes, plan.needed.planned))


def continue_plan(plan: LabelPlan, run: Run, status: PlanStatus) -> LabelPlan:
    """The plan with the cases to label next: the same while some are not labelled yet, or when it is enough.

    After the pilot the rest of the planned labels is drawn where people disagree most. If these do not do, the plan is
    extended, and from then on the live interval alone says when it is enough. Raises ``UsageError`` when the run
    changed since the plan was drawn.
    """
    signals, digest = _read_signals(run)
    _check_digest(plan, run, digest)
    if status.pending or status.enough:
        return plan
    drawn = sum(plan.drawn)
    kind: PhaseKind
    total, kind = _find_total(plan, status.labelled, status.good, status.open), "spread"
    if len(plan.phases) > 1 or total <= drawn:
        total, kind = drawn + (status.more or STEP), "more"
    more = allocate_labels(plan.sizes, total, labelled=status.labelled, good=_halve(status.good, status.open))
    return _draw(plan, signals, kind, more) if sum(more) else plan


def _find_total(plan: LabelPlan, labelled: Sequence[int], good: Sequence[int], unsure: Sequence[int]) -> int:
    """How many labels it takes in all, by those there are."""
    rates = [(x + 1) / (count + 2) for x, count in zip(_halve(good, unsure), labelled, strict=True)]
    return compute_labels_needed(plan.sizes, rates, within=plan.within).planned


def _halve(good: Sequence[int], unsure: Sequence[int]) -> list[int]:
    """The good cases, with half of the open ones: they may come out either way."""
    return [x + count // 2 for x, count in zip(good, unsure, strict=True)]


STEP = 60
"""How many cases are added where it is not known how many more it takes."""


def _draw(plan: LabelPlan, signals: Sequence[_Signals], kind: PhaseKind, labels: Sequence[int]) -> LabelPlan:
    """The plan with so many more cases of each stratum."""
    known = {item.case for item in plan.order}
    heaps: list[list[tuple[int, str]]] = [[] for _ in plan.strata]
    for item in signals:
        if item.case not in known:
            heaps[_find_stratum(plan.strata, item)].append((find_position(plan.seed, item.case), item.case))
    drawn: list[PlannedCase] = []
    for stratum, heap, count in zip(plan.strata, heaps, labels, strict=True):
        # The first by a keyed digest are a random sample, and the same one wherever the case stands in the data.
        p = count / len(heap) if heap else 0.0
        drawn += [PlannedCase(case=case, stratum=stratum.name, p=p) for _, case in sorted(heap)[:count]]
    # Mixed by another digest: labels that come stratum by stratum would say little until all are there.
    mixed = sorted(drawn, key=lambda item: (find_position(plan.seed, f"{len(plan.phases)}:{item.case}"), item.case))
    phase = PlanPhase(kind=kind, first=len(plan.order), labels=tuple(labels))
    return replace(plan, phases=(*plan.phases, phase), order=(*plan.order, *mixed))


def _read_signals(run: Run) -> tuple[list[_Signals], str]:
    """What is known of each case, and a digest of it."""
    if run.compares:
        raise UsageError(
            f"{run.folder} compares pairs, and a plan is for cases that are good or bad; label them in random order "
            "with adjudge label"
        )
    if run.status != "finished":
        raise UsageError(
            f"the run {run.folder} is {run.status}, and a plan is drawn from all cases; finish it with adjudge run "
            "--resume"
        )
    digest, found = hashlib.sha256(), []
    for items in _group_cases(run.items()):
        found.append(_find_signals(items))
        for item in items:
            said = [item.case.id, item.subject, item.sample, item.result.outcome, getattr(item.result, "score", None)]
            digest.update(json.dumps(said).encode() + b"\n")
    if not found:
        raise UsageError(f"the run {run.folder} has no case to label; name another run")
    return found, digest.hexdigest()


def _group_cases(items: Iterable[RunItem]) -> Iterator[list[RunItem]]:
    """The judgements of each case, which follow each other in a run."""
    found: list[RunItem] = []
    for item in items:
        if found and item.place != found[0].place:
            yield found
            found = []
        found.append(item)
    if found:
        yield found


def _find_signals(items: Sequence[RunItem]) -> _Signals:
    first, *repeats = [item.result for item in items]
    votes = [result.outcome for result in repeats]
    if isinstance(first, JudgeChainResult):
        votes += [result.outcome for result in first.results]
    verdict = None if first.outcome == "undecided" else first.outcome == "passed"
    score = first.score if isinstance(first, JudgeResult) and verdict is not None else None
    decided = [vote == "passed" for vote in votes if vote != "undecided"]
    value = score_signals(verdict=verdict, votes=decided, score=None if score is None else min(max(score, 0.0), 1.0))
    return _Signals(items[0].case.id, verdict, value)


def _make_strata(signals: Sequence[_Signals], expect: float) -> tuple[PlanStratum, ...]:
    """Strata of the cases that were decided by their scores; undecided ones are a stratum, or join the smallest."""
    decided = [item for item in signals if item.verdict is not None]
    unsure = len(signals) - len(decided)
    places = group_scores([item.score for item in decided]) if decided else ()
    groups: dict[int, list[_Signals]] = {}
    for place, item in zip(places, decided, strict=True):
        groups.setdefault(place, []).append(item)
    found = [_make_stratum(groups[place], expect) for place in sorted(groups)]
    if unsure and found and unsure < LEAST_CASES:
        smallest = min(range(len(found)), key=lambda place: found[place].size)
        found[smallest] = replace(found[smallest], size=found[smallest].size + unsure, undecided=True)
    elif unsure:
        found.append(PlanStratum(name="undecided", size=unsure, undecided=True, expected=0.5))
    names = [item.name for item in found]
    return tuple(
        replace(item, name=f"{item.name}, score {item.low:.2f} to {item.high:.2f}")
        if names.count(item.name) > 1
        else item
        for item in found
    )


def _make_stratum(items: Sequence[_Signals], expect: float) -> PlanStratum:
    passed = sum(item.verdict is True for item in items)
    share, scores = passed / len(items), [item.score for item in items]
    name = "passed" if share == 1 else "failed" if share == 0 else "mixed"
    expected = share * expect + (1 - share) * (1 - expect)
    return PlanStratum(name=name, size=len(items), low=min(scores), high=max(scores), expected=expected)


def _find_stratum(strata: Sequence[PlanStratum], item: _Signals) -> int:
    for place, stratum in enumerate(strata):
        if item.verdict is None and stratum.undecided:
            return place
        within = stratum.low is not None and stratum.high is not None and stratum.low <= item.score <= stratum.high
        if item.verdict is not None and within:
            return place
    raise UsageError(f"the case {show(item.case)} is in no stratum of the plan; draw the plan again")


# ---------------------------------------------------------------- labels so far


def find_plan_status(plan: LabelPlan, labels: Iterable[Label]) -> PlanStatus:
    """How far labelling is, and whether it is enough; raises ``UsageError`` for labels that are not good or bad.

    The truth of a case is that of ``find_truths``. Labels of cases that the plan did not draw are counted and left
    out. Labels count in the order of their times, or in that of the plan where one has none.
    """
    said = list(labels)
    truths = {
        case: truth for case, truth in find_truths(said).items() if truth.labels or truth.adjudication is not None
    }
    planned = {item.case: item for item in plan.order}
    names = {stratum.name: place for place, stratum in enumerate(plan.strata)}
    draws = [
        (names[planned[case].stratum], _read_truth(truths[case]))
        for case in _sort_cases([item.case for item in plan.order if item.case in truths], truths)
    ]
    counts = [[0] * len(plan.strata) for _ in range(3)]
    for place, value in draws:
        counts[0][place] += 1
        counts[1][place] += value is True
        counts[2][place] += value is None
    pending = tuple(item for item in plan.order if item.case not in truths)
    live = compute_live_rate(plan.sizes, draws, allocations=plan.allocations)
    once = None if pending or not draws else _find_once(plan, *counts)
    return PlanStatus(
        pending=pending,
        labelled=tuple(counts[0]),
        good=tuple(counts[1]),
        open=tuple(counts[2]),
        elsewhere=sum(case not in planned for case in truths),
        live=live,
        once=once,
        more=estimate_more_labels(live, within=plan.within),
        enough=live.half_width <= plan.within or _ends_as_planned(plan, once, *counts),
    )


def _ends_as_planned(
    plan: LabelPlan, once: WeightedShare | None, labelled: Sequence[int], good: Sequence[int], unsure: Sequence[int]
) -> bool:
    """Whether the one look that was planned found an interval that is narrow enough.

    It is planned for the number of labels that follows from the pilot. Whoever looks at the ordinary interval at any
    other number, and stops when it is narrow, stops where chance made it narrow: then only the live one counts.
    """
    if once is None or (once.high - once.low) / 2 > plan.within:
        return False
    if len(plan.phases) == 1:
        return _find_total(plan, labelled, good, unsure) <= sum(plan.drawn)
    return plan.phases[-1].kind == "spread"


def _sort_cases(cases: list[str], truths: Mapping[str, Truth]) -> list[str]:
    times: dict[str, datetime] = {}
    for case in cases:
        found = [label.at for label in truths[case].labels if label.at is not None]
        if not found:
            return cases
        times[case] = min(found)
    return sorted(cases, key=times.__getitem__)


def _read_truth(truth: Truth) -> bool | None:
    if isinstance(truth.value, bool):
        return truth.value
    if truth.heap not in {"cannot_tell", "unresolved"}:
        raise UsageError(
            f"the case {show(truth.case)} is labelled {show(truth.value)}, and a plan needs true or false; say which "
            "are good (label_map=)"
        )
    return None


def _find_once(plan: LabelPlan, labelled: Sequence[int], good: Sequence[int], unsure: Sequence[int]) -> WeightedShare:
    """The interval for one look; open cases are bad in the low limit and good in the high one."""
    weights = [size / sum(plan.sizes) for size in plan.sizes]
    left = [1 - count / size for count, size in zip(labelled, plan.sizes, strict=True)]
    worst = find_weighted_share(good, labelled, weights, unlabelled=left)
    most = [x + count for x, count in zip(good, unsure, strict=True)]
    best = find_weighted_share(most, labelled, weights, unlabelled=left)
    return WeightedShare(value=(worst.value + best.value) / 2, low=worst.low, high=best.high)


# ---------------------------------------------------------------- the file


def write_plan(plan: LabelPlan, folder: str | os.PathLike[str]) -> Path:
    """Keep a plan in the folder of its run, in one step, readable by its owner alone; returns the file."""
    path = Path(folder) / PLAN_FILE
    fresh = path.with_name(f"{PLAN_FILE}.new")
    try:
        # A new file, and never through a link that somebody put there: it would overwrite what that points to.
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(plan.to_dict(), indent=2).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise AdjudgeError(f"the plan {path} cannot be written: {error.strerror}") from None
    return path


def load_plan(run: Run) -> LabelPlan | None:
    """The plan in the folder of a run, or ``None``; raises ``UsageError`` for a file that is none, or of another run.

    ``continue_plan`` and ``check_plan`` compare the run with what the plan was drawn from.
    """
    path = run.folder / PLAN_FILE
    if not path.exists():
        return None
    plan = _read_plan(path, read_text(path, what="a plan", most=_LARGEST))
    if plan.run != run.id:
        raise UsageError(f"{path} is the plan of the run {show(plan.run)}; delete it, and draw one for {show(run.id)}")
    _check_counts(path, plan)
    return plan


def _read_plan(path: Path, text: str) -> LabelPlan:
    from msgspec import MsgspecError

    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON; delete it, and draw another plan") from None
    schema = said.get("schema") if isinstance(said, dict) else None
    if schema != PLAN_SCHEMA:
        raise UsageError(f"{path} is of the schema {show(schema)}, not {PLAN_SCHEMA!r}; update adjudge")
    digests = said.get("digests")
    digest = digests.get("items") if isinstance(digests, dict) else None
    try:
        return read_typed({**said, "digest": digest}, LabelPlan)
    except MsgspecError as error:
        raise UsageError(f"{path} is damaged ({error}); delete it, and draw another plan") from None


def _check_counts(path: Path, plan: LabelPlan) -> None:
    """Raise ``UsageError`` for a plan whose parts do not fit together: its probabilities would be made up."""
    names = [stratum.name for stratum in plan.strata]
    drawn = [sum(item.stratum == name for item in plan.order) for name in names]
    fits = all(len(phase.labels) == len(names) and sum(phase.labels) > 0 for phase in plan.phases)
    fits = fits and plan.within > 0 and all(0 < item.p <= 1 for item in plan.order)
    if not fits or len(set(names)) < len(names) or list(plan.drawn) != drawn or sum(drawn) != len(plan.order):
        raise UsageError(f"{path} is damaged (its phases and its order differ); delete it, and draw another plan")


def check_plan(plan: LabelPlan, run: Run) -> None:
    """Raise ``UsageError`` when the run is not what the plan was drawn from any more."""
    _check_digest(plan, run, _read_signals(run)[1])


def _check_digest(plan: LabelPlan, run: Run, digest: str) -> None:
    if plan.run != run.id or plan.digest != digest:
        raise UsageError(
            f"the run {run.folder} changed since its plan was drawn, so nobody knows any more how likely a case was "
            f"drawn; delete {run.folder / PLAN_FILE}, and draw another plan"
        )
