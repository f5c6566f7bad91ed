"""uvicorn's HTTP protocol with a time limit for the head of a request, for which uvicorn itself has none."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Seconds that a connection may take until the head of its request is complete."""


class TimedProtocol(H11Protocol):
    """Closes a connection whose next request does not come to the end of its head in time.

    The time begins with the connection, and with the first byte after an answer; each further byte gives no more of it.
    So it also ends a connection that goes on with the body of a request that was answered already. How long a
    connection may be silent between requests is uvicorn's ``timeout_keep_alive``, and a body has the server's deadline.
    """

    head_seconds = HEAD_SECONDS
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with a connection."""
        super().connection_made(transport)
        self._limit_head()

    def data_received(self, data: bytes) -> None:
        """Read what came, which can complete a head."""
        super().data_received(data)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End with the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def _limit_head(self) -> None:
        if self._is_answering():
            self._stop_timer()
        elif self._head_timer is None:  # one that runs goes on: else a byte now and then would keep it open
            self._head_timer = self.loop.call_later(self.head_seconds, self._close_late)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_late(self) -> None:
        self._head_timer = None
        # Not close(), which waits until what is still to be sent was read: who sends slowly may read slowly.
        if not self._is_answering():
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
