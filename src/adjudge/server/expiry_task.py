"""A background task that closes expired requests for approval, so that a clock that is set back reopens none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.concurrency import stop_tasks
from adjudge.server.problem import logger
from adjudge.server.state import StateHolder

EVERY = 60.0
"""Seconds between two looks at all requests."""

_MOST_AT_ONCE = 50
"""Requests that are closed at once. The entry of each has a date, and that closes the others."""


@asynccontextmanager
async def close_due_requests(holder: StateHolder) -> AsyncIterator[None]:
    """Close expired requests for approval every minute while the block runs, whether or not anybody opens the queue."""
    # A bare task: the end of the block cancels it and waits for it.
    task = asyncio.create_task(_close_every_minute(holder), name="requests that are over")
    try:
        yield
    finally:
        await stop_tasks([task])


async def _close_every_minute(holder: StateHolder) -> None:
    """Close expired requests every ``EVERY`` seconds until the task is cancelled; a failure is logged."""
    while True:
        await asyncio.sleep(EVERY)
        state = holder.enter()
        try:
            await state.approvals.close_due(most=_MOST_AT_ONCE)
        except Exception as error:  # noqa: BLE001 - a store that fails now may be there in a minute
            logger.warning("requests whose time is over were not closed: %s", error)
        finally:
            holder.leave(state)
