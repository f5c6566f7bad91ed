"""A run on Ray, seen from the process that began it: it reads the data, answers the actors, and alone writes.

Ray Data gives out blocks of cases to actors and starts lost actors again. That makes every block one that may come
twice, so an actor asks here before it judges, and what is handed in twice is kept once.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from adjudge.concurrency import stop_tasks
from adjudge.errors import AdjudgeError, ReplyError, UsageError
from adjudge.formats.text import clean
from adjudge.judges.pair import PairResult
from adjudge.models.budget import Budget, Reservation
from adjudge.question.token import make_run_secret
from adjudge.result import JudgeResult
from adjudge.runs.item import RunItem
from adjudge.runs.judging import Assignment
from adjudge.runs.kept_replies import make_case_prefix
from adjudge.runs.options import Plan
from adjudge.runs.pool import AHEAD, Settle
from adjudge.runs.ray.assignment import ActorTask, check_plan, pack_task, pack_unit
from adjudge.runs.ray.cluster import CPUS, choose_actors, connect, fail
from adjudge.runs.ray.relay import WAITING, Relay, pack, unpack
from adjudge.runs.ray.worker import RayWorker, find_versions, list_places
from adjudge.runs.schedule import Unit
from adjudge.runs.store import RunStore

_log = logging.getLogger("adjudge.runs")

Judged = JudgeResult | PairResult

Keep = Callable[[Unit, Judged, Settle[RunItem]], None]
"""Has a result kept, and calls back when it is."""


ROUNDS = 8
"""Cases in a block for each that an actor judges at once: a block ends with its slowest case."""

AT_ONCE = 2
"""Blocks that an actor has under way, so that the next has begun when the slowest case of one is all that is left."""

LOOK = 1.0
"""Seconds between two looks at the mail while there is none."""

PATIENCE = 10.0
"""Seconds that actors have to say that they have stopped."""


class RayPool:
    """The units of a run, judged by actors; what the pool of a run in one process is there."""

    def __init__(
        self,
        units: AsyncGenerator[Unit, None],
        keep: Keep,
        *,
        plan: Plan,
        asked: Assignment,
        store: RunStore,
        budget: Budget | None,
        run: str,
        resumed: bool,
    ) -> None:
        check_plan(plan, asked.judge)
        self._units, self._keep, self._plan, self._asked = units, keep, plan, asked
        self._desk = Desk(keep, store, budget, secret=make_run_secret(run), resumed=resumed)
        self._error: BaseException | None = None
        self._ended = False
        # A bare task: ``stop`` waits for it, and it ends by itself when all is judged.
        self._main = asyncio.get_running_loop().create_task(self._work())

    async def take(self) -> tuple[RunItem, ...]:
        """What has been kept since, at least one; nothing when all is done. Raises what ended the run."""
        desk = self._desk
        while not desk.done:
            if self._ended:
                if self._error is not None:
                    raise self._error
                return ()
            desk.news.clear()
            await desk.news.wait()
        return desk.take()

    @property
    def left(self) -> int:
        """Units that were read and are not kept."""
        return self._desk.left

    def wind_down(self) -> None:
        """Begin nothing more; what is under way is finished."""
        self._desk.wind_down()

    async def stop(self) -> None:
        """Have the actors drop what is under way, and wait until they are gone."""
        self._desk.stop()
        if not self._ended:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._main), 3 * PATIENCE)
        await stop_tasks([self._main])

    async def _work(self) -> None:
        try:
            # In threads: connecting takes seconds, and Ray leaves signals alone there.
            with ExitStack() as stack:
                ray = await asyncio.to_thread(stack.enter_context, connect(self._cluster()))
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
            self._desk.news.set()

    def _cluster(self) -> Any:
        if self._plan.cluster is None:
            raise UsageError("engine='ray' needs a cluster")
        return self._plan.cluster

    async def _judge_all(self, ray: Any) -> None:
        most = self._plan.limit.current
        actors = choose_actors(ray, self._cluster(), most)
        share = most // actors
        task = ActorTask(
            asked=self._asked,
            wrap=self._plan.wrap,
            prices=self._plan.prices,
            budget_usd=None if self._desk.budget is None else self._desk.budget.usd,
            concurrency=share,
            actors=actors,
            versions=find_versions(),
        )
        self._desk.task = pack_task(task)
        await self._put_all(ray, share, actors)
        if not self._desk.total or self._desk.winding:
            return
        relay = _start_relay(ray)
        # A bare task: it ends with the run, in the block below.
        answering = asyncio.ensure_future(self._desk.answer_all(relay))
        # A bare task: a thread cannot be cancelled; it ends with the next block, or with the connection.
        judging = asyncio.ensure_future(asyncio.to_thread(_judge_blocks, ray, self._desk, relay, actors))
        try:
            await asyncio.wait({answering, judging, self._desk.over}, return_when=asyncio.FIRST_COMPLETED)
            await self._end(judging)
        finally:
            await stop_tasks([answering])

    async def _end(self, judging: asyncio.Future[None]) -> None:
        """See to it that nobody is asked any more, and say why the run ended."""
        desk = self._desk
        # By now all is judged, or there is a reason why the rest is not.
        error = desk.error or (judging.exception() if judging.done() else None)
        broke_off = bool(desk.left) and not desk.winding
        desk.stop()
        if not judging.done():
            await asyncio.wait({judging}, timeout=PATIENCE)
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
                    self._desk.put(ray, packed)
                    packed = []
                    size = share if len(self._desk.blocks) < small else share * ROUNDS
                if self._desk.winding:
                    return
        if packed:
            self._desk.put(ray, packed)


@dataclass(slots=True)
class _Letter:
    """A message whose results are being written: it is answered when all of them are."""

    ticket: int
    left: int


@dataclass(slots=True)
class _Claimed:
    """What is known of an actor that has asked for work."""

    held: dict[int, Reservation] = field(default_factory=dict)
    """What is held of the budget for its calls."""
    asking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """What is to be held, and waits for others."""
    idle: bool = False


class Desk:
    """What the actors of a run hear from the process that began it, and what they tell it."""

    def __init__(self, keep: Keep, store: RunStore, budget: Budget | None, *, secret: bytes, resumed: bool) -> None:
        self._keep, self._store, self.budget = keep, store, budget
        self._secret, self._resumed = secret, resumed
        self.task = b""
        """What actors do, packed."""
        self.blocks: list[Any] = []
        """Ray's references to the blocks."""
        self._starts: list[int] = []
        self.total = 0
        self._kept = bytearray()
        """For each unit: 0, or 1 once an actor was told to judge it, or 2 while its result is written, or 3."""
        self._left = 0
        self._read: dict[int, list[bytes]] = {}
        self._letters: dict[int, list[_Letter]] = {}
        self._actors: dict[str, _Claimed] = {}
        self._awaiting: dict[str, list[int]] = {"wind down": [], "stop": []}
        self._answers: list[tuple[int, bytes]] = []
        self._held_back: list[tuple[int, bytes]] = []
        self._relay: Any = None
        self.done: deque[RunItem] = deque()
        self.news = asyncio.Event()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None
        self.winding = self.stopping = False
        self._ray: Any = None

    @property
    def left(self) -> int:
        """Units that are not kept."""
        return self._left

    def take(self) -> tuple[RunItem, ...]:
        """What was kept since; actors that were told to wait for whoever takes it go on."""
        taken = tuple(self.done)
        self.done.clear()
        self._answers += self._held_back
        self._held_back.clear()
        self._post()
        return taken

    def put(self, ray: Any, packed: list[bytes]) -> None:
        """Leave a block of units with Ray."""
        arrow = importlib.import_module("pyarrow")
        numbers = range(self.total, self.total + len(packed))
        columns = {"number": arrow.array(numbers, arrow.int64()), "unit": arrow.array(packed, arrow.binary())}
        self._ray = ray
        self.blocks.append(ray.put(arrow.table(columns)))
        self._starts.append(self.total)
        self.total += len(packed)
        self._left += len(packed)
        self._kept.extend(bytes(len(packed)))

    def wind_down(self) -> None:
        """Have the actors begin nothing more."""
        self.winding = True
        self._call_out("wind down")
        self._end_if_idle()

    def stop(self) -> None:
        """Have the actors drop what is under way."""
        self.winding = self.stopping = True
        self._call_out("wind down")
        self._call_out("stop")
        self._finish()

    def fail(self, error: BaseException) -> None:
        """End the run with an error; what is under way is finished."""
        self.error = self.error or error
        self.wind_down()

    async def answer_all(self, relay: Any) -> None:
        """Answer the actors until nobody is to be answered any more."""
        self._relay = relay
        while True:
            for ticket, message in await relay.fetch.remote(LOOK):
                kind, sender, *about = unpack(message)
                getattr(self, f"_hear_{kind}")(ticket, sender, *about)
            self._post()

    # ---------------------------------------------------------------- what actors say

    def _hear_begin(self, ticket: int, sender: str) -> None:
        # An actor that begins again has lost what it was doing, and with it what its calls have cost.
        name = sender.partition("/")[0]
        for other, actor in self._actors.items():
            if other != sender and other.partition("/")[0] == name:
                _log.warning("an actor of Ray was lost, and was begun again")
                self._forget(actor)
        self._actors.setdefault(sender, _Claimed())
        self._reply(ticket, (self.task, find_versions(), list_places()))

    def _hear_secret(self, ticket: int, _sender: str) -> None:
        self._reply(ticket, self._secret)

    def _hear_unfit(self, ticket: int, sender: str, why: str) -> None:
        self._reply(ticket, None)
        self._actors.setdefault(sender, _Claimed()).idle = True
        self.fail(UsageError(f"an actor of Ray cannot judge: {clean(why, keep_lines=False)}"))

    def _hear_claim(self, ticket: int, _sender: str, numbers: list[int]) -> None:
        todo: dict[int, dict[str, bytes]] = {}
        for number in numbers if not self.winding else ():
            state = self._kept[number]
            if state >= 2:
                continue
            again = state == 1
            self._kept[number] = 1
            todo[number] = self._find_replies(number) if self._resumed or again else {}
        self._reply(ticket, todo)

    def _hear_keep(
        self,
        ticket: int,
        sender: str,
        settled: list[tuple[int, float | None]],
        replies: list[tuple[str, bytes]],
        results: list[tuple[int, Judged]],
    ) -> None:
        for number, usd in settled:
            self._settle_call(sender, number, usd)
        for place, body in replies:
            self._store.keep_reply(place, body)
        letter = _Letter(ticket, 0)
        for number, result in results:
            if self._kept[number] == 3:
                continue
            letter.left += 1
            letters = self._letters.setdefault(number, [])
            letters.append(letter)
            if self._kept[number] != 2:  # else an actor that was lost has handed it in already
                self._kept[number] = 2
                self._keep_result(number, result)
        if not letter.left:
            self._reply(ticket, None)

    def _hear_await(self, ticket: int, _sender: str, what: str) -> None:
        self._awaiting[what].append(ticket)
        if self.winding and (what == "wind down" or self.stopping):
            self._call_out(what)

    def _hear_idle(self, ticket: int, sender: str) -> None:
        self._reply(ticket, None)
        if sender in self._actors:
            self._actors[sender].idle = True
        self._end_if_idle()

    def _hear_reserve(self, ticket: int, sender: str, number: int, usd: float) -> None:
        actor = self._actors.setdefault(sender, _Claimed())
        if number in actor.held:  # asked twice, since a relay was lost with the answer
            self._reply_held(ticket, actor.held[number], None)
        elif self.budget is not None:
            # A bare task: it waits for room in the budget, until it is given or the actor gives up.
            actor.asking[number] = asyncio.ensure_future(self._reserve(ticket, actor, number, usd, self.budget))

    # ---------------------------------------------------------------- results

    def _keep_result(self, number: int, result: Judged) -> None:
        try:
            self._keep(self._find_unit(number), result, partial(self._settle, number))
        except Exception as error:  # noqa: BLE001 - the run ends with it
            self._settle(number, error)

    def _settle(self, number: int, came_to: RunItem | BaseException) -> None:
        if isinstance(came_to, BaseException):
            self._kept[number] = 1
            self.fail(came_to)
        elif self._kept[number] != 3:
            self._kept[number] = 3
            self._left -= 1
            self.done.append(came_to)
            self._let_go(number)
            if not self._left:
                self._finish()
        for letter in self._letters.pop(number, ()):
            letter.left -= 1
            if not letter.left:
                self._acknowledge(letter.ticket)
        self.news.set()

    def _acknowledge(self, ticket: int) -> None:
        # Whoever takes the items may be slow; then the actors wait, and do not pile them up here.
        if len(self.done) >= AHEAD:
            self._held_back.append((ticket, pack(None)))
        else:
            self._reply(ticket, None)
            self._post()

    def _find_unit(self, number: int) -> Unit:
        block = bisect_right(self._starts, number) - 1
        if block not in self._read:
            units = self._ray.get(self.blocks[block]).column("unit").to_pylist()
            self._read[block] = units
        return unpack(self._read[block][number - self._starts[block]])

    def _let_go(self, number: int) -> None:
        """Forget what was read of a block once all of it is kept."""
        block = bisect_right(self._starts, number) - 1
        units = self._read.get(block)
        if units is None:
            return
        first = self._starts[block]
        if self._kept.count(3, first, first + len(units)) == len(units):
            del self._read[block]

    def _find_replies(self, number: int) -> dict[str, bytes]:
        """What is kept of the replies to a unit's case."""
        unit = self._find_unit(number)
        return self._store.list_replies(make_case_prefix(unit.case.id))

    # ---------------------------------------------------------------- the budget

    async def _reserve(self, ticket: int, actor: _Claimed, number: int, usd: float, budget: Budget) -> None:
        try:
            held = await budget.reserve(usd)
        except ReplyError as error:
            self._reply_held(ticket, None, error.detail)
        except AdjudgeError as error:  # what is held cannot be written down
            self._reply_held(ticket, None, str(error))
            self.fail(error)
        else:
            actor.held[number] = held
            self._reply_held(ticket, held, None)
        finally:
            actor.asking.pop(number, None)
            self._post()

    def _reply_held(self, ticket: int, held: Reservation | None, refused: str | None) -> None:
        gone = 0.0 if self.budget is None else self.budget.spent
        self._reply(ticket, (refused, 0 if held is None else held.parts, gone))

    def _settle_call(self, sender: str, number: int, usd: float | None) -> None:
        actor = self._actors.get(sender)
        if actor is None or self.budget is None:
            return
        held, asking = actor.held.pop(number, None), actor.asking.pop(number, None)
        if asking is not None:  # whoever asked has given up waiting
            asking.cancel()
        if held is not None:
            self.budget.settle(held, usd)

    def _forget(self, actor: _Claimed) -> None:
        for asking in actor.asking.values():
            asking.cancel()
        for held in actor.held.values():
            if self.budget is not None:
                self.budget.settle(held, None)
        actor.asking.clear()
        actor.held.clear()
        actor.idle = True

    # ---------------------------------------------------------------- answers

    def _reply(self, ticket: int, answer: object) -> None:
        self._answers.append((ticket, pack(answer)))

    def _call_out(self, what: str) -> None:
        for ticket in self._awaiting[what]:
            self._reply(ticket, None)
        self._awaiting[what].clear()
        self._post()

    def _post(self) -> None:
        if self._answers and self._relay is not None:
            answers, self._answers = self._answers, []
            self._relay.answer.remote(answers)

    def _end_if_idle(self) -> None:
        if self.winding and all(actor.idle for actor in self._actors.values()):
            self._finish()

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


def _start_relay(ray: Any) -> Any:
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    how: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": WAITING}
    return ray.remote(Relay).options(scheduling_strategy=here, **how).remote()


def _judge_blocks(ray: Any, desk: Desk, relay: Any, actors: int) -> None:
    """Have Ray Data give the blocks to actors; returns when it is done, or nothing more is to be begun."""
    data = ray.data
    with _quiet():
        cases = data.from_arrow_refs(desk.blocks)
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
            if desk.stopping:
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
