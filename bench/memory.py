#!/usr/bin/env python3
"""Measure whether a judge that runs for long grows: 100,000 judgements, every one of different content, memory sampled.

Once over HTTP against the mock, once with a scripted model, results thrown away. The slope is that of a straight line
through the second half of the samples, in bytes per judgement. Target: at most 16 bytes, which is 1.6 MB in 100,000;
the first half may fill pools and caches.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import common
import suite

MOST_BYTES, SAMPLES, IN_FLIGHT = 16.0, 40, 64
PAGE = os.sysconf("SC_PAGE_SIZE")


def read_memory() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


async def judge_many(judge: Any, rubric: Any, count: int) -> list[tuple[int, int]]:
    """(judgements, resident bytes) as they go."""
    samples: list[tuple[int, int]] = []

    async def one(item: common.Item) -> bool | None:
        result = await judge.evaluate(item["output"], rubric, task=item["input"])
        return result.passed or None

    step = count // SAMPLES
    for start in range(0, count, step):
        verdicts = await common.judge_all(one, range(start, start + step), IN_FLIGHT)
        wrong = [item for item in verdicts if item is not True]
        if wrong:
            sys.exit(f"{len(wrong)} judgements did not pass, the first: {wrong[0]!r}")
        del verdicts, wrong
        gc.collect()
        samples.append((start + step, await asyncio.to_thread(read_memory)))
    return samples


def run_inside(kind: str, port: int, count: int) -> None:
    """Judge in this process, and print the samples."""
    from adjudge import Criterion, Judge, Rubric
    from adjudge.testing import ScriptedModel

    rubric = Rubric(name="Answer", criteria=(Criterion(name="criterion 1", description=common.CRITERION),))
    if kind == "http":
        model: Any = f"http://127.0.0.1:{port}/run-m/v1#mock"
    else:
        model = ScriptedModel({"criteria": [{"name": "criterion 1", "score": 1.0}]}, requests=Forgetful())
    judge = Judge(model)

    async def run() -> list[tuple[int, int]]:
        async with judge:
            return await judge_many(judge, rubric, count)

    print(json.dumps(asyncio.run(run())))


class Forgetful(list[Any]):
    """A list that keeps nothing: a script's record of requests is meant to grow."""

    def append(self, _item: Any) -> None:
        """Forget it."""


def measure(kind: str, port: int, count: int) -> list[tuple[int, int]]:
    """The samples of a fresh process."""
    command = [sys.executable, __file__, "--inside", kind, "--port", str(port), "--n", str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=suite.make_environment())
    return [tuple(item) for item in json.loads(done.stdout)]


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside, options.port, options.n)
        return
    with suite.run_mock() as port:
        found = {kind: measure(kind, port, options.n) for kind in ("http", "scripted")}
    rows, slopes = [], {}
    for kind, samples in found.items():
        half = samples[len(samples) // 2 :]
        slopes[kind] = statistics.linear_regression([at for at, _ in half], [size for _, size in half]).slope
        shown = [f"{samples[at][1] / 2**20:.1f}" for at in (0, len(samples) // 2, -1)]
        rows.append([kind, *shown, f"{slopes[kind]:.2f}"])
    common.print_table(["model", "MB first", "MB half-way", "MB last", "bytes/judgement"], rows)
    figures = {"n": options.n, "bytes_per_judgement": {kind: round(value, 2) for kind, value in slopes.items()}}
    common.print_verdict("memory", figures, met=all(value <= MOST_BYTES for value in slopes.values()))


if __name__ == "__main__":
    main()
