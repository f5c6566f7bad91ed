"""Audit reports as files: Markdown for people, with YAML front matter that says the same to programs.

The front matter is written here and not by a library, in the part of YAML that every reader reads alike: each text
that is more than a word stands in double quotes on one line, with everything invisible escaped. So no text, whatever
it holds, begins a line, ends the front matter or becomes a number, a date or a key.
"""

from __future__ import annotations

import re
from typing import Any

from adjudge._yaml import MAX_DEPTH, MAX_VALUES, read_yaml
from adjudge.audit._entry import AuditEntry
from adjudge.audit._markdown import write_body
from adjudge.audit._read import read_audit
from adjudge.errors import UsageError
from adjudge.rules._words import flatten

LARGEST = 10_000_000
"""Characters of the largest report that is read or written."""

_FENCE = "---"
_WORD = re.compile(r"[a-z]+(_[a-z]+)*")
_MEANS_OTHER = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"}
_LONGEST_KEY = 200
"""Characters of a key that stands before its value; YAML reads no more than 1,024 there."""


def write_audit(audit: AuditEntry, body: str | None = None) -> str:
    """An audit as Markdown with YAML front matter; ``parse_audit`` reads the audit back.

    ``body`` is what stands below the front matter; without it, the audit is written out for people. Raises
    ``UsageError`` when the audit holds more than can be read back: 50,000 values, 49 levels, 10 MB.
    """
    given = audit.to_dict()
    data = {name: item for name, item in given.items() if item not in (None, [], {}) and (name, item) != ("reason", "")}
    first = {name: data.pop(name) for name in ("schema", "id", "created_at", "opinion") if name in data}
    data = {"type": "audit", **first, **_leave_out(data)}
    _check_size(data)
    front = "\n".join(_write_block(data))
    text = f"{_FENCE}\n{front}\n{_FENCE}\n\n{write_body(audit) if body is None else body}"
    if len(text) > LARGEST:
        raise UsageError(
            f"a report has at most {LARGEST:,} characters, this one {len(text):,}; leave some metadata out"
        )
    return text if text.endswith("\n") else f"{text}\n"


def parse_audit(text: str) -> AuditEntry:
    """The audit that a report's front matter says; what stands below it is for people, and is not read.

    Also reads reports that people wrote: see ``read_audit``. Raises ``UsageError`` for what is no report.
    """
    front = _find_front(text)
    try:
        data = read_yaml(front)[0]
    except ValueError as error:
        raise UsageError(f"the front matter of a report cannot be read: {flatten(str(error), 300)}") from None
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError("the front matter of a report is a list of names with values, like opinion: qualified")
    return read_audit(data)


def _find_front(text: str) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a report is a text, got {type(text).__name__}")
    if len(text) > LARGEST:
        raise UsageError(f"a report has at most {LARGEST:,} characters, this one {len(text):,}")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise UsageError(f"a report begins with a line {_FENCE}, its front matter and another line {_FENCE}")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number])
    raise UsageError(f"the front matter of a report ends with a line {_FENCE}, and this one has none")


def _check_size(data: dict[str, Any]) -> None:
    """Raise ``UsageError`` for more than the reader of YAML takes, counted as it counts."""
    left: list[tuple[Any, int]] = [(data, 1)]
    values, steps = 1, 10
    while left:
        value, depth = left.pop()
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        values += len(inner)
        steps += len(inner) * (2 if isinstance(value, dict) else 1) + 1
        if values > MAX_VALUES or steps > 2 * MAX_VALUES or depth >= MAX_DEPTH:
            most = f"{MAX_VALUES:,} values, {MAX_DEPTH - 1} levels deep"
            raise UsageError(f"an audit holds at most {most}; leave some metadata out")
        left += [(item, depth + 1) for item in inner]


def _leave_out(data: dict[str, Any]) -> dict[str, Any]:
    """The same without what is not known, in what is ours; in metadata and results it stands as it was given."""
    kept = dict(data)
    for name in ("found", "judged", "rule_results"):
        if name in kept:
            kept[name] = [_drop_none(item) for item in kept[name]]
    return kept | ({"basis": _drop_none(kept["basis"])} if "basis" in kept else {})


def _drop_none(data: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in data.items() if item is not None}


def _write_block(data: dict[str, Any]) -> list[str]:
    """A line for each member, and one for each item of a member that holds several."""
    lines: list[str] = []
    for name, value in data.items():
        if isinstance(value, dict) and value:
            lines += [f"{name}:", *(f"  {_write_member(key, item)}" for key, item in value.items())]
        elif isinstance(value, list) and value:
            lines += [f"{name}:", *(f"- {_write_flow(item)}" for item in value)]
        else:
            lines.append(f"{name}: {_write_flow(value)}")
    return lines


def _write_member(key: str, value: Any) -> str:
    name, said = _write_text(key), _write_flow(value)
    return f"{name}: {said}" if len(name) <= _LONGEST_KEY else f"? {name}\n  : {said}"


def _write_flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(_write_pair(key, item) for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write_flow, value)) + "]"
    if isinstance(value, str):
        return _write_text(value)
    if isinstance(value, float):
        return _write_float(value)
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or value is True or value is False
        else str(value)
    )


def _write_pair(key: str, value: Any) -> str:
    name = _write_text(key)
    return f"{name}: {_write_flow(value)}" if len(name) <= _LONGEST_KEY else f"? {name} : {_write_flow(value)}"


def _write_float(value: float) -> str:
    # Without a point, YAML takes 1e+22 for a text.
    digits, mark, exponent = repr(value).partition("e")
    return f"{digits}.0e{exponent}" if mark and "." not in digits else repr(value)


def _write_text(text: str) -> str:
    if _WORD.fullmatch(text) and text not in _MEANS_OTHER:
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return (
        "\\n"
        if char == "\n"
        else f"\\x{code:02x}"
        if code < 256
        else f"\\u{code:04x}"
        if code < 65536
        else f"\\U{code:08x}"
    )
