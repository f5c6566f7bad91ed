"""A run on Ray: the executor reads the units, puts them into Ray in blocks, and Ray Data gives the blocks to actors.

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
from adjudge.runs.executor import RunEnding, Work
from adjudge.runs.item import RunItem
from adjudge.runs.ray.actor_task import ActorTask, check_plan, pack_task, pack_unit
from adjudge.runs.ray.cluster import CPUS_PER_ACTOR, RayCluster, choose_actors, connect, make_failure
from adjudge.runs.ray.driver import RayDriver
from adjudge.runs.ray.relay import MOST_WAITING_MESSAGES, Relay
from adjudge.runs.ray.worker import RayWorker, find_versions

CASES_PER_SLOT = 8
"""Cases in a block for each case that an actor judges at once. A block ends with its slowest case."""

BLOCKS_PER_ACTOR = 2
"""Blocks that an actor has at once, so that the next has begun while the slowest case of one is still judged."""

STOP_TIMEOUT = 10.0
"""Seconds that actors have to stop."""


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
        self._judging = asyncio.get_running_loop().create_task(self._connect_and_judge())

    async def open(self) -> None:
        """Do nothing: Ray is connected to in the background."""

    def begin(self) -> None:
        """Do nothing: requests are sent only for units."""

    async def take_items(self) -> tuple[RunItem, ...]:
        """Wait for items that are written, and return those since the last call; none when there will be no more.

        Raises the error that ended the run.
        """
        driver = self._driver
        while not driver.items:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return ()
            driver.has_news.clear()
            await driver.has_news.wait()
        return driver.take_items()

    @property
    def is_done(self) -> bool:
        """Return whether the result of every unit that was read is written."""
        return not self._driver.left_count

    def measure_progress(self) -> None:
        """Return nothing: no request is sent by batch."""

    def wind_down(self) -> None:
        """Start no more units; those that run are finished."""
        self._driver.wind_down()

    async def stop(self) -> None:
        """Have the actors cancel the units that run, and wait until they have stopped."""
        self._driver.stop()
        if not self._ended:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._judging), 3 * STOP_TIMEOUT)
        await stop_tasks([self._judging])

    def close(self, _ending: RunEnding, /) -> Mapping[str, Any]:
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
            self._driver.has_news.set()

    async def _judge_all(self, ray: Any) -> None:
        """Have the actors judge all blocks, and answer their messages until every unit is judged or the run ends."""
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
        await self._put_all_units(ray, share, actors)
        if not self._driver.total or self._driver.is_winding_down:
            return
        relay = _start_relay(ray)
        # A bare task: it ends with the run, in the block below.
        answering = asyncio.ensure_future(self._driver.answer_all(relay))
        # A bare task: a thread cannot be cancelled; it ends with the next block, or with the connection.
        judging = asyncio.ensure_future(asyncio.to_thread(_judge_blocks, ray, self._driver, relay, actors))
        try:
            await asyncio.wait({answering, judging, self._driver.ended}, return_when=asyncio.FIRST_COMPLETED)
            await self._end_judging(judging)
        finally:
            await stop_tasks([answering])

    async def _end_judging(self, judging: asyncio.Future[None]) -> None:
        """Stop the actors. Raise the error that ended the run, if it has not judged every unit."""
        driver = self._driver
        # By now every unit is judged, or there is a reason why some are not.
        error = driver.error or (judging.exception() if judging.done() else None)
        broke_off = bool(driver.left_count) and not driver.is_winding_down
        driver.stop()
        if not judging.done():
            await asyncio.wait({judging}, timeout=STOP_TIMEOUT)
        if error is None and broke_off:
            error = AdjudgeError("Ray ended before all cases were judged; what is judged is kept, so resume the run")
        if error is not None:
            raise error if isinstance(error, AdjudgeError) else make_failure(error)

    async def _put_all_units(self, ray: Any, share: int, actors: int) -> None:
        """Read all units, and put them into Ray in blocks; Ray keeps them on disk if there are many."""
        # The first blocks are small, so that a few cases are shared out among all actors too.
        size, small_blocks = share, BLOCKS_PER_ACTOR * actors
        packed: list[bytes] = []
        async with aclosing(self._units) as units:
            async for unit in units:
                packed.append(pack_unit(unit))
                if len(packed) >= size:
                    self._driver.put_block(ray, packed)
                    packed = []
                    size = share if len(self._driver.blocks) < small_blocks else share * CASES_PER_SLOT
                if self._driver.is_winding_down:
                    return
        if packed:
            self._driver.put_block(ray, packed)


def _start_relay(ray: Any) -> Any:
    """Start the relay as an actor on this node, which Ray starts again if it is lost."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    on_this_node = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options: dict[str, Any] = {
        "num_cpus": 0,
        "max_restarts": -1,
        "max_task_retries": -1,
        "max_concurrency": MOST_WAITING_MESSAGES,
    }
    return ray.remote(Relay).options(scheduling_strategy=on_this_node, **options).remote()


def _judge_blocks(ray: Any, driver: RayDriver, relay: Any, actors: int) -> None:
    """Have Ray Data give the blocks to actors. Blocks until all are judged, or the run is stopping."""
    ray_data = ray.data
    with _quiet_logs():
        cases = ray_data.from_arrow_refs(driver.blocks)
        cases.context.enable_progress_bars = False
        cases.context.print_on_execution_start = False
        # Without this, Ray would end the run if no block is done for a while. Judges have timeouts of their own.
        cases.context.execution_no_progress_timeout_s = -1
        judged = cases.map_batches(
            RayWorker,
            batch_size=None,
            batch_format="pyarrow",
            compute=ray_data.ActorPoolStrategy(size=actors, max_concurrent_calls_per_actor=BLOCKS_PER_ACTOR),
            num_cpus=CPUS_PER_ACTOR,
            fn_constructor_kwargs={"relay": relay},
        )
        for _ in judged.iter_batches(batch_size=None, batch_format="pyarrow"):
            if driver.is_stopping:
                return


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Open a block in which Ray Data logs only errors, because the run shows its own progress."""
    log = logging.getLogger("ray.data")
    earlier_level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(earlier_level)
