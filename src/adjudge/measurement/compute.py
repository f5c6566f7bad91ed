"""The measurement of a tally: every statistic that the labels allow, and why the others are left out.

Each statistic itself is in a module of ``trust``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from adjudge.errors import UsageError
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import MOST
from adjudge.measurement.label_origin import Origin, Planned
from adjudge.measurement.measurement import Measurement, MeasurementKind
from adjudge.measurement.rate import Sampling, compute_rate, count_other_draws, find_sampling, find_strata
from adjudge.measurement.tally import HEAPS, PREFERENCES, VERDICTS, MeasurementTally
from adjudge.trust.agreement import Agreement, make_agreement
from adjudge.trust.alternative import AlternativeTest, Closeness, make_alternative_test
from adjudge.trust.bias import Bias, make_bias
from adjudge.trust.ceiling import Ceiling, make_ceiling
from adjudge.trust.confusion import Category
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.correlation import Correlation, make_correlation
from adjudge.trust.double_sampling import Target
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import IntervalMethod, Share
from adjudge.trust.repeatability import ErrorParts, OrderFlips, Side, make_error_parts, make_order_flips
from adjudge.trust.slices import Slices, make_slices
from adjudge.trust.weighting import weigh_agreement

T = TypeVar("T")

EPSILON = 0.2
"""The handicap of the alternative annotator test for trained experts (arXiv 2501.10970)."""

_HEAPS_OF: dict[MeasurementKind, tuple[TruthHeap, ...]] = {
    "verdict": ("bad", "good"),
    "preference": PREFERENCES,
    "number": ("number",),
}

_SHARE_SIDES: dict[Category, float] = {"first": 1.0, "tie": 0.5, "second": 0.0, True: 1.0, False: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions:
    """The options of a measurement."""

    criterion: str | None = None
    """The criterion that is compared; ``None`` is the case as a whole."""
    labels_are_random: bool = False
    """True if the labelled cases are a random sample, as the user says."""
    target: Target = "run"
    limits: IntervalMethod | None = None
    """The method for the shares in the corrected rate; by default Wilson's, near 0 and 1 the exact ones."""
    by: str | None = None
    """The property that cases are compared by."""
    alternative: bool = False
    epsilon: float = EPSILON
    most_disagreements: int = MOST
    """The number of each sort that is kept."""
    drawn_only: bool = False
    """True if labels that somebody picked beside the draw count for nothing."""


@dataclass(slots=True)
class _Computation:
    """One measurement on its way.

    Each ``_compute_`` function returns a part of it, or ``None`` and notes the reason here, in ``left_out``.
    """

    tally: MeasurementTally
    options: MeasurementOptions
    kind: MeasurementKind
    places: Sequence[int]
    """The labelled cases whose truth is settled, and of the kind that is compared."""
    origin: Origin
    """The contents, and the draws of their labels, as far as they are known."""
    lost: int
    """Cases all of whose labels are of another content."""
    strata: Planned | None = None
    """The plan whose strata the labels that count were drawn from; ``None`` if they were not."""
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def attempt(self, name: str, compute: Callable[[], T | None]) -> T | None:
        """Return the value of ``compute``, or ``None`` with its reason kept."""
        try:
            return compute()
        except UsageError as error:
            self.left_out[name] = str(error)
            return None

    def find_groups(self) -> Sequence[int] | None:
        """The groups of the settled cases; ``None`` where each is its own, or all are one, which is noted."""
        groups = self.tally.list_groups(self.places)
        if groups is not None and len(set(groups)) < 2:
            self.notes.append("All labelled cases are in one group, so intervals take them for independent.")
            return None
        return groups


def compute_measurement(
    tally: MeasurementTally,
    options: MeasurementOptions,
    *,
    judge: str,
    data: str,
    run: str | None,
    origin: Origin,
    elsewhere: int = 0,
    other_contents: int = 0,
    lost: int = 0,
    criteria: tuple[Measurement, ...] = (),
) -> Measurement:
    """The measurement of a tally. Needs ``adjudge[trust]``."""
    check_extra()
    kind = _find_kind(tally)
    work = _Computation(tally, options, kind, tally.list_places(_HEAPS_OF[kind]), origin, lost)
    rate, sampling = _compute_rate(work)
    _add_strata(work, sampling)
    # The rate is one of the whole tally. What follows narrows ``work.places``, of which all other figures are.
    _keep_drawn(work)
    if options.drawn_only:
        sampled = find_sampling(tally, origin, labels_are_random=options.labels_are_random, lost=lost)
        drawn = frozenset(sampled.places)
        work.places = [at for at in work.places if at in drawn]
    repeated = tally.repeated
    return Measurement(
        judge=judge,
        data=data,
        run=run,
        criterion=tally.criterion,
        kind=kind,
        cases=sum(tally.cases.values()),
        verdicts={name: tally.cases[name] for name in VERDICTS if tally.cases[name]},
        table=_make_table(tally),
        labelled=tally.labelled,
        overrides=tally.overrides,
        elsewhere=elsewhere,
        contents=origin.contents,
        other_contents=other_contents,
        other_draws=count_other_draws(tally, origin),
        unbound=tally.unbound,
        draw_problem=origin.problem,
        people=tally.raters,
        agreement=_compute_agreement(work),
        ceiling=_compute_ceiling(work),
        correlation=_compute_correlation(work),
        slices=_compute_slices(work),
        flipped=Share(count=tally.flipped, of=repeated) if repeated else None,
        error_parts=_compute_error_parts(work),
        order_flips=_compute_order_flips(work),
        alternative=_compute_alternative(work),
        bias=_compute_bias(work),
        rate=rate,
        sampling=sampling,
        sorts=dict(tally.disagreements.counts),
        disagreements=tally.disagreements.finish(),
        criteria=criteria,
        left_out=work.left_out,
        notes=tuple(dict.fromkeys(work.notes)),
        not_blind=tally.not_blind,
        copies=tally.copies,
        is_weighted=work.strata is not None,
    )


_STATED_SIZES = (
    "The sizes of the strata are what the labels say: their plan is not in this run's folder, and its strata are of "
    "another judge's verdicts, so only the sum of the sizes is checked."
)


def _find_kind(tally: MeasurementTally) -> MeasurementKind:
    """Find which kind most labels are of; without a settled label, the judge's verdicts say it."""
    counts: dict[MeasurementKind, int] = dict.fromkeys(_HEAPS_OF, 0)
    for (_, heap), number in tally.table.items():
        for kind, heaps in _HEAPS_OF.items():
            counts[kind] += number * (heap in heaps)
    if not any(counts.values()):
        return "preference" if any(tally.cases[name] for name in ("first", "second", "tie")) else "verdict"
    return max(counts, key=lambda kind: counts[kind])


def _make_table(tally: MeasurementTally) -> dict[LabelledVerdict, dict[TruthHeap, int]]:
    return {
        verdict: {heap: tally.table[verdict, heap] for heap in HEAPS if tally.table[verdict, heap]}
        for verdict in VERDICTS
        if any(tally.table[verdict, heap] for heap in HEAPS)
    }


def _add_strata(work: _Computation, sampling: Sampling) -> None:
    """Find the strata that the labels were drawn from, and note where their sizes are a file's claim."""
    strata = find_strata(work.tally, sampling, work.origin)
    if strata is None or len(strata.sizes) < 2:
        return
    work.strata = strata
    if strata is not work.origin.planned:
        work.notes.append(_STATED_SIZES)


def _keep_drawn(work: _Computation) -> None:
    """Leave labels out that somebody picked beside a plan of several strata: nobody knows what they stand for."""
    if (strata := work.strata) is not None:
        designs = zip(work.places, work.tally.list_designs(work.places), strict=True)
        work.places = [at for at, drawn in designs if strata.find(drawn) is not None]


def _compute_rate(work: _Computation) -> tuple[CorrectedRate | Refusal | None, Sampling]:
    """Compute the corrected rate, and find how its labels were sampled.

    The rate is ``None``, with the reason in ``left_out``, where labels cannot correct one.
    """
    if work.kind == "number":
        work.left_out["rate"] = "labels that are numbers correct no rate; label good or bad"
        return None, "unknown"
    if not work.tally.cases:
        work.left_out["rate"] = "no case was judged"
        return None, "unknown"
    options = work.options
    rate, sampled = compute_rate(
        work.tally,
        labels_are_random=options.labels_are_random,
        target=options.target,
        limits=options.limits,
        origin=work.origin,
        lost=work.lost,
    )
    work.notes += sampled.notes
    return rate, sampled.sampling


def _compute_agreement(work: _Computation) -> Agreement | None:
    agreement = _compare_labels(work)
    strata = work.strata
    if agreement is None or strata is None:
        return agreement
    work.notes.append("Labels are weighed by the strata they were drawn from; kinds of cases and biases are not.")
    return work.attempt("agreement", lambda: _weigh_labels(work, agreement, strata))


def _weigh_labels(work: _Computation, agreement: Agreement, strata: Planned) -> Agreement:
    """The agreement with each label weighed by how many cases of its stratum it stands for."""
    tally, categories = work.tally, agreement.confusion.categories
    columns = {name: at for at, name in enumerate(strata.sizes)}
    tables = [[[0] * len(categories) for _ in categories] for _ in columns]
    sides = zip(tally.list_designs(work.places), tally.judged(work.places), tally.truth(work.places), strict=True)
    for drawn, judge, true in sides:
        if (design := strata.find(drawn)) is not None:
            tables[columns[design.stratum]][categories.index(true)][categories.index(judge)] += 1
    whole = work.options.target == "run"
    return weigh_agreement(agreement, tables, list(strata.sizes.values()), whole=whole)


def _compare_labels(work: _Computation) -> Agreement | None:
    """Compare verdicts with labels; ``None``, with the reason in ``left_out``, where that cannot be."""
    if work.kind == "number":
        work.left_out["agreement"] = "labels that are numbers are compared by correlation"
        return None
    if not work.places:
        work.left_out["agreement"] = "no labelled case has a truth that people settled"
        return None
    preference = work.kind == "preference"
    return work.attempt(
        "agreement",
        lambda: make_agreement(
            work.tally.judged(work.places),
            work.tally.truth(work.places),
            groups=work.find_groups(),
            positive="first" if preference else True,
            # False and true also where the labels have one of them alone, so that every table has both.
            categories=("second", "tie", "first") if preference else (False, True),
        ),
    )


def _compute_ceiling(work: _Computation) -> Ceiling | None:
    """Measure how well people agree with each other, on the cases that at least two of them labelled."""
    ratings, places = work.tally.list_ratings()
    if not ratings:
        work.left_out["ceiling"] = "no case was labelled by two people"
        return None
    groups = work.tally.list_groups(places)
    has_groups = groups is not None and len(set(groups)) > 1  # of one group alone, nothing could vary
    return work.attempt("ceiling", lambda: make_ceiling(ratings, groups=groups if has_groups else None))


def _compute_correlation(work: _Computation) -> Correlation | None:
    """Compute the correlation of scores with labels that are numbers; ``None`` where there are none."""
    tally = work.tally
    places = tally.list_places(("number",))
    if not places:
        return None
    scores = [None if (score := tally.scores[at]) != score else score for at in places]
    return work.attempt(
        "correlation",
        lambda: make_correlation(scores, [tally.numbers[at] for at in places], groups=tally.list_groups(places)),
    )


def _compute_slices(work: _Computation) -> Slices | None:
    """Compare agreement by the property ``by``; ``None`` where none is named, or where labels are numbers."""
    if work.options.by is None or work.kind == "number":
        return None
    kinds = work.tally.list_kinds(work.places)
    # What cases are compared by may be their group itself; its errors then follow nothing else.
    groups = None if work.options.by == "group" else work.find_groups()
    judged, truth = list(work.tally.judged(work.places)), list(work.tally.truth(work.places))
    return work.attempt("slices", lambda: make_slices(judged, truth, kinds, groups=groups))


def _compute_error_parts(work: _Computation) -> ErrorParts | None:
    """Divide the error of passed or failed into its parts; ``None`` where no case was judged more than once."""
    if not work.tally.repeated or work.kind != "verdict":
        return None
    repeats, truth = work.tally.list_repeats(work.places), list(work.tally.truth(work.places))
    return work.attempt(
        "error_parts",
        lambda: make_error_parts(
            [[None if passed is None else float(passed) for passed in row] for row in repeats],
            [float(bool(value)) for value in truth],
            groups=work.find_groups(),
        ),
    )


def _compute_order_flips(work: _Computation) -> OrderFlips | None:
    tally = work.tally
    if work.kind != "preference" or not tally.pairs:
        return None
    orders = list(tally.list_orders())
    forward, backward = ([_read_preference(pair[place]) for pair in orders] for place in (0, 1))
    return work.attempt("order_flips", lambda: make_order_flips(forward, backward))


def _read_preference(verdict: LabelledVerdict) -> Side | None:
    return verdict if verdict in ("first", "second", "tie") else None


def _compute_alternative(work: _Computation) -> AlternativeTest | None:
    """Run the alternative annotator test, if it is asked for; ``None`` where there are not two people."""
    if not work.options.alternative:
        return None
    ratings, places = work.tally.list_ratings()
    if len({rater for row in ratings for rater in row}) < 2:
        work.left_out["alternative"] = "the test needs cases that several people labelled"
        return None
    tally = work.tally
    numbers = work.kind == "number"
    scores: list[Category] = [None if (score := tally.scores[at]) != score else score for at in places]
    judged = scores if numbers else list(tally.judged(places))
    closeness: Closeness = "neg_rmse" if numbers else "accuracy"
    return work.attempt(
        "alternative",
        lambda: make_alternative_test(judged, ratings, epsilon=work.options.epsilon, closeness=closeness),
    )


class _BiasRow(NamedTuple):
    """The verdicts of judge and people on a case, or on a pair in one order: 1 is good, or for its first content."""

    place: int
    judged: float
    truth: float
    shown_first: bool = True
    """True if the first content of a pair was shown first."""


def _compute_bias(work: _Computation) -> Bias | None:
    """Compute how the judge's errors go with length, format and language; of pairs, with the place."""
    if work.kind == "number":
        return None
    tally = work.tally
    if work.kind == "preference" and tally.pairs:
        return _compute_position_bias(work)
    places = tally.list_sampled(work.places)
    properties = tally.read_properties(places)
    rows = [
        _BiasRow(at, _SHARE_SIDES[judge], _SHARE_SIDES[true])
        for at, judge, true in zip(places, tally.judged(places), tally.truth(places), strict=True)
        if judge is not None and properties[at].length == properties[at].length
    ]
    if not rows:
        work.left_out["bias"] = "no labelled case that the judge decided has its content here"
        return None
    compared_places = [row.place for row in rows]
    columns: dict[str, list[float] | list[bool] | list[str]] = {
        "length (characters)": [2.0 ** properties[at].length for at in compared_places],
        "format": ["marked up" if properties[at].formatted else "plain" for at in compared_places],
        "language": [properties[at].language for at in compared_places],
    }
    judged, truth = [row.judged for row in rows], [row.truth for row in rows]
    return work.attempt(
        "bias", lambda: make_bias(judged, truth, columns, groups=_group_for_bias(tally, compared_places))
    )


def _group_for_bias(tally: MeasurementTally, places: Sequence[int]) -> Sequence[int] | None:
    groups = tally.list_groups(places)
    return groups if groups is not None and len(set(groups)) > 1 else None


def _compute_position_bias(work: _Computation) -> Bias | None:
    """Two rows for each pair, one for each order: whether the first content gains by being shown first."""
    tally = work.tally
    places = tally.list_sampled(work.places)
    properties, orders = tally.read_properties(places), dict(zip(places, tally.list_orders(places), strict=True))
    truth = dict(zip(places, tally.truth(places), strict=True))
    rows = [
        _BiasRow(at, _SHARE_SIDES[side], _SHARE_SIDES[truth[at]], shown_first)
        for at in places
        for verdict, shown_first in zip(orders[at], (True, False), strict=True)
        for side in (_read_preference(verdict),)
        if side is not None and properties[at].length == properties[at].length
    ]
    if not rows:
        work.left_out["bias"] = "no labelled pair that the judge decided has its contents here"
        return None
    columns: dict[str, list[float] | list[bool] | list[str]] = {
        "position": ["shown first" if row.shown_first else "shown second" for row in rows],
        "length (of the first, as a multiple of the second)": [2.0 ** properties[row.place].length for row in rows],
        "format": [_name_format(properties[row.place].formatted) for row in rows],
    }
    judged, truth_of_rows = [row.judged for row in rows], [row.truth for row in rows]
    groups = [tally.groups[row.place] for row in rows]
    return work.attempt("bias", lambda: make_bias(judged, truth_of_rows, columns, groups=groups))


def _name_format(difference: float) -> str:
    if not difference:
        return "both alike"
    return "the first is marked up" if difference > 0 else "the second is marked up"
