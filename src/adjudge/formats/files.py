"""Reading of rubric, rule and similar files: errors name the line, and no file can run code or block its reader."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, show, suggest
from adjudge.formats.toml import read_toml
from adjudge.formats.yaml import LineOf, read_yaml

Format = Literal["yaml", "json", "toml"]


MAX_BYTES = 1_000_000
"""The largest file that is read, in bytes."""


FORMATS: Mapping[str, Format] = {"": "yaml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file, for error messages."""

    where: str
    """The name of the file."""
    lines: LineOf = field(default_factory=dict)
    """The line of each path in the file, where known."""
    path: tuple[str | int, ...] = ()
    """The keys and list positions that lead to the place."""

    def at(self, *steps: str | int) -> Place:
        """Return a place below this one."""
        return replace(self, path=(*self.path, *steps))

    def error(self, message: object) -> UsageError:
        """Make an error with file, line and path before the message; the line is the nearest known one above."""
        prefixes = (self.path[:end] for end in range(len(self.path), -1, -1))
        line = next((self.lines[path] for path in prefixes if path in self.lines), None)
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        path_text = "".join(steps).removeprefix(".")
        start = self.where + (f", line {line}" if line is not None else "")
        start += f": {flatten(path_text, 120)}" if path_text else ""
        return UsageError(f"{start}: {flatten(str(message), 800)}")


def read_source(path: str | os.PathLike[str], *, noun: str, hint: str = "") -> tuple[Any, Place]:
    """Read a file; return its data and the ``Place`` of the data. ``noun`` is its name in messages (``a rubric``).

    Raises ``UsageError`` for a path that cannot be read, with ``hint`` added if nothing is there, and for a text that
    is not in the format of the file's suffix.
    """
    file = Path(path)
    _check_exists(file, noun=noun, hint=hint)
    text = read_text(file, noun=noun)
    file_format = FORMATS.get(file.suffix.lower())
    if file_format is None:
        raise UsageError(f"{file} is not {_add_file(noun)} by its suffix; use .yaml, .yml, .json or .toml")
    return parse_source(text, format=file_format, where=str(file), noun=noun)


def parse_source(
    text: str,
    *,
    format: Format,  # noqa: A002 - the word
    where: str,
    noun: str,
    wrong: str = "",
) -> tuple[Any, Place]:
    """Read a text; return its data and the ``Place`` of the data. Raises ``UsageError``.

    ``where`` is the file's name in messages. ``wrong`` is the message for a text that is not in the format, by default
    ``is not {noun}``.
    """
    if format not in get_args(Format):
        raise UsageError(
            f"a {_shorten_noun(noun)}'s format is one of {', '.join(get_args(Format))}; got {show(format)}"
        )
    try:
        text = text.removeprefix("\ufeff")
        document, lines = read_yaml(text) if format == "yaml" else (_read_other(text, format), {})
    except ValueError as error:
        raise UsageError(f"{where} {wrong or f'is not {noun}'} in {format.upper()}: {error}") from None
    return document, Place(where, lines)


def looks_like_path(source: str) -> bool:
    """Return whether a text has a separator or a suffix, and so names a file."""
    return "/" in source or os.sep in source or bool(Path(source).suffix)


def check_keys(
    mapping: Any, known_keys: tuple[str, ...], needed: tuple[str, ...], noun: str, place: Place
) -> dict[str, Any]:
    """Check that a mapping has all keys needed and none unknown, and return a copy; raises ``UsageError``."""
    if not isinstance(mapping, Mapping):
        raise place.error(f"{noun} must be a mapping with {' and '.join(needed)}, got {show(mapping)}")
    for key, value in mapping.items():
        if key not in known_keys:
            steps = (key,) if isinstance(key, str) else ()
            raise place.at(*steps).error(f"{noun} has no key {show(key)}{suggest(key, known_keys)}")
        if value is None:
            raise place.at(key).error(f"{key} has no value; give it one or leave the key out")
    for key in needed:
        if key not in mapping:
            raise place.error(f"{noun} needs {key!r}, and there is none")
    return dict(mapping)


def _shorten_noun(noun: str) -> str:
    """Return the noun alone: ``rubric`` for ``a rubric file``."""
    return noun.removeprefix("a ").removesuffix(" file")


def _read_other(text: str, format: Format) -> Any:  # noqa: A002 - as parse_source
    return read_json(text) if format == "json" else read_toml(text)


def _add_file(noun: str) -> str:
    return noun if "file" in noun else f"{noun} file"


def _check_exists(path: Path, *, noun: str, hint: str) -> None:
    """Raise ``UsageError`` for a path where nothing or a directory is; other problems are reported by reading it."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist, so no {_shorten_noun(noun)} can be read from it{hint}") from None
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path} is a directory; name {_add_file(noun)} in it")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read its bytes; raises ``OSError``, whose ``strerror`` says why, for anything else.

    Reading a pipe, a device or a socket could wait for ever, or never end, so the kind of file is checked first.
    """
    check_regular(path)
    return Path(path).open("rb")


if sys.platform == "win32":
    _NO_FOLLOW_FLAGS = os.O_BINARY
else:
    _NO_FOLLOW_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK


def open_unfollowed(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file that was checked a moment ago to read its bytes; raises ``OSError`` if it has become a link.

    After the check somebody can replace the file: by a link to another file, which is not followed, or by a pipe, which
    is not waited for. Windows has no such flags and follows a link, so a defence against links that an agent makes must
    not rely on this function there.
    """
    return os.fdopen(os.open(path, os.O_RDONLY | _NO_FOLLOW_FLAGS), "rb")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` for a path that names no regular file."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket and not a regular file", os.fspath(path))


def read_text(path: Path, *, noun: str, most: int = MAX_BYTES) -> str:
    """Read the text of a regular file of at most ``most`` bytes; raises ``UsageError`` for anything else.

    A pipe or a device could stop whoever reads it, or never end.
    """
    if "\x00" in str(path):
        raise UsageError(f"a path to {noun} has no NUL character in it")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a regular file; {noun} is read from one")
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}; name {_add_file(noun)}") from None
    return _decode_text(raw, path, noun=noun, most=most)


def _decode_text(raw: bytes, path: Path, *, noun: str, most: int) -> str:
    """Decode the bytes of a file.

    Raises ``UsageError`` for more than ``most`` bytes, a NUL byte, and text that is not UTF-8.
    """
    if len(raw) > most:
        raise UsageError(f"{path} is too large; {_add_file(noun)} has at most {most:,} bytes")
    if b"\x00" in raw:
        raise UsageError(f"{path} is a binary file; {noun} is UTF-8 text")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None
