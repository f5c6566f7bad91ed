"""Scores: finite numbers whose squares are finite too."""

from __future__ import annotations

from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.text import show

LARGEST = 1e100
"""No score is larger; a sum of squares of such numbers still fits into a float."""


def check_score(value: object, *, name: str = "a score", remedy: str = "use None for a missing one") -> None:
    """Raise ``UsageError`` unless a value is a number that can be squared; true and false count as 1 and 0."""
    if isinstance(value, bool):
        return
    if not isinstance(value, int | float) or not is_finite(value) or abs(value) > LARGEST:
        raise UsageError(f"{name} must be a finite number of at most {LARGEST:g}, got {show(value)}; {remedy}")
