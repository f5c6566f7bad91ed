"""Values in files that observability tools export: parts of rows whose names have dots in them, and times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def find_part(row: Mapping[str, Any], name: str, *separators: str) -> Any:
    """Find a part of a row: its member of that name, or all that begin with the name and one of the separators."""
    if row.get(name) not in (None, {}, ""):
        return row[name]
    for separator in separators:
        start = name + separator
        members = {key.removeprefix(start): value for key, value in row.items() if key.startswith(start)}
        members = {key: value for key, value in members.items() if value is not None}
        if members:
            return members
    return None


def find_members(row: Mapping[str, Any], name: str, *separators: str) -> dict[str, Any]:
    """Find a part of a row that has to be an object; anything else is an empty one."""
    part = find_part(row, name, *separators)
    return part if isinstance(part, dict) else {}


def read_time(value: Any) -> datetime | None:
    """Read a time of a tool: a text, without a zone in UTC, or milliseconds since 1970; ``None`` for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
        if not isinstance(value, str):
            return None
        moment = datetime.fromisoformat(value.strip())
        return moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
