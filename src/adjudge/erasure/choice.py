"""The choice of what ``adjudge forget`` deletes: one content by its digest, or all with one value in their metadata."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any
from unicodedata import normalize

from adjudge.errors import UsageError
from adjudge.formats.text import show

LONGEST = 1_000
"""Characters of a name or a value: every text that is kept is searched for it."""

_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The choice to be forgotten: the content with a digest, or what has a value at a name of its metadata."""

    subject: str | None = None
    name: str | None = None
    """The member of the metadata; with points, a member of a member."""
    value: str = ""
    """The text, or the number or truth value as JSON has it."""

    @cached_property
    def text(self) -> str:
        """The text by which other texts may name the choice: the digest, or the value in the metadata."""
        return self.subject or self.value

    def matches(self, metadata: object) -> bool:
        """Return whether some metadata have exactly the chosen value at the chosen name."""
        if self.name is None or not isinstance(metadata, Mapping):
            return False
        # A name with points is that of one member, or the path to a member of a member.
        if self.name in metadata and self._is_value(metadata[self.name]):
            return True
        node: object = metadata
        for member in self.name.split("."):
            node = node.get(member) if isinstance(node, Mapping) else None
        return self._is_value(node)

    def _is_value(self, value: object) -> bool:
        """Return whether a value of some metadata is the chosen one."""
        if isinstance(value, str):
            return value == self.value
        if isinstance(value, bool):
            return self.value == json.dumps(value)
        # A list or an object never matches: it may be about several people, so a person looks at it.
        return isinstance(value, int | float) and self._number is not None and value == self._number

    def is_subject(self, subject: object) -> bool:
        """Return whether a digest is that of the chosen content."""
        return self.subject is not None and subject == self.subject

    def may_name(self, json_text: bytes | str) -> bool:
        """Return false if JSON that is not decoded yet cannot name the choice.

        This is a quick search in the raw text. Where that cannot tell, it returns true, and the JSON has to be decoded.
        """
        # JSON escapes a text that is not plain. A number has many spellings: a ledger writes 1000 for 1000.0, and other
        # files 1e3.
        if not self._is_plain or self._number is not None:
            return True
        return self.text.encode() in json_text if isinstance(json_text, bytes) else self.text in json_text

    def find_naming_member(self, node: object) -> str | None:
        """Return the outermost member of plain data in which a text names the choice; ``None`` if no text does.

        The name has to be a word of its own, and not a part of a longer one.
        """
        for member, text in _list_texts(node):
            if self._is_named_in(text):
                return member
        return None

    def describe(self) -> str:
        """Describe the choice as the command line shows it."""
        return f"subject {self.subject}" if self.name is None else f"{self.name}={self.value}"

    def digest(self, key: bytes) -> str:
        """Compute a digest of the choice with a key. Without a key, an id could be found by trying ids."""
        return f"hmac-sha256:{hmac.digest(key, self.describe().encode('utf-8', 'surrogatepass'), 'sha256').hex()}"

    @cached_property
    def _is_plain(self) -> bool:
        """True if JSON writes the text as it is, without an escape."""
        return self.text.isascii() and self.text.isprintable() and not set('"\\') & set(self.text)

    @cached_property
    def _number(self) -> int | float | None:
        """The chosen value as a JSON number; ``None`` if it is no number, or not a finite one."""
        try:
            number = json.loads(self.value)
        except (RecursionError, ValueError):
            return None
        is_number = isinstance(number, int | float) and not isinstance(number, bool) and isfinite(number)
        return number if is_number else None

    @cached_property
    def _spellings(self) -> frozenset[str]:
        """The spellings by which a text may name the choice.

        A text may itself be JSON, in which the name is escaped. Accents have two forms in Unicode, NFC and NFD, which
        look the same, so both count.
        """
        texts = {self.text, normalize("NFC", self.text), normalize("NFD", self.text)}
        texts |= set() if self._number is None else {_write_number(self._number)}
        return frozenset(
            spelling
            for text in texts
            for spelling in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        )

    def _is_named_in(self, text: str) -> bool:
        """Return whether a text names the choice as a word of its own."""
        # By ``str.find`` and not by a pattern: on a megabyte of one letter, a pattern would take days.
        return any(_has_word(text, spelling) for spelling in self._spellings)


def _has_word(text: str, word: str) -> bool:
    """Return whether a text has a word that is not a part of a longer one."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        continues_after = end < len(text) and _is_word_character(word[-1]) and _is_word_character(text[end])
        begins_before = start > 0 and _is_word_character(word[0]) and _is_word_character(text[start - 1])
        if not continues_after and not begins_before:
            return True
        search_from = start + 1
        if begins_before:
            # Skip the rest of the longer word. If it is long, each position in it would be compared again.
            after_word = _NON_WORD_CHARACTER.search(text, start)
            if after_word is None:
                return False
            search_from = after_word.end()
        start = text.find(word, search_from)
    return False


_NON_WORD_CHARACTER = re.compile(r"\W")


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def read_choice(subject: str | None, metadata: str | None) -> Choice:
    """Read the choice from ``--subject`` or ``--metadata``, of which one is given. Raises ``UsageError``."""
    if (subject is None) == (metadata is None):
        raise UsageError("name what is to be forgotten: give --subject SHA256, or --metadata NAME=VALUE, and not both")
    if subject is not None:
        digest = subject.removeprefix("sha256:").lower()
        if not _DIGEST.fullmatch(digest):
            raise UsageError(
                f"subject is the SHA-256 of a content, 64 hexadecimal digits, got {show(subject)}", argument="subject"
            )
        return Choice(subject=digest)
    name, equals_sign, value = (metadata or "").partition("=")
    if not name or not equals_sign or not value:
        raise UsageError(f"metadata is NAME=VALUE, such as customer=C-20931, got {show(metadata)}", argument="metadata")
    if max(len(name), len(value)) > LONGEST:
        raise UsageError(f"metadata has a name and a value of at most {LONGEST:,} characters", argument="metadata")
    return Choice(name=name, value=value)


def _write_number(number: float) -> str:
    """Write a number as a ledger does: a whole number has no decimal point, also if it is a float."""
    is_whole = isinstance(number, float) and number.is_integer()
    return json.dumps(int(number) if is_whole else number)


def _list_texts(node: object) -> Iterator[tuple[str, str]]:
    """Yield each text in plain data, after the outermost member that it is in. The names of members are texts too.

    Numbers count as texts in metadata, where they may be ids. Elsewhere they are counts and scores, and name nobody.
    """
    # Each with its outermost member, and whether it is in metadata. The data itself is in no member yet.
    remaining: list[tuple[str, Any, bool]] = [("", node, False)]
    while remaining:
        outermost, value, is_metadata = remaining.pop()
        if isinstance(value, str):
            yield outermost, value
        elif isinstance(value, Mapping):
            for name, inner_value in value.items():
                yield outermost or str(name), str(name)
                remaining.append((outermost or str(name), inner_value, is_metadata or name == "metadata"))
        elif isinstance(value, list | tuple):
            remaining += [(outermost, inner_value, is_metadata) for inner_value in value]
        elif is_metadata and isinstance(value, int | float) and not isinstance(value, bool):
            yield outermost, _write_number(value)
