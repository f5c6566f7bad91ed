"""Properties of what was judged that a judge may be biased by: length, format and language, read off the text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

_MARKUP = re.compile(r"(?m)^\s{0,3}(?:#{1,6}\s|[-*+]\s|\d{1,3}[.)]\s|```|\|.*\|)|\*\*\S|<(?:ul|ol|li|p|h[1-6]|table)\b")

_SAMPLE = 2_000
"""Characters that the language and the format are read from."""

_LETTERS = 200
"""Letters that the script is read from."""

_STATED = ("language", "lang", "locale")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextProperties:
    """The properties of a text that may sway a judge."""

    length: float
    """The logarithm to base 2 of its characters, so that an effect is one per doubling."""
    formatted: bool
    """True if it has lists, headings, tables, bold type or code blocks in Markdown or HTML."""
    language: str
    """The language that the metadata state (``language``, ``lang`` or ``locale``), else the script of most letters."""


def read_properties(text: str, metadata: Mapping[str, Any]) -> TextProperties:
    """The properties of a text and its case."""
    sample = text[:_SAMPLE]
    return TextProperties(
        length=math.log2(max(len(text), 1)),
        formatted=_MARKUP.search(sample) is not None,
        language=_find_stated(metadata) or find_script(sample),
    )


def _find_stated(metadata: Mapping[str, Any]) -> str | None:
    stated = next((metadata[name] for name in _STATED if isinstance(metadata.get(name), str)), None)
    return stated[:40] if stated else None


def find_script(text: str) -> str:
    """Find the script that most letters of a text are of, as Unicode names it (``latin``, ``cyrillic``, ``cjk``)."""
    if text.isascii():  # nearly always, and many times as fast
        return "latin" if any(map(str.isalpha, text)) else "none"
    letters = islice(filter(str.isalpha, text), _LETTERS)
    scripts = Counter(map(_name_script, letters))
    return scripts.most_common(1)[0][0] if scripts else "none"


@lru_cache(maxsize=4096)
def _name_script(letter: str) -> str:
    # One word of a letter's name: "LATIN SMALL LETTER A" is latin.
    return unicodedata.name(letter, "OTHER").split(" ", 1)[0].split("-", 1)[0].lower()
