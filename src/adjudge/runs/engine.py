"""The state of a run between its beginning and its end: its assignment, its executor, its store and its lock.

Which judgements are to be made, and in which order, is decided in ``schedule.py`` and ``resume.py``; what each comes
to, in ``judging.py`` and the judge.
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
from adjudge.formats.plain import digest_description
from adjudge.formats.text import clean
from adjudge.hooks import notify
from adjudge.judges.description import describe_judge, digest_judge, name_functions
from adjudge.judges.layers import close_others
from adjudge.judges.open import as_judge
from adjudge.judges.pair import PairResult
from adjudge.judges.retirement import find_retirements
from adjudge.models.retirement import Retirement
from adjudge.result import JudgeResult, Outcome
from adjudge.runs.batch.options import read_recorded
from adjudge.runs.executor import Ending, Executor, LocalExecutor, Work, keep_replies
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
from adjudge.runs.terms import Terms

if TYPE_CHECKING:
    # A live run has no use for these, and most runs are live.
    from adjudge.runs.batch.session import BatchProgress


_log = logging.getLogger("adjudge.runs")

RETIREMENT_PATIENCE = 1.0
"""Seconds that a run which is over waits for what providers say of the retirement of its models."""


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
        self._fresh = 0
        self._cost: float | None = 0.0
        self._functions: frozenset[str] = frozenset()
        """The judge's name if it asks no model."""
        self._started = time.monotonic()
        self._complete = False
        self._winding = False
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
        """True if that is in the folder."""
        self._asking_retirements: asyncio.Task[tuple[Retirement, ...]] | None = None
        self._retirements: tuple[Retirement, ...] = ()

    async def begin(self) -> None:
        """Check everything, open or create the folder, and begin; raises ``UsageError`` with nothing asked."""
        plan = self.plan = _restore_options(self.plan)
        judge = as_judge(plan.judge, keep_name=True)
        if plan.batch is not None:
            from adjudge.runs.batch.session import check_judge  # before anything is written

            check_judge(judge)
        self._layers = layers = RunLayers(
            cache=plan.cache, budget=plan.budget, prices=plan.prices, wrap=plan.wrap, limit=plan.limit
        )
        # Behind its layers, so that what is wrong with them is said before anything is written.
        self._assignment = assignment = await self._make_assignment(
            layers.apply(judge, calls=1 if plan.on_conflict is None else 2)
        )
        for text, number in plan.source.list_unapplied().items():
            _log.warning("%s: %s", clean(text, keep_lines=False), f"{number:,}")
        total = await plan.source.count() if plan.sample is not None else None
        places = draw_places(total, plan.sample, plan.seed) if plan.sample is not None and total is not None else None
        manifest = _make_run_manifest(plan, judge, assignment, total)
        self._functions = name_functions(manifest["judge"])
        self._made_folder = plan.out is not None and not plan.out.exists()
        folder, owner = _find_folder(plan.out)
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
            self._write_beginning()
        await self._open_executor(run, judge, kept_assignment, layers, schedule)
        # A bare task: nobody waits for it before the run is over, and ``end`` stops it.
        self._asking_retirements = asyncio.create_task(find_retirements(judge))
        if self._winding:
            self.wind_down()

    def _make_schedule(self, assignment: Assignment, places: frozenset[int] | None, *, resumed: bool) -> Schedule:
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
        """Open the executor that judges what is due."""
        self._executor = executor = _make_executor(
            Work(
                plan=self.plan,
                units=self._begin_with(schedule),
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
        """Begin nothing more."""
        self._winding = True
        if self._executor is not None:
            self._executor.wind_down()

    async def take(self) -> tuple[RunItem, ...]:
        """Return the items that are kept since; nothing when there will be none."""
        if self._executor is None:
            return ()
        items = await self._executor.take()
        if items:
            await notify(
                self.plan.on_progress, self.measure_progress() if self.plan.on_progress else None, name="on_progress"
            )
        elif self._schedule is not None:
            self._complete = self._schedule.complete and self._executor.is_done
        return items

    async def end(self) -> None:
        """Leave nothing behind: nobody is asked, everything handed in is in the file, the manifest says how it is."""
        try:
            if self._executor is not None:
                await self._executor.stop()
            self._retirements = await self._read_retirements()
            await self._close_models()
            if self._complete:
                self._write_beginning()
            if self.run is not None and self._has_written:
                if self._layers is not None:
                    self._layers.note_spent()
                await self.run.store.flush()
                self.run = await asyncio.to_thread(
                    self._discard_run if self._began_nothing() else self._conclude_run, self.run
                )
            elif self.run is not None:
                await asyncio.to_thread(self._leave_run, self.run)
        finally:
            if self._layers is not None:
                await asyncio.to_thread(self._layers.close)
            if self._lock is not None:
                self._lock.release()
            if self._executor is not None:
                with suppress(AdjudgeError):  # of a file that is gone
                    self._batches = self._executor.measure_progress()
            self._executor = None  # it knows us: without this knot, a run that nobody holds is gone at once
            self.ended.set()

    async def _read_retirements(self) -> tuple[Retirement, ...]:
        """Return what providers have said of the models' retirement by now; a complete run waits a moment for it."""
        task = self._asking_retirements
        if task is None:
            return ()
        try:
            await asyncio.wait({task}, timeout=RETIREMENT_PATIENCE if self._complete else 0.0)
        finally:
            await stop_tasks([task])
        # An error is no reason to lose a run: without an answer, it is not known when the models are retired.
        return () if task.cancelled() or task.exception() is not None else task.result()

    async def _close_models(self) -> None:
        """Close the models that rubrics named, and the judge itself only if the plan names it by a text."""
        executor_judges = () if self._executor is None else self._executor.judges
        for judge in (
            *(assignment.judge for assignment in (self._assignment, self._kept_assignment) if assignment is not None),
            *executor_judges,
        ):
            await close_others(judge)
        if isinstance(self.plan.judge, str) and self._kept_assignment is not None:
            await self._kept_assignment.judge.aclose()

    def measure_progress(self) -> Progress:
        """Return how far the run is."""
        return Progress(
            done=sum(self._outcomes.values()),
            fresh=self._fresh,
            total=self._schedule.total if self._schedule is not None else None,
            seconds=time.monotonic() - self._started,
            outcomes=dict(self._outcomes),
            cost_usd=self._cost,
            batch=self._batches if self._executor is None else self._executor.measure_progress(),
        )

    async def _make_assignment(self, judge: Any) -> Assignment:
        plan = self.plan
        bring = plan.source.bring_criteria
        return await resolve_question(judge, plan.rubric, plan.arguments, plan.on_conflict, cases_bring=bring)

    def _hand_in_result(
        self,
        layers: RunLayers,
        schedule: Schedule,
        unit: Unit,
        result: JudgeResult | PairResult,
        finish: Finish[RunItem],
    ) -> None:
        """Hand in the result of a unit, to be kept.

        The store calls ``_finish_unit`` once the item cannot be lost any more, or with what went wrong; that tells
        ``finish``, by which whoever began the unit hears of its outcome.
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
        """Count an item that was kept, and hand it to ``finish``; an error takes its place."""
        if error is None:
            try:
                self._count_item(schedule, unit, item)
            except Exception as problem:  # noqa: BLE001 - the run ends with it; those that are told next are told
                error = problem
        finish(item if error is None else error)

    def _count_item(self, schedule: Schedule, unit: Unit, item: RunItem) -> None:
        schedule.finish(unit)
        self._fresh += 1
        self._outcomes[item.result.outcome] += 1
        if unit.replaces is not None:
            self._outcomes[unit.replaces] -= 1
        self._add_cost(item.result)

    def _add_cost(self, result: JudgeResult | PairResult) -> None:
        if lacks_cost(result, self._functions):
            self._cost = None
        elif self._cost is not None and result.usage is not None:
            self._cost += result.usage.cost_usd or 0.0

    def _open_folder(self, folder: Path, owner: object, manifest: dict[str, Any]) -> Run:
        """Lock the folder, and read what it holds; raises ``UsageError`` where this run cannot resume that one.

        A run that is there is only looked at, until ``_write_beginning``.
        """
        self._lock = RunLock(folder)
        self._lock.take()
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
                # The data may have them still, and what is judged of them would be kept again.
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

    def _write_beginning(self) -> None:
        """Write that the run is under way. Nothing of a resumed run is written before: it may still be refused."""
        run = self.run
        if self._has_written or run is None:
            return
        # The manifest first: a process that is killed between the two leaves a run that can go on.
        write_manifest(run.folder, self._manifest)
        self._has_written = True
        self.run = replace(run, manifest=self._manifest)
        self._store.thaw()
        if not (self._resumed and self._store.has_begun()):
            self._store.create()
        if self._executor is not None:
            self._executor.begin()

    async def _begin_with(self, schedule: Schedule) -> AsyncGenerator[Unit, None]:
        """The units of a run, whose beginning is written before the first one."""
        async with aclosing(schedule.iterate_units()) as units:
            async for unit in units:
                if self._winding and not self._has_written:
                    return
                self._write_beginning()
                yield unit

    def _began_nothing(self) -> bool:
        """Return whether this run ended before its first case, as with a first row that is no case."""
        schedule = self._schedule
        return not (self._resumed or self._winding or self._complete or (schedule is not None and schedule.cases))

    def _leave_run(self, run: Run) -> None:
        """Leave the folder of a run that was there as it was found."""
        run.store.close()
        self._close_executor("withdrawn")
        self._leave_folder(run.folder)

    def _leave_folder(self, folder: Path) -> None:
        """Take the lock out of a folder that got no run, and the folder itself where this run made it."""
        if self._lock is not None:
            self._lock.undo()
        if self._made_folder:
            with suppress(OSError):  # somebody has put something there since
                folder.rmdir()

    def _close_executor(self, ending: Ending) -> Mapping[str, Any]:
        return {} if self._executor is None else self._executor.close(ending)

    def _discard_run(self, run: Run) -> None:
        # Nobody was asked, so nothing is lost; and the same command, put right, must not be told that a run is there.
        self._close_executor("empty")
        run.store.remove()
        (run.folder / MANIFEST_FILE).unlink(missing_ok=True)
        self._leave_folder(run.folder)

    def _conclude_run(self, run: Run) -> Run:
        """Write what the run came to into its manifest, close its store, and return the run."""
        schedule = self._schedule
        whole = self._complete and schedule is not None
        executed = self._close_executor("complete" if self._complete else "interrupted")
        changes: dict[str, Any] = {
            "status": "finished" if whole else "interrupted",
            "updated_at": datetime.now(UTC).isoformat(),
        }
        summary = run.store.sum_up(self._functions)
        changes |= {"counts": summary.pop("counts"), "summary": summary}
        if self._layers is not None and (budget := self._layers.describe()) is not None:
            changes["budget"] = budget
        if schedule is not None and whole:
            digests = {"digest": schedule.digest, "contents": schedule.contents.to_dict()}
            changes["dataset"] = {**self.plan.source.describe(), "cases": schedule.cases, **digests}
        changes |= executed
        if self._retirements:
            changes["retirements"] = [retirement.to_dict() for retirement in self._retirements]
        if schedule is not None and schedule.criteria_counts:
            changes["own"] = dict(schedule.criteria_counts)
        manifest = {**run.manifest, **changes}
        write_manifest(run.folder, manifest)
        run.store.close()
        return replace(run, manifest=manifest)


def _restore_options(plan: Plan) -> Plan:
    """Return the plan with the budget and the batches of the run that goes on, where it names none itself.

    Resuming must not lift a budget, and what was sent by batch must not be asked, and paid for, again.
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
    """Make the manifest of a new run: what is asked, of whom, by which rubric, and their digests."""
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


class _Temporary:
    """A folder that is removed when nothing refers to it any more, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="adjudge-run-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _find_folder(out: Path | None) -> tuple[Path, _Temporary | None]:
    """Make the folder of a run, and return it with the owner of a temporary one, else ``None``.

    Raises ``UsageError``.
    """
    if out is None:
        owner = _Temporary()
        return owner.path, owner
    try:
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"the run {out} cannot be written: {error.strerror}; name another folder") from None
    return out, None


def _make_executor(work: Work) -> Executor:
    """The executor that a run's plan asks for."""
    plan = work.plan
    # A live run has no use for the others, and most runs are live.
    if plan.batch is not None:
        from adjudge.runs.batch.executor import BatchExecutor

        return BatchExecutor(work, plan.batch)
    if plan.cluster is not None:
        from adjudge.runs.ray.executor import RayExecutor

        return RayExecutor(work, plan.cluster)
    return LocalExecutor(work)
