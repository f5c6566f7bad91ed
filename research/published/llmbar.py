"""LLMBar: pairs of answers in both orders, three judges with up to fifteen prompts (arXiv 2310.07641)."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from adjudge import trust
from published.figures import Data, Row

Winners = dict[str, dict[str, int | None]]
"""For each item the winner in the orders AB and BA; ``None`` could not be read."""


class Recorded(NamedTuple):
    """The labels of the items, and the winners by judge and prompt."""

    labels: dict[str, int]
    winners: dict[tuple[str, str], Winners]


def compute(expected: Row, data: Data) -> Row:
    """The figures of every subset, judge and prompt, and of panels of three judges."""
    recorded = read(data)
    return {
        "rows": [compute_row(recorded, row["subset"], row["judge"], row["prompt"]) for row in expected["rows"]],
        "majority_panels_AB_order": [
            compute_panel(recorded, row["subset"], row["judges"], row["prompt"])
            for row in expected["majority_panels_AB_order"]
        ],
    }


def read(data: Data) -> Recorded:
    """Read what was recorded; the verdict of Swap prompts is the synthesis, where there is one."""
    winners: dict[tuple[str, str], Winners] = {}
    rows = sorted(data.load_rows("llmbar_pairwise"), key=lambda row: row["phase"] == "synthesis")
    for row in rows:
        winners.setdefault((row["judge"], row["prompt"]), {}).setdefault(row["item_id"], {})[row["order"]] = row[
            "winner"
        ]
    scores: dict[tuple[str, str], dict[str, dict[int, int | None]]] = {}
    for row in data.load_rows("llmbar_ratings"):
        items = scores.setdefault((row["judge"], row["prompt"]), {})
        items.setdefault(row["item_id"], {})[row["output"]] = row["score"]
    for key, items in scores.items():
        winners[key] = {item: compare_scores(given[1], given[2]) for item, given in items.items()}
    return Recorded({row["item_id"]: row["label"] for row in data.load_rows("llmbar_items")}, winners)


def compare_scores(first: int | None, second: int | None) -> dict[str, int | None]:
    """The source's rule: equal scores go to the answer shown second, a missing one to the answer shown first."""
    if first is None or second is None:
        return {"AB": 1, "BA": 2}
    return {"AB": 1 if first > second else 2, "BA": 2 if second > first else 1}


def compute_row(recorded: Recorded, subset: str, judge: str, prompt: str) -> Row:
    """One judge with one prompt on one subset; a verdict that could not be read is a category of its own."""
    given = recorded.winners[judge, prompt]
    items = [item for item in given if item.rpartition("/")[0] == subset]
    gold = [recorded.labels[item] for item in items]
    forward, backward = ([given[item][order] for item in items] for order in ("AB", "BA"))
    tables = [trust.make_confusion(side, gold) for side in (forward, backward)]
    between = trust.make_confusion(forward, backward)
    both = sum(one == other == label for one, other, label in zip(forward, backward, gold, strict=True))
    shares = [trust.compute_accuracy(table) for table in tables]
    percent = {
        "acc_AB": shares[0],
        "acc_BA": shares[1],
        "acc_avg": sum(shares) / 2,
        "both_correct": trust.Share(count=both, of=len(items)).rate or 0.0,
        "positional_agreement": trust.compute_accuracy(between),
    }
    printed = {name: round(100 * share, 4) for name, share in percent.items()}
    return {
        "n": len(items),
        "published": printed,
        "recomputed": printed,
        "first_position_votes": forward.count(1) + backward.count(2),
        "second_position_votes": forward.count(2) + backward.count(1),
        "unparsed": forward.count(None) + backward.count(None),
        "kappa_vs_gold_AB": round(trust.compute_cohen_kappa(tables[0]), 4),
        "kappa_vs_gold_BA": round(trust.compute_cohen_kappa(tables[1]), 4),
        "kappa_between_orders": round(trust.compute_cohen_kappa(between), 4),
        "wilson95_acc_AB": [round(100 * limit, 2) for limit in trust.find_interval(tables[0].agreed, len(items))],
    }


def compute_panel(recorded: Recorded, subset: str, judges: list[str], prompt: str) -> Row:
    """The majority of three judges, in the order AB."""
    given = [recorded.winners[judge, prompt] for judge in judges]
    items = [item for item in given[0] if item.rpartition("/")[0] == subset]
    votes = [Counter(side[item]["AB"] for side in given) for item in items]
    winners = [max((1, 2), key=vote.__getitem__) if vote[1] != vote[2] else None for vote in votes]
    table = trust.make_confusion(winners, [recorded.labels[item] for item in items])
    return {
        "n": table.items,
        "majority_correct": table.agreed,
        "undecided": winners.count(None),
        "unanimous": sum(max(vote[1], vote[2]) == len(judges) for vote in votes),
        "accuracy": round(100 * trust.compute_accuracy(table), 2),
    }
