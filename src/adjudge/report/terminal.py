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

_NAME, _LONGEST = 60, 160

_BLOCKS = " ▁▂▃▄▅▆▇█"

_BAR = 20


@dataclass(frozen=True, slots=True)
class Screen:
    """The surface that is drawn on: a terminal of so many columns, or ``None`` for a pipe or a file."""

    columns: int | None = None


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
    return "".join(part if isinstance(part, str) else _write_words(part) for part in list_parts(text))


def _write_words(words: Words) -> str:
    return f"{words.text} {words.more}" if words.more else words.text


def _shorten(text: Text) -> Text:
    """Cut the parts of a cell's text that somebody else wrote: a table has no room for a long name."""
    if isinstance(text, tuple):
        return tuple(part if isinstance(part, str) else _shorten_words(part) for part in text)
    return text if isinstance(text, str) else _shorten_words(text)


def _shorten_words(words: Words) -> Words:
    longest = {"name": _NAME, "quoted": _LONGEST}.get(words.kind)
    return words if longest is None else replace(words, text=cut(" ".join(words.text.split()), longest))


@singledispatch
def _list_lines(_block: Block, _screen: Screen) -> Iterable[str]:
    """List a block as lines; nothing for one that only a page can show."""
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
    head = ["", _flatten(_write(title))] if title else []
    return head + [line for block in blocks for line in _list_lines(block, screen)]


def _draw_table(table: Table, screen: Screen, *, most: int | None) -> Iterator[str]:
    """Draw a table, without its drawings if it is too wide with them; at most ``most`` rows."""
    rows = table.rows[:most]
    places = [
        place for place, column in enumerate(table.columns) if column.shape != "drawing" or _is_drawn(rows, place)
    ]
    if screen.columns is None:
        places = [place for place in places if table.columns[place].shape != "drawing"]
    drawn = _make_rows(table, rows, places, screen)
    if screen.columns is not None and _measure_columns(drawn) > screen.columns:
        # Better the figures than their drawings.
        places = [place for place in places if table.columns[place].shape != "drawing"]
        drawn = _make_rows(table, rows, places, screen)
    yield from draw_rich(drawn, screen)
    if len(table.rows) > len(rows):
        yield f"{len(rows)} of {len(table.rows):,} rows; a page has all of them"
    if table.caption:
        yield _flatten(table.caption)


def _is_drawn(rows: Sequence[Sequence[Cell]], place: int) -> bool:
    return any(isinstance(row[place], Drawing) for row in rows)


def _make_rows(table: Table, rows: Sequence[Sequence[Cell]], places: Sequence[int], screen: Screen) -> RichTable:
    """Make a table of the columns at ``places``; the first badge of a row gives its colour."""
    columns: list[Column] = [table.columns[place] for place in places]
    drawn = make_rich_table("", [column.name for column in columns], screen)
    for row in rows:
        cells = [row[place] for place in places]
        state = next((cell.state for cell in cells if isinstance(cell, Badge)), "")
        add_rich_row(drawn, *map(_draw_cell, cells), style=COLOURS.get(state))
    return drawn


def _draw_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Badge):
        return f"{SIGNS.get(cell.state, '')} {cell.word}".strip()
    return _draw(cell) if isinstance(cell, Drawing) else _flatten(_write(_shorten(cell)))


def _draw(drawing: Drawing) -> str:
    """Draw in one line: a histogram, a bar, or a dot for an estimate on the line between its limits."""
    if drawing.form == "spark":
        return draw_bins(drawing.bins)
    if drawing.form == "bar":
        return "█" * round(_BAR * drawing.value)
    low, high = (drawing.value if limit is None else limit for limit in (drawing.low, drawing.high))
    first, dot, last = (round((_BAR - 1) * min(max(share, 0.0), 1.0)) for share in (low, drawing.value, high))
    return "".join("●" if place == dot else "─" if first <= place <= last else " " for place in range(_BAR))


def draw_bins(bins: Sequence[int]) -> str:
    """Draw a histogram in one line; a bar that is not empty is seen."""
    most = max(bins, default=0) or 1
    return "".join(_BLOCKS[-(-8 * number // most)] for number in bins)


def make_rich_table(title: str, columns: Sequence[str], screen: Screen, *, whole: int = 0) -> RichTable:
    """Make an empty table: lines around the cells on a screen, plain columns elsewhere.

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
    """Draw what rich can draw, as lines; colours and boxes only on a screen."""
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
        # Better the spaces beside the lines than words.
        drawing.padding = 0  # type: ignore[assignment] - rich takes what unpacks to four sides
    console.print(drawing)
    return [line if is_screen else line.rstrip() for line in text.getvalue().splitlines()]


def _measure_columns(table: RichTable) -> int:
    """Measure the columns that a table takes if nothing in it is broken over lines."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=_UNLIMITED, file=io.StringIO())
    return Measurement.get(console, console.options, table).maximum
