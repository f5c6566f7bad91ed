"""Candidates from files: YAML, JSON and TOML, read strictly; nothing in them is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.files import Place, check_keys, read_source
from adjudge.formats.json import find_non_json, is_json
from adjudge.formats.text import show, suggest
from adjudge.tools.tool import MOST_VALUES, ToolCandidate, ToolTest

_ALIASES = {
    "inputSchema": "input_schema",
    "outputSchema": "output_schema",
    "implementationMode": "mode",
    "testResults": "tests",
    "expectedOutput": "expected",
}
"""Other names for keys, in the style of JavaScript, which are accepted as well."""

_NEEDED_KEYS = ("name", "description", "input_schema", "mode")

_KEYS = ("schema", "$schema", *_NEEDED_KEYS, "output_schema", "source", "allowlist", "steps", "tests")

_TEST_KEYS = ("input", "output", "success", "expected", "error")

_NULLABLE_KEYS = ("output_schema", "allowlist", "steps", "tests")
"""Keys that may stand there without a value."""


def load_candidate(source: Mapping[str, Any] | str | os.PathLike[str]) -> ToolCandidate:
    """Read a tool candidate from a file or a mapping.

    A file is ``.yaml``, ``.yml``, ``.json`` or ``.toml``, YAML without a suffix, and has the keys that
    ``ToolCandidate.to_dict`` writes; ``inputSchema``, ``outputSchema``, ``implementationMode``, ``testResults`` and
    ``expectedOutput`` mean the same. Raises ``UsageError`` for a file that cannot be read, and for
    mistakes in it, with the line if it is known.

    Args:
        source: The path of a file, or its contents as a mapping.
    """
    if isinstance(source, Mapping):
        return _read_candidate(source, Place("candidate"))
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"a candidate is read from a path or a mapping, not from {type(source).__name__}")
    return _read_candidate(*read_source(source, noun="a tool candidate"))


def _read_candidate(document: Any, place: Place) -> ToolCandidate:
    """Read a candidate from the data of a file. Raises ``UsageError`` that names the place of a mistake."""
    renamed, spellings = _rename_aliases(document, place)
    present = {key: value for key, value in renamed.items() if value is not None or key not in _NULLABLE_KEYS}
    members = check_keys(present, _KEYS, _NEEDED_KEYS, "a tool candidate", place)
    if members.pop("schema", ToolCandidate.schema) != ToolCandidate.schema:
        raise place.at("schema").error(f"this version reads {ToolCandidate.schema!r}, not {show(renamed['schema'])}")
    members.pop("$schema", None)
    rows, tests_place = members.pop("tests", ()), place.at(spellings.get("tests", "tests"))
    if not isinstance(rows, list | tuple):
        raise tests_place.error(f"must be a list of recorded runs, got {show(rows)}")
    tests = tuple([_read_test(value, tests_place.at(index)) for index, value in enumerate(rows)])
    try:
        return ToolCandidate(**members, tests=tests)
    except UsageError as error:
        faulty_key = _find_faulty_key(members)
        raise (place.at(spellings.get(faulty_key, faulty_key)) if faulty_key else place).error(error) from None


def _read_test(row: Any, place: Place) -> ToolTest:
    """Read a recorded run of a tool. Raises ``UsageError`` that names the place of a mistake."""
    members, spellings = _rename_aliases(row, place)
    # Not by check_keys, which refuses a key whose value is null: null may be what a tool returned, or should return.
    for key in members:
        if key not in _TEST_KEYS:
            raise place.at(key).error(f"a test has no key {show(key)}{suggest(key, _TEST_KEYS)}")
    for key in ("input", "output", "success"):
        if key not in members and not (key == "output" and members.get("success") is False):
            raise place.error(f"a test needs {key!r}, and there is none")
    for key in ("input", "output", "expected"):
        if not is_json((members.get(key),), most=MOST_VALUES):
            # Such as a date: YAML and TOML read dates from unquoted texts.
            problem = find_non_json(members[key], most=MOST_VALUES)
            raise place.at(spellings.get(key, key)).error(f"{problem}; write it as text in quotes, or as JSON")
    values: dict[str, Any] = {"output": None, **members}
    try:
        return ToolTest(**values)
    except UsageError as error:
        raise place.error(error) from None


def _rename_aliases(document: Any, place: Place) -> tuple[dict[Any, Any], dict[str, str]]:
    """Rename the keys of a mapping that have an alias.

    Return the renamed mapping, and the spelling in the file of each key that was renamed.
    """
    if not isinstance(document, Mapping):
        raise place.error(f"must be a mapping, got {show(document)}")
    renamed: dict[Any, Any] = {}
    spellings: dict[str, str] = {}
    for key, value in document.items():
        name = _ALIASES.get(key, key) if isinstance(key, str) else key
        if name in renamed:
            raise place.at(key).error(f"{name} and {key} are the same; keep one")
        renamed[name] = value
        spellings |= {name: key} if name != key else {}
    return renamed, spellings


def _find_faulty_key(members: Mapping[str, Any]) -> str | None:
    """Find the key at fault in a refused candidate: the first whose value is refused by itself; ``None`` if none is."""
    placeholder: dict[str, Any] = {"name": "x", "description": "", "input_schema": True, "mode": "sandbox"}
    for key, value in members.items():
        # A candidate checks its members when it is made. In this one, all others are placeholders.
        try:
            ToolCandidate(**{**placeholder, key: value})
        except UsageError:
            return key
    return None
