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
    """The JSON Schema properties of a result format; raises ``UsageError`` when it cannot serve as one."""
    schema = _make_schema(kind)
    properties = dict(schema.get("properties", {}))
    for name in _OURS:
        if name in properties:
            raise UsageError(f"result_format {kind.__name__} has a member {name!r}, which adjudge uses; rename it")
    computed = isinstance(getattr(kind, "passed", None), property)
    if passes is None and not computed and properties.get("passed", {}).get("type") != "boolean":
        raise UsageError(
            f"result_format {kind.__name__} has no boolean 'passed'; add one, or say passes=lambda value: ..."
        )
    if schema.get("$defs"):
        properties = _inline(properties, schema["$defs"])
    return properties


def answer_value(found: Mapping[str, Any], question: Question) -> Answer:
    """Read a reply of the caller's type; its flag, or the caller's ``passes``, decides."""
    value = _read_value(found, question)
    check_finite(found)
    passed = _ask_passes(value, found, question)
    score = getattr(value, "score", None)
    good = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    reasoning = getattr(value, "reasoning", "")
    return Answer(
        outcome="passed" if passed else "failed",
        score=float(score) if good and score is not None else float(passed),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        value=value,
    )


def answer_rubric_and_value(found: Mapping[str, Any], question: Question) -> Answer:
    """Read a reply that has a rubric's criteria and the caller's type beside them; both must pass."""
    # The format's own flag is a second verdict that was asked for, so it is not held against the scores.
    scored = answer_rubric({"criteria": found.get("criteria")}, question)
    valued = answer_value(found, question)
    both = scored.outcome == "passed" and valued.outcome == "passed"
    detail = "" if both or scored.outcome != "passed" else "the rubric passes and the result format says no"
    return dataclasses.replace(
        scored,
        outcome="passed" if both else "failed",
        reasoning=valued.reasoning,
        value=valued.value,
        detail=detail,
    )


def _ask_passes(value: Any, found: Mapping[str, Any], question: Question) -> bool:
    said = value.passed if question.passes is None else question.passes(value)
    if not isinstance(said, bool):
        raise ReplyError("error", f"whether it passed must be a boolean, got {type(said).__name__}")
    # With passes= the type's own flags are the caller's business; any other flag in the reply is a second verdict.
    # A text that the type calls "approved" is no flag.
    own = _list_members(type(value))
    other = {
        name: item
        for name, item in found.items()
        if name not in own or (question.passes is None and isinstance(item, bool))
    }
    flag = read_flag(other, need=False)
    if flag is not None and flag is not said:
        raise ReplyError("contradiction", f"the reply's value says {said} and a flag beside it says {flag}")
    members = question.wording.properties if question.wording is not None else {}
    check_flags(found, "passed" if said else "failed", {**members, **dict.fromkeys(_list_ours(question), ANY)})
    return said


def _list_ours(question: Question) -> tuple[str, ...]:
    """The members of a reply that adjudge asks for beside those of the type."""
    return _OURS if question.rubric is None else _OURS_WITH_RUBRIC


def _read_value(found: Mapping[str, Any], question: Question) -> Any:
    kind = question.value_type
    if kind is None:
        raise ReplyError("error", "the question has no result format")
    members = _list_members(kind)
    for name in members:
        # A type's default is what its author wants of a constructor. A verdict nobody gave must not pass by it: the
        # form asks for every member, and a provider that holds a model to the form sends every one.
        if name not in found:
            raise ReplyError("unparseable", f"the reply leaves out {name!r}, a member of {kind.__name__}")
    # What adjudge asks for beside the type is not held against a type that forbids more members.
    ours = _list_ours(question)
    own = {key: item for key, item in found.items() if key not in ours or key in members}
    try:
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(json.dumps(own), strict=True)
        return read_typed(own, kind)
    except ValueError as error:
        raise ReplyError("unparseable", f"the reply does not fit {kind.__name__}: {_first_line(error)}") from None


@lru_cache(maxsize=256)
def _list_members(kind: type[Any]) -> tuple[str, ...]:
    """The members a reply of this type has, by the names of its schema: aliases, where it has any."""
    return tuple(_make_schema(kind).get("properties", {}))


def _make_schema(kind: type[Any]) -> dict[str, Any]:
    if not isinstance(kind, type):
        raise UsageError(f"result_format must be a pydantic model, dataclass or msgspec Struct, got {kind!r}")
    if hasattr(kind, "model_json_schema"):
        schema = dict(kind.model_json_schema())
        # A type that refers to itself stands among its own definitions.
        return schema | schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    import msgspec

    if not (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)):
        raise UsageError(f"result_format must be a pydantic model, dataclass or msgspec Struct, got {kind.__name__}")
    try:
        schemas, defined = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except (TypeError, NameError) as error:
        raise UsageError(
            f"result_format {kind.__name__} has a member no reply can hold: {_first_line(error)}"
        ) from None
    own = defined.get(str(schemas[0]["$ref"]).rpartition("/")[2], {})
    return {**own, "$defs": defined}


def _inline(node: Any, defined: Mapping[str, Any], depth: int = 0) -> Any:
    """The schema without references, since the members are put into a schema of ours."""
    if depth > 20:
        raise UsageError("result_format refers to itself; a reply's form must have an end")
    if isinstance(node, list):
        return [_inline(item, defined, depth) for item in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return _inline(defined[str(node["$ref"]).rpartition("/")[2]], defined, depth + 1)
    return {key: _inline(item, defined, depth) for key, item in node.items()}


def _first_line(error: Exception) -> str:
    # The message quotes the reply, so it can hold what a terminal would obey.
    return clean(" ".join(str(error).split())[:200], keep_lines=False)
