"""Replies of a caller's own type: pydantic models, dataclasses and msgspec Structs.

The type must say whether it passed: by a boolean ``passed``, or by the ``passes`` function given with it. That is
checked when the call is made, not when a reply fails: a format without a verdict would otherwise pass or fail by
accident.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from adjudge.errors import ReplyError, UsageError
from adjudge.formats.text import clean
from adjudge.formats.typed import read_typed
from adjudge.question.question import Answer, Question
from adjudge.question.reply_object import ANY, check_finite, read_flag
from adjudge.question.score import answer_rubric, check_flags

_OURS = ("token", "criteria")

_OURS_WITH_RUBRIC = (*_OURS, "reasoning", "suggestions")


def check_format(kind: type[Any], passes: Callable[[Any], bool] | None) -> dict[str, Any]:
    """Return the JSON Schema properties of a result format; raise ``UsageError`` when it cannot serve as one."""
    schema = _make_schema(kind)
    properties = dict(schema.get("properties", {}))
    for name in _OURS:
        if name in properties:
            raise UsageError(
                f"result_format {kind.__name__} has a member {name!r}, which adjudge uses; rename it",
                argument="result_format",
            )
    computed = isinstance(getattr(kind, "passed", None), property)
    if passes is None and not computed and properties.get("passed", {}).get("type") != "boolean":
        raise UsageError(
            f"result_format {kind.__name__} has no boolean 'passed'; add one, or say by passes which pass",
            argument="result_format",
        )
    if schema.get("$defs"):
        properties = _inline_references(properties, schema["$defs"])
    return properties


def answer_value(members: Mapping[str, Any], question: Question) -> Answer:
    """Read a reply of the caller's type; its flag, or the caller's ``passes``, decides."""
    value = _read_value(members, question)
    check_finite(members)
    passed = _read_passed(value, members, question)
    score = getattr(value, "score", None)
    is_share = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    reasoning = getattr(value, "reasoning", "")
    return Answer(
        outcome="passed" if passed else "failed",
        score=float(score) if is_share and score is not None else float(passed),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        value=value,
    )


def answer_rubric_and_value(members: Mapping[str, Any], question: Question) -> Answer:
    """Read a reply that has a rubric's criteria and the caller's type beside them; both must pass."""
    # The format's own flag is a second verdict that was asked for, so it is not held against the scores.
    rubric_answer = answer_rubric({"criteria": members.get("criteria")}, question)
    value_answer = answer_value(members, question)
    both_pass = rubric_answer.outcome == "passed" and value_answer.outcome == "passed"
    detail = "" if both_pass or rubric_answer.outcome != "passed" else "the rubric passes and the result format says no"
    return dataclasses.replace(
        rubric_answer,
        outcome="passed" if both_pass else "failed",
        reasoning=value_answer.reasoning,
        value=value_answer.value,
        detail=detail,
    )


def _read_passed(value: Any, members: Mapping[str, Any], question: Question) -> bool:
    """Read whether a value passed; raise ``ReplyError`` where a flag beside it in the reply says otherwise."""
    passed = value.passed if question.passes is None else question.passes(value)
    if not isinstance(passed, bool):
        raise ReplyError("error", f"whether it passed must be a boolean, got {type(passed).__name__}")
    # With passes= the type's own flags are the caller's business; any other flag in the reply is a second verdict.
    # A text that the type calls "approved" is no flag.
    type_members = _list_members(type(value))
    other_members = {
        name: member
        for name, member in members.items()
        if name not in type_members or (question.passes is None and isinstance(member, bool))
    }
    flag = read_flag(other_members, need=False)
    if flag is not None and flag is not passed:
        raise ReplyError("contradiction", f"the reply's value says {passed} and a flag beside it says {flag}")
    form_members = question.wording.properties if question.wording is not None else {}
    check_flags(members, "passed" if passed else "failed", {**form_members, **dict.fromkeys(_list_ours(question), ANY)})
    return passed


def _list_ours(question: Question) -> tuple[str, ...]:
    """List the members of a reply that adjudge asks for beside those of the type."""
    return _OURS if question.rubric is None else _OURS_WITH_RUBRIC


def _read_value(members: Mapping[str, Any], question: Question) -> Any:
    """Read the value of the caller's type from a reply; every member of the type has to be in the reply.

    Raises ``ReplyError``.
    """
    kind = question.value_type
    if kind is None:
        raise ReplyError("error", "the question has no result format")
    names = _list_members(kind)
    for name in names:
        # A type's default is what its author wants of a constructor. A verdict nobody gave must not pass by it: the
        # form asks for every member, and a provider that holds a model to the form sends every one.
        if name not in members:
            raise ReplyError("unparseable", f"the reply leaves out {name!r}, a member of {kind.__name__}")
    # What adjudge asks for beside the type is not held against a type that forbids more members.
    ours = _list_ours(question)
    values = {key: member for key, member in members.items() if key not in ours or key in names}
    try:
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(json.dumps(values), strict=True)
        return read_typed(values, kind)
    except ValueError as error:
        raise ReplyError("unparseable", f"the reply does not fit {kind.__name__}: {_first_line(error)}") from None


@lru_cache(maxsize=256)
def _list_members(kind: type[Any]) -> tuple[str, ...]:
    """List the members a reply of this type has, by the names of its schema: aliases, where it has any."""
    return tuple(_make_schema(kind).get("properties", {}))


def _make_schema(kind: type[Any]) -> dict[str, Any]:
    """Make the JSON schema of a type of the caller's. Raises ``UsageError``."""
    if not isinstance(kind, type):
        raise UsageError(
            f"result_format must be a pydantic model, dataclass or msgspec Struct, got {kind!r}",
            argument="result_format",
        )
    if hasattr(kind, "model_json_schema"):
        schema = dict(kind.model_json_schema())
        # A type that refers to itself stands among its own definitions.
        return schema | schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    import msgspec

    name = kind.__name__
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)):
        raise UsageError(
            f"result_format must be a pydantic model, dataclass or msgspec Struct, got {name}",
            argument="result_format",
        )
    try:
        schemas, definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except (TypeError, NameError) as error:
        raise UsageError(
            f"result_format {kind.__name__} has a member no reply can hold: {_first_line(error)}"
        ) from None
    type_schema = definitions.get(str(schemas[0]["$ref"]).rpartition("/")[2], {})
    return {**type_schema, "$defs": definitions}


def _inline_references(node: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    """Return the schema without references, since the members are put into a schema of ours. Raises ``UsageError``."""
    if depth > 20:
        raise UsageError("result_format refers to itself; a reply's form must have an end", argument="result_format")
    if isinstance(node, list):
        return [_inline_references(member, definitions, depth) for member in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return _inline_references(definitions[str(node["$ref"]).rpartition("/")[2]], definitions, depth + 1)
    return {key: _inline_references(member, definitions, depth) for key, member in node.items()}


def _first_line(error: Exception) -> str:
    # The message quotes the reply, so it can hold what a terminal would obey.
    return clean(" ".join(str(error).split())[:200], keep_lines=False)
