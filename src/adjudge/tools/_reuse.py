"""What a tool puts out, against its schema, on every use: no model, no input or output, never an exception."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from adjudge._depth import MOST_DEPTH, nests_too_deeply
from adjudge.rules._schema import compile_schema
from adjudge.rules._words import flatten
from adjudge.tools._history import ToolHistory, lies_outside
from adjudge.tools._pinned import Path, pin, reach
from adjudge.tools._strict import find_odd, is_json, name, step
from adjudge.tools._verdicts import ReuseVerdict

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


def validate_reuse(
    tool_id: str,
    output: Any,
    schema: Any,
    *,
    history: ToolHistory | None = None,
    strict_properties: bool = False,
) -> ReuseVerdict:
    """Whether an output is JSON that fits a JSON Schema; synchronous, and it never raises.

    The schema is draft 2020-12, or what its ``$schema`` names. What that draft does not know is an error and is not
    ignored, ``format`` is checked in every draft, and references stay inside the schema. An invalid schema makes every
    output invalid, with one error that begins with ``schema:``. ``strict_properties`` adds that properties which are
    declared have to be there. With the tool's ``history``, ``anomaly`` says whether the output lies outside it (see
    ``ToolHistory``), valid or not.

    A schema is compiled once and found again by its bytes, so one that was changed in place is compiled anew.
    ``tool_id`` is for the reader of the call; nothing depends on it.
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
    errors: list[str] = []
    if not _fits_quickly(output, compiled):
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
    validator: Any = None
    quick: Any = None
    """The stricter copy, compiled; ``None`` where there is none."""
    open: tuple[Path, ...] = ()


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
    pinned = pin(schema)
    try:
        quick = compile_schema(pinned.schema, validate_formats=True) if pinned is not None else None
    except ValueError:
        quick = None
    return _Compiled(None, schema, validator, quick, pinned.open if pinned is not None else ())


def _explain(error: ValueError) -> str:
    said, place = flatten(str(getattr(error, "message", error)), 300), ""
    for part in getattr(error, "instance_path", ()):
        place = step(place, part)
    return f"{said} (at {flatten(place, 200)})" if place else said


def _fits_quickly(output: Any, compiled: _Compiled) -> bool:
    """Whether the output fits the stricter copy and is JSON where that leaves it open; if not, nothing is known."""
    if compiled.quick is None:
        return False
    try:
        if not compiled.quick.is_valid(output):
            return False
        return not compiled.open or is_json([item for path in compiled.open for item in reach(output, path)])
    except (TypeError, ValueError):  # not JSON, or not plainly
        return False


def _list_errors(output: Any, compiled: _Compiled) -> list[str]:
    if compiled.validator.is_valid(output):
        return []
    if not _is_small(output):
        from jsonschema_rs import ValidationError

        try:
            compiled.validator.validate(output)
        except ValidationError as error:
            return [_write_error(error)]
    found = [_write_error(error) for error in islice(compiled.validator.iter_errors(output), MOST_ERRORS)]
    return list(dict.fromkeys(found)) or ["the output: does not fit the schema"]


def _is_small(value: Any) -> bool:
    waiting, left = [value], MOST_LISTED
    while waiting and left >= 0:
        item = waiting.pop()
        held = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
        left -= len(held)
        waiting += held if left >= 0 else ()
    return left >= 0


def _write_error(error: Any) -> str:
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
