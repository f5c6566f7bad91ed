"""The measurement of a tally: every statistic that the labels allow, and why the others are left out.

Each statistic itself is in a module of ``trust``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from adjudge.errors import UsageError
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import MOST_DISAGREEMENTS
from adjudge.measurement.label_origin import KnownPlan, LabelOrigin
from adjudge.measurement.measurement import Measurement, MeasurementKind
from adjudge.measurement.sampled_rate import Sampling, compute_rate, count_other_draws, find_sampling, find_strata
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

_KIND_HEAPS: dict[MeasurementKind, tuple[TruthHeap, ...]] = {
    "verdict": ("bad", "good"),
    "preference": PREFERENCES,
    "number": ("number",),
}
"""The settled truths that labels of each kind may come to."""

_BIAS_VALUES: dict[Category, float] = {"first": 1.0, "tie": 0.5, "second": 0.0, True: 1.0, False: 0.0}
"""Verdicts and truths as numbers: 1 is good, or for the first content of a pair."""


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
    """The property that cases are compared by: ``group`` or a key of their metadata; ``None`` is none."""
    alternative: bool = False
    """True if the alternative annotator test is run."""
    epsilon: float = EPSILON
    """The handicap of that test, from 0 to 1."""
    most_disagreements: int = MOST_DISAGREEMENTS
    """The number of disagreements of each sort that are kept."""
    drawn_only: bool = False
    """True if no figure counts labels that somebody picked beside the draw."""


@dataclass(slots=True)
class _MeasurementDraft:
    """The input of a measurement that is being computed, and the notes for its reader.

    Each ``_compute_`` function returns one statistic, or ``None`` and puts the reason into ``left_out``.
    """

    tally: MeasurementTally
    options: MeasurementOptions
    kind: MeasurementKind
    indexes: Sequence[int]
    """The indexes of the labelled cases whose truth is settled, and of the kind that is compared."""
    origin: LabelOrigin
    """The contents, and the draws of their labels, as far as they are known."""
    stale_cases: int
    """Cases all of whose labels are of another content."""
    strata: KnownPlan | None = None
    """The plan by whose strata labels are weighed; ``None`` if they are not."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The reasons why statistics are left out, by their names."""
    notes: list[str] = field(default_factory=list)
    """Sentences for the reader."""

    def attempt(self, name: str, compute: Callable[[], T | None]) -> T | None:
        """Compute the statistic with this name; ``None`` if that raises ``UsageError``, whose message is the reason."""
        try:
            return compute()
        except UsageError as error:
            self.left_out[name] = str(error)
            return None

    def find_groups(self) -> Sequence[int] | None:
        """List the groups of the settled cases, by which intervals are widened; ``None`` where no two share one.

        Also returns ``None`` if all cases are in one group, with a note: one group shows no variation between groups.
        """
        groups = self.tally.list_groups(self.indexes)
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
    origin: LabelOrigin,
    elsewhere: int = 0,
    other_contents: int = 0,
    stale_cases: int = 0,
    criteria: tuple[Measurement, ...] = (),
) -> Measurement:
    """Compute the measurement of a tally. Needs ``adjudge[trust]``.

    ``origin`` has the contents that the labels may be drawn from. ``elsewhere``, ``other_contents`` and ``stale_cases``
    are counts of labels and cases that are not in the tally, and ``criteria`` the measurements of single criteria.
    """
    check_extra()
    kind = _find_kind(tally)
    draft = _MeasurementDraft(tally, options, kind, tally.find_indexes(_KIND_HEAPS[kind]), origin, stale_cases)
    rate, sampling = _compute_rate(draft)
    _add_strata(draft, sampling)
    # The rate is of the whole tally. All other figures are of ``draft.indexes``, which is narrowed from here on.
    _drop_undrawn(draft)
    if options.drawn_only:
        sampled = find_sampling(tally, origin, labels_are_random=options.labels_are_random, stale_cases=stale_cases)
        drawn = frozenset(sampled.indexes)
        draft.indexes = [index for index in draft.indexes if index in drawn]
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
        agreement=_compute_agreement(draft),
        ceiling=_compute_ceiling(draft),
        correlation=_compute_correlation(draft),
        slices=_compute_slices(draft),
        flipped=Share(count=tally.flipped, of=repeated) if repeated else None,
        error_parts=_compute_error_parts(draft),
        order_flips=_compute_order_flips(draft),
        alternative=_compute_alternative(draft),
        bias=_compute_bias(draft),
        rate=rate,
        sampling=sampling,
        sorts=dict(tally.disagreements.counts),
        disagreements=tally.disagreements.finish(),
        criteria=criteria,
        left_out=draft.left_out,
        notes=tuple(dict.fromkeys(draft.notes)),
        not_blind=tally.not_blind,
        copies=tally.copies,
        is_weighted=draft.strata is not None,
    )


_STATED_SIZES = (
    "The sizes of the strata are what the labels say: their plan is not in this run's folder, and its strata are of "
    "another judge's verdicts, so only the sum of the sizes is checked."
)


def _find_kind(tally: MeasurementTally) -> MeasurementKind:
    """Find which kind most labels are of; without a settled label, the judge's verdicts say it."""
    counts: dict[MeasurementKind, int] = dict.fromkeys(_KIND_HEAPS, 0)
    for (_, heap), number in tally.table.items():
        for kind, heaps in _KIND_HEAPS.items():
            if heap in heaps:
                counts[kind] += number
    if not any(counts.values()):
        has_preferences = any(tally.cases[name] for name in ("first", "second", "tie"))
        return "preference" if has_preferences else "verdict"
    return max(counts, key=lambda kind: counts[kind])


def _make_table(tally: MeasurementTally) -> dict[LabelledVerdict, dict[TruthHeap, int]]:
    """Make the table of labelled cases by verdict and truth, without the cells and rows that are empty."""
    return {
        verdict: {heap: tally.table[verdict, heap] for heap in HEAPS if tally.table[verdict, heap]}
        for verdict in VERDICTS
        if any(tally.table[verdict, heap] for heap in HEAPS)
    }


def _add_strata(draft: _MeasurementDraft, sampling: Sampling) -> None:
    """Add the plan by whose strata labels are weighed, and a note where only the labels state the sizes of its strata.

    Nothing is added for a plan of a single stratum, which gives all labels one weight.
    """
    strata = find_strata(draft.tally, sampling, draft.origin)
    if strata is None or len(strata.sizes) < 2:
        return
    draft.strata = strata
    if strata is not draft.origin.known_plan:
        draft.notes.append(_STATED_SIZES)


def _drop_undrawn(draft: _MeasurementDraft) -> None:
    """Drop labels that somebody picked beside a plan of several strata: how many cases they represent is not known."""
    strata = draft.strata
    if strata is not None:
        designs_of_cases = zip(draft.indexes, draft.tally.list_designs(draft.indexes), strict=True)
        draft.indexes = [index for index, designs in designs_of_cases if strata.find_design(designs) is not None]


def _compute_rate(draft: _MeasurementDraft) -> tuple[CorrectedRate | Refusal | None, Sampling]:
    """Compute the corrected rate, and find how its labels were sampled.

    The rate is ``None``, with the reason in ``left_out``, where labels cannot correct one.
    """
    if draft.kind == "number":
        draft.left_out["rate"] = "labels that are numbers correct no rate; label good or bad"
        return None, "unknown"
    if not draft.tally.cases:
        draft.left_out["rate"] = "no case was judged"
        return None, "unknown"
    options = draft.options
    rate, sampled = compute_rate(
        draft.tally,
        labels_are_random=options.labels_are_random,
        target=options.target,
        limits=options.limits,
        origin=draft.origin,
        stale_cases=draft.stale_cases,
    )
    draft.notes += sampled.notes
    return rate, sampled.sampling


def _compute_agreement(draft: _MeasurementDraft) -> Agreement | None:
    """Compute how often judge and people agree, weighed by the strata if a plan of several strata drew the labels."""
    agreement = _compare_labels(draft)
    strata = draft.strata
    if agreement is None or strata is None:
        return agreement
    draft.notes.append("Labels are weighed by the strata they were drawn from; kinds of cases and biases are not.")
    return draft.attempt("agreement", lambda: _weigh_labels(draft, agreement, strata))


def _weigh_labels(draft: _MeasurementDraft, agreement: Agreement, strata: KnownPlan) -> Agreement:
    """Weigh each label by the number of cases of its stratum that it represents.

    For that, a confusion matrix is counted for each stratum: rows are truths and columns verdicts.
    """
    tally, categories = draft.tally, agreement.confusion.categories
    stratum_numbers = {stratum: number for number, stratum in enumerate(strata.sizes)}
    tables = [[[0] * len(categories) for _ in categories] for _ in stratum_numbers]
    cases = zip(
        tally.list_designs(draft.indexes),
        tally.list_judged(draft.indexes),
        tally.list_truths(draft.indexes),
        strict=True,
    )
    for designs, verdict, truth in cases:
        design = strata.find_design(designs)
        if design is not None:
            table = tables[stratum_numbers[design.stratum]]
            table[categories.index(truth)][categories.index(verdict)] += 1
    is_whole_population = draft.options.target == "run"
    return weigh_agreement(agreement, tables, list(strata.sizes.values()), whole=is_whole_population)


def _compare_labels(draft: _MeasurementDraft) -> Agreement | None:
    """Compare verdicts with labels; ``None``, with the reason in ``left_out``, where that cannot be."""
    if draft.kind == "number":
        draft.left_out["agreement"] = "labels that are numbers are compared by correlation"
        return None
    if not draft.indexes:
        draft.left_out["agreement"] = "no labelled case has a truth that people settled"
        return None
    preference = draft.kind == "preference"
    return draft.attempt(
        "agreement",
        lambda: make_agreement(
            draft.tally.list_judged(draft.indexes),
            draft.tally.list_truths(draft.indexes),
            groups=draft.find_groups(),
            positive="first" if preference else True,
            # False and true also where the labels have one of them alone, so that every table has both.
            categories=("second", "tie", "first") if preference else (False, True),
        ),
    )


def _compute_ceiling(draft: _MeasurementDraft) -> Ceiling | None:
    """Measure how well people agree with each other, on the cases that at least two of them labelled."""
    ratings, indexes = draft.tally.list_ratings()
    if not ratings:
        draft.left_out["ceiling"] = "no case was labelled by two people"
        return None
    groups = draft.tally.list_groups(indexes)
    has_groups = groups is not None and len(set(groups)) > 1  # of one group alone, nothing could vary
    return draft.attempt("ceiling", lambda: make_ceiling(ratings, groups=groups if has_groups else None))


def _compute_correlation(draft: _MeasurementDraft) -> Correlation | None:
    """Compute the correlation of scores with labels that are numbers; ``None`` where there are none."""
    tally = draft.tally
    indexes = tally.find_indexes(("number",))
    if not indexes:
        return None
    scores = _read_scores(tally, indexes)
    return draft.attempt(
        "correlation",
        lambda: make_correlation(
            scores, [tally.numbers[index] for index in indexes], groups=tally.list_groups(indexes)
        ),
    )


def _read_scores(tally: MeasurementTally, indexes: Sequence[int]) -> list[float | None]:
    """Read the judge's scores of the cases with these indexes; ``None`` without one, for which the tally has NaN."""
    scores = [tally.scores[index] for index in indexes]
    return [None if math.isnan(score) else score for score in scores]


def _compute_slices(draft: _MeasurementDraft) -> Slices | None:
    """Compare agreement by the property ``by``; ``None`` where none is named, or where labels are numbers."""
    if draft.options.by is None or draft.kind == "number":
        return None
    kinds = draft.tally.list_kinds(draft.indexes)
    # If cases are compared by their group itself, their errors do not vary with another group within a slice.
    groups = None if draft.options.by == "group" else draft.find_groups()
    judged, truth = list(draft.tally.list_judged(draft.indexes)), list(draft.tally.list_truths(draft.indexes))
    return draft.attempt("slices", lambda: make_slices(judged, truth, kinds, groups=groups))


def _compute_error_parts(draft: _MeasurementDraft) -> ErrorParts | None:
    """Divide the error of passed or failed into its parts; ``None`` where no case was judged more than once."""
    if not draft.tally.repeated or draft.kind != "verdict":
        return None
    repeats, truth = draft.tally.list_repeats(draft.indexes), list(draft.tally.list_truths(draft.indexes))
    return draft.attempt(
        "error_parts",
        lambda: make_error_parts(
            [[None if passed is None else float(passed) for passed in row] for row in repeats],
            [float(bool(value)) for value in truth],
            groups=draft.find_groups(),
        ),
    )


def _compute_order_flips(draft: _MeasurementDraft) -> OrderFlips | None:
    """Compute how often the judge's preference changes if a pair's contents are swapped; ``None`` without pairs."""
    tally = draft.tally
    if draft.kind != "preference" or not tally.pairs:
        return None
    orders = list(tally.list_orders())
    forward = [_read_preference(in_order_ab) for in_order_ab, _ in orders]
    backward = [_read_preference(in_order_ba) for _, in_order_ba in orders]
    return draft.attempt("order_flips", lambda: make_order_flips(forward, backward))


def _read_preference(verdict: LabelledVerdict) -> Side | None:
    """Read the verdict on a pair in one order; ``None`` is undecided."""
    return verdict if verdict in ("first", "second", "tie") else None


def _compute_alternative(draft: _MeasurementDraft) -> AlternativeTest | None:
    """Run the alternative annotator test, if it is asked for; ``None`` where there are not two people."""
    if not draft.options.alternative:
        return None
    ratings, indexes = draft.tally.list_ratings()
    if len({rater for row in ratings for rater in row}) < 2:
        draft.left_out["alternative"] = "the test needs cases that several people labelled"
        return None
    labels_are_numbers = draft.kind == "number"
    judged: list[Category]
    if labels_are_numbers:
        judged = list[Category](_read_scores(draft.tally, indexes))
    else:
        judged = [*draft.tally.list_judged(indexes)]
    closeness: Closeness = "neg_rmse" if labels_are_numbers else "accuracy"
    return draft.attempt(
        "alternative",
        lambda: make_alternative_test(judged, ratings, epsilon=draft.options.epsilon, closeness=closeness),
    )


class _BiasRow(NamedTuple):
    """The verdicts of judge and people on a case, or on a pair in one order: 1 is good, or for its first content."""

    index: int
    """The index of the case among the labelled ones."""
    judged: float
    truth: float
    shown_first: bool = True
    """True if the first content of a pair was shown first."""


def _compute_bias(draft: _MeasurementDraft) -> Bias | None:
    """Compute how the judge's errors depend on length, format and language of a content; of pairs, on its position."""
    if draft.kind == "number":
        return None
    tally = draft.tally
    if draft.kind == "preference" and tally.pairs:
        return _compute_position_bias(draft)
    indexes = tally.list_sampled(draft.indexes)
    properties = tally.read_properties(indexes)
    rows = [
        _BiasRow(index, _BIAS_VALUES[verdict], _BIAS_VALUES[truth])
        for index, verdict, truth in zip(indexes, tally.list_judged(indexes), tally.list_truths(indexes), strict=True)
        if verdict is not None and not math.isnan(properties[index].length)  # NaN where the content is not here
    ]
    if not rows:
        draft.left_out["bias"] = "no labelled case that the judge decided has its content here"
        return None
    compared_indexes = [row.index for row in rows]
    columns: dict[str, list[float] | list[bool] | list[str]] = {
        "length (characters)": [2.0 ** properties[index].length for index in compared_indexes],
        "format": ["marked up" if properties[index].formatted else "plain" for index in compared_indexes],
        "language": [properties[index].language for index in compared_indexes],
    }
    judged, truths = [row.judged for row in rows], [row.truth for row in rows]
    return draft.attempt(
        "bias", lambda: make_bias(judged, truths, columns, groups=_list_groups_for_bias(tally, compared_indexes))
    )


def _list_groups_for_bias(tally: MeasurementTally, indexes: Sequence[int]) -> Sequence[int] | None:
    """List the groups of cases; ``None`` where no two cases share one, or all do and nothing could vary."""
    groups = tally.list_groups(indexes)
    return groups if groups is not None and len(set(groups)) > 1 else None


def _compute_position_bias(draft: _MeasurementDraft) -> Bias | None:
    """Compute whether the judge prefers the content that is shown first, from a row for each order of each pair."""
    tally = draft.tally
    indexes = tally.list_sampled(draft.indexes)
    properties = tally.read_properties(indexes)
    rows: list[_BiasRow] = []
    pairs = zip(indexes, tally.list_orders(indexes), tally.list_truths(indexes), strict=True)
    for index, verdicts_in_orders, truth in pairs:
        if math.isnan(properties[index].length):  # its contents are not here
            continue
        for verdict, shown_first in zip(verdicts_in_orders, (True, False), strict=True):
            preference = _read_preference(verdict)
            if preference is not None:
                rows.append(_BiasRow(index, _BIAS_VALUES[preference], _BIAS_VALUES[truth], shown_first))
    if not rows:
        draft.left_out["bias"] = "no labelled pair that the judge decided has its contents here"
        return None
    columns: dict[str, list[float] | list[bool] | list[str]] = {
        "position": ["shown first" if row.shown_first else "shown second" for row in rows],
        "length (of the first, as a multiple of the second)": [2.0 ** properties[row.index].length for row in rows],
        "format": [_name_format(properties[row.index].formatted) for row in rows],
    }
    judged, truths = [row.judged for row in rows], [row.truth for row in rows]
    groups = [tally.groups[row.index] for row in rows]
    return draft.attempt("bias", lambda: make_bias(judged, truths, columns, groups=groups))


def _name_format(difference: float) -> str:
    """Name which content of a pair is marked up, from the first's 1 or 0 minus the second's."""
    if not difference:
        return "both alike"
    return "the first is marked up" if difference > 0 else "the second is marked up"
