"""A cascade with a promise: the confidence from which a cheap judge may decide before a strong one, tested on labels.

A case is lost if the cheap judge decides it wrongly and the strong one would decide it rightly.

Which threshold is chosen is decided as for one judge: ``search_grid`` in ``calibration.py`` hands the counts to
``search_threshold`` in ``trust/threshold.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.guards.release_policy import LabelSample
from adjudge.labels.looks import CalibrationLook, find_calibration, load_looks
from adjudge.labels.truth import TruthHeap
from adjudge.measurement.calibration import (
    CalibrationOutcome,
    check_can_be_calibrated,
    name_outcome,
    record_calibration,
    search_grid,
)
from adjudge.measurement.comparison import JudgedCase, list_judged_cases
from adjudge.measurement.measure import name_judge_and_data
from adjudge.measurement.promise import Promise, check_confidence, read_promise
from adjudge.measurement.run_labels import read_run_labels
from adjudge.measurement.simple_sample import SampledCase, SimpleSample, read_simple_sample
from adjudge.measurement.threshold_grid import ThresholdGrid, make_threshold_grid
from adjudge.result import JudgeResult, Outcome
from adjudge.runs.folder import Run, open_run
from adjudge.trust.difference import find_paired_difference
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL
from adjudge.trust.threshold import ThresholdTest, find_look_level

CascadeAdvice = Literal["cascade", "cheap alone", "does not pay", "more labels"]
"""Use the cascade; use the cheap judge alone, because the labels show that it agrees with people more often, and it
costs no more; use the strong judge alone, because a cascade saves nothing; or label more, because the labels cannot
tell."""

_OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "undecided")

_RIGHT_OUTCOMES: dict[TruthHeap, Outcome] = {"good": "passed", "bad": "failed"}
"""The outcome that agrees with a truth; none where people did not settle it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeCalibration:
    """The confidences of a cheap judge, tested for what a cascade loses. ``calibrate_cascade`` makes one."""

    schema: ClassVar[str] = "adjudge/cascade-calibration/1"
    _layout: ClassVar[Layout] = Layout(
        last=("advice", "saved"),
        computed={
            "measured_from": lambda calibration: calibration.measured_from.astimezone(UTC),
            "measured_to": lambda calibration: calibration.measured_to.astimezone(UTC),
        },
    )

    outcome: CalibrationOutcome
    """``kept``, or why no threshold is certified."""
    bound: float
    """The share of all cases that may be lost."""
    confidence: float
    """The share of calibrations, over all looks at the run, in which the promise is kept."""
    look: int
    """The number of this look among those at which thresholds of the cheap judge's run were tested, from 1."""
    level: float
    """The confidence of the tests of this look."""
    cheap: str
    """The judge that is asked first."""
    strong: str
    """The judge that is asked where the first is not sure."""
    runs: tuple[str, str]
    """The ids of their runs."""
    cases: int
    """Cases that both runs judged."""
    labels: int
    """Labelled cases that count."""
    sample: LabelSample
    """The way in which the labelled cases were drawn."""
    contents_digest: str
    """SHA-256 of all contents that were judged."""
    labels_digest: str
    """SHA-256 of the labelled cases and what people found of each."""
    grid_digest: str
    """SHA-256 of the thresholds, which were fixed before any label was read."""
    measured_from: datetime
    """The time at which the first case was judged, in either run."""
    measured_to: datetime
    """The time at which the last case was judged, in either run."""
    threshold: float | None
    """``escalate_below`` of the cascade; ``None``: the strong judge decides everything."""
    decided: int
    """Cases that the cheap judge then decides."""
    lost: int
    """Labelled cases of these that the strong judge decides rightly and the cheap one does not."""
    right: tuple[int, int]
    """Labelled cases that the cheap and the strong judge decide as people do."""
    difference: tuple[float, float]
    """Limits of how much more often the cheap judge agrees with people, at the confidence of this look (``level``):
    Bonett and Price."""
    costs_usd: tuple[float | None, float | None]
    """The price of a case by each judge; ``None`` is unknown."""
    needed: int | None
    """About how many labels it takes, where the labels cannot tell; ``None`` is not known."""
    tests: tuple[ThresholdTest, ...]
    """The tests in their order."""
    warnings: tuple[str, ...] = ()
    """Sentences about what limits the promise."""

    @property
    def saved(self) -> float | None:
        """The share of the strong judge's price that the cascade saves; ``None`` where a price is unknown."""
        cheap, strong = self.costs_usd
        if cheap is None or not strong:
            return None
        return self.decided / self.cases - cheap / strong

    @property
    def advice(self) -> CascadeAdvice:
        """The advice on what to use."""
        cheap, strong = self.costs_usd
        is_dearer = cheap is not None and strong is not None and cheap > strong
        return choose_advice(self.outcome, self.difference, self.saved, is_dearer=is_dearer)

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


def choose_advice(
    outcome: CalibrationOutcome, difference: tuple[float, float], saved: float | None, *, is_dearer: bool
) -> CascadeAdvice:
    """Choose what to use by how a search ended, the limits of how much more often the cheap judge is right, and price.

    Args:
        outcome: How the search for a threshold ended.
        difference: The limits of the difference in agreement, cheap less strong.
        saved: The share of the strong judge's price that the cascade saves; ``None`` is unknown.
        is_dearer: True if the cheap judge is known to cost more.
    """
    # By the interval and not by the counts: of few labels a tie, or a case or two more, is chance.
    least_difference = difference[0]
    if least_difference > 0 and not is_dearer:
        return "cheap alone"
    if outcome == "cannot tell":
        return "more labels"
    saves_nothing = saved is not None and saved <= 0
    return "does not pay" if outcome != "kept" or saves_nothing else "cascade"


def calibrate_cascade(
    cheap: Run | str | os.PathLike[str],
    strong: Run | str | os.PathLike[str],
    promise: str,
    *,
    labels: Iterable[Label] | None = None,
    labels_are_random: bool = False,
    confidence: float = LEVEL,
    by: str = "python",
) -> CascadeCalibration:
    """Find from which confidence on a cheap judge may decide in a cascade, so that a promise is kept.

    A case is lost if the cheap judge decides it wrongly and the strong one would decide it rightly. Where people could
    not settle a case it is lost if the two decide differently. The tests begin where the strong judge decides
    everything, and go on to lower confidences.

    Args:
        cheap: A finished run of the judge that is asked first, whose results have a confidence.
        strong: A finished run of the judge that is asked next, on the same contents.
        promise: ``lost<=0.05``: at most 5 % of all cases are lost.
        labels: Labels of the cases. By default those of both runs' own queues: they are of the same contents.
        labels_are_random: True if the labelled cases are a simple random sample, as the user says.
        confidence: The share of calibrations in which the promise is kept, over all looks at the cheap judge's run.
        by: Who looks, for the record of looks.

    Needs ``adjudge[trust]``. Raises ``UsageError`` as ``calibrate`` does, for runs of other contents, and where the
    cheap judge gave no confidence.
    """
    check_extra()
    parsed = read_promise(promise)
    check_confidence(confidence)
    if parsed.risk != "lost":
        raise UsageError(
            f"a cascade is promised by what it loses, such as lost<=0.05, and not by {parsed.risk}", argument="promise"
        )
    with ExitStack() as stack:
        cheap_run, strong_run = (
            run if isinstance(run, Run) else stack.enter_context(open_run(run)) for run in (cheap, strong)
        )
        for run in (cheap_run, strong_run):
            check_can_be_calibrated(run)
        grid = make_threshold_grid(cheap_run, find_confidence)
        if not grid.steps:
            raise UsageError(
                f"the judge of {cheap_run.folder} gave no confidence, by which a cascade goes; ask for "
                "log-probabilities (Judge(..., logprobs=True)), or let several judges vote"
            )
        if labels is None:
            # Without duplicates: a label may be in both queues.
            labels = dict.fromkeys((*read_run_labels(cheap_run), *read_run_labels(strong_run)))
        all_labels = tuple(labels)
        strong_verdicts = _read_verdicts(strong_run)
        sampled = read_simple_sample(
            cheap_run,
            all_labels,
            lambda judged: _read_case(judged, strong_verdicts, strong_run),
            labels_are_random=labels_are_random,
        )
        look = CalibrationLook(promise=str(parsed), confidence=confidence, grid=grid.digest, labels=sampled.digest)
        look_number, is_recorded = find_calibration(load_looks(cheap_run.folder), look)
        calibration = _test_thresholds(
            cheap_run, strong_run, grid, sampled, parsed, confidence=confidence, look=look_number
        )
        if not is_recorded:
            record_calibration(cheap_run, look, sampled, outcome=calibration.outcome, bound=parsed.bound, by=by)
        return calibration


def find_confidence(result: object) -> float | None:
    """Find the confidence of a cheap judge's result; ``None`` where it cannot decide, and the next judge is asked."""
    if not isinstance(result, JudgeResult) or result.outcome == "undecided":
        return None
    return result.confidence


# ---------------------------------------------------------------- both judges


def _read_verdicts(run: Run) -> dict[str, tuple[str | None, Outcome]]:
    """Read the digest of each case's content, and the judge's first verdict on it, by the case's id."""
    return {judged.id: (judged.subject, _find_outcome(judged)) for judged in list_judged_cases(run)}


def _find_outcome(judged: JudgedCase) -> Outcome:
    """Find the outcome of the first judgement of a case."""
    return getattr(judged.results[0], "outcome", "undecided")


def _read_case(
    judged: JudgedCase, strong_verdicts: Mapping[str, tuple[str | None, Outcome]], strong: Run
) -> tuple[float | None, int]:
    """Read the cheap judge's confidence in a case, and the verdicts of both judges as a number (``_decode_verdicts``).

    Raises ``UsageError`` where the strong judge has not judged the same content.
    """
    subject, strong_outcome = strong_verdicts.get(judged.id, (None, "undecided"))
    if subject != judged.subject:
        raise UsageError(
            f"{strong.folder} has not judged the content of {judged.id}, which people labelled; judge the same "
            "contents with both judges"
        )
    verdict_code = 3 * _OUTCOMES.index(_find_outcome(judged)) + _OUTCOMES.index(strong_outcome)
    return find_confidence(judged.results[0]), verdict_code


def _decode_verdicts(case: SampledCase) -> tuple[Outcome, Outcome]:
    """Decode the verdicts of the cheap and of the strong judge from the number that ``_read_case`` made of them."""
    return _OUTCOMES[case.verdict_code // 3], _OUTCOMES[case.verdict_code % 3]


def _is_lost(case: SampledCase) -> bool:
    """Return whether a case is lost if the cheap judge decides it: only the strong judge decides it rightly."""
    cheap, strong = _decode_verdicts(case)
    right = _RIGHT_OUTCOMES.get(case.truth)
    if right is None:
        # People did not settle it, so the strong judge may be right.
        return cheap != strong
    return strong == right and cheap != right


# ---------------------------------------------------------------- the tests


def _test_thresholds(
    cheap: Run,
    strong: Run,
    grid: ThresholdGrid,
    sampled: SimpleSample,
    promise: Promise,
    *,
    confidence: float,
    look: int,
) -> CascadeCalibration:
    """Test the thresholds on the labels, and make the calibration of the two judges as a cascade."""
    search = search_grid(grid, sampled, promise, _is_lost, confidence=confidence, look=look)
    verdicts = [_decode_verdicts(case) for case in sampled.cases]
    right = [_RIGHT_OUTCOMES.get(case.truth) for case in sampled.cases]
    cheap_is_right = [outcomes[0] == outcome for outcomes, outcome in zip(verdicts, right, strict=True)]
    strong_is_right = [outcomes[1] == outcome for outcomes, outcome in zip(verdicts, right, strict=True)]
    both = list(zip(cheap_is_right, strong_is_right, strict=True))
    only_cheap = sum(by_cheap and not by_strong for by_cheap, by_strong in both)
    only_strong = sum(by_strong and not by_cheap for by_cheap, by_strong in both)
    certified, level = search.certified, find_look_level(confidence, look)
    return CascadeCalibration(
        outcome=name_outcome(search),
        bound=promise.bound,
        confidence=confidence,
        look=look,
        level=level,
        cheap=name_judge_and_data(cheap)[0],
        strong=name_judge_and_data(strong)[0],
        runs=(cheap.id, strong.id),
        cases=grid.cases,
        labels=len(sampled.cases),
        sample=sampled.kind,
        contents_digest=sampled.contents,
        labels_digest=sampled.digest,
        grid_digest=grid.digest,
        measured_from=grid.measured_from,
        measured_to=grid.measured_to,
        threshold=None if certified is None else certified.threshold,
        decided=0 if certified is None else certified.released,
        lost=0 if certified is None else certified.wrong,
        right=(sum(cheap_is_right), sum(strong_is_right)),
        difference=find_paired_difference(only_cheap, only_strong, len(sampled.cases), level=level),
        costs_usd=(_compute_case_cost(cheap, grid.cases), _compute_case_cost(strong, grid.cases)),
        needed=search.needed,
        tests=search.tests,
        warnings=sampled.warnings,
    )


def _compute_case_cost(run: Run, cases: int) -> float | None:
    """Compute the cost of a case on average, in dollars; ``None`` is unknown."""
    cost = run.usage.cost_usd
    return None if cost is None else cost / cases
