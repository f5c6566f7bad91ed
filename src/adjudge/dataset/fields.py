"""The fields of a row, each with the part of a case that it is.

The names that are a content without being named are ``CONTENT_NAMES`` of ``models/function_signature.py``, which also
make a function a judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.dataset.case import KEYS, OWN_KEYS, Case
from adjudge.dataset.label_map import WORDS, read_number
from adjudge.errors import Argument, UsageError
from adjudge.formats.json import MOST_DEPTH, read_json
from adjudge.formats.text import flatten, list_names, show, suggest
from adjudge.models.function_signature import CONTENT_NAMES

_TASK_NAMES = ("question", "prompt", "input")
"""Names of fields that most often are what was asked for."""

_AS_IS = frozenset((str, int, bool, type(None)))

_MISSING = ("NAType", "NaTType")
"""The name that pandas has for a missing value that is not NaN."""


def read_label(value: Any) -> Any:
    """Read a label from a text: ``true`` and ``false`` in any case, a number, a preference; empty is unknown.

    What is no text stays as it is. Nothing else is taken for a label: ``yes`` or ``good`` would be a guess.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return None
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    number = read_number(text)
    return value if number is None else number


def read_object(name: str, value: Any) -> Any:
    """Read ``labels`` or ``metadata`` of a table, where a text is JSON."""
    if not isinstance(value, str) or not value.strip():
        return value or None
    return read_json_cell(name, value)


def read_json_cell(name: str, value: Any) -> Any:
    """Read the JSON in a cell; an empty one is nothing. Raises ``UsageError``."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise UsageError(f"the column {show(name)} must hold JSON text, got {show(value)}")
    try:
        return read_json(value)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the column {show(name)} holds no JSON ({flatten(str(error))})") from None


def convert_cell(value: Any, depth: int = 0) -> Any:
    """Convert a value of pandas, polars, numpy, Arrow or the standard library to plain JSON; NaN is ``None``.

    Dates and decimals become text. Raises ``UsageError`` for what has no such form: binary data, images, infinity.
    """
    if type(value) in _AS_IS:
        return value
    if depth > MOST_DEPTH:
        raise UsageError(f"it is nested more than {MOST_DEPTH} levels deep")
    if isinstance(value, float):
        return None if math.isnan(value) else _check_finite(float(value))
    if isinstance(value, Mapping):
        return _convert_members(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return [convert_cell(member, depth + 1) for member in value]
    return _convert_foreign(value, depth)


def _convert_members(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    converted = {str(key): convert_cell(member, depth + 1) for key, member in value.items()}
    if len(converted) != len(value):
        raise UsageError("it has two keys that are written alike, like 1 and '1'; make all of them text")
    return converted


def _convert_foreign(value: Any, depth: int) -> Any:
    """Convert a cell of another library's type (numpy, pandas, Arrow) to a text or a JSON value.

    Raises ``UsageError``.
    """
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        raise UsageError(f"it holds binary data ({len(value)} bytes); decode it to text, or leave the column out")
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, and polars' series
        opened = value.tolist()
        return str(value) if opened is value else convert_cell(opened, depth + 1)
    if hasattr(value, "as_py"):
        return convert_cell(value.as_py(), depth + 1)
    if isinstance(value, str | int):  # a subclass, as numpy and enumerations have them
        return str(value) if isinstance(value, str) else int(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ in ("datetime", "decimal", "uuid"):
        return str(value)
    raise UsageError(f"it holds a {type(value).__name__}, which is no text and no JSON value; leave the column out")


def _check_finite(number: float) -> float:
    if math.isfinite(number):
        return number
    raise UsageError(f"{number!r} is not a number that JSON has; leave it empty, or write a number")


_INSIDE = {"content": ("a", "b"), "labels": None, "metadata": None}
"""Parts of a case that have parts, and which; ``None`` is any."""


Place = tuple[str, str | None]
"""A key of a case, and a key in that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The mapping of a data set's fields to the parts of a case."""

    mapped: tuple[tuple[Place, str], ...] = ()
    """Parts of a case, each with the path it is taken from."""
    table: bool = False
    """True if rows come from a table, whose cells are texts and whose other columns are metadata."""
    taken: frozenset[str] = frozenset()
    """Keys that a field of the same name does not fill: those mapped, and those not read."""

    @property
    def strict(self) -> bool:
        """Return whether a field that is none of a case's is an error: in rows written for adjudge it is a slip."""
        return not self.table and not self.mapped and not self.taken

    def arrange(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row under the names of a case; every other field goes into the metadata.

        Args:
            row: The fields of a row by their names.
        """
        if self.strict:
            return dict(row)
        members: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for (key, inner), path in self.mapped:
            _put_member(members, key, inner, self._read_cell(key, inner, path, find_field(row, path)))
        used = {path for _, path in self.mapped}
        for name, value in row.items():
            if name in used or (name == "schema" and value == Case.schema):
                continue
            place = self._find_place(name)
            if place is not None:
                _put_member(members, *place, self._read_cell(*place, name, value))
            elif value is not None:
                others[name] = value
        return _add_metadata(members, others)

    def check_columns(self, columns: list[str]) -> None:
        """Raise ``UsageError`` when a table cannot give what is asked of it, whatever its rows say.

        Args:
            columns: The names of the table's columns.
        """
        check_names(columns)
        for _, path in self.mapped:
            if path not in columns and path.partition(".")[0] not in columns:
                raise UsageError(
                    f"there is no column {show(path)}{suggest(path, columns[:200])}; it has {list_names(columns)}",
                    argument="fields",
                )
        if not self._has_content(columns) and self.find_content(columns) is None:
            raise UsageError(
                f"no column is the content; say which of {list_names(columns)} is, with ",
                Argument("fields['content']"),
                argument="fields",
            )

    def find_content(self, names: Iterable[str]) -> str | None:
        """Find the field that is the content by its name, where neither a mapping nor a field ``content`` is.

        The names are those that make a parameter of a function the content. ``None`` where no field has one. Raises
        ``UsageError`` where two have: whichever it were, half of such files would be judged by the wrong one.

        Args:
            names: The names of a row's fields.
        """
        listed = tuple(names)
        if "content" in self.taken or self._has_content(listed):
            return None
        likely = [name for name in CONTENT_NAMES if name in listed]
        if len(likely) > 1:
            raise UsageError(
                f"{' and '.join(map(show, likely))} may each be the content; say which is, with ",
                Argument("fields['content']"),
                argument="fields",
            )
        return likely[0] if likely else None

    def list_tasks(self, names: Iterable[str]) -> list[str]:
        """List the fields that are the task by their names, where nothing is taken as the task.

        Args:
            names: The names of a row's fields.
        """
        listed = tuple(names)
        if "task" in self.taken or "task" in listed:
            return []
        used = {path for _, path in self.mapped}
        return [name for name in _TASK_NAMES if name in listed and name not in used]

    def take_content(self, name: str) -> Fields:
        """Return the mapping with the content taken from this field.

        Args:
            name: The name of the field.
        """
        return replace(self, mapped=(*self.mapped, (("content", None), name)), taken=self.taken | {"content"})

    def _has_content(self, names: Iterable[str]) -> bool:
        places = [place for place, _ in self.mapped] + [self._find_place(name) for name in names]
        return any(place[0] == "content" for place in places if place)

    def _find_place(self, name: str) -> Place | None:
        """Find the part of a case that a field is by name; ``None`` for none, and for one that is taken from elsewhere.

        A column of a table may also be called like ``metadata.topic``, for a member, or ``labels.json``, for JSON text.
        """
        if name in KEYS:
            return None if name in self.taken else (name, None)
        key, _, inner = name.partition(".")
        if not self.table or not inner or key in self.taken:
            return None
        if inner == "json" and key in KEYS:
            return key, None
        return (key, inner) if key in _INSIDE and inner in (_INSIDE[key] or (inner,)) else None

    def _read_cell(self, key: str, inner: str | None, name: str, value: Any) -> Any:
        """Read a cell as the part of the case that it is."""
        if not self.table:
            return value
        if inner is None and name.endswith(".json"):
            return read_json_cell(name, value)
        if key == "label" or (key == "labels" and inner is not None):
            return read_label(value)
        if key in {"labels", "metadata"} and inner is None:
            value = read_object(name, value)
            labels = key == "labels" and isinstance(value, Mapping)
            return {rater: read_label(label) for rater, label in value.items()} if labels else value
        # An empty cell says nothing, but an empty answer is an answer.
        return None if value == "" and key not in {"content", "metadata"} else value


def read_fields(fields: Mapping[str, str | None] | None, *, table: bool) -> Fields:
    """Read a caller's mapping of fields; raises ``UsageError`` for a name that is no part of a case."""
    mapped: list[tuple[Place, str]] = []
    unread: set[str] = set()
    for name, path in (fields or {}).items():
        key, _, inner = str(name).partition(".")
        if key in OWN_KEYS:
            raise UsageError(
                f"fields: {key!r} is not read from any field; see case_criteria and criteria_field", argument="fields"
            )
        if key not in KEYS or (inner and inner not in (_INSIDE.get(key, ()) or (inner,))):
            raise UsageError(
                f"fields: a case has no {show(name)}{suggest(name, KEYS)}; it has {', '.join(KEYS)}", argument="fields"
            )
        if path is None and not inner:
            unread.add(key)
        elif isinstance(path, str) and path:
            mapped.append(((key, inner or None), path))
        else:
            raise UsageError(f"fields: {show(name)} must be the name of a field, got {show(path)}", argument="fields")
    whole = {key for (key, inner), _ in mapped if inner is None} | unread
    for (key, inner), _ in mapped:
        if inner is not None and key in whole:
            raise UsageError(
                f"fields: {key!r} and {f'{key}.{inner}'!r} cannot both be given; keep one", argument="fields"
            )
    taken = {key for (key, _), _ in mapped if key != "metadata"} | unread
    return Fields(mapped=tuple(mapped), taken=frozenset(taken), table=table)


def check_names(columns: list[str]) -> None:
    """Raise ``UsageError`` for two columns of one name: a row would lose one of its cells."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise UsageError(f"the column {show(twice[0])} appears twice; name each column once")


def select_mapped(row: Mapping[str, Any], fields: Fields) -> tuple[dict[str, Any], set[str]]:
    """Return the parts of a case that were mapped, and the names of the row's fields they were taken from."""
    members: dict[str, Any] = {}
    used: set[str] = set()
    for (key, inner), path in fields.mapped:
        value = find_field(row, path)
        _put_member(members, key, inner, read_label(value) if key in {"label", "labels"} else value)
        used.add(path if path in row else path.partition(".")[0])
    return members, used


def find_field(row: Mapping[str, Any], path: str) -> Any:
    """Find the value of a field, by its name or by a path with dots (``answer.text``, ``messages.-1.content``).

    Raises ``UsageError``.
    """
    if path in row:
        return row[path]
    value: Any = row
    for step in path.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.lstrip("-").isdecimal() and len(step) < 10:
            at = int(step)
            if not -len(value) <= at < len(value):
                raise UsageError(f"the row has no {show(path)}: the list has {len(value)} items")
            value = value[at]
        else:
            raise UsageError(f"the row has no {show(path)}; it has {list_names(row)}")
    return value


def _put_member(members: dict[str, Any], key: str, inner: str | None, value: Any) -> None:
    """Put a value into the members of a case, at a key or a key in it; raise ``UsageError`` if it is there already."""
    if inner is None and key in {"labels", "metadata"} and isinstance(value, Mapping):
        members.setdefault(key, {})
        for name, member in value.items():
            _put_member(members, key, name, member)
    elif inner is None:
        if value is not None and members.get(key) is not None:
            raise _make_repeated_error(key)
        members[key] = value if value is not None else members.get(key)
    else:
        if members.get(key) is None:
            members[key] = {}
        if not isinstance(members[key], dict) or inner in members[key]:
            raise _make_repeated_error(f"{key}.{inner}")
        members[key][inner] = value


def _make_repeated_error(name: str) -> UsageError:
    return UsageError(f"{name!r} is given twice, by two columns; keep one")


def _add_metadata(members: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the members with all other fields of the row added to their metadata.

    Raises ``UsageError`` for a name that the metadata have already.
    """
    if not others:
        return members
    metadata = members.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        return members  # named as wrong where the case is made
    for name in others:
        if name in metadata:
            raise UsageError(f"{show(name)} is a field of the row and of its metadata; rename one")
    return members | {"metadata": {**metadata, **others}}
