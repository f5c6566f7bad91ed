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
    """A part of a text; all parts joined are the text."""

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
    copied_to = 0
    for match in pattern.finditer(text):
        start, end = match.span()
        previous = text[start - 1] if start else before[-1:] or "\n"  # beyond the text there is a line end
        following = text[end : end + 1] or after[:1] or "\n"
        part = None if belongs_to_picture(text, start) else _make_part(match[0], previous, following)
        if part is not None:
            parts += [TextPart(text[copied_to:start])] if copied_to < start else []
            parts.append(part)
            copied_to = end
    return (*parts, TextPart(text[copied_to:])) if copied_to < len(text) else tuple(parts)


def split_hidden(text: str, before: str = "", after: str = "") -> tuple[TextPart, ...]:
    """Split a text at the white space that a reader would not see, and leave line breaks and indentation as they are.

    For texts that are only read, and not decided on: a mark at each line end would make two thousand programs too large
    to search, and no easier to read.
    """
    if not _may_have_hidden_blanks(f"{before[-1:]}{text}{after[:1]}"):
        return (TextPart(text),) if text else ()
    parts: list[TextPart] = []
    begins_line, plain = before[-1:] in ("", "\n"), ""
    for part in split_blanks(text, before, after):
        indents = begins_line and part.kind in ("blanks", "tab")
        # ``clean`` shows an invisible character as a dot, so it needs no mark; the others are blanks of another width.
        is_dot = part.kind == "code" and clean(part.text) != part.text
        begins_line = indents or part.kind == "line"
        if part.kind in ("", "line") or indents or is_dot:
            plain += part.text
            continue
        parts += [TextPart(plain), part] if plain else [part]
        plain = ""
    return (*parts, TextPart(plain)) if plain else tuple(parts)


_HIDDEN_BLANKS = re.compile(r"\S *(?:\t|  )|[ \t](?:\n|\Z)")


def _may_have_hidden_blanks(text: str) -> bool:
    """Return whether a text may hold white space other than line breaks, indentation and single blanks."""
    return _HIDDEN_BLANKS.search(text) is not None or any(
        char not in " \t\n" and _needs_code(char) for char in set(text)
    )


@lru_cache(4_096)
def _needs_code(char: str) -> bool:
    """Return whether a character is a blank other than a space, or invisible."""
    return unicodedata.category(char) == "Zs" or clean(char) != char


def _make_part(blank: str, before: str, after: str) -> TextPart | None:
    """Make the marked part of white space; ``None`` for a single space between two characters that are not blank."""
    if blank in ("\t", "\n"):
        return TextPart(blank, "tab" if blank == "\t" else "line")
    if blank[0] != " ":
        return TextPart(blank, "code", f"U+{ord(blank):04X}")
    needs_mark = len(blank) > 1 or before.isspace() or after.isspace()
    return TextPart(blank, "blanks") if needs_mark else None


def describe_blanks(*texts: str) -> str:
    """Describe what is marked in some texts, in words; empty where nothing is."""
    counts: Counter[BlankKind] = Counter(part.kind for text in texts for part in split_blanks(text) if part.kind)
    descriptions = []
    for kind, (singular, plural) in _NAMES.items():
        if counts[kind]:
            descriptions.append(f"{counts[kind]:,} {singular if counts[kind] == 1 else plural}")
    return ", ".join(descriptions)


def list_blanks(text: str) -> Iterator[tuple[int, int, TextPart]]:
    """Yield each marked part with its line and column, from 1; line breaks and blanks that begin a line are not."""
    line, column = 1, 1
    for part in split_blanks(text):
        if part.kind == "line":
            line, column = line + 1, 1
            continue
        if part.kind and not (part.kind == "blanks" and column == 1):
            yield line, column, part
        column += len(part.text)
