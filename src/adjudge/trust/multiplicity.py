"""P-values adjusted for how many tests were made: one of twenty true null hypotheses is rejected at 5 % by chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.text import show


def adjust_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values adjusted so that the chance of any false rejection stays below the level, however tests depend.

    In the order given. Source: S. Holm, "A simple sequentially rejective multiple test procedure", 1979.

    Args:
        p_values: The p-values of all tests.
    """
    order, number = _rank_p_values(p_values), len(p_values)
    raised = accumulate(((number - place) * p_values[test] for place, test in enumerate(order)), max)
    return _restore_order(order, raised)


def adjust_benjamini_yekutieli(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values adjusted so that the expected share of false rejections stays below the level, however tests depend.

    In the order given. Source: Y. Benjamini and D. Yekutieli, "The control of the false discovery rate in multiple
    testing under dependency", 2001.

    Args:
        p_values: The p-values of all tests.
    """
    order, number = _rank_p_values(p_values)[::-1], len(p_values)
    penalty = sum(1 / place for place in range(1, number + 1))
    lowered = accumulate(
        (p_values[test] * number * penalty / (number - place) for place, test in enumerate(order)), min
    )
    return _restore_order(order, lowered)


def _rank_p_values(p_values: Sequence[float]) -> list[int]:
    for value in p_values:
        if not is_finite(value) or not 0 <= value <= 1:
            raise UsageError(f"a p-value is a number between 0 and 1, got {show(value)}; leave out tests without one")
    return sorted(range(len(p_values)), key=lambda test: p_values[test])


def _restore_order(order: Sequence[int], adjusted: Iterable[float]) -> tuple[float, ...]:
    placed = dict(zip(order, adjusted, strict=True))
    return tuple(min(1.0, placed[test]) for test in range(len(order)))
