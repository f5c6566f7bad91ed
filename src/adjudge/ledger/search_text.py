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

_MARK_OF_KEY = {"customer": "\x1c", "agent": "\x1d", "link": "\x1e", "title": "\x1f"}
"""The character before the value of each documented key of metadata in a search text. No folded text has these
characters: to Python they are white space, so a content cannot pass for a customer or a title.
"""

FILTER_KEYS = tuple(_MARK_OF_KEY)
"""The keys of metadata that a query can name, as in ``customer:C-20931``."""

_EXACT_KEYS = ("customer", "agent")
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
        """List the texts that have to be somewhere in a search text: the words, and the part for each filter."""
        return [*self.words, *(write_filter_part(key, value) for key, value in self.filters)]

    def list_patterns(self) -> list[tuple[str, ...]]:
        """List the sequences of texts that a search text has to hold in their order, with anything between them.

        There is one for each filter whose value need not be whole, ``link`` or ``title``: the mark before the value,
        the value, and the mark behind it.
        """
        mark_before = {"link": _MARK_OF_KEY["link"], "title": _MARK_OF_KEY["title"]}
        mark_behind = {"link": _MARK_OF_KEY["title"], "title": ""}  # the title comes last
        partial_filters = [(key, value) for key, value in self.filters if key not in _EXACT_KEYS]
        return [(mark_before[key], value, mark_behind[key]) for key, value in partial_filters]


def write_filter_part(key: str, value: str) -> str:
    """Write the text that is part of the search text of every entry whose metadata have this value for this key.

    For a key whose whole value is compared, the marks before and behind the value are in it.
    """
    if key not in _EXACT_KEYS:
        return value
    next_key = FILTER_KEYS[FILTER_KEYS.index(key) + 1]
    return f"{_MARK_OF_KEY[key]}{value}{_MARK_OF_KEY[next_key]}"


_TERM = re.compile(rf'(?:(?P<key>{"|".join(_MARK_OF_KEY)}):)?(?:"(?P<quoted>[^"]*)"|(?P<word>\S+))', re.IGNORECASE)


def read_query(text: str) -> SearchQuery:
    """Read what somebody typed: words, ``"several words"``, and filters such as ``customer:C-20931``.

    A value with blanks is quoted: ``customer:"Ada Lovelace"``. A key that is none of ``FILTER_KEYS`` is part of a word.
    """
    # Escaped as in payloads, because no store holds half a surrogate pair.
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
    longest_words = sorted(words, key=len, reverse=True)[:MOST_WORDS]
    return SearchQuery(words=tuple(longest_words), filters=tuple(list(filters)[:MOST_WORDS]))


def fold(text: str) -> str:
    """Fold a text into a form that is the same for every spelling by which it should be found, such as in capitals."""
    folded = text.lower() if text.isascii() else normalize("NFKC", text).casefold()
    # NUL becomes a blank, because PostgreSQL stores no NUL.
    return " ".join(folded.replace("\0", " ").split())


_KEPT_DIGEST = re.compile("sha256:[0-9a-f]{64}")
"""A digest that a ledger keeps in place of a text. It is not searched: nobody looks for it, and the digest of the
content is the subject."""


def make_search_text(texts: Iterable[str | None], metadata: object) -> str:
    """Make the text of an entry that a search looks through: the given texts and the values of metadata, one a line.

    The last line has the values of the documented keys, each behind its mark. All texts are folded.
    """
    members = metadata if isinstance(metadata, dict) else {}
    others = {name: value for name, value in members.items() if name not in _MARK_OF_KEY}
    lines = [fold(text[:LONGEST_SEARCHED]) for text in texts if text and not _KEPT_DIGEST.fullmatch(text)]
    lines += [fold(text) for _, text in zip(range(_MOST_VALUES), _list_values(others), strict=False)]
    marked_values = [f"{mark}{_fold_value(members.get(key))}" for key, mark in _MARK_OF_KEY.items()]
    return "\n".join([*filter(None, lines), "".join(marked_values)])


def _fold_value(value: object) -> str:
    """Fold a text or a number; an empty text for any other value."""
    is_value = isinstance(value, str | int | float) and not isinstance(value, bool)
    return fold(str(value)[:_LONGEST_VALUE]) if is_value else ""


def _list_values(root: object) -> Iterator[str]:
    """Yield the texts and numbers in metadata, in order; without recursion, because metadata may be nested deeply."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            # Sorted by name, as in an entry's payload: the same text is derived from a draft and from the stored
            # payload.
            stack += [node[name] for name in sorted(node, reverse=True)]
        elif isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, str):
            yield node[:LONGEST_SEARCHED]
        elif isinstance(node, int | float) and not isinstance(node, bool):
            yield str(node)
