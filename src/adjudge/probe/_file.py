"""Baselines from files: YAML, JSON and TOML, read strictly.

A file is data. It names inputs, outputs and contracts, and neither a tool nor a judge: what is run is said by whoever
runs it, so that a baseline of somebody else's can be looked at without running anything of theirs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from adjudge._toml import read_toml
from adjudge._yaml import LineOf, read_yaml
from adjudge.errors import UsageError
from adjudge.probe._types import DEFAULT_THRESHOLDS, ProbeContract, ProbeThresholds, SemanticProbe, read_contract
from adjudge.rules._json import read_json, to_plain
from adjudge.rules._words import flatten, quote, show, suggest

Format = Literal["yaml", "json", "toml"]

SCHEMA = "adjudge/probes/1"
MAX_BYTES = 10_000_000
"""The largest file of baselines that is read, in bytes."""

_FORMATS: Mapping[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}
_KEYS = ("schema", "$schema", "thresholds", "contract", "probes")
_PROBE_KEYS = ("name", "input", "expected", "contract")
_THRESHOLDS = tuple(item.name for item in fields(ProbeThresholds))
_CODE = ("command", "function", "tool", "run", "exec", "python", "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One entry of a file: a probe, or the input of one whose baseline is not recorded yet."""

    name: str
    input: Any = field(repr=False)
    expected: Any = field(default=None, repr=False)
    recorded: bool = False
    """Whether there is a baseline; ``expected`` may be ``None`` because the tool's output was null."""
    contract: ProbeContract | None = field(default=None, repr=False)

    def make_probe(self) -> SemanticProbe:
        """The probe; raises ``UsageError`` where no baseline is recorded."""
        if not self.recorded:
            raise UsageError(f"probe {show(self.name)} has no expected output yet; record it with --record")
        return SemanticProbe(name=self.name, input=self.input, expected=self.expected, contract=self.contract)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFile:
    """A file of baselines, as it was read."""

    path: Path
    format: Format
    text: str = field(repr=False)
    entries: tuple[Baseline, ...]
    """In the order of the file; each has a name of its own."""
    thresholds: ProbeThresholds = DEFAULT_THRESHOLDS

    @property
    def probes(self) -> tuple[SemanticProbe, ...]:
        """Every entry as a probe; raises ``UsageError`` for one without a baseline."""
        return tuple(item.make_probe() for item in self.entries)


def load_probes(path: str | os.PathLike[str]) -> ProbeFile:
    """The baselines of a ``.yaml``, ``.yml``, ``.json`` or ``.toml`` file.

    Raises ``UsageError`` for a file that cannot be read and for everything that is wrong inside it, with its line
    where that is known.
    """
    found = Path(path)
    kind = _FORMATS.get(found.suffix.lower())
    if kind is None:
        raise UsageError(f"{found} is not a file of probes by its suffix; use .yaml, .yml, .json or .toml")
    text = _read_file(found)
    entries, thresholds = read_entries(text, kind, where=str(found))
    return ProbeFile(path=found, format=kind, text=text, entries=entries, thresholds=thresholds)


def read_entries(text: str, kind: Format, *, where: str) -> tuple[tuple[Baseline, ...], ProbeThresholds]:
    """The entries and thresholds that a text holds; ``where`` is what error messages call it."""
    lines: LineOf = {}
    try:
        if kind == "yaml":
            data, lines = read_yaml(text)
        else:
            data = read_json(text) if kind == "json" else read_toml(text)
    except ValueError as error:
        raise UsageError(f"{where} holds no probes in {kind.upper()}: {error}") from None
    return _read_data(data, _Place(where, lines))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a file something stands, so that every error can say it."""

    where: str
    lines: LineOf
    path: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> _Place:
        return replace(self, path=(*self.path, *steps))

    def error(self, message: object) -> UsageError:
        known = (self.path[:end] for end in range(len(self.path), -1, -1))
        line = next((self.lines[path] for path in known if path in self.lines), None)
        at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).removeprefix(".")
        start = self.where + (f", line {line}" if line is not None else "") + (f": {flatten(at, 120)}" if at else "")
        return UsageError(f"{start}: {flatten(str(message), 800)}")


def _read_data(data: Any, place: _Place) -> tuple[tuple[Baseline, ...], ProbeThresholds]:
    given = _check_keys(data, _KEYS, ("probes",), "a file of probes", place)
    if given.get("schema", SCHEMA) != SCHEMA:
        raise place.at("schema").error(f"this version reads {SCHEMA!r}, not {show(given['schema'])}")
    thresholds = _read_thresholds(given.get("thresholds", {}), place.at("thresholds"))
    shared = _read_contract(given.get("contract"), place.at("contract"))
    items = given["probes"]
    if not isinstance(items, list) or not items:
        raise place.at("probes").error(f"must be a list of at least one probe, got {show(items)}")
    entries = [_read_entry(item, shared, place.at("probes", index)) for index, item in enumerate(items)]
    first: dict[str, int] = {}
    for index, item in enumerate(entries):
        if item.name in first:
            said = f"{quote(item.name)} is already the name of probes[{first[item.name]}]; give each its own"
            raise place.at("probes", index, "name").error(said)
        first[item.name] = index
    return tuple(entries), thresholds


def _read_entry(data: Any, shared: ProbeContract | None, place: _Place) -> Baseline:
    given = _check_keys(data, _PROBE_KEYS, ("name", "input"), "a probe", place)
    for key in ("input", "expected"):
        try:
            to_plain(given.get(key))
        except ValueError as error:  # a date, for one, which YAML and TOML read by themselves
            raise place.at(key).error(f"{error}; write it as text in quotes, or as JSON") from None
    contract = _read_contract(given.get("contract"), place.at("contract")) or shared
    try:
        # Made here for its checks, whether there is a baseline or not.
        made = SemanticProbe(name=given["name"], input=given["input"], expected=given.get("expected"))
    except UsageError as error:
        raise place.error(error) from None
    return Baseline(
        name=made.name,
        input=made.input,
        expected=made.expected,
        recorded="expected" in given,
        contract=contract,
    )


def _read_contract(data: Any, place: _Place) -> ProbeContract | None:
    try:
        return read_contract(data)
    except UsageError as error:
        raise place.error(error) from None


def _read_thresholds(data: Any, place: _Place) -> ProbeThresholds:
    given = _check_keys(data, _THRESHOLDS, (), "thresholds", place)
    try:
        return ProbeThresholds(**given)
    except UsageError as error:
        raise place.error(error) from None


def _check_keys(data: Any, known: tuple[str, ...], needed: tuple[str, ...], what: str, place: _Place) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise place.error(f"must be a mapping with {' and '.join(needed or known)}, got {show(data)}")
    for key in data:
        if key in known:
            continue
        hint = suggest(key, known) or f"; it has {', '.join(known)}"
        if key in _CODE:
            hint = "; a file of probes runs nothing and asks nobody, so name that on the command line"
        raise place.at(*((key,) if isinstance(key, str) else ())).error(f"{what} has no key {show(key)}{hint}")
    for key in needed:
        if key not in data:
            raise place.error(f"{what} needs {key!r}, and there is none")
    return dict(data)


def _read_file(path: Path) -> str:
    if "\x00" in str(path):
        raise UsageError("a path to a file of probes has no NUL character in it")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a regular file; probes are read from one")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}; name a file of probes") from None
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{path} is too large; a file of probes has at most {MAX_BYTES:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None
