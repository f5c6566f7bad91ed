"""The time that a test waits: until a condition holds, and no longer than it takes to be sure that something hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG = 900.0
"""Seconds after which whatever a test waits for counts as hanging.

No test is about this number, so it is far above what the slowest step takes on a machine that is busy with other work.
"""


def wait_for(condition: Callable[[], object], *, seconds: float = HANG) -> None:
    """Return once the condition holds; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition did not hold within {seconds:g} s"
        time.sleep(0.01)
