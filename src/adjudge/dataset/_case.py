"""Rows of a data set: one item to judge with what belongs to it, as JSON lines.

A row that cannot be read is an error naming file and line; nothing is skipped in silence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.content import content_text, digest_text
from adjudge.errors import UsageError
from adjudge.rules._json import read_json
from adjudge.rules._words import flatten, show

Label = bool | float | str | None

_KEYS = ("schema", "id", "content", "reference", "task", "context", "label", "labels", "group", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One item of a data set."""

    content: Any
    """What is judged; a pair to compare is ``{"a": ..., "b": ...}``."""
    id: str
    """Unique in its data set; without one in the file, the SHA-256 of the content."""
    reference: Any = None
    task: Any = None
    context: Any = None
    label: Label = None
    """What a person decided: true, false, a number, ``first``, ``second`` or ``tie``; ``None`` is unknown."""
    labels: Mapping[str, Label] = field(default_factory=dict)
    """What each rater decided."""
    group: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_cases(path: str | os.PathLike[str]) -> Iterator[Case]:
    """The rows of a JSON-lines file, one at a time; raises ``UsageError`` naming file, line and remedy."""
    seen: dict[str, int] = {}
    name = os.fspath(path)
    for number, line in _read_lines(path):
        row = parse_row(line, where=f"{name}, line {number}")
        if row.id in seen:
            raise UsageError(
                f"{name}, line {number}: the id {show(row.id)} stands on line {seen[row.id]} already; "
                "give each row an id of its own"
            )
        seen[row.id] = number
        yield row


def _read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """The lines that hold something, numbered from 1."""
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        raise UsageError(f"cannot read {os.fspath(path)}: {error.strerror}; give a file of JSON lines") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {os.fspath(path)}: it is not UTF-8 text; give a file of JSON lines") from None


def parse_row(line: str, *, where: str = "row") -> Case:
    """One row from one line of JSON, read strictly, so that whatever a row holds can be written as JSON again."""
    try:
        data = read_json(line)
        _check_text(line, data)
    except (ValueError, RecursionError) as error:
        said = flatten(str(error))
        raise UsageError(f"{where}: not a line of JSON ({said}); write one object per line") from None
    if not isinstance(data, dict):
        raise UsageError(f"{where}: a row must be an object, got {type(data).__name__}")
    if "content" not in data:
        has = flatten(", ".join(map(repr, data))) or "nothing"
        raise UsageError(f"{where}: the row has no 'content'; it has {has}")
    for key in data:
        if key not in _KEYS:
            raise UsageError(
                f"{where}: unknown key {show(key)}; a row has {', '.join(_KEYS[1:])}; put more into metadata"
            )
    for key in ("labels", "metadata"):
        if not isinstance(data.get(key) or {}, dict):
            raise UsageError(f"{where}: {key!r} must be an object, got {show(data[key])}")
    for label in (data.get("label"), *(data.get("labels") or {}).values()):
        _check_label(label, where)
    known: dict[str, Any] = {key: data[key] for key in _KEYS[2:] if data.get(key) is not None}
    found = data.get("id")
    try:
        given = str(found) if found is not None else digest_text(content_text(data["content"]))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return Case(**(known | {"content": data["content"], "id": given}))


def _check_label(label: object, where: str) -> None:
    if label is None or isinstance(label, bool | int | float) or label in ("first", "second", "tie"):
        return
    raise UsageError(f"{where}: label must be true, false, a number, 'first', 'second' or 'tie', got {show(label)}")


def _check_text(line: str, data: Any) -> None:
    """Raise ``ValueError`` for half a character, which no encoding can write."""
    import json

    if line.isascii() and "\\u" not in line:
        return
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is no character") from None
