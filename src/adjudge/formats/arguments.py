"""Checks of arguments: each raises ``UsageError`` and names the argument, the value and what it must be."""

from __future__ import annotations

import math
from typing import Any

from adjudge.errors import UsageError


def check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ``UsageError`` unless a value is one of some words."""
    if value not in choices:
        raise UsageError(f"{what} must be one of {', '.join(choices)}; got {value!r}")


def check_functions(where: str, **given: object) -> None:
    """Raise ``UsageError`` for what was given in place of a function: it would only be found out when it is called."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise UsageError(f"{where}: {name} must be a function, got {type(value).__name__}")


def check_timeout(what: str, value: Any) -> None:
    """Raise ``UsageError`` unless a limit in seconds is ``None`` or a finite number above 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise UsageError(f"{what} must be a finite number of seconds above 0, or None for no limit; got {value!r}")


def check_flag(what: str, value: Any) -> None:
    """Raise ``UsageError`` unless a switch is true or false: the text "false" from a file would switch it on."""
    if not isinstance(value, bool):
        raise UsageError(f"{what} must be True or False, got {value!r}")


def check_label(what: str, value: object) -> None:
    """Raise ``UsageError`` unless a name is a printable text: it stands in events, errors and logs."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise UsageError(f"{what} must be a printable text that is not empty, got {value!r}")


def check_hook(hook: object) -> None:
    """Raise ``UsageError`` unless ``on_event`` is a function, or none."""
    if hook is not None and not callable(hook):
        raise UsageError(f"on_event must be a function, got {type(hook).__name__}")
