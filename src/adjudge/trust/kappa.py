"""Agreement of two raters beyond what chance would bring: Cohen's and weighted kappa, Scott's pi and Gwet's AC1.

All are (observed - expected) / (1 - expected), and differ in what chance would bring:

* Cohen's kappa: each rater draws from its own categories' frequencies (J. Cohen, "A coefficient of agreement for
  nominal scales", 1960). Weighted kappa counts a near miss as part of an agreement (J. Cohen, "Weighted kappa", 1968).
* Scott's pi: both draw from the pooled frequencies (W. A. Scott, "Reliability of content analysis", 1955).
* Gwet's AC1: chance agreement is what remains when some items are rated at random (K. L. Gwet, "Computing inter-rater
  reliability and its variance in the presence of high agreement", 2008). It keeps its size where one category is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.trust.confusion import Category, Confusion, divide
from adjudge.trust.extra import check_extra

if TYPE_CHECKING:
    from adjudge.trust.extra import Floats

Weights = Literal["linear", "quadratic"]


def compute_cohen_kappa(confusion: Confusion, *, weights: Weights | None = None) -> float:
    """Cohen's kappa, from -1 to 1; 0 is what chance brings.

    With ``weights`` a disagreement counts by how many places apart the two categories are (``linear``) or by the square
    of it (``quadratic``); undecided has no place in the order, so those items are left out. Raises ``UsageError`` where
    both sides use one and the same category alone, and for a text order that nobody gave meaning to.
    """
    check_extra()
    if weights is not None:
        check_choice("weights", weights, ("linear", "quadratic"))
    table = keep_ordered(confusion) if weights else confusion
    return _compute(table, lambda tables: measure_cohen(tables, weights), "Cohen's kappa")


def compute_scott_pi(confusion: Confusion) -> float:
    """Scott's pi, from -1 to 1. Raises ``UsageError`` where both sides use one and the same category alone."""
    check_extra()
    return _compute(confusion, measure_scott, "Scott's pi")


def compute_gwet_ac1(confusion: Confusion) -> float:
    """Gwet's AC1, from -1 to 1, over all categories of the table, so name those that no item has.

    Raises ``UsageError`` for a table of one category.
    """
    check_extra()
    return _compute(confusion, measure_gwet, "Gwet's AC1")


def keep_ordered(confusion: Confusion) -> Confusion:
    """The table without undecided, which has no place in an order; raises ``UsageError`` if nothing remains."""
    decided = confusion.leave_out(None) if None in confusion.categories else confusion
    if not decided.items:
        raise UsageError("weighted kappa is not defined: no item is decided on both sides; label some")
    return decided


def _compute(confusion: Confusion, measure: Callable[[Floats], Floats], name: str) -> float:
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


def measure_scott(tables: Floats) -> Floats:
    """Scott's pi of each table; NaN where it is not defined."""
    seen, pooled = _measure_seen(tables)
    return _correct(seen, (pooled**2).sum(axis=1))


def measure_gwet(tables: Floats) -> Floats:
    """Gwet's AC1 of each table; NaN where it is not defined."""
    import numpy as np

    seen, pooled = _measure_seen(tables)
    number = tables.shape[1]
    if number == 1:
        return np.full(len(tables), np.nan)
    return _correct(seen, (pooled * (1 - pooled)).sum(axis=1) / (number - 1))


def _measure_seen(tables: Floats) -> tuple[Floats, Floats]:
    """The share of agreement, and the mean share of each category, of each table."""
    import numpy as np

    items = tables.sum(axis=(1, 2))
    pooled = (tables.sum(axis=1) + tables.sum(axis=2)) / 2
    return divide(np.einsum("tkk->t", tables), items, np.nan), divide(pooled, items[:, None], np.nan)


def _correct(seen: Floats, expected: Floats) -> Floats:
    import numpy as np

    return divide(seen - expected, 1 - expected, np.nan)


def can_order(categories: Sequence[Category]) -> bool:
    """Return whether categories have an order of their own: at least two numbers."""
    decided = [category for category in categories if category is not None]
    return len(decided) > 1 and not any(isinstance(category, str) for category in decided)
