"""Readers of bodies that come in pieces: event streams, JSON lines, texts with escapes, markup.

A client joins the pieces, so a gate must see the joined text as well as each piece. Clients join in different ways, so
the result has every usual way: the texts at the same place of all records, of records of one name or one number, and
all texts in order.
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

_EVENT_FIELDS = {"data", "event", "id", "retry"}

_PREFIX = re.compile(r"[^{\[\"]{0,20}")

_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|(\n)|(.))", re.DOTALL)

_HAS_ESCAPES = re.compile(r'\\(?:u[0-9a-fA-F]{4}|u\{|x[0-9a-fA-F]{2}|/)|"[^"\\\n]*+\\[bfnrt"\\]')

_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", '"': '"', "'": "'", "\\": "\\"}

_TAG = re.compile(r"<[^<>]*>")

# A tag as browsers read it: a quoted attribute value may contain ">". A tag that is never closed matches to the end of
# the text, so the time is linear.
_TAG_WITH_VALUES = re.compile(r"""<[/a-zA-Z](?:=\s*+(?:"[^"]*+"?|'[^']*+'?)|[^>])*+>?""")
_VALUE_WITH_SIGN = re.compile(r"""=\s*+["'][^"'<>]*[<>]""")

_DECODER = json.JSONDecoder()

_JSON_BLANKS = " \t\r\n\x1e"

_BETWEEN_VALUES = frozenset(_JSON_BLANKS + ",;\ufeff")

_AFTER_VALUES = " \t\r,;"

_JSON_STARTS = frozenset('{["')

_JSON_ENDS = frozenset('}]"')


# Members that number or name a record. A value that repeats in the next record is written once; other values are joined
# as those of other members are.
_METADATA_MEMBERS = frozenset(
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
"""The most events or lines of one body: joining more would take seconds, in which the server answers nobody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One event or line: its value, and its name."""

    value: Any
    name: str = ""
    """The ``event`` field of an event, or the prefix of a line; empty without one."""


# ---------------------------------------------------------------- reading records


def read_events(text: str, *, strict: bool = True) -> dict[str, Any]:
    """Read an event stream, by the rules of the WHATWG; raises ``ValueError`` where readers would differ.

    ``strict`` is for a body that is declared as an event stream, and refuses fields that no event stream has.
    """
    if _OTHER_LINE_ENDS.search(text):
        # Many readers end lines here and drop what follows as an unknown field; for others it belongs to the text.
        raise ValueError("the event stream holds a line end that only some readers take for one")
    lines = [_split_field(line) for line in re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))]
    if strict and any(name and name not in _EVENT_FIELDS for name, _ in lines):
        raise ValueError("the event stream holds a field other than event, data, id and retry")
    records = [
        Record(value=read_value("\n".join(pieces)), name=name) for name, pieces in _list_events(lines) if pieces or name
    ]
    data_lines = [value for name, value in lines if name == "data"]
    # Some readers ignore events and join the data lines, as they are or without the blanks around them.
    joined_lines = ["".join(data_lines), "".join(map(str.strip, data_lines))] if len(data_lines) > 1 else []
    members = summarise_records(records, joined_lines)
    # No client shows these fields by itself, but a script in one can.
    for key, field in (("ids", "id"), ("comments", ""), ("retries", "retry")):
        values = [value for name, value in lines if name == field and value]
        if values:
            members[key] = values if len(values) == 1 else ["".join(values), *values]
    return members


def _split_field(line: str) -> tuple[str | None, str]:
    """Split a line into the name of its field and the value.

    The name is ``None`` for the empty line that ends an event, and empty for a comment.
    """
    name, _, value = line.partition(":")
    return name if line else None, value.removeprefix(" ")


def _list_events(lines: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the data lines of each event; also of a last event without an empty line after it.

    Browsers drop such an event, and other readers do not.
    """
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
    return _read_json_records(text.removeprefix("\ufeff").split("\n"))


def read_sequence(text: str) -> dict[str, Any]:
    """Read a JSON text sequence (RFC 7464); raises ``ValueError`` for a record that is not one JSON value."""
    return _read_json_records(text.removeprefix("\ufeff").split("\x1e"))


def _read_json_records(texts: list[str]) -> dict[str, Any]:
    """Read each text that is not blank as JSON, and summarise the values."""
    return summarise_records([Record(value=read_json(text)) for text in texts if text.strip(_JSON_BLANKS)])


def find_records(text: str) -> dict[str, Any] | None:
    """Find the records in a text that is an event stream or JSON lines and is not declared so; ``None`` for others.

    A single record is not joined with anything, so ``None`` is returned for one too. Raises ``ValueError`` where
    readers would differ.
    """
    lines = [line for line in re.split("[\r\n]+", text.removeprefix("\ufeff")) if line]
    if sum(line.startswith("data") for line in lines) > 1:
        return {"text": text, **read_events(text, strict=False)}
    records = _find_json_values(text)
    if not records:
        records = [record for line in lines if (record := _find_value_at_end(line)) is not None]
    return {"text": text, **summarise_records(records)} if len(records) > 1 else None


def _find_json_values(text: str) -> list[Record]:
    """Find the values of a text that is several JSON values, one after another; none for any other text."""
    position, pieces = _skip_blanks(text, 0), list[str]()
    if text[position : position + 1] not in _JSON_STARTS or nests_too_deeply(text, several=True):
        return []
    while position < len(text):
        try:
            _, end = _DECODER.raw_decode(text, position)
        except ValueError:
            return []
        pieces.append(text[position:end])
        position = _skip_blanks(text, end)
        if len(pieces) > MOST_RECORDS:
            break
    return [Record(value=read_json(piece)) for piece in pieces]


def _skip_blanks(text: str, position: int) -> int:
    """Return the position of the next character that is no blank, comma or semicolon."""
    while position < len(text) and text[position] in _BETWEEN_VALUES:
        position += 1
    return position


def _find_value_at_end(line: str) -> Record | None:
    """Find the JSON value that a line ends in, after a short name as some libraries write it: ``0:"text"``."""
    stripped = line.strip().rstrip(_AFTER_VALUES)
    prefix = _PREFIX.match(stripped)
    start = prefix.end() if prefix else 0
    if stripped[start : start + 1] not in _JSON_STARTS or stripped[-1] not in _JSON_ENDS:
        return None
    value = read_value(stripped[start:])
    # ``read_value`` returns a text that is not JSON as it is.
    return None if value == stripped[start:] else Record(value=value, name=stripped[:start].strip(" \t:=>"))


def read_value(text: str) -> Any:
    """Read a JSON object, list or text, or else the text itself; raises ``ValueError`` for JSON with two readings."""
    stripped = text.strip()
    if stripped[:1] not in _JSON_STARTS:
        return text
    if nests_too_deeply(stripped):
        raise ValueError("it nests too deeply")
    try:
        json.loads(stripped)
    except ValueError:
        return text
    return read_json(stripped)


# ---------------------------------------------------------------- joining records


def summarise_records(records: list[Record], loose: Iterable[str] = ()) -> dict[str, Any]:
    """Return the records, and under ``together`` their values and texts joined in each usual way.

    ``loose`` are further joined texts. Raises ``ValueError`` for more than ``MOST_RECORDS`` records.
    """
    if len(records) > MOST_RECORDS:
        raise ValueError(f"there are more than {MOST_RECORDS:,} records")
    together = [_merge_values([record.value for record in group]) for group in _list_record_groups(records)]
    texts = [text for record in records for text in _list_texts(record.value)]
    if len(texts) > 1:
        # Joined with and without a blank, because a rule's pattern may match across two events in either form.
        together += ["".join(texts), " ".join(texts)]
    together += loose
    # Where a stream has one kind of record, nearly all ways of joining give the same value, which is kept once.
    distinct = list({json.dumps(joined, sort_keys=True): joined for joined in together}.values())
    return {"together": distinct, "records": [_describe_record(record) for record in records]}


def _describe_record(record: Record) -> Any:
    """Return the record's value, with its name if it has one."""
    return {"event": record.name, "data": record.value} if record.name else record.value


def _list_record_groups(records: list[Record]) -> Iterator[list[Record]]:
    """Yield each group of two or more records that a client may join: all, of one name, of one number, of both."""
    keys: list[Callable[[Record], Hashable]] = [
        lambda record: None,
        lambda record: record.name,
        lambda record: _find_record_key(record.value),
        lambda record: (record.name, _find_record_key(record.value)),
    ]
    for find_key in keys:
        groups: dict[Hashable, list[Record]] = {}
        for record in records:
            groups.setdefault(find_key(record), []).append(record)
        yield from (group for group in groups.values() if len(group) > 1)


def _find_record_key(value: Any) -> Hashable:
    """Return the members that number a record, such as ``index``, ``output_index`` and ``item_id``.

    Also those inside lists of one value, such as the only choice of a chat completion.
    """
    if isinstance(value, list) and len(value) == 1:
        return _find_record_key(value[0])
    if not isinstance(value, dict):
        return ()
    numbers = [
        (name, member)
        for name, member in value.items()
        if isinstance(member, str | int) and (name == "type" or name.endswith(("index", "id")))
    ]
    inner = [_find_record_key(member) for member in value.values() if isinstance(member, list) and len(member) == 1]
    return (*numbers, *inner)


def _merge_values(values: list[Any], name: str = "") -> Any:
    """Merge values into one that has the members of all; texts at the same place are joined in order.

    ``name`` is the member that has the values. Values of several types become a list.
    """
    merged: list[Any] = []
    if any(isinstance(value, str) for value in values):
        # Numbers are joined too: a client that writes both out does not distinguish 4 from "4".
        pieces = [_write_piece(value) for value in values if isinstance(value, str | int | float)]
        if name in _METADATA_MEMBERS:
            pieces = [piece for piece, _ in groupby(pieces)]  # a value that is repeated right after itself counts once
        merged.append("".join(pieces))
    else:
        merged += dict.fromkeys(value for value in values if isinstance(value, int | float))
    maps: dict[str, list[Any]] = {}
    lists: dict[Hashable, list[Any]] = {}
    for value in values:
        for key, inner in value.items() if isinstance(value, dict) else ():
            maps.setdefault(key, []).append(inner)
        for index, inner in enumerate(value) if isinstance(value, list) else ():
            lists.setdefault(_find_list_slot(inner, index), []).append(inner)
    if maps:
        merged.append({key: _merge_values(inner, key) for key, inner in maps.items()})
    if lists:
        merged.append([_merge_values(inner) for inner in lists.values()])
    return merged[0] if len(merged) == 1 else merged or None


def _find_list_slot(value: Any, position: int) -> Hashable:
    """Return the key under which items of several lists are merged: an item's ``index`` member, or else its position.

    A record of a stream may have only the third choice or tool call, as the first item of its list.
    """
    number = value.get("index") if isinstance(value, dict) else None
    return ("index", number) if type(number) is int else position


def _list_texts(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in a value, at any depth, except empty ones and those of members in ``_METADATA_MEMBERS``."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _list_texts(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from _list_texts(member, name)
    elif isinstance(value, str) and value and name not in _METADATA_MEMBERS:
        yield value


def _write_piece(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# ---------------------------------------------------------------- escapes and markup


def read_escapes(text: str) -> str:
    r"""Read a text's escapes (``\u0073``), as some programs do: JSON behind a prefix, in a call, in prose."""
    if not _HAS_ESCAPES.search(text):
        return text
    # A character outside the first plane is written as two escapes; encoding and decoding joins its two halves.
    return _ESCAPE.sub(_read_escape, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_escape(match: re.Match[str]) -> str:
    """Return the character of one escape; nothing for an escaped line end, or a number that is no character."""
    number = match.group(1) or match.group(2) or match.group(3)
    if number is None:
        return "" if match.group(4) else _SHORT_ESCAPES.get(match.group(5), match.group())
    code = int(number, 16)
    return chr(code) if 0 < code <= 0x10FFFF else ""


def read_markup(text: str) -> list[str]:
    """Read the text of HTML, XML or Markdown as it is shown: without comments and tags, character references read.

    Returns several texts if readers would differ about where a tag ends.
    """
    content = _drop_comments(text)
    tags = [_TAG, _TAG_WITH_VALUES] if _VALUE_WITH_SIGN.search(content) else [_TAG]
    return list(dict.fromkeys(html.unescape(tag.sub("", content)) for tag in tags))


def _drop_comments(text: str) -> str:
    """Drop the comments of HTML from a text; one that is not closed stays."""
    pieces, position = list[str](), 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces.append(text[position:start])
        position = end + 3
    return "".join(pieces) + text[position:]
