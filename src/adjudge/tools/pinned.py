"""A stricter schema that is quick to check: what fits it is JSON nearly throughout, and fits the schema itself.

Whether an output is JSON takes as long to find out as whether it fits its schema. Where a schema says of which type
every value is, the validator looks at every value anyway. So the schema is copied with what makes that hold: objects
have no members but the declared ones, and texts are read to their end. Keywords are added, none is taken away, and
only where they refuse more: at the root and below ``properties`` and ``items``, never below ``not``, ``if`` or
``anyOf``. So whatever fits the copy fits the original; what does not fit the copy is looked at in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.formats.json_schema import DRAFT_7, DRAFT_2020

EACH: Final = None
"""The step of a path from a list to all of its elements."""

Path = tuple[str | None, ...]


DRAFTS = (DRAFT_2020, DRAFT_7, DRAFT_7.removesuffix("#"))
"""The drafts that a copy is made in; in others a keyword may mean something else."""

_MOST_OPEN, _MOST_NODES, _MOST_DEPTH = 16, 2_000, 20

_TYPED = frozenset(("string", "number", "integer", "boolean"))
"""Types that the validator takes no NaN or infinity for; it reads both as null."""

_DEFINITION = re.compile(r"#/(\$defs|definitions)/([A-Za-z0-9_.-]+)")

# To compare a text the validator has to read it, and it refuses one with half a surrogate pair in it. Of all keywords
# that do, this takes the least time.
_READ = {"not": {"const": "\x00"}}

# Where these stand, a copied part could mean something else than it did in its place, or be referred to by a part that
# negates it.
_MOVES_MEANING = ("$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class Pinned:
    """The stricter schema, and the places in whatever fits it where values may still be of any kind."""

    schema: Any
    open: tuple[Path, ...]


def pin(schema: Any) -> Pinned | None:
    """The stricter copy of a schema of plain types; ``None`` where it would not be quicker to check."""
    if not isinstance(schema, dict) or schema.get("$schema", DRAFTS[0]) not in DRAFTS:
        return None
    if not all(_keeps_meaning(part) for part in _list_objects(schema)):
        return None
    pinning = _Pinning(schema)
    copied = pinning.pin(schema, ())
    opened = pinning.open
    if () in opened or len(opened) > _MOST_OPEN or pinning.nodes > _MOST_NODES:
        return None
    return Pinned(copied, tuple(opened))


def reach(value: Any, path: Path) -> Sequence[Any]:
    """The values at a path; raises ``TypeError`` where something is not plainly a dictionary or a list."""
    found: Sequence[Any] = (value,)
    for part in path:
        kind = list if part is EACH else dict
        if any(type(item) is not kind for item in found):
            raise TypeError("a class of its own may say something else each time it is asked")
        found = [held for item in found for held in item] if part is EACH else _take(found, part)
    return found


def _take(found: Sequence[dict[str, Any]], key: str) -> list[Any]:
    return [item[key] for item in found if key in item]


@dataclass(slots=True)
class _Pinning:
    root: dict[str, Any]
    open: list[Path] = field(default_factory=list)
    nodes: int = 0

    def pin(self, given: Any, path: Path) -> Any:
        """The stricter copy of one part, noting the places it leaves open."""
        self.nodes += 1
        node = self._follow(given)
        # In draft 7 nothing beside a $ref counts, so what would be added there could be ignored.
        if not isinstance(node, dict) or "$ref" in node or len(path) > _MOST_DEPTH or self.nodes > _MOST_NODES:
            return self._leave(given, path)
        kinds = node.get("type")
        if kinds == "object" and _lists_members(node):
            inner = {key: self.pin(item, (*path, key)) for key, item in node["properties"].items()}
            return node | {"properties": inner, "additionalProperties": False}
        if kinds == "array" and isinstance(node.get("items"), dict) and "prefixItems" not in node:
            return node | {"items": self.pin(node["items"], (*path, EACH))}
        return self._pin_leaf(node, path)

    def _pin_leaf(self, node: dict[str, Any], path: Path) -> Any:
        said = node.get("type")
        kinds = said if isinstance(said, list) else [said]
        texts = "string" in kinds and not _names_texts(node)
        typed = _names_texts(node) or all(isinstance(item, str) and item in _TYPED for item in kinds)
        if not typed or (texts and "not" in node and "pattern" not in node):
            return self._leave(node, path)
        return node | _READ if texts and "pattern" not in node else node

    def _follow(self, node: Any) -> Any:
        """What a reference stands for, where nothing stands beside it."""
        if not isinstance(node, dict) or list(node) != ["$ref"]:
            return node
        where, key = _DEFINITION.fullmatch(node["$ref"]).groups()  # type: ignore[union-attr]  # looked at before
        held = self.root.get(where)
        return held.get(key, node) if isinstance(held, dict) else node

    def _leave(self, node: Any, path: Path) -> Any:
        self.open.append(path)
        return node


def _lists_members(node: dict[str, Any]) -> bool:
    extra = node.get("additionalProperties", True)
    return isinstance(node.get("properties"), dict) and "patternProperties" not in node and extra in (True, False, {})


def _names_texts(node: dict[str, Any]) -> bool:
    """Whether only certain texts fit, so that nothing fits that is not JSON."""
    values = node.get("enum")
    return isinstance(values, list) and all(isinstance(item, str) for item in values)


def _keeps_meaning(part: dict[str, Any]) -> bool:
    target = part.get("$ref", "#/$defs/none")
    # A reference to a part that is made stricter, from below a `not`, would make the whole accept more.
    return not any(name in part for name in _MOVES_MEANING) and _DEFINITION.fullmatch(str(target)) is not None


def _list_objects(part: Any) -> Iterator[dict[str, Any]]:
    waiting = [part]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
