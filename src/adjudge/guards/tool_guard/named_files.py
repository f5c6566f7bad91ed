"""The files that a call names, and their SHA-256, so that an approval is bound to their contents.

A person approves ``python deploy.py`` with the file as it is at that moment. Other files that the program reads by
itself are not found.
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
"""The most words of the arguments that are checked for being names of files."""

_LONGEST_PATH = 4_096

_BREAKS = re.compile(r"[\s;&|<>(){}$`'\"=,]+")
"""The characters that separate words of a text."""


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that a call names inside the folder in which it runs, and those that its commands name elsewhere."""

    digests: Mapping[str, str]
    """SHA-256 by path as it is named, in the order of paths: relative to the folder, or absolute outside of it."""
    links: Mapping[str, str] = field(default_factory=dict)
    """The file that a path with a link on it leads to, by path; ``.`` is the folder itself."""
    is_complete: bool = True
    """False if the call may use files that are not here: because they are too many or too large, or because a command
    names them in a way that only a shell resolves."""


def read_named_files(arguments: Mapping[str, Any], cwd: str, *, tool: str | None = None) -> NamedFiles:
    """Digest the files that a call's arguments name, as a whole text or as a word of one, and find the links to them.

    If ``tool`` is ``PATCH_TOOL`` and the arguments are a patch, only the files in its headers count, and no word of the
    lines that it adds.
    """
    folder = Path(os.path.normpath(cwd))
    if not folder.is_absolute():
        return NamedFiles({}, is_complete=False)
    collector = _FileCollector(folder)
    patched_files = _list_files_of_patch(arguments) if tool == PATCH_TOOL else None
    if patched_files is not None:
        collector.add_words(patched_files)
    else:
        for text, is_command in _list_texts(arguments):
            collector.add_text(text, is_command=is_command)
            if collector.has_no_words_left:
                break
    digests, links = dict(sorted(collector.digests.items())), dict(sorted(collector.links.items()))
    return NamedFiles(digests, links, is_complete=collector.is_complete)


class _FileCollector:
    """Collects the files and links that words of a call's arguments name, relative to the folder in which it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The same folder with all links in its path resolved.
        self.root = Path(os.path.realpath(folder))
        self.digests: dict[str, str] = {}
        self.links: dict[str, str] = {} if self.root == folder else {".": str(self.root)}
        self.is_complete = True
        self._bytes_left = MOST_BYTES
        self._words_left = MOST_WORDS

    @property
    def has_no_words_left(self) -> bool:
        """True if there were more words than the limit."""
        return self._words_left < 0

    def add_text(self, text: str, *, is_command: bool) -> None:
        """Add the files that a text of the arguments names, as a whole or by one of its words.

        A command that may name files by other words makes the collection incomplete.
        """
        shell_words = _split_as_shell(text)
        # A word after @ can be a file too: curl reads -d @file.
        words = [word.lstrip("@") for word in (*_BREAKS.split(text), *(shell_words or ())) if word]
        if is_command and (_may_hide_names(text, words) or (shell_words is None and _has_quotation(text))):
            self.is_complete = False
        self.add_words(dict.fromkeys([text, *words]), is_command=is_command)

    def add_words(self, words: Iterable[str], *, is_command: bool = False) -> None:
        """Add the files that words name, up to the limit of words; files outside of the folder only for a command."""
        for word in words:
            self._words_left -= 1
            if self.has_no_words_left:
                self.is_complete = False
                return
            self._add_name(word, is_command=is_command)

    def _add_name(self, word: str, *, is_command: bool) -> None:
        """Add the file or link that a word names, if there is one."""
        if self._climbs_from_link(word):
            self.is_complete = False
        path = self._find_path(word, is_command=is_command)
        if path is None:
            return
        # A path outside of the folder is written in full, because people would not see where "../../tmp/x" leads.
        name = os.path.relpath(path, self.folder) if self._is_inside(path) else str(path)
        target = Path(os.path.realpath(path))
        # A name in ``links`` is not skipped: another argument may have named the link first, and only as a word of a
        # command its file outside of the folder is bound.
        if name in self.digests:
            return
        if target != self.root / name:
            # Somebody may change where the link leads between the approval and the call.
            self.links[name] = str(target)
        if len(self.digests) >= MOST_FILES:
            self.is_complete = False
            return
        # A command's file is bound outside of the folder too, or the agent could change it between approval and call.
        is_bound = target.is_relative_to(self.root) or (is_command and not _is_system_path(target))
        if is_bound and _is_file(target):
            self._digest_file(name, target)

    def _find_path(self, word: str, *, is_command: bool) -> Path | None:
        """Find the path that a word names.

        Returns ``None`` if nothing is there, for the folder itself, for a system path outside of the folder, and for
        another path outside of it that no command names.
        """
        if not word or "\0" in word:
            return None
        with suppress(OSError, ValueError):
            # ".." is resolved first, because a text that is too long for a path may be short after that.
            normal = os.path.normpath(os.path.join(self.folder, word))  # noqa: PTH118 - a Path of a long text takes long
            if len(normal) > _LONGEST_PATH:
                return None
            path = Path(normal)
            if path in (self.folder, self.root) or not (is_command or self._is_inside(path)):
                return None
            if (self._is_inside(path) or not _is_system_path(path)) and self._exists(path):
                return path
        return None

    def _exists(self, path: Path) -> bool:
        """Return whether there is a file, folder or link at a path.

        If this account may not look, the collection becomes incomplete. Raises ``OSError`` if there is none.
        """
        try:
            path.lstat()
        except PermissionError:
            self.is_complete = False
            return False
        return True

    def _is_inside(self, path: Path) -> bool:
        """Return whether a path is in the folder, as it is written or with its links resolved."""
        return path.is_relative_to(self.folder) or path.is_relative_to(self.root)

    def _climbs_from_link(self, word: str) -> bool:
        """Return whether a word has ``link/..`` with a link to a folder elsewhere.

        The system then opens a path beside the link's target, and ``_find_path`` finds one beside the link.
        """
        if ".." not in word or "\0" in word or len(word) > _LONGEST_PATH:
            return False
        with suppress(OSError, ValueError):
            path = os.path.join(self.folder, word)  # noqa: PTH118 - a Path would change how it is written
            return os.path.realpath(path) != os.path.realpath(os.path.normpath(path))
        return False

    def _digest_file(self, name: str, target: Path) -> None:
        """Digest a file, and keep the digest under a name.

        A file that cannot be read, or that exceeds the bytes that are left, makes the collection incomplete.
        """
        data = _read_file(target, self._bytes_left)
        if data is None:
            self.is_complete = False
            return
        self._bytes_left -= len(data)
        self.digests[name] = hashlib.sha256(data).hexdigest()


def _list_files_of_patch(arguments: Mapping[str, Any]) -> tuple[str, ...] | None:
    """List the files of a patch that is the only argument; ``None`` for other arguments."""
    if len(arguments) != 1:
        return None
    [patch] = arguments.values()
    if not isinstance(patch, str):
        return None
    try:
        return list_patched_files(patch)
    except UsageError:
        return None


_COMMAND_ARGUMENTS = frozenset({*COMMANDS, "commands", "argv", "shell", "bash", "chars"})
"""Names of arguments that are commands for a shell, or a program with arguments; Codex types ``chars`` into a shell."""

_SHELL_SYNTAX = re.compile(r"[\\*?\[$`~]|''|\"\"|\bcd\b|\bpushd\b|--(?:chdir|cwd|directory)\b|\{[^\s{]*(?:,|\.\.)")
"""The syntax by which a command can name a file that is none of its words, such as ``*``, ``$NAME`` or ``cd``.

A brace counts only with a comma or two dots after it: ``dep{loy,}.sh`` is two names, and ``{}`` is none.
"""

_ENV_FOLDER_OPTION = re.compile(r"-[a-zA-Z0-9]*C|--c(?:h|hd|hdi|hdir)?$")
"""The option of ``env`` that runs its command in another folder. In other programs, ``-C`` has other meanings."""


def _may_hide_names(command: str, words: list[str]) -> bool:
    """Return whether a command can name a file that is none of its words, or runs in another folder.

    The words are searched too, because quotation marks in the command can split such syntax.
    """
    if _SHELL_SYNTAX.search(command) or _SHELL_SYNTAX.search(" ".join(words)):
        return True
    has_env = any(word == "env" or word.endswith("/env") for word in words)
    return has_env and any(map(_ENV_FOLDER_OPTION.match, words))


def _has_quotation(text: str) -> bool:
    """Return whether a text may have a quotation: it has two quotation marks. The apostrophe of "don't" is only one."""
    return text.count("'") + text.count('"') > 1


def _list_texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield every text and every name in the arguments at any depth, each with whether it is a part of a command."""
    unvisited: list[tuple[Any, bool]] = [(arguments, False)]
    while unvisited:
        value, is_command = unvisited.pop()
        if isinstance(value, dict):
            unvisited += [(member, is_command or name in _COMMAND_ARGUMENTS) for name, member in value.items()]
            unvisited += [(name, is_command) for name in value]
        elif isinstance(value, list):
            unvisited += [(member, is_command) for member in value]
        elif isinstance(value, str):
            yield value, is_command


def _split_as_shell(text: str) -> list[str] | None:
    """Split a text into words as a shell does; ``None`` if a quotation is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return None


_KERNEL_FOLDERS = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Folders with files that the kernel makes up; reading some of them never ends."""

_SYSTEM_FOLDERS = tuple(map(Path, ("/bin", "/etc", "/lib", "/lib64", "/nix/store", "/sbin", "/usr", "/System")))

_USR_LOCAL = Path("/usr/local")


def _is_system_path(path: Path) -> bool:
    """Return whether a path is in a folder of the kernel, or in a system folder and only root can change it.

    Such files are not bound, or people would be shown ``/bin/sh`` with every call. ``/usr/local`` does not count: in a
    container, an agent that is root writes its own programs there.
    """
    if any(path.is_relative_to(folder) for folder in _KERNEL_FOLDERS):
        return True
    if path.is_relative_to(_USR_LOCAL) or not any(path.is_relative_to(folder) for folder in _SYSTEM_FOLDERS):
        return False
    with suppress(OSError):
        status = path.stat()
        return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return False


def _is_file(path: Path) -> bool:
    """Return whether a path is a regular file outside of the kernel's folders, or may be one that is hidden from us."""
    if any(path.is_relative_to(folder) for folder in _KERNEL_FOLDERS):
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except PermissionError:
        return True  # reading it fails, so people are told that it is not bound
    except OSError:
        return False


def _read_file(path: Path, most: int) -> bytes | None:
    """Read a regular file of at most ``most`` bytes; ``None`` for a larger one, and for one that cannot be read."""
    with suppress(OSError), open_unfollowed(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(most + 1)
        return data if len(data) <= most else None
    return None
