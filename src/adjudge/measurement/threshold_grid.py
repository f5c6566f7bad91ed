"""The thresholds of a run that are tested for a promise, made from its scores before any label is read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from adjudge.errors import UsageError
from adjudge.measurement.comparison import list_judged_cases
from adjudge.runs.folder import Run
from adjudge.trust.threshold import ThresholdStep, make_threshold_steps

FindScore = Callable[[object], float | None]
"""Finds the score by which a judgement may be released; ``None`` where no threshold releases it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdGrid:
    """The thresholds of a run in the order of their tests, with counts and times of the run that need no label."""

    steps: tuple[ThresholdStep, ...]
    """The one that releases least first; empty where nothing has a score."""
    digest: str
    """SHA-256 of the run's id and the thresholds."""
    cases: int
    """Cases of the run."""
    passed: int
    """Cases that the judge passed when it was asked first."""
    scored: int
    """Cases with a score, which some threshold releases."""
    measured_from: datetime
    """The time of the first judgement."""
    measured_to: datetime
    """The time of the last judgement."""


def make_threshold_grid(run: Run, find_score: FindScore) -> ThresholdGrid:
    """Make the thresholds of a run from the first judgement of each case, because a gate judges once.

    Raises ``UsageError`` for a run without cases.
    """
    scores: Counter[float] = Counter()
    outcomes: Counter[str] = Counter()
    earliest: datetime | None = None
    latest: datetime | None = None
    for judged in list_judged_cases(run):
        first_result = judged.results[0]
        times = [result.created_at for result in judged.results]
        earliest = min(times) if earliest is None else min(earliest, *times)
        latest = max(times) if latest is None else max(latest, *times)
        outcomes[getattr(first_result, "outcome", "undecided")] += 1
        score = find_score(first_result)
        if score is not None:
            scores[score] += 1
    if earliest is None or latest is None:
        raise UsageError(f"the run {run.folder} has no case; name another run")
    steps = make_threshold_steps(scores.elements())
    digested = json.dumps([run.id, [[step.threshold, step.released] for step in steps]])
    return ThresholdGrid(
        steps=steps,
        digest=hashlib.sha256(digested.encode()).hexdigest(),
        cases=outcomes.total(),
        passed=outcomes["passed"],
        scored=scores.total(),
        measured_from=earliest,
        measured_to=latest,
    )
