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
    """The table without undecided, which has no place in an order; raises ``UsageError`` if nothing remains."""
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
    """Explain why no coefficient can be computed."""
    used = {
        place
        for counts in (confusion.truth_counts, confusion.judge_counts)
        for place, count in enumerate(counts)
        if count
    }
    word = "one category" if len(used) == 1 else "too few categories"
    return f"both sides use {word}, so chance alone would agree always; label items of another category"


def measure_cohen(tables: Floats, weights: Weights | None = None) -> Floats:
    """Cohen's kappa of each table; NaN where it is not defined."""
    import numpy as np

    number = tables.shape[1]
    far = np.abs(np.arange(number)[:, None] - np.arange(number)[None, :]).astype(float)
    apart = far**2 if weights == "quadratic" else far if weights else (far > 0).astype(float)
    items = tables.sum(axis=(1, 2))
    seen = divide(np.einsum("tij,ij->t", tables, apart), items, np.nan)
    expected = np.einsum("ti,tj,ij->t", tables.sum(axis=2), tables.sum(axis=1), apart, optimize=True)
    expected = divide(expected, items**2, np.nan)
    return 1 - divide(seen, expected, np.nan)


def measure_gwet(tables: Floats) -> Floats:
    """Gwet's AC1 of each table; NaN where it is not defined."""
    import numpy as np

    seen, pooled = _measure_seen(tables)
    number = tables.shape[1]
    if number == 1:
        return np.full(len(tables), np.nan)
    return _correct_for_chance(seen, (pooled * (1 - pooled)).sum(axis=1) / (number - 1))


def _measure_seen(tables: Floats) -> tuple[Floats, Floats]:
    """The share of agreement, and the mean share of each category, of each table."""
    import numpy as np

    items = tables.sum(axis=(1, 2))
    pooled = (tables.sum(axis=1) + tables.sum(axis=2)) / 2
    return divide(np.einsum("tkk->t", tables), items, np.nan), divide(pooled, items[:, None], np.nan)


def _correct_for_chance(seen: Floats, expected: Floats) -> Floats:
    import numpy as np

    return divide(seen - expected, 1 - expected, np.nan)


def can_order(categories: Sequence[Category]) -> bool:
    """Return whether categories have an order of their own: at least two numbers."""
    decided = [category for category in categories if category is not None]
    return len(decided) > 1 and not any(isinstance(category, str) for category in decided)


# ---------------------------------------------------------------- several raters

Ratings = Sequence[Mapping[str, Category]]
"""One mapping for each item, from the name of a rater to the label given; ``None`` and an absent rater are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedRatings:
    """Ratings as numbers: one row for each rating that was given."""

    items: int
    raters: tuple[str, ...]
    categories: tuple[Category, ...]
    item: NDArray[np.int64]
    rater: NDArray[np.int64]
    category: NDArray[np.int64]

    def count(self) -> Floats:
        """Count the raters who gave each item (row) each category (column)."""
        import numpy as np

        number = len(self.categories)
        flat = np.bincount(self.item * number + self.category, minlength=self.items * number)
        return flat.reshape(self.items, number).astype(float)


def code_ratings(ratings: Ratings, categories: Sequence[Category] | None = None) -> CodedRatings:
    """Ratings as numbers. Raises ``UsageError`` for none at all, and for labels that are no categories."""
    import numpy as np

    listed = [
        (item, rater, label) for item, row in enumerate(ratings) for rater, label in row.items() if label is not None
    ]
    if not listed:
        raise UsageError("agreement of raters is not defined: no item has a rating; give at least two ratings of one")
    kinds = [label for _, _, label in listed]
    check_kinds_of(kinds)
    order = order_categories(set(kinds), categories)
    places = {category: place for place, category in enumerate(order)}
    raters = tuple(dict.fromkeys(rater for _, rater, _ in listed))
    names = {rater: place for place, rater in enumerate(raters)}
    return CodedRatings(
        items=len(ratings),
        raters=raters,
        categories=order,
        item=np.array([item for item, _, _ in listed]),
        rater=np.array([names[rater] for _, rater, _ in listed]),
        category=np.array([places[label] for label in kinds]),
    )


def check_kinds_of(labels: Sequence[Category]) -> None:
    """Raise ``UsageError`` unless the types of labels can be told from each other."""
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
    """The function from coincidences to alpha, on a scale. Raises ``UsageError`` for labels that the scale lacks."""
    check_choice("scale", scale, get_args(Scale))
    values = _read_values(coded.categories, scale)
    return lambda sums: measure_alpha(sums, values, scale)


def build_coincidences(coded: CodedRatings) -> csr_array:
    """Build what each item adds to the coincidences: n_c (n_k - [c = k]) / (m - 1), one row for each item."""
    import numpy as np
    from scipy.sparse import csr_array

    counts = coded.count()
    number = len(coded.categories)
    rows, columns, values = [], [], []
    for item, row in enumerate(counts):
        rated = row.sum()
        if rated < 2:
            continue
        used = np.flatnonzero(row)
        block = np.outer(row[used], row[used]) - np.diag(row[used])
        places = (used[:, None] * number + used[None, :]).ravel()
        rows.append(np.full(len(places), item))
        columns.append(places)
        values.append(block.ravel() / (rated - 1))
    flat = (np.concatenate(item) if item else np.array([]) for item in (values, rows, columns))
    cell_values, row_places, column_places = flat
    where = (row_places.astype(int), column_places.astype(int))
    return csr_array((cell_values, where), shape=(coded.items, number * number))


def measure_alpha(sums: Floats, values: Floats, scale: Scale) -> Floats:
    """Compute Krippendorff's alpha of each row, which is one square table of coincidences; NaN where it has none.

    That is 1 - (n - 1) * sum(o_ck * d_ck) / sum(n_c * n_k * d_ck): ``o`` the table, ``n_c`` its totals, ``n`` their
    sum, ``d`` the distance of two values on the scale.
    """
    import numpy as np

    number = len(values)
    tables = sums.reshape(len(sums), number, number)
    totals = tables.sum(axis=1)
    distance = _measure_apart(totals, values, scale)
    pairable = totals.sum(axis=1)
    observed = (tables * distance).sum(axis=(1, 2))
    products = (totals[:, :, None] * totals[:, None, :] * distance).sum(axis=(1, 2))
    expected = divide(products, np.maximum(pairable - 1, 0), 0.0)
    return 1 - divide(observed, expected, np.nan)


def _measure_apart(totals: Floats, values: Floats, scale: Scale) -> Floats:
    """Compute the squared difference of each two values, as Krippendorff's alpha has it, for each table or for all.

    On the ordinal scale it depends on how often values occur; on the others the first dimension has length 1.
    """
    import numpy as np

    one, other = values[:, None], values[None, :]
    if scale == "nominal":
        return (one != other).astype(float)[None]
    if scale == "interval":
        return ((one - other) ** 2)[None]
    if scale == "ratio":
        return (divide(one - other, one + other, 0.0) ** 2)[None]
    ranks = np.cumsum(totals, axis=1) - totals / 2
    return (ranks[:, :, None] - ranks[:, None, :]) ** 2


def _read_values(categories: Sequence[Category], scale: Scale) -> Floats:
    """Return the place of each category, or on a scale of numbers its number, in a unit that no square overflows.

    Raises ``UsageError``.
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
    if scale == "interval":  # neither a shift nor another unit changes it, and squares of large numbers overflow
        values -= values.min()
        return values / (values.max() or 1.0)
    # A power of two rounds nothing away.
    return np.ldexp(values, -int(np.frexp(values.max())[1]))
