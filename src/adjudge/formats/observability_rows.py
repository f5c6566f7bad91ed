"""Values in rows that observability tools export: members whose names have dots in them, and times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def find_part(row: Mapping[str, Any], name: str, *separators: str) -> Any:
    """Return a row's member of this name; without one, an object of the members that begin with name and separator.

    For ``input`` and ``.``, the members ``input.a`` and ``input.b`` become ``{"a": ..., "b": ...}``. Returns ``None``
    if there are none.
    """
    if row.get(name) not in (None, {}, ""):
        return row[name]
    for separator in separators:
        prefix = name + separator
        members = {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)}
        members = {key: value for key, value in members.items() if value is not None}
        if members:
            return members
    return None


def find_members(row: Mapping[str, Any], name: str, *separators: str) -> dict[str, Any]:
    """Find a part of a row as ``find_part`` does; an empty object if it is no object."""
    part = find_part(row, name, *separators)
    return part if isinstance(part, dict) else {}


def read_time(value: Any) -> datetime | None:
    """Read a time: a text (UTC if it has no zone), or milliseconds since 1970; ``None`` for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
        if not isinstance(value, str):
            return None
        moment = datetime.fromisoformat(value.strip())
        return moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
