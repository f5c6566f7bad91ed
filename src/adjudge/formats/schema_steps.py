"""A count of the steps that a JSON Schema validator would take for a value, made before the validator runs.

A validator follows every reference each time. So twenty definitions that each refer twice to the next one are a million
checks, and a part that refers to itself in two places takes twice as long for each level of the value. Nothing can
interrupt a validator, so a check that would take too long has to be refused before it begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any

MOST_STEPS = 300_000
"""The most steps for one value; most steps take a validator 0.1 microseconds, and those inside ``anyOf`` some more."""

MOST_FOR_EACH = 10
"""The steps that each part of a value adds to that limit, so that long lists and large tables pass."""

_MOST_HARMLESS_STEPS = 100
"""A schema that takes at most so many steps at any place of a value, and has no recursion, needs no count."""

_MOST_LEVELS_CHECKED = 50
"""The depth to which a schema is examined for that; a deeper one counts as recursive."""

Part = dict[str, Any]
"""An object of the schema."""

Applied = tuple[tuple[int, int], ...]
"""The parts that are applied at a place of the value, by their numbers, and how often each."""


class TooManyStepsError(ValueError):
    """A value that is not checked, or a schema that is not read, because that would take too long."""


class SchemaSteps:
    """The parts of a schema, each with the parts that it applies to the same value and to the value's children.

    ``find_targets`` returns the parts that the references of a part may lead to. It may return too many, which makes
    the count too large and refuses more; a missing one would make the count too small. Raises ``TooManyStepsError`` for
    parts that lead to one another in a circle at the same value: no draft defines that, and it would never end.
    """

    def __init__(self, schema: Any, find_targets: Callable[[Part], Iterable[Part]]) -> None:
        self._numbers: dict[int, int] = {}  # the number of each part, by its ``id()``
        self._parts: list[Part] = []
        self._same_value_parts: list[list[int]] = []  # by a part's number, the parts that it applies to the same value
        self._ranks: dict[int, int] = {}  # by a part's number, its position in the order of ``_rank_parts``
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
        steps, allowed = 0, MOST_STEPS
        places: dict[Applied, _PlaceParts] = {}  # places of a value with equal parts share one object
        stack: list[tuple[Any, Applied]] = [(value, self._roots)]
        while stack:
            current, applied = stack.pop()
            place = places.get(applied)
            if place is None:
                place = places[applied] = _PlaceParts(self._count_at_place(applied), self._parts, self._numbers)
            steps, allowed = steps + place.steps, allowed + MOST_FOR_EACH
            if steps > allowed:
                raise TooManyStepsError(
                    f"checking it against the schema would take more than {MOST_STEPS:,} steps; let the schema refer "
                    "fewer times to the same part, or check less at once"
                )
            stack += place.descend(current)

    def _find_number(self, part: Part) -> int:
        """Return the number of a part; a new part gets the next number."""
        number = self._numbers.setdefault(id(part), len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
        return number

    def _read_parts(self, find_targets: Callable[[Part], Iterable[Part]]) -> None:
        """Number every part that can be reached, and keep which parts each one applies to the same value."""
        while len(self._same_value_parts) < len(self._parts):
            number = len(self._same_value_parts)
            part = self._parts[number]
            inner_numbers = [
                self._find_number(inner) for inner in (*_list_parts_for_same_value(part), *find_targets(part))
            ]
            # Validators stop at once at a part that is only a reference to itself.
            self._same_value_parts.append(inner_numbers if inner_numbers != [number] else [])
            for inner in _list_parts_for_children(part):
                self._find_number(inner)

    def _rank_parts(self) -> None:
        """Give each part a rank below those of the parts that it applies to the same value (a topological order).

        A loop with a stack, because a chain of parts may be too long for recursion. Raises ``TooManyStepsError`` for a
        circle.
        """
        open_parts, done = set[int](), list[int]()
        for first in range(len(self._parts)):
            stack = [first]
            while stack:
                number = stack[-1]
                if number in self._ranks or number in open_parts:
                    stack.pop()
                    if number in open_parts:  # all parts that it applies have ranks now
                        open_parts.discard(number)
                        self._ranks[number] = -len(done)
                        done.append(number)
                    continue
                open_parts.add(number)
                if not open_parts.isdisjoint(self._same_value_parts[number]):
                    raise TooManyStepsError("parts of it lead to one another in a circle at the same place of a value")
                stack += [inner for inner in self._same_value_parts[number] if inner not in self._ranks]

    def _count_at_place(self, applied: Applied) -> Counter[int]:
        """Count how often each part is applied at a place, also by the parts in ``applied`` to the same value.

        Parts are taken in the order of their ranks, so that a part's count is complete before it is passed on.
        """
        counts = Counter(dict(applied))
        waiting = [(self._ranks[number], number) for number in counts]
        heapify(waiting)
        while waiting:
            number = heappop(waiting)[1]
            for inner in self._same_value_parts[number]:
                if inner not in counts:
                    heappush(waiting, (self._ranks[inner], inner))
                counts[inner] += counts[number]
        return counts

    def _is_small(self) -> bool:
        """Return whether no value can make the schema expensive, so that no value needs a count."""
        applied = self._roots
        for _ in range(_MOST_LEVELS_CHECKED):
            counts = self._count_at_place(applied)
            if counts.total() > _MOST_HARMLESS_STEPS:
                return False
            child_counts = Counter[int]()
            for number, times in counts.items():
                for inner in _list_parts_for_children(self._parts[number]):
                    child_counts[self._numbers[id(inner)]] += times
            if not child_counts:
                return True
            applied = tuple(child_counts.items())
        return False


class _PlaceParts:
    """The parts that are applied at a place of a value; places with the same parts and counts share one object."""

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
            # All items behind the positions that have parts of their own get the same parts.
            positions = max((_count_positions(part) for part, _ in self._counts), default=0)
            children += [
                (child, self._collect_applied("item", min(index, positions))) for index, child in enumerate(value)
            ]
        return iter([(child, applied) for child, applied in children if applied])

    def _collect_applied(self, place_kind: str, key: Any) -> Applied:
        """Count the parts that are applied to a child; kept for the next child with the same kind and key.

        ``place_kind`` is a key of ``_LISTERS``, and ``key`` the name of the property or the position in the list.
        """
        applied = self._collected.get((place_kind, key))
        if applied is None:
            counts = Counter[int]()
            for part, times in self._counts:
                for inner in _LISTERS[place_kind](part, key):
                    counts[self._numbers[id(inner)]] += times
            applied = self._collected[place_kind, key] = tuple(sorted(counts.items()))
        return applied


def _list_parts_for_same_value(part: Part) -> Iterator[Part]:
    """List the parts that a part applies to the same value, without those of references."""
    for key in ("allOf", "anyOf", "oneOf"):
        yield from _list_schemas_of_list(part, key)
    for key in ("not", "if", "then", "else"):
        yield from _list_schema(part, key)
    for key in ("dependentSchemas", "dependencies"):
        yield from _list_schemas_of_mapping(part, key)


def _list_parts_for_children(part: Part) -> Iterator[Part]:
    """List the parts that a part applies to the items, properties and names of a value."""
    for key in ("properties", "patternProperties"):
        yield from _list_schemas_of_mapping(part, key)
    for key in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
        yield from _list_schema(part, key)
    for key in ("items", "additionalItems", "unevaluatedItems", "contains"):
        yield from _list_schema(part, key)
    for key in ("items", "prefixItems"):
        yield from _list_schemas_of_list(part, key)


def _list_parts_for_names(part: Part, _key: object) -> Iterator[Part]:
    """Yield the part that is applied to each name of an object."""
    return _list_schema(part, "propertyNames")


def _list_parts_for_property(part: Part, key: str) -> Iterator[Part]:
    """Yield the parts that may be applied to the value of a property; too many only make the count too large."""
    properties = part.get("properties")
    is_named = isinstance(properties, dict) and key in properties
    if isinstance(properties, dict) and isinstance(properties.get(key), dict):
        yield properties[key]
    # All patterns, because only a validator can find out which of them match the name.
    yield from _list_schemas_of_mapping(part, "patternProperties")
    if not is_named:
        yield from _list_schema(part, "additionalProperties")
        yield from _list_schema(part, "unevaluatedProperties")


def _list_parts_for_item(part: Part, index: int) -> Iterator[Part]:
    """Yield the parts that are applied to an item: those of its position, or those for items behind all positions."""
    yield from _list_schema(part, "contains")
    if index < _count_positions(part):
        for key in ("prefixItems", "items"):
            schemas = part.get(key)
            if isinstance(schemas, list) and index < len(schemas) and isinstance(schemas[index], dict):
                yield schemas[index]
    else:
        for key in ("items", "additionalItems", "unevaluatedItems"):
            yield from _list_schema(part, key)


def _count_positions(part: Part) -> int:
    """Count the positions of a list that have parts of their own."""
    positions = [part.get(key) for key in ("prefixItems", "items")]
    return max(len(schemas) if isinstance(schemas, list) else 0 for schemas in positions)


_LISTERS: dict[str, Callable[[Part, Any], Iterator[Part]]] = {
    "names": _list_parts_for_names,
    "property": _list_parts_for_property,
    "item": _list_parts_for_item,
}


def _list_schema(part: Part, key: str) -> Iterator[Part]:
    """Yield the schema under a keyword, if it is an object."""
    if isinstance(part.get(key), dict):
        yield part[key]


def _list_schemas_of_list(part: Part, key: str) -> Iterator[Part]:
    """Yield the schemas in the list under a keyword, if it is a list."""
    schemas = part.get(key)
    yield from [schema for schema in schemas if isinstance(schema, dict)] if isinstance(schemas, list) else ()


def _list_schemas_of_mapping(part: Part, key: str) -> Iterator[Part]:
    """Yield the schemas by name under a keyword, if it has such."""
    schemas = part.get(key)
    yield from [schema for schema in schemas.values() if isinstance(schema, dict)] if isinstance(schemas, dict) else ()
