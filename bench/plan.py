#!/usr/bin/env python3
"""Measure how many labels a plan needs for plus or minus 3 points on recorded judges, beside people alone.

``--data DIR`` holds ``triviaqa_judges.jsonl.gz`` (9 judges and people on answers to TriviaQA, MIT) and
``xstest_refusal_judged.jsonl.gz`` (XSTest refusals, CC-BY-4.0). For each row, the smallest number of labels is searched
at which the mean half-width of the interval is at most 3 points; the coverage there is measured over ``--draws`` draws.
"people alone" and "at random" draw cases of the whole run; "planned" is what ``adjudge plan`` draws. ``live`` is how
many planned labels it takes until the interval that may be looked at after every label is narrow enough: the median of
``--paths`` runs, each with a random order. The exit status is 1 when a coverage is below 93 %, or when the best judge
of TriviaQA needs more than 40 % of the labels of people alone.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from adjudge.trust import (  # noqa: E402 - the source above comes first
    Allocation,
    allocate_labels,
    allocate_pilot,
    compute_live_rate,
    group_scores,
    score_signals,
)

WITHIN = 0.03
SEED = 20261122
MOST_SHARE = 0.4
"""Of the labels that people alone need, for the best judge of TriviaQA."""


def load_script(name: str) -> Any:
    """A script as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


SIMULATION = load_script("coverage_plan")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a compressed file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_triviaqa(folder: Path) -> list[dict[str, Any]]:
    """Cases with the label of people and the verdict of each judge."""
    rows = read_lines(folder / "triviaqa_judges.jsonl.gz")
    for row in rows:
        row["judges"] = row["judges"] if isinstance(row["judges"], dict) else ast.literal_eval(row["judges"])
    return [row for row in rows if row["human"] is not None]


def read_xstest(folder: Path) -> list[dict[str, Any]]:
    """Good is a prompt that was answered."""
    answered = "1_full_compliance"
    return [
        {
            "human": row["human_final"] == answered,
            "judges": {"GPT-4": row["gpt4_label"] == answered, "string match": row["strmatch_label"] == answered},
        }
        for row in read_lines(folder / "xstest_refusal_judged.jsonl.gz")
    ]


def find_counts(rows: Sequence[dict[str, Any]], judge: str, others: Sequence[str]) -> tuple[Any, Any]:
    """Sizes and good cases of the strata that the plan makes of a judge and the votes of others."""
    names = (judge, *others)
    kept = [row for row in rows if all(row["judges"].get(name) is not None for name in names)]
    scores = [
        score_signals(verdict=row["judges"][judge], votes=[row["judges"][name] for name in others]) for row in kept
    ]
    strata = np.array(group_scores(scores))
    truth = np.array([bool(row["human"]) for row in kept])
    return np.bincount(strata), np.bincount(strata, weights=truth).astype(int)


def find_needed(draw: Any, sizes: Any, good: Any, draws: int) -> tuple[int, float]:
    """The smallest number of labels that is enough in the mean, and the coverage there."""
    low, high = 60, int(sum(sizes))
    while high - low > 1:
        middle = (low + high) // 2
        narrow = SIMULATION.measure(draw, sizes, good, middle, draws=100, seed=SEED).half_width <= WITHIN
        low, high = (low, middle) if narrow else (middle, high)
    return high, SIMULATION.measure(draw, sizes, good, high, draws=draws, seed=SEED + 1).coverage


def find_live(sizes: Any, good: Any, labels: int, paths: int) -> int:
    """The median number of labels at which the live interval is narrow enough."""
    return int(np.median([follow(sizes, good, labels, np.random.default_rng([SEED, path])) for path in range(paths)]))


def follow(sizes: Any, good: Any, labels: int, random: np.random.Generator) -> int:
    """Label one path, a tenth more at a time: the live interval may be looked at whenever one likes."""
    heaps = [random.permutation(np.arange(size) < number).tolist() for size, number in zip(sizes, good, strict=True)]
    pilot = allocate_pilot(sizes.tolist(), labels)
    places = random.permutation(np.repeat(np.arange(len(sizes)), pilot)).tolist()
    draws = [(place, heaps[place].pop()) for place in places]
    allocations: list[Allocation] = []
    while len(draws) < sum(sizes):
        if compute_live_rate(sizes.tolist(), draws, allocations=allocations).half_width <= WITHIN:
            break
        counts = np.bincount([place for place, _ in draws], minlength=len(sizes))
        seen = np.bincount([place for place, value in draws if value], minlength=len(sizes))
        total = min(round(len(draws) * 1.1) + 1, int(sum(sizes)))
        more = allocate_labels(sizes.tolist(), total, labelled=counts.tolist(), good=seen.tolist())
        allocations.append(Allocation(first=len(draws), shares=tuple(item / sum(more) for item in more)))
        places = random.permutation(np.repeat(np.arange(len(sizes)), more)).tolist()
        draws += [(place, heaps[place].pop()) for place in places]
    return len(draws)


def list_rows(folder: Path) -> list[tuple[str, str, str, tuple[str, ...], list[dict[str, Any]]]]:
    """List what is measured: a name, the data, a judge, the votes beside it, and the cases."""
    trivia, refusals = read_triviaqa(folder), read_xstest(folder)
    judges = sorted({name for row in trivia for name in row["judges"]})
    rows = [(f"triviaqa, {name}", "triviaqa", name, (), trivia) for name in judges]
    small = ("Mistral-7B", "Llama-7B", "Llama3-8B", "Llama-13B", "Gemma-2B")
    rows.append(("triviaqa, GPT-4 and Llama3-70B", "triviaqa", "GPT-4", ("Llama3-70B",), trivia))
    rows.append(("triviaqa, GPT-4 and 5 small votes", "triviaqa", "GPT-4", small, trivia))
    rows.append(("triviaqa, Mistral-7B and 4 small votes", "triviaqa", "Mistral-7B", small[1:], trivia))
    rows += [(f"xstest, {name}", "xstest", name, (), refusals) for name in ("GPT-4", "string match")]
    return [*rows, ("xstest, GPT-4 and string match", "xstest", "GPT-4", ("string match",), refusals)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--paths", type=int, default=15)
    given = parser.parse_args()
    print("| judge | people alone | at random | planned | of people alone | coverage | live |\n" + "|---" * 7 + "|")
    shares, missed = {}, []
    for name, data, judge, others, rows in list_rows(given.data):
        sizes, good = find_counts(rows, judge, others)
        alone, _ = find_needed(SIMULATION.draw_random, [sizes.sum()], [good.sum()], given.draws)
        random, _ = find_needed(SIMULATION.draw_random, sizes, good, given.draws)
        planned, coverage = find_needed(SIMULATION.draw_planned, sizes, good, given.draws)
        live = find_live(sizes, good, planned, given.paths)
        if data == "triviaqa" and not others:
            shares[name] = planned / alone
        if coverage < SIMULATION.LEAST:
            missed.append(name)
        shown = f"{alone:,} | {random:,} | {planned:,} | {planned / alone:.0%} | {coverage:.3f} | {live:,}"
        print(f"| {name} | {shown} |", flush=True)
    best = min(shares, key=shares.__getitem__)
    print(f"best judge: {best}, {shares[best]:.0%} of the labels of people alone")
    print("coverage missed: " + ", ".join(missed) if missed else "every coverage is kept")
    return 1 if missed or shares[best] > MOST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
