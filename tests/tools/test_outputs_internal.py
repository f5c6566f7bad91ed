"""What is JSON, beside what the standard library says."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge.formats.json import is_json
from adjudge.tools import reuse
from kit.tools import DRAFT_7, DRAFT_2020, check

pytestmark = pytest.mark.matrix


class Colour(Enum):
    """Members that stand for something that is, or is not, JSON."""

    RED = "red"
    SET = frozenset((1,))


leaf_schemas = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number", "minimum": 0},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"type": ["integer", "string"]},
        {"type": "string", "pattern": "^a"},
        {"type": "string", "not": {"const": "a"}},
        {"enum": ["a", "b"]},
        {"enum": ["a", None, 1]},
        {"type": "null"},
        {},
        True,
        {"$ref": "#/$defs/node"},
        {"$ref": "#/$defs/text"},
        {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/node"}]},
        {"not": {"$ref": "#/$defs/node"}},
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ]
)


node_schemas = st.recursive(
    leaf_schemas,
    lambda inner: (
        st.builds(
            lambda properties, more: {"type": "object", "properties": properties, **more},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.sampled_from(
                [
                    {},
                    {"additionalProperties": False},
                    {"additionalProperties": True},
                    {"additionalProperties": {"type": "string"}},
                    {"patternProperties": {"^b": {}}},
                    {"required": ["a"]},
                    {"not": {"required": ["b"]}},
                    {"allOf": [{"properties": {"b": {"type": "string"}}}], "unevaluatedProperties": False},
                    {"minProperties": 2},
                    {"propertyNames": {"pattern": "^[ab]"}},
                ]
            ),
        )
        | st.builds(
            lambda items, more: {"type": "array", "items": items, **more},
            inner,
            st.sampled_from([{}, {"prefixItems": [{}]}, {"uniqueItems": True}, {"contains": {"type": "string"}}]),
        )
    ),
    max_leaves=5,
)


near = st.recursive(
    st.sampled_from(
        [None, True, 1, -1, 1.5, "a", "b", "\ud800", "\x00", float("nan"), {1}, b"", Decimal(1), Colour.RED]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=8,
)


DEFINITIONS = {
    "text": {"type": "string"},
    "node": {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}, "b": {"type": "integer"}}},
}


@given(schema=node_schemas, output=near, draft=st.sampled_from([None, DRAFT_7, DRAFT_2020]))
@example(schema={"type": "array", "items": {"type": "string"}}, output=["\ud800"], draft=None)
@example(
    schema={"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, output={"a": float("nan")}, draft=None
)
def test_an_output_is_valid_exactly_when_it_is_json_that_fits(schema: Any, output: Any, draft: str | None):
    """Over schemas and outputs that nearly fit each other, in each draft: nothing is said by half of the two."""
    if isinstance(schema, dict):
        schema = {**schema, "$defs": DEFINITIONS} | ({} if draft is None else {"$schema": draft})
    compiled = reuse._find_compiled(schema)
    if draft == DRAFT_7 and compiled.error is not None:  # what draft 7 would ignore is refused there
        assert compiled.error.startswith(("unevaluatedProperties is no keyword", "prefixItems is no keyword"))
        return

    assert compiled.error is None
    assert check(output, schema).valid is (is_json((output,)) and compiled.validator.is_valid(output))
