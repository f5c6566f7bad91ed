"""Two judges of the same contents, compared by labels of some of them: which of the two is right more often?

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
from adjudge.measurement.judged_case import CaseTruth, find_verdict, read_stated_truth
from adjudge.measurement.label_origin import Origin, Planned, find_planned
from adjudge.measurement.limit import LabelDraw, LimitKind, find_wider_level
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.run_labels import read_plan_file, read_run_labels
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
class _Labelled:
    """A case whose truth people settled, with the verdicts of both judges."""

    truth: TruthHeap
    before: LabelledVerdict
    after: LabelledVerdict
    stratum: str


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
    planned = find_plan_of_labels((before, after), all_labels) if measurement.sampling == "plan" else None
    cases = _read_cases(before, after, all_labels, planned)
    level, limit, because = choose_level(measurement, len(cases))
    sizes = {"": measurement.cases} if planned is None else planned.sizes
    if limit is not None and any(not number for number in _count_by_stratum(cases, sizes).values()):
        limit, because = None, "a stratum of the plan has no label that people agree on; label more of its cases"
    known_sizes = None if limit is None else sizes
    # After the one look, further labels bring the wider limits, which a difference has to be shown by.
    later = find_wider_level(len(cases), 1 - measurement.limit.level) if measurement.limit and cases else level
    return JudgeDifference(
        agreement=_make_share(cases, _AGREEMENT, known_sizes, level, later),
        wrong_passes=_make_share(cases, _WRONG_PASSES, known_sizes, level, later),
        wrong_fails=_make_share(cases, _WRONG_FAILS, known_sizes, level, later),
        limit=limit,
        because=because,
        draw=measurement.draw,
    )


_Cells = frozenset[tuple[TruthHeap, LabelledVerdict]]

_AGREEMENT: _Cells = frozenset({("good", "passed"), ("bad", "failed")})
_WRONG_PASSES: _Cells = frozenset({("bad", "passed")})
_WRONG_FAILS: _Cells = frozenset({("good", "failed")})


# ---------------------------------------------------------------- the sample


def find_plan_of_labels(runs: Sequence[Run], labels: Sequence[Label]) -> Planned | None:
    """Find the plan that drew the labels of some contents: in the folder of a run of them, else as labels describe it.

    ``None`` where neither says.
    """
    for run in runs:
        if (planned := read_plan_file(run, labels).planned) is not None:
            return planned
    designs = [label.design for label in labels if label.design is not None and label.subject is not None]
    matching_designs = [
        design for design in designs if design.drawn_from is not None and design.drawn_from == runs[0].contents
    ]
    plans = Counter(design.plan for design in matching_designs).most_common(1)
    if not plans:
        return None
    kept = [design for design in matching_designs if design.plan == plans[0][0]]
    labelled = dict.fromkeys((design.stratum for design in kept), 1)
    return find_planned(kept, labelled, Origin(contents=runs[0].contents))


def choose_level(measurement: Measurement, labelled: int) -> tuple[float, LimitKind | None, str]:
    """Choose the level of the intervals, the looks that they hold for, and the reason."""
    limit = measurement.limit
    if limit is None or not labelled:
        return LEVEL, None, measurement.left_out.get("limit") or "no labelled case has a truth that people settled"
    if limit.kind != "every look":
        return LEVEL, limit.kind, limit.because
    # Robbins' normal mixture in place of the quantile of one look.
    return find_wider_level(labelled, 1 - limit.level), limit.kind, limit.because


# ---------------------------------------------------------------- reading and counting


def _read_cases(before: Run, after: Run, labels: Sequence[Label], planned: Planned | None) -> list[_Labelled]:
    """Read the labelled cases that both judges have judged; raise ``UsageError`` where the second has not."""
    # The plan in a run's folder says how a case was drawn; of any other draw the labels themselves do.
    people = PeopleLabels(labels, None, planned if planned is not None and planned.designs else None)
    second = {judged.case: judged for judged in _read_run(after, None)}
    cases: list[_Labelled] = []
    for judged in _read_run(before, people):
        case, truth = judged.case, judged.truth
        if truth is None or truth.override or truth.heap not in ("good", "bad"):
            continue
        design = None if planned is None else planned.find(truth.designs)
        if planned is not None and design is None:
            continue
        if case not in second:
            raise UsageError(
                f"{after.folder} has not judged {case}, which people labelled; judge the same cases with both judges"
            )
        later = second[case]
        if later.subject != judged.subject:
            raise UsageError(
                f"{case} has another content in {after.folder}, so the judges cannot be told apart from the answers; "
                "judge the same contents with both"
            )
        stratum = "" if design is None else design.stratum
        cases.append(_Labelled(truth.heap, judged.verdict, later.verdict, stratum))
    return cases


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgedContent:
    """A case of one run, as far as two judges are compared by it."""

    case: str
    subject: str
    """The digest of its content."""
    verdict: LabelledVerdict
    truth: CaseTruth | None
    """The verdict of people; ``None`` where they said nothing, or were not asked for here."""


def _read_run(run: Run, people: PeopleLabels | None) -> Iterable[_JudgedContent]:
    """Yield each case of a run with the judge's verdict and that of people."""
    for _, together in groupby(run.items(), key=lambda item: item.place):
        items = list(together)
        case, subject = items[0].case, digest_content(items[0].case.content)
        verdict = find_verdict([item.result for item in items]).verdict
        truth = None if people is None else people.find(case.id, None, subject) or read_stated_truth(case)
        yield _JudgedContent(case=case.id, subject=subject, verdict=verdict, truth=truth)


def _count_by_stratum(cases: Sequence[_Labelled], sizes: Mapping[str, int]) -> dict[str, int]:
    counts = Counter(case.stratum for case in cases)
    return {name: counts[name] for name in sizes}


def _make_share(
    cases: Sequence[_Labelled],
    cells: _Cells,
    sizes: Mapping[str, int] | None,
    level: float,
    later: float,
) -> ShareDifference:
    """Make the difference of a share; without ``sizes`` its counts alone. ``later`` is the level of the next look."""
    flags = [(case.stratum, (case.truth, case.before) in cells, (case.truth, case.after) in cells) for case in cases]
    before, after = sum(flag for _, flag, _ in flags), sum(flag for _, _, flag in flags)
    if sizes is None:
        return ShareDifference(before=before, after=after, of=len(cases), value=None, low=None, high=None)
    strata = [
        PairedCounts(
            size=size,
            of=sum(stratum == name for stratum, _, _ in flags),
            gained=sum(stratum == name and second and not first for stratum, first, second in flags),
            lost=sum(stratum == name and first and not second for stratum, first, second in flags),
        )
        for name, size in sizes.items()
    ]
    value, low, high = find_stratified_difference(strata, level=level)
    reach = (high - low) / 2 * _find_z(later) / _find_z(level)
    more = _find_more(value, reach, len(cases), sum(sizes.values())) if low <= 0 <= high else None
    return ShareDifference(before=before, after=after, of=len(cases), value=value, low=low, high=high, more=more)


def _find_more(value: float, reach: float, labelled: int, whole: int) -> int | None:
    """Find about how many more labels have an interval without 0: its width falls with the root of their number."""
    if abs(value) < 1e-12 or labelled == whole:
        return None
    return max(min(math.ceil(labelled * (reach / value) ** 2), whole) - labelled, 1)


def _find_z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)
