"""Strict reading of JSON: a text that two programs could read differently is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from enum import EnumType
from math import isfinite
from typing import Any

from adjudge.formats.json_size import MOST_DEPTH, MOST_WRITTEN, measure_excess
from adjudge.formats.text import flatten, quote, show

# Everything up to the next brackets, then the opening ones, then the closing ones. Texts are skipped whole, so a
# bracket in a text does not count. Possessive throughout, so that a text that is never closed is read once.
_BRACKETS = re.compile(r'(?:[^\[\]{}"]++|"(?:[^"\\]++|\\.)*+"?)*+([\[{]*+)([\]}]*+)', re.DOTALL)


def nests_too_deeply(text: str, start: int = 0, *, most: int = MOST_DEPTH, several: bool = False) -> bool:
    """Return whether the JSON value that begins at ``start`` nests deeper than ``most``, in linear time.

    A text that is not JSON gets a depth too, which is at least as deep as a decoder goes before it finds the error.
    With ``several``, the text may be several values one after another, and none of them may nest deeper.
    """
    if text.count("{") + text.count("[") <= most:  # nearly every text, decided without a search
        return False
    depth = 0
    # In pieces, so that other threads run in between: one search of the whole text keeps the interpreter's lock.
    for piece in _BRACKETS.finditer(text, start):
        opening, closing = piece.groups()
        depth += len(opening)
        if depth > most:
            return True
        depth -= len(closing)
        if closing and depth <= 0:  # the value ends here; the text after it does not count
            if not several:
                return False
            depth = 0
    return False


_TOO_DEEP = f"nested more than {MOST_DEPTH} levels deep"


def read_json(text: str, *, nan_is_null: bool = False) -> Any:
    """Read the value of a JSON text.

    Raises ``ValueError`` with one line for anything else: a syntax error (with line and column), a key that occurs
    twice in one object, ``NaN``, ``Infinity``, a number too large to hold, nesting too deep to read. ``nan_is_null``
    is for a tool whose files have ``NaN`` where there is no number.
    """
    if nests_too_deeply(text):
        raise ValueError(_TOO_DEEP)
    is_reliable, quick_value = _read_quickly(text)
    if is_reliable:
        return quick_value
    value = json.loads(
        text,
        object_pairs_hook=_refuse_duplicates,
        parse_constant=_drop_constant if nan_is_null else _refuse_constant,
        parse_float=_read_float,
    )
    return _copy_json(value, 0)


_LONG_NUMBER = re.compile(r"[0-9.]{17}|[eE][+-]?[0-9]{3}")
"""A part of every decimal that a float may not represent exactly; any decimal of 15 digits survives as a float."""


def check_decimals(text: str) -> None:
    """Raise ``ValueError`` for a decimal in a JSON text that a float does not represent as it is written.

    One program reads ``1.0000000000000000001`` as 1.0, and another exactly. The text is one that ``read_json`` reads.
    """
    if _LONG_NUMBER.search(text):
        json.loads(text, parse_float=_read_exactly)


def _read_exactly(text: str) -> float:
    """Read a decimal number; raises ``ValueError`` if a float does not represent it as it is written."""
    number = _read_float(text)
    try:
        is_exact = Decimal(text) == Decimal(repr(number))
    except ArithmeticError:  # an exponent that is too large even for a decimal
        is_exact = False
    if not is_exact:
        raise ValueError(f"the number {quote(text, 40)} has more digits than programs read alike")
    return number


_KEY = re.compile(r'"\s*:')
"""The end of a key; a text may contain this as well."""


def _read_quickly(text: str) -> tuple[bool, Any]:
    """Read a text by msgspec; return whether the value can be relied on, and the value.

    A text that msgspec refuses is left to the slow reader, which explains the error. Of two equal keys msgspec keeps
    the last, and then the value has fewer keys than the text. A text value that looks like a key only makes the numbers
    differ, so that the slow reader is used without need.
    """
    import msgspec

    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False, None
    return _count_keys(value) == len(_KEY.findall(text)), value


def _count_keys(value: Any) -> int:
    """Count the keys of all objects in a value, at any depth."""
    if type(value) is dict:
        count = len(value)
        for child in value.values():
            if type(child) is dict or type(child) is list:
                count += _count_keys(child)
        return count
    if type(value) is list:
        return sum([_count_keys(child) for child in value if type(child) is dict or type(child) is list])
    return 0


def to_json_value(value: Any) -> Any:
    """Copy a JSON value into plain types; raises ``ValueError`` naming what is not JSON in it.

    A value of more than 20,000,000 characters as JSON is refused before it is copied, because each use of a shared list
    becomes a copy.
    """
    if measure_excess(value) == "long":
        raise ValueError(f"it comes to more than {MOST_WRITTEN:,} characters as JSON; hand in less")
    return _copy_json(value, 0)


def _copy_json(value: Any, depth: int) -> Any:
    """Copy a value with tuples as lists and mappings as dictionaries; raises ``ValueError`` for what is not JSON."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} is not a JSON number")
        return value
    if depth >= MOST_DEPTH and isinstance(value, list | tuple | Mapping):
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list | tuple):
        return [_copy_json(child, depth + 1) for child in value]
    if isinstance(value, Mapping):
        return {_check_key(key): _copy_json(child, depth + 1) for key, child in value.items()}
    raise ValueError(f"{type(value).__name__} is not a JSON type")


def _check_key(key: Any) -> str:
    """Return a key of an object; raises ``ValueError`` unless it is a text."""
    if not isinstance(key, str):
        raise ValueError(f"the key {show(key)} is {type(key).__name__}, not text")  # noqa: TRY004 - as read_json says
    return key


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its names and values; raises ``ValueError`` for a repeated name."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"the key {quote(name)} appears twice in one object")
        members[name] = value
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _drop_constant(_name: str) -> None:
    return None


def _read_float(text: str) -> float:
    """Read a decimal number; raises ``ValueError`` for one that a float cannot hold."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {quote(text, 40)} is too large")
    return number


MOST_VALUES = 2_000_000
"""The most values that are checked; a shared list counts each time, since it would be written each time."""


_INTEGER_LIMIT = 10**4300
"""Python does not write an integer of this size in decimal digits, and the validator would read it as null."""


def is_json(values: Iterable[Any], *, most: int = MOST_VALUES) -> bool:
    """Return whether all of these values are JSON, of at most so many values together."""
    return not _find_json_problem(values, most)


def _find_json_problem(values: Iterable[Any], most: int) -> str:
    """Return why some values are not JSON together; an empty text if they are.

    The reason is a sentence about all of them, or ``odd`` if a single value somewhere is not JSON.
    """
    level, values_left = [values], most
    for _ in range(MOST_DEPTH + 1):  # has an end also for a value that contains itself
        following: list[Iterable[Any]] = []
        for group in level:
            if not _check_values(group, following):
                return "odd"
        level, values_left = following, values_left - sum(map(len, following))  # type: ignore[arg-type]
        if not level:
            return ""
        if values_left < 0:
            return f"has more than {most:,} values"
    return f"nests more than {MOST_DEPTH} levels deep"


def _check_values(values: Iterable[Any], following: list[Iterable[Any]]) -> bool:
    """Return whether values are JSON, apart from the members of lists and objects, which are added to ``following``."""
    for value in values:
        kind = type(value)
        if kind in _ALWAYS_JSON:
            continue
        if kind is dict:
            if not _has_json_keys(value):
                return False
            following.append(value.values())
        elif kind is list:
            following.append(value)
        elif kind in _LEAF_CHECKS:
            if not _LEAF_CHECKS[kind](value):
                return False
        elif not _check_rare_type(value, following):
            return False
    return True


def _check_rare_type(value: Any, following: list[Iterable[Any]]) -> bool:
    """Return whether a value of a type that is rare in JSON can be written, and add its members to ``following``.

    Such types are a tuple, a member of an enumeration, and a subclass of dict or list.
    """
    kind = type(value)
    if kind is tuple:
        following.append(value)
    elif issubclass(kind, dict):
        if not _has_json_keys(value):
            return False
        following.append(list(dict.values(value)))
    elif issubclass(kind, list):
        following.append(list.__getitem__(value, slice(None)))
    elif isinstance(kind, EnumType):
        following.append((value.value,))
    else:
        return False
    return True


def _has_json_keys(mapping: dict[Any, Any]) -> bool:
    """Return whether all keys are texts that can be written as UTF-8; a member of a text enumeration is one too."""
    for key in dict.keys(mapping):
        kind = type(key)
        is_text = kind is str or (issubclass(kind, str) and isinstance(kind, EnumType))
        if not is_text or not _is_unicode(key):
            return False
    return True


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


_ALWAYS_JSON = frozenset((bool, type(None)))

_LEAF_CHECKS: dict[type, Callable[[Any], bool]] = {
    str: _is_unicode,
    float: isfinite,
    int: lambda number: -_INTEGER_LIMIT < number < _INTEGER_LIMIT,
    Decimal: Decimal.is_finite,
}


def find_non_json(value: Any, *, most: int = MOST_VALUES) -> str:
    """Describe the first part of a value that is not JSON, as ``path: problem``; for one that ``is_json`` refuses."""
    problem = _find_json_problem((value,), most)
    if problem != "odd":
        return f"the output: {problem}"
    waiting = [iter([("", value)])]
    for _ in range(most):  # limited, because another part of the value may double with each level
        path, current = next(waiting[-1], (None, None))
        if path is None:  # the last iterator has no more values
            waiting.pop()
            continue
        inner: list[Iterable[Any]] = []
        if not _check_values((current,), inner):
            return f"{describe_path(path)}: {_describe_value(current)}"
        if len(waiting) <= MOST_DEPTH:
            waiting += [_list_children(path, current, values) for values in inner]
    return "the output: is not JSON"


def _list_children(path: str, parent: Any, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Return an iterator of the children of a value, each with its path; lazy, because there may be millions."""
    if isinstance(parent, dict):
        return ((extend_path(path, key), child) for key, child in zip(dict.keys(parent), values, strict=True))
    if isinstance(parent, list | tuple):
        return ((extend_path(path, index), child) for index, child in enumerate(values))
    return ((path, child) for child in values)


def _describe_value(value: Any) -> str:
    """Describe why a value is not JSON. The value has been refused already, so an integer can only be too long."""
    kind = type(value)
    if kind is float or kind is Decimal:
        return f"{value} is not a JSON number"
    if kind is int:
        return "is a number of more than 4,300 digits"
    if kind is str:
        return "is not valid Unicode (half a surrogate pair)"
    if issubclass(kind, dict):
        return "has a key that is not a text, or not valid Unicode"
    return f"{flatten(kind.__name__, 60)} is not a JSON type"


def extend_path(path: str, part: object) -> str:
    """Extend a path by one part: ``u.n``, ``[2].x``."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path else str(part)


def describe_path(path: str) -> str:
    """Write a path for a message, short and on one line; an empty path is ``the output``."""
    return flatten(path, 120) or "the output"


def is_same(first: Any, second: Any) -> bool:
    """Return whether two values are equal as JSON: 1 is 1.0 and not true, and the order of members does not matter."""
    pairs: list[tuple[Any, Any]] = [(first, second)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pairs += [(left[key], right[key]) for key in left]
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif isinstance(left, bool) is not isinstance(right, bool) or left != right:
            return False
    return True
