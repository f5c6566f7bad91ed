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

_LANGUAGE_KEYS = ("language", "lang", "locale")
"""Keys of the metadata that may state the language."""


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
    """Read the properties of a text; the metadata of its case may state the language."""
    sample = text[:_SAMPLE]
    return TextProperties(
        length=math.log2(max(len(text), 1)),
        formatted=_MARKUP.search(sample) is not None,
        language=_find_stated_language(metadata) or find_script(sample),
    )


def _find_stated_language(metadata: Mapping[str, Any]) -> str | None:
    """Find the language that the metadata of a case state; ``None`` where they state none."""
    texts = [metadata[key] for key in _LANGUAGE_KEYS if isinstance(metadata.get(key), str)]
    return texts[0][:40] if texts and texts[0] else None


def find_script(text: str) -> str:
    """Find the script that most letters of a text are of, as Unicode names it (``latin``, ``cyrillic``, ``cjk``)."""
    if text.isascii():  # nearly always, and many times as fast
        return "latin" if any(map(str.isalpha, text)) else "none"
    letters = islice(filter(str.isalpha, text), _LETTERS)
    scripts = Counter(map(_name_script, letters))
    return scripts.most_common(1)[0][0] if scripts else "none"


@lru_cache(maxsize=4096)
def _name_script(letter: str) -> str:
    """Name the script of a letter: the first word of its Unicode name, such as latin of LATIN SMALL LETTER A."""
    # Without what follows a hyphen: KATAKANA-HIRAGANA PROLONGED SOUND MARK is katakana.
    return unicodedata.name(letter, "OTHER").split(" ", 1)[0].split("-", 1)[0].lower()
