"""``SelfProtection``: refuses calls on the files that configure or record a guard, or configure the coding agent.

An agent that writes these files can switch its guard off, and one that reads them knows what it has to avoid. The
coding agent's (harness's) own tools for reading, editing and searching are stopped. Of a shell's command only the words
are checked, so an agent can still get round that.

``config/hook_binding.py`` (``check_outside``) checks that the configuration of a hook is outside of the session's
folder; with a server, ``hook_client.py`` (``check_outside``) does.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.patch import list_patched_files
from adjudge.formats.text import quote
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.screens import Screened
from adjudge.harness.events import PATCH_TOOL

READING = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead", "view_image"})

SEARCH = "Grep"
"""The tool that shows the contents of all files below a folder; other tools only list their names."""

SHELL = "Bash"

_CONFIGURATION_PATHS = (
    (".claude", "settings.json"),
    (".claude", "settings.local.json"),
    (".claude", "hooks"),
    (".claude.json",),
    (".codex",),
)
"""The ends of paths that configure a harness, in any folder; neither read nor written."""

_STARTUP_PATHS = (
    (".mcp.json",),
    ("agents.md",),
    ("claude.md",),
    ("claude.local.md",),
    (".git", "hooks"),
    (".git", "config"),
    (".envrc",),
)
"""The ends of paths that a harness, or a program that it starts, reads by itself; an agent may read but not write
them."""

_PROFILES = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
             ".config/fish", ".ssh/config", ".ssh/rc", ".gitconfig", ".npmrc")  # fmt: skip

_MANAGED = ("/etc/claude-code", "/etc/codex", "/Library/Application Support/ClaudeCode")

_PROCESS_ENVIRONMENT = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?environ")

_WORD_BREAKS = re.compile(r"[\s;&|<>(){}$`'\"=,]+")

_BLANKS = (
    " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""All blanks of Python and JavaScript, which Claude Code removes around a path before it opens a file."""

_MOST_WORDS = 5_000

_LONGEST_PATH = 4_096
"""The most characters of a path that an operating system opens."""

_MOST_STEPS = 10_000_000
"""The most steps from folder to folder that checking the paths of one call may take: checking every folder of a path,
each from the root, takes the square of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedFiles:
    """Files and folders, with everything below them, by absolute paths."""

    secret: tuple[Path, ...]
    """Neither read nor written: the configuration, what it names, and the ledger."""
    unwritable: tuple[Path, ...] = ()
    home: Path | None = None
    """The folder that ``~`` in a call means; ``None`` is the home of this process."""


def list_protected(files: Iterable[Path], *, home: Path | None = None) -> ProtectedFiles:
    """List the protected files: the ``files`` of a guard, and those of this machine that no agent may write.

    ``home`` is the home folder of the account under which the agent runs, where that is another one.
    """
    agent_home = Path.home() if home is None else home
    package = Path(__file__).resolve().parents[1]
    # The interpreter's folder only if it is a virtual environment, because an agent may use the system's interpreter.
    environment = (Path(sys.prefix),) if sys.prefix != sys.base_prefix else ()
    unwritable = (package, *environment, *(agent_home / name for name in _PROFILES), *map(Path, _MANAGED))
    return ProtectedFiles(secret=tuple(files), unwritable=unwritable, home=home)


class SelfProtection:
    """A screen of calls that refuses those which name a protected file."""

    def __init__(self, protected: ProtectedFiles) -> None:
        self._protected = protected

    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        """Refuse a call that names a protected file, whichever argument names it."""
        try:
            protected_path = await asyncio.to_thread(self._find_protected, call, arguments)
        except UsageError as error:
            return Screened(allowed=False, decided_by="rule", detail=f"protects_itself: {error}")
        if protected_path is None:
            return Screened(allowed=True)
        quoted = quote(protected_path, 120)
        detail = f"protects_itself: {quoted} is, or holds, what configures or records what guards this agent"
        return Screened(allowed=False, decided_by="rule", detail=detail)

    def _find_protected(self, call: ToolCall, arguments: Mapping[str, Any]) -> str | None:
        """Find the text of a call that names a protected file; ``None`` where none does."""
        is_own_tool = call.server is None
        is_reading = is_own_tool and call.tool in READING
        is_shell = is_own_tool and call.tool == SHELL
        secret = _PathSet(self._protected.secret, _CONFIGURATION_PATHS)
        unwritable = _PathSet(self._protected.unwritable, _STARTUP_PATHS)
        steps_left = _MOST_STEPS
        for text in _list_possible_paths(call, arguments):
            for path in _list_resolved_paths(text, call.cwd, self._protected.home):
                steps_left -= len(path.parts) ** 2
                if steps_left < 0:
                    raise UsageError("the call names too many folders below each other to look at each of them")
                is_secret = secret.holds(path) or _PROCESS_ENVIRONMENT.fullmatch(str(path)) is not None
                # A shell command may name unwritable files, since a build may well name CLAUDE.md. Secret ones it never
                # needs to name.
                if is_secret or (not is_reading and not is_shell and unwritable.holds(path)):
                    return text
        return self._find_searched(call, arguments, secret) if is_own_tool and call.tool == SEARCH else None

    def _find_searched(self, call: ToolCall, arguments: Mapping[str, Any], secret: _PathSet) -> str | None:
        """Return the folder of a search if a secret file is below it, or else ``None``.

        The search pattern is not read as a path, because the pattern ``.`` would be the session's folder.
        """
        path_argument = arguments.get("path")
        has_path = isinstance(path_argument, str) and path_argument.strip(_BLANKS)
        folder = path_argument if isinstance(path_argument, str) and has_path else call.cwd or "/"
        is_above = any(map(secret.has_path_below, _list_resolved_paths(folder, call.cwd, self._protected.home)))
        return folder if is_above else None


class _PathSet:
    """A set of files and folders that recognises them by every name that leads to them.

    ``names`` are ends of paths that belong to the set in any folder.
    """

    def __init__(self, paths: Iterable[Path], names: Iterable[tuple[str, ...]]) -> None:
        self._names = tuple(names)
        self._folded: set[tuple[str, ...]] = set()
        self._lengths: set[int] = set()  # the numbers of parts that these paths have
        self._nodes: set[tuple[int, int]] = set()  # devices and inodes
        self._paths = tuple(paths)
        for path in self._paths:
            for variant in (path, Path(os.path.realpath(path))):
                self._folded.add(_fold_path(variant))
                self._lengths.add(len(variant.parts))
            node = _find_node(path)
            if node is not None:
                self._nodes.add(node)

    def holds(self, path: Path) -> bool:
        """Return whether a path is in the set, or is below a folder in it."""
        parts = _fold_path(path)
        if any(parts[:end] in self._folded for end in self._lengths):
            return True
        if any(parts[start : start + len(name)] == name for name in self._names for start in range(len(parts))):
            return True
        # A hard link has another path, and the same inode.
        return any(_find_node(folder) in self._nodes for folder in (path, *path.parents)) if self._nodes else False

    def has_path_below(self, folder: Path) -> bool:
        """Return whether a path of the set is this folder, or is below it."""
        parts = _fold_path(folder)
        if any(folded[: len(parts)] == parts for folded in self._folded):
            return True
        node = _find_node(folder)
        return node is not None and any(_find_node(outer) == node for path in self._paths for outer in path.parents)


def _fold_path(path: Path) -> tuple[str, ...]:
    """Return the parts of a path, folded as by file systems that ignore case and the Unicode form of letters."""
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in path.parts)


def _find_node(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file, which are the same under any of its names; ``None`` if it has none."""
    with suppress(OSError, ValueError):
        status = path.stat()
        return (status.st_dev, status.st_ino)
    return None


def _list_resolved_paths(text: str, cwd: str | None, home: Path | None) -> Iterator[Path]:
    """Yield the paths that a text may mean: as written, without blanks around it, and with links followed."""
    if not text or "\0" in text:
        return
    trimmed = text.strip(_BLANKS).removeprefix("file://").strip(_BLANKS)
    # Some programs compose letters (NFC) before they open a file, which may lead to another file.
    for variant in dict.fromkeys((text, trimmed, unicodedata.normalize("NFC", trimmed))):
        with suppress(OSError, ValueError, RuntimeError):
            is_home = home is not None and (variant == "~" or variant.startswith("~/"))
            path = os.path.join(cwd or "/", f"{home}{variant[1:]}" if is_home else os.path.expanduser(variant))  # noqa: PTH111, PTH118
            normalised = os.path.normpath(path)
            # No system opens a longer path as written, but a program may remove ".." first and open the shorter path.
            if len(normalised) > _LONGEST_PATH:
                continue
            for resolved in (normalised, os.path.realpath(path if len(path) <= _LONGEST_PATH else normalised)):
                # A text of several lines is no path, unless ".." or a link removes all its line ends.
                if "\n" not in variant or resolved.count("\n") <= (cwd or "").count("\n"):
                    yield Path(resolved)


def _list_possible_paths(call: ToolCall, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text of the arguments that may be a path; of a shell's command, also each word.

    Raises ``UsageError`` for a patch that cannot be read, and for too many words.
    """
    if call.tool == PATCH_TOOL and call.server is None:
        for value in arguments.values():
            if isinstance(value, str):
                yield from list_patched_files(value)
        return
    values: list[Any] = [*arguments.values()]
    words_left = _MOST_WORDS
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            words = [value]
            words += filter(None, _WORD_BREAKS.split(value)) if call.tool == SHELL and call.server is None else ()
            words_left -= len(words)
            if words_left < 0:
                raise UsageError(f"the call has more than {_MOST_WORDS:,} words, any of which may name a file")
            yield from words
