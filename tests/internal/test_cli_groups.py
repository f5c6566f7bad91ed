"""``adjudge --help``: every command under a heading, whole sentences, and the width of the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

import cli_support
from adjudge.cli.app import GROUPS, app
from cli_support import Line


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in an empty folder."""
    cli_support.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def test_every_command_has_one_heading():
    """A new command that no heading names would not be listed."""
    named = [name for names in GROUPS.values() for name in names]
    commands = {item.name or item.callback.__name__ for item in app.registered_commands}
    groups = {item.name for item in app.registered_groups}

    assert sorted(named) == sorted(commands | groups)


@pytest.mark.parametrize("columns", [80, 140])
def test_the_list_of_commands_fits_the_terminal(line: Line, monkeypatch: pytest.MonkeyPatch, columns: int):
    """No sentence is cut off, whatever the width, and no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    out = line("--help").out

    assert max(map(len, out.splitlines())) <= columns
    assert "..." not in out.replace("[ARGS]...", "")
    assert all(f"\n{heading}:\n" in out for heading in GROUPS)
    assert max(map(len, out.splitlines())) > columns - 30


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("judge", ("-r, --rubric", "-c, --criteria", "-j, --judge")),
        ("run", ("-o, --out", "-r, --rubric", "-j, --judge")),
    ],
)
def test_what_is_typed_every_day_has_one_letter(line: Line, command: str, flags: tuple[str, ...]):
    """Rubric, criteria, judge and out."""
    out = line(command, "--help").out

    assert [flag for flag in flags if flag not in out] == []
