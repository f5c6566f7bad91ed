"""Errors of the library in the words of the command line, such as ``--threshold 0.8`` for the argument ``threshold``.

The library's errors name the arguments of Python functions. A user of the command line knows its options and
adjudge.toml, so each argument is replaced by its option (``spell_argument``). The errors are in ``errors.py``.
"""

from __future__ import annotations

import ast
import logging
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from adjudge.errors import AdjudgeError

_OTHER_NAMES = {
    "approved_by": ("--by",),
    "check": ("--batch-check",),
    "fields": ("--field",),
    "fields['content']": ("--content",),
    "fields['task']": ("--task",),
    "format": ("--from",),
    "labels": ("--reader-labels",),
    "labels_are_random": ("--labels-are",),
    "opinion_by": ("--by",),
    "passes": ("--reader-passes",),
    "poll": ("--batch-poll",),
    "size": ("--batch-size",),
    "then": ("--batch-then",),
    "tokens": ("--batch-tokens",),
    "usd": ("--budget",),
}
"""The options of arguments that have another name, by the argument."""

_PASSWORD = re.compile(r"(://[^/:@]*:)[^@]*(?=@)|([?&]password=)[^&]*")

_CONFIG_KEYS = {"approvals": "[approvals]", "judge": "judge", "prices": "[prices]", "rubric": "rubric"}
"""Keys of adjudge.toml that give an argument for which the command has no option, by the argument."""

_logger = logging.getLogger("adjudge")

_call: ContextVar[tuple[Any, Sequence[str]] | None] = ContextVar("call", default=None)
"""typer's object for the whole program, and the arguments that it was called with; ``None`` before a call."""


def begin_call(command: Any, arguments: Sequence[str]) -> None:
    """Remember which command is called, so that errors name its options.

    ``command`` is typer's object for the whole program.
    """
    _call.set((command, arguments))


def format_error(error: Exception) -> str:
    """Return the message of an error, with the options of the called command in place of Python arguments."""
    if not isinstance(error, AdjudgeError):
        return str(error)
    call = _call.get()
    params = [] if call is None else list(_find_command(*call).params)
    return error.spell(lambda name, value: spell_argument(name, value, params))


@contextmanager
def spelling_log() -> Iterator[None]:
    """Replace Python arguments by options in the errors that the library logs while a block runs."""
    _logger.addFilter(_spell_record)
    try:
        yield
    finally:
        _logger.removeFilter(_spell_record)


def _spell_record(record: logging.LogRecord) -> bool:
    """Replace the errors in a log record by their messages for the command line, and return true to keep the record."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            [format_error(value) if isinstance(value, AdjudgeError) else value for value in record.args]
        )
    return True


def spell_argument(argument: str, value: str | None, params: Sequence[Any]) -> str:
    """Write a Python argument as the option of a command, as a key of adjudge.toml, or by its own name.

    ``value`` is the Python text of its value, such as ``'skip'``, or ``None`` to leave it out. ``params`` are the
    command's parameters.
    """
    for name in _list_option_names(argument):
        for param in params:
            if name in param.opts:
                return _write_option(name, param, value)
    key = _CONFIG_KEYS.get(argument)
    if key is not None:
        return f"{key} in adjudge.toml"
    return argument if value is None else f"{argument} {_write_value(value)}"


def _find_command(command: Any, arguments: Sequence[str]) -> Any:
    """Find the command that the arguments call: in a group, the next word names one of its commands."""
    for word in arguments:
        subcommand = command.get_command(None, word) if hasattr(command, "get_command") else None
        if subcommand is None:
            break
        command = subcommand
    return command


def _list_option_names(argument: str) -> Iterator[str]:
    """Yield the names that the option of a Python argument can have."""
    yield f"--{argument.replace('_', '-')}"
    yield from _OTHER_NAMES.get(argument, ())


def _write_option(name: str, param: Any, value: str | None) -> str:
    """Write an option with the Python text of its value; a flag is written without a value, or as "no --flag"."""
    if value is None or (value == "True" and param.is_flag):
        return name
    if value == "None" or (value == "False" and param.is_flag):
        return f"no {name}"
    return f"{name} {_write_value(value)}"


def _write_value(value: str) -> str:
    """Write a value for a shell; ``value`` is its Python text, such as ``'two words'``."""
    try:
        parsed = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return value
    return shlex.quote(parsed) if isinstance(parsed, str) else value


def repeat_options(**values: str | Path | None) -> str:
    """Write options with their values, to repeat them in a command that adjudge proposes to the user.

    Options whose value is ``None`` are left out. The password of a database is replaced by ``***``, because others may
    read it on the screen or in a log.
    """
    texts = {name: _PASSWORD.sub(r"\1\2***", str(value)) for name, value in values.items() if value is not None}
    return "".join(f" --{name} {shlex.quote(text)}" for name, text in texts.items())
