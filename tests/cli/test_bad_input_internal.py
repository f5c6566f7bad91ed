"""Every option and command that the command line has, misspelt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from adjudge.cli.app import app
from kit import cli
from kit.cli import WORDS, Line
from kit.judges import names


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    Path("empty.txt").write_text(" \n", encoding="utf-8")
    Path("binary.bin").write_bytes(b"abc\x00\x01")
    Path("latin.txt").write_bytes("Grüße".encode("latin-1"))
    Path("folder").mkdir()
    return Line(capsys)


def list_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, groups included."""
    yield path, command
    for name in list_names(command):
        yield from list_commands(command.get_command(None, name), (*path, name))


def list_names(command: Any) -> list[str]:
    """The commands of a group; none of what is no group."""
    return command.list_commands(None) if hasattr(command, "list_commands") else []


COMMANDS = [(path, command) for path, command in list_commands(get_command(app))]


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) or "adjudge" for path, _ in COMMANDS])
@pytest.mark.slow_table
def test_a_misspelt_word_is_answered_with_the_nearest(line: Line, path: tuple[str, ...], command: Any):
    """Of every command's options and commands, with a letter left out, too many, or two swapped: no other is suggested.

    Each word in one of the three ways, and in all of them for the full tests.
    """
    shown = [item for item in command.params if not getattr(item, "hidden", False)]
    options = {name for item in shown for name in (*item.opts, *item.secondary_opts) if name.startswith("--")}
    long_enough = [name for name in (*sorted(options), *list_names(command)) if len(name.lstrip("-")) >= 5]
    for number, name in enumerate(long_enough):
        every = (name[:-3] + name[-2:], name[:-2] + name[-1] + name[-2], f"{name}x")
        for wrong in every if os.environ.get("ADJUDGE_FULL") else every[number % 3 : number % 3 + 1]:
            if wrong in (*options, *list_names(command)):
                continue
            if any(other[:-1] == wrong[:-1] and other != wrong for other in options):  # as near: --labelx, --labels
                continue
            message = line(*path, wrong).sentence
            assert f"did you mean {name if name.startswith('--') else repr(name)};" in message, (wrong, message)


POLITE = ("--criteria", "Is polite.")


ASK = (*POLITE, "--judge", WORDS)


def test_a_content_is_too_large(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Nothing is cut in silence: what is too large for a file at once, or for the model, is refused."""
    monkeypatch.setattr("adjudge.cli.input.LARGEST_INPUT", 2_000_000)
    Path("large.txt").write_text("x" * 2_000_001, encoding="utf-8")
    Path("long.txt").write_text("x" * 1_000_001, encoding="utf-8")

    assert names(line("judge", "large.txt", *ASK).sentence, "large.txt", "larger than 2 MB", "in parts")
    ran = line("judge", "long.txt", *ASK)
    assert ran.status == 2
    assert names(ran.sentence, "long.txt", "1,000,001", f"'{WORDS}'", "1,000,000", "shorten", "in parts")


def test_what_breaks_in_adjudge_says_so(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A fault of ours is the only thing that shows a traceback, and its status is 70, never a verdict."""

    def break_it(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("adjudge.cli.commands.judge.list_inputs", break_it)
    ran = line("judge", "good.txt", *ASK)

    assert ran.status == 70
    assert "Traceback" in ran.err
    assert ran.err.endswith(
        "adjudge: adjudge crashed: ZeroDivisionError: oops; please report this with the lines above\n"
    )
