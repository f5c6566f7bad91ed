"""The files that a call names, by the SHA-256 of what they hold.

A person approves ``python deploy.py`` as the file is at that moment. Files that the program reads by itself are not
found here, and nothing here says so better than the page of the guard does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.files import open_unfollowed
from adjudge.formats.patch import list_patched_files

MOST_FILES, MOST_BYTES = 50, 10_000_000
"""The most files of a call, and bytes in them, that are bound."""

PATCH_TOOL = "apply_patch"
"""The tool that applies a patch in the form of Codex."""

MOST_WORDS = 2_000
"""Words of the arguments that are looked at."""

_LONGEST_PATH = 4_096

_BREAKS = re.compile(r"[\s;&|<>(){}$`'\"=,]+")


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that a call names inside the folder in which it runs."""

    digests: Mapping[str, str]
    """SHA-256 by path as it is named, relative to the folder, in the order of paths."""
    links: Mapping[str, str] = field(default_factory=dict)
    """The file that a path with a link on it leads to, by path; ``.`` is the folder itself."""
    is_complete: bool = True
    """False if there may be more files than are bound: too many or too large, or a command names them by what a shell
    makes of it."""


def read_named_files(arguments: Mapping[str, Any], cwd: str, *, tool: str | None = None) -> NamedFiles:
    """Read the files that arguments name, whole or as a word of a command, and what links on their paths lead to.

    A patch, which ``tool`` applies, names its files in headers: no word of the lines that it adds is one.
    """
    folder = Path(os.path.normpath(cwd))
    if not folder.is_absolute():
        return NamedFiles({}, is_complete=False)
    reader = _Reader(folder)
    words_left = MOST_WORDS
    patched = _list_patched(arguments) if tool == PATCH_TOOL else None
    for word in _list_words(arguments) if patched is None else patched:
        words_left -= 1
        if words_left < 0:
            reader.is_complete = False
            break
        reader.add(word)
    is_plain = patched is not None or not any(map(_WRITTEN_OTHERWISE.search, _list_commands(arguments)))
    return NamedFiles(
        dict(sorted(reader.digests.items())),
        dict(sorted(reader.links.items())),
        is_complete=reader.is_complete and is_plain,
    )


class _Reader:
    """The files and links that were found so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = Path(os.path.realpath(folder))
        self.digests: dict[str, str] = {}
        self.links: dict[str, str] = {} if self.root == folder else {".": str(self.root)}
        self.is_complete = True
        self._bytes_left = MOST_BYTES

    def add(self, word: str) -> None:
        """Add the file or link of a name, if there is one."""
        path = self._find(word)
        if path is None:
            return
        name = os.path.relpath(path, self.folder)
        target = Path(os.path.realpath(path))
        if name in self.digests or name in self.links:
            return
        if target != self.root / name:
            # A link may be pointed elsewhere between the yes and the call, out of the folder too, or to another folder.
            self.links[name] = str(target)
        if len(self.digests) >= MOST_FILES:
            self.is_complete = False
            return
        if target.is_relative_to(self.root) and _is_file(target):
            self._digest_file(name, target)

    def _find(self, word: str) -> Path | None:
        """Find what a name in the folder, or below it, stands for; ``None`` where nothing is there."""
        if not word or "\0" in word:
            return None
        with suppress(OSError, ValueError):
            # Without ".." first: what is too long to be opened as it is written may be short then.
            short = os.path.normpath(os.path.join(self.folder, word))  # noqa: PTH118 - a Path of a long text takes long
            if len(short) > _LONGEST_PATH:
                return None
            path = Path(short)
            is_inside = path.is_relative_to(self.folder) or path.is_relative_to(self.root)
            if is_inside and path not in (self.folder, self.root) and os.path.lexists(path):
                return path
        return None

    def _digest_file(self, name: str, target: Path) -> None:
        """Digest a file under a name; one that cannot be read, or for which no bytes are left, makes it incomplete."""
        data = _read_file(target, self._bytes_left)
        if data is None:
            self.is_complete = False
            return
        self._bytes_left -= len(data)
        self.digests[name] = hashlib.sha256(data).hexdigest()


def _list_patched(arguments: Mapping[str, Any]) -> tuple[str, ...] | None:
    """List the files of arguments that are a patch and nothing else; ``None`` for others."""
    [patch] = arguments.values() if len(arguments) == 1 else [None]
    if not isinstance(patch, str):
        return None
    try:
        return list_patched_files(patch)
    except UsageError:
        return None


_COMMANDS = frozenset({"command", "cmd", "script"})
"""Arguments that a shell reads."""

_WRITTEN_OTHERWISE = re.compile(r"[\\*?\[$`~]|''|\"\"|\bcd\b|\bpushd\b")
"""The characters and words that can stand in a command for a file that none of its words names."""


def _list_commands(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        if name in _COMMANDS:
            held = (
                [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
            )
            yield from (word for word in held if isinstance(word, str))


def _list_words(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text in the arguments, names too: the whole text, and then each word in it."""
    values: list[Any] = [arguments]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value.values(), *value.keys()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            yield from dict.fromkeys([value, *_split_words(value)])


def _split_words(text: str) -> list[str]:
    """Split a text into words as it stands, and as a shell would."""
    words = _BREAKS.split(text)
    with suppress(ValueError):  # a quotation that is not closed
        words += shlex.split(text)
    return [word.lstrip("@") for word in words if word]


_UNREADABLE = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Folders whose files are no files: to read some of them takes for ever."""


def _is_file(path: Path) -> bool:
    with suppress(OSError):
        is_regular = stat.S_ISREG(path.stat().st_mode)
        return is_regular and not any(path.is_relative_to(folder) for folder in _UNREADABLE)
    return False


def _read_file(path: Path, most: int) -> bytes | None:
    """Read a file of at most so many bytes; ``None`` for a larger one, and for one that cannot be read."""
    with suppress(OSError), open_unfollowed(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(most + 1)
        return data if len(data) <= most else None
    return None
