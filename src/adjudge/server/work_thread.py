"""A second event loop, in a thread of its own, for requests whose work would keep all others waiting.

Large contents are copied, written and hashed several times, and a rubric or rule of a request is compiled. On the event
loop that answers requests, such work would keep all others from being answered, and no deadline could end it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from adjudge.concurrency import GRACE, stop_tasks

T = TypeVar("T")


class WorkThread:
    """An event loop in a thread, which starts with the first work."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Return whether it was used, and there may be connections to close on its loop."""
        return self._loop is not None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the thread, which is started if it does not run yet.

        If this is cancelled, it returns at once, and the coroutine is cancelled where it next awaits something.
        """
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._start_thread()))

    async def aclose(self) -> None:
        """Cancel what still runs, and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        try:
            async with asyncio.timeout(2 * GRACE):
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_end_tasks(), loop))
        except TimeoutError:
            pass  # the thread is a daemon: work that does not stop ends with the process
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, GRACE)

    def _start_thread(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the thread, which is started if it does not run yet."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="adjudge-work", daemon=True)
            self._thread.start()
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop in the present thread until it is stopped, and close it."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end_tasks() -> None:
    """Cancel all other tasks of this loop, and close its generators and its threads."""
    await stop_tasks([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
