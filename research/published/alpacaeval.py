"""AlpacaEval: preferences from log-probabilities and from function calls (github.com/tatsu-lab/alpaca_eval)."""

from __future__ import annotations

import json
import math
from statistics import stdev

from adjudge import trust
from published.figures import Data, Row

MISSING = -100.0
"""The log-probability of a letter that is not among the first five."""


def compute(expected: Row, data: Data) -> Row:
    """The figures of each set and model."""
    return {
        "rows": [
            compute_weighted(data, row["model"]) if row["set"] == "logprob" else compute_called(data, row)
            for row in expected["rows"]
        ]
    }


def compute_weighted(data: Data, model: str) -> Row:
    """Preferences by log-probability."""
    rows = [row for row in data.load_rows("alpacaeval_logprob_verdicts_NC") if row["model"] == model]
    wins = [row["preference"] - 1 for row in rows if row["preference"] is not None]
    # A draw counts half.
    whole = [0.5 if win == 0.5 else float(win > 0.5) for win in wins]
    printed = {
        "win_rate": round(100 * compute_rate(wins), 4),
        "standard_error": round(100 * stdev(wins) / math.sqrt(len(wins)), 4),
        "discrete_win_rate": round(100 * compute_rate(whole), 4),
    }
    read = [row for row in rows if row["raw_text"] is not None]
    return {
        **printed,
        "n": len(wins),
        "published_leaderboard": printed,
        "rows_where_M_is_model": sum(row["M_is"] == "model" for row in rows),
        "M_is_baseline": sum(row["M_is"] == "baseline" for row in rows),
        "preference_not_reproduced_from_logprobs": sum(
            not math.isclose(read_preference(row), row["preference"], abs_tol=1e-6) for row in read
        ),
        "null_raw": len(rows) - len(read),
    }


def read_preference(row: Row) -> float:
    """1 + the probability of the model's letter among the two letters."""
    logs = dict(reversed(row["top_logprobs"]))
    upper, lower = (math.exp(logs.get(letter, MISSING)) for letter in "Mm")
    return 1 + (upper if row["M_is"] == "model" else lower) / (upper + lower)


def compute_called(data: Data, expected: Row) -> Row:
    """Preferences by function call."""
    every = data.load_rows("alpacaeval_function_call_verdicts_NC")
    rows = [row for row in every if (row["prompt"], row["model"]) == (expected["set"], expected["model"])]
    wins = [row["preference"] - 1 for row in rows if row["preference"] is not None]
    rate = round(100 * compute_rate(wins), 4)
    calls = [row["raw_function_args"] for row in rows if row["raw_function_args"] is not None]
    return {
        "n": len(rows),
        "n_scored": len(wins),
        "null_preference": len(rows) - len(wins),
        "null_raw": len(rows) - len(calls),
        "malformed_args": sum(not is_json(call) for call in calls),
        "win_rate": rate,
        "published_leaderboard_win_rate": rate,
    }


def compute_rate(wins: list[float]) -> float:
    """The share of wins."""
    return trust.Share(count=math.fsum(wins), of=len(wins)).rate or 0.0


def is_json(text: str) -> bool:
    """Return True if a text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
