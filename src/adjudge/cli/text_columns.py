"""Text in one or two columns of a terminal, as ``adjudge label`` shows a long text with notes beside it.

The whole screen is put together in ``commands/label.py``. The texts were written by others, so no control character of
theirs reaches the terminal. A text is wrapped only as far as it is shown, so that one of 10 MB is shown at once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from adjudge.formats.text import clean

Style = Literal["", "bold", "dim"]

_STYLE_CODES = {"bold": "1", "dim": "2"}

WIDE = 100
"""Columns of a terminal from which on notes are shown beside the text, and not below it."""

_TAB = 4

_CHUNK = 20_000
"""Characters of one line that are cleaned and wrapped together."""

_SCANNED = 4
"""Characters that are measured for each column at most: combining marks take no column, so there may be any number."""


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """One line of a screen, without control characters, and no wider than its column."""

    text: str
    style: Style = ""

    def render(self) -> str:
        """Return the line with the control characters of its style."""
        return f"\x1b[{_STYLE_CODES[self.style]}m{self.text}\x1b[0m" if self.style and self.text else self.text


@dataclass(frozen=True, slots=True)
class Passage:
    """A text under a heading."""

    heading: str
    text: str = ""


class WrappedText:
    """The lines of some passages in a column of a certain width; each is wrapped when it is first needed."""

    def __init__(self, passages: Sequence[Passage], width: int) -> None:
        self._unread_lines = _wrap_all(passages, max(width, 10))
        self._lines: list[ScreenLine] = []
        self._has_ended = False
        """True once the last line is in ``_lines``."""

    def read(self, start: int, stop: int) -> list[ScreenLine]:
        """Return the lines from ``start`` to before ``stop``; fewer at the end of the text."""
        self._wrap_until(stop)
        return self._lines[start:stop]

    def has_line(self, number: int) -> bool:
        """Return whether there is a line of this number, from 0."""
        self._wrap_until(number + 1)
        return len(self._lines) > number

    def count(self) -> int:
        """Count the lines; wraps all of them."""
        self._wrap_until(None)
        return len(self._lines)

    def count_if_known(self) -> int | None:
        """Return the number of lines if all were wrapped already, else ``None``."""
        return len(self._lines) if self._has_ended else None

    def _wrap_until(self, number: int | None) -> None:
        """Wrap the text until there are ``number`` lines or it ends; ``None`` wraps all of it.

        One line more than asked for is wrapped, which shows whether the text has ended.
        """
        if self._has_ended or (number is not None and number <= len(self._lines)):
            return
        missing = None if number is None else number - len(self._lines) + 1
        count_before = len(self._lines)
        self._lines.extend(islice(self._unread_lines, missing))
        self._has_ended = missing is None or len(self._lines) - count_before < missing


def _wrap_all(passages: Sequence[Passage], width: int) -> Iterator[ScreenLine]:
    """Yield the lines of all passages: bold headings, indented texts, and an empty line between passages."""
    for number, passage in enumerate(passages):
        if number:
            yield ScreenLine("")
        yield from (ScreenLine(text, "bold") for text in wrap(passage.heading, width))
        if passage.text:
            yield from (ScreenLine(f"  {text}".rstrip()) for text in wrap(passage.text, width - 2))


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, broken between words where possible, none wider than ``width`` columns."""
    line_start = 0
    while line_start <= len(text):
        line_end = text.find("\n", line_start)
        line_end = len(text) if line_end < 0 else line_end
        if line_end == line_start:
            yield ""
        for chunk_start in range(line_start, line_end, _CHUNK):
            chunk = text[chunk_start : min(chunk_start + _CHUNK, line_end)].expandtabs(_TAB)
            yield from _wrap_line(clean(chunk, keep_lines=False), width)
        line_start = line_end + 1


def _wrap_line(line: str, width: int) -> Iterator[str]:
    """Yield pieces of a line that fit into ``width`` columns; the space at which it breaks is left out."""
    while line:
        piece_length = _count_fitting(line, width)
        if piece_length < len(line):
            space = line.rfind(" ", 0, piece_length + 1)
            # Break at the last space. A word that is wider than the column has none, and is cut.
            piece_length = space if space > 0 and line[:space].strip() else piece_length
        yield line[:piece_length]
        remaining = line[piece_length:]
        line = remaining.removeprefix(" ") if piece_length < len(line) else ""


def _count_fitting(line: str, width: int) -> int:
    """Count the characters at the beginning of a line that fit into ``width`` columns; at least one.

    At most ``_SCANNED`` characters are counted for each column: hundreds of combining marks on one letter take no
    column, and a terminal would still have to draw them.
    """
    if line.isascii():
        return min(len(line), width)
    from rich.cells import get_character_cell_size

    columns = 0
    for index, character in enumerate(line[: _SCANNED * width]):
        columns += get_character_cell_size(character)
        if columns > width:
            return max(index, 1)
    return min(len(line), _SCANNED * width)


def fit(text: str, width: int) -> str:
    """Return a text as one line, cut with an ellipsis where it is wider than ``width`` columns."""
    # Only the beginning of the text is cleaned: twice the characters that may be counted are more than enough.
    beginning = 2 * _SCANNED * width
    line = clean(text[:beginning], keep_lines=False)
    if len(text) <= beginning and _count_fitting(line, width) == len(line):
        return line
    return f"{line[: _count_fitting(line, max(width - 1, 1))]}…"


def pad(text: str, width: int) -> str:
    """Return a line with blanks at its end, so that it is ``width`` columns wide."""
    from rich.cells import cell_len

    return text + " " * (width - cell_len(text))


def reads_leftward(texts: Sequence[str]) -> bool:
    """Return whether one of the texts has letters of a script that is read from right to left, near its beginning.

    A terminal may reverse such a line as a whole. The column beside it would then be in the middle of the line.
    """
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for text in texts for letter in text[:_CHUNK])


class Pages:
    """A text that is scrolled, with notes beside it, or below it where the terminal is narrow."""

    def __init__(self, text: Sequence[Passage], notes: Sequence[Passage], width: int) -> None:
        texts = [passage.text for passage in (*text, *notes)] + [passage.heading for passage in (*text, *notes)]
        has_two_columns = width >= WIDE and bool(notes) and not reads_leftward(texts)
        self._left_width = (width * 3) // 5
        self._main = WrappedText(
            text if has_two_columns else [*text, *notes], self._left_width - 1 if has_two_columns else width
        )
        self._notes = WrappedText(notes, width - self._left_width - 2) if has_two_columns else None
        """The right column; ``None`` where the notes are below the text, in ``_main``."""
        self.top = 0
        """The number of the first line that is shown."""

    def read(self, height: int) -> list[str]:
        """Return the ``height`` lines that are shown now, each with the line of the notes beside it."""
        main = self._main.read(self.top, self.top + height)
        if self._notes is None:
            return [line.render() for line in main] + [""] * (height - len(main))
        # Notes that fit on the screen stay where they are while the text is scrolled; longer ones are scrolled too.
        first_note = min(self.top, max(0, self._notes.count() - height)) if self._notes.has_line(height) else 0
        notes = self._notes.read(first_note, first_note + height)
        left_lines = [*islice(chain(main, (ScreenLine("") for _ in range(height))), height)]
        right_lines = [*islice(chain(notes, (ScreenLine("") for _ in range(height))), height)]
        return [self._join_columns(left, right) for left, right in zip(left_lines, right_lines, strict=True)]

    def _join_columns(self, left: ScreenLine, right: ScreenLine) -> str:
        """Join a line of the text and a line of the notes to one line of the terminal, with a bar between them."""
        padded = pad(left.text, self._left_width)
        return f"{ScreenLine(padded, left.style).render()}│ {right.render()}".rstrip()

    def scroll(self, lines: int, height: int) -> None:
        """Scroll down by some lines, or up if ``lines`` is negative, but not past the beginning or the end.

        ``height`` is the number of lines that are shown.
        """
        new_top = max(0, self.top + lines)
        if lines > 0 and not self._has_line(new_top + height - 1):
            new_top = min(new_top, max(0, self._count_lines() - height))
        self.top = new_top

    def _has_line(self, number: int) -> bool:
        """Return whether the text or the notes have a line of this number, from 0."""
        return self._main.has_line(number) or (self._notes is not None and self._notes.has_line(number))

    def _count_lines(self) -> int:
        """Count the lines of the longer column."""
        return max(self._main.count(), 0 if self._notes is None else self._notes.count())

    def has_more(self, height: int) -> bool:
        """Return whether there are lines below the ``height`` lines that are shown."""
        return self._has_line(self.top + height)

    def describe(self, height: int) -> str | None:
        """Describe which lines are shown, such as "lines 1 to 20 of 90"; ``None`` where all of them are."""
        if not self.top and not self.has_more(height):
            return None
        total = self._main.count_if_known()
        last = self.top + height if self.has_more(height) else self._count_lines()
        of_total = f" of {total:,}" if total is not None and self._notes is None else ""
        more = "; space shows more" if self.has_more(height) else ""
        return f"lines {self.top + 1:,} to {last:,}{of_total}{more}"
