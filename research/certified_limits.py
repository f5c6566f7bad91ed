#!/usr/bin/env python3
"""Measure how often a certificate's lower limit reaches a bar that the judge does not exceed: at one look, and at any.

Each draw labels cases one after the other, of a judge whose share of right verdicts is exactly the bar, and looks
after every fifth. The exit status is 1 when a limit for every look reaches the bar in more than 5 % of the draws, or a
limit for one look at the last label in more than 3.5 %. ``--write`` puts the table into docs/certificates.md.
"""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
from measured_page import MeasuredPage, write_rows

from adjudge.measurement.certification import certify_share
from adjudge.trust.intervals import LEVEL, Estimate, find_interval

PAGE = MeasuredPage("certificates.md", "certified_limits.py")
SEED, LABELS, FIRST, STEP = 20261128, 300, 10, 5
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
HEAD = ("judge is right in", "one look at 300", "every look, looked at 59 times", "one-look limits, looked at 59 times")
MOST_ONCE, MOST_EVERY = 0.035, 0.05


@cache
def find_low(right: int, labels: int, *, every: bool) -> float:
    """The lower limit that a certificate has for so many right verdicts."""
    low, high = find_interval(right, labels)
    share = certify_share(Estimate(value=right / labels, of=labels, low=low, high=high), LEVEL if every else None)
    return 0.0 if share is None or share.low is None else share.low


def measure(rng: random.Random, bar: float, draws: int) -> tuple[float, float, float]:
    """The shares of draws in which the bar is reached: at the one look, at any of many, and at any by mistake."""
    once = every = mistaken = 0
    for _ in range(draws):
        right, by_every, by_once = 0, False, False
        for labels in range(1, LABELS + 1):
            right += rng.random() < bar
            if labels >= FIRST and labels % STEP == 0:
                by_every |= find_low(right, labels, every=True) >= bar
                by_once |= find_low(right, labels, every=False) >= bar
        once += find_low(right, LABELS, every=False) >= bar
        every, mistaken = every + by_every, mistaken + by_once
    return once / draws, every / draws, mistaken / draws


def main() -> None:
    """Draw, print, and say whether the bounds are kept."""
    options = PAGE.make_parser(__doc__, draws=2_000).parse_args()
    rng = random.Random(SEED)
    figures = {bar: measure(rng, bar, options.draws) for bar in SHARES}
    rows = [[f"{100 * bar:g} %", *[f"{100 * share:.1f} %" for share in shares]] for bar, shares in figures.items()]
    common.print_table(HEAD, rows)
    if options.write:
        PAGE.write(write_rows([HEAD, ["---"] * len(HEAD), *rows]))
    kept = all(once <= MOST_ONCE and every <= MOST_EVERY for once, every, _ in figures.values())
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
