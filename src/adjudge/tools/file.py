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

_NEEDED = ("name", "description", "input_schema", "mode")

_KEYS = ("schema", "$schema", *_NEEDED, "output_schema", "source", "allowlist", "steps", "tests")

_TEST_KEYS = ("input", "output", "success", "expected", "error")

_EMPTY = ("output_schema", "allowlist", "steps", "tests")
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
    """Read a candidate from a file's data; raise ``UsageError`` that names the place of the fault."""
    renamed, spellings = _rename_aliases(document, place)
    nonempty = {key: value for key, value in renamed.items() if value is not None or key not in _EMPTY}
    members = check_keys(nonempty, _KEYS, _NEEDED, "a tool candidate", place)
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
    """Read a recorded run of a tool; raise ``UsageError`` that names the place of the fault."""
    members, spellings = _rename_aliases(row, place)
    # Not check_keys: that refuses a key without a value, and null is what a tool may put out, or should.
    for key in members:
        if key not in _TEST_KEYS:
            raise place.at(key).error(f"a test has no key {show(key)}{suggest(key, _TEST_KEYS)}")
    for key in ("input", "output", "success"):
        if key not in members and not (key == "output" and members.get("success") is False):
            raise place.error(f"a test needs {key!r}, and there is none")
    for key in ("input", "output", "expected"):
        if not is_json((members.get(key),), most=MOST_VALUES):
            # A date, for one, which YAML and TOML read by themselves.
            problem = find_non_json(members[key], most=MOST_VALUES)
            raise place.at(spellings.get(key, key)).error(f"{problem}; write it as text in quotes, or as JSON")
    values: dict[str, Any] = {"output": None, **members}
    try:
        return ToolTest(**values)
    except UsageError as error:
        raise place.error(error) from None


def _rename_aliases(document: Any, place: Place) -> tuple[dict[Any, Any], dict[str, str]]:
    """Give the keys of a mapping our names; also return the spelling of each key that had another name."""
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
    """Find the key of a refused candidate that is at fault: the first that is refused on its own."""
    placeholder: dict[str, Any] = {"name": "x", "description": "", "input_schema": True, "mode": "sandbox"}
    for key, value in members.items():
        # The candidate is not used: it checks its members when it is made, and only one of them is not a placeholder.
        try:
            ToolCandidate(**{**placeholder, key: value})
        except UsageError:
            return key
    return None
