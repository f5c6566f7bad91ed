"""Pins: all that an MCP server offered when somebody approved it, so that any change is noticed. Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from adjudge.errors import UsageError
from adjudge.formats.files import read_source
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import show

READ_SECONDS = 30.0
"""Seconds that a server has to list all that it offers."""

_OPEN_KEYWORDS = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties"}
)
"""Keywords of JSON Schema by which an object may have members that ``properties`` does not name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """All that a server offered to the model when somebody approved it: whole objects, as they were received.

    ``adjudge mcp pin`` writes them, so that people read in a file's difference what a server changed. Raises
    ``UsageError`` for a name that two tools, or two prompts, have: a client takes one of them and shows the other.
    """

    schema: ClassVar[str] = "adjudge/mcp-pins/1"
    _layout: ClassVar[Layout] = Layout(strict=True, required=("name", "instructions"))

    source: str
    """The origin of the server: its address, or the command that starts it."""
    name: str | None
    """The server's name for itself."""
    instructions: str | None
    """The server's words to the model about itself."""
    tools: tuple[Mapping[str, Any], ...]
    """Every tool of every page, with all of its members."""
    prompts: tuple[Mapping[str, Any], ...]
    """Every prompt of every page, with all of its members."""

    def __post_init__(self) -> None:
        for kind, listed in (("tools", self.tools), ("prompts", self.prompts)):
            names: set[str] = set()
            for value in listed:
                name = value.get("name")
                if not isinstance(name, str) or name in names:
                    problem = "one has no name" if not isinstance(name, str) else f"{show(name)} is there twice"
                    raise UsageError(f"the {kind} of an MCP server are told apart by their names: {problem}")
                names.add(name)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read pins from a file; raises ``UsageError`` for one that is missing or not as it was written."""
        data, place = read_source(path, noun="MCP pins")
        try:
            return cls.from_dict(data)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read pins from plain data; raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """Write the pins as plain data."""
        return write_record(self)

    def find_tool(self, name: str) -> Mapping[str, Any] | None:
        """Find a tool by its name."""
        for tool in self.tools:
            if tool["name"] == name:
                return tool
        return None

    def has_tool(self, tool: Mapping[str, Any]) -> bool:
        """Return whether this very tool is pinned: nothing of it was added, changed or left out."""
        pinned = self.find_tool(str(tool.get("name")))
        return pinned is not None and _write_json(pinned) == _write_json(tool)

    def list_changes(self, offered: Pins) -> tuple[str, ...]:
        """Return what a server offers otherwise now, beside its tools, by the names of the members."""
        changes = [name for name in ("source", "name", "instructions") if getattr(self, name) != getattr(offered, name)]
        if _sort_objects(self.prompts) != _sort_objects(offered.prompts):
            changes.append("prompts")
        return tuple(changes)


def name_source(address: str) -> str:
    """Return an address without a user and password, which must not be written to a file of pins."""
    scheme, separator, after_scheme = address.partition("://")
    if not separator:
        return address
    # The first of these characters ends the part with user, host and port.
    ends = [position for position in map(after_scheme.find, "/?#") if position >= 0]
    end = min(ends, default=len(after_scheme))
    _, _, host = after_scheme[:end].rpartition("@")
    return f"{scheme}{separator}{host}{after_scheme[end:]}"


def list_unknown_arguments(tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """List the arguments that a tool's schema does not name; empty for a schema that explicitly allows other ones.

    JSON Schema allows unnamed members by default, so a validator accepts ``Path`` beside ``path``, and some servers
    read it. Here they count as unknown, unless the schema says something about them.
    """
    schema = tool.get("inputSchema")
    if not isinstance(schema, Mapping) or not _OPEN_KEYWORDS.isdisjoint(schema):
        return []
    properties = schema.get("properties", {})
    if schema.get("additionalProperties", False) is not False or not isinstance(properties, Mapping):
        return []
    return sorted(set(arguments) - set(properties))


def _sort_objects(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write objects as JSON, sorted, so that their order does not count in a comparison."""
    return sorted(map(_write_json, values))


def _write_json(value: Mapping[str, Any]) -> str:
    """Write an object as JSON with sorted keys, for a comparison in which 1, 1.0 and true are different."""
    return json.dumps(value, sort_keys=True)
