"""The ledger: durable appends per second, what one costs, and how fast a chain is verified.

    python bench/ledger.py                     # SQLite in a temporary folder of the working directory
    python bench/ledger.py --url postgresql://postgres@127.0.0.1/scratch
    python bench/ledger.py --kills 50          # kill -9 during 20,000 concurrent appends, and only that

Prints a table and one line of JSON; exits with 1 when a target is missed. A ledger on PostgreSQL stays where it is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
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


def kill(url: str, kills: int, appends: int) -> dict[str, Any]:
    """Kill a process that appends, again and again, and look for what it said was durable."""
    code = (
        f"import sys; sys.path[:0] = {[str(ROOT / 'src'), str(ROOT / 'tests')]!r}\nimport ledger_support as s\ns.main()"
    )
    said: set[tuple[str, ...]] = set()
    for number in range(kills):
        command = [sys.executable, "-c", code, url, str(number), "0", str(AT_ONCE)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        text = "".join(process.stdout.readline() for _ in range(random.randint(1, 2 * appends // kills)))
        process.send_signal(signal.SIGKILL)
        text += process.communicate()[0]
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        said |= {(str(number), *line.split()) for line in lines}

    async def look() -> tuple[set[tuple[str, ...]], bool]:
        async with Ledger(url) as ledger:
            runs = [entry async for entry in ledger.query(kind="run")]
            return {
                (entry.payload["mark"], *(str(n) for n in (entry.seq, entry.payload["task"], entry.payload["number"])))
                for entry in runs
                if entry.payload
            }, (await ledger.verify()).valid

    there, valid = asyncio.run(look())
    return {"kills": kills, "returned": len(said), "stored": len(there), "lost": len(said - there), "valid": valid}


def main() -> int:
    """Measure, or kill."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="")
    parser.add_argument("--alone", type=int, default=500)
    parser.add_argument("--together", type=int, default=12_800)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--appends", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        url = options.url or f"sqlite:///{folder}/ledger.db"
        if options.kills:
            done = kill(url, options.kills, options.appends)
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
