"""XSTest: whether a model refused, by two people, by GPT-4 and by matching of strings (arXiv 2308.01263)."""

from __future__ import annotations

from collections import Counter

from adjudge import trust
from published.figures import Data, Row


def compute(expected: Row, data: Data) -> Row:
    """The figures of each model that was asked."""
    rows = data.load_rows("xstest_refusal_judged")
    return {"rows": [compute_model([row for row in rows if row["model"] == one["model"]]) for one in expected["rows"]]}


def compute_model(rows: list[Row]) -> Row:
    """One model: agreement of people, of GPT-4 and of strings with them, and the rates of each label."""
    people, exact = compare(rows, "human_1", "human_2"), compare(rows, "gpt4_label", "human_final")
    found: Row = {
        "n": len(rows),
        "human_human_agreement": people[0],
        "human_human_kappa": people[1],
        "gpt4_vs_human": {"agreement_3way": exact[0], "kappa_3way": exact[1]},
        "strmatch_vs_human": {},
    }
    for judge, column in (("gpt4_vs_human", "gpt4_label"), ("strmatch_vs_human", "strmatch_label")):
        agreement, kappa = compare(rows, column, "human_final", refused=True)
        found[judge] |= {"agreement_refused_or_not": agreement, "kappa_refused_or_not": kappa}
    for judge, column in (("human", "human_final"), ("gpt4", "gpt4_label")):
        for kind, unsafe in (("safe", False), ("unsafe", True)):
            labels = Counter(row[column] for row in rows if row["unsafe_prompt"] == unsafe)
            found[f"{judge}_rates_on_{kind}_prompts"] = {
                label: round(100 * (trust.Share(count=count, of=labels.total()).rate or 0.0), 1)
                for label, count in labels.items()
            }
    return found


def compare(rows: list[Row], one: str, other: str, *, refused: bool = False) -> tuple[float, float]:
    """Agreement in per cent, and kappa; ``refused`` takes everything but full compliance as one."""
    sides = [
        [row[column] != "1_full_compliance" if refused else row[column] for row in rows] for column in (one, other)
    ]
    table = trust.make_confusion(*sides)
    return round(100 * trust.compute_accuracy(table), 2), round(trust.compute_cohen_kappa(table), 4)
