"""The engine of a run: it opens the folder, has the cases judged and the results written, and ends the run.

Which judgements are to be made, and in which order, is decided in ``schedule.py`` and ``resume.py``. A case is judged
in ``judging.py``.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.concurrency import stop_tasks
from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.plain_data import digest_description
from adjudge.formats.text import clean
from adjudge.hooks import notify
from adjudge.judges.description import describe_judge, digest_judge, name_functions
from adjudge.judges.layers import close_named_models
from adjudge.judges.open import as_judge
from adjudge.judges.pair import PairResult
from adjudge.judges.retirement import find_retirements
from adjudge.models.retirement import Retirement
from adjudge.result import JudgeResult, Outcome
from adjudge.runs.batch.options import read_recorded
from adjudge.runs.case_terms import Terms
from adjudge.runs.executor import Executor, LocalExecutor, RunEnding, Work, keep_replies
from adjudge.runs.folder import (
    MANIFEST_FILE,
    Run,
    RunLock,
    check_resumable,
    make_manifest,
    read_manifest,
    write_manifest,
)
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.runs.judging import Assignment, resolve_question
from adjudge.runs.layers import RunLayers
from adjudge.runs.options import Plan, Progress, draw_places
from adjudge.runs.pool import Finish
from adjudge.runs.schedule import Schedule, Unit
from adjudge.runs.store import RunStore

if TYPE_CHECKING:
    # A live run has no use for these, and most runs are live.
    from adjudge.runs.batch.session import BatchProgress


_log = logging.getLogger("adjudge.runs")

RETIREMENT_PATIENCE = 1.0
"""Seconds that a complete run waits for the providers' answers about the retirement of its models."""


class Engine:
    """The state of a run between its beginning and its end."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.run: Run | None = None
        self.ended = asyncio.Event()
        self._executor: Executor | None = None
        self._schedule: Schedule | None = None
        self._lock: RunLock | None = None
        self._made_folder = False
        self._outcomes: Counter[Outcome] = Counter()
        self._fresh_count = 0
        self._cost_usd: float | None = 0.0
        self._function_names: frozenset[str] = frozenset()
        """The names of the judge and its seats if all of them are functions; none if one asks a model."""
        self._started = time.monotonic()
        self._is_complete = False
        self._is_winding_down = False
        self._resumed = False
        self._layers: RunLayers | None = None
        self._assignment: Assignment | None = None
        self._kept_assignment: Assignment | None = None
        """The same question, with every reply kept."""
        self._batches: BatchProgress | None = None
        """The progress of the requests that were sent by batch, when the run ended."""
        self._terms = Terms()
        self._manifest: dict[str, Any] = {}
        """The manifest of this run when it begins."""
        self._has_written = False
        """True if the manifest is written to the folder."""
        self._retirement_task: asyncio.Task[tuple[Retirement, ...]] | None = None
        self._retirements: tuple[Retirement, ...] = ()

    async def begin(self) -> None:
        """Check everything, open the folder, and begin to judge. Raises ``UsageError`` before a model is asked."""
        plan = self.plan = _restore_options(self.plan)
        judge = as_judge(plan.judge, keep_name=True)
        if plan.batch is not None:
            from adjudge.runs.batch.session import check_judge  # before anything is written

            check_judge(judge)
        self._layers = layers = RunLayers(
            cache=plan.cache, budget=plan.budget, prices=plan.prices, wrap=plan.wrap, limit=plan.limit
        )
        # With the layers around the judge, so that errors in them are raised before anything is written.
        self._assignment = assignment = await self._make_assignment(
            layers.apply(judge, calls=1 if plan.on_conflict is None else 2)
        )
        for description, count in plan.source.list_unapplied().items():
            _log.warning("%s: %s", clean(description, keep_lines=False), f"{count:,}")
        total = await plan.source.count() if plan.sample is not None else None
        places = draw_places(total, plan.sample, plan.seed) if plan.sample is not None and total is not None else None
        manifest = _make_run_manifest(plan, judge, assignment, total)
        self._function_names = name_functions(manifest["judge"])
        self._made_folder = plan.out is not None and not plan.out.exists()
        folder, owner = _make_folder(plan.out)
        run = self._open_folder(folder, owner, manifest)
        has_items = self._resumed and self._store.has_begun()
        if has_items:
            self._store.open()
        layers.reserve_in(self._store, resumed=has_items)
        if has_items:
            self._outcomes.update(self._store.count())
        self._terms = assignment.terms
        if has_items and not plan.source.reads_once:
            await self._make_schedule(assignment, places, resumed=True).check()
        self._schedule = schedule = self._make_schedule(assignment, places, resumed=has_items)
        self._kept_assignment = kept_assignment = keep_replies(assignment, self._store, resumed=self._resumed)
        if not self._resumed:
            self._write_start()
        await self._open_executor(run, judge, kept_assignment, layers, schedule)
        # A bare task: it is waited for when the run is over, and ``end`` stops it.
        self._retirement_task = asyncio.create_task(find_retirements(judge))
        if self._is_winding_down:
            self.wind_down()

    def _make_schedule(self, assignment: Assignment, places: frozenset[int] | None, *, resumed: bool) -> Schedule:
        """Make the schedule of the run; with ``places``, only the cases at these places are judged."""
        return Schedule(
            self.plan.source,
            self._store,
            places,
            self.plan.repeat,
            resumed=resumed,
            retry=self.plan.retry,
            check=assignment.check_case,
            count=self._terms.count,
        )

    async def _open_executor(
        self, run: Run, judge: Any, assignment: Assignment, layers: RunLayers, schedule: Schedule
    ) -> None:
        """Make the executor that judges the units of the schedule, and open it."""
        self._executor = executor = _make_executor(
            Work(
                plan=self.plan,
                units=self._read_units(schedule),
                judge=judge,
                assignment=assignment,
                layers=layers,
                schedule=schedule,
                store=self._store,
                run=run.id,
                resumed=self._resumed,
                done=sum(self._outcomes.values()),
                keep=partial(self._hand_in_result, layers, schedule),
            )
        )
        await executor.open()
        if self._has_written:
            executor.begin()

    def wind_down(self) -> None:
        """Start no more cases; those that are being judged are finished."""
        self._is_winding_down = True
        if self._executor is not None:
            self._executor.wind_down()

    async def take_items(self) -> tuple[RunItem, ...]:
        """Wait for items that are written, and return those since the last call; none when there will be no more."""
        if self._executor is None:
            return ()
        items = await self._executor.take_items()
        if items:
            progress = self.measure_progress() if self.plan.on_progress else None
            await notify(self.plan.on_progress, progress, name="on_progress")
        elif self._schedule is not None:
            self._is_complete = self._schedule.complete and self._executor.is_done
        return items

    async def end(self) -> None:
        """End the run: cancel running cases, write the results and the manifest, and close files, models and lock."""
        try:
            if self._executor is not None:
                await self._executor.stop()
            self._retirements = await self._read_retirements()
            await self._close_models()
            if self._is_complete:
                self._write_start()
            if self.run is not None and self._has_written:
                if self._layers is not None:
                    self._layers.note_spent()
                await self.run.store.flush()
                self.run = await asyncio.to_thread(
                    self._discard_run if self._has_begun_nothing() else self._conclude_run, self.run
                )
            elif self.run is not None:
                await asyncio.to_thread(self._withdraw_run, self.run)
        finally:
            if self._layers is not None:
                await asyncio.to_thread(self._layers.close)
            if self._lock is not None:
                self._lock.release()
            if self._executor is not None:
                with suppress(AdjudgeError):  # the file of the batches may have been deleted
                    self._batches = self._executor.measure_progress()
            # The executor refers to this engine. Without that cycle, a run that nobody uses is freed at once.
            self._executor = None
            self.ended.set()

    async def _read_retirements(self) -> tuple[Retirement, ...]:
        """Return the retirements of models that providers have stated; a complete run waits a moment for them."""
        task = self._retirement_task
        if task is None:
            return ()
        try:
            await asyncio.wait({task}, timeout=RETIREMENT_PATIENCE if self._is_complete else 0.0)
        finally:
            await stop_tasks([task])
        # An error is ignored: it must not make the run fail, and only means that no retirement is known.
        return () if task.cancelled() or task.exception() is not None else task.result()

    async def _close_models(self) -> None:
        """Close the models that rubrics named; the judge itself only if it was made here from the name of a model."""
        executor_judges = () if self._executor is None else self._executor.judges
        for judge in (
            *(assignment.judge for assignment in (self._assignment, self._kept_assignment) if assignment is not None),
            *executor_judges,
        ):
            await close_named_models(judge)
        if isinstance(self.plan.judge, str) and self._kept_assignment is not None:
            await self._kept_assignment.judge.aclose()

    def measure_progress(self) -> Progress:
        """Return the progress of the run."""
        return Progress(
            done=sum(self._outcomes.values()),
            fresh=self._fresh_count,
            total=self._schedule.total if self._schedule is not None else None,
            seconds=time.monotonic() - self._started,
            outcomes=dict(self._outcomes),
            cost_usd=self._cost_usd,
            batch=self._batches if self._executor is None else self._executor.measure_progress(),
        )

    async def _make_assignment(self, judge: Any) -> Assignment:
        """Resolve the question of the plan, for a judge with its layers. Raises ``UsageError``."""
        plan = self.plan
        cases_bring = plan.source.bring_criteria
        return await resolve_question(judge, plan.rubric, plan.arguments, plan.on_conflict, cases_bring=cases_bring)

    def _hand_in_result(
        self,
        layers: RunLayers,
        schedule: Schedule,
        unit: Unit,
        result: JudgeResult | PairResult,
        finish: Finish[RunItem],
    ) -> None:
        """Hand in the result of a unit to the store, to be written.

        The store calls ``_finish_unit`` when the item is written, or with the error. That calls ``finish``, which tells
        the executor that the unit is finished.
        """
        item = RunItem(
            case=unit.case,
            place=unit.place,
            sample=unit.sample,
            subject=unit.subject,
            result=result,
            rubric=self._terms.find_rubric(unit.case),
        )
        layers.note_spent()
        self._store.hand_in(item, partial(self._finish_unit, schedule, unit, item, finish), body=unit.body or None)

    def _finish_unit(
        self, schedule: Schedule, unit: Unit, item: RunItem, finish: Finish[RunItem], error: Exception | None
    ) -> None:
        """Count an item that is written, and hand it to ``finish``; with an error, hand that to ``finish``."""
        if error is None:
            try:
                self._count_item(schedule, unit, item)
            except Exception as count_error:  # noqa: BLE001 - the run ends with it; the store calls others after this
                error = count_error
        finish(item if error is None else error)

    def _count_item(self, schedule: Schedule, unit: Unit, item: RunItem) -> None:
        """Count an item and its cost; if it replaces an earlier one, that is not counted any more."""
        schedule.finish(unit)
        self._fresh_count += 1
        self._outcomes[item.result.outcome] += 1
        if unit.replaces is not None:
            self._outcomes[unit.replaces] -= 1
        self._add_cost(item.result)

    def _add_cost(self, result: JudgeResult | PairResult) -> None:
        """Add the cost of a result; the sum becomes ``None`` if the cost is unknown."""
        if lacks_cost(result, self._function_names):
            self._cost_usd = None
        elif self._cost_usd is not None and result.usage is not None:
            self._cost_usd += result.usage.cost_usd or 0.0

    def _open_folder(self, folder: Path, owner: object, manifest: dict[str, Any]) -> Run:
        """Lock the folder, and make the run in it. Raises ``UsageError`` if it has a run that cannot be resumed.

        An earlier run in the folder is only read, until ``_write_start``.
        """
        self._lock = RunLock(folder)
        self._lock.acquire()
        self._store = store = RunStore(folder)
        self._resumed = (folder / MANIFEST_FILE).exists()
        self.run = run = Run(folder=folder, manifest=manifest, store=store, kept_alive=owner)
        self._manifest = manifest
        if self._resumed:
            if not self.plan.resume:
                raise UsageError(
                    f"{folder} holds a run already; resume it with ",
                    Argument("resume", "True"),
                    ", or name another folder",
                    argument="out",
                )
            store.freeze()
            recorded = read_manifest(folder)
            erased = store.count_erased() if store.has_begun() else 0
            if erased:
                # The data set may still have these cases. They would be judged, and kept, again.
                raise UsageError(
                    f"the run {folder} cannot be resumed: {erased} of its cases "
                    f"{'was' if erased == 1 else 'were'} deleted by `adjudge forget`; begin another run with data "
                    "that lacks them"
                )
            self.run = replace(run, manifest=recorded)
            check_resumable(folder, recorded, manifest)
            kept_members = {name: recorded[name] for name in ("id", "created_at") if name in recorded}
            self._manifest = {**recorded, **manifest, **kept_members}
        return self.run

    def _write_start(self) -> None:
        """Write the manifest and the empty file of results, and begin to send requests. Does so once.

        Nothing is written to the folder of a resumed run before this, because the run may still be refused.
        """
        run = self.run
        if self._has_written or run is None:
            return
        # The manifest is written first: a process that is killed between the two leaves a run that can be resumed.
        write_manifest(run.folder, self._manifest)
        self._has_written = True
        self.run = replace(run, manifest=self._manifest)
        self._store.thaw()
        if not (self._resumed and self._store.has_begun()):
            self._store.create()
        if self._executor is not None:
            self._executor.begin()

    async def _read_units(self, schedule: Schedule) -> AsyncGenerator[Unit, None]:
        """Yield the units of the schedule, and write the start of the run before the first one."""
        async with aclosing(schedule.iterate_units()) as units:
            async for unit in units:
                if self._is_winding_down and not self._has_written:
                    return
                self._write_start()
                yield unit

    def _has_begun_nothing(self) -> bool:
        """Return whether a new run ended before its first case, as when the first row of the data set is not valid."""
        has_cases = self._schedule is not None and bool(self._schedule.cases)
        return not (self._resumed or self._is_winding_down or self._is_complete or has_cases)

    def _withdraw_run(self, run: Run) -> None:
        """Close the files of a run that is not resumed after all, and leave its folder as it was found."""
        run.store.close()
        self._close_executor("withdrawn")
        self._clean_folder(run.folder)

    def _clean_folder(self, folder: Path) -> None:
        """Remove the lock from a folder that got no run, and the folder itself if this run made it."""
        if self._lock is not None:
            self._lock.undo()
        if self._made_folder:
            with suppress(OSError):  # the folder is not empty: somebody has put a file there since
                folder.rmdir()

    def _close_executor(self, ending: RunEnding) -> Mapping[str, Any]:
        """Close the executor's files, and return the members that it adds to the manifest."""
        return {} if self._executor is None else self._executor.close(ending)

    def _discard_run(self, run: Run) -> None:
        """Delete the files of a run that ended before its first case.

        No model was asked, so nothing is lost. If they stayed, the corrected command would find a run in the folder.
        """
        self._close_executor("empty")
        run.store.remove()
        (run.folder / MANIFEST_FILE).unlink(missing_ok=True)
        self._clean_folder(run.folder)

    def _conclude_run(self, run: Run) -> Run:
        """Write status, counts and summary of the run into its manifest, close its store, and return the run."""
        schedule = self._schedule
        is_finished = self._is_complete and schedule is not None
        executor_members = self._close_executor("complete" if self._is_complete else "interrupted")
        changes: dict[str, Any] = {
            "status": "finished" if is_finished else "interrupted",
            "updated_at": datetime.now(UTC).isoformat(),
        }
        summary = run.store.sum_up(self._function_names)
        changes |= {"counts": summary.pop("counts"), "summary": summary}
        if self._layers is not None and (budget := self._layers.describe()) is not None:
            changes["budget"] = budget
        if schedule is not None and is_finished:
            digests = {"digest": schedule.digest, "contents": schedule.contents.to_dict()}
            changes["dataset"] = {**self.plan.source.describe(), "cases": schedule.cases, **digests}
        changes |= executor_members
        if self._retirements:
            changes["retirements"] = [retirement.to_dict() for retirement in self._retirements]
        if schedule is not None and schedule.criteria_counts:
            changes["own"] = dict(schedule.criteria_counts)
        manifest = {**run.manifest, **changes}
        write_manifest(run.folder, manifest)
        run.store.close()
        return replace(run, manifest=manifest)


def _restore_options(plan: Plan) -> Plan:
    """Return the plan of a resumed run with the budget and batch options it was begun with, unless it has others.

    Resuming must not lift a budget. And requests that were sent by batch must not be sent, and paid for, again.
    """
    if not plan.resume or plan.out is None or not (plan.out / MANIFEST_FILE).exists():
        return plan
    recorded = read_manifest(plan.out)["options"]
    return replace(
        plan,
        budget=recorded.get("budget") if plan.budget is None else plan.budget,
        batch=read_recorded(recorded.get("batch"), plan.out) if plan.batch is None else plan.batch,
    )


def _make_run_manifest(plan: Plan, judge: Any, assignment: Assignment, total: int | None) -> dict[str, Any]:
    """Make the manifest of a new run: its data set, judge, rubric, question and options, and digests of them."""
    described = describe_judge(judge)
    rubric = assignment.rubric.to_dict() if assignment.rubric is not None else None
    return make_manifest(
        command=plan.command,
        dataset={**plan.source.describe(), "cases": total, "digest": None},
        judge=described,
        rubric=rubric,
        asked=assignment.described,
        digests={
            "judge": digest_judge(described),
            "rubric": digest_description(rubric),
            "asked": digest_description(assignment.described),
        },
        options={**plan.options, "threshold": assignment.threshold},
    )


class _TemporaryFolder:
    """A temporary folder that is removed when nothing refers to this object any more, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="adjudge-run-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _make_folder(out: Path | None) -> tuple[Path, _TemporaryFolder | None]:
    """Make the folder of a run; without ``out``, a temporary one.

    Returns the path, and the object that removes a temporary folder, ``None`` for any other. Raises ``UsageError``.
    """
    if out is None:
        owner = _TemporaryFolder()
        return owner.path, owner
    try:
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"the run {out} cannot be written: {error.strerror}; name another folder") from None
    return out, None


def _make_executor(work: Work) -> Executor:
    """Make the executor for a run's plan: by batch, on a Ray cluster, or in this process."""
    plan = work.plan
    # The other modules are imported only where they are used, because most runs are live.
    if plan.batch is not None:
        from adjudge.runs.batch.executor import BatchExecutor

        return BatchExecutor(work, plan.batch)
    if plan.cluster is not None:
        from adjudge.runs.ray.executor import RayExecutor

        return RayExecutor(work, plan.cluster)
    return LocalExecutor(work)
