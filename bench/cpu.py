#!/usr/bin/env python3
"""CPU per judgement: what adjudge adds to the HTTP client below it, and what another library takes.

Zero latency, 64 in flight, 2,000 judgements, one criterion, median of 5 interleaved rounds. The bare client sends the
very bytes adjudge sends (recorded first), again and again, and gets the very reply adjudge gets, which it does not
decode. Targets: at most 2.0 times the bare client, and at most a sixth (aim: a tenth) of autoevals.
"""

from __future__ import annotations

import argparse

import common
import suite

MOST, SHARE, AIM = 2.0, 1 / 6, 1 / 10


def main() -> None:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--criteria", type=int, default=1)
    options = parser.parse_args()
    criteria = ("--criteria", str(options.criteria))
    with suite.run_mock() as port, suite.record_body(suite.Contender("", "adjudge_", "token", criteria), port) as body:
        contenders = [
            suite.Contender("bare aiohttp", "floor", "post", ("--body", body)),
            suite.Contender("adjudge", "adjudge_", "token", criteria),
            suite.Contender("adjudge, no token", "adjudge_", "no-token", criteria),
            suite.Contender("adjudge, text", "adjudge_", "text", criteria),
            suite.Contender("adjudge, chain of 2", "adjudge_", "chain", criteria),
            suite.Contender("autoevals", "autoevals_", "direct", environment="autoevals"),
        ]
        found = suite.run_rounds(contenders, port, "--n", str(options.n), "--c", "64", rounds=options.rounds)
    show(found, options.criteria)


def show(found: dict[str, list[dict[str, float]]], criteria: int) -> None:
    """The table, and the verdict."""
    cost = {name: common.median(rows, "cpu_us") for name, rows in found.items()}
    floor, other = cost["bare aiohttp"], cost.get("autoevals")
    rows = []
    for name, value in cost.items():
        every = sorted(row["cpu_us"] for row in found[name])
        share = f"{other / value:.1f}" if other else "-"
        rows.append([name, f"{value:.0f}", f"{every[0]:.0f}-{every[-1]:.0f}", f"{value / floor:.2f}", share])
    common.print_table(["contender", "CPU us", "range", "x bare", "autoevals / it"], rows)
    ours = cost["adjudge"]
    met = ours <= MOST * floor and (other is None or ours <= SHARE * other)
    figures = {
        "criteria": criteria,
        "cpu_us": {name: round(value, 1) for name, value in cost.items()},
        "x_bare": round(ours / floor, 3),
        "x_bare_no_token": round(cost["adjudge, no token"] / floor, 3),
        "share_of_autoevals": round(ours / other, 3) if other else None,
        "aim_met": bool(other and ours <= AIM * other),
    }
    common.print_verdict("cpu", figures, met=met)


if __name__ == "__main__":
    main()
