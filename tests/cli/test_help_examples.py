"""``adjudge COMMAND --help``: an example that the program accepts comes first, and defaults are written in one way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from kit import command_lines
from kit.cli import Line


def list_paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words that call each command, and each group before its own commands."""
    names = getattr(command, "list_commands", None)
    yield path
    for name in names(None) if names is not None else ():
        yield from list_paths(command.get_command(None, name), (*path, name))


EVERY_PATH = list(list_paths(command_lines.find_group()))
"""The program, its groups and its commands."""
PATHS = [path for path in EVERY_PATH if not any(other[:-1] == path for other in EVERY_PATH if other)]
"""The commands, which take options of their own."""


@pytest.mark.parametrize("path", EVERY_PATH, ids=lambda path: " ".join(path) or "adjudge")
def test_a_help_begins_with_an_example_that_is_accepted(
    line: Line, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
):
    """The first line below the usage is a call of this command, or of one of its own; it fits 80 columns and parses."""
    monkeypatch.setenv("COLUMNS", "80")
    _, example, *_ = line(*path, "--help").out.split("\n\n")
    program, *words = shlex.split(example.strip().removeprefix("$ "))

    assert example.startswith("  $ adjudge ")
    assert max(map(len, example.splitlines())) <= 80
    assert (program, tuple(words[: len(path)])) == ("adjudge", path)
    assert list(command_lines.find_wrong(words, {"rubrics": set(), "judges": set(), "gates": set()})) == []


def test_an_example_is_one_line_in_a_narrow_terminal(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A line that is broken cannot be copied."""
    monkeypatch.setenv("COLUMNS", "40")
    out = line("judge", "--help").out

    assert '  $ adjudge judge answer.txt -c "Is polite." -j openai:gpt-6.1-terra\n' in out


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_a_default_stands_at_the_end_of_an_option_s_help(
    line: Line, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
):
    """``[default: 8]``, and no other words for it, also where the default is no value but says what is taken."""
    monkeypatch.setenv("COLUMNS", "160")
    _, *sections = re.split(r"\n\n(?=[A-Z][\w ]*:\n)", line(*path, "--help").out)
    options = [" ".join(entry.split()) for section in sections for entry in re.split(r"\n  (?=-)", section)[1:]]
    named = [option for option in options if "default" in option]

    assert options
    assert [option for option in named if re.fullmatch(r"(?:(?!default).)*\[default: [^\[\]]+\]", option) is None] == []
