"""Recorded rows, and the comparison of what is computed from them with the figures that were published."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]

GIVEN = {"k", "epsilon", "scoring", "escalate_if_mini_margin_<=", "judges", "members"}
"""Keys of expected figures that say what to compute."""

UNKNOWN = {"length_controlled_winrate"}
"""Published figures whose data were not published."""

LIMIT = 0.003
"""The distance that limits of a bootstrap may be apart whose random numbers were drawn by another recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure, as expected and as computed."""

    where: str
    expected: float | str
    computed: float | str | None
    published: bool
    """True if it was printed by the source; otherwise somebody recomputed it from the same rows."""

    @property
    def is_limit(self) -> bool:
        """Return True if it is a limit of a seeded bootstrap."""
        return "bootstrap95" in self.where

    @property
    def is_equal(self) -> bool:
        """Return True if both are equal to the last digit, or near for limits of a bootstrap."""
        if self.is_limit:
            return self.computed is not None and abs(float(self.computed) - float(self.expected)) <= LIMIT
        return self.computed == self.expected


class Data:
    """A folder of recorded rows; each file is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, list[Row]] = {}

    def load_rows(self, name: str) -> list[Row]:
        """The rows of a file of JSON lines."""
        if name not in self._read:
            with gzip.open(self.folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
                self._read[name] = [json.loads(line) for line in file]
        return self._read[name]

    def load_expected(self, source: str) -> Row:
        """The figures that a source must give."""
        return json.loads((self.folder / f"{source}_expected.json").read_text("utf-8"))


def compare(expected: object, computed: object, where: str = "") -> Iterator[Comparison]:
    """Every figure of ``expected`` with its counterpart; one that nobody computed differs."""
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            if key in GIVEN or key in UNKNOWN or (isinstance(value, str) and key != "verdict"):
                continue
            other = computed.get(key) if isinstance(computed, Mapping) else None
            yield from compare(value, other, f"{where}/{key}")
    elif isinstance(expected, list):
        values = expected
        others = list(computed) if isinstance(computed, list | tuple) else []
        others += [None] * (len(values) - len(others))
        for at, (value, other) in enumerate(zip(values, others, strict=False)):
            yield from compare(value, other, f"{where}/{name_row(value) or at}")
    elif isinstance(expected, int | float | str):
        yield Comparison(where=where, expected=expected, computed=computed, published="publ" in where)


def name_row(row: object) -> str:
    """Name what a row is about, in words."""
    if not isinstance(row, Mapping):
        return ""
    names = [str(value) for key, value in row.items() if isinstance(value, str) and len(value) < 60 and "/" not in key]
    return " ".join(names + [f"{key}={row[key]}" for key in ("k", "escalate_if_mini_margin_<=") if key in row])
