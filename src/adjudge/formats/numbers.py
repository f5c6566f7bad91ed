"""Scores, shares and amounts as people read them: one rounding rule for the terminal, pages, reports and messages.

A number is rounded as it is written: halves away from zero, so 0.855 is 0.86 everywhere. Numbers that are compared get
as many digits as it takes to tell different ones apart: 0.7496 that needs 0.75 is not shown as 0.75.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal

NOTHING = "–"
"""The text for a missing value, which must not be shown as 0."""

TOLERANCE = 1e-9
"""Scores nearer to each other than this are equal, and are shown as equal: the mean of 0.7, 0.7 and 0.7 is 0.7."""

_MOST_DIGITS = 9  # enough to show different numbers differently if they are further apart than the tolerance


_EXACT = 2.0**53
"""Floats of this size and above are whole numbers."""


def format_decimal(value: float, digits: int, *, sign: bool = False) -> str:
    """Format a number with so many digits after the point, commas between thousands, and a sign if asked for."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= _EXACT:  # more digits than decimal arithmetic keeps, and nothing after the point to round
        return f"{value:{'+' if sign else ''},.{digits}f}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    rounded = rounded or abs(rounded)  # -0.00 becomes 0.00
    return f"{rounded:+,f}" if sign else f"{rounded:,f}"


def count_digits(*values: float | None, digits: int) -> int:
    """Count the fewest digits after the point, at least ``digits``, with which different values read differently."""
    shown_values = set(_map_to_shown(values).values())
    for count in range(digits, _MOST_DIGITS):
        if len({format_decimal(value, count) for value in shown_values}) == len(shown_values):
            return count
    return _MOST_DIGITS


def format_distinct(*values: float | None, digits: int = 2) -> tuple[str, ...]:
    """Format numbers that are compared: equal ones read the same, different ones do not, and their order is kept."""
    shown_values, needed_digits = _map_to_shown(values), count_digits(*values, digits=digits)
    return tuple([NOTHING if value is None else format_decimal(shown_values[value], needed_digits) for value in values])


def format_score(score: float | None) -> str:
    """Format a score with two digits; use ``format_distinct`` for one beside what it is compared with."""
    return NOTHING if score is None else format_decimal(score, 2)


def format_beside(value: float | None, others: Iterable[float | None]) -> str:
    """Format a score with as many digits as tell it apart from the others in its row."""
    return format_distinct(value, *others)[0]


def describe_needed(score: float, needed: float | None) -> tuple[str, str]:
    """Format a score and its threshold so that different ones read differently; without one the second is empty."""
    return (format_score(score), "") if needed is None else _unpack_pair(format_distinct(score, needed))


def format_change(before: float | None, after: float | None) -> tuple[str, str, str]:
    """Format a score before and after, and the difference with its sign, all with the same digits."""
    delta = None if before is None or after is None else after - before
    places = max(count_digits(before, after, digits=2), count_digits(0.0, delta, digits=2))
    old, new = [NOTHING if value is None else format_decimal(value, places) for value in (before, after)]
    return old, new, NOTHING if delta is None else format_decimal(delta, places, sign=True)


def format_rate(rate: float | None, *, digits: int = 1) -> str:
    """Format a share in per cent. A share below 1 is never shown as 100 %, and a share above 0 never as 0 %."""
    if rate is None:
        return NOTHING
    text, smallest = format_points(rate, digits=digits), format_decimal(10**-digits, digits)
    if rate < 1 and text == format_decimal(100, digits):
        text = f">{format_decimal(100 - 10**-digits, digits)}"
    elif rate > 0 and text == format_decimal(0, digits):
        text = f"<{smallest}"
    return f"{_drop_zeros(text)} %"


def format_rates(*rates: float | None) -> tuple[str, ...]:
    """Format shares in per cent that are compared, so different ones do not read the same."""
    digits = max(count_digits(*rates, digits=3) - 2, 1)  # a per cent has two digits fewer than its share
    return tuple([format_rate(rate, digits=digits) for rate in rates])


def format_points(share: float, *, digits: int = 1, sign: bool = False) -> str:
    """Format a share times 100, without the sign for per cent."""
    # Multiplied as a decimal, because 100 * 0.285 is 28.499999999999996 as a float.
    return format_decimal(float(Decimal(repr(float(share))) * 100), digits, sign=sign)


def format_range(low: float, high: float) -> str:
    """Format two limits in per cent: ``12.5 to 87.5 %``, with more digits where they would read the same."""
    digits = max(count_digits(low, high, digits=3) - 2, 1)  # a per cent has two digits fewer than its share
    return f"{format_points(low, digits=digits)} to {format_points(high, digits=digits)} %"


def format_dollars(dollars: float | None, *, digits: int | None = None) -> str:
    """Format an amount of dollars; without ``digits`` it has two from one dollar on, and four below."""
    if dollars is None:
        return "unknown"
    if digits is None:
        digits = 2 if dollars >= 1 or not dollars else 4
    return f"${format_decimal(dollars, digits)}"


def format_amounts(*dollars: float, digits: int = 4) -> tuple[str, ...]:
    """Format amounts that are compared, such as what was spent of a budget."""
    return tuple([f"${text}" for text in format_distinct(*dollars, digits=digits)])


def _map_to_shown(values: tuple[float | None, ...]) -> dict[float, float]:
    """Map each value to the value that it is shown as.

    From the largest down, a value within the tolerance of one that is shown already is shown as that one.
    """
    shown_values: dict[float, float] = {}
    for value in sorted({float(value) for value in values if value is not None}, reverse=True):
        near_values = [shown for shown in shown_values.values() if abs(shown - value) <= TOLERANCE]
        shown_values[value] = near_values[0] if near_values else value
    return shown_values


def _unpack_pair(texts: tuple[str, ...]) -> tuple[str, str]:
    """Return a tuple of two texts, with the type of one."""
    first, second = texts
    return first, second


def _drop_zeros(text: str) -> str:
    return text.removesuffix(".0")
