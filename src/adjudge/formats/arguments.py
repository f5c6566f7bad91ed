"""Checks of arguments: each raises ``UsageError`` and names the argument, the value and what it must be.

A value is shown by ``show``, since a number of 5,000 digits and other people's types may have no text, and cut short.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.text import show, suggest


def check_whole_number(
    what: str, value: Any, *, least: int | None = None, most: int | None = None, of: str = "", note: str = ""
) -> int:
    """The value, or ``UsageError`` unless it is a whole number within its bounds.

    ``of`` is its unit (" of bytes"), ``note`` what the bounds are ("the number of judges"). ``True`` is an int in
    Python, and none here: it would count as 1.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and (least is None or value >= least) and (most is None or value <= most):
        return value
    bounds = f" of at least {least:,}" if least is not None else f" of at most {most:,}" if most is not None else ""
    if least is not None and most is not None:
        bounds = f" from {least:,} to {most:,}"
    raise UsageError(f"{what} must be a whole number{of}{bounds}{f', {note};' if note else ','} got {show(value)}")


def check_share(what: str, value: Any) -> float:
    """The value as a float, or ``UsageError`` unless it is a number between 0 and 1; NaN is none."""
    if not is_finite(value):
        raise UsageError(f"{what} must be a number between 0 and 1, got {_format_number(value)}")
    if not 0 <= value <= 1:
        hint = f"; for {value:g} % write {value / 100:g}" if 1 < value <= 100 else ""
        raise UsageError(f"{what} must be between 0 and 1, got {_format_number(value)}{hint}")
    return float(value) + 0.0  # -0.0 equals 0.0 and must not have a digest of its own


def check_above_zero(what: str, value: Any, *, of: str = "", otherwise: str = "") -> Any:
    """The value, or ``UsageError`` unless it is a finite number above 0; ``of`` is its unit (" of seconds").

    ``otherwise`` says what ``None`` stands for ("for no limit"); without it, ``None`` is refused too.
    """
    if (value is None and otherwise) or (is_finite(value) and value > 0):
        return value
    none = f", or None {otherwise};" if otherwise else ","
    raise UsageError(f"{what} must be a finite number{of} above 0{none} got {_format_number(value)}")


def check_timeout(what: str, value: Any) -> None:
    """Raise ``UsageError`` unless a limit in seconds is ``None`` or a finite number above 0."""
    check_above_zero(what, value, of=" of seconds", otherwise="for no limit")


def check_seconds(what: str, value: Any, *, most: float | None = None) -> None:
    """Raise ``UsageError`` unless a time in seconds is a finite number above 0, and at most so many."""
    if most is None:
        check_above_zero(what, value, of=" of seconds")
    elif not is_finite(value) or not 0 < value <= most:
        raise UsageError(f"{what} must be a number of seconds above 0 and up to {most:,g}, got {_format_number(value)}")


def check_flag(what: str, value: Any) -> bool:
    """The value, or ``UsageError`` unless it is true or false: the text "false" from a file would switch it on."""
    if not isinstance(value, bool):
        raise UsageError(f"{what} must be true or false, got {show(value)}")
    return value


def check_choice(what: str, value: object, choices: Iterable[str]) -> None:
    """Raise ``UsageError`` unless a value is one of some words."""
    known = tuple(choices)
    # A text first: other people's values need not be comparable, nor be equal to a word that they are not.
    if not isinstance(value, str) or value not in known:
        near = suggest(value, known) if isinstance(value, str) else ""
        raise UsageError(f"{what} must be one of {', '.join(known)}; got {show(value)}{near}")


def check_digest(what: str, value: object) -> str:
    """The value, or ``UsageError`` unless it is a SHA-256 digest in hexadecimal."""
    if isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef"):
        return value
    raise UsageError(f"{what} must be a SHA-256 digest, 64 characters of 0-9 and a-f, got {show(value)}")


def check_functions(where: str, **given: object) -> None:
    """Raise ``UsageError`` for what was given in place of a function: it would only be found out when it is called."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise UsageError(f"{where}: {name} must be a function, got {type(value).__name__}")


def check_label(what: str, value: object) -> None:
    """Raise ``UsageError`` unless a name is a printable text: it stands in events, errors and logs."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise UsageError(f"{what} must be a printable text that is not empty, got {show(value)}")


def check_hook(hook: object) -> None:
    """Raise ``UsageError`` unless ``on_event`` is a function, or none."""
    if hook is not None and not callable(hook):
        raise UsageError(f"on_event must be a function, got {type(hook).__name__}")


def is_finite(value: object) -> bool:
    """Whether a value is a finite number; ``True`` is none, nor is an integer too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _format_number(value: object) -> str:
    """A number as people write it: 70 for 70.0, but only where nothing is rounded away."""
    short = f"{value:g}" if isinstance(value, float) else show(value)
    return short if not isinstance(value, float) or float(short) == value else show(value)
