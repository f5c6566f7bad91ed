"""TriviaQA judges: nine judges and a human label on answers of exam takers (arXiv 2406.12624)."""

from __future__ import annotations

from adjudge import trust
from published.figures import Data, Row


def compute(expected: Row, data: Data) -> Row:
    """The figures; rows without a label of the person or the judge are left out, for juries of any judge."""
    rows = data.load_rows("triviaqa_judges")
    names = [row["judge"] for row in expected["per_judge"]]
    complete = [row for row in rows if row["human"] is not None and None not in row["judges"].values()]
    takers = expected["pass_rate_per_exam_taker"]
    return {
        "per_judge": [compute_judge(rows, name) for name in names],
        "majority_juries": {
            key: compute_jury(complete, jury["members"]) for key, jury in expected["majority_juries"].items()
        },
        "pass_rate_per_exam_taker": {
            name: compute_rates([row for row in complete if row["exam_taker"] == name], names) for name in takers
        },
    }


def compute_judge(rows: list[Row], name: str) -> Row:
    """One judge against the people."""
    both = [(row["judges"][name], row["human"]) for row in rows if None not in {row["judges"][name], row["human"]}]
    found = trust.make_agreement(*zip(*both, strict=True))
    (tn, fp), (fn, tp) = found.confusion.counts
    return {
        "n": found.confusion.items,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "percent_agreement": round(100 * found.accuracy.value, 2),
        "cohen_kappa": round(found.cohen_kappa.value, 4),
        "scott_pi": round(compute_scott_pi(tn, fp, fn, tp), 4),
        "sensitivity": round(found.sensitivity.value, 4),
        "specificity": round(found.specificity.value, 4),
        "judge_pass_rate": round(found.judge_rate.value, 4),
        "human_pass_rate": round(found.prevalence.value, 4),
    }


def compute_scott_pi(tn: int, fp: int, fn: int, tp: int) -> float:
    """Scott's pi: both sides draw from the pooled frequencies (W. A. Scott, "Reliability of content analysis")."""
    items = tn + fp + fn + tp
    good = (2 * tp + fp + fn) / (2 * items)
    expected = good**2 + (1 - good) ** 2
    return ((tn + tp) / items - expected) / (1 - expected)


def compute_jury(rows: list[Row], members: list[str]) -> Row:
    """The majority of some judges against the people."""
    votes = [2 * sum(row["judges"][name] for name in members) > len(members) for row in rows]
    table = trust.make_confusion(votes, [row["human"] for row in rows])
    return {
        "n": table.items,
        "percent_agreement": round(100 * trust.compute_accuracy(table), 2),
        "cohen_kappa": round(trust.compute_cohen_kappa(table), 4),
    }


def compute_rates(rows: list[Row], names: list[str]) -> Row:
    """The share of an exam taker's answers that each passes."""
    counts = {name: sum(row["judges"][name] for row in rows) for name in names}
    counts["human"] = sum(row["human"] for row in rows)
    shares = {name: trust.Share(count=count, of=len(rows)).rate or 0.0 for name, count in counts.items()}
    return {"n": len(rows)} | {name: round(share, 4) for name, share in shares.items()}
