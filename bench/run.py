#!/usr/bin/env python3
"""Measure what a run adds to judging: CPU per case of ``run`` beside ``evaluate_many``, which keeps nothing.

Over HTTP against the mock, zero latency, 64 in flight, 4,000 cases, one criterion, median of 5 interleaved rounds. The
difference is what it costs to keep the case, the result and the reply on disk, durable against a kill. Target: at most
60 us. With ``--parts``, runs with a part left out take part too: what they save is what that part costs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import suite

MOST_US, IN_FLIGHT = 60.0, 64
WAYS = ("evaluate_many", "run")
PARTS = ("run, nothing committed", "run, no reply kept", "run, neither, and no row made")


async def judge_all(way: str, spec: str, cases: list[Any]) -> None:
    """Judge every case; exits when one does not pass."""
    from adjudge import Criterion, Judge, Rubric, run

    rubric = Rubric(name="Answer", criteria=(Criterion(name="criterion 1", description=common.CRITERION),))
    async with Judge(spec) as judge:
        if way == "evaluate_many":
            passed = 0
            async for result in judge.evaluate_many(cases, rubric, concurrency=IN_FLIGHT):
                passed += result.passed
        else:
            with tempfile.TemporaryDirectory() as folder:
                passed = 0
                async for item in run(cases, judge, rubric, out=Path(folder) / "run", concurrency=IN_FLIGHT):
                    passed += item.result.passed
    if passed != len(cases):
        sys.exit(f"{way}: {len(cases) - passed} of {len(cases)} did not pass")


def leave_out(way: str) -> None:
    """Take a part of a run away, in this process."""
    from adjudge.models.replies import run_replies as _run_replies
    from adjudge.runs import store as _store

    async def complete(self: Any, request: Any) -> Any:
        return await self.model.complete(request)

    def make_empty_rows(_item: Any, _body: bytes) -> Any:
        return {_store._INSERT_CASE: (b"",), _store._REPLACE_RESULT: (b"",)}  # noqa: SLF001 - what costs time is inside

    if way != PARTS[1]:
        _store._write_all = lambda _connection, _together: None  # noqa: SLF001
    if way != PARTS[0]:
        _run_replies.RunReplyModel.complete = complete  # type: ignore[method-assign]
    if way == PARTS[2]:
        _store._make_rows = make_empty_rows  # noqa: SLF001


def run_inside(way: str, port: int, count: int, profile: str | None) -> None:
    """Judge in this process, after a warm-up, and print CPU and wall time per case."""
    from adjudge import Case

    spec = f"http://127.0.0.1:{port}/run-r/v1#mock"

    def make(numbers: range) -> list[Any]:
        items = [(number, common.make_item(number)) for number in numbers]
        return [Case(id=str(number), content=item["output"], task=item["input"]) for number, item in items]

    if way in PARTS:
        leave_out(way)

    async def go() -> dict[str, float]:
        await judge_all(way, spec, make(range(900_000, 900_500)))
        cases = make(range(count))
        gc.collect()
        profiler = common.start_profiler() if profile else None
        started, used = time.perf_counter(), common.cpu()
        await judge_all(way, spec, cases)
        figures = {
            "cpu_us": 1e6 * (common.cpu() - used) / count,
            "wall_us": 1e6 * (time.perf_counter() - started) / count,
        }
        if profiler:
            profiler.stop()
            await asyncio.to_thread(common.write_profile, profiler, profile or "")
        return figures

    print(json.dumps(asyncio.run(go())))


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", action="store_true", help="what the parts of it cost")
    parser.add_argument("--profile")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside, options.port, options.n, options.profile)
        return
    ways = [*WAYS, *(PARTS if options.parts else ())]
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with suite.run_mock() as port:
        for number in range(options.rounds):
            for way in common.rotate(ways, number):
                command = [sys.executable, __file__, "--inside", way, "--port", str(port), "--n", str(options.n)]
                command += ["--profile", f"{options.profile}.{way}"] if options.profile else []
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, env=suite.make_environment()
                )
                if done.returncode:
                    sys.exit(done.stderr)
                found[way].append(json.loads(done.stdout))
    cost = {way: common.median(rows, "cpu_us") for way, rows in found.items()}
    wall = {way: common.median(rows, "wall_us") for way, rows in found.items()}
    table = [[way, f"{cost[way]:.0f}", f"{wall[way]:.0f}"] for way in ways]
    common.print_table(["way", "CPU us", "wall us"], table)
    more = cost["run"] - cost["evaluate_many"]
    figures = {"cpu_us": {way: round(value, 1) for way, value in cost.items()}, "more_us": round(more, 1)}
    common.print_verdict("run", figures, met=more <= MOST_US)


if __name__ == "__main__":
    main()
