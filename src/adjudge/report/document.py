"""The content of a report as a document of blocks, such as tables and paragraphs, before it is drawn in some form.

A function for each report makes its document, and ``html``, ``markdown`` and ``terminal`` draw any document. A block
holds plain text and figures, never markup: each renderer escapes what it writes, in one place. A block that one form
leaves out says so where it is defined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from adjudge.formats.numbers import format_rate
from adjudge.report.cases import ShownResult
from adjudge.templates.figures import format_count, format_interval
from adjudge.trust.intervals import Share

Kind = Literal["", "name", "quoted", "strong", "quiet", "alarm", "code"]
"""The role of some words: ``name`` and ``quoted`` are somebody else's, ``strong`` is emphasis, ``quiet`` a remark,
``alarm`` a warning, ``code`` what a machine reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words that are set apart from the text around them, with a quieter remark after them."""

    text: str
    kind: Kind = "name"
    more: str = ""
    link: str = ""
    """An address of ours, on a page."""


Text = str | Words | tuple[str | Words, ...]
"""A sentence or a name, with the parts that are set apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure that is drawn in a cell, with the sentence for those who do not see it.

    The figure itself is in a cell beside it, so Markdown and pipes leave drawings out.
    """

    form: Literal["bar", "spark", "estimate"]
    alt: str
    value: float = 0.0
    """In 0 to 1, as are the limits."""
    low: float | None = None
    high: float | None = None
    kind: str = "f-bar"
    """The class that gives the colour on a page."""
    bins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """An outcome with its colour; ``state`` is empty for a word that is no outcome."""

    word: str
    state: str = ""


Cell = Text | Drawing | Badge | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. A column of drawings has no use where nothing is drawn."""

    name: str
    shape: Literal["text", "number", "word", "drawing"] = "text"
    wide: bool = False
    """A page shows it where there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. A page has all of its rows; the other forms have the first and say how many there are."""

    form: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadCell:
    """The cases with one outcome in A and one in B."""

    number: int
    words: str
    """The meaning of this, in the words that fit what was compared."""
    sign: Literal["", "up", "down"] = ""
    same: bool = False
    """True on the diagonal, which is quiet."""
    link: str = ""
    """The address of these cases; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quad:
    """Two runs as two by two, with the rate of each beside it; a page draws it, and the other forms have ``table``."""

    form: ClassVar[str] = "quad"
    columns: tuple[str, str]
    rows: tuple[str, str]
    cells: tuple[QuadCell, QuadCell, QuadCell, QuadCell]
    """Row by row."""
    shares: tuple[tuple[str, Share], tuple[str, Share]]
    """The name of each run, with the share that passed in it."""
    note: str
    table: Table
    """Every pair of outcomes."""

    @property
    def total(self) -> int:
        """The number of compared cases."""
        return self.shares[0][1].of


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Pairs of a word and a value."""

    form: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, Text]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A sentence or two."""

    form: ClassVar[str] = "paragraph"
    text: Text
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence that a reader has to know before the figures mean anything."""

    form: ClassVar[str] = "notice"
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A title inside a panel or a case."""

    form: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Sentences as a list."""

    form: ClassVar[str] = "points"
    items: Sequence[Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One bar, divided by outcome. A page alone draws it: the numbers are in the text beside it."""

    form: ClassVar[str] = "stack"
    parts: Sequence[tuple[str, int]]
    alt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Scores from 0 to 1 in bars of a twentieth, with a line at the threshold; Markdown has ``about`` alone."""

    form: ClassVar[str] = "histogram"
    bins: tuple[int, ...]
    alt: str
    needs: float | None
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The figure that everything else explains."""

    form: ClassVar[str] = "verdict"
    figure: str
    """Large on a page; empty where ``text`` holds it."""
    text: str
    interval: str = ""
    """Limits at 95 %."""
    test: str = ""
    """A test of the difference, with its p-value."""
    more: str = ""
    """A further sentence."""
    note: str = ""
    """The things that were compared."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    label: str = "Verdict"
    joint: str = " "
    """The text between the figure and the text, where they stand in one line."""

    @property
    def sentence(self) -> str:
        """The figure in one line, with its limits."""
        figure = f"{self.figure}{self.joint}" if self.figure else ""
        return f"{figure}{self.text}" + (f" (95 % interval {self.interval})" if self.interval else "")

    @property
    def counts(self) -> str:
        """The number of each outcome; empty where there are none."""
        return ", ".join(f"{number:,} {name}" for name, number in self.outcomes.items())

    @property
    def stack(self) -> Stack:
        """The outcomes as one bar."""
        return stack_outcomes(self.outcomes, title="Judgements")

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Each outcome: its name, its number, and its share of all."""
        total = sum(self.outcomes.values())
        return [
            (name, format_count(number), format_rate(number / total) if total else "")
            for name, number in self.outcomes.items()
        ]


Axis = tuple[float, float]
"""The ends of an axis, as shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """A rate with its interval, drawn on the axis of the lead."""

    name: str
    value: float
    low: float
    high: float
    figure: str
    """The value as people read it."""
    limits: str
    kind: str
    """``people`` or ``judge``."""

    @property
    def alt(self) -> str:
        """The sentence for those who do not see the drawing."""
        return f"{self.name}: {self.figure} {self.limits}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on the axis."""

    place: float
    """In per cent of the width."""
    label: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A measurement in words, and its rates on one axis.

    A page alone draws the rates; the sentence and the facts beside it hold the figures. An axis that begins below 0 has
    a line there.
    """

    form: ClassVar[str] = "lead"
    criterion: str | None
    sentence: str
    warnings: tuple[str, ...] = ()
    """Sentences that a reader must know before any figure; what labels do not count is in a document's doubts."""
    rows: tuple[RateRow, ...] = ()
    axis: Axis = (0.0, 1.0)
    ticks: tuple[Tick, ...] = ()
    about: str = ""
    """The unit of the axis, where it is not a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Blocks under a heading, over both columns of a page or one."""

    title: Text
    blocks: Sequence[Block]
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Panels, the most important first; on a page two narrow ones are beside each other.

    A comment shows the first and folds the others, because it is read at a glance.
    """

    form: ClassVar[str] = "panels"
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks under a title of their own, such as those of one judge of several; without a title, blocks together."""

    form: ClassVar[str] = "section"
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a reader opens; a terminal shows them below the summary."""

    form: ClassVar[str] = "fold"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A text that was judged, with its name. Only cases of a page have it."""

    form: ClassVar[str] = "excerpt"
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One judgement with criteria, seats, rules and the reply. Only cases of a page have it."""

    form: ClassVar[str] = "judgement"
    result: ShownResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Blocks beside each other. Only cases of a page have it."""

    form: ClassVar[str] = "sides"
    sides: tuple[Sequence[Block], Sequence[Block]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEntry:
    """A case of a page: a line that opens."""

    place: int
    name: str
    badges: Sequence[Badge]
    """The outcome, or the one before and the one after."""
    tags: Sequence[Words]
    figure: str
    why: str
    body: Sequence[Block]
    """The parts that are seen when it is opened; none for a line that does not open."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The values that the filters of the page look at."""
    moved: str = ""
    """The criteria whose score is another than before."""
    link: str = ""
    """The address of the page of the case, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A filter of a page's cases: each option is its key and what is shown of it."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Cases to read.

    A page has ``entries``, which open, with filters above them. Opening and filtering need a page, so a terminal and
    a comment have the first rows of ``table`` instead, and say of how many they are.
    """

    form: ClassVar[str] = "cases"
    title: str
    about: str
    table: Table
    total: int
    """Cases that ``table`` is the beginning of."""
    which: str
    """The kind of these cases: ``that did not pass``."""
    unit: str = "case"
    order: str = ""
    blocks: Sequence[Block] = ()
    """The blocks before the list."""
    entries: Sequence[CaseEntry] = ()
    choices: Sequence[Choice] = ()
    checks: Sequence[tuple[str, str]] = ()
    """Filters that are on or off."""


Block = (
    Table
    | Quad
    | Facts
    | Paragraph
    | Notice
    | Heading
    | Points
    | Stack
    | Histogram
    | Verdict
    | Lead
    | Panels
    | Section
    | Fold
    | Excerpt
    | Judgement
    | Sides
    | Cases
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtitle:
    """A line below the title of a page, with short facts after it; ``name`` of the document has it elsewhere."""

    text: Text
    facts: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report."""

    name: Text
    """The subject, in one line: the first of a terminal."""
    headline: str
    """The outcome, in a few words: the heading of a comment, and the title of a window."""
    blocks: Sequence[Block]
    doubts: Sequence[str] = ()
    """Sentences that a reader must know before any figure, such as that labels do not count: the first lines."""
    title: str = ""
    """The heading of a page."""
    subtitles: Sequence[Subtitle] = ()
    foot: Sequence[Text] = ()
    """Sentences on how to read the figures; a terminal leaves it out."""


def list_parts(text: Text) -> tuple[str | Words, ...]:
    """List the parts of a text: plain strings, and words with a role. A text of a single part is a list of one."""
    return text if isinstance(text, tuple) else (text,)


def join_text(text: Text) -> str:
    """Join the parts of a text to plain text, without their roles and links."""
    parts = [
        part if isinstance(part, str) else " ".join(filter(None, (part.text, part.more))) for part in list_parts(text)
    ]
    return "".join(parts)


def draw_share(share: Share, *, title: str, kind: str = "f-bar") -> Drawing:
    """Make the drawing of a share: a bar of its length, with its interval as a line across the end."""
    low, high = share.interval or (None, None)
    alt = f"{title}: {format_rate(share.rate)}" + (f", {format_interval(share)}" if share.interval else "")
    return Drawing(form="bar", value=share.rate or 0.0, low=low, high=high, kind=kind, alt=alt)


def stack_outcomes(outcomes: Mapping[str, int], *, title: str) -> Stack:
    """Make one bar, divided by outcome."""
    alt = f"{title}: " + ", ".join(f"{format_count(number)} {name}" for name, number in outcomes.items())
    return Stack(parts=tuple(outcomes.items()), alt=alt)
