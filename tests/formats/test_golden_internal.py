"""Records keep their bytes: what is written is compared with golden files, and what is read is refused where it lies.

``ADJUDGE_GOLDEN=write`` writes the files anew. Do so only for a new record, or a new member: files that people keep
are read by these names.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from kit.house import TESTS
from kit.records import find_records, make_examples

GOLDEN = TESTS / "data" / "golden"

WRITES = os.environ.get("ADJUDGE_GOLDEN") == "write"

WRITTEN = sorted(find_records())

READ = [name for name in WRITTEN if hasattr(find_records()[name], "from_dict")]


def compare(path: Path, text: str) -> None:
    """Compare a text with a golden file, byte for byte."""
    if WRITES:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    assert path.read_bytes().decode() == text


def write(examples: list[Any]) -> str:
    return json.dumps([item.to_dict() for item in examples], indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@pytest.mark.parametrize("name", WRITTEN)
def test_a_record_is_written_as_ever(name: str):
    """Members, their order and their forms: every byte."""
    compare(GOLDEN / "records" / f"{name}.json", write(make_examples(name)))


@pytest.mark.parametrize("name", READ)
def test_a_record_is_read_back(name: str):
    """What ``from_dict`` returns is written as what it was read from."""
    for data in json.loads((GOLDEN / "records" / f"{name}.json").read_bytes()):
        assert find_records()[name].from_dict(data).to_dict() == data


def list_damage(data: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """Dictionaries that are wrong in one place, each with its name."""
    if "schema" in data:
        noun = data["schema"].rsplit("/", 1)[0]
        yield "schema: missing", {key: value for key, value in data.items() if key != "schema"}
        yield "schema: of another record", data | {"schema": "adjudge/elsewhere/1"}
        yield "schema: newer", data | {"schema": f"{noun}/2"}
        yield "schema: a number", data | {"schema": 1}
    yield "a list", [data]
    yield "unknown: added", data | {"unknown": 1}
    for name, value in data.items():
        if name == "schema":
            continue
        yield f"{name}: missing", {key: item for key, item in data.items() if key != name}
        yield f"{name}: of another type", data | {name: find_other(value)}
        if isinstance(value, float):
            yield f"{name}: NaN", data | {name: math.nan}
            yield f"{name}: infinite", data | {name: math.inf}


def find_other(value: object) -> object:
    """A value of another type, which looks like the right one where it can."""
    if isinstance(value, bool):
        return str(value).lower()
    return ["x"] if isinstance(value, str | dict) else "1"


def try_to_read(name: str, data: Any) -> str:
    """Whether a dictionary was read or refused; any other error fails the test."""
    try:
        find_records()[name].from_dict(data)
    except UsageError as error:
        return f"refused: {error}"
    return "read"


def read_all(name: str) -> dict[str, str]:
    data = json.loads((GOLDEN / "records" / f"{name}.json").read_bytes())[0]
    return {damage: try_to_read(name, damaged).split(":")[0] for damage, damaged in list_damage(data)}


@pytest.mark.parametrize("name", READ)
def test_a_damaged_record_is_refused(name: str):
    """Each damage has the outcome of the table: a ``UsageError``, or it may be ignored."""
    compare(GOLDEN / "damaged" / f"{name}.json", json.dumps(read_all(name), indent=1, ensure_ascii=False) + "\n")
