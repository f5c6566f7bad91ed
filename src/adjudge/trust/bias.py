"""Bias: does the judge err to one side on answers of some length, format or language, or in some position?

The items are divided by one property at a time, numbers into quarters. Of each kind, what the judge says is compared
with what people say, and the difference with that of all other items. Properties that go together, such as a language
and the length of its answers, are each named: the figures say where the judge errs, and not why.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.errors import UsageError
from adjudge.formats.numbers import format_decimal
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show
from adjudge.trust.extra import check_extra
from adjudge.trust.multiplicity import adjust_holm
from adjudge.trust.regression import fit_robustly
from adjudge.trust.resampling import Clusters, check_score, number_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

LEAST_ITEMS = 30
LEAST_PER_KIND = 10
"""The fewest items of a kind that are tested, and of all others."""
LEAST_GROUPS = 5
"""The fewest groups on either side: errors that follow the groups come out much too small where one group decides."""

ALPHA = 0.05

PropertyValues = Sequence[bool | float | str]
"""The values of one property, one for each item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasKind:
    """The items of one kind: what the judge says of them, beside what people say."""

    _layout: ClassVar[Layout] = Layout(last=("is_shown",))

    by: str
    """The property."""
    name: str
    """The value, or the range of values of a quarter of the items."""
    items: int
    """The number of items."""
    judge: float
    """The judge's mean: of verdicts, the share that it passes."""
    people: float
    """The same of people."""
    difference: float
    """Judge minus people: above 0, the judge is more generous than people."""
    low: float | None
    """The lower limit of the difference."""
    high: float | None
    """The 95 % interval of the difference, of this kind alone; ``None`` where one item or group alone decides it."""
    p_value: float | None
    """Two-sided, that the difference is as on all other items; ``None`` with too few items or groups to test."""
    adjusted: float | None = None
    """The p-value adjusted for the number of kinds tested, of all properties together (Holm)."""

    @property
    def is_shown(self) -> bool:
        """Return whether the difference is another than elsewhere, beyond chance at 5 % (Holm)."""
        return self.adjusted is not None and self.adjusted < ALPHA

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """The judge's labels beside those of people, by properties of the items."""

    _layout: ClassVar[Layout] = Layout(members=("items", "groups", "tests", "kinds", "refused"))

    items: int
    """The number of items."""
    groups: int | None
    """The number of groups that they come in; ``None`` if every item was its own."""
    kinds: tuple[BiasKind, ...]
    """By property, in the order given; quarters from the lowest, other kinds from the most frequent."""
    tests: int
    """The number of differences that were tested."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Properties by which the items are not divided, each with the reason in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def make_bias(
    judged: Sequence[float],
    truth: Sequence[float],
    properties: Mapping[str, Sequence[bool | float | str]],
    *,
    groups: Sequence[Hashable] | None = None,
) -> Bias:
    """Compare what a judge and people say of items by properties such as position, length, format and language.

    A property has one value for each item: numbers, which are divided into quarters, or texts, true and false.

    A property that is the same for every item is refused, with the reason. A kind of fewer than 10 items, or of fewer
    than 5 groups, is shown and not tested. Where everything is in 0 to 1, limits are cut to -1 and 1. Raises
    ``UsageError`` for lists of different length, fewer than 30 items, and where no property remains.

    Args:
        judged: What the judge says of each item: scores, or verdicts as 1 and 0.
        truth: What people say of each item, in the same order and form.
        properties: The values of each property, by its name.
        groups: The group of each item, which intervals and tests then follow. ``None``: each item is for itself.

    Limits that no difference of shares can have are an aberration of simple intervals: R. G. Newcombe, "Interval
    estimation for the difference between independent proportions: comparison of eleven methods", Statistics in Medicine
    17 (1998), 873-890. What is cut off contains no possible value, so coverage stays.
    """
    check_extra()
    import numpy as np

    scores = _read_scores(judged, truth, properties)
    clusters = None if groups is None else number_groups(groups, len(judged))
    compared: list[list[BiasKind]] = []  # a list of kinds for each property
    refused: dict[str, str] = {}
    for name, values in properties.items():
        divided = _divide_items(name, values)
        if len(divided) < 2:
            refused[name] = f"every item has the value {show(values[0])}"
            continue
        compared.append([_compare_kind(name, kind, np.array(inside), scores, clusters) for kind, inside in divided])
    if not compared:
        reasons = "; ".join(f"{show(name)}: {reason}" for name, reason in refused.items()) or "none was given"
        raise UsageError(f"no property divides the items ({reasons}); give one that varies")
    kinds, tests = _adjust_p_values(compared)
    group_count = None if clusters is None else clusters.groups
    return Bias(items=len(judged), groups=group_count, kinds=tuple(kinds), tests=tests, refused=refused)


_Scores = tuple["Floats", "Floats"]
"""The judge's score of each item, and people's."""


def _read_scores(judged: Sequence[float], truth: Sequence[float], properties: Mapping[str, PropertyValues]) -> _Scores:
    """Check scores and properties, and return the scores of judge and people as arrays. Raises ``UsageError``."""
    import numpy as np

    if len(judged) != len(truth):
        raise UsageError(
            f"judged and truth have {len(judged):,} and {len(truth):,} items; give one of each", argument="truth"
        )
    if len(judged) < LEAST_ITEMS:
        missing = LEAST_ITEMS - len(judged)
        raise UsageError(f"bias needs at least {LEAST_ITEMS} items, got {len(judged)}; label {missing} more")
    for value in (*judged, *truth):
        check_score(value, remedy="leave out items without one")
    for name, values in properties.items():
        if len(values) != len(judged):
            raise UsageError(f"{show(name)} has {len(values):,} values of {len(judged):,} items; give one of each")
    return np.array(judged, dtype=float), np.array(truth, dtype=float)


def _divide_items(name: str, values: PropertyValues) -> list[tuple[str, list[bool]]]:
    """Divide items into kinds by a property. Raises ``UsageError`` for values of mixed types.

    Returns the name of each kind, and for each item whether it is of that kind. Numbers make up to four kinds, quarters
    of the items; otherwise each distinct value is a kind, the most frequent first.
    """
    if not any(isinstance(value, bool | str) for value in values):
        return _divide_numbers(name, [value for value in values if not isinstance(value, str)])
    if len({type(value) for value in values}) > 1:
        raise UsageError(f"{show(name)} mixes texts, numbers or true and false; use one of them")
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    names = sorted(dict.fromkeys(texts), key=lambda text: (-texts.count(text), text))
    return [(kind, [text == kind for text in texts]) for kind in names]


def _divide_numbers(name: str, values: Sequence[float]) -> list[tuple[str, list[bool]]]:
    """Divide items into quarters by a number.

    Returns the name of each quarter, and for each item whether it is in that quarter. Items with equal numbers are in
    one quarter, so there may be fewer than four.
    """
    import numpy as np

    for value in values:
        check_score(value, name=show(name), remedy="use numbers, texts, or true and false")
    quarter_numbers = np.searchsorted(np.quantile(values, (0.25, 0.5, 0.75)), values, side="left")
    divided = []
    for quarter in np.unique(quarter_numbers):
        inside = [bool(quarter_number == quarter) for quarter_number in quarter_numbers]
        values_inside = [value for value, is_inside in zip(values, inside, strict=True) if is_inside]
        divided.append((_name_range(min(values_inside), max(values_inside)), inside))
    return divided


def _name_range(low: float, high: float) -> str:
    """Write a range of numbers, such as ``12 to 80``: with two decimals where all are below 10, else with none."""
    digits = 0 if max(abs(low), abs(high)) >= 10 else 2
    first, last = format_decimal(low, digits), format_decimal(high, digits)
    return first if first == last else f"{first} to {last}"


def _compare_kind(
    name: str,
    kind: str,
    inside: NDArray[np.bool_],
    scores: _Scores,
    clusters: Clusters | None,
) -> BiasKind:
    """Compare how much the judge exceeds people on the items of one kind with how much on all others.

    ``name`` is the property, ``kind`` the name of the kind, and ``inside`` marks its items.
    """
    judged, truth = scores
    errors = judged - truth
    difference = float(errors[inside].mean())
    low, high = _find_limits(errors[inside], None if clusters is None else clusters.codes[inside])
    are_shares = all(array.min() >= 0 and array.max() <= 1 for array in scores)
    if low is not None and high is not None and are_shares:
        low, high = max(low, -1.0), min(high, 1.0)
    return BiasKind(
        by=name,
        name=kind,
        items=int(inside.sum()),
        judge=float(judged[inside].mean()),
        people=float(truth[inside].mean()),
        difference=difference,
        low=low,
        high=high,
        p_value=_test_errors(errors, inside, clusters),
    )


def _find_limits(errors: Floats, codes: NDArray[np.int64] | None) -> tuple[float, float] | tuple[None, None]:
    """Find the 95 % limits of the mean error of some items; ``None`` twice for fewer than two items or groups.

    ``codes`` has the number of each item's group; ``None`` if items come in no groups.
    """
    import numpy as np

    units = len(errors) if codes is None else len(np.unique(codes))
    if units < 2:
        return None, None
    groups = None if codes is None else number_groups(codes.tolist(), len(errors))
    low, high = fit_robustly(np.ones((len(errors), 1)), errors, groups).find_limits()
    return float(low[0]), float(high[0])


def _test_errors(errors: Floats, inside: NDArray[np.bool_], clusters: Clusters | None) -> float | None:
    """Compute the p-value of the hypothesis that the marked items have the same mean error as the others.

    ``None`` where either have too few items or groups.
    """
    import numpy as np

    if min(inside.sum(), (~inside).sum()) < LEAST_PER_KIND:
        return None
    if clusters is not None:
        codes, _ = clusters
        if min(len(np.unique(codes[inside])), len(np.unique(codes[~inside]))) < LEAST_GROUPS:
            return None
    design = np.column_stack([np.ones(len(errors)), inside.astype(float)])
    return float(fit_robustly(design, errors, clusters).find_p_values()[1])


def _adjust_p_values(compared: Sequence[Sequence[BiasKind]]) -> tuple[list[BiasKind], int]:
    """Adjust the p-values of the kinds of all properties for the number of tests (Holm).

    ``compared`` has a list of kinds for each property. Returns all kinds in one list, and the number of tests.
    """
    # Two kinds of one property are one test, seen from both sides: the second takes the values of the first.
    tested_kinds = [kind for kinds in compared for kind in (kinds[:1] if len(kinds) == 2 else kinds)]
    p_values = {(kind.by, kind.name): kind.p_value for kind in tested_kinds if kind.p_value is not None}
    adjusted = dict(zip(p_values, adjust_holm(list(p_values.values())), strict=True))
    adjusted_kinds = []
    for kinds in compared:
        for kind in kinds:
            tested_kind = kinds[0] if len(kinds) == 2 else kind
            value = adjusted.get((tested_kind.by, tested_kind.name))
            adjusted_kinds.append(replace(kind, p_value=tested_kind.p_value, adjusted=value))
    return adjusted_kinds, len(p_values)
