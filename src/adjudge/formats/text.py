"""Untrusted text made safe for messages, and suggestions for unknown names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import Any

from adjudge.formats.invisible import has_unseen, is_unseen
from adjudge.formats.json_size import measure_excess

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str, *, keep_lines: bool = True) -> str:
    """Replace control, format and invisible characters: escape sequences and direction marks become ``·``."""
    # Python calls some invisible characters printable, such as fillers of Hangul and variation selectors.
    if text.isprintable() and not has_unseen(text):
        return text
    allowed = "\n\t" if keep_lines else ""
    hidden = {char for char in set(text) if char not in allowed and _is_hidden(char)}
    cleaned = []
    for index, char in enumerate(text):
        if char not in hidden or belongs_to_picture(text, index):
            cleaned.append(char)
        else:
            cleaned.append(" " if char in "\n\t" else "·")
    return "".join(cleaned)


@lru_cache(4_096)
def _is_hidden(char: str) -> bool:
    """Return whether a character is a control, a format or another character that is not visible."""
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or is_unseen(char)


def belongs_to_picture(text: str, index: int) -> bool:
    """Return whether the invisible character at an index only changes how the picture before it is drawn.

    In nearly every emoji there is a selector after a picture, or a joiner between two pictures. Anywhere else such a
    character hides something. Two joined pictures are visible, as one or side by side, so a joiner there hides nothing.
    """
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if not before:
        return False
    if text[index] == "\u200d":
        return bool(after) and unicodedata.category(after) == "So" and _ends_picture(before)
    return text[index] in "\ufe0e\ufe0f" and (unicodedata.category(before) == "So" or after == "\u20e3")


def _ends_picture(char: str) -> bool:
    """Return whether a picture can end with a character: a symbol, a selector, or a skin colour."""
    return unicodedata.category(char) == "So" or char == "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"


LONGEST_ID = 200
"""The most characters that are kept of an id which somebody else chose."""


def clean_id(value: object) -> str | None:
    """Clean an id that somebody else chose, as one short line; ``None`` if it is empty or no text."""
    return clean(value[:LONGEST_ID], keep_lines=False) if isinstance(value, str) and value else None


QUOTED = 120
"""The most characters of content that one message quotes."""

_MOST_SHOWABLE = 1_000_000
"""A value of more characters than about this is not written out, even to show its beginning."""


def quote(text: str, limit: int = QUOTED) -> str:
    """Quote a short text in double quotes, with control and other invisible characters escaped.

    Messages reach terminals, logs and the judge; an escape sequence or a direction mark in hostile content must not.
    """
    escaped, cut = _escape_unprintable(text, limit)
    return f'"{escaped}"' + ("…" if cut else "")


def flatten(text: str, limit: int = 400) -> str:
    """Flatten somebody else's message to one line of at most ``limit`` characters, for use inside one of ours."""
    escaped, cut = _escape_unprintable(" ".join(text.split()), limit)
    return escaped + ("…" if cut else "")


def list_names(names: Iterable[object]) -> str:
    """List names that somebody else chose on one line, quoted and with commas; ``nothing`` where there are none."""
    return flatten(", ".join(map(repr, names))) or "nothing"


def suggest(name: object, choices: Iterable[str]) -> str:
    """Suggest the nearest of some choices (``; did you mean 'x'?``), or nothing when none is near."""
    from difflib import get_close_matches

    names = list(choices)
    plain = {choice.replace("_", "").replace("-", "").lower(): choice for choice in names}
    target = str(name)[:100].replace("_", "").replace("-", "").lower()
    near = get_close_matches(target, plain, 1)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def find_nearest(name: str, choices: Iterable[str]) -> str | None:
    """Find the choice that takes the fewest edits to reach, or ``None`` where that is more than a third of its letters.

    An edit adds, drops or changes a letter, or swaps two neighbours. What the name is the beginning of is near too.
    """
    target = name.lstrip("-").lower()[:100]
    candidates: list[tuple[int, int, str]] = []
    for choice in choices:
        plain = choice.lstrip("-").lower()
        edits = _count_edits(target, plain)
        most_edits = ceil(max(len(target), len(plain)) / 3)
        is_beginning = len(target) >= 3 and plain.startswith(target)
        if is_beginning or edits <= most_edits < len(plain):
            candidates.append((edits, abs(len(plain) - len(target)), choice))
    return min(candidates)[2] if candidates else None


def _count_edits(first: str, second: str) -> int:
    """Count the edits between two texts: the optimal string alignment distance.

    Row ``i`` of the table has the distances between the first ``i`` letters of ``first`` and each beginning of
    ``second``; only the last rows are kept.
    """
    row_before_last: list[int] = []
    last_row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        row = [i]
        for j, other_letter in enumerate(second, 1):
            edits = min(last_row[j] + 1, row[-1] + 1, last_row[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other_letter:  # swapped neighbours
                edits = min(edits, row_before_last[j - 2] + 1)
            row.append(edits)
        row_before_last, last_row = last_row, row
    return last_row[-1]


def show(value: Any) -> str:
    """Show a value as an error message does: its repr, cut at the length of a quotation."""
    try:
        # A small list that shares its members many times over may have thousands of millions of values written out.
        text = f"a {type(value).__name__} too large to show" if measure_excess(value, _MOST_SHOWABLE) else repr(value)
    except Exception:  # noqa: BLE001 - an integer of 5,000 digits has no repr, and other people's types may raise
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _escape_unprintable(text: str, limit: int) -> tuple[str, bool]:
    """Escape unprintable characters; return at most ``limit`` characters, and whether the text was cut off."""
    if len(text) <= limit and text.isprintable():
        return text, False
    escaped = ""
    for index, character in enumerate(text[: limit + 1]):
        is_plain = character.isprintable() or belongs_to_picture(text, index)
        piece = character if is_plain else character.encode("unicode_escape", "surrogatepass").decode()
        if len(escaped) + len(piece) > limit:
            return escaped, True
        escaped += piece
    return escaped, False
