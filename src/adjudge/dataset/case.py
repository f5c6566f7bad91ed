"""A case: one item to judge with what belongs to it, and how it is made from plain data, strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.content import content_text, digest_text
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show

SCHEMA = "adjudge/case/1"

KEYS = ("id", "content", "reference", "task", "context", "label", "labels", "group", "metadata")


Label = bool | float | str | None


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
    """Copied to the result, never sent to a model."""

    def to_dict(self) -> dict[str, Any]:
        """The case as a line of a data set has it; what it does not have is left out."""
        said: dict[str, Any] = {"schema": SCHEMA, "id": self.id, "content": self.content}
        optional = {name: getattr(self, name) for name in KEYS[2:]}
        optional |= {"labels": self.labels or None, "metadata": self.metadata or None}
        return said | {name: value for name, value in optional.items() if value is not None}


def make_case(data: Mapping[str, Any]) -> Case:
    """A case from what a row says under the names of ``KEYS``; raises ``UsageError`` saying what is wrong with it."""
    if data.get("content") is None:
        has = flatten(", ".join(map(repr, data))) or "nothing"
        raise UsageError("the 'content' is null" if "content" in data else f"the row has no 'content'; it has {has}")
    for key in data:
        if key not in KEYS and key != "schema":
            raise UsageError(_explain_unknown(key))
    if data.get("schema", SCHEMA) != SCHEMA:
        raise UsageError(f"the schema is {show(data['schema'])}, and a case is {SCHEMA!r}; update adjudge, or fix it")
    for key in ("labels", "metadata"):
        if not isinstance(data.get(key) or {}, Mapping):
            raise UsageError(f"{key!r} must be an object, got {show(data[key])}")
    for label in (data.get("label"), *(data.get("labels") or {}).values()):
        _check_label(label)
    known = {key: data[key] for key in KEYS[2:] if data.get(key) is not None}
    if "group" in known:
        known["group"] = _read_name("group", known["group"])
    return Case(content=data["content"], id=_find_id(data), **known)


def _find_id(data: Mapping[str, Any]) -> str:
    if data.get("id") is None:
        return digest_text(content_text(data["content"]))
    found = _read_name("id", data["id"])
    if not found:
        raise UsageError("the 'id' is empty; leave it out, or give each row an id of its own")
    return found


def _read_name(key: str, value: Any) -> str:
    # True or [1] as a name is a column that was mistaken for another.
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{key!r} must be a text or a number, got {show(value)}")


def _check_label(label: object) -> None:
    if label is None or isinstance(label, bool | int | float) or label in ("first", "second", "tie"):
        return
    raise UsageError(f"label must be true, false, a number, 'first', 'second' or 'tie', got {show(label)}")


def _explain_unknown(key: object) -> str:
    if key == "role":
        return "this is one message; a conversation is a list of messages, so put the list into content"
    return f"unknown key {show(key)}; a row has {', '.join(KEYS)}; put more into metadata, or say which field is which"


def check_text(data: Any) -> None:
    """Raise ``UsageError`` for half a character, which no encoding can write, and for what nests without end."""
    try:
        json.dumps(data, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise UsageError("it holds half of a surrogate pair, which is no character") from None
    except (ValueError, TypeError, RecursionError):
        raise UsageError("it cannot be written as JSON; use text keys, and nothing that holds itself") from None
