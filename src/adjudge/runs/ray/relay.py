"""The relay of messages from the actors to the driver, which is the process that began the run.

Ray cannot call the driver, so the driver fetches the messages from the relay, an actor on its own node. An actor that
asks waits for the driver's answer. If the relay is lost, Ray starts another one, and the actors ask again. So every
message may arrive twice.
"""

from __future__ import annotations

import asyncio
import importlib
import pickle
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

MOST_WAITING_MESSAGES = 100_000
"""Messages that may wait for their answers at once."""


class Relay:
    """A queue of messages to the driver, and of its answers; none of them is unpacked here."""

    def __init__(self) -> None:
        self._messages: list[tuple[int, bytes]] = []
        self._waiting_answers: dict[int, asyncio.Future[bytes]] = {}
        self._has_messages = asyncio.Event()
        self._last_ticket = 0

    async def ask(self, message: bytes) -> bytes:
        """Queue a message for the driver, and wait for its answer."""
        self._last_ticket += 1
        ticket = self._last_ticket
        answer = self._waiting_answers[ticket] = asyncio.get_running_loop().create_future()
        self._messages.append((ticket, message))
        self._has_messages.set()
        try:
            return await answer
        finally:
            del self._waiting_answers[ticket]

    async def fetch(self, seconds: float) -> list[tuple[int, bytes]]:
        """Return the messages since the last fetch, each with its ticket; none if none comes for so many seconds."""
        if not self._messages:
            self._has_messages.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_messages.wait(), seconds)
        messages, self._messages = self._messages, []
        return messages

    async def answer(self, answers: Sequence[tuple[int, bytes]]) -> None:
        """Hand answers, each with the ticket of its message, to the actors that wait for them."""
        for ticket, answer in answers:
            waiting = self._waiting_answers.get(ticket)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)


class RelayClient:
    """The client by which an actor asks the driver."""

    def __init__(self, relay: Any, sender: str) -> None:
        self._relay = relay
        self.sender = sender
        """The name of this actor, with another ending where Ray began it again."""

    async def ask(self, kind: str, *arguments: Any) -> Any:
        """Send a message to the driver, and return its answer. Raises an error of Ray once the driver is gone."""
        return unpack(await self._relay.ask.remote(pack((kind, self.sender, *arguments))))


def pack(value: object) -> bytes:
    """Pack a value for another process of the run; it may have functions of the user's program in it."""
    # Ray's pickling packs the code of a class or function of a script, because the other process has no such script.
    return importlib.import_module("ray.cloudpickle").dumps(value)


def unpack(packed: bytes) -> Any:
    """Unpack a value. Use this only for messages of this run: unpacking runs any code that the sender has named."""
    return pickle.loads(packed)  # noqa: S301 - whoever reaches a cluster can run code there without this
