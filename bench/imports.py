#!/usr/bin/env python3
"""Measure what starting costs: ``import adjudge``, and ``adjudge --help``, over an interpreter that does nothing.

Wall time of fresh processes, interleaved, medians of 21; byte code is compiled beforehand. Targets: the import adds
at most 60 ms, and the command line answers ``--help`` within 300 ms in all.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import common
import suite

MOST_IMPORT_MS, MOST_HELP_MS = 60, 300
COMMANDS = {
    "empty interpreter": ["-c", "pass"],
    "import asyncio": ["-c", "import asyncio"],
    "import adjudge": ["-c", "import adjudge"],
    "a judge, ready to ask": ["-c", "import adjudge; adjudge.Judge('openai:gpt-6.1-terra')"],
    "adjudge --help": ["-m", "adjudge", "--help"],
}


def take_time(arguments: list[str]) -> float | None:
    """Milliseconds of one process; ``None`` when it fails."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, check=False, env=suite.make_environment())
    return (time.perf_counter() - started) * 1000 if done.returncode == 0 else None


def main() -> None:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    works = {name: command for name, command in COMMANDS.items() if take_time(command) is not None}
    found: dict[str, list[float]] = {name: [] for name in works}
    for number in range(options.rounds):
        for name in common.rotate(list(works), number):
            found[name].append(take_time(works[name]) or 0.0)
    taken = {name: statistics.median(times) for name, times in found.items()}
    empty = taken["empty interpreter"]
    rows = [[name, f"{value:.0f}", f"{value - empty:.0f}"] for name, value in taken.items()]
    rows += [[name, "fails", "-"] for name in COMMANDS if name not in works]
    common.print_table(["command", "ms", "over empty"], rows)
    added, help_ms = taken["import adjudge"] - empty, taken.get("adjudge --help")
    figures = {
        "import_ms": round(added, 1),
        "help_ms": round(help_ms, 1) if help_ms else None,
        "all_ms": {name: round(value, 1) for name, value in taken.items()},
    }
    met = added <= MOST_IMPORT_MS and help_ms is not None and help_ms <= MOST_HELP_MS
    common.print_verdict("imports", figures, met=met)


if __name__ == "__main__":
    main()
