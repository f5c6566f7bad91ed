"""Walking a JSON Schema: applying one change to every schema inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Schema = dict[str, Any]

_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")


def change_schemas(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """A copy of ``schema`` with ``change`` applied to it and to every schema inside it, innermost first.

    Order is kept: a model writes members in the order of the schema. Values that only look like schemas (inside
    ``enum``, ``const``, ``default``) are left alone.
    """
    copy: Schema = {}
    for name, value in schema.items():
        if name in _NAMED and isinstance(value, Mapping):
            copy[name] = {key: _change(item, change) for key, item in value.items()}
        elif name in _LISTED and isinstance(value, list | tuple):
            copy[name] = [_change(item, change) for item in value]
        elif name in _SINGLE:
            copy[name] = _change(value, change)
        else:
            copy[name] = value
    return change(copy)


def add_to_free_text(schema: Mapping[str, Any], extra: Mapping[str, Any]) -> Schema:
    """A copy in which every string that may be anything also has the keywords ``extra``, such as ``maxLength``."""

    def add(part: Schema) -> Schema:
        free = part.get("type") == "string" and not {"enum", "const", "pattern"} & set(part)
        return part | dict(extra) if free else part

    return change_schemas(schema, add)


def _change(value: Any, change: Callable[[Schema], Schema]) -> Any:
    # "additionalProperties" and "items" may also be a boolean.
    return change_schemas(value, change) if isinstance(value, Mapping) else value
