"""The tutorial on measuring a judge runs: each of its commands, in order, and says what the page shows."""

from __future__ import annotations

import io
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from kit import cli, docs, house
from kit.cli import Line

pytest.importorskip("scipy", reason="measuring needs the extra trust")

PAGE = house.ROOT / "docs" / "measure-a-judge.md"

KEYS = "1\n2\n1\nq\n"
"""What the reader answers who labels a few by hand; the two annotators say the same of these."""

MISSES = {"--fail-under-corrected 0.75": 1}
"""Commands that do not end with 0, by a part of them."""


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a copy of the example's folder, on a wide terminal."""
    copied = tmp_path / "measured-judge"
    shutil.copytree(house.ROOT / "examples" / "measured-judge", copied)
    cli.isolate(monkeypatch, copied)
    monkeypatch.setenv("COLUMNS", "240")
    return Line(capsys)


def squeeze(text: str) -> str:
    """A text whose columns may be wider or narrower."""
    return " ".join(text.split())


def run_script(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a script of the folder prints."""
    _, script, *arguments = shlex.split(command)
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    capsys.readouterr()
    runpy.run_path(script, run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.slow
def test_every_command_of_the_tutorial_says_what_the_page_shows(
    line: Line, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """From the run to the gate, on the shipped example: statuses and every line that is shown."""
    commands = list(docs.list_commands(PAGE))
    assert len(commands) == 14

    for command, shown in commands:
        status = 0
        if command.startswith("python "):
            output = run_script(command, capsys, monkeypatch)
        else:
            monkeypatch.setattr(sys, "stdin", io.StringIO(KEYS))
            ran = line(*shlex.split(command)[1:])
            status, output = ran.status, ran.out + ran.err
        expected = next((number for part, number in MISSES.items() if part in command), 0)
        assert (command, status) == (command, expected)
        squeezed = squeeze(output)
        assert [text for text in shown if squeeze(text) not in squeezed] == [], command
