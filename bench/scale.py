#!/usr/bin/env python3
"""Measure what Ray costs and gains a run: cases per second, processor time per case and the wait for the first result.

The local engine and Ray with 1, 2 and 4 actors, in turns, on this machine: once with a provider that takes 200 ms
(what most judges are), once with a judge in code that computes for 20 ms (what no single process can do twice at a
time). Cases per second count from the first result on; processor time is that of every process of the run, Ray's own
included. Needs ``ray[data]``. Target: every run has one result a case, and asks once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import common
import suite

from adjudge import Case, Judge, run

LATENCY_MS, COMPUTE_MS, IN_FLIGHT = 200, 20, 64
ENGINES: dict[str, dict[str, Any]] = {"local": {}} | {
    f"ray, {actors} actor{'s' if actors > 1 else ''}": {"engine": "ray", "ray_actors": actors} for actors in (1, 2, 4)
}


def compute(content: str) -> bool:
    """A judge in code that needs the processor."""
    until = time.thread_time() + COMPUTE_MS / 1000
    while time.thread_time() < until:
        pass
    return bool(content)


def find_family() -> dict[int, float]:
    """Seconds of processor time of this process and all that descend from it, with their ended children."""
    tick, parents, used = os.sysconf("SC_CLK_TCK"), dict[int, int](), dict[int, float]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = sum(map(int, fields[11:15])) / tick
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return {process: used[process] for process in family if process in used}


async def measure(name: str, kind: str, address: str, number: int, turn: int) -> dict[str, Any]:
    """One run."""
    tag = f"{kind}{turn}{name}".replace(" ", "").replace(",", "")
    judge = Judge(f"{address}/run-{tag}_lat-{LATENCY_MS}/v1#mock") if kind == "provider" else Judge(compute)
    cases = [Case(id=str(n), content=common.make_item(n)["output"] + f" [item-{n:06d}]") for n in range(number)]
    started, first, before = time.perf_counter(), 0.0, {}
    kept = 0
    running = run(cases, judge, criteria=common.CRITERION, concurrency=IN_FLIGHT, **ENGINES[name])
    at_start = find_family()
    async for _ in running:
        kept += 1
        if not first:
            first, before = time.perf_counter(), find_family()
        if kept == number:
            last, after = time.perf_counter(), find_family()
    done = await running
    asked = json.loads(common.get(f"{address}/stats?run={tag}"))["requests"] if kind == "provider" else number
    return {
        "per_second": (number - 1) / (last - first),
        "cpu_ms": 1000 * (sum(after.values()) - sum(before.get(each, 0.0) for each in after)) / number,
        "start_cpu_s": sum(before.values()) - sum(at_start.get(each, 0.0) for each in before),
        "first_s": first - started,
        "asked": asked,
        "kept": sum(done.counts.values()),
    }


def main() -> None:
    """Measure, print, and say whether every case was judged once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    import ray

    # One cluster for all runs, with room for four actors whatever the machine: they wait most of the time.
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    figures, good = dict[str, Any](), True
    with suite.run_mock() as port:
        for kind, number in (("provider", options.n), ("code", options.n // 4)):
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in ENGINES}
            for turn in range(options.rounds):
                for name in common.rotate(list(ENGINES), turn):
                    row = asyncio.run(measure(name, kind, f"http://127.0.0.1:{port}", number, turn))
                    print(kind, name, {key: round(value, 2) for key, value in row.items()}, file=sys.stderr)
                    good = good and row["asked"] == row["kept"] == number
                    found[name].append(row)
            figures[kind] = {
                name: {key: round(statistics.median(row[key] for row in rows), 2) for key in rows[0]}
                for name, rows in found.items()
            }
            print(f"\n{kind}, {number:,} cases, {IN_FLIGHT} at once, median of {options.rounds}\n")
            rows = [
                [name, f"{row['per_second']:.0f}", f"{row['cpu_ms']:.2f}", f"{row['first_s']:.1f}"]
                for name, row in figures[kind].items()
            ]
            common.print_table(["engine", "cases/s", "CPU ms a case", "first result after s"], rows)
    ray.shutdown()
    common.print_verdict("scale", figures, met=good)


if __name__ == "__main__":
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    main()
