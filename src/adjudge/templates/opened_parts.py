"""The folded parts of a page that its reader has opened, which the address of the page says.

The server draws only what is opened. So it knows without scripts or stored state what a page has shown: what its
address does not open was not shown.

However much is opened, no more than ``MOST_DRAWN`` characters of one text are drawn, because a page of two megabytes
takes a browser half a minute. A longer text is read in windows of that size, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

LONGEST_OPENED = 4_000
"""Characters of the member of an address."""

PATTERN = r"^[0-9.,-]*$"

MOST_DRAWN = 100_000
"""Characters of one text that a page draws, whatever is opened; and the size of a window."""

PART_PATTERN = r"^([a-z]{1,20}\.[1-9][0-9]{0,4})?$"
"""The member of an address that names a window: ``context.3`` is the third one of the context."""

_MOST_RANGES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWindow:
    """A part of a text that is too long to be drawn at once."""

    number: int
    """From 1."""
    count: int
    length: int
    """Characters of the whole text."""
    before: str = ""
    """The address of the window before it; empty for the first one, and where nothing can be opened."""
    after: str = ""

    @property
    def begin(self) -> int:
        """The place of its first character, from 0."""
        return (self.number - 1) * MOST_DRAWN

    @property
    def end(self) -> int:
        """The place behind its last character."""
        return min(self.number * MOST_DRAWN, self.length)


def is_long(text: str) -> bool:
    """Return whether a text is too long to be drawn at once."""
    return len(text) > MOST_DRAWN


def count_windows(text: str) -> int:
    """Count the windows in which a text is read; 1 for a text that is drawn at once."""
    return max(1, -(-len(text) // MOST_DRAWN))  # rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The parts that are opened, and the places where more of them can be."""

    path: str = ""
    """The address of the page; empty in a file, in which folded steps are there and closed."""
    query: tuple[tuple[str, str], ...] = ()
    """Other members of the address, which a link keeps."""
    whole: bool = False
    """True if everything is opened."""
    ranges: tuple[tuple[int, int, int], ...] = ()
    """Transcripts of the page, from 1, each with the first and the last step that is opened, from 1."""
    part: tuple[str, int] | None = None
    """The text of which a window is shown, by its name, and the number of the window."""

    def find_window(self, name: str, text: str, *, shows_first: bool = False) -> TextWindow | None:
        """Find the window of a long text that is shown.

        It is the one that the address names for this text, else the first one if everything is opened or
        ``shows_first`` is true. ``None`` if the text is short, or is not shown in windows.
        """
        part_name, part_number = self.part or (None, 0)
        is_named = part_name == name
        is_shown = bool(part_number) if is_named else self.whole or shows_first
        if not is_long(text) or not is_shown:
            return None
        count = count_windows(text)
        number = min(part_number, count) if is_named else 1
        before = self.make_part_link(name, number - 1) if number > 1 else ""
        after = self.make_part_link(name, number + 1) if number < count else ""
        return TextWindow(number=number, count=count, length=len(text), before=before, after=after)

    def make_part_link(self, name: str, number: int) -> str:
        """Make the address that shows a window of a text, and everything else as it is shown now."""
        if not self.path:
            return ""
        members = [*([("whole", "true")] if self.whole else []), *self.query]
        members += [("open", _write_ranges(self.ranges))] if self.ranges else []
        return f"{self.path}?{urlencode([*members, ('part', f'{name}.{number}')], safe=',')}#part-{name}"

    def list_steps(self, transcript: int, total: int) -> frozenset[int]:
        """List the numbers of the steps of a transcript that are opened."""
        if self.whole:
            return frozenset(range(1, total + 1))
        ranges = ((first, last) for number, first, last in self.ranges if number == transcript)
        return frozenset(step for first, last in ranges for step in range(max(1, first), min(last, total) + 1))

    def make_link(self, transcript: int, first: int, last: int) -> str:
        """Make the address that opens these steps of a transcript too; empty on a page where nothing can be opened.

        If it would become too long, it opens everything.
        """
        if not self.path:
            return ""
        ranges = (*self.ranges, (transcript, first, last))
        text = _write_ranges(ranges)
        if len(ranges) > _MOST_RANGES or len(text) > LONGEST_OPENED:
            return self.make_whole_link()
        return f"{self.path}?{urlencode([*self.query, ('open', text)], safe=',')}#t{transcript}-{first}"

    def make_whole_link(self) -> str:
        """Make the address that opens everything; empty on a page where nothing can be opened."""
        return f"{self.path}?{urlencode([('whole', 'true'), *self.query])}" if self.path else ""


def read_opened(
    path: str, text: str, *, whole: bool = False, query: tuple[tuple[str, str], ...] = (), part: str = ""
) -> Opened:
    """Read what the query of an address opens.

    ``text`` has the steps of transcripts, such as ``1.5-9,2.3``, of which anything else is ignored. ``part`` names the
    window of a long text, such as ``context.3``. ``query`` are the other members of the address.
    """
    ranges = (_read_range(range_text) for range_text in text.split(",")[:_MOST_RANGES])
    name, _, number = part.partition(".")
    return Opened(
        path=path,
        query=query,
        whole=whole,
        ranges=tuple(dict.fromkeys(step_range for step_range in ranges if step_range)),
        part=(name, int(number)) if number else None,
    )


def _write_ranges(ranges: tuple[tuple[int, int, int], ...]) -> str:
    """Write ranges of steps as ``read_opened`` reads them."""
    return ",".join(f"{number}.{begin}-{end}" for number, begin, end in ranges)


def _read_range(text: str) -> tuple[int, int, int] | None:
    """Read ``transcript.first-last``, or ``transcript.step``, as three numbers; ``None`` for anything else."""
    transcript, _, steps = text.partition(".")
    first, _, last = steps.partition("-")
    parts = (transcript, first, last or first)
    if not all(0 < len(part) < 8 and part.isdecimal() for part in parts):
        return None
    return int(transcript), int(first), int(last or first)
