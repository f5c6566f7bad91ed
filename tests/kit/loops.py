"""Event loops: one for each test that is a coroutine, and one whose time passes without anybody waiting.

Where nothing is ready to run, the clock jumps to the next timer, so ``asyncio.sleep(3600)`` is over at once and the
order of everything is exactly the order of the times. Whatever would wait for ever is found: no timer, nothing ready.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from adjudge.threads import IDLE

T = TypeVar("T")


class NothingWillHappenError(RuntimeError):
    """The program waits, and there is no timer and nobody who could wake it."""


PATIENCE = 0.1
"""Real seconds that a function in a thread has to return before the clock jumps; only one that hangs needs them all."""


def _is_thread_busy() -> bool:
    return any(thread.name.startswith("adjudge ") and thread.name != IDLE for thread in threading.enumerate())


class _Steps(selectors.DefaultSelector):
    """A selector that turns every wait into a step of the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(PATIENCE if _is_thread_busy() and timeout != 0 else 0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise NothingWillHappenError("everybody waits and no timer is set")
        self.now += max(timeout, 0.0)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on a clock of its own, which starts at 0."""

    def __init__(self) -> None:
        self._steps = _Steps()
        super().__init__(self._steps)

    def time(self) -> float:
        return self._steps.now

    def advance(self, seconds: float) -> None:
        """Let time pass at once, as a callback does that blocks the loop."""
        self._steps.now += seconds


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a virtual clock; fails when it leaves a task behind or a complaint with the loop."""
    loop = VirtualLoop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    try:
        result = loop.run_until_complete(work)
        left = asyncio.all_tasks(loop)
        assert left == set(), f"tasks left behind: {left}"
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        _cancel_rest(loop)
        loop.close()
    assert complaints == []
    return result


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.wait(rest))


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, as one that pytest can call."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run
