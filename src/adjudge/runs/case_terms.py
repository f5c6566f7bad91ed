"""The terms by which each case of a run is judged: the run's rubric, unless the case brings its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.judges.evaluate import merge_case, resolve_rubric
from adjudge.rubric.rubric import DEFAULT_THRESHOLD, Rubric
from adjudge.runs.recorded_rubric import rebuild_rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms by which the cases of a run are judged."""

    rubric: Rubric | None = None
    """The run's rubric; ``None`` where each case brings its own, or a result format says what is good."""
    threshold: float | None = None
    """The passing threshold of the run itself, in place of every rubric's."""
    over_rubrics: bool = False
    """True if the rubric takes the place of what cases bring, as a redecision of all cases asks."""
    over_thresholds: bool = False
    """True if the threshold does."""
    compares: bool = False
    """True if the cases are pairs, of which none has to reach a score."""

    @property
    def needed(self) -> float:
        """The passing threshold for cases that bring none of their own."""
        if self.threshold is not None:
            return self.threshold
        return self.rubric.passing_threshold if self.rubric is not None else DEFAULT_THRESHOLD

    def find_rubric(self, case: Case) -> Rubric | None:
        """Return the rubric that a case is judged by. Raises ``UsageError`` if what the case brings cannot be used."""
        if not case.brings_own or self.over_rubrics:
            return self.rubric
        threshold = self.threshold if self.over_thresholds else case.threshold
        if case.criteria is not None or case.rubric is not None:
            rubric, arguments = merge_case(case, self.rubric, {"threshold": self.threshold})
            return resolve_rubric(
                rubric, None, arguments if threshold is None else {**arguments, "threshold": threshold}
            )
        if self.rubric is None or threshold is None or threshold == self.rubric.passing_threshold:
            return self.rubric
        return replace(self.rubric, passing_threshold=threshold)

    def count(self, case: Case) -> Mapping[str, int]:
        """Return 1 for each of criteria, rules and threshold that a case brings, by name.

        ``below`` is among them if the case needs a lower score to pass than the run asks for.
        """
        if not case.brings_own:
            return {}
        try:
            rubric = self.find_rubric(case)
        except UsageError:
            rubric = None
        below = rubric is not None and rubric.passing_threshold < self.needed and not self.compares
        brings = {"criteria": case.criteria is not None or case.rubric is not None, "rules": bool(case.rules)}
        brings |= {"threshold": case.threshold is not None, "below": below}
        return {name: 1 for name, is_true in brings.items() if is_true}


def read_terms(manifest: Mapping[str, Any]) -> Terms:
    """Read the terms of a manifest. What cannot be read is left out, so that the run can be read all the same."""
    rubric, options, redecided, question = [manifest.get(name) for name in ("rubric", "options", "redecided", "asked")]
    threshold = options.get("threshold") if isinstance(options, Mapping) else None
    policy = redecided.get("policy") if isinstance(redecided, Mapping) else None
    try:
        run_rubric = replace(rebuild_rubric(rubric), model=rubric.get("model")) if isinstance(rubric, Mapping) else None
    except UsageError:
        run_rubric = None
    has_threshold = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    overriding = policy if isinstance(policy, Mapping) and policy.get("all_cases") is True else {}
    return Terms(
        rubric=run_rubric,
        threshold=float(threshold) if has_threshold else None,
        over_rubrics="rubric" in overriding,
        over_thresholds="threshold" in overriding,
        compares=isinstance(question, Mapping) and bool(question.get("pairs")),
    )
