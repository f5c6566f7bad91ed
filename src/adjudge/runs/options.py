"""The source of a run's cases, the plan with its options, and its progress.

Where a resumed run has to agree with what it began with is decided in ``folder.py`` (``check_resumable``).
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, get_args

from adjudge.dataset.case import Case
from adjudge.dataset.case_ids import CaseIds
from adjudge.dataset.dataset import Dataset, open_dataset
from adjudge.errors import Reason, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.notebook import list_counts, render_fragment
from adjudge.formats.numbers import format_decimal, format_dollars
from adjudge.judges.evaluate import EvaluateArguments, RubricSource
from adjudge.judges.layers import Wrap
from adjudge.judges.pair import OnConflict
from adjudge.models.budget import Budget
from adjudge.models.price import Prices
from adjudge.result import Outcome
from adjudge.runs.pool import Concurrency
from adjudge.runs.ray.cluster import RayCluster

if TYPE_CHECKING:
    from adjudge.models.replies.cache_file import ReplyCache
    from adjudge.runs.batch.options import BatchOptions
    from adjudge.runs.batch.session import BatchProgress


DataSource = Dataset | Iterable[Any] | AsyncIterable[Any] | str | os.PathLike[str]
"""A source of cases: a data set, the path of one, whatever ``Dataset.of`` takes, or an asynchronous iterable."""


@dataclass(frozen=True, slots=True)
class Source:
    """The cases that are to be judged."""

    cases: Dataset | AsyncIterable[Any]

    @property
    def total(self) -> int | None:
        """The most cases there can be; ``None`` where that is not known without reading them."""
        return self.cases.size if isinstance(self.cases, Dataset) else None

    @property
    def reads_once(self) -> bool:
        """Return whether the cases can be read only once."""
        return not isinstance(self.cases, Dataset) or self.cases.reads_once

    def bring_criteria(self) -> bool:
        """Return whether cases may bring criteria of their own; if they can be read twice, they are read for that."""
        if not isinstance(self.cases, Dataset):
            return True
        if self.cases.reads_once:
            return self.cases.may_judge_itself
        if not self.cases.may_judge_itself:
            return False
        # All cases are looked at: a suite of test cases may begin with one that brings no criteria.
        return any(case.criteria is not None or case.rubric is not None for case in self.cases)

    def list_unapplied(self) -> Mapping[str, int]:
        """Count the parts of a suite of test cases that a run does not apply, by a description of each.

        Returns nothing if the data set has listed them before. This reads the suite once more, because users want to
        know before they pay for the first call. Raises ``UsageError`` for a row that cannot be read.
        """
        cases = self.cases
        if not isinstance(cases, Dataset) or not cases.is_suite or cases.has_listed or cases.reads_once:
            return {}
        for _ in cases:
            pass
        cases.has_listed = True
        return cases.notes

    async def iterate_cases(self) -> AsyncGenerator[tuple[int, Case], None]:
        """Yield each case after its place in the data set, from 0."""
        place = 0
        if isinstance(self.cases, Dataset):
            for case in self.cases:
                yield place, case
                place += 1
            return
        warned, ids = False, CaseIds()
        async for element in self.cases:
            # Read like a list with one item, which is named by its place in messages.
            single = Dataset.of([element], name=f"item {place} of the data set", check_ids=False)
            single.has_warned = warned
            for case in single:
                yield place, ids.separate(case)
                place += 1
            warned = single.has_warned

    def refuse(self, place: int, reason: str) -> None:
        """Count the case that was read last as a bad row, if the data set allows those; else raise ``UsageError``."""
        if not isinstance(self.cases, Dataset):
            raise UsageError(f"item {place} of the data set: {reason}")
        self.cases.refuse(reason)

    async def count(self) -> int:
        """Count the cases by reading them; raises ``UsageError`` when they can be read only once."""
        if hasattr(self.cases, "__anext__"):
            raise UsageError(
                "sample needs a data set that can be read twice, and this one is used up by reading; hand in a list or "
                "a file",
                argument="sample",
            )
        total = 0
        async for _ in self.iterate_cases():
            total += 1
        return total

    def describe(self) -> dict[str, Any]:
        """Describe the data set for the manifest: path, name, and the rows that were skipped when it was last read."""
        if not isinstance(self.cases, Dataset):
            return {"path": None}
        bad_rows = [{"where": row.where, "why": row.why} for row in self.cases.bad_rows]
        skipped = {"skipped": self.cases.skipped, "bad_rows": bad_rows} if self.cases.skipped else {}
        return {"path": self.cases.path, "name": self.cases.name, **skipped}


def make_source(dataset: Any, fields: Mapping[str, str | None] | None = None) -> Source:
    """Make a source from anything that ``run`` takes as its data set; ``fields`` name the fields of a path or frame.

    Raises ``UsageError`` for ``fields`` with a data set that is opened already.
    """
    # ``check_ids=False``: the run finds repeated ids in its file, so the data set need not keep all ids in memory.
    if isinstance(dataset, str | os.PathLike):
        return Source(open_dataset(dataset, fields=fields, check_ids=False))
    if isinstance(dataset, Dataset | AsyncIterable):
        if fields is not None:
            raise UsageError(
                "fields are for a path or a frame; give them to open_dataset or Dataset.of", argument="fields"
            )
        return Source(dataset)
    return Source(Dataset.of(dataset, fields=fields, check_ids=False))


def check_amounts(repeat: int, sample: int | None, seed: int) -> None:
    """Raise ``UsageError`` unless these are valid options of a run."""
    check_whole_number("repeat", repeat, least=1)
    if sample is not None:
        check_whole_number("sample", sample, least=1)
    check_whole_number("seed", seed)


def draw_places(total: int, size: int, seed: int) -> frozenset[int]:
    """Draw ``size`` of ``total`` cases at random, without replacement, and return their places in the data set."""
    return frozenset(Random(seed).sample(range(total), min(size, total)))  # noqa: S311 - a sample, and no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a run."""

    done: int
    """Items that are on disk, including those from before the run was resumed."""
    fresh: int
    """Items that were judged since it was started or resumed."""
    total: int | None
    """The number of items there will be; ``None`` while this is unknown."""
    seconds: float
    """The seconds since it was started or resumed."""
    outcomes: Mapping[Outcome, int]
    """The number of items for each outcome."""
    cost_usd: float | None
    """The cost of the fresh items; ``None`` if the cost of one is unknown."""
    batch: BatchProgress | None = None
    """The progress of the requests of a run by batches; ``None`` for a live run."""

    @property
    def per_second(self) -> float:
        """Fresh items per second, on average."""
        return self.fresh / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The seconds left at this rate; ``None`` if unknown."""
        return None if self.total is None or not self.fresh else (self.total - self.done) / self.per_second

    def _repr_html_(self) -> str:
        total = "" if self.total is None else f" of {self.total:,}"
        left = "" if not self.seconds_left else f", about {format_decimal(self.seconds_left, 0)} s left"
        cost = "" if self.cost_usd is None else f", {format_dollars(self.cost_usd, digits=4)}"
        counts = {name: self.outcomes.get(name, 0) for name in get_args(Outcome)}
        return render_fragment(f"{self.done:,}{total} judged: {list_counts(counts)}{cost}{left}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of a run; checked where it is made."""

    source: Source
    judge: Any
    rubric: RubricSource | None
    arguments: EvaluateArguments
    out: Path | None
    limit: Concurrency
    repeat: int
    sample: int | None
    seed: int
    resume: bool
    retry: tuple[Reason, ...]
    on_progress: Callable[[Progress], Any] | None
    wrap: Wrap | None
    cache: ReplyCache | str | os.PathLike[str] | None
    budget: Budget | float | None
    prices: Prices | None
    on_conflict: OnConflict | None
    """The outcome where the orders disagree; ``None``: each case is judged by itself."""
    command: Sequence[str] | None
    cluster: RayCluster | None = None
    """The cluster where the cases are judged by actors of Ray; ``None``: in this process."""
    batch: BatchOptions | None = None
    """The options of batches; ``None``: each judgement asks live."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that the manifest records."""
        return {
            "concurrency": self.limit.current,
            "repeat": self.repeat,
            "sample": self.sample,
            "seed": self.seed,
            "retry": list(self.retry),
            "budget": self.budget.usd if isinstance(self.budget, Budget) else self.budget,
            **({} if self.batch is None else {"batch": self.batch.to_dict()}),
            **({} if self.cluster is None else {"engine": "ray", "actors": self.cluster.actors}),
        }
