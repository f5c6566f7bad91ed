"""White space that changes what a text means and that a reader would not see: runs of blanks, tabs, line breaks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from adjudge.formats.text import belongs_to_picture, clean

BlankKind = Literal["", "blanks", "tab", "line", "code"]
"""``""`` is ordinary text; ``code`` is a character that has no look of its own, such as a no-break space."""

_NAMES: dict[BlankKind, tuple[str, str]] = {
    "blanks": ("run of blanks (·)", "runs of blanks (·)"),
    "tab": ("tab (→)", "tabs (→)"),
    "line": ("line break (↵)", "line breaks (↵)"),
    "code": ("other character by its code", "other characters by their codes"),
}


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. Together, the parts are the text."""

    text: str
    kind: BlankKind = ""
    mark: str = ""
    """The code of a character of kind ``code``, such as ``U+00A0``."""


def split_blanks(text: str, before: str = "", after: str = "") -> tuple[TextPart, ...]:
    """Split a text at the white space that has to be marked.

    A single blank between two words needs no mark. One at the beginning or end of a line does, and one beside other
    white space. ``before`` and ``after`` are the characters around the text, where it is a piece of another.
    """
    codes = {char for char in set(text) if char not in " \t\n" and _needs_code(char)}
    if not codes and text.strip() == text and not any(pair in text for pair in ("  ", "\t", "\n")):
        return (TextPart(text),) if text else ()
    pattern = re.compile(rf"\t|\n| +{'|[' + re.escape(''.join(codes)) + ']' if codes else ''}")
    parts: list[TextPart] = []
    place = 0
    for match in pattern.finditer(text):
        first, last = match.span()
        around = (text[first - 1] if first else before[-1:] or "\n", text[last : last + 1] or after[:1] or "\n")
        part = None if belongs_to_picture(text, first) else _make_part(match[0], *around)
        if part is not None:
            parts += [TextPart(text[place:first])] if place < first else []
            parts.append(part)
            place = last
    return (*parts, TextPart(text[place:])) if place < len(text) else tuple(parts)


def split_hidden(text: str, before: str = "", after: str = "") -> tuple[TextPart, ...]:
    """Split a text at the white space that a reader would not see, and leave line breaks and indentation as they are.

    For texts that are read and not decided upon: two thousand programs with a mark at each line end are too large to
    search, and no easier to read.
    """
    if not _may_hide(f"{before[-1:]}{text}{after[:1]}"):
        return (TextPart(text),) if text else ()
    parts: list[TextPart] = []
    begins_line, plain = before[-1:] in ("", "\n"), ""
    for part in split_blanks(text, before, after):
        indents = begins_line and part.kind in ("blanks", "tab")
        # A character that nobody sees is shown as a dot; what is left are blanks of another width.
        is_dot = part.kind == "code" and clean(part.text) != part.text
        begins_line = indents or part.kind == "line"
        if part.kind in ("", "line") or indents or is_dot:
            plain += part.text
            continue
        parts += [TextPart(plain), part] if plain else [part]
        plain = ""
    return (*parts, TextPart(plain)) if plain else tuple(parts)


_HIDES = re.compile(r"\S *(?:\t|  )|[ \t](?:\n|\Z)")


def _may_hide(text: str) -> bool:
    """Return whether a text may hold white space other than line breaks, indentation and single blanks."""
    return _HIDES.search(text) is not None or any(char not in " \t\n" and _needs_code(char) for char in set(text))


@lru_cache(4_096)
def _needs_code(char: str) -> bool:
    return unicodedata.category(char) == "Zs" or clean(char) != char


def _make_part(blank: str, before: str, after: str) -> TextPart | None:
    if blank in ("\t", "\n"):
        return TextPart(blank, "tab" if blank == "\t" else "line")
    if blank[0] != " ":
        return TextPart(blank, "code", f"U+{ord(blank):04X}")
    return TextPart(blank, "blanks") if len(blank) > 1 or before.isspace() or after.isspace() else None


def describe_blanks(*texts: str) -> str:
    """Describe what is marked in some texts, in words; empty where nothing is."""
    counts: Counter[BlankKind] = Counter(part.kind for text in texts for part in split_blanks(text) if part.kind)
    return ", ".join(f"{counts[kind]:,} {_NAMES[kind][counts[kind] != 1]}" for kind in _NAMES if counts[kind])


def list_blanks(text: str) -> Iterator[tuple[int, int, TextPart]]:
    """List the line and the column, from 1, of each part that is marked, without line breaks and plain indentation."""
    line, column = 1, 1
    for part in split_blanks(text):
        if part.kind == "line":
            line, column = line + 1, 1
            continue
        if part.kind and not (part.kind == "blanks" and column == 1):
            yield line, column, part
        column += len(part.text)
