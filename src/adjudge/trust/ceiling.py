"""The ceiling: how well people agree with each other, which is the most that agreement with them can mean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.record import Layout, write_record
from adjudge.trust.coefficients import (
    CodedRatings,
    Ratings,
    Scale,
    build_coincidences,
    build_measure,
    code_ratings,
    measure_cohen,
)
from adjudge.trust.confusion import Category
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import Estimate, Share
from adjudge.trust.resampling import RESAMPLES, check_resampling, make_estimate, number_groups, resample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from adjudge.trust.extra import Floats

LEAST_ITEMS = 10
"""The fewest items that two people must both have rated before their kappa counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterPair:
    """Two raters, on the items that both rated."""

    _layout: ClassVar[Layout] = Layout(last=("agreement",))

    first: str
    """One rater."""
    second: str
    """The other rater."""
    agreement: Share
    """The share of items on which both agree."""
    kappa: float | None
    """Cohen's kappa; ``None`` where both gave one category alone."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The agreement of raters with each other."""

    _layout: ClassVar[Layout] = Layout(last=("pairs",))

    items: int
    """Items with at least two ratings."""
    raters: tuple[str, ...]
    """The raters, by name."""
    pairs: tuple[RaterPair, ...]
    """Each two raters with enough items in common."""
    pairs_left_out: int
    """Pairs with too few items in common."""
    agreement: Estimate
    """The mean over the pairs of their shares of agreement."""
    kappa: Estimate
    """The mean over the pairs of Cohen's kappa (R. J. Light, 1971), over the pairs for which it is defined."""
    krippendorff_alpha: Estimate
    """Krippendorff's alpha, over all ratings."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_ceiling(
    ratings: Ratings,
    *,
    scale: Scale = "nominal",
    categories: Sequence[Category] | None = None,
    groups: Sequence[Hashable] | None = None,
    least_items: int = LEAST_ITEMS,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Ceiling:
    """Measure how well raters agree: pairs, the means over pairs, and Krippendorff's alpha.

    Intervals come from a bootstrap of items, or of groups. A coefficient that the data do not define has no value and a
    note. Raises ``UsageError`` where no two raters have ``least_items`` items in common.

    Args:
        ratings: For each item, the raters and what each said.
        scale: What differences between ratings mean, for Krippendorff's alpha: ``nominal``, ``ordinal``, ``interval``
            or ``ratio``.
        categories: The order of texts on the ``ordinal`` scale.
        groups: The group of each item; whole groups are then drawn. ``None``: each item is for itself.
        least_items: How many items two raters need in common, from 1 on; a pair with fewer is left out.
        seed: What the random draws begin with; the same seed gives the same limits.
        resamples: How many times the bootstrap draws.
    """
    check_extra()
    check_resampling(seed, resamples)
    check_whole_number("least_items", least_items, least=1)
    coded = code_ratings(ratings, categories)
    group_numbers, group_count = number_groups(groups, coded.items)
    bootstrap = _Bootstrap(coded, group_numbers, group_count, seed=seed, resamples=resamples)
    pairs = _find_pairs(coded)
    large_pairs = {raters: common for raters, common in pairs.items() if len(common.items) >= least_items}
    if not large_pairs:
        raise UsageError(
            f"no two of {len(coded.raters)} raters have {least_items} items in common; have the same items rated by "
            "two people, or lower least_items"
        )
    agreement, kappa = bootstrap.estimate_pairs(list(large_pairs.values()))
    return Ceiling(
        items=int((coded.count().sum(axis=1) > 1).sum()),
        raters=coded.raters,
        pairs=tuple(_make_pair(coded, raters, common) for raters, common in large_pairs.items()),
        pairs_left_out=len(pairs) - len(large_pairs),
        agreement=agreement,
        kappa=kappa,
        krippendorff_alpha=bootstrap.estimate_alpha(scale),
    )


class PairItems(NamedTuple):
    """The items that two raters have in common."""

    items: NDArray[np.int64]
    """The indexes of these items."""
    cells: NDArray[np.int64]
    """The cell of the two raters' confusion table that each item falls into, numbered row by row."""


def _find_pairs(coded: CodedRatings) -> Mapping[tuple[int, int], PairItems]:
    """Find the items that each two raters have both rated, by the numbers of the raters.

    Pairs of raters without such an item are left out.
    """
    import numpy as np

    category_count = len(coded.categories)
    grid = np.full((len(coded.raters), coded.items), -1)  # a category for each rater and item; -1 is not rated
    grid[coded.rater, coded.item] = coded.category
    pair_items = {}
    for first, second in combinations(range(len(coded.raters)), 2):
        common = np.flatnonzero((grid[first] >= 0) & (grid[second] >= 0))
        if len(common):
            cells = grid[first, common] * category_count + grid[second, common]
            pair_items[first, second] = PairItems(common, cells)
    return pair_items


def _make_pair(coded: CodedRatings, raters: tuple[int, int], common: PairItems) -> RaterPair:
    """Compute the agreement of two raters, given by their numbers, on the items they have in common."""
    import numpy as np

    size = len(coded.categories)
    table = np.bincount(common.cells, minlength=size * size).reshape(1, size, size).astype(float)
    kappa = float(measure_cohen(table)[0])  # not finite where both gave one category alone
    first, second = raters
    return RaterPair(
        first=coded.raters[first],
        second=coded.raters[second],
        agreement=Share(count=int(np.trace(table[0])), of=len(common.items)),
        kappa=kappa if np.isfinite(kappa) else None,
    )


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    """A bootstrap that draws items with replacement, or whole groups of them."""

    coded: CodedRatings
    group: NDArray[np.int64]
    """The number of each item's group."""
    groups: int
    """The number of groups; as many as items where each item is for itself."""
    seed: int
    resamples: int

    def estimate_pairs(self, pairs: Sequence[PairItems]) -> tuple[Estimate, Estimate]:
        """Estimate the mean over pairs of raters of their agreement, and of their Cohen's kappa."""
        import numpy as np
        from scipy.sparse import csr_array

        category_count = len(self.coded.categories)
        table_size = category_count * category_count
        items = np.concatenate([common.items for common in pairs])
        # The tables of all pairs stand one behind another, so each pair's cells are moved by those before it.
        cells = np.concatenate([common.cells + index * table_size for index, common in enumerate(pairs)])
        shape = (self.coded.items, len(pairs) * table_size)
        rows = csr_array((np.ones(len(items)), (items, cells)), shape=shape)

        def measure(sums: Floats) -> Floats:
            """Return for each resample the mean agreement and the mean kappa of the pairs in which they are defined."""
            tables = sums.reshape(-1, category_count, category_count)
            shares = np.einsum("tkk->t", tables) / np.maximum(tables.sum(axis=(1, 2)), 1)
            shares[tables.sum(axis=(1, 2)) == 0] = np.nan
            measures = np.stack([shares, measure_cohen(tables)]).reshape(2, len(sums), len(pairs))
            defined = np.isfinite(measures)
            total = np.where(defined, measures, 0.0).sum(axis=2)
            with np.errstate(invalid="ignore"):
                return (total / defined.sum(axis=2)).T

        reason = "in each pair both raters gave one category alone"
        agreement, kappa = self._estimate(rows, measure, len(np.unique(items)), reason)
        return agreement, kappa

    def estimate_alpha(self, scale: Scale) -> Estimate:
        """Estimate Krippendorff's alpha over all ratings."""
        measure = build_measure(self.coded, scale)
        rows = build_coincidences(self.coded)
        item_count = int((rows.sum(axis=1) > 0).sum())  # items with two ratings or more
        return self._estimate(rows, _return_column(measure), item_count, "one category alone")[0]

    def _estimate(
        self, rows: Floats | csr_array, measure: Callable[[Floats], Floats], item_count: int, reason: str
    ) -> list[Estimate]:
        """Estimate each statistic that ``measure`` computes of sums of ``rows``, which has a row for each item.

        Whole groups of items are drawn for the intervals. ``item_count`` is the number of items that the estimates
        name, and ``reason`` is why a statistic may have no value.
        """
        import numpy as np
        from scipy.sparse import csr_array

        # Multiplied by this, the rows of a group's items are added up.
        group_indicator = csr_array((np.ones(len(self.group)), (self.group, np.arange(len(self.group)))))
        values = measure(np.asarray(rows.sum(axis=0)).reshape(1, -1))[0]
        resampled = resample(group_indicator @ rows, measure, seed=self.seed, resamples=self.resamples)
        method = "bootstrap of items" if self.groups == self.coded.items else "bootstrap of groups"
        return [
            make_estimate(float(value), item_count, resampled[:, column], self.groups, method, reason=reason)
            for column, value in enumerate(values)
        ]


def _return_column(measure: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return a function like ``measure`` whose values are a table of one column, as ``resample`` needs them."""
    return lambda sums: measure(sums)[:, None]
