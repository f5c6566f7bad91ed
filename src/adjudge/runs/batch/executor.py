"""A run by batches: its first cases are judged live, and the others wait for what comes back from the providers.

Batches are made, sent, found again and fetched in ``dispatcher.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from adjudge.models.rate_limit import Pace
from adjudge.runs.batch.first_cases import FirstCases, Stages
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.batch.session import BatchProgress, BatchSession, find_timeout, remove_time_limits
from adjudge.runs.executor import RunEnding, Work, keep_replies
from adjudge.runs.item import RunItem
from adjudge.runs.judging import Assignment, check_ready
from adjudge.runs.pool import Finish, Pool
from adjudge.runs.schedule import Unit


class BatchExecutor:
    """The units of a run, judged by batch."""

    def __init__(self, work: Work, options: BatchOptions) -> None:
        self._work, self._options = work, options
        self._pool: Pool[Unit, RunItem] | None = None
        self._is_stopped = False
        self._gave_up = False
        """True if running units were abandoned, so that not every unit is judged."""
        self._session = BatchSession(
            options,
            work.store.path.parent,
            limit=work.plan.limit,
            prices=work.plan.prices,
            timeout=find_timeout(work.judge),
            is_all_asked=self._is_all_asked,
            count_judging=lambda: 0 if self._pool is None else self._pool.running_count,
            on_paid_twice=work.layers.charge_paid_twice,
        )
        # Once a batch was planned, the check has been passed by an earlier process.
        has_batches = bool(self._session.store.list_batches())
        checked_count = options.check if has_batches else work.done
        self._first_cases = FirstCases(options.check - checked_count)
        self._batched_assignment: Assignment | None = None
        """The question, asked by batch."""

    @property
    def judges(self) -> tuple[Any, ...]:
        """The judge whose models wait for batches."""
        return () if self._batched_assignment is None else (self._batched_assignment.judge,)

    async def open(self) -> None:
        """Make the judge that waits for batches, and the pool; raises ``UsageError`` for a model without batches."""
        work, layers = self._work, self._work.layers
        judge = layers.apply_batches(remove_time_limits(work.judge), self._session)
        batched = keep_replies(replace(work.assignment, judge=judge), work.store, resumed=work.resumed)
        self._batched_assignment = batched
        # The call or the rubric may name another model, and that may have no batches.
        await check_ready(batched)
        stages = Stages(self._first_cases, layers.limit, layers.bound(Pace(self._options.size)))
        self._pool = Pool(self._first_cases.hold_back(work.units), partial(self._judge_unit, batched), stages)

    def begin(self) -> None:
        """Begin to send requests and collect replies in the background."""
        if self._pool is not None and not self._is_stopped:
            self._session.begin(self._give_up)

    async def take_items(self) -> tuple[RunItem, ...]:
        """Wait for items that are written, and return those since the last call; none when there will be no more."""
        return () if self._pool is None else await self._pool.take_results()

    @property
    def is_done(self) -> bool:
        """Return whether every unit that was read is judged."""
        return self._pool is not None and not self._pool.unstarted_count and not self._gave_up

    def measure_progress(self) -> BatchProgress:
        """Return the progress of the requests that go into batches."""
        return self._session.measure_progress(checking=not self._first_cases.have_passed)

    def wind_down(self) -> None:
        """Start no more units. The live ones of the first cases are finished; those that wait for batches are not."""
        if self._pool is not None:
            self._pool.wind_down()
        if self._first_cases.have_passed:
            self._session.halt()

    async def stop(self) -> None:
        """Cancel the units that run; batches that were sent continue at the provider."""
        self._is_stopped = True
        if self._pool is not None:
            await self._pool.stop()
        await self._session.stop()

    def close(self, ending: RunEnding, /) -> Mapping[str, Any]:
        """Close the file of the batches, and return the manifest's member about requests that may be paid for twice.

        The files of an ``empty`` run are deleted, and of a ``withdrawn`` one those that this run has made.
        """
        if ending == "withdrawn":
            self._session.withdraw()
            return {}
        self._session.close(complete=ending == "complete")
        if ending == "empty":
            self._session.delete()
        paid_again = self._session.paid_again
        return {} if paid_again is None else {"paid_again": paid_again}

    async def _judge_unit(self, assignment: Assignment, unit: Unit, finish: Finish[RunItem]) -> None:
        """Judge a unit by batch; one of the first cases is judged live, and its outcome is noted."""
        if not self._first_cases.is_live(unit):
            await self._work.judge_unit(assignment, unit, finish)
            return

        def note_and_finish(item: RunItem | BaseException) -> None:
            if isinstance(item, RunItem):
                self._first_cases.note(item)
            finish(item)

        await self._work.judge_unit(self._work.assignment, unit, note_and_finish)

    def _give_up(self, error: BaseException | None) -> None:
        """End the run because the dispatcher of batches has ended, perhaps with an error."""
        self._gave_up = True
        if self._pool is not None:
            self._pool.abandon(error)

    def _is_all_asked(self) -> bool:
        """Return whether no further unit can be started until one is finished, so that no more requests will come."""
        pool = self._pool
        return pool is None or pool.is_full or (self._work.schedule.complete and not pool.unstarted_count)
