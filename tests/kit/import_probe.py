"""Run in a fresh interpreter: import modules, one after the other, and report, as JSON, what else happened.

    python kit/import_probe.py MODULE[,MODULE...] PACKAGE_DIRECTORY REPORT

What third-party packages do when they are imported is theirs; what is reported is what was done by code of ours, and
anything at all that leaves a trace: a socket, a process, a thread, a file opened for writing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

STDLIB = str(Path(os.__file__).parent)
TRACES = ("socket.", "subprocess.", "os.system", "os.posix_spawn", "os.fork", "os.exec")


class Environment(os._Environ):
    """The environment, which tells when code of ours looks at it."""

    def __getitem__(self, key: str) -> str:
        note_environment(key)
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        note_environment("*")
        return super().__iter__()


def is_ours() -> bool:
    """Return True if package code, or the standard library on its behalf, is acting; an import is no act of ours."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE):
            return True
        imports = name.startswith(("<frozen importlib", "<frozen zipimport"))
        elsewhere = not name.startswith((STDLIB, "<", __file__)) or "site-packages" in name
        if imports or elsewhere:
            return False
        frame = frame.f_back
    return False


def note_environment(key: str) -> None:
    """Write down a look at the environment by code of ours, or at a variable that only we have."""
    if armed and (is_ours() or str(key).startswith("ADJUDGE")):
        report["environment"].append(str(key))


def note_event(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook."""
    if not armed:
        return
    if event == "open":
        path, mode = str(arguments[0]), arguments[1] or "r"
        if is_ours():
            report["files"].append(path)
        elif set(str(mode)) & set("wax+"):
            report["written"].append(path)
    elif event.startswith(TRACES):
        report["traces"].append(event)


def note_thread(thread: threading.Thread) -> None:
    """Write down the start of a thread, then start it."""
    if armed:
        report["traces"].append("threading.Thread.start")
    start_thread(thread)


armed = False
MODULES, PACKAGE, REPORT = sys.argv[1:4]
report: dict[str, list[str]] = {"environment": [], "files": [], "written": [], "traces": []}

sys.dont_write_bytecode = True
os.environ.__class__ = Environment
start_thread, threading.Thread.start = threading.Thread.start, note_thread
sys.addaudithook(note_event)
# FastAPI imports it, and by it idna, wherever it is installed. Nothing that adjudge asks for brings it; fastmcp does.
sys.modules["email_validator"] = None  # type: ignore[assignment]
before = set(sys.modules)
armed = True
for module in MODULES.split(","):
    __import__(module)
armed = False

report["threads"] = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
report["modules"] = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
Path(REPORT).write_text(json.dumps(report), encoding="utf-8")
