"""The places where things are written: results to standard output, everything for people to standard error.

Nothing that was judged, or said by a judge, reaches a terminal with control characters in it, and a stream that cannot
be written never changes the exit status of what was judged.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.numbers import format_points
from adjudge.formats.text import clean

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from adjudge.report.document import Block, Document
    from adjudge.report.terminal import Screen


PATIENCE = 1.0
"""Seconds after which a person is shown that something is going on."""


class _Shown:
    """The line of progress that is on the terminal now; what is written meanwhile goes above it."""

    console: ClassVar[Console | None] = None
    lock = threading.RLock()


def complain(text: str) -> None:
    """One sentence on standard error."""
    _write_above(f"adjudge: {clean(text, keep_lines=False)}")


def complain_once(texts: Iterable[str]) -> None:
    """Each sentence once, with how often it is said where that is more than once; the first ones first."""
    for text, number in Counter(iter(texts)).items():
        complain(text if number == 1 else f"{text} ({number:,} times)")


def note(text: str | None) -> None:
    """A line for a person, on standard error; ``None`` writes nothing."""
    if text is not None:
        _write_above(clean(text))


def print_line(text: str = "") -> None:
    """A line on standard output."""
    _write_text(sys.stdout, f"{clean(text)}\n")


def write_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output; ASCII, so no terminal and no locale can be surprised."""
    _write_text(sys.stdout, json.dumps(document, indent=2) + "\n")


def write_lines(lines: Iterable[str]) -> None:
    """Lines for the next program on standard output, as they are: ASCII without control characters, like JSON."""
    _write_text(sys.stdout, "".join(f"{line}\n" for line in lines))


def write_file(path: Path, parts: Iterable[str], *, announce: bool = True) -> None:
    """Write a file, and name it to a person with ``announce``; raises ``UsageError`` where it cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; name another file") from None
    if announce:
        note(f"wrote {path}")


def write_screen(text: str) -> None:
    """Draw on the terminal: our own control characters, around lines that were cleaned before."""
    _write_text(sys.stdout, text)


def show_drawing(drawing: RenderableType) -> None:
    """Something rich can draw, on standard output; colours and boxes only where a terminal can show them."""
    from adjudge.report.terminal import draw_rich

    _write_text(sys.stdout, "".join(f"{line}\n" for line in draw_rich(drawing, find_screen())))


def print_document(document: Document, *, more: str = "") -> None:
    """Print a report; ``more`` says how to see the cases that it leaves out."""
    from adjudge.report.document import Cases
    from adjudge.report.terminal import draw_terminal

    _write_text(sys.stdout, draw_terminal(document, find_screen()))
    for block in document.blocks:
        if isinstance(block, Cases) and 0 < len(block.table.rows) < block.total:
            note(f"{len(block.table.rows):,} of the {block.total:,} {block.which}; {more}")


def print_blocks(blocks: Iterable[Block]) -> None:
    """Print some blocks of a report."""
    from adjudge.report.terminal import draw_blocks

    _write_text(sys.stdout, draw_blocks(blocks, find_screen()))


def find_screen() -> Screen:
    """Return the screen that standard output is drawn on."""
    import shutil

    from adjudge.report.terminal import Screen

    return Screen(columns=shutil.get_terminal_size().columns if draws() else None)


def is_narrow(columns: int) -> bool:
    """Return whether boxes are drawn on a terminal of fewer columns than these."""
    import shutil

    return draws() and shutil.get_terminal_size().columns < columns


def draws() -> bool:
    """Return whether standard output is a terminal that can show boxes."""
    if not is_terminal(sys.stdout) or os.environ.get("TERM") == "dumb":
        return False
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")


def make_table(title: str, columns: tuple[str, ...], *, whole: int = 0) -> Table:
    """An empty table: lines around the cells on a terminal, plain columns elsewhere.

    The first ``whole`` columns hold short words and are not broken over lines; no column's texts are cut off.
    """
    from adjudge.report.terminal import make_rich_table

    return make_rich_table(title, columns, find_screen(), whole=whole)


def add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """A row of plain texts: nothing in them is markup, and they end where the cell ends."""
    from adjudge.report.terminal import add_rich_row

    add_rich_row(table, *cells, style=style)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person sees what is written to a stream."""
    return stream is not None and stream.isatty()


def finish() -> None:
    """Write what a stream still holds, now, where it can be told; the interpreter would complain at its end."""
    for stream in (sys.stdout, sys.stderr):
        _write_text(stream, "")


def _write_text(stream: TextIO | None, text: str) -> None:
    """Write to a stream. Raises ``AdjudgeError`` where standard output cannot be written."""
    if stream is None:  # closed by the program that started us; the exit status is still read
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        _turn_away(stream)
    except OSError as error:
        _turn_away(stream)
        if stream is not sys.stderr:
            raise AdjudgeError(f"standard output cannot be written: {error.strerror}; nothing more is shown") from None


def _turn_away(stream: TextIO) -> None:
    """Nobody reads this any more; what is left goes nowhere, and neither does the interpreter's own complaint."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class ProgressBar:
    """Progress of a long command on standard error, once it takes longer than a second; silent in pipes."""

    def __init__(self, action: str, total: int | None) -> None:
        self.action, self.total, self.done = action, total, 0

    def step(self) -> None:
        """One more is done."""
        self.done += 1

    def describe(self, seconds: float | None = None) -> str:
        """The line that is shown, ``seconds`` after the first step could begin."""
        of = f" of {self.total:,} ({format_points(self.done / self.total, digits=0)} %)" if self.total else ""
        line = f"{self.action}: {self.done:,}{of}"
        if seconds is None:
            return line
        line += f", {format_seconds(seconds)}"
        # At the pace so far; nothing is known of it before the first is done.
        left = seconds / self.done * (self.total - self.done) if self.total and 0 < self.done < self.total else None
        return line if left is None else f"{line}, about {format_seconds(left)} left"


def format_seconds(seconds: float) -> str:
    """A duration as a person reads it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def show_progress(action: str, total: int | None = None) -> Iterator[ProgressBar]:
    """Show progress while a block runs."""
    progress, started = ProgressBar(action, total), time.monotonic()
    if not _can_redraw():
        yield progress
        return
    with watch(lambda: progress.describe(time.monotonic() - started)):
        yield progress


@contextmanager
def watch(describe: Callable[[], str], *, every: float = 30.0) -> Iterator[None]:
    """Show what ``describe`` says on standard error while a block runs.

    On a terminal it is one line that is redrawn; elsewhere a line of its own after each ``every`` seconds, so that a
    log shows that something is going on.
    """
    stop = threading.Event()
    if _can_redraw():
        thread = threading.Thread(target=_redraw, args=(describe, stop), daemon=True)
    else:
        thread = threading.Thread(target=_repeat, args=(describe, stop, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _can_redraw() -> bool:
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


def _repeat(describe: Callable[[], str], stop: threading.Event, every: float) -> None:
    while not stop.wait(every):
        note(describe())


def _redraw(describe: Callable[[], str], stop: threading.Event) -> None:
    """Draw a line of progress again and again, until ``stop`` is set."""
    if stop.wait(PATIENCE):
        return
    # Imported here: what is over within a second does not wait for it.
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def draw() -> Text:
        # Cut to the line: what wraps takes ever more of them.
        return Text(clean(describe(), keep_lines=False), no_wrap=True, overflow="ellipsis")

    screen: Any = _Screen(sys.stderr)
    console = Console(file=screen, force_terminal=True, highlight=False, markup=False, emoji=False)
    live = Live(
        console=console,
        get_renderable=draw,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    try:
        with _Shown.lock:
            _Shown.console = console
            live.start(refresh=True)
        while not stop.wait(0.2):
            live.refresh()
    finally:
        with _Shown.lock:
            _Shown.console = None
            live.stop()


class _Screen(io.TextIOBase):
    """Standard error as rich writes to it; where it cannot be written, nobody is told and nothing ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        _write_text(self._stream, text)
        return len(text)


def _write_above(text: str) -> None:
    """A line on standard error, above the line of progress where there is one."""
    with _Shown.lock:
        if _Shown.console is None:
            _write_text(sys.stderr, f"{text}\n")
            return
        from rich.text import Text

        _Shown.console.print(Text(text), soft_wrap=True)
