"""The difference between two judges of the same contents: which is right more often, by labels of some contents.

The intervals are computed in ``trust/difference.py`` (``find_stratified_difference``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist
from typing import Any, ClassVar

from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.gate_limit import LabelDraw, LimitKind, find_wider_level
from adjudge.measurement.label_origin import KnownPlan, LabelOrigin, find_described_plan
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.run_labels import read_plan_file, read_run_labels
from adjudge.measurement.verdict_and_truth import CaseTruth, find_verdict, read_stated_truth
from adjudge.runs.folder import Run
from adjudge.trust.difference import PairedCounts, find_stratified_difference
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareDifference:
    """A share of the same cases in two runs, and how much larger it is in the second."""

    before: int
    """Cases that count in the first run: of two judges labelled ones, of one judge's verdicts those that it passed."""
    after: int
    """Cases that count in the second run."""
    of: int
    """All cases among which they are counted."""
    value: float | None
    """The difference of the shares, in -1 to 1; ``None`` where the labels say nothing of the other cases."""
    low: float | None
    """The lower limit of the difference."""
    high: float | None
    """The upper limit of the difference."""
    more: int | None = None
    """About how many more labelled cases would show a difference of this size; ``None`` if it is shown, or 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDifference:
    """Two judges beside what people say of the same cases: agreement, wrong passes and wrong fails, of all cases."""

    schema: ClassVar[str] = "adjudge/judge-difference/1"
    _layout: ClassVar[Layout] = Layout(last=("draw",))

    agreement: ShareDifference
    """Cases that a judge decides as people do; undecided is no agreement."""
    wrong_passes: ShareDifference
    """Cases that a judge passes and people fail, as a share of all cases."""
    wrong_fails: ShareDifference
    """Cases that a judge fails and people pass, as a share of all cases."""
    limit: LimitKind | None
    """The looks that the intervals hold for; ``None`` where the labels allow none."""
    because: str
    """The reason for these limits, or for their absence. One clause."""
    draw: LabelDraw | None = None
    """The sample of labels, as the record of looks names it."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True)
class _LabelledCase:
    """A case whose truth people settled, with the verdicts of both judges."""

    truth: TruthHeap
    before: LabelledVerdict
    """The verdict of the first judge."""
    after: LabelledVerdict
    """The verdict of the second judge."""
    stratum: str
    """The stratum of the plan; empty without a plan."""


def compare_judges(
    before: Run, after: Run, *, labels: Iterable[Label] | None = None, labels_are_random: bool = False
) -> JudgeDifference:
    """Compare two judges of the same contents with people.

    Args:
        before: The run of the first judge.
        after: The run of the second judge on the same contents.
        labels: Labels of the contents. By default those of both runs' own queues: they are of the same contents.
        labels_are_random: True if the labelled cases are a random sample, as the user says.

    Limits are Bonett's and Price's, over the strata of a plan by MOVER. They hold for one look where the corrected rate
    of the first run has such limits, and else for every look. Labels that somebody chose give counts alone. A case
    whose truth people did not settle is left out.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for runs of pairs and for runs of other contents.
    """
    check_extra()
    for run in (before, after):
        if run.compares:
            raise UsageError(f"{run.folder} compares pairs; adjudge agree measures each of the two judges")
    if labels is None:
        labels = dict.fromkeys((*read_run_labels(before), *read_run_labels(after)))
    all_labels = tuple(labels)
    measurement = make_measurement(before, labels=all_labels, labels_are_random=labels_are_random, most_disagreements=0)
    known_plan = find_plan_of_labels((before, after), all_labels) if measurement.sampling == "plan" else None
    cases = _read_cases(before, after, all_labels, known_plan)
    level, limit, because = choose_level(measurement, len(cases))
    sizes = {"": measurement.cases} if known_plan is None else known_plan.sizes
    if limit is not None and any(not number for number in _count_by_stratum(cases, sizes).values()):
        limit, because = None, "a stratum of the plan has no label that people agree on; label more of its cases"
    known_sizes = None if limit is None else sizes
    # If further labels are needed, the wider limits for every look hold for them.
    later_level = find_wider_level(len(cases), 1 - measurement.limit.level) if measurement.limit and cases else level
    return JudgeDifference(
        agreement=_compare_shares(cases, _AGREEMENT, known_sizes, level, later_level),
        wrong_passes=_compare_shares(cases, _WRONG_PASSES, known_sizes, level, later_level),
        wrong_fails=_compare_shares(cases, _WRONG_FAILS, known_sizes, level, later_level),
        limit=limit,
        because=because,
        draw=measurement.draw,
    )


_Cells = frozenset[tuple[TruthHeap, LabelledVerdict]]
"""Cells of a table of truths and verdicts, whose cases are counted."""

_AGREEMENT: _Cells = frozenset({("good", "passed"), ("bad", "failed")})
_WRONG_PASSES: _Cells = frozenset({("bad", "passed")})
_WRONG_FAILS: _Cells = frozenset({("good", "failed")})


# ---------------------------------------------------------------- the sample


def find_plan_of_labels(runs: Sequence[Run], labels: Sequence[Label]) -> KnownPlan | None:
    """Find the plan that drew the labelled cases of runs of the same contents; ``None`` where none is known.

    That is a plan in the folder of one of the runs, else the plan of most labels as they describe it.
    """
    for run in runs:
        if (known_plan := read_plan_file(run, labels).known_plan) is not None:
            return known_plan
    designs = [label.design for label in labels if label.design is not None and label.subject is not None]
    matching_designs = [
        design for design in designs if design.drawn_from is not None and design.drawn_from == runs[0].contents
    ]
    if not matching_designs:
        return None
    most_used_id = Counter(design.plan for design in matching_designs).most_common(1)[0][0]
    designs_of_plan = [design for design in matching_designs if design.plan == most_used_id]
    # One case for each stratum: here labels are not checked against the sizes of the strata.
    labelled = dict.fromkeys((design.stratum for design in designs_of_plan), 1)
    return find_described_plan(designs_of_plan, labelled, LabelOrigin(contents=runs[0].contents))


def choose_level(measurement: Measurement, labelled: int) -> tuple[float, LimitKind | None, str]:
    """Choose the level of the intervals and the looks that they hold for (``None`` for no intervals), with the reason.

    ``labelled`` is the number of labelled cases whose truth is settled.
    """
    limit = measurement.limit
    if limit is None or not labelled:
        return LEVEL, None, measurement.left_out.get("limit") or "no labelled case has a truth that people settled"
    if limit.kind != "every look":
        return LEVEL, limit.kind, limit.because
    # Robbins' normal mixture in place of the quantile of one look.
    return find_wider_level(labelled, 1 - limit.level), limit.kind, limit.because


# ---------------------------------------------------------------- reading and counting


def _read_cases(before: Run, after: Run, labels: Sequence[Label], known_plan: KnownPlan | None) -> list[_LabelledCase]:
    """Read the labelled cases whose truth is settled, with the verdicts of both judges.

    Raises ``UsageError`` where the second judge has not judged the same content.
    """
    # The plan in a run's folder has the designs of the cases; with any other plan the labels themselves have them.
    people = PeopleLabels(labels, None, known_plan if known_plan is not None and known_plan.designs else None)
    judged_after = {judged.case: judged for judged in _read_run(after, None)}
    cases: list[_LabelledCase] = []
    for judged in _read_run(before, people):
        case, truth = judged.case, judged.truth
        if truth is None or truth.override or truth.heap not in ("good", "bad"):
            continue
        design = None if known_plan is None else known_plan.find_design(truth.designs)
        if known_plan is not None and design is None:
            continue
        if case not in judged_after:
            raise UsageError(
                f"{after.folder} has not judged {case}, which people labelled; judge the same cases with both judges"
            )
        later = judged_after[case]
        if later.subject != judged.subject:
            raise UsageError(
                f"{case} has another content in {after.folder}, so the judges cannot be told apart from the answers; "
                "judge the same contents with both"
            )
        stratum = "" if design is None else design.stratum
        cases.append(_LabelledCase(truth.heap, judged.verdict, later.verdict, stratum))
    return cases


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgedContent:
    """A case of one run with the judge's verdict on it."""

    case: str
    """The id of the case."""
    subject: str
    """The digest of its content."""
    verdict: LabelledVerdict
    truth: CaseTruth | None
    """The truth by people's labels; ``None`` without a label, and where no labels were handed in."""


def _read_run(run: Run, people: PeopleLabels | None) -> Iterable[_JudgedContent]:
    """Yield each case of a run with the judge's verdict; with ``people``, also with the truth by their labels."""
    for _, items_of_case in groupby(run.items(), key=lambda item: item.place):
        items = list(items_of_case)
        case, subject = items[0].case, digest_content(items[0].case.content)
        verdict = find_verdict([item.result for item in items]).verdict
        truth = None if people is None else people.find_truth(case.id, None, subject) or read_stated_truth(case)
        yield _JudgedContent(case=case.id, subject=subject, verdict=verdict, truth=truth)


def _count_by_stratum(cases: Sequence[_LabelledCase], sizes: Mapping[str, int]) -> dict[str, int]:
    """Count the labelled cases of each stratum of ``sizes``, 0 included."""
    counts = Counter(case.stratum for case in cases)
    return {name: counts[name] for name in sizes}


def _compare_shares(
    cases: Sequence[_LabelledCase],
    cells: _Cells,
    sizes: Mapping[str, int] | None,
    level: float,
    later_level: float,
) -> ShareDifference:
    """Compare the shares of cases that are in ``cells`` (such as wrong passes) by the first and by the second judge.

    ``sizes`` are the sizes of the strata; without them, only the counts are returned. ``later_level`` is the level of
    the limits if more cases are labelled, by which the number of labels that are still needed is estimated.
    """
    flags = [(case.stratum, (case.truth, case.before) in cells, (case.truth, case.after) in cells) for case in cases]
    before = sum(is_before for _, is_before, _ in flags)
    after = sum(is_after for _, _, is_after in flags)
    if sizes is None:
        return ShareDifference(before=before, after=after, of=len(cases), value=None, low=None, high=None)
    strata = [
        PairedCounts(
            size=size,
            of=sum(stratum == name for stratum, _, _ in flags),
            gained=sum(stratum == name and is_after and not is_before for stratum, is_before, is_after in flags),
            lost=sum(stratum == name and is_before and not is_after for stratum, is_before, is_after in flags),
        )
        for name, size in sizes.items()
    ]
    value, low, high = find_stratified_difference(strata, level=level)
    half_width = (high - low) / 2 * _find_z(later_level) / _find_z(level)
    is_shown = not low <= 0 <= high
    more = None if is_shown else _estimate_more_labels(value, half_width, len(cases), sum(sizes.values()))
    return ShareDifference(before=before, after=after, of=len(cases), value=value, low=low, high=high, more=more)


def _estimate_more_labels(value: float, half_width: float, labelled: int, cases: int) -> int | None:
    """Estimate how many more labels would show a difference of this size: an interval without 0.

    The width of an interval falls with the square root of the number of labels. Returns ``None`` where no number helps:
    there is no difference, or all cases are labelled.
    """
    if abs(value) < 1e-12 or labelled == cases:
        return None
    needed = math.ceil(labelled * (half_width / value) ** 2)
    return max(min(needed, cases) - labelled, 1)


def _find_z(level: float) -> float:
    """Find the quantile of the normal distribution for a two-sided interval, such as 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + level) / 2)
