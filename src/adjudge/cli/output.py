"""Where things are written: results to standard output, everything for people to standard error.

Nothing that was judged, or said by a judge, reaches a terminal with control characters in it, and a stream that cannot
be written never changes the exit status of what was judged.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from adjudge.errors import AdjudgeError
from adjudge.formats.text import clean

if TYPE_CHECKING:
    import threading

    from rich.console import Console, RenderableType
    from rich.table import Table


PATIENCE = 1.0
"""Seconds after which a person is shown that something is going on."""


_WIDE = 100_000
"""Columns where there is no terminal: nothing is wrapped, so that every line is one thing for the next program."""


class _Line:
    """The line of progress that stands on the terminal now; whatever is written next takes its place."""

    stands = False


def complain(text: str) -> None:
    """One sentence on standard error."""
    _wipe()
    _write(sys.stderr, f"adjudge: {clean(text, keep_lines=False)}\n")


def note(text: str | None) -> None:
    """A line for a person, on standard error; ``None`` writes nothing."""
    if text is None:
        return
    _wipe()
    _write(sys.stderr, f"{clean(text)}\n")


def say(text: str = "") -> None:
    """A line on standard output."""
    _write(sys.stdout, f"{clean(text)}\n")


def write_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output; ASCII, so no terminal and no locale can be surprised."""
    _write(sys.stdout, json.dumps(document, indent=2) + "\n")


def write_lines(lines: Iterable[str]) -> None:
    """Lines for the next program on standard output, as they are: ASCII without control characters, like JSON."""
    _write(sys.stdout, "".join(f"{line}\n" for line in lines))


def show_drawing(drawing: RenderableType) -> None:
    """Something rich can draw, on standard output; colours and boxes only where a terminal can show them."""
    from rich.console import Console

    # Drawn into a text and written here: rich itself leaves the program with status 1 when a pipe is closed early,
    # and whoever reads the status would take that for a verdict.
    drawn, terminal = io.StringIO(), draws()
    width = None if terminal else _WIDE
    console = Console(file=drawn, force_terminal=terminal, width=width, highlight=False, markup=False, emoji=False)
    if terminal:
        _squeeze(drawing, console)
    console.print(drawing)
    lines = drawn.getvalue().splitlines()
    _write(sys.stdout, "".join(f"{line if terminal else line.rstrip()}\n" for line in lines))


def _squeeze(drawing: RenderableType, console: Console) -> None:
    """Take the spaces beside the lines out of a table that is wider than the terminal: better those than words."""
    from rich.measure import Measurement
    from rich.table import Table

    if isinstance(drawing, Table):
        unlimited = console.options.update(max_width=_WIDE)
        if Measurement.get(console, unlimited, drawing).maximum > console.width:
            drawing.padding = 0  # type: ignore[assignment] - rich takes what unpacks to four sides


def is_narrow(columns: int) -> bool:
    """Whether boxes are drawn on a terminal of fewer columns than these."""
    import shutil

    return draws() and shutil.get_terminal_size().columns < columns


def draws() -> bool:
    """Whether standard output is a terminal that can show boxes."""
    if not is_terminal(sys.stdout) or os.environ.get("TERM") == "dumb":
        return False
    return (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")


def make_table(title: str, columns: tuple[str, ...], *, whole: int = 0) -> Table:
    """An empty table: lines around the cells on a terminal, plain columns elsewhere.

    The first ``whole`` columns hold short words and are not broken over lines; no column's texts are cut off.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    lines = box.HEAVY_HEAD if draws() else None
    table = Table(
        title=Text(clean(title)),
        title_justify="left",
        box=lines,
        pad_edge=lines is not None,
        show_header=any(columns),
    )
    for number, column in enumerate(columns):
        # Folded and not cut: the end of a name, or of a head, is needed to type it.
        table.add_column(Text(clean(column)), overflow="fold", no_wrap=number < whole)
    return table


def add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """A row of plain texts: nothing in them is markup, and they end where the cell ends."""
    from rich.text import Text

    table.add_row(*(Text(clean(cell, keep_lines=False)) for cell in cells), style=style)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is written to a stream."""
    return stream is not None and stream.isatty()


def finish() -> None:
    """Write what a stream still holds, now, where it can be told; the interpreter would complain at its end."""
    for stream in (sys.stdout, sys.stderr):
        _write(stream, "")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed by whoever started us; the exit status still speaks
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


class Progress:
    """How far a long command is, on standard error, once it takes longer than a second; silent in pipes."""

    def __init__(self, what: str, total: int | None) -> None:
        self.what, self.total, self.done = what, total, 0

    def step(self) -> None:
        """One more is done."""
        self.done += 1

    def describe(self) -> str:
        """The line that is shown."""
        of = f" of {self.total}" if self.total else ""
        return f"{self.what}: {self.done}{of}"


@contextmanager
def show_progress(what: str, total: int | None = None) -> Iterator[Progress]:
    """Show progress while a block runs."""
    progress = Progress(what, total)
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield progress
        return
    import threading

    stop = threading.Event()
    thread = threading.Thread(target=_redraw, args=(progress, stop), daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        stop.set()
        thread.join()


@contextmanager
def watch(describe: Callable[[], str], *, every: float = 30.0) -> Iterator[None]:
    """Show what ``describe`` says on standard error while a block runs.

    On a terminal it is one line that is redrawn; elsewhere a line of its own after each ``every`` seconds, so that a
    log shows that something is going on.
    """
    import threading

    stop = threading.Event()
    redraws = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
    thread = threading.Thread(target=_watch, args=(describe, stop, None if redraws else every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(describe: Callable[[], str], stop: threading.Event, every: float | None) -> None:
    shown = False
    while not stop.wait(every or (0.2 if shown else PATIENCE)):
        if every is not None:
            note(describe())
            continue
        shown = True
        # Cut to the line: what wraps cannot be redrawn.
        _write(sys.stderr, f"\r\x1b[K{clean(describe(), keep_lines=False)[: _measure_width() - 1]}")
        _Line.stands = True
    _wipe()


def _wipe() -> None:
    if _Line.stands:
        _Line.stands = False
        _write(sys.stderr, "\r\x1b[K")


def _measure_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _redraw(progress: Progress, stop: threading.Event) -> None:
    import time

    started = time.monotonic()
    shown = False
    while not stop.wait(0.2 if shown else PATIENCE):
        shown = True
        _write(sys.stderr, f"\r\x1b[K{progress.describe()} ({time.monotonic() - started:.0f} s)")
    if shown:
        _write(sys.stderr, "\r\x1b[K")
