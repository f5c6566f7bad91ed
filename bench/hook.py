#!/usr/bin/env python3
"""Measure a coding agent's wait at each call: the installed hook with a server, without one, and the server's answer.

20 calls in each round, one after the other, medians of 3 interleaved rounds, each by the command that ``adjudge hook
install`` writes, started by a shell as a harness does. ``beside the server's answer`` is the command less one request
to the server by a process that runs already. Target, on an idle machine: 150 ms of wall time. CPU is the processor time
of the command and its children, which other work on the machine changes least; the server's own is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import common

MOST_MS = 150.0

CONFIG = """
[ledger]
url = "sqlite:///{folder}/ledger.db"

[gates.shell]
rules = [{{not_contains = "curl"}}]

[hook]
tools = {{"Bash" = "shell"}}
"""

SERVER = """
[server]
uds = "{folder}/hook.sock"
port = 0

[hook.server]
address = "unix:{folder}/hook.sock"
key = "{folder}/key"
"""

ADJUDGE = [sys.executable, "-c", "from adjudge.cli import main; main()"]

ENVIRONMENT = os.environ | {"PYTHONPATH": str(common.BENCH.parent / "src")}


def run_adjudge(folder: Path, *words: str) -> str:
    """Return what a command of adjudge prints."""
    done = subprocess.run(
        [*ADJUDGE, *words], cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def make_event(number: int) -> bytes:
    """An event of Claude Code, each of another call."""
    call = {"tool_name": "Bash", "tool_input": {"command": f"ls {number}"}, "tool_use_id": f"t{number}"}
    return json.dumps({"session_id": "s1", "cwd": "/work", "hook_event_name": "PreToolUse", **call}).encode()


def install(folder: Path) -> str:
    """The command that a harness would start."""
    settings = folder / "settings.json"
    words = ["hook", "install", "claude", "--config", str(folder / "adjudge.toml"), "--file", str(settings), "--write"]
    run_adjudge(folder, *words)
    return json.loads(settings.read_text("utf-8"))["hooks"]["PreToolUse"][0]["hooks"][0]["command"]


@contextmanager
def serve(folder: Path) -> Iterator[None]:
    """A server over the configuration of a folder."""
    process = subprocess.Popen([*ADJUDGE, "serve"], cwd=folder, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while not (folder / "hook.sock").exists():
            assert process.poll() is None, "the server did not start"
            assert time.monotonic() < until, "the server did not start in time"
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(60)


def ask_directly(folder: Path) -> Callable[[bytes], None]:
    """One request to the server, by this process."""
    key = (folder / "key").read_text("ascii").strip()

    def ask(event: bytes) -> None:
        head = f"POST /v1/hooks/claude HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(event)}\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(folder / "hook.sock"))
            connection.sendall(head.encode() + event)
            answer = b""
            while not answer.endswith(b"\r\n\r\n{}"):
                part = connection.recv(65_536)
                assert part, f"the server answered {answer[:200]!r}"
                answer += part

    return ask


def run_command(command: str) -> Callable[[bytes], None]:
    """Start a command for one event, as a harness does."""

    def ask(event: bytes) -> None:
        done = subprocess.run(["/bin/sh", "-c", command], input=event, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, b"{}"), done.stderr

    return ask


def measure(options: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds of each round, on the wall and of the processor, by contender."""
    with tempfile.TemporaryDirectory() as name:
        folders = {kind: Path(name) / kind for kind in ("alone", "served")}
        for kind, folder in folders.items():
            folder.mkdir(mode=0o700)
            text = CONFIG + (SERVER if kind == "served" else "")
            (folder / "adjudge.toml").write_text(text.format(folder=folder), encoding="utf-8")
        key = folders["served"] / "key"
        key.touch(mode=0o600)
        key.write_text(run_adjudge(folders["served"], "keys", "create", "bench", "--scope", "hook"), encoding="ascii")
        with serve(folders["served"]):
            contenders = {
                "hook without a server": run_command(install(folders["alone"])),
                "hook with a server": run_command(install(folders["served"])),
                "the server's answer": ask_directly(folders["served"]),
                "an interpreter that does nothing": run_command(f'{sys.executable} -I -c \'print("{{}}", end="")\''),
            }
            return time_rounds(contenders, options)


def time_rounds(
    contenders: dict[str, Callable[[bytes], None]], options: argparse.Namespace
) -> dict[str, list[tuple[float, float]]]:
    """The median call of every round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    number = 0
    for place in range(-1, options.rounds):  # the first is not counted
        for name in common.rotate(list(contenders), place):
            wall, used = [], []
            for _ in range(options.n if place >= 0 else 2):
                number += 1
                started, before = time.perf_counter(), common.cpu()
                contenders[name](make_event(number))
                wall.append((time.perf_counter() - started) * 1e3)
                used.append((common.cpu() - before) * 1e3)
            found[name] += [(statistics.median(wall), statistics.median(used))] if place >= 0 else []
    return found


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    found = measure(parser.parse_args())
    cost = {name: statistics.median(wall for wall, _ in rows) for name, rows in found.items()}
    used = {name: statistics.median(cpu for _, cpu in rows) for name, rows in found.items()}
    for figures in (cost, used):
        figures["beside the server's answer"] = figures["hook with a server"] - figures["the server's answer"]
    common.print_table(
        ["call", "wall ms", "CPU ms"], [[name, f"{cost[name]:.0f}", f"{used[name]:.0f}"] for name in cost]
    )
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"load for each processor in the last minute: {load:.1f}")
    rounded = [{name: round(value, 1) for name, value in figures.items()} for figures in (cost, used)]
    shown = {"wall_ms": rounded[0], "cpu_ms": rounded[1], "load": round(load, 1)}
    common.print_verdict("hook", shown, met=cost["beside the server's answer"] <= MOST_MS)


if __name__ == "__main__":
    main()
