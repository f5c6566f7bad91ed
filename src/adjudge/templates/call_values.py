"""A tool's call as it is shown: values, one type for each way in which an argument is read.

They are made in ``call_view.py`` (``make_call_view``), which also finds invisible characters.

They hold texts and never HTML. What is not in them because it is long is counted: ``rest``.

A template is given these and not the argument, because it can neither decide how a value is read, which takes parsing,
nor find quotations in it, nor count what it leaves out: ``kind`` says which part of the template draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from adjudge.templates.evidence import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a rule, or the page itself, says about an argument: both are drawn alike."""

    state: str
    """``failed``, ``warning``, ``info`` or ``passed``."""
    word: str
    """The word that goes with the state, such as the name of the rule."""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFinding:
    """A finding about a value of a call, until the row of that value is made."""

    place: str
    """The value, as rules name it: ``arguments.reply``, ``arguments.records[3].note``."""
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainValue:
    """A short value as it is written: a number, true, null, a name."""

    kind: ClassVar[str] = "plain"

    passages: tuple[Passage, ...]
    is_quoted: bool = False
    """True if it is a text that could be taken for something else, such as ``"true"``."""
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProseValue:
    """A text to read: in its own line breaks, which a plain value has none of."""

    kind: ClassVar[str] = "prose"

    passages: tuple[Passage, ...]
    rest: int = 0
    """Characters that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeValue:
    """A text in lines that are counted, so that a reason can point to one of them."""

    kind: ClassVar[str] = "code"

    language: str
    """Empty where it is not known."""
    lines: tuple[tuple[Passage, ...], ...]
    rest: int = 0


PatchLineKind = Literal["head", "file", "same", "minus", "plus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchLine:
    """A line of a patch; of a changed one, the text is without its sign, which is drawn beside it."""

    kind: PatchLineKind
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchValue:
    """A text that is a patch, with the counts by which a reader knows whether they have seen all of it."""

    kind: ClassVar[str] = "diff"

    lines: tuple[PatchLine, ...]
    files: int
    added: int
    removed: int
    rest: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a line of rendered Markdown, in place of HTML: no tag or address of the text can get through."""

    text: str
    is_strong: bool = False
    is_emphasised: bool = False
    is_code: bool = False
    is_remark: bool = False
    """True if it is the page's own word, such as the address of a link or that a picture is not loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownBlock:
    """A part of a rendered Markdown text, for the same reason. It has ``spans``, or blocks or rows of its own."""

    kind: Literal["heading", "paragraph", "code", "quote", "list", "table", "line"]
    spans: tuple[Span, ...] = ()
    blocks: tuple[tuple[MarkdownBlock, ...], ...] = ()
    """The points of a list, or the one part of a quotation."""
    rows: tuple[tuple[tuple[Span, ...], ...], ...] = ()
    """Of a table; the first is its head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownValue:
    """A text in Markdown: exactly as it is sent, and as it may look, because a reader decides about both."""

    kind: ClassVar[str] = "markdown"

    source: tuple[Passage, ...]
    blocks: tuple[MarkdownBlock, ...]
    lines: int
    rest: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The values of a column of records, where few values repeat: forty rows are read by their exceptions."""

    column: str
    values: tuple[tuple[PlainValue, int], ...]
    """Each with how often, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsValue:
    """A list of objects with the same members, as a table."""

    kind: ClassVar[str] = "records"

    columns: tuple[str, ...]
    rows: tuple[tuple[PlainValue | ProseValue | None, ...], ...]
    """``None`` where a record has no such member."""
    repeats: tuple[Repeated, ...]
    total: int

    @property
    def rest(self) -> int:
        """The records that are not shown."""
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesValue:
    """A text that is base64 of bytes, which nobody can read."""

    kind: ClassVar[str] = "bytes"

    size: int
    length: int
    """Characters of base64."""
    digest: str
    """SHA-256 of the bytes."""
    head: tuple[str, ...]
    """The first bytes, as lines of hexadecimal figures."""
    like: str
    """The sort of file that begins like this; empty where it is not known."""
    decoded: CodeValue | None
    """The beginning of what the bytes say, where they are a text."""
    passages: tuple[Passage, ...]
    """The base64 itself; empty while it is not shown."""

    @property
    def rest(self) -> int:
        """The characters of base64 that are not shown."""
        return self.length - sum(len(passage.text) for passage in self.passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListValue:
    """Several values, one below the other, with how many there are in all."""

    kind: ClassVar[str] = "list"

    values: tuple[CallValue, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedValue:
    """An object, or a list of several kinds of values, in rows of its own: a finding may be about any of them."""

    kind: ClassVar[str] = "nested"

    rows: tuple[ArgumentRow, ...]
    total: int


CallValue = (
    PlainValue
    | ProseValue
    | CodeValue
    | PatchValue
    | MarkdownValue
    | RecordsValue
    | BytesValue
    | ListValue
    | NestedValue
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRow:
    """An argument, or a member of one, with what is said about it: both stand in one row."""

    path: tuple[str, ...]
    """Its name; where objects with one member alone lie in each other, all their names."""
    names: tuple[tuple[Passage, ...], ...]
    """The same, with quotations marked."""
    value: CallValue
    was_text: int | None = None
    """Bytes of the text, where it was JSON in a text; ``None`` where it was none."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """A call with everything that is shown of it, and what is not: on that, approving depends."""

    tool: str
    """Empty where the content is an object that is no call."""
    summary: str
    """The parts it consists of, such as ``40 records of 6 fields``."""
    rows: tuple[ArgumentRow, ...]
    about: tuple[ArgumentRow, ...]
    """The rest of the content beside tool and arguments, such as the folder in which it runs."""
    blanks: str
    """The white space that is marked, in words."""
    unshown_parts: tuple[str, ...]
    """The parts that are not shown, each with how much of it; with one of them nobody can approve."""
    numbers: Mapping[str, int]
    """As of ``MarkedText``."""
    missing: tuple[str, ...]
    unshown: tuple[str, ...]

    def find_literal(self, name: str) -> str:
        """Find a member beside the arguments by its name, as it is written: ``true``; empty where there is none."""
        rows = [row.value for row in (self.about or self.rows) if row.path == (name,)]
        plain = [value for value in rows if isinstance(value, PlainValue) and not value.is_quoted]
        return "".join(passage.text for value in plain for passage in value.passages)
