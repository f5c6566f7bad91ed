#!/usr/bin/env python3
"""Measure how often a gate's monitor raises a false alarm, and after how many audits it finds a promise that is broken.

Each draw answers audits one after the other, and the test of ``adjudge.trust.ShareTest`` is looked at after each. Some
draws begin with 1,000 good audits, of which 2 % are bad: a judge that turns bad later. With ``--data DIR``, which holds
``triviaqa_judges.jsonl.gz`` (UMass-Meta-LLM-Eval/llm_eval), also on recorded judges: audits of what a judge passed of
one answering system's traffic, and then of another's. The exit status is 1 when there are more false alarms than 5 % in
4,000 audits at exactly the promise, or the median of the audits to an alarm is above 25 at 33 % bad or 130 at 19 %.
``--write`` puts the tables into docs/monitor.md.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
import suite
from measured_page import MeasuredPage, add_data, write_rows

sys.path.insert(0, str(suite.SOURCE))
from real_judges import read_rows

from adjudge.trust import ShareTest

PAGE = MeasuredPage("monitor.md", "monitor.py")
SEED, MOST, CONFIDENCE, PROMISE = 20261128, 4_000, 0.95, 0.1
GOOD, GOOD_AUDITS = 0.02, 1_000
"""The share of bad ones of a judge that turns bad later, and for how many audits it is good."""
BEFORE, AFTER, FIRST = "gpt-4t", "llama2-13b-chat", 200
"""Two answering systems: whose traffic is audited first, for how many audits, and whose comes then."""

Row = dict[str, Any]


def main() -> None:
    """Draw, print, and say whether the bounds are kept."""
    parser = PAGE.make_parser(__doc__, draws=1_000)
    add_data(parser, required=False)
    options = parser.parse_args()
    rng = random.Random(SEED)
    rows = [measure(rng, share, options.draws) for share in (0.05, PROMISE, 0.115, 0.15, 0.19, 0.33, 0.5)]
    turned = [measure(rng, share, options.draws // 4, after_good=True) for share in (0.19, 0.33, 0.5)]
    recorded = [] if options.data is None else measure_recorded(rng, options.data, options.draws // 4)
    common.print_table(HEAD, [show(row) for row in rows])
    common.print_table(HEAD, [show(row) for row in turned])
    if recorded:
        common.print_table(RECORDED_HEAD, [show(row) for row in recorded])
    if options.write:
        write_page(rows, turned, recorded, options.draws)
    by_share = {row["bad"]: row for row in rows}
    figures = {
        "false alarms": by_share[PROMISE]["alarms"],
        "median at 33 %": by_share[0.33]["median"],
        "median at 19 %": by_share[0.19]["median"],
    }
    met = figures["false alarms"] <= 0.05 and figures["median at 33 %"] <= 25 and figures["median at 19 %"] <= 130
    common.print_verdict("monitor", figures, met=met)


def find_alarm(test: ShareTest, draw: Callable[[], bool]) -> int | None:
    """Return after how many further audits there is an alarm; ``None`` if there is none in ``MOST``."""
    for number in range(1, MOST + 1):
        test = test.add(is_bad=draw())
        if test.is_broken(CONFIDENCE):
            return number
    return None


def summarise(alarms: Sequence[int | None]) -> Row:
    """Say how many alarms there are, and after how many audits half of all draws have one."""
    half = median([MOST + 1 if alarm is None else alarm for alarm in alarms])
    share = sum(alarm is not None for alarm in alarms) / len(alarms)
    return {"alarms": share, "median": int(half) if half <= MOST else f"over {MOST:,}"}


def measure(rng: random.Random, share: float, draws: int, *, after_good: bool = False) -> Row:
    """Measure the alarms where a share is bad, from the first audit on or after many good ones."""
    alarms = []
    for _ in range(draws):
        test = ShareTest(promise=PROMISE)
        for _ in range(GOOD_AUDITS if after_good else 0):
            test = test.add(is_bad=rng.random() < GOOD)
        alarms.append(find_alarm(test, lambda: rng.random() < share))
    return {"bad": share, **summarise(alarms)}


def measure_recorded(rng: random.Random, folder: Path, draws: int) -> list[Row]:
    """Measure the alarms of recorded judges when the traffic becomes that of another answering system."""
    rows = [row for row in read_rows(folder / "triviaqa_judges.jsonl.gz") if row["human"] is not None]
    table = []
    for judge in rows[0]["judges"]:
        before, after = (list_bad(rows, judge, system) for system in (BEFORE, AFTER))
        if len(before) < FIRST or len(after) < FIRST:
            continue
        early, alarms = 0, []
        for _ in range(draws):
            test = ShareTest(promise=PROMISE)
            for _ in range(FIRST):
                test = test.add(is_bad=rng.choice(before))
            early += test.is_broken(CONFIDENCE)
            if not test.is_broken(CONFIDENCE):
                alarms.append(find_alarm(test, partial(rng.choice, after)))
        shares = {"before": sum(before) / len(before), "after": sum(after) / len(after)}
        table.append({"judge": judge, **shares, "early": early / draws, **summarise(alarms or [None])})
    return sorted(table, key=lambda row: row["after"])


def list_bad(rows: Sequence[Row], judge: str, system: str) -> list[bool]:
    """List whether each answer of a system that a judge passed is bad, as people say."""
    return [not row["human"] for row in rows if row["exam_taker"] == system and row["judges"][judge] is True]


# ---------------------------------------------------------------- for the page

HEAD = ["bad", "alarms", "median"]
RECORDED_HEAD = ["judge", "before", "after", "early", "alarms", "median"]


def show(row: Row) -> list[str]:
    """A row of a table."""
    return [f"{100 * value:.1f} %" if isinstance(value, float) else str(value) for value in row.values()]


TEXT = """Answers to audits are drawn one after the other, {draws:,} times for each row, with a promise of 10 % at a
confidence of 95 %, and the test is looked at after each. The share of draws with an alarm in {most:,} audits, and the
number of audits after which half of the draws have one:

<!-- not run: needs data that are not part of the repository -->
```sh
nice -n 10 .venv/bin/python research/monitor.py --data DIR --write
```

`DIR` holds the recorded judges: [where they come from](reproductions.md#where-the-rows-come-from).

| bad among what is let through | alarm in {most:,} audits | median audits to the alarm |
|---|---|---|
{rows}

The same after {good:,} audits of a judge that was good, with 2 % bad; the audits are counted from the change:

| bad since the change | alarm in {most:,} audits | median audits to the alarm |
|---|---|---|
{turned}
"""

RECORDED = """
On recorded judges of TriviaQA: {first} audits of what each judge passed of the answers of {before}, and then of those
of {after}. *Early* is the share of draws with an alarm before the change. Of the judges that break the
promise after it, each is found; the two that keep it raise hardly any alarm:

| judge | bad before | bad after | early | alarm after the change | median audits to the alarm |
|---|---|---|---|---|---|
{recorded}
"""


def write_page(rows: list[Row], turned: list[Row], recorded: list[Row], draws: int) -> None:
    """Put the tables between the two marks of the page."""
    tables = {
        name: write_rows(map(show, some)) for name, some in (("rows", rows), ("turned", turned), ("recorded", recorded))
    }
    text = TEXT.format(draws=draws, most=MOST, good=GOOD_AUDITS, **tables)
    text += RECORDED.format(first=FIRST, before=BEFORE, after=AFTER, **tables) if recorded else ""
    PAGE.write(text)


if __name__ == "__main__":
    main()
