"""Processes of the tests' own, each of which runs ``main`` of a module of the kit."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kit.house import TESTS


def start_module(module: str, *arguments: str, stdin: int | None = None, stderr: Any = None) -> subprocess.Popen[str]:
    """Start a module of the kit with the package under test, whose warnings are errors; its output is to be read."""
    spec = find_spec("adjudge")
    assert spec is not None
    assert spec.origin is not None
    roots = [str(Path(spec.origin).parents[1]), str(TESTS)]
    code = f"import sys; sys.path[:0] = {roots!r}; from kit import {module}; {module}.main()"
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True)


def kill_and_read(process: subprocess.Popen[str]) -> str:
    """Kill a process, some of whose lines were read, and return the rest of its output.

    ``communicate`` would lose the lines that came together with one that was read, and are buffered in this process.
    """
    assert process.stdout is not None
    with process:  # closes its pipes, and waits for it
        process.kill()
        return process.stdout.read()
