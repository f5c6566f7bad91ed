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
"""A block is five characters of a key, and one begins at every fourth character. So any 8 characters of a key hold a
whole block."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}")
"""11 digits are 8 bytes."""

_PUBLIC_PREFIX = re.compile(r"sk-(?:ant-[a-z]{3}[0-9]{2}|proj|svcacct|admin|or-v1)-")
"""The beginning of every key of a provider. A reply may speak of that; a judge that reviews code does."""

_LINE_END = re.compile(r"\s+|\\[nrt]")

_SHORTEST_RANDOM = 16

_REPLACEMENT = "(what it said repeats the key, and is left out)"


def hide_key(text: str, secrets: Iterable[str]) -> str:
    """Return a reply with ``***`` for each key and for parts of one; only ``***`` where a key in another form remains.

    Parts and encoded forms are looked for only of a key that looks random: 16 letters and digits or more, and a digit.
    Otherwise ``not-needed`` as the key would be hidden wherever a reply says "not needed".
    """
    random_parts = list[str]()
    for secret in secrets:
        if len(secret) < SHORTEST_KEY:
            continue
        text = text.replace(secret, "***")
        secret_part = _PUBLIC_PREFIX.sub("", secret, count=1)
        if sum(map(str.isalnum, secret_part)) >= _SHORTEST_RANDOM and any(map(str.isdigit, secret_part)):
            random_parts.append(secret_part)
    if not holds_key(text, random_parts):
        return text
    for secret in random_parts:
        text = cut_key(text, secret, instead="***")
    # A text that still holds a key has it in an encoded form, so nothing of the text is shown.
    return "***" if holds_key(text, random_parts) else text


def holds_key(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a text holds 8 or more characters of a key one after another, also encoded or broken by lines."""
    keys = [secret for secret in secrets if len(secret) >= SHORTEST_KEY]
    return any(_holds_part_of_key(reading, key) for reading in _list_readings(text) for key in keys) if keys else False


def cut_key(text: str, secret: str, *, instead: str) -> str:
    """Replace a key in a text, and every part of it of 8 characters or more, by ``instead``; case does not matter."""
    if not secret:
        return text
    text = text.replace(secret, instead)
    if len(secret) < SHORTEST_KEY:
        return text
    lower_text, lower_secret = text.lower(), secret.lower()
    if len(lower_text) != len(text):  # some letters are two characters in lower case: positions would differ
        return text
    pieces = list[str]()
    start = copied_end = 0  # the text before ``copied_end`` is in ``pieces``
    while start <= len(lower_text) - SHORTEST_KEY:
        end = start + SHORTEST_KEY
        if lower_text[start:end] not in lower_secret:
            start += 1
            continue
        while end < len(lower_text) and lower_text[start : end + 1] in lower_secret:
            end += 1
        pieces += [text[copied_end:start], instead]
        start = copied_end = end
    return "".join(pieces) + text[copied_end:]


def redact_error(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a provider's text for an error message: one line, printable characters, no secret, at most 300 long.

    Where a secret is still in it in another form (encoded, broken up), nothing of the text is shown.
    """
    known = tuple(secrets)
    for secret in known:
        # Before the text is cut to length, because half a key at the cut would not be found.
        text = text.replace(secret, "[key]") if secret else text
    text = text[: 20 * LONGEST]
    for secret in known:
        text = cut_key(text, secret, instead="[key]")
    text = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    text = " ".join(text.split())
    shown = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    # The whole text is searched: the part of an encoded key before the cut may be too short to be found.
    return _REPLACEMENT if holds_key(text, known) else shown


def _list_readings(text: str) -> Iterator[str]:
    """Yield a text in lower case: as it is, without percent-escapes and line ends, and decoded from base64."""
    yield text.lower()
    unescaped = unquote(text) if "%" in text else text
    joined = _LINE_END.sub("", unescaped)
    yield joined.lower()
    for variant in {text, unescaped, joined}:
        for digits in _BASE64.findall(variant):
            yield from _decode_base64(digits)


def _decode_base64(digits: str) -> Iterator[str]:
    """Yield the texts that digits of base64 may stand for: the first digits may belong to something before the key.

    Four digits are three bytes, so decoding begins at each of the first four digits.
    """
    standard = digits.replace("-", "+").replace("_", "/")
    for start in range(4):
        part = standard[start:]
        if len(part) % 4 == 1:  # one digit more than a multiple of four is less than a byte
            part = part[:-1]
        padding = "=" * (-len(part) % 4)
        yield binascii.a2b_base64(part + padding).decode("latin-1").lower()


def _holds_part_of_key(reading: str, key: str) -> bool:
    """Return whether a text in lower case holds 8 characters of a key one after another."""
    blocks, windows = _cut_blocks_and_windows(key)
    # Blocks first: few of them tell of nearly every text that it holds no part, in a fifth of the time.
    return any(block in reading for block in blocks) and any(window in reading for window in windows)


@lru_cache(maxsize=64)
def _cut_blocks_and_windows(key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Cut a key into its blocks of five characters, and into all parts of 8 characters; both in lower case."""
    lower_key = key.lower()
    blocks = tuple(lower_key[start : start + _BLOCK] for start in range(0, len(lower_key) - _BLOCK + 1, _STRIDE))
    windows = tuple(lower_key[start : start + SHORTEST_KEY] for start in range(len(lower_key) - SHORTEST_KEY + 1))
    return blocks, windows
