#!/usr/bin/env python3
"""Check that corrected rates hold for recorded judges: 200 labels, 500 draws, truth known for every case.

``--data DIR`` holds ``triviaqa_judges.jsonl.gz`` (UMass-Meta-LLM-Eval/llm_eval, 9 judges) and
``xstest_refusal_judged.jsonl.gz`` (paul-rottger/exaggerated-safety, GPT-4 and a string match; good is full compliance).
Each draw takes labels of random cases without replacement, and gives them to the functions that a report uses. The
exit status is 1 when an interval of adjudge covers the rate of people in less than 93 % of the draws (less what chance
explains with fewer than 500). ``--write`` puts the tables into docs/coverage.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
import numpy as np
import suite
from measured_page import MeasuredPage, add_data, write_rows

sys.path.insert(0, str(suite.SOURCE))

from adjudge.trust import GroupCounts, Heap, compute_sample_p_value, find_worth
from adjudge.trust.corrected_rate import GUARD
from adjudge.trust.double_sampling import compute_design_effects, compute_double_sampling, compute_shrink

PAGE = MeasuredPage("coverage.md", "real_judges.py")
LEAST, SEED = 0.93, 20261122
GROUPS = (15, 30, 60)
OFTENER = 4
"""Times as many draws of groups, whose coverage is nearer to the bound."""
Z = 1.959963984540054

Array = np.ndarray


@dataclass
class Recorded:
    """The verdicts of one judge and of people on the same cases."""

    name: str
    good: Array
    passed: Array
    group: Array | None = None

    def count(self) -> Array:
        """Good passed, good failed, bad passed, bad failed."""
        return np.bincount(2 * ~self.good + ~self.passed, minlength=4)

    def count_groups(self) -> Array:
        """The same for each group, a row each."""
        assert self.group is not None
        names, places = np.unique(self.group, return_inverse=True)
        cells = places * 4 + 2 * ~self.good + ~self.passed
        return np.bincount(cells, minlength=4 * len(names)).reshape(-1, 4)


def main() -> None:
    """Draw, print, and say whether the bound is kept."""
    parser = PAGE.make_parser(__doc__, draws=500)
    add_data(parser)
    parser.add_argument("--labels", type=int, default=200)
    options = parser.parse_args()
    least = LEAST - 3 * math.sqrt(LEAST * (1 - LEAST) / options.draws) * (options.draws < 500)
    judges = [*read_triviaqa(options.data), *read_xstest(options.data)]
    alone = [measure(item, options.labels, options.draws) for item in judges]
    grouped = [measure_groups(item, OFTENER * options.draws) for item in judges if item.group is not None]
    common.print_table(HEAD, [show(row) for row in alone])
    common.print_table(GROUP_HEAD, [show(row) for row in grouped])
    seen = [row[key] for row in alone for key in ("run", "system")] + [row[key] for row in grouped for key in GROUPS]
    if options.write:
        write_page(alone, grouped, options)
    figures: dict[str, Any] = {
        "smallest": round(min(seen), 3),
        "naive failed": sum(row["naive"] < LEAST for row in alone),
    }
    common.print_verdict(
        "real_judges", figures | {"worth": {row["judge"]: row["worth"] for row in alone}}, met=min(seen) >= least
    )


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_triviaqa(folder: Path) -> Iterator[Recorded]:
    """The nine judges, on the answers that people and they decided."""
    rows = list(read_rows(folder / "triviaqa_judges.jsonl.gz"))
    for name in rows[0]["judges"]:
        kept = [row for row in rows if row["human"] is not None and row["judges"][name] is not None]
        yield Recorded(
            f"{name} (TriviaQA)",
            np.asarray([row["human"] for row in kept]),
            np.asarray([row["judges"][name] for row in kept]),
            np.asarray([row["question_id"] for row in kept]),
        )


def read_xstest(folder: Path) -> Iterator[Recorded]:
    """Two judges of whether an answer complies."""
    rows = list(read_rows(folder / "xstest_refusal_judged.jsonl.gz"))
    good = np.asarray([row["human_final"] == "1_full_compliance" for row in rows])
    for name, key in (("GPT-4", "gpt4_label"), ("string match", "strmatch_label")):
        yield Recorded(f"{name} (XSTest)", good, np.asarray([row[key] == "1_full_compliance" for row in rows]))


def measure(judge: Recorded, labels: int, draws: int) -> dict[str, Any]:
    """Coverage and width with this many labels of random cases, and what they are worth."""
    rng = np.random.default_rng(SEED)
    whole = judge.count()
    number, truth = int(whole.sum()), float(judge.good.mean())
    mine = rng.multivariate_hypergeometric(whole, labels, size=draws).astype(float)
    good, every, cases = mine[:, :2], mine[:, :2] + mine[:, 2:], (whole[:2] + whole[2:]).astype(float)
    row: dict[str, Any] = {"judge": judge.name, "people": truth, "passed": float(judge.passed.mean())}
    reach = Z * math.sqrt(row["passed"] * (1 - row["passed"]) / number)
    row["naive"] = float(abs(row["passed"] - truth) <= reach)
    for target in ("run", "system"):
        _, low, high = compute_double_sampling(good, every, cases, target=target)  # type: ignore[arg-type]
        row[target] = float(np.mean((low <= truth) & (truth <= high)))
        row[f"{target} width"] = float(np.mean(high - low))
    row["worth"] = find_worth(truth, row["run width"], cases=number)
    row["worth of system"] = find_worth(truth, row["system width"], cases=number, target="system")
    row["guard"] = np.mean([is_internal(whole, draw) for draw in mine.astype(int)])
    return row


def is_internal(whole: Array, mine: Array) -> bool:
    """Return True if the program takes these random labels for what they are."""
    heaps = [
        Heap(
            verdict=verdict,  # type: ignore[arg-type]
            cases=int(whole[place] + whole[place + 2]),
            good=int(mine[place]),
            bad=int(mine[place + 2]),
        )
        for place, verdict in enumerate(("passed", "failed"))
    ]
    return compute_sample_p_value(heaps) >= GUARD


def measure_groups(judge: Recorded, draws: int) -> dict[str, Any]:
    """Coverage with whole questions labelled, with all their answers; groups ignored beside it."""
    rng = np.random.default_rng(SEED)
    table = judge.count_groups().astype(float)
    goods, every = table[:, :2], table[:, :2] + table[:, 2:]
    cases, truth = every.sum(axis=0), float(judge.good.mean())
    row: dict[str, Any] = {"judge": judge.name}
    for number in GROUPS:
        chosen = rng.permuted(np.tile(np.arange(len(table)), (draws, 1)), axis=1)[:, :number]
        good, labelled = goods[chosen], every[chosen]
        deff, _ = compute_design_effects(good, labelled, cases)
        for name, shrink in ((number, compute_shrink(deff, number)), (f"{number} ignored", 1.0)):
            _, low, high = compute_double_sampling(good.sum(axis=1), labelled.sum(axis=1), cases, shrink=shrink)
            row[name] = float(np.mean((low <= truth) & (truth <= high)))
        row[f"{number} deff"] = float(np.mean(deff))
        row[f"{number} guard"] = np.mean(
            [is_internal_grouped(cases, good[draw], labelled[draw]) for draw in range(min(draws, 200))]
        )
    return row


def is_internal_grouped(cases: Array, good: Array, labelled: Array) -> bool:
    """Return True if the program takes random questions for what they are."""
    heaps = [
        Heap(
            verdict=verdict,  # type: ignore[arg-type]
            cases=int(cases[place]),
            good=int(good[:, place].sum()),
            bad=int((labelled - good)[:, place].sum()),
        )
        for place, verdict in enumerate(("passed", "failed"))
    ]
    groups = GroupCounts(good=good, bad=labelled - good, unresolved=np.zeros_like(good))
    return compute_sample_p_value(heaps, groups=groups) >= GUARD


HEAD = [
    "judge",
    "people pass",
    "judge passes",
    "naive",
    "run",
    "width",
    "system",
    "width",
    "worth",
    "of system",
    "internal",
]
GROUP_HEAD = ["judge", *(f"{name} {number}" for number in GROUPS for name in ("groups", "ignored", "deff", "internal"))]


def show(row: dict[str, Any]) -> list[str]:
    """A row of either table."""
    return [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()]


TEXT = """## Recorded judges

{labels} labels of random cases, {draws} draws of each judge. Verdicts and the labels of people for every case are
recorded: [where they come from](reproductions.md#where-the-rows-come-from). *Naive* says whether the judge's own 95 %
interval contains the rate of people. *Worth* is how many labels people alone would need for an interval as narrow.

<!-- not run: needs data that are not part of the repository -->
```sh
nice -n 10 .venv/bin/python research/real_judges.py --data DIR --write
```

| judge | people pass | judge passes | naive holds | coverage, run | system | {labels} labels: worth (run) | (system) |
|---|---|---|---|---|---|---|---|
{alone}

The naive rate is wrong for {failed} of {judges} judges, with any draw. At least {guard:.3f} of the random samples
of each judge pass the check that they are random (Fisher's exact test).

Whole questions of TriviaQA, labelled with all 8 answers, {grouped_draws:,} draws. Coverage of the rate of the run;
in brackets with the groups ignored:

| judge | {groups} |
|---|---|---|---|
{grouped}

At least {taken:.3f} of these samples pass the check.
"""


def write_page(alone: list[dict[str, Any]], grouped: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Put both tables between the two marks of the page."""
    text = TEXT.format(
        labels=options.labels,
        draws=options.draws,
        grouped_draws=OFTENER * options.draws,
        judges=len(alone),
        alone=write_rows(map(render, alone)),
        failed=sum(not row["naive"] for row in alone),
        guard=min(row["guard"] for row in alone),
        groups=" | ".join(f"{number} questions" for number in GROUPS),
        grouped=write_rows(map(render_groups, grouped)),
        taken=min(row[f"{number} guard"] for row in grouped for number in GROUPS),
    )
    PAGE.write(text)


def render(row: dict[str, Any]) -> list[str]:
    """A judge's row on the page."""
    shares = [f"{row[name]:.3f}" for name in ("people", "passed")]
    covered = [f"{row[name]:.3f}" for name in ("run", "system")]
    worth = [f"**{row['worth']:,}**", f"{row['worth of system']:,}"]
    return [row["judge"], *shares, "yes" if row["naive"] else "no", *covered, *worth]


def render_groups(row: dict[str, Any]) -> list[str]:
    """A judge's row of whole questions."""
    entries = [f"{row[number]:.3f} ({row[f'{number} ignored']:.3f})" for number in GROUPS]
    return [row["judge"], *entries]


if __name__ == "__main__":
    main()
