"""The one door for callers without an event loop.

All sync calls run on one private loop in one daemon thread, so they work inside a running loop too (a notebook) and
nobody's loop is ever patched. The thread starts with the first call and ends with the interpreter.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from adjudge.errors import UsageError

T = TypeVar("T")


class _Door:
    """A private loop and its thread; made anew after a fork, where threads do not survive."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="adjudge-sync", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def let_go(self) -> None:
        """Give what was cancelled a moment to close its connections before the caller's interrupt goes on."""
        gone = threading.Event()
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.call_later, 0.01, gone.set)
            gone.wait(timeout=1.0)

    def close(self) -> None:
        """Stop the loop and close what lives on it (connections)."""
        if self.pid == os.getpid() and self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(timeout=2.0)


_lock = threading.Lock()
_doors: list[_Door] = []


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return what it returns; an interrupt cancels it."""
    door = _find_door()
    if threading.current_thread() is door.thread:
        work.close()
        raise UsageError("a sync call was made from inside adjudge's own loop; await evaluate() there instead")
    future = asyncio.run_coroutine_threadsafe(work, door.loop)
    try:
        return future.result()
    except BaseException:
        if future.cancel():
            door.let_go()
        raise


def _find_door() -> _Door:
    with _lock:
        if not _doors or _doors[0].pid != os.getpid():
            _doors.clear()
            _doors.append(_Door())
            import atexit

            atexit.register(_doors[0].close)
        return _doors[0]
