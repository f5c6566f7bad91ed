"""The pool of a run on Ray: it reads the units, leaves them with Ray in blocks, and has Ray Data give these to actors.

The driver is the process that began the run. It alone writes, and every actor asks it before it judges.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from typing import Any

from adjudge.concurrency import stop_tasks
from adjudge.errors import AdjudgeError
from adjudge.models.budget import Budget
from adjudge.question.token import make_run_secret
from adjudge.runs.item import RunItem
from adjudge.runs.judging import Assignment
from adjudge.runs.options import Plan
from adjudge.runs.ray.assignment import ActorTask, check_plan, pack_task, pack_unit
from adjudge.runs.ray.cluster import CPUS, RayCluster, choose_actors, connect, fail
from adjudge.runs.ray.driver import Keep, RayDriver
from adjudge.runs.ray.relay import WAITING, Relay
from adjudge.runs.ray.worker import RayWorker, find_versions
from adjudge.runs.schedule import Unit
from adjudge.runs.store import RunStore

ROUNDS = 8
"""Cases in a block for each that an actor judges at once: a block ends with its slowest case."""

AT_ONCE = 2
"""Blocks that an actor has under way, so that the next has begun when the slowest case of one is all that is left."""

STOP_TIMEOUT = 10.0
"""Seconds that actors have to say that they have stopped."""


class RayPool:
    """The units of a run, judged by actors; what the pool of a run in one process is there."""

    def __init__(
        self,
        units: AsyncGenerator[Unit, None],
        keep: Keep,
        *,
        plan: Plan,
        cluster: RayCluster,
        asked: Assignment,
        store: RunStore,
        budget: Budget | None,
        run: str,
        resumed: bool,
    ) -> None:
        check_plan(plan, asked.judge)
        self._units, self._plan, self._cluster, self._asked = units, plan, cluster, asked
        self._driver = RayDriver(keep, store, budget, secret=make_run_secret(run), resumed=resumed)
        self._error: BaseException | None = None
        self._ended = False
        # A bare task: ``stop`` waits for it, and it ends by itself when all is judged.
        self._main = asyncio.get_running_loop().create_task(self._work())

    async def take(self) -> tuple[RunItem, ...]:
        """What has been kept since, at least one; nothing when all is done. Raises what ended the run."""
        driver = self._driver
        while not driver.done:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return ()
            driver.news.clear()
            await driver.news.wait()
        return driver.take()

    @property
    def left(self) -> int:
        """Units that were read and are not kept."""
        return self._driver.left

    def wind_down(self) -> None:
        """Begin nothing more; what is under way is finished."""
        self._driver.wind_down()

    async def stop(self) -> None:
        """Have the actors drop what is under way, and wait until they are gone."""
        self._driver.stop()
        if not self._ended:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._main), 3 * STOP_TIMEOUT)
        await stop_tasks([self._main])

    async def _work(self) -> None:
        try:
            # In threads: connecting takes seconds, and Ray leaves signals alone there.
            with ExitStack() as stack:
                ray = await asyncio.to_thread(stack.enter_context, connect(self._cluster))
                try:
                    await self._judge_all(ray)
                finally:
                    # A bare task: shielded and awaited here, so that a cancelled run leaves no cluster behind.
                    closing = asyncio.ensure_future(asyncio.to_thread(stack.close))
                    await asyncio.shield(closing)
        except Exception as error:  # noqa: BLE001 - raised by ``take``
            self._error = self._error or error
        finally:
            await self._units.aclose()
            self._ended = True
            self._driver.news.set()

    async def _judge_all(self, ray: Any) -> None:
        most = self._plan.limit.current
        actors = choose_actors(ray, self._cluster, most)
        share = most // actors
        task = ActorTask(
            asked=self._asked,
            wrap=self._plan.wrap,
            prices=self._plan.prices,
            budget_usd=None if self._driver.budget is None else self._driver.budget.usd,
            concurrency=share,
            actors=actors,
            versions=find_versions(),
        )
        self._driver.task = pack_task(task)
        await self._put_all(ray, share, actors)
        if not self._driver.total or self._driver.winding:
            return
        relay = _start_relay(ray)
        # A bare task: it ends with the run, in the block below.
        answering = asyncio.ensure_future(self._driver.answer_all(relay))
        # A bare task: a thread cannot be cancelled; it ends with the next block, or with the connection.
        judging = asyncio.ensure_future(asyncio.to_thread(_judge_blocks, ray, self._driver, relay, actors))
        try:
            await asyncio.wait({answering, judging, self._driver.over}, return_when=asyncio.FIRST_COMPLETED)
            await self._end(judging)
        finally:
            await stop_tasks([answering])

    async def _end(self, judging: asyncio.Future[None]) -> None:
        """See to it that nobody is asked any more, and say why the run ended."""
        driver = self._driver
        # By now all is judged, or there is a reason why the rest is not.
        error = driver.error or (judging.exception() if judging.done() else None)
        broke_off = bool(driver.left) and not driver.winding
        driver.stop()
        if not judging.done():
            await asyncio.wait({judging}, timeout=STOP_TIMEOUT)
        if error is None and broke_off:
            error = AdjudgeError("Ray ended before all cases were judged; what is judged is kept, so resume the run")
        if error is not None:
            raise error if isinstance(error, AdjudgeError) else fail(error)

    async def _put_all(self, ray: Any, share: int, actors: int) -> None:
        """Read all units, and leave them with Ray block by block: on disk as well, where there are many."""
        # The first blocks are small, so that few cases are shared out among all actors as well.
        size, small = share, AT_ONCE * actors
        packed: list[bytes] = []
        async with aclosing(self._units) as units:
            async for unit in units:
                packed.append(pack_unit(unit))
                if len(packed) >= size:
                    self._driver.put(ray, packed)
                    packed = []
                    size = share if len(self._driver.blocks) < small else share * ROUNDS
                if self._driver.winding:
                    return
        if packed:
            self._driver.put(ray, packed)


def _start_relay(ray: Any) -> Any:
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    how: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": WAITING}
    return ray.remote(Relay).options(scheduling_strategy=here, **how).remote()


def _judge_blocks(ray: Any, driver: RayDriver, relay: Any, actors: int) -> None:
    """Have Ray Data give the blocks to actors; returns when it is done, or nothing more is to be begun."""
    data = ray.data
    with _quiet():
        cases = data.from_arrow_refs(driver.blocks)
        cases.context.enable_progress_bars = False
        cases.context.print_on_execution_start = False
        # A provider may say nothing for longer than that, and its judge's own timeout ends it.
        cases.context.execution_no_progress_timeout_s = -1
        judged = cases.map_batches(
            RayWorker,
            batch_size=None,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=actors, max_concurrent_calls_per_actor=AT_ONCE),
            num_cpus=CPUS,
            fn_constructor_kwargs={"relay": relay},
        )
        for _ in judged.iter_batches(batch_size=None, batch_format="pyarrow"):
            if driver.stopping:
                return


@contextmanager
def _quiet() -> Iterator[None]:
    """A block in which Ray Data tells only what is wrong: the run shows its own progress."""
    log = logging.getLogger("ray.data")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
