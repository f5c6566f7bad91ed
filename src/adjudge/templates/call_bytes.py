"""Base64 in the arguments of a tool call: decoding it, and describing its bytes, which nobody can read as they are."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Mapping

_SHORTEST_BASE64 = 256
"""Characters; a shorter text is shown as it is."""

_BASE64 = re.compile(r"(?:data:([\w.+/-]{1,100})?(?:;[\w=.-]{1,100})*;base64,)?([A-Za-z0-9+/_-]+={0,2})", re.ASCII)

_BYTES_NAMES = re.compile(r"base64|b64|bytes|blob|binary|data|image|attachment", re.IGNORECASE)

_FILE_SIGNATURES: Mapping[bytes, str] = {
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

_SHOWN_BYTES = 48


def decode_bytes(name: str, text: str) -> bytes | None:
    """Decode the text of an argument if it is base64; ``None`` if it is not, or could be a word or a path.

    If neither the argument's ``name`` nor ``data:`` says that it is base64, it has to hold digits, lower-case and
    upper-case letters.
    """
    joined = "".join(text.split("\n")) if "\n" in text else text
    match = _BASE64.fullmatch(joined) if len(joined) >= _SHORTEST_BASE64 else None
    if match is None:
        return None
    body = match[2]
    beginning = body[:_SHORTEST_BASE64]
    is_mixed = all(re.search(letters, beginning) for letters in (r"[A-Z]", r"[a-z]", r"[0-9]"))
    is_declared = _BYTES_NAMES.search(name) is not None or joined.startswith("data:")
    has_impossible_length = len(body) % 4 == 1
    if not (is_mixed or is_declared) or has_impossible_length:
        return None
    unpadded = body.rstrip("=")
    padded = unpadded + "=" * (-len(unpadded) % 4)
    try:
        return urlsafe_b64decode(padded) if "-" in body or "_" in body else b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        return None


def name_file_type(raw: bytes) -> str:
    """Name the type of file that some bytes are, by how they begin; empty for a type that is not known here."""
    return next((file_type for begin, file_type in _FILE_SIGNATURES.items() if raw.startswith(begin)), "")


def list_hex_lines(raw: bytes) -> tuple[str, ...]:
    """List the first bytes as lines of a hex dump: the offset, eight bytes in hexadecimal, and their ASCII letters."""
    return tuple(
        f"{offset:04x}  {raw[offset : offset + 8].hex(' '):<23}  {_write_printable(raw[offset : offset + 8])}"
        for offset in range(0, min(_SHOWN_BYTES, len(raw)), 8)
    )


def _write_printable(raw: bytes) -> str:
    """Write bytes as ASCII, with a dot for each that is not printable."""
    return "".join(chr(code) if 32 <= code < 127 else "·" for code in raw)


def read_as_text(raw: bytes) -> str | None:
    """Decode bytes that are a text in UTF-8 or UTF-16; ``None`` for any others, and for control characters."""
    # The second byte of each character is zero where UTF-16 holds Latin letters.
    is_utf_16 = raw[1:2] == b"\0" and raw[3:4] == b"\0"
    try:
        text = raw.decode("utf-16-le" if is_utf_16 else "utf-8")
    except UnicodeDecodeError:
        return None
    return None if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text) else text
