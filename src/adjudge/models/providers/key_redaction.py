"""Keep the key that a server was asked with out of errors, replies and recordings.

A server may repeat the key: as it is or a part of it, percent-encoded as in an address, as base64 as in a header, or
broken by the line ends of a log. These forms are found; what a server does to hide it otherwise is not.
"""

from __future__ import annotations

import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

SHORTEST_KEY = 8
"""Characters. A shorter key ("none", "EMPTY") is a placeholder for no key, and may be a word of any reply. A part of a
longer key that is shorter than this says nothing."""

LONGEST = 300
"""Characters of a provider's own words that an error message repeats."""

_BLOCK, _STRIDE = 5, 4
"""Any 8 characters of a key hold one of its blocks: five characters, from every fourth on."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
"""11 digits are 8 bytes."""

_PUBLIC = re.compile(r"sk-(?:ant-[a-z]{3}[0-9]{2}|proj|svcacct|admin|or-v1)-")
"""The beginning of every key of a provider. A reply may speak of that; a judge that reviews code does."""

_LINE_END = re.compile(r"\s+|\\[nrt]")

_SHORTEST_RANDOM = 16

_LEFT_OUT = "(what it said repeats the key, and is left out)"


def hide_key(text: str, secrets: Iterable[str]) -> str:
    """A reply with ``***`` for each key, and for parts of one; the whole of it where a key is encoded.

    Parts and encoded forms are looked for only of a key that looks random: 16 letters and digits or more, and a digit.
    Else no reply could say "not needed" to whom ``not-needed`` is the key.
    """
    random_parts = list[str]()
    for secret in secrets:
        if len(secret) < SHORTEST_KEY:
            continue
        text = text.replace(secret, "***")
        rest = _PUBLIC.sub("", secret, count=1)
        if sum(map(str.isalnum, rest)) >= _SHORTEST_RANDOM and any(map(str.isdigit, rest)):
            random_parts.append(rest)
    if not holds_key(text, random_parts):
        return text
    for secret in random_parts:
        text = cut_key(text, secret, instead="***")
    # What still holds it has it encoded, and nothing of that is shown.
    return "***" if holds_key(text, random_parts) else text


def holds_key(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a text holds 8 or more characters of a key one after another, also encoded or broken by lines."""
    keys = [secret for secret in secrets if len(secret) >= SHORTEST_KEY]
    return any(_holds_part(reading, key) for reading in _list_readings(text) for key in keys) if keys else False


def cut_key(text: str, secret: str, *, instead: str) -> str:
    """A text with something else for every part of a key that stands in it plainly."""
    if not secret:
        return text
    text = text.replace(secret, instead)
    if len(secret) < SHORTEST_KEY:
        return text
    low, whole = text.lower(), secret.lower()
    if len(low) != len(text):  # some letters are two when they are small, and places would differ
        return text
    pieces, at, kept = list[str](), 0, 0
    while at <= len(low) - SHORTEST_KEY:
        end = at + SHORTEST_KEY
        if low[at:end] not in whole:
            at += 1
            continue
        while end < len(low) and low[at : end + 1] in whole:
            end += 1
        pieces += [text[kept:at], instead]
        at = kept = end
    return "".join(pieces) + text[kept:]


def redact_error(text: str, secrets: Iterable[str] = ()) -> str:
    """A foreign text for an error message: one line, no control or direction characters, no secret, at most 300.

    Where a secret is still in it in another form (encoded, broken up), nothing of it is shown.
    """
    known = tuple(secrets)
    for secret in known:
        # Before cutting: half a key at the cut would otherwise survive.
        text = text.replace(secret, "[key]") if secret else text
    text = text[: 20 * LONGEST]
    for secret in known:
        text = cut_key(text, secret, instead="[key]")
    text = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    text = " ".join(text.split())
    shown = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    # The whole text: of an encoded key that the cut divides, what is left can be too short to be known for one.
    return _LEFT_OUT if holds_key(text, known) else shown


def _list_readings(text: str) -> Iterator[str]:
    """The text, in lower case, and what it reads as without escapes, without line ends, and out of base64."""
    yield text.lower()
    plain = unquote(text) if "%" in text else text
    joined = _LINE_END.sub("", plain)
    yield joined.lower()
    for written in {text, plain, joined}:
        for digits in _BASE64.findall(written):
            yield from _decode_base64(digits)


def _decode_base64(digits: str) -> Iterator[str]:
    """Digits of base64 as texts: what is in front of a key moves the place at which a group of four begins."""
    standard = digits.replace("-", "+").replace("_", "/")
    for start in range(4):
        part = standard[start:]
        # One digit more than a multiple of four is half a byte.
        part = part[: len(part) - (len(part) % 4 == 1)]
        yield binascii.a2b_base64(part + "=" * (-len(part) % 4)).decode("latin-1").lower()


def _holds_part(reading: str, key: str) -> bool:
    blocks, windows = _list_parts(key)
    # Nearly every text holds no block, which takes a fifth of the time.
    return any(block in reading for block in blocks) and any(window in reading for window in windows)


@lru_cache(maxsize=64)
def _list_parts(key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    low = key.lower()
    blocks = tuple(low[at : at + _BLOCK] for at in range(0, len(low) - _BLOCK + 1, _STRIDE))
    windows = tuple(low[at : at + SHORTEST_KEY] for at in range(len(low) - SHORTEST_KEY + 1))
    return blocks, windows
