"""The confusion table: how often each label of the judge met each true label, and the shares that follow from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

Category = bool | float | str | None
"""A label: true or false, a number or a text; ``None`` is undecided, a category of its own."""

MOST_CATEGORIES = 200
"""More are no categories; a score with decimals is compared by correlation."""

CHUNK = 65_536
"""Pairs of labels that are in memory at once while they are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts of pairs of labels. Raises ``UsageError`` for a table that is not square or holds no count."""

    _layout: ClassVar[Layout] = Layout(last=("items",))

    categories: tuple[Category, ...]
    """In order: false before true, numbers by size, texts by alphabet, undecided last; or the order that was given."""
    counts: tuple[tuple[int, ...], ...]
    """One row for each true category, one column for each category of the judge."""

    def __post_init__(self) -> None:
        number = len(self.categories)
        if not number or len(self.counts) != number or any(len(row) != number for row in self.counts):
            raise UsageError(f"a table of {number} categories needs {number} rows of {number}; got {show(self.counts)}")
        for count in chain.from_iterable(self.counts):
            check_whole_number("counts", count, least=0, note="the number of pairs")
        check_categories(self.categories)

    @property
    def items(self) -> int:
        """The number of items that were counted."""
        return sum(map(sum, self.counts))

    @property
    def truth_counts(self) -> tuple[int, ...]:
        """Items with each true category."""
        return tuple(map(sum, self.counts))

    @property
    def judge_counts(self) -> tuple[int, ...]:
        """Items to which the judge gave each category."""
        return tuple(map(sum, zip(*self.counts, strict=True)))

    @property
    def agreed(self) -> int:
        """Items on which both have the same category."""
        return sum(row[index] for index, row in enumerate(self.counts))

    def leave_out(self, category: Category, *, side: Literal["truth", "judge", "both"] = "both") -> Confusion:
        """The table without the items that have a category, on either side or on one.

        The category stays in the table while the other side uses it.

        Args:
            category: The category.
            side: Where an item has it: in the ``truth``, with the ``judge``, or in ``both``, which is either.
        """
        left_out = find_category_index(self.categories, category)

        def is_left_out(row: int, column: int) -> bool:
            is_truth, is_verdict = row == left_out and side != "judge", column == left_out and side != "truth"
            return is_truth or is_verdict

        emptied = [
            [0 if is_left_out(row, column) else count for column, count in enumerate(counts)]
            for row, counts in enumerate(self.counts)
        ]
        # Left out on one side alone, the category may have items on the other.
        items_left = sum(emptied[left_out]) + sum(row[left_out] for row in emptied)
        remaining = [index for index in range(len(emptied)) if index != left_out or items_left]
        return Confusion(
            categories=tuple(self.categories[index] for index in remaining),
            counts=tuple(tuple(emptied[row][column] for column in remaining) for row in remaining),
        )

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_confusion(
    judged: Iterable[Category], truth: Iterable[Category], *, categories: Sequence[Category] | None = None
) -> Confusion:
    """Count how often each label of the judge meets each true label, item by item, in memory for one chunk.

    Raises ``UsageError`` for no items, lists of different length, a label outside ``categories``, NaN, more than 200
    categories, and true or false beside numbers, because ``True`` equals 1 in Python.

    Args:
        judged: What the judge says of each item.
        truth: What people say of each item, in the same order.
        categories: The categories in their order, which may have some that no item has; by default those that occur.
            ``None`` (undecided) is added where it occurs.
    """
    return make_confusion_of_pairs(count_pairs(judged, truth), categories)


def make_confusion_of_pairs(
    pairs: Counter[tuple[Category, Category]], categories: Sequence[Category] | None
) -> Confusion:
    """Make the confusion table of counted pairs, each a label of the judge and the true one."""
    order = order_categories(set(chain.from_iterable(pairs)), categories)
    return Confusion(categories=order, counts=tuple(tuple(pairs[judge, true] for judge in order) for true in order))


def count_pairs(judged: Iterable[Category], truth: Iterable[Category]) -> Counter[tuple[Category, Category]]:
    """Count how often each pair (judge, truth) occurs; labels are checked as they come. Raises ``UsageError``."""
    label_types: set[type] = set()
    counts: Counter[tuple[Category, Category]] = Counter()
    pairs = iter(_pair_strictly(judged, truth))
    while chunk := list(islice(pairs, CHUNK)):
        for labels in zip(*chunk, strict=True):  # first the judge's labels of the chunk, then the true ones
            label_types.update(map(type, labels))
        check_kinds(label_types)
        counts.update(chunk)
    if not counts:
        raise UsageError("agreement on no items is not defined; give at least one label of the judge and one true one")
    return counts


def _pair_strictly(judged: Iterable[Category], truth: Iterable[Category]) -> Iterable[tuple[Category, Category]]:
    """Yield both labels of each item. Raises ``UsageError`` for different lengths.

    An error that one of the two iterables raises is passed on as it is, also a ``ValueError``.
    """
    try:
        yield from zip(judged, truth, strict=True)
    except UsageError:  # a ValueError itself
        raise
    except ValueError as error:
        if not str(error).startswith("zip() "):  # raised by one of the two iterables, not for their lengths
            raise
        raise UsageError(
            "judged and truth have different lengths; give one label of each for every item", argument="truth"
        ) from None


def check_kinds(kinds: Iterable[type[object]]) -> None:
    """Raise ``UsageError`` for types that labels cannot have, and for true and false beside numbers."""
    for kind in kinds:
        if not issubclass(kind, bool | int | float | str | type(None)):
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            raise UsageError(f"a label must be true, false, a number, a text or None, got a {name}; convert it")
    has_bools = any(issubclass(kind, bool) for kind in kinds)
    if has_bools and any(issubclass(kind, int | float) and not issubclass(kind, bool) for kind in kinds):
        raise UsageError("labels mix true or false with numbers, and True equals 1 in Python; use one of the two")


def check_categories(categories: Sequence[Category]) -> None:
    """Raise ``UsageError`` unless categories are finite, different from each other and few."""
    check_kinds(set(map(type, categories)))
    for category in categories:
        if isinstance(category, float) and not math.isfinite(category):
            raise UsageError(f"a label must be a finite number, got {category!r}; use None for undecided")
    _check_lookalikes(categories)
    if len(set(categories)) < len(categories):
        raise UsageError(
            f"categories must differ from each other, got {show(tuple(categories))}; name each once",
            argument="categories",
        )
    if len(categories) > MOST_CATEGORIES:
        raise UsageError(
            f"{len(categories):,} different labels are no categories, at most {MOST_CATEGORIES:,} are; "
            f"round the scores, or use make_correlation"
        )


def _check_lookalikes(categories: Sequence[Category]) -> None:
    """Raise ``UsageError`` for a text beside the value that it spells, such as ``"true"`` beside ``True``.

    The two would never agree, and nobody would see why.
    """
    others = [category for category in categories if category is not None and not isinstance(category, str)]
    value_by_spelling = {
        (f"{category:g}" if isinstance(category, float) else show(category)).lower(): category for category in others
    }
    for text in categories:
        if isinstance(text, str) and (value := value_by_spelling.get(text.strip().lower())) is not None:
            raise UsageError(f"the labels {show(text)} and {show(value)} are different, and look alike; convert one")


def check_labels(labels: Iterable[Category]) -> None:
    """Raise ``UsageError`` unless labels can be compared with each other: NaN cannot, as it differs from itself."""
    distinct_labels = set(labels)
    check_kinds(set(map(type, distinct_labels)))
    for label in distinct_labels:
        if isinstance(label, float) and not math.isfinite(label):
            raise UsageError(f"a label must be a finite number, got {label!r}; use None for undecided")
    _check_lookalikes(tuple(distinct_labels))


def order_categories(labels: set[Category], listed: Sequence[Category] | None) -> tuple[Category, ...]:
    """Put the categories in order: as ``listed``, else sorted; undecided comes last where a label is undecided.

    Raises ``UsageError`` for a label that is not listed, and for labels that are no categories.
    """
    undecided = {None} & labels
    if listed is not None:
        check_categories(listed)
        for category in sorted(labels - {None} - set(listed), key=str):
            raise UsageError(f"the label {show(category)} is none of categories, {show(tuple(listed))}; add it")
        return (*listed, *(undecided - set(listed)))
    check_categories(tuple(labels))
    decided = [category for category in labels if category is not None]
    ordered = sorted(decided, key=lambda label: (isinstance(label, str), label))
    return (*ordered, *undecided)


def has_category(categories: Sequence[Category], category: Category) -> bool:
    """Return whether a table has a category. The score 1 is not true, though they are equal in Python."""
    return any(other == category and isinstance(other, bool) == isinstance(category, bool) for other in categories)


def find_category_index(categories: Sequence[Category], category: Category) -> int:
    """Find the index of a category; raise ``UsageError`` for one that the table does not have."""
    for index, other in enumerate(categories):
        if other == category and isinstance(other, bool) == isinstance(category, bool):
            return index
    raise UsageError(f"no label is {show(category)}; the table has {show(tuple(categories))}")


def compute_accuracy(confusion: Confusion) -> float:
    """The share of items on which judge and truth agree; undecided agrees only with undecided.

    Args:
        confusion: How often each verdict met each truth.
    """
    return _divide(confusion.agreed, confusion.items, "accuracy", "the table holds no item")


def compute_sensitivity(confusion: Confusion, *, positive: Category = True) -> float:
    """The share of the good items that the judge passes: those whose true category is ``positive``.

    Undecided counts against the judge. Raises ``UsageError`` without a good item.

    Args:
        confusion: The counts, as ``make_confusion`` makes them.
        positive: The category of good items.
    """
    passed, good = count_sensitivity(confusion, positive)
    return _divide(passed, good, "sensitivity", f"no item is truly {show(positive)}")


def compute_specificity(confusion: Confusion, *, positive: Category = True) -> float:
    """The share of the bad items that the judge fails: both have a category that is neither ``positive`` nor undecided.

    Undecided counts against the judge. Raises ``UsageError`` without a bad item.

    Args:
        confusion: The counts, as ``make_confusion`` makes them.
        positive: The category of good items.
    """
    caught, bad = count_specificity(confusion, positive)
    return _divide(caught, bad, "specificity", f"no item is truly anything but {show(positive)}")


def compute_precision(confusion: Confusion, *, positive: Category = True) -> float:
    """The share of good items among those that the judge passes. Raises ``UsageError`` if it passes none.

    Args:
        confusion: How often each verdict met each truth.
        positive: The category whose precision it is.
    """
    good, passed = count_precision(confusion, positive)
    return _divide(good, passed, "precision", f"the judge never says {show(positive)}")


def compute_f1(confusion: Confusion, *, positive: Category = True) -> float:
    """The harmonic mean of precision and sensitivity: 2·TP / (2·TP + FP + FN).

    Raises ``UsageError`` where neither side ever has the category. Source: C. J. van Rijsbergen, "Information
    Retrieval", 1979, chapter 7.

    Args:
        confusion: How often each verdict met each truth.
        positive: The category whose F1 it is.
    """
    index = find_category_index(confusion.categories, positive)
    label_count = confusion.truth_counts[index] + confusion.judge_counts[index]
    return _divide(2 * confusion.counts[index][index], label_count, "F1", f"neither side ever says {show(positive)}")


def compute_macro(confusion: Confusion) -> tuple[float, float, float]:
    """Precision, recall and F1, each the plain mean over the decided categories that occur.

    A precision or recall that divides by 0 counts as 0, as in scikit-learn. Raises ``UsageError`` where nothing is
    decided.

    Args:
        confusion: How often each verdict met each truth.
    """
    from adjudge.trust.extra import check_extra

    check_extra()
    import numpy as np

    means = measure_macro(np.array([confusion.counts], dtype=float), confusion.categories)[0]
    if not np.isfinite(means).all():
        raise UsageError("macro precision, recall and F1 are not defined: no item has a decided label; label some")
    return float(means[0]), float(means[1]), float(means[2])


def measure_macro(tables: Floats, categories: Sequence[Category]) -> Floats:
    """Compute macro precision, recall and F1 of each confusion table; NaN where no decided category occurs."""
    import numpy as np

    is_decided = np.array([category is not None for category in categories])
    agreed = np.einsum("tkk->tk", tables)
    true, judged = tables.sum(axis=2), tables.sum(axis=1)
    occurs = (true + judged > 0) & is_decided
    category_count = occurs.sum(axis=1).astype(float)
    means = []
    for numerator, denominator in ((agreed, judged), (agreed, true), (2 * agreed, true + judged)):
        by_category = divide(numerator, denominator, 0.0)
        means.append(divide(np.where(occurs, by_category, 0.0).sum(axis=1), category_count, np.nan))
    return np.stack(means, axis=1)


def divide(numerator: Floats, denominator: Floats, otherwise: float) -> Floats:
    """Divide arrays element by element, with the value ``otherwise`` where the denominator is 0."""
    import numpy as np

    quotients = np.full(np.broadcast(numerator, denominator).shape, otherwise)
    return np.divide(numerator, denominator, out=quotients, where=denominator != 0)


def count_sensitivity(confusion: Confusion, positive: Category) -> tuple[int, int]:
    """Count the good items that the judge passes, and all good items."""
    index = find_category_index(confusion.categories, positive)
    return confusion.counts[index][index], confusion.truth_counts[index]


def count_specificity(confusion: Confusion, positive: Category) -> tuple[int, int]:
    """Count the bad items that the judge fails, and all bad items."""
    find_category_index(confusion.categories, positive)  # raises for a category that the table does not have
    bad = find_bad(confusion.categories, positive)
    caught = sum(confusion.counts[row][column] for row in bad for column in bad)
    return caught, sum(confusion.truth_counts[row] for row in bad)


def count_precision(confusion: Confusion, positive: Category) -> tuple[int, int]:
    """Count the good items among those that the judge passes, and all that it passes."""
    index = find_category_index(confusion.categories, positive)
    return confusion.counts[index][index], confusion.judge_counts[index]


def find_bad(categories: Sequence[Category], positive: Category) -> list[int]:
    """Find the indexes of the decided categories that are not the good one."""
    return [index for index, category in enumerate(categories) if category is not None and category != positive]


def _divide(count: float, total: float, name: str, reason: str) -> float:
    """Divide a count by a total; a total of 0 raises ``UsageError`` with the statistic's name and the reason."""
    if not total:
        raise UsageError(f"{name} is not defined: {reason}; label items of which there are none")
    return count / total


def check_group(group: Hashable) -> None:
    """Raise ``UsageError`` for a group without a name: all such items would be taken for one group."""
    if group is None or group != group:  # noqa: PLR0124 - NaN, as tables have an empty cell
        raise UsageError(f"a group has no name ({show(group)}); give an item of no group a name of its own")


def count_tables(
    judged: Iterable[Category], truth: Iterable[Category], groups: Iterable[Hashable]
) -> tuple[Counter[tuple[Category, Category]], Counter[tuple[int, Category, Category]], int]:
    """Count pairs of labels over all items, and in each group of items. Raises ``UsageError``.

    Returns how often each pair (judge, truth) occurs, how often each triple (number of the group, judge, truth) does,
    and the number of groups.
    """
    group_numbers: dict[Hashable, int] = {}
    pairs_by_group: Counter[tuple[int, Category, Category]] = Counter()

    def number_each(names: Iterable[Hashable]) -> Iterable[int]:
        """Yield the number of each group in turn, from 0; a new group gets the next number."""
        for name in names:
            check_group(name)
            yield group_numbers.setdefault(name, len(group_numbers))

    numbered_pairs = zip(number_each(groups), _pair_strictly(judged, truth), strict=True)
    try:
        pairs_by_group.update((group, judge, true) for group, (judge, true) in numbered_pairs)
    except UsageError:  # a ValueError itself
        raise
    except ValueError:
        raise UsageError(
            "groups must name one group for each item; give as many as labels", argument="groups"
        ) from None
    pairs: Counter[tuple[Category, Category]] = Counter()
    for (_, judge, true), count in pairs_by_group.items():
        pairs[judge, true] += count
    return pairs, pairs_by_group, len(group_numbers)
