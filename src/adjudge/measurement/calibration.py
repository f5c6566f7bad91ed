"""A threshold with a promise: from which score on the judge of a run may decide alone, tested on labels of people.

Here are the run, its labels and the record of looks. Which threshold is chosen is decided in ``trust/threshold.py``
(``search_threshold``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from adjudge.dataset.label import Label
from adjudge.errors import Argument, UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.guards.release_policy import LabelSample, ReleasePolicy, ReleaseRisk
from adjudge.judges.chain_outcome import find_release_score
from adjudge.labels.looks import CalibrationLook, Look, find_calibration, load_looks, write_look
from adjudge.measurement.measure import name_judge_and_data
from adjudge.measurement.promise import Promise, check_confidence, read_promise
from adjudge.measurement.run_labels import read_run_labels
from adjudge.measurement.simple_sample import SampledCase, SimpleSample, read_simple_sample
from adjudge.measurement.threshold_grid import ThresholdGrid, make_threshold_grid
from adjudge.result import Outcome
from adjudge.runs.folder import Run, open_run
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL
from adjudge.trust.threshold import (
    ThresholdSearch,
    ThresholdTest,
    count_labelled,
    find_look_level,
    search_threshold,
)

CalibrationOutcome = Literal["kept", "none can", "cannot tell"]
"""A threshold keeps the promise, the labels show that none of any use can, or they are too few to tell."""


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
    """``kept``, or why no threshold is certified."""
    risk: ReleaseRisk
    """The risk that is bounded: ``wrong_pass`` or ``wrong_given_pass``."""
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
    """The judge's name."""
    data: str
    """The name of the data set."""
    cases: int
    """Cases of the run."""
    passed: int
    """Cases that the judge passed when it was asked first."""
    without_score: int
    """Those of them without a score, which no threshold releases."""
    labels: int
    """Labelled cases that count."""
    sample: LabelSample
    """The way in which the labelled cases were drawn."""
    measured_from: datetime
    """The time at which the first case was judged."""
    measured_to: datetime
    """The time at which the last case was judged."""
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
    """Sentences about what limits the promise."""
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
    parsed = read_promise(promise)
    check_confidence(confidence)
    if parsed.risk == "lost":
        raise UsageError(
            "lost is what a cascade loses against its strong judge; name the runs of both judges with ",
            Argument("cascade"),
            argument="promise",
        )
    if not isinstance(run, Run):
        with open_run(run) as opened:
            return calibrate(
                opened, promise, labels=labels, labels_are_random=labels_are_random, confidence=confidence, by=by
            )
    check_can_be_calibrated(run)
    # Before any label is read: a sequence that was chosen by labels would promise nothing.
    grid = _make_grid(run)
    labels = read_run_labels(run) if labels is None else tuple(labels)
    labelled = read_simple_sample(
        run,
        labels,
        # The 0 is in place of verdicts, which the test of a single judge does not need.
        lambda judged: (find_release_score(judged.results[0]), 0),
        labels_are_random=labels_are_random,
    )
    look = CalibrationLook(promise=str(parsed), confidence=confidence, grid=grid.digest, labels=labelled.digest)
    looks = load_looks(run.folder)
    look_number, is_recorded = find_calibration(looks, look)
    calibration = _test_thresholds(run, parsed, grid, labelled, confidence=confidence, look=look_number)
    if not is_recorded:
        record_calibration(run, look, labelled, outcome=calibration.outcome, bound=calibration.bound, by=by)
    return calibration


def check_can_be_calibrated(run: Run) -> None:
    """Raise ``UsageError`` for a run of pairs and for one that is not finished."""
    if run.compares:
        raise UsageError(
            f"{run.folder} compares pairs, and a threshold releases cases that are good; judge the answers one by one"
        )
    if run.status != "finished":
        raise UsageError(f"the run {run.folder} is {run.status}; finish it with adjudge run --resume")


def _make_grid(run: Run) -> ThresholdGrid:
    """Make the thresholds of a run; raises ``UsageError`` where it has none."""
    grid = make_threshold_grid(run, find_release_score)
    if not grid.steps:
        without_score = "gave its passes no score, so there is no threshold to choose"
        problem = without_score if grid.passed else "passed nothing, so there is nothing to release"
        raise UsageError(f"the judge of {run.folder} {problem}")
    return grid


# ---------------------------------------------------------------- the tests


def search_grid(
    grid: ThresholdGrid,
    labelled: SimpleSample,
    promise: Promise,
    is_wrong: Callable[[SampledCase], bool],
    *,
    confidence: float,
    look: int,
) -> ThresholdSearch:
    """Search the thresholds of a run for one that keeps a promise, by the labelled cases of which some are wrong.

    ``look`` is the number of this look at the run, from 1: the further the look, the stricter are its tests.
    """
    scored = [(case.score, is_wrong(case)) for case in labelled.cases if case.score is not None]
    return search_threshold(
        grid.steps,
        count_labelled(grid.steps, scored),
        promise.risk,
        bound=promise.bound,
        level=find_look_level(confidence, look),
        cases=grid.cases,
        labels=len(labelled.cases),
        next_level=find_look_level(confidence, look + 1),
    )


def name_outcome(search: ThresholdSearch) -> CalibrationOutcome:
    """Name how a search for a threshold ended."""
    if search.certified is not None:
        return "kept"
    return "none can" if search.impossible else "cannot tell"


def _is_wrong(case: SampledCase) -> bool:
    """Return whether it is wrong to release a case: people did not find it good, or did not settle it."""
    return case.truth != "good"


def _test_thresholds(
    run: Run, promise: Promise, grid: ThresholdGrid, labelled: SimpleSample, *, confidence: float, look: int
) -> Calibration:
    """Test the thresholds on the labels, and make the calibration, with a policy if one keeps the promise."""
    search = search_grid(grid, labelled, promise, _is_wrong, confidence=confidence, look=look)
    judge, data = name_judge_and_data(run)
    # The members that a calibration and its release policy have in common.
    common: dict[str, Any] = {
        "risk": promise.risk,
        "bound": promise.bound,
        "confidence": confidence,
        "level": find_look_level(confidence, look),
        "run": run.id,
        "judge": judge,
        "cases": grid.cases,
        "labels": len(labelled.cases),
        "sample": labelled.kind,
        "measured_from": grid.measured_from,
        "measured_to": grid.measured_to,
        "contents_digest": labelled.contents,
        "labels_digest": labelled.digest,
        "grid_digest": grid.digest,
    }
    policy = None if search.certified is None else _make_policy(run, search.certified, labelled, common)
    return Calibration(
        **common,
        outcome=name_outcome(search),
        look=look,
        data=data,
        passed=grid.passed,
        without_score=grid.passed - grid.scored,
        thresholds=len(grid.steps),
        tests=search.tests,
        needed=search.needed,
        cost_usd=run.usage.cost_usd,
        warnings=labelled.warnings,
        policy=policy,
    )


def _make_policy(
    run: Run, certified: ThresholdTest, labelled: SimpleSample, common: Mapping[str, Any]
) -> ReleasePolicy:
    """Make the release policy of a threshold that keeps the promise; ``common`` are members of the calibration too."""
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


def record_calibration(
    run: Run, look: CalibrationLook, labelled: SimpleSample, *, outcome: CalibrationOutcome, bound: float, by: str
) -> None:
    """Record a look at thresholds of a run in its folder.

    Raises ``AdjudgeError`` if it cannot be recorded, because the next look would be taken for the first.
    """
    draw = labelled.draw
    write_look(
        run.folder,
        Look(
            at=datetime.now(UTC),
            by=by,
            labels=len(labelled.cases),
            draw=draw.name,
            planned=draw.planned,
            added=draw.added,
            # For a calibration, the bar is the bound of its promise.
            bar=bound,
            outcome=_LOOK_OUTCOMES[outcome],
            calibration=look,
        ),
    )


_LOOK_OUTCOMES: dict[CalibrationOutcome, Outcome] = {"kept": "passed", "none can": "failed", "cannot tell": "undecided"}
"""The outcome of a calibration as the record of looks has it."""
