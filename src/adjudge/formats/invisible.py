"""Invisible characters: one table, for comparing, searching and naming.

It has three uses. Text that is folded for a search loses all of these characters, the rule ``unicode`` reports them
where no script needs them, and a person's name may not contain one.
"""

from __future__ import annotations

import re
import unicodedata

from adjudge.formats.ignorable import IGNORABLE

BLANK = frozenset("\u2800\U00013441\U00013442\U00016fe4\U0001d159")
"""Letters and signs that are drawn as an empty cell though Unicode does not call them ignorable: the Braille cell
without a dot, two Egyptian ones, a Khitan filler, a note without a head. Hangul's fillers are ignorable."""


_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

# A sequence that a terminal reads as a colour or a move of the cursor, and does not show.
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def is_ignorable(char: str) -> bool:
    """Return whether Unicode calls a character ignorable by default."""
    code = ord(char)
    return code >= 0xAD and any(first <= code <= last for first, last in IGNORABLE)


def is_unseen(char: str) -> bool:
    """Return whether a character is invisible: a control (not tab or line end), a format, a filler, or no character.

    A half of a surrogate pair and a noncharacter of Unicode count as well.
    """
    if char.isascii():
        return _CONTROLS.match(char) is not None
    return (
        unicodedata.category(char) in _CATEGORIES
        or char in BLANK
        or is_ignorable(char)
        # The noncharacters of Unicode: the last two of each plane, and a range.
        or ord(char) & 0xFFFE == 0xFFFE
        or "\ufdd0" <= char <= "\ufdef"
    )


def has_unseen(text: str) -> bool:
    """Return whether a text holds a character that nobody sees."""
    if text.isprintable() and text.isascii():  # nearly every text without a line end
        return False
    return _CONTROLS.search(text) is not None or any(is_unseen(char) for char in set(text) if not char.isascii())


def drop_unseen(text: str, gap: str = "") -> str:
    """Drop invisible characters from a text, or replace each by ``gap``.

    A search looks at both texts: without the characters it finds a word that they split, and with a gap the start of a
    word that they are in front of. A terminal's colours are dropped as a whole only without a gap, so that the text
    with gaps still has their visible characters, among which something could be hidden.
    """
    if not has_unseen(text):
        return text
    if not gap:
        text = _TERMINAL_SEQUENCE.sub("", text)
    return text.translate({ord(char): gap for char in set(text) if is_unseen(char)})


def explain_doubtful_name(name: str) -> str | None:
    """Explain why a text cannot be a person's name; ``None`` if it can.

    Two names that look the same would otherwise be two people.
    """
    hidden = next((char for char in name if is_unseen(char)), None)
    if hidden is not None:
        return f"it holds U+{ord(hidden):04X}, which nobody sees"
    if not name.isprintable():
        return "it holds a character that is not printable"
    if name != name.strip():
        return "it has a blank at an end"
    if "  " in name:
        return "it has two blanks in a row"
    return None if name else "it is empty"
