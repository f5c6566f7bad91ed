"""Agreement beyond what chance would bring: of two raters, of several, and of any number on any scale.

All but alpha are (observed - expected) / (1 - expected), and differ in what chance would bring:

* Cohen's kappa: each rater draws from its own categories' frequencies (J. Cohen, "A coefficient of agreement for
  nominal scales", 1960). Weighted kappa counts a near miss as part of an agreement (J. Cohen, "Weighted kappa", 1968).
* Gwet's AC1: chance agreement is what remains when some items are rated at random (K. L. Gwet, "Computing inter-rater
  reliability and its variance in the presence of high agreement", 2008). It keeps its size where one category is rare.
* Krippendorff's alpha: any number of raters on any scale, where ratings may be missing. It is 1 - observed
  disagreement / expected disagreement, from coincidences: how often two ratings of one item are the two values
  (K. Krippendorff, "Content Analysis", 2004, chapter 11, and "Computing Krippendorff's alpha-reliability", 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import show
from adjudge.trust.confusion import Category, Confusion, check_kinds, divide, order_categories
from adjudge.trust.extra import check_extra
from adjudge.trust.resampling import check_score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from adjudge.trust.extra import Floats

# ---------------------------------------------------------------- two raters

Weights = Literal["linear", "quadratic"]


def compute_cohen_kappa(confusion: Confusion, *, weights: Weights | None = None) -> float:
    """Cohen's kappa, from -1 to 1; 0 is what chance brings.

    With ``weights``, undecided items are left out, because undecided has no place in the order. Raises ``UsageError``
    where both sides use one and the same category alone, and for a text order that nobody gave meaning to.

    Args:
        confusion: The counts, as ``make_confusion`` makes them.
        weights: How a disagreement counts: by how many places apart the two categories are (``linear``) or by the
            square of it (``quadratic``). ``None`` counts all alike.
    """
    check_extra()
    if weights is not None:
        check_choice("weights", weights, ("linear", "quadratic"))
    table = keep_ordered(confusion) if weights else confusion
    return _compute_coefficient(table, lambda tables: measure_cohen(tables, weights), "Cohen's kappa")


def compute_gwet_ac1(confusion: Confusion) -> float:
    """Gwet's AC1, from -1 to 1, over all categories of the table, so name those that no item has.

    Raises ``UsageError`` for a table of one category.

    Args:
        confusion: How often each verdict met each truth.
    """
    check_extra()
    return _compute_coefficient(confusion, measure_gwet, "Gwet's AC1")


def keep_ordered(confusion: Confusion) -> Confusion:
    """Return the table without undecided, which has no place in an order; raise ``UsageError`` if nothing remains."""
    decided = confusion.leave_out(None) if None in confusion.categories else confusion
    if not decided.items:
        raise UsageError("weighted kappa is not defined: no item is decided on both sides; label some")
    return decided


def _compute_coefficient(confusion: Confusion, measure: Callable[[Floats], Floats], name: str) -> float:
    """Compute a coefficient of one table; raises ``UsageError`` where it is not defined."""
    import numpy as np

    if not confusion.items:
        raise UsageError(f"{name} is not defined: the table holds no item; label some")
    value = measure(np.array([confusion.counts], dtype=float))[0]
    if not np.isfinite(value):
        raise UsageError(f"{name} is not defined: {explain_undefined(confusion)}")
    return float(value)


def explain_undefined(confusion: Confusion) -> str:
    """Explain why no coefficient can be computed: a clause for an error message."""
    used_categories = {
        index
        for counts in (confusion.truth_counts, confusion.judge_counts)
        for index, count in enumerate(counts)
        if count
    }
    word = "one category" if len(used_categories) == 1 else "too few categories"
    return f"both sides use {word}, so chance alone would agree always; label items of another category"


def measure_cohen(tables: Floats, weights: Weights | None = None) -> Floats:
    """Compute Cohen's kappa of each confusion table, plain or weighted; NaN where it is not defined."""
    import numpy as np

    number = tables.shape[1]
    distance = np.abs(np.arange(number)[:, None] - np.arange(number)[None, :]).astype(float)
    if weights == "quadratic":
        penalty = distance**2
    elif weights:
        penalty = distance
    else:
        penalty = (distance > 0).astype(float)
    items = tables.sum(axis=(1, 2))
    observed = divide(np.einsum("tij,ij->t", tables, penalty), items, np.nan)
    expected = np.einsum("ti,tj,ij->t", tables.sum(axis=2), tables.sum(axis=1), penalty, optimize=True)
    expected = divide(expected, items**2, np.nan)
    return 1 - divide(observed, expected, np.nan)


def measure_gwet(tables: Floats) -> Floats:
    """Compute Gwet's AC1 of each confusion table; NaN where it is not defined."""
    import numpy as np

    agreement, category_shares = _measure_agreement(tables)
    number = tables.shape[1]
    if number == 1:
        return np.full(len(tables), np.nan)
    chance_agreement = (category_shares * (1 - category_shares)).sum(axis=1) / (number - 1)
    return _correct_for_chance(agreement, chance_agreement)


def _measure_agreement(tables: Floats) -> tuple[Floats, Floats]:
    """Compute for each confusion table the share of items on which both raters agree, and each category's mean share.

    The mean is over the two raters.
    """
    import numpy as np

    items = tables.sum(axis=(1, 2))
    mean_counts = (tables.sum(axis=1) + tables.sum(axis=2)) / 2
    return divide(np.einsum("tkk->t", tables), items, np.nan), divide(mean_counts, items[:, None], np.nan)


def _correct_for_chance(agreement: Floats, chance_agreement: Floats) -> Floats:
    """Compute the agreement beyond chance, as a share of all there could be; NaN where chance always agrees."""
    import numpy as np

    return divide(agreement - chance_agreement, 1 - chance_agreement, np.nan)


def can_order(categories: Sequence[Category]) -> bool:
    """Return whether categories have an order of their own: at least two numbers."""
    decided = [category for category in categories if category is not None]
    return len(decided) > 1 and not any(isinstance(category, str) for category in decided)


# ---------------------------------------------------------------- several raters

Ratings = Sequence[Mapping[str, Category]]
"""One mapping for each item, from the name of a rater to the label given; ``None`` and an absent rater are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedRatings:
    """Ratings as numbers. ``item``, ``rater`` and ``category`` are arrays with one entry for each rating."""

    items: int
    """The number of items."""
    raters: tuple[str, ...]
    categories: tuple[Category, ...]
    item: NDArray[np.int64]
    """The index of the item that was rated."""
    rater: NDArray[np.int64]
    """The index of its rater in ``raters``."""
    category: NDArray[np.int64]
    """The index of the label in ``categories``."""

    def count(self) -> Floats:
        """Count the raters who gave each item (row) each category (column)."""
        import numpy as np

        number = len(self.categories)
        cell_counts = np.bincount(self.item * number + self.category, minlength=self.items * number)
        return cell_counts.reshape(self.items, number).astype(float)


def code_ratings(ratings: Ratings, categories: Sequence[Category] | None = None) -> CodedRatings:
    """Convert ratings to numbers. Raises ``UsageError`` for none at all, and for labels that are no categories."""
    import numpy as np

    listed = [
        (item, rater, label) for item, row in enumerate(ratings) for rater, label in row.items() if label is not None
    ]
    if not listed:
        raise UsageError("agreement of raters is not defined: no item has a rating; give at least two ratings of one")
    labels = [label for _, _, label in listed]
    _check_label_types(labels)
    order = order_categories(set(labels), categories)
    category_indexes = {category: index for index, category in enumerate(order)}
    raters = tuple(dict.fromkeys(rater for _, rater, _ in listed))
    rater_indexes = {rater: index for index, rater in enumerate(raters)}
    return CodedRatings(
        items=len(ratings),
        raters=raters,
        categories=order,
        item=np.array([item for item, _, _ in listed]),
        rater=np.array([rater_indexes[rater] for _, rater, _ in listed]),
        category=np.array([category_indexes[label] for label in labels]),
    )


def _check_label_types(labels: Sequence[Category]) -> None:
    """Raise ``UsageError`` for labels of types that cannot be compared, such as true and false beside numbers."""
    check_kinds(set(map(type, labels)))


# ---------------------------------------------------------------- any scale, with missing ratings

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
"""The meaning of differences between labels: none, an order, a distance, or a distance from a true zero."""


def compute_krippendorff_alpha(
    ratings: Ratings, *, scale: Scale = "nominal", categories: Sequence[Category] | None = None
) -> float:
    """Krippendorff's alpha, at most 1; 0 is what chance brings. Items with one rating are left out.

    Raises ``UsageError`` where no item has two ratings, where all ratings are one value, and for values that the scale
    does not have.

    Args:
        ratings: For each item, the raters and what each said.
        scale: What differences between ratings mean: ``nominal``, ``ordinal``, ``interval`` or ``ratio``.
        categories: The order of texts on the ``ordinal`` scale; numbers have their own.
    """
    check_extra()
    import numpy as np

    coded = code_ratings(ratings, categories)
    measure = build_measure(coded, scale)
    value = measure(np.asarray(build_coincidences(coded).sum(axis=0)).reshape(1, -1))[0]
    if not np.isfinite(value):
        raise UsageError(
            "Krippendorff's alpha is not defined: no item has two ratings, or all ratings are one value; "
            "have items rated by another rater, or label items of another category"
        )
    return float(value)


def build_measure(coded: CodedRatings, scale: Scale) -> Callable[[Floats], Floats]:
    """Make the function that computes Krippendorff's alpha on a scale from tables of coincidences.

    Raises ``UsageError`` for labels that the scale does not have.
    """
    check_choice("scale", scale, get_args(Scale))
    values = _read_values(coded.categories, scale)
    return lambda sums: measure_alpha(sums, values, scale)


def build_coincidences(coded: CodedRatings) -> csr_array:
    """Build a sparse matrix with a row for each item: the flat table of coincidences that the item adds.

    A coincidence is a pair of ratings of one item. An item with m ratings, n_c of them in category c, adds
    n_c (n_k - [c = k]) / (m - 1) to the cell (c, k). Items with fewer than two ratings add nothing.
    """
    import numpy as np
    from scipy.sparse import csr_array

    counts = coded.count()
    number = len(coded.categories)
    rows, columns, values = [], [], []
    for item, row in enumerate(counts):
        rating_count = row.sum()
        if rating_count < 2:
            continue
        used = np.flatnonzero(row)  # the categories that the item has
        block = np.outer(row[used], row[used]) - np.diag(row[used])
        cells = (used[:, None] * number + used[None, :]).ravel()
        rows.append(np.full(len(cells), item))
        columns.append(cells)
        values.append(block.ravel() / (rating_count - 1))
    joined = (np.concatenate(arrays) if arrays else np.array([]) for arrays in (values, rows, columns))
    cell_values, row_indexes, column_indexes = joined
    coordinates = (row_indexes.astype(int), column_indexes.astype(int))
    return csr_array((cell_values, coordinates), shape=(coded.items, number * number))


def measure_alpha(sums: Floats, values: Floats, scale: Scale) -> Floats:
    """Compute Krippendorff's alpha of each row, which is one square table of coincidences; NaN where it has none.

    That is 1 - (n - 1) * sum(o_ck * d_ck) / sum(n_c * n_k * d_ck): ``o`` the table, ``n_c`` its totals, ``n`` their
    sum, ``d`` the distance of two values on the scale.
    """
    import numpy as np

    number = len(values)
    tables = sums.reshape(len(sums), number, number)
    totals = tables.sum(axis=1)
    distance = _compute_distances(totals, values, scale)
    pairable = totals.sum(axis=1)
    observed = (tables * distance).sum(axis=(1, 2))
    products = (totals[:, :, None] * totals[:, None, :] * distance).sum(axis=(1, 2))
    expected = divide(products, np.maximum(pairable - 1, 0), 0.0)
    return 1 - divide(observed, expected, np.nan)


def _compute_distances(totals: Floats, values: Floats, scale: Scale) -> Floats:
    """Compute the squared difference of each two values, as Krippendorff's alpha defines it on a scale.

    The array has three dimensions: the table, and the two values. Only on the ordinal scale does the difference depend
    on the table, by how often its values occur (``totals``); on the other scales the first dimension has length 1.
    """
    import numpy as np

    first, second = values[:, None], values[None, :]
    if scale == "nominal":
        return (first != second).astype(float)[None]
    if scale == "interval":
        return ((first - second) ** 2)[None]
    if scale == "ratio":
        return (divide(first - second, first + second, 0.0) ** 2)[None]
    ranks = np.cumsum(totals, axis=1) - totals / 2
    return (ranks[:, :, None] - ranks[:, None, :]) ** 2


def _read_values(categories: Sequence[Category], scale: Scale) -> Floats:
    """Return a number for each category: its index, or on a scale of numbers the category itself.

    Such numbers are scaled down so that their squares do not overflow. Raises ``UsageError`` for categories that the
    scale does not have.
    """
    import numpy as np

    if scale in {"nominal", "ordinal"}:
        return np.arange(len(categories), dtype=float)
    for category in categories:
        if isinstance(category, str):
            raise UsageError(
                f"the {scale} scale needs numbers, got {show(category)}; use scale='ordinal' or 'nominal'",
                argument="scale",
            )
        check_score(category or 0)
        if scale == "ratio" and category is not None and category < 0:
            raise UsageError(
                f"the ratio scale has no value below 0, got {show(category)}; use scale='interval'", argument="scale"
            )
    values = np.array([float(category or 0) for category in categories])
    if scale == "interval":  # neither a shift nor another unit changes alpha, and squares of large numbers overflow
        values -= values.min()
        return values / (values.max() or 1.0)
    # Divided by a power of two, which rounds nothing away.
    return np.ldexp(values, -int(np.frexp(values.max())[1]))
