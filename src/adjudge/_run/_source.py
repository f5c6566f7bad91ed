"""What is judged, in its order: the cases of a data set, all or a sample of them, each as often as asked for."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from adjudge.content import content_text, digest_text
from adjudge.dataset import Case, read_cases
from adjudge.errors import UsageError

DataSource = Iterable[Any] | AsyncIterable[Any] | str | os.PathLike[str]
"""Cases or contents, or the path of a file of cases."""


@dataclass(frozen=True, slots=True)
class Source:
    """The cases that are to be judged."""

    cases: Iterable[Any] | AsyncIterable[Any]
    path: str | None = None

    @property
    def total(self) -> int | None:
        """How many cases there are, where that is known without reading them."""
        known = getattr(self.cases, "__len__", None)
        return known() if known is not None else None

    async def walk(self) -> AsyncGenerator[tuple[int, Case], None]:
        """Every case with its place."""
        place = 0
        if isinstance(self.cases, AsyncIterable):
            async for item in self.cases:
                yield place, _as_case(item, place)
                place += 1
            return
        for item in self.cases:
            yield place, _as_case(item, place)
            place += 1

    async def count(self) -> int:
        """How many cases there are, by reading them all; raises ``UsageError`` when they can be read only once."""
        known = self.total
        if known is not None:
            return known
        if isinstance(self.cases, Iterator) or hasattr(self.cases, "__anext__"):
            raise UsageError(
                "sample= needs a data set that can be read twice, and this one is used up by reading; "
                "hand in a list, a path or a Dataset"
            )
        total = 0
        async for _ in self.walk():
            total += 1
        return total


class _File:
    """The cases of a file, read anew by every loop."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Case]:
        return read_cases(self.path)


def make_source(dataset: Any) -> Source:
    """A source from whatever ``run`` takes as its data set."""
    if isinstance(dataset, str | os.PathLike):
        path = os.fspath(dataset)
        return Source(_File(path), path)
    if not isinstance(dataset, Iterable | AsyncIterable):
        raise UsageError(f"a data set is a path, cases or contents; got {type(dataset).__name__}")
    path = getattr(dataset, "path", None)
    return Source(dataset, None if path is None else str(path))


def draw(total: int, wanted: int, seed: int) -> frozenset[int]:
    """The places of ``wanted`` of ``total`` cases, drawn without replacement by the seed."""
    return frozenset(Random(seed).sample(range(total), min(wanted, total)))  # noqa: S311 - a sample, and no secret


def _as_case(item: Any, place: int) -> Case:
    if isinstance(item, Case):
        return item
    try:
        return Case(content=item, id=digest_text(content_text(item)))
    except UsageError as error:
        raise UsageError(f"case {place} of the data set: {error}") from None
