"""The parts of a page's transcripts that its reader opened, as the address of the page says.

The server draws what is opened, and nothing else of what is folded. So a page knows what it has shown without a script
and without a memory: what its address does not open was not shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

LONGEST_OPENED = 4_000
"""Characters of the member of an address."""

PATTERN = r"^[0-9.,-]*$"

_MOST_RANGES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What is opened, and where more of it can be."""

    path: str = ""
    """The address of the page; empty in a file, in which folded steps are there and closed."""
    query: tuple[tuple[str, str], ...] = ()
    """Other members of the address, which a link keeps."""
    whole: bool = False
    """Whether everything is opened."""
    ranges: tuple[tuple[int, int, int], ...] = ()
    """Transcripts of the page, from 1, each with the first and the last step that is opened, from 1."""

    def list_steps(self, transcript: int, total: int) -> frozenset[int]:
        """List the numbers of the steps of a transcript that are opened."""
        if self.whole:
            return frozenset(range(1, total + 1))
        mine = ((first, last) for number, first, last in self.ranges if number == transcript)
        return frozenset(step for first, last in mine for step in range(max(1, first), min(last, total) + 1))

    def make_link(self, transcript: int, first: int, last: int) -> str:
        """Make the address at which these steps are opened too; empty where nothing can be opened."""
        if not self.path:
            return ""
        ranges = (*self.ranges, (transcript, first, last))
        text = ",".join(f"{number}.{begin}-{end}" for number, begin, end in ranges)
        if len(ranges) > _MOST_RANGES or len(text) > LONGEST_OPENED:
            return self.make_whole_link()
        return f"{self.path}?{urlencode([*self.query, ('open', text)], safe=',')}#t{transcript}-{first}"

    def make_whole_link(self) -> str:
        """Make the address at which everything is opened; empty where nothing can be."""
        return f"{self.path}?{urlencode([('whole', 'true'), *self.query])}" if self.path else ""


def read_opened(path: str, text: str, *, whole: bool = False, query: tuple[tuple[str, str], ...] = ()) -> Opened:
    """Read what an address opens; parts of it that say nothing are left out."""
    ranges = (_read_range(part) for part in text.split(",")[:_MOST_RANGES])
    return Opened(path=path, query=query, whole=whole, ranges=tuple(dict.fromkeys(one for one in ranges if one)))


def _read_range(text: str) -> tuple[int, int, int] | None:
    transcript, _, steps = text.partition(".")
    first, _, last = steps.partition("-")
    numbers = [part for part in (transcript, first, last or first) if 0 < len(part) < 8 and part.isdecimal()]
    return (int(numbers[0]), int(numbers[1]), int(numbers[2])) if len(numbers) == 3 else None
