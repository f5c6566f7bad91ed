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

KEY_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", " ": "space", "\x1b": "escape",
    "\xe0H": "up", "\xe0P": "down", "\xe0I": "page up", "\xe0Q": "page down", "\xe0G": "home", "\xe0O": "end",
}  # fmt: skip
"""The names of keys that have no character of their own, by what they send on POSIX and on Windows."""

_PASTE = "\x1b[200~"
"""The characters that a terminal sends before pasted text, where it was asked to."""


def read_key() -> str:
    """Wait for the next key and return its character, or its name in ``KEY_NAMES``.

    Three returned values are no keys: ``eof`` means that the terminal is closed, ``""`` is an unknown key, and ``text``
    is several different keys at once, which somebody pasted. A key that was held down is read once. What was typed
    before this call is dropped. Ctrl-Z suspends the program.
    """
    try:
        typed = _read_keys()
    except (EOFError, OSError):
        return "eof"
    if len(set(typed)) == 1:
        typed = typed[0]
    if typed == "\x1a":  # Ctrl-Z, which a terminal that hands over each key does not act on
        _suspend_program()
        return ""
    if typed in KEY_NAMES:
        return KEY_NAMES[typed]
    if typed.startswith("\x1b") and not typed.startswith(_PASTE):
        return ""
    return "text" if len(typed) > 1 else typed


def _read_keys() -> str:
    """Wait for the next keys and return what they send; empty where a signal came first.

    Raises ``EOFError`` or ``OSError`` where the terminal is closed, and ``KeyboardInterrupt`` for Ctrl-C.
    """
    if sys.platform == "win32":
        return typer.getchar() + _take_waiting_keys()
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
    """Switch a terminal to raw mode, wait for the next keys, and return what they send.

    What was typed before is dropped. The terminal gets its former settings back.
    """
    import termios
    import tty

    former_settings = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        # Each second Python checks for signals. ``typer.getchar`` waits without end, so a signal that comes between
        # Python's check and its wait is acted on after the next key only. An alarm in place of this wait loses output.
        while not select.select([terminal], [], [], 1)[0]:
            pass
        return os.read(terminal, 32).decode(sys.stdin.encoding, "replace")
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, former_settings)


def drop_typed_keys() -> None:
    """Drop the keys typed so far: typed before a question was on the screen, they cannot be its answer."""
    if sys.platform == "win32":
        _take_waiting_keys()
        return
    import termios

    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _take_waiting_keys() -> str:
    """Take the typed keys that Windows has not handed over yet, and return them; on POSIX there are none."""
    if sys.platform != "win32":
        return ""
    import msvcrt

    text = ""
    while msvcrt.kbhit():  # type: ignore[attr-defined]
        text += msvcrt.getwch()  # type: ignore[attr-defined]
    return text


def _suspend_program() -> None:
    """Suspend the program, as a shell does on Ctrl-Z, until the shell resumes it."""
    if sys.platform != "win32":
        signal.raise_signal(signal.SIGTSTP)


@contextmanager
def watching_terminal(redraw: Callable[[], None]) -> Iterator[None]:
    """Call ``redraw`` whenever the terminal is resized, or the program is resumed after Ctrl-Z.

    SIGTERM and SIGHUP raise ``KeyboardInterrupt`` while the block runs, so that the terminal's settings are restored.
    """
    if sys.platform == "win32":
        yield
        return

    def draw(*_: object) -> None:
        redraw()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    handlers: dict[str, Any] = {"SIGWINCH": draw, "SIGCONT": draw, "SIGTERM": interrupt, "SIGHUP": interrupt}
    former_handlers = {name: signal.signal(getattr(signal, name), handler) for name, handler in handlers.items()}
    try:
        yield
    finally:
        for name, handler in former_handlers.items():
            signal.signal(getattr(signal, name), handler)
