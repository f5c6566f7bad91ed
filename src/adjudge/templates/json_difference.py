"""The difference of two JSON texts by their values: each value below its name, with its own line breaks.

In JSON, a letter, a patch or a query is one line with escapes, so a change of one word would change the whole line.
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
"""The depth down to which JSON inside of a text is read too."""

_PATH_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "

_PLAIN_NAME = re.compile(r"\w(?:[\w .-]*\w)?")

_INDEX = re.compile(r"^\[\d+\]")

# Texts that are written in quotation marks. Without them, they would look like a number, a word or an empty value of
# JSON, or like a text with quotation marks.
_NEEDS_QUOTES = re.compile(r'\s*|[+-]?[\d.]+(?:e[+-]?\d+)?|true|false|null|\{\}|\[\]|".*', re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDifference:
    """The lines in which two contents differ, and whether their values are equal all the same."""

    lines: tuple[DiffLine, ...] = ()
    """The lines of the values that differ; if none does, those of the JSON texts; none if these are equal too."""
    has_equal_values: bool = False
    """True for JSON whose values are all equal, so at most its writing differs."""


def make_json_difference(before: str, after: str) -> ContentDifference | None:
    """Compare two JSON texts by their values.

    ``None`` where either is no object or list, has more than 2,000 values, or comes to more than 1,000,000 characters
    of names and values.
    """
    old, new = _list_values(before), _list_values(after)
    exact_old, exact_new = _list_values(before, is_exact=True), _list_values(after, is_exact=True)
    if old is None or new is None or exact_old is None or exact_new is None:
        return None
    has_equal_values = _list_places_and_texts(exact_old) == _list_places_and_texts(exact_new)
    # Some differences are in no value, such as the number of lists around one. Then the JSON texts are compared.
    lines = () if has_equal_values else make_value_difference(old, new)
    return ContentDifference(lines=lines or make_difference(before, after), has_equal_values=has_equal_values)


def _list_places_and_texts(values: Sequence[NamedText]) -> list[tuple[str, str]]:
    """List the full path and the text of each value; comparing ``NamedText`` itself ignores the path."""
    return [(value.place, value.text) for value in values]


def _list_values(text: str, *, is_exact: bool = False) -> list[NamedText] | None:
    """List the values of a JSON text; ``None`` if it is no object or list, or comes to too much to be compared.

    They are in the order of the text, and JSON inside of a text is read too. With ``is_exact``, members are in the
    order of their names, and JSON inside of a text stays a text: then two lists are equal if the JSON values are.
    """
    top = read_places(text)
    if top is None or top.kind not in ("object", "array"):
        return None
    values: list[NamedText] = []
    characters_left = _MOST_COMPARED
    for value in _walk_values(text, top, (), is_exact=is_exact):
        characters_left -= len(value.place) + len(value.text)
        if characters_left < 0 or len(values) == MOST_LINES:
            return None
        values.append(value)
    return values


def _walk_values(text: str, node: JsonNode, path: tuple[str, ...], *, is_exact: bool) -> Iterator[NamedText]:
    """Yield the values in a node, at any depth, each with its path as its name."""
    if node.kind == "literal":
        yield _make_value(path, text[node.start : node.end])
    elif node.kind == "text":
        decoded = decode_text(text, node)
        may_be_json = not is_exact and len(path) < _MOST_UNPACKED and decoded[:1] in ("{", "[")
        inner_node = read_places(decoded) if may_be_json else None
        if inner_node is not None and inner_node.values:
            yield from _walk_values(decoded, inner_node, (*path[:-1], f"{path[-1]} (was text)"), is_exact=False)
        else:
            yield _make_value(path, f'"{decoded}"' if _NEEDS_QUOTES.fullmatch(decoded) else decoded)
    elif not node.values:
        yield _make_value(path, "{}" if node.kind == "object" else "[]")
    else:
        for name, value in _list_members(text, node, is_exact=is_exact):
            yield from _walk_values(text, value, (*path, name), is_exact=is_exact)


def _list_members(text: str, node: JsonNode, *, is_exact: bool) -> list[tuple[str, JsonNode]]:
    """List the members of an object or a list with their names; those of an object by name if ``is_exact``."""
    if node.kind == "array":
        return [(f"[{index}]", value) for index, value in enumerate(node.values)]
    names = [_write_name(decode_text(text, name)) for name in node.names]
    members = list(zip(names, node.values, strict=True))
    # Sorting keeps equal names in their order, which matters: programs take the first or the last of them.
    return sorted(members, key=lambda member: member[0]) if is_exact else members


def _write_name(name: str) -> str:
    """Write a name as it is, or as JSON if it could be taken for a path of names, or for an index of a list."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _make_value(path: Sequence[str], text: str) -> NamedText:
    """Make a value of its path and its text; its name is the path without the indexes of lists."""
    name = _PATH_SEPARATOR.join(_INDEX.sub("[]", part) for part in path)
    return NamedText(name=name, text=text, place=_PATH_SEPARATOR.join(path) or "the content")
