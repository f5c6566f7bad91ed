#!/usr/bin/env python3
"""A million cases: rules and a mock model, streamed from a file into a run, memory sampled.

Each case is checked by a rule and judged by a model in this process. Peak memory is the kernel's (ru_maxrss); it must
stay under 400 MB and be flat from 100,000 cases on: at most 10 MB more at the end. Then ``adjudge report --html`` makes
a page of the run, in a process of its own, with the same limit. Needs 4 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import suite

MOST_MB, MOST_GROWTH_MB, FLAT_FROM, SAMPLES = 400.0, 10.0, 100_000, 50

REPORT = """
import resource, sys
from adjudge.cli import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
"""``adjudge`` as it is, and what memory it took, in KB."""


def read_peak() -> float:
    """The peak resident memory of this process until now, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_data(path: Path, count: int) -> None:
    """Cases of some hundred characters each, all different."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            item = common.make_item(number)
            row = {"id": f"case-{number}", "content": item["output"][:300], "task": item["input"], "label": True}
            file.write(json.dumps(row) + "\n")


class Mock:
    """A model that answers at once, and keeps nothing."""

    name = "mock"

    async def complete(self, request: Any, /) -> Any:
        """Everything is good, but every tenth case."""
        from adjudge.testing import make_scripted_reply

        await asyncio.sleep(0)
        score = 0.2 if (request.case or "").endswith("0") else 0.9
        reply = {"criteria": [{"name": "answers", "reasoning": "It does.", "score": score}], "reasoning": "r" * 100}
        return make_scripted_reply(reply, request, self.name)


async def judge_all(data: Path, out: Path, count: int) -> tuple[list[tuple[int, float]], Any]:
    """(cases, peak MB) as they go, and the run."""
    from adjudge import Judge, Rubric, run

    rubric = Rubric(
        name="Answer",
        criteria=[
            {"name": "answers", "description": "Answers the question."},
            {"name": "says something", "description": "Has words.", "rule": {"regex": "library"}},
        ],
    )
    step = max(count // SAMPLES, 1)
    samples: list[tuple[int, float]] = []
    started = time.monotonic()
    running = run(data, Judge(Mock()), rubric, rules=[{"name": "length", "max": 5000}], out=out, concurrency=64)
    done = 0
    async for _ in running:
        done += 1
        if done % step == 0:
            samples.append((done, read_peak()))
            rate = done / (time.monotonic() - started)
            print(f"{done:>9,} cases, {read_peak():6.1f} MB, {rate:7,.0f}/s", file=sys.stderr)
    return samples, await running


def report(folder: Path) -> dict[str, Any]:
    """Measure what a page about the run takes: seconds, peak MB, its size, and whether it says how many cases there
    were."""
    page = folder / "report.html"
    started = time.monotonic()
    command = [sys.executable, "-c", REPORT, "report", str(folder), "--html", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=suite.make_environment())
    seconds = time.monotonic() - started
    print(done.stdout, file=sys.stderr)
    text = page.read_text(encoding="utf-8")
    return {
        "seconds": round(seconds, 1),
        "peak_mb": round(int(done.stderr.split()[-1]) / 1024, 1),
        "page_mb": round(len(text) / 1e6, 1),
        "whole": text.rstrip().endswith("</html>"),
    }


def main() -> None:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="where to leave the run; by default it is removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.jsonl"
        write_data(data, options.n)
        started = time.monotonic()
        samples, done = asyncio.run(judge_all(data, options.out or Path(folder) / "run", options.n))
        seconds = time.monotonic() - started
        size = sum(file.stat().st_size for file in done.folder.iterdir()) / 2**20
        peak = read_peak()
        early = next((mb for cases, mb in samples if cases >= min(FLAT_FROM, options.n)), peak)
        kept = done.summary
        page = report(done.folder)
    table = [[f"{options.n:,}", f"{peak:.0f}", f"{peak - early:.1f}", f"{options.n / seconds:,.0f}", f"{size:,.0f}"]]
    common.print_table(["cases", "peak MB", "more since 100,000", "cases/s", "MB on disk"], table)
    figures = {
        "peak_mb": round(peak, 1),
        "growth_mb": round(peak - early, 1),
        "per_second": round(options.n / seconds),
        "kept": kept["items"],
        "counts": dict(done.counts),
        "report": page,
    }
    met = page["whole"] and page["peak_mb"] < MOST_MB
    met = (
        met
        and peak < MOST_MB
        and peak - early <= MOST_GROWTH_MB
        and kept["items"] == options.n
        and done.status == "finished"
    )
    common.print_verdict("million", figures, met=met)


if __name__ == "__main__":
    main()
