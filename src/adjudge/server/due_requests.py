"""Requests whose time is over are closed by the server itself, so that a clock that is set back opens none of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.concurrency import stop_tasks
from adjudge.server.problem import logger
from adjudge.server.state import StateHolder

EVERY = 60.0
"""Seconds between two looks at all requests."""

_MOST = 50
"""Requests that are closed at once. The entry of each has a date, and that closes the others."""


@asynccontextmanager
async def close_due_requests(holder: StateHolder) -> AsyncIterator[None]:
    """For the length of a block, close every minute what is over, whether or not anybody looks at it."""
    # A bare task: the end of the block cancels it and waits for it.
    task = asyncio.create_task(_keep_closing(holder), name="requests that are over")
    try:
        yield
    finally:
        await stop_tasks([task])


async def _keep_closing(holder: StateHolder) -> None:
    while True:
        await asyncio.sleep(EVERY)
        state = holder.enter()
        try:
            await state.approvals.close_due(most=_MOST)
        except Exception as error:  # noqa: BLE001 - a store that fails now may be there in a minute
            logger.warning("requests whose time is over were not closed: %s", error)
        finally:
            holder.leave(state)
