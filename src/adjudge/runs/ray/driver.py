"""The driver's side of a run on Ray: it answers the messages of the actors, and has their results written.

The units are handed to Ray in ``executor.py``; ``worker.py`` judges them. How the concurrency is shared out is decided
in ``executor.py`` (``_judge_all``), and a model's own limits in ``models/providers/http.py``.

Ray Data starts lost actors again, and gives them their blocks again. So an actor asks the driver before it judges a
unit, and a result that is handed in twice is written once.
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
from adjudge.runs.executor import KeepResult
from adjudge.runs.item import RunItem
from adjudge.runs.pool import MOST_UNTAKEN
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

    reservations: dict[int, Reservation] = field(default_factory=dict)
    """The reservations of the budget for its calls, by their numbers."""
    waiting_reservations: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """The reservations that wait for room in the budget."""
    is_idle: bool = False


_UNCLAIMED, _CLAIMED, _WRITING, _WRITTEN = range(4)
"""The states of a unit: claimed by no actor yet; claimed by one; with a result that is being written; with one that is
on disk. A unit whose actor was lost stays claimed, and the next actor that asks for it claims it as well."""


class RayDriver:
    """The driver's side of a run on Ray: it answers the messages of the actors, and has their results written."""

    def __init__(
        self, keep: KeepResult, store: RunStore, budget: Budget | None, *, secret: bytes, resumed: bool
    ) -> None:
        self._keep, self._store, self.budget = keep, store, budget
        self._secret, self._resumed = secret, resumed
        self.task = b""
        """The task of the actors, packed."""
        self.blocks: list[Any] = []
        """Ray's references to the blocks."""
        self._block_starts: list[int] = []
        self.total = 0
        self._states = bytearray()
        """The state of each unit, ``_UNCLAIMED`` to ``_WRITTEN``; one byte each, because there may be millions."""
        self._left_count = 0
        self._block_units: dict[int, list[bytes]] = {}
        self._unanswered_reports: dict[int, list[_UnansweredReport]] = {}
        """By the unit: the reports that wait until its result is on disk."""
        self._actors: dict[str, _ActorState] = {}
        self._signal_tickets: dict[str, list[int]] = {"wind down": [], "stop": []}
        self._answers: list[tuple[int, bytes]] = []
        self._delayed_answers: list[tuple[int, bytes]] = []
        self._relay: Any = None
        self.items: deque[RunItem] = deque()
        self.has_news = asyncio.Event()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None
        self.is_winding_down = self.is_stopping = False
        self._ray: Any = None

    @property
    def left_count(self) -> int:
        """The number of units whose result is not written yet."""
        return self._left_count

    def take_items(self) -> tuple[RunItem, ...]:
        """Return the items that were written since the last call, and answer the actors that had to wait for this."""
        items = tuple(self.items)
        self.items.clear()
        self._answers += self._delayed_answers
        self._delayed_answers.clear()
        self._send_answers()
        return items

    def put_block(self, ray: Any, packed: list[bytes]) -> None:
        """Put a block of packed units into Ray's object store."""
        arrow = importlib.import_module("pyarrow")
        numbers = range(self.total, self.total + len(packed))
        columns = {"number": arrow.array(numbers, arrow.int64()), "unit": arrow.array(packed, arrow.binary())}
        self._ray = ray
        self.blocks.append(ray.put(arrow.table(columns)))
        self._block_starts.append(self.total)
        self.total += len(packed)
        self._left_count += len(packed)
        self._states.extend(bytes(len(packed)))

    def wind_down(self) -> None:
        """Tell the actors to start no more units."""
        self.is_winding_down = True
        self._send_signal("wind down")
        self._end_if_idle()

    def stop(self) -> None:
        """Tell the actors to cancel the units that run, and end the run."""
        self.is_winding_down = self.is_stopping = True
        self._send_signal("wind down")
        self._send_signal("stop")
        self._end_run()

    def fail(self, error: BaseException) -> None:
        """End the run with an error; units that run are finished."""
        self.error = self.error or error
        self.wind_down()

    async def answer_all(self, relay: Any) -> None:
        """Fetch the messages of the actors from the relay and answer them, until this task is cancelled."""
        self._relay = relay
        while True:
            for ticket, message in await relay.fetch.remote(FETCH_TIMEOUT):
                kind, sender, *arguments = unpack(message)
                getattr(self, f"_handle_{kind}")(ticket, sender, *arguments)
            self._send_answers()

    # ---------------------------------------------------------------- messages of actors

    def _handle_begin(self, ticket: int, sender: str) -> None:
        """Answer an actor that begins, with its task, the versions and the paths of modules of this process.

        If the same actor was lost and started again, the reservations of its earlier start are charged in full.
        """
        name = sender.partition("/")[0]
        for other, actor in self._actors.items():
            if other != sender and other.partition("/")[0] == name:
                _log.warning("an actor of Ray was lost, and was begun again")
                self._forget_actor(actor)
        self._actors.setdefault(sender, _ActorState())
        self._queue_answer(ticket, (self.task, find_versions(), list_module_paths(), find_skipped_path()))

    def _handle_secret(self, ticket: int, _sender: str) -> None:
        """Answer with the secret from which tokens are made."""
        self._queue_answer(ticket, self._secret)

    def _handle_unfit(self, ticket: int, sender: str, reason: str) -> None:
        """End the run, because an actor cannot judge."""
        self._queue_answer(ticket, None)
        self._actors.setdefault(sender, _ActorState()).is_idle = True
        self.fail(UsageError(f"an actor of Ray cannot judge: {clean(reason, keep_lines=False)}"))

    def _handle_claim(self, ticket: int, _sender: str, numbers: list[int]) -> None:
        """Answer with the units that have no result yet, each with its kept replies; with none when winding down."""
        unfinished: dict[int, dict[str, bytes]] = {}
        for number in numbers if not self.is_winding_down else ():
            state = self._states[number]
            if state in (_WRITING, _WRITTEN):
                continue
            was_claimed = state == _CLAIMED  # by an actor that was lost, which may have handed in replies
            self._states[number] = _CLAIMED
            unfinished[number] = self._find_replies(number) if self._resumed or was_claimed else {}
        self._queue_answer(ticket, unfinished)

    def _handle_keep(
        self,
        ticket: int,
        sender: str,
        settled: list[tuple[int, float | None]],
        replies: list[tuple[str, bytes]],
        results: list[tuple[int, Judged]],
    ) -> None:
        """Charge the costs, and write the replies and results, that an actor hands in.

        The actor is answered when all its results are written.
        """
        for number, usd in settled:
            self._charge_call(sender, number, usd)
        for place, body in replies:
            self._store.keep_reply(place, body)
        report = _UnansweredReport(ticket, 0)
        for number, result in results:
            if self._states[number] == _WRITTEN:
                continue
            report.left += 1
            self._unanswered_reports.setdefault(number, []).append(report)
            if self._states[number] != _WRITING:  # an actor that was lost may have handed it in already
                self._states[number] = _WRITING
                self._keep_result(number, result)
        if not report.left:
            self._queue_answer(ticket, None)

    def _handle_await(self, ticket: int, _sender: str, signal: str) -> None:
        """Note an actor that waits for the signal to wind down or to stop; answer at once if it was given."""
        self._signal_tickets[signal].append(ticket)
        if self.is_winding_down and (signal == "wind down" or self.is_stopping):
            self._send_signal(signal)

    def _handle_idle(self, ticket: int, sender: str) -> None:
        """Note that an actor has finished all its units after the signal to wind down."""
        self._queue_answer(ticket, None)
        if sender in self._actors:
            self._actors[sender].is_idle = True
        self._end_if_idle()

    def _handle_reserve(self, ticket: int, sender: str, number: int, usd: float) -> None:
        """Reserve dollars of the budget for a call of an actor, and answer once there is room or none can come."""
        actor = self._actors.setdefault(sender, _ActorState())
        if number in actor.reservations:  # the actor asks again, because the relay was lost with the answer
            self._answer_reservation(ticket, actor.reservations[number], None)
        elif self.budget is not None:
            # A bare task: it ends when there is room in the budget, or is cancelled when the actor gives up.
            actor.waiting_reservations[number] = asyncio.ensure_future(
                self._reserve_dollars(ticket, actor, number, usd, self.budget)
            )

    # ---------------------------------------------------------------- results

    def _keep_result(self, number: int, result: Judged) -> None:
        """Hand in the result of a unit to be written; ``_finish_unit`` is called then."""
        try:
            self._keep(self._find_unit(number), result, partial(self._finish_unit, number))
        except Exception as error:  # noqa: BLE001 - the run ends with it
            self._finish_unit(number, error)

    def _finish_unit(self, number: int, outcome: RunItem | BaseException) -> None:
        """Note that the result of a unit is written, or that this failed, and answer the actors that wait for it."""
        if isinstance(outcome, BaseException):
            self._states[number] = _CLAIMED
            self.fail(outcome)
        elif self._states[number] != _WRITTEN:
            self._states[number] = _WRITTEN
            self._left_count -= 1
            self.items.append(outcome)
            self._forget_finished_block(number)
            if not self._left_count:
                self._end_run()
        for report in self._unanswered_reports.pop(number, ()):
            report.left -= 1
            if not report.left:
                self._acknowledge_report(report.ticket)
        self.has_news.set()

    def _acknowledge_report(self, ticket: int) -> None:
        """Answer an actor whose results are written.

        If too many items wait to be taken here, the answer is delayed until they are, so that the actors wait.
        """
        if len(self.items) >= MOST_UNTAKEN:
            self._delayed_answers.append((ticket, pack(None)))
        else:
            self._queue_answer(ticket, None)
            self._send_answers()

    def _find_unit(self, number: int) -> Unit:
        """Return a unit by its number; its block is read from Ray if it is not in memory."""
        block = bisect_right(self._block_starts, number) - 1
        if block not in self._block_units:
            units = self._ray.get(self.blocks[block]).column("unit").to_pylist()
            self._block_units[block] = units
        return unpack(self._block_units[block][number - self._block_starts[block]])

    def _forget_finished_block(self, number: int) -> None:
        """Free the units of a block from memory, if the results of all of them are written."""
        block = bisect_right(self._block_starts, number) - 1
        units = self._block_units.get(block)
        if units is None:
            return
        first = self._block_starts[block]
        if self._states.count(_WRITTEN, first, first + len(units)) == len(units):
            del self._block_units[block]

    def _find_replies(self, number: int) -> dict[str, bytes]:
        """Find the kept replies to a unit's case."""
        unit = self._find_unit(number)
        return self._store.list_replies(make_case_prefix(unit.case.id))

    # ---------------------------------------------------------------- the budget

    async def _reserve_dollars(self, ticket: int, actor: _ActorState, number: int, usd: float, budget: Budget) -> None:
        """Wait for room in the budget, and answer with the reservation, or with the reason why there is none."""
        try:
            reservation = await budget.reserve(usd)
        except ReplyError as error:
            self._answer_reservation(ticket, None, error.detail)
        except AdjudgeError as error:  # the reserved dollars cannot be written to disk
            self._answer_reservation(ticket, None, str(error))
            self.fail(error)
        else:
            actor.reservations[number] = reservation
            self._answer_reservation(ticket, reservation, None)
        finally:
            actor.waiting_reservations.pop(number, None)
            self._send_answers()

    def _answer_reservation(self, ticket: int, reservation: Reservation | None, refused: str | None) -> None:
        """Answer a reservation: the reason if it is refused, its amount, and the dollars spent by all actors."""
        spent = 0.0 if self.budget is None else self.budget.spent
        self._queue_answer(ticket, (refused, 0 if reservation is None else reservation.parts, spent))

    def _charge_call(self, sender: str, number: int, usd: float | None) -> None:
        """Charge what a call cost and free the rest of its reservation; ``usd`` is ``None`` where that is not known."""
        actor = self._actors.get(sender)
        if actor is None or self.budget is None:
            return
        reservation, waiting_task = actor.reservations.pop(number, None), actor.waiting_reservations.pop(number, None)
        if waiting_task is not None:  # the call has given up waiting for room in the budget
            waiting_task.cancel()
        if reservation is not None:
            self.budget.charge(reservation, usd)

    def _forget_actor(self, actor: _ActorState) -> None:
        """Charge all reservations of a lost actor in full, because it is not known what its calls cost."""
        for waiting_task in actor.waiting_reservations.values():
            waiting_task.cancel()
        for reservation in actor.reservations.values():
            if self.budget is not None:
                self.budget.charge(reservation, None)
        actor.waiting_reservations.clear()
        actor.reservations.clear()
        actor.is_idle = True

    # ---------------------------------------------------------------- answers

    def _queue_answer(self, ticket: int, answer: object) -> None:
        """Pack an answer, which ``_send_answers`` sends; ``ticket`` names the message that it answers."""
        self._answers.append((ticket, pack(answer)))

    def _send_signal(self, signal: str) -> None:
        """Answer the actors that wait for a signal, ``wind down`` or ``stop``."""
        for ticket in self._signal_tickets[signal]:
            self._queue_answer(ticket, None)
        self._signal_tickets[signal].clear()
        self._send_answers()

    def _send_answers(self) -> None:
        """Send the queued answers to the relay, once there is one."""
        if self._answers and self._relay is not None:
            answers, self._answers = self._answers, []
            self._relay.answer.remote(answers)

    def _end_if_idle(self) -> None:
        """End the run if it is winding down and all actors have finished their units."""
        if self.is_winding_down and all(actor.is_idle for actor in self._actors.values()):
            self._end_run()

    def _end_run(self) -> None:
        """Wake up the executor, which waits for the end of the run."""
        if not self.ended.done():
            self.ended.set_result(None)
