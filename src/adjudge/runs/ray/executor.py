"""A run on Ray: the executor reads the units, leaves them with Ray in blocks, and has Ray Data give these to actors.

The driver is the process that began the run. It alone writes, and every actor asks it before it judges.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import replace
from typing import Any

from adjudge.concurrency import stop_tasks
from adjudge.errors import AdjudgeError
from adjudge.question.token import make_run_secret
from adjudge.runs.executor import Ending, Work
from adjudge.runs.item import RunItem
from adjudge.runs.ray.actor_task import ActorTask, check_plan, pack_task, pack_unit
from adjudge.runs.ray.cluster import CPUS, RayCluster, choose_actors, connect, make_failure
from adjudge.runs.ray.driver import RayDriver
from adjudge.runs.ray.relay import WAITING, Relay
from adjudge.runs.ray.worker import RayWorker, find_versions

ROUNDS = 8
"""Cases in a block for each that an actor judges at once: a block ends with its slowest case."""

AT_ONCE = 2
"""Blocks that an actor has under way, so that the next has begun when the slowest case of one is all that is left."""

STOP_TIMEOUT = 10.0
"""Seconds that actors have to say that they have stopped."""


class RayExecutor:
    """The units of a run, judged by actors."""

    judges: tuple[Any, ...] = ()

    def __init__(self, work: Work, cluster: RayCluster) -> None:
        self._assignment = replace(work.assignment, judge=work.judge)  # its layers are put around it by each actor
        check_plan(work.plan, self._assignment.judge)
        self._units, self._plan, self._cluster = work.units, work.plan, cluster
        secret = make_run_secret(work.run)
        self._driver = RayDriver(work.keep, work.store, work.layers.budget, secret=secret, resumed=work.resumed)
        self._error: BaseException | None = None
        self._ended = False
        # A bare task: ``stop`` waits for it, and it ends by itself when all is judged.
        self._main = asyncio.get_running_loop().create_task(self._connect_and_judge())

    async def open(self) -> None:
        """Do nothing: Ray is connected to in the background."""

    def begin(self) -> None:
        """Do nothing: requests are sent only for units."""

    async def take(self) -> tuple[RunItem, ...]:
        """Return the items that were kept since, at least one; nothing when all is done. Raises what ended the run."""
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
    def is_done(self) -> bool:
        """Return whether every unit that was read is kept."""
        return not self._driver.left

    def measure_progress(self) -> None:
        """Return nothing: no request is sent by batch."""

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

    def close(self, _ending: Ending, /) -> Mapping[str, Any]:
        """Return nothing: no file is open."""
        return {}

    async def _connect_and_judge(self) -> None:
        """Connect to Ray, judge all units, and close the connection, whatever happens."""
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
        """Hand all blocks to the actors, and answer these until the last unit is judged or the run ends."""
        concurrency = self._plan.limit.current
        actors = choose_actors(ray, self._cluster, concurrency)
        share = concurrency // actors
        task = ActorTask(
            assignment=self._assignment,
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
            await self._end_judging(judging)
        finally:
            await stop_tasks([answering])

    async def _end_judging(self, judging: asyncio.Future[None]) -> None:
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
            raise error if isinstance(error, AdjudgeError) else make_failure(error)

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
    options: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": WAITING}
    return ray.remote(Relay).options(scheduling_strategy=here, **options).remote()


def _judge_blocks(ray: Any, driver: RayDriver, relay: Any, actors: int) -> None:
    """Have Ray Data give the blocks to actors; returns when it is done, or nothing more is to be begun."""
    ray_data = ray.data
    with _quiet_logs():
        cases = ray_data.from_arrow_refs(driver.blocks)
        cases.context.enable_progress_bars = False
        cases.context.print_on_execution_start = False
        # A provider may say nothing for longer than that, and its judge's own timeout ends it.
        cases.context.execution_no_progress_timeout_s = -1
        judged = cases.map_batches(
            RayWorker,
            batch_size=None,
            batch_format="pyarrow",
            compute=ray_data.ActorPoolStrategy(size=actors, max_concurrent_calls_per_actor=AT_ONCE),
            num_cpus=CPUS,
            fn_constructor_kwargs={"relay": relay},
        )
        for _ in judged.iter_batches(batch_size=None, batch_format="pyarrow"):
            if driver.stopping:
                return


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Open a block in which Ray Data logs only what is wrong: the run shows its own progress."""
    log = logging.getLogger("ray.data")
    earlier_level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(earlier_level)
