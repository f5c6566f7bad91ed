"""Numbers and times as people read them, the same on a terminal, in a report and on a page."""

from __future__ import annotations

from datetime import UTC, datetime

from adjudge.formats.numbers import NOTHING, format_range, format_rate
from adjudge.trust.intervals import Share

# Not strftime's: a program may have set a locale.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def format_count(number: float, noun: str = "", plural: str = "") -> str:
    """Format a number of things: ``1 case``, ``2,000 cases``."""
    text = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
    if not noun:
        return text
    return f"{text} {noun if text == '1' else plural or f'{noun}s'}"


def format_interval(share: Share) -> str:
    """Format the interval in which the true share may be."""
    if share.interval is None:
        return NOTHING
    return format_range(*share.interval)


def format_share(share: Share) -> str:
    """Format a share with its interval and of how many it is."""
    if share.rate is None:
        return f"{NOTHING} (of none)"
    return (
        f"{format_rate(share.rate)} ({format_interval(share)}; {format_count(share.count)} of {format_count(share.of)})"
    )


def format_duration(duration_ms: float | None) -> str:
    """Format a duration in milliseconds, seconds or minutes; ``None`` is unknown."""
    if duration_ms is None:
        return NOTHING
    if duration_ms < 999.5:
        return f"{duration_ms:.0f} ms" if duration_ms >= 9.95 or not duration_ms else f"{duration_ms:.1f} ms"
    seconds = duration_ms / 1000
    return f"{seconds:.1f} s" if seconds < 599.5 else f"{seconds / 60:.0f} min"


def format_number(number: int | None) -> str:
    """Format a sum that may not be known."""
    return "unknown" if number is None else f"{number:,}"


def format_size(size: int) -> str:
    """Format a number of bytes: ``412 bytes``, ``2.1 kB``."""
    if size < 1000:
        return format_count(size, "byte")
    return f"{size / 1000:,.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def format_moment(moment: datetime) -> str:
    """Format a day and a time to the second: ``22 Nov 2026, 13:32:08 UTC``."""
    return f"{format_day(moment)}, {format_clock(moment)} UTC"


def format_day(moment: datetime) -> str:
    """Format a day alone, in UTC: ``22 Nov 2026``."""
    at = moment.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def format_clock(moment: datetime) -> str:
    """Format a time of day alone, in UTC and to the second: ``13:32:08``."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


def format_short(moment: datetime) -> str:
    """Format a day and a time for a column of a table: ``22 Nov 13:32``."""
    at = moment.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at:%H:%M}"


def format_minute(moment: datetime) -> str:
    """Format a day with its year and a time for a column of a table: ``2026-11-22 13:32``."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def format_left(seconds: float) -> str:
    """Format how long something still lasts, in whole units, rounded down: ``26 min``, ``1 h 10 min``."""
    left = max(int(seconds), 0)
    if left < 120:
        return f"{left} s"
    if left < 3600:
        return f"{left // 60} min"
    hours, minutes = left // 3600, left % 3600 // 60
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return format_count(hours // 24, "day")
