"""Base64 in the arguments of a call: bytes that nobody can read on a page, described."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Mapping

_LEAST = 256
"""Characters; a shorter text is shown as it is."""

_BASE64 = re.compile(r"(?:data:([\w.+/-]{1,100})?(?:;[\w=.-]{1,100})*;base64,)?([A-Za-z0-9+/_-]+={0,2})", re.ASCII)

_NAMES = re.compile(r"base64|b64|bytes|blob|binary|data|image|attachment", re.IGNORECASE)

_BEGINNINGS: Mapping[bytes, str] = {
    b"%PDF-": "a PDF file",
    b"\x89PNG\r\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"PK\x03\x04": "a ZIP archive, as documents of Office are, too",
    b"\x1f\x8b": "a gzip archive",
    b"MZ": "a program for Windows",
    b"\x7fELF": "a program for Linux",
    b"\xca\xfe\xba\xbe": "a program for macOS or Java",
    b"SQLite format 3": "an SQLite database",
}

_SHOWN = 48


def decode_bytes(name: str, text: str) -> bytes | None:
    """Return the bytes of a text that is base64; ``None`` for one that is not, or that could be a word or a path.

    Of a name that does not say so, only what uses figures, small and large letters at once is taken for base64.
    """
    packed = "".join(text.split("\n")) if "\n" in text else text
    if len(packed) < _LEAST or not (match := _BASE64.fullmatch(packed)):
        return None
    body = match[2]
    begins = body[:_LEAST]
    is_mixed = all(re.search(kind, begins) for kind in (r"[A-Z]", r"[a-z]", r"[0-9]"))
    if not (is_mixed or _NAMES.search(name) or packed.startswith("data:")) or len(body) % 4 == 1:
        return None
    padded = body.rstrip("=") + "=" * (-len(body.rstrip("=")) % 4)
    try:
        return urlsafe_b64decode(padded) if "-" in body or "_" in body else b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        return None


def name_beginning(raw: bytes) -> str:
    """Name the sort of file whose beginning some bytes have; empty where it is none of those known here."""
    return next((sort for begin, sort in _BEGINNINGS.items() if raw.startswith(begin)), "")


def list_figures(raw: bytes) -> tuple[str, ...]:
    """List the first bytes in hexadecimal figures, eight in a line, with the letters that they are."""
    return tuple(
        f"{place:04x}  {raw[place : place + 8].hex(' '):<23}  {_draw(raw[place : place + 8])}"
        for place in range(0, min(_SHOWN, len(raw)), 8)
    )


def _draw(raw: bytes) -> str:
    return "".join(chr(code) if 32 <= code < 127 else "·" for code in raw)


def read_as_text(raw: bytes) -> str | None:
    """Return what some bytes say where they are a text; ``None`` where they are none."""
    try:
        text = raw.decode("utf-16-le" if raw[1:2] == b"\0" and raw[3:4] == b"\0" else "utf-8")
    except UnicodeDecodeError:
        return None
    return None if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text) else text
