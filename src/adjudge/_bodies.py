"""The content of an HTTP body, read so that the gate and the application behind it cannot read two different things."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from adjudge._streams import find_records, read_escapes, read_events, read_lines, read_markup, read_sequence
from adjudge.errors import AdjudgeError
from adjudge.rules._json import read_json

Headers = Iterable[tuple[bytes, bytes]]

_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}
_PLAIN_CODINGS = {b"content-encoding": {"", "identity"}, b"transfer-encoding": {"", "identity", "chunked"}}

_PARTIAL = {b"content-range", b"upload-offset", b"upload-complete", b"upload-incomplete"}
"""The first says which bytes of a whole these are; the others belong to uploads that are taken up again."""
_ASKS_FOR_PARTS = {b"range", b"if-range", b"request-range", b"a-im"}

_LINES = {
    f"application/{prefix}{name}" for prefix in ("", "x-") for name in ("ndjson", "jsonl", "jsonlines", "ldjson")
} | {"application/stream+json", "application/x-json-stream", "text/x-ndjson", "text/ndjson", "text/jsonl"}
_MARKUP = {"text/html", "text/xml", "text/markdown", "text/x-markdown"}
_NOT_PLAIN = {
    f"text/{name}"
    for name in (
        *("calendar", "css", "directory", "enriched", "parameters", "richtext", "rtf", "vcard", "x-vcard"),
        *("vnd.yaml", "x-yaml", "yaml"),
    )
}
"""Text whose own rules fold, escape or split what it says."""
_PROGRAM = re.compile(r"(?:java|ecma|j|live|type|vb)script")
"""A program says what it says when it runs; JSONP is one."""
_SHIFTS = re.compile(r"\x1b[($%\-./]")


class UnreadableBodyError(AdjudgeError):
    """A body that cannot be judged; ``status`` is what a client is answered."""

    def __init__(self, message: str, *, status: int = 415) -> None:
        super().__init__(message)
        self.status = status


def check_whole_request(headers: Headers) -> None:
    """Raise ``UnreadableBodyError`` for a body that says it is a part: whoever joins the parts was never judged."""
    _refuse_parts(headers, _PARTIAL)


def check_whole_response(status: object, headers: Headers) -> None:
    """Raise ``UnreadableBodyError`` for an answer that is a part: a client would choose what a gate sees together."""
    # 226 sends the difference to what the client has already; before 200 there is no answer yet.
    if not isinstance(status, int) or status < 200 or status in {206, 226}:
        raise UnreadableBodyError(f"a response with status {status} is not the whole")
    _refuse_parts(headers, {b"content-range"})


def _refuse_parts(headers: Headers, known: set[bytes]) -> None:
    partial = sorted(name.decode("latin-1") for name in known & {name.lower().strip() for name, _ in headers})
    if partial:
        raise UnreadableBodyError(f"the body is a part of something: it has {partial[0]}", status=400)


def drop_ranges(headers: Headers) -> list[tuple[bytes, bytes]]:
    """A request's headers without those that ask for a part; a server may always answer with the whole."""
    return [(name, value) for name, value in headers if name.lower().strip() not in _ASKS_FOR_PARTS]


def read_body(raw: bytes, headers: Headers, *, largest: int) -> object:
    """The content of a JSON or text body: the JSON value, the text, or what its records say.

    Raises ``UnreadableBodyError``. Text that is JSON is read as JSON: many frameworks parse a body whatever it calls
    itself, and a character that is written as an escape must not hide from a rule what the application will see.
    """
    if len(raw) > largest:
        raise UnreadableBodyError(f"the body is larger than {largest:,} bytes", status=413)
    kind, charset = _read_kind(headers)
    read = _choose_reader(kind)
    if charset not in _CHARSETS:
        raise UnreadableBodyError("the body is in a charset other than UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableBodyError(f"the body is not UTF-8 (byte {error.start})") from None
    if _SHIFTS.search(text):
        raise UnreadableBodyError("the body holds escapes of ISO-2022, which some readers take for a charset")
    try:
        return read(text)
    except (ValueError, RecursionError):
        raise UnreadableBodyError(_UNREADABLE.get(read, _TWO_READINGS), status=400) from None


def _choose_reader(kind: str) -> Callable[[str], object]:
    if kind in _LINES:
        return read_lines
    if kind == "application/json-seq" or kind.endswith("+json-seq"):
        return read_sequence
    if kind == "application/json" or kind.endswith("+json"):
        return read_json
    if kind == "text/event-stream":
        return read_events
    if not kind.startswith("text/"):
        raise UnreadableBodyError("the body is neither JSON nor text")
    if kind in _NOT_PLAIN or _PROGRAM.search(kind):
        raise UnreadableBodyError(f"{kind} can say a thing in pieces that a gate does not put together")
    return _read_markup if kind in _MARKUP else _read_text


def _read_text(text: str) -> object:
    if _holds_json(text):
        return read_json(text.lstrip("\ufeff"))
    records = find_records(text)
    said = read_escapes(text)
    if records is None and said == text:
        return text
    # As it is, and as a program shows it that reads it: a rule that refuses looks at both.
    return {**({"text": text} if records is None else records), **({} if said == text else {"read": said})}


def _read_markup(text: str) -> object:
    found, shown = _read_text(text), read_markup(text)
    if shown == [text]:
        return found
    if "<!entity" in text.lower():
        raise ValueError("it defines entities of its own")
    return {
        **(found if isinstance(found, dict) and "text" in found else {"text": found}),
        "shown": shown[0] if len(shown) == 1 else shown,
    }


def _read_kind(headers: Headers) -> tuple[str, str]:
    """The media type and the charset; what is ambiguous, or packed, is refused."""
    listed = [(name.lower().strip(), value.decode("latin-1").strip().lower()) for name, value in headers]
    packed = [
        value
        for name, value in listed
        if name in {b"content-encoding", b"transfer-encoding"} and value not in _PLAIN_CODINGS[name]
    ]
    if packed:
        raise UnreadableBodyError("the body is compressed; put the gate where it is not")
    kinds = [value for name, value in listed if name == b"content-type"]
    if len(kinds) != 1 or "," in kinds[0]:  # some servers join two headers by a comma
        raise UnreadableBodyError("the body has no content type" if not kinds else "the body has two content types")
    kind, *parameters = [part.strip() for part in kinds[0].split(";")]
    charsets = [part.partition("=")[2].strip("\"' ") for part in parameters if part.startswith("charset")]
    return kind, charsets[0] if len(charsets) == 1 else "utf-8" if not charsets else "two"


def _holds_json(text: str) -> bool:
    # More than JSON's own blanks: a framework that strips what it is about to parse strips these as well. What is then
    # no JSON to the strict reader is blocked.
    found = text.replace("\ufeff", " ").strip()
    if found[:1] not in {"{", "[", '"'}:
        return False
    try:
        json.loads(found)
    except RecursionError:
        return True  # the strict reader says that it is nested too deeply
    except ValueError:
        return False
    return True


_TWO_READINGS = "the body is not one JSON value that every reader reads alike"
_UNREADABLE: dict[Callable[[str], object], str] = {
    read_lines: "the body is not lines of one JSON value each, read alike by every reader",
    read_sequence: "the body is not a sequence of JSON values that every reader reads alike",
    read_events: "the body is not an event stream that every reader reads alike",
}
