#!/usr/bin/env python3
"""Measure what recording adds to a judgement: its duration, one at a time, and processor time, 64 in flight.

The same judge asks the mock with and without ``on_result=ledger.append``, and stands behind a gate with and without
``ledger=``. Both of a pair run in one process, one after the other, the first of them taking turns; what is compared is
the median of the differences. The ledger is a new SQLite file in the working directory, whose disk is what a durable
append waits for. Targets: at most 10 ms more at the median, and at most 150 us more processor time.

    python bench/recording.py
    python bench/recording.py --url postgresql://postgres@127.0.0.1/scratch    # the entries stay there
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import common
import suite

sys.path.insert(0, str(common.BENCH.parent / "src"))

from adjudge import Criterion, Gate, Judge, Ledger, Rubric

MOST_MS, MOST_US, IN_FLIGHT = 10.0, 150.0, 64
Ask = Callable[[common.Item], Awaitable[bool | None]]


def make_contenders(address: str, ledger: Ledger, criteria: int) -> tuple[dict[str, tuple[Ask, Ask]], list[Judge]]:
    """Pairs of the same thing without and with a ledger, and the judges to close."""
    names = [f"criterion {number + 1}" for number in range(criteria)]
    rubric = Rubric(name="Answer", criteria=tuple(Criterion(name=name, description=common.CRITERION) for name in names))
    plain, telling = Judge(address), Judge(address, on_result=ledger.append)
    gates = [Gate("bench", rubric=rubric, judge=plain, ledger=kept) for kept in (None, ledger)]

    def judge_with(judge: Judge) -> Ask:
        async def ask(item: common.Item) -> bool | None:
            return (await judge.evaluate(item["output"], rubric, task=item["input"])).passed

        return ask

    def check_with(gate: Gate) -> Ask:
        async def ask(item: common.Item) -> bool | None:
            decision = await gate.check(item["output"], task=item["input"])
            return decision.allowed and (gate.ledger is None or decision.ledger_seq is not None)

        return ask

    pairs = {
        "judge": (judge_with(plain), judge_with(telling)),
        "gate": (check_with(gates[0]), check_with(gates[1])),
    }
    return pairs, [plain, telling]


async def take_times(ask: Ask, numbers: range, in_flight: int) -> tuple[float, float]:
    """Milliseconds, and microseconds of processor time, for each judgement."""
    gc.collect()
    started, used = time.perf_counter(), time.process_time()
    verdicts = await common.judge_all(ask, numbers, in_flight)
    wall, used = time.perf_counter() - started, time.process_time() - used
    wrong = [item for item in verdicts if item is not True]
    if wrong:
        sys.exit(f"{len(wrong)} of {len(verdicts)} did not pass, or are not recorded; the first: {wrong[0]!r}")
    return wall / len(numbers) * 1e3, used / len(numbers) * 1e6


async def compare(pair: tuple[Ask, Ask], options: argparse.Namespace) -> dict[str, float]:
    """Medians of both, and of what the second takes more than the first."""
    for ask in pair:
        await take_times(ask, range(900_000, 900_000 + 4 * IN_FLIGHT), IN_FLIGHT)
    alone = [await _take_both(pair, range(turn, turn + 1), 1, turn, at=0) for turn in range(options.pairs)]
    together = [await _take_both(pair, range(options.n), IN_FLIGHT, turn, at=1) for turn in range(options.rounds)]
    return {
        "ms": statistics.median(first for first, _ in alone),
        "more_ms": statistics.median(second - first for first, second in alone),
        "cpu_us": statistics.median(first for first, _ in together),
        "more_us": statistics.median(second - first for first, second in together),
        "most_more_us": max(second - first for first, second in together),
    }


async def _take_both(pair: tuple[Ask, Ask], numbers: range, in_flight: int, turn: int, *, at: int) -> tuple[float, ...]:
    order = (0, 1) if turn % 2 == 0 else (1, 0)
    took = {place: (await take_times(pair[place], numbers, in_flight))[at] for place in order}
    return took[0], took[1]


async def measure(address: str, url: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The figures of every pair."""
    async with Ledger(url) as ledger:
        pairs, judges = make_contenders(address, ledger, options.criteria)
        try:
            return {name: await compare(pair, options) for name, pair in pairs.items()}
        finally:
            for judge in judges:
                await judge.aclose()


def main() -> None:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="")
    parser.add_argument("--criteria", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=300, help="judgements one at a time, of each kind")
    parser.add_argument("--n", type=int, default=1280, help="judgements in a round with 64 in flight")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with suite.run_mock() as port, tempfile.TemporaryDirectory(dir=".") as folder:
        address = f"http://127.0.0.1:{port}/run-recording/v1#mock"
        found: dict[str, Any] = asyncio.run(measure(address, options.url or f"sqlite:///{folder}/ledger.db", options))
    rows = [
        [name, f"{said['ms']:.2f}", f"{said['more_ms']:.2f}", f"{said['cpu_us']:.0f}", f"{said['more_us']:.0f}"]
        for name, said in found.items()
    ]
    common.print_table(["what", "ms", "recorded: ms more", "CPU us", "recorded: us more"], rows)
    met = all(said["more_ms"] <= MOST_MS and said["more_us"] <= MOST_US for said in found.values())
    common.print_verdict("recording", {"criteria": options.criteria} | found, met=met)


if __name__ == "__main__":
    main()
