"""Two texts line by line: what was taken out, what was put in, and how much is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_LINES = 2_000
"""Lines of either text that are compared; the time for more grows with their product."""

MOST_WORDS = 400
"""Words of a changed line that are compared one by one; a longer one is shown as changed altogether."""

AROUND = 2
"""Equal lines that are kept beside each change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPart:
    """A part of a line, and whether it changed: marks are drawn around words, and the text stays text."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of a difference."""

    kind: Literal["same", "minus", "plus", "skipped"]
    parts: tuple[DiffPart, ...] = ()
    count: int = 0
    """The number of equal lines that a ``skipped`` line replaces."""


def make_difference(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare ``after`` with ``before``; without a line where they are equal.

    Beyond ``MOST_LINES`` everything between the first and the last change is shown as taken out and put in.
    """
    if before == after:
        return ()
    return tuple(_skip_equal(list(_compare_lines(before.splitlines(), after.splitlines()))))


def _compare_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    for equal, start, end, first, last in _find_blocks(old, new, MOST_LINES):
        if equal:
            yield from (_make_line("same", line) for line in new[first:last])
        else:
            yield from _compare_changed(old[start:end], new[first:last])


def _compare_changed(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    pairs = [compare_words(was, now) for was, now in zip(old, new, strict=False)]
    yield from (DiffLine(kind="minus", parts=was) for was, _ in pairs)
    yield from (_make_line("minus", line, changed=True) for line in old[len(pairs) :])
    yield from (DiffLine(kind="plus", parts=now) for _, now in pairs)
    yield from (_make_line("plus", line, changed=True) for line in new[len(pairs) :])


def _make_line(kind: Literal["same", "minus", "plus"], line: str, *, changed: bool = False) -> DiffLine:
    return DiffLine(kind=kind, parts=(DiffPart(text=line, changed=changed),))


def compare_words(was: str, now: str) -> tuple[tuple[DiffPart, ...], tuple[DiffPart, ...]]:
    """Compare two lines word by word: the parts of the one that was, and of the one that is now."""
    old, new = re.findall(r"\s+|\w+|[^\w\s]", was), re.findall(r"\s+|\w+|[^\w\s]", now)
    before: list[DiffPart] = []
    after: list[DiffPart] = []
    for equal, start, end, first, last in _find_blocks(old, new, MOST_WORDS):
        before += [DiffPart(text="".join(old[start:end]), changed=not equal)] if end > start else []
        after += [DiffPart(text="".join(new[first:last]), changed=not equal)] if last > first else []
    return tuple(before), tuple(after)


_Block = tuple[bool, int, int, int, int]
"""Lines that are equal, or are not: whether they are, from and to in the old text, from and to in the new one."""


def _find_blocks(old: Sequence[str], new: Sequence[str], most: int) -> Iterator[_Block]:
    """Divide two texts into blocks of equal and of other lines; of more than ``most`` lines, only both ends are."""
    if max(len(old), len(new)) > most:
        yield from _find_ends(old, new)
        return
    from rapidfuzz.distance import LCSseq

    start = first = 0
    for block in LCSseq.editops(old, new).as_matching_blocks():
        if block.a > start or block.b > first:
            yield False, start, block.a, first, block.b
        start, first = block.a + block.size, block.b + block.size
        if block.size:
            yield True, block.a, start, block.b, first


def _find_ends(old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
    """Divide two texts into their equal beginning, one block of other lines, and their equal end."""
    shorter = min(len(old), len(new))
    head = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    tail = next((place for place in range(shorter - head) if old[-1 - place] != new[-1 - place]), shorter - head)
    if head:
        yield True, 0, head, 0, head
    if head < max(len(old), len(new)) - tail:
        yield False, head, len(old) - tail, head, len(new) - tail
    if tail:
        yield True, len(old) - tail, len(old), len(new) - tail, len(new)


def _skip_equal(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Replace long runs of equal lines by one that counts them."""
    kept_places = {
        neighbour
        for place, line in enumerate(lines)
        if line.kind != "same"
        for neighbour in range(place - AROUND, place + AROUND + 1)
    }
    skipped = 0
    for place, line in enumerate(lines):
        if place not in kept_places:
            skipped += 1
            continue
        if skipped:
            yield DiffLine(kind="skipped", count=skipped)
            skipped = 0
        yield line
    if skipped:
        yield DiffLine(kind="skipped", count=skipped)
