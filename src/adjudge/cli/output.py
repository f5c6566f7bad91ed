"""The output of every command: results go to standard output, and messages and progress to standard error.

Control characters in contents and replies never reach a terminal. A reader that closes its pipe does not change the
exit status.
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
"""Seconds after which a line of progress is shown."""


class _ProgressLine:
    """The line of progress that is on the terminal now; other messages are written above it."""

    console: ClassVar[Console | None] = None
    """The console that draws the line; ``None`` while there is no line."""
    lock = threading.RLock()


def complain(text: str) -> None:
    """Write one sentence, an error or a warning, to standard error, with ``adjudge:`` before it."""
    _write_error_line(f"adjudge: {clean(text, keep_lines=False)}")


def complain_once(texts: Iterable[str]) -> None:
    """Write each sentence to standard error once, in order; one that occurs several times has its number added."""
    for text, number in Counter(iter(texts)).items():
        complain(text if number == 1 else f"{text} ({number:,} times)")


def note(text: str | None) -> None:
    """Write a message for the user to standard error; ``None`` writes nothing."""
    if text is not None:
        _write_error_line(clean(text))


def print_line(text: str = "") -> None:
    """Write a line to standard output."""
    _write_text(sys.stdout, f"{clean(text)}\n")


def write_json(document: dict[str, Any]) -> None:
    """Write one JSON document to standard output, in ASCII, so that the locale and the terminal do not matter."""
    _write_text(sys.stdout, json.dumps(document, indent=2) + "\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of JSON for another program to standard output; they are ASCII, without control characters."""
    _write_text(sys.stdout, "".join(f"{line}\n" for line in lines))


def write_file(path: Path, parts: Iterable[str], *, announce: bool = True) -> None:
    """Write a file, and with ``announce`` a message that names it; raises ``UsageError`` where it cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; name another file") from None
    if announce:
        note(f"wrote {path}")


def write_screen(text: str) -> None:
    """Write a text as it is to the terminal: its control characters are ours, and its lines were cleaned before."""
    _write_text(sys.stdout, text)


def show_drawing(drawing: RenderableType) -> None:
    """Draw a table, or something else that rich can draw, on standard output.

    Colours and boxes are left out where standard output is no terminal that can show them.
    """
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
    """Return the screen that reports are drawn for: as wide as the terminal, or without boxes (``columns=None``)."""
    import shutil

    from adjudge.report.terminal import Screen

    return Screen(columns=shutil.get_terminal_size().columns if can_draw_boxes() else None)


def is_narrow(columns: int) -> bool:
    """Return whether boxes are drawn, on a terminal of fewer than ``columns`` columns."""
    import shutil

    return can_draw_boxes() and shutil.get_terminal_size().columns < columns


def can_draw_boxes() -> bool:
    """Return whether standard output is a terminal that can show boxes."""
    if not is_terminal(sys.stdout) or os.environ.get("TERM") == "dumb":
        return False
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")


def make_table(title: str, columns: tuple[str, ...], *, whole: int = 0) -> Table:
    """Make an empty table, which has lines around its cells on a terminal, and plain columns elsewhere.

    The first ``whole`` columns hold short words and are not broken over lines; no column's texts are cut off.
    """
    from adjudge.report.terminal import make_rich_table

    return make_rich_table(title, columns, find_screen(), whole=whole)


def add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """Add a row of plain texts to a table: no part of a text is read as rich's markup, and none leaves its cell."""
    from adjudge.report.terminal import add_rich_row

    add_rich_row(table, *cells, style=style)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; ``None`` is a stream that is closed."""
    return stream is not None and stream.isatty()


def flush_streams() -> None:
    """Flush both output streams now, where an error can still be reported; Python would write a traceback later."""
    for stream in (sys.stdout, sys.stderr):
        _write_text(stream, "")


def _write_text(stream: TextIO | None, text: str) -> None:
    """Write a text to a stream and flush it; a character that the stream's encoding lacks becomes ``?``.

    A pipe that its reader has closed is no error. Raises ``AdjudgeError`` where standard output cannot be written for
    another reason, such as a full disk.
    """
    if stream is None:  # closed by the program that started us; the exit status is still read
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        _discard_output(stream)
    except OSError as error:
        _discard_output(stream)
        if stream is not sys.stderr:
            raise AdjudgeError(f"standard output cannot be written: {error.strerror}; nothing more is shown") from None


def _discard_output(stream: TextIO) -> None:
    """Connect a stream that cannot be written to the null device, so that Python does not complain about it at exit."""
    with suppress(OSError, ValueError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, stream.fileno())
        os.close(null_device)


class ProgressBar:
    """Counts the steps of a long command, and describes how far it is; ``total`` is ``None`` where it is not known."""

    def __init__(self, action: str, total: int | None) -> None:
        self.action, self.total, self.done = action, total, 0

    def step(self) -> None:
        """Count one more step as done."""
        self.done += 1

    def describe(self, seconds: float | None = None) -> str:
        """Describe the steps that are done, and, ``seconds`` after the beginning, the time passed and the time left."""
        of_total = f" of {self.total:,} ({format_points(self.done / self.total, digits=0)} %)" if self.total else ""
        line = f"{self.action}: {self.done:,}{of_total}"
        if seconds is None:
            return line
        line += f", {format_seconds(seconds)}"
        if not self.total or not 0 < self.done < self.total:  # before the first step is done, the pace is not known
            return line
        seconds_left = seconds / self.done * (self.total - self.done)
        return f"{line}, about {format_seconds(seconds_left)} left"


def format_seconds(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def show_progress(action: str, total: int | None = None) -> Iterator[ProgressBar]:
    """Show a line of progress on the terminal while a block runs, and yield its counter; elsewhere nothing is shown."""
    progress, started = ProgressBar(action, total), time.monotonic()
    if not _can_redraw():
        yield progress
        return
    with show_status(lambda: progress.describe(time.monotonic() - started)):
        yield progress


@contextmanager
def show_status(describe: Callable[[], str], *, every: float = 30.0) -> Iterator[None]:
    """Show the line that ``describe`` returns on standard error while a block runs.

    On a terminal, one line is redrawn again and again. Elsewhere a new line is written every ``every`` seconds, so that
    a log shows that the command is at work.
    """
    stop = threading.Event()
    if _can_redraw():
        thread = threading.Thread(target=_redraw_line, args=(describe, stop), daemon=True)
    else:
        thread = threading.Thread(target=_write_repeatedly, args=(describe, stop, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _can_redraw() -> bool:
    """Return whether standard error is a terminal on which a line can be drawn over."""
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


def _write_repeatedly(describe: Callable[[], str], stop: threading.Event, every: float) -> None:
    """Write a line of progress every ``every`` seconds, until ``stop`` is set."""
    while not stop.wait(every):
        note(describe())


def _redraw_line(describe: Callable[[], str], stop: threading.Event) -> None:
    """Draw a line of progress again and again, until ``stop`` is set."""
    if stop.wait(PATIENCE):
        return
    # Imported here, because a command that ends within a second needs none of it.
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def draw() -> Text:
        # Cut to the width of the terminal, because a line that wraps is not drawn over as a whole.
        return Text(clean(describe(), keep_lines=False), no_wrap=True, overflow="ellipsis")

    error_stream: Any = _ErrorStream(sys.stderr)
    console = Console(file=error_stream, force_terminal=True, highlight=False, markup=False, emoji=False)
    live = Live(
        console=console,
        get_renderable=draw,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    try:
        with _ProgressLine.lock:
            _ProgressLine.console = console
            live.start(refresh=True)
        while not stop.wait(0.2):
            live.refresh()
    finally:
        with _ProgressLine.lock:
            _ProgressLine.console = None
            live.stop()


class _ErrorStream(io.TextIOBase):
    """Standard error for rich to write to; an error of writing is ignored, and does not end the command."""

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


def _write_error_line(text: str) -> None:
    """Write a line to standard error, above the line of progress if there is one."""
    with _ProgressLine.lock:
        if _ProgressLine.console is None:
            _write_text(sys.stderr, f"{text}\n")
            return
        from rich.text import Text

        _ProgressLine.console.print(Text(text), soft_wrap=True)
