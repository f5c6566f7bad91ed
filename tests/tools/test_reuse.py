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
from adjudge.tools import validate_reuse
from kit.environment import find_data
from kit.tools import DRAFT_7, DRAFT_2020, ITEM, ORDER, check, errors

# ---------------------------------------------------------------- JSON Schema


def test_shared_cases_of_json_schema(cases: Path):
    """Every case is answered as it says with its draft named, and one of 2020-12 also where it is not."""
    wrong = []
    for row in read_cases(cases):
        schemas = [name_draft(row)]
        if row["draft"] != "draft7" and isinstance(row["schema"], dict):
            schemas.append({key: value for key, value in row["schema"].items() if key != "$schema"})
        wrong += [row["id"] for schema in schemas if check(row["data"], schema).valid is not row["valid"]]

    assert wrong == []


def test_shared_cases_agree_with_the_validator_alone(cases: Path):
    """What is put around the validator changes no answer: not the reading of the schema, nor the look at JSON."""
    import jsonschema_rs

    for row in read_cases(cases):
        schema = name_draft(row)
        assert check(row["data"], schema).valid is jsonschema_rs.is_valid(schema, row["data"]), row["id"]


def name_draft(row: dict[str, Any]) -> Any:
    """A case's schema with its draft in it; ``true`` and ``false`` have no room for one and mean the same in all."""
    named = {"$schema": DRAFT_7 if row["draft"] == "draft7" else DRAFT_2020}
    return named | row["schema"] if isinstance(row["schema"], dict) else row["schema"]


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
    (message,) = errors(output, schema)

    assert message.partition(": ")[0] == path


def test_every_error_is_listed():
    """In an output of a size that a person reads; the first hundred."""
    assert len(errors([1] * 7, {"items": {"type": "string"}})) == 7
    assert len(errors([1] * 1_000, {"items": {"type": "string"}})) == 100


def test_of_a_huge_output_one_error_is_listed():
    """Making a message for each of a hundred thousand takes longer than whoever waits has."""
    (message,) = errors([1] * 100_000, {"items": {"type": "string"}})

    assert message.startswith("[0]: ")


def test_errors_do_not_repeat_the_output():
    """It may be secret, hostile or long."""
    messages = errors(
        {"id": 5, "x": "SECRET" * 100, "\x1b[2J\n": 1}, {**ORDER, "additionalProperties": {"type": "null"}}
    )

    assert len(messages) == 3
    assert all(len(item) < 400 and item.isprintable() for item in messages)
    assert not any("SECRET" in item for item in messages)


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
    """And never draft 7, unless it says so."""
    assert errors([1, "a"], {"prefixItems": [{"type": "integer"}, {"type": "integer"}]}) != ()
    pair = {"items": [{"type": "integer"}, {"type": "integer"}]}
    assert errors([1, 2], {"$schema": DRAFT_7, **pair}) == ()
    assert errors([1, "a"], {"$schema": DRAFT_7, **pair}) != ()
    assert errors([], {"$schema": DRAFT_2020, "items": [{}]})[0].startswith("schema: ")


REMEDY = f'"$schema": "{DRAFT_7}"'
OLD_FORMS: dict[str, Any] = {
    "items": {"items": [{"type": "integer"}]},
    "items further down": {"properties": {"a": {"anyOf": [{"items": [{}]}]}}},
    "items of an unused definition": {"$defs": {"unused": {"items": [{}]}}},
    "items behind a pointer": {"$ref": "#/x/1", "x": [0, {"items": [{}]}]},
    "items behind a pointer into data": {"$ref": "#/default", "default": {"items": [{}]}},
    "dependencies": {"dependencies": {"a": ["b"]}},
    "dependencies on a schema": {"definitions": {"d": {"dependencies": {"a": {"required": ["b"]}}}}},
    "additionalItems": {"additionalItems": False},
    "anchor": {"$ref": "#a", "definitions": {"a": {"$id": "#a", "type": "integer"}}},
}


@pytest.mark.parametrize("schema", OLD_FORMS.values(), ids=OLD_FORMS)
def test_what_only_draft_7_reads_says_how_to_name_it(schema: Any):
    """One error, with the line to add; with that line it is a schema."""
    (message,) = errors([1], schema)
    assert message.startswith("schema: ")
    assert REMEDY in message
    assert not any(item.startswith("schema: ") for item in errors([1], {"$schema": DRAFT_7, **schema}))


SWITCHES: dict[str, tuple[Any, Any]] = {
    # Each with an output that the schema seems to refuse.
    "items beside unevaluatedProperties": (
        {"x": 1},
        {"unevaluatedProperties": False, "$defs": {"unused": {"items": [{}]}}},
    ),
    "items beside dependentRequired": ({"a": 1}, {"dependentRequired": {"a": ["b"]}, "not": {"items": [False]}}),
    "items beside prefixItems": (["x"], {"prefixItems": [{"type": "integer"}], "properties": {"a": {"items": [{}]}}}),
    "dynamicRef to nowhere": ("x", {"$dynamicRef": "#none"}),
    "dynamicRef to a pointer to nowhere": ("x", {"$dynamicRef": "#/$defs/none", "$defs": {}}),
    "ref to no anchor": ("x", {"$ref": "#none"}),
    "ref to nowhere beside items": ("x", {"$ref": "#none", "items": [{}]}),
    "recursiveRef": ("x", {"$recursiveRef": "#none"}),
    "recursiveRef to elsewhere": (
        "x",
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#none"},
    ),
    **{
        f"a part of the root's name, as {name}": (
            "x",
            {"$id": "http://a.example/b", "$defs": {"b": {"$id": name, "type": "integer"}}, "$ref": name},
        )
        for name in ("http://a.example/x/../b", "HTTP://A.example/b", "http://a.example:80/b", "http://a.example/%62")
    },
    "draft 7 with dependentRequired": ({"a": 1}, {"$schema": DRAFT_7, "dependentRequired": {"a": ["b"]}}),
    "draft 7 with unevaluatedProperties": ({"a": 1}, {"$schema": DRAFT_7, "unevaluatedProperties": False}),
    "draft 7 with prefixItems": ([1], {"$schema": DRAFT_7, "prefixItems": [False]}),
    "draft 7 with dynamicRef": ("x", {"$schema": DRAFT_7, "$dynamicRef": "#none"}),
    "draft 4 with const": (2, {"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}),
    "draft 4 with if": (2, {"$schema": "http://json-schema.org/draft-04/schema#", "if": {}, "then": False}),
    "draft 7 further down": ({"a": [1]}, {"properties": {"a": {"$schema": DRAFT_7, "prefixItems": [False]}}}),
    "draft 7 further down, embedded": (
        {"a": [1]},
        {"properties": {"a": {"$id": "urn:x", "$schema": DRAFT_7, "prefixItems": [False]}}},
    ),
    "draft 7 behind a pointer": ([1], {"$ref": "#/x", "x": {"$schema": DRAFT_7, "prefixItems": [False]}}),
    "nobody's draft further down": (1, {"allOf": [{"$schema": "urn:none", "const": 2}]}),
    "a part of the meta-schema": (2, {"$schema": "https://json-schema.org/draft/2020-12/meta/core", "const": 1}),
    "no draft": (2, {"$schema": "", "const": 1}),
    "a meta-schema of one's own": (
        2,
        {"$id": "urn:m", "$schema": "urn:m", "$vocabulary": {f"{DRAFT_2020[:-6]}vocab/core": True}, "const": 1},
    ),
    "a meta-schema of one's own, inside": (
        2,
        {
            "$schema": "urn:m",
            "$defs": {"m": {"$id": "urn:m", "$schema": DRAFT_2020, "$vocabulary": {}}},
            "const": 1,
        },
    ),
    "the name of JSON Schema": ("x", {"$id": DRAFT_2020, "allOf": [{"$ref": DRAFT_2020}]}),
    "two of one $id": (
        "x",
        {"$ref": "urn:a", "$defs": {"a": {"$id": "urn:a", "type": "integer"}, "b": {"$id": "urn:a"}}},
    ),
    "two of one anchor": (
        "x",
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a", "type": "integer"}, "b": {"$anchor": "a"}}},
    ),
    "boolean exclusiveMinimum": (1, {"minimum": 1, "exclusiveMinimum": True}),
}


@pytest.mark.parametrize(("output", "schema"), SWITCHES.values(), ids=SWITCHES)
def test_nothing_in_a_schema_switches_its_keywords_off(output: Any, schema: Any):
    """Its author is the tool's: what seems to refuse an output and would not is no schema, and says which draft."""
    (message,) = errors(output, schema)
    assert message.startswith("schema: ")
    # Where draft 7 would ignore something as well, naming it is no remedy.
    assert REMEDY not in message


FINE: dict[str, tuple[Any, Any]] = {
    "a property of that name": ({"dependencies": [1]}, {"properties": {"dependencies": {"type": "array"}}}),
    "data of that form": ({"items": [1]}, {"const": {"items": [1]}}),
    "an example of that form": (1, {"examples": [{"additionalItems": False}], "default": {"dependencies": {}}}),
    "a word of one's own": (1, {"x-form": {"items": [1], "$schema": "urn:form"}}),
    "definitions": (1, {"$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}}),
    "definitions in draft 7": (1, {"$schema": DRAFT_7, "$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}),
    "the draft again": (1, {"$schema": DRAFT_2020, "$defs": {"a": {"$id": "urn:a", "$schema": f"{DRAFT_2020}#"}}}),
    "JSON Schema itself": ({"type": "string"}, {"$ref": DRAFT_2020}),
    "an anchor in each of two resources": (
        {"a": 1},
        {
            "$id": "urn:a",
            "$ref": "#x",
            "$defs": {
                "a": {"$anchor": "x", "type": "object"},
                "b": {"$id": "urn:b", "$defs": {"c": {"$anchor": "x", "type": "string"}}},
            },
        },
    ),
    "dynamicRef": (1, {"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", "type": "integer"}}}),
    "recursion": ({"a": {}}, {"properties": {"a": {"$ref": "#"}}}),
    "a pointer through a part with a name": (
        1,
        {"$id": "http://a/b", "$ref": "c#/$defs/d", "$defs": {"x": {"$id": "c", "$defs": {"d": {"type": "integer"}}}}},
    ),
}


@pytest.mark.parametrize(("output", "schema"), FINE.values(), ids=FINE)
def test_what_only_looks_like_another_draft_is_fine(output: Any, schema: Any):
    """Names of properties, data, extensions, and references that lead somewhere."""
    assert errors(output, schema) == ()


@pytest.mark.parametrize("named", [{}, {"$schema": DRAFT_7}, {"$schema": DRAFT_2020}], ids=["none", "7", "2020-12"])
def test_format_is_checked_whatever_draft_is_named(named: dict[str, Any]):
    """Or the author of a schema could choose the draft in which it is a comment."""
    assert errors("a@example.com", {**named, "format": "email"}) == ()
    assert errors("nobody", {**named, "format": "email"}) != ()
    assert errors("x", {**named, "format": "a-format-of-ours"}) == ()


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("uuid", "01a201c4-1033-7b46-a297-5cddb94e74df"),
        ("duration", "P1D"),
        ("idn-hostname", "müller.example"),
        ("iri", "https://müller.example/"),
        ("iri-reference", "/ü"),
        ("uri-reference", "/a"),
        ("uri-template", "/a/{b}"),
        ("json-pointer", "/a"),
        ("relative-json-pointer", "1/a"),
        ("date", "2026-11-22"),
        ("time", "10:00:00Z"),
    ],
)
@pytest.mark.parametrize("draft", ["draft-04/schema#", "draft-06/schema#", "draft-07/schema#"])
def test_a_format_that_a_draft_does_not_know_is_checked_all_the_same(draft: str, name: str, good: str):
    """As a part of an object as well; who reads ``format: uuid`` takes it for a check."""
    schema = {"$schema": f"http://json-schema.org/{draft}", "properties": {"a": {"format": name}}}
    assert errors({"a": good}, schema) == ()
    assert errors({"a": 1}, schema) == ()
    assert errors({"a": "\x01 ][( {"}, schema) != ()


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
        (message,) = errors(output, schema)

        assert message.startswith("schema: ")
        assert message.isprintable()


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


def test_a_schema_that_was_changed_in_place_is_another():
    """By identity it would be the one it was."""
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert check({"x": 1}, schema)
    schema["properties"]["x"]["type"] = "string"

    assert not check({"x": 1}, schema)
    assert check({"x": "1"}, schema)


def test_the_method_is_the_function():
    """``EmergentJudge`` has it too, and asks nobody."""
    model = ScriptedModel("?")

    assert EmergentJudge(model).validate_reuse("t", {}, ORDER) == validate_reuse("t", {}, ORDER)
    assert model.requests == []
