"""The difference between two texts, by lines and by words, for a person who decides about the second one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

MOST_COMPARED = 4_000_000
"""Pairs of lines, or of words, that are compared; what is larger counts as wholly changed, because comparing takes
time that grows with the product, and the texts are anybody's."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

_AROUND = 1
"""Equal lines that are shown beside a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPart:
    """A piece of a line."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a difference: equal, only in the earlier text, only in the later one, or several equal ones."""

    kind: Literal["same", "minus", "plus", "skipped"]
    parts: tuple[DiffPart, ...] = ()
    count: int = 1
    """How many lines it is; more than 1 for ``skipped`` alone, which has no text."""


def make_difference(before: str, after: str) -> tuple[DiffLine, ...]:
    """What changed from one text to another; empty if nothing did.

    Equal lines are counted, but for one beside each change. Within changed lines, changed words are marked.
    """
    if before == after:
        return ()
    return tuple(_shorten(list(_compare_lines(before.split("\n"), after.split("\n")))))


def _compare_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffLine]:
    for tag, old, new in _match(before, after):
        if tag == "equal":
            yield from [DiffLine(kind="same", parts=(DiffPart(text=line),)) for line in new]
            continue
        paired = min(len(old), len(new))
        for earlier, later in zip(old[:paired], new[:paired], strict=True):
            yield from _compare_words(earlier, later)
        yield from [DiffLine(kind="minus", parts=(DiffPart(text=line, changed=True),)) for line in old[paired:]]
        yield from [DiffLine(kind="plus", parts=(DiffPart(text=line, changed=True),)) for line in new[paired:]]


def _compare_words(before: str, after: str) -> tuple[DiffLine, DiffLine]:
    old: list[DiffPart] = []
    new: list[DiffPart] = []
    for tag, left, right in _match(_WORDS.findall(before), _WORDS.findall(after)):
        changed = tag != "equal"
        old += [DiffPart(text="".join(left), changed=changed)] if left else []
        new += [DiffPart(text="".join(right), changed=changed)] if right else []
    return DiffLine(kind="minus", parts=tuple(old)), DiffLine(kind="plus", parts=tuple(new))


def _match(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """The equal and the changed stretches of two sequences, in order."""
    first = _count_equal(before, after)
    last = _count_equal(before[first:][::-1], after[first:][::-1])
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    if first:
        yield "equal", before[:first], after[:first]
    if len(old) * len(new) > MOST_COMPARED:
        yield "replace", old, new
    else:
        # Without its heuristic for long sequences, which drops what occurs often and then finds other changes.
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            yield tag, old[a:b], new[c:d]
    if last:
        yield "equal", before[len(before) - last :], after[len(after) - last :]


def _count_equal(before: Sequence[str], after: Sequence[str]) -> int:
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count


def _shorten(lines: list[DiffLine]) -> Iterator[DiffLine]:
    """The lines with equal ones counted that are not beside a change."""
    changed = {place for place, line in enumerate(lines) if line.kind != "same"}
    near = {place + step for place in changed for step in range(-_AROUND, _AROUND + 1)}
    skipped = 0
    for place, line in enumerate(lines):
        if place not in near:
            skipped += 1
            continue
        if skipped:
            yield DiffLine(kind="skipped", count=skipped)
        skipped = 0
        yield line
    if skipped:
        yield DiffLine(kind="skipped", count=skipped)
