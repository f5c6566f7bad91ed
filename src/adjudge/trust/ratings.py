"""Several raters: who gave which item which category, and Fleiss' kappa."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.trust.confusion import Category, divide, order_categories
from adjudge.trust.extra import check_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

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
    from adjudge.trust.confusion import check_kinds

    check_kinds(set(map(type, labels)))


def compute_fleiss_kappa(ratings: Ratings, *, categories: Sequence[Category] | None = None) -> float:
    """Fleiss' kappa, from -1 to 1: agreement beyond chance of items that were each rated equally often.

    Raises ``UsageError`` where items have different numbers of ratings, where they have fewer than two, and where all
    ratings are one category. Source: J. L. Fleiss, "Measuring nominal scale agreement among many raters", 1971.
    """
    check_extra()
    import numpy as np

    counts = code_ratings(ratings, categories).count()
    check_equal(counts)
    value = measure_fleiss(build_fleiss_rows(counts).sum(axis=0)[None, :])[0]
    if not np.isfinite(value):
        raise UsageError("Fleiss' kappa is not defined: all ratings are one category; label items of another")
    return float(value)


def check_equal(counts: Floats) -> None:
    """Raise ``UsageError`` unless each item has the same number of ratings, at least two."""
    import numpy as np

    each = np.unique(counts.sum(axis=1)).astype(int).tolist()
    if len(each) > 1:
        raise UsageError(
            f"Fleiss' kappa needs equally many ratings of each item, got {each[0]} to {each[-1]}; "
            "use Krippendorff's alpha, which allows missing ratings"
        )
    if each[0] < 2:
        raise UsageError("Fleiss' kappa needs at least 2 ratings of each item, got 1; ask another rater")


def build_fleiss_rows(counts: Floats) -> Floats:
    """Build what each item adds: itself, the share of its pairs of raters that agree, the shares of categories."""
    import numpy as np

    raters = counts.sum(axis=1, keepdims=True)
    pairs = (counts * (counts - 1)).sum(axis=1, keepdims=True) / (raters * (raters - 1))
    return np.hstack([np.ones_like(raters), pairs, counts / raters])


def measure_fleiss(sums: Floats) -> Floats:
    """Fleiss' kappa of sums of such rows; NaN where it is not defined."""
    import numpy as np

    means = sums[:, 1:] / sums[:, :1]
    expected = (means[:, 1:] ** 2).sum(axis=1)
    # One category alone: its share is a sum of quotients that may miss 1 by rounding.
    alone = (means[:, 1:] > 0).sum(axis=1) < 2
    return divide(means[:, 0] - expected, np.where(alone, 0.0, 1 - expected), np.nan)
