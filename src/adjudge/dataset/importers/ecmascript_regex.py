r"""A JavaScript regular expression as one of RE2 that matches the same texts, or why there is none.

Source: ECMA-262, sections "Patterns" and "Additional Syntax for Web Browsers", without flags, as promptfoo compiles a
pattern; RE2's own syntax page. Both know ``\s`` and ``.`` and mean other characters, and ``\A``, ``\Q`` or ``(?i)`` are
something in one of them alone, so whatever is not known to mean the same is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from adjudge.errors import UsageError
from adjudge.formats.text import quote

_BLANK = r"\t\n\x0b\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
"""The characters that JavaScript takes for white space and line ends."""

_NOT_BLANK = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
"""All other characters."""

_ANY = r"\x{0}-\x{10ffff}"
"""All characters."""

_DOT = r"[^\n\r\x{2028}\x{2029}]"
"""The characters that ``.`` matches in JavaScript: all but line ends."""

_SAME = frozenset("dDwWbBfnrtv")
"""Letters that mean the same after a backslash in JavaScript and RE2, outside a class."""

_SAME_INSIDE = frozenset("dDwWfnrtv")
"""The same inside a class."""

_SETS = frozenset("dDwWsS")
"""Letters of class escapes, each of which matches a set of characters."""

_TOKEN = re.compile(
    r"""
    (?P<code>\\u(?P<u>[0-9a-fA-F]{4})|\\x(?P<x>[0-9a-fA-F]{2}))
    | (?P<escape>\\(?P<letter>.))
    | (?P<group>\(\?(?P<kind><[=!]|[^)])?)
    | (?P<open>\[\^?)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_GROUP_NAME = re.compile(r"\(\?<([A-Za-z_][A-Za-z0-9_]*)>")

_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")

_EMPTY = re.compile(r"(?<!\\)(?:\\\\)*(?:[\^$]|\\[bB])\Z")
"""The end of an assertion, which JavaScript does not repeat."""


LONGEST_PATTERN = 2_000
"""Characters of a pattern that is translated."""


def translate_regex(pattern: str) -> str:
    """Translate a pattern for RE2; raises ``UsageError`` for what RE2 cannot express, such as look-around."""
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(f"the pattern {quote(pattern)} is longer than {LONGEST_PATTERN:,} characters")
    return "".join(_Translator(pattern).translate())


class _Translator:
    """Translates one pattern of JavaScript, read from its beginning."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        """The index of the next character to read."""

    def translate(self) -> Iterator[str]:
        """Yield the parts of the pattern for RE2."""
        while self.position < len(self.pattern):
            token = self._read_token()
            if token["code"]:
                yield _write_code(token)
            elif token["escape"]:
                yield self._translate_escape(token["letter"], inside=False)
            elif token["group"]:
                yield self._translate_group(token["group"])
            elif token["open"]:
                yield self._translate_class(token["open"])
            else:
                yield self._translate_other(token["other"])

    def _read_token(self) -> re.Match[str]:
        """Read the next token and move past it; raise ``UsageError`` for a backslash at the end."""
        token = _TOKEN.match(self.pattern, self.position)
        if token is None or token["other"] == "\\":
            raise self._make_error("ends with a backslash")
        self.position = token.end()
        return token

    def _make_error(self, reason: str) -> UsageError:
        """Make the error that says why the pattern cannot be translated."""
        return UsageError(f"the pattern {quote(self.pattern)} {reason}")

    def _translate_other(self, char: str) -> str:
        """Translate a character outside a class that follows no backslash, or the count that begins with it."""
        if char == ".":
            return _DOT
        if char in "*+?|()^$":
            if char in "*+?":
                # A second repetition means something else to RE2, or to newer versions; only a lazy ``?`` is the same.
                following = self.pattern[self.position : self.position + 1]
                is_repeated = bool(following) and following in "*+"
                if is_repeated or _EMPTY.search(self.pattern[: self.position - 1]):
                    raise self._make_error("repeats a repetition, or a position")
            return char
        if char == "{":
            count = _COUNT.match(self.pattern, self.position - 1)
            if count is None:
                return r"\{"
            self.position = count.end()
            return count[0]
        return _escape_character(char)

    def _translate_group(self, opening: str) -> str:
        """Translate the beginning of a group, and move past its name if it has one.

        Raises ``UsageError`` for look-around, and for a group that RE2 reads otherwise.
        """
        if opening == "(?:":
            return opening
        named = _GROUP_NAME.match(self.pattern, self.position - len(opening))
        if named is None:
            raise self._make_error("has look-around, or a group that RE2 and JavaScript read differently")
        self.position = named.end()
        return f"(?P<{named[1]}>"

    def _translate_escape(self, letter: str, *, inside: bool) -> str:
        """Translate the escape of a letter, inside a class or outside; raise for one that RE2 reads otherwise."""
        if letter == "s":
            return _BLANK if inside else f"[{_BLANK}]"
        if letter == "S":
            return _NOT_BLANK if inside else f"[{_NOT_BLANK}]"
        if inside and letter == "b":
            return r"\x08"
        if letter in (_SAME_INSIDE if inside else _SAME):
            return f"\\{letter}"
        if letter == "0" and not self.pattern[self.position : self.position + 1].isdigit():
            return r"\x00"
        if letter.isalnum() or letter == "_":
            raise self._make_error(
                f"has the escape {quote(chr(92) + letter)}, which RE2 does not read as JavaScript does"
            )
        return _escape_character(letter)

    def _translate_class(self, opening: str) -> str:
        """Translate a class of characters, and move past its closing bracket.

        Raises ``UsageError`` for a class that does not end, and for an escape that RE2 reads otherwise.
        """
        parts: list[str] = []
        while self.pattern[self.position : self.position + 1] != "]":
            if self.position >= len(self.pattern):
                raise self._make_error("has a class that does not end")
            parts.append(self._translate_range())
        self.position += 1
        if not parts:
            # ``[]`` is nothing and ``[^]`` anything; to RE2 both go on with what follows.
            return f"[{_ANY}]" if opening == "[^" else f"[^{_ANY}]"
        return opening + "".join(parts) + "]"

    def _translate_range(self) -> str:
        r"""Translate a member of a class, or the range that begins with it.

        Beside ``\s`` and its like ``-`` is a character, which RE2 would take for a range: ``\s`` is written out here.
        """
        first, is_set = self._translate_member()
        next_two = self.pattern[self.position : self.position + 2]
        is_range = len(next_two) == 2 and next_two[0] == "-" and next_two[1] != "]"
        if not is_range:
            return first
        self.position += 1
        last, is_last_set = self._translate_member()
        return first + (r"\-" if is_set or is_last_set else "-") + last

    def _translate_member(self) -> tuple[str, bool]:
        r"""Translate one member of a class; also return whether it is a set of characters, such as ``\d``."""
        if self.pattern[self.position] != "\\":
            self.position += 1
            return _escape_character(self.pattern[self.position - 1]), False
        token = self._read_token()
        if token["code"]:
            return _write_code(token), False
        return self._translate_escape(token["letter"], inside=True), token["letter"] in _SETS


def _write_code(token: re.Match[str]) -> str:
    """Write a character that is given by its number, as RE2 reads it; raise ``UsageError`` for half a character."""
    number = int(token["u"] or token["x"], 16)
    if 0xD800 <= number <= 0xDFFF:
        raise UsageError(f"the pattern {quote(token.string)} has half of a character as {quote(token[0])}")
    return f"\\x{{{number:x}}}"


def _escape_character(char: str) -> str:
    """Write a character so that RE2 matches just this one: with a backslash where it may mean something else."""
    return char if char.isalnum() or char == "_" or not char.isascii() or char in "\n\r\t " else f"\\{char}"
