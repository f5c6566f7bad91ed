"""Outputs of tools against their schemas: real JSON Schema, no call, no exception, and what is unusual."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from adjudge import EmergentJudge
from adjudge.testing import ScriptedModel
from adjudge.tools import _reuse as reuse
from adjudge.tools import validate_reuse
from conftest import find_data
from tools_support import DRAFT_7, DRAFT_2020, ITEM, ORDER, check, errors

# ---------------------------------------------------------------- JSON Schema


def test_shared_cases_of_json_schema(cases: Path):
    """Every case of the two drafts is answered as it says, whether or not the schema names its draft."""
    wrong = []
    for row in read_cases(cases):
        named = {"$schema": DRAFT_7 if row["draft"] == "draft7" else DRAFT_2020}
        schemas = [row["schema"], named | row["schema"]] if isinstance(row["schema"], dict) else [row["schema"]]
        wrong += [row["id"] for schema in schemas if check(row["data"], schema).valid is not row["valid"]]

    assert wrong == []


def test_shared_cases_agree_with_the_validator_alone(cases: Path):
    """What is put around the validator changes no answer: not the quick copy of a schema, nor the look at JSON."""
    import jsonschema_rs

    for row in read_cases(cases):
        named = {"$schema": DRAFT_7 if row["draft"] == "draft7" else DRAFT_2020}
        schema = named | row["schema"] if isinstance(row["schema"], dict) else row["schema"]

        assert check(row["data"], schema).valid is jsonschema_rs.is_valid(schema, row["data"]), row["id"]


def read_cases(cases: Path) -> list[dict[str, Any]]:
    with gzip.open(find_data(cases, "jsonschema_cases.jsonl.gz"), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_valid_output_has_no_errors():
    """And the verdict is true."""
    verdict = check({"id": "a", "items": [{"x": 1}]}, ORDER)

    assert verdict
    assert verdict.to_dict() == {
        "schema": "adjudge/reuse-verdict/1",
        "valid": True,
        "schema_errors": [],
        "anomaly": False,
    }


@pytest.mark.parametrize(
    ("output", "schema", "path"),
    [
        (1, {"type": "string"}, "the output"),
        ({"u": {"n": 5}}, {"properties": {"u": {"properties": {"n": {"type": "string"}}}}}, "u.n"),
        ([{}, {}, {"x": "1"}], {"items": ITEM}, "[2].x"),
        ({"items": [{"x": 1}, {"x": 1, "tags": [1]}]}, {"properties": {"items": {"items": ITEM}}}, "items[1].tags[0]"),
        ({}, ORDER, "id"),
        ({"u": {}}, {"properties": {"u": {"required": ["n"]}}}, "u.n"),
        ([[], {}], {"items": {"required": ["a"]}}, "[1].a"),
        ({"b": 1}, {"dependentRequired": {"b": ["c"]}}, "c"),
    ],
)
def test_an_error_begins_with_its_path(output: Any, schema: Any, path: str):
    """``u.n``, ``[2].x``; what is missing is named by the path it should have."""
    (said,) = errors(output, schema)

    assert said.partition(": ")[0] == path


def test_every_error_is_listed():
    """In an output of a size that a person reads; the first hundred."""
    assert len(errors([1] * 7, {"items": {"type": "string"}})) == 7
    assert len(errors([1] * 1_000, {"items": {"type": "string"}})) == 100


def test_of_a_huge_output_one_error_is_listed():
    """Making a message for each of a hundred thousand takes longer than whoever waits has."""
    (said,) = errors([1] * 100_000, {"items": {"type": "string"}})

    assert said.startswith("[0]: ")


def test_errors_do_not_repeat_the_output():
    """It may be secret, hostile or long."""
    said = errors({"id": 5, "x": "SECRET" * 100, "\x1b[2J\n": 1}, {**ORDER, "additionalProperties": {"type": "null"}})

    assert len(said) == 3
    assert all(len(item) < 400 and item.isprintable() for item in said)
    assert not any("SECRET" in item for item in said)


def test_declared_and_absent_is_an_error_only_if_asked_for():
    """As the seed has it, at any depth; one that is required as well is named once."""
    output = {"items": [{"x": 1}, {"tags": []}], "any": None}

    assert errors({**output, "id": "a"}, ORDER) == ()
    assert [item.partition(": ")[0] for item in errors(output, ORDER, strict_properties=True)] == [
        "id",
        "note",
        "items[0].tags",
        "items[1].x",
    ]
    assert errors({"id": "a"}, {"type": "object", "required": ["id"]}, strict_properties=True) == ()


def test_declared_and_absent_a_million_times_is_listed_a_hundred_times():
    """However long the output is."""
    assert len(errors([{}] * 200_000, {"items": {"properties": {"x": {}}}}, strict_properties=True)) == 100


def test_a_schema_without_a_draft_is_2020_12():
    """Or draft 7 where it is no 2020-12 schema."""
    assert errors([1, "a"], {"prefixItems": [{"type": "integer"}, {"type": "integer"}]}) != ()
    assert errors([1, "a"], {"items": [{"type": "integer"}, {"type": "integer"}]}) != ()
    assert errors([1, 2], {"items": [{"type": "integer"}, {"type": "integer"}]}) == ()
    assert errors([], {"$schema": DRAFT_2020, "items": [{}]})[0].startswith("schema: ")


# ---------------------------------------------------------------- schemas that are none


NO_SCHEMAS: dict[str, Any] = {
    "None": None,
    "number": 3,
    "list": [],
    "text": "object",
    "type": {"type": "objekt"},
    "pattern": {"pattern": "("},
    "look-ahead": {"pattern": "(?=a)a"},
    "back-reference": {"pattern": r"(a)\1"},
    "huge pattern": {"pattern": r"\pL{1000}"},
    "host": {"$ref": "https://example.com/schema.json"},
    "file": {"$ref": "file:///etc/passwd"},
    "beside": {"$id": "https://example.com/a", "$ref": "b.json"},
    "nowhere": {"$ref": "#/$defs/none"},
    "dialect": {"$schema": "https://example.com/dialect"},
    "number for a dialect": {"$schema": 7},
    "set": {1, 2},
    "object": object(),
    "deep": [],
    "large": {"enum": ["x" * 1_000_001]},
    "half a character": {"const": "\ud800"},
    "minimum": {"minimum": "3"},
}
NO_SCHEMAS["deep"] = {}
for _ in range(300):
    NO_SCHEMAS["deep"] = {"items": NO_SCHEMAS["deep"]}


@pytest.mark.parametrize("schema", NO_SCHEMAS.values(), ids=NO_SCHEMAS)
def test_what_is_no_schema_makes_every_output_invalid(schema: Any):
    """With one error that says so, whatever the output is; nothing is fetched."""
    for output in (None, {}, {"a": {1}}):
        (said,) = errors(output, schema)

        assert said.startswith("schema: ")
        assert said.isprintable()


def test_a_schema_that_holds_itself_is_none():
    """Also where a program has raised the limit that stops it."""
    schema: dict[str, Any] = {}
    schema["items"] = schema

    assert errors(1, schema)[0].startswith("schema: ")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        assert errors(1, schema)[0].startswith("schema: ")
    finally:
        sys.setrecursionlimit(limit)


def test_a_reference_inside_the_schema_is_followed():
    """To the root, to a definition, and around in circles."""
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": False}

    assert check({"child": {"child": {}}}, tree)
    assert errors({"child": {"child": {"x": 1}}}, tree)[0].startswith("child.child: ")
    assert check(1, {"$ref": "#"})


# ---------------------------------------------------------------- one compilation


def test_a_schema_is_compiled_once():
    """It is found again by its bytes, in another object too."""
    schema = {"type": "string", "$comment": "test_a_schema_is_compiled_once"}
    check("a", schema)
    before = reuse._compile.cache_info()
    for _ in range(5):
        check("b", dict(schema))
    after = reuse._compile.cache_info()

    assert (after.misses, after.hits - before.hits) == (before.misses, 5)


def test_a_schema_that_was_changed_in_place_is_another():
    """By identity it would be the one it was."""
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert check({"x": 1}, schema)
    schema["properties"]["x"]["type"] = "string"

    assert not check({"x": 1}, schema)
    assert check({"x": "1"}, schema)


def test_compiled_schemas_are_bounded():
    """A caller that makes a new schema each time fills no memory."""
    for size in range(reuse.KEPT + 20):
        check("x", {"maxLength": size})

    assert reuse._compile.cache_info().currsize <= reuse.KEPT


def test_a_schema_that_is_none_is_compiled_once_too():
    """Or whoever hands in a bad one could make every use slow."""
    schema = {"type": "objekt", "$comment": "test_a_schema_that_is_none"}
    check(1, schema)
    before = reuse._compile.cache_info()
    check(1, schema)

    assert reuse._compile.cache_info().misses == before.misses


def test_the_method_is_the_function():
    """``EmergentJudge`` has it too, and asks nobody."""
    model = ScriptedModel("?")

    assert EmergentJudge(model).validate_reuse("t", {}, ORDER) == validate_reuse("t", {}, ORDER)
    assert model.requests == []
