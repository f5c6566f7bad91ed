"""The content of an HTTP body, read so that the gate and the application behind it cannot read two different things."""

from __future__ import annotations

import json
from collections.abc import Iterable

from adjudge.errors import AdjudgeError
from adjudge.rules._json import read_json

Headers = Iterable[tuple[bytes, bytes]]

_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}


class UnreadableBodyError(AdjudgeError):
    """A body that cannot be judged; ``status`` is what a client is answered."""

    def __init__(self, message: str, *, status: int = 415) -> None:
        super().__init__(message)
        self.status = status


def read_body(raw: bytes, headers: Headers, *, largest: int) -> object:
    """The content of a JSON or text body: the JSON value, or the text. Raises ``UnreadableBodyError``.

    Text that is JSON is read as JSON: many frameworks parse a body whatever it calls itself, and a character that is
    written as an escape must not hide from a rule what the application will see.
    """
    if len(raw) > largest:
        raise UnreadableBodyError(f"the body is larger than {largest:,} bytes", status=413)
    kind, charset = _read_kind(headers)
    is_json = kind == "application/json" or kind.endswith("+json")
    if not is_json and not kind.startswith("text/"):
        raise UnreadableBodyError("the body is neither JSON nor text")
    if charset not in _CHARSETS:
        raise UnreadableBodyError("the body is in a charset other than UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableBodyError(f"the body is not UTF-8 (byte {error.start})") from None
    if not is_json and not _holds_json(text):
        return text
    try:
        return read_json(text if is_json else text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        raise UnreadableBodyError("the body is not one JSON value that every reader reads alike", status=400) from None


def _read_kind(headers: Headers) -> tuple[str, str]:
    """The media type and the charset; what is ambiguous, or packed, is refused."""
    listed = [(name.lower(), value.decode("latin-1").strip().lower()) for name, value in headers]
    packed = [value for name, value in listed if name == b"content-encoding" and value not in {"", "identity"}]
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
