"""JSON read with the place of each value in its text, so that it can be shown as it is written there.

A number keeps its digits, a name that occurs twice is kept twice, and a passage of the text can be found again in the
values that it runs through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from adjudge.formats.json import nests_too_deeply

LONGEST_READ = 2_000_000
"""Characters of a text that are read with their places; each value of a longer one would be an object of Python's."""

NodeKind = Literal["object", "array", "text", "literal"]

# A text, a bracket or sign, or a number, true, false, null. Possessive, so that nothing is looked at twice.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)

_BLANK = re.compile(r'("(?:[^"\\]++|\\.)*+")|\s++', re.DOTALL)

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")


@dataclass(slots=True)
class JsonNode:
    """A value and its place in the text. Of an object, ``names`` are the nodes of its names, each with its value."""

    kind: NodeKind
    start: int
    end: int
    names: list[JsonNode] = field(default_factory=list)
    values: list[JsonNode] = field(default_factory=list)


def read_places(text: str) -> JsonNode | None:
    """Read the value of a JSON text; ``None`` for what is no JSON, too long, or nested more than 200 levels deep."""
    if len(text) > LONGEST_READ or nests_too_deeply(text):
        return None
    try:
        # Numbers as text: one of 5,000 digits is JSON, and no number of Python's by default.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_name)
    except (ValueError, RecursionError):
        return None
    top = JsonNode("array", 0, len(text))
    stack = [top]
    for token in _TOKEN.finditer(text):
        sign = token[0][0]
        if sign in ",:":
            continue
        if sign in "]}":
            stack.pop().end = token.end()
            continue
        kind: NodeKind = "object" if sign == "{" else "array" if sign == "[" else "text" if sign == '"' else "literal"
        node = JsonNode(kind, *token.span())
        holder = stack[-1]
        is_name = holder.kind == "object" and len(holder.names) == len(holder.values)
        (holder.names if is_name else holder.values).append(node)
        if sign in "{[":
            stack.append(node)
    return top.values[0]


def flatten_json(text: str) -> str:
    """Write a JSON text in one line: white space that is in none of its texts becomes one blank."""
    return _BLANK.sub(lambda match: match[1] or " ", text)


def decode_text(text: str, node: JsonNode) -> str:
    """Return what a node of kind ``text`` says."""
    decoded: str = json.loads(text[node.start : node.end])
    return decoded


_CALL_BEGINS = re.compile(
    r'\{\s*"tool"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*+")\s*,\s*"arguments"\s*:\s*\{', re.ASCII
)


def describe_call(text: str) -> str | None:
    """Describe a call of a tool by its tool and how its arguments begin; ``None`` for a text that begins as no call.

    The text may be cut off anywhere behind that, so it is not read as JSON.
    """
    begins = _CALL_BEGINS.match(text.lstrip())
    if begins is None:
        return None
    tool = decode_text(begins[0], JsonNode("text", *begins.span(1)))
    arguments = begins.string[begins.end() :].strip().rstrip("} \n")
    return f"{tool}: {arguments}" if arguments else tool


def find_decoded(text: str, node: JsonNode, place: int) -> int:
    """Find the place in what a text node says for a place in the JSON; within an escape, its begin."""
    return _convert_place(text, node, place, decoded=False)


def find_encoded(text: str, node: JsonNode, place: int) -> int:
    """Find the place in the JSON for a place in what a text node says."""
    return _convert_place(text, node, place, decoded=True)


def _convert_place(text: str, node: JsonNode, place: int, *, decoded: bool) -> int:
    """Convert a place: after each escape, the JSON has run ahead of what it says by the escape's further characters."""
    ahead = node.start + 1
    for start, end in _list_escapes(text, node):
        if place <= (start - ahead if decoded else start):
            break
        if not decoded and place < end:
            place = start
            break
        ahead += end - start - 1
    return place + ahead if decoded else place - ahead


def _list_escapes(text: str, node: JsonNode) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _ESCAPE.finditer(text, node.start + 1, node.end - 1))


def _refuse_name(name: str) -> str:
    raise ValueError(f"{name} is no JSON")
