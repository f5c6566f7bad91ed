"""Text that is not trusted, and names that are not known, made fit for messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import Any

from adjudge.formats.extent import find_excess
from adjudge.formats.invisible import has_unseen, is_unseen

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str, *, keep_lines: bool = True) -> str:
    """Replace control, format and invisible characters: escape sequences and direction marks become ``·``."""
    # Printable is not seen: fillers of Hangul and selectors of variants are letters and marks to Python.
    if text.isprintable() and not has_unseen(text):
        return text
    allowed = "\n\t" if keep_lines else ""
    hidden = {char for char in set(text) if char not in allowed and _is_hidden(char)}
    return "".join(
        char if char not in hidden or belongs_to_picture(text, place) else " " if char in "\n\t" else "·"
        for place, char in enumerate(text)
    )


@lru_cache(4_096)
def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or is_unseen(char)


def belongs_to_picture(text: str, place: int) -> bool:
    """Return whether a character nobody sees says how the picture before it is drawn, as in nearly every emoji.

    It is a selector behind a picture, or a joiner between two of them. Anywhere else it hides something. Both pictures
    of a joiner are seen, as one or side by side, so that all it can make is another picture.
    """
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if not before:
        return False
    if text[place] == "\u200d":
        return bool(after) and unicodedata.category(after) == "So" and _ends_picture(before)
    return text[place] in "\ufe0e\ufe0f" and (unicodedata.category(before) == "So" or after == "\u20e3")


def _ends_picture(char: str) -> bool:
    """Return whether a picture can end with a character: a sign, its selector, or the colour of a skin."""
    return unicodedata.category(char) == "So" or char == "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"


LONGEST_ID = 200
"""The most characters that are kept of an id which somebody else chose."""


def clean_id(value: object) -> str | None:
    """Clean an id that somebody else chose, as one short line; ``None`` for what is no text."""
    return clean(value[:LONGEST_ID], keep_lines=False) if isinstance(value, str) and value else None


QUOTED = 120
"""The most characters of content that one message quotes."""

_SHOWABLE = 1_000_000
"""Characters of a value, about, that are written to quote its beginning."""


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
    """Count the edits between two texts: the optimal string alignment distance."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first, 1):
        following = [at]
        for place, against in enumerate(second, 1):
            edits = min(row[place] + 1, following[-1] + 1, row[place - 1] + (letter != against))
            if at > 1 and place > 1 and letter == second[place - 2] and first[at - 2] == against:
                edits = min(edits, before[place - 2] + 1)
            following.append(edits)
        before, row = row, following
    return row[-1]


def show(value: Any) -> str:
    """Show a value as an error message does: its repr, cut at the length of a quotation."""
    try:
        # Lists that are shared come to thousands of millions of values where each is written in its place.
        text = f"a {type(value).__name__} too large to show" if find_excess(value, _SHOWABLE) else repr(value)
    except Exception:  # noqa: BLE001 - an integer of 5,000 digits has no repr, and other people's types may raise
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _escape_unprintable(text: str, limit: int) -> tuple[str, bool]:
    """Escape what cannot be printed, in at most ``limit`` characters, and return whether that cut the text off."""
    if len(text) <= limit and text.isprintable():
        return text, False
    escaped = ""
    for place, character in enumerate(text[: limit + 1]):
        is_plain = character.isprintable() or belongs_to_picture(text, place)
        piece = character if is_plain else character.encode("unicode_escape", "surrogatepass").decode()
        if len(escaped) + len(piece) > limit:
            return escaped, True
        escaped += piece
    return escaped, False
