"""``adjudge --help``: every command under a heading, whole sentences, and the width of the terminal."""

from __future__ import annotations

import pytest

from adjudge.cli.command_groups import load_command
from adjudge.cli.command_list import COMMANDS, ListedCommand
from kit import house
from kit.cli import Line

LISTED = [command for commands in COMMANDS.values() for command in commands]


@pytest.mark.parametrize("command", LISTED, ids=[command.name for command in LISTED])
def test_the_list_says_what_each_command_says_of_itself(command: ListedCommand):
    """The list is written without importing a command, so its sentences are copies."""
    assert load_command(command).get_short_help_str(limit=1_000) == command.sentence


def test_every_module_of_commands_is_listed():
    """A new command that the list does not name could not be called."""
    modules = {path.stem for path in (house.PACKAGE / "cli" / "commands").glob("*.py")} - {"__init__", "estimate"}

    assert modules == {command.location.partition(":")[0] for command in LISTED}


@pytest.mark.parametrize("columns", [80, 140])
def test_the_list_of_commands_fits_the_terminal(line: Line, monkeypatch: pytest.MonkeyPatch, columns: int):
    """No sentence is cut off, whatever the width, and no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    out = line("--help").out

    assert max(map(len, out.splitlines())) <= columns
    assert "..." not in out.replace("[ARGS]...", "")
    assert all(f"\n{heading}:\n" in out for heading in COMMANDS)
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
