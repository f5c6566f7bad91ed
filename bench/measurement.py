#!/usr/bin/env python3
"""A million labelled cases: `measure_file` from the file to the corrected rate; processor time and peak memory.

Once as a data set, whose cases have the labels of a person and of a judge, and once as a file of labels with two rows
for each case. That every case is labelled is the worst case for memory: of a run of which some hundred are labelled
nothing is kept of the others. Memory may grow by 110 bytes for a case of a data set (most of it are the ids, which are
checked for repeats) and by 300 for one of a file of labels (ids twice, and two labels), and a case may take 20 and 30
microseconds of processor time, most of which is reading its rows. Each measurement is a process of its own, because a
peak never falls.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import suite

MOST_BYTES = {"data set": 110, "label file": 300}
MOST_MICROSECONDS = {"data set": 20.0, "label file": 30.0}


def write_labels(path: Path, items: int) -> None:
    """The same labels in a file of labels."""
    chance = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(items):
            true = chance.random() < 0.7
            said = true if chance.random() < 0.9 else not true
            at = f"2026-11-20T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
            for rater, kind, value in (("ann", "person", true), ("judge", "model", said)):
                row = {"case": f"c{number}", "rater": rater, "kind": kind, "value": value, "at": at}
                file.write(f"{json.dumps(row)}\n")


def write_cases(path: Path, items: int) -> None:
    """Cases by seeded chance: 70 % are good, and the judge is right on 90 %."""
    chance = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(items):
            true = chance.random() < 0.7
            said = true if chance.random() < 0.9 else not true
            row = {
                "id": f"c{number}",
                "content": "An answer of some words. " * 8,
                "labels": {"ann": true, "judge": said},
            }
            file.write(f"{json.dumps(row)}\n")


def measure(path: Path) -> dict[str, float]:
    """The processor time and the peak memory of one call."""
    from adjudge.measurement import measure_file

    start = time.process_time()
    (found,) = measure_file(path, judge="judge", most_disagreements=0)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 2), "peak_mb": round(peak, 1), "cases": found.cases}


def start(kind: str, items: int, folder: Path) -> dict[str, float]:
    """One measurement in a process of its own."""
    path = folder / f"{items}.jsonl"
    (write_cases if kind == "data set" else write_labels)(path, items)
    command = [sys.executable, str(Path(__file__).resolve()), "--one", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=suite.make_environment())
    path.unlink()
    return json.loads(done.stdout)


def main() -> None:
    """Measure a tenth and all of the cases; what both need whatever their number is not counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = {
            kind: [start(kind, items, Path(folder)) for items in (given.items // 10, given.items)]
            for kind in MOST_BYTES
        }
    rows = [
        [kind, f"{one['cases']:,}", f"{one['seconds']:.1f}", f"{one['peak_mb']:.1f}"]
        for kind, both in found.items()
        for one in both
    ]
    common.print_table(["", "cases", "seconds", "peak MB"], rows)
    more = given.items - given.items // 10
    sizes = {
        kind: round((many["peak_mb"] - few["peak_mb"]) * 1024 * 1024 / more) for kind, (few, many) in found.items()
    }
    spent = {kind: round(1e6 * (many["seconds"] - few["seconds"]) / more, 1) for kind, (few, many) in found.items()}
    met = all(sizes[kind] <= MOST_BYTES[kind] and spent[kind] <= MOST_MICROSECONDS[kind] for kind in found)
    common.print_verdict("measurement", {"bytes_per_case": sizes, "microseconds_per_case": spent}, met=met)


if __name__ == "__main__":
    main()
