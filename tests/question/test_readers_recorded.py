"""Recorded judge replies of the field's usual styles, each read by the reader that a caller would name for it.

The replies are not in the repository. ``ADJUDGE_CASES`` names a folder that holds ``data/verdict_parsing.jsonl.gz``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from adjudge import ReplyError
from adjudge.question import ReadOptions, find_reader

STYLES = {
    "fastchat [[A]]": "[[A]]",
    "arena_hard [[A>>B]]": "[[A>B]]",
    "fastchat Rating: [[n]]": "Rating: [[7]]",
    "autoj Rating: [[n]]": "Rating: [[7]]",
    "bare integer 0-9": "Rating: 7",
    "geval": "Rating: 7",
    "llmbar Vanilla Output (a)/(b)": "Output (a)",
    "llmbar CoT Output (a)/(b)": "Output (a) is better",
    "llmbar Swap Output (a)/(b)": "Output (a) is better",
    "inspect_ai GRADE: C": "GRADE: C",
    "category label": "label",
    "single letter m/M": "name",
    "json ordered_models": "ordered_models",
    "leading letter": "A:",
}
CUT = "truncated before the verdict"
REPAIRABLE = ("json ordered_models / python_repr", "json ordered_models / trailing_comma")
"""A lenient parser would mend these; adjudge does not, so the recorded expectation is not ours."""


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """The recorded replies, or a skip that says what is missing."""
    folder = os.environ.get("ADJUDGE_CASES")
    if not folder:
        pytest.skip("ADJUDGE_CASES is not set; it names the folder with data/verdict_parsing.jsonl.gz")
    path = Path(folder) / "data" / "verdict_parsing.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _name_of(style: str) -> str:
    return STYLES[_base(style)]


def _base(style: str) -> str:
    return "geval" if style.startswith("geval ") else style.partition(" / ")[0]


def _options(row: dict) -> ReadOptions:
    offered = row["options"]
    if isinstance(offered, dict):
        return ReadOptions(scale=(offered["min"], offered["max"]))
    kind = find_reader(_name_of(row["style"])).name
    return ReadOptions(labels=tuple(offered) if kind in {"label", "name", "ordered_models", "GRADE: C"} else ())


def _read(row: dict, name: str | None = None) -> tuple[str | float | None, str]:
    """What was read and why not: one of the two is empty."""
    options = ReadOptions() if name else _options(row)
    try:
        return find_reader(name or _name_of(row["style"])).read(row["raw"], options), ""
    except ReplyError as error:
        return None, error.because


def _expected(row: dict) -> str | float | None:
    expected = row["expected"]
    if "verdict_name" in expected:
        first, second = row["options"]
        return {first: "first", second: "second", None: None}[expected["verdict_name"]]
    return next(expected[key] for key in ("verdict", "score", "grade", "label") if key in expected)


def _clean(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["clean"] and row["style"] != CUT and row["style"] not in REPAIRABLE]


def test_a_clean_reply_is_read_as_it_was_meant(rows):
    """Every unambiguous reply is read as recorded; where it holds no verdict, nothing is read."""
    unknown = {row["style"] for row in rows if row["style"] != CUT and _base(row["style"]) not in STYLES}
    assert not unknown, f"these styles have no reader in the table above: {sorted(unknown)}"
    wrong = [
        (row["id"], row["style"], _expected(row), _read(row)) for row in _clean(rows) if _read(row)[0] != _expected(row)
    ]
    assert rows
    assert wrong == []


def test_a_reply_that_needs_repair_is_unparseable(rows):
    """Python's quotes and trailing commas are not JSON, and are not mended."""
    repairable = [row for row in rows if row["style"] in REPAIRABLE]
    assert {_read(row) for row in repairable} <= {(None, "unparseable")}


def test_a_reply_cut_before_its_verdict_gives_none(rows):
    """However clear the rationale is, a verdict that was not reached is not guessed."""
    cut = [row for row in rows if row["style"] == CUT]
    names = ("[[A]]", "[[A>B]]", "Rating: [[7]]", "Rating: 7", "Output (a)", "Output (a) is better", "GRADE: C")
    assert {_read(row, name) for row in cut for name in names} <= {(None, "unparseable")}


def test_an_arguable_reply_is_read_or_refused_but_never_crashes(rows):
    """Replies whose recorded reading is arguable are counted by style, not judged; the table is printed."""
    table: dict[str, Counter] = {}
    for row in rows:
        if not row["clean"]:
            reading, because = _read(row)
            count = table.setdefault(row["style"], Counter())
            count["rows"] += 1
            count[because or "read"] += 1
            count["as recorded"] += reading == _expected(row)
            count["best known"] += "best_reading" in row
            count["as best"] += "best_reading" in row and reading == row["best_reading"]
    columns = ("rows", "read", "unparseable", "contradiction", "off_scale", "as recorded", "best known", "as best")
    print("\n" + " | ".join(("style", *columns)))  # noqa: T201 - shown with -s
    for style, count in sorted(table.items()):
        print(" | ".join((style, *(str(count[name]) for name in columns))))  # noqa: T201
    assert all(count["rows"] == sum(count[name] for name in columns[1:5]) for count in table.values())
