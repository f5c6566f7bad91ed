"""JudgeBench: pairs of answers in both orders with objective labels (arXiv 2410.12784)."""

from __future__ import annotations

from collections.abc import Iterable

from adjudge import trust
from published.figures import Data, Row

SIDES = {"A>B": "first", "B>A": "second", "A=B": "tie", None: None}


def compute(expected: Row, data: Data) -> Row:
    """The figures of each judge."""
    items = {row["pair_id"]: row for row in data.load_rows("judgebench_items")}
    rows = [{**items[row["pair_id"]], **row} for row in data.load_rows("judgebench_llm_judgments")]
    rows += data.load_rows("judgebench_reward_models")
    return {"rows": [compute_judge([row for row in rows if row["judge"] == one["judge"]]) for one in expected["rows"]]}


def compute_judge(rows: list[Row]) -> Row:
    """One judge: a pair is right if the votes of both orders, +1, -1 or 0, add up to more than 0."""
    pairs: dict[str, dict[str, Row]] = {}
    for row in rows:
        pairs.setdefault(row["pair_id"], {})[row["order"]] = row
    label = {pair: orders["AB"]["label"] for pair, orders in pairs.items()}
    right = {pair: sum(vote(row) for row in orders.values()) > 0 for pair, orders in pairs.items()}
    kinds = {"overall": list(pairs)}
    for pair, orders in pairs.items():
        kinds.setdefault(orders["AB"]["category"], []).append(pair)
    sides = [[SIDES[orders[order]["verdict"]] for orders in pairs.values()] for order in ("AB", "BA")]
    gold = [SIDES[label[pair]] for pair in pairs]
    shown = [SIDES[row["verdict_shown"]] for row in rows]
    single = [trust.compute_accuracy(trust.make_confusion(side, gold)) for side in sides]
    both = trust.make_confusion(sides[0], sides[1])
    return {
        "n": len(pairs),
        "recomputed_acc": {kind: round(100 * share(right[pair] for pair in of), 2) for kind, of in kinds.items()},
        "n_per_category": {kind: len(of) for kind, of in kinds.items()},
        "acc_single_order_AB": round(100 * single[0], 2),
        "acc_single_order_BA": round(100 * single[1], 2),
        "inconsistent_pairs": both.items - both.agreed,
        "null_verdicts": shown.count(None),
        "verdicts_for_first_shown": shown.count("first"),
        "verdicts_for_second_shown": shown.count("second"),
        "ties_or_null": shown.count("tie") + shown.count(None),
    }


def vote(row: Row) -> int:
    """+1 for the label, -1 for the opposite, 0 for a tie or nothing."""
    return 0 if SIDES[row["verdict"]] in {"tie", None} else 1 if row["verdict"] == row["label"] else -1


def share(flags: Iterable[bool]) -> float:
    """Return the share of some flags that are true."""
    given = list(flags)
    return trust.Share(count=sum(given), of=len(given)).rate or 0.0
