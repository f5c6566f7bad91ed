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
    draw = _Drawing(coded, *number_groups(groups, coded.items), seed=seed, resamples=resamples)
    pairs = _find_pairs(coded)
    large_pairs = {key: items for key, items in pairs.items() if len(items[0]) >= least_items}
    if not large_pairs:
        raise UsageError(
            f"no two of {len(coded.raters)} raters have {least_items} items in common; have the same items rated by "
            "two people, or lower least_items"
        )
    agreement, kappa = draw.estimate_pairs(list(large_pairs.values()))
    return Ceiling(
        items=int((coded.count().sum(axis=1) > 1).sum()),
        raters=coded.raters,
        pairs=tuple(_make_pair(coded, raters, common) for raters, common in large_pairs.items()),
        pairs_left_out=len(pairs) - len(large_pairs),
        agreement=agreement,
        kappa=kappa,
        krippendorff_alpha=draw.estimate_alpha(scale),
    )


class PairItems(NamedTuple):
    """The items that two raters have in common."""

    items: NDArray[np.int64]
    cells: NDArray[np.int64]
    """The cell of their table that each item falls into."""


def _find_pairs(coded: CodedRatings) -> Mapping[tuple[int, int], PairItems]:
    """Find, for each two raters, the items that both rated, and for each of these the cell of their table."""
    import numpy as np

    number = len(coded.categories)
    grid = np.full((len(coded.raters), coded.items), -1)
    grid[coded.rater, coded.item] = coded.category
    pair_items = {}
    for first, second in combinations(range(len(coded.raters)), 2):
        common = np.flatnonzero((grid[first] >= 0) & (grid[second] >= 0))
        if len(common):
            pair_items[first, second] = PairItems(common, grid[first, common] * number + grid[second, common])
    return pair_items


def _make_pair(coded: CodedRatings, raters: tuple[int, int], common: PairItems) -> RaterPair:
    """Make the agreement of two raters, named by number; ``kappa`` is ``None`` where it is not defined."""
    import numpy as np

    number = len(coded.categories)
    table = np.bincount(common.cells, minlength=number * number).reshape(1, number, number).astype(float)
    kappa = float(measure_cohen(table)[0])
    first, second = raters
    return RaterPair(
        first=coded.raters[first],
        second=coded.raters[second],
        agreement=Share(count=int(np.trace(table[0])), of=len(common.items)),
        kappa=kappa if np.isfinite(kappa) else None,
    )


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The drawing of items, or groups of them, again and again."""

    coded: CodedRatings
    group: NDArray[np.int64]
    groups: int
    seed: int
    resamples: int

    def estimate_pairs(self, pairs: Sequence[PairItems]) -> tuple[Estimate, Estimate]:
        """Estimate the mean agreement of pairs of raters, and the mean of Cohen's kappa."""
        import numpy as np
        from scipy.sparse import csr_array

        number = len(self.coded.categories)
        items = np.concatenate([common.items for common in pairs])
        cells = np.concatenate([common.cells + place * number * number for place, common in enumerate(pairs)])
        shape = (self.coded.items, len(pairs) * number * number)
        rows = csr_array((np.ones(len(items)), (items, cells)), shape=shape)

        def measure(sums: Floats) -> Floats:
            """Return for each resample the mean agreement and the mean kappa of the pairs in which they are defined."""
            tables = sums.reshape(-1, number, number)
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
        measure = build_measure(self.coded, scale)
        rows = build_coincidences(self.coded)
        return self._estimate(rows, _as_column(measure), int((rows.sum(axis=1) > 0).sum()), "one category alone")[0]

    def _estimate(
        self, rows: Floats | csr_array, measure: Callable[[Floats], Floats], of: int, reason: str
    ) -> list[Estimate]:
        """Estimate each statistic that ``measure`` computes of sums of ``rows``, which has a row for each item.

        Whole groups of items are drawn for the intervals. ``of`` is the number of items that the estimates name.
        """
        import numpy as np
        from scipy.sparse import csr_array

        together = csr_array((np.ones(len(self.group)), (self.group, np.arange(len(self.group)))))
        values = measure(np.asarray(rows.sum(axis=0)).reshape(1, -1))[0]
        drawn = resample(together @ rows, measure, seed=self.seed, resamples=self.resamples)
        named = "bootstrap of items" if self.groups == self.coded.items else "bootstrap of groups"
        return [
            make_estimate(float(value), of, drawn[:, at], self.groups, named, reason=reason)
            for at, value in enumerate(values)
        ]


def _as_column(measure: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda sums: measure(sums)[:, None]
