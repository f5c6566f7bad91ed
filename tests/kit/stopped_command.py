"""A command that is told to stop when it has said its address, and nothing else has happened since."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any


class Stopping:
    """A stream that sends SIGTERM to this process as soon as an address is written to it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        written = self.stream.write(text)
        if "http://" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def main() -> None:
    """Run a command in a folder: the first argument is the folder."""
    _, folder, *words = sys.argv
    os.chdir(folder)
    sys.argv = ["adjudge", *words]
    sys.stderr, sys.stdout = Stopping(sys.stderr), Stopping(sys.stdout)
    runpy.run_module("adjudge", run_name="__main__")
