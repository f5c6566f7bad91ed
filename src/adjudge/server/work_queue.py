"""The queue of contents that a server judges: a limited number at once, a limited number that wait, and no more.

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
    """A queue that bounds how many contents are judged at once and how many wait; other requests are refused with 503.

    A refusal is no decision, so nothing passes by it. Callers take turns, and one caller can fill only a part of the
    places to wait, so that no caller keeps the others out.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._most, self._most_waiting, self._retry_after = settings.concurrency, settings.queue, settings.retry_after
        self._most_of_one = settings.queue_of_one
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """The futures of the requests that wait, by caller; the caller whose turn is next comes first.

        The result of a future is set when its request can run.
        """
        self._is_stopping = False
        self._home = asyncio.get_running_loop()
        """The event loop on which all of the queue's values are changed."""
        self.running = 0
        """The number of requests that are being judged."""

    @property
    def waiting(self) -> int:
        """The number of those that wait for their turn."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def enter(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place to judge, and keep it during the block.

        Raises ``Problem`` (503) if too many requests wait, and when the server stops. It may be used on another event
        loop than the queue's own.
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
        """Refuse the requests that wait, and all new ones: another server can take them. Those under way finish."""
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
                self._release_place()  # it got its place in the moment in which it was cancelled
            else:
                self._drop_turn(caller, turn)
            raise

    async def _take_place_from_other_loop(self, caller: str) -> None:
        """Take a place, from another event loop than the queue's own.

        If this is cancelled, a place that comes later is given back.
        """
        place_taken = asyncio.run_coroutine_threadsafe(self._take_place(caller), self._home)
        try:
            # Not cancelled together with this: the place could be given in that moment, and would be lost for good.
            await asyncio.shield(asyncio.wrap_future(place_taken))
        except asyncio.CancelledError:
            place_taken.add_done_callback(self._return_place)
            raise

    def _return_place(self, place_taken: Future[None]) -> None:
        """Give back a place that was taken for a request that has been cancelled since."""
        if not place_taken.cancelled() and place_taken.exception() is None:
            self._home.call_soon_threadsafe(self._release_place)

    def _release_place(self) -> None:
        """Give a place that is free to the request whose turn is next; if none waits, fewer are running."""
        while (turn := self._pop_next()) is not None:
            if not turn.done():
                turn.set_result(None)  # that request runs in place of this one, so ``running`` stays the same
                return
        self.running -= 1

    def _pop_next(self) -> asyncio.Future[None] | None:
        """Remove and return the first request of the caller whose turn it is; ``None`` if none waits.

        The caller's other requests go behind those of all other callers.
        """
        if not self._waiting:
            return None
        caller, turns = self._waiting.popitem(last=False)
        turn = turns.popleft()
        if turns:
            self._waiting[caller] = turns
        return turn

    def _drop_turn(self, caller: str, turn: asyncio.Future[None]) -> None:
        """Remove a cancelled request from those that wait."""
        turns = self._waiting.get(caller, deque())
        if turn in turns:
            turns.remove(turn)
        if not turns:
            self._waiting.pop(caller, None)

    def _make_problem(self, reason: str) -> Problem:
        """Make the problem (503) for a request that is refused, which says when to try again."""
        return Problem(503, reason, code="busy", headers={"Retry-After": str(self._retry_after)})
