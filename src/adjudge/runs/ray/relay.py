"""How actors reach the process that began a run: nothing in Ray can call that process, so it fetches its mail.

The relay is an actor on the node of that process. It keeps nothing that could be lost: whoever asks waits until that
process has answered, and where the relay itself was lost, Ray makes another, and whoever waits asks again. So every
message must be one that may arrive twice.
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
    """A letter-box: messages go one way, answers come back, and none of them is opened here."""

    def __init__(self) -> None:
        self._letters: list[tuple[int, bytes]] = []
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._news = asyncio.Event()
        self._last = 0

    async def ask(self, message: bytes) -> bytes:
        """The answer to a message, whenever it comes."""
        self._last += 1
        ticket = self._last
        answer = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self._letters.append((ticket, message))
        self._news.set()
        try:
            return await answer
        finally:
            del self._waiting[ticket]

    async def fetch(self, seconds: float) -> list[tuple[int, bytes]]:
        """The messages that came since; none after so many seconds without."""
        if not self._letters:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
        letters, self._letters = self._letters, []
        return letters

    async def answer(self, answers: Sequence[tuple[int, bytes]]) -> None:
        """Hand answers to those who wait for them."""
        for ticket, answer in answers:
            waiting = self._waiting.get(ticket)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)


class Line:
    """An actor's line to the process that began the run."""

    def __init__(self, relay: Any, sender: str) -> None:
        self._relay = relay
        self.sender = sender
        """Who this is; an actor that Ray began again is the same one."""

    async def ask(self, kind: str, *about: Any) -> Any:
        """The answer to a message; raises what Ray raises once that process is gone."""
        return unpack(await self._relay.ask.remote(pack((kind, self.sender, *about))))


def pack(value: object) -> bytes:
    """A value on its way to another process of the run, functions of a program's own included."""
    # Ray's pickling writes a class or function of a script by value: the other process has no such script.
    return importlib.import_module("ray.cloudpickle").dumps(value)


def unpack(data: bytes) -> Any:
    """What was packed. Only for what comes from a process of the run: unpacking runs what the sender says."""
    return pickle.loads(data)  # noqa: S301 - whoever reaches a cluster can run code there without this
