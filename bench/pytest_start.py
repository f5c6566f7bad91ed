#!/usr/bin/env python3
"""Measure what the pytest plugin costs a suite that does not judge: one test, started with the plugin and without.

Wall time of fresh processes without other plugins, interleaved, the fastest of 21: what is looked for is a few
milliseconds. Target: at most 1.05 times.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import suite

MOST_RATIO = 1.05
WAYS = {"with the plugin": ["-p", "adjudge.testing.plugin"], "without": [], "without, again": []}
"""The same way twice says how much of a difference is noise."""


def take_time(directory: str, options: list[str]) -> float:
    """Milliseconds of one suite."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    started = time.perf_counter()
    # Without the plugins that happen to be installed, which take far longer than ours and would hide it.
    environment = suite.make_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=directory, capture_output=True, check=True, env=environment)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_plain.py").write_text("def test_one():\n    assert True\n", encoding="utf-8")
        for way in WAYS.values():
            take_time(directory, way)
        for number in range(options.rounds):
            for name in common.rotate(list(WAYS), number):
                found[name].append(take_time(directory, WAYS[name]))
    taken = {name: min(times) for name, times in found.items()}
    ratio = taken["with the plugin"] / taken["without"]
    noise = taken["without, again"] / taken["without"]
    common.print_table(["suite", "ms"], [[name, f"{value:.0f}"] for name, value in taken.items()])
    figures = {"ratio": round(ratio, 3), "noise": round(noise, 3), "ms": {key: round(ms) for key, ms in taken.items()}}
    common.print_verdict("pytest_start", figures, met=ratio <= MOST_RATIO)


if __name__ == "__main__":
    main()
