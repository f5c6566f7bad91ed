"""Two texts, or the values of two objects, line by line: what was taken out, what was put in, what is the same."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
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
    is_name: bool = False
    """True if it names the value whose lines follow, and is no line of a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedText:
    """The text of one value of an object, with its name."""

    name: str
    text: str
    place: str = field(compare=False)
    """The name with its numbers in lists, which move as soon as one before it is put in."""


def make_difference(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare ``after`` with ``before``; without a line where they are equal.

    Beyond ``MOST_LINES`` everything between the first and the last change is shown as taken out and put in.
    """
    if before == after:
        return ()
    return tuple(_skip_equal(list(_compare_texts(before, after))))


def make_value_difference(before: Sequence[NamedText], after: Sequence[NamedText]) -> tuple[DiffLine, ...]:
    """Compare values by their names and lines; without a line where they are equal.

    Each line of a value stands below its name, so no value can look like the name or the line of another.
    """
    if before == after:
        return ()
    return tuple(_skip_equal(list(_compare_values(before, after))))


def _compare_values(old: Sequence[NamedText], new: Sequence[NamedText]) -> Iterator[DiffLine]:
    for equal, start, end, first, last in _find_blocks(old, new, MOST_LINES):
        if equal:
            yield from _list_lines("same", new[first:last])
        else:
            yield from _compare_changed_values(old[start:end], new[first:last])


def _compare_changed_values(old: Sequence[NamedText], new: Sequence[NamedText]) -> Iterator[DiffLine]:
    """Compare values none of which is in both: those of one name with each other."""
    names = [value.name for value in old], [value.name for value in new]
    for equal, start, end, first, last in _find_blocks(*names, MOST_LINES):
        if not equal:
            yield from _list_lines("minus", old[start:end])
            yield from _list_lines("plus", new[first:last])
            continue
        for was, now in zip(old[start:end], new[first:last], strict=True):
            yield _make_line("same", now.place, is_name=True)
            yield from _compare_texts(was.text, now.text)


def _list_lines(kind: Literal["same", "minus", "plus"], values: Sequence[NamedText]) -> Iterator[DiffLine]:
    changed = kind != "same"
    for value in values:
        yield _make_line(kind, value.place, changed=changed, is_name=True)
        yield from (_make_line(kind, line, changed=changed) for line in value.text.split("\n"))


def _compare_texts(before: str, after: str) -> Iterator[DiffLine]:
    # At line feeds alone: what else ends a line stays in it, and is marked where it was changed.
    return _compare_lines(before.split("\n"), after.split("\n"))


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


def _make_line(
    kind: Literal["same", "minus", "plus"], line: str, *, changed: bool = False, is_name: bool = False
) -> DiffLine:
    return DiffLine(kind=kind, parts=(DiffPart(text=line, changed=changed),), is_name=is_name)


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


def _find_blocks(old: Sequence[Hashable], new: Sequence[Hashable], most: int) -> Iterator[_Block]:
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


def _find_ends(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[_Block]:
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
    """Replace long runs of equal lines by one that counts them; the name of a value that changed is kept with it."""
    names = list(accumulate((place if line.is_name else -1 for place, line in enumerate(lines)), max))
    kept_places: set[int] = set()
    for place, line in enumerate(lines):
        if line.kind != "same":
            around = range(max(place - AROUND, 0), min(place + AROUND + 1, len(lines)))
            kept_places |= {names[place], *(each for each in around if names[each] == names[place])}
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
