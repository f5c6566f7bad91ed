"""Single keys of a terminal, without Enter."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", " ": "space", "\x1b": "escape",
    "\xe0H": "up", "\xe0P": "down", "\xe0I": "page up", "\xe0Q": "page down", "\xe0G": "home", "\xe0O": "end",
}  # fmt: skip
"""Keys that send more than their character, as POSIX and Windows have them."""

_PASTE = "\x1b[200~"
"""The characters that a terminal sends before pasted text, where it was asked to."""


def read_key() -> str:
    """Read the next key: its character or its name, ``eof`` where nobody types any more, ``""`` for an unknown one.

    ``text`` is several keys that came at once: nobody presses two different keys in one moment, so they were pasted.
    A key that was held down is read once. What was typed before this call is dropped. Ctrl-Z stops the program.
    """
    try:
        typed = _read_typed()
    except (EOFError, OSError):
        return "eof"
    if len(set(typed)) == 1:
        typed = typed[0]
    if typed == "\x1a":  # Ctrl-Z, which a terminal that hands over each key does not act on
        _stop()
        return ""
    if typed in NAMES:
        return NAMES[typed]
    if typed.startswith("\x1b") and not typed.startswith(_PASTE):
        return ""
    return "text" if len(typed) > 1 else typed


def _read_typed() -> str:
    """Read what is typed next; empty where a signal came first.

    Raises ``EOFError`` and ``OSError`` where nobody types any more, and ``KeyboardInterrupt`` for Ctrl-C.
    """
    if sys.platform == "win32":
        return typer.getchar() + _drop_waiting()
    import termios

    try:
        typed = _wait_for_keys(sys.stdin.fileno())
    except termios.error as error:
        if error.args[0] == errno.EINTR:
            return ""
        raise OSError(*error.args) from None
    if typed == "\x03":  # a terminal that hands over each key does not act on Ctrl-C
        raise KeyboardInterrupt
    if typed in ("", "\x04"):
        raise EOFError
    return typed


def _wait_for_keys(terminal: int) -> str:
    """Have a terminal hand over each key, and wait for the next; what was typed before is dropped."""
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        # Each second Python looks for signals. ``typer.getchar`` waits without end, so a signal that comes between
        # Python's look and its wait is acted on after the next key only. An alarm in place of this wait loses output.
        while not select.select([terminal], [], [], 1)[0]:
            pass
        return os.read(terminal, 32).decode(sys.stdin.encoding, "replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def forget_typed() -> None:
    """Drop what was typed so far: what was typed before its question was on the screen answers nothing."""
    if sys.platform == "win32":
        _drop_waiting()
        return
    import termios

    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _drop_waiting() -> str:
    """Drop what Windows still holds, and return it; on POSIX several keys are read at once."""
    if sys.platform != "win32":
        return ""
    import msvcrt

    text = ""
    while msvcrt.kbhit():  # type: ignore[attr-defined]
        text += msvcrt.getwch()  # type: ignore[attr-defined]
    return text


def _stop() -> None:
    """Stop the program, until somebody lets it go on."""
    if sys.platform != "win32":
        signal.raise_signal(signal.SIGTSTP)


@contextmanager
def watching_terminal(redraw: Callable[[], None]) -> Iterator[None]:
    """Call ``redraw`` when the terminal got another size, or the program was stopped and goes on.

    A signal that ends the program is an interrupt meanwhile, so that the terminal is left as it was.
    """
    if sys.platform == "win32":
        yield
        return

    def draw(*_: object) -> None:
        redraw()

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    handlers: dict[str, Any] = {"SIGWINCH": draw, "SIGCONT": draw, "SIGTERM": end, "SIGHUP": end}
    before = {name: signal.signal(getattr(signal, name), handler) for name, handler in handlers.items()}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
