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
    find_category_index,
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
        group_count = None
    else:
        confusion, rows, group_count = _tabulate_groups(judged, truth, groups, categories)
        counts = None
    ordered = categories is not None or can_order(confusion.categories)
    measure = _make_measure(confusion.categories, positive, ordered=ordered)
    resampled = resample(rows, measure, seed=seed, resamples=resamples, counts=counts)
    shares = _estimate_shares(confusion, positive, None if group_count is None else rows)
    return Agreement(
        confusion=confusion,
        groups=group_count,
        positive=positive,
        seed=seed,
        baselines=tuple(_find_baselines(confusion, positive)),
        **shares,
        **_estimate_coefficients(confusion, measure, resampled, group_count, ordered=ordered),
    )


def _tabulate(confusion: Confusion) -> tuple[Confusion, Floats, Floats]:
    """Prepare a confusion table for a bootstrap of items.

    Returns the table itself; a row for each cell that holds items, which is a flat table of one item in that cell; and
    the number of items in each of these cells.
    """
    import numpy as np

    cell_counts = np.array(confusion.counts, dtype=float).ravel()
    used_cells = np.flatnonzero(cell_counts)
    rows = np.zeros((len(used_cells), len(cell_counts)))
    rows[np.arange(len(used_cells)), used_cells] = 1.0
    return confusion, rows, cell_counts[used_cells]


def _tabulate_groups(
    judged: Iterable[Category],
    truth: Iterable[Category],
    groups: Iterable[Hashable],
    categories: Sequence[Category] | None,
) -> tuple[Confusion, Floats, int]:
    """Count labels for a bootstrap of groups.

    Returns the confusion table over all items; a row for each group, which is the group's own table, flattened; and the
    number of groups. Raises ``UsageError``.
    """
    import numpy as np

    pairs, pairs_by_group, group_count = count_tables(judged, truth, groups)
    confusion = make_confusion_of_pairs(pairs, categories)
    check_groups(group_count)
    indexes = {category: index for index, category in enumerate(confusion.categories)}
    size = len(indexes)
    rows = np.zeros((group_count, size * size))
    for (group, judge, true), count in pairs_by_group.items():
        rows[group, indexes[true] * size + indexes[judge]] = count
    return confusion, rows, group_count


_MACRO = ("macro_precision", "macro_recall", "macro_f1")
"""The coefficients that are means over the decided categories."""

_WEIGHTED = ("linear_kappa", "quadratic_kappa")
"""The coefficients that need categories with an order."""

_COEFFICIENTS = (*_MACRO, "f1", "cohen_kappa", "gwet_ac1", "krippendorff_alpha", *_WEIGHTED)
"""The coefficients in the order of the columns that ``_make_measure`` computes."""


def _make_measure(categories: Sequence[Category], positive: Category, *, ordered: bool) -> Callable[[Floats], Floats]:
    """Make the function that computes all coefficients of confusion tables.

    It takes one flat table per row, and returns for each a row of coefficients in the order of ``_COEFFICIENTS``. One
    that is not defined is NaN.
    """
    import numpy as np

    size = len(categories)
    decided = [index for index, category in enumerate(categories) if category is not None]
    good = find_category_index(categories, positive) if has_category(categories, positive) else None

    def measure(flat_tables: Floats) -> Floats:
        """Compute every coefficient of each table, one column for each."""
        tables = flat_tables.reshape(len(flat_tables), size, size)
        undefined = np.full(len(tables), np.nan)
        # Each pair of labels counted in both orders, so that judge and truth are two raters alike.
        symmetric = tables + tables.transpose(0, 2, 1)
        columns = [*measure_macro(tables, categories).T]
        if good is None:
            columns += [undefined]
        else:
            columns += [divide(2 * tables[:, good, good], symmetric[:, good].sum(axis=1), np.nan)]  # F1
        columns += [measure_cohen(tables), measure_gwet(tables)]
        columns += [measure_alpha(symmetric.reshape(len(tables), -1), np.arange(size, dtype=float), "nominal")]
        decided_tables = tables[:, decided][:, :, decided]
        columns += (
            [measure_cohen(decided_tables, "linear"), measure_cohen(decided_tables, "quadratic")]
            if ordered
            else [undefined, undefined]
        )
        return np.stack(columns, axis=1)

    return measure


def _estimate_coefficients(
    confusion: Confusion, measure: Callable[[Floats], Floats], resampled: Floats, groups: int | None, *, ordered: bool
) -> dict[str, Estimate]:
    """Estimate each coefficient, with its interval, or the reason why it has no value.

    ``measure`` computes the coefficients of a table, and ``resampled`` has a row with those of each resample.
    ``groups`` is the number of groups that were resampled; ``None`` if single items were.
    """
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
        name: make_estimate(float(value), confusion.items, resampled[:, column], units, method, reason=reason[name])
        for column, (name, value) in enumerate(zip(_COEFFICIENTS, values, strict=True))
    }


def _estimate_shares(confusion: Confusion, positive: Category, group_rows: Floats | None) -> dict[str, Estimate]:
    """Estimate accuracy, sensitivity and the other shares of a confusion table.

    If items come in groups, ``group_rows`` has each group's own table as a flat row.
    """
    size, indexes = len(confusion.categories), range(len(confusion.categories))
    all_cells = list(range(size * size))
    # For each share: the cells whose items count, the cells whose items it is a share of, and why it may be undefined.
    # Cells are numbered row by row; a row is a true category, a column a category of the judge.
    cells: dict[str, tuple[list[int], list[int], str]] = {
        "accuracy": ([index * size + index for index in indexes], all_cells, "")
    }
    if has_category(confusion.categories, positive):
        good, bad = find_category_index(confusion.categories, positive), find_bad(confusion.categories, positive)
        truly_good = [good * size + column for column in indexes]
        judged_good = [row * size + good for row in indexes]
        truly_bad = [row * size + column for row in bad for column in indexes]
        caught = [row * size + column for row in bad for column in bad]
        cells |= {
            "sensitivity": ([good * size + good], truly_good, f"no item is truly {show(positive)}"),
            "specificity": (caught, truly_bad, f"no item is truly anything but {show(positive)}"),
            "precision": ([good * size + good], judged_good, f"the judge never says {show(positive)}"),
            "prevalence": (truly_good, all_cells, ""),
            "judge_rate": (judged_good, all_cells, ""),
        }
    reason = f"no label is {show(positive)}; name the category of good items with positive"
    names = ("accuracy", "sensitivity", "specificity", "precision", "prevalence", "judge_rate")
    return {name: _estimate_share(confusion, *cells.get(name, ([], [], reason)), group_rows) for name in names}


def _estimate_share(
    confusion: Confusion, counted_cells: list[int], base_cells: list[int], reason: str, group_rows: Floats | None
) -> Estimate:
    """Estimate the share of the items in ``base_cells`` that are in ``counted_cells``; cells are numbered row by row.

    Without an item in ``base_cells`` there is no value, for the given ``reason``. With ``group_rows``, which has each
    group's own table as a flat row, the interval allows for items that come in groups.
    """
    cell_counts = [count for row in confusion.counts for count in row]
    count, total = sum(cell_counts[cell] for cell in counted_cells), sum(cell_counts[cell] for cell in base_cells)
    if not total:
        return Estimate(value=None, of=0, note=f"not defined: {reason}")
    if group_rows is None:
        low, high = find_interval(count, total)
        return Estimate(value=count / total, of=total, low=low, high=high, method="Wilson")
    return estimate_clustered_share(group_rows[:, counted_cells].sum(axis=1), group_rows[:, base_cells].sum(axis=1))


def _find_baselines(confusion: Confusion, positive: Category) -> Iterable[Baseline]:
    """Yield the judges that give every item one label: the good one, if it occurs, and the most frequent true one."""
    truth_counts = dict(zip(confusion.categories, confusion.truth_counts, strict=True))
    if has_category(confusion.categories, positive):
        accuracy = Share(count=truth_counts[positive], of=confusion.items)
        yield Baseline(name="always pass", category=positive, accuracy=accuracy)
    # Of two that are equally frequent, the good one.
    majority = max(truth_counts, key=lambda category: (truth_counts[category], category == positive))
    accuracy = Share(count=truth_counts[majority], of=confusion.items)
    yield Baseline(name="always the majority", category=majority, accuracy=accuracy)
