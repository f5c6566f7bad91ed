"""An actor of a run on Ray: it judges the cases of the blocks that Ray gives it, as a run in one process would."""

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
from adjudge.models.replies.run_replies import RunReplyModel
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
        """Judge the units of a block, and return their numbers once the driver has written all their results."""
        if self._opening is None:
            # A bare task: every block of this actor waits for it, and none may cancel it for the others.
            self._opening = asyncio.ensure_future(self._open_session())
        session = await asyncio.shield(self._opening)
        numbers = block.column("number").to_pylist()
        # Without a session, the driver knows of the problem and ends the run, so the units are not judged.
        if session is not None:
            await session.judge(dict(zip(numbers, block.column("unit").to_pylist(), strict=True)))
        return block.select(["number"])

    async def _open_session(self) -> ActorSession | None:
        """Open the session of this actor; ``None`` where it cannot work, which is reported to the driver."""
        ray = importlib.import_module("ray")
        # An actor that Ray has started again has the same id. The random ending tells the driver that it is a new
        # start.
        client = RelayClient(self._relay, f"{ray.get_runtime_context().get_actor_id()}/{secrets.token_hex(8)}")
        try:
            return await _begin_session(client)
        except UsageError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - if the actor died of it, Ray would start it again for ever
            problem = f"{type(error).__name__}: {error}"[:300]
        await client.ask("unfit", f"{problem} (on the node {platform.node()})")
        return None


async def _begin_session(client: RelayClient) -> ActorSession:
    """Begin the session of an actor: compare versions with the driver, set the paths of modules, and unpack the task.

    Raises ``UsageError`` if this node cannot judge.
    """
    packed, versions, module_paths, skipped_path = await client.ask("begin")
    own_versions = find_versions()
    if own_versions != versions:
        differences = [f"{name} {own_versions.get(name)} and not {version}" for name, version in versions.items()]
        raise UsageError(f"this node has {', '.join(differences)}; install the same versions on every node")
    # Ray adds the working directory of the run to the path. An agent that is to be judged may have put a module there.
    sys.path[:] = [
        path for path, full_path in zip(sys.path, list_module_paths(), strict=True) if full_path != skipped_path
    ]
    # The driver's paths come after the node's own, so that modules that are installed here are used.
    sys.path += [path for path in module_paths if path not in sys.path]
    try:
        task: ActorTask = unpack(packed)
    except Exception as error:  # noqa: BLE001 - a user's module may raise anything
        raise UsageError(
            f"the judge cannot be rebuilt here ({type(error).__name__}: {error}); install what it is made of on every "
            "node"
        ) from None
    for transport in list_transports(task.assignment.judge):
        transport.divide(task.actors)
    # The secret is asked for by itself, because Ray puts large answers, such as the task, into its object store.
    session = ActorSession(client, task, await client.ask("secret"))
    await check_ready(session.assignment)  # a key is read from this machine's environment
    session.start()
    return session


def find_versions() -> dict[str, str]:
    """Return the versions of adjudge and Python, which have to be the same in every process of a run."""
    return {"adjudge": sys.modules["adjudge"].__version__, "python": ".".join(platform.python_version_tuple()[:2])}


def list_module_paths() -> list[str]:
    """List the paths where this process finds modules; the actors look for the user's modules there too."""
    return [str(Path(path).absolute()) for path in sys.path]


def find_skipped_path() -> str | None:
    """Return the working directory if this process does not look for modules in it; else ``None``."""
    try:
        working_directory = str(Path.cwd())
    except OSError:  # it was deleted
        return None
    return None if working_directory in list_module_paths() else working_directory


@dataclass(slots=True)
class _ClaimedUnit:
    """A unit that this actor has to judge, and the future that waits for it."""

    number: int
    unit: Unit
    replies: Replies
    written: asyncio.Future[None]
    """Done when the driver has written the result, or when the unit is not judged after all."""
    is_begun: bool = False


@dataclass(slots=True)
class _PendingReport:
    """The next report of an actor to the driver, in the order in which the driver has to take it."""

    settled: list[tuple[int, float | None]] = field(default_factory=list)
    replies: list[tuple[str, bytes]] = field(default_factory=list)
    results: list[tuple[int, JudgeResult | PairResult]] = field(default_factory=list)


class ActorSession:
    """The work of one actor: its models, its share of the limits, its queue of units, and the reports to the driver."""

    def __init__(self, client: RelayClient, task: ActorTask, secret: bytes) -> None:
        self._client = client
        self._secret = secret
        self._limit = Pace(task.concurrency)
        budget = None if task.budget_usd is None else BudgetShare(task.budget_usd, client, self, actors=task.actors)
        self._layers = RunLayers(cache=None, budget=budget, prices=task.prices, wrap=task.wrap, limit=self._limit)
        calls = 1 if task.assignment.on_conflict is None else 2
        layered = self._layers.apply(task.assignment.judge, calls=calls)
        self.assignment: Assignment = replace(task.assignment, judge=wrap_models(layered, self._keep_replies))
        self._kept_replies: dict[str, bytes] = {}
        self._claimed_units: dict[int, _ClaimedUnit] = {}
        self._queue: asyncio.Queue[_ClaimedUnit] = asyncio.Queue()
        self._next_report = _PendingReport()
        self._unreported: deque[tuple[_ClaimedUnit, Finish[int]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._pool: Pool[_ClaimedUnit, int] | None = None

    def start(self) -> None:
        """Begin to judge the units in the queue, and to listen for the driver's signals to end."""
        self._pool = Pool(self._read_queue(), self._judge_unit, self._layers.limit)
        for work in (self._drain_pool(self._pool), self._listen_for_end()):
            # A bare task: they work for all blocks of this actor, and end with the run or with the process.
            self._tasks.add(asyncio.create_task(work))

    async def judge(self, packed: Mapping[int, bytes]) -> None:
        """Judge packed units, given by number, and return when the driver has written each result.

        The driver is asked first which of them have no result yet. With each it gives the kept replies, so that they
        are not paid for again. The units go into the queue of this actor's pool. Once the run is stopping, no more
        units are judged, and this returns without waiting for them.
        """
        if self._is_stopping:
            return
        claimed: Mapping[int, Replies] = await self._client.ask("claim", list(packed))
        claimed_units = [self._queue_unit(number, packed[number], replies) for number, replies in claimed.items()]
        if self._is_stopping:  # meanwhile the run has begun to stop, so the queue is not read any more
            self._finish_unbegun()
        for claimed_unit in claimed_units:
            await claimed_unit.written

    # ---------------------------------------------------------------- used by its models

    def find_reply(self, key: str) -> bytes | None:
        """Return a kept reply to a unit that is judged here; ``None`` if there is none."""
        return self._kept_replies.get(key)

    def keep_reply(self, key: str, body: bytes) -> None:
        """Send a reply to the driver with the next report; the driver writes it before the result."""
        self._next_report.replies.append((key, body))
        self._begin_sending()

    def report_cost(self, number: int, usd: float | None) -> None:
        """Report the cost of a call for which dollars were held."""
        self._next_report.settled.append((number, usd))
        self._begin_sending()

    # ---------------------------------------------------------------- inside

    def _keep_replies(self, model: Model, number: int) -> Model:
        """Wrap a model so that its replies are kept, and kept ones used; ``number`` is that of its seat."""
        return RunReplyModel(model, self, seat=number, resumed=True)

    def _queue_unit(self, number: int, packed: bytes, replies: Replies) -> _ClaimedUnit:
        """Put a unit into the queue, with the replies that are kept of it."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        claimed_unit = self._claimed_units[number] = _ClaimedUnit(number, unpack(packed), replies, written)
        self._kept_replies.update(replies)
        self._queue.put_nowait(claimed_unit)
        return claimed_unit

    async def _read_queue(self) -> AsyncGenerator[_ClaimedUnit, None]:
        """Yield the units of the queue, and wait for further ones."""
        while True:
            yield await self._queue.get()

    async def _judge_unit(self, claimed_unit: _ClaimedUnit, finish: Finish[int]) -> None:
        """Judge a unit, and put its result into the next report; call ``finish`` when the driver has written it."""
        claimed_unit.is_begun = True
        unit = claimed_unit.unit
        call = replace(self._layers.make_call(anew=unit.anew), secret=self._secret)
        try:
            result = await self.assignment.judge_case(unit.case, unit.sample, call)
        except FunctionError as error:  # it ends the run; without the message, the driver would wait for ever
            await self._client.ask("unfit", str(error))
            raise
        self._next_report.results.append((claimed_unit.number, result))
        self._unreported.append((claimed_unit, finish))
        self._begin_sending()

    async def _drain_pool(self, pool: Pool[_ClaimedUnit, int]) -> None:
        """Take the results from the pool, so that it starts further units. The results themselves are reported."""
        with suppress(Exception):  # the run has ended, or the driver has gone
            while await pool.take_results():
                pass

    def _begin_sending(self) -> None:
        """Begin to send reports, unless a report is on its way: then ``_send_all`` sends the next one after it."""
        if self._sending is None or self._sending.done():
            # A bare task: each result waits for it.
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Send reports until nothing is left to report, and finish the units whose results are in them."""
        await asyncio.sleep(0)  # results of the same turn of the event loop go into one report
        while self._next_report.settled or self._next_report.replies or self._next_report.results:
            report, self._next_report = self._next_report, _PendingReport()
            reported, self._unreported = self._unreported, deque()
            try:
                await self._client.ask("keep", report.settled, report.replies, report.results)
            except Exception:  # noqa: BLE001 - the driver has gone
                self._stop_judging()
                return
            for claimed_unit, finish in reported:
                self._finish_unit(claimed_unit)
                finish(claimed_unit.number)

    def _finish_unit(self, claimed_unit: _ClaimedUnit) -> None:
        """Forget a unit and its replies, and wake up whoever waits for it."""
        for place in claimed_unit.replies:
            self._kept_replies.pop(place, None)
        self._claimed_units.pop(claimed_unit.number, None)
        if not claimed_unit.written.done():
            claimed_unit.written.set_result(None)

    async def _listen_for_end(self) -> None:
        """Wait for the driver's signals to wind down and to stop; stop too if the driver has gone."""
        with suppress(Exception):  # the driver has gone
            await self._client.ask("await", "wind down")
            self._wind_down()
            await self._client.ask("await", "stop")
        self._stop_judging()

    def _wind_down(self) -> None:
        """Start no more units, and report to the driver when those that run are finished."""
        self._is_stopping = True
        if self._pool is not None:
            self._pool.wind_down()
        self._finish_unbegun()
        # A bare task: it ends with a message to the driver, and nobody waits for it.
        self._tasks.add(asyncio.create_task(self._report_idle()))

    async def _report_idle(self) -> None:
        """Wait until all units are finished, and report this to the driver."""
        for claimed_unit in list(self._claimed_units.values()):
            await claimed_unit.written
        await self._client.ask("idle")

    def _finish_unbegun(self) -> None:
        """Finish the units that have not begun, without judging them."""
        for claimed_unit in list(self._claimed_units.values()):
            if not claimed_unit.is_begun:
                self._finish_unit(claimed_unit)

    def _stop_judging(self) -> None:
        """Cancel the units that run, and finish all units without results."""
        self._is_stopping = True
        if self._pool is not None:
            # A bare task: it ends with the process, and nobody waits for it.
            self._tasks.add(asyncio.create_task(self._pool.stop()))
        for claimed_unit in list(self._claimed_units.values()):
            self._finish_unit(claimed_unit)


class BudgetShare(Budget):
    """The run's budget in an actor. The driver reserves the dollars for each call, and counts the costs.

    So all actors together keep to one budget, of which each can use what the others leave. The reservations of an actor
    that dies count as spent.
    """

    def __init__(self, usd: float, client: RelayClient, session: ActorSession, *, actors: int) -> None:
        super().__init__(usd)
        self._client, self._session, self._actors = client, session, actors
        self._calls: dict[int, int] = {}
        self._last_number = 0
        self._spent_by_all = 0.0

    @property
    def spent(self) -> float:
        """The dollars spent as far as this actor knows, and the shares of the other actors in what is left."""
        return self.usd - (self.usd - self._spent_by_all) / self._actors

    async def reserve(self, usd: float) -> Reservation:
        """Reserve the most that a call can cost. Raises ``ReplyError`` (``budget``) if it does not fit."""
        self.dearest = max(self.dearest or 0.0, usd)
        self._last_number += 1
        number = self._last_number
        refused, parts, self._spent_by_all = await self._reserve_at_driver(number, usd)
        if refused is not None:
            raise ReplyError("budget", refused)
        return _NumberedReservation(parts, number)

    async def _reserve_at_driver(self, number: int, usd: float) -> tuple[str | None, int, float]:
        """Have the driver reserve dollars for a call, under a number of this actor.

        Returns the reason if it is refused, the reserved amount, and the dollars that all actors have spent.
        """
        try:
            return await self._client.ask("reserve", number, usd)
        except BaseException:  # the judge's time is over, say; no call is made, so the reservation is freed
            self._session.report_cost(number, 0.0)
            raise

    def charge(self, reservation: Reservation, usd: float | None) -> None:
        """Report the cost of a call to the driver. ``None`` is unknown: the whole reservation is then spent."""
        if isinstance(reservation, _NumberedReservation):
            self._session.report_cost(reservation.number, usd)


@dataclass(frozen=True, slots=True)
class _NumberedReservation(Reservation):
    number: int
    """The number by which the driver knows it."""
