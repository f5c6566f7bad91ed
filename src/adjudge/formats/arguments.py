"""Checks of arguments: each raises ``UsageError`` and names the argument, the value and what it must be.

``where`` is the file, seat or criterion in which the argument is a key, if it is one. Messages show a value by
``show``, which cuts it short, and which also works for a number of 5,000 digits and for objects that have no text.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.text import show, suggest


def check_whole_number(
    argument: str,
    value: Any,
    *,
    least: int | None = None,
    most: int | None = None,
    of: str = "",
    note: str = "",
    where: str | None = None,
) -> int:
    """Return a value; raises ``UsageError`` unless it is a whole number within its bounds.

    ``of`` is its unit (" of bytes"), ``note`` what the bounds are ("the number of judges"). ``True`` is an int in
    Python and is refused here, because it would count as 1.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and (least is None or value >= least) and (most is None or value <= most):
        return value
    bounds = ""
    if least is not None and most is not None:
        bounds = f" from {least:,} to {most:,}"
    elif least is not None:
        bounds = f" of at least {least:,}"
    elif most is not None:
        bounds = f" of at most {most:,}"
    raise UsageError(
        f"{argument} must be a whole number{of}{bounds}{f', {note};' if note else ','} got {show(value)}",
        argument=argument,
        where=where,
    )


def check_share(argument: str, value: Any, *, where: str | None = None) -> float:
    """Return a value as a float; raises ``UsageError`` unless it is a number between 0 and 1 (NaN is refused)."""
    if not is_finite(value):
        raise UsageError(
            f"{argument} must be a number between 0 and 1, got {_format_number(value)}", argument=argument, where=where
        )
    if not 0 <= value <= 1:
        hint = f"; for {value:g} % write {value / 100:g}" if 1 < value <= 100 else ""
        raise UsageError(
            f"{argument} must be between 0 and 1, got {_format_number(value)}{hint}", argument=argument, where=where
        )
    return float(value) + 0.0  # -0.0 becomes 0.0, because equal values must have equal digests


def check_above_zero(argument: str, value: Any, *, of: str = "", otherwise: str = "", where: str | None = None) -> Any:
    """Return a value; raises ``UsageError`` unless it is a finite number above 0; ``of`` is its unit (" of seconds").

    ``otherwise`` says what ``None`` means ("for no limit"); without it, ``None`` is refused too.
    """
    if (value is None and otherwise) or (is_finite(value) and value > 0):
        return value
    # With ``where`` the value is from a file, in which nobody can write None.
    none_hint = f", or None {otherwise};" if otherwise and where is None else ","
    raise UsageError(
        f"{argument} must be a finite number{of} above 0{none_hint} got {_format_number(value)}",
        argument=argument,
        where=where,
    )


def check_timeout(argument: str, value: Any, *, where: str | None = None) -> None:
    """Raise ``UsageError`` unless a limit in seconds is ``None`` or a finite number above 0."""
    check_above_zero(argument, value, of=" of seconds", otherwise="for no limit", where=where)


def check_seconds(argument: str, value: Any, *, most: float | None = None, where: str | None = None) -> None:
    """Raise ``UsageError`` unless a time in seconds is a finite number above 0, and at most so many."""
    if most is None:
        check_above_zero(argument, value, of=" of seconds", where=where)
    elif not is_finite(value) or not 0 < value <= most:
        raise UsageError(
            f"{argument} must be a number of seconds above 0 and up to {most:,g}, got {_format_number(value)}",
            argument=argument,
            where=where,
        )


def check_flag(argument: str, value: Any, *, where: str | None = None) -> bool:
    """Return a value; raises ``UsageError`` unless it is true or false: the text "false" would switch it on."""
    if not isinstance(value, bool):
        raise UsageError(f"{argument} must be true or false, got {show(value)}", argument=argument, where=where)
    return value


def check_choice(argument: str, value: object, choices: Iterable[str], *, where: str | None = None) -> None:
    """Raise ``UsageError`` unless a value is one of some words."""
    words = tuple(choices)
    # The type is checked first: comparing an object of any class with a word may fail, or wrongly say that it is equal.
    if not isinstance(value, str) or value not in words:
        near = suggest(value, words) if isinstance(value, str) else ""
        raise UsageError(
            f"{argument} must be one of {', '.join(words)}; got {show(value)}{near}", argument=argument, where=where
        )


def check_digest(argument: str, value: object, *, where: str | None = None) -> str:
    """Return a value; raises ``UsageError`` unless it is a SHA-256 digest in hexadecimal."""
    if isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef"):
        return value
    raise UsageError(
        f"{argument} must be a SHA-256 digest, 64 characters of 0-9 and a-f, got {show(value)}",
        argument=argument,
        where=where,
    )


def check_functions(where: str, **functions: object) -> None:
    """Raise ``UsageError`` for a value that is no function or ``None``, which would otherwise fail only when called."""
    for name, value in functions.items():
        if value is not None and not callable(value):
            raise UsageError(f"{name} must be a function, got {type(value).__name__}", argument=name, where=where)


def check_label(argument: str, value: object, *, where: str | None = None) -> None:
    """Raise ``UsageError`` unless a name is a printable text, because events, errors and logs show it."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise UsageError(
            f"{argument} must be a printable text that is not empty, got {show(value)}", argument=argument, where=where
        )


def check_hook(hook: object) -> None:
    """Raise ``UsageError`` unless ``on_event`` is a function, or none."""
    if hook is not None and not callable(hook):
        raise UsageError(f"on_event must be a function, got {type(hook).__name__}", argument="on_event")


def is_finite(value: object) -> bool:
    """Return whether a value is a finite number; not a boolean, and not an integer too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _format_number(value: object) -> str:
    """Format a number for a message: 70 for 70.0, but only where the short form is exactly the number."""
    if not isinstance(value, float):
        return show(value)
    short = f"{value:g}"
    return short if float(short) == value else show(value)


def read_options(value: object, kind: type[Any]) -> dict[str, Any]:
    """Return the arguments that an instance of a class was made with: its attributes named like the parameters."""
    return {name: getattr(value, name) for name in inspect.signature(kind).parameters}


class ReadOnly:
    """An object whose attributes can be set only until its ``__init__`` ends by setting ``_is_made``.

    An option that changed later would not be checked, and values derived from it would still be those of the old one.
    """

    _is_made = False

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made:
            raise AttributeError(f"{name} of a {type(self).__name__} cannot be set; make another with other arguments")
        super().__setattr__(name, value)
