"""The state of a run between its beginning and its end: what is asked, what is kept, and who holds the folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
import weakref
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.hooks import notify
from adjudge.judges.layers import Wrap, check_reach, close_others, make_wrap, rewire
from adjudge.judges.open import as_judge
from adjudge.judges.pair import PairResult
from adjudge.models.budget import Budget, Reservation
from adjudge.models.model import Call, Model, find_function
from adjudge.models.price import Prices
from adjudge.models.rate_limit import Pace
from adjudge.result import JudgeResult, Outcome
from adjudge.runs.folder import MANIFEST_FILE, Run, RunLock, check_same, make_manifest, read_manifest, write_manifest
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.runs.judging import Assignment, describe_judge, digest, digest_judge, settle, settle_pairs
from adjudge.runs.kept_replies import KeptModel
from adjudge.runs.options import Plan, Progress, draw
from adjudge.runs.pool import Concurrency, Pool, Settle
from adjudge.runs.schedule import Schedule, Unit
from adjudge.runs.store import RunStore
from adjudge.runs.terms import Terms

if TYPE_CHECKING:
    from adjudge.models.cache_store import ReplyCache


SPENT = "budget spent"
"""The fact of a run that says what of its budget is gone."""


class RunLayers:
    """What a run was told to put around its models. What it opened itself it closes."""

    def __init__(
        self,
        *,
        cache: ReplyCache | str | os.PathLike[str] | None,
        budget: Budget | float | None,
        prices: Prices | None,
        wrap: Wrap | None,
        limit: Concurrency,
    ) -> None:
        self._cache, self._owns_cache = _open_cache(cache)
        # A budget that was handed in is counted by its owner, and may be shared with others.
        self._owns_budget = budget is not None and not isinstance(budget, Budget)
        own = Budget(budget, on_hold=self._note_now) if self._owns_budget else budget  # type: ignore[arg-type]
        self.budget: Budget | None = own  # type: ignore[assignment]
        self._store: RunStore | None = None
        self._counts = True
        """Whether it is known what the run has spent."""
        self._before = 0.0
        """What the run had spent that a budget which was handed in does not know of, less what that had spent for
        others."""
        self._prices, self._wrap = prices, wrap
        self._limit = limit
        self._width = 0

    def apply(self, judge: Any, *, calls: int = 1) -> Any:
        """A judge like this one behind the layers; raises ``UsageError`` for a budget that cannot hold.

        ``calls`` is how many calls a seat makes at once.
        """
        if self.budget is not None:
            check_reach(judge)
        ours = make_wrap(cache=self._cache, budget=self.budget, prices=self._prices)

        def wrap(model: Model, number: int) -> Model:
            # A judge in code costs nothing that a budget could wait for.
            self._width += calls if find_function(model) is None else 0
            return ours(model if self._wrap is None else self._wrap(model, number), number)

        return rewire(judge, wrap)

    @property
    def limit(self) -> Concurrency:
        """How many items may be under way at this moment."""
        if self.budget is None or not self._width:
            return self._limit
        return _Within(self._limit, self.budget, self._width)

    def make_call(self, *, anew: bool) -> Call:
        """The terms of what is asked about a unit: the pace hears how providers answer it."""
        # With the request: another wrapper around every model would do the same for more.
        return Call(pace=self._limit if isinstance(self._limit, Pace) else None, anew=anew)

    def reserve_in(self, store: RunStore, *, resumed: bool) -> None:
        """Keep what is spent in a run's file, and take off the budget what the run has spent before.

        Raises ``UsageError`` when nobody knows what that is.
        """
        self._store = store
        if self.budget is None:
            return
        said = store.find_fact(SPENT) if resumed else None
        known, unknown = store.add_costs() if resumed else (0.0, 0)
        self._counts = said is not None or not unknown
        if self._owns_budget and not self._counts:
            raise UsageError(
                f"the run {store.path.parent} has {unknown:,} replies of unknown cost, so nobody knows what is left of "
                "a budget; resume without one, or begin another run"
            )
        before = max(known, _read_amount(said))
        if self._owns_budget:
            self.budget.settle(Reservation(0), Budget(before).usd)
        else:
            self._before = before - self.budget.spent - self.budget.held

    def note(self) -> None:
        """Keep what is gone of the budget, with the next item that is kept."""
        # Of a budget that was handed in as well: a run that goes on without it keeps to the same dollars.
        if self._store is not None and self.budget is not None and self._counts:
            self._store.keep_fact(SPENT, self._format_spent(self.budget))

    async def _note_now(self) -> None:
        # Before the call is made: a process that is killed while it is under way must not forget that it was. What
        # cannot be written down is not asked.
        if self._store is not None and self.budget is not None:
            await self._store.keep_fact_now(SPENT, self._format_spent(self.budget))

    def _format_spent(self, budget: Budget) -> str:
        # With what is held: a process that is killed now has asked, and the provider charges.
        return repr(max(self._before + budget.spent + budget.held, 0.0))

    def describe(self) -> dict[str, float] | None:
        """The budget and what was spent of it."""
        return None if self.budget is None else {"usd": self.budget.usd, "spent": self.budget.spent}

    def close(self) -> None:
        """Write what the cache has not written yet, and close what was opened here."""
        if self._cache is not None and self._owns_cache:
            self._cache.close()


@dataclass(frozen=True, slots=True)
class _Within:
    """A limit that falls with what is left of a budget.

    A call that waits for others to leave enough of the budget waits within its judge's timeout. What waits out here
    instead is not late.
    """

    limit: Concurrency
    budget: Budget
    width: int
    """How many calls an item makes at once."""

    @property
    def current(self) -> int:
        """As many as the budget can pay for, at least one."""
        most = self.budget.dearest
        if most is None:  # the first says what a call may cost
            return 1
        left = self.budget.usd - self.budget.spent
        if most <= 0 or left < most:  # nothing to pay for, or nothing that can be: that takes no time
            return self.limit.current
        return max(1, min(self.limit.current, int(left / (most * self.width))))


def _read_amount(said: str | None) -> float:
    try:
        return float(said or 0.0)
    except ValueError:
        raise UsageError(
            f"the run says that {clean(str(said)[:40])!r} is spent of its budget, which is no amount"
        ) from None


def _open_cache(cache: ReplyCache | str | os.PathLike[str] | None) -> tuple[ReplyCache | None, bool]:
    if cache is None or not isinstance(cache, str | os.PathLike):
        return cache, False
    from adjudge.models.cache_store import ReplyCache

    return ReplyCache(cache), True


class Engine:
    """The state of a run between its beginning and its end."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.run: Run | None = None
        self.ended = asyncio.Event()
        self._pool: Pool[Unit, RunItem] | None = None
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
        self._terms = Terms()

    async def begin(self) -> None:
        """Check everything, open or create the folder, and begin; raises ``UsageError`` with nothing asked."""
        plan = self.plan = _recall_budget(self.plan)
        asker = as_judge(plan.judge, keep_name=True)
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
        self.run, resumed = self._open(folder, kept_alive, manifest)
        self._resumed = resumed
        layers.reserve_in(self.run.store, resumed=resumed)
        self._outcomes.update(self.run.store.count() if resumed else {})  # type: ignore[arg-type]
        self._terms = terms = asked.terms
        how: dict[str, Any] = {"resumed": resumed, "retry": plan.retry, "check": asked.check_case, "count": terms.count}
        self._schedule = Schedule(plan.source, self.run.store, places, plan.repeat, **how)
        self._store = self.run.store
        self._wired = wired = self._wire(asked, self._store, resumed=resumed)
        self._pool = Pool(self._schedule.units(), partial(self._judge, wired, layers, self._schedule), layers.limit)
        if self._winding:
            self._pool.wind_down()

    def wind_down(self) -> None:
        """Begin nothing more."""
        self._winding = True
        if self._pool is not None:
            self._pool.wind_down()

    async def take(self) -> tuple[RunItem, ...]:
        """Items that are kept since; nothing when there will be none."""
        if self._pool is None:
            return ()
        taken = await self._pool.take()
        if taken:
            await notify(self.plan.on_progress, self.progress() if self.plan.on_progress else None, what="on_progress")
        elif self._schedule is not None:
            self._complete = self._schedule.complete and not self._pool.left
        return taken

    async def end(self) -> None:
        """Leave nothing behind: nobody is asked, everything handed in is in the file, the manifest says how it is."""
        try:
            if self._pool is not None:
                await self._pool.stop()
            await self._close_models()
            if self.run is not None:
                if self._layers is not None:
                    self._layers.note()
                await self.run.store.flush()
                self.run = await asyncio.to_thread(self._leave if self._began_nothing() else self._conclude, self.run)
        finally:
            if self._layers is not None:
                await asyncio.to_thread(self._layers.close)
            if self._lock is not None:
                self._lock.free()
            self._pool = None  # it knows us: without this knot, a run that nobody holds is gone at once
            self.ended.set()

    async def _close_models(self) -> None:
        for asked in (self._asked, self._wired):
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
        )

    async def _settle(self, judge: Any) -> Assignment:
        plan = self.plan
        bring = plan.source.bring_criteria
        if plan.on_conflict is not None:
            return settle_pairs(judge, plan.rubric, plan.how, plan.on_conflict, cases_bring=bring)
        return await settle(judge, plan.rubric, plan.how, cases_bring=bring)

    async def _judge(
        self, asked: Assignment, layers: RunLayers, schedule: Schedule, unit: Unit, settle: Settle[RunItem]
    ) -> None:
        """One unit, judged and handed in: its place is free again when nothing of it can be lost any more."""
        result = await asked.judge_case(unit.case, unit.sample, layers.make_call(anew=unit.anew))
        item = RunItem(
            case=unit.case,
            place=unit.place,
            sample=unit.sample,
            subject=unit.subject,
            result=result,
            rubric=self._terms.find_rubric(unit.case),
        )
        layers.note()
        self._store.hand_in(item, partial(self._settle_unit, schedule, unit, item, settle), body=unit.body)

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

    def _open(self, folder: Path, kept_alive: Any, manifest: dict[str, Any]) -> tuple[Run, bool]:
        """The folder of this run, locked; and whether it goes on with what is there."""
        self._lock = RunLock(folder)
        self._lock.take()
        store, resumed = RunStore(folder), (folder / MANIFEST_FILE).exists()
        if resumed:
            if not self.plan.resume:
                raise UsageError(
                    f"{folder} holds a run already; resume it with resume=True (--resume), or name another folder"
                )
            before = read_manifest(folder)
            check_same(folder, before, manifest)
            same = {name: before[name] for name in ("id", "created_at") if name in before}
            manifest = {**before, **manifest, **same}
        # The manifest first: a process that is killed between the two leaves a run that can go on.
        write_manifest(folder, manifest)
        store = store.open() if resumed and store.has_begun() else store.create()
        return Run(folder=folder, manifest=manifest, store=store, kept_alive=kept_alive), resumed

    def _wire(self, asked: Assignment, store: RunStore, *, resumed: bool) -> Assignment:
        def keep(model: Model, number: int) -> Model:
            return KeptModel(model, store, seat=number, resumed=resumed)

        return replace(asked, judge=rewire(asked.judge, keep))

    def _began_nothing(self) -> bool:
        """Whether this run ended before its first case: a column with another name, a first row that is no case."""
        schedule = self._schedule
        return not (self._resumed or self._winding or self._complete or (schedule is not None and schedule.cases))

    def _leave(self, run: Run) -> None:
        # Nobody was asked, so nothing is lost; and the same command, put right, must not be told that a run is there.
        run.store.remove()
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
            changes["dataset"] = {**self.plan.source.describe(), "cases": schedule.cases, "digest": schedule.digest}
        if schedule is not None and schedule.own:
            changes["own"] = dict(schedule.own)
        manifest = {**run.manifest, **changes}
        write_manifest(run.folder, manifest)
        run.store.close()
        return replace(run, manifest=manifest)


def _recall_budget(plan: Plan) -> Plan:
    """The plan with the budget of the run that goes on, where it names none: going on must not lift it."""
    if plan.budget is not None or not plan.resume or plan.out is None or not (plan.out / MANIFEST_FILE).exists():
        return plan
    return replace(plan, budget=read_manifest(plan.out)["options"].get("budget"))


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
