"""The executors of a run, which judge its units: in this process, by batch at the providers, or by the actors of Ray.

Everything else is the same for all of them: the engine of the run reads the cases, writes the results, counts them and
keeps the budget. An executor takes units from it, and hands in their results.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from adjudge.judges.layers import wrap_models
from adjudge.judges.pair import PairResult
from adjudge.models.model import Model
from adjudge.models.replies.run_replies import RunReplyModel
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

RunEnding = Literal["complete", "interrupted", "empty", "withdrawn"]
"""The state in which a run ends: ``complete`` with everything judged, ``interrupted`` before that, ``empty`` before the
first case, ``withdrawn`` before anything of it was written."""

KeepResult = Callable[[Unit, JudgeResult | PairResult, Finish[RunItem]], None]
"""Hands in the result of a unit to be written to disk; calls the unit's ``Finish`` when it is written."""


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
    keep: KeepResult

    async def judge_unit(self, assignment: Assignment, unit: Unit, finish: Finish[RunItem]) -> None:
        """Judge one unit in this process, and hand in its result."""
        call = self.layers.make_call(anew=unit.anew)
        result = await assignment.judge_case(unit.case, unit.sample, call)
        self.keep(unit, result, finish)


class Executor(Protocol):
    """An executor, which judges the units of a run."""

    async def open(self) -> None:
        """Get ready; raises ``UsageError`` for what cannot be judged here."""
        ...

    def begin(self) -> None:
        """Begin what may be done only once the run is written: for a run that is refused, no request may be sent."""
        ...

    async def take_items(self) -> tuple[RunItem, ...]:
        """Wait for items that are written, and return those since the last call; none when there will be no more.

        Raises the error that ended the run.
        """
        ...

    @property
    def is_done(self) -> bool:
        """Return whether every unit that was read is judged. Asked when no more items will come."""
        ...

    @property
    def judges(self) -> tuple[Any, ...]:
        """Judges that were made here, to be closed with the run's own."""
        ...

    def measure_progress(self) -> BatchProgress | None:
        """Return the progress of the requests that were sent by batch."""
        ...

    def wind_down(self) -> None:
        """Start no more units; those that run are finished."""
        ...

    async def stop(self) -> None:
        """Cancel the units that run, and wait until they have ended."""
        ...

    def close(self, ending: RunEnding, /) -> Mapping[str, Any]:
        """Close every file, and return the members that this executor adds to the manifest. Blocks."""
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

    async def take_items(self) -> tuple[RunItem, ...]:
        """Wait for items that are written, and return those since the last call; none when there will be no more."""
        return await self._pool.take_results()

    @property
    def is_done(self) -> bool:
        """Return whether every unit that was read is judged. Asked when no more items will come."""
        return not self._pool.unstarted_count

    def measure_progress(self) -> None:
        """Return nothing: no request is sent by batch."""

    def wind_down(self) -> None:
        """Start no more units; those that run are finished."""
        self._pool.wind_down()

    async def stop(self) -> None:
        """Cancel the units that run, and wait until they have ended."""
        await self._pool.stop()

    def close(self, _ending: RunEnding, /) -> Mapping[str, Any]:
        """Return nothing: no file is open."""
        return {}


def keep_replies(assignment: Assignment, store: RunStore, *, resumed: bool) -> Assignment:
    """Return the assignment with a judge that keeps every reply in the run, and uses kept replies if it is resumed."""

    def wrap_model(model: Model, number: int) -> Model:
        return RunReplyModel(model, store, seat=number, resumed=resumed)

    return replace(assignment, judge=wrap_models(assignment.judge, wrap_model))
