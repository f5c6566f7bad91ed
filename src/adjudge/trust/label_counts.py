"""Labelled cases as counts: by the judge's verdict, by stratum and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.text import show
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LARGEST_COUNT

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

HeapVerdict = Literal["passed", "failed", "undecided"]

MOST_STRATA = 6
"""With more, intervals cover too much: their heaps hold too few labels each."""

FEWEST_IN_HEAP = 5
"""A stratum with a heap of fewer labels becomes one heap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heap:
    """Cases of a run that the judge treated alike, with the labels among them.

    A run has one for each verdict; with several judges or with strata, one for each combination. Within a heap each
    case must have had the same chance of being labelled. Raises ``UsageError`` for counts that cannot be.

    Args:
        verdict: Of the judge whose rate is corrected.
        cases: Cases of the run in this heap, labelled ones included.
        good: Labelled cases that people passed.
        bad: Labelled cases that people failed.
        unresolved: Labelled cases whose truth people did not settle: they could not tell, or were split.
        stratum: Part of the run from which labels were drawn with a probability of its own.
    """

    verdict: HeapVerdict
    """Of the judge whose rate is corrected."""
    cases: int
    """Cases of the run in this heap, labelled ones included."""
    good: int = 0
    """Labelled cases that people passed."""
    bad: int = 0
    """Labelled cases that people failed."""
    unresolved: int = 0
    """Labelled cases whose truth people did not settle: they could not tell, or were split."""
    stratum: str | None = None
    """Part of the run from which labels were drawn with a probability of its own."""

    def __post_init__(self) -> None:
        for name in ("cases", "good", "bad", "unresolved"):
            object.__setattr__(self, name, read_count(getattr(self, name), name, where="a heap"))
        if self.stratum is not None and not isinstance(self.stratum, str):
            raise UsageError(f"the stratum of a heap is a text or None, got {show(self.stratum)}; name it")
        if self.verdict not in get_args(HeapVerdict):
            verdicts = ", ".join(get_args(HeapVerdict))
            raise UsageError(f"the verdict of a heap is one of {verdicts}; got {self.verdict!r}", argument="verdict")
        if self.labels > self.cases:
            raise UsageError(
                f"a heap of {self.cases:,} cases cannot have {self.labels:,} labels; cases include labelled ones",
                argument="labels",
            )

    @property
    def labels(self) -> int:
        """Labelled cases, with the unresolved ones."""
        return self.good + self.bad + self.unresolved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupCounts:
    """Labelled cases by group: a row for each group, a column for each heap. `count_groups` makes it."""

    good: Floats
    """Labelled cases that people passed."""
    bad: Floats
    """Labelled cases that people failed."""
    unresolved: Floats
    """Labelled cases whose truth people did not settle."""


def count_groups(
    groups: Sequence[str | int], heaps: Sequence[int], truths: Sequence[bool | None], *, columns: int
) -> GroupCounts:
    """Labelled cases counted by group, from three lists with an entry for each labelled case.

    Needs ``adjudge[trust]``; raises ``UsageError`` for lists of different lengths and for places that do not exist.

    Args:
        groups: The group of each labelled case.
        heaps: The heap of each labelled case, as a place in the list of heaps.
        truths: Whether each is good; ``None`` is unresolved.
        columns: How many heaps that list has.
    """
    check_extra()
    import numpy as np

    if not len(groups) == len(heaps) == len(truths):
        raise UsageError(
            f"each labelled case needs a group, a heap and a truth; got {len(groups)}, {len(heaps)} and {len(truths)}"
        )
    for name in groups:
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            raise UsageError(
                f"a group is a text or a whole number, got {show(name)}; name one for each case of its own"
            )
    for truth in truths:
        # A text such as "cannot_tell" or "false" is true in Python, and would count as good.
        if truth is not None and not isinstance(truth, bool):
            raise UsageError(f"a truth is True, False or None for unresolved, got {show(truth)}; convert it")
    group_numbers: dict[str | int, int] = {}
    rows = np.asarray([group_numbers.setdefault(name, len(group_numbers)) for name in groups], dtype=np.int64)
    heap_indexes = np.asarray(heaps)
    if len(rows) and not (heap_indexes.dtype.kind in "iu" and heap_indexes.min() >= 0 and heap_indexes.max() < columns):
        raise UsageError(f"heaps are places from 0 to {columns - 1}; got {heap_indexes.min()} to {heap_indexes.max()}")
    kinds = np.asarray([2 if truth is None else int(not truth) for truth in truths], dtype=np.int64)  # good is 0, bad 1
    cells = (rows * columns + heap_indexes.astype(np.int64)) * 3 + kinds
    counts = np.bincount(cells, minlength=len(group_numbers) * columns * 3)
    table = counts.reshape(len(group_numbers), columns, 3).astype(float)
    return GroupCounts(good=table[..., 0], bad=table[..., 1], unresolved=table[..., 2])


def check_heaps(heaps: Sequence[Heap], groups: GroupCounts | None = None) -> None:
    """Raise ``UsageError`` unless these counts can be those of a run, and those of the groups add up to them."""
    if not sum(heap.cases for heap in heaps):
        raise UsageError("a rate needs a run of one case or more; the heaps are empty")
    strata = len({heap.stratum for heap in heaps})
    if strata > MOST_STRATA:
        raise UsageError(f"a run may have up to {MOST_STRATA} strata, and this has {strata}; merge some of them")
    if groups is not None:
        _check_groups(heaps, groups)


def make_strata(sizes: Mapping[str, int], counted: Mapping[tuple[str, bool | None], int]) -> list[Heap]:
    """Make a heap of each stratum of a run, from the strata's sizes and their labelled cases.

    ``counted`` has the number of labelled cases by stratum and by whether they are good; ``None`` is unresolved.
    Every heap gets the verdict ``passed``, which means nothing here: the strata of a plan are of like verdicts already.
    """
    return [
        Heap(
            verdict="passed",
            cases=size,
            good=counted.get((name, True), 0),
            bad=counted.get((name, False), 0),
            unresolved=counted.get((name, None), 0),
            stratum=name,
        )
        for name, size in sizes.items()
    ]


def merge_sparse(heaps: Sequence[Heap], groups: GroupCounts | None) -> tuple[Sequence[Heap], GroupCounts | None]:
    """Merge the heaps of a stratum into one where one of them has fewer than 5 labels; do the same to ``groups``.

    Merging is right whatever the labels are, since within a stratum each case had the same chance of being drawn.
    Without several strata nothing is merged.
    """
    if len({heap.stratum for heap in heaps}) < 2:
        return heaps, groups
    import numpy as np

    strata = list(dict.fromkeys(heap.stratum for heap in heaps))
    merged_indexes: list[list[int]] = []  # for each new heap, the indexes of those that it is made of
    for stratum in strata:
        indexes = [index for index, heap in enumerate(heaps) if heap.stratum == stratum and heap.cases]
        is_sparse = any(heaps[index].labels < min(FEWEST_IN_HEAP, heaps[index].cases) for index in indexes)
        merged_indexes += [indexes] if is_sparse else [[index] for index in indexes]
    merged_heaps = [_merge_heaps([heaps[index] for index in indexes]) for indexes in merged_indexes]
    if groups is None:
        return merged_heaps, None
    tables = [
        np.stack([table[:, indexes].sum(axis=-1) for indexes in merged_indexes], axis=-1)
        for table in (groups.good, groups.bad, groups.unresolved)
    ]
    return merged_heaps, GroupCounts(good=tables[0], bad=tables[1], unresolved=tables[2])


def _merge_heaps(heaps: Sequence[Heap]) -> Heap:
    """Make one heap of several of a stratum, by adding up their counts."""
    # The verdict means nothing any more; the judge's own rate is counted before heaps are merged.
    return Heap(
        verdict=heaps[0].verdict,
        cases=sum(heap.cases for heap in heaps),
        good=sum(heap.good for heap in heaps),
        bad=sum(heap.bad for heap in heaps),
        unresolved=sum(heap.unresolved for heap in heaps),
        stratum=heaps[0].stratum,
    )


def _check_groups(heaps: Sequence[Heap], groups: GroupCounts) -> None:
    """Raise ``UsageError`` unless the counts of the groups add up to those of the heaps."""
    for name in ("good", "bad", "unresolved"):
        table = getattr(groups, name)
        expected = [getattr(heap, name) for heap in heaps]
        if table.ndim != 2 or table.sum(axis=0).tolist() != expected:
            raise UsageError(
                f"{name} of the groups must add up to the heaps' {expected}; use count_groups on the labels"
            )


def read_count(value: object, name: str, *, where: str | None = None) -> int:
    """Check a count, and return it as Python's own integer, also if it is one of numpy's. Raises ``UsageError``."""
    plain = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
    return check_whole_number(name, plain, least=0, most=int(LARGEST_COUNT), where=where)
