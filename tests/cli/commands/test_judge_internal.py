"""The limit of a judge on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit import cli
from kit.cli import Line

RULES = """
name: Polite
criteria:
  - {name: greets, description: Greets the reader., rule: {regex: '^Dear'}}
"""


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    for name in ("good", "bad", "ugly"):
        Path(f"{name}.txt").write_text(name, encoding="utf-8")
    Path("polite.yaml").write_text(RULES, encoding="utf-8")
    return Line(capsys)


def test_a_limit_on_the_command_line_is_the_only_one(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A judge in a chain has no limit of its own that could cut a longer ``--timeout`` short."""
    from adjudge.config.file import Config
    from adjudge.config.judges import Panel, choose

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    one = choose(Panel(judges=("openai:a",), timeout=300.0), Config()).judge
    two = choose(Panel(judges=("openai:a", "openai:b"), timeout=300.0), Config()).judge

    assert one.timeout == 300.0
    assert two.timeout == 300.0
    assert [seat.timeout for _, seat in two.judges] == [None, None]
