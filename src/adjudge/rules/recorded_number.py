"""The rule ``recorded``: a number that was recorded when the content was made, as its cost, and the most it may be."""

from __future__ import annotations

from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.numbers import format_distinct
from adjudge.formats.text import QUOTED, flatten, show
from adjudge.result import RuleResult
from adjudge.rules.checks import Check


def make_recorded(*, value: float, max: float, measure: str) -> Check:  # noqa: A002 - as in the rule length
    """Make a check that a recorded number, which ``measure`` names, is at most ``max``.

    The content does not show how long it took or what it cost, so it is not looked at. Raises ``UsageError``.
    """
    if not isinstance(measure, str) or not measure.strip():
        raise UsageError(f"rule recorded: measure must say what was recorded, as 'latency in ms'; got {show(measure)}")
    for name, number in (("value", value), ("max", max)):
        if not is_finite(number) or number < 0:
            raise UsageError(f"rule recorded: {name} must be a number of at least 0, got {show(number)}")
    passed = value <= max
    shown, limit = format_distinct(value, max)
    message = f"{flatten(measure, QUOTED)} is {shown}, {'within' if passed else 'above'} the maximum of {limit}"

    def check(_content: Any) -> RuleResult:
        return RuleResult(name="", passed=passed, message=message)

    return check
