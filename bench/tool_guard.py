#!/usr/bin/env python3
"""Measure what a guard adds to a gate: processor time and duration of a call's check, with a rule and a SQLite ledger.

The same call is put to the gate alone and to a guard in front of it, in turns; both record. What is compared is the
median of the differences. Target: at most 2 ms more for a call, one at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from typing import Any

import common

sys.path.insert(0, str(common.BENCH.parent / "src"))

from adjudge import Gate, Ledger
from adjudge.guards import ToolCall, ToolGuard

MOST_MS = 2.0
RULES = [{"regex": "DROP TABLE", "absent": True}]


async def measure(rounds: int, count: int) -> dict[str, list[float]]:
    """Milliseconds, and of processor time, by which the guard takes longer, of each round."""
    more: dict[str, list[float]] = {"ms": [], "cpu_ms": []}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        async with Ledger(f"sqlite:///{folder}/calls.db") as ledger:
            gate = Gate("calls", rules=RULES, ledger=ledger)
            guard = ToolGuard({"*": gate})
            for number in range(rounds + 1):
                took = {}
                for name in common.rotate(["gate", "guard"], number):
                    gc.collect()
                    started, cpu = time.perf_counter(), time.process_time()
                    for place in range(count):
                        arguments = {"sql": f"SELECT {number} {name} {place}", "limit": 10}
                        answer: Any
                        if name == "gate":
                            content = {"tool": "query", "arguments": arguments}
                            answer = await gate.check(content, metadata={"call": {"run_id": f"run-{number}"}})
                        else:
                            answer = await guard.check(ToolCall("query", arguments, f"c{place}", f"run-{number}"))
                        assert answer
                    took[name] = (time.perf_counter() - started, time.process_time() - cpu)
                if number:  # the first round warms up
                    for place, name in enumerate(more):
                        more[name].append((took["guard"][place] - took["gate"][place]) / count * 1e3)
    return more


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    more = asyncio.run(measure(options.rounds, options.n))
    medians = {name: statistics.median(values) for name, values in more.items()}
    rows = [[name, f"{medians[name]:.2f}", f"{min(values):.2f}-{max(values):.2f}"] for name, values in more.items()]
    common.print_table(["more for each call", "median", "range"], rows)
    common.print_verdict(
        "tool_guard", {name: round(value, 3) for name, value in medians.items()}, met=medians["ms"] <= MOST_MS
    )


if __name__ == "__main__":
    main()
