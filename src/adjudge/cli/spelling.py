"""Arguments in the words of the command line: the one place that prints ``--fail-open`` and ``--threshold 0.8``.

The library's errors name the arguments of Python functions. Who typed a command knows its options and adjudge.toml.

The option as which an argument is spelled is decided here (``spell_argument``); the errors are in ``errors.py``.
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
"""Options whose names are not those of the arguments that they give."""

_PASSWORD = re.compile(r"(://[^/:@]*:)[^@]*(?=@)|([?&]password=)[^&]*")

_KEYS = {"approvals": "[approvals]", "judge": "judge", "prices": "[prices]", "rubric": "rubric"}
"""Keys of adjudge.toml for arguments for which a command has no option."""

_logger = logging.getLogger("adjudge")

_call: ContextVar[tuple[Any, Sequence[str]] | None] = ContextVar("call", default=None)
"""The program's command and the arguments that it was called with."""


def begin_call(command: Any, arguments: Sequence[str]) -> None:
    """Let errors be spelt for the command that these arguments call."""
    _call.set((command, arguments))


def spell(error: Exception) -> str:
    """Return the message of an error with options in place of arguments."""
    if not isinstance(error, AdjudgeError):
        return str(error)
    call = _call.get()
    params = [] if call is None else list(_find_command(*call).params)
    return error.spell(lambda name, value: spell_argument(name, value, params))


@contextmanager
def spelling_log() -> Iterator[None]:
    """Have arguments in what the library logs meanwhile spelt as in errors."""
    _logger.addFilter(_spell_record)
    try:
        yield
    finally:
        _logger.removeFilter(_spell_record)


def _spell_record(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple([spell(part) if isinstance(part, AdjudgeError) else part for part in record.args])
    return True


def spell_argument(argument: str, value: str | None, params: Sequence[Any]) -> str:
    """Return an argument as a command with these parameters has it, with its value."""
    for name in _list_names(argument):
        for param in params:
            if name in param.opts:
                return _write_option(name, param, value)
    key = _KEYS.get(argument)
    if key is not None:
        return f"{key} in adjudge.toml"
    return argument if value is None else f"{argument} {_write_value(value)}"


def _find_command(command: Any, arguments: Sequence[str]) -> Any:
    """The command that these arguments call, as deep as there are commands of a group."""
    for word in arguments:
        inner = command.get_command(None, word) if hasattr(command, "get_command") else None
        if inner is None:
            break
        command = inner
    return command


def _list_names(argument: str) -> Iterator[str]:
    yield f"--{argument.replace('_', '-')}"
    yield from _OTHER_NAMES.get(argument, ())


def _write_option(name: str, param: Any, value: str | None) -> str:
    if value is None or (value == "True" and param.is_flag):
        return name
    if value == "None" or (value == "False" and param.is_flag):
        return f"no {name}"
    return f"{name} {_write_value(value)}"


def _write_value(value: str) -> str:
    """A value as a shell takes it, from the Python that the message has."""
    try:
        plain = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return value
    return shlex.quote(plain) if isinstance(plain, str) else value


def repeat_options(**values: str | Path | None) -> str:
    """Write options and their values again, for a command that the program proposes to type next.

    The password of a database is replaced by ``***``: others may read it on a screen or in a log.
    """
    texts = {name: _PASSWORD.sub(r"\1\2***", str(value)) for name, value in values.items() if value is not None}
    return "".join(f" --{name} {shlex.quote(text)}" for name, text in texts.items())
