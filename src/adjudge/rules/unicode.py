"""The rule ``unicode``: invisible characters, reversed text, and letters that only look like Latin ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from adjudge.formats.invisible import is_ignorable, is_unseen
from adjudge.result import RuleResult
from adjudge.rules.document import Detection, Document, is_selector, read_choice, search
from adjudge.rules.json_values import join_halves
from adjudge.rules.lookalikes import LOOKALIKES

KINDS = {
    "control": "control character",
    "bidi": "bidirectional control",
    "invisible": "invisible character",
    "tag": "tag character",
    "private": "private character",
    "mixed": "word with letters of two scripts",
    "lookalike": "word of letters that look Latin",
    "styled": "word in styled letters",
}


_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_DIRECTION_MARKS = frozenset("\u200e\u200f\u061c")

_JOINERS = "\u200c\u200d"

# Invisible letters that Braille, Korean and Mongolian need, and that are suspicious elsewhere.
_FILLERS = frozenset("\u2800\u115f\u1160\u180b\u180c\u180d\u180e\u180f")

_INFORMATION = "\N{INFORMATION SOURCE}"

# Characters of category Cf (format) that are visible all the same.
_VISIBLE_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")

_FLAG = "\U0001f3f4"

_FLAG_REGIONS = frozenset("".join(chr(0xE0000 + ord(char)) for char in region) + "\U000e007f"
                     for region in ("gbeng", "gbsct", "gbwls"))  # fmt: skip

# Scripts in which a joiner changes what is read.
_JOINING_SCRIPTS = frozenset(
    {
        "ARABIC", "SYRIAC", "MONGOLIAN", "NKO", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL",
        "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "MYANMAR", "KHMER", "TIBETAN",
    }
)  # fmt: skip

_HIDDEN_KINDS = {"Cc": "control", "Co": "private", "Cs": "private"}

_SCRIPT_OF = {char: script for script, letters in LOOKALIKES.items() for char in letters}

_WIDE_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def make_unicode(*, kinds: str | Sequence[str] | None = None) -> Callable[[Any], RuleResult]:
    """Make a check that the content holds no characters of these kinds, by default of all."""
    chosen_kinds = frozenset(read_choice("unicode", "kinds", kinds, KINDS))

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Detection]:
            for offset, part in document.parts:
                for kind, start, shown in _find_suspicious(part):
                    if kind in chosen_kinds:
                        yield Detection(kind=KINDS[kind], start=offset + start, end=offset + start, shown=shown)

        # Not loose: in a program or in prose an escape is shown as an escape, so it hides nothing. In a JSON value,
        # escapes are always read.
        return search(content, find, nothing="holds nothing hidden", folded=False, loose=False)

    return check


Hits = Iterator[tuple[str, int, str]]
"""Findings: the kind (a key of ``KINDS``), the position, and the text that a message shows."""


def _find_suspicious(text: str) -> Hits:
    """Yield the characters of a text that hide something, and the words that look like other words."""
    present = set(text)
    hidden = {char: kind for char in present if (kind := _classify_character(char)) is not None}
    if hidden:
        yield from _find_hidden(text, hidden, rightward=not any(map(_runs_leftward, present)))
    if not text.isascii():
        yield from _find_suspicious_words(join_halves(text), present)


def _find_hidden(text: str, hidden: dict[str, str], *, rightward: bool) -> Hits:
    """Yield each hidden character that the text does not need.

    ``hidden`` maps characters to their kinds. Unless ``rightward``, the text has letters that run from right to left,
    so its direction marks are needed.
    """
    for index, char in enumerate(text):
        kind = hidden.get(char)
        is_needed_mark = char in _DIRECTION_MARKS and not rightward
        if kind is not None and not is_needed_mark and not _is_legitimate(text, index):
            yield kind, index, f"U+{ord(char):04X}"


def _classify_character(char: str) -> str | None:
    """Return the kind (a key of ``KINDS``) of a character that is not visible; ``None`` for a visible one."""
    if char in "\t\n\r" or char in _VISIBLE_FORMATS:
        return None
    if char in _BIDI_CONTROLS:
        return "bidi"
    if "\U000e0000" <= char <= "\U000e007f":
        return "tag"
    category = unicodedata.category(char)
    if category in _HIDDEN_KINDS:
        return _HIDDEN_KINDS[category]
    if category != "Cn" or is_ignorable(char):
        return "invisible" if is_unseen(char) else None
    # Unassigned in this Python's tables. It may be assigned in newer ones, except for a noncharacter, which never is.
    return "private" if is_unseen(char) else None


def _is_legitimate(text: str, index: int) -> bool:
    """Return whether an emoji, a flag or a script that joins letters needs the invisible character at an index."""
    char, before = text[index], text[index - 1 : index]
    if char in _FILLERS:
        return _is_legitimate_filler(char, before, text[index + 1 : index + 2])
    if not before:
        return char == "\ufeff"  # the mark that begins a file
    if char in _JOINERS:
        return _is_legitimate_joiner(text, index)
    if char in "\ufe0e\ufe0f":
        return unicodedata.category(before) in {"So", "Sm", "Po", "Pd", "Nd", "Sc"} or before == _INFORMATION
    if "\U000e0020" <= char <= "\U000e007f":
        start = text.rfind(_FLAG, max(0, index - 6), index)
        return start >= 0 and text[start + 1 : start + 7] in _FLAG_REGIONS
    return is_selector(char) and unicodedata.name(before, "").startswith("CJK")


def _is_legitimate_filler(char: str, before: str, after: str) -> bool:
    """Return whether one of ``_FILLERS`` is needed where it is: in Braille, Korean or Mongolian."""
    if char == "\u2800":
        return any("\u2801" <= neighbour <= "\u28ff" for neighbour in (before, after))
    if char == "\u115f":
        return "\u1161" <= after <= "\u11a7"
    if char == "\u1160":
        return "\u1100" <= before <= "\u115e"
    near = (before, after) if char == "\u180e" else (before,)
    return all(neighbour and unicodedata.name(neighbour, "").startswith("MONGOLIAN LETTER") for neighbour in near)


def _is_legitimate_joiner(text: str, index: int) -> bool:
    """Return whether the joiner at an index is after a letter of a joining script, or inside an emoji."""
    before, after = text[index - 1], text[index + 1 : index + 2]
    if unicodedata.name(before, "").split(" ")[0] in _JOINING_SCRIPTS:
        return True
    # An emoji may be two pictures with a joiner between; the first may end in a selector or a skin colour.
    follows_picture = unicodedata.category(before) in {"So", "Sk"} or before == "\ufe0f"
    return text[index] == "\u200d" and follows_picture and after != "" and unicodedata.category(after) in {"So", "Sm"}


def _runs_leftward(char: str) -> bool:
    """Return whether a character is a letter of a script that is written from right to left."""
    return unicodedata.bidirectional(char) in {"R", "AL"} and char not in _DIRECTION_MARKS


def _find_suspicious_words(text: str, present: set[str]) -> Hits:
    """Yield words with letters of two scripts, in styled letters, or of letters that only look Latin.

    ``present`` is the set of the text's characters. Full-width letters are usual beside Chinese, Japanese and Korean,
    so there they are not styled.
    """
    lookalikes = {char for char in present if char in _SCRIPT_OF}
    styled = {char for char in present if _is_styled(char)}
    if any(unicodedata.name(char, "").startswith(_WIDE_SCRIPTS) for char in present - styled if not char.isascii()):
        styled = {char for char in styled if not "\uff00" <= char <= "\uffef"}
    if not lookalikes and not styled:
        return
    words = [(match.start(), match.group()) for match in _compile_word().finditer(text)]
    for start, word in words:
        if not lookalikes.isdisjoint(word) and any(char.isascii() for char in word):
            yield "mixed", start, ""
        if sum(char in styled for char in word) >= 3:
            yield "styled", start, ""
    yield from _find_lookalikes(words)


def _find_lookalikes(words: list[tuple[int, str]]) -> Hits:
    """Yield words of lookalikes alone, in a text that also has Latin words.

    If a letter in the text proves that the words' script is really used (one that looks like no Latin letter), words of
    that script are not yielded. ``words`` are positions and words.
    """
    if not any(word.isascii() for _, word in words):
        return
    foreign = [(start, word) for start, word in words if not any(char.isascii() for char in word)]
    others = {char for _, word in foreign for char in word if char not in _SCRIPT_OF}
    native = {unicodedata.name(char, "").split(" ")[0].lower() for char in others}
    for start, word in foreign:
        script = _SCRIPT_OF.get(word[0], "")
        if len(word) > 1 and script not in {"", *native} and all(_SCRIPT_OF.get(char) == script for char in word):
            yield "lookalike", start, ""


def _is_styled(char: str) -> bool:
    """Return whether a character is an ASCII letter in another style, such as bold, circled or full-width."""
    if char.isascii() or not char.isalpha():
        return False
    plain = unicodedata.normalize("NFKC", char)
    return len(plain) == 1 and plain.isascii() and plain.isalpha()


@lru_cache(maxsize=1)
def _compile_word() -> Any:
    import re2

    return re2.compile(r"\p{L}[\p{L}\p{M}]*")
