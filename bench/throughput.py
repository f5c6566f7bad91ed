#!/usr/bin/env python3
"""Check that the concurrency asked for is reached: judgements per second when the model takes 200 ms.

256 in flight, 2,560 judgements (ten whole rounds, 2.0 s at best), connections warm, median of 5 interleaved rounds.
Target: at least 0.92 (aim: 0.96) of what the bare client reaches.
"""

from __future__ import annotations

import argparse

import common
import suite

LATENCY_MS, IN_FLIGHT, LEAST, AIM = 200, 256, 0.92, 0.96


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2560)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    adjudge = suite.Contender("adjudge", "adjudge_", "token")
    with suite.run_mock() as port, suite.record_body(adjudge, port) as body:
        contenders = [suite.Contender("bare aiohttp", "floor", "post", ("--body", body)), adjudge]
        settings = ("--n", str(options.n), "--c", str(IN_FLIGHT), "--warm", str(2 * IN_FLIGHT))
        found = suite.run_rounds(contenders, port, *settings, "--cfg", f"lat-{LATENCY_MS}", rounds=options.rounds)
    ideal = options.n / IN_FLIGHT * LATENCY_MS / 1000
    wall = {name: common.median(rows, "wall_s") for name, rows in found.items()}
    in_flight = {name: max(row["server"]["max_in_flight"] for row in rows) for name, rows in found.items()}
    rows = [
        [name, f"{value:.3f}", f"{ideal / value:.3f}", f"{wall['bare aiohttp'] / value:.3f}", str(in_flight[name])]
        for name, value in wall.items()
    ]
    common.print_table(["contender", "wall s", "of the ideal", "of bare", "most in flight"], rows)
    share = wall["bare aiohttp"] / wall["adjudge"]
    figures = {
        "wall_s": {name: round(value, 4) for name, value in wall.items()},
        "of_bare": round(share, 4),
        "of_ideal": round(ideal / wall["adjudge"], 4),
        "aim_met": share >= AIM,
    }
    common.print_verdict("throughput", figures, met=share >= LEAST and in_flight["adjudge"] == IN_FLIGHT)


if __name__ == "__main__":
    main()
