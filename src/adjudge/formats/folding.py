"""Folding of names for comparison: texts that look alike become equal.

Each text is read once, character by character, so that no text can make it slow: ``unicodedata.normalize`` over a whole
text sorts runs of combining marks, which takes quadratic time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from adjudge.formats.invisible import is_unseen

BLANK, LINE = " ", "\n"

_PAIRS = """
аa вb еe іi јj кk мm нh оo рp сc тt уy хx ѕs һh ԁd ԛq ԝw ӏl αa βb εe ιi κk νv οo ρp τt υu χx γy ηn օo ոn սu հh
ıi ɑa ɡg ɩi øo łl đd ħh ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz
"""

# The first code and the number of each range of letters in boxes.
_BOXED = ((0x1F150, 26), (0x1F170, 26), (0x1F1E6, 26))

_LATIN_OF = {ord(pair[0]): pair[1] for pair in _PAIRS.split()} | {
    start + index: chr(ord("a") + index) for start, count in _BOXED for index in range(count)
}
"""The Latin letter that each letter of another alphabet, small capital and letter in a box looks like."""


_DROPPED_CATEGORIES = {"Cf", "Cc", "Cs", "Co", "Cn", "Mn", "Me"}

_HEX = frozenset("0123456789abcdefABCDEF")

_MOST_REMEMBERED = 5_000


class _FoldingTable(dict[int, str]):
    """A table for ``str.translate`` that computes the folded form of a character when it first occurs.

    It remembers a limited number of characters, so that texts cannot fill the memory.
    """

    def __init__(self, compute: Callable[[str], str]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, code: int) -> str:
        folded = self.compute(chr(code))
        if len(self) < _MOST_REMEMBERED:
            self[code] = folded
        return folded


def fold_character(character: str) -> str:
    """Fold a character for comparison: without case and accents, a look-alike replaced; "" for an invisible one."""
    if character in "\n\r\u2028\u2029\x85\v\f":
        return LINE
    if character.isspace():
        return BLANK
    if _is_dropped(character):
        return ""
    parts = unicodedata.normalize("NFKD", character.casefold())
    visible = "".join(part for part in parts if not _is_dropped(part))
    return visible.casefold().translate(_LATIN_OF)


def _is_dropped(character: str) -> bool:
    """Return whether a character is invisible or a combining mark."""
    return unicodedata.category(character) in _DROPPED_CATEGORIES or is_unseen(character)


def fold(text: str) -> str:
    """Fold a text, each run of blanks to one blank and each run of line ends to one line end."""
    folded = _undo_json_escapes(text).translate(_FOLDING)
    lines = [BLANK.join(line.split()) for line in folded.split(LINE)]
    return LINE.join(line for line in lines if line)


_FOLDING = _FoldingTable(fold_character)


def _undo_json_escapes(text: str) -> str:
    """Replace the JSON escapes of line ends, tabs and characters, because a tool's output is often JSON."""
    if "\\" not in text:
        return text
    for escape in ("\\n", "\\r", "\\t"):
        text = text.replace(escape, LINE)
    first, *pieces = text.split("\\u")
    return first + "".join(_undo_unicode_escape(piece) for piece in pieces)


def _undo_unicode_escape(piece: str) -> str:
    """Return the text of a piece that followed a backslash and a ``u``: its first four digits are a character.

    Without four hexadecimal digits it is no escape, and a blank replaces the backslash and the ``u``.
    """
    digits = piece[:4]
    is_escape = len(digits) == 4 and not set(digits) - _HEX
    return chr(int(digits, 16)) + piece[4:] if is_escape else BLANK + piece
