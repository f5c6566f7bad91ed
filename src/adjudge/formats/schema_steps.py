"""How often the parts of a JSON Schema are applied to a value, counted before it is done.

A validator follows every reference each time. So twenty definitions that each refer twice to the next one are a million
checks, and a part that refers to itself in two places takes twice as long for each level of the value. Nothing can
interrupt a validator, so what would take too long has to be refused before it begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any

MOST_STEPS = 300_000
"""A validator takes 0.1 microseconds for most steps, and several where it collects errors inside ``anyOf``."""

MOST_FOR_EACH = 10
"""What each part of a value may take beyond that, so that long lists and large tables pass."""

_HARMLESS = 100
"""A schema with at most so many steps for any place of a value, and no part that leads to itself, is not counted."""

_LEVELS = 50
"""How deep that is looked at."""

Part = dict[str, Any]
"""An object of the schema."""

Asked = tuple[tuple[int, int], ...]
"""Which parts are applied at a place of the value, by their numbers, and how often each."""


class TooManyStepsError(ValueError):
    """Why a value is not checked, or a schema not read."""


class SchemaSteps:
    """The parts of a schema, and what each has applied: at the same place of a value, and to what that holds.

    ``find_targets`` gives the parts that the references of a part may lead to. More than there are make the count too
    large, which refuses; one that is missing would make it too small. Raises ``TooManyStepsError`` for parts that lead
    to one another in a circle at the same place: no draft says what that means, and going round has no bound.
    """

    def __init__(self, schema: Any, find_targets: Callable[[Part], Iterable[Part]]) -> None:
        self._numbers: dict[int, int] = {}
        self._parts: list[Part] = []
        self._beside: list[list[int]] = []
        self._ranks: dict[int, int] = {}
        self._roots: Asked = ()
        self._is_harmless = True
        if isinstance(schema, dict):
            self._roots = ((self._find_number(schema), 1),)
            self._read_parts(find_targets)
            self._rank_parts()
            self._is_harmless = self._is_small()

    def check(self, value: Any) -> None:
        """Raise ``TooManyStepsError`` where a validator would take too many steps for a value."""
        if self._is_harmless:
            return
        steps, allowed, known = 0, MOST_STEPS, dict[Asked, _Place]()
        waiting: list[tuple[Any, Asked]] = [(value, self._roots)]
        while waiting:
            item, asked = waiting.pop()
            place = known.get(asked)
            if place is None:
                place = known[asked] = _Place(self._spread(asked), self._parts, self._numbers)
            steps, allowed = steps + place.steps, allowed + MOST_FOR_EACH
            if steps > allowed:
                raise TooManyStepsError(
                    f"checking it against the schema would take more than {MOST_STEPS:,} steps; let the schema refer "
                    "fewer times to the same part, or check less at once"
                )
            waiting += place.descend(item)

    def _find_number(self, part: Part) -> int:
        number = self._numbers.setdefault(id(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def _read_parts(self, find_targets: Callable[[Part], Iterable[Part]]) -> None:
        """Number every part that can be reached, and note what each applies at its own place."""
        while len(self._beside) < len(self._parts):
            number = len(self._beside)
            part = self._parts[number]
            beside = [self._find_number(item) for item in (*_list_beside(part), *find_targets(part))]
            # A part that is only a reference to itself: validators stop at once.
            self._beside.append(beside if beside != [number] else [])
            for item in _list_below(part):
                self._find_number(item)

    def _rank_parts(self) -> None:
        """Order the parts so that each comes before what it applies at its place; no recursion, a chain may be long."""
        open_parts, done = set[int](), list[int]()
        for first in range(len(self._parts)):
            waiting = [first]
            while waiting:
                number = waiting[-1]
                if number in self._ranks or number in open_parts:
                    waiting.pop()
                    if number in open_parts:
                        open_parts.discard(number)
                        self._ranks[number] = -len(done)
                        done.append(number)
                    continue
                open_parts.add(number)
                if not open_parts.isdisjoint(self._beside[number]):
                    raise TooManyStepsError("parts of it lead to one another in a circle at the same place of a value")
                waiting += [item for item in self._beside[number] if item not in self._ranks]

    def _spread(self, asked: Asked) -> Counter[int]:
        """All parts that are applied at a place, with those that the asked ones apply there."""
        found = Counter(dict(asked))
        waiting = [(self._ranks[number], number) for number in found]
        heapify(waiting)
        while waiting:
            number = heappop(waiting)[1]
            for inner in self._beside[number]:
                if inner not in found:
                    heappush(waiting, (self._ranks[inner], inner))
                found[inner] += found[number]
        return found

    def _is_small(self) -> bool:
        """Whether no value can make it expensive, so that nothing has to be counted."""
        asked = self._roots
        for _ in range(_LEVELS):
            here = self._spread(asked)
            if here.total() > _HARMLESS:
                return False
            below = Counter[int]()
            for number, times in here.items():
                for held in _list_below(self._parts[number]):
                    below[self._numbers[id(held)]] += times
            if not below:
                return True
            asked = tuple(below.items())
        return False


class _Place:
    """What is applied to the places of a value to which the same parts are applied equally often."""

    def __init__(self, here: Counter[int], parts: list[Part], numbers: dict[int, int]) -> None:
        self.steps = here.total()
        self._here = [(parts[number], times) for number, times in here.items()]
        self._numbers = numbers
        self._known: dict[tuple[str, object], Asked] = {}

    def descend(self, value: Any) -> Iterator[tuple[Any, Asked]]:
        """What an object or a list holds, with what is applied to it."""
        found: list[tuple[Any, Asked]] = []
        value = value.value if isinstance(value, Enum) else value
        if isinstance(value, dict):
            names = self._collect("names", None)
            found += [(name, names) for name in value] if names else []
            found += [(item, self._collect("property", key)) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            longest = max((_count_first(part) for part, _ in self._here), default=0)
            found += [(item, self._collect("item", min(index, longest))) for index, item in enumerate(value)]
        return iter([(item, asked) for item, asked in found if asked])

    def _collect(self, what: str, key: Any) -> Asked:
        known = self._known.get((what, key))
        if known is None:
            found = Counter[int]()
            for part, times in self._here:
                for held in _list_for[what](part, key):
                    found[self._numbers[id(held)]] += times
            known = self._known[what, key] = tuple(sorted(found.items()))
        return known


def _list_beside(part: Part) -> Iterator[Part]:
    """The parts that are applied to the very value that this one is applied to, references apart."""
    for key in ("allOf", "anyOf", "oneOf"):
        yield from _list_many(part, key)
    for key in ("not", "if", "then", "else"):
        yield from _list_one(part, key)
    for key in ("dependentSchemas", "dependencies"):
        yield from _list_named(part, key)


def _list_below(part: Part) -> Iterator[Part]:
    """The parts that are applied to what a value holds."""
    for key in ("properties", "patternProperties"):
        yield from _list_named(part, key)
    for key in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
        yield from _list_one(part, key)
    for key in ("items", "additionalItems", "unevaluatedItems", "contains"):
        yield from _list_one(part, key)
    for key in ("items", "prefixItems"):
        yield from _list_many(part, key)


def _list_of_names(part: Part, _key: object) -> Iterator[Part]:
    return _list_one(part, "propertyNames")


def _list_of_property(part: Part, key: str) -> Iterator[Part]:
    named = part.get("properties")
    is_named = isinstance(named, dict) and key in named
    if isinstance(named, dict) and isinstance(named.get(key), dict):
        yield named[key]
    # All patterns: whether one is found in the name takes a validator.
    yield from _list_named(part, "patternProperties")
    if not is_named:
        yield from _list_one(part, "additionalProperties")
        yield from _list_one(part, "unevaluatedProperties")


def _list_of_item(part: Part, index: int) -> Iterator[Part]:
    yield from _list_one(part, "contains")
    if index < _count_first(part):
        for key in ("prefixItems", "items"):
            held = part.get(key)
            if isinstance(held, list) and index < len(held) and isinstance(held[index], dict):
                yield held[index]
    else:
        for key in ("items", "additionalItems", "unevaluatedItems"):
            yield from _list_one(part, key)


def _count_first(part: Part) -> int:
    """How many items of a list have parts of their own."""
    return max(len(held) if isinstance(held := part.get(key), list) else 0 for key in ("prefixItems", "items"))


_list_for: dict[str, Callable[[Part, Any], Iterator[Part]]] = {
    "names": _list_of_names,
    "property": _list_of_property,
    "item": _list_of_item,
}


def _list_one(part: Part, key: str) -> Iterator[Part]:
    if isinstance(part.get(key), dict):
        yield part[key]


def _list_many(part: Part, key: str) -> Iterator[Part]:
    held = part.get(key)
    yield from [item for item in held if isinstance(item, dict)] if isinstance(held, list) else ()


def _list_named(part: Part, key: str) -> Iterator[Part]:
    held = part.get(key)
    yield from [item for item in held.values() if isinstance(item, dict)] if isinstance(held, dict) else ()
