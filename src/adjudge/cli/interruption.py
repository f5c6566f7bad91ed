"""Ctrl-C in a command that asks models: calls under way get five seconds, and a second Ctrl-C stops at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from adjudge.cli.output import note

GRACE = 5.0
"""Seconds that an interrupted command gives to the calls under way."""

T = TypeVar("T")


@contextmanager
def catching_interrupts(wind_down: Callable[[], None], interrupted: asyncio.Event) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM while a block runs: the first one winds down, and a second cancels the current task.

    ``wind_down`` has the work begin no further calls, and ``interrupted`` is set for those who look at it.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        if interrupted.is_set() and task is not None:
            task.cancel()
            return
        # The event is set first, because the work looks at it before it begins something else.
        interrupted.set()
        wind_down()
        note(f"interrupted: what is under way has {GRACE:g} seconds to finish; interrupt again to stop at once")

    handled_signals = []
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        # Handlers cannot be added on every platform, and not outside the main thread; there, asyncio cancels at once.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal_number, stop)
            handled_signals.append(signal_number)
    try:
        yield
    finally:
        for signal_number in handled_signals:
            loop.remove_signal_handler(signal_number)


async def finish_or_leave(work: Awaitable[T], interrupted: asyncio.Event) -> T | None:
    """Wait for some work and return its result; after an interrupt, wait for ``GRACE`` seconds at most.

    Returns ``None`` for work that was cancelled, because it did not end within these seconds.
    """
    # A bare task: an interrupt has to wind down what is awaited, then cancel it and wait.
    work_task, interrupt_task = asyncio.ensure_future(work), asyncio.ensure_future(interrupted.wait())
    try:
        await asyncio.wait({work_task, interrupt_task}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({work_task}, timeout=GRACE if interrupted.is_set() else None)
    finally:
        # Both are waited for, so that afterwards nobody is asked any more, and what was finished is in the file.
        interrupt_task.cancel()
        work_task.cancel()
        await asyncio.wait({work_task, interrupt_task})
    return None if work_task.cancelled() else work_task.result()
