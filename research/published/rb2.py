"""RewardBench 2 with repeated scores of four answers, of which the first is right (arXiv 2604.13717)."""

from __future__ import annotations

from statistics import fmean

from adjudge import trust
from published.figures import Data, Row

PRICES = {"full": (2.5, 15.0), "mini": (0.75, 4.5), "nano": (0.2, 1.25)}
"""Dollars for a million tokens, in and out."""


def compute(expected: Row, data: Data) -> Row:
    """The figures of each file, judge and number of scores, and of the cascade from one judge to another."""
    cascade = expected["cascade_mini_to_full"]
    rows = load(data, cascade["file"])
    limits = [row["escalate_if_mini_margin_<="] for row in cascade["rows"]]
    return {
        "rows": [compute_row(load(data, row["file"]), row) for row in expected["rows"]],
        "cascade_mini_to_full": {"rows": [compute_cascade(rows, limit) for limit in limits]},
    }


def load(data: Data, name: str) -> list[Row]:
    """The rows of a file, which is named after its temperature."""
    return data.load_rows(f"rb2_scores_{name.replace('t0.0', 't0p0')}")


def average(row: Row, slot: str, k: int) -> list[float] | None:
    """The mean of each answer's first k scores; ``None`` if an answer has none."""
    given = [[score for score in scores[:k] if score is not None] for scores in row[f"{slot}_scores"]]
    return [fmean(scores) for scores in given] if all(given) else None


def compute_row(rows: list[Row], expected: Row) -> Row:
    """One judge, with its first k scores. A tie at the top is wrong."""
    slot, k = expected["slot"], expected["k"]
    scored = [(row["subset"], means) for row in rows if (means := average(row, slot, k))]
    right = [means[0] > max(means[1:]) for _, means in scored]
    tied = [means.count(max(means)) > 1 for _, means in scored]
    drawn = [1 / means.count(max(means)) if means[0] == max(means) else 0.0 for _, means in scored]
    share = trust.Share(count=sum(right), of=len(right)).rate or 0.0
    cost = fmean(compute_cost(row, slot, k) for row in rows)
    subsets = sorted({subset for subset, _ in scored})
    places = {subset: [at for at, (name, _) in enumerate(scored) if name == subset] for subset in subsets}
    found: Row = {
        "n": len(scored),
        "correct": sum(right),
        "tied_top": sum(tied),
        "accuracy": round(100 * share, 2),
        "accuracy_if_top_ties_broken_at_random": round(100 * fmean(drawn), 2),
        "published": {
            "n": len(scored),
            "accuracy": round(100 * share, 1),
            "cost_per_example_usd": round(cost, 4),
        },
        "by_subset": {
            subset: {"n": len(at), "correct": sum(right[one] for one in at), "tied": sum(tied[one] for one in at)}
            for subset, at in places.items()
        },
        "cost_per_example_usd": round(cost, 5),
    }
    if "bootstrap95_seed42" in expected:
        limits = trust.find_bootstrap_interval(right, seed=42, resamples=10_000)
        found["bootstrap95_seed42"] = [round(limit, 4) for limit in limits]
    return found


def compute_cost(row: Row, slot: str, k: int) -> float:
    """Compute what one example costs: its input once, and k of eight outputs."""
    into, out = PRICES[slot]
    tokens = row["cost"]
    return (tokens[f"{slot}_input_tokens"] * into + tokens[f"{slot}_output_tokens"] * out * k / 8) / 1e6


def compute_cascade(rows: list[Row], limit: float) -> Row:
    """Mini decides unless its best two answers are too close; then full does."""
    right, escalated = [], 0
    for row in rows:
        mini, full = average(row, "mini", 8), average(row, "full", 8)
        if mini is None or full is None:
            continue
        best = sorted(mini)[-2:]
        asked = best[1] - best[0] <= limit
        escalated += asked
        means = full if asked else mini
        right.append(means[0] > max(means[1:]))
    share = trust.Share(count=sum(right), of=len(right)).rate or 0.0
    return {"n": len(right), "escalated": escalated, "accuracy": round(100 * share, 2)}
