"""PandaLM: pairs that three people and gpt-3.5-turbo compared (arXiv 2306.05087)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from adjudge import trust
from published.figures import Data, Row


def compute(_expected: Row, data: Data) -> Row:
    """The figures. A verdict that could not be read is wrong, and a category of its own for kappa."""
    rows, items = data.load_rows("pandalm_judgments_gpt35"), data.load_rows("pandalm_items")
    said = [row["verdict"] for row in rows]
    majority = {row["idx"]: row["majority"] for row in items}
    truth = [majority[row["idx"]] for row in rows]
    people = [[row["humans"][at] for row in rows] for at in range(3)]
    table = trust.make_confusion(said, truth)
    parsed = table.leave_out(None, side="judge")
    pairs = {
        (one, other): trust.compute_cohen_kappa(trust.make_confusion(people[one], people[other]))
        for one, other in combinations(range(3), 2)
    }
    counts = {str(label): count for label, count in Counter(truth).items()}
    return {
        "n": table.items,
        "no_majority": truth.count(None),
        "unparsed": dict(Counter(row["result_raw"] for row in rows if row["verdict"] is None)),
        "accuracy": round(trust.compute_accuracy(table), 4),
        "macro_precision_recall_f1": [round(value, 4) for value in trust.compute_macro(table)],
        "parsed_only": {
            "n": parsed.items,
            "accuracy": round(trust.compute_accuracy(parsed), 4),
            "macro_precision_recall_f1": [round(value, 4) for value in trust.compute_macro(parsed)],
        },
        "kappa_vs_majority": round(trust.compute_cohen_kappa(table), 4),
        "kappa_vs_each_human": [
            round(trust.compute_cohen_kappa(trust.make_confusion(said, side)), 4) for side in people
        ],
        "human_pair_kappas": {
            f"annotator{one + 1}-annotator{other + 1}": round(kappa, 4) for (one, other), kappa in pairs.items()
        },
        "human_pair_kappas_published": {
            f"{one + 1}-{other + 1}": round(kappa, 2) for (one, other), kappa in pairs.items()
        },
        "label_counts_majority": counts,
        "label_counts_published": counts,
    }
