"""JSON read with the position of each value in its text, so that values can be shown as they are written there.

A number keeps its digits, a repeated name is kept twice, and a passage of the text can be found again in the values
that it covers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from adjudge.formats.json import nests_too_deeply

LONGEST_READ = 2_000_000
"""The most characters of a text that is read with positions, since each value becomes an object in memory."""

NodeKind = Literal["object", "array", "text", "literal"]
"""``literal`` is a number, ``true``, ``false`` or ``null``."""

_KINDS: Mapping[str, NodeKind] = {"{": "object", "[": "array", '"': "text"}
"""The kind of a value by its first character; all others are literals."""

# A text, a bracket or sign, or a number, true, false, null. Possessive, so that no character is read twice.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)

_TEXT_OR_BLANKS = re.compile(r'("(?:[^"\\]++|\\.)*+")|\s++', re.DOTALL)

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")


@dataclass(slots=True)
class JsonNode:
    """A value and its position in the text; an object has the nodes of its names and of their values, in order."""

    kind: NodeKind
    start: int
    end: int
    names: list[JsonNode] = field(default_factory=list)
    values: list[JsonNode] = field(default_factory=list)


def read_places(text: str) -> JsonNode | None:
    """Read the value of a JSON text; ``None`` for text that is not JSON, too long, or nested over 200 levels deep."""
    if len(text) > LONGEST_READ or nests_too_deeply(text):
        return None
    try:
        # Numbers are read as text, because Python refuses a number of 5,000 digits by default.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    top = JsonNode("array", 0, len(text))  # has the whole value as its only item
    stack = [top]
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in ",:":
            continue
        if first in "]}":
            stack.pop().end = token.end()
            continue
        kind: NodeKind = _KINDS.get(first, "literal")
        node = JsonNode(kind, *token.span())
        parent = stack[-1]
        is_name = parent.kind == "object" and len(parent.names) == len(parent.values)
        (parent.names if is_name else parent.values).append(node)
        if first in "{[":
            stack.append(node)
    return top.values[0]


def flatten_json(text: str) -> str:
    """Write a JSON text on one line: white space outside of its texts becomes one blank."""
    return _TEXT_OR_BLANKS.sub(lambda match: match[1] or " ", text)


def decode_text(text: str, node: JsonNode) -> str:
    """Return the text of a node of kind ``text``, unescaped."""
    decoded: str = json.loads(text[node.start : node.end])
    return decoded


_CALL_START = re.compile(
    r'\{\s*"tool"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*+")\s*,\s*"arguments"\s*:\s*\{', re.ASCII
)


def describe_call(text: str) -> str | None:
    """Describe a tool call by its tool and its arguments as written; ``None`` for a text that does not begin as one.

    The text may be cut off anywhere in the arguments, so it is not read as JSON.
    """
    start = _CALL_START.match(text.lstrip())
    if start is None:
        return None
    tool = decode_text(start[0], JsonNode("text", *start.span(1)))
    arguments = start.string[start.end() :].strip().rstrip("} \n")
    return f"{tool}: {arguments}" if arguments else tool


def to_decoded_position(text: str, node: JsonNode, place: int) -> int:
    """Convert a position in the JSON to one in the unescaped text of a node; inside an escape, to its start."""
    return _convert_position(text, node, place, decoded=False)


def to_encoded_position(text: str, node: JsonNode, place: int) -> int:
    """Convert a position in the unescaped text of a node to one in the JSON."""
    return _convert_position(text, node, place, decoded=True)


def _convert_position(text: str, node: JsonNode, place: int, *, decoded: bool) -> int:
    """Convert a position in the unescaped text to one in the JSON (``decoded``), or the other way round.

    The difference is the node's start, and for each escape before the position all its characters but one.
    """
    difference = node.start + 1
    for start, end in _list_escapes(text, node):
        if place <= (start - difference if decoded else start):
            break
        if not decoded and place < end:  # inside an escape
            place = start
            break
        difference += end - start - 1
    return place + difference if decoded else place - difference


def _list_escapes(text: str, node: JsonNode) -> Iterator[tuple[int, int]]:
    """List start and end of each escape in a text node; a surrogate pair is one escape."""
    return (match.span() for match in _ESCAPE.finditer(text, node.start + 1, node.end - 1))


def _refuse_constant(name: str) -> str:
    raise ValueError(f"{name} is no JSON")
