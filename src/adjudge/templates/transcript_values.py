"""A transcript as it is shown: values for its steps, for what is folded, and for what is not shown at all.

They hold texts and never HTML, as those of a call do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from adjudge.templates.call_values import CallView, Finding
from adjudge.templates.evidence import MarkedText, Passage
from adjudge.templates.opened_parts import TextWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """A text, or its beginning, with what a template cannot know of it: how long it was."""

    passages: tuple[Passage, ...]
    lines: int = 1
    length: int = 0
    """Characters of the whole text."""
    rest: int = 0
    """Characters that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step: somebody's words, or a call and what came back, which a transcript has as two messages."""

    kind: ClassVar[str] = "step"

    number: int
    who: str
    """The speaker of the words: ``user``, ``agent``, ``system``, or a role of the program's own."""
    text: ShownText | None = None
    tool: str = ""
    """Empty for words."""
    agent: str = ""
    """The sub-agent that made the call; empty for the agent itself."""
    arguments: tuple[tuple[str, ShownText], ...] = ()
    """Names and values; the name is empty for the one text of a call, which needs none."""
    result: ShownText | None = None
    error: ShownText | None = None
    duration_ms: float | None = None
    remark: str = ""
    """The part of it that the judge was not shown; empty where it was shown all."""
    findings: tuple[Finding, ...] = ()
    is_marked: bool = False
    """True if something in it is quoted, failed or was found: a reader looks for these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRow:
    """Steps that are folded into one line, counted so that a reader can decide whether to open them."""

    kind: ClassVar[str] = "fold"

    first: int
    last: int
    calls: tuple[tuple[str, int], ...]
    """Tools, each with how often it is called, the most frequent first."""
    messages: int
    errors: int
    path: str = ""
    """The address at which they are opened; empty where they are in ``rows``, or nowhere on this page."""
    rows: tuple[StepRow, ...] = ()

    @property
    def total(self) -> int:
        """The number of steps."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """A file that the agent changed, its difference cut like any other text."""

    path: str
    kind: str
    diff: ShownText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """The facts that are known of a run beside its steps; messages have none."""

    outcome: str
    exit_code: int | None
    problems: tuple[str, ...]
    unknown: tuple[str, ...]
    answer: ShownText | None
    files: tuple[ShownChange, ...]
    files_total: int
    cost: float | None
    duration_ms: float | None
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptView:
    """A conversation, or a run, with everything that is shown of it: messages and runs of any reader look alike."""

    kind: ClassVar[str] = "transcript"

    key: int
    """The number of the transcript on its page, from 1."""
    rows: tuple[StepRow | FoldRow, ...]
    is_numbered: bool
    """True if the numbers of its steps say anything: in an excerpt, steps are missing."""
    total: int
    calls: int
    errors: tuple[int, ...]
    """Numbers of the calls that ended with an error."""
    found: tuple[int, ...]
    """Numbers of the steps about which something was found."""
    head: RunHead | None
    beside: tuple[tuple[str, ShownText], ...]
    """The texts of the messages that are in no step, by their place."""
    beside_total: int
    unread: tuple[str, ...]
    """The reasons for which the messages cannot be read as whole steps, a sentence each."""
    left_out: str
    """The part of it that the judge was not shown, in a sentence; empty where it was shown all."""
    unshown_parts: tuple[str, ...]
    numbers: Mapping[str, int] = field(default_factory=dict)
    """As of ``MarkedText``."""
    missing: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsView:
    """JSON that is no transcript, in the rows of a call: what a part of a text is, only its ``kind`` says."""

    kind: ClassVar[str] = "rows"

    call: CallView


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainView:
    """A text to read, beside the two others."""

    kind: ClassVar[str] = "plain"

    text: ShownText


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPart:
    """A part of a text that was judged, such as one document of a context; without a name where it is all of it."""

    name: str
    view: TranscriptView | RowsView | PlainView


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedText:
    """A task, a context or a reference, with everything that is shown of it, and what is not, as of a call."""

    name: str
    parts: tuple[NamedPart, ...]
    length: int
    """Characters of the whole text."""
    unshown_parts: tuple[str, ...]
    window: TextWindow | None = None
    """The part of a long text that is shown; ``None`` where it is shown as what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentView:
    """A content that was judged, as it is shown: the rows of a call, a transcript or a text; one of them is there."""

    call: CallView | None = None
    transcript: TranscriptView | None = None
    text: MarkedText | None = None
    window: TextWindow | None = None
    """The part of a long text that is shown; ``None`` where ``text`` is all of it."""
    length: int
    """Characters of the whole content."""

    @property
    def marked(self) -> CallView | TranscriptView | MarkedText | None:
        """The view that is there; it has the places of the quotations."""
        return self.call or self.transcript or self.text
