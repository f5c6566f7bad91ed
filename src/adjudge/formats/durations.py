"""Lengths of time as a file or a command line writes them: ``30d``, ``12h``, ``45m``, ``90s``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.text import show

_DURATION = re.compile(r"([0-9]{1,6})([smhd])")

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def read_duration(argument: str, value: Any, *, where: str | None = None) -> timedelta:
    """Read a length of time above 0: a ``timedelta``, or a text such as ``30d``; raises ``UsageError`` otherwise."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    duration = value if match is None else timedelta(**{_UNITS[match[2]]: int(match[1])})
    if not isinstance(duration, timedelta) or duration <= timedelta(0):
        raise UsageError(
            f"{argument} must be a length of time above 0, like 30d, 12h, 45m or 90s, got {show(value)}",
            argument=argument,
            where=where,
        )
    return duration


def format_duration(duration: timedelta) -> str:
    """Write a length of time in the largest unit of which it is a whole number.

    Two days and more are written in whole days, and other times of two hours and more in whole hours; the rest is cut
    off.
    """
    seconds = int(duration.total_seconds())
    if seconds >= 2 * 86_400:
        return f"{seconds // 86_400}d"
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds // 3600}h" if seconds >= 7_200 else f"{seconds}s"
