"""What a tool's outputs have been like so far: how large, and of which shapes.

A history is a small summary and never holds an output. It is a value: adding an output gives a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

from adjudge.errors import UsageError
from adjudge.tools._strict import find_odd, is_json

ENOUGH = 10
"""Outputs before which nothing is called unusual."""
FACTOR = 2.0
"""How far beyond the smallest and the largest size so far a size may lie."""
SETTLED = 5
"""New shapes count as unusual while the history has at least this many outputs for each shape."""
MOST_SHAPES = 64
"""Shapes that are kept; a tool with more is one whose shape says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHistory:
    """A summary of a tool's outputs.

    The size of an output is that of its JSON in bytes. Its shape is which members it has and of which JSON types
    these are, at every depth; how long lists are, and what values hold, is not part of it.
    """

    schema: ClassVar[str] = "adjudge/tool-history/1"

    count: int = 0
    smallest: int = 0
    """The smallest size so far, in bytes; 0 before the first output."""
    largest: int = 0
    """The largest size so far, in bytes."""
    shapes: tuple[str, ...] = ()
    """Digests of the shapes seen, sorted; the first 65, since more than 64 say no more."""

    def __post_init__(self) -> None:
        if not isinstance(self.shapes, list | tuple):
            raise UsageError(f"a history's shapes are a list, got {type(self.shapes).__name__}")
        object.__setattr__(self, "shapes", tuple(self.shapes))
        numbers = (self.count, self.smallest, self.largest)
        if not all(type(number) is int and number >= 0 for number in numbers) or self.smallest > self.largest:
            raise UsageError(f"a history's count and sizes are whole numbers from 0, in order; got {numbers!r}")
        if not all(isinstance(item, str) for item in self.shapes):
            raise UsageError("a history's shapes are texts")

    def add(self, output: Any) -> ToolHistory:
        """The history with one more output; raises ``UsageError`` for one that is not JSON."""
        _check_json(output)
        size, shape = measure(output)
        return ToolHistory(
            count=self.count + 1,
            smallest=min(self.smallest, size) if self.count else size,
            largest=max(self.largest, size),
            shapes=tuple(sorted({*self.shapes, shape}))[: MOST_SHAPES + 1],
        )

    def is_unusual(self, output: Any) -> bool:
        """Whether an output lies outside this history, by its size or its shape.

        Never before 10 outputs. Then its size is unusual below half the smallest and above twice the largest so far;
        its shape is when it is new, unless new shapes are what the tool brings: more than one in five outputs, or
        more than 64 in all. Raises ``UsageError`` for what is not JSON.
        """
        _check_json(output)
        return lies_outside(self, output)

    def to_dict(self) -> dict[str, Any]:
        """This history as plain data."""
        return {
            "schema": self.schema,
            "count": self.count,
            "smallest": self.smallest,
            "largest": self.largest,
            "shapes": list(self.shapes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        if not isinstance(data, Mapping) or data.get("schema") != cls.schema:
            raise UsageError(f"a history is read from a dictionary of schema {cls.schema!r} that to_dict wrote")
        try:
            return cls(**{name: data[name] for name in ("count", "smallest", "largest", "shapes")})
        except (KeyError, TypeError) as error:
            raise UsageError(f"this is not a dictionary that ToolHistory.to_dict wrote: {error}") from None


def lies_outside(history: ToolHistory, output: Any) -> bool:
    """What ``is_unusual`` says, for an output that is known to be JSON."""
    if history.count < ENOUGH:
        return False
    size, shape = measure(output)
    if not history.smallest / FACTOR <= size <= history.largest * FACTOR:
        return True
    settled = len(history.shapes) <= MOST_SHAPES and len(history.shapes) * SETTLED <= history.count
    return settled and shape not in history.shapes


def measure(output: Any) -> tuple[int, str]:
    """The size of a JSON value in bytes, and the digest of its shape."""
    import msgspec

    return len(msgspec.json.encode(output)), _shape_of(output, {})


def _check_json(output: Any) -> None:
    if not is_json((output,)):
        raise UsageError(f"only JSON has a size and a shape ({find_odd(output)})")


_LEAVES = {str: "string", int: "number", float: "number", Decimal: "number", bool: "boolean", type(None): "null"}
_Known = dict[tuple[Any, ...], str]


def _shape_of(value: Any, known: _Known) -> str:
    """A word for what holds nothing, and else a digest; one that was made in this call is not made again."""
    kind = type(value)
    if kind in _LEAVES:
        return _LEAVES[kind]
    if isinstance(value, dict):
        held = tuple([(name, _LEAVES.get(type(item)) or _shape_of(item, known)) for name, item in value.items()])
    elif isinstance(value, list | tuple):
        # A list is as its kinds of elements are, however many: ten orders have the shape of one.
        held = tuple({_LEAVES.get(type(item)) or _shape_of(item, known) for item in value})
    else:  # a member of an Enum
        return _shape_of(value.value, known)
    key = (isinstance(value, dict), held)  # or an empty list would be an empty object
    if key not in known:
        known[key] = hashlib.sha256(repr((key[0], sorted(held))).encode()).hexdigest()[:16]
    return known[key]
