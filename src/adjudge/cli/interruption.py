"""Ctrl-C in a command that asks models for long: what is under way has some seconds, and a second one stops at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from adjudge.cli.output import note

GRACE = 5.0
"""Seconds that an interrupted command gives to what is under way."""

Done = TypeVar("Done")


@contextmanager
def catching_interrupts(wind_down: Callable[[], None], interrupted: asyncio.Event) -> Iterator[None]:
    """A block in which the first interrupt winds down and sets the event; a second cancels the current task."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        if interrupted.is_set() and task is not None:
            task.cancel()
            return
        # The event first: what is wound down looks at it before it begins something else.
        interrupted.set()
        wind_down()
        note(f"interrupted: what is under way has {GRACE:g} seconds to finish; interrupt again to stop at once")

    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on every platform, and not outside the main thread; asyncio's own handling then cancels at once.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop)
            caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


async def finish_or_leave(work: Awaitable[Done], interrupted: asyncio.Event) -> Done | None:
    """Return what is awaited; ``None`` when it did not end in time after an interrupt, and was cancelled."""
    # A bare task: an interrupt has to wind down what is awaited, then cancel it and wait.
    finishing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(interrupted.wait())
    try:
        await asyncio.wait({finishing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({finishing}, timeout=GRACE if interrupted.is_set() else None)
    finally:
        # Waited for: when this is left, nobody is asked any more and what was finished is in the file.
        stopping.cancel()
        finishing.cancel()
        await asyncio.wait({finishing, stopping})
    return None if finishing.cancelled() else finishing.result()
