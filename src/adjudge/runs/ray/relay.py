"""The messages of actors to the driver, which is the process that began the run.

Ray cannot call the driver, so it fetches them. The relay is an actor on the driver's node. It keeps nothing that could
be lost: an actor that asks waits for the driver's answer. Where the relay itself is lost, Ray starts another one, and
the actor asks again. So every message must be one that may arrive twice.
"""

from __future__ import annotations

import asyncio
import importlib
import pickle
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

WAITING = 100_000
"""Messages that may wait for their answers at once."""


class Relay:
    """A queue of messages to the driver, and of its answers; none of them is unpacked here."""

    def __init__(self) -> None:
        self._messages: list[tuple[int, bytes]] = []
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._news = asyncio.Event()
        self._last = 0

    async def ask(self, message: bytes) -> bytes:
        """The answer to a message, whenever it comes."""
        self._last += 1
        ticket = self._last
        answer = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self._messages.append((ticket, message))
        self._news.set()
        try:
            return await answer
        finally:
            del self._waiting[ticket]

    async def fetch(self, seconds: float) -> list[tuple[int, bytes]]:
        """The messages that came since; none after so many seconds without."""
        if not self._messages:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
        messages, self._messages = self._messages, []
        return messages

    async def answer(self, answers: Sequence[tuple[int, bytes]]) -> None:
        """Hand answers to those who wait for them."""
        for ticket, answer in answers:
            waiting = self._waiting.get(ticket)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)


class RelayClient:
    """The client by which an actor asks the driver."""

    def __init__(self, relay: Any, sender: str) -> None:
        self._relay = relay
        self.sender = sender
        """The name of this actor, with another ending where Ray began it again."""

    async def ask(self, kind: str, *arguments: Any) -> Any:
        """Return the answer to a message; raises what Ray raises once the driver is gone."""
        return unpack(await self._relay.ask.remote(pack((kind, self.sender, *arguments))))


def pack(value: object) -> bytes:
    """Pack a value for another process of the run, functions of a program's own included."""
    # Ray's pickling writes a class or function of a script by value: the other process has no such script.
    return importlib.import_module("ray.cloudpickle").dumps(value)


def unpack(packed: bytes) -> Any:
    """Unpack a value. Only for messages of a process of the run: unpacking runs the code that the sender names."""
    return pickle.loads(packed)  # noqa: S301 - whoever reaches a cluster can run code there without this
