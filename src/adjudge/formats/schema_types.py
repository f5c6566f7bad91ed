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
"""Keywords whose schemas may say which type a value has."""

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "then", "else")
"""Keywords whose schemas apply to the same value, so that a ``type`` beside the keyword holds for them too."""

_MEMBER_KEYWORDS = (
    "items",
    "prefixItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
)

_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class UntypedPart:
    """A part of a schema without a type, and with a keyword that limits values of one type only."""

    path: str
    """Its place in the schema, like ``properties.amount``; empty for the whole schema."""
    keyword: str
    """The first such keyword, like ``maximum``."""
    type: str
    """The type of the values that the keyword limits, like ``number``."""


def find_untyped(schema: object, *, typed: bool = False) -> Iterator[UntypedPart]:
    """Find the parts of a schema that need a ``type``, from the top; with ``typed`` the root needs none.

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
        waiting += reversed(list(_list_inner_schemas(part, path, typed=typed)))


def _list_inner_schemas(schema: Mapping[str, Any], path: str, *, typed: bool) -> Iterator[tuple[object, str, bool]]:
    """Yield the schemas directly inside one, each with its path, and whether the outer ``type`` holds for it too."""
    for key, value in schema.items():
        key_path = f"{path}.{key}" if path else key
        if key in _NAMED_SCHEMAS and isinstance(value, Mapping):
            yield from ((inner, f"{key_path}.{name}", False) for name, inner in value.items())
        elif key in _SAME_VALUE or key in _MEMBER_KEYWORDS:
            inner_typed = typed and key in _SAME_VALUE
            members = enumerate(value) if isinstance(value, list) else ()
            yield from ((inner, f"{key_path}[{number}]", inner_typed) for number, inner in members)
            yield value, key_path, inner_typed
