"""The objects of a transcript, in order, from a file or from a program, and the lines that could not be read.

The author of a transcript may want to deceive its reader, or to make it fail. So sizes are limited, only regular files
are read, JSON is read strictly, and characters that no text can hold are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.files import read_text
from adjudge.formats.json import read_json, to_json_value
from adjudge.formats.json_size import measure_excess
from adjudge.formats.text import show

MOST_BYTES = 50_000_000

MOST_LINES = 500_000

_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")

_ESCAPED_FORBIDDEN = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The objects of a transcript, and the numbers of the lines that are none."""

    name: str
    objects: tuple[dict[str, Any], ...]
    numbers: tuple[int, ...]
    """The line of each object; its place where there are no lines."""
    unreadable: tuple[int, ...] = ()
    whole: bool = False
    """True if the source is one JSON value and no lines: an end that is missing would not have been read."""


def read_document(source: object) -> Document:
    """Read a transcript: a path, lines of JSON, or objects that were read already.

    Raises ``UsageError`` for anything else, for a file that cannot be read or is too large, and where not one line is
    a JSON object.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        text = read_text(path, noun="a transcript", most=MOST_BYTES).removeprefix("\ufeff")
        return _read_text(text, path.name)
    if isinstance(source, Mapping):
        return _read_objects([source])
    if isinstance(source, Sequence) and not isinstance(source, bytes | bytearray) and source:
        if all(isinstance(line, str) for line in source):
            _check_total(sum(map(len, source)))
            return _read_lines(list(source), "lines")
        if all(isinstance(member, Mapping) for member in source):
            return _read_objects(source)
    raise UsageError(
        f"a run is read from a path, from lines of JSON or from objects; got {show(source)}", argument="source"
    )


def _read_text(text: str, name: str) -> Document:
    """Read a file as one JSON value, if it looks like one and is one; else as lines of JSON."""
    if text.lstrip()[:1] == "[" or "\n" not in text.strip():
        document = _read_json_value(text, name)
        if document is not None:
            return document
    lines = text.split("\n")
    if len(lines) > 1 and lines[0].strip() == "{":  # one object over many lines
        document = _read_json_value(text, name)
        if document is not None:
            return document
    return _read_lines(lines, name)


def _read_json_value(text: str, name: str) -> Document | None:
    """Read a text as one JSON value; ``None`` for what is no JSON. Raises ``UsageError`` for JSON without objects."""
    try:
        value = read_json(text)
    except ValueError:
        return None
    members = value if isinstance(value, list) else [value]
    if not members or not all(isinstance(member, dict) for member in members):
        raise UsageError(f"{name} is no transcript: it is JSON and holds no objects", argument="source")
    if _ESCAPED_FORBIDDEN.search(text):
        members = [_replace_forbidden(member) for member in members]
    return Document(name=name, objects=tuple(members), numbers=tuple(range(1, len(members) + 1)), whole=True)


def _read_lines(lines: Sequence[str], name: str) -> Document:
    """Read lines of JSON; those that are no object count as unreadable. Raises ``UsageError`` if all of them are."""
    if len(lines) > MOST_LINES:
        raise UsageError(f"{name} has more than {MOST_LINES:,} lines", argument="source")
    objects: list[dict[str, Any]] = []
    numbers: list[int] = []
    unreadable: list[int] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = _read_line(line)
        if value is None:
            unreadable.append(number)
        else:
            objects.append(value)
            numbers.append(number)
    if not objects:
        raise UsageError(f"{name} is no transcript: not one line of it is a JSON object", argument="source")
    return Document(name=name, objects=tuple(objects), numbers=tuple(numbers), unreadable=tuple(unreadable))


def _read_line(line: str) -> dict[str, Any] | None:
    """Read a line that is a JSON object, with forbidden characters replaced; ``None`` for any other line."""
    try:
        value = read_json(line)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    return _replace_forbidden(value) if _ESCAPED_FORBIDDEN.search(line) or _FORBIDDEN.search(line) else value


def _read_objects(members: Sequence[Mapping[str, Any]]) -> Document:
    """Read the objects of a program. Raises ``UsageError`` for too many or too large ones, and for what is no JSON."""
    if len(members) > MOST_LINES:
        raise UsageError(f"source has more than {MOST_LINES:,} objects", argument="source")
    if measure_excess(members, MOST_BYTES) is not None:
        raise UsageError(f"source comes to more than {MOST_BYTES:,} characters, or nests too deeply", argument="source")
    try:
        plain = [to_json_value(member) for member in members]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"source holds what is no JSON: {error}", argument="source") from None
    objects = tuple([_replace_forbidden(member) for member in plain])
    return Document(name="objects", objects=objects, numbers=tuple(range(1, len(objects) + 1)), whole=True)


def _check_total(size: int) -> None:
    """Raise ``UsageError`` for lines with more than ``MOST_BYTES`` characters together."""
    if size > MOST_BYTES:
        raise UsageError(f"source comes to more than {MOST_BYTES:,} characters", argument="source")


def _replace_forbidden(value: Any) -> Any:
    """Copy a value, with a mark in place of each NUL and half surrogate pair, which no text of ours may hold."""
    if isinstance(value, str):
        return _FORBIDDEN.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_forbidden(member) for member in value]
    if isinstance(value, dict):
        return {_replace_forbidden(name): _replace_forbidden(member) for name, member in value.items()}
    return value
