"""One way of validating a tool's output, timed: prints ``RESULT {json}`` with microseconds of CPU per call.

The output has 10 properties, of which one is a list of 50 objects with 6 members each. ``--variant`` is

* ``adjudge``: ``validate_reuse``, which is handed the schema on every call, and looks whether the output is JSON at
  all; also with a history (``history``)
* ``kept``: a validator of ``jsonschema``, made once and kept, asked ``is_valid``
* ``call``: ``jsonschema.validate``, which is handed the schema on every call, as ``validate_reuse`` is
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
from collections.abc import Callable
from typing import Any

PART = {
    "type": "object",
    "required": ["id", "code", "count", "weight", "labels", "state"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{5}$"},
        "count": {"type": "integer", "minimum": 0, "maximum": 500},
        "weight": {"type": "number", "minimum": 0},
        "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
        "state": {"enum": ["new", "checked", "gone"]},
    },
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["query", "source", "found", "share", "complete", "parts", "unit", "at", "comment", "page"],
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 200},
        "source": {"type": "string"},
        "found": {"type": "integer", "minimum": 0},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "complete": {"type": "boolean"},
        "parts": {"type": "array", "items": PART, "maxItems": 100},
        "unit": {"enum": ["g", "kg"]},
        "at": {"type": "string"},
        "comment": {"type": ["string", "null"]},
        "page": {"type": "integer"},
    },
}


def make_output() -> dict[str, Any]:
    """An output that fits."""
    parts = [
        {
            "id": number + 1,
            "code": f"AB-{number:05d}",
            "count": number * 3,
            "weight": number * 0.25,
            "labels": ["small", "blue"],
            "state": ("new", "checked", "gone")[number % 3],
        }
        for number in range(50)
    ]
    head = {"query": "bolts", "source": "stock", "found": 50, "share": 0.5, "complete": True, "unit": "kg"}
    return {**head, "parts": parts, "at": "2026-01-31T12:00:00Z", "comment": None, "page": 1}


def make_call(variant: str) -> Callable[[], Any]:
    """Make the call that is timed; it returns something true when the output fits."""
    output = make_output()
    if variant in ("kept", "call"):
        import jsonschema

        validator = jsonschema.Draft202012Validator(SCHEMA)
        return (
            (lambda: validator.is_valid(output))
            if variant == "kept"
            else lambda: jsonschema.validate(output, SCHEMA) is None
        )
    from adjudge.tools import ToolHistory, validate_reuse

    history = ToolHistory(count=20, smallest=1_000, largest=9_000) if variant == "history" else None
    return lambda: validate_reuse("stock", output, SCHEMA, history=history)


def main() -> None:
    """Time one variant: the best of 15 loops, each of about 20 ms."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", required=True)
    call = make_call(parser.parse_args().variant)
    assert call()
    loops, best = 4, float("inf")
    for number in range(18):
        started = time.process_time()
        for _ in range(loops):
            call()
        took = time.process_time() - started
        if number < 3:  # also warms up
            loops = max(4, int(loops * 0.02 / max(took, 1e-6)))
        else:
            best = min(best, took / loops)
    try:
        version = importlib.metadata.version("jsonschema")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    print("RESULT " + json.dumps({"us": best * 1e6, "version": version}))


if __name__ == "__main__":
    main()
