"""The texts that a search reads, and its queries, in one form, so that one is part of the other.

Both are folded: no capitals, compatible characters as one, white space as one blank. A query is data, whatever
characters it has. Nothing here knows a database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unicodedata import normalize

MOST_WORDS = 200
"""Different words of a query that count; of more, the longest do."""

LONGEST_QUERY = 10_000
"""Characters of a query."""

LONGEST_SEARCHED = 100_000
"""Characters of one text, such as a content, that are searched."""

_MOST_VALUES = 200
"""Values in an entry's metadata that are searched."""

_MARKS = {"customer": "\x1c", "agent": "\x1d", "link": "\x1e", "title": "\x1f"}
"""The character before the value of each documented key of metadata in a search text. No folded text has these
characters: to Python they are white space, so a content cannot pass for a customer or a title.
"""

FILTER_KEYS = tuple(_MARKS)
"""The keys of metadata that a query can name, as in ``customer:C-20931``."""

_EXACT = ("customer", "agent")
"""Of these, the whole value is compared; of the others, a part of it is looked for."""

_LONGEST_VALUE = 2_000
"""Characters of a filter's value that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """Words that are all in an entry's search text, and what its metadata say under documented keys; all folded."""

    words: tuple[str, ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    """Pairs of one of ``FILTER_KEYS`` and a value."""

    def __bool__(self) -> bool:
        return bool(self.words or self.filters)

    def list_parts(self) -> list[str]:
        """List the parts that are in every search text that matches."""
        return [*self.words, *(write_part(key, value) for key, value in self.filters)]

    def list_patterns(self) -> list[tuple[str, ...]]:
        """List what else a match has to have: parts that follow each other in this order, with anything between."""
        before = {"link": _MARKS["link"], "title": _MARKS["title"]}
        behind = {"link": _MARKS["title"], "title": ""}
        loose = [(key, value) for key, value in self.filters if key not in _EXACT]
        return [(before[key], value, behind[key]) for key, value in loose]


def write_part(key: str, value: str) -> str:
    """Write the part that the search text of an entry has whose metadata say this."""
    if key not in _EXACT:
        return value
    following = FILTER_KEYS[FILTER_KEYS.index(key) + 1]
    return f"{_MARKS[key]}{value}{_MARKS[following]}"


_TERM = re.compile(rf'(?:(?P<key>{"|".join(_MARKS)}):)?(?:"(?P<quoted>[^"]*)"|(?P<word>\S+))', re.IGNORECASE)


def read_query(text: str) -> SearchQuery:
    """Read what somebody typed: words, ``"several words"``, and filters such as ``customer:C-20931``.

    A value with blanks is quoted: ``customer:"Ada Lovelace"``. A key that is none of ``FILTER_KEYS`` is part of a word.
    """
    # As payloads have it: no store holds half a character.
    storable = text[:LONGEST_QUERY].encode("utf-8", "backslashreplace").decode()
    words: dict[str, None] = {}
    filters: dict[tuple[str, str], None] = {}
    for term in _TERM.finditer(storable.replace("\0", " ")):
        key, value = term["key"], fold(term["quoted"] if term["quoted"] is not None else term["word"])
        if key is None:
            value = value.removeprefix("sha256:")
        if not value:
            continue
        if key is None:
            words[value] = None
        else:
            filters[key.lower(), value[:_LONGEST_VALUE]] = None
    kept = sorted(words, key=len, reverse=True)[:MOST_WORDS]
    return SearchQuery(words=tuple(kept), filters=tuple(list(filters)[:MOST_WORDS]))


def fold(text: str) -> str:
    """Fold a text: the same for every way of writing it in which it should be found."""
    folded = text.lower() if text.isascii() else normalize("NFKC", text).casefold()
    # PostgreSQL holds no NUL.
    return " ".join(folded.replace("\0", " ").split())


_DIGEST = re.compile("sha256:[0-9a-f]{64}")
"""The digest that a ledger keeps of a text by default. Nobody looks for it, and the content's is the subject."""


def make_search_text(texts: Iterable[str | None], metadata: object) -> str:
    """Make the text that a search looks through: some texts, one a line, and what metadata say."""
    members = metadata if isinstance(metadata, dict) else {}
    others = {name: value for name, value in members.items() if name not in _MARKS}
    lines = [fold(text[:LONGEST_SEARCHED]) for text in texts if text and not _DIGEST.fullmatch(text)]
    lines += [fold(text) for _, text in zip(range(_MOST_VALUES), _list_values(others), strict=False)]
    known = [f"{mark}{_fold_value(members.get(key))}" for key, mark in _MARKS.items()]
    return "\n".join([*filter(None, lines), "".join(known)])


def _fold_value(value: object) -> str:
    is_value = isinstance(value, str | int | float) and not isinstance(value, bool)
    return fold(str(value)[:_LONGEST_VALUE]) if is_value else ""


def _list_values(root: object) -> Iterator[str]:
    """List the texts and numbers in metadata, in order; with a stack, so that deep metadata exhaust no recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            # By their names, as an entry's payload has them: the text is derived from either, and compared.
            stack += [node[name] for name in sorted(node, reverse=True)]
        elif isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, str):
            yield node[:LONGEST_SEARCHED]
        elif isinstance(node, int | float) and not isinstance(node, bool):
            yield str(node)
