"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit import cli
from kit.cli import Line


@pytest.fixture(name="line")
def provide_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in an empty folder."""
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)
