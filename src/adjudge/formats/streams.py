"""Bodies that say a thing in pieces: event streams, JSON lines, texts with escapes, markup.

A client puts the pieces together, so a gate must see what they say together as well as each of them. How a client does
that is its own affair; what is handed on therefore holds every usual way: each text joined over the records at its
place, by the kind and the number of a record, and all texts in order.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from adjudge.formats.json import nests_too_deeply, read_json

_FIELDS = {"data", "event", "id", "retry"}

_PREFIX = re.compile(r"[^{\[\"]{0,20}")

_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|(\n)|(.))", re.DOTALL)

_WORTH_READING = re.compile(r'\\(?:u[0-9a-fA-F]{4}|u\{|x[0-9a-fA-F]{2}|/)|"[^"\\\n]*+\\[bfnrt"\\]')

_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", '"': '"', "'": "'", "\\": "\\"}

_TAG = re.compile(r"<[^<>]*>")

# As browsers read one: a value in quotation marks may hold the sign that ends a tag. What is never closed is one match
# to the end, so the time is linear.
_TAG_WITH_VALUES = re.compile(r"""<[/a-zA-Z](?:=\s*+(?:"[^"]*+"?|'[^']*+'?)|[^>])*+>?""")
_VALUE_WITH_SIGN = re.compile(r"""=\s*+["'][^"'<>]*[<>]""")

_DECODER = json.JSONDecoder()

_JSON_BLANKS = " \t\r\n\x1e"

_BETWEEN_VALUES = frozenset(_JSON_BLANKS + ",;\ufeff")

_AFTER_VALUES = " \t\r,;"

_JSON_BEGINS = frozenset('{["')

_JSON_ENDS = frozenset('}]"')


# Members that number or name a record. Where such a member says the same again, it is told once; it is joined like any
# other where it changes.
_PLUMBING = frozenset(
    [
        "created",
        "created_at",
        "event",
        "finish_reason",
        "id",
        "index",
        "item_id",
        "model",
        "object",
        "response_id",
        "role",
        "sequence_number",
        "service_tier",
        "system_fingerprint",
        "type",
    ]
)


MOST_RECORDS = 50_000
"""Events or lines of one body; more would take seconds to put together, in which nobody else is served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One event or line: what it holds, and how it is named."""

    value: Any
    name: str = ""


# ---------------------------------------------------------------- reading records


def read_events(text: str, *, strict: bool = True) -> dict[str, Any]:
    """What an event stream says, by the rules of the WHATWG; raises ``ValueError`` where readers would differ.

    ``strict`` is for a body that calls itself one: it holds nothing but fields.
    """
    if _OTHER_LINE_ENDS.search(text):
        # Many readers end lines here and drop what follows as an unknown field; for others it belongs to the text.
        raise ValueError("the event stream holds a line end that only some readers take for one")
    lines = [_split_field(line) for line in re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))]
    if strict and any(name and name not in _FIELDS for name, _ in lines):
        raise ValueError("the event stream holds a field other than event, data, id and retry")
    records = [Record(value=read_value("\n".join(data)), name=name) for name, data in _gather(lines) if data or name]
    data = [value for name, value in lines if name == "data"]
    # Readers that take no heed of the rules: each line for itself, blanks cut off.
    loose = ["".join(data), "".join(map(str.strip, data))] if len(data) > 1 else []
    found = summarise_records(records, loose)
    # Nobody shows these, and any script can.
    for key, kind in (("ids", "id"), ("comments", ""), ("retries", "retry")):
        said = [value for name, value in lines if name == kind and value]
        if said:
            found[key] = said if len(said) == 1 else ["".join(said), *said]
    return found


def _split_field(line: str) -> tuple[str | None, str]:
    """A line's field and value; ``None`` for the empty line that ends an event, an empty name for a comment."""
    name, _, value = line.partition(":")
    return name if line else None, value.removeprefix(" ")


def _gather(lines: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str, list[str]]]:
    """The events; also one that is not ended by an empty line, which only browsers drop."""
    event, data = "", list[str]()
    for name, value in [*lines, (None, "")]:
        if name == "data":
            data.append(value)
        elif name == "event":
            event = value
        elif name is None:
            yield event, data
            event, data = "", []


def read_lines(text: str) -> dict[str, Any]:
    """What JSON lines say; raises ``ValueError`` for a line that is not one JSON value."""
    return _read_each(text.removeprefix("\ufeff").split("\n"))


def read_sequence(text: str) -> dict[str, Any]:
    """What a JSON text sequence (RFC 7464) says; raises ``ValueError`` for a record that is not one JSON value."""
    return _read_each(text.removeprefix("\ufeff").split("\x1e"))


def _read_each(texts: list[str]) -> dict[str, Any]:
    return summarise_records([Record(value=read_json(item)) for item in texts if item.strip(_JSON_BLANKS)])


def find_records(text: str) -> dict[str, Any] | None:
    """What a text says that holds an event stream or JSON lines and does not say so; ``None`` where it holds neither.

    Raises ``ValueError`` where readers would differ. One record says nothing in pieces.
    """
    lines = [line for line in re.split("[\r\n]+", text.removeprefix("\ufeff")) if line]
    if sum(line.startswith("data") for line in lines) > 1:
        return {"text": text, **read_events(text, strict=False)}
    records = _find_values(text) or [item for line in lines if (item := _find_value(line)) is not None]
    return {"text": text, **summarise_records(records)} if len(records) > 1 else None


def _find_values(text: str) -> list[Record]:
    """The JSON values of a text that is several, one after another."""
    at, found = _skip(text, 0), list[str]()
    if text[at : at + 1] not in _JSON_BEGINS or nests_too_deeply(text, several=True):
        return []
    while at < len(text):
        try:
            _, end = _DECODER.raw_decode(text, at)
        except ValueError:
            return []
        found.append(text[at:end])
        at = _skip(text, end)
        if len(found) > MOST_RECORDS:
            break
    return [Record(value=read_json(item)) for item in found]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BETWEEN_VALUES:
        at += 1
    return at


def _find_value(line: str) -> Record | None:
    """The JSON value that a line ends in, after a short name as some libraries write it: ``0:"text"``."""
    found = line.strip().rstrip(_AFTER_VALUES)
    prefix = _PREFIX.match(found)
    start = prefix.end() if prefix else 0
    if found[start : start + 1] not in _JSON_BEGINS or found[-1] not in _JSON_ENDS:
        return None
    value = read_value(found[start:])
    # A text that is no JSON comes back as it is.
    return None if value == found[start:] else Record(value=value, name=found[:start].strip(" \t:=>"))


def read_value(text: str) -> Any:
    """A JSON object, list or text, or else the text itself; raises ``ValueError`` for JSON with two readings."""
    found = text.strip()
    if found[:1] not in _JSON_BEGINS:
        return text
    if nests_too_deeply(found):
        raise ValueError("it nests too deeply")
    try:
        json.loads(found)
    except ValueError:
        return text
    return read_json(found)


# ---------------------------------------------------------------- telling


def summarise_records(records: list[Record], loose: Iterable[str] = ()) -> dict[str, Any]:
    """What records say together, and each of them; raises ``ValueError`` for more of them than are read."""
    if len(records) > MOST_RECORDS:
        raise ValueError(f"there are more than {MOST_RECORDS:,} records")
    together = [_merge([item.value for item in group]) for group in _list_groups(records)]
    texts = [text for item in records for text in _list_texts(item.value)]
    if len(texts) > 1:
        # As one word, and as words of their own: a log is shown a line an event, and a pattern may cross two of them.
        together += ["".join(texts), " ".join(texts)]
    together += loose
    # Without those that say the same, which is nearly all of them where a stream has one kind of record.
    kept = list({json.dumps(item, sort_keys=True): item for item in together}.values())
    return {"together": kept, "records": [_show(item) for item in records]}


def _show(record: Record) -> Any:
    return {"event": record.name, "data": record.value} if record.name else record.value


def _list_groups(records: list[Record]) -> Iterator[list[Record]]:
    """All records, and those of one name, one number, or both: what a client that follows only some would join."""
    ways: list[Callable[[Record], Hashable]] = [
        lambda item: None,
        lambda item: item.name,
        lambda item: _number(item.value),
        lambda item: (item.name, _number(item.value)),
    ]
    for way in ways:
        groups: dict[Hashable, list[Record]] = {}
        for item in records:
            groups.setdefault(way(item), []).append(item)
        yield from (group for group in groups.values() if len(group) > 1)


def _number(value: Any) -> Hashable:
    """What numbers a record: ``index``, ``output_index``, ``item_id``, in the record or in its only choice."""
    if isinstance(value, list) and len(value) == 1:
        return _number(value[0])
    if not isinstance(value, dict):
        return ()
    own = [
        (name, item)
        for name, item in value.items()
        if isinstance(item, str | int) and (name == "type" or name.endswith(("index", "id")))
    ]
    inner = [_number(item) for item in value.values() if isinstance(item, list) and len(item) == 1]
    return (*own, *inner)


def _merge(values: list[Any], name: str = "") -> Any:
    """One value in the shape of all, in which each text is the texts at its place, one after another."""
    found: list[Any] = []
    if any(isinstance(item, str) for item in values):
        # With the numbers among them: a reader that writes them all out does not tell 4 from "4".
        pieces = [_render(item) for item in values if isinstance(item, str | int | float)]
        found.append("".join([key for key, _ in groupby(pieces)] if name in _PLUMBING else pieces))
    else:
        found += dict.fromkeys(item for item in values if isinstance(item, int | float))
    maps: dict[str, list[Any]] = {}
    lists: dict[Hashable, list[Any]] = {}
    for item in values:
        for key, inner in item.items() if isinstance(item, dict) else ():
            maps.setdefault(key, []).append(inner)
        for place, inner in enumerate(item) if isinstance(item, list) else ():
            lists.setdefault(_find_place(inner, place), []).append(inner)
    if maps:
        found.append({key: _merge(inner, key) for key, inner in maps.items()})
    if lists:
        found.append([_merge(inner) for inner in lists.values()])
    return found[0] if len(found) == 1 else found or None


def _find_place(value: Any, place: int) -> Hashable:
    """A choice or a tool call that has a number stands at it, wherever it stands in its own record."""
    number = value.get("index") if isinstance(value, dict) else None
    return ("index", number) if type(number) is int else place


def _list_texts(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _list_texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item, name)
    elif isinstance(value, str) and value and name not in _PLUMBING:
        yield value


def _render(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# ---------------------------------------------------------------- texts that are read before they are shown


def read_escapes(text: str) -> str:
    r"""A text as a program shows it that reads its escapes (``\u0073``): JSON behind a prefix, in a call, in prose."""
    if not _WORTH_READING.search(text):
        return text
    # Characters outside the first plane are written as two halves.
    return _ESCAPE.sub(_read_escape, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_escape(found: re.Match[str]) -> str:
    number = found.group(1) or found.group(2) or found.group(3)
    if number is None:
        return "" if found.group(4) else _SHORT.get(found.group(5), found.group())
    code = int(number, 16)
    return chr(code) if 0 < code <= 0x10FFFF else ""


def read_markup(text: str) -> list[str]:
    """The text of HTML, XML or Markdown as it is shown: without comments and tags, character references read.

    More than one where readers would differ about where a tag ends.
    """
    said = _drop_comments(text)
    tags = [_TAG, _TAG_WITH_VALUES] if _VALUE_WITH_SIGN.search(said) else [_TAG]
    return list(dict.fromkeys(html.unescape(tag.sub("", said)) for tag in tags))


def _drop_comments(text: str) -> str:
    kept, at = list[str](), 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return "".join(kept) + text[at:]
