"""New baselines into a file: everything else in it stays as it was, comments included, and it is replaced at once.

A YAML file is not written anew: the new outputs are put into its text, and the text is read again before anything is
written. What it then says must be exactly what was meant, or nothing is written.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.probe._file import Baseline, ProbeFile, read_entries
from adjudge.rules._json import read_json
from adjudge.rules._words import flatten

# What YAML does not take as it is inside double quotes; lone surrogates have been refused before.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def plain_output(output: Any) -> Any:
    """A tool's output as the text or JSON value that a baseline holds; raises ``UsageError`` where it is neither."""
    text = content_text(output, what="output")
    if isinstance(output, str):
        return text
    try:
        return read_json(text)
    except ValueError:  # an object that stands for a text
        return text


def put_outputs(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    """The file's text with new baselines, by the names of their probes; raises ``UsageError`` where they do not fit."""
    if file.format == "toml":
        raise UsageError(f"{file.path} is TOML, which cannot be written here; keep baselines in YAML or JSON to record")
    text = _put_json(file, outputs) if file.format == "json" else _put_yaml(file, outputs)
    try:
        entries, thresholds = read_entries(text, file.format, where=str(file.path))
    except UsageError as error:
        raise UsageError(f"{file.path} would not be readable with the new baselines in it ({error})") from None
    meant = [_fill(item, outputs) for item in file.entries]
    # Compared as text, since 1 equals True and 1.0 here, and is another baseline.
    if list(map(_write, entries)) != list(map(_write, meant)) or thresholds != file.thresholds:
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


def _fill(item: Baseline, outputs: Mapping[str, Any]) -> Baseline:
    if item.name not in outputs:
        return item
    return Baseline(
        name=item.name, input=item.input, expected=outputs[item.name], recorded=True, contract=item.contract
    )


def _write(item: Baseline) -> str:
    contract = item.contract.stated() if item.contract else None
    return json.dumps([item.name, item.input, item.expected, item.recorded, contract])


def _put_json(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
    data = read_json(file.text)
    for item in data["probes"]:
        if item["name"] in outputs:
            item["expected"] = outputs[item["name"]]
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _put_yaml(file: ProbeFile, outputs: Mapping[str, Any]) -> str:
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
        _edit(file.text, node, outputs[entry.name])
        for node, entry in zip(items.value, file.entries, strict=True)
        if entry.name in outputs
    ]
    text = file.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edit(text: str, node: Any, output: Any) -> tuple[int, int, str]:
    """Which characters of the text become what, so that a probe has this baseline."""
    members = {key.value: (key, value) for key, value in node.value}
    written = _write_flow(output)
    if "expected" in members:
        old = members["expected"][1]
        start, end = old.start_mark.index, _find_end(text, old)
        # A value that is left out (`expected:`) has no characters of its own.
        return (start, end, written) if end > start else (start, start, f" {written}")
    key, name = members["name"]
    if node.flow_style:
        return name.end_mark.index, name.end_mark.index, f", expected: {written}"
    stop = re.compile(r"\r?\n|\Z").search(text, name.end_mark.index)
    place = stop.start() if stop is not None else len(text)
    return place, place, f"\n{' ' * key.start_mark.column}expected: {written}"


def _find_end(text: str, node: Any) -> int:
    """Where a value ends; a block's own mark lies behind the comments that follow it."""
    end = node.end_mark.index
    if not getattr(node, "flow_style", True) and node.value:
        last = node.value[-1]
        end = _find_end(text, last[1] if isinstance(last, tuple) else last)
    return len(text[:end].rstrip()) if end > node.start_mark.index else end


def _write_flow(value: Any) -> str:
    """A JSON value on one line of YAML: JSON, but for what YAML 1.1 would read as something else."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return mantissa + ("" if "." in mantissa else ".0") + e + exponent
    if isinstance(value, list):
        return f"[{', '.join(map(_write_flow, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_write_flow(key)}: {_write_flow(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)
