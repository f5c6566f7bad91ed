"""Telling a cancellation from outside from one that came from inside."""

from __future__ import annotations

import asyncio


def count_cancellations() -> int:
    """How often the running task has been asked to stop.

    When a ``CancelledError`` arrives and this number has not grown, nobody cancelled the task: what it awaited had
    been cancelled by somebody else, and that is a failure like any other.
    """
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
