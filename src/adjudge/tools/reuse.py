"""Checks of a tool's output against its schema, on every use: no model, no input or output, never an exception."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, Self

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.json import MOST_DEPTH, describe_path, extend_path, find_non_json, is_json, nests_too_deeply
from adjudge.formats.json_schema import CompiledSchema, compile_schema
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.schema_steps import TooManyStepsError
from adjudge.formats.text import flatten, show
from adjudge.tools.verdict import ReuseVerdict

LEAST_OUTPUTS = 10
"""Outputs before which nothing is called unusual."""

SIZE_FACTOR = 2.0
"""The factor by which a size may lie beyond the smallest and the largest size so far."""

OUTPUTS_PER_SHAPE = 5
"""New shapes count as unusual while the history has at least this many outputs for each shape."""

MOST_SHAPES = 64
"""The most shapes of outputs that count: with more, the shape of an output says nothing about the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHistory:
    """A summary of a tool's outputs.

    The size of an output is the size of its JSON in bytes. Its shape is the names and JSON types of its members at
    every depth; lengths of lists and the values themselves are not part of it.

    Args:
        count: The number of outputs.
        smallest: The smallest size so far, in bytes; 0 before the first output.
        largest: The largest size so far, in bytes.
        shapes: Digests of the shapes seen, sorted; the first 65, since more than 64 say no more.
    """

    schema: ClassVar[str] = "adjudge/tool-history/1"
    _layout: ClassVar[Layout] = Layout(required=("count", "smallest", "largest", "shapes"))

    count: int = 0
    """The number of outputs."""
    smallest: int = 0
    """The smallest size so far, in bytes; 0 before the first output."""
    largest: int = 0
    """The largest size so far, in bytes."""
    shapes: tuple[str, ...] = ()
    """Digests of the shapes seen, sorted; the first 65, since more than 64 say no more."""

    def __post_init__(self) -> None:
        if not isinstance(self.shapes, list | tuple):
            raise UsageError(f"a history's shapes are a list, got {type(self.shapes).__name__}")
        object.__setattr__(self, "shapes", tuple(self.shapes))
        for name in ("count", "smallest", "largest"):
            check_whole_number(name, getattr(self, name), least=0, where="a history")
        if self.smallest > self.largest:
            sizes = f"{show(self.smallest)} and {show(self.largest)}"
            raise UsageError(f"the smallest size of a history must be at most the largest; got {sizes}")
        if not all(isinstance(shape, str) for shape in self.shapes):
            raise UsageError("a history's shapes are texts")

    def add(self, output: object) -> ToolHistory:
        """Return the history with one more output; raises ``UsageError`` for one that is not JSON.

        Args:
            output: The output, as a JSON value.
        """
        _check_json(output)
        size, shape = measure(output)
        return ToolHistory(
            count=self.count + 1,
            smallest=min(self.smallest, size) if self.count else size,
            largest=max(self.largest, size),
            shapes=tuple(sorted({*self.shapes, shape}))[: MOST_SHAPES + 1],
        )

    def is_unusual(self, output: object) -> bool:
        """Return whether an output lies outside this history, by its size or its shape.

        Nothing is unusual before 10 outputs. After that, a size below half the smallest or above twice the largest so
        far is unusual. A new shape is unusual, unless the tool often brings new shapes: more than one in five outputs,
        or more than 64 in all. Raises ``UsageError`` for an output that is not JSON.

        Args:
            output: The output, as a JSON value.
        """
        _check_json(output)
        return _is_outside(self, output)

    def to_dict(self) -> dict[str, Any]:
        """Write this history as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def _is_outside(history: ToolHistory, output: Any) -> bool:
    """Return whether an output, which is known to be JSON, has a size or a shape that is unusual in the history."""
    if history.count < LEAST_OUTPUTS:
        return False
    size, shape = measure(output)
    if not history.smallest / SIZE_FACTOR <= size <= history.largest * SIZE_FACTOR:
        return True
    shapes = history.shapes
    brings_new_shapes_often = len(shapes) > MOST_SHAPES or len(shapes) * OUTPUTS_PER_SHAPE > history.count
    return shape not in shapes and not brings_new_shapes_often


def measure(output: Any) -> tuple[int, str]:
    """Return the size of a JSON value in bytes, and the digest of its shape."""
    import msgspec

    return len(msgspec.json.encode(output)), _digest_shape(output, {})


def _check_json(output: Any) -> None:
    """Raise ``UsageError`` for an output that is not JSON."""
    if not is_json((output,)):
        raise UsageError(f"only JSON has a size and a shape ({find_non_json(output)})")


_NAME_OF_TYPE = {str: "string", int: "number", float: "number", Decimal: "number", bool: "boolean", type(None): "null"}

_ShapeDigests = dict[tuple[Any, ...], str]


def _digest_shape(value: Any, digests: _ShapeDigests) -> str:
    """Return the shape of a JSON value: the name of its type, or the digest of a list or an object.

    ``digests`` keeps the digests that were computed in this call, so that each is computed once.
    """
    value_type = type(value)
    if value_type in _NAME_OF_TYPE:
        return _NAME_OF_TYPE[value_type]
    if isinstance(value, dict):
        members = tuple(
            [(name, _NAME_OF_TYPE.get(type(child)) or _digest_shape(child, digests)) for name, child in value.items()]
        )
    elif isinstance(value, list | tuple):
        # The shape of a list is the set of the shapes of its elements: ten orders have the shape of one.
        members = tuple({_NAME_OF_TYPE.get(type(child)) or _digest_shape(child, digests) for child in value})
    else:  # a member of an Enum
        return _digest_shape(value.value, digests)
    key = (isinstance(value, dict), members)  # with the type, because an empty list and an empty object differ
    if key not in digests:
        digests[key] = hashlib.sha256(repr((key[0], sorted(members))).encode()).hexdigest()[:16]
    return digests[key]


MOST_ERRORS = 100
"""Errors that one verdict lists."""

MOST_LISTED = 10_000
"""Values in an output of which every error is listed; of a larger one the first is, since listing takes long."""

MOST_SCHEMA_BYTES = 200_000

MOST_COMPILED = 128
"""Compiled schemas that are kept, the longest unused dropped first."""


_VALID = ReuseVerdict(valid=True)

_OUTPUT_MASK = "the value"
"""The words that stand in a message for the output, which may be secret, hostile, or megabytes long."""


def digest_reuse(request: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a request to check an output: tool, output, schema, history and whether it is strict."""
    import json

    return hashlib.sha256(json.dumps(dict(request), sort_keys=True).encode()).hexdigest()


def validate_reuse(
    tool_id: str,
    output: object,
    schema: object,
    *,
    history: ToolHistory | None = None,
    strict_properties: bool = False,
) -> ReuseVerdict:
    """Check whether an output is JSON that fits a JSON Schema. Synchronous; never raises.

    The schema is draft 2020-12, or the draft that its ``$schema`` names. A keyword of another draft is an error,
    ``format`` is checked in every draft, and references must stay inside the schema. An invalid schema makes every
    output invalid, with one error that begins with ``schema:``.

    Compiled schemas are kept under their bytes, so a schema that is changed in place is compiled again.

    Args:
        tool_id: The id of the tool. It has no effect; it documents the call.
        output: What the tool returned: a JSON value, or its text.
        schema: The JSON Schema that the output has to fit: a mapping, true or false.
        history: The tool's history, with which ``anomaly`` says whether the output is unusual (see ``ToolHistory``),
            valid or not. ``None`` looks for nothing unusual.
        strict_properties: Require every declared property.
    """
    del tool_id
    try:
        return _validate(output, schema, history, strict=strict_properties)
    except Exception as error:  # noqa: BLE001 - an output that cannot be checked is not valid
        problem = f"the output: cannot be checked ({type(error).__name__})"
        return ReuseVerdict(valid=False, schema_errors=(problem,))


def _validate(output: Any, schema: Any, history: ToolHistory | None, *, strict: bool) -> ReuseVerdict:
    """Check an output as ``validate_reuse`` does, which makes a verdict of an exception that is raised here."""
    compiled = _find_compiled(schema)
    if compiled.error is not None:
        return ReuseVerdict(valid=False, schema_errors=(f"schema: {compiled.error}",))
    # Checked before the validator, which reads NaN as null. And a subclass of dict may answer differently each time.
    if not is_json((output,)):
        return ReuseVerdict(valid=False, schema_errors=(find_non_json(output),))
    errors = _list_errors(output, compiled)
    if strict:
        errors += islice(_list_missing_properties(output, compiled.schema, ""), MOST_ERRORS)
    anomaly = history is not None and _is_outside(history, output)
    if not errors and not anomaly:
        return _VALID
    return ReuseVerdict(valid=not errors, schema_errors=tuple(errors[:MOST_ERRORS]), anomaly=anomaly)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The compiled form of a schema, or the error that it has none."""

    error: str | None
    """The reason why the schema is invalid; ``None`` if it is valid."""
    schema: Any = None
    validator: CompiledSchema | None = None


def _find_compiled(schema: Any) -> _Compiled:
    """Return the compiled form of a schema, which is kept by its bytes; that of what is not JSON has an ``error``."""
    import msgspec

    if sys.getrecursionlimit() > 50_000 and not is_json((schema,)):
        return _Compiled("is not JSON, or nests too deeply")  # with this limit, the encoder would recurse too deeply
    try:
        # Encoded on every call, which takes microseconds: by its identity, a changed schema would be found as it was.
        key = msgspec.json.encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return _Compiled(f"is not JSON ({flatten(str(error), 200)})")
    return _compile(key)


@lru_cache(maxsize=MOST_COMPILED)
def _compile(key: bytes) -> _Compiled:
    """Compile the schema that some bytes encode; the result has an ``error`` if it is invalid or too large."""
    import msgspec

    if len(key) > MOST_SCHEMA_BYTES:
        return _Compiled(f"is larger than {MOST_SCHEMA_BYTES:,} bytes")
    if nests_too_deeply(key.decode()):
        return _Compiled(f"nests more than {MOST_DEPTH} levels deep")
    schema = msgspec.json.decode(key)
    try:
        validator = compile_schema(schema, mask=_OUTPUT_MASK, validate_formats=True)
    except ValueError as error:
        return _Compiled(_explain_schema_error(error))
    return _Compiled(None, schema, validator)


def _explain_schema_error(error: ValueError) -> str:
    """Explain what is wrong with an invalid schema, and where."""
    message, path = flatten(str(getattr(error, "message", error)), 300), ""
    for part in getattr(error, "instance_path", ()):
        path = extend_path(path, part)
    return f"{message} (at {flatten(path, 200)})" if path else message


def _list_errors(output: Any, compiled: _Compiled) -> list[str]:
    """List the reasons why an output does not fit its schema; none if it fits."""
    validator = compiled.validator
    try:
        if validator is not None and validator.is_valid(output):
            return []
        messages = [] if validator is None else [_render_error(error) for error in _find_errors(output, validator)]
    except TooManyStepsError as error:
        return [f"the output: {error}"]
    return list(dict.fromkeys(messages)) or ["the output: does not fit the schema"]


def _find_errors(output: Any, validator: CompiledSchema) -> list[Any]:
    """List the errors of an output: all up to ``MOST_ERRORS`` for a small output, else the first."""
    if _is_small(output):
        return list(islice(validator.list_errors(output), MOST_ERRORS))
    first = validator.find_error(output)
    return [] if first is None else [first]


def _is_small(value: Any) -> bool:
    """Return whether a value holds at most ``MOST_LISTED`` others, at any depth.

    The search ends when there are more, so that it takes no time for a large value.
    """
    stack, values_left = [value], MOST_LISTED
    while stack and values_left >= 0:
        current = stack.pop()
        children = (
            current.values() if isinstance(current, dict) else current if isinstance(current, list | tuple) else ()
        )
        values_left -= len(children)
        stack += children if values_left >= 0 else ()
    return values_left >= 0


def _render_error(error: Any) -> str:
    """Write an error of the validator as a sentence: the path in the output, and the message."""
    path = ""
    # The path to a missing property ends with its own name, which is what has to be added.
    missing_property = [error.kind.property] if error.kind.name == "required" else []
    for part in [*error.instance_path, *missing_property]:
        path = extend_path(path, part)
    return f"{describe_path(path)}: {flatten(error.message, 200)}"


def _list_missing_properties(value: Any, schema: Any, path: str) -> Iterator[str]:
    """Yield a message for each property that the schema declares and the output lacks, at any depth.

    Only ``properties`` and ``items`` are followed. Required properties are left out, because the validator reports
    them.
    """
    if not isinstance(schema, dict):
        return
    properties, item_schema = schema.get("properties"), schema.get("items")
    if isinstance(value, dict) and isinstance(properties, dict):
        required = schema.get("required")
        for key, property_schema in properties.items():
            if key in value:
                yield from _list_missing_properties(value[key], property_schema, extend_path(path, key))
            elif not isinstance(required, list) or key not in required:  # required ones are errors already
                yield f"{describe_path(extend_path(path, key))}: is declared and not there"
    if isinstance(value, list | tuple) and isinstance(item_schema, dict):
        for index, element in enumerate(value):
            yield from _list_missing_properties(element, item_schema, extend_path(path, index))
