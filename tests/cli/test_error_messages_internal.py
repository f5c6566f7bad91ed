"""Arguments of the library as options of the command that was called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from adjudge.cli import error_messages
from adjudge.cli.app import app
from adjudge.errors import Argument, UsageError


def list_commands(command: Any) -> Iterator[Any]:
    """A command and all below it."""
    yield command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from list_commands(command.get_command(None, name))


@pytest.fixture(name="command", scope="module")
def provide_command() -> Any:
    """The whole command line."""
    return typer.main.get_command(app)


def test_every_option_that_stands_for_an_argument_exists(command: Any):
    """Nobody is sent to an option that no command has."""
    options = {name for leaf in list_commands(command) for param in leaf.params for name in param.opts}
    named = {name for names in error_messages._OTHER_NAMES.values() for name in names}

    assert named - options == set()


@pytest.mark.parametrize(
    ("words", "argument", "text"),
    [
        (("judge", "a.txt"), Argument("fail_open", "True"), "--fail-open"),
        (("judge", "a.txt"), Argument("threshold", "0.8"), "--threshold 0.8"),
        (("run", "a.csv"), Argument("on_bad_row", "'skip'"), "--on-bad-row skip"),
        (("run", "a.csv"), Argument("sample", "None"), "no --sample"),
        (("run", "a.csv"), Argument("format"), "--from"),
        (("run", "a.csv"), Argument("fields['content']"), "--content"),
        (("gate", "check", "publish"), Argument("approvals"), "[approvals] in adjudge.toml"),
        (("gate", "check", "publish"), Argument("quorum", "2"), "quorum 2"),
        ((), Argument("seed"), "seed"),
    ],
)
def test_an_argument_is_spelt_for_the_command_that_was_called(
    command: Any, words: tuple[str, ...], argument: Argument, text: str
):
    """As its option with its value, as a key of adjudge.toml, or by its name."""
    error_messages.begin_call(command, words)

    assert error_messages.format_error(UsageError("give ", argument)) == f"give {text}"


@pytest.mark.parametrize(
    ("url", "repeated"),
    [
        ("sqlite:///a b.db", "'sqlite:///a b.db'"),
        ("postgresql://ana@db/ledger", "postgresql://ana@db/ledger"),
        ("postgresql://ana:s3c:ret@db:5432/ledger", "'postgresql://ana:***@db:5432/ledger'"),
        ("postgresql://db/ledger?user=ana&password=s3cret&x=1", "'postgresql://db/ledger?user=ana&password=***&x=1'"),
    ],
)
def test_a_proposed_command_repeats_a_ledger_without_its_password(url: str, repeated: str):
    """It is read again on screens and in logs."""
    assert error_messages.repeat_options(ledger=url, config=None) == f" --ledger {repeated}"
