"""Contents by their digests: one content, and all contents of a run or a data set, whatever their order and ids."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from adjudge.content import content_text, digest_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_digest, check_whole_number
from adjudge.formats.plain_data import to_plain
from adjudge.formats.record import write_record

_SIZE = 32
"""Bytes of a digest."""

_CHUNK = 1 << 16
"""Digests that are sorted at once: 2 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSet:
    """The contents of a run or a data set. Two sets are equal if they hold the same contents equally often."""

    digest: str
    """SHA-256 over the sorted SHA-256 digests (32 bytes each) of the contents."""
    cases: int
    """The number of contents, repeated ones included."""

    def __post_init__(self) -> None:
        check_digest("contents", self.digest)
        check_whole_number("cases", self.cases, least=0)

    def to_dict(self) -> dict[str, str | int]:
        """Return the set as plain data."""
        return write_record(self)


def read_content_set(value: object) -> ContentSet | None:
    """Read the set that ``to_dict`` wrote; ``None`` for anything else, so that a damaged file makes nothing random."""
    if not isinstance(value, Mapping):
        return None
    try:
        return ContentSet(digest=value.get("digest"), cases=value.get("cases"))  # type: ignore[arg-type] - checked
    except UsageError:
        return None


class ErasedContent(str):
    """The text in place of a content that ``adjudge forget`` deleted; it has the digest that the content had.

    A type of its own, which nothing that is read makes but a run's file: data could otherwise say that their content is
    another than it is.
    """

    __slots__ = ("digest",)

    digest: str

    def __new__(cls, digest: str) -> Self:
        """Make the text in place of the content with a digest."""
        text = super().__new__(cls, ERASED)
        text.digest = digest
        return text


ERASED = "Deleted by adjudge forget."
"""The text that a case has in place of its content once it is erased."""


def digest_content(content: object) -> str:
    """Compute the SHA-256 of a content as a judge is shown it: the ``subject`` of its results.

    Of a pair the sides count by name, in whichever order they are written. A content that no judge can be shown, such
    as one with half of a surrogate pair, has a digest too, which no text has.

    Args:
        content: The content, as a judge is given it.
    """
    if isinstance(content, ErasedContent):
        return content.digest
    plain = content if isinstance(content, str) else to_plain(content)
    if isinstance(plain, dict) and len(plain) == 2 and plain.keys() == {"a", "b"}:
        plain = {"a": plain["a"], "b": plain["b"]}
    try:
        return digest_text(content_text(plain))
    except UsageError:
        # No text that is judged holds a NUL character.
        return digest_text("\x00" + json.dumps(plain))


class ContentTally:
    """The digests of the contents of a run or a data set, collected to make a set of them: 32 bytes each."""

    def __init__(self) -> None:
        self._sorted_chunks: list[bytes] = []
        """Sorted digests, one behind another in each chunk."""
        self._unsorted: list[bytes] = []
        self._cases = 0

    def add(self, digest: str) -> None:
        """Add a content by its digest."""
        self._cases += 1
        self._unsorted.append(bytes.fromhex(digest))
        if len(self._unsorted) >= _CHUNK:
            self._sort_chunk()

    def finish(self) -> ContentSet:
        """Return the set of the contents added so far."""
        self._sort_chunk()
        set_hash = hashlib.sha256()
        for digest in heapq.merge(*map(_split_digests, self._sorted_chunks)):
            set_hash.update(digest)
        return ContentSet(digest=set_hash.hexdigest(), cases=self._cases)

    def _sort_chunk(self) -> None:
        """Sort the digests that are not sorted yet into a chunk of their own."""
        if self._unsorted:
            self._sorted_chunks.append(b"".join(sorted(self._unsorted)))
            self._unsorted = []


def make_content_set(digests: Iterable[str]) -> ContentSet:
    """Return the set of contents with these digests.

    Args:
        digests: The digests, as ``digest_content`` makes them.
    """
    tally = ContentTally()
    for digest in digests:
        tally.add(digest)
    return tally.finish()


def _split_digests(digests: bytes) -> Iterator[bytes]:
    """Yield the digests that stand one behind another in a chunk, 32 bytes each."""
    for start in range(0, len(digests), _SIZE):
        yield digests[start : start + _SIZE]
