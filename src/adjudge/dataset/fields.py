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
"""The types of values that need no conversion to JSON."""

_MISSING = ("NAType", "NaTType")
"""The names of pandas' types for missing values that are not NaN."""


def read_label(value: Any) -> Any:
    """Read a label from a text: ``true`` or ``false`` in any case, a preference such as ``first``, or a number.

    An empty text is ``None``, unknown. Any other value is returned as it is: ``yes`` or ``good`` would be a guess.
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
    """Read the cell ``labels`` or ``metadata`` of a table: a text as JSON, an empty one as ``None``."""
    if not isinstance(value, str) or not value.strip():
        return value or None
    return read_json_cell(name, value)


def read_json_cell(name: str, value: Any) -> Any:
    """Read the JSON text in a cell; an empty cell is ``None``. Raises ``UsageError``."""
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
    """Convert a mapping to plain JSON; raise ``UsageError`` for two keys that are equal as texts."""
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
        python_value = value.tolist()
        return str(value) if python_value is value else convert_cell(python_value, depth + 1)
    if hasattr(value, "as_py"):  # Arrow's scalars
        return convert_cell(value.as_py(), depth + 1)
    if isinstance(value, str | int):  # a subclass, as numpy and enumerations have them
        return str(value) if isinstance(value, str) else int(value)
    if hasattr(value, "isoformat"):  # dates and times
        return value.isoformat()
    if type(value).__module__ in ("datetime", "decimal", "uuid"):
        return str(value)
    raise UsageError(f"it holds a {type(value).__name__}, which is no text and no JSON value; leave the column out")


def _check_finite(number: float) -> float:
    """Return a number; raise ``UsageError`` for infinity."""
    if math.isfinite(number):
        return number
    raise UsageError(f"{number!r} is not a number that JSON has; leave it empty, or write a number")


_MEMBERS = {"content": ("a", "b"), "labels": None, "metadata": None}
"""The parts of a case whose members a field may fill, with the names of these; ``None`` is any name."""


Place = tuple[str, str | None]
"""A part of a case and a member of it, such as ``labels`` and a rater; the member is ``None`` for the whole part."""


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
        parts: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for (part, member), path in self.mapped:
            _put_value(parts, part, member, self._read_cell(part, member, path, find_field(row, path)))
        mapped_paths = {path for _, path in self.mapped}
        for name, value in row.items():
            if name in mapped_paths or (name == "schema" and value == Case.schema):
                continue
            place = self._find_place(name)
            if place is not None:
                _put_value(parts, *place, self._read_cell(*place, name, value))
            elif value is not None:
                others[name] = value
        return _add_metadata(parts, others)

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
        candidates = [name for name in CONTENT_NAMES if name in listed]
        if len(candidates) > 1:
            raise UsageError(
                f"{' and '.join(map(show, candidates))} may each be the content; say which is, with ",
                Argument("fields['content']"),
                argument="fields",
            )
        return candidates[0] if candidates else None

    def list_tasks(self, names: Iterable[str]) -> list[str]:
        """List the fields that are the task by their names, where nothing is taken as the task.

        Args:
            names: The names of a row's fields.
        """
        listed = tuple(names)
        if "task" in self.taken or "task" in listed:
            return []
        mapped_paths = {path for _, path in self.mapped}
        return [name for name in _TASK_NAMES if name in listed and name not in mapped_paths]

    def take_content(self, name: str) -> Fields:
        """Return the mapping with the content taken from this field.

        Args:
            name: The name of the field.
        """
        return replace(self, mapped=(*self.mapped, (("content", None), name)), taken=self.taken | {"content"})

    def _has_content(self, names: Iterable[str]) -> bool:
        """Return whether a mapping or one of these field names is the content, or a member of it."""
        places = [place for place, _ in self.mapped] + [self._find_place(name) for name in names]
        return any(place[0] == "content" for place in places if place)

    def _find_place(self, name: str) -> Place | None:
        """Find the part of a case, or the member of one, that a field is by its name.

        ``None`` for a field that is none, and for a part that is taken from another field. A column of a table may also
        be called like ``metadata.topic``, for a member, or ``labels.json``, for JSON text.
        """
        if name in KEYS:
            return None if name in self.taken else (name, None)
        part, _, member = name.partition(".")
        if not self.table or not member or part in self.taken:
            return None
        if member == "json" and part in KEYS:
            return part, None
        return (part, member) if _may_have_member(part, member) else None

    def _read_cell(self, part: str, member: str | None, name: str, value: Any) -> Any:
        """Read the value of the field ``name`` as a part of a case, or as a member of one.

        In a table texts are converted: JSON, labels, and empty cells to ``None``.
        """
        if not self.table:
            return value
        if member is None and name.endswith(".json"):
            return read_json_cell(name, value)
        if part == "label" or (part == "labels" and member is not None):
            return read_label(value)
        if part in {"labels", "metadata"} and member is None:
            value = read_object(name, value)
            if part == "labels" and isinstance(value, Mapping):
                return {rater: read_label(label) for rater, label in value.items()}
            return value
        # An empty cell says nothing, but an empty answer is an answer.
        return None if value == "" and part not in {"content", "metadata"} else value


def read_fields(fields: Mapping[str, str | None] | None, *, table: bool) -> Fields:
    """Read a caller's mapping of parts of a case to fields; raise ``UsageError`` for a name that is no such part."""
    mapped: list[tuple[Place, str]] = []
    unread: set[str] = set()  # parts that no field fills, because the caller mapped them to None
    for name, path in (fields or {}).items():
        part, _, member = str(name).partition(".")
        if part in OWN_KEYS:
            raise UsageError(
                f"fields: {part!r} is not read from any field; see case_criteria and criteria_field", argument="fields"
            )
        if part not in KEYS or (member and not _may_have_member(part, member)):
            raise UsageError(
                f"fields: a case has no {show(name)}{suggest(name, KEYS)}; it has {', '.join(KEYS)}", argument="fields"
            )
        if path is None and not member:
            unread.add(part)
        elif isinstance(path, str) and path:
            mapped.append(((part, member or None), path))
        else:
            raise UsageError(f"fields: {show(name)} must be the name of a field, got {show(path)}", argument="fields")
    whole_parts = {part for (part, member), _ in mapped if member is None} | unread
    for (part, member_name), _ in mapped:
        if member_name is not None and part in whole_parts:
            raise UsageError(
                f"fields: {part!r} and {f'{part}.{member_name}'!r} cannot both be given; keep one", argument="fields"
            )
    taken = {part for (part, _), _ in mapped if part != "metadata"} | unread
    return Fields(mapped=tuple(mapped), taken=frozenset(taken), table=table)


def _may_have_member(part: str, member: str) -> bool:
    """Return whether a part of a case may have a member of this name."""
    return part in _MEMBERS and member in (_MEMBERS[part] or (member,))


def check_names(columns: list[str]) -> None:
    """Raise ``UsageError`` for two columns of one name: a row would lose one of its cells."""
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise UsageError(f"the column {show(repeated[0])} appears twice; name each column once")


def select_mapped(row: Mapping[str, Any], fields: Fields) -> tuple[dict[str, Any], set[str]]:
    """Return the parts of a case that fields are mapped to, and the names of the row's fields they were taken from."""
    parts: dict[str, Any] = {}
    used_names: set[str] = set()
    for (part, member), path in fields.mapped:
        value = find_field(row, path)
        _put_value(parts, part, member, read_label(value) if part in {"label", "labels"} else value)
        used_names.add(path if path in row else path.partition(".")[0])
    return parts, used_names


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
            index = int(step)
            if not -len(value) <= index < len(value):
                raise UsageError(f"the row has no {show(path)}: the list has {len(value)} items")
            value = value[index]
        else:
            raise UsageError(f"the row has no {show(path)}; it has {list_names(row)}")
    return value


def _put_value(parts: dict[str, Any], part: str, member: str | None, value: Any) -> None:
    """Set a part of a case, or a member of one, among ``parts``; raise ``UsageError`` if it is set already.

    The members of labels and metadata are set one by one, so that several fields may fill them.
    """
    if member is None and part in {"labels", "metadata"} and isinstance(value, Mapping):
        parts.setdefault(part, {})
        for name, member_value in value.items():
            _put_value(parts, part, name, member_value)
    elif member is None:
        if value is not None and parts.get(part) is not None:
            raise _make_repeated_error(part)
        parts[part] = value if value is not None else parts.get(part)
    else:
        if parts.get(part) is None:
            parts[part] = {}
        if not isinstance(parts[part], dict) or member in parts[part]:
            raise _make_repeated_error(f"{part}.{member}")
        parts[part][member] = value


def _make_repeated_error(name: str) -> UsageError:
    """Make the error for a part of a case, or a member of one, that two columns fill."""
    return UsageError(f"{name!r} is given twice, by two columns; keep one")


def _add_metadata(parts: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a case with all other fields of the row added to the metadata.

    Raises ``UsageError`` for a name that the metadata have already.
    """
    if not others:
        return parts
    metadata = parts.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        return parts  # refused where the case is made
    for name in others:
        if name in metadata:
            raise UsageError(f"{show(name)} is a field of the row and of its metadata; rename one")
    return parts | {"metadata": {**metadata, **others}}
