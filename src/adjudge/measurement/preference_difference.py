"""The two sides of pairs compared by what people say: which of the two would they prefer more often?

The difference and its limits are computed in ``trust/rate_difference.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.formats.record import write_record
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.gate_limit import GateLimit, LimitKind, RatedRun, find_quantile
from adjudge.measurement.sampled_rate import find_sampling
from adjudge.measurement.tally import MeasurementTally
from adjudge.trust.corrected_rate import CorrectedRate
from adjudge.trust.rate_difference import FEWEST_QUESTIONS, RateDifference, make_rate_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceDifference:
    """The rate at which people would prefer the second of two contents, minus that of the first; a tie is neither."""

    rate: RateDifference | None
    """The difference with its interval, of pairs in place of questions; ``None`` where the labels allow none."""
    limit: LimitKind | None
    """The looks that the interval holds for; ``None`` without one."""
    because: str
    """The reason for these limits, or for their absence, and the remedy. One clause."""
    pairs: int
    """Labelled pairs that count."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


_VERDICT_VALUES: dict[LabelledVerdict, int] = {"first": -1, "second": 1}
"""The judge's preference as a number; 0 for a tie and an undecided judgement, which prefer neither."""

_TRUTH_BOUNDS: dict[TruthHeap, tuple[int, int]] = {"first": (-1, -1), "second": (1, 1), "tie": (0, 0)}
"""The least and the greatest number that people's preference may be; -1 and 1 where they did not settle it."""


def find_preference_difference(tally: MeasurementTally, run: RatedRun, rate_limit: GateLimit) -> PreferenceDifference:
    """Find how much more often people would prefer the second content of a run's pairs than the first.

    The interval holds for the same looks as ``rate_limit``, the limits of the corrected rate. The judge's preference in
    all pairs makes the interval narrower as far as it follows people's, and cannot bias it.
    """
    sampled = find_sampling(tally, run.origin, labels_are_random=run.labels_are_random, stale_cases=run.stale_cases)
    number = len(sampled.indexes)
    problem = _find_problem(run, rate_limit, number, sum(tally.cases.values()))
    limit = rate_limit.limit
    if problem is not None or limit is None:
        return PreferenceDifference(rate=None, limit=None, because=problem or run.no_rate_reason, pairs=number)
    rows = list(tally.list_rows(sampled.indexes))
    quantile_for_every_look = find_quantile(number, 1 - limit.level)
    rate = make_rate_difference(
        _list_judged(tally, [_VERDICT_VALUES.get(row.verdict, 0) for row in rows]),
        {position: _TRUTH_BOUNDS.get(row.heap, (-1, 1)) for position, row in enumerate(rows)},
        quantile=quantile_for_every_look if limit.kind == "every look" else None,
        later_quantile=quantile_for_every_look,
    )
    return PreferenceDifference(rate=rate, limit=limit.kind, because=limit.because, pairs=number)


def _find_problem(run: RatedRun, rate_limit: GateLimit, labelled: int, pairs: int) -> str | None:
    """Find the reason why no interval is known for the difference; ``None`` where one is.

    ``labelled`` and ``pairs`` are the numbers of labelled pairs that count and of all pairs.
    """
    if rate_limit.limit is None:
        return rate_limit.no_limit_reason or run.no_rate_reason
    if run.target != "run" or (isinstance(run.rate, CorrectedRate) and run.rate.groups is not None):
        return "no interval is known for the difference of a system, or of labels in groups"
    if labelled < min(FEWEST_QUESTIONS, pairs):
        return (
            f"{labelled} pairs are labelled, and with fewer than {FEWEST_QUESTIONS} the interval covers less than it "
            f"says; label {FEWEST_QUESTIONS - labelled} more"
        )
    return None


def _list_judged(tally: MeasurementTally, labelled: list[int]) -> list[int]:
    """List the judge's preference in every pair as a number, first the preferences in the ``labelled`` pairs.

    The other pairs are only counted by preference, so theirs come in no particular order.
    """
    unlabelled_counts = dict.fromkeys((-1, 0, 1), 0)
    for verdict, number in tally.cases.items():
        unlabelled_counts[_VERDICT_VALUES.get(verdict, 0)] += number
    for value in labelled:
        unlabelled_counts[value] -= 1
    unlabelled = [value for value, number in unlabelled_counts.items() for _ in range(number)]
    return [*labelled, *unlabelled]
