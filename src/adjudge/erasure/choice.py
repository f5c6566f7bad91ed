"""The choice of the content to be forgotten: one content by its digest, or everything whose metadata have a value."""

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
        """The text by which other texts may name it."""
        return self.subject or self.value

    def matches(self, metadata: object) -> bool:
        """Return whether some metadata have exactly this value at the name."""
        if self.name is None or not isinstance(metadata, Mapping):
            return False
        if self.name in metadata and self._is_value(metadata[self.name]):
            return True
        node: object = metadata
        for part in self.name.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        return self._is_value(node)

    def _is_value(self, item: object) -> bool:
        if isinstance(item, str):
            return item == self.value
        if isinstance(item, bool):
            return self.value == json.dumps(item)
        # Not a list or an object: what is about several is for a person to look at.
        return isinstance(item, int | float) and self._number is not None and item == self._number

    def is_subject(self, subject: object) -> bool:
        """Return whether a digest is that of the chosen content."""
        return self.subject is not None and subject == self.subject

    def may_name(self, written: bytes | str) -> bool:
        """Return whether JSON that is not read yet can name it; quick, and true where that cannot be told."""
        # One number has many spellings: a ledger writes 1000 for 1000.0, and other files 1e3.
        if not self._is_plain or self._number is not None:
            return True
        return self.text.encode() in written if isinstance(written, bytes) else self.text in written

    def find_name(self, node: object) -> str | None:
        """Find the member in which plain data name it, on its own and not as a part of a longer word."""
        for member, text in _list_texts(node):
            if self._is_in(text):
                return member
        return None

    def describe(self) -> str:
        """Name it as the command line does."""
        return f"subject {self.subject}" if self.name is None else f"{self.name}={self.value}"

    def digest(self, key: bytes) -> str:
        """Digest the choice with a key: of an id, a plain digest could be found by trying."""
        return f"hmac-sha256:{hmac.digest(key, self.describe().encode('utf-8', 'surrogatepass'), 'sha256').hex()}"

    @cached_property
    def _is_plain(self) -> bool:
        return self.text.isascii() and self.text.isprintable() and not set('"\\') & set(self.text)

    @cached_property
    def _number(self) -> int | float | None:
        """The number that the value is, as JSON has it."""
        try:
            number = json.loads(self.value)
        except (RecursionError, ValueError):
            return None
        is_number = isinstance(number, int | float) and not isinstance(number, bool) and isfinite(number)
        return number if is_number else None

    @cached_property
    def _forms(self) -> frozenset[str]:
        """The ways in which a text may write it: a text may be JSON itself, which escapes what is in it.

        Also the other way to write its accents: it looks the same, so who asks cannot know which of them is there.
        """
        texts = {self.text, normalize("NFC", self.text), normalize("NFD", self.text)}
        texts |= set() if self._number is None else {_write_number(self._number)}
        return frozenset(
            form
            for text in texts
            for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        )

    def _is_in(self, text: str) -> bool:
        # By ``str.find`` and not by a pattern: on a megabyte of one letter, a pattern would take days.
        return any(_has_word(text, form) for form in self._forms)


def _has_word(text: str, word: str) -> bool:
    """Return whether a text has a word that is not a part of a longer one."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        goes_on = end < len(text) and _is_letter(word[-1]) and _is_letter(text[end])
        began = start > 0 and _is_letter(word[0]) and _is_letter(text[start - 1])
        if not goes_on and not began:
            return True
        # Past the word that it is a part of, where that is long: each place of it would be compared again.
        apart = _APART.search(text, start) if began else None
        start = -1 if began and apart is None else text.find(word, apart.end() if apart else start + 1)
    return False


_APART = re.compile(r"\W")


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def read_choice(subject: str | None, metadata: str | None) -> Choice:
    """Read ``--subject`` or ``--metadata``, exactly one; raises ``UsageError`` for anything else."""
    if (subject is None) == (metadata is None):
        raise UsageError("name what is to be forgotten: give --subject SHA256, or --metadata NAME=VALUE, and not both")
    if subject is not None:
        digest = subject.removeprefix("sha256:").lower()
        if not _DIGEST.fullmatch(digest):
            raise UsageError(
                f"subject is the SHA-256 of a content, 64 hexadecimal digits, got {show(subject)}", argument="subject"
            )
        return Choice(subject=digest)
    name, sign, value = (metadata or "").partition("=")
    if not name or not sign or not value:
        raise UsageError(f"metadata is NAME=VALUE, such as customer=C-20931, got {show(metadata)}", argument="metadata")
    if max(len(name), len(value)) > LONGEST:
        raise UsageError(f"metadata has a name and a value of at most {LONGEST:,} characters", argument="metadata")
    return Choice(name=name, value=value)


def _write_number(number: float) -> str:
    """Write a number or a truth value as a ledger does: of a whole one, without a point."""
    is_whole = isinstance(number, float) and number.is_integer()
    return json.dumps(int(number) if is_whole else number)


def _list_texts(node: object, member: str = "") -> Iterator[tuple[str, str]]:
    """List the texts of plain data, each with the outermost member that it is in; names of members are texts too.

    Numbers are texts in metadata, where they may be ids. Elsewhere they are counts and scores, and name nobody.
    """
    waiting: list[tuple[str, Any, bool]] = [(member, node, False)]
    while waiting:
        outer, item, may_be_id = waiting.pop()
        if isinstance(item, str):
            yield outer, item
        elif isinstance(item, Mapping):
            for name, inner in item.items():
                yield outer or str(name), str(name)
                waiting.append((outer or str(name), inner, may_be_id or name == "metadata"))
        elif isinstance(item, list | tuple):
            waiting += [(outer, inner, may_be_id) for inner in item]
        elif may_be_id and isinstance(item, int | float) and not isinstance(item, bool):
            yield outer, _write_number(item)
