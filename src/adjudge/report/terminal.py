"""A document as text for a terminal or a pipe.

Nothing that was judged, or said by a judge, reaches a terminal with control characters or line ends of its own in it:
every text goes through ``_flatten``. Boxes, colours and drawings need a screen; a pipe gets plain columns, with
nothing wrapped, so that every line is one thing for the next program.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING

from adjudge.formats.display import COLOURS, SIGNS
from adjudge.formats.text import clean
from adjudge.report.cases import cut
from adjudge.report.document import (
    Badge,
    Block,
    Cases,
    Cell,
    Column,
    Document,
    Drawing,
    Facts,
    Fold,
    Heading,
    Histogram,
    Lead,
    Notice,
    Panels,
    Paragraph,
    Points,
    Quad,
    Section,
    Table,
    Text,
    Verdict,
    Words,
    list_parts,
)

if TYPE_CHECKING:
    from rich.table import Table as RichTable

MOST_ROWS = 20
"""Rows of a table of figures; a page has all of them."""

_UNLIMITED = 100_000
"""Columns where there is no screen."""

_LONGEST_NAME, _LONGEST_QUOTATION = 60, 160
"""Characters of a name and of a quotation in a table."""

_BLOCKS = " ▁▂▃▄▅▆▇█"
"""The bars of a histogram by their height in eighths, from 0."""

_BAR_LENGTH = 20
"""Characters of the longest bar."""


@dataclass(frozen=True, slots=True)
class Screen:
    """The output that is drawn on: a terminal, or a pipe or a file."""

    columns: int | None = None
    """The width of the terminal, in characters; ``None`` for a pipe or a file."""


def draw_terminal(document: Document, screen: Screen) -> str:
    """Draw a document as lines."""
    lines = [_flatten(text) for text in (*document.doubts, _write(document.name))]
    return "".join(f"{line}\n" for line in lines) + draw_blocks(document.blocks, screen)


def draw_blocks(blocks: Iterable[Block], screen: Screen) -> str:
    """Draw some blocks of a document as lines."""
    return "".join(f"{line}\n" for block in blocks for line in _list_lines(block, screen))


def _flatten(text: str) -> str:
    """Flatten a text to one line without control characters: the only place where text becomes fit for a terminal."""
    return " ".join(clean(text, keep_lines=False).split())


def _write(text: Text) -> str:
    """Write a text as plain words; it may still have line ends and control characters in it."""
    return "".join(part if isinstance(part, str) else _write_words(part) for part in list_parts(text))


def _write_words(words: Words) -> str:
    return f"{words.text} {words.more}" if words.more else words.text


def _shorten(text: Text) -> Text:
    """Cut the names and quotations in a cell's text, because a table has no room for long ones."""
    if isinstance(text, tuple):
        return tuple(part if isinstance(part, str) else _shorten_words(part) for part in text)
    return text if isinstance(text, str) else _shorten_words(text)


def _shorten_words(words: Words) -> Words:
    """Cut a name or a quotation; words of ours stay as they are."""
    longest = {"name": _LONGEST_NAME, "quoted": _LONGEST_QUOTATION}.get(words.kind)
    return words if longest is None else replace(words, text=cut(" ".join(words.text.split()), longest))


@singledispatch
def _list_lines(_block: Block, _screen: Screen) -> Iterable[str]:
    """List a block as lines; none for a block that only a page can show.

    The functions below do this for one kind of block each.
    """
    return ()


@_list_lines.register
def _(block: Table, screen: Screen) -> Iterable[str]:
    return _draw_table(block, screen, most=MOST_ROWS)


@_list_lines.register
def _(block: Quad, screen: Screen) -> Iterable[str]:
    return _list_lines(block.table, screen)


@_list_lines.register
def _(block: Facts, _screen: Screen) -> Iterable[str]:
    return [_flatten(f"{name}: {_write(value)}") for name, value in block.pairs]


@_list_lines.register(Paragraph | Notice | Heading)
def _(block: Paragraph | Notice | Heading, _screen: Screen) -> Iterable[str]:
    return [_flatten(_write(block.text))]


@_list_lines.register
def _(block: Points, _screen: Screen) -> Iterable[str]:
    return [f"  {_flatten(_write(text))}" for text in block.items]


@_list_lines.register
def _(block: Histogram, screen: Screen) -> Iterable[str]:
    return [_flatten(block.about) + (f"  {draw_bins(block.bins)}" if screen.columns is not None else "")]


@_list_lines.register
def _(block: Lead, _screen: Screen) -> Iterable[str]:
    return [_flatten(text) for text in (*block.warnings, block.sentence) if text]


@_list_lines.register
def _(block: Panels, screen: Screen) -> Iterable[str]:
    return [line for panel in block.panels for line in _list_titled(panel.title, panel.blocks, screen)]


@_list_lines.register
def _(block: Section, screen: Screen) -> Iterable[str]:
    return _list_titled(block.title, block.blocks, screen)


@_list_lines.register
def _(block: Fold, screen: Screen) -> Iterable[str]:
    return [*_list_titled(block.summary, block.blocks, screen), ""]


@_list_lines.register
def _(block: Cases, screen: Screen) -> Iterable[str]:
    lines = [line for inner in block.blocks for line in _list_lines(inner, screen)]
    if block.table.rows:
        lines += _draw_table(block.table, screen, most=None)
    return ["", *lines] if lines else []


@_list_lines.register
def _(block: Verdict, _screen: Screen) -> Iterable[str]:
    texts = (block.sentence, block.counts, block.more, block.test, block.note)
    return [_flatten(text) for text in texts if text]


def _list_titled(title: Text, blocks: Iterable[Block], screen: Screen) -> list[str]:
    """List the lines of blocks, with an empty line and the title before them, if there is a title."""
    head = ["", _flatten(_write(title))] if title else []
    return head + [line for block in blocks for line in _list_lines(block, screen)]


def _draw_table(table: Table, screen: Screen, *, most: int | None) -> Iterator[str]:
    """Draw the first ``most`` rows of a table, without its drawings on a pipe or if it is too wide with them.

    ``None`` draws all rows.
    """
    rows = table.rows[:most]
    without_drawings = [index for index, column in enumerate(table.columns) if column.shape != "drawing"]
    with_drawings = [
        index for index, column in enumerate(table.columns) if column.shape != "drawing" or _has_drawing(rows, index)
    ]
    rich_table = _convert_table(table, rows, without_drawings if screen.columns is None else with_drawings, screen)
    if screen.columns is not None and _measure_columns(rich_table) > screen.columns:
        # The figures are worth more than their drawings.
        rich_table = _convert_table(table, rows, without_drawings, screen)
    yield from draw_rich(rich_table, screen)
    if len(table.rows) > len(rows):
        yield f"{len(rows)} of {len(table.rows):,} rows; a page has all of them"
    if table.caption:
        yield _flatten(table.caption)


def _has_drawing(rows: Sequence[Sequence[Cell]], index: int) -> bool:
    """Return whether any row has a drawing in the column at ``index``."""
    return any(isinstance(row[index], Drawing) for row in rows)


def _convert_table(
    table: Table, rows: Sequence[Sequence[Cell]], column_indexes: Sequence[int], screen: Screen
) -> RichTable:
    """Make rich's form of some rows and columns of a table; the first badge of a row gives the row its colour."""
    columns: list[Column] = [table.columns[index] for index in column_indexes]
    rich_table = make_rich_table("", [column.name for column in columns], screen)
    for row in rows:
        cells = [row[index] for index in column_indexes]
        states = [cell.state for cell in cells if isinstance(cell, Badge)]
        add_rich_row(rich_table, *map(_draw_cell, cells), style=COLOURS.get(states[0] if states else ""))
    return rich_table


def _draw_cell(cell: Cell) -> str:
    """Draw a cell as text: a sign and a word for a badge, characters for a drawing, else its words."""
    if cell is None:
        return ""
    if isinstance(cell, Badge):
        return f"{SIGNS.get(cell.state, '')} {cell.word}".strip()
    return _draw_drawing(cell) if isinstance(cell, Drawing) else _flatten(_write(_shorten(cell)))


def _draw_drawing(drawing: Drawing) -> str:
    """Draw in one line: a histogram, a bar, or a dot for an estimate on the line between its limits."""
    if drawing.form == "spark":
        return draw_bins(drawing.bins)
    if drawing.form == "bar":
        return "█" * round(_BAR_LENGTH * drawing.value)
    low = drawing.value if drawing.low is None else drawing.low
    high = drawing.value if drawing.high is None else drawing.high
    # The positions of the limits and of the dot on the line, whose ends are 0 and 1.
    first, dot, last = (round((_BAR_LENGTH - 1) * min(max(share, 0.0), 1.0)) for share in (low, drawing.value, high))
    return "".join(
        "●" if position == dot else "─" if first <= position <= last else " " for position in range(_BAR_LENGTH)
    )


def draw_bins(bins: Sequence[int]) -> str:
    """Draw a histogram in one line of bars; a bar that is not empty is at least an eighth high, so that it is seen."""
    highest = max(bins, default=0) or 1
    # Rounded up, in whole numbers.
    return "".join(_BLOCKS[-(-8 * number // highest)] for number in bins)


def make_rich_table(title: str, columns: Sequence[str], screen: Screen, *, whole: int = 0) -> RichTable:
    """Make an empty table with these columns: with lines around the cells on a screen, without them elsewhere.

    The first ``whole`` columns hold short words and are not broken over lines; no column's texts are cut off.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    lines = box.HEAVY_HEAD if screen.columns is not None else None
    table = RichTable(
        title=RichText(clean(title)),
        title_justify="left",
        # A table of two short columns is narrower than what it is called, which is not to be broken for that.
        min_width=None if lines is not None else len(clean(title)),
        box=lines,
        pad_edge=lines is not None,
        show_header=any(columns),
    )
    for number, column in enumerate(columns):
        # Folded and not cut: the end of a name, or of a head, is needed to type it.
        table.add_column(RichText(clean(column)), overflow="fold", no_wrap=number < whole)
    return table


def add_rich_row(table: RichTable, *cells: str, style: str | None = None) -> None:
    """Add a row of plain texts: nothing in them is markup, and they end where the cell ends."""
    from rich.text import Text as RichText

    table.add_row(*(RichText(clean(cell, keep_lines=False)) for cell in cells), style=style)


def draw_rich(drawing: object, screen: Screen) -> list[str]:
    """Draw a table, or another value that rich can draw, as lines; colours and boxes only on a screen."""
    from rich.console import Console
    from rich.table import Table as RichTable

    # Drawn into a text and written by the caller: rich itself leaves the program with status 1 when a pipe is closed
    # early, and a program that reads the status would take that for a verdict.
    text, is_screen = io.StringIO(), screen.columns is not None
    console = Console(
        file=text,
        force_terminal=is_screen,
        width=screen.columns if is_screen else _UNLIMITED,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if is_screen and isinstance(drawing, RichTable) and _measure_columns(drawing) > console.width:
        # Too wide: leave out the spaces beside the lines, so that fewer words are broken.
        drawing.padding = 0  # type: ignore[assignment] - rich takes what unpacks to four sides
    console.print(drawing)
    return [line if is_screen else line.rstrip() for line in text.getvalue().splitlines()]


def _measure_columns(table: RichTable) -> int:
    """Measure the columns that a table takes if nothing in it is broken over lines."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=_UNLIMITED, file=io.StringIO())
    return Measurement.get(console, console.options, table).maximum
