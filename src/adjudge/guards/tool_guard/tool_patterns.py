"""Patterns of tools' names, such as those of a guard's gates; the most specific one that fits a tool counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from adjudge.errors import UsageError
from adjudge.formats.text import show

T = TypeVar("T")

ToolKey = str | tuple[str, str]
"""``"delete_file"``, ``"delete_*"``, ``"Write|Edit"``, ``"*"``, or server and tool of MCP: ``("bank", "pay*")``."""

_NO_SERVER = "own"
"""In place of a server: tools without a server."""

_ANY_SERVER = "any"
"""In place of a server: tools of every server, and those without one."""

_CALLERS_OF_TOOLS = frozenset({"multl_tool_use_parallel", "batch", "batch_tool", "batchtool", "parallel"})
"""Folded names of tools that call other tools, which no guard sees. They have to be named exactly."""

_MCP_PREFIX = "mcp__"
"""The beginning of the names that harnesses give to tools of MCP, before server and tool."""

_SEPARATORS = re.compile(r"__|[./:]")
"""The separators between a server and a tool in one name."""

_LOOKALIKES = str.maketrans({"0": "o", "1": "l", "i": "l"})

_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_NO_LETTERS = re.compile(r"[^a-z0-9]+")

_LONGEST_NAME = 200
"""Characters of a tool's name; no pattern fits a longer one, because comparing it takes long."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A pattern of names: one name, or a prefix with ``*`` after it."""

    text: str
    is_prefix: bool

    def fits(self, name: str) -> bool:
        """Return whether the pattern fits a name."""
        return name.startswith(self.text) if self.is_prefix else name == self.text

    def covers(self, other: NamePattern) -> bool:
        """Return whether this pattern fits every name that the other pattern fits."""
        return self.fits(other.text) if self.is_prefix else self == other

    def fold(self) -> NamePattern:
        """Return the pattern for folded names, by which names are found that only look like a name."""
        return NamePattern(_fold_name(self.text), self.is_prefix)


@dataclass(frozen=True, slots=True)
class ToolPattern:
    """A pattern of tools: of their names, and of the servers that have them."""

    server: NamePattern | str
    """The pattern of MCP servers, or ``_NO_SERVER`` or ``_ANY_SERVER``."""
    tool: NamePattern
    key: ToolKey
    """The key as it was written, for messages."""

    @property
    def is_exact(self) -> bool:
        """True if it fits only one tool."""
        return not self.tool.is_prefix and (self.server == _NO_SERVER or not _get_server_pattern(self.server).is_prefix)

    def fits(self, tool: str, server: str | None) -> bool:
        """Return whether the pattern fits a tool of a server (``None``: of no server)."""
        return self._fits_server(server) and self.tool.fits(tool)

    def covers(self, other: ToolPattern) -> bool:
        """Return whether this pattern fits every tool that the other pattern fits."""
        return _covers_server(self.server, other.server) and self.tool.covers(other.tool)

    def resembles(self, tool: str, server: str | None) -> bool:
        """Return whether a tool looks like one of the pattern, so that the names could be confused."""
        folded_pattern = self.tool.fold()
        folded_suffixes = [_fold_name(suffix) for suffix in _list_suffixes(tool)]
        is_tool_alike = any(folded_pattern.fits(suffix) for suffix in folded_suffixes)
        if isinstance(self.server, NamePattern) and server is None:
            # The name may be joined from this server and a tool: bank__pay, mcp__bank__pay.
            folded_server = _fold_name(self.server.text)
            return any(suffix.startswith(folded_server) for suffix in folded_suffixes) and is_tool_alike
        is_server_alike = not isinstance(self.server, NamePattern) or self.server.fold().fits(_fold_name(server or ""))
        return is_server_alike and is_tool_alike

    def _fits_server(self, server: str | None) -> bool:
        """Return whether the pattern fits tools of a server (``None``: of no server)."""
        if self.server == _ANY_SERVER:
            return True
        if self.server == _NO_SERVER:
            return server is None
        return server is not None and _get_server_pattern(self.server).fits(server)


@dataclass(frozen=True, slots=True)
class MatchedTool(Generic[T]):
    """The most specific pattern that fits a tool, and the pattern's value."""

    pattern: ToolPattern
    value: T


class ToolPatterns(Generic[T]):
    """Values of patterns of tools; the most specific pattern that fits a tool counts.

    Raises ``UsageError`` for a key that cannot be read, for two equal patterns, and for two patterns that fit the same
    tool without one being more specific.
    """

    def __init__(self, tools: Mapping[ToolKey, T]) -> None:
        self._values: dict[ToolPattern, T] = {}
        for key, value in tools.items():
            for pattern in _read_key(key):
                if any(pattern.covers(other) and other.covers(pattern) for other in self._values):
                    raise UsageError(f"tools name {show(key)} twice; which of the two counts would be a guess")
                self._values[pattern] = value
        self._check_overlaps()

    def list(self) -> tuple[tuple[ToolPattern, T], ...]:
        """List every pattern with its value."""
        return tuple(self._values.items())

    def find(self, tool: str, server: str | None) -> MatchedTool[T] | None:
        """Find the most specific pattern that fits a tool, with its value.

        Returns ``None`` if no pattern fits. Unless the pattern names exactly this tool, ``None`` is also returned for a
        tool that calls other tools, and for a name that looks like a tool of a more specific pattern.
        """
        if not _is_valid_name(tool) or not (server is None or _is_valid_name(server)):
            return None
        fitting = [pattern for pattern in self._values if pattern.fits(tool, server)]
        best = _find_most_specific(fitting)
        if best is None:
            return None
        if not best.is_exact:
            if any(_fold_name(suffix) in _CALLERS_OF_TOOLS for suffix in _list_suffixes(tool)):
                return None
            # Otherwise `Delete_x`, or `fs__delete_x`, would be checked like any tool, perhaps by a laxer gate than the
            # one of `delete_*`.
            more_specific = [
                pattern
                for pattern in self._values
                if pattern not in fitting and (best.covers(pattern) or len(pattern.tool.text) > len(best.tool.text))
            ]
            if any(pattern.resembles(tool, server) for pattern in more_specific):
                return None
        return MatchedTool(best, self._values[best])

    def fits(self, tool: str, server: str | None) -> bool:
        """Return whether ``find`` finds a value for a tool."""
        return self.find(tool, server) is not None

    def _check_overlaps(self) -> None:
        """Raise ``UsageError`` for two patterns that fit the same tools without one being more specific.

        A third pattern for exactly the tools that both fit is more specific than both, and settles it.
        """
        patterns = list(self._values)
        for first in patterns:
            for second in patterns:
                # Only where the first one fits more servers, and the second one more names.
                if not _covers_server(first.server, second.server) or not second.tool.covers(first.tool):
                    continue
                shared = ToolPattern(second.server, first.tool, "")
                if not any(pattern.covers(shared) and shared.covers(pattern) for pattern in patterns):
                    raise UsageError(
                        f"tools have {show(first.key)} and {show(second.key)}, and both fit {_write_pattern(shared)}; "
                        "write for that one too what checks it"
                    )


def _find_most_specific(fitting: list[ToolPattern]) -> ToolPattern | None:
    """Find the pattern that every other one of some patterns covers; ``None`` if there is no such pattern."""
    for candidate in fitting:
        if all(pattern.covers(candidate) for pattern in fitting):
            return candidate
    return None


def _read_key(key: ToolKey) -> list[ToolPattern]:
    """Read a key as patterns, one for each name between ``|``.

    A text is for tools without a server, except for ``*`` alone, which is for all tools. A pair is for a server and its
    tools. Raises ``UsageError`` for any other key.
    """
    if isinstance(key, str):
        for text in key.split("|"):
            _check_own_name(text.strip())
        tools = [_read_name_pattern(text.strip(), key) for text in key.split("|")]
        every_name = NamePattern("", is_prefix=True)
        return [ToolPattern(_ANY_SERVER if tool == every_name else _NO_SERVER, tool, key) for tool in tools]
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, str) for part in key):
        server = _read_name_pattern(key[0], key)
        return [ToolPattern(server, _read_name_pattern(text.strip(), key), key) for text in key[1].split("|")]
    raise UsageError(f"tools are named by a text, or by a server and a tool, got {show(key)}", argument="tools")


def _check_own_name(text: str) -> None:
    """Raise ``UsageError`` for an MCP tool in a harness's form (``mcp__server__tool``).

    No call has such a name: its server and its tool are separate.
    """
    if text.startswith(_MCP_PREFIX):
        server, _, tool = text.removeprefix(_MCP_PREFIX).partition("__")
        server, tool = (server or "*", tool or "*")
        raise UsageError(
            f"{show(text)} is how a harness writes a tool of MCP, and no call has that name; write "
            f"{show((server, tool))}, or in [hook] mcp = [{{server = {show(server)}, tool = {show(tool)}}}]",
            argument="tools",
        )


def _read_name_pattern(text: str, key: ToolKey) -> NamePattern:
    """Read a name, or a prefix with ``*`` after it, as a pattern. Raises ``UsageError`` for any other form."""
    name = text.removesuffix("*")
    is_readable = (name == "" or _is_valid_name(name)) and not any(character in "*?[" for character in name)
    if not text or not is_readable:
        raise UsageError(
            f"a tool is named by its name or, with * at the end, by how it begins, in printable ASCII; got {show(key)}",
            argument="tools",
        )
    return NamePattern(name, is_prefix=text.endswith("*"))


def _is_valid_name(name: str) -> bool:
    """Return whether a name is short printable ASCII without blanks at its ends."""
    is_short = 0 < len(name) <= _LONGEST_NAME
    return is_short and name.isascii() and name.isprintable() and name == name.strip()


def _list_suffixes(tool: str) -> list[str]:
    """List a name, and its rest after each separator, because clients write the server before the tool."""
    return [tool, *[tool[match.end() :] for match in _SEPARATORS.finditer(tool)]]


def _get_server_pattern(server: NamePattern | str) -> NamePattern:
    """Return the pattern of a server; one that fits every name for ``_NO_SERVER`` and ``_ANY_SERVER``."""
    return server if isinstance(server, NamePattern) else NamePattern("", is_prefix=True)


def _covers_server(first: NamePattern | str, second: NamePattern | str) -> bool:
    """Return whether the first pattern of servers fits every server that the second one fits."""
    if first in (_ANY_SERVER, second):
        return True
    return isinstance(first, NamePattern) and isinstance(second, NamePattern) and first.covers(second)


def _write_pattern(pattern: ToolPattern) -> str:
    """Write a pattern as its key would be written, for messages."""
    tool = _write_name(pattern.tool)
    if not isinstance(pattern.server, NamePattern):
        return show(tool)
    return show((_write_name(pattern.server), tool))


def _write_name(pattern: NamePattern) -> str:
    """Write a pattern of names, with ``*`` after a prefix."""
    return f"{pattern.text}*" if pattern.is_prefix else pattern.text


def _fold_name(name: str) -> str:
    """Fold a name so that names that look alike become equal.

    A capital within it begins a word, words are separated by one underscore, case is ignored, and 0 and o, and 1, i and
    l, are the same.
    """
    words = _NO_LETTERS.sub("_", _CAPITALS.sub("_", name).casefold())
    return words.removeprefix("_").translate(_LOOKALIKES)
