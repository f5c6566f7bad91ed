"""The files that a call names, by the SHA-256 of what they hold.

A person approves ``python deploy.py`` as the file is at that moment. Files that the program reads by itself are not
found here, and nothing here says so better than the page of the guard does.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_FILES, MOST_BYTES = 50, 10_000_000
"""The most files of a call, and bytes in them, that are bound."""

MOST_WORDS = 2_000
"""Words of the arguments that are looked at."""

_LONGEST_PATH = 4_096

_BREAKS = re.compile(r"[\s;&|<>(){}$`'\"=,]+")


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that a call names inside the folder in which it runs."""

    digests: Mapping[str, str]
    """SHA-256 by path, relative to the folder, in the order of paths."""
    is_complete: bool = True
    """False if there were more files, or more bytes in them, than are bound."""


def read_named_files(arguments: Mapping[str, Any], cwd: str) -> NamedFiles:
    """Read the files that arguments name, whole or as a word of a command; links that lead out of ``cwd`` are left."""
    folder = Path(os.path.realpath(cwd))
    digests: dict[str, str] = {}
    is_complete, bytes_left, words_left = True, MOST_BYTES, MOST_WORDS
    for word in _list_words(arguments):
        words_left -= 1
        if words_left < 0:
            return NamedFiles(dict(sorted(digests.items())), is_complete=False)
        path = _find_file(folder, word)
        name = None if path is None else path.relative_to(folder).as_posix()
        if path is None or name is None or name in digests:
            continue
        data = _read_file(path, bytes_left)
        if data is None or len(digests) >= MOST_FILES:
            is_complete = False
            continue
        bytes_left -= len(data)
        digests[name] = hashlib.sha256(data).hexdigest()
    return NamedFiles(dict(sorted(digests.items())), is_complete=is_complete)


def _list_words(arguments: Mapping[str, Any]) -> Iterator[str]:
    values: list[Any] = [arguments]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            words = _BREAKS.split(value)
            yield value
            if len(words) > 1:
                yield from filter(None, words)


def _find_file(folder: Path, word: str) -> Path | None:
    """Find the file of a name, if it is a file in this folder or below it."""
    if not word or len(word) > _LONGEST_PATH or "\0" in word or "\n" in word:
        return None
    with suppress(OSError, ValueError):
        path = Path(os.path.realpath(folder / word))
        if path.is_relative_to(folder) and stat.S_ISREG(path.stat().st_mode):
            return path
    return None


def _read_file(path: Path, most: int) -> bytes | None:
    """Read a file of at most so many bytes; ``None`` for a larger one, and for one that cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        data = file.read(most + 1)
        return data if len(data) <= most else None
    return None
