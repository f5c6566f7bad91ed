"""Candidates from files: YAML, JSON and TOML, read strictly; nothing in them is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.files import Place, check_keys, read_source
from adjudge.formats.json import find_odd, is_json
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
    """
    if isinstance(source, Mapping):
        return _read_candidate(source, Place("candidate"))
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"a candidate is read from a path or a mapping, not from {type(source).__name__}")
    return _read_candidate(*read_source(source, what="a tool candidate"))


def _read_candidate(data: Any, place: Place) -> ToolCandidate:
    named, spelt = _rename(data, place)
    filled = {key: item for key, item in named.items() if item is not None or key not in _EMPTY}
    given = check_keys(filled, _KEYS, _NEEDED, "a tool candidate", place)
    if given.pop("schema", ToolCandidate.schema) != ToolCandidate.schema:
        raise place.at("schema").error(f"this version reads {ToolCandidate.schema!r}, not {show(named['schema'])}")
    given.pop("$schema", None)
    tests, below = given.pop("tests", ()), place.at(spelt.get("tests", "tests"))
    if not isinstance(tests, list | tuple):
        raise below.error(f"must be a list of recorded runs, got {show(tests)}")
    read = tuple([_read_test(item, below.at(index)) for index, item in enumerate(tests)])
    try:
        return ToolCandidate(**given, tests=read)
    except UsageError as error:
        fault = _find_fault(given)
        raise (place.at(spelt.get(fault, fault)) if fault else place).error(error) from None


def _read_test(data: Any, place: Place) -> ToolTest:
    given, spelt = _rename(data, place)
    # Not check_keys: that refuses a key without a value, and null is what a tool may put out, or should.
    for key in given:
        if key not in _TEST_KEYS:
            raise place.at(key).error(f"a test has no key {show(key)}{suggest(key, _TEST_KEYS)}")
    for key in ("input", "output", "success"):
        if key not in given and not (key == "output" and given.get("success") is False):
            raise place.error(f"a test needs {key!r}, and there is none")
    for key in ("input", "output", "expected"):
        if not is_json((given.get(key),), most=MOST_VALUES):
            # A date, for one, which YAML and TOML read by themselves.
            said = find_odd(given[key], most=MOST_VALUES)
            raise place.at(spelt.get(key, key)).error(f"{said}; write it as text in quotes, or as JSON")
    values: dict[str, Any] = {"output": None, **given}
    try:
        return ToolTest(**values)
    except UsageError as error:
        raise place.error(error) from None


def _rename(data: Any, place: Place) -> tuple[dict[Any, Any], dict[str, str]]:
    """A mapping with our names for its keys, and how those were spelt that had another."""
    if not isinstance(data, Mapping):
        raise place.error(f"must be a mapping, got {show(data)}")
    named: dict[Any, Any] = {}
    spelt: dict[str, str] = {}
    for key, item in data.items():
        name = _ALIASES.get(key, key) if isinstance(key, str) else key
        if name in named:
            raise place.at(key).error(f"{name} and {key} are the same; keep one")
        named[name] = item
        spelt |= {name: key} if name != key else {}
    return named, spelt


def _find_fault(given: Mapping[str, Any]) -> str | None:
    """Which key of a refused candidate is at fault: the first that is refused on its own."""
    spare: dict[str, Any] = {"name": "x", "description": "", "input_schema": True, "mode": "sandbox"}
    for key, item in given.items():
        try:
            ToolCandidate(**{**spare, key: item})
        except UsageError:
            return key
    return None
