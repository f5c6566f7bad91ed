"""A screen on which a person reads a long text beside what they are asked, as lines of a terminal.

The screen of ``adjudge label`` is put together from these in ``commands/label.py``.

Everything shown is somebody's text: no control character of it reaches the terminal. Texts are wrapped as far as they
are looked at, so that one of 10 MB is there at once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from adjudge.formats.text import clean

Style = Literal["", "bold", "dim"]

_CODES = {"bold": "1", "dim": "2"}

WIDE = 100
"""Columns from which on two texts stand side by side."""

_TAB = 4

_CHUNK = 20_000
"""Characters of one line that are looked at together."""

_SCANNED = 4
"""Characters that are measured for each column: marks that take no room have no end otherwise."""


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """One line, without control characters and no wider than was asked for."""

    text: str
    style: Style = ""

    def render(self) -> str:
        """The line with its style."""
        return f"\x1b[{_CODES[self.style]}m{self.text}\x1b[0m" if self.style and self.text else self.text


@dataclass(frozen=True, slots=True)
class Passage:
    """A text under a heading."""

    heading: str
    text: str = ""


class Wrapped:
    """Passages as lines of a width, wrapped when they are first looked at."""

    def __init__(self, passages: Sequence[Passage], width: int) -> None:
        self._source = _wrap_all(passages, max(width, 10))
        self._lines: list[ScreenLine] = []
        self._ended = False

    def read(self, start: int, stop: int) -> list[ScreenLine]:
        """Some of the lines."""
        self._reach(stop)
        return self._lines[start:stop]

    def has(self, number: int) -> bool:
        """Return whether there is a line of this number, from 0."""
        self._reach(number + 1)
        return len(self._lines) > number

    def count(self) -> int:
        """Count the lines; wraps all of them."""
        self._reach(None)
        return len(self._lines)

    def known(self) -> int | None:
        """Return the number of lines where the end was looked at, else ``None``."""
        return len(self._lines) if self._ended else None

    def _reach(self, number: int | None) -> None:
        if self._ended or (number is not None and number <= len(self._lines)):
            return
        wanted = None if number is None else number - len(self._lines) + 1
        before = len(self._lines)
        self._lines.extend(islice(self._source, wanted))
        self._ended = wanted is None or len(self._lines) - before < wanted


def _wrap_all(passages: Sequence[Passage], width: int) -> Iterator[ScreenLine]:
    for number, passage in enumerate(passages):
        if number:
            yield ScreenLine("")
        yield from (ScreenLine(text, "bold") for text in wrap(passage.heading, width))
        if passage.text:
            yield from (ScreenLine(f"  {text}".rstrip()) for text in wrap(passage.text, width - 2))


def wrap(text: str, width: int) -> Iterator[str]:
    """The lines of a text, broken between words where there is a place, none wider than ``width`` columns."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end == start:
            yield ""
        for place in range(start, end, _CHUNK):
            piece = text[place : min(place + _CHUNK, end)].expandtabs(_TAB)
            yield from _wrap_line(clean(piece, keep_lines=False), width)
        start = end + 1


def _wrap_line(line: str, width: int) -> Iterator[str]:
    """Yield pieces of a line that fit into ``width`` columns; the space at which it breaks is left out."""
    while line:
        fits = _count_fitting(line, width)
        if fits < len(line):
            space = line.rfind(" ", 0, fits + 1)
            # A word that is longer than the line is cut, because nothing else would end.
            fits = space if space > 0 and line[:space].strip() else fits
        yield line[:fits]
        rest = line[fits:]
        line = rest.removeprefix(" ") if fits < len(line) else ""


def _count_fitting(line: str, width: int) -> int:
    """Count the characters of a line that fit; at least one, and no more than a few for each column.

    Hundreds of marks on one letter take no room, and a terminal would still have to draw them.
    """
    if line.isascii():
        return min(len(line), width)
    from rich.cells import get_character_cell_size

    taken = 0
    for place, character in enumerate(line[: _SCANNED * width]):
        taken += get_character_cell_size(character)
        if taken > width:
            return max(place, 1)
    return min(len(line), _SCANNED * width)


def fit(text: str, width: int) -> str:
    """A text as one line, cut with an ellipsis where it is wider."""
    # What is left out by ``clean`` takes no room, so that more is read than is counted.
    read = 2 * _SCANNED * width
    line = clean(text[:read], keep_lines=False)
    if len(text) <= read and _count_fitting(line, width) == len(line):
        return line
    return f"{line[: _count_fitting(line, max(width - 1, 1))]}…"


def pad(text: str, width: int) -> str:
    """A line with blanks up to a width."""
    from rich.cells import cell_len

    return text + " " * (width - cell_len(text))


def reads_leftward(texts: Sequence[str]) -> bool:
    """Return whether a text has letters of a script that is read from right to left, at least near its beginning.

    A terminal may turn such a line around as a whole, and what is beside it would be in the middle of it.
    """
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for text in texts for letter in text[:_CHUNK])


class Pages:
    """The body of a screen: a text with notes beside it, or below it where the screen is narrow."""

    def __init__(self, text: Sequence[Passage], notes: Sequence[Passage], width: int) -> None:
        texts = [passage.text for passage in (*text, *notes)] + [passage.heading for passage in (*text, *notes)]
        self.split = width >= WIDE and bool(notes) and not reads_leftward(texts)
        self._left = (width * 3) // 5
        self._main = Wrapped(text if self.split else [*text, *notes], self._left - 1 if self.split else width)
        self._notes = Wrapped(notes, width - self._left - 2) if self.split else None
        self.top = 0

    def read(self, height: int) -> list[str]:
        """The lines that are seen now, ``height`` of them."""
        main = self._main.read(self.top, self.top + height)
        if self._notes is None:
            return [line.render() for line in main] + [""] * (height - len(main))
        # Short notes stay where they are while the text is turned; long ones are turned along.
        start = min(self.top, max(0, self._notes.count() - height)) if self._notes.has(height) else 0
        beside = self._notes.read(start, start + height)
        rows = [*islice(chain(main, (ScreenLine("") for _ in range(height))), height)]
        notes = [*islice(chain(beside, (ScreenLine("") for _ in range(height))), height)]
        return [self._join_columns(one, other) for one, other in zip(rows, notes, strict=True)]

    def _join_columns(self, one: ScreenLine, other: ScreenLine) -> str:
        padded = pad(one.text, self._left)
        return f"{ScreenLine(padded, one.style).render()}│ {other.render()}".rstrip()

    def turn(self, lines: int, height: int) -> None:
        """Move down, or up where it is negative, and no further than there is something to see."""
        wanted = max(0, self.top + lines)
        if lines > 0 and not self._has(wanted + height - 1):
            wanted = min(wanted, max(0, self._count_lines() - height))
        self.top = wanted

    def _has(self, number: int) -> bool:
        return self._main.has(number) or (self._notes is not None and self._notes.has(number))

    def _count_lines(self) -> int:
        return max(self._main.count(), 0 if self._notes is None else self._notes.count())

    def has_more(self, height: int) -> bool:
        """Return whether something is below what is seen."""
        return self._has(self.top + height)

    def describe(self, height: int) -> str | None:
        """Describe which lines are seen, where not all are."""
        if not self.top and not self.has_more(height):
            return None
        known = self._main.known()
        last = self.top + height if self.has_more(height) else self._count_lines()
        of = f" of {known:,}" if known is not None and self._notes is None else ""
        more = "; space shows more" if self.has_more(height) else ""
        return f"lines {self.top + 1:,} to {last:,}{of}{more}"
