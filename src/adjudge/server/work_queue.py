"""The queue of contents that a server judges: so many at once, so many that wait, and no more.

The numbers are in ``config/server.py``. How large one request may be, and how many rules and criteria it may have, is
decided in ``api/endpoint.py`` (``check_counts``). How long a request may take is decided in ``protection.py`` and, for
its head, in ``http_protocol.py``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager

from adjudge.config.server import ServerSettings
from adjudge.server.problem import Problem


class WorkQueue:
    """A queue: so many contents are judged at a time, so many wait, and every further request is refused with 503.

    A refusal lets nothing through: a program that is told to come back has no decision. Callers take turns, and one of
    them can fill a part of the places to wait only, so that nobody is kept out by another's requests.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._most, self._most_waiting, self._retry_after = settings.concurrency, settings.queue, settings.retry_after
        self._most_of_one = settings.queue_of_one
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Those that wait, by caller; whose turn is next comes first."""
        self._is_stopping = False
        self._home = asyncio.get_running_loop()
        self.running = 0
        """The number of requests that are being judged."""

    @property
    def waiting(self) -> int:
        """The number of those that wait for their turn."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def enter(self, caller: str) -> AsyncIterator[None]:
        """Take a place for the block; raises ``Problem`` (503) where too many wait, and when the server stops.

        It may run on another loop than the queue's own.
        """
        at_home = asyncio.get_running_loop() is self._home
        await (self._take_place(caller) if at_home else self._take_place_from_other_loop(caller))
        try:
            yield
        finally:
            if at_home:
                self._release_place()
            else:
                self._home.call_soon_threadsafe(self._release_place)

    def stop(self) -> None:
        """Refuse all that wait, and all that come: another server can take them. What has begun goes on."""
        self._is_stopping = True
        while (turn := self._pop_next()) is not None:
            if not turn.done():
                turn.set_exception(self._make_problem("the server is stopping, so nothing was decided"))

    async def _take_place(self, caller: str) -> None:
        """Wait for a place among those that are judged at once; raise ``Problem`` if too many wait already."""
        if self._is_stopping:
            raise self._make_problem("the server is stopping, so nothing was decided")
        if self.running < self._most:
            self.running += 1
            return
        if self.waiting >= self._most_waiting:
            raise self._make_problem("too much is waiting to be judged, so nothing was decided")
        if len(self._waiting.get(caller, ())) >= self._most_of_one:
            raise self._make_problem("too many requests of this key or account are waiting, so nothing was decided")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release_place()  # its turn came in the moment in which it was cancelled
            else:
                self._drop_turn(caller, turn)
            raise

    async def _take_place_from_other_loop(self, caller: str) -> None:
        """Take a place on the queue's own loop; one that comes after the caller was cancelled is given back."""
        taken = asyncio.run_coroutine_threadsafe(self._take_place(caller), self._home)
        try:
            # Not cancelled with us: its turn could come in that moment, and the place would be lost for good.
            await asyncio.shield(asyncio.wrap_future(taken))
        except asyncio.CancelledError:
            taken.add_done_callback(self._return_place)
            raise

    def _return_place(self, taken: Future[None]) -> None:
        if not taken.cancelled() and taken.exception() is None:
            self._home.call_soon_threadsafe(self._release_place)

    def _release_place(self) -> None:
        while (turn := self._pop_next()) is not None:
            if not turn.done():
                turn.set_result(None)  # its place goes on, so the number of those running stays
                return
        self.running -= 1

    def _pop_next(self) -> asyncio.Future[None] | None:
        """Take out the first of the caller whose turn it is; the caller's next one comes after all others'."""
        if not self._waiting:
            return None
        caller, turns = self._waiting.popitem(last=False)
        turn = turns.popleft()
        if turns:
            self._waiting[caller] = turns
        return turn

    def _drop_turn(self, caller: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(caller, deque())
        if turn in turns:
            turns.remove(turn)
        if not turns:
            self._waiting.pop(caller, None)

    def _make_problem(self, reason: str) -> Problem:
        return Problem(503, reason, code="busy", headers={"Retry-After": str(self._retry_after)})
