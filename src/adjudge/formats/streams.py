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
    """Read an event stream, by the rules of the WHATWG; raises ``ValueError`` where readers would differ.

    ``strict`` is for a body that calls itself one: it holds nothing but fields.
    """
    if _OTHER_LINE_ENDS.search(text):
        # Many readers end lines here and drop what follows as an unknown field; for others it belongs to the text.
        raise ValueError("the event stream holds a line end that only some readers take for one")
    lines = [_split_field(line) for line in re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))]
    if strict and any(name and name not in _FIELDS for name, _ in lines):
        raise ValueError("the event stream holds a field other than event, data, id and retry")
    records = [
        Record(value=read_value("\n".join(pieces)), name=name) for name, pieces in _list_events(lines) if pieces or name
    ]
    data_lines = [value for name, value in lines if name == "data"]
    # Readers that take no heed of the rules: each line for itself, blanks cut off.
    loose = ["".join(data_lines), "".join(map(str.strip, data_lines))] if len(data_lines) > 1 else []
    members = summarise_records(records, loose)
    # Nobody shows these, and any script can.
    for key, kind in (("ids", "id"), ("comments", ""), ("retries", "retry")):
        values = [value for name, value in lines if name == kind and value]
        if values:
            members[key] = values if len(values) == 1 else ["".join(values), *values]
    return members


def _split_field(line: str) -> tuple[str | None, str]:
    """Split a line into field and value; ``None`` for the empty line that ends an event, an empty one for a comment."""
    name, _, value = line.partition(":")
    return name if line else None, value.removeprefix(" ")


def _list_events(lines: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str, list[str]]]:
    """List the events; also one that is not ended by an empty line, which only browsers drop."""
    event, pieces = "", list[str]()
    for name, value in [*lines, (None, "")]:
        if name == "data":
            pieces.append(value)
        elif name == "event":
            event = value
        elif name is None:
            yield event, pieces
            event, pieces = "", []


def read_lines(text: str) -> dict[str, Any]:
    """Read JSON lines; raises ``ValueError`` for a line that is not one JSON value."""
    return _read_each(text.removeprefix("\ufeff").split("\n"))


def read_sequence(text: str) -> dict[str, Any]:
    """Read a JSON text sequence (RFC 7464); raises ``ValueError`` for a record that is not one JSON value."""
    return _read_each(text.removeprefix("\ufeff").split("\x1e"))


def _read_each(texts: list[str]) -> dict[str, Any]:
    return summarise_records([Record(value=read_json(text)) for text in texts if text.strip(_JSON_BLANKS)])


def find_records(text: str) -> dict[str, Any] | None:
    """Find the records in a text that holds an event stream or JSON lines unannounced; ``None`` where it holds neither.

    Raises ``ValueError`` where readers would differ. One record says nothing in pieces.
    """
    lines = [line for line in re.split("[\r\n]+", text.removeprefix("\ufeff")) if line]
    if sum(line.startswith("data") for line in lines) > 1:
        return {"text": text, **read_events(text, strict=False)}
    records = _find_values(text) or [record for line in lines if (record := _find_value(line)) is not None]
    return {"text": text, **summarise_records(records)} if len(records) > 1 else None


def _find_values(text: str) -> list[Record]:
    """Find the JSON values of a text that is several, one after another."""
    at, pieces = _skip_blanks(text, 0), list[str]()
    if text[at : at + 1] not in _JSON_BEGINS or nests_too_deeply(text, several=True):
        return []
    while at < len(text):
        try:
            _, end = _DECODER.raw_decode(text, at)
        except ValueError:
            return []
        pieces.append(text[at:end])
        at = _skip_blanks(text, end)
        if len(pieces) > MOST_RECORDS:
            break
    return [Record(value=read_json(piece)) for piece in pieces]


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BETWEEN_VALUES:
        at += 1
    return at


def _find_value(line: str) -> Record | None:
    """Find the JSON value that a line ends in, after a short name as some libraries write it: ``0:"text"``."""
    stripped = line.strip().rstrip(_AFTER_VALUES)
    prefix = _PREFIX.match(stripped)
    start = prefix.end() if prefix else 0
    if stripped[start : start + 1] not in _JSON_BEGINS or stripped[-1] not in _JSON_ENDS:
        return None
    value = read_value(stripped[start:])
    # A text that is no JSON comes back as it is.
    return None if value == stripped[start:] else Record(value=value, name=stripped[:start].strip(" \t:=>"))


def read_value(text: str) -> Any:
    """Read a JSON object, list or text, or else the text itself; raises ``ValueError`` for JSON with two readings."""
    stripped = text.strip()
    if stripped[:1] not in _JSON_BEGINS:
        return text
    if nests_too_deeply(stripped):
        raise ValueError("it nests too deeply")
    try:
        json.loads(stripped)
    except ValueError:
        return text
    return read_json(stripped)


# ---------------------------------------------------------------- telling


def summarise_records(records: list[Record], loose: Iterable[str] = ()) -> dict[str, Any]:
    """Summarise what records say together, and each of them; raises ``ValueError`` for more than are read."""
    if len(records) > MOST_RECORDS:
        raise ValueError(f"there are more than {MOST_RECORDS:,} records")
    together = [_merge_values([record.value for record in group]) for group in _list_groups(records)]
    texts = [text for record in records for text in _list_texts(record.value)]
    if len(texts) > 1:
        # As one word, and as words of their own: a log is shown a line an event, and a pattern may cross two of them.
        together += ["".join(texts), " ".join(texts)]
    together += loose
    # Without those that say the same, which is nearly all of them where a stream has one kind of record.
    distinct = list({json.dumps(part, sort_keys=True): part for part in together}.values())
    return {"together": distinct, "records": [_describe_record(record) for record in records]}


def _describe_record(record: Record) -> Any:
    return {"event": record.name, "data": record.value} if record.name else record.value


def _list_groups(records: list[Record]) -> Iterator[list[Record]]:
    """List the records in each way in which a client may join them: all, those of one name, of one number, of both."""
    keys: list[Callable[[Record], Hashable]] = [
        lambda record: None,
        lambda record: record.name,
        lambda record: _find_number(record.value),
        lambda record: (record.name, _find_number(record.value)),
    ]
    for find_key in keys:
        groups: dict[Hashable, list[Record]] = {}
        for record in records:
            groups.setdefault(find_key(record), []).append(record)
        yield from (group for group in groups.values() if len(group) > 1)


def _find_number(value: Any) -> Hashable:
    """Find what numbers a record: ``index``, ``output_index``, ``item_id``, in the record or in its only choice."""
    if isinstance(value, list) and len(value) == 1:
        return _find_number(value[0])
    if not isinstance(value, dict):
        return ()
    numbers = [
        (name, member)
        for name, member in value.items()
        if isinstance(member, str | int) and (name == "type" or name.endswith(("index", "id")))
    ]
    inner = [_find_number(member) for member in value.values() if isinstance(member, list) and len(member) == 1]
    return (*numbers, *inner)


def _merge_values(values: list[Any], name: str = "") -> Any:
    """Merge values into one in the shape of all, in which each text is the texts at its place, one after another."""
    merged: list[Any] = []
    if any(isinstance(value, str) for value in values):
        # With the numbers among them: a reader that writes them all out does not tell 4 from "4".
        pieces = [_render_text(value) for value in values if isinstance(value, str | int | float)]
        merged.append("".join([key for key, _ in groupby(pieces)] if name in _PLUMBING else pieces))
    else:
        merged += dict.fromkeys(value for value in values if isinstance(value, int | float))
    maps: dict[str, list[Any]] = {}
    lists: dict[Hashable, list[Any]] = {}
    for value in values:
        for key, inner in value.items() if isinstance(value, dict) else ():
            maps.setdefault(key, []).append(inner)
        for place, inner in enumerate(value) if isinstance(value, list) else ():
            lists.setdefault(_find_place(inner, place), []).append(inner)
    if maps:
        merged.append({key: _merge_values(inner, key) for key, inner in maps.items()})
    if lists:
        merged.append([_merge_values(inner) for inner in lists.values()])
    return merged[0] if len(merged) == 1 else merged or None


def _find_place(value: Any, place: int) -> Hashable:
    """Find the place of a value: a choice or a tool call with a number stands at it, wherever it is in its record."""
    number = value.get("index") if isinstance(value, dict) else None
    return ("index", number) if type(number) is int else place


def _list_texts(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in a value, at any depth, except empty ones and those of members in ``_PLUMBING``."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _list_texts(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from _list_texts(member, name)
    elif isinstance(value, str) and value and name not in _PLUMBING:
        yield value


def _render_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# ---------------------------------------------------------------- texts that are read before they are shown


def read_escapes(text: str) -> str:
    r"""Read a text's escapes (``\u0073``), as some programs do: JSON behind a prefix, in a call, in prose."""
    if not _WORTH_READING.search(text):
        return text
    # Characters outside the first plane are written as two halves.
    return _ESCAPE.sub(_read_escape, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_escape(match: re.Match[str]) -> str:
    number = match.group(1) or match.group(2) or match.group(3)
    if number is None:
        return "" if match.group(4) else _SHORT.get(match.group(5), match.group())
    code = int(number, 16)
    return chr(code) if 0 < code <= 0x10FFFF else ""


def read_markup(text: str) -> list[str]:
    """Read the text of HTML, XML or Markdown as it is shown: without comments and tags, character references read.

    More than one where readers would differ about where a tag ends.
    """
    content = _drop_comments(text)
    tags = [_TAG, _TAG_WITH_VALUES] if _VALUE_WITH_SIGN.search(content) else [_TAG]
    return list(dict.fromkeys(html.unescape(tag.sub("", content)) for tag in tags))


def _drop_comments(text: str) -> str:
    pieces, at = list[str](), 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces.append(text[at:start])
        at = end + 3
    return "".join(pieces) + text[at:]
