"""Cells of tables, where everything may be a text, or a value of the library that made the table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from adjudge._depth import MOST_DEPTH
from adjudge.errors import UsageError
from adjudge.rules._json import read_json
from adjudge.rules._words import flatten, show

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "first": "first", "second": "second", "tie": "tie"}
_AS_IS = frozenset((str, int, bool, type(None)))
_MISSING = ("NAType", "NaTType")
"""What pandas calls a missing value that is not NaN."""


def read_label(value: Any) -> Any:
    """A label from a text: ``true`` and ``false`` in any case, a number, a preference; empty is unknown.

    What is no text stays as it is. Nothing else is taken for a label: ``yes`` or ``good`` would be a guess.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return None
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not _NUMBER.fullmatch(text) or len(text) > 100:
        return value
    return int(text) if text.lstrip("+-").isdigit() else _check_finite(float(text))


def read_object(name: str, value: Any) -> Any:
    """``labels`` or ``metadata`` of a table: a text is JSON."""
    if not isinstance(value, str) or not value.strip():
        return value or None
    return read_json_cell(name, value)


def read_json_cell(name: str, value: Any) -> Any:
    """What the JSON in a cell says; empty is nothing."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise UsageError(f"the column {show(name)} must hold JSON text, got {show(value)}")
    try:
        return read_json(value)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the column {show(name)} holds no JSON ({flatten(str(error))})") from None


def to_cell(value: Any, depth: int = 0) -> Any:
    """A value of pandas, polars, numpy, Arrow or the standard library as JSON has it; NaN is ``None``.

    Dates and decimals become text. Raises ``UsageError`` for what has no such form: binary data, images, infinity.
    """
    if type(value) in _AS_IS:
        return value
    if depth > MOST_DEPTH:
        raise UsageError(f"it is nested more than {MOST_DEPTH} levels deep")
    if isinstance(value, float):
        return None if math.isnan(value) else _check_finite(float(value))
    if isinstance(value, Mapping):
        return _convert_members(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return [to_cell(item, depth + 1) for item in value]
    return _convert_foreign(value, depth)


def _convert_members(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    found = {str(key): to_cell(item, depth + 1) for key, item in value.items()}
    if len(found) != len(value):
        raise UsageError("it has two keys that are written alike, like 1 and '1'; make all of them text")
    return found


def _convert_foreign(value: Any, depth: int) -> Any:
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        raise UsageError(f"it holds binary data ({len(value)} bytes); decode it to text, or leave the column out")
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, and polars' series
        opened = value.tolist()
        return str(value) if opened is value else to_cell(opened, depth + 1)
    if hasattr(value, "as_py"):
        return to_cell(value.as_py(), depth + 1)
    if isinstance(value, str | int):  # a subclass, as numpy and enumerations have them
        return str(value) if isinstance(value, str) else int(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ in ("datetime", "decimal", "uuid"):
        return str(value)
    raise UsageError(f"it holds a {type(value).__name__}, which is no text and no JSON value; leave the column out")


def _check_finite(number: float) -> float:
    if math.isfinite(number):
        return number
    raise UsageError(f"{number!r} is not a number that JSON has; leave it empty, or write a number")
