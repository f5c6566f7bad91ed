"""Baselines from files: YAML, JSON and TOML, read strictly.

A file is data. It names inputs, outputs and contracts, and neither a tool nor a judge: what is run is said by whoever
runs it, so that a baseline of somebody else's can be looked at without running anything of theirs.

When an output has drifted from its baseline is decided in ``evaluate.py`` (``_decide``) and ``probe.py``
(``ProbeThresholds.find_drift``).
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.formats.files import FORMATS, Format, Place, parse_source, read_text
from adjudge.formats.json import read_json, to_json_value
from adjudge.formats.text import flatten, quote, show, suggest
from adjudge.guards.probe.probe import DEFAULT_THRESHOLDS, ProbeContract, ProbeThresholds, SemanticProbe, read_contract

SCHEMA = "adjudge/probes/1"

MAX_BYTES = 10_000_000
"""The largest file of baselines that is read, in bytes."""


_KEYS = ("schema", "$schema", "thresholds", "contract", "probes")

_PROBE_KEYS = ("name", "input", "expected", "contract")

_THRESHOLDS = tuple(threshold.name for threshold in fields(ProbeThresholds))

_CODE = ("command", "function", "tool", "run", "exec", "python", "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeBaseline:
    """One entry of a file: a probe, or the input of a probe whose baseline is not recorded yet."""

    name: str
    """The probe's name."""
    input: Any = field(repr=False)
    """The input that the tool is called with."""
    expected: Any = field(default=None, repr=False)
    """The output that was good."""
    recorded: bool = False
    """True if there is a baseline; ``expected`` may be ``None`` because the tool's output was null."""
    contract: ProbeContract | None = field(default=None, repr=False)
    """The promise of the tool; ``None`` where nothing is promised."""

    def make_probe(self) -> SemanticProbe:
        """Make the probe; raise ``UsageError`` where no baseline is recorded."""
        if not self.recorded:
            raise UsageError(f"probe {show(self.name)} has no expected output yet; record it with --record")
        return SemanticProbe(name=self.name, input=self.input, expected=self.expected, contract=self.contract)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFile:
    """A file of baselines, as it was read."""

    path: Path
    """The file."""
    format: Format
    """The format of the file: ``yaml``, ``json`` or ``toml``."""
    text: str = field(repr=False)
    """The text of the file as it was read."""
    entries: tuple[ProbeBaseline, ...]
    """In the order of the file; each has a name of its own."""
    thresholds: ProbeThresholds = DEFAULT_THRESHOLDS
    """The thresholds of the file, else the default ones."""

    @property
    def probes(self) -> tuple[SemanticProbe, ...]:
        """The probes of all entries; raises ``UsageError`` for one without a baseline."""
        return tuple(entry.make_probe() for entry in self.entries)


def load_probes(path: str | os.PathLike[str]) -> ProbeFile:
    """Load the baselines of a ``.yaml``, ``.yml``, ``.json`` or ``.toml`` file.

    Raises ``UsageError`` for a file that cannot be read and for mistakes in it, with the line if it is known.

    Args:
        path: The file.
    """
    probe_path = Path(path)
    kind = FORMATS.get(probe_path.suffix.lower()) if probe_path.suffix else None
    if kind is None:
        raise UsageError(f"{probe_path} is not a file of probes by its suffix; use .yaml, .yml, .json or .toml")
    text = read_text(probe_path, noun="a file of probes", most=MAX_BYTES).removeprefix("\ufeff")
    entries, thresholds = read_entries(text, kind, where=str(probe_path))
    return ProbeFile(path=probe_path, format=kind, text=text, entries=entries, thresholds=thresholds)


def read_entries(text: str, kind: Format, *, where: str) -> tuple[tuple[ProbeBaseline, ...], ProbeThresholds]:
    """Read the entries and thresholds that a text holds; ``where`` is its name in error messages."""
    return _read_document(*parse_source(text, format=kind, where=where, noun="probes", wrong="holds no probes"))


def _read_document(document: Any, place: Place) -> tuple[tuple[ProbeBaseline, ...], ProbeThresholds]:
    """Read the probes and the thresholds of a file; two probes of one name are an error."""
    members = _check_keys(document, _KEYS, ("probes",), "a file of probes", place)
    if members.get("schema", SCHEMA) != SCHEMA:
        raise place.at("schema").error(f"this version reads {SCHEMA!r}, not {show(members['schema'])}")
    thresholds = _read_thresholds(members.get("thresholds", {}), place.at("thresholds"))
    shared = _read_contract(members.get("contract"), place.at("contract"))
    items = members["probes"]
    if not isinstance(items, list) or not items:
        raise place.at("probes").error(f"must be a list of at least one probe, got {show(items)}")
    entries = [_read_entry(entry, shared, place.at("probes", index)) for index, entry in enumerate(items)]
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry.name in first:
            problem = f"{quote(entry.name)} is already the name of probes[{first[entry.name]}]; give each its own"
            raise place.at("probes", index, "name").error(problem)
        first[entry.name] = index
    return tuple(entries), thresholds


def _read_entry(entry: Any, shared: ProbeContract | None, place: Place) -> ProbeBaseline:
    """Read a probe; ``shared`` is the contract of the file, for a probe without its own."""
    members = _check_keys(entry, _PROBE_KEYS, ("name", "input"), "a probe", place)
    for key in ("input", "expected"):
        try:
            to_json_value(members.get(key))
        except ValueError as error:  # a date, for one, which YAML and TOML read by themselves
            raise place.at(key).error(f"{error}; write it as text in quotes, or as JSON") from None
    contract = _read_contract(members.get("contract"), place.at("contract")) or shared
    try:
        # Made here for its checks, whether there is a baseline or not.
        probe = SemanticProbe(name=members["name"], input=members["input"], expected=members.get("expected"))
    except UsageError as error:
        raise place.error(error) from None
    return ProbeBaseline(
        name=probe.name,
        input=probe.input,
        expected=probe.expected,
        recorded="expected" in members,
        contract=contract,
    )


def _read_contract(contract: Any, place: Place) -> ProbeContract | None:
    try:
        return read_contract(contract)
    except UsageError as error:
        raise place.error(error) from None


def _read_thresholds(thresholds: Any, place: Place) -> ProbeThresholds:
    members = _check_keys(thresholds, _THRESHOLDS, (), "thresholds", place)
    try:
        return ProbeThresholds(**members)
    except UsageError as error:
        raise place.error(error) from None


def _check_keys(
    mapping: Any, keys: tuple[str, ...], needed: tuple[str, ...], kind: str, place: Place
) -> dict[str, Any]:
    """Return a mapping that has all needed keys and no unknown one; else raise ``UsageError``."""
    if not isinstance(mapping, Mapping):
        raise place.error(f"must be a mapping with {' and '.join(needed or keys)}, got {show(mapping)}")
    for key in mapping:
        if key in keys:
            continue
        hint = suggest(key, keys) or f"; it has {', '.join(keys)}"
        if key in _CODE:
            hint = "; a file of probes runs nothing and asks nobody, so name that on the command line"
        raise place.at(*((key,) if isinstance(key, str) else ())).error(f"{kind} has no key {show(key)}{hint}")
    for key in needed:
        if key not in mapping:
            raise place.error(f"{kind} needs {key!r}, and there is none")
    return dict(mapping)


# What YAML does not take as it is inside double quotes; lone surrogates have been refused before.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def convert_output(output: Any) -> Any:
    """Convert a tool's output to the text or JSON value of a baseline; raise ``UsageError`` if it is neither."""
    text = content_text(output, label="output")
    if isinstance(output, str):
        return text
    try:
        return read_json(text)
    except ValueError:  # an object that stands for a text
        return text


def render_outputs(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    """Render the file's text with new baselines, by the names of their probes.

    Raises ``UsageError`` where they do not fit into the file.
    """
    if file.format == "toml":
        raise UsageError(f"{file.path} is TOML, which cannot be written here; keep baselines in YAML or JSON to record")
    text = _render_json_outputs(file, outputs) if file.format == "json" else _render_yaml_outputs(file, outputs)
    try:
        entries, thresholds = read_entries(text, file.format, where=str(file.path))
    except UsageError as error:
        raise UsageError(f"{file.path} would not be readable with the new baselines in it ({error})") from None
    expected_entries = [_add_baseline(entry, outputs) for entry in file.entries]
    # Compared as text, since 1 equals True and 1.0 here, and is another baseline.
    if list(map(_render_entry, entries)) != list(map(_render_entry, expected_entries)) or thresholds != file.thresholds:
        raise UsageError(
            f"{file.path} is written in a way that new baselines cannot be put into (an anchor, for one); "
            "write it plainly, or keep it as JSON"
        )
    return text


def replace_file(file: ProbeFile, text: str) -> None:
    """Put a new text in the place of the file, all at once; raises ``UsageError`` when it changed since it was read."""
    target = file.path.resolve()  # a link stays a link
    try:
        if target.read_bytes().decode("utf-8-sig", "replace") != file.text:
            raise UsageError(f"{file.path} was changed by somebody else meanwhile; run it again")
        mode = target.stat().st_mode & 0o7777
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".adjudge-")
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(text.encode())
                opened.flush()
                os.fsync(opened.fileno())
            Path(name).chmod(mode)
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise UsageError(f"{file.path} cannot be written: {error.strerror or error}; nothing was changed") from None


def _add_baseline(entry: ProbeBaseline, outputs: Mapping[str, Any]) -> ProbeBaseline:
    if entry.name not in outputs:
        return entry
    return ProbeBaseline(
        name=entry.name, input=entry.input, expected=outputs[entry.name], recorded=True, contract=entry.contract
    )


def _render_entry(entry: ProbeBaseline) -> str:
    contract = entry.contract.list_stated() if entry.contract else None
    return json.dumps([entry.name, entry.input, entry.expected, entry.recorded, contract])


def _render_json_outputs(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    document = read_json(file.text)
    for entry in document["probes"]:
        if entry["name"] in outputs:
            entry["expected"] = outputs[entry["name"]]
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _render_yaml_outputs(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    """Write outputs into the text of a YAML file, and leave everything else in it as it is.

    Raises ``UsageError`` for a text that cannot be changed in place.
    """
    import yaml

    # The loader that read the file: the one written in Python refuses texts that this one takes (`{q: When?}`). Both
    # count characters. The depth was checked when the file was read, before anything was composed.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root: Any = yaml.compose(file.text, loader)
    except yaml.YAMLError as error:
        raise UsageError(
            f"{file.path} cannot be read for writing ({flatten(str(error), 200)}); keep it as JSON"
        ) from None
    (items,) = [value for key, value in root.value if key.value == "probes"]
    edits = [
        _make_edit(file.text, node, outputs[entry.name])
        for node, entry in zip(items.value, file.entries, strict=True)
        if entry.name in outputs
    ]
    text = file.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _make_edit(text: str, node: Any, output: Any) -> tuple[int, int, str]:
    """Make the edit that gives a probe this baseline: the characters to replace, and by what."""
    members = {key.value: (key, value) for key, value in node.value}
    baseline = _render_flow(output)
    if "expected" in members:
        old = members["expected"][1]
        start, end = old.start_mark.index, _find_end(text, old)
        # A value that is left out (`expected:`) has no characters of its own.
        return (start, end, baseline) if end > start else (start, start, f" {baseline}")
    key, name = members["name"]
    if node.flow_style:
        return name.end_mark.index, name.end_mark.index, f", expected: {baseline}"
    stop = re.compile(r"\r?\n|\Z").search(text, name.end_mark.index)
    place = stop.start() if stop is not None else len(text)
    return place, place, f"\n{' ' * key.start_mark.column}expected: {baseline}"


def _find_end(text: str, node: Any) -> int:
    """Find where a value ends; a block's own mark lies behind the comments that follow it."""
    end = node.end_mark.index
    if not getattr(node, "flow_style", True) and node.value:
        last = node.value[-1]
        end = _find_end(text, last[1] if isinstance(last, tuple) else last)
    return len(text[:end].rstrip()) if end > node.start_mark.index else end


def _render_flow(value: Any) -> str:
    """Render a JSON value on one line of YAML: JSON, but for what YAML 1.1 would read as something else."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return mantissa + ("" if "." in mantissa else ".0") + e + exponent
    if isinstance(value, list):
        return f"[{', '.join(map(_render_flow, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_render_flow(key)}: {_render_flow(member)}" for key, member in value.items()) + "}"
    return json.dumps(value)
