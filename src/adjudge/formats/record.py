"""Records: frozen dataclasses that are written as plain data, and read back from data that is not trusted.

A record's members are written in the order of its fields, after its ``schema`` if it has one. A field whose name begins
with an underscore is not written. A record that differs declares how in a ``Layout``::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Verdict:
        schema: ClassVar[str] = "adjudge/<noun>/1"
        _layout: ClassVar[Layout] = Layout(last=("passed",))

        allowed: tuple[str, ...]
        rejected: tuple[str, ...] = ()

        @property
        def passed(self) -> bool:
            return not self.rejected

        def to_dict(self) -> dict[str, Any]:
            return write_record(self)

        @classmethod
        def from_dict(cls, data: Mapping[str, Any]) -> Self:
            return read_record(cls, data)

Reading checks data against the types of the fields, at every depth, and then calls the record's own
``__post_init__``: data from a file or a peer becomes a consistent record, or raises ``UsageError``.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from math import isfinite
from operator import attrgetter
from typing import Any, TypeVar

from adjudge.errors import UsageError
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.plain_data import AS_IS, to_plain
from adjudge.formats.text import clean

R = TypeVar("R")

MOST_NESTED = 50
"""The most levels of records inside records in data: each level takes a few nested calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The differences of a record's data from its fields. Every name is that of a member in the data."""

    members: tuple[str, ...] = ()
    """Everything that is written, in this order: fields, properties and what is computed. Empty: every field."""
    first: tuple[str, ...] = ()
    """Members that are written before the others, and after ``schema``: properties, and what is computed."""
    last: tuple[str, ...] = ()
    """Members that are written after the others: properties, what is computed, and fields that are to stand there."""
    computed: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    """Members that no attribute holds as it is written, each with the function that computes it from the record."""
    omitted: tuple[str, ...] = ()
    """Fields that are not written while they have their default."""
    required: tuple[str, ...] = ()
    """Fields that data must have although they have a default: it would make up an identity, or a time."""
    readers: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    """Members that a function of their own reads from data, unless it is ``None``: results, of which there are two
    classes, and which are read often enough to be read as a whole.
    """
    strict: bool = False
    """True if data with an unknown member is refused. Otherwise it is ignored: a later version may have added it."""


_PLAIN_LAYOUT = Layout()


def _get_layout(kind: type[Any]) -> Layout:
    return getattr(kind, "_layout", _PLAIN_LAYOUT)


# Writing


def write_record(record: Any) -> dict[str, Any]:
    """Write a record as data that JSON can hold: dictionaries, lists, texts, finite numbers, booleans and ``None``."""
    data = list_members(record)
    for name, value in data.items():
        # Most values are plain already. A result has thirty members, so this check is not worth a function call.
        kind = type(value)
        if kind not in AS_IS and not (kind is float and isfinite(value)):
            data[name] = _write_value(value)
    return data


def list_members(record: Any) -> dict[str, Any]:
    """List the members of a record that are written, in order, by name; the values are not converted to plain data.

    Classes whose data must stay exactly as it is use this as their ``to_dict``: a rubric has a digest of its data, and
    a case has the content.
    """
    writer = _make_writer(type(record))
    members: dict[str, Any] = dict(zip(writer.names, writer.read(record), strict=True))
    for name, default in writer.omitted:
        value = getattr(record, name)
        if type(default) is type(value) and value == default:
            del members[name]
    return members


def is_record(value: object) -> bool:
    """Return whether a value is a record that ``write_record`` writes; it need not have a ``to_dict``."""
    return getattr(type(value), "writes_plain", False) is True


def _write_value(value: Any) -> Any:
    """Write a record, a tuple of records or any other value as plain data."""
    if is_record(value):
        return value.to_dict() if hasattr(value, "to_dict") else write_record(value)
    if type(value) is tuple and (not value or is_record(value[0])):
        return [_write_value(member) for member in value]
    return to_plain(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """The members that records of one class are written with; kept, because finding them takes as long as writing."""

    names: tuple[str, ...]
    read: Callable[[Any], tuple[Any, ...]]
    """Returns the values of these names."""
    omitted: tuple[tuple[str, object], ...]
    """Members that are left out while they have their default, each with that default."""


@cache
def _make_writer(kind: type[Any]) -> _Writer:
    """Make the writer of a class: ``schema``, the layout's ``first``, its members or all fields, then its ``last``."""
    layout = _get_layout(kind)
    defaults = {
        member.name: member.default if member.default_factory is MISSING else member.default_factory()
        for member in fields(kind)
        if not member.name.startswith("_")
    }
    middle = [name for name in layout.members or defaults if name not in (*layout.first, *layout.last)]
    names = [*(["schema"] if hasattr(kind, "schema") else []), *layout.first, *middle, *layout.last]
    return _Writer(
        names=tuple(names),
        read=_make_values_getter(names, layout.computed),
        omitted=tuple([(name, defaults[name]) for name in layout.omitted]),
    )


def _make_values_getter(
    names: Sequence[str], computed: Mapping[str, Callable[[Any], object]]
) -> Callable[[Any], tuple[Any, ...]]:
    """Make a function that returns the values of these members of a record, some of which are computed."""
    if not computed and len(names) > 1:
        return attrgetter(*names)
    getters = [computed.get(name) or attrgetter(name) for name in names]
    return lambda record: tuple([get(record) for get in getters])


# Reading


def read_record(kind: type[R], data: object) -> R:
    """Read what ``write_record`` wrote for a class. Raises ``UsageError`` for anything else, naming the member."""
    return read_any_record((kind,), data)


def read_any_record(kinds: Sequence[type[R]], data: object) -> R:
    """Read a record of one of several classes, which its ``schema`` tells apart. Raises ``UsageError``."""
    try:
        return _read_one_of(kinds, data, "$", 0)
    except _UnreadableError as error:
        names = " or ".join([kind.__name__ for kind in kinds])
        problem = clean(" ".join(str(error).split())[:300], keep_lines=False)
        raise UsageError(f"this is not a dictionary that {names}.to_dict wrote: {problem}") from None


class _UnreadableError(Exception):
    """Data that cannot be read, with its path: ``$`` is the record that is read, ``$.votes[0].by`` a member in it."""

    def __init__(self, problem: str, path: str) -> None:
        # A message of msgspec has a path of its own, from the record that msgspec was given.
        problem = problem.replace("`$", f"`{path}") if "`$" in problem else f"{problem} - at `{path}`"
        super().__init__(problem.removesuffix(" - at `$`"))


def _read_one_of(kinds: Sequence[type[R]], data: object, path: str, depth: int) -> R:
    """Read a record of one of these classes: plain members by ``msgspec``, then records within it."""
    if not isinstance(data, Mapping):
        raise _UnreadableError(f"Expected `object`, got `{type(data).__name__}`", path)
    if depth > MOST_NESTED:
        raise _UnreadableError(f"records stand more than {MOST_NESTED} levels deep in each other", "$")
    kind = _choose_class(kinds, data, path)
    reader = _make_reader(kind)
    plain = {name: value for name, value in data.items() if name not in reader.not_plain}
    try:
        members = reader.read_plain(plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise _UnreadableError(str(error), path) from None
    for name, read in reader.nested.items():
        if name in data:
            members[name] = read(data[name], f"{path}.{name}", depth + 1)
        elif name in reader.needed:
            raise _UnreadableError(f"Object missing required field `{name}`", path)
    return kind(**members)


def _choose_class(kinds: Sequence[type[R]], data: Mapping[str, Any], path: str) -> type[R]:
    """Choose the class that the data's schema names. A class without a schema is only ever read alone."""
    if not hasattr(kinds[0], "schema"):
        return kinds[0]
    schema = data.get("schema")
    schemas: list[str] = [kind.schema for kind in kinds]  # type: ignore[attr-defined]
    if schema in schemas:
        return kinds[schemas.index(schema)]
    shown_schema = repr(schema)[:60] if schema is None or isinstance(schema, str) else type(schema).__name__
    is_other_version = isinstance(schema, str) and schema.rpartition("/")[0] in [
        known_schema.rpartition("/")[0] for known_schema in schemas
    ]
    remedy = "; another version of adjudge wrote it, so update adjudge" if is_other_version else ""
    raise _UnreadableError(f"its schema is {shown_schema} and not {' or '.join(schemas)}{remedy}", path)


_ReadNested = Callable[[Any, str, int], object]
"""Reads a member that contains records, from its data, its path and its depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """A reader of records of one class."""

    read_plain: Callable[[dict[str, Any]], dict[str, Any]]
    """Reads the members that contain no records; all at once, by msgspec."""
    nested: Mapping[str, _ReadNested]
    """The readers of the other members."""
    needed: frozenset[str]
    """Members that data must have."""
    not_plain: frozenset[str]
    """Members that ``read_plain`` must not get: the schema, nested records, and members that are no fields."""


@cache
def _make_reader(kind: type[Any]) -> _Reader:
    """Make the reader of a class: find which of its members are plain, and which need a reader of their own."""
    layout = _get_layout(kind)
    hints = typing.get_type_hints(kind)
    members = [member for member in fields(kind) if member.init]
    nested = {
        member.name: read
        for member in members
        if (read := _find_member_reader(hints[member.name], layout.readers.get(member.name))) is not None
    }
    needed = frozenset(
        [
            member.name
            for member in members
            if (member.default is MISSING and member.default_factory is MISSING) or member.name in layout.required
        ]
    )
    plain = {member.name: hints[member.name] for member in members if member.name not in nested}
    derived = {*layout.first, *layout.members, *layout.last}.difference(plain)
    return _Reader(
        read_plain=_make_plain_reader(kind.__name__, plain, needed, strict=layout.strict),
        nested=nested,
        needed=needed,
        not_plain=frozenset({"schema", *nested, *derived}),
    )


def _make_plain_reader(
    name: str, hints: Mapping[str, Any], needed: frozenset[str], *, strict: bool
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Make a function that reads the plain members of a record; optional members that are missing are left out."""
    import msgspec

    struct_fields = [(key, hint) if key in needed else (key, hint, msgspec.UNSET) for key, hint in hints.items()]
    struct = msgspec.defstruct(name, struct_fields, kw_only=True, forbid_unknown_fields=strict)

    def read(data: dict[str, Any]) -> dict[str, Any]:
        members = msgspec.structs.asdict(read_typed(data, struct))
        present = {key: value for key, value in members.items() if value is not msgspec.UNSET}
        for key, value in present.items():
            # NaN is neither above nor below a limit, so a comparison with one would give an arbitrary decision.
            if type(value) is float and not isfinite(value):
                raise ValueError(f"Expected a finite number, got {value} - at `$.{key}`")
        return present

    return read


def _find_member_reader(hint: Any, read: Callable[[Any], object] | None) -> _ReadNested | None:
    """Find the reader of a member: ``read`` if its layout names one, or one for its type; ``None`` for plain data."""
    if read is None:
        return _find_nested_reader(hint)
    return lambda value, _path, _depth: None if value is None else read(value)


def _find_nested_reader(hint: Any) -> _ReadNested | None:
    """Find a reader for values of a type that contains records; ``None`` for a type that msgspec reads by itself."""
    if typing.get_origin(hint) is tuple:
        read_item = _find_nested_reader(typing.get_args(hint)[0])
        return None if read_item is None else _make_tuple_reader(read_item)
    choices = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    kinds = [choice for choice in choices if is_dataclass(choice)]
    if not kinds:
        return None
    is_optional = types.NoneType in choices

    def read(value: Any, path: str, depth: int) -> object:
        return None if value is None and is_optional else _read_one_of(kinds, value, path, depth)  # type: ignore[arg-type]

    return read


def _make_tuple_reader(read_item: _ReadNested) -> _ReadNested:
    """Make a reader of a list, which reads each item by ``read_item`` and returns a tuple."""

    def read(value: Any, path: str, depth: int) -> object:
        if not isinstance(value, list | tuple):
            raise _UnreadableError(f"Expected `array`, got `{type(value).__name__}`", path)
        return tuple([read_item(member, f"{path}[{index}]", depth) for index, member in enumerate(value)])

    return read
