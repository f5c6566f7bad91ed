"""Files that hold data about judging, read so that each error says where, and none can run or stop anything."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, show, suggest
from adjudge.formats.toml import read_toml
from adjudge.formats.yaml import LineOf, read_yaml

Format = Literal["yaml", "json", "toml"]


MAX_BYTES = 1_000_000
"""The largest file of this sort that is read, in bytes."""


FORMATS: Mapping[str, Format] = {"": "yaml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands, so that every error can say it."""

    where: str
    lines: LineOf = field(default_factory=dict)
    path: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> Place:
        """A place below this one."""
        return replace(self, path=(*self.path, *steps))

    def error(self, message: object) -> UsageError:
        """What is wrong here, after file, line and path."""
        known = (self.path[:end] for end in range(len(self.path), -1, -1))
        line = next((self.lines[path] for path in known if path in self.lines), None)
        at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).removeprefix(".")
        start = self.where + (f", line {line}" if line is not None else "") + (f": {flatten(at, 120)}" if at else "")
        return UsageError(f"{start}: {flatten(str(message), 800)}")


def read_source(path: str | os.PathLike[str], *, what: str, hint: str = "") -> tuple[Any, Place]:
    """The data of a file and where it stands; ``what`` is what error messages call it (``a rubric``).

    Raises ``UsageError`` for a path that names no such file, with ``hint`` when there is none, and for what is not in
    the form that its suffix says.
    """
    file = Path(path)
    _check_named(file, what=what, hint=hint)
    text = read_text(file, what=what)
    found = FORMATS.get(file.suffix.lower())
    if found is None:
        raise UsageError(f"{file} is not {_name_file(what)} by its suffix; use .yaml, .yml, .json or .toml")
    return parse_source(text, format=found, where=str(file), what=what)


def parse_source(
    text: str,
    *,
    format: Format,  # noqa: A002 - the word
    where: str,
    what: str,
    wrong: str = "",
) -> tuple[Any, Place]:
    """The data of a text and where it stands; raises ``UsageError``, which says ``wrong`` of what is not in the form.

    ``wrong`` is ``is not {what}`` unless it is given.
    """
    if format not in get_args(Format):
        raise UsageError(f"a {_name(what)}'s format is one of {', '.join(get_args(Format))}; got {show(format)}")
    try:
        text = text.removeprefix("\ufeff")
        data, lines = read_yaml(text) if format == "yaml" else (_read_other(text, format), {})
    except ValueError as error:
        raise UsageError(f"{where} {wrong or f'is not {what}'} in {format.upper()}: {error}") from None
    return data, Place(where, lines)


def looks_like_path(source: str) -> bool:
    """Whether a text has a separator or a suffix, and so names a file."""
    return "/" in source or os.sep in source or bool(Path(source).suffix)


def check_keys(data: Any, known: tuple[str, ...], needed: tuple[str, ...], what: str, place: Place) -> dict[str, Any]:
    """A copy of a mapping that has all keys needed and none unknown; raises ``UsageError``."""
    if not isinstance(data, Mapping):
        raise place.error(f"{what} must be a mapping with {' and '.join(needed)}, got {show(data)}")
    for key, value in data.items():
        if key not in known:
            steps = (key,) if isinstance(key, str) else ()
            raise place.at(*steps).error(f"{what} has no key {show(key)}{suggest(key, known)}")
        if value is None:
            raise place.at(key).error(f"{key} has no value; give it one or leave the key out")
    for key in needed:
        if key not in data:
            raise place.error(f"{what} needs {key!r}, and there is none")
    return dict(data)


def _name(what: str) -> str:
    return what.removeprefix("a ").removesuffix(" file")


def _read_other(text: str, format: Format) -> Any:  # noqa: A002 - as parse_source
    return read_json(text) if format == "json" else read_toml(text)


def _name_file(what: str) -> str:
    return what if "file" in what else f"{what} file"


def _check_named(path: Path, *, what: str, hint: str) -> None:
    """Raise ``UsageError`` for a path that was mistyped, in words that help; what else is wrong is said on reading."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist, so no {_name(what)} can be read from it{hint}") from None
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(kind):
        raise UsageError(f"{path} is a directory; name {_name_file(what)} in it")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read its bytes; raises ``OSError``, whose ``strerror`` says why, for anything else.

    A pipe, a device or a socket could keep its reader waiting, or never end; so what a path names is looked at first.
    """
    check_regular(path)
    return Path(path).open("rb")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` for a path that names no regular file."""
    kind = Path(path).stat().st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket and not a regular file", os.fspath(path))


def read_text(path: Path, *, what: str, most: int = MAX_BYTES) -> str:
    """The text of a regular file of at most ``most`` bytes; raises ``UsageError`` for anything else.

    A pipe or a device could stop whoever reads it, or never end.
    """
    if "\x00" in str(path):
        raise UsageError(f"a path to {what} has no NUL character in it")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a regular file; {what} is read from one")
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}; name {_name_file(what)}") from None
    return _decode(raw, path, what=what, most=most)


def _decode(raw: bytes, path: Path, *, what: str, most: int) -> str:
    if len(raw) > most:
        raise UsageError(f"{path} is too large; {_name_file(what)} has at most {most:,} bytes")
    if b"\x00" in raw:
        raise UsageError(f"{path} is a binary file; {what} is UTF-8 text")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None
