"""Text as the injection screen compares it: one way of writing for the many that look alike.

Everything here takes one pass and looks at each character alone, so that no text can make it slow:
``unicodedata.normalize`` over a whole text sorts runs of combining marks, which takes quadratic time.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Callable, Iterator

from adjudge.formats.invisible import drop_unseen, has_unseen, is_unseen

BLANK = " "

STOP, LINE, COLON = ".", "\n", ":"
"""The three marks that stay among the words: the end of a sentence, of a line, and a colon."""

PAUSE = ","
"""What else separates parts of a sentence; it stays in ``split_clauses`` only."""


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

_PAUSES = frozenset(
    ',;()[]{}<>|/"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{EN DASH}\N{EM DASH}\N{HORIZONTAL ELLIPSIS}'
)

_DIGITS = str.maketrans("0134578@$", "oieastbas")

_LIKE_LETTERS = frozenset("0134578@$")

_TAGS = range(0xE0020, 0xE007F)

_FLAG = "\N{WAVING BLACK FLAG}"

_SHORTEST_CODE = 24

_HEX = frozenset("0123456789abcdefABCDEF")

_KEPT = 5_000

_MARKS = {STOP: f" {STOP} ", "!": f" {STOP} ", "?": f" {STOP} ", "。": f" {STOP} ", COLON: " : ", LINE: f" {LINE} "}


class _Table(dict[int, str]):
    """What each character becomes, computed when it is first met; what text can fill it with is limited."""

    def __init__(self, compute: Callable[[str], str]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, code: int) -> str:
        made = self.compute(chr(code))
        if len(self) < _KEPT:
            self[code] = made
        return made


def fold_character(character: str) -> str:
    """One character as it is compared: no case, no accent, no look-alike; nothing for what cannot be seen."""
    if character in "\n\r\u2028\u2029\x85\v\f":
        return LINE
    if character.isspace():
        return BLANK
    if _is_dropped(character):
        return ""
    parts = unicodedata.normalize("NFKD", character.casefold())
    seen = "".join(part for part in parts if not _is_dropped(part))
    return seen.casefold().translate(_ALIKE)


def _is_dropped(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN or is_unseen(character)


def fold(text: str) -> str:
    """The text folded, each run of blanks one blank and each run of line ends one line end."""
    folded = _open_escapes(text).translate(_FOLDED)
    return LINE.join(line for line in (BLANK.join(part.split()) for part in folded.split(LINE)) if line)


def fold_all(text: str) -> list[str]:
    """The text folded, in every way in which the characters that nobody sees can be read: as nothing, or as a blank."""
    readings = [text, drop_unseen(text), drop_unseen(text, BLANK)] if has_unseen(text) else [text]
    return list(dict.fromkeys(map(fold, readings)))


def fold_pattern(pattern: str) -> str:
    """An RE2 pattern whose letters beyond ASCII are folded as the text will be."""
    return "".join(item if item.isascii() else fold_character(item) for item in pattern)


def split_words(folded: str) -> list[str]:
    """The words of a folded text, with the marks that end sentences and lines between them; apostrophes are gone."""
    return [word for word in folded.translate(_SPLIT).split(BLANK) if word]


def split_clauses(folded: str) -> list[str]:
    """``split_words`` with commas and what stands for them."""
    return [word for word in folded.translate(_SPLIT_CLAUSES).split(BLANK) if word]


def _place(character: str) -> str:
    if character.isalnum() or character in "@$":
        return character
    return "" if character in "'`\N{RIGHT SINGLE QUOTATION MARK}" else _MARKS.get(character, BLANK)


def _place_clause(character: str) -> str:
    return f" {PAUSE} " if character in _PAUSES else _place(character)


_FOLDED = _Table(fold_character)

_SPLIT = _Table(_place)

_SPLIT_CLAUSES = _Table(_place_clause)


def _open_escapes(text: str) -> str:
    """Line ends and letters that are written as JSON escapes: a tool's output often is JSON."""
    if "\\" not in text:
        return text
    for written in ("\\n", "\\r", "\\t"):
        text = text.replace(written, LINE)
    first, *rest = text.split("\\u")
    return first + "".join(_open_escape(piece) for piece in rest)


def _open_escape(piece: str) -> str:
    digits = piece[:4]
    written = len(digits) == 4 and not set(digits) - _HEX
    return chr(int(digits, 16)) + piece[4:] if written else BLANK + piece


def undo_digits(word: str) -> tuple[str, ...]:
    """What a word says whose digits stand for letters (``1gn0r3``, ``ru1es``); nothing where they do not."""
    if not _LIKE_LETTERS.intersection(word) or not any(map(str.isalpha, word)):
        return ()
    return word.translate(_DIGITS), word.translate(_DIGITS | {ord("1"): "l"})


def read_tags(text: str) -> str:
    """What the invisible tag characters of a text spell, but for the flags that are written with them."""
    if text.isascii():
        return ""
    spelled, before = [], ""
    for character in text:
        if ord(character) not in _TAGS:
            before = character
        elif before != _FLAG:
            spelled.append(chr(ord(character) - 0xE0000))
    return "".join(spelled)


def read_codes(text: str) -> Iterator[str]:
    """The readable texts that stand in a text as base64."""
    for word in text.split():
        for piece in word.strip("\"'`()[]{}<>,.;:").split('"') if len(word) >= _SHORTEST_CODE else ():
            said = _decode(piece.rpartition(",")[2])
            if said is not None:
                yield said


def _decode(piece: str) -> str | None:
    if len(piece) < _SHORTEST_CODE or not piece.isascii():
        return None
    plain = piece.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        said = raw.decode()
    except (binascii.Error, ValueError):
        return None
    return said if " " in said and " ".join(said.split()).isprintable() else None
