"""Times: the present one, and texts that say one."""

from __future__ import annotations

from datetime import UTC, datetime


def get_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def read_zoned_time(text: object) -> datetime | None:
    """Read a time with its zone (ISO 8601), and return it in UTC; ``None`` for anything else.

    That includes a time that its zone moves out of the years that Python has, which a ledger from elsewhere may hold.
    """
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return None if moment is None or moment.utcoffset() is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
