"""The state of a run between its beginning and its end: what is asked, what is kept, and who holds the folder."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from adjudge.concurrency import stop_tasks
from adjudge.errors import UsageError
from adjudge.hooks import notify
from adjudge.judges.layers import close_others, rewire
from adjudge.judges.open import as_judge
from adjudge.judges.pair import PairResult
from adjudge.judges.retirement import find_retirements
from adjudge.models.model import Model
from adjudge.models.rate_limit import Pace
from adjudge.models.retirement import Retirement
from adjudge.result import JudgeResult, Outcome
from adjudge.runs.batch.options import BatchOptions, read_recorded
from adjudge.runs.folder import MANIFEST_FILE, Run, RunLock, check_same, make_manifest, read_manifest, write_manifest
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.runs.judging import Assignment, check_ready, describe_judge, digest, digest_judge, settle_question
from adjudge.runs.kept_replies import KeptModel
from adjudge.runs.layers import RunLayers
from adjudge.runs.options import Plan, Progress, draw
from adjudge.runs.pool import Pool, Settle
from adjudge.runs.schedule import Schedule, Unit
from adjudge.runs.store import RunStore
from adjudge.runs.terms import Terms

if TYPE_CHECKING:
    # A live run has no use for these, and most runs are live.
    from adjudge.runs.batch.first_cases import FirstCases
    from adjudge.runs.batch.session import BatchSession


RETIREMENT_PATIENCE = 1.0
"""Seconds that a run which is over waits for what providers say of the retirement of its models."""


class RunPool(Protocol):
    """Where the units of a run are judged."""

    async def take(self) -> tuple[RunItem, ...]:
        """What is kept since, at least one; nothing when all is done."""
        ...

    @property
    def left(self) -> int:
        """Units that were read and not begun."""
        ...

    def wind_down(self) -> None:
        """Begin nothing more; what is under way is finished."""
        ...

    async def stop(self) -> None:
        """Cancel what is under way and wait until it is gone."""
        ...


class Engine:
    """The state of a run between its beginning and its end."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.run: Run | None = None
        self.ended = asyncio.Event()
        self._pool: RunPool | None = None
        self._schedule: Schedule | None = None
        self._lock: RunLock | None = None
        self._outcomes: Counter[Outcome] = Counter()
        self._fresh = 0
        self._cost: float | None = 0.0
        self._started = time.monotonic()
        self._complete = False
        self._winding = False
        self._resumed = False
        self._layers: RunLayers | None = None
        self._asked: Assignment | None = None
        self._wired: Assignment | None = None
        self._batched: Assignment | None = None
        """The same question, asked by batch."""
        self._session: BatchSession | None = None
        self._first: FirstCases | None = None
        """The cases of a run by batches that are judged live before anything is sent; ``None`` in a live run."""
        self._given_up = False
        """Whether what is under way was let go, so that it is not known that all is judged."""
        self._terms = Terms()
        self._manifest: dict[str, Any] = {}
        """What this run says of itself when it begins."""
        self._has_written = False
        """Whether that is in the folder."""
        self._give_up: Callable[[BaseException | None], None] | None = None
        """What ends a run whose batches have ended."""
        self._asking_retirements: asyncio.Task[tuple[Retirement, ...]] | None = None
        self._retirements: tuple[Retirement, ...] = ()

    async def begin(self) -> None:
        """Check everything, open or create the folder, and begin; raises ``UsageError`` with nothing asked."""
        plan = self.plan = _recall(self.plan)
        asker = as_judge(plan.judge, keep_name=True)
        if plan.batch is not None:
            from adjudge.runs.batch.session import check_judge

            check_judge(asker)
        self._layers = layers = RunLayers(
            cache=plan.cache, budget=plan.budget, prices=plan.prices, wrap=plan.wrap, limit=plan.limit
        )
        # Behind its layers, so that what is wrong with them is said before anything is written.
        self._asked = asked = await self._settle(layers.apply(asker, calls=1 if plan.on_conflict is None else 2))
        judge = describe_judge(asker)
        rubric = asked.rubric.to_dict() if asked.rubric is not None else None
        total = await plan.source.count() if plan.sample is not None else None
        places = draw(total, plan.sample, plan.seed) if plan.sample is not None and total is not None else None
        manifest = make_manifest(
            command=plan.command,
            dataset={**plan.source.describe(), "cases": total, "digest": None},
            judge=judge,
            rubric=rubric,
            asked=asked.described,
            digests={"judge": digest_judge(judge), "rubric": digest(rubric), "asked": digest(asked.described)},
            options={**plan.options, "threshold": asked.threshold},
        )
        folder, kept_alive = _find_folder(plan.out)
        self._open(folder, kept_alive, manifest)
        resumed = self._resumed
        kept = resumed and self._store.has_begun()
        if kept:
            self._store.open()
        layers.reserve_in(self._store, resumed=kept)
        self._outcomes.update(self._store.count() if kept else {})  # type: ignore[arg-type]
        self._terms = terms = asked.terms
        how: dict[str, Any] = {"resumed": kept, "retry": plan.retry, "check": asked.check_case, "count": terms.count}
        make_schedule = partial(Schedule, plan.source, self._store, places, plan.repeat, **how)
        if kept and not plan.source.reads_once:
            await make_schedule().check()
        self._schedule = schedule = make_schedule()
        self._wired = wired = self._wire(asked, self._store, resumed=resumed)
        if not resumed:
            self._write_beginning()
        self._pool = await self._open_pool(asker, wired, layers, schedule)
        # A bare task: nobody waits for it before the run is over, and ``end`` stops it.
        self._asking_retirements = asyncio.create_task(find_retirements(asker))
        if self._winding:
            self.wind_down()

    async def _open_pool(self, asker: Any, wired: Assignment, layers: RunLayers, schedule: Schedule) -> RunPool:
        """Where the cases are judged: in this process, or by the actors of Ray."""
        plan, run = self.plan, self.run
        if plan.batch is not None:
            return await self._open_batches(plan.batch, asker, wired, layers, schedule)
        if plan.cluster is None or run is None:
            return Pool(self._begin_with(schedule), partial(self._judge, wired, layers, schedule), layers.limit)
        from adjudge.runs.ray.pool import RayPool

        return RayPool(
            self._begin_with(schedule),
            partial(self._keep, layers, schedule),
            plan=plan,
            cluster=plan.cluster,
            asked=replace(wired, judge=asker),
            store=self._store,
            budget=layers.budget,
            run=run.id,
            resumed=self._resumed,
        )

    def wind_down(self) -> None:
        """Begin nothing more."""
        self._winding = True
        if self._pool is not None:
            self._pool.wind_down()
        # What waits for a batch would wait for hours. The first cases are asked live, and have their time.
        if self._session is not None and not self._is_checking:
            self._session.halt()

    async def take(self) -> tuple[RunItem, ...]:
        """Items that are kept since; nothing when there will be none."""
        if self._pool is None:
            return ()
        taken = await self._pool.take()
        if taken:
            await notify(self.plan.on_progress, self.progress() if self.plan.on_progress else None, what="on_progress")
        elif self._schedule is not None:
            self._complete = self._schedule.complete and not self._pool.left and not self._given_up
        return taken

    async def end(self) -> None:
        """Leave nothing behind: nobody is asked, everything handed in is in the file, the manifest says how it is."""
        try:
            if self._pool is not None:
                await self._pool.stop()
            if self._session is not None:
                await self._session.stop()
            self._retirements = await self._read_retirements()
            await self._close_models()
            if self._complete:
                self._write_beginning()
            if self.run is not None and self._has_written:
                if self._layers is not None:
                    self._layers.note()
                await self.run.store.flush()
                if self._session is not None:
                    await asyncio.to_thread(self._session.close, complete=self._complete)
                self.run = await asyncio.to_thread(self._leave if self._began_nothing() else self._conclude, self.run)
            elif self.run is not None:
                await asyncio.to_thread(self._withdraw, self.run)
        finally:
            if self._layers is not None:
                await asyncio.to_thread(self._layers.close)
            if self._lock is not None:
                self._lock.free()
            self._pool = None  # it knows us: without this knot, a run that nobody holds is gone at once
            self.ended.set()

    async def _read_retirements(self) -> tuple[Retirement, ...]:
        """What providers have said of the retirement of the models by now; a complete run waits a moment for it."""
        asking = self._asking_retirements
        if asking is None:
            return ()
        try:
            await asyncio.wait({asking}, timeout=RETIREMENT_PATIENCE if self._complete else 0.0)
        finally:
            await stop_tasks([asking])
        # An error is no reason to lose a run: without an answer, it is not known when the models are retired.
        return () if asking.cancelled() or asking.exception() is not None else asking.result()

    async def _close_models(self) -> None:
        for asked in (self._asked, self._wired, self._batched):
            if asked is not None:
                await close_others(asked.judge)
        if isinstance(self.plan.judge, str) and self._wired is not None:
            await self._wired.judge.aclose()

    def progress(self) -> Progress:
        """How far the run is."""
        return Progress(
            done=sum(self._outcomes.values()),
            fresh=self._fresh,
            total=self._schedule.total if self._schedule is not None else None,
            seconds=time.monotonic() - self._started,
            outcomes=dict(self._outcomes),
            cost_usd=self._cost,
            batch=None if self._session is None else self._session.progress(checking=self._is_checking),
        )

    @property
    def _is_checking(self) -> bool:
        """Whether the first cases of a run by batches are being judged live."""
        return self._first is not None and not self._first.over

    async def _open_batches(
        self, options: BatchOptions, asker: Any, wired: Assignment, layers: RunLayers, schedule: Schedule
    ) -> RunPool:
        """The pool of a run by batches: the first cases live, the others waiting for what comes back."""
        from adjudge.runs.batch.first_cases import FirstCases, Stages
        from adjudge.runs.batch.session import BatchSession, find_timeout, make_patient

        pool: Pool[Unit, RunItem] | None = None
        self._session = session = BatchSession(
            options,
            self._store.path.parent,
            limit=self.plan.limit,
            prices=self.plan.prices,
            timeout=find_timeout(asker),
            # What is read and not begun is still to ask; what the budget keeps back asks when something has come back.
            is_all_asked=lambda: pool is None or pool.is_full or (schedule.complete and not pool.left),
            on_paid_twice=layers.note_paid,
        )
        judge = layers.apply_batches(make_patient(asker), session)
        self._batched = self._wire(replace(wired, judge=judge), self._store, resumed=self._resumed)
        # A model that the call or the rubric names in place of the judge's own may have no batches.
        await check_ready(self._batched)
        checked = sum(self._outcomes.values()) if not session.store.list_batches() else options.check
        self._first = first = FirstCases(options.check - checked)
        stages = Stages(first, layers.limit, layers.bound(Pace(options.size)))
        pool = Pool(first.hold_back(self._begin_with(schedule)), partial(self._judge, wired, layers, schedule), stages)

        def give_up(error: BaseException | None) -> None:
            self._given_up = True
            pool.abandon(error)

        self._give_up = give_up
        if self._has_written:
            session.begin(give_up)
        return pool

    async def _settle(self, judge: Any) -> Assignment:
        plan = self.plan
        bring = plan.source.bring_criteria
        return await settle_question(judge, plan.rubric, plan.how, plan.on_conflict, cases_bring=bring)

    async def _judge(
        self, asked: Assignment, layers: RunLayers, schedule: Schedule, unit: Unit, settle: Settle[RunItem]
    ) -> None:
        """One unit, judged and handed in: its place is free again when nothing of it can be lost any more."""
        if self._batched is not None and not (self._first is not None and self._first.is_live(unit)):
            asked = self._batched
        result = await asked.judge_case(unit.case, unit.sample, layers.make_call(anew=unit.anew))
        self._keep(layers, schedule, unit, result, settle)

    def _keep(
        self,
        layers: RunLayers,
        schedule: Schedule,
        unit: Unit,
        result: JudgeResult | PairResult,
        settle: Settle[RunItem],
    ) -> None:
        """Hand in what a unit came to."""
        item = RunItem(
            case=unit.case,
            place=unit.place,
            sample=unit.sample,
            subject=unit.subject,
            result=result,
            rubric=self._terms.find_rubric(unit.case),
        )
        layers.note()
        self._store.hand_in(item, partial(self._settle_unit, schedule, unit, item, settle), body=unit.body or None)

    def _settle_unit(
        self, schedule: Schedule, unit: Unit, item: RunItem, settle: Settle[RunItem], error: Exception | None
    ) -> None:
        if error is None:
            try:
                self._count(schedule, unit, item)
            except Exception as wrong:  # noqa: BLE001 - the run ends with it; those that are told next are told
                error = wrong
        settle(item if error is None else error)

    def _count(self, schedule: Schedule, unit: Unit, item: RunItem) -> None:
        schedule.settle(unit)
        if self._first is not None:
            self._first.note(unit, item)
        self._fresh += 1
        self._outcomes[item.result.outcome] += 1
        if unit.replaces is not None:
            self._outcomes[unit.replaces] -= 1
        self._add_cost(item.result)

    def _add_cost(self, result: JudgeResult | PairResult) -> None:
        if lacks_cost(result):
            self._cost = None
        elif self._cost is not None and result.usage is not None:
            self._cost += result.usage.cost_usd or 0.0

    def _open(self, folder: Path, kept_alive: object, manifest: dict[str, Any]) -> None:
        """Lock the folder, and read what it holds; raises ``UsageError`` where this run cannot resume that one.

        A run that is there is only looked at, until ``_write_beginning``.
        """
        self._lock = RunLock(folder)
        self._lock.take()
        self._store = store = RunStore(folder)
        self._resumed = (folder / MANIFEST_FILE).exists()
        self.run = run = Run(folder=folder, manifest=manifest, store=store, kept_alive=kept_alive)
        self._manifest = manifest
        if self._resumed:
            if not self.plan.resume:
                raise UsageError(
                    f"{folder} holds a run already; resume it with resume=True (--resume), or name another folder"
                )
            store.freeze()
            before = read_manifest(folder)
            self.run = replace(run, manifest=before)
            check_same(folder, before, manifest)
            same = {name: before[name] for name in ("id", "created_at") if name in before}
            self._manifest = {**before, **manifest, **same}

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
        if self._session is not None and self._give_up is not None:
            self._session.begin(self._give_up)

    async def _begin_with(self, schedule: Schedule) -> AsyncGenerator[Unit, None]:
        """The units of a run, whose beginning is written before the first one."""
        async with aclosing(schedule.units()) as units:
            async for unit in units:
                if self._winding and not self._has_written:
                    return
                self._write_beginning()
                yield unit

    def _wire(self, asked: Assignment, store: RunStore, *, resumed: bool) -> Assignment:
        def keep(model: Model, number: int) -> Model:
            return KeptModel(model, store, seat=number, resumed=resumed)

        return replace(asked, judge=rewire(asked.judge, keep))

    def _began_nothing(self) -> bool:
        """Whether this run ended before its first case: a column with another name, a first row that is no case."""
        schedule = self._schedule
        return not (self._resumed or self._winding or self._complete or (schedule is not None and schedule.cases))

    def _withdraw(self, run: Run) -> None:
        """Leave the folder of a run that was there as it was found."""
        run.store.close()
        if self._session is not None:
            self._session.withdraw()
        if self._lock is not None:
            self._lock.leave()

    def _leave(self, run: Run) -> None:
        # Nobody was asked, so nothing is lost; and the same command, put right, must not be told that a run is there.
        run.store.remove()
        if self._session is not None:
            self._session.remove()
        (run.folder / MANIFEST_FILE).unlink(missing_ok=True)

    def _conclude(self, run: Run) -> Run:
        schedule = self._schedule
        whole = self._complete and schedule is not None
        changes: dict[str, Any] = {
            "status": "finished" if whole else "interrupted",
            "updated_at": datetime.now(UTC).isoformat(),
        }
        summary = run.store.sum_up()
        changes |= {"counts": summary.pop("counts"), "summary": summary}
        if self._layers is not None and (budget := self._layers.describe()) is not None:
            changes["budget"] = budget
        if schedule is not None and whole:
            digests = {"digest": schedule.digest, "contents": schedule.contents.to_dict()}
            changes["dataset"] = {**self.plan.source.describe(), "cases": schedule.cases, **digests}
        if self._session is not None and self._session.paid_again is not None:
            changes["paid_again"] = self._session.paid_again
        if self._retirements:
            changes["retirements"] = [item.to_dict() for item in self._retirements]
        if schedule is not None and schedule.own:
            changes["own"] = dict(schedule.own)
        manifest = {**run.manifest, **changes}
        write_manifest(run.folder, manifest)
        run.store.close()
        return replace(run, manifest=manifest)


def _recall(plan: Plan) -> Plan:
    """The plan with the budget and the batches of the run that goes on, where it names none itself.

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


class _Temporary:
    """A folder that is removed when nothing refers to it any more, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="adjudge-run-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _find_folder(out: Path | None) -> tuple[Path, _Temporary | None]:
    if out is None:
        owner = _Temporary()
        return owner.path, owner
    try:
        out.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"the run {out} cannot be written: {error.strerror}; name another folder") from None
    return out, None
