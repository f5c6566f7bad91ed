"""Schemas and values that would keep a validator busy: they are refused before it begins, and never pass."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from adjudge import RuleResult, UsageError
from adjudge.rules import as_rule
from adjudge.tools import validate_reuse


def check(schema: Any, content: Any, **options: bool) -> RuleResult:
    """What the rule ``json_schema`` says."""
    return asyncio.run(as_rule({"json_schema": schema, **options}).check(content, None))


def nest(levels: int) -> Any:
    """An object in an object, so many levels deep."""
    value: Any = {}
    for _ in range(levels):
        value = {"c": value}
    return value


def make_doubling(levels: int, *, keyword: str = "allOf") -> dict[str, Any]:
    """Each definition refers twice to the next one."""
    parts = {f"a{at}": {keyword: [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**parts, f"a{levels}": {"type": "object"}}}


INNER = {"properties": {"c": {"$ref": "#"}}}

SLOW = {
    "doubling references": (make_doubling(40), nest(0)),
    "doubling alternatives": (make_doubling(40, keyword="anyOf"), 5),
    "a part that refers to itself twice": ({"allOf": [INNER, INNER]}, nest(60)),
    "by a pointer into itself": ({"allOf": [{"$ref": "#/$defs/x"}] * 2, "$defs": {"x": INNER}}, nest(60)),
    "by an anchor": ({"$anchor": "top", "oneOf": [{"properties": {"c": {"$ref": "#top"}}}] * 2}, nest(60)),
    "by an address": (
        {"$id": "http://a.example/s", "anyOf": [{"properties": {"c": {"$ref": "http://a.example/s"}}}] * 2},
        nest(60),
    ),
    "by a dynamic anchor": (
        {"$dynamicAnchor": "n", "allOf": [{"additionalProperties": {"$dynamicRef": "#n"}}] * 2},
        nest(60),
    ),
    "as in 2019-09": (
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "allOf": [{"patternProperties": {".": {"$recursiveRef": "#"}}}] * 2,
        },
        nest(60),
    ),
    "as in draft 7": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "if": INNER, "then": INNER, "else": INNER},
        nest(60),
    ),
    "many parts for many items": ({"items": {"allOf": [{"type": "integer"}] * 2_000}}, list(range(5_000))),
}


@pytest.mark.timed
@pytest.mark.parametrize("name", SLOW)
def test_what_would_take_too_long_is_refused_at_once(name: str):
    """As a rule, with ``absent`` too, and as the contract of a tool's output: it is not known whether it fits."""
    schema, value = SLOW[name]
    before = time.thread_time()
    results = [check(schema, value, absent=absent) for absent in (False, True)]
    verdict = validate_reuse("tool", value, schema)

    assert [result.passed for result in results] == [False, False]
    assert all("steps" in result.message for result in results)
    assert verdict.valid is False
    assert "steps" in verdict.schema_errors[0]
    assert time.thread_time() - before < 5


def test_parts_that_lead_to_one_another_in_a_circle_are_no_schema():
    """No draft says what it means."""
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}

    with pytest.raises(UsageError, match="circle"):
        check(schema, {})
    assert "circle" in validate_reuse("tool", {}, schema).schema_errors[0]


TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}

FILTER = {
    "$ref": "#/$defs/filter",
    "$defs": {
        "filter": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("and", "or", "not", "is")]},
        "and": {"type": "object", "properties": {"and": {"items": {"$ref": "#/$defs/filter"}}}, "required": ["and"]},
        "or": {"type": "object", "properties": {"or": {"items": {"$ref": "#/$defs/filter"}}}, "required": ["or"]},
        "not": {"type": "object", "properties": {"not": {"$ref": "#/$defs/filter"}}, "required": ["not"]},
        "is": {"type": "object", "properties": {"is": {"type": "string"}}, "required": ["is"]},
    },
}


def make_tree(levels: int, width: int) -> dict[str, Any]:
    """A tree with so many children everywhere."""
    return {"name": "x", "children": [make_tree(levels - 1, width) for _ in range(width)] if levels else []}


def make_filter(levels: int) -> dict[str, Any]:
    """A filter of filters."""
    return {"and": [{"or": [make_filter(levels - 1), {"is": "x"}]}, {"not": {"is": "y"}}]} if levels else {"is": "z"}


def test_large_values_and_schemas_of_themselves_fit():
    """A tree of 20,000 parts, a filter 60 levels deep, a long chain of references, and a large table."""
    chain = {f"a{at}": {"$ref": f"#/$defs/a{at + 1}"} for at in range(2_000)}
    table = {"items": {"properties": {f"p{at}": {"type": "integer"} for at in range(20)}}}
    for schema, value in (
        (TREE, make_tree(4, 9)),
        (FILTER, make_filter(30)),
        ({"$ref": "#/$defs/a0", "$defs": {**chain, "a2000": {"type": "integer"}}}, 1),
        (table, [{f"p{at}": at for at in range(20)}] * 5_000),
    ):
        assert check(schema, value).passed
        assert validate_reuse("tool", value, schema).valid
