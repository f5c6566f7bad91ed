"""Parts of a JSON Schema that limit values of one type and let every value of another type pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"), "number"),
    **dict.fromkeys(("pattern", "maxLength", "minLength", "format"), "string"),
    **dict.fromkeys(("items", "prefixItems", "contains", "maxItems", "minItems", "uniqueItems"), "array"),
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties"), "object"),
    **dict.fromkeys(("maxProperties", "minProperties", "propertyNames", "dependentRequired"), "object"),
}
"""The only type of value that each keyword says something about."""

_TYPED = frozenset(("type", "const", "enum"))
"""Keywords that say which type a value has."""

_PERHAPS_TYPED = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf"))
"""Keywords whose schemas may say it."""

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "then", "else")
"""Keywords whose schemas are about the value itself, so that a type beside the keyword is theirs too."""

_INNER = ("items", "prefixItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains")

_NAMED = ("properties", "patternProperties", "$defs", "definitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class UntypedPart:
    """A part of a schema with a keyword that says nothing about values of most types, and without a type."""

    path: str
    """Its place in the schema, like ``properties.amount``; empty for the whole schema."""
    keyword: str
    """The first such keyword, like ``maximum``."""
    type: str
    """The type of the values that the keyword limits, like ``number``."""


def find_untyped(schema: object, *, typed: bool = False) -> Iterator[UntypedPart]:
    """Find the parts of a schema that need a ``type``, from the top; ``typed`` says that the whole needs none.

    Nothing is found in ``not`` and ``if``, where a missing type does not let more pass.
    """
    waiting: list[tuple[object, str, bool]] = [(schema, "", typed)]
    while waiting:
        part, path, typed = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        typed = typed or not _TYPED.isdisjoint(part)
        keyword = next((key for key in part if key in _TYPES), None)
        if keyword is not None and not typed and _PERHAPS_TYPED.isdisjoint(part):
            yield UntypedPart(path=path, keyword=keyword, type=_TYPES[keyword])
        waiting += reversed(list(_list_parts(part, path, typed=typed)))


def _list_parts(part: Mapping[str, Any], path: str, *, typed: bool) -> Iterator[tuple[object, str, bool]]:
    """Yield the schemas within one: each with its path, and whether the outer ``type`` holds for it too."""
    for key, value in part.items():
        place = f"{path}.{key}" if path else key
        if key in _NAMED and isinstance(value, Mapping):
            yield from ((inner, f"{place}.{name}", False) for name, inner in value.items())
        elif key in _SAME_VALUE or key in _INNER:
            inner_typed = typed and key in _SAME_VALUE
            members = enumerate(value) if isinstance(value, list) else ()
            yield from ((inner, f"{place}[{number}]", inner_typed) for number, inner in members)
            yield value, place, inner_typed
