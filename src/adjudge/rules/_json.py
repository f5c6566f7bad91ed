"""JSON read strictly: what two readers could understand differently is not JSON here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from adjudge._depth import MOST_DEPTH, nests_too_deeply
from adjudge.rules._words import quote, show

_TOO_DEEP = f"nested more than {MOST_DEPTH} levels deep"


def read_json(text: str, *, nan_is_null: bool = False) -> Any:
    """The value of a JSON text.

    Raises ``ValueError`` with one line for anything else: a syntax error (with line and column), a key that stands
    twice in one object, ``NaN``, ``Infinity``, a number too large to hold, nesting too deep to read. ``nan_is_null``
    is for a tool whose files have ``NaN`` where there is no number.
    """
    if nests_too_deeply(text):
        raise ValueError(_TOO_DEEP)
    value = json.loads(
        text,
        object_pairs_hook=_refuse_duplicates,
        parse_constant=_drop_constant if nan_is_null else _refuse_constant,
        parse_float=_read_float,
    )
    return to_plain(value)


def to_plain(value: Any, depth: int = 0) -> Any:
    """A fresh copy of a JSON value made of plain types; raises ``ValueError`` naming what is not JSON in it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} is not a JSON number")
        return value
    if depth >= MOST_DEPTH and isinstance(value, list | tuple | Mapping):
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list | tuple):
        return [to_plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {_check_key(key): to_plain(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"{type(value).__name__} is not a JSON type")


def _check_key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"the key {show(key)} is {type(key).__name__}, not text")  # noqa: TRY004 - as read_json says
    return key


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {quote(name)} stands twice in one object")
        found[name] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _drop_constant(_name: str) -> None:
    return None


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {quote(text, 40)} is too large")
    return number
