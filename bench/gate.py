#!/usr/bin/env python3
"""Measure what a gate of rules alone costs: processor time of one check, without judge and ledger.

The content has about 850 characters. 5,000 checks one after the other in each round, medians of 7 interleaved rounds.
Target: at most 100 us with three rules.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import time
from typing import Any

import common

sys.path.insert(0, str(common.BENCH.parent / "src"))

from adjudge import Gate

MOST_US = 100.0
LENGTH = {"name": "length", "max": 4000}
NO_KEY = {"regex": r"\b(sk-[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})\b", "absent": True}
POLITE = {"regex": r"(?i)\b(idiot|stupid)\b", "absent": True, "severity": "warning"}
CONTENDERS = {
    "1 rule": [LENGTH],
    "3 rules": [LENGTH, NO_KEY, POLITE],
    "9 rules": [LENGTH, NO_KEY, POLITE] * 3,
}


async def check_many(gate: Gate, texts: list[str]) -> float:
    """Microseconds of processor time for each check."""
    gc.collect()
    started = time.process_time()
    for text in texts:
        decision = await gate.check(text)
        assert decision.allowed
        assert decision.decided_by == "rule"
    return (time.process_time() - started) / len(texts) * 1e6


async def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """The figures of every round, by contender."""
    texts = [common.make_item(number)["output"] for number in range(options.n)]
    gates: dict[str, Any] = {name: Gate("bench", rules=rules) for name, rules in CONTENDERS.items()}
    found: dict[str, list[float]] = {name: [] for name in gates}
    for gate in gates.values():
        await check_many(gate, texts[:500])
    for number in range(options.rounds):
        for name in common.rotate(list(gates), number):
            found[name].append(await check_many(gates[name], texts))
    return found


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    found = asyncio.run(measure(parser.parse_args()))
    cost = {name: statistics.median(rows) for name, rows in found.items()}
    rows = [[name, f"{cost[name]:.1f}", f"{min(every):.1f}-{max(every):.1f}"] for name, every in found.items()]
    common.print_table(["gate", "CPU us", "range"], rows)
    figures = {"cpu_us": {name: round(value, 1) for name, value in cost.items()}}
    common.print_verdict("gate", figures, met=cost["3 rules"] <= MOST_US)


if __name__ == "__main__":
    main()
