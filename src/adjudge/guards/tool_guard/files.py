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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.files import open_unfollowed
from adjudge.formats.patch import list_patched_files
from adjudge.rules.commands import COMMANDS

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
    """The files that a call names inside the folder in which it runs, and those that its commands name elsewhere."""

    digests: Mapping[str, str]
    """SHA-256 by path as it is named, in the order of paths: relative to the folder, or absolute outside of it."""
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
    patched = _list_patched(arguments) if tool == PATCH_TOOL else None
    if patched is not None:
        reader.add_words(patched)
    else:
        for text, is_command in _list_texts(arguments):
            reader.add_text(text, is_command=is_command)
            if reader.has_no_words_left:
                break
    return NamedFiles(
        dict(sorted(reader.digests.items())), dict(sorted(reader.links.items())), is_complete=reader.is_complete
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
        self._words_left = MOST_WORDS

    @property
    def has_no_words_left(self) -> bool:
        """True if a word came after the last one that is looked at."""
        return self._words_left < 0

    def add_text(self, text: str, *, is_command: bool) -> None:
        """Add the files that a text of the arguments names, whole or as one of its words."""
        parts = _split_as_shell(text)
        words = [word.lstrip("@") for word in (*_BREAKS.split(text), *(parts or ())) if word]
        if is_command and (_is_written_otherwise(text, words) or (parts is None and _has_quotation(text))):
            self.is_complete = False
        self.add_words(dict.fromkeys([text, *words]), is_command=is_command)

    def add_words(self, words: Iterable[str], *, is_command: bool = False) -> None:
        """Add the files of names, as far as words are left; those outside of the folder for a command alone."""
        for word in words:
            self._words_left -= 1
            if self.has_no_words_left:
                self.is_complete = False
                return
            self._add(word, is_command=is_command)

    def _add(self, word: str, *, is_command: bool) -> None:
        """Add the file or link of a name, if there is one."""
        if self._climbs_from_link(word):
            self.is_complete = False
        path = self._find(word, is_command=is_command)
        if path is None:
            return
        # A path outside is named in full: people would not see where "../../tmp/x" leads.
        name = os.path.relpath(path, self.folder) if self._is_inside(path) else str(path)
        target = Path(os.path.realpath(path))
        # Not for a known link: an argument beside the command could name it first, and its file would not be bound.
        if name in self.digests:
            return
        if target != self.root / name:
            # A link may be pointed elsewhere between the yes and the call, out of the folder too, or to another folder.
            self.links[name] = str(target)
        if len(self.digests) >= MOST_FILES:
            self.is_complete = False
            return
        # Outside, a command's file is bound as well: else the agent could write it anew between the yes and the call.
        is_bound = target.is_relative_to(self.root) or (is_command and not _is_of_system(target))
        if is_bound and _is_file(target):
            self._digest_file(name, target)

    def _find(self, word: str, *, is_command: bool) -> Path | None:
        """Find the path of a name; ``None`` if nothing is there, or if it is outside and no command names it."""
        if not word or "\0" in word:
            return None
        with suppress(OSError, ValueError):
            # Without ".." first: what is too long to be opened as it is written may be short then.
            short = os.path.normpath(os.path.join(self.folder, word))  # noqa: PTH118 - a Path of a long text takes long
            if len(short) > _LONGEST_PATH:
                return None
            path = Path(short)
            if path in (self.folder, self.root) or not (is_command or self._is_inside(path)):
                return None
            if (self._is_inside(path) or not _is_of_system(path)) and self._is_there(path):
                return path
        return None

    def _is_there(self, path: Path) -> bool:
        """Return whether there is a file, folder or link; one that this account may not see makes it incomplete."""
        try:
            path.lstat()
        except PermissionError:
            self.is_complete = False
            return False
        return True

    def _is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.folder) or path.is_relative_to(self.root)

    def _climbs_from_link(self, word: str) -> bool:
        """Return whether ``link/..`` in a name leads to where the link's target is, and not to where the link is.

        Another file is opened then than the one that is found here.
        """
        if ".." not in word or "\0" in word or len(word) > _LONGEST_PATH:
            return False
        with suppress(OSError, ValueError):
            path = os.path.join(self.folder, word)  # noqa: PTH118 - a Path would not keep what is written
            return os.path.realpath(path) != os.path.realpath(os.path.normpath(path))
        return False

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


_COMMANDS = frozenset({*COMMANDS, "commands", "argv", "shell", "bash", "chars"})
"""Arguments that a shell reads, or that name a program and its arguments; ``chars`` are typed into a shell of Codex."""

_WRITTEN_OTHERWISE = re.compile(r"[\\*?\[$`~]|''|\"\"|\bcd\b|\bpushd\b|--(?:chdir|cwd|directory)\b|\{[^\s{]*(?:,|\.\.)")
"""The characters and words that can stand in a command for a file that none of its words names.

A brace counts with a comma or two dots behind it: ``dep{loy,}.sh`` is two names, and ``{}`` and ``{{.Names}}`` none.
"""

_CHANGES_FOLDER = re.compile(r"-[a-zA-Z0-9]*C|--c(?:h|hd|hdi|hdir)?$")
"""The option of ``env`` by which its command runs in another folder; ``-C`` of other programs means other things."""


def _is_written_otherwise(command: str, words: list[str]) -> bool:
    """Return whether a command can name a file that is none of its words; quotes can hide a word in the text itself."""
    if _WRITTEN_OTHERWISE.search(command) or _WRITTEN_OTHERWISE.search(" ".join(words)):
        return True
    has_env = any(word == "env" or word.endswith("/env") for word in words)
    return has_env and any(map(_CHANGES_FOLDER.match, words))


def _has_quotation(text: str) -> bool:
    """Return whether a text may quote a part of a word; the apostrophe of "don't" is one mark and quotes nothing."""
    return text.count("'") + text.count('"') > 1


def _list_texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield every text in the arguments, names too, and whether it is, or is a part of, a command."""
    values: list[tuple[Any, bool]] = [(arguments, False)]
    while values:
        value, is_command = values.pop()
        if isinstance(value, dict):
            values += [(held, is_command or name in _COMMANDS) for name, held in value.items()]
            values += [(name, is_command) for name in value]
        elif isinstance(value, list):
            values += [(held, is_command) for held in value]
        elif isinstance(value, str):
            yield value, is_command


def _split_as_shell(text: str) -> list[str] | None:
    """Split a text into words as a shell would; ``None`` where a quotation is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return None


_UNREADABLE = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Folders whose files are no files: to read some of them takes for ever."""

_SYSTEM = tuple(map(Path, ("/bin", "/etc", "/lib", "/lib64", "/nix/store", "/sbin", "/usr", "/System")))

_LOCAL = Path("/usr/local")


def _is_of_system(path: Path) -> bool:
    """Return whether a path is of the kernel, or of the system and only root may change what is there.

    Such files are not bound: people would read of ``/bin/sh`` with every call. ``/usr/local`` is not of the system:
    in a container, an agent that is root writes its own programs there.
    """
    if any(path.is_relative_to(folder) for folder in _UNREADABLE):
        return True
    if path.is_relative_to(_LOCAL) or not any(path.is_relative_to(folder) for folder in _SYSTEM):
        return False
    with suppress(OSError):
        status = path.stat()
        return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return False


def _is_file(path: Path) -> bool:
    """Return whether a path is a regular file, or may be one that this account may not see."""
    if any(path.is_relative_to(folder) for folder in _UNREADABLE):
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except PermissionError:
        return True  # reading it fails, so people are told that it is not bound
    except OSError:
        return False


def _read_file(path: Path, most: int) -> bytes | None:
    """Read a file of at most so many bytes; ``None`` for a larger one, and for one that cannot be read."""
    with suppress(OSError), open_unfollowed(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(most + 1)
        return data if len(data) <= most else None
    return None
