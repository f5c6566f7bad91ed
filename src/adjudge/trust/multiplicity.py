"""P-values adjusted for how many tests were made: one of twenty true null hypotheses is rejected at 5 % by chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.text import show


def adjust_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values adjusted so that the chance of any false rejection stays below the level, however tests depend.

    In the order given. Source: S. Holm, "A simple sequentially rejective multiple test procedure", 1979. Raises
    ``UsageError`` for a value that is no p-value: it would move all the others.

    Args:
        p_values: The p-values of all tests.
    """
    for value in p_values:
        if not is_finite(value) or not 0 <= value <= 1:
            raise UsageError(f"a p-value is a number between 0 and 1, got {show(value)}; leave out tests without one")
    test_count = len(p_values)
    order = sorted(range(test_count), key=lambda test: p_values[test])
    # The smallest is multiplied by the number of tests, the next by one less; none becomes smaller than the one before.
    raised = accumulate(((test_count - rank) * p_values[test] for rank, test in enumerate(order)), max)
    adjusted = dict(zip(order, raised, strict=True))
    return tuple(min(1.0, adjusted[test]) for test in range(test_count))
