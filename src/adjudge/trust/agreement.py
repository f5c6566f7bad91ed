"""Agreement of a judge with the truth: the shares and coefficients of a confusion table, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from adjudge.formats.record import write_record
from adjudge.formats.text import show
from adjudge.trust.coefficients import can_order, measure_alpha, measure_cohen, measure_gwet
from adjudge.trust.confusion import (
    Category,
    Confusion,
    count_pairs,
    count_tables,
    divide,
    find_bad,
    find_place,
    has_category,
    make_confusion_of_pairs,
    measure_macro,
)
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import Estimate, Share, find_interval
from adjudge.trust.resampling import (
    RESAMPLES,
    check_groups,
    check_resampling,
    estimate_clustered_share,
    make_estimate,
    resample,
)

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A judge that looks at nothing. Its kappa is 0; a judge worth its price has a clearly higher accuracy."""

    name: str
    """``always pass``, or ``always the majority``."""
    category: Category
    """The verdict that it always gives."""
    accuracy: Share
    """The share of items on which it agrees with the truth."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A judge compared with the truth. A statistic that the data do not define has no value, and a note that says why.

    Shares have Wilson intervals, coefficients bootstrap intervals; with groups, both follow the groups. Fewer than 10
    groups, or items to draw again, have no interval.
    """

    confusion: Confusion
    """The number of times that each verdict met each truth."""
    groups: int | None
    """The number of groups that the items come in; ``None`` if every item was taken to be independent."""
    positive: Category
    """The category of good items."""
    seed: int
    """The seed of the bootstrap intervals."""
    accuracy: Estimate
    """Items on which the judge agrees with the truth, among all."""
    sensitivity: Estimate
    """Good items that the judge passes; undecided counts against it."""
    specificity: Estimate
    """Bad items that the judge fails; undecided counts against it."""
    precision: Estimate
    """Good items among those that the judge passes."""
    prevalence: Estimate
    """Good items among all."""
    judge_rate: Estimate
    """Items that the judge passes, among all."""
    f1: Estimate
    """The harmonic mean of precision and sensitivity."""
    macro_precision: Estimate
    """The mean of the precision of each category."""
    macro_recall: Estimate
    """The mean of the recall of each category."""
    macro_f1: Estimate
    """The mean of F1 of each category."""
    cohen_kappa: Estimate
    """Cohen's kappa: agreement beyond what the marginals of both give by chance."""
    linear_kappa: Estimate
    """Linearly weighted kappa, over the categories in their order; undecided is left out."""
    quadratic_kappa: Estimate
    """Quadratically weighted kappa, over the categories in their order."""
    gwet_ac1: Estimate
    """Gwet's AC1: agreement beyond chance that does not fall when one category is rare."""
    krippendorff_alpha: Estimate
    """On the nominal scale; ``compute_krippendorff_alpha`` has the others."""
    baselines: tuple[Baseline, ...]
    """Judges that look at nothing, for comparison."""

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every statistic by its name, in the order of the fields."""
        members = {member.name: getattr(self, member.name) for member in fields(self)}
        return {name: value for name, value in members.items() if isinstance(value, Estimate)}

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_agreement(
    judged: Iterable[Category],
    truth: Iterable[Category],
    *,
    groups: Iterable[Hashable] | None = None,
    positive: Category = True,
    categories: Sequence[Category] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Agreement:
    """Compare a judge's labels with the true ones, item by item. ``None`` is undecided, a category of its own.

    Raises ``UsageError`` for what ``make_confusion`` refuses, and for fewer than two groups.
    Source of the clustered share: Korn and Graubard 1998; of the bootstrap: Davison and Hinkley 1997, section 3.8.

    Args:
        judged: What the judge says of each item.
        truth: What people say of each item, in the same order.
        groups: What each item comes from, where several come from one (answers to one question): without it intervals
            of such items are much too narrow. ``None``: each item is for itself.
        positive: The category of good items.
        categories: The order for weighted kappa, which may add categories that no item has; texts have weighted kappas
            only where it is given.
        seed: What the random draws begin with; the same seed gives the same limits.
        resamples: How many times the bootstrap draws.
    """
    check_extra()
    check_resampling(seed, resamples)
    if groups is None:
        confusion, rows, counts = _tabulate(make_confusion_of_pairs(count_pairs(judged, truth), categories))
        number = None
    else:
        confusion, rows, number = _tabulate_groups(judged, truth, groups, categories)
        counts = None
    ordered = categories is not None or can_order(confusion.categories)
    measure = _make_measure(confusion.categories, positive, ordered=ordered)
    drawn = resample(rows, measure, seed=seed, resamples=resamples, counts=counts)
    shares = _estimate_shares(confusion, positive, None if number is None else rows)
    return Agreement(
        confusion=confusion,
        groups=number,
        positive=positive,
        seed=seed,
        baselines=tuple(_find_baselines(confusion, positive)),
        **shares,
        **_estimate_coefficients(confusion, measure, drawn, number, ordered=ordered),
    )


def _tabulate(confusion: Confusion) -> tuple[Confusion, Floats, Floats]:
    """The table, its cells that hold items (one row each), and how many items each holds."""
    import numpy as np

    flat = np.array(confusion.counts, dtype=float).ravel()
    held = np.flatnonzero(flat)
    rows = np.zeros((len(held), len(flat)))
    rows[np.arange(len(held)), held] = 1.0
    return confusion, rows, flat[held]


def _tabulate_groups(
    judged: Iterable[Category],
    truth: Iterable[Category],
    groups: Iterable[Hashable],
    categories: Sequence[Category] | None,
) -> tuple[Confusion, Floats, int]:
    """The table over all items, one row of it for each group, and how many groups there are."""
    import numpy as np

    pairs, apart, number = count_tables(judged, truth, groups)
    confusion = make_confusion_of_pairs(pairs, categories)
    check_groups(number)
    places = {category: place for place, category in enumerate(confusion.categories)}
    size = len(places)
    rows = np.zeros((number, size * size))
    for (group, judge, true), count in apart.items():
        rows[group, places[true] * size + places[judge]] = count
    return confusion, rows, number


_MACRO = ("macro_precision", "macro_recall", "macro_f1")
"""The coefficients that are means over the decided categories."""

_WEIGHTED = ("linear_kappa", "quadratic_kappa")
"""The coefficients that need categories with an order."""

_COEFFICIENTS = (*_MACRO, "f1", "cohen_kappa", "gwet_ac1", "krippendorff_alpha", *_WEIGHTED)
"""The coefficients in the order of the columns that ``_make_measure`` computes."""


def _make_measure(categories: Sequence[Category], positive: Category, *, ordered: bool) -> Callable[[Floats], Floats]:
    """The function from tables (one flat row each) to all coefficients, in the order of their names."""
    import numpy as np

    size = len(categories)
    decided = [place for place, category in enumerate(categories) if category is not None]
    good = find_place(categories, positive) if has_category(categories, positive) else None

    def measure(sums: Floats) -> Floats:
        """Compute every coefficient of each table, one column for each."""
        tables = sums.reshape(len(sums), size, size)
        nothing = np.full(len(tables), np.nan)
        either = tables + tables.transpose(0, 2, 1)
        columns = [*measure_macro(tables, categories).T]
        columns += [nothing if good is None else divide(2 * tables[:, good, good], either[:, good].sum(axis=1), np.nan)]
        columns += [measure_cohen(tables), measure_gwet(tables)]
        columns += [measure_alpha(either.reshape(len(sums), -1), np.arange(size, dtype=float), "nominal")]
        decided_tables = tables[:, decided][:, :, decided]
        columns += (
            [measure_cohen(decided_tables, "linear"), measure_cohen(decided_tables, "quadratic")]
            if ordered
            else [nothing, nothing]
        )
        return np.stack(columns, axis=1)

    return measure


def _estimate_coefficients(
    confusion: Confusion, measure: Callable[[Floats], Floats], drawn: Floats, groups: int | None, *, ordered: bool
) -> dict[str, Estimate]:
    """Estimate each coefficient, with its interval, or the reason why it has no value."""
    import numpy as np

    method = "bootstrap of items" if groups is None else "bootstrap of groups"
    units = confusion.items if groups is None else groups
    values = measure(np.array(confusion.counts, dtype=float).reshape(1, -1))[0]
    reason = dict.fromkeys(_COEFFICIENTS, "both sides use one category alone, so chance would always agree")
    reason |= dict.fromkeys(_MACRO, "no item has a decided label")
    reason["f1"] = "neither side ever uses the category of good items"
    reason["gwet_ac1"] = "the table has one category alone; name the others in categories"
    if not ordered:
        reason |= dict.fromkeys(_WEIGHTED, "texts have no order; give it in categories")
    return {
        name: make_estimate(float(value), confusion.items, drawn[:, at], units, method, reason=reason[name])
        for at, (name, value) in enumerate(zip(_COEFFICIENTS, values, strict=True))
    }


def _estimate_shares(confusion: Confusion, positive: Category, rows: Floats | None) -> dict[str, Estimate]:
    """The shares of the table; ``rows`` are the tables of groups, if items come in groups."""
    size, every = len(confusion.categories), range(len(confusion.categories))
    cells: dict[str, tuple[list[int], list[int], str]] = {
        "accuracy": ([place * size + place for place in every], list(range(size * size)), "")
    }
    if has_category(confusion.categories, positive):
        good, bad = find_place(confusion.categories, positive), find_bad(confusion.categories, positive)
        row, column = [good * size + place for place in every], [place * size + good for place in every]
        wrong = [place * size + other for place in bad for other in every]
        caught = [place * size + other for place in bad for other in bad]
        cells |= {
            "sensitivity": ([good * size + good], row, f"no item is truly {show(positive)}"),
            "specificity": (caught, wrong, f"no item is truly anything but {show(positive)}"),
            "precision": ([good * size + good], column, f"the judge never says {show(positive)}"),
            "prevalence": (row, list(range(size * size)), ""),
            "judge_rate": (column, list(range(size * size)), ""),
        }
    reason = f"no label is {show(positive)}; name the category of good items with positive"
    names = ("accuracy", "sensitivity", "specificity", "precision", "prevalence", "judge_rate")
    return {name: _estimate_share(confusion, *cells.get(name, ([], [], reason)), rows) for name in names}


def _estimate_share(
    confusion: Confusion, counted: list[int], of: list[int], reason: str, rows: Floats | None
) -> Estimate:
    """Estimate the share of the items in the cells ``of`` that are in the cells ``counted``, numbered row by row.

    Without an item in ``of`` there is no value, for the given ``reason``. With ``rows`` the interval is of groups.
    """
    flat = [count for row in confusion.counts for count in row]
    count, number = sum(flat[cell] for cell in counted), sum(flat[cell] for cell in of)
    if not number:
        return Estimate(value=None, of=0, note=f"not defined: {reason}")
    if rows is None:
        low, high = find_interval(count, number)
        return Estimate(value=count / number, of=number, low=low, high=high, method="Wilson")
    return estimate_clustered_share(rows[:, counted].sum(axis=1), rows[:, of].sum(axis=1))


def _find_baselines(confusion: Confusion, positive: Category) -> Iterable[Baseline]:
    counts = dict(zip(confusion.categories, confusion.truth_counts, strict=True))
    if has_category(confusion.categories, positive):
        accuracy = Share(count=counts[positive], of=confusion.items)
        yield Baseline(name="always pass", category=positive, accuracy=accuracy)
    most = max(counts, key=lambda category: (counts[category], category == positive))
    yield Baseline(name="always the majority", category=most, accuracy=Share(count=counts[most], of=confusion.items))
