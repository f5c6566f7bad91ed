"""One value per running event loop, forgotten when its loop is closed.

Sessions, semaphores and locks belong to the loop they were made in. A model object outlives loops: a script may call
``asyncio.run`` twice, and a server may run several loops in several threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class PerLoop(Generic[Value]):
    """A value for each event loop, made at first use; ``forget`` is called with the value of a loop that is closed."""

    def __init__(self, make: Callable[[], Value], forget: Callable[[Value], None] | None = None) -> None:
        self._make = make
        self._forget = forget
        self._values: dict[asyncio.AbstractEventLoop, Value] = {}

    def get(self) -> Value:
        """The value of the running loop; made now when there is none."""
        loop = asyncio.get_running_loop()
        value = self._values.get(loop)
        if value is None:
            self._drop_closed()
            value = self._values[loop] = self._make()
        return value

    def pop(self) -> Value | None:
        """Forget and return the value of the running loop."""
        return self._values.pop(asyncio.get_running_loop(), None)

    def _drop_closed(self) -> None:
        # list(): another thread may be adding its own loop meanwhile.
        for loop in list(self._values):
            value = self._values.pop(loop, None) if loop.is_closed() else None
            if value is not None and self._forget is not None:
                self._forget(value)
