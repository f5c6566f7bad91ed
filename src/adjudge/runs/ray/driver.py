"""The driver's side of a run on Ray: the answers to the actors, and what becomes of what they hand in.

The units are handed to Ray in ``executor.py``; ``worker.py`` judges them. How the concurrency is shared out is decided
in ``executor.py`` (``_judge_all``), and a model's own limits in ``models/providers/http.py``.

Ray Data starts lost actors again and gives them their blocks again. So an actor asks here before it judges a unit, and
a result that is handed in twice is kept once.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from adjudge.errors import AdjudgeError, ReplyError, UsageError
from adjudge.formats.text import clean
from adjudge.judges.pair import PairResult
from adjudge.models.budget import Budget, Reservation
from adjudge.models.replies.key import make_case_prefix
from adjudge.result import JudgeResult
from adjudge.runs.executor import Keep
from adjudge.runs.item import RunItem
from adjudge.runs.pool import AHEAD
from adjudge.runs.ray.relay import pack, unpack
from adjudge.runs.ray.worker import find_skipped_path, find_versions, list_module_paths
from adjudge.runs.schedule import Unit
from adjudge.runs.store import RunStore

_log = logging.getLogger("adjudge.runs")

Judged = JudgeResult | PairResult

FETCH_TIMEOUT = 1.0
"""Seconds that a fetch of messages waits for the first one."""


@dataclass(slots=True)
class _UnansweredReport:
    """A report of an actor whose results are being written: it is answered when all of them are."""

    ticket: int
    left: int


@dataclass(slots=True)
class _ActorState:
    """The state of an actor that has asked for work."""

    held: dict[int, Reservation] = field(default_factory=dict)
    """The reservations of the budget for its calls."""
    asking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """The reservations that wait for others."""
    idle: bool = False


_UNCLAIMED, _CLAIMED, _WRITING, _WRITTEN = range(4)
"""The states of a unit: claimed by no actor yet; claimed by one; with a result that is being written; with one that is
on disk. A unit whose actor was lost stays claimed, and the next actor that asks for it claims it as well."""


class RayDriver:
    """The driver's side of a run on Ray: it answers the messages of the actors, and has their results written."""

    def __init__(self, keep: Keep, store: RunStore, budget: Budget | None, *, secret: bytes, resumed: bool) -> None:
        self._keep, self._store, self.budget = keep, store, budget
        self._secret, self._resumed = secret, resumed
        self.task = b""
        """The task of the actors, packed."""
        self.blocks: list[Any] = []
        """Ray's references to the blocks."""
        self._starts: list[int] = []
        self.total = 0
        self._states = bytearray()
        """The state of each unit, ``_UNCLAIMED`` to ``_WRITTEN``; one byte each, because there may be millions."""
        self._left = 0
        self._read: dict[int, list[bytes]] = {}
        self._unanswered: dict[int, list[_UnansweredReport]] = {}
        """By the unit: the reports that wait until its result is on disk."""
        self._actors: dict[str, _ActorState] = {}
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
        """Return the items that were kept since; actors that wait for that go on."""
        items = tuple(self.done)
        self.done.clear()
        self._answers += self._held_back
        self._held_back.clear()
        self._send_answers()
        return items

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
        self._states.extend(bytes(len(packed)))

    def wind_down(self) -> None:
        """Have the actors begin nothing more."""
        self.winding = True
        self._answer_awaiting("wind down")
        self._end_if_idle()

    def stop(self) -> None:
        """Have the actors drop what is under way."""
        self.winding = self.stopping = True
        self._answer_awaiting("wind down")
        self._answer_awaiting("stop")
        self._end_waiting()

    def fail(self, error: BaseException) -> None:
        """End the run with an error; what is under way is finished."""
        self.error = self.error or error
        self.wind_down()

    async def answer_all(self, relay: Any) -> None:
        """Answer the actors until nobody is to be answered any more."""
        self._relay = relay
        while True:
            for ticket, message in await relay.fetch.remote(FETCH_TIMEOUT):
                kind, sender, *arguments = unpack(message)
                getattr(self, f"_handle_{kind}")(ticket, sender, *arguments)
            self._send_answers()

    # ---------------------------------------------------------------- what actors say

    def _handle_begin(self, ticket: int, sender: str) -> None:
        """Answer an actor that begins with its task, and charge what an earlier start of it had reserved."""
        # An actor that begins again has lost what it was doing, and with it what its calls have cost.
        name = sender.partition("/")[0]
        for other, actor in self._actors.items():
            if other != sender and other.partition("/")[0] == name:
                _log.warning("an actor of Ray was lost, and was begun again")
                self._forget_actor(actor)
        self._actors.setdefault(sender, _ActorState())
        self._queue_answer(ticket, (self.task, find_versions(), list_module_paths(), find_skipped_path()))

    def _handle_secret(self, ticket: int, _sender: str) -> None:
        self._queue_answer(ticket, self._secret)

    def _handle_unfit(self, ticket: int, sender: str, reason: str) -> None:
        self._queue_answer(ticket, None)
        self._actors.setdefault(sender, _ActorState()).idle = True
        self.fail(UsageError(f"an actor of Ray cannot judge: {clean(reason, keep_lines=False)}"))

    def _handle_claim(self, ticket: int, _sender: str, numbers: list[int]) -> None:
        """Answer with the units that still have no result, each with its kept replies; none when winding down."""
        todo: dict[int, dict[str, bytes]] = {}
        for number in numbers if not self.winding else ():
            state = self._states[number]
            if state in (_WRITING, _WRITTEN):
                continue
            again = state == _CLAIMED
            self._states[number] = _CLAIMED
            todo[number] = self._find_replies(number) if self._resumed or again else {}
        self._queue_answer(ticket, todo)

    def _handle_keep(
        self,
        ticket: int,
        sender: str,
        settled: list[tuple[int, float | None]],
        replies: list[tuple[str, bytes]],
        results: list[tuple[int, Judged]],
    ) -> None:
        """Keep what an actor hands in: costs, replies and results; it is answered when all its results are written."""
        for number, usd in settled:
            self._charge_call(sender, number, usd)
        for place, body in replies:
            self._store.keep_reply(place, body)
        report = _UnansweredReport(ticket, 0)
        for number, result in results:
            if self._states[number] == _WRITTEN:
                continue
            report.left += 1
            self._unanswered.setdefault(number, []).append(report)
            if self._states[number] != _WRITING:  # else an actor that was lost has handed it in already
                self._states[number] = _WRITING
                self._keep_result(number, result)
        if not report.left:
            self._queue_answer(ticket, None)

    def _handle_await(self, ticket: int, _sender: str, signal: str) -> None:
        self._awaiting[signal].append(ticket)
        if self.winding and (signal == "wind down" or self.stopping):
            self._answer_awaiting(signal)

    def _handle_idle(self, ticket: int, sender: str) -> None:
        self._queue_answer(ticket, None)
        if sender in self._actors:
            self._actors[sender].idle = True
        self._end_if_idle()

    def _handle_reserve(self, ticket: int, sender: str, number: int, usd: float) -> None:
        actor = self._actors.setdefault(sender, _ActorState())
        if number in actor.held:  # asked twice, since a relay was lost with the answer
            self._reply_held(ticket, actor.held[number], None)
        elif self.budget is not None:
            # A bare task: it waits for room in the budget, until it is given or the actor gives up.
            actor.asking[number] = asyncio.ensure_future(self._reserve_dollars(ticket, actor, number, usd, self.budget))

    # ---------------------------------------------------------------- results

    def _keep_result(self, number: int, result: Judged) -> None:
        try:
            self._keep(self._find_unit(number), result, partial(self._finish_unit, number))
        except Exception as error:  # noqa: BLE001 - the run ends with it
            self._finish_unit(number, error)

    def _finish_unit(self, number: int, outcome: RunItem | BaseException) -> None:
        """Note that a unit is written, or that writing it failed, and answer the actors that wait for it."""
        if isinstance(outcome, BaseException):
            self._states[number] = _CLAIMED
            self.fail(outcome)
        elif self._states[number] != _WRITTEN:
            self._states[number] = _WRITTEN
            self._left -= 1
            self.done.append(outcome)
            self._forget_block_of(number)
            if not self._left:
                self._end_waiting()
        for report in self._unanswered.pop(number, ()):
            report.left -= 1
            if not report.left:
                self._acknowledge_report(report.ticket)
        self.news.set()

    def _acknowledge_report(self, ticket: int) -> None:
        # Whoever takes the items may be slow; then the actors wait, and do not pile them up here.
        if len(self.done) >= AHEAD:
            self._held_back.append((ticket, pack(None)))
        else:
            self._queue_answer(ticket, None)
            self._send_answers()

    def _find_unit(self, number: int) -> Unit:
        block = bisect_right(self._starts, number) - 1
        if block not in self._read:
            units = self._ray.get(self.blocks[block]).column("unit").to_pylist()
            self._read[block] = units
        return unpack(self._read[block][number - self._starts[block]])

    def _forget_block_of(self, number: int) -> None:
        """Forget what was read of a block once all of it is kept."""
        block = bisect_right(self._starts, number) - 1
        units = self._read.get(block)
        if units is None:
            return
        first = self._starts[block]
        if self._states.count(_WRITTEN, first, first + len(units)) == len(units):
            del self._read[block]

    def _find_replies(self, number: int) -> dict[str, bytes]:
        """Find the kept replies to a unit's case."""
        unit = self._find_unit(number)
        return self._store.list_replies(make_case_prefix(unit.case.id))

    # ---------------------------------------------------------------- the budget

    async def _reserve_dollars(self, ticket: int, actor: _ActorState, number: int, usd: float, budget: Budget) -> None:
        """Wait for room in the budget, and answer with the reservation or the reason why there is none."""
        try:
            reservation = await budget.reserve(usd)
        except ReplyError as error:
            self._reply_held(ticket, None, error.detail)
        except AdjudgeError as error:  # what is held cannot be written down
            self._reply_held(ticket, None, str(error))
            self.fail(error)
        else:
            actor.held[number] = reservation
            self._reply_held(ticket, reservation, None)
        finally:
            actor.asking.pop(number, None)
            self._send_answers()

    def _reply_held(self, ticket: int, reservation: Reservation | None, refused: str | None) -> None:
        spent = 0.0 if self.budget is None else self.budget.spent
        self._queue_answer(ticket, (refused, 0 if reservation is None else reservation.parts, spent))

    def _charge_call(self, sender: str, number: int, usd: float | None) -> None:
        """Charge what a call cost and free the rest of its reservation; ``usd`` is ``None`` where that is not known."""
        actor = self._actors.get(sender)
        if actor is None or self.budget is None:
            return
        reservation, asking = actor.held.pop(number, None), actor.asking.pop(number, None)
        if asking is not None:  # whoever asked has given up waiting
            asking.cancel()
        if reservation is not None:
            self.budget.charge(reservation, usd)

    def _forget_actor(self, actor: _ActorState) -> None:
        """Charge all reservations of a lost actor in full, since nobody knows what its calls cost."""
        for asking in actor.asking.values():
            asking.cancel()
        for reservation in actor.held.values():
            if self.budget is not None:
                self.budget.charge(reservation, None)
        actor.asking.clear()
        actor.held.clear()
        actor.idle = True

    # ---------------------------------------------------------------- answers

    def _queue_answer(self, ticket: int, answer: object) -> None:
        self._answers.append((ticket, pack(answer)))

    def _answer_awaiting(self, signal: str) -> None:
        for ticket in self._awaiting[signal]:
            self._queue_answer(ticket, None)
        self._awaiting[signal].clear()
        self._send_answers()

    def _send_answers(self) -> None:
        if self._answers and self._relay is not None:
            answers, self._answers = self._answers, []
            self._relay.answer.remote(answers)

    def _end_if_idle(self) -> None:
        if self.winding and all(actor.idle for actor in self._actors.values()):
            self._end_waiting()

    def _end_waiting(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
