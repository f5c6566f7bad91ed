#!/usr/bin/env python3
"""Measure what cancelled requests leave behind: 4,000 of them, each given up after 0 to 20 ms, then 60 that are not.

The model takes 10 ms, so some are cancelled while they wait for a place, some while they connect, some while they are
answered, and some have their answer. Once with 10 connections for 20 judgements, once without a limit for 64. A
client that loses a place in its pool with a cancellation serves nobody in the end. Target: 60 of 60 pass, no request
is left at the mock, and no task here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from typing import Any

import common
import suite

sys.path.insert(0, str(suite.SOURCE))

LATENCY_MS, AFTER = 10, 60
STORMS = {"10 connections": (20, 10), "no limit": (64, None)}


async def storm(judge: Any, rubric: Any, count: int, in_flight: int) -> tuple[int, int]:
    """Count the judgements that were cancelled, and those that were quicker."""
    source = random.Random(1)
    ended = {"cancelled": 0, "finished": 0}
    waiting = iter(range(count))

    async def work() -> None:
        for number in waiting:
            task = asyncio.create_task(judge.evaluate(common.make_item(number)["output"], rubric))
            await asyncio.wait([task], timeout=source.uniform(0, 0.02))
            task.cancel()
            await asyncio.wait([task])
            ended["cancelled" if task.cancelled() else "finished"] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())
    return ended["cancelled"], ended["finished"]


async def run(port: int, count: int, in_flight: int, connections: int | None) -> dict[str, Any]:
    """Cancel, then ask in earnest."""
    from adjudge import Criterion, Judge, Rubric
    from adjudge.models import open_model

    rubric = Rubric(name="Answer", criteria=(Criterion(name="criterion 1", description=common.CRITERION),))
    address = f"http://127.0.0.1:{port}/run-c{in_flight}_lat-{LATENCY_MS}/v1#mock"
    async with Judge(open_model(address, max_concurrency=connections), timeout=10.0) as judge:
        cancelled, finished = await storm(judge, rubric, count, in_flight)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            numbers = range(AFTER)
            asked = [
                group.create_task(judge.evaluate(common.make_item(number)["output"], rubric)) for number in numbers
            ]
        wall = time.perf_counter() - started
    served = sum(task.result().passed for task in asked)
    left = len(asyncio.all_tasks()) - 1
    return {"cancelled": cancelled, "finished": finished, "served": served, "wall_s": round(wall, 3), "tasks": left}


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4000)
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    with suite.run_mock() as port:
        for name, (in_flight, connections) in STORMS.items():
            figures = asyncio.run(run(port, options.n, in_flight, connections))
            stats = json.loads(common.get(f"http://127.0.0.1:{port}/stats?run=c{in_flight}"))
            found[name] = figures | {name: stats[name] for name in ("requests", "gone", "in_flight", "max_connections")}
    head = ["storm", *next(iter(found.values()))]
    common.print_table(head, [[name, *map(str, figures.values())] for name, figures in found.items()])
    met = all(row["served"] == AFTER and not row["in_flight"] and not row["tasks"] for row in found.values())
    common.print_verdict("cancel", found, met=met)


if __name__ == "__main__":
    main()
