"""The alternative annotator test on four collections, and correlations of judges on SummEval (arXiv 2501.10970)."""

from __future__ import annotations

from statistics import fmean

from adjudge import trust
from published.figures import Data, Row


def compute(expected: Row, data: Data) -> Row:
    """The figures of each collection and judge."""
    return {
        "rows": [compute_test(data.load_rows(f"alttest_{row['dataset']}"), row) for row in expected["rows"]],
        "summeval_correlations": [
            compute_correlation(data.load_rows("alttest_summeval"), row["judge"], row["dimension"])
            for row in expected["summeval_correlations"]
        ],
    }


def compute_test(rows: list[Row], expected: Row) -> Row:
    """The test; the order of the source's annotators is not in its rows, so p-values are compared by size."""
    found = trust.make_alternative_test(
        [row["llm"].get(expected["judge"]) for row in rows],
        [row["human"] for row in rows],
        epsilon=expected["epsilon"],
        closeness=expected["scoring"],
    )
    order = sorted(range(len(expected["recomputed"]["p_values"])), key=expected["recomputed"]["p_values"].__getitem__)
    p_values: list[float | None] = [None] * max(len(order), len(found.annotators))
    for at, p_value in zip(order, sorted(test.p_value for test in found.annotators), strict=True):
        p_values[at] = round(p_value, 6)
    return {
        "recomputed": {
            "winning_rate": round(found.winning_rate, 4),
            "advantage_probability": round(found.advantage_probability, 4),
            "p_values": p_values,
        },
        "published": {
            # As the source prints it: halves are rounded to even digits.
            "winning_rate": float(f"{found.winning_rate:.2f}"),
            "advantage_probability": float(f"{found.advantage_probability:.2f}"),
            "verdict": "PASSED" if found.passed else "FAILED",
        },
    }


def compute_correlation(rows: list[Row], judge: str, dimension: str) -> Row:
    """A judge's scores with the mean of three experts, over all summaries and averaged over documents."""
    of = [row for row in rows if row["item_id"].endswith(f"__{dimension}")]
    documents = [row["item_id"].split("__")[0] for row in of]
    scores, people = [row["llm"][judge] for row in of], [fmean(row["human"].values()) for row in of]
    found = trust.make_correlation(scores, people, groups=documents, resamples=100)
    return {
        "n": found.items,
        "docs": len(set(documents)),
        "docs_used": found.groups_used,
        "dataset_spearman": round(found.per_item.spearman.value, 4),
        "dataset_kendall": round(found.per_item.kendall.value, 4),
        "dataset_pearson": round(found.per_item.pearson.value, 4),
        "summary_level_spearman_mean_over_docs": round(found.over_groups.spearman.value, 4),
        "summary_level_kendall_mean_over_docs": round(found.over_groups.kendall.value, 4),
    }
