"""Krippendorff's alpha: agreement of any number of raters on any scale, where ratings may be missing.

alpha = 1 - observed disagreement / expected disagreement, from coincidences: how often two ratings of one item are the
two values. Source: K. Krippendorff, "Content Analysis", 2004, chapter 11, and "Computing Krippendorff's
alpha-reliability", 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import show
from adjudge.trust.confusion import Category, divide
from adjudge.trust.extra import check_extra
from adjudge.trust.ratings import CodedRatings, Ratings, code_ratings
from adjudge.trust.scores import check_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_array

    from adjudge.trust.extra import Floats

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
"""The meaning of differences between labels: none, an order, a distance, or a distance from a true zero."""


def compute_krippendorff_alpha(
    ratings: Ratings, *, scale: Scale = "nominal", categories: Sequence[Category] | None = None
) -> float:
    """Krippendorff's alpha, at most 1; 0 is what chance brings. Items with one rating are left out.

    ``categories`` gives the order of texts on the ``ordinal`` scale; numbers have their own. Raises ``UsageError``
    where no item has two ratings, where all ratings are one value, and for values that the scale does not have.
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
    """Alpha of each row of coincidences; NaN where it is not defined."""
    import numpy as np

    number = len(values)
    tables = sums.reshape(len(sums), number, number)
    totals = tables.sum(axis=1)
    apart = _measure_apart(totals, values, scale)
    items = totals.sum(axis=1)
    seen = (tables * apart).sum(axis=(1, 2))
    expected = (totals[:, :, None] * totals[:, None, :] * apart).sum(axis=(1, 2))
    expected = divide(expected, np.maximum(items - 1, 0), 0.0)
    return 1 - divide(seen, expected, np.nan)


def _measure_apart(totals: Floats, values: Floats, scale: Scale) -> Floats:
    """The squared difference of each two values; on the ordinal scale it depends on how often values occur."""
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
