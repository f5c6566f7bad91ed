"""The work of an actor: it judges the cases of the blocks that Ray gives it, as a run in one process judges them."""

from __future__ import annotations

import asyncio
import importlib
import platform
import secrets
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adjudge.errors import FunctionError, ReplyError, UsageError
from adjudge.judges.layers import wrap_models
from adjudge.judges.pair import PairResult
from adjudge.models.budget import Budget, Reservation
from adjudge.models.model import Model
from adjudge.models.rate_limit import Pace
from adjudge.models.replies.run_replies import KeptModel
from adjudge.result import JudgeResult
from adjudge.runs.judging import Assignment, check_ready
from adjudge.runs.layers import RunLayers
from adjudge.runs.pool import Finish, Pool
from adjudge.runs.ray.actor_task import ActorTask, list_transports
from adjudge.runs.ray.relay import RelayClient, unpack
from adjudge.runs.schedule import Unit

Replies = Mapping[str, bytes]
"""Kept replies by the place in which a run keeps them."""


class RayWorker:
    """The callable of ``map_batches``, one in each actor.

    Ray asks for a block again when it lost the node that had finished it. So before a case is asked about, the process
    that began the run says whether it is kept; and a block is done only when all its cases are.
    """

    def __init__(self, relay: Any) -> None:
        self._relay = relay
        self._opening: asyncio.Future[ActorSession | None] | None = None

    async def __call__(self, block: Any) -> Any:
        """Judge the cases of a block; its numbers, once everything of them is kept."""
        if self._opening is None:
            # A bare task: every block of this actor waits for it, and none may cancel it for the others.
            self._opening = asyncio.ensure_future(self._open_session())
        session = await asyncio.shield(self._opening)
        numbers = block.column("number").to_pylist()
        # Without a session the driver has been told, and ends the run: what is handed back here is judged by nobody.
        if session is not None:
            await session.judge(dict(zip(numbers, block.column("unit").to_pylist(), strict=True)))
        return block.select(["number"])

    async def _open_session(self) -> ActorSession | None:
        """Open the session of this actor; ``None`` where it cannot work, which is reported to the driver."""
        ray = importlib.import_module("ray")
        # An actor that Ray began again is the same actor, and has lost all that it knew.
        client = RelayClient(self._relay, f"{ray.get_runtime_context().get_actor_id()}/{secrets.token_hex(8)}")
        try:
            return await _begin_session(client)
        except UsageError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - an actor that dies of it is begun again, for ever
            problem = f"{type(error).__name__}: {error}"[:300]
        await client.ask("unfit", f"{problem} (on the node {platform.node()})")
        return None


async def _begin_session(client: RelayClient) -> ActorSession:
    """Begin the session of an actor: check its versions, find the modules, and unpack its task.

    Raises ``UsageError``.
    """
    packed, versions, places, left_out = await client.ask("begin")
    own_versions = find_versions()
    if own_versions != versions:
        differences = [f"{name} {own_versions.get(name)} and not {version}" for name, version in versions.items()]
        raise UsageError(f"this node has {', '.join(differences)}; install the same versions on every node")
    # Ray adds the folder in which the run was begun. Somebody may have put a module there who is to be judged.
    sys.path[:] = [place for place, full in zip(sys.path, list_module_paths(), strict=True) if full != left_out]
    # After its own: nothing that is installed here is taken from there.
    sys.path += [place for place in places if place not in sys.path]
    try:
        task: ActorTask = unpack(packed)
    except Exception as error:  # noqa: BLE001 - whatever a module of somebody's own raises
        raise UsageError(
            f"the judge cannot be rebuilt here ({type(error).__name__}: {error}); install what it is made of on every "
            "node"
        ) from None
    for transport in list_transports(task.assignment.judge):
        transport.divide(task.actors)
    # By itself, and never with what is larger: a short answer stays out of the object store.
    session = ActorSession(client, task, await client.ask("secret"))
    await check_ready(session.assignment)  # a key is read from this machine's environment
    session.start()
    return session


def find_versions() -> dict[str, str]:
    """Find the versions that have to be the same in every process of a run."""
    return {"adjudge": sys.modules["adjudge"].__version__, "python": ".".join(platform.python_version_tuple()[:2])}


def list_module_paths() -> list[str]:
    """List where this process finds modules: the actors find a judge in code there as well, where they have it."""
    return [str(Path(place).absolute()) for place in sys.path]


def find_skipped_path() -> str | None:
    """The working directory, where this process does not look for modules in it."""
    try:
        here = str(Path.cwd())
    except OSError:  # it was removed
        return None
    return None if here in list_module_paths() else here


@dataclass(slots=True)
class _Entry:
    """A unit that this actor has to judge, and who waits for it."""

    number: int
    unit: Unit
    replies: Replies
    kept: asyncio.Future[None]
    begun: bool = False


@dataclass(slots=True)
class _Report:
    """The next report of an actor to the driver, in the order in which the driver has to take it."""

    settled: list[tuple[int, float | None]] = field(default_factory=list)
    replies: list[tuple[str, bytes]] = field(default_factory=list)
    results: list[tuple[int, JudgeResult | PairResult]] = field(default_factory=list)


class ActorSession:
    """One actor at work: its models, its share of the limits, and what it still has to report."""

    def __init__(self, client: RelayClient, task: ActorTask, secret: bytes) -> None:
        self._client = client
        self._secret = secret
        self._limit = Pace(task.concurrency)
        budget = None if task.budget_usd is None else BudgetShare(task.budget_usd, client, self, actors=task.actors)
        self._layers = RunLayers(cache=None, budget=budget, prices=task.prices, wrap=task.wrap, limit=self._limit)
        calls = 1 if task.assignment.on_conflict is None else 2
        layered = self._layers.apply(task.assignment.judge, calls=calls)
        self.assignment: Assignment = replace(task.assignment, judge=wrap_models(layered, self._keep_replies))
        self._known: dict[str, bytes] = {}
        self._entries: dict[int, _Entry] = {}
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue()
        self._report = _Report()
        self._waiting: deque[tuple[_Entry, Finish[int]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: asyncio.Task[None] | None = None
        self._stopping = False
        self._pool: Pool[_Entry, int] | None = None

    def start(self) -> None:
        """Take up work, and listen for its end."""
        self._pool = Pool(self._read_queue(), self._judge_entry, self._layers.limit)
        for work in (self._drain_pool(self._pool), self._listen_for_end()):
            # A bare task: they work for all blocks of this actor, and end with the run or with the process.
            self._tasks.add(asyncio.create_task(work))

    async def judge(self, packed: Mapping[int, bytes]) -> None:
        """Judge units, given by number, and return when the driver has kept each result.

        The driver is asked first which of them have no result yet; with each it gives the replies that an earlier run
        has kept, so that they are not paid for again. The units go into the queue of this actor's pool. Once the run is
        stopping nothing more is judged, and nobody is kept waiting.
        """
        if self._stopping:
            return
        claimed: Mapping[int, Replies] = await self._client.ask("claim", list(packed))
        entries = [self._take_up(number, packed[number], replies) for number, replies in claimed.items()]
        if self._stopping:  # while the driver was asked: what was put into the queue since would never be kept
            self._end_waiting()
        for entry in entries:
            await entry.kept

    # ---------------------------------------------------------------- what its models use

    def find_reply(self, key: str) -> bytes | None:
        """A reply that the run has kept of a unit that is judged here."""
        return self._known.get(key)

    def keep_reply(self, key: str, body: bytes) -> None:
        """Have a reply kept; it is in the run's file before the result is."""
        self._report.replies.append((key, body))
        self._begin_sending()

    def report_cost(self, number: int, usd: float | None) -> None:
        """Report the cost of a call for which dollars were held."""
        self._report.settled.append((number, usd))
        self._begin_sending()

    # ---------------------------------------------------------------- inside

    def _keep_replies(self, model: Model, number: int) -> Model:
        return KeptModel(model, self, seat=number, resumed=True)

    def _take_up(self, number: int, packed: bytes, replies: Replies) -> _Entry:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = self._entries[number] = _Entry(number, unpack(packed), replies, done)
        self._known.update(replies)
        self._queue.put_nowait(entry)
        return entry

    async def _read_queue(self) -> AsyncGenerator[_Entry, None]:
        while True:
            yield await self._queue.get()

    async def _judge_entry(self, entry: _Entry, finish: Finish[int]) -> None:
        """Judge a unit, and put its result into the next report; ``finish`` is called once the driver has kept it."""
        entry.begun = True
        unit = entry.unit
        call = replace(self._layers.make_call(anew=unit.anew), secret=self._secret)
        try:
            result = await self.assignment.judge_case(unit.case, unit.sample, call)
        except FunctionError as error:  # the run ends with it, as in one process; or the driver would wait for ever
            await self._client.ask("unfit", str(error))
            raise
        self._report.results.append((entry.number, result))
        self._waiting.append((entry, finish))
        self._begin_sending()

    async def _drain_pool(self, pool: Pool[_Entry, int]) -> None:
        with suppress(Exception):  # the driver has ended it, or has gone
            while await pool.take():
                pass

    def _begin_sending(self) -> None:
        """Send what there is, unless something is on its way: then it goes together with what comes until then."""
        if self._sending is None or self._sending.done():
            # A bare task: each result waits for it.
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Send reports until nothing is left, and finish the units whose results are in them."""
        await asyncio.sleep(0)  # what is finished in one turn of the loop goes together
        while self._report.settled or self._report.replies or self._report.results:
            report, self._report = self._report, _Report()
            waiting, self._waiting = self._waiting, deque()
            try:
                await self._client.ask("keep", report.settled, report.replies, report.results)
            except Exception:  # noqa: BLE001 - the driver has gone
                self._stop_judging()
                return
            for entry, finish in waiting:
                self._finish_entry(entry)
                finish(entry.number)

    def _finish_entry(self, entry: _Entry) -> None:
        for place in entry.replies:
            self._known.pop(place, None)
        self._entries.pop(entry.number, None)
        if not entry.kept.done():
            entry.kept.set_result(None)

    async def _listen_for_end(self) -> None:
        """Wait for the order to begin nothing more, then to stop. A driver that is gone means to stop."""
        with suppress(Exception):  # as above
            await self._client.ask("await", "wind down")
            self._wind_down()
            await self._client.ask("await", "stop")
        self._stop_judging()

    def _wind_down(self) -> None:
        self._stopping = True
        if self._pool is not None:
            self._pool.wind_down()
        self._end_waiting()
        # A bare task: nobody waits; the driver hears of it.
        self._tasks.add(asyncio.create_task(self._report_idle()))

    async def _report_idle(self) -> None:
        for entry in list(self._entries.values()):
            await entry.kept
        await self._client.ask("idle")

    def _end_waiting(self) -> None:
        """End the waiting for units that have not begun."""
        for entry in list(self._entries.values()):
            if not entry.begun:
                self._finish_entry(entry)

    def _stop_judging(self) -> None:
        """Ask no judge any more: cancel what is under way, and end the waiting for it."""
        self._stopping = True
        if self._pool is not None:
            # A bare task: nobody waits; the process ends after it.
            self._tasks.add(asyncio.create_task(self._pool.stop()))
        for entry in list(self._entries.values()):
            self._finish_entry(entry)


class BudgetShare(Budget):
    """The run's budget as an actor sees it: what calls may cost is held by the driver, and counted.

    So all actors together keep to one amount, none has something left that another one lacks, and what an actor held
    when it died counts as spent.
    """

    def __init__(self, usd: float, client: RelayClient, session: ActorSession, *, actors: int) -> None:
        super().__init__(usd)
        self._client, self._session, self._actors = client, session, actors
        self._calls: dict[int, int] = {}
        self._number = 0
        self._gone = 0.0

    @property
    def spent(self) -> float:
        """Dollars that are spent, as far as this actor has heard; of what is left it counts on its share alone."""
        return self.usd - (self.usd - self._gone) / self._actors

    async def reserve(self, usd: float) -> Reservation:
        """Hold the most a call can cost; raises ``ReplyError`` (``budget``) when it does not fit."""
        self.dearest = max(self.dearest or 0.0, usd)
        self._number += 1
        number = self._number
        refused, parts, self._gone = await self._reserve_at_driver(number, usd)
        if refused is not None:
            raise ReplyError("budget", refused)
        return _NumberedReservation(parts, number)

    async def _reserve_at_driver(self, number: int, usd: float) -> tuple[str | None, int, float]:
        try:
            return await self._client.ask("reserve", number, usd)
        except BaseException:  # nothing was asked: a judge whose time is over waits no more
            self._session.report_cost(number, 0.0)
            raise

    def charge(self, reservation: Reservation, usd: float | None) -> None:
        """Report the cost of a call; ``None`` is unknown: all that was held is spent."""
        if isinstance(reservation, _NumberedReservation):
            self._session.report_cost(reservation.number, usd)


@dataclass(frozen=True, slots=True)
class _NumberedReservation(Reservation):
    number: int
    """The number by which the driver knows it."""
