"""The files that configure or record a guard, and those that configure the harness around it.

An agent that writes them switches its guard off, and one that reads them knows what it has to get round. This stops
the harness's own tools for reading and editing, and its search through a folder above them; of a shell's command only
the words are looked at, which is a net.

That the configuration of a hook lies outside of the session is checked in ``config/hook_binding.py``
(``check_outside``) and, with a server, in ``hook_client.py`` (``check_outside``).
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
"""The tool that shows what is in all files below a folder; the others that read folders list names alone."""

SHELL = "Bash"

_CONFIGURING = (
    (".claude", "settings.json"),
    (".claude", "settings.local.json"),
    (".claude", "hooks"),
    (".claude.json",),
    (".codex",),
)
"""The paths that configure a harness, in whatever folder."""

_READ_BY_HARNESS = (
    (".mcp.json",),
    ("agents.md",),
    ("claude.md",),
    ("claude.local.md",),
    (".git", "hooks"),
    (".git", "config"),
    (".envrc",),
)
"""The paths that a harness, or a program that it starts, reads by itself; an agent may read them too."""

_PROFILES = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
             ".config/fish", ".ssh/config", ".ssh/rc", ".gitconfig", ".npmrc")  # fmt: skip

_MANAGED = ("/etc/claude-code", "/etc/codex", "/Library/Application Support/ClaudeCode")

_ENVIRONMENTS = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?environ")

_BREAKS = re.compile(r"[\s;&|<>(){}$`'\"=,]+")

_TRIMMED = (
    " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that Python and JavaScript take for blanks: Claude Code, for one, trims a path before it opens the
file."""

_MOST_WORDS = 5_000

_LONGEST_PATH = 4_096
"""Characters of a path that a system opens."""

_MOST_STEPS = 10_000_000
"""The most steps from folder to folder that looking at the paths of one call may take: to look at every folder of a
path, each from the root, takes the square of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedFiles:
    """Files and folders, with everything below them, by absolute paths."""

    secret: tuple[Path, ...]
    """Neither read nor written: the configuration, what it names, and the ledger."""
    unwritable: tuple[Path, ...] = ()
    home: Path | None = None
    """The folder that ``~`` in a call stands for; ``None`` is the home of this process."""


def list_protected(files: Iterable[Path], *, home: Path | None = None) -> ProtectedFiles:
    """List what is protected on this machine, beside the ``files`` of a guard.

    ``home`` is the home folder of the account under which the agent runs, where that is another one.
    """
    profiles = Path.home() if home is None else home
    package = Path(__file__).resolve().parents[1]
    # The interpreter's folder only where it is an environment of ours: an agent uses the system's as well.
    environment = (Path(sys.prefix),) if sys.prefix != sys.base_prefix else ()
    unwritable = (package, *environment, *(profiles / name for name in _PROFILES), *map(Path, _MANAGED))
    return ProtectedFiles(secret=tuple(files), unwritable=unwritable, home=home)


class SelfProtection:
    """A screen of calls that refuses those which name a protected file."""

    def __init__(self, protected: ProtectedFiles) -> None:
        self._protected = protected

    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        """Refuse a call that names a protected file, whichever argument names it."""
        try:
            named = await asyncio.to_thread(self._find_protected, call, arguments)
        except UsageError as error:
            return Screened(allowed=False, decided_by="rule", detail=f"protects_itself: {error}")
        if named is None:
            return Screened(allowed=True)
        detail = f"protects_itself: {quote(named, 120)} is, or holds, what configures or records what guards this agent"
        return Screened(allowed=False, decided_by="rule", detail=detail)

    def _find_protected(self, call: ToolCall, arguments: Mapping[str, Any]) -> str | None:
        """Find the text of a call that names a protected file; ``None`` where none does."""
        is_own = call.server is None
        reads = is_own and call.tool in READING
        secret = _Places(self._protected.secret, _CONFIGURING)
        unwritable = _Places(self._protected.unwritable, _READ_BY_HARNESS)
        steps_left = _MOST_STEPS
        for text in _list_paths(call, arguments):
            for path in _resolve(text, call.cwd, self._protected.home):
                steps_left -= len(path.parts) ** 2
                if steps_left < 0:
                    raise UsageError("the call names too many folders below each other to look at each of them")
                is_secret = secret.holds(path) or _ENVIRONMENTS.fullmatch(str(path)) is not None
                # A shell's words are looked at for what no command needs: a build that names CLAUDE.md goes on.
                if is_secret or (not reads and not (is_own and call.tool == SHELL) and unwritable.holds(path)):
                    return text
        return self._find_searched(call, arguments, secret) if is_own and call.tool == SEARCH else None

    def _find_searched(self, call: ToolCall, arguments: Mapping[str, Any], secret: _Places) -> str | None:
        """Find the folder of a search with a secret place below it; ``None`` where there is none.

        The pattern does not count: as a path, ``.`` would be the session's folder.
        """
        stated = arguments.get("path")
        folder = stated if isinstance(stated, str) and stated.strip(_TRIMMED) else call.cwd or "/"
        is_above = any(map(secret.lie_below, _resolve(folder, call.cwd, self._protected.home)))
        return folder if is_above else None


class _Places:
    """Files and folders, found by every name that leads to them."""

    def __init__(self, paths: Iterable[Path], names: Iterable[tuple[str, ...]]) -> None:
        self._names = tuple(names)
        self._folded: set[tuple[str, ...]] = set()
        self._lengths: set[int] = set()
        self._nodes: set[tuple[int, int]] = set()
        self._paths = tuple(paths)
        for path in self._paths:
            for known in (path, Path(os.path.realpath(path))):
                self._folded.add(_fold(known))
                self._lengths.add(len(known.parts))
            node = _find_node(path)
            if node is not None:
                self._nodes.add(node)

    def holds(self, path: Path) -> bool:
        """Return whether a path is one of the places, or is below one."""
        parts = _fold(path)
        if any(parts[:end] in self._folded for end in self._lengths):
            return True
        if any(parts[at : at + len(name)] == name for name in self._names for at in range(len(parts))):
            return True
        # A hard link has another path, and the same node.
        return any(_find_node(place) in self._nodes for place in (path, *path.parents)) if self._nodes else False

    def lie_below(self, folder: Path) -> bool:
        """Return whether one of the places is a folder, or is below it."""
        parts = _fold(folder)
        if any(place[: len(parts)] == parts for place in self._folded):
            return True
        node = _find_node(folder)
        return node is not None and any(_find_node(outer) == node for path in self._paths for outer in path.parents)


def _fold(path: Path) -> tuple[str, ...]:
    """Fold a path as file systems do that ignore case and the form of letters."""
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in path.parts)


def _find_node(path: Path) -> tuple[int, int] | None:
    """Find the device and the inode of a file, by which it is known under any name; ``None`` without one."""
    with suppress(OSError, ValueError):
        status = path.stat()
        return (status.st_dev, status.st_ino)
    return None


def _resolve(text: str, cwd: str | None, home: Path | None) -> Iterator[Path]:
    """Yield the paths that a text may mean: as it is written, without blanks around it, and where links lead."""
    if not text or "\0" in text:
        return
    trimmed = text.strip(_TRIMMED).removeprefix("file://").strip(_TRIMMED)
    # Some programs compose letters before they open a file, and the name may lead elsewhere then.
    for named in dict.fromkeys((text, trimmed, unicodedata.normalize("NFC", trimmed))):
        with suppress(OSError, ValueError, RuntimeError):
            is_home = home is not None and (named == "~" or named.startswith("~/"))
            path = os.path.join(cwd or "/", f"{home}{named[1:]}" if is_home else os.path.expanduser(named))  # noqa: PTH111, PTH118
            short = os.path.normpath(path)
            # A system opens no longer path as it is written; a program that takes ".." out first opens what is left.
            if len(short) > _LONGEST_PATH:
                continue
            for resolved in (short, os.path.realpath(path if len(path) <= _LONGEST_PATH else short)):
                # Lines of a text are no path, unless all their ends go with "..", or a link stands for them.
                if "\n" not in named or resolved.count("\n") <= (cwd or "").count("\n"):
                    yield Path(resolved)


def _list_paths(call: ToolCall, arguments: Mapping[str, Any]) -> Iterator[str]:
    """List every text of the arguments that may be a path. Raises ``UsageError`` for a patch that cannot be read."""
    if call.tool == PATCH_TOOL and call.server is None:
        for value in arguments.values():
            if isinstance(value, str):
                yield from list_patched_files(value)
        return
    values: list[Any] = [*arguments.values()]
    left = _MOST_WORDS
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            words = [value]
            words += filter(None, _BREAKS.split(value)) if call.tool == SHELL and call.server is None else ()
            left -= len(words)
            if left < 0:
                raise UsageError(f"the call has more than {_MOST_WORDS:,} words, any of which may name a file")
            yield from words
