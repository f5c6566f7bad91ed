"""This process made to look like one on Windows, as far as Linux can, before adjudge is imported.

``become_windows`` takes away what Windows does not have: modules (``fcntl``, ``pwd``, ...), functions of ``os``,
signals, and the loop's signal handlers; processes start by ``spawn`` alone, and ``sys.platform`` says ``win32``. It
cannot change the file system (letters that differ in case, open files that cannot be removed, drive letters), the
console, and what other packages do there: they are imported before.

``tests/house/test_platforms.py`` runs this as a program.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib
import io
import json
import multiprocessing
import os
import pkgutil
import re
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

UNIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")

UNIX_FUNCTIONS = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod", "fchown", "fork", "forkpty", "geteuid",
    "getgid", "getpgid", "getuid", "killpg", "lchown", "mkfifo", "setpgid", "setsid", "uname",
)  # fmt: skip

UNIX_SIGNALS = (
    "SIGALRM", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGSTOP", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH",
)  # fmt: skip

OTHERS = (
    "aiohttp", "alembic", "argon2", "cryptography", "fastapi", "jinja2", "jsonschema_rs", "msgspec", "numpy",
    "prometheus_client", "psycopg", "pyarrow", "re2", "rich.console", "rich.table", "scipy.stats", "sqlalchemy",
    "sqlalchemy.dialects.postgresql", "typer", "typer.core", "uvicorn", "yaml",
)  # fmt: skip
"""Packages of others, which choose by the platform what to import."""


def become_windows() -> None:
    """Take away what Windows does not have."""
    for name in OTHERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in UNIX_MODULES:
        sys.modules[name] = None  # type: ignore[assignment] - importing it then raises
    for name in UNIX_FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    os.O_BINARY = 0  # type: ignore[attr-defined] - Windows has it, and bytes are bytes here
    os.getlogin = lambda: "ana"
    for name in (*UNIX_SIGNALS, "alarm", "setitimer", "pthread_sigmask"):
        if hasattr(signal, name):
            delattr(signal, name)

    def refuse(*_: Any, **__: Any) -> None:
        raise NotImplementedError

    asyncio.BaseEventLoop.add_signal_handler = refuse  # type: ignore[method-assign]
    asyncio.SelectorEventLoop.add_signal_handler = refuse  # type: ignore[method-assign]
    multiprocessing.set_start_method("spawn")
    warnings.filterwarnings("error", category=EncodingWarning, module=r"adjudge(\..*)?")
    sys.platform = "win32"


def import_all() -> list[str]:
    """Import every module of the package; returns those that need a package which is absent."""
    import adjudge

    absent: list[str] = []
    for found in pkgutil.walk_packages(adjudge.__path__, "adjudge."):
        if found.name.endswith("__main__") or ".migrations." in found.name or ".integrations." in found.name:
            continue  # an integration imports its framework, which looks at the platform
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] in ("adjudge", *UNIX_MODULES):
                raise
            absent.append(found.name)
    return absent


def run_commands(folder: Path, commands: list[list[str]], *, keeps_errors: bool = False) -> list[dict[str, Any]]:
    """Run commands of adjudge in this process, one after the other; returns their exit status and their output."""
    from adjudge.cli import main

    os.chdir(folder)
    done: list[dict[str, Any]] = []
    for command in commands:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="cp1252", newline="\r\n") for _ in range(2))
        status: object = "no exit"
        sys.stdin = io.TextIOWrapper(io.BytesIO(b"1\r\n2\r\nq\r\n"), encoding="cp1252")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(sys.stderr if keeps_errors else err):
            try:
                main(command)
            except SystemExit as left:
                status = left.code
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode("cp1252"))  # type: ignore[attr-defined] - bytes in memory
        done.append({"command": command, "status": status, "out": texts[0], "err": texts[1]})
    return done


def serve(folder: Path) -> dict[str, Any]:
    """Run ``adjudge serve`` until it has answered once, and end it as Ctrl-C does."""
    answers: list[int] = []

    def ask() -> None:
        try:
            while "serves on" not in sys.stderr.getvalue():  # type: ignore[union-attr] - a text in memory
                time.sleep(0.01)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", sys.stderr.getvalue())  # type: ignore[union-attr] - as above
            assert found is not None
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            connection.request("GET", "/healthz")
            answers.append(connection.getresponse().status)
            connection.close()
        finally:
            signal.raise_signal(signal.SIGINT)

    sys.stderr = io.StringIO()
    threading.Thread(target=ask, daemon=True).start()
    done = run_commands(folder, [["serve", "--port", "0"]], keeps_errors=True)[0]
    return done | {"answers": answers, "err": sys.stderr.getvalue()}


def main() -> None:
    """Do what the first argument names, and write what came of it as JSON to the file of the last."""
    task, *arguments, report = sys.argv[1:]
    become_windows()
    made: Any
    if task == "import":
        made = import_all()
    elif task == "serve":
        made = serve(Path(arguments[0]))
    else:
        made = run_commands(Path(arguments[0]), json.loads(arguments[1]))
    Path(report).write_text(json.dumps(made), encoding="utf-8")


if __name__ == "__main__":
    main()
