"""A terminal with somebody at it: it presses keys and reads what is drawn."""

from __future__ import annotations

import os
import re
import select
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from kit import cli
from kit.patience import HANG

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_END = "\x1b[J"
"""The end of every screen."""


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], end: int, *, by_keys: bool) -> None:
        self.process = process
        self._end = end
        self._by_keys = by_keys
        self.seen = ""
        """Everything that was written, with control characters."""
        self._waited = 0

    def wait_for(self, text: str, *, seconds: float = HANG) -> Self:
        """Read until a text comes after the one that was waited for last; fails with what there is."""
        until = time.monotonic() + seconds
        while (place := self.seen.find(text, self._waited)) < 0:
            left = until - time.monotonic()
            ready = left > 0 and select.select([self._end], [], [], left)[0]
            piece = self._read() if ready else b""
            assert piece, f"{text!r} did not come; the screen:\n{self.screen}"
            self.seen += piece.decode(errors="replace")
        self._waited = place + len(text)
        return self

    def wait_for_screen(self) -> Self:
        """Read until a whole screen is drawn."""
        return self.wait_for(_END)

    def _read(self) -> bytes:
        try:
            return os.read(self._end, 65536)
        except OSError:  # Linux says so when the other end is closed
            return b""

    def type(self, text: str, until: str) -> Self:
        """Press keys, and wait for what they do."""
        self.wait_for_keys()
        os.write(self._end, text.encode())
        return self.wait_for(until)

    def wait_for_keys(self) -> Self:
        """Wait until a key is read: what is typed before is dropped; lines are read at any time."""
        import termios

        until = time.monotonic() + HANG
        while self._by_keys and termios.tcgetattr(self._end)[3] & termios.ICANON:
            assert time.monotonic() < until, f"no key is read; the screen:\n{self.screen}"
            time.sleep(0.005)
        return self

    def press(self, keys: str, until: str = "") -> Self:
        """Press keys, and wait until a whole screen is drawn that has some text."""
        return self.type(keys, until).wait_for_screen()

    @property
    def screen(self) -> str:
        """Return what was drawn last, without control characters."""
        return _CODES.sub("", self.seen.rsplit("\x1b[H", 1)[-1]).replace("\r", "")

    def leave(self, key: str = "q") -> int:
        """Press a key that ends the command, and return its status."""
        self.wait_for_keys()
        os.write(self._end, key.encode())
        return self.finish()

    def finish(self) -> int:
        """Read to the end, and return the status."""
        while piece := self._read():
            self.seen += piece.decode(errors="replace")
        return self.process.wait(HANG)

    def resize(self, columns: int, rows: int) -> None:
        """Another size of the window."""
        import fcntl
        import termios

        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def find_modes(self) -> list[object]:
        """Find how the terminal is set: whether keys come at once and are shown."""
        import termios

        return termios.tcgetattr(self._end)


@contextmanager
def open_terminal(
    place: Path, *arguments: str | Path, columns: int = 110, rows: int = 30, term: str = "xterm-256color"
) -> Iterator[Terminal]:
    """The command line on a terminal that is its own, so that Ctrl-C reaches it."""
    import fcntl
    import pty
    import termios

    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = {"TERM": term, "PYTHONIOENCODING": "utf-8"}
    for name in ("COLUMNS", "LINES"):
        env[name] = ""
    words = [str(item) for item in arguments]

    def own() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    streams = {"stdin": end, "stdout": end, "stderr": end, "env": env, "start_new_session": True, "preexec_fn": own}
    process = cli.start(place, *words, **streams)
    os.close(end)
    try:
        yield Terminal(process, screen, by_keys=term != "dumb")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(HANG)
        os.close(screen)
