"""Plays two people who label: each is wrong about one call of fifty, and where they differ, somebody settles it.

Run: python people.py TO-LABEL.jsonl LABELLED.jsonl, where `adjudge plan RUN --out TO-LABEL.jsonl` wrote the first.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WRONG = 0.02


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def label(asked: dict[str, Any], *, may_run: bool) -> Iterator[dict[str, Any]]:
    """The labels of one call."""
    # Which content was read, and how it was drawn: without these, no rate takes the labels for a random sample.
    row = {name: asked[name] for name in ("case", "subject", "design")} | {"schema": "adjudge/label/1", "blind": True}
    opinions = {}
    for rater in ("ann", "ben"):
        is_wrong = random.Random(f"{rater}{asked['case']}").random() < WRONG
        opinions[rater] = may_run != is_wrong
        yield row | {"rater": rater, "value": opinions[rater]}
    if opinions["ann"] != opinions["ben"]:
        yield row | {"rater": "zoe", "value": may_run, "kind": "adjudication"}


def main(asked: Path, answered: Path) -> None:
    """Write the labels of every call that is asked about."""
    truth = {row["case"]: row["value"] for row in read_lines(Path("truth.jsonl"))}
    rows = read_lines(asked)
    labels = [answer for row in rows for answer in label(row, may_run=truth[row["case"]])]
    answered.write_text("".join(f"{json.dumps(row)}\n" for row in labels), encoding="utf-8")
    print(f"{len(rows)} calls, {len(labels)} labels")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
