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
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.text import clean
from adjudge.question.question import Answer, Question
from adjudge.question.reply_object import ANY, check_finite, read_flag
from adjudge.question.score import answer_rubric, check_flags

_ADJUDGE_MEMBERS = ("token", "criteria")

_ADJUDGE_MEMBERS_WITH_RUBRIC = (*_ADJUDGE_MEMBERS, "reasoning", "suggestions")


def check_format(kind: type[Any], passes: Callable[[Any], bool] | None) -> dict[str, Any]:
    """Return the JSON Schema properties of a result format; raise ``UsageError`` when it cannot serve as one."""
    schema = _make_schema(kind)
    properties = dict(schema.get("properties", {}))
    for name in _ADJUDGE_MEMBERS:
        if name in properties:
            raise UsageError(
                f"result_format {kind.__name__} has a member {name!r}, which adjudge uses; rename it",
                argument="result_format",
            )
    is_property = isinstance(getattr(kind, "passed", None), property)
    if passes is None and not is_property and properties.get("passed", {}).get("type") != "boolean":
        raise UsageError(
            f"result_format {kind.__name__} has no boolean 'passed'; add one, or say by passes which pass",
            argument="result_format",
        )
    if schema.get("$defs"):
        properties = _inline_references(properties, schema["$defs"])
    return properties


def answer_value(members: Mapping[str, Any], question: Question) -> Answer:
    """Read a reply of the caller's type; its ``passed``, or the caller's ``passes``, decides."""
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
    # Of the reply only the criteria are read here. The format's own flag was asked for, so it is no contradiction.
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
    # With ``passes``, the caller reads the type's own flags; any other flag in the reply is a second verdict. A member
    # of the type that is called "approved" and is a text is no flag.
    type_members = _list_type_members(type(value))
    other_members = {
        name: member
        for name, member in members.items()
        if name not in type_members or (question.passes is None and isinstance(member, bool))
    }
    flag = read_flag(other_members, need=False)
    if flag is not None and flag is not passed:
        raise ReplyError("contradiction", f"the reply's value says {passed} and a flag beside it says {flag}")
    form_members = question.wording.properties if question.wording is not None else {}
    check_flags(
        members,
        "passed" if passed else "failed",
        {**form_members, **dict.fromkeys(_list_adjudge_members(question), ANY)},
    )
    return passed


def _list_adjudge_members(question: Question) -> tuple[str, ...]:
    """List the members of a reply that adjudge asks for beside those of the caller's type."""
    return _ADJUDGE_MEMBERS if question.rubric is None else _ADJUDGE_MEMBERS_WITH_RUBRIC


def _read_value(members: Mapping[str, Any], question: Question) -> Any:
    """Read the value of the caller's type from a reply; every member of the type has to be in the reply.

    Raises ``ReplyError``.
    """
    kind = question.value_type
    if kind is None:
        raise ReplyError("error", "the question has no result format")
    names = _list_type_members(kind)
    for name in names:
        # Defaults of the type are not used: a verdict that the model did not give must not pass by one. The form asks
        # for every member, and a provider that enforces the form sends every one.
        if name not in members:
            raise ReplyError("unparseable", f"the reply leaves out {name!r}, a member of {kind.__name__}")
    # The members that adjudge asks for are left out, because the type may forbid members that it does not have.
    adjudge_members = _list_adjudge_members(question)
    values = {key: member for key, member in members.items() if key not in adjudge_members or key in names}
    try:
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(json.dumps(values), strict=True)
        return read_typed(values, kind)
    except ValueError as error:
        raise ReplyError("unparseable", f"the reply does not fit {kind.__name__}: {_describe_error(error)}") from None


@lru_cache(maxsize=256)
def _list_type_members(kind: type[Any]) -> tuple[str, ...]:
    """List the members that a reply of this type has, by their names in its JSON Schema, which may be aliases."""
    return tuple(_make_schema(kind).get("properties", {}))


def _make_schema(kind: type[Any]) -> dict[str, Any]:
    """Make the JSON Schema of a caller's type. Raises ``UsageError`` for a type that cannot be a result format."""
    if not isinstance(kind, type):
        raise UsageError(
            f"result_format must be a pydantic model, dataclass or msgspec Struct, got {kind!r}",
            argument="result_format",
        )
    if hasattr(kind, "model_json_schema"):
        schema = dict(kind.model_json_schema())
        # The schema of a type that refers to itself is only a reference to one of its definitions.
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
            f"result_format {kind.__name__} has a member no reply can hold: {_describe_error(error)}"
        ) from None
    type_schema = definitions.get(str(schemas[0]["$ref"]).rpartition("/")[2], {})
    return {**type_schema, "$defs": definitions}


def _inline_references(node: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a schema with each reference replaced by its definition: it becomes a part of adjudge's own schema.

    Raises ``UsageError`` for a type that refers to itself.
    """
    if depth > 20:
        raise UsageError("result_format refers to itself; a reply's form must have an end", argument="result_format")
    if isinstance(node, list):
        return [_inline_references(member, definitions, depth) for member in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return _inline_references(definitions[str(node["$ref"]).rpartition("/")[2]], definitions, depth + 1)
    return {key: _inline_references(member, definitions, depth) for key, member in node.items()}


def _describe_error(error: Exception) -> str:
    """Return an error's text as one line of at most 200 characters.

    It quotes the reply, so control characters, which a terminal would obey, are removed.
    """
    return clean(" ".join(str(error).split())[:200], keep_lines=False)
