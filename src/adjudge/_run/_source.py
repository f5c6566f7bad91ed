"""Where the cases of a run come from, and which of them are drawn."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from adjudge.dataset import Case, Dataset, open_dataset
from adjudge.errors import UsageError

DataSource = Dataset | Iterable[Any] | AsyncIterable[Any] | str | os.PathLike[str]
"""What holds cases: a data set, the path of one, whatever ``Dataset.of`` takes, or an asynchronous iterable."""


@dataclass(frozen=True, slots=True)
class Source:
    """The cases that are to be judged."""

    cases: Dataset | AsyncIterable[Any]

    @property
    def total(self) -> int | None:
        """How many cases there are at most, where that is known without reading them."""
        return self.cases.size if isinstance(self.cases, Dataset) else None

    async def walk(self) -> AsyncGenerator[tuple[int, Case], None]:
        """Every case with its place."""
        place = 0
        if isinstance(self.cases, Dataset):
            for case in self.cases:
                yield place, case
                place += 1
            return
        async for item in self.cases:
            # As one item of a list is read, with the place for the message.
            for case in Dataset.of([item], name=f"item {place} of the data set", check_ids=False):
                yield place, case
                place += 1

    def refuse(self, place: int, why: str) -> None:
        """Count the case that was read last as a bad row, or raise ``UsageError`` saying where it stands."""
        if not isinstance(self.cases, Dataset):
            raise UsageError(f"item {place} of the data set: {why}")
        self.cases.refuse(why)

    async def count(self) -> int:
        """How many cases there are, by reading them; raises ``UsageError`` when they can be read only once."""
        if hasattr(self.cases, "__anext__"):
            raise UsageError(
                "sample= needs a data set that can be read twice, and this one is used up by reading; "
                "hand in a list, a path or a Dataset"
            )
        total = 0
        async for _ in self.walk():
            total += 1
        return total

    def describe(self) -> dict[str, Any]:
        """What the latest reading was of, and what it left out."""
        if not isinstance(self.cases, Dataset):
            return {"path": None}
        left_out = [{"where": row.where, "why": row.why} for row in self.cases.bad_rows]
        more = {"skipped": self.cases.skipped, "bad_rows": left_out} if self.cases.skipped else {}
        return {"path": self.cases.path, "name": self.cases.name, **more}


def make_source(dataset: Any) -> Source:
    """A source from whatever ``run`` takes as its data set."""
    # Ids that are repeated are found on disk, where the run keeps them; a data set of our own needs no memory for it.
    if isinstance(dataset, str | os.PathLike):
        return Source(open_dataset(dataset, check_ids=False))
    if isinstance(dataset, Dataset | AsyncIterable):
        return Source(dataset)
    return Source(Dataset.of(dataset, check_ids=False))


def draw(total: int, wanted: int, seed: int) -> frozenset[int]:
    """The places of ``wanted`` of ``total`` cases, drawn without replacement by the seed."""
    return frozenset(Random(seed).sample(range(total), min(wanted, total)))  # noqa: S311 - a sample, and no secret
