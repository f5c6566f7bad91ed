"""The two sides of pairs compared by what people say: which of the two would they prefer more often?

The difference and its limits are computed in ``trust/rate_difference.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.formats.record import write_record
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.limit import FoundLimit, LimitKind, RatedRun, find_quantile
from adjudge.measurement.rate import find_sampling
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


_JUDGED: dict[LabelledVerdict, int] = {"first": -1, "second": 1}
"""A tie and an undecided judgement prefer neither."""

_BOUNDS: dict[TruthHeap, tuple[int, int]] = {"first": (-1, -1), "second": (1, 1), "tie": (0, 0)}
"""The least and the greatest difference of a pair; one that people did not settle may be anything between."""


def find_preference_difference(tally: MeasurementTally, run: RatedRun, rate_limit: FoundLimit) -> PreferenceDifference:
    """Find how much more often people would prefer the second of a run's pairs, by the looks of its limits.

    The judge's preference in all pairs makes the interval narrower as far as it follows people's, and cannot bias it.
    """
    places = find_sampling(tally, run.origin, labels_are_random=run.labels_are_random, lost=run.lost).places
    problem = _find_problem(run, rate_limit, len(places), sum(tally.cases.values()))
    limit = rate_limit.limit
    if problem is not None or limit is None:
        return PreferenceDifference(rate=None, limit=None, because=problem or run.missing, pairs=len(places))
    labelled = [(_JUDGED.get(row.verdict, 0), _BOUNDS.get(row.heap, (-1, 1))) for row in tally.list_rows(places)]
    wider = find_quantile(len(labelled), 1 - limit.level)
    rate = make_rate_difference(
        _list_judged(tally, [value for value, _ in labelled]),
        {place: bounds for place, (_, bounds) in enumerate(labelled)},
        quantile=wider if limit.kind == "every look" else None,
        later_quantile=wider,
    )
    return PreferenceDifference(rate=rate, limit=limit.kind, because=limit.because, pairs=len(labelled))


def _find_problem(run: RatedRun, rate_limit: FoundLimit, labelled: int, pairs: int) -> str | None:
    """Say why no interval is known for the difference; ``None`` where one is."""
    if rate_limit.limit is None:
        return rate_limit.missing or run.missing
    if run.target != "run" or (isinstance(run.rate, CorrectedRate) and run.rate.groups is not None):
        return "no interval is known for the difference of a system, or of labels in groups"
    if labelled < min(FEWEST_QUESTIONS, pairs):
        return (
            f"{labelled} pairs are labelled, and with fewer than {FEWEST_QUESTIONS} the interval covers less than it "
            f"says; label {FEWEST_QUESTIONS - labelled} more"
        )
    return None


def _list_judged(tally: MeasurementTally, labelled: list[int]) -> list[int]:
    """List the judge's preference in every pair, the labelled ones first; the order of the others does not count."""
    counts = dict.fromkeys((-1, 0, 1), 0)
    for verdict, number in tally.cases.items():
        counts[_JUDGED.get(verdict, 0)] += number
    for value in labelled:
        counts[value] -= 1
    return [*labelled, *(value for value, number in counts.items() for _ in range(number))]
