"""Find a key in a text, in every form in which a server may send it back.

A server knows the key that it was asked with. It may repeat it as it is, or as what some layer of it made of it: the
header as base64, the address percent-encoded, a log line wrapped in the middle of the key, and several of these on top
of each other. So a text is decoded in every usual way, each result again, and all of them are looked through.
"""

from __future__ import annotations

import binascii
import html
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import cast

SHORTEST_KEY = 8
"""Characters. A shorter key ("none", "EMPTY") is a placeholder for no key, and may be a word of any reply. A part of a
longer key that is shorter than this says nothing."""


_BLOCK = 5


_STRIDE = 4


_LEAST_READABLE = 11  # what 8 bytes are in base64


_MOST_WRAPPED = 100


_BETWEEN = b"\n\xff\n"


_ALL = bytes(range(256))


_ALPHANUMERIC = (string.ascii_letters + string.digits).encode()


_BASE64 = _ALPHANUMERIC + b"+/-_"


_LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())


_ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")


_NOT_ALPHANUMERIC = _ALL.translate(None, _ALPHANUMERIC)


_NOT_BASE64 = _ALL.translate(None, _BASE64)


_NOT_STANDARD = _ALL.translate(None, _ALPHANUMERIC + b"+/")


_NOT_HEX = _ALL.translate(None, b"0123456789abcdefABCDEF")


_READABLE = re.compile(rb"[\t\n\r\x20-\x7e]{%d,}" % _LEAST_READABLE)


_NUMBERS = re.compile(rb"[0-9]+")


_CODES = re.compile(
    rb"%([0-9a-fA-F]{2})|(?:%u|\\u|\\U0000)([0-9a-fA-F]{4})|\\u\{0*([0-9a-fA-F]{1,6})\}|\\x([0-9a-fA-F]{2})"
    rb"|\\([0-7]{3})|(&#[0-9]{1,7};?|&#[xX][0-9a-fA-F]{1,6};?|&[A-Za-z0-9]{2,12};)|\\(.)",
    re.DOTALL,
)


_PUBLIC = re.compile(r"sk-(?:ant-[a-z]{3}[0-9]{2}|proj|svcacct|admin|or-v1)-")
"""How every key of a provider begins. A reply may speak of that; a judge that reviews code does."""


_SHORTEST_RANDOM = 16


_LEAST_BROKEN = 12  # of a reply, which is long, and where two words that a key is made of may follow each other


def hide_key(text: str, secrets: Iterable[str]) -> str:
    """A reply with ``***`` for each key, and for parts of one; the whole of it where a key is encoded.

    Looked for in other forms is only what was plainly drawn by lot, or "not needed" could stand in no reply for whom
    ``not-needed`` is the key.
    """
    drawn = list[str]()
    for secret in secrets:
        if len(secret) < SHORTEST_KEY:
            continue
        text = text.replace(secret, "***")
        found = _PUBLIC.sub("", secret, count=1)
        if sum(map(str.isalnum, found)) >= _SHORTEST_RANDOM and any(map(str.isdigit, found)):
            drawn.append(found)
    if not holds_key(text, drawn, least=_LEAST_BROKEN):
        return text
    for secret in drawn:
        text = cut_key(text, secret, instead="***")
    return "***" if holds_key(text, drawn, least=_LEAST_BROKEN) else text


def holds_key(text: str, secrets: Iterable[str], *, least: int = SHORTEST_KEY) -> bool:
    """Whether a text holds 8 or more characters of a key one after another, also encoded.

    Or ``least`` of its letters and digits with anything else between them.
    """
    finders = [_make_finder(secret, least) for secret in secrets if len(secret) >= SHORTEST_KEY]
    if not finders:
        return False
    return any(item is None or find(item) for item in _list_readings(text) for find in finders)


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


class _Finder:
    """Looks for parts of one key in a decoded text."""

    def __init__(self, secret: str, least: int) -> None:
        raw = secret.encode("utf-8", "surrogatepass").translate(_LOWER)
        # What is put between the characters of a key, and how they are written, makes no other key of it.
        plain = raw.translate(None, _NOT_ALPHANUMERIC)
        self._windows = (_list_windows(raw, SHORTEST_KEY), _list_windows(plain, least))
        # Each run that counts holds one of these, and one search finds them all: nearly every text is known after it.
        blocks = {key[at : at + _BLOCK] for key in (raw, plain) for at in range(0, len(key) - _BLOCK + 1, _STRIDE)}
        self._block = _compile(b"|".join(map(re.escape, sorted(blocks))))

    def __call__(self, data: bytes) -> bool:
        low = data.translate(_LOWER)
        return any(
            self._block(text) and any(item in text for item in windows)
            for windows, text in zip(self._windows, (low, low.translate(None, _NOT_ALPHANUMERIC)), strict=True)
        )

    def __repr__(self) -> str:
        return "<a key's finder>"


def _list_windows(key: bytes, size: int) -> list[bytes]:
    return [key[at : at + size] for at in range(len(key) - size + 1)]


def _compile(pattern: bytes) -> Callable[[bytes], object]:
    """A search over bytes; many times as quick as that of ``re`` where a pattern has many beginnings."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return cast("Callable[[bytes], object]", re2.compile(pattern, options).search)


@cache
def _signs() -> tuple[Callable[[bytes], object], ...]:
    """Whether there are escapes to read, a list of numbers, readable text: no in nearly every text, and known soon."""
    readable = rb"[\t\n\r\x20-\x7e]{%d}" % _LEAST_READABLE
    numbers = rb"(?:[0-9]{2,3}[^0-9]{1,5}){%d}" % (SHORTEST_KEY - 1)
    return _compile(rb"%[0-9a-fA-Fu]|&[#A-Za-z]|\\"), _compile(numbers), _compile(readable)


@lru_cache(maxsize=64)
def _make_finder(secret: str, least: int) -> _Finder:
    return _Finder(secret, least)


def _list_readings(text: str) -> Iterator[bytes | None]:
    """The text, what it is with escapes read, and what these decode to, until nothing readable is left.

    Every step makes a text shorter, so there is an end. ``None`` stands for a text that was made to have more readings
    than there is time for.
    """
    whole = text if text.isascii() else unicodedata.normalize("NFKC", text)
    data = whole.encode("utf-8", "surrogatepass")
    _, has_numbers, is_readable = _signs()
    left = 8 * len(data) + 100_000
    yield data
    while data and left > 0:
        plain = _read_codes(data)
        if plain is None:
            break
        decoded = list(_decode(plain))
        if has_numbers(plain):
            decoded.append(bytes([int(item) for item in _NUMBERS.findall(plain) if len(item) < 4 and int(item) < 256]))
        # Searched as one: what is put between them is no part of a key, nor a digit of any encoding.
        found = _BETWEEN.join(decoded)
        yield plain + _BETWEEN + found
        found = found.translate(None, b"\x00")
        data = b"\n".join(_READABLE.findall(found)) if is_readable(found) else b""
        left -= len(data)
    if data:
        yield None


def _read_codes(data: bytes) -> bytes | None:
    """With percent-encoding, escapes of JSON and of programs, and character references read, to the last of them.

    ``None`` for what is wrapped more often than anybody wraps by accident.
    """
    has_codes = _signs()[0]
    for _ in range(_MOST_WRAPPED):
        read = _CODES.sub(_read_code, data) if has_codes(data) else data
        if read == data:
            return data
        data = read
    return None


def _read_code(found: re.Match[bytes]) -> bytes:
    percent, half, braced, pair, octal, named, short = found.groups()
    if percent or pair:
        return bytes.fromhex((percent or pair).decode())
    if octal:
        return bytes([int(octal, 8) & 255])
    if half or braced:
        code = int(half or braced, 16)
        return chr(code).encode("utf-8", "surrogatepass") if code <= 0x10FFFF else b""
    if named:
        return html.unescape(named.decode()).encode("utf-8", "surrogatepass")
    return b" " if short in b"nrtbfv" else bytes(short)


def _decode(data: bytes) -> Iterator[bytes]:
    """As base64 and as hexadecimal, wherever in the text it begins and whatever breaks it.

    What is no digit of either is left out first. What is in front then only moves the place at which the first of a
    group of digits stands, and each such place is tried.
    """
    digits = {data.translate(_ONE_ALPHABET, _NOT_BASE64), data.translate(None, _NOT_STANDARD)}
    for item in digits:
        for start in range(4):
            part = item[start:]
            if len(part) >= _LEAST_READABLE:
                yield binascii.a2b_base64(part + b"A" * (-len(part) % 4))
    pairs = data.replace(b"0x", b"").replace(b"0X", b"").translate(None, _NOT_HEX)
    for start in range(2):
        part = pairs[start : len(pairs) - (len(pairs) - start) % 2]
        if len(part) >= 2 * SHORTEST_KEY:
            yield bytes.fromhex(part.decode())


LONGEST = 300
"""Characters of a provider's own words that an error message repeats."""


_LEFT_OUT = "(what it said repeats the key, and is left out)"


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
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return _LEFT_OUT if holds_key(text, known) else text
