"""A second event loop, in a thread of its own, for requests whose work would keep everybody else waiting.

Large contents are copied, written and hashed several times, and a rubric or rule of a request is compiled. Done on the
loop that answers requests, the work of one of them would silence the server, and no deadline could end it.
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
        """Run some work there; a cancellation does not wait for it, and reaches it where it next waits."""
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
            pass  # it is a daemon: what it computes ends with the process
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, GRACE)

    def _start_thread(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="adjudge-work", daemon=True)
            self._thread.start()
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end_tasks() -> None:
    await stop_tasks([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
