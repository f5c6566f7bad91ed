#!/usr/bin/env python3
"""Measure how soon a server says that it is well while ten hostile requests run, beside a server that is left alone.

    python bench/busy.py                the requests of tests/server/test_busy.py, one kind after the other
    python bench/busy.py screen JSON    those whose name contains one of the words

Both servers are asked by turns, so that what else the machine does meets both alike. Printed are the statuses of the
requests, and the median, the ninth of ten and the worst of the times in ms: of the busy server, then of the idle one.
The target is that no answer of the busy one takes longer than 100 ms, which holds on an idle machine alone.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "server"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import common
from test_busy import CONFIG, HOSTILE, JUDGE, attack

from kit.server_process import make_key, serve

MOST_MS = 100


def summarise(times: list[float]) -> list[float]:
    """The median, the ninth of ten and the worst, in ms."""
    figures = (statistics.median(times), statistics.quantiles(times, n=10)[8], max(times))
    return [round(seconds * 1000, 1) for seconds in figures]


def describe(figures: list[float]) -> str:
    """Write figures below their heading."""
    return " ".join(f"{figure:>6.0f}" for figure in figures)


def main() -> None:
    """Start both servers, print a row for each kind of request, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / which for which in ("busy", "idle")]
        for folder in folders:
            folder.mkdir()
            (folder / "busy_judges.py").write_text(JUDGE, encoding="utf-8")
            (folder / "adjudge.toml").write_text(CONFIG, encoding="utf-8")
        keys = make_key(folders[0], "judge", "read"), make_key(folders[0], "judge", name="honest")
        with serve(folders[0]) as busy, serve(folders[1]) as idle:
            print(f"{'requests':<30} {'busy: median, p90, worst':>24} {'idle':>20}  statuses")
            rows = {}
            for kind in (kind for kind in HOSTILE if not words or any(word in kind for word in words)):
                seen = asyncio.run(attack(busy.url, keys, *HOSTILE[kind](), idle.url))
                rows[kind] = {"busy": summarise(seen.busy), "idle": summarise(seen.idle)}
                shown = " ".join(describe(figures) for figures in rows[kind].values())
                print(f"{kind:<30}     {shown}  {sorted(set(seen.statuses))}", flush=True)
    common.print_verdict("busy", {"ms": rows}, met=all(max(row["busy"]) <= MOST_MS for row in rows.values()))


if __name__ == "__main__":
    main()
