"""The labelled cases of a run that are a simple random sample: each case was as likely to be labelled as any other."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isnan, nan

from adjudge.dataset.label import Label
from adjudge.errors import Argument, UsageError
from adjudge.guards.release_policy import LabelSample
from adjudge.labels.looks import find_draw, load_looks
from adjudge.labels.order import PLAN_FILE
from adjudge.labels.store import RANDOM_ORDER
from adjudge.labels.truth import TruthHeap
from adjudge.measurement.comparison import Comparison, JudgedCase, list_judged_cases
from adjudge.measurement.compute import MeasurementOptions
from adjudge.measurement.label_origin import Origin
from adjudge.measurement.limit import LabelDraw
from adjudge.measurement.people import PeopleLabels, describe_uncounted
from adjudge.measurement.rate import find_sampling
from adjudge.measurement.run_labels import read_plan_file
from adjudge.measurement.tally import HEAPS, NO_TIME, MeasurementTally
from adjudge.runs.folder import Run

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCase:
    """A labelled case of the sample."""

    score: float | None
    """The score by which it may be released; ``None`` where no threshold releases it."""
    note: int
    """The note of ``read_case`` on it."""
    truth: TruthHeap


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleSample:
    """The labelled cases that are a simple random sample of a run."""

    kind: LabelSample
    cases: tuple[SampledCase, ...]
    digest: str
    """SHA-256 of them and what people found of each."""
    contents: str
    """SHA-256 of the contents that they were drawn from."""
    draw: LabelDraw
    """As the record of looks names it."""
    first: datetime | None
    """The time at which the first label was given; ``None`` is unknown."""
    last: datetime | None
    warnings: tuple[str, ...]


ReadCase = Callable[[JudgedCase], tuple[float | None, int]]
"""Reads the score of a case, and a note in a number that the caller understands."""


@dataclass(slots=True)
class _Rows:
    """The columns that are kept of the labelled cases, in their order."""

    scores: array[float] = field(default_factory=lambda: array("d"))
    """NaN where no threshold releases it."""
    notes: array[int] = field(default_factory=lambda: array("i"))
    names: bytearray = field(default_factory=bytearray)
    """SHA-256 of its id and content."""

    def add(self, judged: JudgedCase, score: float | None, note: int) -> None:
        self.scores.append(nan if score is None else score)
        self.notes.append(note)
        self.names += hashlib.sha256(json.dumps([judged.id, judged.subject]).encode()).digest()

    def find_name(self, place: int) -> str:
        return self.names[32 * place : 32 * place + 32].hex()

    def read(self, place: int, truth: TruthHeap) -> SampledCase:
        score = self.scores[place]
        return SampledCase(score=None if isnan(score) else score, note=self.notes[place], truth=truth)


def read_simple_sample(
    run: Run, labels: Sequence[Label], read_case: ReadCase, *, labels_are_random: bool
) -> SimpleSample:
    """Read the labelled cases of a run that are a simple random sample of it; the run is read once.

    ``labels_are_random`` is whether the user says that they are one. Raises ``UsageError`` where none are: for labels
    in strata, for labels that somebody chose, and for labels that are numbers.
    """
    plan = read_plan_file(run, labels)
    people = PeopleLabels(labels, None, plan.planned)
    comparison, rows = Comparison(people, MeasurementOptions(most_disagreements=0)), _Rows()
    tally = comparison.whole
    for judged in list_judged_cases(run):
        known = tally.labelled
        comparison.add(judged)
        if tally.labelled > known:
            rows.add(judged, *read_case(judged))
    if tally.table.keys() & {(verdict, "number") for verdict in tally.cases}:
        raise UsageError(
            f"labels of {run.folder} are numbers, and a promise needs true or false; say which are good when they are "
            f"taken in (adjudge label {run.folder} --import FILE --label-map MAP)"
        )
    origin = comparison.find_origin(
        planned=plan.planned, problem=plan.problem, distrusted=plan.distrusted, recorded=run.contents
    )
    if origin.contents is None:
        raise UsageError(f"{run.folder}: {origin.problem}; restore the run, or judge the data again")
    kind, places = _find_sample(run, comparison, origin, labels_are_random=labels_are_random)
    truths = [row.heap for row in tally.list_rows(places)]
    named = sorted([rows.find_name(place), heap] for place, heap in zip(places, truths, strict=True))
    moments = [tally.moments[place] for place in places]
    times = None if NO_TIME in moments else [_EPOCH + timedelta(microseconds=moment) for moment in moments]
    return SimpleSample(
        kind=kind,
        cases=tuple([rows.read(place, heap) for place, heap in zip(places, truths, strict=True)]),
        digest=hashlib.sha256(json.dumps(named).encode()).hexdigest(),
        contents=origin.contents.digest,
        draw=_name_draw(run, tally, places, kind, None if plan.planned is None else plan.planned.plan),
        first=min(times) if times else None,
        last=max(times) if times else None,
        warnings=tuple(_list_warnings(comparison, places, kind)),
    )


def _find_sample(
    run: Run, comparison: Comparison, origin: Origin, *, labels_are_random: bool
) -> tuple[LabelSample, list[int]]:
    """Find which labelled cases are a simple random sample of the run; raises ``UsageError`` where none are."""
    tally = comparison.whole
    if not tally.labelled:
        raise UsageError(
            f"no case of {run.folder} has a label; label some (adjudge label {run.folder}), or name a file of labels "
            "with ",
            Argument("labels"),
        )
    sampled = find_sampling(tally, origin, labels_are_random=labels_are_random, lost=comparison.lost)
    if sampled.sampling == "census":
        return "census", list(sampled.places)
    every = list(tally.list_places(HEAPS))
    drawn, stratified = _group_by_draw(tally, origin, every)
    name = max(drawn, key=lambda plan: len(drawn[plan]), default=None)
    # A random order passes over what was labelled by strata before it came there, so without these it is no sample.
    if not stratified <= set(drawn.get(name or "", ())):
        raise UsageError(
            f"labels of {run.folder} were drawn in strata by adjudge plan, and a threshold needs a simple random "
            f"sample; move {PLAN_FILE} out of the folder, label in random order into a file of its own (adjudge label "
            f"{run.folder} --store FILE), export it (--export) and name the export with ",
            Argument("labels"),
        )
    if sampled.sampling == "random":
        return "said random", every
    if name is not None:
        return ("random order" if name.startswith(RANDOM_ORDER) else "plan"), drawn[name]
    uncounted = describe_uncounted(comparison.other_contents) if comparison.other_contents else ""
    problem = f" ({origin.problem or uncounted})" if origin.problem or uncounted else ""
    raise UsageError(
        f"nobody knows how the labelled cases of {run.folder} were drawn{problem}, and a threshold needs a simple "
        f"random sample; label in random order with adjudge label {run.folder}, or say with ",
        Argument("labels_are_random"),
        " that they are random",
    )


def _group_by_draw(
    tally: MeasurementTally, origin: Origin, places: Sequence[int]
) -> tuple[dict[str, list[int]], set[int]]:
    """Group labelled cases by the plan that drew them from all cases, and find those drawn from a stratum.

    Returns the places of the former by the id of the plan, and the places of the latter.
    """
    drawn: dict[str, list[int]] = {}
    stratified: set[int] = set()
    for place, designs in zip(places, tally.list_designs(places), strict=True):
        for design in filter(origin.holds, designs):
            if design.size == sum(tally.cases.values()):
                drawn.setdefault(design.plan, []).append(place)
            else:
                stratified.add(place)
    return drawn, stratified


def _name_draw(
    run: Run, tally: MeasurementTally, places: Sequence[int], kind: LabelSample, plan: str | None
) -> LabelDraw:
    """Name the sample as the record of looks does."""
    if kind == "plan" and plan is not None:
        return LabelDraw(name=plan, planned=True)
    name, added = find_draw(load_looks(run.folder), [f"{tally.marks[place]:016x}" for place in places])
    return LabelDraw(name=name, added=added)


def _list_warnings(comparison: Comparison, places: Sequence[int], kind: LabelSample) -> Iterator[str]:
    """Yield warnings of labels left out, of labels that are not known to be blind, and of cases in groups."""
    tally = comparison.whole
    if comparison.other_contents:
        yield describe_uncounted(comparison.other_contents)
    left_out = tally.labelled - len(places)
    if left_out:
        yield f"{left_out:,} labelled cases are left out, because nobody drew them at random"
    if tally.not_blind:
        yield (
            f"{tally.not_blind:,} of the labels are not known to be blind, and who sees a verdict tends to agree with "
            "it; the promise is about what such people say"
        )
    if kind == "said random" and tally.list_groups(places) is not None:
        yield (
            "several labelled cases are of one group; the promise holds if single cases were drawn at random, and not "
            "if whole groups were"
        )
