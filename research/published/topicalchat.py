"""Topical-Chat: twenty samples of each score, in seven prompts, against people (arXiv 2310.05657)."""

from __future__ import annotations

import re
from statistics import fmean

from adjudge import trust
from published.figures import Data, Row


def compute(expected: Row, data: Data) -> Row:
    """The figures of each dimension and prompt."""
    rows = data.load_rows("topicalchat_geval_raw")
    return {
        "rows": [
            compute_row([row for row in rows if (row["dimension"], row["mode"]) == (one["dimension"], one["mode"])])
            for one in expected["rows"]
        ]
    }


def read_score(text: str) -> float | None:
    """The first digit after the last "rating:", as the source reads it, so 2 of "2.5"; ``None`` without any."""
    found = re.search(r"\d", text.lower().replace("1-3", " ").rpartition("rating:")[2])
    return float(found.group()) if found else None


def compute_row(rows: list[Row]) -> Row:
    """One dimension and prompt: an answer's score is the mean of its samples; one without a number counts as 0."""
    read = [[read_score(text) for text in row["responses"]] for row in rows]
    people = [row["human"] for row in rows]
    scores = [fmean(score or 0.0 for score in samples) for samples in read]
    documents = [row["item_id"].partition("_")[0] for row in rows]
    found = trust.make_correlation(scores, people, groups=documents, resamples=100)
    skipped = [[score for score in samples if score is not None] for samples in read]
    clean = trust.make_correlation([fmean(samples) if samples else None for samples in skipped], people)
    return {
        "n_items": len(rows),
        "n_samples": sum(map(len, read)),
        "samples_without_any_digit": sum(not re.search(r"\d", text) for row in rows for text in row["responses"]),
        "dataset_level": round_all(found.per_item),
        "document_level": round_all(found.over_groups),
        "pearson_if_unparsable_skipped": round(clean.per_item.pearson.value, 3),
        "documents_used": found.groups_used,
        "published": {
            "pearson_dataset_level": round(found.per_item.pearson.value, 3),
            "kendall_document_level": round(found.over_groups.kendall.value, 3),
        },
    }


def round_all(coefficients: trust.Coefficients) -> dict[str, float]:
    """The three coefficients, to three decimals."""
    return {name: round(getattr(coefficients, name).value, 3) for name in ("pearson", "spearman", "kendall")}
