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

EQUAL_LINES_AROUND = 2
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
    """The name with positions in lists, which change as soon as a value is put in before; so it is not compared."""


def make_difference(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare ``after`` with ``before``; without a line where they are equal.

    Beyond ``MOST_LINES`` everything between the first and the last change is shown as taken out and put in.
    """
    if before == after:
        return ()
    return tuple(_skip_equal(list(_compare_texts(before, after))))


def make_value_difference(before: Sequence[NamedText], after: Sequence[NamedText]) -> tuple[DiffLine, ...]:
    """Compare values by their names and lines; without a line where they are equal.

    The name of each value is a line above its own lines, so no value can look like the name or a line of another.
    """
    if before == after:
        return ()
    return tuple(_skip_equal(list(_compare_values(before, after))))


def _compare_values(old: Sequence[NamedText], new: Sequence[NamedText]) -> Iterator[DiffLine]:
    """Yield the lines of values that are in both, and the differences of all others, in their order."""
    for is_equal, old_start, old_end, new_start, new_end in _find_blocks(old, new, MOST_LINES):
        if is_equal:
            yield from _list_lines("same", new[new_start:new_end])
        else:
            yield from _compare_changed_values(old[old_start:old_end], new[new_start:new_end])


def _compare_changed_values(old: Sequence[NamedText], new: Sequence[NamedText]) -> Iterator[DiffLine]:
    """Compare values that are not equal: the texts of two values with the same name are compared line by line."""
    old_names, new_names = [value.name for value in old], [value.name for value in new]
    for is_same_name, old_start, old_end, new_start, new_end in _find_blocks(old_names, new_names, MOST_LINES):
        if not is_same_name:
            yield from _list_lines("minus", old[old_start:old_end])
            yield from _list_lines("plus", new[new_start:new_end])
            continue
        for old_value, new_value in zip(old[old_start:old_end], new[new_start:new_end], strict=True):
            yield _make_line("same", new_value.place, is_name=True)
            yield from _compare_texts(old_value.text, new_value.text)


def _list_lines(kind: Literal["same", "minus", "plus"], values: Sequence[NamedText]) -> Iterator[DiffLine]:
    """Yield the name and the lines of each value, all of one kind."""
    changed = kind != "same"
    for value in values:
        yield _make_line(kind, value.place, changed=changed, is_name=True)
        yield from (_make_line(kind, line, changed=changed) for line in value.text.split("\n"))


def _compare_texts(before: str, after: str) -> Iterator[DiffLine]:
    """Yield the difference of two texts, line by line."""
    # Split at line feeds alone: a carriage return stays in its line, and is marked where it was changed.
    return _compare_lines(before.split("\n"), after.split("\n"))


def _compare_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """Yield equal lines, and blocks of changed lines with their changed words marked."""
    for is_equal, old_start, old_end, new_start, new_end in _find_blocks(old, new, MOST_LINES):
        if is_equal:
            yield from (_make_line("same", line) for line in new[new_start:new_end])
        else:
            yield from _compare_changed(old[old_start:old_end], new[new_start:new_end])


def _compare_changed(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """Yield a block of changed lines: all that were taken out, and then all that were put in.

    The first old line is compared word by word with the first new line, the second with the second, and so on. Lines
    without a counterpart are marked as a whole.
    """
    pairs = [compare_words(old_line, new_line) for old_line, new_line in zip(old, new, strict=False)]
    yield from (DiffLine(kind="minus", parts=old_parts) for old_parts, _ in pairs)
    yield from (_make_line("minus", line, changed=True) for line in old[len(pairs) :])
    yield from (DiffLine(kind="plus", parts=new_parts) for _, new_parts in pairs)
    yield from (_make_line("plus", line, changed=True) for line in new[len(pairs) :])


def _make_line(
    kind: Literal["same", "minus", "plus"], line: str, *, changed: bool = False, is_name: bool = False
) -> DiffLine:
    """Make a line of a single part."""
    return DiffLine(kind=kind, parts=(DiffPart(text=line, changed=changed),), is_name=is_name)


def compare_words(old: str, new: str) -> tuple[tuple[DiffPart, ...], tuple[DiffPart, ...]]:
    """Compare two lines word by word; return the parts of the old line and those of the new line.

    A word is also a run of blanks, or a single punctuation mark.
    """
    old_words, new_words = re.findall(r"\s+|\w+|[^\w\s]", old), re.findall(r"\s+|\w+|[^\w\s]", new)
    old_parts: list[DiffPart] = []
    new_parts: list[DiffPart] = []
    for is_equal, old_start, old_end, new_start, new_end in _find_blocks(old_words, new_words, MOST_WORDS):
        if old_end > old_start:
            old_parts.append(DiffPart(text="".join(old_words[old_start:old_end]), changed=not is_equal))
        if new_end > new_start:
            new_parts.append(DiffPart(text="".join(new_words[new_start:new_end]), changed=not is_equal))
    return tuple(old_parts), tuple(new_parts)


_Block = tuple[bool, int, int, int, int]
"""A block of two sequences: whether it is equal in both, its start and end in the old one, and those in the new one."""


def _find_blocks(old: Sequence[Hashable], new: Sequence[Hashable], most: int) -> Iterator[_Block]:
    """Divide two sequences, such as the lines of two texts, into blocks that are equal in both and blocks that differ.

    Of sequences with more than ``most`` items, only the beginning and the end are compared.
    """
    if max(len(old), len(new)) > most:
        yield from _find_equal_ends(old, new)
        return
    from rapidfuzz.distance import LCSseq

    old_done = new_done = 0  # how much of each sequence is divided already
    for equal in LCSseq.editops(old, new).as_matching_blocks():
        if equal.a > old_done or equal.b > new_done:
            yield False, old_done, equal.a, new_done, equal.b
        old_done, new_done = equal.a + equal.size, equal.b + equal.size
        if equal.size:
            yield True, equal.a, old_done, equal.b, new_done


def _find_equal_ends(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[_Block]:
    """Divide two sequences into their equal beginning, one block that differs, and their equal end."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    # What belongs to the equal beginning is not counted again.
    longest_tail = shorter - head
    tail = next((index for index in range(longest_tail) if old[-1 - index] != new[-1 - index]), longest_tail)
    if head:
        yield True, 0, head, 0, head
    if head < max(len(old), len(new)) - tail:
        yield False, head, len(old) - tail, head, len(new) - tail
    if tail:
        yield True, len(old) - tail, len(old), len(new) - tail, len(new)


def _skip_equal(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Replace long runs of equal lines by one line that counts them.

    Beside each change, ``EQUAL_LINES_AROUND`` equal lines of the same value are kept, and the name of the value.
    """
    # For each line, the index of the line that names its value; -1 where values have no names.
    name_indexes = list(accumulate((index if line.is_name else -1 for index, line in enumerate(lines)), max))
    kept_indexes: set[int] = set()
    for index, line in enumerate(lines):
        if line.kind != "same":
            around = range(max(index - EQUAL_LINES_AROUND, 0), min(index + EQUAL_LINES_AROUND + 1, len(lines)))
            name_index = name_indexes[index]
            kept_indexes.add(name_index)
            kept_indexes.update(other for other in around if name_indexes[other] == name_index)
    skipped = 0
    for index, line in enumerate(lines):
        if index not in kept_indexes:
            skipped += 1
            continue
        if skipped:
            yield DiffLine(kind="skipped", count=skipped)
            skipped = 0
        yield line
    if skipped:
        yield DiffLine(kind="skipped", count=skipped)
