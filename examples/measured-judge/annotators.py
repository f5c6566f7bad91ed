"""Plays the two annotators: gives each case that is to be labelled the labels that they gave it.

Run: python annotators.py TO-LABEL.jsonl LABELLED.jsonl, where `adjudge plan RUN --out TO-LABEL.jsonl` wrote the first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(drawn_cases: Path, labelled: Path) -> None:
    """Write a label of each annotator for each case, and the final one where they differ."""
    # Which content was read, and how it was drawn: without these, no rate takes the labels for a random sample.
    drawn = {row["case"]: {name: row[name] for name in ("subject", "design")} for row in read_lines(drawn_cases)}
    labels = [row | drawn[row["case"]] for row in read_lines(HERE / "labels.jsonl") if row["case"] in drawn]
    labelled.write_text("".join(f"{json.dumps(row)}\n" for row in labels), encoding="utf-8")
    print(f"{len(drawn)} cases, {len(labels)} labels")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
