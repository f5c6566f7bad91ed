"""Files of probe baselines in YAML, JSON and TOML: strict reading, and writing of recorded outputs.

A file is only data: it has inputs, outputs and contracts, and names neither a tool nor a judge. The person who runs it
names these, so that a file of somebody else can be used without running code of theirs.

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

_CODE_KEYS = ("command", "function", "tool", "run", "exec", "python", "judge")
"""Keys by which somebody may try to name code in a file; the error for them says that a file runs nothing."""


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
    file_format = FORMATS.get(probe_path.suffix.lower()) if probe_path.suffix else None
    if file_format is None:
        raise UsageError(f"{probe_path} is not a file of probes by its suffix; use .yaml, .yml, .json or .toml")
    text = read_text(probe_path, noun="a file of probes", most=MAX_BYTES).removeprefix("\ufeff")
    entries, thresholds = read_entries(text, file_format, where=str(probe_path))
    return ProbeFile(path=probe_path, format=file_format, text=text, entries=entries, thresholds=thresholds)


def read_entries(text: str, kind: Format, *, where: str) -> tuple[tuple[ProbeBaseline, ...], ProbeThresholds]:
    """Read the entries and thresholds of a file's text; ``where`` is the file's name in error messages."""
    return _read_document(*parse_source(text, format=kind, where=where, noun="probes", wrong="holds no probes"))


def _read_document(document: Any, place: Place) -> tuple[tuple[ProbeBaseline, ...], ProbeThresholds]:
    """Read the entries and the thresholds of a parsed file; raise ``UsageError`` for two probes of one name."""
    members = _check_keys(document, _KEYS, ("probes",), "a file of probes", place)
    if members.get("schema", SCHEMA) != SCHEMA:
        raise place.at("schema").error(f"this version reads {SCHEMA!r}, not {show(members['schema'])}")
    thresholds = _read_thresholds(members.get("thresholds", {}), place.at("thresholds"))
    shared_contract = _read_contract(members.get("contract"), place.at("contract"))
    items = members["probes"]
    if not isinstance(items, list) or not items:
        raise place.at("probes").error(f"must be a list of at least one probe, got {show(items)}")
    entries = [_read_entry(entry, shared_contract, place.at("probes", index)) for index, entry in enumerate(items)]
    index_by_name: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry.name in index_by_name:
            earlier_index = index_by_name[entry.name]
            problem = f"{quote(entry.name)} is already the name of probes[{earlier_index}]; give each its own"
            raise place.at("probes", index, "name").error(problem)
        index_by_name[entry.name] = index
    return tuple(entries), thresholds


def _read_entry(entry: Any, shared_contract: ProbeContract | None, place: Place) -> ProbeBaseline:
    """Read one probe of a file; ``shared_contract`` is that of the file, for a probe without its own."""
    members = _check_keys(entry, _PROBE_KEYS, ("name", "input"), "a probe", place)
    for key in ("input", "expected"):
        try:
            to_json_value(members.get(key))
        except ValueError as error:  # a date, for one, which YAML and TOML read by themselves
            raise place.at(key).error(f"{error}; write it as text in quotes, or as JSON") from None
    contract = _read_contract(members.get("contract"), place.at("contract")) or shared_contract
    try:
        # SemanticProbe checks the values, also of an entry whose baseline is not recorded yet.
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
    """Read a contract; an error names its place in the file."""
    try:
        return read_contract(contract)
    except UsageError as error:
        raise place.error(error) from None


def _read_thresholds(thresholds: Any, place: Place) -> ProbeThresholds:
    """Read the thresholds; an error names their place in the file."""
    members = _check_keys(thresholds, _THRESHOLDS, (), "thresholds", place)
    try:
        return ProbeThresholds(**members)
    except UsageError as error:
        raise place.error(error) from None


def _check_keys(
    mapping: Any, keys: tuple[str, ...], needed: tuple[str, ...], kind: str, place: Place
) -> dict[str, Any]:
    """Return a mapping as a dictionary; raise ``UsageError`` if a needed key is missing or a key is unknown."""
    if not isinstance(mapping, Mapping):
        raise place.error(f"must be a mapping with {' and '.join(needed or keys)}, got {show(mapping)}")
    for key in mapping:
        if key in keys:
            continue
        hint = suggest(key, keys) or f"; it has {', '.join(keys)}"
        if key in _CODE_KEYS:
            hint = "; a file of probes runs nothing and asks nobody, so name that on the command line"
        raise place.at(*((key,) if isinstance(key, str) else ())).error(f"{kind} has no key {show(key)}{hint}")
    for key in needed:
        if key not in mapping:
            raise place.error(f"{kind} needs {key!r}, and there is none")
    return dict(mapping)


# Characters that YAML does not accept inside double quotes; lone surrogates were refused before.
_ESCAPED_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def convert_output(output: Any) -> Any:
    """Convert a tool's output to the text or JSON value of a baseline; raise ``UsageError`` if it is neither."""
    text = content_text(output, label="output")
    if isinstance(output, str):
        return text
    try:
        return read_json(text)
    except ValueError:  # the output is an object whose text is no JSON
        return text


def render_outputs(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    """Render a file's text with new baselines; ``outputs`` has them by the names of their probes.

    Raises ``UsageError`` if the new text would not have exactly these baselines and everything else as before.
    """
    if file.format == "toml":
        raise UsageError(f"{file.path} is TOML, which cannot be written here; keep baselines in YAML or JSON to record")
    text = _render_json_outputs(file, outputs) if file.format == "json" else _render_yaml_outputs(file, outputs)
    try:
        entries, thresholds = read_entries(text, file.format, where=str(file.path))
    except UsageError as error:
        raise UsageError(f"{file.path} would not be readable with the new baselines in it ({error})") from None
    expected_entries = [_add_baseline(entry, outputs) for entry in file.entries]
    # Compared as texts: in Python, 1 equals True and 1.0, but they are different baselines.
    is_same = list(map(_render_entry, entries)) == list(map(_render_entry, expected_entries))
    if not is_same or thresholds != file.thresholds:
        raise UsageError(
            f"{file.path} is written in a way that new baselines cannot be put into (an anchor, for one); "
            "write it plainly, or keep it as JSON"
        )
    return text


def replace_file(file: ProbeFile, text: str) -> None:
    """Replace a file by a new text in one step, and keep its permissions.

    Raises ``UsageError`` if the file changed since it was read, or cannot be written.
    """
    target = file.path.resolve()  # the target of a link is replaced, and not the link
    try:
        if target.read_bytes().decode("utf-8-sig", "replace") != file.text:
            raise UsageError(f"{file.path} was changed by somebody else meanwhile; run it again")
        mode = target.stat().st_mode & 0o7777
        descriptor, temporary_name = tempfile.mkstemp(dir=target.parent, prefix=".adjudge-")
        try:
            with os.fdopen(descriptor, "wb") as temporary_file:
                temporary_file.write(text.encode())
                temporary_file.flush()
                os.fsync(temporary_file.fileno())
            Path(temporary_name).chmod(mode)
            Path(temporary_name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(temporary_name).unlink()
            raise
    except OSError as error:
        raise UsageError(f"{file.path} cannot be written: {error.strerror or error}; nothing was changed") from None


def _add_baseline(entry: ProbeBaseline, outputs: Mapping[str, Any]) -> ProbeBaseline:
    """Return an entry with the new output of its probe as its baseline; unchanged if there is none."""
    if entry.name not in outputs:
        return entry
    return ProbeBaseline(
        name=entry.name, input=entry.input, expected=outputs[entry.name], recorded=True, contract=entry.contract
    )


def _render_entry(entry: ProbeBaseline) -> str:
    """Render an entry as JSON, for a comparison that tells 1 from True and 1.0."""
    contract = entry.contract.list_stated() if entry.contract else None
    return json.dumps([entry.name, entry.input, entry.expected, entry.recorded, contract])


def _render_json_outputs(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    """Render a JSON file anew, with the outputs as baselines."""
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

    # The same loader that read the file: the loader in Python refuses some texts that the one in C accepts, such as
    # `{q: When?}`. Both give positions in characters. The depth of the text was checked when the file was read.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root: Any = yaml.compose(file.text, loader)
    except yaml.YAMLError as error:
        raise UsageError(
            f"{file.path} cannot be read for writing ({flatten(str(error), 200)}); keep it as JSON"
        ) from None
    (probes_node,) = [value for key, value in root.value if key.value == "probes"]
    edits = [
        _make_edit(file.text, probe_node, outputs[entry.name])
        for probe_node, entry in zip(probes_node.value, file.entries, strict=True)
        if entry.name in outputs
    ]
    text = file.text
    # From the end to the beginning, so that the positions of the other edits stay right.
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _make_edit(text: str, node: Any, output: Any) -> tuple[int, int, str]:
    """Make the edit of a YAML text that gives a probe's node this output as its baseline.

    Returns the start and the end of the characters to replace, and the text to put there.
    """
    members = {key.value: (key, value) for key, value in node.value}
    baseline = _render_yaml_value(output)
    if "expected" in members:
        _, old_value = members["expected"]
        start, end = old_value.start_mark.index, _find_end(text, old_value)
        # A value that is left out (`expected:`) has no characters of its own.
        return (start, end, baseline) if end > start else (start, start, f" {baseline}")
    # Without a baseline, the new member comes after the name: in the same line in flow style ({name: x}), and
    # otherwise in a line of its own with the same indentation.
    name_key, name_value = members["name"]
    if node.flow_style:
        return name_value.end_mark.index, name_value.end_mark.index, f", expected: {baseline}"
    line_end = re.compile(r"\r?\n|\Z").search(text, name_value.end_mark.index)
    position = line_end.start() if line_end is not None else len(text)
    return position, position, f"\n{' ' * name_key.start_mark.column}expected: {baseline}"


def _find_end(text: str, node: Any) -> int:
    """Find the position where the characters of a YAML node end.

    The end mark of a block (a list or mapping over several lines) is after the comments that follow it, so its end is
    that of its last member. Blanks at the end do not count.
    """
    end = node.end_mark.index
    is_block = not getattr(node, "flow_style", True)
    if is_block and node.value:
        last_member = node.value[-1]  # of a mapping, a pair of key and value
        end = _find_end(text, last_member[1] if isinstance(last_member, tuple) else last_member)
    return len(text[:end].rstrip()) if end > node.start_mark.index else end


def _render_yaml_value(value: Any) -> str:
    """Render a JSON value on one line of YAML: as JSON, except for what YAML 1.1 would read as another value."""
    if isinstance(value, str):
        return _ESCAPED_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, float):
        # YAML 1.1 reads 1e-07 as a text, and 1.0e-07 as a number.
        mantissa, e, exponent = repr(value).partition("e")
        return mantissa + ("" if "." in mantissa else ".0") + e + exponent
    if isinstance(value, list):
        return f"[{', '.join(map(_render_yaml_value, value))}]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_render_yaml_value(key)}: {_render_yaml_value(member)}" for key, member in value.items())
            + "}"
        )
    return json.dumps(value)
