"""The demonstration on a terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from kit.cli import Line


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are POSIX's here")
def test_a_terminal_of_80_columns_shows_every_name(line: Line, monkeypatch: pytest.MonkeyPatch):
    """No answer's name, verdict or criterion is cut off where most people see it first."""
    monkeypatch.setattr("tempfile.tempdir", str(Path.cwd()))
    monkeypatch.setattr("adjudge.cli.output.can_draw_boxes", lambda: True)
    monkeypatch.setattr("adjudge.cli.commands.demo.can_draw_boxes", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    out = re.sub(r"\x1b\[[0-9;]*m", "", line("demo").out)
    tables = [text for text in out.splitlines() if text[:1] in "┏┃┡│└"]
    table = tables[: tables.index(next(text for text in tables if text.startswith("└"))) + 1]

    assert {len(text) for text in table} <= set(range(81))
    assert "…" not in "".join(table)
    assert sum("✓ passed" in text or "✗ failed" in text for text in table) == 10
    for name in ("refund-promise", "template-left", "placeholders", "readable-"):
        assert any(name in text for text in table)
    second = tables[len(table) :]
    assert {len(text) for text in second} <= set(range(81))
    assert sum("✓ passed" in text or "✗ failed" in text or "? undecided" in text for text in second) == 10
    assert any("? unparseable" in text for text in second)
