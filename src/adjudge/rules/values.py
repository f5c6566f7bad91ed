r"""The values of a text that is JSON: every name and value in it, unescaped, however often it was written into a text.

``\u0072m`` is ``rm`` to every reader of the JSON, and a tool call's arguments are JSON inside a text inside JSON.
Reading is lenient where a rule refuses (a key that is given twice keeps both of its values, ``NaN`` is a value) and
strict where a rule demands: what two readers could understand differently must hide nothing, and must prove nothing.

It holds no rule. Which file has a rule says ``rules/shipped.py``; ``similarity``, for one, is in ``checks.py``.
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
"""Characters of a text that is remembered, so that what is repeated is looked at once."""


Place = tuple[Any, "str | int"] | None
"""The place of a value: the place of what holds it, and its name or number there. Written out only when it is shown."""


_PLAIN_STEP = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")

_AROUND = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\ufeff"

_HALVES = re.compile("[\ud800-\udfff]")

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')

_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# A backslash before it, or three, make it part of the text; the run is counted once, from its beginning.
_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*+"')

_OPENED = re.compile(r'[\[{,:]\s*+"')

_CLOSED = re.compile(r'"\s*+[:,\]}]')


class TooDeepError(ValueError):
    """The text nests too deeply to be searched to its end."""

    def __init__(self) -> None:
        super().__init__(
            f"nests lists, objects and texts that are JSON themselves more than {MOST_DEPTH} levels deep, "
            "so not all of it could be searched; hand it in flatter"
        )


class _Members(list[tuple[str, Any]]):
    """An object's names and values, in order, those that stand twice included."""


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> _Members:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return _Members(pairs)


def _refuse_constant(name: str) -> str:
    raise ValueError(f"{name} is not JSON")


# Numbers stay as they are written: none is too large, and none is rounded before it was looked at.
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_Members, parse_int=str, parse_float=str, parse_constant=str, strict=False
)

_STRICT = json.JSONDecoder(
    object_pairs_hook=_refuse_repeats, parse_int=str, parse_float=str, parse_constant=_refuse_constant
)


class Value(NamedTuple):
    """A value in a JSON text; or, with ``text=None``, the name alone of something that holds more."""

    place: Place
    name: str | None
    """Its name; the items of a list have the name of the list."""
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
    """Write a key as a message shows it: it can be the secret itself; only what reads like a name is shown."""
    return key if 0 < len(key) <= 24 and _PLAIN_STEP.issuperset(key) else "*"


def join_halves(text: str) -> str:
    """Join the halves of surrogate pairs in a text; a lone one becomes the replacement character."""
    if _HALVES.search(text) is None:
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
    """Return whether a text that is JSON could say what is not in it as it is; without an escape it cannot."""
    return "\\" in text or nests_too_deeply(text.lstrip(_AROUND))


def _list_texts(values: list[Value]) -> Iterator[tuple[Place, str, bool]]:
    """Yield names and texts, each with whether it is JSON itself; what was said before is not said again."""
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
    """Unescape the quoted texts of a text that holds JSON somewhere; ``None`` where that changes nothing.

    Quoted is what stands between two quotation marks of which one touches JSON's own punctuation, whichever of the
    two opens it: a mark in the prose before must not turn what is inside into what is outside. Raises ``TooDeepError``
    where escapes are written in escapes without end.
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
    """Read the value of a JSON text that is a list, an object or a text; ``None`` for what is none."""
    stripped = text.strip(_AROUND)
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
    """Read the values of a text whose lines are JSON, two or more; ``None`` for any other."""
    lines = [line for line in text.splitlines() if line.strip(_AROUND)]
    if len(lines) < 2:
        return None
    values = []
    for line in lines:
        # One level is the list that they are put into.
        value = _read_nested(line, 1, strict=False)
        if value is None:
            return None
        values.append(value)
    return values


def _walk_values(root: Any, *, strict: bool) -> Iterator[Value]:
    """Yield every value, each after what holds it; in a loop, since recursion would carry each through all levels."""
    to_visit: list[tuple[Any, Place, str | None, int]] = [(root, None, None, 0)]
    while to_visit:
        value, place, name, depth = to_visit.pop()
        if isinstance(value, _Members):
            yield Value(place, name, None)
            for key, member in reversed(value):
                to_visit.append((member, (place, key), key, depth + 1))
                # A name is a text that a tool reads as well.
                key_value = _read_nested(key, depth + 1, strict=strict) if key[:1] not in _UNQUOTED else None
                to_visit += [] if key_value is None else [(key_value, (place, key), key, depth + 1)]
        elif isinstance(value, list):
            yield Value(place, name, None)
            last = len(value) - 1
            to_visit += [
                (member, (place, last - index), name, depth + 1) for index, member in enumerate(reversed(value))
            ]
        elif isinstance(value, str):
            inner = _read_nested(value, depth + 1, strict=strict) if value[:1] not in _UNQUOTED else None
            yield Value(place, name, value, nested=inner is not None)
            if inner is not None:
                to_visit.append((inner, place, name, depth + 1))
        else:
            yield Value(place, name, json.dumps(value))


_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") | {""}
"""Characters that begin no JSON but a number: nearly every text is known by its first character."""


def _unescape_once(text: str) -> str:
    """Undo one level of escapes in what is quoted as in JSON; the same text is returned where nothing changes."""
    if "\\" not in text or '"' not in text:
        return text
    quotes = [match.end() - 1 for match in _QUOTE.finditer(text)]
    opened = {match.end() - 1 for match in _OPENED.finditer(text)}
    closed = {match.start() for match in _CLOSED.finditer(text)}
    pieces, copied_to = [], 0
    # A text whose end is cut off, as that of a call that is still being written, is read to where it is cut.
    for start, end in pairwise([*quotes, len(text)]):
        if "\\" in text[start:end] and (start in opened or end in closed):
            pieces += [text[copied_to : start + 1], _unescape_quoted(text[start + 1 : end])]
            copied_to = end
    return "".join(pieces) + text[copied_to:] if pieces else text


def _unescape_quoted(text: str) -> str:
    return join_halves(_ESCAPE.sub(_decode_escape, text))


def _decode_escape(match: re.Match[str]) -> str:
    code, sign = match.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(sign, sign)
