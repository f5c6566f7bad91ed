"""How checks and readers speak of text they do not trust, and of names they do not know."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from adjudge.formats.extent import find_excess
from adjudge.formats.invisible import has_unseen, is_unseen

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str, *, keep_lines: bool = True) -> str:
    """Text without control, format and invisible characters: escape sequences and direction marks become ``·``."""
    # Printable is not seen: fillers of Hangul and selectors of variants are letters and marks to Python.
    if text.isprintable() and not has_unseen(text):
        return text
    kept = "\n\t" if keep_lines else ""
    hidden = {char for char in set(text) if char not in kept and _is_hidden(char)}
    return "".join(
        char if char not in hidden or selects_picture(text, place) else " " if char in "\n\t" else "·"
        for place, char in enumerate(text)
    )


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or is_unseen(char)


def selects_picture(text: str, place: int) -> bool:
    """Whether a selector says how the picture before it is drawn, as in nearly every text with emoji."""
    if text[place] not in "\ufe0e\ufe0f" or not place:
        return False
    return unicodedata.category(text[place - 1]) == "So" or text[place + 1 : place + 2] == "\u20e3"


LONGEST_ID = 200
"""The most characters that are kept of an id which somebody else chose."""


def clean_id(value: object) -> str | None:
    """An id that somebody else chose, a server or a row of data, as one short line; ``None`` for what is no text."""
    return clean(value[:LONGEST_ID], keep_lines=False) if isinstance(value, str) and value else None


QUOTED = 120
"""The most characters of content that one message quotes."""

_SHOWABLE = 1_000_000
"""Characters of a value, about, that are written to quote its beginning."""


def quote(text: str, limit: int = QUOTED) -> str:
    """A short quotation in double quotes, with control and other invisible characters escaped.

    Messages reach terminals, logs and the judge; an escape sequence or a direction mark in hostile content must not.
    """
    shown, cut = _escape(text, limit)
    return f'"{shown}"' + ("…" if cut else "")


def flatten(text: str, limit: int = 400) -> str:
    """Somebody else's message as one line of at most ``limit`` characters, for use inside one of ours."""
    shown, cut = _escape(" ".join(text.split()), limit)
    return shown + ("…" if cut else "")


def list_names(names: Iterable[object]) -> str:
    """Names that somebody else chose as one line, quoted and with commas; ``nothing`` where there are none."""
    return flatten(", ".join(map(repr, names))) or "nothing"


def suggest(name: object, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the nearest known name, or nothing when none is near."""
    from difflib import get_close_matches

    names = list(known)
    plain = {item.replace("_", "").replace("-", "").lower(): item for item in names}
    wanted = str(name)[:100].replace("_", "").replace("-", "").lower()
    near = get_close_matches(wanted, plain, 1)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that takes the fewest edits to reach, or ``None`` where that is more than a third of its letters.

    An edit adds, drops or changes a letter, or swaps two neighbours. What the name is the beginning of is near too.
    """
    wanted = name.lstrip("-").lower()[:100]
    found: list[tuple[int, int, str]] = []
    for item in known:
        plain = item.lstrip("-").lower()
        edits = _count_edits(wanted, plain)
        begins = len(wanted) >= 3 and plain.startswith(wanted)
        if begins or edits <= -(-max(len(wanted), len(plain)) // 3) < len(plain):
            found.append((edits, abs(len(plain) - len(wanted)), item))
    return min(found)[2] if found else None


def _count_edits(one: str, other: str) -> int:
    """The optimal string alignment distance."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        following = [at]
        for place, against in enumerate(other, 1):
            edits = min(row[place] + 1, following[-1] + 1, row[place - 1] + (letter != against))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == against:
                edits = min(edits, before[place - 2] + 1)
            following.append(edits)
        before, row = row, following
    return row[-1]


def show(value: Any) -> str:
    """A value as an error message shows it: its repr, cut at the length of a quotation."""
    try:
        # Lists that are shared come to thousands of millions of values where each is written in its place.
        text = f"a {type(value).__name__} too large to show" if find_excess(value, _SHOWABLE) else repr(value)
    except Exception:  # noqa: BLE001 - an integer of 5,000 digits has no repr, and other people's types may raise
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _escape(text: str, limit: int) -> tuple[str, bool]:
    shown = ""
    for character in text[: limit + 1]:
        piece = character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        if len(shown) + len(piece) > limit:
            return shown, True
        shown += piece
    return shown, False
