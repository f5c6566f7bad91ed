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
from adjudge.runs.batch.session import BatchProgress, BatchSession, find_timeout, make_patient
from adjudge.runs.executor import Ending, Work, keep_replies
from adjudge.runs.item import RunItem
from adjudge.runs.judging import Assignment, check_ready
from adjudge.runs.pool import Finish, Pool
from adjudge.runs.schedule import Unit


class BatchExecutor:
    """The units of a run, judged by batch."""

    def __init__(self, work: Work, options: BatchOptions) -> None:
        self._work, self._options = work, options
        self._pool: Pool[Unit, RunItem] | None = None
        self._is_over = False
        self._gave_up = False
        """True if what is under way was let go, so that it is not known that all is judged."""
        self._session = BatchSession(
            options,
            work.store.path.parent,
            limit=work.plan.limit,
            prices=work.plan.prices,
            timeout=find_timeout(work.judge),
            is_all_asked=self._is_all_asked,
            count_judging=lambda: 0 if self._pool is None else self._pool.under_way,
            on_paid_twice=work.layers.note_paid,
        )
        checked = work.done if not self._session.store.list_batches() else options.check
        self._first = FirstCases(options.check - checked)
        self._batched: Assignment | None = None
        """The question, asked by batch."""

    @property
    def judges(self) -> tuple[Any, ...]:
        """The judge whose models wait for batches."""
        return () if self._batched is None else (self._batched.judge,)

    async def open(self) -> None:
        """Get ready; raises ``UsageError`` for a judge whose model has no batches."""
        work, layers = self._work, self._work.layers
        judge = layers.apply_batches(make_patient(work.judge), self._session)
        self._batched = batched = keep_replies(replace(work.assignment, judge=judge), work.store, resumed=work.resumed)
        # A model that the call or the rubric names in place of the judge's own may have none.
        await check_ready(batched)
        stages = Stages(self._first, layers.limit, layers.bound(Pace(self._options.size)))
        self._pool = Pool(self._first.hold_back(work.units), partial(self._judge_unit, batched), stages)

    def begin(self) -> None:
        """Send and collect in the background."""
        if self._pool is not None and not self._is_over:
            self._session.begin(self._give_up)

    async def take(self) -> tuple[RunItem, ...]:
        """The items that were kept since."""
        return () if self._pool is None else await self._pool.take()

    @property
    def is_done(self) -> bool:
        """Return whether every unit that was read is judged."""
        return self._pool is not None and not self._pool.left and not self._gave_up

    def measure_progress(self) -> BatchProgress:
        """Return the progress of the requests."""
        return self._session.measure_progress(checking=not self._first.over)

    def wind_down(self) -> None:
        """Begin nothing more. What waits for a batch would wait for hours; the first cases have their time."""
        if self._pool is not None:
            self._pool.wind_down()
        if self._first.over:
            self._session.halt()

    async def stop(self) -> None:
        """Cancel what is under way; what was sent goes on at the provider."""
        self._is_over = True
        if self._pool is not None:
            await self._pool.stop()
        await self._session.stop()

    def close(self, ending: Ending, /) -> Mapping[str, Any]:
        """Close the file of the batches, and return what the manifest says of requests that may be paid for twice.

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
        """Judge a unit by batch; one of the first cases is judged live, and its outcome noted."""
        if not self._first.is_live(unit):
            await self._work.judge_unit(assignment, unit, finish)
            return

        def note_and_finish(item: RunItem | BaseException) -> None:
            if isinstance(item, RunItem):
                self._first.note(item)
            finish(item)

        await self._work.judge_unit(self._work.assignment, unit, note_and_finish)

    def _give_up(self, error: BaseException | None) -> None:
        """End a run whose batches have ended."""
        self._gave_up = True
        if self._pool is not None:
            self._pool.abandon(error)

    def _is_all_asked(self) -> bool:
        # What is read and not begun is still to ask; what the budget keeps back asks when something has come back.
        pool = self._pool
        return pool is None or pool.is_full or (self._work.schedule.complete and not pool.left)
