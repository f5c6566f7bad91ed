#!/usr/bin/env python3
"""Measure what a server does in a second: gates over HTTP with a ledger, beside a bare FastAPI endpoint.

    python bench/server.py                      1, 64 and 512 connections, 3 rounds of 5 s each
    python bench/server.py --postgres URL       the ledger in PostgreSQL, and not in a SQLite file

Four servers run at the same time, each a process of its own, and are asked in turn in every round, so that what else
the machine does meets all of them alike:

    bare          FastAPI and uvicorn: reads the same JSON, answers the same bytes, keeps nothing
    bare, 50 ms   the same after a sleep of 50 ms
    rules         a gate with one rule; key, decision and ledger as they are by default
    judged        a gate with a rubric and a model at 50 ms (bench/mock_llm.py), the ledger on

Every connection is kept alive and sends its next request when it has the answer. Printed are the medians of the rounds:
requests a second, p50, p99, the server's processor time for one answer (which other work on the machine changes least),
and its greatest memory so far. Anything but 200 is counted. At the end the ledger is verified, and must hold exactly
one decision for every answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
BODY = json.dumps({"content": "Thank you for your order. It leaves our house tomorrow morning."}).encode()

CONFIG = """
[server]
queue = {queue}
queue_per_caller = {queue}

[ledger]
url = "{ledger}"

[judges.mock]
seats = ["http://127.0.0.1:{mock}/run-server_lat-50/v1#mock"]
max_concurrency = 512

[rubrics]
own = "own.yaml"

[gates.rules]
rules = [{{name = "length", max = 4000}}]

[gates.judged]
rubric = "own"
judge = "mock"
"""

BARE = """
import asyncio
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import Response

app = FastAPI()
ANSWER = b"{}" + b" " * 900


class Body(BaseModel):
    content: Any


@app.post("/now")
async def now(body: Body) -> Response:
    return Response(ANSWER, media_type="application/json")


@app.post("/later")
async def later(body: Body) -> Response:
    await asyncio.sleep(0.05)
    return Response(ANSWER, media_type="application/json")
"""


@dataclass(slots=True, kw_only=True)
class Target:
    """An address that is asked, and the process behind it."""

    name: str
    port: int
    path: str
    pid: int
    key: str = "none"
    answers: Counter[int] = field(default_factory=Counter)

    @property
    def request(self) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.key}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY

    def read_memory(self) -> float:
        """The greatest memory so far, in MB."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text("utf-8"))
        return int(found[1]) / 1024 if found else float("nan")

    def read_cpu(self) -> float:
        """Seconds of processor time so far, user and system, of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The figures of one target in one round; times in ms, ``cpu`` for each answer, memory in MB."""

    rate: float
    cpu: float
    p50: float
    p99: float
    memory: float
    refused: int


async def drive(target: Target, connections: int, seconds: float) -> Round:
    """Ask over so many connections for so long."""
    times: list[float] = []
    statuses: Counter[int] = Counter()
    request, end = target.request, time.perf_counter() + seconds

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        try:
            while (begun := time.perf_counter()) < end:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                await reader.readexactly(int(found[1]) if found else 0)
                statuses[int(head[9:12])] += 1
                times.append(time.perf_counter() - begun)
        finally:
            writer.close()

    begun, cpu = time.perf_counter(), target.read_cpu()
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(ask())
    took = time.perf_counter() - begun
    target.answers.update(statuses)
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [float("nan")] * 99
    return Round(
        rate=statuses[200] / took,
        cpu=(target.read_cpu() - cpu) / max(1, len(times)) * 1000,
        p50=cuts[49] * 1000,
        p99=cuts[98] * 1000,
        memory=target.read_memory(),
        refused=statuses.total() - statuses[200],
    )


def find_port() -> int:
    """A port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def start(*command: str, port: int, folder: Path) -> Iterator[int]:
    """A process that listens on a port; its id."""
    with subprocess.Popen([sys.executable, *command], cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 60
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"{command} did not start")
                time.sleep(0.05)
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


ADJUDGE = ("-c", "from adjudge.cli import main; main()")


@contextmanager
def start_all(folder: Path, arguments: argparse.Namespace) -> Iterator[list[Target]]:
    """The servers that are compared."""
    mock, bare = find_port(), find_port()
    (folder / "bare.py").write_text(BARE, encoding="utf-8")
    ledger = arguments.postgres or "sqlite:///adjudge.db"
    text = CONFIG.format(ledger=ledger, mock=mock, queue=arguments.queue)
    (folder / "adjudge.toml").write_text(text, encoding="utf-8")
    (folder / "own.yaml").write_text(
        "name: Own\ncriteria: [{name: good, description: It is good.}]\n", encoding="utf-8"
    )
    made = subprocess.run(
        [sys.executable, *ADJUDGE, "keys", "create", "bench", "--scope", "judge"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    with ExitStack() as stack:
        stack.enter_context(start(str(BENCH / "mock_llm.py"), "--port", str(mock), port=mock, folder=folder))
        uvicorn = ("-m", "uvicorn", "bare:app", "--port", str(bare), "--no-access-log", "--log-level", "error")
        pid = stack.enter_context(start(*uvicorn, port=bare, folder=folder))
        targets = [
            Target(name="bare", port=bare, path="/now", pid=pid),
            Target(name="bare, 50 ms", port=bare, path="/later", pid=pid),
        ]
        for name in ("rules", "judged"):
            port = find_port()
            pid = stack.enter_context(start(*ADJUDGE, "serve", "--port", str(port), port=port, folder=folder))
            path = f"/v1/gates/{name}/check"
            targets.append(Target(name=name, port=port, path=path, pid=pid, key=made.stdout.strip()))
        yield targets


async def measure(targets: list[Target], arguments: argparse.Namespace) -> None:
    """Ask every target in turn, and print a row for each number of connections."""
    for target in targets:
        await drive(target, 8, 1.0)
    heads = ("req/s", "p50 ms", "p99 ms", "CPU ms", "MB", "not 200")
    print(f"{'connections':>11}  {'server':<12} " + " ".join(f"{head:>8}" for head in heads))
    for connections in arguments.connections:
        rounds: dict[str, list[Round]] = {target.name: [] for target in targets}
        for _ in range(arguments.rounds):
            for target in targets:
                rounds[target.name].append(await drive(target, connections, arguments.seconds))
        for name, found in rounds.items():
            row: Any = {key: statistics.median(getattr(item, key) for item in found) for key in Round.__slots__}
            refused = sum(item.refused for item in found)
            print(
                f"{connections:>11}  {name:<12} {row['rate']:>8.0f} {row['p50']:>8.1f} {row['p99']:>8.1f} "
                f"{row['cpu']:>8.2f} {row['memory']:>8.0f} {refused:>8}",
                flush=True,
            )


async def check_ledger(folder: Path, targets: list[Target], arguments: argparse.Namespace) -> None:
    """Every answer is in the ledger, whose chain is in order."""
    from adjudge import Ledger

    answered = sum(target.answers[200] for target in targets if target.key != "none")
    place = arguments.postgres or f"sqlite:///{folder / 'adjudge.db'}"
    async with Ledger(place) as ledger:
        found = await ledger.verify()
    counted = found.entries - 1
    print(f"ledger: {counted:,} decisions for {answered:,} answers, {'in order' if found.valid else found.detail}")
    if not found.valid or (counted != answered and not arguments.postgres):
        raise SystemExit(1)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 64, 512])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--queue", type=int, default=512, help="how many may wait, as [server] queue")
    parser.add_argument("--postgres", help="an empty database")
    arguments = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with start_all(folder, arguments) as targets:
            asyncio.run(measure(targets, arguments))
        asyncio.run(check_ledger(folder, targets, arguments))
    print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
