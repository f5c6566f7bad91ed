"""Single keys of a terminal, without Enter."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any

from adjudge.cli.output import write_screen

NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", " ": "space", "\x04": "eof", "\x1b": "escape", "\x1b[200~": "paste",
}  # fmt: skip

_WINDOWS = {"H": "up", "P": "down", "I": "page up", "Q": "page down", "G": "home", "O": "end"}

_PATIENCE = 0.05
"""Seconds in which the rest of a key follows that sends several characters."""


_PASTE_ENDS = b"\x1b[201~"

_PASTES = {"on": "\x1b[?2004h", "off": "\x1b[?2004l"}
"""What makes a terminal say where pasted text begins and ends."""


def forget_typed() -> None:
    """Drop what was typed so far: what was typed before its question was on the screen answers nothing."""
    if os.name == "nt":
        _read_waiting()
        return
    import termios

    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _read_waiting() -> str:
    """What came so far and was not read yet."""
    if os.name == "nt":
        import msvcrt

        text = ""
        while msvcrt.kbhit():  # type: ignore[attr-defined]
            text += msvcrt.getwch()  # type: ignore[attr-defined]
        return text
    import select

    stream, data = sys.stdin.fileno(), b""
    with suppress(OSError):
        while select.select([stream], [], [], 0)[0] and (piece := os.read(stream, 4096)):
            data += piece
    return data.decode(errors="replace")


class Keyboard:
    """The keys of standard input while ``reading_keys`` lasts."""

    def __init__(self) -> None:
        self.reads_lines = False
        """Whether whole lines are read now, and the terminal's modes are not ours."""
        self._repeats = ""
        """The key that was read last, once more for each time that it came with it."""

    def read(self) -> str:
        """The next key: its character, or its name; ``eof`` where nobody types any more.

        ``paste`` is a text that was pasted. ``text`` is several keys that came at once: nobody presses two different
        keys in one moment, so they were pasted into a terminal that does not say so. Both are dropped; what comes with
        ``c`` is left, because it begins the comment.
        """
        if self._repeats:
            key, self._repeats = self._repeats[0], self._repeats[1:]
            return key
        key = self._read_windows() if os.name == "nt" else self._read_posix()
        if key == "paste":
            self._drop_paste()
        elif len(key) == 1 and key.isprintable() and key != "c":
            rest = _read_waiting()
            if rest.strip(key):
                return "text"
            self._repeats = rest
        return key

    def forget(self) -> None:
        """Drop what was typed so far."""
        self._repeats = ""
        forget_typed()

    def _drop_paste(self) -> None:
        import select

        stream, data = sys.stdin.fileno(), b""
        with suppress(OSError):
            while not data.endswith(_PASTE_ENDS) and select.select([stream], [], [], _PATIENCE)[0]:
                piece = os.read(stream, 1)
                if not piece:
                    return
                data = (data + piece)[-len(_PASTE_ENDS) :]

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
        write_screen(_PASTES["off"])
        termios.tcsetattr(stream, termios.TCSADRAIN, whole)
        try:
            yield
        finally:
            termios.tcsetattr(stream, termios.TCSADRAIN, keys)
            write_screen(_PASTES["on"])


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
        write_screen(_PASTES["on"])

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
        write_screen(_PASTES["off"])
        with suppress(termios.error):
            termios.tcsetattr(stream, termios.TCSADRAIN, before)
        for name, handler in old.items():
            signal.signal(getattr(signal, name), handler)
