"""Two JSON texts compared as a reader reads them: each value below its name, with its own line breaks.

JSON writes a letter, a patch or a query as one line with escapes, so a change of one word changes the whole line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adjudge.formats.json_places import JsonNode, decode_text, read_places
from adjudge.templates.difference import MOST_LINES, DiffLine, NamedText, make_difference, make_value_difference

_MOST_COMPARED = 1_000_000
"""Characters of names and values that are compared: many values below long names would come to gigabytes."""

_MOST_UNPACKED = 6
"""Levels at which JSON inside of a text is read too."""

_BETWEEN = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "

_PLAIN_NAME = re.compile(r"\w(?:[\w .-]*\w)?")

_NUMBER = re.compile(r"^\[\d+\]")

# Without quotation marks, a text would be read as a number, a word or an empty value of JSON, or as a text in them.
_NEEDS_QUOTES = re.compile(r'\s*|[+-]?[\d.]+(?:e[+-]?\d+)?|true|false|null|\{\}|\[\]|".*', re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDifference:
    """The lines in which two contents differ, and whether they say the same in spite of them."""

    lines: tuple[DiffLine, ...] = ()
    """Of JSON, those of the values that differ; where none does, those of the texts; none where these are the same."""
    has_equal_values: bool = False
    """True for JSON whose values are all equal, so at most its writing differs."""


def make_json_difference(before: str, after: str) -> ContentDifference | None:
    """Compare two JSON texts by their values.

    ``None`` where either is no object or list, has more than 2,000 values, or comes to more than 1,000,000 characters
    of names and values.
    """
    was, now = _list_values(before), _list_values(after)
    exact_was, exact_now = _list_values(before, is_exact=True), _list_values(after, is_exact=True)
    if was is None or now is None or exact_was is None or exact_now is None:
        return None
    has_equal_values = _list_places(exact_was) == _list_places(exact_now)
    # What is no value of its own, such as the number of lists around one, is in the JSON alone.
    lines = () if has_equal_values else make_value_difference(was, now)
    return ContentDifference(lines=lines or make_difference(before, after), has_equal_values=has_equal_values)


def _list_places(values: Sequence[NamedText]) -> list[tuple[str, str]]:
    return [(value.place, value.text) for value in values]


def _list_values(text: str, *, is_exact: bool = False) -> list[NamedText] | None:
    """List the values of a JSON text in their order; ``is_exact`` by name, with JSON inside of a text as that text."""
    top = read_places(text)
    if top is None or top.kind not in ("object", "array"):
        return None
    values: list[NamedText] = []
    left = _MOST_COMPARED
    for value in _walk(text, top, (), is_exact=is_exact):
        left -= len(value.place) + len(value.text)
        if left < 0 or len(values) == MOST_LINES:
            return None
        values.append(value)
    return values


def _walk(text: str, node: JsonNode, path: tuple[str, ...], *, is_exact: bool) -> Iterator[NamedText]:
    if node.kind == "literal":
        yield _make_value(path, text[node.start : node.end])
    elif node.kind == "text":
        decoded = decode_text(text, node)
        is_packed = not is_exact and len(path) < _MOST_UNPACKED and decoded[:1] in ("{", "[")
        packed = read_places(decoded) if is_packed else None
        if packed is not None and packed.values:
            yield from _walk(decoded, packed, (*path[:-1], f"{path[-1]} (was text)"), is_exact=False)
        else:
            yield _make_value(path, f'"{decoded}"' if _NEEDS_QUOTES.fullmatch(decoded) else decoded)
    elif not node.values:
        yield _make_value(path, "{}" if node.kind == "object" else "[]")
    else:
        for name, value in _list_members(text, node, is_exact=is_exact):
            yield from _walk(text, value, (*path, name), is_exact=is_exact)


def _list_members(text: str, node: JsonNode, *, is_exact: bool) -> list[tuple[str, JsonNode]]:
    if node.kind == "array":
        return [(f"[{place}]", value) for place, value in enumerate(node.values)]
    names = [_write_name(decode_text(text, name)) for name in node.names]
    members = list(zip(names, node.values, strict=True))
    # Equal names stay in their order, of which programs take the first or the last.
    return sorted(members, key=lambda member: member[0]) if is_exact else members


def _write_name(name: str) -> str:
    """Write a name as it is, or as JSON where it could be taken for several, or for a number in a list."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _make_value(path: Sequence[str], text: str) -> NamedText:
    name = _BETWEEN.join(_NUMBER.sub("[]", part) for part in path)
    return NamedText(name=name, text=text, place=_BETWEEN.join(path) or "the content")
