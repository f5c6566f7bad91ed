"""A document as Markdown for a comment on a pull request.

Whatever was judged, or written by a judge, is put in a code span and nowhere else: there it cannot be a heading, a
link, an image, HTML, a mention that writes to somebody, or a reference that closes an issue. Our own sentences are
escaped, because a name may be part of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from adjudge.formats.markdown import escape, render_code
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
from adjudge.templates.figures import format_count

MOST_CHARACTERS = 65_000
"""GitHub takes 65,536 in a comment."""

MOST_ROWS = 20
"""Rows of a table: a comment is read at a glance, and a page has all of them."""

_UNFOLDED_PANELS = 2
"""Panels that a reader need not open."""

_MOST_FOLDED = 25_000
"""Characters of the figures that a reader opens, so that the cases have room."""

_LONGEST_QUOTATION, _LONGEST_NAME = 240, 80
"""Characters of a quotation and of a name."""

_LONGEST_SENTENCE = 2_000
"""Characters of a sentence of ours; a name in it is cut before."""


def draw_markdown(document: Document, *, mark: str) -> str:
    """Draw a document in at most 65,000 characters of GitHub's Markdown.

    ``mark`` is the first line, by which a script finds its own comment to update it.
    """
    doubts = [f"> {_escape(text)}" for text in document.doubts]
    sections = [*doubts, f"### {_escape(document.headline)}", _write(document.name)]
    case_blocks = [block for block in document.blocks if isinstance(block, Cases)]
    for block in document.blocks:
        sections += [] if isinstance(block, Cases) else _list_sections(block)
    foot = [f"<sub>{' '.join(map(_write, document.foot))}</sub>"] if document.foot else []
    # Two characters for the empty line after each section.
    room = MOST_CHARACTERS - sum(len(section) + 2 for section in (mark, *sections, *foot))
    for block in case_blocks:
        sections += _draw_cases(block, room)
    text = "\n\n".join(section for section in (*sections, *foot) if section)
    return f"{mark}\n{text}\n"


def _escape(text: str) -> str:
    """Escape a sentence of ours, cut to 2,000 characters, so that nothing in it acts as Markdown."""
    return escape(text, _LONGEST_SENTENCE)


def _write(text: Text) -> str:
    """Write a text as one line of Markdown; no other function makes Markdown of ``Words``."""
    return "".join(_escape_part(part) if isinstance(part, str) else _write_words(part) for part in list_parts(text))


def _escape_part(text: str) -> str:
    """Escape a part of a sentence, and keep the blanks around it."""
    # Escaping drops the blanks at both ends, which separate this part from the words before and after it.
    before = " " if text[:1].isspace() else ""
    after = " " if len(text) > 1 and text[-1:].isspace() else ""
    return f"{before}{_escape(text)}{after}"


def _write_words(words: Words) -> str:
    """Write words that are set apart; names, quotations and code are in code spans, where nothing acts as Markdown."""
    if words.kind == "strong":
        text = f"**{_escape(words.text)}**"
    elif words.kind in ("name", "quoted", "code"):
        text = render_code(words.text, _LONGEST_NAME if words.kind == "name" else _LONGEST_QUOTATION)
    else:
        text = _escape(words.text)
    return f"{text} {_escape(words.more)}" if words.more else text


@singledispatch
def _list_sections(_block: Block) -> list[str]:
    """List a block as sections of Markdown (paragraphs and tables); none for a block that only a page can show.

    The functions below do this for one kind of block each.
    """
    return []


@_list_sections.register
def _(block: Table) -> list[str]:
    return [_draw_table(block)]


@_list_sections.register
def _(block: Quad) -> list[str]:
    return _list_sections(block.table)


@_list_sections.register
def _(block: Facts) -> list[str]:
    return [_draw_table(Table(columns=[Column("figure"), Column("value")], rows=block.pairs))]


@_list_sections.register
def _(block: Paragraph) -> list[str]:
    return [_write(block.text)]


@_list_sections.register
def _(block: Notice) -> list[str]:
    return [f"> {_write(block.text)}"]


@_list_sections.register
def _(block: Heading) -> list[str]:
    return [f"**{_escape(block.text)}**"]


@_list_sections.register
def _(block: Points) -> list[str]:
    return ["\n".join(f"* {_write(text)}" for text in block.items)]


@_list_sections.register
def _(block: Histogram) -> list[str]:
    return [_escape(block.about)]


@_list_sections.register
def _(block: Lead) -> list[str]:
    return [
        *(f"> {_escape(text)}" for text in block.warnings),
        f"**{_escape(block.sentence)}**" if block.sentence else "",
    ]


@_list_sections.register
def _(block: Section) -> list[str]:
    title = [f"**{_escape(block.title)}**"] if block.title else []
    return title + [section for inner in block.blocks for section in _list_sections(inner)]


@_list_sections.register
def _(block: Panels) -> list[str]:
    return _draw_panels(block)


@_list_sections.register
def _(block: Fold) -> list[str]:
    return [
        _fold_sections(block.summary, [section for inner in block.blocks for section in _list_unfolded_sections(inner)])
    ]


@_list_sections.register
def _(block: Verdict) -> list[str]:
    sentences = (f"{block.sentence}.", block.more, f"{block.counts}." if block.counts else "")
    first = _escape(" ".join(sentence for sentence in sentences if sentence))
    return [first, *(_escape(text) for text in (block.test, block.note) if text)]


def _draw_panels(panels: Panels) -> list[str]:
    """Draw the first two panels, and the others folded, for a reader to open: a comment is read at a glance."""
    first, others = panels.panels[:_UNFOLDED_PANELS], panels.panels[_UNFOLDED_PANELS:]
    shown = [section for panel in first for section in _list_unfolded_sections(Panels(panels=[panel]))]
    folded: list[str] = []
    room = _MOST_FOLDED
    for panel in others:
        sections = _list_unfolded_sections(Panels(panels=[panel]))
        room -= sum(len(section) + 2 for section in sections)
        if room < 0:
            folded.append("Further figures are in the HTML report: a comment has no room for them.")
            break
        folded += sections
    return [*shown, *([_fold_sections("More figures", folded)] if folded else [])]


def _list_unfolded_sections(block: Block) -> list[str]:
    """List a block as sections without a fold in them: comments show no fold within a fold."""
    if not isinstance(block, Panels):
        return _list_sections(block)
    sections: list[str] = []
    for panel in block.panels:
        sections.append(f"**{_write(panel.title)}**")
        sections += [section for inner in panel.blocks for section in _list_sections(inner)]
    return sections


def _fold_sections(summary: str, sections: Sequence[str]) -> str:
    """Fold sections under a summary that a reader clicks to open them."""
    return f"<details><summary>{_escape(summary)}</summary>\n\n" + "\n\n".join(
        [*(text for text in sections if text), "</details>"]
    )


def _draw_cases(cases: Cases, room: int) -> list[str]:
    """Draw the blocks before the cases, and a folded table of as many cases as fit into ``room`` characters."""
    before = [section for block in cases.blocks for section in _list_sections(block)]
    columns, rows = _drop_drawings(cases.table)
    head = [_draw_row([_escape(column.name) for column in columns]), _draw_row(["---"] * len(columns))]
    # 400 characters for the summary and the marks around the table.
    room -= sum(len(line) + 2 for line in (*before, *head)) + 400
    lines: list[str] = []
    for row in rows:
        line = _draw_row([_draw_cell(cell) for cell in row])
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return before
    summary = f"{len(lines):,} of {format_count(cases.total, cases.unit)} {cases.which}"
    if cases.order and len(lines) < cases.total:
        summary = f"{summary}, {cases.order}"
    return [*before, _fold_sections(summary, ["\n".join([*head, *lines])])]


def _draw_table(table: Table) -> str:
    """Draw the first rows of a table without its drawings, and a sentence on how many more rows there are."""
    columns, rows = _drop_drawings(table)
    lines = [_draw_row([_escape(column.name) for column in columns]), _draw_row(["---"] * len(columns))]
    lines += [_draw_row([_draw_cell(cell) for cell in row]) for row in rows[:MOST_ROWS]]
    more = f"\n\n{len(rows) - MOST_ROWS:,} more rows are in the HTML report." if len(rows) > MOST_ROWS else ""
    return "\n".join(lines) + more


def _drop_drawings(table: Table) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns and rows of a table without the columns of drawings."""
    indexes = [index for index, column in enumerate(table.columns) if column.shape != "drawing"]
    return [table.columns[index] for index in indexes], [[row[index] for index in indexes] for row in table.rows]


def _draw_cell(cell: Cell) -> str:
    """Draw a cell as Markdown; empty for no cell and for a drawing."""
    if cell is None or isinstance(cell, Drawing):
        return ""
    return _escape(cell.word) if isinstance(cell, Badge) else _write(cell)


def _draw_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
