"""A count of how often the parts of a JSON Schema would be applied to a value, made before it is done.

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
"""Steps that each part of a value may take beyond that, so that long lists and large tables pass."""

_HARMLESS = 100
"""A schema with at most so many steps for any place of a value, and no part that leads to itself, is not counted."""

_LEVELS = 50
"""The depth to which that is looked at."""

Part = dict[str, Any]
"""An object of the schema."""

Applied = tuple[tuple[int, int], ...]
"""The parts that are applied at a place of the value, by their numbers, and how often each."""


class TooManyStepsError(ValueError):
    """A value that is not checked, or a schema that is not read, because that would take too long."""


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
        self._roots: Applied = ()
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
        steps, allowed, places = 0, MOST_STEPS, dict[Applied, _Place]()
        stack: list[tuple[Any, Applied]] = [(value, self._roots)]
        while stack:
            current, applied = stack.pop()
            place = places.get(applied)
            if place is None:
                place = places[applied] = _Place(self._add_beside(applied), self._parts, self._numbers)
            steps, allowed = steps + place.steps, allowed + MOST_FOR_EACH
            if steps > allowed:
                raise TooManyStepsError(
                    f"checking it against the schema would take more than {MOST_STEPS:,} steps; let the schema refer "
                    "fewer times to the same part, or check less at once"
                )
            stack += place.descend(current)

    def _find_number(self, part: Part) -> int:
        """Find the number of a part; a new one gets the next."""
        number = self._numbers.setdefault(id(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def _read_parts(self, find_targets: Callable[[Part], Iterable[Part]]) -> None:
        """Number every part that can be reached, and note what each applies at its own place."""
        while len(self._beside) < len(self._parts):
            number = len(self._beside)
            part = self._parts[number]
            beside = [self._find_number(inner) for inner in (*_list_beside(part), *find_targets(part))]
            # A part that is only a reference to itself: validators stop at once.
            self._beside.append(beside if beside != [number] else [])
            for inner in _list_below(part):
                self._find_number(inner)

    def _rank_parts(self) -> None:
        """Order the parts so that each comes before what it applies at its place; no recursion, a chain may be long.

        Raises ``TooManyStepsError``.
        """
        open_parts, done = set[int](), list[int]()
        for first in range(len(self._parts)):
            stack = [first]
            while stack:
                number = stack[-1]
                if number in self._ranks or number in open_parts:
                    stack.pop()
                    if number in open_parts:
                        open_parts.discard(number)
                        self._ranks[number] = -len(done)
                        done.append(number)
                    continue
                open_parts.add(number)
                if not open_parts.isdisjoint(self._beside[number]):
                    raise TooManyStepsError("parts of it lead to one another in a circle at the same place of a value")
                stack += [inner for inner in self._beside[number] if inner not in self._ranks]

    def _add_beside(self, applied: Applied) -> Counter[int]:
        """Add the parts that some parts apply at their own place; returns how often each is applied there."""
        counts = Counter(dict(applied))
        waiting = [(self._ranks[number], number) for number in counts]
        heapify(waiting)
        while waiting:
            number = heappop(waiting)[1]
            for inner in self._beside[number]:
                if inner not in counts:
                    heappush(waiting, (self._ranks[inner], inner))
                counts[inner] += counts[number]
        return counts

    def _is_small(self) -> bool:
        """Return whether no value can make it expensive, so that nothing has to be counted."""
        applied = self._roots
        for _ in range(_LEVELS):
            counts = self._add_beside(applied)
            if counts.total() > _HARMLESS:
                return False
            below = Counter[int]()
            for number, times in counts.items():
                for inner in _list_below(self._parts[number]):
                    below[self._numbers[id(inner)]] += times
            if not below:
                return True
            applied = tuple(below.items())
        return False


class _Place:
    """The parts that are applied to places of a value, for all places to which the same ones are applied as often."""

    def __init__(self, counts: Counter[int], parts: list[Part], numbers: dict[int, int]) -> None:
        self.steps = counts.total()
        self._counts = [(parts[number], times) for number, times in counts.items()]
        self._numbers = numbers
        self._collected: dict[tuple[str, object], Applied] = {}

    def descend(self, value: Any) -> Iterator[tuple[Any, Applied]]:
        """List the children of an object or a list, each with the parts that are applied to it."""
        children: list[tuple[Any, Applied]] = []
        value = value.value if isinstance(value, Enum) else value
        if isinstance(value, dict):
            names = self._collect_applied("names", None)
            children += [(name, names) for name in value] if names else []
            children += [(child, self._collect_applied("property", key)) for key, child in value.items()]
        elif isinstance(value, list | tuple):
            longest = max((_count_positions(part) for part, _ in self._counts), default=0)
            children += [
                (child, self._collect_applied("item", min(index, longest))) for index, child in enumerate(value)
            ]
        return iter([(child, applied) for child, applied in children if applied])

    def _collect_applied(self, place_kind: str, key: Any) -> Applied:
        """Collect the parts that are applied to children of one kind, and how often; kept for the next child."""
        applied = self._collected.get((place_kind, key))
        if applied is None:
            counts = Counter[int]()
            for part, times in self._counts:
                for inner in _LISTERS[place_kind](part, key):
                    counts[self._numbers[id(inner)]] += times
            applied = self._collected[place_kind, key] = tuple(sorted(counts.items()))
        return applied


def _list_beside(part: Part) -> Iterator[Part]:
    """List the parts that are applied to the very value that this one is applied to, references apart."""
    for key in ("allOf", "anyOf", "oneOf"):
        yield from _list_many(part, key)
    for key in ("not", "if", "then", "else"):
        yield from _list_one(part, key)
    for key in ("dependentSchemas", "dependencies"):
        yield from _list_named(part, key)


def _list_below(part: Part) -> Iterator[Part]:
    """List the parts that are applied to what a value holds."""
    for key in ("properties", "patternProperties"):
        yield from _list_named(part, key)
    for key in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
        yield from _list_one(part, key)
    for key in ("items", "additionalItems", "unevaluatedItems", "contains"):
        yield from _list_one(part, key)
    for key in ("items", "prefixItems"):
        yield from _list_many(part, key)


def _list_name_parts(part: Part, _key: object) -> Iterator[Part]:
    return _list_one(part, "propertyNames")


def _list_property_parts(part: Part, key: str) -> Iterator[Part]:
    """Yield the parts that may be applied to the value of a property; too many only make the count too large."""
    properties = part.get("properties")
    is_named = isinstance(properties, dict) and key in properties
    if isinstance(properties, dict) and isinstance(properties.get(key), dict):
        yield properties[key]
    # All patterns: whether one is found in the name takes a validator.
    yield from _list_named(part, "patternProperties")
    if not is_named:
        yield from _list_one(part, "additionalProperties")
        yield from _list_one(part, "unevaluatedProperties")


def _list_item_parts(part: Part, index: int) -> Iterator[Part]:
    """Yield the parts that are applied to an item: that of its position, or those behind the last position."""
    yield from _list_one(part, "contains")
    if index < _count_positions(part):
        for key in ("prefixItems", "items"):
            schemas = part.get(key)
            if isinstance(schemas, list) and index < len(schemas) and isinstance(schemas[index], dict):
                yield schemas[index]
    else:
        for key in ("items", "additionalItems", "unevaluatedItems"):
            yield from _list_one(part, key)


def _count_positions(part: Part) -> int:
    """Count the items of a list that have parts of their own."""
    return max(len(schemas) if isinstance(schemas := part.get(key), list) else 0 for key in ("prefixItems", "items"))


_LISTERS: dict[str, Callable[[Part, Any], Iterator[Part]]] = {
    "names": _list_name_parts,
    "property": _list_property_parts,
    "item": _list_item_parts,
}


def _list_one(part: Part, key: str) -> Iterator[Part]:
    if isinstance(part.get(key), dict):
        yield part[key]


def _list_many(part: Part, key: str) -> Iterator[Part]:
    schemas = part.get(key)
    yield from [schema for schema in schemas if isinstance(schema, dict)] if isinstance(schemas, list) else ()


def _list_named(part: Part, key: str) -> Iterator[Part]:
    schemas = part.get(key)
    yield from [schema for schema in schemas.values() if isinstance(schema, dict)] if isinstance(schemas, dict) else ()
