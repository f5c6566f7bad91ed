"""The executors of a run, which judge its units: in this process, by batch at the providers, or by the actors of Ray.

The run itself stays the same wherever that is. It alone reads the cases, writes results, counts, and holds the budget;
an executor is handed the units, and hands in their results.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from adjudge.judges.layers import wrap_models
from adjudge.judges.pair import PairResult
from adjudge.models.model import Model
from adjudge.models.replies.run_replies import KeptModel
from adjudge.result import JudgeResult
from adjudge.runs.item import RunItem
from adjudge.runs.judging import Assignment
from adjudge.runs.layers import RunLayers
from adjudge.runs.options import Plan
from adjudge.runs.pool import Finish, Pool
from adjudge.runs.schedule import Schedule, Unit
from adjudge.runs.store import RunStore

if TYPE_CHECKING:
    from adjudge.runs.batch.session import BatchProgress

Ending = Literal["complete", "interrupted", "empty", "withdrawn"]
"""The ends of a run: with everything judged, before that, before the first case, or before it was written."""

Keep = Callable[[Unit, JudgeResult | PairResult, Finish[RunItem]], None]
"""Hands in the result of a unit; its place is free again when nothing of it can be lost any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of an executor, and everything it needs for it."""

    plan: Plan
    units: AsyncGenerator[Unit, None]
    """The units to be judged; the run's beginning is written before the first unit comes."""
    judge: Any
    """The judge of the plan, without the layers of the run."""
    assignment: Assignment
    """The question and the judge behind its layers, whose replies are kept."""
    layers: RunLayers
    """Budget, prices, cache and pace."""
    schedule: Schedule
    store: RunStore
    run: str
    """The run's id."""
    resumed: bool
    done: int
    """Items that were judged before this run was resumed."""
    keep: Keep

    async def judge_unit(self, assignment: Assignment, unit: Unit, finish: Finish[RunItem]) -> None:
        """Judge one unit in this process, and hand it in."""
        self.keep(
            unit, await assignment.judge_case(unit.case, unit.sample, self.layers.make_call(anew=unit.anew)), finish
        )


class Executor(Protocol):
    """An executor, which judges the units of a run."""

    async def open(self) -> None:
        """Get ready; raises ``UsageError`` for what cannot be judged here."""
        ...

    def begin(self) -> None:
        """Do what needs a run that is written: nothing of a run that is refused may be sent."""
        ...

    async def take(self) -> tuple[RunItem, ...]:
        """Return the items that were kept since, at least one; nothing when all is done. Raises what ended the run."""
        ...

    @property
    def is_done(self) -> bool:
        """Return whether every unit that was read is judged."""
        ...

    @property
    def judges(self) -> tuple[Any, ...]:
        """Judges that were made here, to be closed with the run's own."""
        ...

    def measure_progress(self) -> BatchProgress | None:
        """Return the progress of the requests that were sent by batch."""
        ...

    def wind_down(self) -> None:
        """Begin nothing more; what is under way is finished."""
        ...

    async def stop(self) -> None:
        """Cancel what is under way and wait until it is gone."""
        ...

    def close(self, ending: Ending, /) -> Mapping[str, Any]:
        """Let go of every file, and return what the run's manifest says of this; it blocks."""
        ...


class LocalExecutor:
    """The units of a run, judged in this process."""

    judges: tuple[Any, ...] = ()

    def __init__(self, work: Work) -> None:
        self._pool = Pool(work.units, partial(work.judge_unit, work.assignment), work.layers.limit)

    async def open(self) -> None:
        """Do nothing: there is nothing to get ready."""

    def begin(self) -> None:
        """Do nothing: requests are sent only for units."""

    async def take(self) -> tuple[RunItem, ...]:
        """Return the items that were kept since."""
        return await self._pool.take()

    @property
    def is_done(self) -> bool:
        """Return whether every unit that was read is judged."""
        return not self._pool.left

    def measure_progress(self) -> None:
        """Return nothing: no request is sent by batch."""

    def wind_down(self) -> None:
        """Begin nothing more."""
        self._pool.wind_down()

    async def stop(self) -> None:
        """Cancel what is under way."""
        await self._pool.stop()

    def close(self, _ending: Ending, /) -> Mapping[str, Any]:
        """Return nothing: no file is open."""
        return {}


def keep_replies(assignment: Assignment, store: RunStore, *, resumed: bool) -> Assignment:
    """Make the same assignment, with every reply kept in the run, and used again where the run is resumed."""

    def keep(model: Model, number: int) -> Model:
        return KeptModel(model, store, seat=number, resumed=resumed)

    return replace(assignment, judge=wrap_models(assignment.judge, keep))
