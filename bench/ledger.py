"""The ledger: durable appends per second, what one costs, and how fast a chain is verified.

    python bench/ledger.py                     # SQLite in a temporary folder of the working directory
    python bench/ledger.py --url postgresql://postgres@127.0.0.1/scratch
    python bench/ledger.py --kills 50          # kill -9 during 20,000 concurrent appends, and only that
    python bench/ledger.py --kills 50 --postgres --writers 4    # the same on PostgreSQL, one of four writers each time

``--postgres`` takes the server that ADJUDGE_TEST_POSTGRES names, else the local one, and a schema of its own, which is
dropped afterwards. Prints a table and one line of JSON; exits with 1 when a target is missed. A ledger that ``--url``
names stays where it is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from adjudge import CriterionResult, JudgeResult, Ledger, Usage  # noqa: E402 - of the tree this stands in

TARGETS = {"ratio": 5.0, "verified_per_second": 150_000.0, "median_ms": 10.0, "cpu_us": 150.0}
AT_ONCE = 64


def make_result() -> JudgeResult:
    """A result as a judge with five criteria gives it, about 3 KB."""
    criteria = [CriterionResult(name=f"c{n}", score=0.5, passed=True, reasoning="because " * 12) for n in range(5)]
    return JudgeResult(
        outcome="passed",
        judge="careful",
        score=0.81,
        threshold=0.7,
        reasoning="It answers the question. " * 8,
        raw_response="x" * 1_000,
        usage=Usage(input_tokens=900, output_tokens=200),
        criteria=tuple(criteria),
        subject="a" * 64,
    )


async def append_alone(ledger: Ledger, count: int) -> dict[str, float]:
    """One caller, one append after the other."""
    result, times = make_result(), []
    for _ in range(count):
        start = time.perf_counter()
        await ledger.append(result)
        times.append(time.perf_counter() - start)
    return {"alone_per_second": count / sum(times), "median_ms": statistics.median(times) * 1e3}


async def append_together(ledger: Ledger, count: int) -> dict[str, float]:
    """``AT_ONCE`` callers, and the processor time of the whole process for each append."""
    result = make_result()

    async def call() -> None:
        for _ in range(count // AT_ONCE):
            await ledger.append(result)

    start, cpu = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(call())
    done = count // AT_ONCE * AT_ONCE
    took, spent = time.perf_counter() - start, time.process_time() - cpu
    return {"together_per_second": done / took, "cpu_us": spent / done * 1e6}


async def verify(ledger: Ledger, count: int) -> dict[str, float]:
    """A ledger of many small entries."""
    gate = asyncio.Semaphore(2_000)

    async def append(number: int) -> None:
        await ledger.append({"n": number, "outcome": "passed"}, kind="run", subject="a" * 64)
        gate.release()

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await gate.acquire()
            group.create_task(append(number))
    start = time.perf_counter()
    found = await ledger.verify()
    took = time.perf_counter() - start
    assert found, found
    return {"verified_per_second": found.entries / took, "entries": found.entries}


async def measure(url: str, options: argparse.Namespace) -> dict[str, float]:
    """All figures, over a warm ledger."""
    async with Ledger(url) as ledger:
        await append_alone(ledger, 20)
        figures = await append_alone(ledger, options.alone)
        figures |= await append_together(ledger, options.together)
        figures["ratio"] = figures["together_per_second"] / figures["alone_per_second"]
        return figures | await verify(ledger, options.entries)


def kill(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """Kill one of the processes that append, again and again, and look for what they said was durable."""
    said: set[tuple[str, ...]] = set()
    writers = [start_writer(url, f"first {number}") for number in range(options.writers)]
    for number in range(options.kills):
        # The reader of each writer's lines stands still meanwhile; only the one to be killed is read from.
        victim = writers.pop(0)
        wanted = random.randint(1, max(2 * options.appends // options.kills, 2))
        said |= end_writer(*victim, wanted)
        writers.append(start_writer(url, f"kill {number}"))
    for mark, process in writers:
        said |= end_writer(mark, process, 1)
    there, entries, valid = asyncio.run(look(url))
    done = {"kills": options.kills, "writers": options.writers, "returned": len(said), "stored": len(there)}
    return done | {"entries": entries, "lost": len(said - there), "valid": valid}


Writing = tuple[str, "subprocess.Popen[str]"]


def start_writer(url: str, mark: str) -> Writing:
    """A process that appends until it is killed, and writes the place of each append that returned."""
    paths = [str(ROOT / "src"), str(ROOT / "tests")]
    code = f"import sys; sys.path[:0] = {paths!r}\nfrom kit import ledgers\nledgers.main()"
    command = [sys.executable, "-c", code, url, mark, "0", str(AT_ONCE)]
    return mark, subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def end_writer(mark: str, process: subprocess.Popen[str], wanted: int) -> set[tuple[str, ...]]:
    """Kill a process after so many appends; what it had said by then."""
    assert process.stdout is not None
    text = "".join(process.stdout.readline() for _ in range(wanted))
    process.send_signal(signal.SIGKILL)
    text += process.communicate()[0]
    return {(mark, *line.split()) for line in text.splitlines(keepends=True) if line.endswith("\n")}


async def look(url: str) -> tuple[set[tuple[str, ...]], int, bool]:
    """Find what a ledger holds of all processes, how many entries, and whether it verifies."""
    there: set[tuple[str, ...]] = set()
    async with Ledger(url) as ledger:
        async for entry in ledger.query(kind="run"):
            data = entry.payload or {}
            there.add((data["mark"], *(str(item) for item in (entry.seq, data["task"], data["number"]))))
        found = await ledger.verify()
    return there, found.entries, found.valid


@contextmanager
def make_schema() -> Iterator[str]:
    """The address of a schema of its own on PostgreSQL, which is dropped afterwards."""
    from sqlalchemy import create_engine

    server = os.environ.get("ADJUDGE_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
    engine, name = create_engine(server), f"adjudge_bench_{uuid.uuid4().hex}"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    try:
        yield f"{server}?options=-csearch_path%3D{name}"
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
        engine.dispose()


def main() -> int:
    """Measure, or kill."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="")
    parser.add_argument("--alone", type=int, default=500)
    parser.add_argument("--together", type=int, default=12_800)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--appends", type=int, default=20_000, help="about how many return in all, with --kills")
    parser.add_argument("--writers", type=int, default=1, help="processes that append at the same time, with --kills")
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder, make_schema() if options.postgres else nullcontext("") as own:
        url = options.url or own or f"sqlite:///{folder}/ledger.db"
        if options.kills:
            done = kill(url, options)
            print(json.dumps(done))
            return int(done["lost"] > 0 or not done["valid"])
        figures = asyncio.run(measure(url, options))
    for name, value in figures.items():
        target = f"  target {TARGETS[name]:,.0f}" if name in TARGETS else ""
        print(f"{name:22}{value:12,.1f}{target}")
    print("RESULT", json.dumps(figures))
    most = all(figures[name] <= TARGETS[name] for name in ("median_ms", "cpu_us"))
    return int(not (most and all(figures[name] >= TARGETS[name] for name in ("ratio", "verified_per_second"))))


if __name__ == "__main__":
    sys.exit(main())
