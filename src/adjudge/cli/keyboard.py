"""Single keys of a terminal, without Enter."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any

NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", " ": "space", "\x04": "eof",
}  # fmt: skip

_WINDOWS = {"H": "up", "P": "down", "I": "page up", "Q": "page down", "G": "home", "O": "end"}

_PATIENCE = 0.05
"""Seconds in which the rest of a key follows that sends several characters."""


class Keyboard:
    """The keys of standard input while ``reading_keys`` lasts."""

    def __init__(self) -> None:
        self.reads_lines = False
        """Whether whole lines are read now, and the terminal's modes are not ours."""

    def read(self) -> str:
        """The next key: its character, or its name; ``eof`` where nobody types any more."""
        return self._read_windows() if os.name == "nt" else self._read_posix()

    def forget(self) -> None:
        """Drop what was typed so far: a key that was pressed before its question was on the screen answers nothing."""
        if os.name == "nt":
            import msvcrt

            while msvcrt.kbhit():  # type: ignore[attr-defined]
                msvcrt.getwch()  # type: ignore[attr-defined]
            return
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def _read_posix(self) -> str:
        import select

        stream = sys.stdin.fileno()
        try:
            data = os.read(stream, 1)
            while data and (data[:1] == b"\x1b" or data[0] >= 0xC0) and len(data) < 8:
                if not select.select([stream], [], [], _PATIENCE)[0]:
                    break
                data += os.read(stream, 1)
                # The last letter of a sequence, or of a character, ends it.
                if data[:1] == b"\x1b" and len(data) > 2 and (data[-1:].isalpha() or data[-1:] == b"~"):
                    break
                if data[0] >= 0xC0 and len(data) >= (2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4):
                    break
        except OSError:  # the terminal is gone
            return "eof"
        if not data:
            return "eof"
        key = data.decode(errors="replace")
        return NAMES.get(key, key)

    def _read_windows(self) -> str:
        import msvcrt

        key = msvcrt.getwch()  # type: ignore[attr-defined]
        if key == "\x03":
            raise KeyboardInterrupt
        if key in ("\x00", "\xe0"):
            return _WINDOWS.get(msvcrt.getwch(), "")  # type: ignore[attr-defined]
        return NAMES.get(key, key)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Read whole lines for a while, with the terminal's own editing."""
        self.reads_lines = True
        try:
            with nullcontext() if os.name == "nt" else self._leave_keys():
                yield
        finally:
            self.reads_lines = False

    @contextmanager
    def _leave_keys(self) -> Iterator[None]:
        import termios

        stream = sys.stdin.fileno()
        keys = termios.tcgetattr(stream)
        whole = termios.tcgetattr(stream)
        whole[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(stream, termios.TCSADRAIN, whole)
        try:
            yield
        finally:
            termios.tcsetattr(stream, termios.TCSADRAIN, keys)


@contextmanager
def reading_keys(redraw: Callable[[], None]) -> Iterator[Keyboard]:
    """A terminal that hands over each key at once, and is as it was afterwards, however the block ends.

    ``redraw`` is called when the terminal got another size, or the program was stopped and goes on.
    """
    if os.name == "nt":
        yield Keyboard()
        return
    import termios
    import tty

    stream, keyboard = sys.stdin.fileno(), Keyboard()
    before = termios.tcgetattr(stream)

    def enter(*_: object) -> None:
        # Not raw: Ctrl-C and Ctrl-Z stay what they are.
        tty.setcbreak(stream, termios.TCSADRAIN)

    def resume(number: int, _frame: FrameType | None) -> None:
        if keyboard.reads_lines:  # the line that is being typed would be drawn over, and lose its editing
            return
        if number == getattr(signal, "SIGCONT", None):
            enter()
        redraw()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    handlers: dict[str, Any] = {"SIGWINCH": resume, "SIGCONT": resume, "SIGTERM": stop, "SIGHUP": stop}
    old = {name: signal.signal(getattr(signal, name), handler) for name, handler in handlers.items()}
    try:
        enter()
        yield keyboard
    finally:
        with suppress(termios.error):
            termios.tcsetattr(stream, termios.TCSADRAIN, before)
        for name, handler in old.items():
            signal.signal(getattr(signal, name), handler)
