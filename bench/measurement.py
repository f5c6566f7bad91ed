#!/usr/bin/env python3
"""A million labelled cases in a data set: `measure_file` from the file to the corrected rate; time and peak memory.

Every case has the label of a person and of a judge, so it is the worst case for memory: a run of which some hundred are
labelled keeps nothing of the others. Memory may grow by 150 bytes a case (half of it are the ids, which are checked for
repeats), and a case may take 80 microseconds of processor time, about half of which is reading its row. Each
measurement is a process of its own, because a peak never falls.
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

MOST_BYTES = 150
MOST_MICROSECONDS = 80.0


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


def start(items: int, folder: Path) -> dict[str, float]:
    """One measurement in a process of its own."""
    path = folder / f"{items}.jsonl"
    write_cases(path, items)
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
        few, many = (start(items, Path(folder)) for items in (given.items // 10, given.items))
    rows = [[f"{one['cases']:,}", f"{one['seconds']:.1f}", f"{one['peak_mb']:.1f}"] for one in (few, many)]
    common.print_table(["cases", "seconds", "peak MB"], rows)
    more = many["cases"] - few["cases"]
    size = (many["peak_mb"] - few["peak_mb"]) * 1024 * 1024 / more
    spent = 1e6 * (many["seconds"] - few["seconds"]) / more
    figures = {"bytes_per_case": round(size), "microseconds_per_case": round(spent, 1)}
    common.print_verdict("measurement", figures, met=size <= MOST_BYTES and spent <= MOST_MICROSECONDS)


if __name__ == "__main__":
    main()
