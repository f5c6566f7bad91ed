"""The size of a value as JSON, computed without writing it.

Thirty lines of YAML with aliases can be a list that has the same list twice, thirty levels deep: small in memory, and a
thousand million values once each is written out. The size is computed without copies: on each level every object is
visited once, and counted as often as the level has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

MOST_DEPTH = 200
"""The most levels of lists and objects inside each other, the outermost included."""

MOST_WRITTEN = 20_000_000
"""The most characters of indented JSON that a value may come to."""

_LEAVES = (str, int, float, bytes, bytearray, memoryview, type(None))


def measure_excess(value: object, most: int = MOST_WRITTEN) -> Literal["long", "deep"] | None:
    """Return ``long`` for a value of more than ``most`` characters as JSON, ``deep`` for more than 200 levels."""
    characters_left = most
    # By its ``id()``, each container of a level with the number of times that the level has it.
    level = {} if isinstance(value, _LEAVES) else {id(value): (value, 1)}
    for depth in range(MOST_DEPTH):
        if not level:
            return None
        following: dict[int, tuple[object, int]] = {}
        for container, times in level.values():
            for name, child in _list_children(container):
                characters_left -= times * (2 * depth + 4 + len(name))  # the indentation, the key and punctuation
                if isinstance(child, str):
                    characters_left -= times * len(child)
                elif isinstance(child, int):
                    characters_left -= times * (child.bit_length() // 3)  # about its number of digits
                elif not isinstance(child, _LEAVES):
                    previous = following.get(id(child))
                    following[id(child)] = (child, times if previous is None else previous[1] + times)
                if characters_left < 0:
                    return "long"
        level = following
    return "deep" if level else None


def _list_children(container: object) -> Iterable[tuple[str, object]]:
    """List the children of a container, each with its name in JSON; in a list the names are empty."""
    if isinstance(container, Mapping):
        return [(key if isinstance(key, str) else "", child) for key, child in container.items()]
    if isinstance(container, Sequence | set | frozenset):
        return (("", child) for child in container)
    return list_members(container).items()


def list_members(instance: object) -> dict[str, object]:
    """List the members of an instance, if its class declares them; an empty dictionary for other objects."""
    kind: Any = type(instance)
    if getattr(kind, "writes_flat", False) is True:  # its data is flat, so it cannot contain itself
        return {}
    names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "__struct_fields__", None)
    names = names or [attribute.name for attribute in getattr(kind, "__attrs_attrs__", ())]
    if not names and hasattr(
        kind, "model_fields"
    ):  # a pydantic model, which may have extra members that its class does not declare
        return {**getattr(instance, "__dict__", {}), **(getattr(instance, "__pydantic_extra__", None) or {})}
    if not names and hasattr(instance, "output"):  # an object that converts to its output
        return {"output": instance.output}
    return {name: getattr(instance, name, None) for name in names}
