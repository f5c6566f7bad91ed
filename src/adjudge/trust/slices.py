"""Agreement by kind of item (a language, a topic, a product): the kind with which the judge does worst, named.

Among twenty kinds one looks bad by chance. So each kind is tested against all the others, and the p-values are
adjusted for the number of tests (Holm 1979).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.record import Layout, write_record
from adjudge.trust.confusion import Category, check_labels
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import Estimate, find_interval
from adjudge.trust.multiplicity import adjust_holm
from adjudge.trust.regression import fit_robustly
from adjudge.trust.resampling import Clusters, add_up, estimate_clustered_share, number_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

LEAST_ITEMS = 10
"""The fewest items of a kind that are tested."""

LEAST_GROUPS = 5
"""The fewest groups on either side: errors that follow the groups come out much too small where one group decides."""

ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One kind of item, compared with all the others."""

    _layout: ClassVar[Layout] = Layout(last=("is_worse",))

    name: str
    """The value that its items have in common."""
    accuracy: Estimate
    """The share of its items on which the judge agrees with the truth."""
    rest: float
    """The accuracy on all other items."""
    p_value: float | None
    """Two-sided, that this kind is like the others; ``None`` with too few items or groups to test."""
    adjusted: float | None
    """The p-value adjusted for the number of kinds tested (Holm)."""

    @property
    def is_worse(self) -> bool:
        """Return whether the judge does worse here than elsewhere, beyond chance at 5 % (Holm)."""
        return self.adjusted is not None and self.adjusted < ALPHA and (self.accuracy.value or 0.0) < self.rest

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """Agreement by kind of item."""

    _layout: ClassVar[Layout] = Layout(
        members=("worst", "tests", "slices"),
        computed={"worst": lambda slices: slices.worst.name if slices.worst else None},
    )

    slices: tuple[Slice, ...]
    """From the lowest accuracy to the highest; kinds with too few items last."""
    tests: int
    """The number of kinds that were tested."""

    @property
    def worst(self) -> Slice | None:
        """The kind with the lowest accuracy among those tested; ``is_worse`` says whether that is more than chance."""
        return self.slices[0] if self.tests else None

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_slices(
    judged: Sequence[Category],
    truth: Sequence[Category],
    kinds: Sequence[str],
    *,
    groups: Sequence[Hashable] | None = None,
    least_items: int = LEAST_ITEMS,
) -> Slices:
    """Compare agreement on each kind of item with agreement on all others.

    Fisher's exact test, or with ``groups`` a t test with errors that follow the groups. Kinds of fewer than 5 groups
    are shown and not tested. Raises ``UsageError`` for lists of different length, and for fewer than two kinds.

    Args:
        judged: What the judge says of each item.
        truth: What people say of each item, in the same order.
        kinds: The kind of each item.
        groups: The group of each item, where several come from one. ``None``: each item is for itself.
        least_items: How many items a kind needs to be tested, from 2 on; one with fewer is shown and not tested.
    """
    check_extra()
    import numpy as np

    check_whole_number("least_items", least_items, least=2)
    if not len(judged) == len(truth) == len(kinds):
        raise UsageError(
            f"judged, truth and kinds have {len(judged):,}, {len(truth):,} and {len(kinds):,} items; give one of each",
            argument="kinds",
        )
    check_labels((*judged, *truth))
    if any(not isinstance(name, str) for name in kinds):
        raise UsageError("a kind is a text; name the kind of each item, also of those that have none")
    right = np.array([judge == true for judge, true in zip(judged, truth, strict=True)], dtype=float)
    names = list(dict.fromkeys(kinds))
    if len(names) < 2:
        raise UsageError(f"a comparison of kinds needs at least 2, got {len(names)}; give items of another kind")
    numbers = {name: number for number, name in enumerate(names)}
    item_kinds = np.array([numbers[name] for name in kinds])  # the number of each item's kind
    clusters = None if groups is None else number_groups(groups, len(right))
    p_values = [_test_kind(right, item_kinds == number, clusters, least_items) for number in range(len(names))]
    tested = [number for number, p_value in enumerate(p_values) if p_value is not None]
    adjusted = dict(zip(tested, adjust_holm([p_values[number] or 0.0 for number in tested]), strict=True))
    slices = [
        Slice(
            name=name,
            accuracy=_estimate_accuracy(right, item_kinds == number, clusters),
            rest=float(right[item_kinds != number].mean()),
            p_value=p_values[number],
            adjusted=adjusted.get(number),
        )
        for number, name in enumerate(names)
    ]
    slices.sort(key=lambda kind_slice: (kind_slice.p_value is None, kind_slice.accuracy.value, kind_slice.name))
    return Slices(slices=tuple(slices), tests=len(tested))


def _test_kind(right: Floats, inside: NDArray[np.bool_], clusters: Clusters | None, least: int) -> float | None:
    """Compute the p-value of the hypothesis that the judge is right on items of one kind as often as on the others.

    ``right`` is 1 for each item on which it is right, else 0; ``inside`` marks the items of the kind. ``None`` where
    either have fewer than ``least`` items, or too few groups.
    """
    import numpy as np
    from scipy.stats import fisher_exact

    if min(inside.sum(), (~inside).sum()) < least:
        return None
    if clusters is None:
        table = [[int(right[marked].sum()), int((1 - right[marked]).sum())] for marked in (inside, ~inside)]
        return min(1.0, float(fisher_exact(table)[1]))
    codes, _ = clusters
    if min(len(np.unique(codes[inside])), len(np.unique(codes[~inside]))) < LEAST_GROUPS:
        return None
    design = np.column_stack([np.ones(len(right)), inside.astype(float)])
    return float(fit_robustly(design, right, clusters).find_p_values()[1])


def _estimate_accuracy(right: Floats, inside: NDArray[np.bool_], clusters: Clusters | None) -> Estimate:
    """Estimate the share of right verdicts among the items that ``inside`` marks."""
    import numpy as np

    count, number = int(right[inside].sum()), int(inside.sum())
    if clusters is None:
        low, high = find_interval(count, number)
        return Estimate(value=count / number, of=number, low=low, high=high, method="Wilson")
    codes, groups = clusters
    counts = add_up(right[inside], codes[inside], groups)
    return estimate_clustered_share(counts, add_up(np.ones(number), codes[inside], groups))
