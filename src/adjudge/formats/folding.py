"""Names as they are compared: one way of writing for the many that look alike.

Everything here takes one pass and looks at each character alone, so that no text can make it slow:
``unicodedata.normalize`` over a whole text sorts runs of combining marks, which takes quadratic time.
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

_BOXED = ((0x1F150, 26), (0x1F170, 26), (0x1F1E6, 26))

_ALIKE = {ord(pair[0]): pair[1] for pair in _PAIRS.split()} | {
    start + place: chr(ord("a") + place) for start, count in _BOXED for place in range(count)
}
"""Letters of other alphabets, small capitals and letters in boxes, and the Latin ones they are taken for."""


_UNSEEN = {"Cf", "Cc", "Cs", "Co", "Cn", "Mn", "Me"}

_HEX = frozenset("0123456789abcdefABCDEF")

_KEPT = 5_000


class _Table(dict[int, str]):
    """A table of what each character becomes, filled when it is first met; what text can fill it with is limited."""

    def __init__(self, compute: Callable[[str], str]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, code: int) -> str:
        folded = self.compute(chr(code))
        if len(self) < _KEPT:
            self[code] = folded
        return folded


def fold_character(character: str) -> str:
    """Fold a character to how it is compared: no case, no accent, no look-alike; nothing for what cannot be seen."""
    if character in "\n\r\u2028\u2029\x85\v\f":
        return LINE
    if character.isspace():
        return BLANK
    if _is_dropped(character):
        return ""
    parts = unicodedata.normalize("NFKD", character.casefold())
    visible = "".join(part for part in parts if not _is_dropped(part))
    return visible.casefold().translate(_ALIKE)


def _is_dropped(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN or is_unseen(character)


def fold(text: str) -> str:
    """Fold a text, each run of blanks to one blank and each run of line ends to one line end."""
    folded = _open_escapes(text).translate(_FOLDED)
    return LINE.join(line for line in (BLANK.join(part.split()) for part in folded.split(LINE)) if line)


_FOLDED = _Table(fold_character)


def _open_escapes(text: str) -> str:
    """Read line ends and letters that are written as JSON escapes: a tool's output often is JSON."""
    if "\\" not in text:
        return text
    for written in ("\\n", "\\r", "\\t"):
        text = text.replace(written, LINE)
    first, *pieces = text.split("\\u")
    return first + "".join(_open_escape(piece) for piece in pieces)


def _open_escape(piece: str) -> str:
    digits = piece[:4]
    written = len(digits) == 4 and not set(digits) - _HEX
    return chr(int(digits, 16)) + piece[4:] if written else BLANK + piece
