"""What a run is asked to do, and how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge._asking import Asking, RubricSource
from adjudge._pair import OnConflict
from adjudge._price import Prices
from adjudge._rewire import Wrap
from adjudge._run._pool import Limit
from adjudge._run._source import Source
from adjudge.models._budget import Budget
from adjudge.result import Outcome, Reason

if TYPE_CHECKING:
    from adjudge.models._reply_cache import ReplyCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is."""

    done: int
    """Items that are kept, those of earlier attempts at this run included."""
    fresh: int
    """Items that were judged since it was started or resumed."""
    total: int | None
    """How many there will be; ``None`` while that is not known."""
    seconds: float
    """Since it was started or resumed."""
    outcomes: Mapping[Outcome, int]
    cost_usd: float | None
    """What the fresh items cost; ``None`` where that is not known of all."""

    @property
    def per_second(self) -> float:
        """Fresh items per second, on average."""
        return self.fresh / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at this rate, where that can be said."""
        return None if self.total is None or not self.fresh else (self.total - self.done) / self.per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run was asked to do; checked where it is made."""

    source: Source
    judge: Any
    rubric: RubricSource | None
    how: Asking
    out: Path | None
    limit: Limit
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
    """What orders that disagree come to; ``None``: each case is judged by itself."""
    command: Sequence[str] | None

    @property
    def options(self) -> dict[str, Any]:
        """The options, as the manifest has them."""
        return {
            "concurrency": self.limit.current,
            "repeat": self.repeat,
            "sample": self.sample,
            "seed": self.seed,
            "retry": list(self.retry),
            "budget": self.budget.usd if isinstance(self.budget, Budget) else self.budget,
        }
