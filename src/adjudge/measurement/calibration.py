"""A threshold with a promise: from which score on the judge of a run may decide alone, tested on labels of people."""

from __future__ import annotations

import hashlib
import json
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isnan, nan
from typing import Any, ClassVar, Literal, get_args

from adjudge.dataset.label import Label
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show
from adjudge.guards.release_policy import LabelSample, ReleasePolicy, ReleaseRisk, find_release_score
from adjudge.labels.looks import CalibrationLook, Look, find_calibration, find_draw, load_looks, write_look
from adjudge.labels.order import PLAN_FILE
from adjudge.labels.store import RANDOM_ORDER
from adjudge.measurement.comparison import Comparison, list_judged_cases
from adjudge.measurement.compute import MeasurementOptions
from adjudge.measurement.draw import Origin
from adjudge.measurement.limit import LabelDraw
from adjudge.measurement.measure import name_judge_and_data
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.rate import find_sampling
from adjudge.measurement.run_labels import read_plan_file, read_queue
from adjudge.measurement.tally import HEAPS, NO_TIME, MeasurementTally
from adjudge.result import Outcome
from adjudge.runs.folder import Run, open_run
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL
from adjudge.trust.threshold import (
    ThresholdStep,
    ThresholdTest,
    count_labelled,
    find_look_level,
    make_threshold_steps,
    search_threshold,
)

CalibrationOutcome = Literal["kept", "none can", "cannot tell"]
"""A threshold keeps the promise, the labels show that none of any use can, or they are too few to tell."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A risk and the share that it must not exceed."""

    risk: ReleaseRisk
    bound: float

    def __str__(self) -> str:
        """The promise as ``read_promise`` reads it."""
        return f"{self.risk}<={self.bound!r}"


def read_promise(text: object) -> Promise:
    """Read a promise such as ``wrong_pass<=0.05``. Raises ``UsageError`` for anything else."""
    match = _PROMISE.fullmatch(text) if isinstance(text, str) else None
    risk = match.group("risk") if match else ""
    if risk == "lost":
        raise UsageError(
            "lost is what a cascade loses against its strong judge; name the runs of both judges with ",
            Argument("cascade"),
            argument="promise",
        )
    if match is None or risk not in get_args(ReleaseRisk):
        raise UsageError(
            f"a promise is a risk and the share that it must not exceed, such as wrong_pass<=0.05 (of all cases) or "
            f"wrong_given_pass<=0.1 (of the released ones); got {show(text)}",
            argument="promise",
        )
    bound = check_share("promise", float(match.group("bound")))
    if not 0 < bound < 1:
        raise UsageError(
            f"the share of a promise is above 0 and below 1, got {bound:g}: no number of labels shows that nothing is "
            "ever wrong",
            argument="promise",
        )
    return Promise(risk=risk, bound=bound)  # type: ignore[arg-type] - checked


_PROMISE = re.compile(r"\s*(?P<risk>[a-z_]+)\s*<=\s*(?P<bound>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The thresholds of a run's judge, tested for a promise on labels of people. ``calibrate`` makes one."""

    schema: ClassVar[str] = "adjudge/calibration/1"
    _layout: ClassVar[Layout] = Layout(
        last=("policy",),
        computed={
            "measured_from": lambda calibration: calibration.measured_from.astimezone(UTC),
            "measured_to": lambda calibration: calibration.measured_to.astimezone(UTC),
        },
    )

    outcome: CalibrationOutcome
    risk: ReleaseRisk
    bound: float
    """The share that the risk must not exceed."""
    confidence: float
    """The share of calibrations, over all looks at the run, in which the promise is kept."""
    look: int
    """The number of this look among those at which thresholds of the run were tested, from 1."""
    level: float
    """The confidence of the tests of this look."""
    run: str
    """The run's id."""
    judge: str
    data: str
    cases: int
    passed: int
    """Cases that the judge passed when it was asked first."""
    without_score: int
    """Those of them without a score, which no threshold releases."""
    labels: int
    """Labelled cases that count."""
    sample: LabelSample
    measured_from: datetime
    measured_to: datetime
    contents_digest: str
    """SHA-256 of all contents that were judged."""
    labels_digest: str
    """SHA-256 of the labelled cases and what people found of each."""
    thresholds: int
    """Thresholds of the sequence."""
    grid_digest: str
    """SHA-256 of the thresholds, which were fixed before any label was read."""
    tests: tuple[ThresholdTest, ...]
    """The tests in their order; the last failed, unless the whole sequence was certified."""
    needed: int | None
    """About how many labels it takes, where the labels cannot tell; ``None`` is not known."""
    cost_usd: float | None
    """The price of judging all cases; ``None`` is unknown."""
    warnings: tuple[str, ...] = ()
    policy: ReleasePolicy | None = None
    """The certified threshold; ``None`` where there is none, and people decide everything."""

    @property
    def released_share(self) -> float:
        """The share of all cases that the judge may decide alone."""
        return 0.0 if self.policy is None else self.policy.released / self.cases

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


def calibrate(
    run: Run | str | os.PathLike[str],
    promise: str,
    *,
    labels: Iterable[Label] | None = None,
    labels_are_random: bool = False,
    confidence: float = LEVEL,
    by: str = "python",
) -> Calibration:
    """Find from which score on the judge of a run may decide alone, so that a promise is kept.

    A case is released if the judge passed it with at least the threshold; people decide every other one. What people
    could not tell, or do not agree on, counts as wrong. The thresholds are the scores of the run's passes, fixed before
    any label is read, and tested from the one that releases least (``adjudge.trust.threshold``). Of a case that was
    judged several times the first judgement counts, because a gate judges once.

    Args:
        run: A finished run of cases that are good or bad, or its folder.
        promise: ``wrong_pass<=0.05`` (at most 5 % of all cases are released and wrong) or ``wrong_given_pass<=0.1`` (at
            most 10 % of the released ones are wrong).
        labels: Labels of its cases. By default those of ``adjudge label``, and those that its data set has.
        labels_are_random: True if the labelled cases are a simple random sample, as the user says.
        confidence: The share of calibrations in which the promise is kept, over all looks at the run together.
        by: Who looks, for the record of looks.

    The look is recorded in the run's folder; each further one has less of what may go wrong. To look at the same labels
    for the same promise again is the same look.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for a run of pairs, one that is not finished, one whose judge passed
    nothing or gave no scores, and for labels that are no simple random sample; ``AdjudgeError`` if the look cannot be
    recorded.
    """
    check_extra()
    stated = read_promise(promise)
    if not 0.5 <= check_share("confidence", confidence) < 1:
        raise UsageError(
            f"confidence must be at least 0.5 and below 1, got {confidence:g}; 0.95 is usual", argument="confidence"
        )
    if not isinstance(run, Run):
        with open_run(run) as opened:
            return calibrate(
                opened, promise, labels=labels, labels_are_random=labels_are_random, confidence=confidence, by=by
            )
    _check_run(run)
    # Before any label is read: a sequence that was chosen by labels would promise nothing.
    grid = _make_grid(run)
    given_labels = read_queue(run) if labels is None else tuple(labels)
    labelled = _read_labelled(run, given_labels, said_random=labels_are_random)
    look = CalibrationLook(promise=str(stated), confidence=confidence, grid=grid.digest, labels=labelled.digest)
    looks = load_looks(run.folder)
    number, is_recorded = find_calibration(looks, look)
    calibration = _test(run, stated, grid, labelled, confidence=confidence, look=number)
    if not is_recorded:
        _record(run, look, labelled, calibration, by=by)
    return calibration


def _check_run(run: Run) -> None:
    if run.compares:
        raise UsageError(
            f"{run.folder} compares pairs, and a threshold releases cases that are good; judge the answers one by one"
        )
    if run.status != "finished":
        raise UsageError(f"the run {run.folder} is {run.status}; finish it with adjudge run --resume")


# ---------------------------------------------------------------- without labels


@dataclass(frozen=True, slots=True)
class _Grid:
    """The thresholds of a run, and what else is known of it without a label."""

    steps: tuple[ThresholdStep, ...]
    digest: str
    cases: int
    passed: int
    without_score: int
    measured_from: datetime
    measured_to: datetime


def _make_grid(run: Run) -> _Grid:
    scores: Counter[float] = Counter()
    cases = passed = without_score = 0
    times: list[datetime] = []
    for judged in list_judged_cases(run):
        first = judged.results[0]
        cases += 1
        created = [result.created_at for result in judged.results]
        times = [min((*times[:1], *created)), max((*times[1:], *created))]
        if getattr(first, "passed", False):
            passed += 1
            score = find_release_score(first)
            without_score += score is None
            if score is not None:
                scores[score] += 1
    if not cases:
        raise UsageError(f"the run {run.folder} has no case; name another run")
    if not scores:
        reason = "no score, so there is no threshold to choose" if passed else "nothing, so there is nothing to release"
        raise UsageError(f"the judge of {run.folder} {'gave its passes' if passed else 'passed'} {reason}")
    steps = make_threshold_steps(scores.elements())
    row = json.dumps([run.id, [[step.threshold, step.released] for step in steps]])
    return _Grid(
        steps=steps,
        digest=hashlib.sha256(row.encode()).hexdigest(),
        cases=cases,
        passed=passed,
        without_score=without_score,
        measured_from=times[0],
        measured_to=times[1],
    )


# ---------------------------------------------------------------- with labels


@dataclass(frozen=True, slots=True)
class _Labelled:
    """The labelled cases that are a simple random sample of a run."""

    sample: LabelSample
    number: int
    released: tuple[tuple[float, bool], ...]
    """Score of each that may be released, and whether it is wrong."""
    digest: str
    contents: str
    """SHA-256 of the contents that they were drawn from."""
    draw: LabelDraw
    first: datetime | None
    """When the first label was given; ``None`` is unknown."""
    last: datetime | None
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Rows:
    """What is kept of each labelled case, in their order."""

    scores: array[float] = field(default_factory=lambda: array("d"))
    """NaN where no threshold releases it."""
    names: bytearray = field(default_factory=bytearray)
    """SHA-256 of its id and content."""

    def add(self, case: str, subject: str | None, score: float | None) -> None:
        self.scores.append(nan if score is None else score)
        self.names += hashlib.sha256(json.dumps([case, subject]).encode()).digest()

    def find_name(self, place: int) -> str:
        return self.names[32 * place : 32 * place + 32].hex()


def _read_labelled(run: Run, labels: Sequence[Label], *, said_random: bool) -> _Labelled:
    plan = read_plan_file(run, labels)
    people = PeopleLabels(labels, None, plan.planned)
    comparison, rows = Comparison(people, MeasurementOptions(most_disagreements=0)), _Rows()
    tally = comparison.whole
    for judged in list_judged_cases(run):
        known = tally.labelled
        comparison.add(judged)
        if tally.labelled > known:
            rows.add(judged.id, judged.subject, find_release_score(judged.results[0]))
    if tally.table.keys() & {(verdict, "number") for verdict in tally.cases}:
        raise UsageError(
            f"labels of {run.folder} are numbers, and a promise needs true or false; say which are good with ",
            Argument("label_map"),
        )
    origin = comparison.find_origin(
        planned=plan.planned, problem=plan.problem, distrusted=plan.distrusted, recorded=run.contents
    )
    if origin.contents is None:
        raise UsageError(f"{run.folder}: {origin.problem}; restore the run, or judge the data again")
    sample, places = _find_sample(run, comparison, origin, said_random=said_random)
    truths = [heap for _, heap, _ in tally.list_rows(places)]
    named = sorted([rows.find_name(place), heap] for place, heap in zip(places, truths, strict=True))
    scored = ((rows.scores[place], heap != "good") for place, heap in zip(places, truths, strict=True))
    moments = [tally.moments[place] for place in places]
    times = None if NO_TIME in moments else [_EPOCH + timedelta(microseconds=moment) for moment in moments]
    return _Labelled(
        sample=sample,
        number=len(places),
        released=tuple([(score, wrong) for score, wrong in scored if not isnan(score)]),
        digest=hashlib.sha256(json.dumps(named).encode()).hexdigest(),
        contents=origin.contents.digest,
        draw=_name_draw(run, tally, places, sample, None if plan.planned is None else plan.planned.plan),
        first=min(times) if times else None,
        last=max(times) if times else None,
        warnings=tuple(_list_warnings(tally, places, sample)),
    )


def _find_sample(
    run: Run, comparison: Comparison, origin: Origin, *, said_random: bool
) -> tuple[LabelSample, list[int]]:
    """Find which labelled cases are a simple random sample of the run; raises ``UsageError`` where none are."""
    tally = comparison.whole
    if not tally.labelled:
        raise UsageError(
            f"no case of {run.folder} has a label; label some (adjudge label {run.folder}), or name a file of labels "
            "with ",
            Argument("labels"),
        )
    sampling, every, _ = find_sampling(tally, origin, said_random=said_random, lost=comparison.lost)
    if sampling == "census":
        return "census", list(every)
    every = list(tally.list_places(HEAPS))
    drawn: dict[str, list[int]] = {}
    stratified: set[str] = set()
    for place, designs in zip(every, tally.list_designs(every), strict=True):
        for design in designs:
            if origin.holds(design):
                drawn.setdefault(design.plan, []).append(place)
                if design.size != sum(tally.cases.values()):
                    stratified.add(design.plan)
    if stratified:
        raise UsageError(
            f"labels of {run.folder} were drawn in strata by adjudge plan, and a threshold needs a simple random "
            f"sample; move {PLAN_FILE} out of the folder, label in random order into a file of its own (adjudge label "
            f"{run.folder} --store FILE), export it (--export) and name the export with ",
            Argument("labels"),
        )
    if sampling == "random":
        return "said random", every
    if drawn:
        name = max(drawn, key=lambda plan: len(drawn[plan]))
        return ("random order" if name.startswith(RANDOM_ORDER) else "plan"), drawn[name]
    problem = f" ({origin.problem})" if origin.problem else ""
    raise UsageError(
        f"nobody knows how the labelled cases of {run.folder} were drawn{problem}, and a threshold needs a simple "
        f"random sample; label in random order with adjudge label {run.folder}, or say that they are random with ",
        Argument("labels_are_random"),
    )


def _name_draw(
    run: Run, tally: MeasurementTally, places: Sequence[int], sample: LabelSample, plan: str | None
) -> LabelDraw:
    """Name the sample as the record of looks does."""
    if sample == "plan" and plan is not None:
        return LabelDraw(name=plan, planned=True)
    name, added = find_draw(load_looks(run.folder), [f"{tally.marks[place]:016x}" for place in places])
    return LabelDraw(name=name, added=added)


def _list_warnings(tally: MeasurementTally, places: Sequence[int], sample: LabelSample) -> Iterable[str]:
    left_out = tally.labelled - len(places)
    if left_out:
        yield f"{left_out:,} labelled cases are left out, because nobody drew them at random"
    if tally.not_blind:
        yield (
            f"{tally.not_blind:,} of the labels are not known to be blind, and who sees a verdict tends to agree with "
            "it; the promise is about what such people say"
        )
    if sample == "said random" and tally.list_groups(places) is not None:
        yield (
            "several labelled cases are of one group; the promise holds if single cases were drawn at random, and not "
            "if whole groups were"
        )


# ---------------------------------------------------------------- the tests


def _test(run: Run, promise: Promise, grid: _Grid, labelled: _Labelled, *, confidence: float, look: int) -> Calibration:
    level = find_look_level(confidence, look)
    search = search_threshold(
        grid.steps,
        count_labelled(grid.steps, labelled.released),
        promise.risk,
        bound=promise.bound,
        level=level,
        cases=grid.cases,
        labels=labelled.number,
        next_level=find_look_level(confidence, look + 1),
    )
    judge, data = name_judge_and_data(run)
    common: dict[str, Any] = {
        "risk": promise.risk,
        "bound": promise.bound,
        "confidence": confidence,
        "level": level,
        "run": run.id,
        "judge": judge,
        "cases": grid.cases,
        "labels": labelled.number,
        "sample": labelled.sample,
        "measured_from": grid.measured_from,
        "measured_to": grid.measured_to,
        "contents_digest": labelled.contents,
        "labels_digest": labelled.digest,
        "grid_digest": grid.digest,
    }
    policy = None if search.certified is None else _make_policy(run, search.certified, labelled, common)
    return Calibration(
        **common,
        outcome="kept" if policy else "none can" if search.impossible else "cannot tell",
        look=look,
        data=data,
        passed=grid.passed,
        without_score=grid.without_score,
        thresholds=len(grid.steps),
        tests=search.tests,
        needed=search.needed,
        cost_usd=run.usage.cost_usd,
        warnings=labelled.warnings,
        policy=policy,
    )


def _make_policy(run: Run, certified: ThresholdTest, labelled: _Labelled, common: Mapping[str, Any]) -> ReleasePolicy:
    digests = run.manifest["digests"]
    return ReleasePolicy(
        **common,
        threshold=certified.threshold,
        released=certified.released,
        labels_released=certified.labels_released,
        wrong=certified.wrong,
        p_value=certified.p_value,
        judge_digest=digests.get("judge"),
        rubric_digest=digests.get("rubric"),
        asked_digest=digests.get("asked"),
        labelled_from=labelled.first,
        labelled_to=labelled.last,
        at=datetime.now(UTC),
    )


def _record(run: Run, look: CalibrationLook, labelled: _Labelled, calibration: Calibration, *, by: str) -> None:
    """Record a look; raises ``AdjudgeError`` if it cannot be: the next one would be taken for the first."""
    outcome: Outcome = {"kept": "passed", "none can": "failed"}.get(calibration.outcome, "undecided")  # type: ignore[assignment]
    draw = labelled.draw
    write_look(
        run.folder,
        Look(
            at=datetime.now(UTC),
            by=by,
            labels=labelled.number,
            draw=draw.name,
            planned=draw.planned,
            added=draw.added,
            bar=calibration.bound,
            outcome=outcome,
            calibration=look,
        ),
    )
