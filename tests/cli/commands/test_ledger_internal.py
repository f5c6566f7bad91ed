"""A ledger on a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit.cli import ESCAPES, HIDDEN, Line, isolate
from kit.ledgers import make_result, record

URL = "sqlite:///a.db"


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in an empty folder with a ledger of four entries."""
    isolate(monkeypatch, tmp_path)
    record(URL, make_result(judge=f"careful {ESCAPES}"), make_result(outcome="passed", score=0.9), {"n": 1})
    return Line(capsys)


def test_a_terminal_is_shown_the_same_in_short(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Opinion, findings and what could not be seen, without anything that moves it."""
    monkeypatch.setattr("adjudge.cli.commands.ledger.can_draw_boxes", lambda: True)
    done = line("ledger", "report", "--ledger", "a.db")

    assert done.status == 1
    assert "type: audit" not in done.out
    for text in ("adverse: there are critical findings: 2", "rule_failed", "could not see"):
        assert text in done.out
    assert not HIDDEN.search(done.out)


def test_a_narrow_terminal_cuts_nothing_off(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A head can be copied from a report, and of a list the digests are left out before the words."""
    monkeypatch.setattr("adjudge.cli.output.can_draw_boxes", lambda: True)
    monkeypatch.setattr("adjudge.cli.commands.ledger.can_draw_boxes", lambda: True)
    head = line("ledger", "head", "--ledger", "a.db").out.strip()

    def see(columns: str, *arguments: str) -> str:
        monkeypatch.setenv("COLUMNS", columns)
        return re.sub(r"\x1b\[[0-9;]*m", "", line("ledger", *arguments, "--ledger", "a.db").out)

    report, listed, wide = see("80", "report"), see("80", "list"), see("160", "list")
    cells = [text.split("│")[2] for text in report.splitlines() if text.startswith("│") and text.count("│") == 3]

    assert head in "".join(cell.strip() for cell in cells)
    assert "…" not in report + listed
    assert max(map(len, [*report.splitlines(), *listed.splitlines()])) <= 80
    assert ("subject" in listed, "subject" in wide) == (False, True)
