"""What a tool puts out, against its schema, on every use: no model, no input or output, never an exception."""

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
from adjudge.formats.json import MOST_DEPTH, find_odd, is_json, name, nests_too_deeply, step
from adjudge.formats.json_schema import CompiledSchema, compile_schema
from adjudge.formats.schema_steps import TooManyStepsError
from adjudge.formats.text import flatten, show
from adjudge.tools.verdict import ReuseVerdict

ENOUGH = 10
"""Outputs before which nothing is called unusual."""

FACTOR = 2.0
"""How far beyond the smallest and the largest size so far a size may lie."""

SETTLED = 5
"""New shapes count as unusual while the history has at least this many outputs for each shape."""

MOST_SHAPES = 64
"""Shapes that are kept; a tool with more is one whose shape says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHistory:
    """A summary of a tool's outputs.

    The size of an output is the size of its JSON in bytes. Its shape is the names and JSON types of its members at
    every depth; lengths of lists and the values themselves are not part of it.
    """

    schema: ClassVar[str] = "adjudge/tool-history/1"

    count: int = 0
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
        for what in ("count", "smallest", "largest"):
            check_whole_number(f"{what} of a history", getattr(self, what), least=0)
        if self.smallest > self.largest:
            sizes = f"{show(self.smallest)} and {show(self.largest)}"
            raise UsageError(f"the smallest size of a history must be at most the largest; got {sizes}")
        if not all(isinstance(item, str) for item in self.shapes):
            raise UsageError("a history's shapes are texts")

    def add(self, output: object) -> ToolHistory:
        """The history with one more output; raises ``UsageError`` for one that is not JSON."""
        _check_json(output)
        size, shape = measure(output)
        return ToolHistory(
            count=self.count + 1,
            smallest=min(self.smallest, size) if self.count else size,
            largest=max(self.largest, size),
            shapes=tuple(sorted({*self.shapes, shape}))[: MOST_SHAPES + 1],
        )

    def is_unusual(self, output: object) -> bool:
        """Whether an output lies outside this history, by its size or its shape.

        Nothing is unusual before 10 outputs. After that, a size below half the smallest or above twice the largest so
        far is unusual. A new shape is unusual, unless the tool often brings new shapes: more than one in five outputs,
        or more than 64 in all. Raises ``UsageError`` for an output that is not JSON.
        """
        _check_json(output)
        return lies_outside(self, output)

    def to_dict(self) -> dict[str, Any]:
        """This history as plain data."""
        return {
            "schema": self.schema,
            "count": self.count,
            "smallest": self.smallest,
            "largest": self.largest,
            "shapes": list(self.shapes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` for anything else."""
        if not isinstance(data, Mapping) or data.get("schema") != cls.schema:
            raise UsageError(f"a history is read from a dictionary of schema {cls.schema!r} that to_dict wrote")
        try:
            return cls(**{name: data[name] for name in ("count", "smallest", "largest", "shapes")})
        except (KeyError, TypeError) as error:
            raise UsageError(f"this is not a dictionary that ToolHistory.to_dict wrote: {error}") from None


def lies_outside(history: ToolHistory, output: Any) -> bool:
    """What ``is_unusual`` says, for an output that is known to be JSON."""
    if history.count < ENOUGH:
        return False
    size, shape = measure(output)
    if not history.smallest / FACTOR <= size <= history.largest * FACTOR:
        return True
    settled = len(history.shapes) <= MOST_SHAPES and len(history.shapes) * SETTLED <= history.count
    return settled and shape not in history.shapes


def measure(output: Any) -> tuple[int, str]:
    """The size of a JSON value in bytes, and the digest of its shape."""
    import msgspec

    return len(msgspec.json.encode(output)), _shape_of(output, {})


def _check_json(output: Any) -> None:
    if not is_json((output,)):
        raise UsageError(f"only JSON has a size and a shape ({find_odd(output)})")


_LEAVES = {str: "string", int: "number", float: "number", Decimal: "number", bool: "boolean", type(None): "null"}

_Known = dict[tuple[Any, ...], str]


def _shape_of(value: Any, known: _Known) -> str:
    """A word for what holds nothing, and else a digest; one that was made in this call is not made again."""
    kind = type(value)
    if kind in _LEAVES:
        return _LEAVES[kind]
    if isinstance(value, dict):
        held = tuple([(name, _LEAVES.get(type(item)) or _shape_of(item, known)) for name, item in value.items()])
    elif isinstance(value, list | tuple):
        # A list is as its kinds of elements are, however many: ten orders have the shape of one.
        held = tuple({_LEAVES.get(type(item)) or _shape_of(item, known) for item in value})
    else:  # a member of an Enum
        return _shape_of(value.value, known)
    key = (isinstance(value, dict), held)  # or an empty list would be an empty object
    if key not in known:
        known[key] = hashlib.sha256(repr((key[0], sorted(held))).encode()).hexdigest()[:16]
    return known[key]


MOST_ERRORS = 100
"""Errors that one verdict lists."""

MOST_LISTED = 10_000
"""Values in an output of which every error is listed; of a larger one the first is, since listing takes long."""

MOST_SCHEMA_BYTES = 200_000

KEPT = 128
"""Compiled schemas that are kept, the longest unused dropped first."""


_VALID = ReuseVerdict(valid=True)

_MASK = "the value"
"""What stands for the output in a message, which may be secret, hostile, or megabytes long."""


def digest_reuse(asked: Mapping[str, Any]) -> str:
    """SHA-256 of what is asked about an output, as JSON: tool, output, schema, history and whether it is strict."""
    import json

    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True).encode()).hexdigest()


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
    output invalid, with one error that begins with ``schema:``. ``strict_properties`` requires every declared property.
    With the tool's ``history``, ``anomaly`` says whether the output is unusual (see ``ToolHistory``), valid or not.

    Compiled schemas are kept under their bytes, so a schema that is changed in place is compiled again. ``tool_id`` has
    no effect; it documents the call.
    """
    del tool_id
    try:
        return _validate(output, schema, history, strict=strict_properties)
    except BaseException as error:  # an output is somebody else's and may do anything
        # The validator's own crash is no Exception either; whoever interrupts or cancels us is none of the output's.
        if not isinstance(error, Exception | SystemExit) and type(error).__name__ != "PanicException":
            raise
        said = f"the output: cannot be checked ({type(error).__name__})"
        return ReuseVerdict(valid=False, schema_errors=(said,))


def _validate(output: Any, schema: Any, history: ToolHistory | None, *, strict: bool) -> ReuseVerdict:
    compiled = _find_compiled(schema)
    if compiled.error is not None:
        return ReuseVerdict(valid=False, schema_errors=(f"schema: {compiled.error}",))
    # First: the validator reads NaN as null, and what is a dictionary by name may say something else each time.
    if not is_json((output,)):
        return ReuseVerdict(valid=False, schema_errors=(find_odd(output),))
    errors = _list_errors(output, compiled)
    if strict:
        errors += islice(_list_absent(output, compiled.schema, ""), MOST_ERRORS)
    anomaly = history is not None and lies_outside(history, output)
    if not errors and not anomaly:
        return _VALID
    return ReuseVerdict(valid=not errors, schema_errors=tuple(errors[:MOST_ERRORS]), anomaly=anomaly)


@dataclass(frozen=True, slots=True)
class _Compiled:
    error: str | None
    """Why the schema is none."""
    schema: Any = None
    validator: CompiledSchema | None = None


def _find_compiled(schema: Any) -> _Compiled:
    import msgspec

    if sys.getrecursionlimit() > 50_000 and not is_json((schema,)):
        return _Compiled("is not JSON, or nests too deeply")  # the encoder would descend as far as the limit says
    try:
        # A few microseconds, on every call: by identity a schema that was changed would be taken for what it was.
        key = msgspec.json.encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return _Compiled(f"is not JSON ({flatten(str(error), 200)})")
    return _compile(key)


@lru_cache(maxsize=KEPT)
def _compile(key: bytes) -> _Compiled:
    import msgspec

    if len(key) > MOST_SCHEMA_BYTES:
        return _Compiled(f"is larger than {MOST_SCHEMA_BYTES:,} bytes")
    if nests_too_deeply(key.decode()):
        return _Compiled(f"nests more than {MOST_DEPTH} levels deep")
    schema = msgspec.json.decode(key)
    try:
        validator = compile_schema(schema, mask=_MASK, validate_formats=True)
    except ValueError as error:
        return _Compiled(_explain(error))
    return _Compiled(None, schema, validator)


def _explain(error: ValueError) -> str:
    said, place = flatten(str(getattr(error, "message", error)), 300), ""
    for part in getattr(error, "instance_path", ()):
        place = step(place, part)
    return f"{said} (at {flatten(place, 200)})" if place else said


def _list_errors(output: Any, compiled: _Compiled) -> list[str]:
    validator = compiled.validator
    try:
        if validator is not None and validator.is_valid(output):
            return []
        found = [] if validator is None else [_render_error(item) for item in _find_errors(output, validator)]
    except TooManyStepsError as error:
        return [f"the output: {error}"]
    return list(dict.fromkeys(found)) or ["the output: does not fit the schema"]


def _find_errors(output: Any, validator: CompiledSchema) -> list[Any]:
    if _is_small(output):
        return list(islice(validator.list_errors(output), MOST_ERRORS))
    first = validator.find_error(output)
    return [] if first is None else [first]


def _is_small(value: Any) -> bool:
    waiting, left = [value], MOST_LISTED
    while waiting and left >= 0:
        item = waiting.pop()
        held = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
        left -= len(held)
        waiting += held if left >= 0 else ()
    return left >= 0


def _render_error(error: Any) -> str:
    path = ""
    # A missing property is named by its own path: that is what has to be added.
    for part in [*error.instance_path, *([error.kind.property] if error.kind.name == "required" else [])]:
        path = step(path, part)
    return f"{name(path)}: {flatten(error.message, 200)}"


def _list_absent(value: Any, schema: Any, path: str) -> Iterator[str]:
    """Declared properties that are not there, at any depth, as far as ``properties`` and ``items`` say."""
    if not isinstance(schema, dict):
        return
    declared, items = schema.get("properties"), schema.get("items")
    if isinstance(value, dict) and isinstance(declared, dict):
        required = schema.get("required")
        for key, part in declared.items():
            if key in value:
                yield from _list_absent(value[key], part, step(path, key))
            elif not isinstance(required, list) or key not in required:  # else that is an error already
                yield f"{name(step(path, key))}: is declared and not there"
    if isinstance(value, list | tuple) and isinstance(items, dict):
        for place, item in enumerate(value):
            yield from _list_absent(item, items, step(path, place))
