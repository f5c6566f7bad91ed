"""Limits and cancellations of the running task."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Limit:
    """A block that may take so many seconds; afterwards ``late`` says whether it took longer.

    It is ``asyncio.timeout`` as a plain context manager: nothing is waited for on the way in or out, and not
    awaiting it saves a twentieth of what a judgement costs. ``None`` means no limit. Leaving late raises
    ``TimeoutError``, unless the task was cancelled from outside as well: then that cancellation goes on.
    """

    __slots__ = ("_before", "_handle", "_task", "late", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.late = False
        self._handle: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a limit needs a running task")
        self._task, self._before = task, task.cancelling()
        if self.seconds is not None:
            self._handle = asyncio.get_running_loop().call_later(self.seconds, self._stop)
        return self

    def _stop(self) -> None:
        self.late = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self.late and self._task.uncancel() <= self._before and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error


def count_cancellations() -> int:
    """How often the running task has been asked to stop.

    When a ``CancelledError`` arrives and this number has not grown, nobody cancelled the task: what it awaited had
    been cancelled by somebody else, and that is a failure like any other.
    """
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def is_for_us(error: BaseException) -> bool:
    """Whether an exception out of somebody else's code is nobody's failure, and has to go on.

    Ctrl-C, and the end of a coroutine that is closed because its loop is gone. Anything else is what went wrong there,
    whatever it derives from: a ``GeneratorExit`` or ``BaseExceptionGroup`` raised by a judge is too. Whose a
    cancellation is, only whoever awaits can tell, by ``count_cancellations``.
    """
    if isinstance(error, GeneratorExit):
        try:
            return asyncio.current_task() is None
        except RuntimeError:  # no loop runs: nobody awaits this any more
            return True
    return isinstance(error, KeyboardInterrupt)


def tell_error(error: BaseException) -> str:
    """What an exception is and says, also where its own text cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException as wrong:
        if is_for_us(wrong):
            raise
        return type(error).__name__
