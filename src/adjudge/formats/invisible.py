"""Characters that no reader sees: one table, for all who compare, search or name.

Three policies stand on it. What is folded to be searched loses them all; the rule ``unicode`` reports them where no
writing needs them; a person's name holds none.
"""

from __future__ import annotations

import re
import unicodedata

from adjudge.formats.ignorable import IGNORABLE

BLANK = frozenset("\u2800\U00013441\U00013442\U00016fe4\U0001d159")
"""Letters and signs that are drawn as an empty cell though Unicode does not call them ignorable: the Braille cell
without a dot, two Egyptian ones, a Khitan filler, a note without a head. Hangul's fillers are ignorable."""


_KEPT = "\t\n\r"

_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

# What a terminal takes for a colour or a move of the cursor, and shows nothing of.
_COMMAND = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def is_ignorable(char: str) -> bool:
    """Return whether Unicode calls a character ignorable by default."""
    code = ord(char)
    return code >= 0xAD and any(first <= code <= last for first, last in IGNORABLE)


def is_unseen(char: str) -> bool:
    """Return whether nobody sees a character: a control but tab and line end, a format, a filler, half of a pair."""
    if char.isascii():
        return _CONTROLS.match(char) is not None
    return (
        unicodedata.category(char) in _CATEGORIES
        or char in BLANK
        or is_ignorable(char)
        or ord(char) & 0xFFFE == 0xFFFE
        or "\ufdd0" <= char <= "\ufdef"
    )


def has_unseen(text: str) -> bool:
    """Return whether a text holds a character that nobody sees."""
    if text.isprintable() and text.isascii():  # nearly every text without a line end
        return False
    return _CONTROLS.search(text) is not None or any(is_unseen(char) for char in set(text) if not char.isascii())


def drop_unseen(text: str, gap: str = "") -> str:
    """Drop unseen characters from a text, or put ``gap`` in the place of each.

    Whoever searches looks at both: dropped, they hide nothing that they stand in; as a gap, nothing that they stand
    before. Only without gaps a terminal's colours go as a whole: what one is made of must not hide a text either.
    """
    if not has_unseen(text):
        return text
    if not gap:
        text = _COMMAND.sub("", text)
    return text.translate({ord(char): gap for char in set(text) if is_unseen(char)})


def explain_doubtful_name(name: str) -> str | None:
    """Explain why a text names nobody, or ``None`` when it does: two names that read the same would be two people."""
    hidden = next((char for char in name if is_unseen(char)), None)
    if hidden is not None:
        return f"it holds U+{ord(hidden):04X}, which nobody sees"
    if not name.isprintable():
        return "it holds a character that is not printable"
    if name != name.strip():
        return "it has a blank at an end"
    return "it has two blanks in a row" if "  " in name else None if name else "it is empty"
