"""Whether a value is JSON, all of it, in time linear in its size and without calling methods that are the value's own.

The validator looks at what its schema speaks of and reads NaN and integers too long to write as null, so this is asked
beside it. Both take the same for JSON: exact numbers, texts and truth values, ``None``, tuples, dictionaries and lists
(and classes derived from these two, whose own methods are not used), decimal numbers, and members of an ``Enum`` for
their ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from enum import EnumType
from math import isfinite
from typing import Any

from adjudge._depth import MOST_DEPTH
from adjudge.rules._words import flatten

MOST_VALUES = 2_000_000
"""Values that are looked at; what is shared counts as often as it stands there, since it would be written as often."""

_LONGEST = 10**4300
"""From here on Python does not write an integer in decimal digits, and the validator reads it as null."""


def is_json(values: Iterable[Any], *, most: int = MOST_VALUES) -> bool:
    """Whether all of these values are JSON, of at most so many values together."""
    return not _look(values, most)


def _look(values: Iterable[Any], most: int) -> str:
    """What is wrong with some values: nothing, ``odd`` somewhere, or the sentence for the whole."""
    level, left = [values], most
    for _ in range(MOST_DEPTH + 1):  # not for ever: what holds itself has one more level each time
        following: list[Iterable[Any]] = []
        for items in level:
            if not _take_level(items, following):
                return "odd"
        level, left = following, left - sum(map(len, following))  # type: ignore[arg-type]
        if not level:
            return ""
        if left < 0:
            return f"has more than {most:,} values"
    return f"nests more than {MOST_DEPTH} levels deep"


def _take_level(items: Iterable[Any], following: list[Iterable[Any]]) -> bool:
    for item in items:
        kind = type(item)
        if kind in _PLAIN:
            continue
        if kind is dict:
            if not _has_good_keys(item):
                return False
            following.append(item.values())
        elif kind is list:
            following.append(item)
        elif kind in _LEAVES:
            if not _LEAVES[kind](item):
                return False
        elif not _take_rare(item, following):
            return False
    return True


def _take_rare(item: Any, following: list[Iterable[Any]]) -> bool:
    kind = type(item)
    if kind is tuple:
        following.append(item)
    elif issubclass(kind, dict):
        if not _has_good_keys(item):
            return False
        following.append(list(dict.values(item)))
    elif issubclass(kind, list):
        following.append(list.__getitem__(item, slice(None)))
    elif isinstance(kind, EnumType):
        following.append((item.value,))
    else:
        return False
    return True


def _has_good_keys(item: dict[Any, Any]) -> bool:
    for key in dict.keys(item):
        if type(key) is not str:
            return isinstance(key, str) and isinstance(type(key), EnumType)
        if not _is_unicode(key):
            return False
    return True


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


_PLAIN = frozenset((bool, type(None)))
_LEAVES: dict[type, Callable[[Any], bool]] = {
    str: _is_unicode,
    float: isfinite,
    int: lambda number: -_LONGEST < number < _LONGEST,
    Decimal: Decimal.is_finite,
}


def find_odd(value: Any, *, most: int = MOST_VALUES) -> str:
    """Where a value stops being JSON, as ``path: what``; for values of which ``is_json`` says no."""
    whole = _look((value,), most)
    if whole != "odd":
        return f"the output: {whole}"
    waiting = [iter([("", value)])]
    for _ in range(most):  # beside the odd value there may be one that doubles with each level
        path, item = next(waiting[-1], (None, None))
        if path is None:
            waiting.pop()
            continue
        inner: list[Iterable[Any]] = []
        if not _take_level((item,), inner):
            return f"{name(path)}: {_describe(item)}"
        waiting += [_list_held(path, item, values) for values in inner] if len(waiting) <= MOST_DEPTH else []
    return "the output: is not JSON"


def _list_held(path: str, item: Any, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """What an item holds, each with its path; made as it is looked at, since there may be millions."""
    if isinstance(item, dict):
        return ((step(path, key), held) for key, held in zip(dict.keys(item), values, strict=True))
    if isinstance(item, list | tuple):
        return ((step(path, place), held) for place, held in enumerate(values))
    return ((path, held) for held in values)


def _describe(item: Any) -> str:
    kind = type(item)
    if kind is float or kind is Decimal:
        return f"{item} is not a JSON number"
    if kind is int:
        return "is a number of more than 4,300 digits"
    if kind is str:
        return "is not valid Unicode (half a surrogate pair)"
    if issubclass(kind, dict):
        return "has a key that is not a text, or not valid Unicode"
    return f"{flatten(kind.__name__, 60)} is not a JSON type"


def step(path: str, part: object) -> str:
    """The path one further down: ``u.n``, ``[2].x``."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path else str(part)


def name(path: str) -> str:
    """A path for a message, short and on one line; the whole output has none."""
    return flatten(path, 120) or "the output"
