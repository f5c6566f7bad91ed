"""The size of a value as JSON, found out before it is written.

Thirty lines of YAML with aliases are a list whose members are the same list twice, thirty times: small in memory, and a
thousand million values once each is written where it is. Nothing is copied to find that out: each object counts once
per level, as often as that level holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

MOST_DEPTH = 200
"""Lists and objects inside each other, the outermost included; what nests deeper is not read."""

MOST_WRITTEN = 20_000_000
"""The most characters of indented JSON that a value may come to."""

_LEAVES = (str, int, float, bytes, bytearray, memoryview, type(None))


def find_excess(value: object, most: int = MOST_WRITTEN) -> Literal["long", "deep"] | None:
    """Find out whether a value is more than ``most`` characters of JSON, or nests more than 200 levels deep."""
    left = most
    level = {} if isinstance(value, _LEAVES) else {id(value): (value, 1)}
    for depth in range(MOST_DEPTH):
        if not level:
            return None
        following: dict[int, tuple[object, int]] = {}
        for holder, times in level.values():
            for name, child in _list_children(holder):
                left -= times * (2 * depth + 4 + len(name))
                if isinstance(child, str):
                    left -= times * len(child)
                elif isinstance(child, int):
                    left -= times * (child.bit_length() // 3)
                elif not isinstance(child, _LEAVES):
                    previous = following.get(id(child))
                    following[id(child)] = (child, times if previous is None else previous[1] + times)
                if left < 0:
                    return "long"
        level = following
    return "deep" if level else None


def _list_children(holder: object) -> Iterable[tuple[str, object]]:
    """List the children of an object, each with its name in JSON, empty in a list."""
    if isinstance(holder, Mapping):
        return [(key if isinstance(key, str) else "", child) for key, child in holder.items()]
    if isinstance(holder, Sequence | set | frozenset):
        return (("", child) for child in holder)
    return list_members(holder).items()


def list_members(holder: object) -> dict[str, object]:
    """List the members of an instance, as far as its type says which there are; nothing for other objects."""
    kind: Any = type(holder)
    if getattr(kind, "writes_flat", False) is True:  # holds nothing that could hold it
        return {}
    names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "__struct_fields__", None)
    names = names or [attribute.name for attribute in getattr(kind, "__attrs_attrs__", ())]
    if not names and hasattr(kind, "model_fields"):  # pydantic, whose further members are in no list
        return {**getattr(holder, "__dict__", {}), **(getattr(holder, "__pydantic_extra__", None) or {})}
    if not names and hasattr(holder, "output"):  # it stands for its output
        return {"output": holder.output}
    return {name: getattr(holder, name, None) for name in names}
