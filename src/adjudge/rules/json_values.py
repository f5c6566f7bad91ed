r"""Every name and value in a JSON text, unescaped, also of JSON that is itself a text inside JSON.

``\u0072m`` is ``rm`` to every reader of the JSON, and a tool call's arguments are JSON inside a text inside JSON.
A rule that refuses something reads leniently (a repeated key keeps both of its values, ``NaN`` is a value), and a rule
that demands something reads strictly. So JSON that two programs read differently can neither hide nor prove a value.

This module holds no rule: ``rules/shipped.py`` lists the rules and imports each from its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from adjudge.formats.json import MOST_DEPTH, nests_too_deeply

MOST_ROUNDS = 8
"""Rounds in which the escapes of a text that only holds JSON are undone; ``\u005cu005cu005c`` would have no end."""


LONGEST_KNOWN = 100
"""Texts shorter than this many characters are remembered, so that a repeated text is yielded once."""


Place = tuple[Any, "str | int"] | None
"""The path of a value, as a linked list: the place of its container, and its key or index there; ``None`` is the root.

``describe_place`` writes it as text, which is done only for a place that is shown."""


_PLAIN_STEP = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")

_BLANKS = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\ufeff"

_SURROGATES = re.compile("[\ud800-\udfff]")

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')

_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# A quotation mark after an odd number of backslashes is escaped, and so a part of the quoted text.
_UNESCAPED_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*+"')

_OPENING_QUOTE = re.compile(r'[\[{,:]\s*+"')

_CLOSING_QUOTE = re.compile(r'"\s*+[:,\]}]')


class TooDeepError(ValueError):
    """The text nests too deeply to be searched to its end."""

    def __init__(self) -> None:
        super().__init__(
            f"nests lists, objects and texts that are JSON themselves more than {MOST_DEPTH} levels deep, "
            "so not all of it could be searched; hand it in flatter"
        )


class _Members(list[tuple[str, Any]]):
    """The names and values of a JSON object, in order, repeated names included."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> _Members:
    """Return the names and values of an object; raise ``ValueError`` if a name is repeated."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return _Members(pairs)


def _refuse_constant(name: str) -> str:
    """Raise ``ValueError`` for ``NaN``, ``Infinity`` and ``-Infinity``, which Python's reader accepts."""
    raise ValueError(f"{name} is not JSON")


# Numbers are read as the texts they are written as, so that none is too large and none is rounded.
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_Members, parse_int=str, parse_float=str, parse_constant=str, strict=False
)

_STRICT = json.JSONDecoder(
    object_pairs_hook=_refuse_repeated_keys, parse_int=str, parse_float=str, parse_constant=_refuse_constant
)


class Value(NamedTuple):
    """A value in a JSON text; with ``text=None``, an object or a list, whose values follow."""

    place: Place
    name: str | None
    """Its key; the items of a list have the key of the list, and the root has none."""
    text: str | None
    nested: bool = False
    """True if the text is JSON itself, so that its values follow."""


def describe_place(place: Place) -> str:
    """Write a place as ``user.notes[0]``."""
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{describe_step(step)}")
    return "".join(reversed(steps)).removeprefix(".")


def describe_step(key: str) -> str:
    """Write a key for a message: a key that does not read like a name becomes ``*``, as it may be a secret."""
    return key if 0 < len(key) <= 24 and _PLAIN_STEP.issuperset(key) else "*"


def join_halves(text: str) -> str:
    """Join the halves of surrogate pairs in a text; a lone one becomes the replacement character."""
    if _SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def list_values(text: str, *, strict: bool = False) -> list[Value] | None:
    """List every value of a text that is JSON, or whose lines are, in order; ``None`` for any other text.

    Raises ``TooDeepError`` for what nests too deeply, counted through the JSON that texts hold. With ``strict``, only
    one whole JSON value counts: lines are not read, what cannot be read to its end is no JSON, and nothing is raised.
    """
    try:
        root = _read_nested(text, 0, strict=strict)
        if root is None and not strict:
            root = _read_lines(text)
        return None if root is None else list(_walk_values(root, strict=strict))
    except TooDeepError:
        if strict:
            return None
        raise


def list_readings(text: str) -> Iterator[tuple[Place, str]]:
    """Yield every text that something behind a rule could read in a text that is JSON or holds some.

    The text itself is not among them. For a rule that refuses; for one that demands, ``list_unambiguous_texts``. Raises
    ``TooDeepError`` where depth runs out.
    """
    values = list_values(text)
    if values is None:
        plain = undo_escapes(text)
        yield from () if plain is None else [(None, plain)]
        return
    for place, reading, nested in _list_texts(values):
        yield place, reading
        plain = None if nested else undo_escapes(reading)
        if plain is not None:
            yield place, plain


def list_unambiguous_texts(text: str) -> Iterator[tuple[Place, str]]:
    """Yield every name and value of a text that is one JSON value which all readers read alike."""
    for place, reading, _ in _list_texts(list_values(text, strict=True) or []):
        yield place, reading


def may_hide_texts(text: str) -> bool:
    """Return whether JSON in a text could contain texts that a search of the text as written does not find.

    That takes an escape. JSON that nests too deeply counts as well, so that the search for its values refuses it.
    """
    return "\\" in text or nests_too_deeply(text.lstrip(_BLANKS))


def _list_texts(values: list[Value]) -> Iterator[tuple[Place, str, bool]]:
    """Yield the place of each name and text, the text, and whether that is JSON itself; short repeated texts once."""
    seen: set[str] = set()
    for place, name, text, nested in values:
        if name is not None and name not in seen:
            seen.add(name)
            yield place, name, False
        if text is not None and text not in seen:
            if len(text) < LONGEST_KNOWN:
                seen.add(text)
            yield place, text, nested


def undo_escapes(text: str) -> str | None:
    """Undo the escapes in the quoted texts of a text that has JSON somewhere in it; ``None`` if nothing changes.

    A quoted text is between two neighbouring quotation marks of which at least one is beside JSON's punctuation. Marks
    are not counted in pairs, because a mark in the prose before the JSON would swap inside and outside. Raises
    ``TooDeepError`` if escapes are still left after ``MOST_ROUNDS``.
    """
    unescaped = text
    for _ in range(MOST_ROUNDS):
        next_text = _unescape_once(unescaped)
        if next_text == unescaped:
            return None if unescaped == text else unescaped
        unescaped = next_text
    if _unescape_once(unescaped) != unescaped:
        raise TooDeepError
    return unescaped


def _read_nested(text: str, depth: int, *, strict: bool) -> Any:
    """Read a text as a JSON list, object or text at ``depth`` in the whole; ``None`` if the text is not JSON.

    Raises ``TooDeepError``.
    """
    stripped = text.strip(_BLANKS)
    if stripped[:1] not in ("{", "[", '"') or len(stripped) < 2:
        return None
    if stripped[0] != '"' and nests_too_deeply(stripped, most=MOST_DEPTH - depth):
        raise TooDeepError
    try:
        value = (_STRICT if strict else _LENIENT).decode(stripped)
    except RecursionError:
        raise TooDeepError from None
    except ValueError:
        return None
    if depth >= MOST_DEPTH:
        raise TooDeepError
    return value


def _read_lines(text: str) -> list[Any] | None:
    """Read a text of two or more lines that are all JSON; ``None`` for any other text."""
    lines = [line for line in text.splitlines() if line.strip(_BLANKS)]
    if len(lines) < 2:
        return None
    values = []
    for line in lines:
        # The depth is 1 because the values are put into a list.
        value = _read_nested(line, 1, strict=False)
        if value is None:
            return None
        values.append(value)
    return values


def _walk_values(root: Any, *, strict: bool) -> Iterator[Value]:
    """Yield every value, each after its container, in the order of the text.

    It is a loop with a stack, because in a recursive generator each value would pass through all levels.
    """
    to_visit: list[tuple[Any, Place, str | None, int]] = [(root, None, None, 0)]  # value, place, name and depth
    while to_visit:
        value, place, name, depth = to_visit.pop()
        if isinstance(value, _Members):
            yield Value(place, name, None)
            for key, member in reversed(value):
                to_visit.append((member, (place, key), key, depth + 1))
                # A key is a text too, so it may be JSON itself.
                key_value = _read_nested(key, depth + 1, strict=strict) if key[:1] not in _NOT_JSON_STARTS else None
                if key_value is not None:
                    to_visit.append((key_value, (place, key), key, depth + 1))
        elif isinstance(value, list):
            yield Value(place, name, None)
            numbered = list(enumerate(value))
            to_visit += [(member, (place, index), name, depth + 1) for index, member in reversed(numbered)]
        elif isinstance(value, str):
            inner = _read_nested(value, depth + 1, strict=strict) if value[:1] not in _NOT_JSON_STARTS else None
            yield Value(place, name, value, nested=inner is not None)
            if inner is not None:
                to_visit.append((inner, place, name, depth + 1))
        else:
            yield Value(place, name, json.dumps(value))


_NOT_JSON_STARTS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") | {""}
"""First characters of texts that are no JSON object, list or text, so that most texts need not be parsed."""


def _unescape_once(text: str) -> str:
    """Undo one level of escapes in the quoted texts of a text; returns the same text if nothing changes."""
    if "\\" not in text or '"' not in text:
        return text
    quotes = [match.end() - 1 for match in _UNESCAPED_QUOTE.finditer(text)]
    opening = {match.end() - 1 for match in _OPENING_QUOTE.finditer(text)}
    closing = {match.start() for match in _CLOSING_QUOTE.finditer(text)}
    pieces, copied_to = [], 0
    # The end of the text counts as a quotation mark: the last quoted text of a call that is still written has none.
    for start, end in pairwise([*quotes, len(text)]):
        if "\\" in text[start:end] and (start in opening or end in closing):
            pieces += [text[copied_to : start + 1], _unescape_quoted(text[start + 1 : end])]
            copied_to = end
    return "".join(pieces) + text[copied_to:] if pieces else text


def _unescape_quoted(text: str) -> str:
    """Undo the escapes of one quoted text, and join the halves of surrogate pairs."""
    return join_halves(_ESCAPE.sub(_decode_escape, text))


def _decode_escape(match: re.Match[str]) -> str:
    """Return the character of one escape: of four hexadecimal digits, or of the letter or sign after the backslash."""
    code, sign = match.groups()
    return chr(int(code, 16)) if code else _SHORT_ESCAPES.get(sign, sign)
