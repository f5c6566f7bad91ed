"""uvicorn's HTTP protocol with a time limit for a request's head, its first line and headers; uvicorn has none."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Seconds that a connection may take until the head of its request is complete."""


class TimedProtocol(H11Protocol):
    """Closes a connection on which the head of the next request is not complete in time.

    The time begins with the connection, and with the first byte after an answer; further bytes do not extend it. So it
    also closes a connection that still sends the body of a request that was answered already. How long a connection may
    be silent between requests is uvicorn's ``timeout_keep_alive``, and a body has the server's deadline.
    """

    head_seconds = HEAD_SECONDS
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start with a new connection, from which on the time for its first head counts."""
        super().connection_made(transport)
        self._limit_head()

    def data_received(self, data: bytes) -> None:
        """Read bytes of the client, which may complete a head."""
        super().data_received(data)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End with the connection, which needs no timer any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def _limit_head(self) -> None:
        """Start the timer for the head of the next request, or stop it if a head is complete and being answered."""
        if self._is_answering():
            self._stop_timer()
        elif self._head_timer is None:
            # A timer that runs is not restarted: else one byte now and then would keep the connection open.
            self._head_timer = self.loop.call_later(self.head_seconds, self._close_late)

    def _is_answering(self) -> bool:
        """Return whether a request has a complete head, and its answer is not sent yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _close_late(self) -> None:
        """Close the connection when the time for a head is over, unless an answer is under way."""
        self._head_timer = None
        # Not close(), which waits until the client has read what is still to be sent: it may read slowly too.
        if not self._is_answering():
            self.transport.abort()

    def _stop_timer(self) -> None:
        """Stop the timer for the head of a request, if it runs."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
