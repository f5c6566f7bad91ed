"""What stands on a terminal while something goes on: one line, cleaned, above which messages are written."""

from __future__ import annotations

import io
import re
import sys

import pytest

from adjudge.cli import output
from kit.patience import HANG, wait_for

pytestmark = pytest.mark.timed  # the line is drawn in a thread of its own

HOSTILE = "\x1b]0;title\x07 [bold]said[/bold]\nnext"


class Terminal(io.StringIO):
    """Standard error that a person sees; with ``broken`` it takes nothing."""

    def __init__(self, *, broken: bool = False) -> None:
        super().__init__()
        self.broken = broken
        self.refused = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if self.broken:
            self.refused += 1
            raise OSError(5, "Input/output error")
        return super().write(text)

    def fileno(self) -> int:
        raise OSError("no file")


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error from here on; not a fixture, since pytest puts its own in place before the test begins."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_hostile_text_in_the_line_is_cleaned_and_cut(monkeypatch: pytest.MonkeyPatch):
    """No control character but rich's own, no markup, and never more than the line."""
    terminal = open_terminal(monkeypatch)
    with output.show_status(lambda: HOSTILE + "x" * 500):
        wait_for(lambda: "said" in terminal.getvalue())
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())

    assert "·]0;title· [bold]said[/bold]" in plain
    assert "\x1b" not in plain
    assert "\x07" not in plain
    assert max(map(len, re.split(r"[\r\n]", plain))) <= 60


def test_a_message_stands_above_the_line(monkeypatch: pytest.MonkeyPatch):
    """Whole and on a line of its own, however long it is, and cleaned; the line is drawn again below it."""
    terminal = open_terminal(monkeypatch)
    with output.show_progress("judged", 3):
        wait_for(lambda: "judged: 0 of 3 (" in terminal.getvalue())
        output.note(HOSTILE + "y" * 100)
        output.complain("it is so")
        wait_for(lambda: "adjudge: it is so\n" in terminal.getvalue())
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())

    assert f"·]0;title· [bold]said[/bold]\nnext{'y' * 100}\n" in plain
    assert re.search(r"adjudge: it is so\n(.|\n)*judged: 0 of 3", plain)


def test_a_terminal_that_goes_away_ends_nothing(monkeypatch: pytest.MonkeyPatch):
    """What was judged has its result and its exit status all the same."""
    terminal = open_terminal(monkeypatch)
    with output.show_progress("judged", 3) as progress:
        wait_for(lambda: "judged: 0 of 3 (" in terminal.getvalue())
        terminal.broken = True
        wait_for(lambda: terminal.refused)
        progress.step()
        output.note("said to nobody")

    assert progress.done == 1


def test_what_is_over_soon_draws_nothing(monkeypatch: pytest.MonkeyPatch):
    """Nothing is shown within the first second, and rich's drawing is not loaded for it."""
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(output, "PATIENCE", HANG)
    with output.show_progress("judged", 3) as progress:
        progress.step()

    assert terminal.getvalue() == ""


@pytest.mark.parametrize("dumb", [True, False])
def test_a_dumb_terminal_and_a_log_have_no_line_that_moves(monkeypatch: pytest.MonkeyPatch, dumb: bool):
    """A line of its own after each interval, without a control character; a count of steps is not shown at all."""
    terminal = open_terminal(monkeypatch)
    if dumb:
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    with output.show_status(lambda: HOSTILE, every=0.01), output.show_progress("judged"):
        wait_for(lambda: "said" in terminal.getvalue())

    assert set(terminal.getvalue().split("\n")) == {"·]0;title· [bold]said[/bold]", "next", ""}


def test_progress_has_a_total_and_a_time_left():
    """At the pace so far; before the first is done, and after the last, nothing is said of it."""
    progress = output.ProgressBar("judged", 2_000)
    assert progress.describe(3.0) == "judged: 0 of 2,000 (0 %), 3 s"
    progress.done = 500
    assert progress.describe(60.0) == "judged: 500 of 2,000 (25 %), 60 s, about 3 min left"
    progress.done = 2_000
    assert progress.describe(60.0) == "judged: 2,000 of 2,000 (100 %), 60 s"
    assert output.ProgressBar("judged", None).describe(1.0) == "judged: 0, 1 s"
