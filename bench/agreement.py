#!/usr/bin/env python3
"""A million items: a judge's agreement with the truth, every statistic with its interval; time and peak memory.

Labels come from a generator, as from a file. Without groups memory must be flat: at most 20 MB more than before,
whatever the number of items (keeping the labels would take 70). With groups of eight it grows with the groups, by at
most 600 bytes each. Each measurement is a process of its own, because a peak never falls. The targets are 10 seconds
without groups and 30 with them.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import common
import suite

MOST_SECONDS = {"items": 10.0, "groups": 30.0}
MOST_GROWTH_MB = 20.0
MOST_BYTES_PER_GROUP = 600
GROUP = 8


def draw(items: int, *, judge: bool) -> Iterator[bool | None]:
    """Labels by seeded chance: of the truth, or of a judge that is right on 90 % and undecided on 1 %."""
    chance = random.Random(1)
    for _ in range(items):
        true, luck = chance.random() < 0.7, chance.random()
        said = None if luck > 0.99 else true if luck < 0.9 else not true
        yield said if judge else true


def measure(kind: str, items: int) -> dict[str, float]:
    """The time and the peak memory of one call, and the peak before it."""
    from adjudge.trust import make_agreement

    # Imports and a first call are no part of what a million items cost.
    make_agreement([True, False, None] * 4, [True, False, True] * 4, groups=list(range(12)))
    before, start = peak(), time.perf_counter()
    groups = (item // GROUP for item in range(items)) if kind == "groups" else None
    found = make_agreement(draw(items, judge=True), draw(items, judge=False), groups=groups)
    seconds = time.perf_counter() - start
    assert found.confusion.items == items
    assert all(found.estimates[name].interval for name in ("accuracy", "cohen_kappa", "gwet_ac1", "macro_f1"))
    return {"seconds": round(seconds, 2), "before_mb": before, "peak_mb": peak()}


def peak() -> float:
    """The peak resident memory of this process until now, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def start(kind: str, items: int) -> dict[str, float]:
    """One measurement in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", kind, "--items", str(items)]
    return json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, env=suite.make_environment()).stdout
    )


def main() -> None:
    """Measure a tenth and all of the items, without groups and with them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--one", choices=tuple(MOST_SECONDS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.items)))
        return
    found = {kind: [start(kind, items) for items in (given.items // 10, given.items)] for kind in MOST_SECONDS}
    sizes = (f"{given.items // 10:,}", f"{given.items:,}")
    table = [
        [kind, size, f"{one['seconds']:.2f}", f"{one['peak_mb']:.1f}", f"{one['before_mb']:.1f}"]
        for kind, both in found.items()
        for size, one in zip(sizes, both, strict=True)
    ]
    common.print_table(["", "items", "seconds", "peak MB", "before"], table)
    growth = {kind: round(both[1]["peak_mb"] - both[1]["before_mb"], 1) for kind, both in found.items()}
    per_group = growth["groups"] * 1024 * 1024 / (given.items / GROUP)
    met = (
        all(found[kind][1]["seconds"] <= most for kind, most in MOST_SECONDS.items())
        and growth["items"] <= MOST_GROWTH_MB
        and per_group <= MOST_BYTES_PER_GROUP
    )
    figures = {"found": found, "growth_mb": growth, "bytes_per_group": round(per_group)}
    common.print_verdict("agreement", figures, met=met)


if __name__ == "__main__":
    main()
