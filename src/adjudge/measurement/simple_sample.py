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
from adjudge.labels.planned_order import PLAN_FILE
from adjudge.labels.store import RANDOM_ORDER
from adjudge.labels.truth import TruthHeap
from adjudge.measurement.comparison import Comparison, JudgedCase, list_judged_cases
from adjudge.measurement.compute import MeasurementOptions
from adjudge.measurement.gate_limit import LabelDraw
from adjudge.measurement.label_origin import LabelOrigin
from adjudge.measurement.people import PeopleLabels, describe_uncounted
from adjudge.measurement.run_labels import read_plan_file
from adjudge.measurement.sampled_rate import find_sampling
from adjudge.measurement.tally import HEAPS, NO_TIME, MeasurementTally
from adjudge.runs.folder import Run

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCase:
    """A labelled case of the sample."""

    score: float | None
    """The score by which it may be released; ``None`` where no threshold releases it."""
    verdict_code: int
    """The judges' verdicts as a number, which only the caller's ``read_case`` gives a meaning."""
    truth: TruthHeap
    """The truth by people's labels, such as ``good``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleSample:
    """The labelled cases that are a simple random sample of a run."""

    kind: LabelSample
    """The way in which they were drawn."""
    cases: tuple[SampledCase, ...]
    """The labelled cases."""
    digest: str
    """SHA-256 of the labelled cases and their truths."""
    contents: str
    """SHA-256 of the contents that they were drawn from."""
    draw: LabelDraw
    """The sample, as the record of looks names it."""
    first: datetime | None
    """The time at which the first case was labelled; ``None`` is unknown."""
    last: datetime | None
    """The time at which the last case was labelled; ``None`` is unknown."""
    warnings: tuple[str, ...]
    """Sentences about what limits a promise from this sample."""


ReadCase = Callable[[JudgedCase], tuple[float | None, int]]
"""Reads the score of a case, and the judges' verdicts on it as a number with a meaning of the caller's own."""


@dataclass(slots=True)
class _LabelledColumns:
    """The scores, verdicts and digests of the labelled cases, in columns, by the cases' indexes in the tally."""

    scores: array[float] = field(default_factory=lambda: array("d"))
    """NaN where no threshold releases the case."""
    verdict_codes: array[int] = field(default_factory=lambda: array("i"))
    digests: bytearray = field(default_factory=bytearray)
    """SHA-256 of the id and the content's digest, 32 bytes for each case."""

    def add(self, judged: JudgedCase, score: float | None, verdict_code: int) -> None:
        """Add the next labelled case."""
        self.scores.append(nan if score is None else score)
        self.verdict_codes.append(verdict_code)
        self.digests += hashlib.sha256(json.dumps([judged.id, judged.subject]).encode()).digest()

    def read_digest(self, index: int) -> str:
        """Read the digest of a case in hexadecimal."""
        return self.digests[32 * index : 32 * index + 32].hex()

    def make_sampled_case(self, index: int, truth: TruthHeap) -> SampledCase:
        """Make the sample's form of a case, from its columns and its truth."""
        score = self.scores[index]
        return SampledCase(score=None if isnan(score) else score, verdict_code=self.verdict_codes[index], truth=truth)


def read_simple_sample(
    run: Run, labels: Sequence[Label], read_case: ReadCase, *, labels_are_random: bool
) -> SimpleSample:
    """Read the labelled cases of a run that are a simple random sample of it; the run is read once.

    ``labels_are_random`` is whether the user says that they are one. Raises ``UsageError`` where none are: for labels
    in strata, for labels that somebody chose, and for labels that are numbers.
    """
    plan_file = read_plan_file(run, labels)
    people = PeopleLabels(labels, None, plan_file.known_plan)
    comparison, columns = Comparison(people, MeasurementOptions(most_disagreements=0)), _LabelledColumns()
    tally = comparison.whole
    for judged in list_judged_cases(run):
        labelled_before = tally.labelled
        comparison.add(judged)
        is_labelled = tally.labelled > labelled_before
        if is_labelled:
            columns.add(judged, *read_case(judged))
    if tally.table.keys() & {(verdict, "number") for verdict in tally.cases}:
        raise UsageError(
            f"labels of {run.folder} are numbers, and a promise needs true or false; say which are good when they are "
            f"taken in (adjudge label {run.folder} --import FILE --label-map MAP)"
        )
    origin = comparison.find_origin(
        known_plan=plan_file.known_plan,
        problem=plan_file.problem,
        distrusted_plan=plan_file.distrusted_plan,
        recorded=run.contents,
    )
    if origin.contents is None:
        raise UsageError(f"{run.folder}: {origin.problem}; restore the run, or judge the data again")
    kind, indexes = _find_sample(run, comparison, origin, labels_are_random=labels_are_random)
    truths = [row.heap for row in tally.list_rows(indexes)]
    # Sorted, so that the digest is the same in whatever order the cases come.
    digested = sorted([columns.read_digest(index), truth] for index, truth in zip(indexes, truths, strict=True))
    microseconds = [tally.first_label_times[index] for index in indexes]
    times = None if NO_TIME in microseconds else [_EPOCH + timedelta(microseconds=number) for number in microseconds]
    plan_id = None if plan_file.known_plan is None else plan_file.known_plan.plan
    return SimpleSample(
        kind=kind,
        cases=tuple([columns.make_sampled_case(index, truth) for index, truth in zip(indexes, truths, strict=True)]),
        digest=hashlib.sha256(json.dumps(digested).encode()).hexdigest(),
        contents=origin.contents.digest,
        draw=_name_draw(run, tally, indexes, kind, plan_id),
        first=min(times) if times else None,
        last=max(times) if times else None,
        warnings=tuple(_list_warnings(comparison, indexes, kind)),
    )


def _find_sample(
    run: Run, comparison: Comparison, origin: LabelOrigin, *, labels_are_random: bool
) -> tuple[LabelSample, list[int]]:
    """Find the labelled cases that are a simple random sample of the run: how they were drawn, and their indexes.

    Raises ``UsageError`` where none are.
    """
    tally = comparison.whole
    if not tally.labelled:
        raise UsageError(
            f"no case of {run.folder} has a label; label some (adjudge label {run.folder}), or name a file of labels "
            "with ",
            Argument("labels"),
        )
    sampled = find_sampling(tally, origin, labels_are_random=labels_are_random, stale_cases=comparison.stale_cases)
    if sampled.sampling == "census":
        return "census", list(sampled.indexes)
    all_labelled = list(tally.find_indexes(HEAPS))
    indexes_by_plan, stratified = _group_by_draw(tally, origin, all_labelled)
    largest_plan = max(indexes_by_plan, key=lambda plan_id: len(indexes_by_plan[plan_id]), default=None)
    # Labelling in a random order skips cases that already have a label by strata. So the cases of that order are a
    # random sample only if all of these are among them.
    if not stratified <= set(indexes_by_plan.get(largest_plan or "", ())):
        raise UsageError(
            f"labels of {run.folder} were drawn in strata by adjudge plan, and a threshold needs a simple random "
            f"sample; move {PLAN_FILE} out of the folder, label in random order into a file of its own (adjudge label "
            f"{run.folder} --store FILE), export it (--export) and name the export with ",
            Argument("labels"),
        )
    if sampled.sampling == "random":
        return "said random", all_labelled
    if largest_plan is not None:
        kind: LabelSample = "random order" if largest_plan.startswith(RANDOM_ORDER) else "plan"
        return kind, indexes_by_plan[largest_plan]
    uncounted = describe_uncounted(comparison.other_contents) if comparison.other_contents else ""
    problem = f" ({origin.problem or uncounted})" if origin.problem or uncounted else ""
    raise UsageError(
        f"nobody knows how the labelled cases of {run.folder} were drawn{problem}, and a threshold needs a simple "
        f"random sample; label in random order with adjudge label {run.folder}, or say with ",
        Argument("labels_are_random"),
        " that they are random",
    )


def _group_by_draw(
    tally: MeasurementTally, origin: LabelOrigin, indexes: Sequence[int]
) -> tuple[dict[str, list[int]], set[int]]:
    """Group labelled cases by the plan that drew them from all cases, and find those drawn from a stratum.

    Returns the indexes of the former by the id of the plan, and the indexes of the latter.
    """
    indexes_by_plan: dict[str, list[int]] = {}
    stratified: set[int] = set()
    for index, designs in zip(indexes, tally.list_designs(indexes), strict=True):
        for design in filter(origin.is_trusted_draw, designs):
            # A stratum as large as the run is no stratum: the case was drawn from all cases.
            if design.size == sum(tally.cases.values()):
                indexes_by_plan.setdefault(design.plan, []).append(index)
            else:
                stratified.add(index)
    return indexes_by_plan, stratified


def _name_draw(
    run: Run, tally: MeasurementTally, indexes: Sequence[int], kind: LabelSample, plan_id: str | None
) -> LabelDraw:
    """Name the sample as the record of looks does: by its plan, or by the cases that no earlier look had."""
    if kind == "plan" and plan_id is not None:
        return LabelDraw(name=plan_id, planned=True)
    name, added = find_draw(load_looks(run.folder), [f"{tally.id_digests[index]:016x}" for index in indexes])
    return LabelDraw(name=name, added=added)


def _list_warnings(comparison: Comparison, indexes: Sequence[int], kind: LabelSample) -> Iterator[str]:
    """Yield warnings of labels left out, of labels that are not known to be blind, and of cases in groups."""
    tally = comparison.whole
    if comparison.other_contents:
        yield describe_uncounted(comparison.other_contents)
    left_out = tally.labelled - len(indexes)
    if left_out:
        yield f"{left_out:,} labelled cases are left out, because nobody drew them at random"
    if tally.not_blind:
        yield (
            f"{tally.not_blind:,} of the labels are not known to be blind, and who sees a verdict tends to agree with "
            "it; the promise is about what such people say"
        )
    if kind == "said random" and tally.list_groups(indexes) is not None:
        yield (
            "several labelled cases are of one group; the promise holds if single cases were drawn at random, and not "
            "if whole groups were"
        )
