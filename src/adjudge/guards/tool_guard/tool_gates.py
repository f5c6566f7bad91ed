"""The assignment of gates to tools: names, and beginnings of names, never in the order of writing. Pure."""

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

_OWN = "own"
"""Tools without a server."""

_ANY = "any"
"""Tools of every server, and those without one."""

_CALLS_TOOLS = frozenset({"multl_tool_use_parallel", "batch", "batch_tool", "batchtool", "parallel"})
"""Folded names of tools that call other tools, which no guard sees: they have to be named exactly."""

_JOINED = "mcp__"
"""The beginning of the names that harnesses give to tools of MCP, before server and tool."""

_SEPARATORS = re.compile(r"__|[./:]")

_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l"})

_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_OTHERS = re.compile(r"[^a-z0-9]+")

_LONGEST_NAME = 200
"""Characters of a tool's name; a longer one is refused, because comparing it takes time."""


@dataclass(frozen=True, slots=True)
class Word:
    """A name, or with ``*`` at its end the beginning of one."""

    text: str
    is_prefix: bool

    def fits(self, name: str) -> bool:
        """Return whether a name is this one, or begins like this."""
        return name.startswith(self.text) if self.is_prefix else name == self.text

    def covers(self, other: Word) -> bool:
        """Return whether every name that the other fits fits this one too."""
        return self.fits(other.text) if self.is_prefix else self == other

    def fold(self) -> Word:
        """Return the word as names are compared that only resemble each other."""
        return Word(_fold(self.text), self.is_prefix)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The tools of one key."""

    server: Word | str
    """A server of MCP, ``_OWN`` or ``_ANY``."""
    tool: Word
    key: ToolKey
    """The key as it was written, for messages."""

    @property
    def is_exact(self) -> bool:
        """True if it names one tool."""
        return not self.tool.is_prefix and (self.server == _OWN or not _get_word(self.server).is_prefix)

    def fits(self, tool: str, server: str | None) -> bool:
        """Return whether a call is of one of these tools."""
        return self._fits_server(server) and self.tool.fits(tool)

    def covers(self, other: Pattern) -> bool:
        """Return whether every tool of the other pattern is one of this."""
        return _covers_server(self.server, other.server) and self.tool.covers(other.tool)

    def resembles(self, tool: str, server: str | None) -> bool:
        """Return whether somebody could take a call for one of these tools."""
        word, parts = self.tool.fold(), [_fold(part) for part in _list_parts(tool)]
        if isinstance(self.server, Word) and server is None:
            # Perhaps the joined name of a tool of this server: bank__pay, mcp__bank__pay.
            start = _fold(self.server.text)
            return any(part.startswith(start) for part in parts) and any(word.fits(part) for part in parts)
        is_server_alike = not isinstance(self.server, Word) or self.server.fold().fits(_fold(server or ""))
        return is_server_alike and any(word.fits(part) for part in parts)

    def _fits_server(self, server: str | None) -> bool:
        if self.server == _ANY:
            return True
        return server is None if self.server == _OWN else server is not None and _get_word(self.server).fits(server)


@dataclass(frozen=True, slots=True)
class MatchedTool(Generic[T]):
    """The most specific pattern that fits a tool, and the value that is written for it."""

    pattern: Pattern
    value: T


class ToolPatterns(Generic[T]):
    """Values by tool, found by the most specific pattern that fits.

    Raises ``UsageError`` for a key that cannot be read, for one that is written twice, and for two of which neither is
    more specific where both fit.
    """

    def __init__(self, tools: Mapping[ToolKey, T]) -> None:
        self._values: dict[Pattern, T] = {}
        for key, value in tools.items():
            for pattern in _read_key(key):
                if any(pattern.covers(other) and other.covers(pattern) for other in self._values):
                    raise UsageError(f"tools name {show(key)} twice; which of the two counts would be a guess")
                self._values[pattern] = value
        self._check_overlaps()

    def list(self) -> tuple[tuple[Pattern, T], ...]:
        """Return every pattern and what is written for it."""
        return tuple(self._values.items())

    def find(self, tool: str, server: str | None) -> MatchedTool[T] | None:
        """Find what is written for a tool; ``None`` where nothing is, or what is written for another resembles it."""
        if not _is_name(tool) or not (server is None or _is_name(server)):
            return None
        fitting = [pattern for pattern in self._values if pattern.fits(tool, server)]
        best = next((one for one in fitting if all(other.covers(one) for other in fitting)), None)
        if best is None:
            return None
        if not best.is_exact:
            if any(_fold(part) in _CALLS_TOOLS for part in _list_parts(tool)):
                return None
            # Else `Delete_x`, or `fs__delete_x`, would be checked as any tool, by the laxest gate there is.
            stricter = [
                pattern
                for pattern in self._values
                if pattern not in fitting and (best.covers(pattern) or len(pattern.tool.text) > len(best.tool.text))
            ]
            if any(pattern.resembles(tool, server) for pattern in stricter):
                return None
        return MatchedTool(best, self._values[best])

    def fits(self, tool: str, server: str | None) -> bool:
        """Return whether anything is written for a tool."""
        return self.find(tool, server) is not None

    def _check_overlaps(self) -> None:
        """Raise ``UsageError`` where two patterns fit the same tools, and neither is the more specific.

        A third pattern for exactly these tools settles it.
        """
        patterns = list(self._values)
        for one in patterns:
            for other in patterns:
                if not _covers_server(one.server, other.server) or not other.tool.covers(one.tool):
                    continue
                # One names more servers, the other more tools. Both fit the tools of this one, which has to be written.
                shared = Pattern(other.server, one.tool, "")
                if not any(pattern.covers(shared) and shared.covers(pattern) for pattern in patterns):
                    raise UsageError(
                        f"tools have {show(one.key)} and {show(other.key)}, and both fit {_write_pattern(shared)}; "
                        "write for that one too what checks it"
                    )


def _read_key(key: ToolKey) -> list[Pattern]:
    """Read a key as one pattern for each name between ``|``; a text is of the agent's own tools, ``*`` alone of all.

    Raises ``UsageError``.
    """
    if isinstance(key, str):
        for text in key.split("|"):
            _check_own_name(text.strip())
        words = [_read_word(text.strip(), key) for text in key.split("|")]
        return [Pattern(_ANY if word == Word("", is_prefix=True) else _OWN, word, key) for word in words]
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, str) for part in key):
        server = _read_word(key[0], key)
        return [Pattern(server, _read_word(text.strip(), key), key) for text in key[1].split("|")]
    raise UsageError(f"tools are named by a text, or by a server and a tool, got {show(key)}", argument="tools")


def _check_own_name(text: str) -> None:
    """Raise ``UsageError`` for a tool of MCP as harnesses write it: a call of it comes with server and tool apart."""
    if text.startswith(_JOINED):
        server, _, tool = text.removeprefix(_JOINED).partition("__")
        server, tool = (server or "*", tool or "*")
        raise UsageError(
            f"{show(text)} is how a harness writes a tool of MCP, and no call has that name; write "
            f"{show((server, tool))}, or in [hook] mcp = [{{server = {show(server)}, tool = {show(tool)}}}]",
            argument="tools",
        )


def _read_word(text: str, key: ToolKey) -> Word:
    """Read a name; with ``*`` at its end it is the beginning of names. Raises ``UsageError`` for any other form."""
    name = text.removesuffix("*")
    is_readable = (name == "" or _is_name(name)) and not any(character in "*?[" for character in name)
    if not text or not is_readable:
        raise UsageError(
            f"a tool is named by its name or, with * at the end, by how it begins, in printable ASCII; got {show(key)}",
            argument="tools",
        )
    return Word(name, is_prefix=text.endswith("*"))


def _is_name(name: str) -> bool:
    is_short = 0 < len(name) <= _LONGEST_NAME
    return is_short and name.isascii() and name.isprintable() and name == name.strip()


def _list_parts(tool: str) -> list[str]:
    """List a name, and what stands in it behind each separator, as clients write a server before it."""
    return [tool, *[tool[match.end() :] for match in _SEPARATORS.finditer(tool)]]


def _get_word(server: Word | str) -> Word:
    return server if isinstance(server, Word) else Word("", is_prefix=True)


def _covers_server(one: Word | str, other: Word | str) -> bool:
    if one in (_ANY, other):
        return True
    return isinstance(one, Word) and isinstance(other, Word) and one.covers(other)


def _write_pattern(pattern: Pattern) -> str:
    tool = pattern.tool.text + "*" * pattern.tool.is_prefix
    if not isinstance(pattern.server, Word):
        return show(tool)
    return show((pattern.server.text + "*" * pattern.server.is_prefix, tool))


def _fold(name: str) -> str:
    """Fold a name: no case, a capital within it begins a word, and whatever is no letter or digit is one underscore."""
    words = _OTHERS.sub("_", _CAPITALS.sub("_", name).casefold())
    return words.removeprefix("_").translate(_ALIKE)
