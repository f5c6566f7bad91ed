"""The thresholds of a run, made from its scores before any label is read."""

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
    """The thresholds of a run in the order of their tests, and what else is known of the run without a label."""

    steps: tuple[ThresholdStep, ...]
    """The one that releases least first; empty where nothing has a score."""
    digest: str
    """SHA-256 of the run's id and the thresholds."""
    cases: int
    passed: int
    """Cases that the judge passed when it was asked first."""
    scored: int
    """Cases that some threshold releases."""
    measured_from: datetime
    measured_to: datetime


def make_threshold_grid(run: Run, find_score: FindScore) -> ThresholdGrid:
    """Make the thresholds of a run from the first judgement of each case. Raises ``UsageError`` for one without cases.

    Of a case that was judged several times the first judgement counts, because a gate judges once.
    """
    scores: Counter[float] = Counter()
    outcomes: Counter[str] = Counter()
    times: list[datetime] = []
    for judged in list_judged_cases(run):
        first = judged.results[0]
        created = [result.created_at for result in judged.results]
        times = [min((*times[:1], *created)), max((*times[1:], *created))]
        outcomes[getattr(first, "outcome", "undecided")] += 1
        score = find_score(first)
        if score is not None:
            scores[score] += 1
    if not times:
        raise UsageError(f"the run {run.folder} has no case; name another run")
    steps = make_threshold_steps(scores.elements())
    row = json.dumps([run.id, [[step.threshold, step.released] for step in steps]])
    return ThresholdGrid(
        steps=steps,
        digest=hashlib.sha256(row.encode()).hexdigest(),
        cases=outcomes.total(),
        passed=outcomes["passed"],
        scored=scores.total(),
        measured_from=times[0],
        measured_to=times[1],
    )
