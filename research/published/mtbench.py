"""MT-bench: GPT-4 on pairs in both orders, and on single answers (arXiv 2306.05685)."""

from __future__ import annotations

import re
from collections import Counter
from statistics import fmean

from adjudge import trust
from published.figures import Data, Row

NAMES = {"first": "model_1", "second": "model_2", "tie": "tie", None: "error"}


def compute(_expected: Row, data: Data) -> Row:
    """The figures of both files."""
    pairs: dict[tuple[int, int], dict[str, str | None]] = {}
    for row in data.load_rows("mtbench_pair_raw"):
        pairs.setdefault((row["question_id"], row["turn"]), {})[row["order"]] = read_side(row["raw"], row["order"])
    forward, backward = ([orders[order] for orders in pairs.values()] for order in ("AB", "BA"))
    flips = trust.make_order_flips(forward, backward)
    outcomes = Counter(f"{NAMES[one]}|{NAMES[other]}" for one, other in zip(forward, backward, strict=True))
    return {
        "pair": {
            "n": flips.pairs,
            "outcomes_g1_g2": dict(outcomes),
            "consistent": trust.make_confusion(forward, backward).agreed,
            "position_conflicts": flips.conflicts,
            "conflicts_favouring_first_shown": flips.favouring_first,
            "conflicts_favouring_second_shown": flips.favouring_second,
        },
        "single": compute_single(data.load_rows("mtbench_single_raw")),
    }


def read_side(text: str, order: str) -> str | None:
    """The item's side that won; [[A]] is looked for before [[B]]."""
    shown = next((letter for letter in "ABC" if f"[[{letter}]]" in text), None)
    sides = {"A": "first", "B": "second"} if order == "AB" else {"A": "second", "B": "first"}
    return sides.get(shown or "", "tie" if shown else None)


def compute_single(rows: list[Row]) -> Row:
    """The means of the scores of single answers."""
    scores = {1: [], 2: []}
    for row in rows:
        found = re.search(r"\[\[(\d+\.?\d*)\]\]", row["raw"]) or re.search(r"\[(\d+\.?\d*)\]", row["raw"])
        scores[row["turn"]].append(float(found.group(1)))
    return {
        "n": len(rows),
        "mean": round(fmean(scores[1] + scores[2]), 4),
        "mean_turn1": round(fmean(scores[1]), 4),
        "mean_turn2": round(fmean(scores[2]), 4),
    }
